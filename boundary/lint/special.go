package lint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// specials finds control tokens by what is left of their text when it is
// mistyped.
type specials struct {
	vocab    *vocab.Vocab
	skeleton map[string]vocab.ID
	texts    []string // of tokens long enough to be known by a part
}

// minSpecial is the text of the shortest control token, in bytes, that is looked
// for with typos: "<s >" is more often HTML.
const minSpecial = 6

func newSpecials(v *vocab.Vocab) specials {
	s := specials{vocab: v, skeleton: map[string]vocab.ID{}}
	for _, id := range slices.Concat(v.Controls(), v.UserDefined()) {
		text := string(v.Bytes(id))
		if len(text) < minSpecial || !bracketed(text) {
			continue
		}
		if _, ok := s.skeleton[skeleton(text)]; !ok {
			s.skeleton[skeleton(text)] = id
		}
		s.texts = append(s.texts, text)
	}
	return s
}

// bracketed reports whether a token's text looks like <…> or […].
func bracketed(text string) bool {
	return text[0] == '<' && text[len(text)-1] == '>' || text[0] == '[' && text[len(text)-1] == ']'
}

// skeleton is a control token's text without what typos add and change: blanks,
// invisible characters, case, width.
func skeleton(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case isBlank(r), isInvisible(r):
			return -1
		case r == '｜':
			return '|'
		case r == '▁' || r == '-':
			return '_'
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// maxSpecial is the length in bytes of a control token's text, typos included,
// beyond which nobody takes it for one.
const maxSpecial = 64

// controlTokens looks for control tokens: whole ones, broken ones and those of
// other vocabularies.
func (c *check) controlTokens(kind Kind) {
	spelled := map[vocab.ID]bool{}
	for i := 0; i < len(c.text); {
		n := bytes.IndexAny(c.text[i:], "<[")
		if n < 0 {
			return
		}
		i += n
		i += max(1, c.controlToken(i, kind, spelled))
	}
}

// controlToken looks at the bracket at i. It returns the length of what it has
// dealt with.
func (c *check) controlToken(i int, kind Kind, spelled map[vocab.ID]bool) int {
	span, closed := specialSpan(c.text[i:])
	if !closed {
		return c.cutSpecial(i, span)
	}
	if id, ok := c.tok.Vocab().LookupSpecial(span); ok {
		if kind == Prompt && !spelled[id] && bracketed(string(span)) {
			spelled[id] = true
			c.add(Finding{
				Offset: i, Length: len(span), Rule: SpecialAsText, Severity: Info,
				Message: fmt.Sprintf("%q is a control token only for encoders that are asked for it; else it is text, %s here", span, counted(len(c.tok.Encode(nil, span)), "token")),
				Fix:     "encode with control tokens (--special, add_special_tokens, parse_special) where the author of the text may give the model instructions, and only there",
			})
		}
		return len(span)
	}
	piped := isPiped(string(span))
	id, ok := c.specials.skeleton[skeleton(string(span))]
	if ok && !piped && bytes.ContainsAny(bytes.Trim(span[1:len(span)-1], " \t"), " \t") {
		ok = false // "<file name>" is no typo of "<filename>"
	}
	if !ok && !piped || c.enough(UnknownSpecial) {
		return 1
	}
	if !ok {
		id, ok = c.specials.nearest(string(span))
	}
	switch {
	case ok && string(c.tok.Vocab().Bytes(id)) != string(span):
		want := string(c.tok.Vocab().Bytes(id))
		c.add(Finding{
			Offset: i, Length: len(span), Rule: BrokenSpecial, Severity: Warning,
			Message:     fmt.Sprintf("%q is not the control token %q: the model gets %s of text", span, want, counted(len(c.tokens(span)), "token")),
			Fix:         "write " + want,
			Replacement: replace(want),
		})
	case !ok:
		c.add(Finding{
			Offset: i, Length: len(span), Rule: UnknownSpecial, Severity: Warning,
			Message: fmt.Sprintf("%q is no token of this vocabulary, where it is text of %s", span, counted(len(c.tokens(span)), "token")),
			Fix:     "use this model's own control tokens, or its chat template",
		})
	}
	return len(span)
}

// specialSpan gives what could be a control token at the start of text, and
// whether its bracket is closed.
func specialSpan(text []byte) (span []byte, closed bool) {
	end := byte('>')
	if text[0] == '[' {
		end = ']'
	}
	for n := 1; n < min(len(text), maxSpecial); {
		r, size := utf8.DecodeRune(text[n:])
		switch {
		case text[n] == end:
			return text[:n+1], true
		case !inSpecial(r):
			return text[:n], false
		}
		n += size
	}
	return text[:min(len(text), maxSpecial)], false
}

// inSpecial reports whether a character occurs in control tokens or in mistyped
// ones.
func inSpecial(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	case r == ' ', r == '\t', isInvisible(r) && r >= ' ', isOddSpace(r):
		return true
	}
	return strings.ContainsRune("_-|/:.｜▁", r)
}

