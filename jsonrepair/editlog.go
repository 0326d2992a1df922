package jsonrepair

import (
	"encoding/binary"
	"iter"
)

// editLog holds edits in a few bytes each: a document of nothing but faults has
// nearly as many as bytes. What was replaced is not in it, as long as the input is
// at hand.
type editLog struct {
	blocks [][]byte // no edit is in two
	n      int      // edits
	end    int      // offset behind the last one
	full   bool     // what was replaced is in it
	from   int      // offset that the first one counts from
}

// logBlock is the memory that is taken at once, in bytes.
const logBlock = 64 << 10

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
	need := 1 + 3*binary.MaxVarintLen64 + len(after)
	if l.full {
		need += len(before)
	}
	last := len(l.blocks) - 1
	if last < 0 || cap(l.blocks[last])-len(l.blocks[last]) < need {
		size := logBlock
		if last < 0 {
			size = 256
		}
		l.blocks = append(l.blocks, make([]byte, 0, max(size, need)))
		last++
	}
	b := append(l.blocks[last], kindNumber[k])
	b = binary.AppendUvarint(b, uint64(offset-l.end))
	b = binary.AppendUvarint(b, uint64(len(before)))
	b = binary.AppendUvarint(b, uint64(len(after)))
	b = append(b, after...)
	if l.full {
		b = append(b, before...)
	}
	l.blocks[last] = b
	l.n, l.end = l.n+1, offset+len(before)
}

// all returns the edits in order. data is the input, unless the log is full.
func (l *editLog) all(data []byte) iter.Seq[Edit] {
	return func(yield func(Edit) bool) {
		var b []byte
		at := l.from
		next := func() int {
			v, n := binary.Uvarint(b)
			b = b[n:]
			return int(v)
		}
		for i := 0; len(b) > 0 || i < len(l.blocks); {
			if len(b) == 0 {
				b = l.blocks[i]
				i++
				continue
			}
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
func (l *editLog) drain() {
	if len(l.blocks) > 0 {
		l.blocks = l.blocks[:1]
		l.blocks[0] = l.blocks[0][:0]
	}
	l.n, l.from = 0, l.end
}
