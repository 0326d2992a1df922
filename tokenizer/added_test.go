package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// tokensOf makes added tokens with the IDs 0, 1 and so on. A word may end with
// "/" and flags: w for singleWord, l for lstrip, r for rstrip.
func tokensOf(words ...string) []addedToken {
	var tokens []addedToken
	for i, word := range words {
		text, flags, _ := strings.Cut(word, "/")
		tokens = append(tokens, addedToken{
			text: []byte(text), id: vocab.ID(i),
			singleWord: strings.Contains(flags, "w"), lstrip: strings.Contains(flags, "l"), rstrip: strings.Contains(flags, "r"),
		})
	}
	return tokens
}

// bare gives matches without what only their matcher understands.
func bare(matches []match) []match {
	out := slices.Clone(matches)
	for i := range out {
		out[i].token = 0
	}
	return out
}

// naiveLongest is llama.cpp's way: one token after the other, the longest
// first, is cut out of all pieces of text that are left.
func naiveLongest(tokens []addedToken, text string) []match {
	type fragment struct {
		lo, hi int
		id     vocab.ID
	}
	tokens = slices.Clone(tokens)
	slices.SortStableFunc(tokens, func(a, b addedToken) int { return len(b.text) - len(a.text) })
	parts := []fragment{{0, len(text), vocab.None}}
	for _, t := range tokens {
		word := string(t.text)
		for i := 0; i < len(parts) && word != ""; i++ {
			f := parts[i]
			if f.id != vocab.None {
				continue
			}
			k := strings.Index(text[f.lo:f.hi], word)
			if k < 0 {
				continue
			}
			at := f.lo + k
			parts = slices.Replace(parts, i, i+1,
				fragment{f.lo, at, vocab.None}, fragment{at, at + len(word), t.id}, fragment{at + len(word), f.hi, vocab.None})
			i++ // the part on the right is next
		}
	}
	var out []match
	for _, f := range parts {
		if f.id != vocab.None {
			out = append(out, match{start: f.lo, end: f.hi, id: f.id})
		}
	}
	return out
}

// naiveLeftmost takes the longest token at each place, and goes on from there.
func naiveLeftmost(tokens []addedToken, text string) []match {
	var out []match
	for i := 0; i < len(text); {
		best := -1
		for k, t := range tokens {
			if len(t.text) > 0 && strings.HasPrefix(text[i:], string(t.text)) && (best < 0 || len(t.text) > len(tokens[best].text)) {
				best = k
			}
		}
		if best < 0 {
			i++
			continue
		}
		out = append(out, match{start: i, end: i + len(tokens[best].text), id: tokens[best].id})
		i += len(tokens[best].text)
	}
	return out
}

// randomWord joins up to n of letters.
func randomWord(rng *rand.Rand, letters []string, n int) string {
	var b strings.Builder
	for range rng.IntN(n + 1) {
		b.WriteString(letters[rng.IntN(len(letters))])
	}
	return b.String()
}

func TestAddedAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 400 {
		letters := []string{"a", "b", "<", ">", "é"}[:1+rng.IntN(5)]
		var words []string
		for range 1 + rng.IntN(8) {
			words = append(words, randomWord(rng, letters, 7))
		}
		tokens := tokensOf(words...)
		longest, leftmost := newAddedMatcher(tokens, longestFirst), newAddedMatcher(tokens, leftmostLongest)
		for range 50 {
			text := randomWord(rng, letters, 20)
			got, want := bare(longest.appendMatches(nil, []byte(text))), naiveLongest(tokens, text)
			if !slices.Equal(got, want) {
				t.Fatalf("%q with %q, longest first: %v, want %v", text, words, got, want)
			}
			got, want = bare(leftmost.appendMatches(nil, []byte(text))), naiveLeftmost(tokens, text)
			if !slices.Equal(got, want) {
				t.Fatalf("%q with %q, leftmost: %v, want %v", text, words, got, want)
			}
			if leftmost.matches([]byte(text)) != (len(want) > 0) || longest.matches([]byte(text)) != (len(want) > 0) {
				t.Fatalf("%q with %q: matches is wrong", text, words)
			}
		}
	}
}

