package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Severity says how much a finding matters.
type Severity string

// Severities, the gravest first.
const (
	Error   Severity = "error"   // the model cannot be given this text
	Warning Severity = "warning" // the model sees something else than its author means
	Info    Severity = "info"    // true of many good prompts; worth knowing where tokens are cached or continued
)

// Rule is the name of a rule.
type Rule string

// The rules.
const (
	// The three rules about a prompt's end.
	TrailingWhitespace Rule = "trailing-whitespace" // a prompt does not end with whitespace
	WeakBoundary       Rule = "weak-boundary"       // a prompt ends on a strong token boundary
	Prefill            Rule = "prefill"             // a prefilled answer ends on a structural token
	// MixedIndentation: the line that the model goes on with is indented by
	// tabs and spaces, or by other ones than the lines before it.
	MixedIndentation Rule = "mixed-indentation"
	// PlaceholderSeam: the tokens before a placeholder move with its value.
	PlaceholderSeam Rule = "placeholder-seam"

	BrokenSpecial  Rule = "broken-special"  // a control token with a typo, a gap, or cut off
	UnknownSpecial Rule = "unknown-special" // a control token of another vocabulary
	SpecialAsText  Rule = "special-as-text" // a control token that plain encoding leaves as text
	DoubledBOS     Rule = "doubled-bos"     // text and tokenizer both begin with BOS

	InvalidUTF8     Rule = "invalid-utf8"
	ByteOrderMark   Rule = "byte-order-mark"
	Invisible       Rule = "invisible-character" // zero-width, bidirectional and control characters
	OddSpace        Rule = "odd-space"           // a space that is not U+0020
	LineEndings     Rule = "line-endings"        // CRLF, CR, or several kinds
	Decomposed      Rule = "decomposed"          // a letter and its accent as two characters
	MetaSpace       Rule = "meta-space"          // U+2581, which SentencePiece writes for a space
	RewrittenText   Rule = "rewritten"           // text that the normalizer changes
	WithoutAToken   Rule = "no-token"            // text that the vocabulary has no token for
	templateProblem Rule = "template"            // a chat template that cannot be read
)

// Finding is one place of a text that a rule objects to.
type Finding struct {
	Offset   int      `json:"offset"` // bytes
	Length   int      `json:"length"` // bytes; may be 0
	Rule     Rule     `json:"rule"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what is there, and what this tokenizer makes of it
	Fix      string   `json:"fix"`     // what to do
	// Replacement, if there is one, may be put in place of the Length bytes.
	Replacement *string `json:"replacement,omitempty"`
}

// Kind says what a text is.
type Kind string

// Kinds of texts.
const (
	Prompt   Kind = "prompt"   // a prompt as the model gets it
	Template Kind = "template" // a prompt with placeholders such as {name}, {{name}}, <NAME> or %s
	Markdown Kind = "markdown" // the same, but code in it has no placeholders
	Jinja    Kind = "jinja"    // a chat template
)

// MaxPerRule is how many findings of one rule a text can have.
const MaxPerRule = 20

// Linter checks texts for one tokenizer. It may be shared by goroutines.
type Linter struct {
	tok      *tokenizer.Tokenizer
	specials specials
	bos      vocab.ID // put before a text by the tokenizer's template; vocab.None if none is
	meta     bool     // U+2581 in a text becomes a space
}

// New makes a linter.
func New(t *tokenizer.Tokenizer) *Linter {
	l := &Linter{tok: t, specials: newSpecials(t.Vocab()), bos: vocab.None}
	before, _ := t.Template()
	if sp := t.Vocab().Specials(); sp.AddBOS || slices.Contains(before, sp.BOS) {
		l.bos = sp.BOS
	}
	probe := []byte("x\u2581y")
	l.meta = bytes.Equal(t.Decode(nil, t.Encode(nil, probe)), []byte("x y"))
	return l
}

// Lint checks a text. The findings are in the order of their offsets.
func (l *Linter) Lint(text []byte, kind Kind) []Finding {
	c := &check{Linter: l, text: text, places: map[Rule]*places{}}
	c.characters()
	c.lineEndings()
	c.lost()
	c.controlTokens(kind)
	if kind == Jinja {
		c.jinja()
	} else {
		c.doubledBOS()
		if kind == Prompt || !c.placeholders(kind) {
			c.end(text, 0)
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Compare(a.Offset, b.Offset) })
	return c.findings
}

// check is one run over a text.
type check struct {
	*Linter
	text     []byte
	findings []Finding
	places   map[Rule]*places
}

// places counts what a rule has found in a text.
type places struct {
	tried, found int
	last         int // index of the last finding that is listed
}

func (c *check) at(r Rule) *places {
	if c.places[r] == nil {
		c.places[r] = &places{}
	}
	return c.places[r]
}

// add adds a finding unless its rule has enough.
func (c *check) add(f Finding) {
	p := c.at(f.Rule)
	p.found++
	switch {
	case p.found <= MaxPerRule:
		p.last = len(c.findings)
		c.findings = append(c.findings, f)
	case p.found == MaxPerRule+1:
		c.findings[p.last].Message += "; further such places are not listed"
	}
}

// maxTrials is how many places of a text one rule asks the tokenizer about.
const maxTrials = 2000

// enough reports whether a rule has found or tried enough places; it counts a
// trial.
func (c *check) enough(r Rule) bool {
	p := c.at(r)
	p.tried++
	return p.found > MaxPerRule || p.tried > maxTrials
}

// replace makes a replacement.
func replace(s string) *string { return &s }

// tokens encodes text, control tokens included.
func (c *check) tokens(text []byte) []vocab.ID { return c.tok.EncodeSpecial(nil, text) }

// windowBytes is how much text beside a place is encoded to see what it does to
// the tokens there.
const windowBytes = 64

// window is the text around [from, to), within its line.
func (c *check) window(from, to int) (lo, hi int) {
	lo, hi = max(0, from-windowBytes), min(len(c.text), to+windowBytes)
	if i := bytes.LastIndexByte(c.text[lo:from], '\n'); i >= 0 {
		lo += i + 1
	}
	if i := bytes.IndexByte(c.text[to:hi], '\n'); i >= 0 {
		hi = to + i
	}
	return lo, hi
}

// differs says what the tokenizer makes of [from, to) and of what may stand in
// its place: the numbers of tokens of the text around it. same is true if the
// tokens are the same.
func (c *check) differs(from, to int, instead string) (with, without int, same bool) {
	lo, hi := c.window(from, to)
	own := c.tokens(c.text[lo:hi])
	other := c.tokens(slices.Concat(c.text[lo:from], []byte(instead), c.text[to:hi]))
	return len(own), len(other), slices.Equal(own, other)
}

// versus puts two numbers of tokens that differs gives into words.
func versus(what string, with, without int, otherwise string) string {
	if with == without {
		return fmt.Sprintf("%s has other tokens %s", what, otherwise)
	}
	return fmt.Sprintf("%s is %s, %s %d", what, counted(with, "token"), otherwise, without)
}

// counted puts a number and its noun together.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// cut shortens a text that is quoted in a message.
func cut(text []byte) []byte {
	const most = 40
	if len(text) <= most {
		return text
	}
	return text[len(text)-most:]
}
