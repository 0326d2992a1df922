package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// layout is how the records of a trace follow each other.
type layout byte

const (
	inLines  layout = iota // one on a line
	inArray                // as elements of a JSON array
	inStream               // as JSON values, with any space between them
)

// A place is a position in a trace.
type place struct {
	line, column int // from 1
	offset       int64
}

// records cuts a trace into records and holds one of them at a time.
type records struct {
	src    io.Reader
	layout layout
	max    int // bytes of a record

	buf        []byte
	start, end int   // of what is read and not yet handed out
	readErr    error // of src, io.EOF included

	at   place // of buf[start]
	rec  place // of the record handed out last
	open bool  // the array's bracket was read
	done bool  // the array was closed
	more bool  // a comma was read
}

// firstBuffer is large enough that the time of a read does not matter.
const firstBuffer = 256 << 10

func newRecords(src io.Reader, limit int) *records {
	return &records{src: src, max: limit, buf: make([]byte, firstBuffer), at: place{line: 1, column: 1}}
}

// fill reads more. It is false when there is no more, or no room.
func (l *records) fill() bool {
	if l.readErr != nil {
		return false
	}
	if l.start == l.end {
		l.start, l.end = 0, 0
	}
	if l.end == len(l.buf) && l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	if l.end == len(l.buf) {
		// One byte more than a record tells that it is too long; two are for the
		// line's end.
		size := min(2*len(l.buf), l.max+3)
		if size <= len(l.buf) {
			return false
		}
		grown := make([]byte, size)
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	for range 100 {
		n, err := l.src.Read(l.buf[l.end:])
		l.end += n
		l.readErr = err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	l.readErr = io.ErrNoProgress
	return false
}

// peek returns the first n bytes of what is left; fewer at the end.
func (l *records) peek(n int) []byte {
	for l.end-l.start < n && l.fill() {
	}
	return l.buf[l.start:min(l.start+n, l.end)]
}

// pass goes over n bytes that are no part of several lines.
func (l *records) pass(n int) {
	l.start += n
	l.at.column += n
	l.at.offset += int64(n)
}

// passLines goes over n bytes that may hold ends of lines.
func (l *records) passLines(n int) {
	b := l.buf[l.start : l.start+n]
	lines := bytes.Count(b, []byte{'\n'})
	l.pass(n)
	if lines > 0 {
		l.at.line += lines
		l.at.column = n - bytes.LastIndexByte(b, '\n')
	}
}

// findLayout looks at the trace's beginning.
func (l *records) findLayout() {
	if bytes.Equal(l.peek(3), []byte("\xef\xbb\xbf")) {
		l.pass(3)
	}
	head := bytes.TrimLeft(l.peek(4096), " \t\r\n")
	if len(head) == 0 {
		return
	}
	line, rest, _ := bytes.Cut(head, []byte{'\n'})
	line, rest = bytes.TrimRight(line, " \t\r"), bytes.TrimLeft(rest, " \t\r\n")
	switch {
	case head[0] == '[':
		l.layout = inArray
	case head[0] == '{' && len(rest) > 0 && continues(line[len(line)-1], rest[0]):
		l.layout = inStream
	}
}

// continues says whether a line that ends with one byte goes on in one that
// begins with another, rather than being cut.
func continues(end, begin byte) bool {
	switch end {
	case '[':
		return true
	case '{', ',':
		return begin == '"'
	}
	return false
}

// next returns the next record, which is valid until the next call. At the end
// it returns io.EOF. An *Error that is not fatal concerns one record, and the
// next call goes on behind it.
func (l *records) next() (rec []byte, fatal bool, err error) {
	if l.layout == inLines {
		return l.nextLine()
	}
	return l.nextValue()
}

// ended says why there is nothing more.
func (l *records) ended() error {
	if errors.Is(l.readErr, io.EOF) {
		return io.EOF
	}
	e := &Error{Line: l.at.line, Column: l.at.column, Offset: l.at.offset, Err: l.readErr}
	var packed *packError
	if errors.As(l.readErr, &packed) {
		e.Kind, e.Text, e.Err = Compression, packed.text, packed.err
	} else {
		e.Text = fmt.Sprintf("cannot read on: %v", l.readErr)
	}
	return e
}

// nextLine returns the next line that is not blank, without its end.
func (l *records) nextLine() (rec []byte, fatal bool, err error) {
	for {
		scanned := 0
		for {
			if j := bytes.IndexByte(l.buf[l.start+scanned:l.end], '\n'); j >= 0 {
				rec = l.buf[l.start : l.start+scanned+j]
				l.rec = l.at
				l.start += len(rec) + 1
				l.at = place{l.at.line + 1, 1, l.at.offset + int64(len(rec)) + 1}
				break
			}
			scanned = l.end - l.start
			if scanned > l.max+1 {
				return nil, false, l.skipLine()
			}
			if l.fill() {
				continue
			}
			if scanned == 0 || !errors.Is(l.readErr, io.EOF) {
				l.pass(scanned) // a line that could not be read to its end
				return nil, true, l.ended()
			}
			rec = l.buf[l.start:l.end]
			l.rec = l.at
			l.pass(scanned)
			break
		}
		rec = bytes.TrimSuffix(rec, []byte{'\r'})
		if len(rec) > l.max {
			return nil, false, l.tooLong()
		}
		if len(rec) > 0 && (rec[0] > ' ' || len(bytes.TrimLeft(rec, " \t\r")) > 0) {
			return rec, false, nil
		}
	}
}

func (l *records) tooLong() error {
	what := "line"
	if l.layout != inLines {
		what = "value"
	}
	return &Error{Line: l.rec.line, Column: l.rec.column, Offset: l.rec.offset, Kind: TooLong,
		Text: fmt.Sprintf("a %s of more than %d bytes: allow longer ones, or cut it", what, l.max)}
}

// skipLine goes over the rest of a line without holding it.
func (l *records) skipLine() error {
	l.rec = l.at
	err := l.tooLong()
	for {
		if j := bytes.IndexByte(l.buf[l.start:l.end], '\n'); j >= 0 {
			l.passLines(j + 1)
			return err
		}
		l.pass(l.end - l.start)
		if !l.fill() {
			return err
		}
	}
}

// space goes over JSON's white space. It is false at the end.
func (l *records) space() bool {
	for {
		b := l.buf[l.start:l.end]
		n := 0
		for n < len(b) && (b[n] == ' ' || b[n] == '\t' || b[n] == '\n' || b[n] == '\r') {
			n++
		}
		l.passLines(n)
		if n < len(b) {
			return true
		}
		if !l.fill() {
			return false
		}
	}
}

func (l *records) broken(kind Kind, text string) (rec []byte, fatal bool, err error) {
	return nil, true, &Error{Line: l.at.line, Column: l.at.column, Offset: l.at.offset, Kind: kind, Text: text}
}

// nextValue returns the next element or value.
func (l *records) nextValue() (rec []byte, fatal bool, err error) {
	if !l.space() {
		if err := l.ended(); err != io.EOF || l.layout == inStream || l.done {
			return nil, true, err
		}
		return l.broken(Cut, "the trace ends inside its array")
	}
	if l.layout == inArray {
		if rec, fatal, err, ok := l.element(); !ok {
			return rec, fatal, err
		}
	}
	return l.value()
}

// element goes to the next element of the array. It is true where one begins.
func (l *records) element() (rec []byte, fatal bool, err error, ok bool) {
	for {
		c := l.buf[l.start]
		switch {
		case l.done:
			rec, fatal, err = l.broken(Syntax, "something follows the array")
			return rec, fatal, err, false
		case !l.open && c == '[':
			l.open, l.more = true, false
		case c == ']' && (!l.more || l.rec.line == 0):
			l.done = true
		case l.rec.line == 0 || l.more:
			l.more = false
			return nil, false, nil, true
		case c == ',':
			l.more = true
		default:
			rec, fatal, err = l.broken(Syntax, "want a comma or the array's end")
			return rec, fatal, err, false
		}
		l.pass(1)
		if !l.space() {
			if err := l.ended(); err != io.EOF || l.done {
				return nil, true, err, false
			}
			rec, fatal, err = l.broken(Cut, "the trace ends inside its array")
			return rec, fatal, err, false
		}
	}
}

// value returns the value that begins here. It looks at brackets and strings
// only: whoever reads the record finds what else is wrong.
func (l *records) value() (rec []byte, fatal bool, err error) {
	l.rec = l.at
	var sc extent
	scanned, held := 0, true
	for {
		n, ended := sc.scan(l.buf[l.start+scanned : l.end])
		scanned += n
		if scanned > l.max {
			held = false
		}
		if ended && held {
			rec = l.buf[l.start : l.start+scanned]
		}
		if ended || !held {
			l.passLines(scanned)
			scanned = 0
		}
		if ended {
			break
		}
		if l.fill() {
			continue
		}
		if !errors.Is(l.readErr, io.EOF) {
			l.passLines(scanned)
			return nil, true, l.ended()
		}
		if held {
			rec = l.buf[l.start : l.start+scanned] // cut, or a bare number
			l.passLines(scanned)
		}
		break
	}
	if !held {
		return nil, false, l.tooLong()
	}
	return rec, false, nil
}

// extent finds the end of a JSON value that comes in parts.
type extent struct {
	depth            int
	inString, escape bool
	scalar           bool
}

// scan returns how many bytes of b belong to the value, and whether it ends
// there.
func (e *extent) scan(b []byte) (n int, ended bool) {
	for i := 0; i < len(b); i++ {
		if e.inString {
			i += e.skipString(b[i:])
			if e.inString {
				break
			}
			if i++; e.depth == 0 {
				return i, true
			}
			if i == len(b) {
				break
			}
		}
		switch c := b[i]; {
		case e.scalar:
			if c <= ' ' || bytes.IndexByte([]byte(`,]}{["`), c) >= 0 {
				return i, true
			}
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			if e.depth--; e.depth <= 0 {
				return i + 1, true
			}
		case e.depth == 0:
			e.scalar = true
		}
	}
	return len(b), false
}

// skipString returns the index of the quotes that end a string. Without any, it
// leaves inString set.
func (e *extent) skipString(b []byte) int {
	i := 0
	if e.escape && len(b) > 0 {
		e.escape, i = false, 1
	}
	quote := -1
	for i < len(b) {
		if quote < i {
			if quote = bytes.IndexByte(b[i:], '"'); quote < 0 {
				quote = len(b)
			} else {
				quote += i
			}
		}
		k := bytes.IndexByte(b[i:quote], '\\')
		if k < 0 {
			e.inString = quote == len(b)
			return quote
		}
		if i += k + 2; i > len(b) {
			e.escape = true
		}
	}
	return len(b)
}