// TestAddedInHostileText has texts in which looking from each place by itself
// takes many steps, so that they are read backward.
func TestAddedInHostileText(t *testing.T) {
	run := func(n int) string { return strings.Repeat("a", n) }
	rng := rand.New(rand.NewPCG(15, 16))
	for _, words := range [][]string{
		{run(300) + "b", "ab"},
		{run(300) + "b", run(200) + "b", run(7), run(3)},
		{run(31), run(30), run(2), "b"},
		{strings.Repeat("ab", 100) + "c", "ab", "aba", "b"},
	} {
		tokens := tokensOf(words...)
		for _, text := range []string{run(5000), run(5000) + "b" + run(40_000) + "b", strings.Repeat("ab", 9000) + "c", randomWord(rng, []string{run(310), "b", "ab"}, 200)} {
			longest, leftmost := newAddedMatcher(tokens, longestFirst), newAddedMatcher(tokens, leftmostLongest)
			if got, want := bare(longest.appendMatches(nil, []byte(text))), naiveLongest(tokens, text); !slices.Equal(got, want) {
				t.Errorf("%.40q… of %d bytes, longest first: %d matches, want %d", text, len(text), len(got), len(want))
			}
			want := naiveLeftmost(tokens, text)
			if got := bare(leftmost.appendMatches(nil, []byte(text))); !slices.Equal(got, want) {
				t.Errorf("%.40q… of %d bytes, leftmost: %d matches, want %d", text, len(text), len(got), len(want))
			}
			if leftmost.matches([]byte(text)) != (len(want) > 0) {
				t.Errorf("%.40q… of %d bytes: matches is wrong", text, len(text))
			}
		}
	}
}

func TestAddedWithSameText(t *testing.T) {
	tokens := []addedToken{{text: []byte("x"), id: 7}, {text: []byte("x"), id: 3}, {text: nil, id: 1}}
	for order, want := range []vocab.ID{longestFirst: 3, leftmostLongest: 7} {
		got := newAddedMatcher(tokens, matchOrder(order)).appendMatches(nil, []byte("ax"))
		if len(got) != 1 || got[0].id != want {
			t.Errorf("order %d: %v, want token %d", order, got, want)
		}
	}
}

// addedCase is an answer of Hugging Face's tokenizers.
type addedCase struct {
	Tokens []string // as tokensOf has them
	Text   string
	IDs    []vocab.ID // None for text between tokens
}

// TestAddedHuggingFace has recorded answers: testdata/added_tokens.py.
func TestAddedHuggingFace(t *testing.T) {
	data, err := os.ReadFile("testdata/added_tokens.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(data) {
		var c addedCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		m := newAddedMatcher(tokensOf(c.Tokens...), leftmostLongest)
		var ids []vocab.ID
		at := 0
		for _, w := range m.appendMatches(nil, []byte(c.Text)) {
			if w.start < at || w.end < w.start {
				t.Errorf("%q with %q: matches overlap", c.Text, c.Tokens)
			}
			if at < w.start {
				ids = append(ids, vocab.None)
			}
			ids = append(ids, w.id)
			at = w.end
		}
		if at < len(c.Text) {
			ids = append(ids, vocab.None)
		}
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("%q with %q: %v, want %v", c.Text, c.Tokens, ids, c.IDs)
		}
		cases++
	}
	if cases < 100 {
		t.Errorf("only %d cases", cases)
	}
}

// division is how a text is divided up to a place: the matches that end there
// or before, and where and by what token one goes on beyond, if any does.
type division struct {
	matches []match
	start   int
}

func (d division) String() string { return fmt.Sprint(d.matches, d.start) }

