package tokenizer

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

var readingDepth = flag.Int("reading-depth", 5, "characters of the longest text plus continuation in TestReadings")

// alphabets are small and nasty, each in its own way: spaces and numbers,
// contractions, and the bytes of characters of each class one by one.
var alphabets = [][]string{
	{"a", "5", " ", "\n", "'", "s", "!", "\u2003"},
	{"'", "r", "e", "l", "s", " ", "a", "!"},
	{"\xe2", "\x80", "\x83", "\xc3", "\xa9", " ", "a", "'"},  // U+2003, U+2029, é
	{"\xf0", "\x9f", "\x98", "\x80", "\x9d", " ", "a", "\n"}, // 😀, 𝟘
	{"\xd9", "\xa3", "\xa0", "\xc2", " ", "5", "a", "\n"},    // ٣, U+00A0
	{"\xe4", "\xb8", "\xad", "\xe0", "é", " ", "\n", "!"},    // 中
}

var addedAlphabets = []struct{ added, letters []string }{
	{[]string{"<a>", "a>b", "b<a>!", "  ", "!!!"}, []string{"<", "a", ">", "b", " ", "!"}},
	{[]string{"aa", "aab", "baaa", " a"}, []string{"a", "b", " ", "5"}},
	{[]string{"é", "\xc3", "\xa9a", " \xe2\x80"}, []string{"\xc3", "\xa9", "a", " ", "\xe2", "\x80"}},
}

// TestReadings tries all texts and continuations over the alphabets.
func TestReadings(t *testing.T) {
	for _, pre := range []string{"gpt-2", "smollm"} {
		for i, letters := range alphabets {
			walkReadings(t, synthetic{pre: pre}.open(t), letters, i)
		}
		for i, a := range addedAlphabets {
			walkReadings(t, synthetic{pre: pre, added: a.added}.open(t), a.letters, 100+i)
		}
	}
}

// readingWalk goes through all strings. At each it checks that its pretokens
// agree with a reading of every prefix.
type readingWalk struct {
	t       *testing.T
	tok     *Tokenizer
	letters []string
	text    []byte
	stack   []readingFrame
	ends    []int

	readings, unmatched int // of texts with at least three characters after them
}

// readingFrame is a text on the way to the current one.
type readingFrame struct {
	length   int
	ends     []int
	readings []Reading
	matched  []bool
}

func walkReadings(t *testing.T, tok *Tokenizer, letters []string, name int) {
	w := &readingWalk{t: t, tok: tok, letters: letters}
	w.visit()
	t.Logf("%s, alphabet %d: of %d readings %d are of no continuation tried", tok.pre.name, name, w.readings, w.unmatched)
}

func (w *readingWalk) visit() {
	w.ends = w.tok.Pretokens(w.ends[:0], w.text)
	depth := len(w.stack)
	// A continuation of one character at least, and nothing at all below.
	if depth < *readingDepth {
		f := readingFrame{length: len(w.text), ends: slices.Clone(w.ends), readings: w.tok.Readings(w.text)}
		f.matched = make([]bool, len(f.readings))
		checkReadings(w.t, w.tok, w.text, f.readings)
		w.stack = append(w.stack, f)
	}
	for i := range w.stack {
		f := &w.stack[i]
		ok := false
		for j, r := range f.readings {
			if agrees(r, f, w.ends) {
				f.matched[j] = true
				ok = true
			}
		}
		if !ok {
			w.t.Fatalf("%s: pretokens of %q end at %v; readings of %q are %+v", w.tok.pre.name, w.text, w.ends, w.text[:f.length], f.readings)
		}
	}
	if depth == *readingDepth {
		return
	}
	for _, l := range w.letters {
		n := len(w.text)
		w.text = append(w.text, l...)
		w.visit()
		w.text = w.text[:n]
	}
	f := w.stack[depth]
	if depth <= *readingDepth-3 {
		w.readings += len(f.readings)
		for _, m := range f.matched {
			if !m {
				w.unmatched++
			}
		}
	}
	w.stack = w.stack[:depth]
}

// agrees reports whether pretokens of a text that goes on, which end at ends,
// are split as r says in the text of f.
func agrees(r Reading, f *readingFrame, ends []int) bool {
	stable, _ := slices.BinarySearch(f.ends, r.Start+1)
	inside, found := slices.BinarySearch(ends, f.length)
	if r.Open == f.length && inside+1 == stable+len(r.Closed) && found {
		inside++ // the end of the text is one of the ends that r has
	}
	return inside == stable+len(r.Closed) &&
		slices.Equal(ends[:stable], f.ends[:stable]) && slices.Equal(ends[stable:inside], r.Closed)
}

