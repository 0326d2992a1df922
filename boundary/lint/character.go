package lint

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// bom is U+FEFF in UTF-8.
const bom = "\ufeff"

// characters looks for characters that a reader does not see or takes for
// others.
func (c *check) characters() {
	prev := rune(-1)
	for i := 0; i < len(c.text); {
		if c.text[i] < utf8.RuneSelf && (c.text[i] >= ' ' && c.text[i] != 0x7f || isBlank(rune(c.text[i])) || c.text[i] == '\n') {
			prev = rune(c.text[i])
			i++
			continue
		}
		r, size := utf8.DecodeRune(c.text[i:])
		n := size
		switch {
		case r == utf8.RuneError && size == 1:
			n = c.invalidUTF8(i)
		case r == '\ufeff' && i == 0:
			c.byteOrderMark()
		case isInvisible(r):
			n = c.invisible(i, r, prev)
		case isOddSpace(r):
			n = c.oddSpace(i, r, prev)
		case r == '▁' && c.meta:
			c.metaSpace(i)
		case composable(prev, r) != 0:
			c.decomposed(i, prev, r)
		}
		prev, _ = utf8.DecodeLastRune(c.text[i : i+n])
		i += n
	}
}

// isBlank reports whether r is white space inside a line, of the common kind.
func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// isInvisible reports whether r is a character that is not shown: a control
// character or one that joins, separates or directs others.
func isInvisible(r rune) bool {
	switch {
	case r < ' ':
		return r != '\t' && r != '\n' && r != '\r'
	case 0x7f <= r && r < 0xa0, r == 0xad, r == 0x61c, r == 0x180e,
		0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f,
		r == 0xfeff, 0xfff9 <= r && r <= 0xfffb, 0xe0000 <= r && r <= 0xe007f:
		return true
	}
	return false
}

// isOddSpace reports whether r looks like a space or a line's end and is
// neither.
func isOddSpace(r rune) bool {
	switch {
	case r == 0xa0, r == 0x1680, 0x2000 <= r && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

// names of characters that are met often.
var names = map[rune]string{
	0x00: "null", 0x07: "bell", 0x08: "backspace", 0x1b: "escape", 0x7f: "delete",
	0xa0: "no-break space", 0xad: "soft hyphen", 0x200b: "zero width space", 0x200c: "zero width non-joiner",
	0x200d: "zero width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
	0x2009: "thin space", 0x200a: "hair space", 0x2028: "line separator", 0x2029: "paragraph separator",
	0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
	0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x202f: "narrow no-break space",
	0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate",
	0x2068: "first strong isolate", 0x2069: "pop directional isolate", 0x3000: "ideographic space",
	0xfeff: "zero width no-break space",
}

// nameOf gives a character's code point and, if it has one here, its name.
func nameOf(r rune) string {
	code := fmt.Sprintf("U+%04X", r)
	if name := names[r]; name != "" {
		return code + " (" + name + ")"
	}
	return code
}

func (c *check) byteOrderMark() {
	_, _, same := c.differs(0, len(bom), "")
	if same {
		return
	}
	c.add(Finding{
		Length: len(bom), Rule: ByteOrderMark, Severity: Warning,
		Message: fmt.Sprintf("the text begins with a byte order mark, %s of the prompt", counted(len(c.tokens([]byte(bom))), "token")),
		Fix:     "save the file as UTF-8 without a byte order mark", Replacement: replace(""),
	})
}

// invalidUTF8 reports the run of bad bytes at i and returns its length.
func (c *check) invalidUTF8(i int) int {
	n := 0
	for i+n < len(c.text) {
		if r, size := utf8.DecodeRune(c.text[i+n:]); r != utf8.RuneError || size != 1 {
			break
		}
		n++
	}
	if i+n == len(c.text) && n == cutCharacter(c.text) {
		return n // said of the text's end
	}
	c.add(Finding{
		Offset: i, Length: n, Rule: InvalidUTF8, Severity: Error,
		Message: fmt.Sprintf("%s that are not UTF-8 (%#x…), so no character", counted(n, "byte"), c.text[i]),
		Fix:     "convert the text to UTF-8",
	})
	return n
}

// invisible reports the run of characters that are not shown at i and returns
// its length.
func (c *check) invisible(i int, r, prev rune) int {
	n := utf8.RuneLen(r)
	next, _ := utf8.DecodeRune(c.text[i+n:])
	if belongs(r, prev, next) || c.enough(Invisible) {
		return n
	}
	for i+n < len(c.text) {
		r, size := utf8.DecodeRune(c.text[i+n:])
		if !isInvisible(r) {
			break
		}
		n += size
	}
	with, without, same := c.differs(i, i+n, "")
	if same {
		return n
	}
	what := nameOf(r)
	if more := utf8.RuneCount(c.text[i:i+n]) - 1; more > 0 {
		what += " and " + counted(more, "more character")
	}
	c.add(Finding{
		Offset: i, Length: n, Rule: Invisible, Severity: Warning,
		Message: fmt.Sprintf("%s, which nobody sees: %s", what, versus("the text around it", with, without, "without it")),
		Fix:     "delete it", Replacement: replace(""),
	})
	return n
}

// belongs reports whether an invisible character is part of how its neighbours
// are written: in emoji sequences and in scripts that join letters or run from
// right to left.
func belongs(r, prev, next rune) bool {
	switch {
	case r == 0x200d:
		return isEmoji(prev) && isEmoji(next) || joins(prev)
	case r == 0x200c:
		return joins(prev)
	case r == 0x200e || r == 0x200f || r == 0x61c:
		return rightToLeft(prev) || rightToLeft(next)
	case 0xe0020 <= r && r <= 0xe007f:
		return prev == 0x1f3f4 || 0xe0020 <= prev && prev <= 0xe007f // flags
	}
	return false
}

func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r == 0xfe0f
}

// joins reports whether r is of a script in which joiners change how letters
// look.
func joins(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gujarati,
		unicode.Gurmukhi, unicode.Kannada, unicode.Malayalam, unicode.Oriya, unicode.Sinhala, unicode.Tamil, unicode.Telugu, unicode.Khmer, unicode.Myanmar)
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
}

