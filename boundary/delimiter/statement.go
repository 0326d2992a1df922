package delimiter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
)

// A class is a kind of bytes, in words.
type class struct {
	one string
	in  func(b byte) bool
}

// classes are the kinds that the breaks of package boundary have.
var classes = []class{
	{"a newline", func(b byte) bool { return b == '\n' || b == '\r' }},
	{"a space", func(b byte) bool { return b == ' ' }},
	{"a tab", func(b byte) bool { return b == '\t' || b == '\v' || b == '\f' }},
	{"an apostrophe", func(b byte) bool { return b == '\'' }},
	{"a letter", func(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }},
	{"a digit", func(b byte) bool { return '0' <= b && b <= '9' }},
	{"a punctuation mark or sign", func(b byte) bool { return '!' <= b && b <= '~' }},
	{"a control character", func(b byte) bool { return b < ' ' || b == 0x7f }},
	{beyond, func(b byte) bool { return b >= 0xc2 && b <= 0xf4 }},
	{"a byte that begins no character", func(b byte) bool { return b >= 0x80 }},
}

const (
	beyond  = "a character beyond ASCII"
	partial = "part of a character"
	atStart = "the start of the text"
)

func classOf(b byte) string {
	for _, c := range classes {
		if c.in(b) {
			return c.one
		}
	}
	return partial
}

// endKinds are the kinds of characters that texts end with.
var endKinds = []string{
	"a letter", "a digit", "a punctuation mark or sign", "an apostrophe", "a space", "a tab", "a newline",
	"a letter beyond ASCII", "a blank beyond ASCII", "a sign beyond ASCII", "a control character", partial,
}

// kindOfEnd says in words what kind of character a text ends with.
func kindOfEnd(x string) string {
	r, n := utf8.DecodeLastRuneInString(x)
	switch {
	case r == utf8.RuneError && n <= 1:
		return partial
	case n == 1:
		return classOf(x[len(x)-1])
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return "a letter beyond ASCII"
	case unicode.IsSpace(r):
		return "a blank beyond ASCII"
	}
	return "a sign beyond ASCII"
}

// kindsIn lists the kinds of bytes in a set, and those of which none is in it.
// A kind of which only some are names them. Bytes that begin no character and
// control characters are not told of unless they are all there is.
func kindsIn(set *boundary.ByteSet, weights *[256]float64) (in, out []string) {
	for _, c := range classes {
		var have boundary.ByteSet
		n, all := 0, 0
		for b := range 256 {
			if classOf(byte(b)) != c.one || weights[b] == 0 && c.one != beyond {
				continue
			}
			all++
			if set.Has(byte(b)) {
				have.Set(byte(b))
				n++
			}
		}
		switch {
		case all == 0:
		case n == 0:
			out = append(out, c.one)
		case n == all || c.one == beyond:
			in = append(in, c.one)
		default:
			in = append(in, fmt.Sprintf("%s (%s)", c.one, have.String()))
		}
	}
	return in, out
}

// or joins alternatives.
func or(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

func behind(contexts []string) string {
	if slices.Equal(contexts, defaultContexts) {
		return "behind a word, a digit, a punctuation mark, a blank and a newline"
	}
	return fmt.Sprintf("behind each of %d texts", len(contexts))
}

func afterStatement(s *Side, w *[256]float64) string {
	if s.Always {
		return "before any text"
	}
	in, out := kindsIn(&s.Bytes, w)
	switch {
	case len(in) == 0:
		return "unless the next text begins with a byte that begins no character or with a control character"
	case len(out) > 0 && len(out) < len(in):
		return "only if the next text begins with " + or(out)
	case len(out) == 0:
		return "only if the next text begins with none of " + s.Bytes.String()
	}
	return "unless the next text begins with " + or(in)
}

// endsIn lists the kinds of ends that change a separator, and those that do not.
// Control characters and parts of characters are told of only if nothing else
// is.
func endsIn(s *Side) (in, out []string) {
	for _, k := range endKinds {
		if k == partial || k == "a control character" {
			continue
		}
		if slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Kind == k }) {
			in = append(in, k)
		} else {
			out = append(out, k)
		}
	}
	return in, out
}

func beforeStatement(s *Side) string {
	if s.Always {
		return "after any text"
	}
	in, out := endsIn(s)
	start := ""
	if s.Start {
		start = "inside a text, "
	}
	switch {
	case len(in) == 0 && s.Bytes != boundary.ByteSet{}:
		return start + "unless the text before ends with part of a character or a control character"
	case len(in) == 0:
		return "inside a text, after anything"
	case len(out) > 0 && len(out) < len(in):
		return start + "only if the text before ends with " + or(out)
	}
	return start + "unless the text before ends with " + or(in)
}

func summary(v *Verdict) string {
	var b strings.Builder
	b.WriteString("keeps its tokens " + v.After.Statement + "; has the same ones " + v.Before.Statement)
	if v.Before.Proof == Searched && v.Before.Always {
		fmt.Fprintf(&b, " (%d tried)", v.Before.Tried)
	}
	switch v.Kind {
	case Control:
		b.WriteString("; one control token, which a user's text never becomes while it is encoded as plain text")
	case Added:
		b.WriteString("; one added token, which a user's text becomes too if it has these characters")
	}
	if v.Kind != Text && protocol(v.Text) {
		b.WriteString("; templates and engines divide turns or end answers by such tokens: it is none for the parts of a prompt")
	}
	if v.Trim != nil {
		if v.Trim.Text == "" {
			b.WriteString("; nothing is left of it where a template strips the message")
		} else if !v.Trim.After.Always && v.Trim.After.Bytes != v.After.Bytes {
			fmt.Fprintf(&b, "; where a template strips the message, %q is left, which keeps its tokens %s", v.Trim.Text, v.Trim.After.Statement)
		}
	}
	return b.String()
}