// checkReadings checks what must hold for readings by themselves.
func checkReadings(t *testing.T, tok *Tokenizer, text []byte, readings []Reading) {
	t.Helper()
	for i, r := range readings {
		open := r.Start
		if n := len(r.Closed); n > 0 {
			open = r.Closed[n-1]
		}
		if r.Open != open || r.Open > len(text) || r.Start != readings[0].Start || !slices.IsSorted(r.Closed) {
			t.Fatalf("reading %+v of %q is inconsistent", r, text)
		}
		if r.Added != vocab.None {
			tail, full := text[r.Open:], tok.vocab.Bytes(r.Added)
			if tok.vocab.Kind(r.Added) != vocab.UserDefined || len(tail) == 0 || len(tail) >= len(full) || !bytes.HasPrefix(full, tail) {
				t.Fatalf("reading %+v of %q: %q does not begin %q", r, text, tail, full)
			}
		}
		for _, o := range readings[:i] {
			if slices.Equal(o.Closed, r.Closed) && o.Added == r.Added {
				t.Fatalf("reading %+v of %q is there twice", r, text)
			}
		}
	}
	if len(readings) == 1 && len(readings[0].Closed) > 0 {
		t.Fatalf("the only reading %+v of %q leaves closed pretokens", readings[0], text)
	}
}

func TestReadingsByHand(t *testing.T) {
	for _, tc := range []struct{ pre, text, want string }{
		{"gpt-2", "", "|"},
		{"gpt-2", "ab", "|ab"},
		{"gpt-2", "ab cd", "ab| cd"},
		{"gpt-2", "a ", "a| "},
		{"gpt-2", "a  ", "a|  / · "},
		{"gpt-2", "a \n", "a| \n/ ·\n·"},
		{"gpt-2", "x'", "x|'"},
		{"gpt-2", "x'r", "x|'·r/'r"},
		{"gpt-2", "x's", "x's|"},
		{"gpt-2", "12", "|12"},
		{"smollm", "12", "12|"},
		{"smollm", " ", "| "},
		{"smollm", "a  ", "a|  / · "},
	} {
		tok := synthetic{pre: tc.pre}.open(t)
		if got := writeReadings(tc.text, tok.Readings([]byte(tc.text))); got != tc.want {
			t.Errorf("%s: readings of %q are %q, want %q", tc.pre, tc.text, got, tc.want)
		}
	}
}

// writeReadings writes the text before Start, a bar, and then for each reading
// the rest, with a dot at each end of a pretoken; a slash between readings.
func writeReadings(text string, readings []Reading) string {
	out := text[:readings[0].Start] + "|"
	for i, r := range readings {
		if i > 0 {
			out += "/"
		}
		at := r.Start
		for _, e := range r.Closed {
			out += text[at:e] + "·"
			at = e
		}
		out += text[at:]
	}
	return out
}

func TestReadingsAdded(t *testing.T) {
	tok := synthetic{pre: "gpt-2", added: []string{"<tool_call>", "<tool_response>", "<t>"}}.open(t)
	for _, tc := range []struct {
		text, want string
		added      []string
	}{
		{"a <tool_call>", "a <tool_call>|", []string{""}},
		{"a <", "a| </ ·<", []string{"", "<t>"}},
		{"a <tool_", "a| <·tool·_/ ·<tool_", []string{"", "<tool_call>"}},
		{"x <t> <tool_r", "x <t>| <·tool·_·r/ ·<tool_r", []string{"", "<tool_response>"}},
	} {
		readings := tok.Readings([]byte(tc.text))
		if got := writeReadings(tc.text, readings); got != tc.want {
			t.Errorf("readings of %q are %q, want %q", tc.text, got, tc.want)
		}
		for i, r := range readings {
			if i >= len(tc.added) || string(tok.vocab.Bytes(r.Added)) != tc.added[i] {
				t.Errorf("reading %d of %q awaits %q", i, tc.text, tok.vocab.Bytes(r.Added))
			}
		}
	}
}

// TestReadingsIDs checks what readings are for: the tokens of the closed
// pretokens are the tokens that any continuation begins with.
func TestReadingsIDs(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, pre := range []string{"gpt-2", "smollm"} {
		tok := synthetic{
			pre:    pre,
			merges: [][2]string{{" ", " "}, {"r", "e"}, {"'", "re"}, {" ", "a"}, {"\xe2", "\x80"}, {"\xe2\x80", "\x83"}, {"\n", "\n"}},
			added:  []string{"<|x|>", "  \n", "ll!", "!<|x"},
		}.open(t)
		parts := slices.Concat(hard, []string{"<|x|>", "<|", "x|>", "!<", "<"})
		for range 20_000 {
			text := []byte(randomText(rng, parts, 10))
			readings := tok.Readings(text)
			checkReadings(t, tok, text, readings)
			whole := append(slices.Clone(text), randomText(rng, parts, 5)...)
			ids := tok.Encode(nil, whole)
			if !slices.ContainsFunc(readings, func(r Reading) bool { return tokensFit(tok, text, r, whole, ids) }) {
				t.Fatalf("%s: no reading of %q fits %q", pre, text, whole)
			}
		}
	}
}

