package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// atom is a piece of what a chat template writes, in the order of its source.
type atom struct {
	kind   atomKind
	text   string // what a literal writes; a value's expression
	offset int    // of the source
	end    int
}

type atomKind uint8

const (
	literal atomKind = iota // fixed text
	value                   // an expression
	branch                  // a statement: what stands before it may be other text
)

// scanJinja divides a template into atoms as Hugging Face renders chat
// templates: a newline after a statement and the blanks before one at the start
// of a line are dropped. A tag that is not closed ends the scan there.
func scanJinja(src []byte) (atoms []atom, unclosed int) {
	unclosed = -1
	trim, statement := false, false // what the tag before leaves of the text after it
	for at := 0; at < len(src); {
		open := nextTag(src[at:])
		stop := len(src)
		if open >= 0 {
			stop = at + open
		}
		text := src[at:stop]
		if statement {
			text = bytes.TrimPrefix(bytes.TrimPrefix(text, []byte("\r")), []byte("\n"))
		}
		if trim {
			text = bytes.TrimLeft(text, " \t\r\n")
		}
		if open < 0 {
			// Rendering drops the newline at the end of the source.
			return appendLiteral(atoms, string(bytes.TrimSuffix(text, []byte("\n"))), at, stop), unclosed
		}
		kind := src[stop+1]
		switch body := src[stop+2:]; {
		case bytes.HasPrefix(body, []byte("-")):
			text = bytes.TrimRight(text, " \t\r\n")
		case kind != '{' && !bytes.HasPrefix(body, []byte("+")):
			if line := bytes.TrimRight(text, " \t"); len(line) == 0 && (stop-len(text) == 0 || src[stop-len(text)-1] == '\n') || bytes.HasSuffix(line, []byte("\n")) {
				text = line
			}
		}
		atoms = appendLiteral(atoms, string(text), at, stop)
		n := closeTag(src[stop:])
		if n < 0 {
			return atoms, stop
		}
		at = stop + n
		inner := src[stop+2 : at-2]
		trim, statement = bytes.HasSuffix(inner, []byte("-")), kind != '{'
		switch kind {
		case '{':
			atoms = appendExpression(atoms, inner, stop+2)
		case '%':
			atoms = append(atoms, atom{kind: branch, text: string(bytes.Trim(inner, "-+ \t\r\n")), offset: stop, end: at})
		}
	}
	return atoms, unclosed
}

func appendLiteral(atoms []atom, text string, offset, end int) []atom {
	if text == "" {
		return atoms
	}
	return append(atoms, atom{kind: literal, text: text, offset: offset, end: end})
}

// nextTag is the offset of the first "{{", "{%" or "{#"; -1 if there is none.
func nextTag(src []byte) int {
	for i := 0; i+1 < len(src); i++ {
		if src[i] == '{' && (src[i+1] == '{' || src[i+1] == '%' || src[i+1] == '#') {
			return i
		}
	}
	return -1
}

// closeTag is the length of the tag at the start of src; -1 if it is not closed.
// Strings in it may hold what closes a tag.
func closeTag(src []byte) int {
	closing := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[src[1]]
	quote := byte(0)
	for i := 2; i < len(src); i++ {
		switch {
		case quote != 0 && src[i] == '\\':
			i++
		case quote != 0:
			if src[i] == quote {
				quote = 0
			}
		case src[1] != '#' && (src[i] == '\'' || src[i] == '"'):
			quote = src[i]
		case bytes.HasPrefix(src[i:], []byte(closing)):
			return i + len(closing)
		}
	}
	return -1
}

