package remote

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// maxLiterals is how many tokens a grammar names. Where the model's own choice
// is none of them, llama.cpp tries each on every token of the vocabulary: a
// quarter of a millisecond each with 49,152 tokens. Beyond that, the pending
// bytes are stated as characters, and only if these have let a token pass that
// the replay does not are up to maxExact tokens named.
const (
	maxLiterals = 256
	maxExact    = 2048
)

// gbnfTail allows what may follow a replay. Characters alone would keep out
// control tokens, tokens alone those that hold no whole character. What is left
// out are bytes that are no UTF-8 and tokens that begin with a zero byte:
// llama.cpp lets no grammar have them.
func gbnfTail(tokens bool) string {
	if !tokens {
		return "tail ::= [^\\x00]*\n"
	}
	return "tail ::= ([^\\x00] | !<[0]> | <[0]>)*\n"
}

// gbnfWays states a replay by its tokens, exactly. It is false where a grammar
// cannot: llama.cpp rejects a token by ID if its bytes complete no character.
func gbnfWays(r *replay, most int) (string, bool) {
	if r.free || len(r.ways) == 0 || r.size(most) > most {
		return "", false
	}
	var b strings.Builder
	b.WriteString("root ::= (")
	for i := range r.ways {
		w := &r.ways[i]
		if i > 0 {
			b.WriteString(" | ")
		}
		var d utf8State
		for _, id := range w.Path {
			if !d.take(r.v.Bytes(id)) {
				return "", false
			}
			fmt.Fprintf(&b, "<[%d]> ", id)
		}
		for k, id := range w.Last {
			if last := d; !last.take(r.v.Bytes(id)) {
				return "", false
			}
			switch {
			case k == 0 && len(w.Last) > 1:
				b.WriteByte('(')
			case k > 0:
				b.WriteString(" | ")
			}
			fmt.Fprintf(&b, "<[%d]>", id)
		}
		if len(w.Last) > 1 {
			b.WriteByte(')')
		}
	}
	b.WriteString(") tail\n" + gbnfTail(true))
	return b.String(), true
}

// gbnfPath states that the tokens of path come, each of whole characters.
func gbnfPath(v *vocab.Vocab, path []vocab.ID) (string, bool) {
	var b strings.Builder
	var d utf8State
	b.WriteString("root ::=")
	for _, id := range path {
		if !d.take(v.Bytes(id)) || len(d.begun) > 0 {
			return "", false
		}
		fmt.Fprintf(&b, " <[%d]>", id)
	}
	b.WriteByte('\n')
	return b.String(), true
}

// utf8State is how llama.cpp's grammars see the bytes of tokens, one after the
// other.
type utf8State struct{ begun []byte } // an unfinished character

// take reports whether a grammar can name a token with these bytes: with what
// came before they complete a character at least, and are no other than UTF-8.
func (d *utf8State) take(b []byte) bool {
	text := append(append([]byte(nil), d.begun...), b...)
	whole := 0
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		if c == utf8.RuneError && n <= 1 {
			if utf8.FullRune(text) {
				return false
			}
			break
		}
		if c == 0 && whole == 0 {
			return false
		}
		text = text[n:]
		whole++
	}
	d.begun = text
	return whole > 0
}

// gbnfBytes states a replay by its bytes, in any tokens. It is false if they
// begin inside a character, or are not UTF-8: a grammar has characters only.
func gbnfBytes(pending []byte, tokens bool) (string, bool) {
	lit, ok := gbnfLiteral(pending)
	return "root ::= " + lit + " tail\n" + gbnfTail(tokens), ok
}

// gbnfLiteral writes bytes as characters. Where they end inside one, the last
// stands for all that begin so.
func gbnfLiteral(text []byte) (string, bool) {
	var b strings.Builder
	b.WriteByte('"')
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		switch {
		case c == utf8.RuneError && n <= 1:
			if utf8.FullRune(text) {
				return "", false
			}
			lo, hi := runesFrom(text)
			fmt.Fprintf(&b, `" [\U%08X-\U%08X]`, lo, hi)
			return b.String(), true
		case c == 0:
			return "", false // none of its tokens begins with a zero byte
		case c == '"' || c == '\\' || c < ' ' || c == 0x7f || c > '~':
			fmt.Fprintf(&b, `\U%08X`, c)
		default:
			b.WriteRune(c)
		}
		text = text[n:]
	}
	b.WriteByte('"')
	return b.String(), true
}

// runesFrom returns the first and the last character whose UTF-8 begins with
// begun, which is the beginning of one.
func runesFrom(begun []byte) (lo, hi rune) {
	n, v := 2, rune(begun[0]&0x1f)
	switch {
	case begun[0] >= 0xf0:
		n, v = 4, rune(begun[0]&0x07)
	case begun[0] >= 0xe0:
		n, v = 3, rune(begun[0]&0x0f)
	}
	for _, c := range begun[1:] {
		v = v<<6 | rune(c&0x3f)
	}
	shift := 6 * (n - len(begun))
	lo, hi = v<<shift, (v+1)<<shift-1
	least := [...]rune{2: 0x80, 3: 0x800, 4: 0x10000}[n]
	return max(lo, least), min(hi, utf8.MaxRune)
}

// gbnfAfter puts text before a user's grammar: what its root stands for comes
// after it.
func gbnfAfter(pending []byte, source string) (string, error) {
	lit, ok := gbnfLiteral(pending)
	if !ok || !utf8.Valid(pending) {
		return "", &backend.UnsupportedError{Param: "grammar", Text: "the prompt ends inside a character; a grammar of this server cannot go on from there; end the prompt at a character, or heal with none"}
	}
	names := map[string]bool{}
	words := gbnfWords(source)
	for _, w := range words {
		if w.name {
			names[w.text] = true
		}
	}
	if !names["root"] {
		return "", &backend.UnsupportedError{Param: "grammar", Text: "the grammar has no rule named root"}
	}
	other := "root-after-prompt"
	for i := 2; names[other]; i++ {
		other = "root-after-prompt-" + strconv.Itoa(i)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "root ::= %s %s\n", lit, other)
	for _, w := range words {
		if w.name && w.text == "root" {
			w.text = other
		}
		b.WriteString(w.text)
	}
	return b.String(), nil
}

// gbnfWord is a piece of a grammar's source: a name of a rule or anything else.
type gbnfWord struct {
	text string
	name bool
}

// gbnfWords cuts a grammar into names and the text between them. Names inside
// literals, classes, tokens and comments are none.
func gbnfWords(s string) (words []gbnfWord) {
	other := 0 // start of what is no name
	for i := 0; i < len(s); {
		n := gbnfNameLen(s[i:])
		if n == 0 {
			i += gbnfSkip(s[i:])
			continue
		}
		if other < i {
			words = append(words, gbnfWord{text: s[other:i]})
		}
		words = append(words, gbnfWord{text: s[i : i+n], name: true})
		i += n
		other = i
	}
	if other < len(s) {
		words = append(words, gbnfWord{text: s[other:]})
	}
	return words
}

func gbnfNameLen(s string) int {
	n := 0
	for n < len(s) && (s[n] == '-' || s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
		n++
	}
	return n
}

// gbnfSkip returns the length of the literal, class, token or comment that s
// begins with, 1 for anything else.
func gbnfSkip(s string) int {
	var end byte
	switch s[0] {
	case '"':
		end = '"'
	case '[':
		end = ']'
	case '<':
		end = '>'
	case '#':
		end = '\n'
	default:
		return 1
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == end:
			return i + 1
		case s[i] == '\\' && (end == '"' || end == ']'):
			i++
		}
	}
	return len(s)
}
