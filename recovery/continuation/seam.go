package continuation

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Mode is how an upstream goes on with a text.
type Mode string

// The modes.
const (
	// Exact gives the model the tokens that it produced, or the text healed at its
	// end: nothing is cut, and the answer begins where the text ends.
	Exact Mode = "exact"
	// Prefill gives the model the beginning of its own message as text.
	Prefill Mode = "prefill"
	// Instruct asks in a turn of the user that shows the end of the text.
	Instruct Mode = "instruct"
)

// Options says how texts are cut back and joined. The zero value is right for most.
type Options struct {
	Mode Mode // "": Prefill
	Form Form
	// ToolCall says that the text is a tool call or its arguments. Such a text is not
	// continued, nor one that ends inside a call, unless AllowToolCall is set: who
	// runs the call must know that it was put together.
	ToolCall, AllowToolCall bool
	// MinOverlap is how many characters text must repeat for a seam to be proven; 0:
	// 8. A run of white space counts as nothing. The structure of JSON can prove a
	// seam by fewer.
	MinOverlap int
	// MaxCut is how many bytes are cut off text, or a long JSON string, to reach a
	// boundary; 0: 400. What has none in reach is cut between characters.
	MaxCut int
	// Tail is how many bytes of the text's end Instruct shows; 0: 1,200.
	Tail int
	// Hold is how many bytes of an answer are kept back until the seam is found, and
	// how far back in the text it is looked for; 0: 2,048. Never less than what was
	// cut off.
	Hold int

	// For [Run]:

	// Answer is what is known of the text that broke off. Its Form is Form.
	Answer DetectOptions
	// Modes are what the upstream can do, the best first; nil: Mode. The next one is
	// tried where one has failed.
	Modes []Mode
	// Attempts is how often the upstream is asked; 0: 3.
	Attempts int
	// MaxTokens is how many tokens all answers have together; 0: no limit.
	MaxTokens int
}

func (o Options) withDefaults() Options {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Mode == "" {
		o.Mode = Prefill
	}
	set(&o.MinOverlap, 8)
	set(&o.MaxCut, 400)
	set(&o.Tail, 1200)
	set(&o.Hold, 2048)
	set(&o.Attempts, 3)
	if len(o.Modes) == 0 {
		o.Modes = []Mode{o.Mode}
	}
	o.Answer.Form = o.Form
	return o
}

// Seam is where a text is continued. Keep and Require, joined, are the text; they
// share its memory.
type Seam struct {
	Mode Mode
	// Keep is what the upstream is given. It ends at a boundary, and never in white
	// space.
	Keep []byte
	// Require is what was cut off, and must be produced again.
	Require []byte

	text  []byte
	shape *shape
	o     Options
}

// Plan cuts a text back to the last strong boundary: in JSON to the end of the last
// whole member, inside a long string and in other text to the end of a word. It never
// cuts inside a character or an escape. For [Exact] nothing is cut.
//
// The error is a [*SeamError] for a text that must not be continued.
func Plan(text []byte, o Options) (*Seam, error) {
	o = o.withDefaults()
	s := &Seam{Mode: o.Mode, text: text, shape: look(text, o.Form), o: o}
	sh := s.shape
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, &SeamError{Reason: EmptyText}
	case !o.AllowToolCall && (o.ToolCall || sh.call != none):
		return nil, &SeamError{Reason: InToolCall, Offset: max(sh.call, 0)}
	case sh.thinking != none && o.Mode != Exact:
		return nil, &SeamError{Reason: InReasoning, Offset: sh.thinking}
	}
	cut := len(text)
	if o.Mode != Exact {
		cut = s.cut()
		cut = len(bytes.TrimRightFunc(text[:cut], unicode.IsSpace))
	}
	s.Keep, s.Require = text[:cut:cut], text[cut:]
	return s, nil
}

// cut finds the boundary.
func (s *Seam) cut() int {
	sh := s.shape
	if sh.json == none || sh.whole() {
		return s.boundary(sh.body)
	}
	m, first := sh.m, none
	far := func(at int) bool { return len(s.text)-at > s.o.MaxCut }
	for i := len(m.bounds) - 1; i >= 0 && m.bounds[i] > 0; i-- {
		at := s.behindComma(sh.json + m.bounds[i])
		if far(at) && first == none && m.inText() {
			return s.boundary(sh.json + m.token + 1)
		} else if far(at) && first != none {
			break
		}
		if weight(s.text[at:]) < s.o.MinOverlap {
			continue
		}
		if first == none {
			first = at
		}
		if far(at) || s.once(at) {
			return at
		}
	}
	if first != none {
		return first
	}
	if far(sh.json) && m.inText() {
		return s.boundary(sh.json + m.token + 1)
	}
	return sh.json
}

// once reports whether the text from at on stands nowhere before, as far as an answer
// is held against it.
func (s *Seam) once(at int) bool {
	return unique(s.text[max(0, len(s.text)-s.o.Hold):], s.text[at:])
}

// unique reports whether an end of text stands nowhere else in it.
func unique(text, end []byte) bool { return bytes.Index(text, end) == len(text)-len(end) }

