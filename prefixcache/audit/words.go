package audit

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// count puts a number and its noun together.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// amount writes money to six digits, without an exponent.
func amount(cost float64, currency string) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(cost, 'g', 6, 64), 64)
	return strings.TrimRight(strconv.FormatFloat(rounded, 'f', -1, 64)+" "+currency, " ")
}

// clipBytes is how much of a text a sentence quotes.
const clipBytes = 40

// clip is the beginning of a text, up to the end of a character.
func clip(b []byte) []byte { return clipAt(b, clipBytes) }

func clipAt(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// show lists the first n tokens by their texts.
func (p *pair) show(ids []vocab.ID, n int) string {
	var s strings.Builder
	s.WriteByte('[')
	for i, id := range ids {
		if i == n {
			s.WriteString(" …")
			break
		}
		if i > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(p.quoted(id))
	}
	s.WriteByte(']')
	return s.String()
}

func (p *pair) quoted(id vocab.ID) string {
	b := p.t.Vocab().Bytes(id)
	if p.t.Vocab().Kind(id) == vocab.Control {
		return string(b)
	}
	return fmt.Sprintf("%q", b)
}

// tokens lists tokens for a report.
func (p *pair) tokens(ids []vocab.ID) []Token {
	list := make([]Token, 0, len(ids))
	for _, id := range ids {
		b := p.t.Vocab().Bytes(id)
		text := string(b)
		if !utf8.Valid(b) {
			text = strings.Trim(fmt.Sprintf("%q", b), `"`)
		}
		list = append(list, Token{ID: id, Text: text})
	}
	return list
}