// oddSpace reports the run of equal odd spaces at i and returns its length.
func (c *check) oddSpace(i int, r, prev rune) int {
	size := utf8.RuneLen(r)
	n := size
	for bytes.HasPrefix(c.text[i+n:], c.text[i:i+size]) {
		n += size
	}
	next, _ := utf8.DecodeRune(c.text[i+n:])
	if r == 0x3000 && (wide(prev) || wide(next)) || c.enough(OddSpace) {
		return n
	}
	plain := strings.Repeat(" ", n/size)
	if r == 0x2028 || r == 0x2029 {
		plain = strings.Repeat("\n", n/size)
	}
	with, without, same := c.differs(i, i+n, plain)
	if same {
		return n
	}
	what := nameOf(r)
	if n > size {
		what = counted(n/size, "time") + " " + what
	}
	f := Finding{
		Offset: i, Length: n, Rule: OddSpace, Severity: Warning,
		Message: fmt.Sprintf("%s looks like plain white space: %s", what, versus("the text around it", with, without, "with plain white space")),
		Fix:     "write a plain space", Replacement: replace(plain),
	}
	if (r == 0xa0 || r == 0x202f) && typographic(prev, next) {
		f.Severity = Info
	}
	c.add(f)
	return n
}

// typographic reports whether careful typography puts a no-break space between
// two characters: in numbers, and before French punctuation.
func typographic(prev, next rune) bool {
	return unicode.IsDigit(prev) || prev == '«' || strings.ContainsRune("»:;!?%€°", next)
}

// wide reports whether r is of a script whose space is U+3000.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

func (c *check) metaSpace(i int) {
	c.add(Finding{
		Offset: i, Length: len("▁"), Rule: MetaSpace, Severity: Warning,
		Message: "U+2581 is how this tokenizer writes a space: the model sees a space, and decoding gives one",
		Fix:     "write a space, or an underscore", Replacement: replace(" "),
	})
}

