package lint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/unfray/unfray/boundary"
)

// seam is the fixed text before a value, where tokens change with the value.
type seam struct {
	label  []byte // the text without the blanks at its end
	blanks []byte
	moving []byte // the end of the text whose tokens change
	proof  *boundary.Proof
}

const (
	// seamBytes is how much text before a value is looked at: more than moves in
	// any but made-up texts.
	seamBytes = 256
	// maxProofs is how many seams of a text are proved: each takes milliseconds.
	maxProofs = 50
)

// seam looks at the fixed text before a value. It is nil if every value that
// begins with a letter or a digit, as nearly all do, leaves the text its tokens.
func (c *check) seam(before []byte) *seam {
	if n := len(before) - seamBytes; n > 0 {
		before = before[n+max(0, bytes.IndexFunc(before[n:], unicode.IsSpace)):]
	}
	if len(before) == 0 || c.enough(PlaceholderSeam) || c.at(PlaceholderSeam).tried > maxProofs {
		return nil
	}
	s := &seam{label: bytes.TrimRight(before, " \t"), proof: boundary.ProveSpecial(c.tok, before)}
	if !breaks(s.proof, isWordByte) {
		return nil
	}
	s.blanks = before[len(s.label):]
	s.moving = before[boundary.AnalyzeSpecial(c.tok, before).StableBytes:]
	return s
}

// breaks reports whether it is proved that tokens change with a next byte of a
// kind.
func breaks(p *boundary.Proof, kind func(byte) bool) bool {
	return slices.ContainsFunc(p.Breaks, func(b boundary.Break) bool {
		return b.Example != nil && kind(b.Example[0])
	})
}

func isWordByte(b byte) bool { return b >= '0' && b <= '9' || isLetterByte(b) }

func isLetterByte(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// finding says what happens at the seam before a value. It is a warning where the
// text ends with the value and a blank stands before that: an answer in its place
// cannot begin with the blank.
func (s *seam) finding(c *check, value string, last bool) Finding {
	kinds, example := s.changes(c, "a value")
	value = strings.ToValidUTF8(value, "\ufffd")
	f := Finding{
		Rule: PlaceholderSeam, Severity: Info,
		Message: fmt.Sprintf("%s does not begin at a token boundary: %s the tokens of %q before it; %s", value, kinds, cut(s.moving), example),
		Fix:     "nothing, if the filled text is always encoded whole; where what stands before is cached or encoded alone, end it before these bytes",
	}
	if !last || len(s.blanks) == 0 || trailingPunctuation(s.label) == 0 {
		return f
	}
	f.Severity = Warning
	f.Message = fmt.Sprintf("a blank stands between %q and %s, with which the text ends: %s its tokens; %s", cut(s.label), value, kinds, example)
	f.Fix = fmt.Sprintf("leave the blank out and let the value begin with it: end the text at %q", cut(s.label))
	if p := boundary.ProveSpecial(c.tok, s.label); !breaks(p, func(b byte) bool { return b == ' ' || isWordByte(b) }) {
		f.Fix += ", whose tokens neither a blank nor a letter changes"
	}
	return f
}

// changes says what something that follows may begin with to change tokens, and
// gives an example. Letters come first.
func (s *seam) changes(c *check, something string) (what, with string) {
	var kinds []string
	var example boundary.Break
	for _, b := range s.proof.Breaks {
		switch {
		case b.Example == nil || slices.Contains(kinds, b.Kind):
		case isLetterByte(b.Example[0]):
			kinds = slices.Insert(kinds, 0, b.Kind)
			example = b
		default:
			kinds = append(kinds, b.Kind)
			if example.Example == nil {
				example = b
			}
		}
	}
	if len(kinds) > 3 {
		kinds = append(kinds[:3], "other characters")
	}
	last := len(kinds) - 1
	list := kinds[last]
	if last > 0 {
		list = strings.Join(kinds[:last], ", ") + " or " + list
	}
	var tokens []string
	for _, id := range example.Becomes[example.Kept:] {
		tokens = append(tokens, fmt.Sprintf("%q", c.tok.Vocab().Bytes(id)))
	}
	return fmt.Sprintf("%s that begins with %s changes", something, list),
		fmt.Sprintf("with %q they become %s", example.Example, strings.Join(tokens, " "))
}
