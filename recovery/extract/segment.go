package extract

import (
	"bytes"
	"strings"
)

// Kind says what a part of an answer is.
type Kind uint8

const (
	Prose     Kind = iota // text, and whatever is nothing else
	Reasoning             // what the model thought before it answered
	Fence                 // a fenced code block
	Marker                // tokens that frame the answer and are not part of it
)

var kindNames = []string{"prose", "reasoning", "fence", "marker"}

func (k Kind) String() string { return kindNames[k] }

// MarshalText gives the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(kindNames[k]), nil }

// A Segment is a part of an answer. Segments follow each other without a gap.
type Segment struct {
	Kind       Kind
	Start, End int // bytes of the text, with tags and fence lines
	// BodyStart and BodyEnd are without them. A fence's body ends with the line
	// break before its closing line.
	BodyStart, BodyEnd int
	// Info is what stands behind the opening fence, as it was written.
	Info string
	// Closed is false where reasoning or a fence never ends. It is true for prose.
	Closed bool

	quotes  int // block quotes around a fence
	columns int // that its lines are indented by
	line    fenceLine
	nested  int  // fences that are open inside one that never ends
	lazy    bool // its lines are not quoted although the first one is
}

// A fenceLine is what a fence is made of.
type fenceLine struct {
	char byte
	n    int
}

// Closer returns what closes a fence that never ends, if it is appended to text: a
// line of the same characters, with the same indentation and quotes, and the lines
// that fences inside it miss. It is empty for what is closed, and for reasoning.
func (s Segment) Closer(text []byte) string {
	if s.Kind != Fence || s.Closed || s.End != len(text) {
		return ""
	}
	var b strings.Builder
	if s.End > 0 && text[s.End-1] != '\n' {
		b.WriteByte('\n')
	}
	for i := range s.nested + 1 {
		if i > 0 {
			b.WriteByte('\n')
		}
		if !s.lazy {
			b.WriteString(strings.Repeat("> ", s.quotes))
		}
		b.WriteString(strings.Repeat(" ", s.columns))
		b.WriteString(strings.Repeat(string(rune(s.line.char)), s.line.n))
	}
	return b.String()
}

// Language returns the first word of Info in lower case, without the decoration
// that Pandoc and R Markdown add.
func (s Segment) Language() string { return language(s.Info) }

// Body returns what the segment holds, without tags and fence lines. Of a fence
// in a list or block quote it is the text without the indentation and the marks of
// the quote: a copy. Otherwise it is part of text.
func (s Segment) Body(text []byte) []byte {
	body := text[s.BodyStart:s.BodyEnd]
	if s.Kind != Fence || s.quotes == 0 && s.columns == 0 {
		return body
	}
	out := make([]byte, 0, len(body))
	for line := range bytes.Lines(body) {
		out = append(out, line[dedent(line, s.quotes, s.columns):]...)
	}
	return out
}

// Prefixed reports whether Body differs from the bytes of the text by more than
// white space: the fence stands in a block quote.
func (s Segment) Prefixed() bool { return s.quotes > 0 }

// dedent returns how many bytes of line are the marks of quotes block quotes and
// an indentation of up to columns columns behind them.
func dedent(line []byte, quotes, columns int) int {
	l := look{b: line, eof: true}
	i, _, _ := l.quotesAt(0, quotes)
	col := 0
	for i < len(line) && col < columns {
		switch line[i] {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return i
		}
		i++
	}
	return i
}

// Segments splits a whole answer. A text that is empty has none. Behind 50,000 segments
// all is prose.
func Segments(text []byte, o Options) []Segment {
	if o.Unopened == 0 {
		o.Unopened = len(text)
	}
	e := newEngine(o)
	e.b, e.eof = text, true
	e.run()
	return e.segments()
}

// segments puts the runs together.
func (e *engine) segments() []Segment {
	var all []Segment
	start := 0
	for i := 0; i < len(e.runs); {
		r := e.runs[i]
		s := Segment{Kind: r.kind, Start: start, BodyStart: start, BodyEnd: start, End: start, Closed: r.kind == Prose || r.kind == Marker}
		for ; i < len(e.runs) && e.runs[i].segment == r.segment; i++ {
			p := e.runs[i]
			switch p.part {
			case Opening:
				s.BodyStart, s.BodyEnd = p.end, p.end
				s.Info, s.quotes, s.columns, s.line = p.info, p.quotes, p.columns, p.line
			case Body:
				s.BodyEnd = p.end
			case Closing:
				s.Closed = true
			}
			s.End = p.end
		}
		start = s.End
		all = append(all, s)
	}
	if n := len(all); n > 0 && e.mode == inFence {
		all[n-1].nested, all[n-1].lazy = e.fence.nested, e.fence.lazy
	}
	return all
}