// cutOff is the division of text[:n] by the matches of text.
func cutOff(all []match, n int) division {
	d := division{start: n}
	for _, c := range all {
		if c.start >= n {
			break
		}
		if c.end > n {
			d.start = c.start
			break
		}
		c.token = 0
		d.matches = append(d.matches, c)
	}
	return d
}

// checkOpenStarts compares text with what comes of it with continuations.
func checkOpenStarts(t *testing.T, m *matcher, text []byte, continuations []string) {
	t.Helper()
	own, open := m.openStarts(text)
	if want := m.appendMatches(nil, text); !slices.Equal(own, want) {
		t.Fatalf("%q: own matches %v, want %v", text, own, want)
	}
	known := map[string]bool{cutOff(own, len(text)).String(): true}
	for _, o := range open {
		d := division{bare(slices.Concat(own[:o.same], o.more)), o.start}
		known[d.String()] = true
		if o.start > len(text) || (o.id == vocab.None) != (o.start == len(text)) {
			t.Fatalf("%q: open start at %d with token %d", text, o.start, o.id)
		}
		if k := len(d.matches); k > 0 && d.matches[k-1].end > o.start {
			t.Fatalf("%q: open start %v reaches back", text, d)
		}
		if !m.flagged {
			if want := bare(m.appendMatches(nil, text[:o.start])); !slices.Equal(d.matches, want) {
				t.Fatalf("%q: open start %v, but its start alone has %v", text, d, want)
			}
		}
	}
	settled := m.settled(text)
	for _, s := range continuations {
		whole := m.appendMatches(nil, append(slices.Clip(text), s...))
		d := cutOff(whole, len(text))
		if !known[d.String()] {
			t.Fatalf("%q + %q: %v is neither its own division nor an open start of %v, %v", text, s, d, own, open)
		}
		if got, want := cutOff(whole, settled), cutOff(own, settled); settled < len(text) && got.String() != want.String() || d.start < settled {
			t.Fatalf("%q + %q: %v, but %d bytes are settled as %v", text, s, got, settled, want)
		}
	}
}

// allTexts lists all texts of up to n letters.
func allTexts(letters []string, n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		end := len(all)
		for _, s := range all[from:end] {
			for _, l := range letters {
				all = append(all, s+l)
			}
		}
		from = end
	}
	return all
}

func TestOpenStartsExhaustive(t *testing.T) {
	for _, tc := range []struct {
		tokens  []string
		letters []string
		n, more int
	}{
		{[]string{"ab", "abc", "bca", "c"}, []string{"a", "b", "c"}, 5, 4},
		{[]string{"a", "aa", "aaaa", "aab"}, []string{"a", "b"}, 7, 5},
		{[]string{"<a>", "<a", "a><", "><a"}, []string{"a", "<", ">"}, 5, 4},
		{[]string{"é", "aé", "éa"}, []string{"a", "\xc3", "\xa9"}, 4, 4},
		{[]string{"<s>/r", "<m>/l"}, []string{" ", "x", "<s>", "<m>"}, 4, 3},
		{[]string{"ab/w", "abc", "b"}, []string{"a", "b", "c", " "}, 4, 3},
		{[]string{"ab", "abc/w", "c/lr"}, []string{"a", "b", "c", " "}, 4, 3},
		{[]string{"a/wlr", "  /w", " b/l", "ba/r"}, []string{"a", "b", " "}, 5, 4},
		{[]string{"  /r", " a", "a/w", "a /l"}, []string{"a", "b", " "}, 5, 4},
		{[]string{"  /lw", " /r", "a b/lr", "   a/w"}, []string{"a", "b", " "}, 5, 4},
		{[]string{"a/r", "b/l", "b\u2003/w"}, []string{"a", "b", "\xe2", "\x80", "\x83"}, 4, 3},
		{[]string{"a/wr", "é/wl", "éa"}, []string{"a", "\xc3", "\xa9", " "}, 4, 3},
	} {
		continuations := allTexts(tc.letters, tc.more)
		for _, order := range []matchOrder{longestFirst, leftmostLongest} {
			m := newAddedMatcher(tokensOf(tc.tokens...), order)
			for _, text := range allTexts(tc.letters, tc.n) {
				checkOpenStarts(t, m, []byte(text), continuations)
			}
		}
	}
}