// isPiped reports whether a bracketed text has bars inside its brackets, as no
// markup has.
func isPiped(span string) bool {
	inner := strings.Trim(skeleton(span), "<>")
	return len(inner) > 2 && span[0] == '<' && inner[0] == '|' && inner[len(inner)-1] == '|'
}

// cutSpecial deals with a bracket that is not closed, of which span could be a
// part of a control token. The bytes after a token's beginning show that it goes
// on otherwise, or there are none.
func (c *check) cutSpecial(i int, span []byte) int {
	span = bytes.TrimRight(span, " \t")
	if len(span) < 4 || !(bytes.HasPrefix(span, []byte("<|")) || bytes.HasPrefix(span, []byte("<｜"))) || c.enough(BrokenSpecial) {
		return 0
	}
	best := ""
	for _, text := range c.specials.texts {
		if strings.HasPrefix(text, string(span)) && (best == "" || len(text) < len(best)) {
			best = text
		}
	}
	if best == "" {
		return 0
	}
	c.add(Finding{
		Offset: i, Length: len(span), Rule: BrokenSpecial, Severity: Warning,
		Message: fmt.Sprintf("%q is the beginning of a control token such as %q, cut off: the model gets %s of text", span, best, counted(len(c.tokens(span)), "token")),
		Fix:     "write the control token whole or leave it out",
	})
	return len(span)
}

// nearest finds the control token that is one typo away, or two for long ones.
func (s *specials) nearest(span string) (vocab.ID, bool) {
	sk := skeleton(span)
	best, id := 1+min(2, len(sk)/6), vocab.None
	for _, text := range s.texts {
		if d := len(text) - len(sk); !isPiped(text) || d > 4 || d < -4 {
			continue
		}
		if d := distance(sk, skeleton(text)); d < best {
			best, id = d, s.skeleton[skeleton(text)]
		}
	}
	// A number more or less is another token, not a typo.
	if id != vocab.None && digits(sk) != digits(string(s.vocab.Bytes(id))) {
		return vocab.None, false
	}
	return id, id != vocab.None
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// distance is the Levenshtein distance of two short texts, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// doubledBOS looks for a BOS at the start of a text that would be the second.
func (c *check) doubledBOS() {
	v := c.tok.Vocab()
	bos := v.Specials().BOS
	if bos == vocab.None || len(v.Bytes(bos)) == 0 {
		return
	}
	text := v.Bytes(bos)
	trimmed := bytes.TrimLeft(c.text, " \t\r\n")
	at := len(c.text) - len(trimmed)
	if !bytes.HasPrefix(trimmed, text) {
		return
	}
	f := Finding{
		Offset: at, Length: len(text), Rule: DoubledBOS, Severity: Warning,
		Fix: "leave it to the tokenizer, or encode without its template", Replacement: replace(""),
	}
	switch {
	case bytes.HasPrefix(trimmed[len(text):], text):
		f.Message = fmt.Sprintf("the text begins with %q twice: the model sees %s of it", text, counted(c.leading(trimmed, bos), "token"))
		f.Fix = "write it once"
	case c.bos == bos:
		f.Message = fmt.Sprintf("the text begins with %q, which the tokenizer puts before a text too: the model sees two of them", text)
	default:
		return
	}
	c.add(f)
}

// leading is how many times the token stands at the beginning of text.
func (c *check) leading(text []byte, id vocab.ID) int {
	n := 0
	for _, t := range c.tokens(text[:min(len(text), 1<<10)]) {
		if t != id {
			break
		}
		n++
	}
	return n
}