// appendExpression divides an expression at the "+" and "~" that join strings.
func appendExpression(atoms []atom, expr []byte, offset int) []atom {
	depth, quote, from := 0, byte(0), 0
	emit := func(to int) {
		part := bytes.Trim(expr[from:to], "-+ \t\r\n")
		at := offset + from + max(0, bytes.Index(expr[from:to], part))
		if s, ok := unquote(part); ok {
			atoms = appendLiteral(atoms, s, at, at+len(part))
		} else if len(part) > 0 {
			atoms = append(atoms, atom{kind: value, text: string(part), offset: at, end: at + len(part)})
		}
	}
	for i := 0; i < len(expr); i++ {
		switch b := expr[i]; {
		case quote != 0:
			if b == '\\' {
				i++
			} else if b == quote {
				quote = 0
			}
		case b == '\'' || b == '"':
			quote = b
		case b == '(' || b == '[' || b == '{':
			depth++
		case b == ')' || b == ']' || b == '}':
			depth--
		case (b == '+' || b == '~') && depth == 0:
			emit(i)
			from = i + 1
		}
	}
	emit(len(expr))
	return atoms
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`, `\'`, `'`, `\"`, `"`)

// unquote gives the text of an expression that is one string.
func unquote(expr []byte) (string, bool) {
	if len(expr) < 2 || expr[0] != '\'' && expr[0] != '"' || expr[len(expr)-1] != expr[0] {
		return "", false
	}
	inner := expr[1 : len(expr)-1]
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '\\':
			i++
		case expr[0]:
			return "", false // a string, something, and another string
		}
	}
	return unescape.Replace(string(inner)), true
}

var bosName = regexp.MustCompile(`\bbos_token\b`)

// jinja checks what a chat template writes.
func (c *check) jinja() {
	atoms, unclosed := scanJinja(c.text)
	if unclosed >= 0 {
		c.add(Finding{
			Offset: unclosed, Length: 2, Rule: templateProblem, Severity: Error,
			Message: fmt.Sprintf("the tag that begins with %q is not closed", c.text[unclosed:unclosed+2]),
			Fix:     "close it",
		})
	}
	c.templateBOS(atoms)
	var before []byte // fixed text since the last value or statement
	for i, a := range atoms {
		switch a.kind {
		case literal:
			before = append(before, a.text...)
			continue
		case value:
			if bosName.MatchString(a.text) {
				break
			}
			if m := c.seam(before); m != nil {
				f := m.finding(c, string(cut([]byte(a.text))), i == len(atoms)-1)
				f.Offset, f.Length = a.offset, a.end-a.offset
				c.add(f)
			}
		}
		before = before[:0]
	}
	if unclosed < 0 {
		c.templateEnd(atoms)
	}
}

// templateBOS looks for a BOS at the start of what a template writes, where the
// tokenizer adds one too.
func (c *check) templateBOS(atoms []atom) {
	if c.bos == vocab.None {
		return
	}
	bos := string(c.tok.Vocab().Bytes(c.bos))
	for _, a := range atoms {
		switch {
		case (a.kind == value || a.kind == branch && strings.HasPrefix(a.text, "set ")) && bosName.MatchString(a.text):
		case a.kind == literal && bos != "" && strings.HasPrefix(strings.TrimLeft(a.text, " \r\n"), bos):
		case a.kind == literal && strings.TrimSpace(a.text) != "":
			return // the template begins with something else
		default:
			continue
		}
		c.add(Finding{
			Offset: a.offset, Length: a.end - a.offset, Rule: DoubledBOS, Severity: Warning,
			Message: fmt.Sprintf("the template writes %q, which this tokenizer puts before a text too: a prompt that is rendered to text and then encoded begins with two of them", bos),
			Fix:     "encode rendered prompts without adding special tokens (add_special_tokens=False), or leave BOS to the tokenizer",
		})
		return
	}
}

// templateEnd looks at the end of the last fixed text: where the model's answer
// begins if the template is asked for a generation prompt.
func (c *check) templateEnd(atoms []atom) {
	for i := len(atoms) - 1; i >= 0; i-- {
		switch a := atoms[i]; a.kind {
		case value:
			return
		case literal:
			text := []byte(a.text)
			blanks := text[len(bytes.TrimRight(text, " \t")):]
			if len(blanks) == 0 {
				return
			}
			if r := boundary.AnalyzeSpecial(c.tok, text); len(r.Pending) > 0 {
				c.add(Finding{
					Offset: a.offset, Length: a.end - a.offset, Rule: TrailingWhitespace, Severity: Warning,
					Message: fmt.Sprintf("what the template writes ends with %s, where the answer begins; %s", whitespaceNames(blanks), c.answers(text, r)),
					Fix:     "end the generation prompt before the whitespace",
				})
			}
			return
		}
	}
}