// TestOpenStartsTight has texts whose end must not be held back.
func TestOpenStartsTight(t *testing.T) {
	for _, tc := range []struct {
		tokens []string
		text   string
		starts []int
	}{
		{[]string{"<|im_start|>", "<|im_end|>"}, "a<|im_start|>b < c", nil},
		{[]string{"<|im_start|>", "<|im_end|>"}, "a<|im_start|>b <|im", []int{15}},
		{[]string{"<|im_start|>", "<|im_end|>"}, "a<|im_start|>", nil},
		{[]string{"<s>/r", "<m>/l"}, "<s> a  b", nil},
		{[]string{"<s>/r", "<m>/l"}, "a<s> ", []int{1}},
		{[]string{"<s>/r", "<m>/l"}, "a ", []int{1}},
		{[]string{"<s>/r", "<m>/l"}, "a  <m", []int{1}},
		{[]string{"ab/w"}, "x ab", []int{4}},
		{[]string{"ab/w"}, "x ab ", nil},
	} {
		_, open := newAddedMatcher(tokensOf(tc.tokens...), leftmostLongest).openStarts([]byte(tc.text))
		var starts []int
		for _, o := range open {
			starts = append(starts, o.start)
		}
		slices.Sort(starts)
		if !slices.Equal(starts, tc.starts) {
			t.Errorf("%q with %q: open starts at %v, want %v", tc.text, tc.tokens, starts, tc.starts)
		}
	}
}

func TestAddedAllocatesNothing(t *testing.T) {
	text := []byte("a <|im_start|>user  \n\n  <|im_end|>    x")
	for _, order := range []matchOrder{longestFirst, leftmostLongest} {
		m := newAddedMatcher(tokensOf("<|im_start|>", "<|im_end|>/r", "  ", "    ", "\n", "\n\n"), order)
		dst := m.appendMatches(nil, text)
		if raceEnabled {
			continue
		}
		if n := testing.AllocsPerRun(100, func() { dst = m.appendMatches(dst[:0], text) }); n != 0 {
			t.Errorf("order %d: %v allocations", order, n)
		}
	}
}

func FuzzAdded(f *testing.F) {
	f.Add("a|ab/w| b/l|<s>/r", "x <s>  ab b", " b")
	f.Add("aa|aaa|ab", "aaaaab", "b")
	f.Add("é|\u2003/lr", "\u2003é\u2003\xe2\x80", "\x83é")
	f.Fuzz(func(t *testing.T, list, text, more string) {
		if len(list) > 100 || len(text) > 200 || len(more) > 50 {
			return
		}
		words := strings.Split(list, "|")
		plain := tokensOf(words...)
		for i := range plain {
			plain[i] = addedToken{text: plain[i].text, id: plain[i].id}
		}
		var continuations []string
		for n := range len(more) + 1 {
			continuations = append(continuations, more[:n])
		}
		for order, naive := range []func([]addedToken, string) []match{longestFirst: naiveLongest, leftmostLongest: naiveLeftmost} {
			m := newAddedMatcher(plain, matchOrder(order))
			if got, want := bare(m.appendMatches(nil, []byte(text))), naive(plain, text); !slices.Equal(got, want) {
				t.Errorf("order %d: %v, want %v", order, got, want)
			}
			checkOpenStarts(t, m, []byte(text), continuations)
		}
		// Flags come with tokens of a JSON file alone, which are whole characters.
		m := newAddedMatcher(tokensOf(strings.Split(strings.ToValidUTF8(list, "\ufffd"), "|")...), leftmostLongest)
		checkOpenStarts(t, m, []byte(text), continuations)
	})
}

