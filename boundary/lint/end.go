package lint

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
)

// end checks the end of a prompt, which stands at an offset of the linted text.
func (c *check) end(prompt []byte, at int) {
	if len(prompt) == 0 {
		return
	}
	if n := cutCharacter(prompt); n > 0 {
		c.add(Finding{
			Offset: at + len(prompt) - n, Length: n, Rule: WeakBoundary, Severity: Error,
			Message: fmt.Sprintf("the prompt ends inside a character, after %s of it", counted(n, "byte")),
			Fix:     "end the prompt after a whole character, or heal it",
		})
		return
	}
	r := boundary.AnalyzeSpecial(c.tok, prompt)
	answer := c.prefillStart(prompt)
	c.mixedIndentation(prompt, at)
	if len(r.Pending) == 0 || answer == len(prompt) {
		return
	}
	word := len(bytes.TrimRight(prompt, " \t\r\n\v\f"))
	if word < len(prompt) {
		c.trailingWhitespace(r, prompt, prompt[word:], at, answer >= 0 && answer < word)
	} else {
		c.weakBoundary(r, prompt, at, answer >= 0)
	}
}

// cutCharacter is how many bytes at the end of text begin a character that is
// not whole.
func cutCharacter(text []byte) int {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

func (c *check) trailingWhitespace(r *boundary.Report, prompt, blanks []byte, at int, prefilled bool) {
	f := Finding{
		Offset: at + len(prompt) - len(blanks), Length: len(blanks), Rule: TrailingWhitespace, Severity: Warning,
		Message:     fmt.Sprintf("the prompt ends with %s; %s", whitespaceNames(blanks), c.answers(prompt, r)),
		Fix:         "end the prompt before the whitespace and let the answer begin with it",
		Replacement: replace(""),
	}
	if moving := prompt[max(len(prompt)-len(blanks), r.StableBytes):]; len(bytes.Trim(moving, "\r\n")) == 0 {
		// A line's end is where most texts of the training went on; that more
		// newlines may join it is seldom a fault.
		f.Severity = Info
		f.Fix = "nothing, if the answer begins a new line; else end the prompt before the newline"
		f.Replacement = nil
	}
	if prefilled {
		f.Rule = Prefill
		f.Message = "the prefilled answer ends with " + strings.TrimPrefix(f.Message, "the prompt ends with ")
		f.Fix = "end the prefill before the whitespace; some services refuse one that ends with it"
	}
	c.add(f)
}

// answers says what answers change the tokens at a prompt's end.
func (c *check) answers(prompt []byte, r *boundary.Report) string {
	m := c.seam(prompt)
	if m == nil {
		return r.Reason
	}
	kinds, example := m.changes(c, "an answer")
	return kinds + " its tokens: " + example
}

// whitespaceNames lists the runs of whitespace: "1 newline, 4 spaces".
func whitespaceNames(blanks []byte) string {
	names := map[byte]string{' ': "space", '\t': "tab", '\n': "newline", '\r': "carriage return", '\v': "vertical tab", '\f': "form feed"}
	var parts []string
	for len(blanks) > 0 {
		n := 1
		for n < len(blanks) && blanks[n] == blanks[0] {
			n++
		}
		if len(parts) == 4 {
			return strings.Join(parts, ", ") + fmt.Sprintf(" and %d more bytes", len(blanks))
		}
		parts = append(parts, counted(n, names[blanks[0]]))
		blanks = blanks[n:]
	}
	return strings.Join(parts, ", ")
}

// weakBoundary is for a prompt that ends in a character other than whitespace.
func (c *check) weakBoundary(r *boundary.Report, prompt []byte, at int, prefilled bool) {
	last, _ := utf8.DecodeLastRune(prompt)
	f := Finding{Rule: WeakBoundary, Severity: Info, Fix: "end the prompt on a newline, a closing bracket or a control token; or heal it"}
	word := len(bytes.TrimRightFunc(prompt, isWord))
	switch {
	case word < len(prompt):
		n := c.tokensFrom(prompt, word)
		f.Message = fmt.Sprintf("the prompt ends in the word %q, %s here; %s", cut(prompt[word:]), counted(n, "token"), r.Reason)
		if n > 1 && unicode.In(last, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Nd) {
			// The vocabulary has no token for the word, as for one that is not
			// whole.
			f.Severity = Warning
			f.Fix = "finish the word, or end the prompt before it; or heal the prompt"
		}
	default:
		word = len(prompt) - trailingPunctuation(prompt)
		f.Message = fmt.Sprintf("the prompt ends with %q; %s", cut(prompt[word:]), r.Reason)
		if endsInScheme(prompt) {
			f.Severity = Warning
			f.Fix = `finish the URL at least up to "://" and a letter, or end the prompt before it; or heal the prompt`
		}
	}
	if prefilled {
		f.Rule = Prefill
		f.Message = "the prefilled answer" + strings.TrimPrefix(f.Message, "the prompt")
	}
	f.Offset, f.Length = at+word, len(prompt)-word
	c.add(f)
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// trailingPunctuation is the length in bytes of the characters at the end of
// text, at least one, that are neither words nor blanks.
func trailingPunctuation(text []byte) int {
	rest := bytes.TrimRightFunc(text, func(r rune) bool { return !isWord(r) && !unicode.IsSpace(r) })
	return len(text) - len(rest)
}

// endsInScheme reports whether text ends in "https:" or "https:/".
func endsInScheme(text []byte) bool {
	rest, ok := bytes.CutSuffix(bytes.TrimSuffix(text, []byte("/")), []byte(":"))
	if !ok {
		return false
	}
	switch string(bytes.ToLower(rest[len(bytes.TrimRightFunc(rest, isWord)):])) {
	case "http", "https", "ftp", "file", "ws", "wss", "s3", "git", "ssh":
		return true
	}
	return false
}

// tokensFrom is the number of tokens that text[from:] takes part in.
func (c *check) tokensFrom(text []byte, from int) int {
	// A word boundary lies well before.
	lo := max(0, from-windowBytes)
	_, ends := c.tok.EncodeEnds(nil, nil, text[lo:], true)
	n := 0
	for i := len(ends) - 1; i >= 0 && ends[i] > from-lo; i-- {
		n++
	}
	return n
}

// roles are what chat templates write after a turn's control token to name who
// answers.
var roles = []string{"assistant", "model", "bot", "ai", "gpt"}

// prefillStart is where the answer begins that a prompt is prefilled with: after
// the last control token and the name of its turn. It is -1 if no turn of the
// assistant is open.
func (c *check) prefillStart(prompt []byte) int {
	ids, ends := c.tok.EncodeEnds(nil, nil, prompt, true)
	at := -1
	for i := len(ids) - 1; i >= 0; i-- {
		if !c.tok.Vocab().IsText(ids[i]) {
			at = ends[i]
			break
		}
	}
	if at < 0 {
		return -1
	}
	rest := prompt[at:]
	name, after, ok := bytes.Cut(rest, []byte("\n"))
	for _, role := range roles {
		switch {
		case ok && string(bytes.TrimSpace(name)) == role:
			return len(prompt) - len(bytes.TrimLeft(after, "\r\n"))
		case bytes.HasPrefix(rest, []byte("\n")) && c.namesRole(prompt[:at], role):
			return len(prompt) - len(bytes.TrimLeft(rest, "\r\n"))
		}
	}
	return -1
}

// namesRole reports whether a text ends with the role between two control
// tokens.
func (c *check) namesRole(text []byte, role string) bool {
	i := bytes.LastIndex(text, []byte(role))
	if i < 0 {
		return false
	}
	_, ok := c.tok.Vocab().LookupSpecial(text[i+len(role):])
	return ok
}

// mixedIndentation looks at the indentation of the last line.
func (c *check) mixedIndentation(prompt []byte, at int) {
	start := bytes.LastIndexByte(prompt, '\n') + 1
	line := prompt[start:]
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	if len(indent) == 0 {
		return
	}
	tabs, spaces := bytes.IndexByte(indent, '\t') >= 0, bytes.IndexByte(indent, ' ') >= 0
	f := Finding{
		Offset: at + start, Length: len(indent), Rule: MixedIndentation, Severity: Warning,
		Fix: "indent all lines alike: the answer goes on as its line begins",
	}
	own := counted(len(c.tokens(indent)), "token")
	switch before := indentation(prompt[:start]); {
	case tabs && spaces:
		f.Message = fmt.Sprintf("the last line is indented by tabs and spaces together, %s here", own)
	case tabs && before == ' ':
		f.Message = fmt.Sprintf("the last line is indented by tabs, the lines before it by spaces; tabs are other tokens (%s here)", own)
	case spaces && before == '\t':
		f.Message = fmt.Sprintf("the last line is indented by spaces, the lines before it by tabs; spaces are other tokens (%s here)", own)
	default:
		return
	}
	c.add(f)
}

// indentation is what all indented lines of a text begin with, tab or space; 0 if
// there are both or none. Only its end is looked at.
func indentation(text []byte) byte {
	const most = 64 << 10
	text = text[max(0, len(text)-most):]
	var seen byte
	for line := range bytes.Lines(text) {
		switch {
		case line[0] != ' ' && line[0] != '\t' || len(bytes.TrimSpace(line)) == 0:
		case seen == 0:
			seen = line[0]
		case seen != line[0]:
			return 0
		}
	}
	return seen
}