// tokensFit reports whether ids begins with the tokens of the closed pretokens
// of a reading, and whether a pretoken of whole ends where they do.
func tokensFit(tok *Tokenizer, text []byte, r Reading, whole []byte, ids []vocab.ID) bool {
	var want []vocab.ID
	at := 0
	for _, e := range tok.Pretokens(nil, text) {
		if e <= r.Start {
			want = tok.EncodePiece(want, text[at:e])
			at = e
		}
	}
	for _, e := range r.Closed {
		want = tok.EncodePiece(want, text[at:e])
		at = e
	}
	return len(ids) >= len(want) && slices.Equal(ids[:len(want)], want) &&
		(at == 0 || slices.Contains(tok.Pretokens(nil, whole), at))
}

// TestReadingsLongAdded cuts texts with long added tokens, some of which
// overlap, at every byte, and goes on with the rest or with something else.
func TestReadingsLongAdded(t *testing.T) {
	added := []string{"<|start_of_the_turn|>", "a b c d e f g h!", "!ij kl mn op qr st", "  \n  \n  \n  \n", "\n  \u2003\u2003\u2003x"}
	texts := []string{
		"well, it's <|start_of_the_turn|> now", "so a b c d e f g h!ij kl mn op qr st it is", "x a b c d e f g h!ij kl mn op q",
		"x a b c d e f g hij", "t  \n  \n  \n  \n  \n  \n", "t  \n  \n  \n  \u2003\u2003\u2003x y", "<|start_of_<|start_of_the_turn|>!ij kl",
	}
	for _, pre := range []string{"gpt-2", "smollm"} {
		tok := synthetic{pre: pre, added: added}.open(t)
		for _, text := range texts {
			for n := range len(text) + 1 {
				f := readingFrame{length: n, ends: tok.Pretokens(nil, []byte(text[:n])), readings: tok.Readings([]byte(text[:n]))}
				checkReadings(t, tok, []byte(text[:n]), f.readings)
				for _, next := range []string{text[n:], "", " ", "x", "\u2003 x", "5", text} {
					ends := tok.Pretokens(nil, []byte(text[:n]+next))
					if !slices.ContainsFunc(f.readings, func(r Reading) bool { return agrees(r, &f, ends) }) {
						t.Errorf("%s: pretokens of %q+%q end at %v; readings are %+v", pre, text[:n], next, ends, f.readings)
					}
				}
			}
		}
	}
}

func TestReadingsOfLongTexts(t *testing.T) {
	tok := synthetic{pre: "smollm", added: []string{"<x>"}}.open(t)
	for _, text := range []string{
		strings.Repeat("a", 200_000), strings.Repeat(" ", 200_000), strings.Repeat("word ", 40_000),
		strings.Repeat("<x>", 60_000) + "<", strings.Repeat("'", 200_000), strings.Repeat("\xe2\x80", 100_000),
	} {
		checkReadings(t, tok, []byte(text), tok.Readings([]byte(text)))
	}
	text := strings.Repeat("word ", 40_000) + "end  "
	if got := tok.Readings([]byte(text))[0].Start; got != len(text)-2 {
		t.Errorf("Start is %d, want %d", got, len(text)-2)
	}
}

func FuzzReadings(f *testing.F) {
	tok := synthetic{pre: "smollm", added: []string{"<|x|>", "x|", "  \n"}}.open(f)
	f.Add([]byte("it's  \xe2\x80"), []byte("\x83 5"))
	f.Add([]byte("a <|x"), []byte("|> b"))
	f.Fuzz(func(t *testing.T, text, next []byte) {
		fr := readingFrame{length: len(text), ends: tok.Pretokens(nil, text), readings: tok.Readings(text)}
		checkReadings(t, tok, text, fr.readings)
		ends := tok.Pretokens(nil, append(slices.Clone(text), next...))
		if !slices.ContainsFunc(fr.readings, func(r Reading) bool { return agrees(r, &fr, ends) }) {
			t.Errorf("pretokens of %q+%q end at %v; readings are %+v", text, next, ends, fr.readings)
		}
	})
}