// compositions are letters with an accent that have a character of their own:
// for each accent the plain letters and, in the same order, the composed ones.
var compositions = map[rune][2]string{
	0x300: {"AEIOUaeiou", "ÀÈÌÒÙàèìòù"},
	0x301: {"AEIOUYaeiouyCcNnSsZz", "ÁÉÍÓÚÝáéíóúýĆćŃńŚśŹź"},
	0x302: {"AEIOUaeiou", "ÂÊÎÔÛâêîôû"},
	0x303: {"ANOano", "ÃÑÕãñõ"},
	0x308: {"AEIOUaeiouy", "ÄËÏÖÜäëïöüÿ"},
	0x30a: {"AUau", "ÅŮåů"},
	0x30c: {"CDENRSTZcdenrstz", "ČĎĚŇŘŠŤŽčďěňřšťž"},
	0x327: {"CSTcst", "ÇŞŢçşţ"},
}

// composable gives the character that a letter and an accent make; 0 if this
// package knows none.
func composable(letter, accent rune) rune {
	pair, ok := compositions[accent]
	if !ok || letter > unicode.MaxASCII {
		return 0
	}
	i := strings.IndexRune(pair[0], letter)
	if i < 0 {
		return 0
	}
	return []rune(pair[1])[i]
}

func (c *check) decomposed(i int, letter, accent rune) {
	if c.enough(Decomposed) {
		return
	}
	one := string(composable(letter, accent))
	from, to := i-utf8.RuneLen(letter), i+utf8.RuneLen(accent)
	with, without, same := c.differs(from, to, one)
	if same {
		return
	}
	c.add(Finding{
		Offset: from, Length: to - from, Rule: Decomposed, Severity: Warning,
		Message: fmt.Sprintf("%q is written as a letter and an accent (NFD), which this tokenizer does not compose: %s", one, versus("the text around it", with, without, "if it is composed")),
		Fix:     "normalize the text to NFC", Replacement: replace(one),
	})
}

// lineEndings looks for ends of lines other than "\n".
func (c *check) lineEndings() {
	crlf := bytes.Count(c.text, []byte("\r\n"))
	lf := bytes.Count(c.text, []byte("\n")) - crlf
	cr := bytes.Count(c.text, []byte("\r")) - crlf
	if crlf+cr == 0 {
		return
	}
	at := bytes.IndexByte(c.text, '\r')
	length := 1
	if crlf > 0 && bytes.HasPrefix(c.text[at:], []byte("\r\n")) {
		length = 2
	}
	sample := c.text[:min(len(c.text), 64<<10)]
	plain := bytes.ReplaceAll(bytes.ReplaceAll(sample, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	own, other := c.tokens(sample), c.tokens(plain)
	if slices.Equal(own, other) {
		return
	}
	f := Finding{
		Offset: at, Length: length, Rule: LineEndings, Severity: Warning,
		Fix: "end all lines with a newline alone (LF)", Replacement: replace("\n"),
	}
	kinds := kindsOfEnds(crlf, lf, cr)
	what := kinds[0]
	if len(kinds) > 1 {
		what = "line endings are mixed (" + strings.Join(kinds, ", ") + ")"
	}
	f.Message = what + ": " + versus("the text", len(own), len(other), "with LF alone")
	c.add(f)
}

func kindsOfEnds(crlf, lf, cr int) []string {
	var kinds []string
	for _, k := range []struct {
		n    int
		name string
	}{{crlf, "CRLF"}, {lf, "LF"}, {cr, "CR"}} {
		if k.n > 0 {
			verb := "end"
			if k.n == 1 {
				verb = "ends"
			}
			kinds = append(kinds, fmt.Sprintf("%s %s with %s", counted(k.n, "line"), verb, k.name))
		}
	}
	return kinds
}

// lost looks for the first place where the tokens do not spell the text.
func (c *check) lost() {
	if !utf8.Valid(c.text) {
		return // said already
	}
	loss := c.tok.Loss(c.text)
	if loss == nil {
		return
	}
	_, n := utf8.DecodeRune(c.text[loss.Offset:])
	f := Finding{Offset: loss.Offset, Length: n, Rule: RewrittenText, Severity: Info, Message: loss.Reason,
		Fix: "nothing, if the model is to see the rewritten text; offsets and healing are those of that text"}
	ids := c.tok.Encode(nil, c.text[loss.Offset:loss.Offset+n])
	unknown := c.tok.Vocab().Specials().Unknown
	if len(ids) == 0 || unknown != vocab.None && slices.Contains(ids, unknown) {
		f.Rule, f.Severity = WithoutAToken, Error
		f.Message += ": the model does not see it"
		f.Fix = "write it in characters that the vocabulary has"
	}
	c.add(f)
}