// BenchmarkAdded measures looking for added tokens in text that has few.
func BenchmarkAdded(b *testing.B) {
	special := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>"}
	blanks := slices.Clone(special)
	for n := 2; n < 32; n++ {
		blanks = append(blanks, strings.Repeat(" ", n), strings.Repeat("\n", n))
	}
	code := []byte(strings.Repeat("\tfor i := 0; i < len(s); i++ {\n\t\ts[i] <- <-c // as before, and so on\n\t}\n", 500))
	for _, bc := range []struct {
		name  string
		words []string
		text  []byte
	}{
		{"special/code", special, code},
		{"blanks/code", blanks, code},
		{"blanks/spaces", blanks, bytes.Repeat([]byte(" "), len(code))},
		{"one-late/run", []string{strings.Repeat("a", 500) + "b"}, bytes.Repeat([]byte("a"), len(code))},
	} {
		for order, name := range []string{longestFirst: "longest", leftmostLongest: "leftmost"} {
			b.Run(bc.name+"/"+name, func(b *testing.B) {
				m := newAddedMatcher(tokensOf(bc.words...), matchOrder(order))
				var dst []match
				b.SetBytes(int64(len(bc.text)))
				for b.Loop() {
					dst = m.appendMatches(dst[:0], bc.text)
				}
			})
		}
	}
}
func TestAddedAndControl(t *testing.T) {
	tok := synthetic{
		pre:      "gpt-2",
		merges:   [][2]string{{"e", "n"}, {"en", "d"}},
		added:    []string{"<tool>", "    "},
		controls: []string{"<|im_start|>", "<|im_end|>", "<|im"},
	}.open(t)
	for _, tc := range []struct {
		text           string
		plain, special string
	}{
		{"end", "end", "end"},
		{"a<tool>b", "a‧<tool>‧b", "a‧<tool>‧b"},
		{"<tool", "<‧t‧o‧o‧l", "<‧t‧o‧o‧l"},
		{"     x", "    ‧ ‧x", "    ‧ ‧x"},
		{"<|im_end|>", "<‧|‧i‧m‧_‧end‧|‧>", "<|im_end|>"},
		{"<|im_end", "<‧|‧i‧m‧_‧end", "<|im‧_‧end"},
		{"a<|im_start|><tool>", "a‧<‧|‧i‧m‧_‧s‧t‧a‧r‧t‧|‧>‧<tool>", "a‧<|im_start|>‧<tool>"},
		{"", "", ""},
	} {
		show := func(ids []vocab.ID) string {
			var parts []string
			for _, id := range ids {
				parts = append(parts, string(tok.vocab.Bytes(id)))
			}
			return strings.Join(parts, "‧")
		}
		if got := show(tok.Encode(nil, []byte(tc.text))); got != tc.plain {
			t.Errorf("Encode(%q) is %q, want %q", tc.text, got, tc.plain)
		}
		special := tok.EncodeSpecial(nil, []byte(tc.text))
		if got := show(special); got != tc.special {
			t.Errorf("EncodeSpecial(%q) is %q, want %q", tc.text, got, tc.special)
		}
		if got := string(tok.Decode(nil, special)); got != tc.text {
			t.Errorf("%q decodes to %q", tc.text, got)
		}
		for _, id := range tok.Encode(nil, []byte(tc.text)) {
			if tok.vocab.Kind(id) == vocab.Control {
				t.Errorf("Encode(%q) gives control token %d", tc.text, id)
			}
		}
	}
	if got := tok.EncodePiece(nil, []byte("<tool>")); len(got) != 1 || tok.vocab.Kind(got[0]) != vocab.UserDefined {
		t.Errorf("EncodePiece of an added token is %v", got)
	}
	if got := tok.EncodePiece([]vocab.ID{9}, nil); !slices.Equal(got, []vocab.ID{9}) {
		t.Errorf("EncodePiece of nothing is %v", got)
	}
}