// behindComma returns at, or where the comma behind it ends: in most vocabularies it
// is part of a token that begins inside the member, and a model that is asked to
// write the next member leaves it out.
func (s *Seam) behindComma(at int) int {
	if next := skipSpace(s.text, at); next < len(s.text) && s.text[next] == ',' {
		return next + 1
	}
	return at
}

// proves reports whether what was cut off, if it is produced again, shows where the
// answer goes on: it is long enough, or all that there is.
func (s *Seam) proves() bool {
	start := s.shape.body
	if s.shape.json != none {
		start = s.shape.json
	}
	return len(s.Keep) <= start || weight(s.Require) >= s.o.MinOverlap
}

// backTo returns where the last n characters that are not white space begin, -1 if
// there are fewer. A byte that is no UTF-8 counts as one.
func backTo(text []byte, n int) int {
	i := len(text)
	for n > 0 && i > 0 {
		r, size := utf8.DecodeLastRune(text[:i])
		i -= size
		if !unicode.IsSpace(r) {
			n--
		}
	}
	if n > 0 {
		return -1
	}
	return i
}

// words is how many words more are cut off if what was cut off stands in the text
// before.
const words = 8

// boundary finds the last place not before low behind which there is enough to prove
// a seam: the end of a word, or any place between two characters if there is no word
// in reach. The ends of lines are no better: in many vocabularies a token holds the
// full stop with the line breaks behind it.
func (s *Seam) boundary(low int) int {
	text := s.text
	from := backTo(text[low:], s.o.MinOverlap)
	if from < 0 {
		return low
	}
	from += low
	lowest := max(low, from-s.o.MaxCut)
	first, seen := none, 0
	for i := from; i > lowest && seen < words; i-- {
		if !isSpace(text[i]) || isSpace(text[i-1]) || splitsEscape(text, i) {
			continue
		}
		if s.once(i) {
			return i
		}
		if seen++; first == none {
			first = i
		}
	}
	if first != none {
		return first
	}
	any := low
	for i := from; i > lowest; i-- {
		if !utf8.RuneStart(text[i]) || splitsEscape(text, i) || isSpace(text[i-1]) || combines(text[i:]) {
			continue
		}
		if parts(text, i) {
			return i
		}
		if any == low && lowest > low {
			any = i // inside a word that has no end in reach
		}
	}
	return any
}

// parts reports whether the characters on both sides of i belong to different words:
// they are not both letters or digits of a script that puts spaces between words, nor
// the same mark twice.
func parts(text []byte, i int) bool {
	before, _ := utf8.DecodeLastRune(text[:i])
	behind, _ := utf8.DecodeRune(text[i:])
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
	switch {
	case before == behind && !word(before):
		return false
	case !word(before) || !word(behind):
		return true
	}
	return unspaced(before) || unspaced(behind)
}

// unspaced reports whether r is of a script that is written without spaces.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// combines reports whether text begins with a character that belongs to the one before.
func combines(text []byte) bool {
	r, _ := utf8.DecodeRune(text)
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc, unicode.Variation_Selector) || r == '\u200d' || r >= 0x1f3fb && r <= 0x1f3ff
}

// splitsEscape reports whether i is inside an escape such as \n or \u00e9, or
// between the halves of a surrogate pair that is written so.
func splitsEscape(text []byte, i int) bool {
	for k := 1; k <= 5 && k <= i; k++ {
		at := i - k
		if text[at] != '\\' {
			continue
		}
		if run := trailing(text[:at], '\\'); run%2 == 1 {
			return false // it is itself escaped, and ends before i
		}
		return k == 1 || text[at+1] == 'u'
	}
	return i >= 6 && isHalf(text[i-6:], "89ab") && isHalf(text[i:], "cdef")
}

// isHalf reports whether text begins with \uDx.., x being one of kinds.
func isHalf(text []byte, kinds string) bool {
	return len(text) >= 4 && text[0] == '\\' && text[1] == 'u' && text[2]|0x20 == 'd' && bytes.IndexByte([]byte(kinds), text[3]|0x20) >= 0
}

// longestRun is how many backslashes are counted in a row.
const longestRun = 256

// trailing counts the bytes c at the end of text, longestRun at most.
func trailing(text []byte, c byte) int {
	n := 0
	for n < min(len(text), longestRun) && text[len(text)-1-n] == c {
		n++
	}
	return n
}

// Shown is the end of the text as Instruct shows it: whole characters, at most
// Options.Tail bytes and never less than Require.
func (s *Seam) Shown() []byte {
	at := max(0, len(s.text)-max(s.o.Tail, len(s.Require)))
	for at > 0 && at < len(s.text) && !utf8.RuneStart(s.text[at]) {
		at--
	}
	return s.text[at:]
}

// Instruction is a turn of the user that asks for the rest, for [Instruct].
func (s *Seam) Instruction() string {
	begin := s.Require
	if len(bytes.TrimSpace(begin)) == 0 {
		begin = s.Shown()
	}
	return fmt.Sprintf("Your answer was cut off. This is how it ends:\n\n%s\n\nWrite the rest. Begin with exactly these characters, which your answer ended with, and go on from there without a break:\n\n%s\n\nDo not start again, do not repeat anything else, and add no introduction, no explanation and no code fence.", s.Shown(), bytes.TrimLeft(begin, " \t\r\n"))
}
