package jsonrepair

import (
	"encoding/binary"
	"iter"
)

// editLog holds edits in a few bytes each: a document of nothing but faults has
// nearly as many as bytes. What was replaced is not in it, as long as the input is
// at hand.
type editLog struct {
	b    []byte
	n    int  // edits
	end  int  // offset behind the last one
	full bool // what was replaced is in it
	from int  // offset that the first one counts from
}

// kinds gives each kind a number.
var kinds = [...]Kind{
	ByteOrderMark, SpecialSpace, Comment, Prose, Fence, Reasoning, Ellipsis, Junk, LiteralEscape, MissingComma,
	SurplusComma, MissingColon, SurplusColon, Separator, MissingValue, MissingKey, MissingOpener, MissingCloser,
	SurplusOpener, SurplusCloser, WrongCloser, Bracket, Quote, MissingQuote, InnerQuote, Concatenation,
	InvalidEscape, ControlCharacter, InvalidUTF8, Number, Literal, Call, Cut, SeveralValues, Placeholder, SuspiciousEscape,
}

var kindNumber = func() map[Kind]byte {
	m := map[Kind]byte{}
	for i, k := range kinds {
		m[k] = byte(i)
	}
	return m
}()

// add appends an edit that does not begin before the end of the last one.
func (l *editLog) add(k Kind, offset int, before []byte, after string) {
	l.b = append(l.b, kindNumber[k])
	l.b = binary.AppendUvarint(l.b, uint64(offset-l.end))
	l.b = binary.AppendUvarint(l.b, uint64(len(before)))
	l.b = binary.AppendUvarint(l.b, uint64(len(after)))
	l.b = append(l.b, after...)
	if l.full {
		l.b = append(l.b, before...)
	}
	l.n, l.end = l.n+1, offset+len(before)
}

// all returns the edits in order. data is the input, unless the log is full.
func (l *editLog) all(data []byte) iter.Seq[Edit] {
	return func(yield func(Edit) bool) {
		b, at := l.b, l.from
		next := func() int {
			v, n := binary.Uvarint(b)
			b = b[n:]
			return int(v)
		}
		for len(b) > 0 {
			ed := Edit{Kind: kinds[b[0]]}
			b = b[1:]
			at += next()
			ed.Offset = at
			before, after := next(), next()
			ed.After = string(b[:after])
			b = b[after:]
			if l.full {
				ed.Before = string(b[:before])
				b = b[before:]
			} else {
				ed.Before = string(data[at : at+before])
			}
			at += before
			if !yield(ed) {
				return
			}
		}
	}
}

// drain forgets the edits.
func (l *editLog) drain() { l.b, l.n, l.from = l.b[:0], 0, l.end }
