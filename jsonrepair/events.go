package jsonrepair

import (
	"bytes"
	"iter"
	"strings"
)

// EventKind says what an [Event] tells.
type EventKind uint8

// The kinds of events.
const (
	ObjectBegin EventKind = iota + 1
	ObjectEnd
	ArrayBegin
	ArrayEnd
	StringBegin
	StringPart // more of a string that has begun
	StringEnd
	NumberEnd
	LiteralEnd // true, false or null
)

var eventKinds = [...]string{
	"", "object_begin", "object_end", "array_begin", "array_end",
	"string_begin", "string_part", "string_end", "number_end", "literal_end",
}

func (k EventKind) String() string { return eventKinds[k] }

// MarshalText gives the kind's name.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Event tells that a value begins, grows or is complete. Its slices are valid
// until the next event is taken or the next piece is written.
type Event struct {
	Kind EventKind
	// Path is where the value is: a JSON Pointer (RFC 6901). A key that comes twice
	// in an object gives the same path twice.
	Path []byte
	// Raw is JSON text: of StringPart the new characters, of the other kinds of
	// scalars the whole value, a string's quotes among it. It is nil for containers,
	// for StringBegin, and for a scalar that is longer than [View.MaxRaw].
	Raw []byte
	// Offset is where Raw begins; of StringBegin and containers the byte that opens
	// or closes them. In bytes of the text that the view was given.
	Offset int
	// Document counts the documents before this one.
	Document int
}

// Complete reports whether the value at Path is whole, and nothing of it will
// change.
func (e Event) Complete() bool {
	switch e.Kind {
	case ObjectEnd, ArrayEnd, StringEnd, NumberEnd, LiteralEnd:
		return true
	}
	return false
}

// Text returns the characters that Raw stands for: those of a string, without
// quotes and escapes; of numbers and literals Raw itself. Half of a surrogate pair
// becomes U+FFFD, as in encoding/json.
func (e Event) Text() string {
	raw := e.Raw
	if e.Kind == StringEnd && len(raw) >= 2 {
		raw = raw[1 : len(raw)-1]
	}
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			i = len(raw)
		}
		b.Write(raw[:i])
		if raw = raw[i:]; len(raw) == 0 {
			break
		}
		r, n := decodeEscape(raw)
		b.WriteRune(r)
		raw = raw[n:]
	}
	return b.String()
}

// unit is the number that \uXXXX stands for.
func unit(raw []byte) (r rune) {
	for _, c := range raw[2:6] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = (c | 0x20) - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// View reads JSON text that arrives in pieces and tells of each value as soon as
// it begins, grows or is complete: what [Stream] commits, or any other text that
// is right so far, as that of a model under a grammar. Nothing that was told is
// ever taken back:
//
//   - A member is told once its key and the first byte of its value are there.
//   - Literals are told once, with their last byte, and numbers with the byte
//     behind it.
//   - Strings grow by whole characters: half of one, or of a surrogate pair,
//     waits.
//
// It keeps one path, two bits for each open container, and the scalar that is
// being read, up to MaxRaw. The zero value is ready. It is for one goroutine.
type View struct {
	// MaxRaw is how many bytes of a string or number are kept, so that the event
	// that ends it can hold it whole; 0: any number. Parts of strings are told in
	// any case.
	MaxRaw int

	stream *Stream // that it takes text from; nil: none

	in    []byte
	base  int // offset of in[0]
	pos   int // what is read next; the index in in, as is start
	start int // of the scalar that is kept; none
	from  int // offset of the scalar that is being read

	mode    viewMode
	number  numberState
	word    string // the literal's bytes that are missing
	stack   stack
	path    []byte
	docs    int
	keep    int  // offset behind the last opener or value
	settled bool // a number at the end of the text is whole
	closed  bool
	err     *Error
}

// View returns a view that takes the text from the stream: what [Stream.Committed]
// would return, so that this returns nothing from then on. A caller who wants both
// writes what Committed returns to a [View] of its own.
func (s *Stream) View() *View { return &View{stream: s} }

// Write takes the next piece of the text. It fails once the text was found not to
// be JSON.
func (v *View) Write(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	if n := v.pos; n > 0 {
		if v.start >= 0 && v.mode.scalar() {
			n = min(n, v.start)
		}
		if n >= len(v.in)/2 {
			v.in = v.in[:copy(v.in, v.in[n:])]
			v.base, v.pos, v.start = v.base+n, v.pos-n, v.start-n
		}
	}
	v.in = append(v.in, p...)
	v.settled = false
	return len(p), nil
}

// Close says that the text has ended. A number at its very end is then told by
// [View.Events].
func (v *View) Close() error {
	v.closed = true
	return nil
}

// Err returns why no more events come, once those before have been taken: an
// [*Error] where the text was found not to be JSON, or was closed before its end.
func (v *View) Err() error {
	if v.err == nil {
		return nil
	}
	return v.err
}

// Events returns what is new, each event once. A loop that is left early leaves
// the rest to the next call.
func (v *View) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		v.pull()
		for {
			e, ok := v.next()
			if !ok || !yield(e) {
				return
			}
		}
	}
}

// pull takes what the stream has committed.
func (v *View) pull() {
	if v.stream == nil {
		return
	}
	// Where the text was found not to be JSON, Err says so.
	_, _ = v.Write(v.stream.Committed())
	e := v.stream.e
	v.closed = v.closed || v.stream.result != nil
	switch e.state {
	case rootStart, rootAfter:
	case objAfter:
		// Digits right behind a comma may belong to the number.
		next := e.in[min(max(e.valueEnd-e.base, 0), len(e.in)):]
		behind := len(next) > 0 && (isSpace(next[0]) || next[0] == '}' || next[0] == ',' && len(next) > 1 && !isDigit(next[1]))
		v.settled = e.valueEnd == e.done && behind
	default:
		v.settled = true
	}
}

// Ending says how the text whose events have been taken becomes a complete one:
// cut it to keep bytes and append closers. What has not been told is cut off: a
// key without a value, a number or literal that may go on, half a character. Of
// several documents the last is completed. It takes time in proportion to the
// depth.
func (v *View) Ending() (keep int, closers []byte) {
	keep = v.keep
	if v.mode == viewString {
		keep = v.base + v.pos
		closers = append(closers, '"')
	}
	for i := range v.stack.n {
		closers = append(closers, v.stack.at(i).closer())
	}
	return keep, closers
}

// Partial completes a text that is JSON so far, as what [Stream.Committed] has
// returned, by [View.Ending]: it returns a JSON text whose value can only grow
// when the text does. It returns nil where no value has begun, and what was before
// the place if the text turns out not to be JSON. Who completes a growing text
// again and again should use a View, which reads each byte once.
func Partial(text []byte) []byte {
	v := View{MaxRaw: 1, in: text[:len(text):len(text)]}
	for {
		if _, ok := v.next(); !ok {
			break
		}
	}
	keep, closers := v.Ending()
	if keep == 0 {
		return nil
	}
	return append(text[:keep:keep], closers...)
}
