package boundary_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// toy makes a byte-level BPE tokenizer with these merges, in rank order, and
// added tokens.
func toy(t testing.TB, pre string, merges [][2]string, added ...string) *tokenizer.Tokenizer {
	return tokenizertest.BPE(t, gguftest.BPE{Pre: pre, Controls: []string{"<|end|>"}, Merges: merges, Added: added})
}

// randomMerges draws n merges of tokens over the alphabet, none of which makes
// a token that is taken.
func randomMerges(r *rand.Rand, alphabet []string, n int, taken ...string) [][2]string {
	known := slices.Clone(taken)
	for _, a := range alphabet {
		for i := range len(a) {
			known = append(known, a[i:i+1])
		}
	}
	var merges [][2]string
	for len(merges) < n {
		parts := known[len(taken):]
		a, b := parts[r.IntN(len(parts))], parts[r.IntN(len(parts))]
		if len(a)+len(b) > 6 || slices.Contains(known, a+b) {
			continue
		}
		known = append(known, a+b)
		merges = append(merges, [2]string{a, b})
	}
	return merges
}

// texts calls f with every string of up to n symbols.
func texts(alphabet []string, n int, f func([]byte)) {
	var walk func(prefix []byte, n int)
	walk = func(prefix []byte, n int) {
		f(prefix)
		if n == 0 {
			return
		}
		for _, a := range alphabet {
			walk(append(slices.Clip(prefix), a...), n-1)
		}
	}
	walk(nil, n)
}

// checkContinuation reports how tokens(text+s) contradicts the report, if it
// does: in a stable token, or by a cover that no branch allows.
func checkContinuation(tok *tokenizer.Tokenizer, r *boundary.Report, text, s, buf []byte, ids []vocab.ID) error {
	whole := append(append(buf[:0], text...), s...)
	ids = tok.Encode(ids[:0], whole)
	if len(ids) < r.Stable || !slices.Equal(ids[:r.Stable], r.IDs[:r.Stable]) {
		return fmt.Errorf("text %q, continuation %q: tokens %v do not begin with the %d stable ones of %v", text, s, ids, r.Stable, r.IDs)
	}
	cover, at := ids[r.Stable:], r.StableBytes
	n := 0
	for at < len(text) {
		at += len(tok.Vocab().Bytes(cover[n]))
		n++
	}
	cover = cover[:n]
	for _, b := range r.Branches {
		switch {
		case len(cover) < len(b.Path) || !slices.Equal(cover[:len(b.Path)], b.Path):
		case len(b.Rest) == 0 && len(cover) == len(b.Path):
			return nil
		case len(b.Rest) > 0 && len(cover) == len(b.Path)+1:
			for id := range b.Extensions(tok.Vocab()) {
				if id == cover[len(b.Path)] {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("text %q, continuation %q: no branch of %v allows the cover %v", text, s, r.Branches, cover)
}

// TestExhaustive compares with all texts and continuations up to a length, in
// vocabularies whose merges cross every kind of seam.
func TestExhaustive(t *testing.T) {
	alphabets := map[string][]string{
		"letters":     {"a", "b", "c"},
		"blanks":      {"a", " ", "\n", "."},
		"contraction": {"'", "r", "e", "s", " "},
		"digits":      {"1", "2", "a", " "},
		"utf-8":       {"é", "\u2003", "a", " ", "\xc3", "\xe2\x80"},
		"halves":      {"\xc3", "\xa9", "\xe2", "\x80", "\x83", " "},
	}
	for name, alphabet := range alphabets {
		for _, pre := range []string{"gpt-2", "smollm"} {
			t.Run(name+" "+pre, func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(7, uint64(len(name))))
				loose, total := 0, 0
				for range 4 {
					tok := toy(t, pre, randomMerges(r, alphabet, 12))
					l, n := exhaustive(t, tok, alphabet, 4, 3)
					loose, total = loose+l, total+n
				}
				t.Logf("%d of %d texts keep back a token that no tested continuation changed", loose, total)
			})
		}
	}
}

// TestLongPretokens has texts in which one pretoken is longer than what is
// encoded anew for each branch.
func TestLongPretokens(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 6 {
		tok := toy(t, "gpt-2", randomMerges(r, []string{"a", "b", " ", "*", "\n"}, 40))
		for _, unit := range []string{"a", "ab", " ", "*", "\n", " \n", "?"} {
			for range 12 {
				text := bytes.Repeat([]byte(unit), (300+r.IntN(900))/len(unit))
				if unit == "?" { // no pattern
					for i := range text {
						text[i] = "ab"[r.IntN(2)]
					}
				}
				text = append([]byte("x "), text...)
				rep := boundary.Analyze(tok, text)
				for _, s := range []string{"", "a", "b", "ab", " ", "  a", "\n", "\n\na", "*", "**", "aaaaaa", "babab", "1"} {
					if err := checkContinuation(tok, rep, text, []byte(s), nil, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// TestUnencodable has bytes that the vocabulary has no token for. They end up
// in no token, so what holds a text together is its pretokens.
func TestUnencodable(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{
		Merges:  [][2]string{{"w", "o"}, {"wo", "r"}, {" ", "wor"}},
		Missing: "\x04\xff",
	})
	for _, tt := range []struct {
		text    string
		stable  int
		pending string
		covers  int
	}{
		{"a\x04\x04 b wo", 3, " wo", 2},       // " wo" is two tokens, " wor" one
		{"hello \x04\x04 wor?", 6 + 2, "", 0}, // nothing moves
		{"hello wor\x04", 5 + 1, "\x04", 0},   // cannot be produced again
		{"hello wor \xff", 5 + 1, " \xff", 0}, // the same
		{"\x04", 0, "\x04", 0},
		{"x\x04y", 2, "", 0},
	} {
		r := boundary.Analyze(tok, []byte(tt.text))
		if r.Stable != tt.stable || string(r.Pending) != tt.pending || r.StableBytes+len(r.Pending) != len(tt.text) {
			t.Errorf("%q: %d tokens stable, %d bytes, pending %q (%s)", tt.text, r.Stable, r.StableBytes, r.Pending, r.Reason)
		}
		if _, total := r.Covers(10); total != tt.covers {
			t.Errorf("%q: %d covers, want %d", tt.text, total, tt.covers)
		}
	}
}

// TestImproper has merges that make no token: "ab" is put together, which
// keeps "xa" from being, and then taken apart again.
func TestImproper(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{Bare: [][2]string{{"a", "b"}, {"x", "a"}}})
	text := []byte("? xa")
	r := boundary.Analyze(tok, text)
	if len(r.Branches) != 0 || string(r.Pending) != " xa" {
		t.Errorf("pending %q, branches %v (%s)", r.Pending, r.Branches, r.Reason)
	}
	if ids := tok.Encode(nil, []byte("? xab")); !slices.Equal(ids[:r.Stable], r.IDs[:r.Stable]) {
		t.Errorf("%d tokens of %v are said to be stable, with more text they are %v", r.Stable, r.IDs, ids)
	}
}

// TestSpecialUnencodable has such bytes before and after a control token.
func TestSpecialUnencodable(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{
		Controls: []string{"<|end|>"},
		Merges:   [][2]string{{"a", "b"}, {" ", "w"}, {" w", "o"}},
		Missing:  "\x04",
	})
	text := []byte("\x04a\x04b<|end|>\x04a\x04b w")
	r := boundary.AnalyzeSpecial(tok, text)
	if !slices.Equal(r.IDs, tok.EncodeSpecial(nil, text)) || r.Stable != 5 || r.StableBytes != len(text)-2 || string(r.Pending) != " w" {
		t.Errorf("tokens %v, %d of them and %d of %d bytes stable, pending %q", r.IDs, r.Stable, r.StableBytes, len(text), r.Pending)
	}
}

// TestExhaustiveAdded does the same with added tokens, which split the text
// before everything else.
func TestExhaustiveAdded(t *testing.T) {
	alphabet := []string{"<", "a", ">", " "}
	r := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		added := []string{"<a>", "<a>>", "a<"}
		tok := toy(t, "gpt-2", randomMerges(r, alphabet, 10, added...), added...)
		loose, total := exhaustive(t, tok, alphabet, 4, 4)
		t.Logf("%d of %d texts keep back a token that no tested continuation changed", loose, total)
	}
}

// exhaustive checks all texts and returns how many stable prefixes are shorter
// than what all tested continuations have in common.
func exhaustive(t *testing.T, tok *tokenizer.Tokenizer, alphabet []string, textLen, contLen int) (loose, total int) {
	t.Helper()
	var conts [][]byte
	texts(alphabet, contLen, func(s []byte) { conts = append(conts, bytes.Clone(s)) })
	var buf []byte
	var ids []vocab.ID
	failed := 0
	texts(alphabet, textLen, func(text []byte) {
		if failed > 3 {
			return
		}
		r := boundary.Analyze(tok, text)
		if want := tok.Encode(nil, text); !slices.Equal(r.IDs, want) {
			t.Errorf("text %q: IDs %v, want %v", text, r.IDs, want)
			failed++
		}
		common := len(r.IDs)
		for _, s := range conts {
			if err := checkContinuation(tok, r, text, s, buf, ids); err != nil {
				t.Error(err)
				failed++
				return
			}
			ids = tok.Encode(ids[:0], append(append(buf[:0], text...), s...))
			n := 0
			for n < min(common, len(ids)) && ids[n] == r.IDs[n] {
				n++
			}
			common = n
		}
		total++
		if r.Stable < common {
			loose++
		}
	})
	return loose, total
}

// TestCoversComplete checks that every cover that some continuation takes is
// listed, once, and that the trunk is the first.
func TestCoversComplete(t *testing.T) {
	for name, alphabet := range map[string][]string{
		"words":  {"a", "b", " "},
		"blanks": {"a", " ", "\n"},
		"quotes": {"'", "r", "e"},
		"digits": {"1", "a", " "},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			tok := toy(t, "smollm", randomMerges(r, alphabet, 10))
			var conts [][]byte
			texts(alphabet, 5, func(s []byte) { conts = append(conts, bytes.Clone(s)) })
			seen, listed := 0, 0
			texts(alphabet, 4, func(text []byte) {
				rep := boundary.Analyze(tok, text)
				if len(rep.Pending) == 0 {
					return
				}
				list, total := rep.Covers(1 << 20)
				if total != len(list) || !slices.Equal(list[0].IDs, rep.IDs[rep.Stable:]) {
					t.Fatalf("text %q: %d covers, %d listed, first %v, trunk %v", text, total, len(list), list[0].IDs, rep.IDs[rep.Stable:])
				}
				known := map[string]bool{}
				for _, c := range list {
					if known[fmt.Sprint(c.IDs)] {
						t.Errorf("text %q: cover %v is listed twice", text, c.IDs)
					}
					known[fmt.Sprint(c.IDs)] = true
				}
				listed += len(list)
				met := map[string]bool{}
				for _, s := range conts {
					ids := tok.Encode(nil, slices.Concat(text, s))[rep.Stable:]
					at, n := rep.StableBytes, 0
					for at < len(text) {
						at += len(tok.Vocab().Bytes(ids[n]))
						n++
					}
					cover := fmt.Sprint(ids[:n])
					met[cover] = true
					if !known[cover] {
						t.Errorf("text %q, continuation %q: cover %v is not listed", text, s, cover)
					}
				}
				seen += len(met)
			})
			t.Logf("%d covers listed, %d of them met", listed, seen)
		})
	}
}

// realTokenizer opens the model that the environment names.
func realTokenizer(t testing.TB) *tokenizer.Tokenizer {
	path := os.Getenv("UNFRAY_TEST_MODEL")
	if path == "" {
		t.Skip("UNFRAY_TEST_MODEL is not set: make test sets it")
	}
	tok, err := tokenizer.OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func goroot(t testing.TB) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// realText is mixed real text: Go source, prose, tests full of escapes and
// numbers, and a page of many languages and symbols, in shares that make up
// size bytes.
func realText(t testing.TB, size int) []byte {
	t.Helper()
	src := filepath.Join(goroot(t), "src")
	var text []byte
	for _, name := range []string{
		"../testdata/languages.txt",
		filepath.Join(src, "testdata/Isaac.Newton-Opticks.txt"),
		filepath.Join(src, "encoding/json/decode.go"),
		filepath.Join(src, "regexp/all_test.go"),
		filepath.Join(src, "fmt/fmt_test.go"),
	} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b[:min(len(b), size/3)]...)
	}
	return text[:min(len(text), size)]
}

var raceEnabled bool

// TestRealCuts cuts real text at every byte. Each prompt is followed by what
// really came next and by continuations that begin with tokens, blanks, single
// bytes and other places of the text.
func TestRealCuts(t *testing.T) {
	tok := realTokenizer(t)
	size := 60_000
	if testing.Short() || raceEnabled {
		size = 4_000
	}
	text := realText(t, size)
	const workers, promptBytes, continuations = 4, 96, 20
	var wg sync.WaitGroup
	var unstable [8]atomic.Int64
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			var buf []byte
			var ids []vocab.ID
			for cut := w; cut <= len(text); cut += workers {
				// The prompt starts at a place of its own, so that the start of
				// the text moves through the pretokens as well.
				prompt := text[max(0, cut-promptBytes-r.IntN(32)):cut]
				rep := boundary.Analyze(tok, prompt)
				unstable[min(len(rep.IDs)-rep.Stable, 7)].Add(1)
				for i := range continuations {
					s := continuation(r, tok.Vocab(), text, cut, i)
					if err := checkContinuation(tok, rep, prompt, s, buf, ids); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d cuts, %d continuations each", len(text)+1, continuations)
	for n := range unstable {
		t.Logf("%d tokens unstable: %.2f %% of the cuts", n, 100*float64(unstable[n].Load())/float64(len(text)+1))
	}
}

// continuation is the i-th kind of text to follow a cut.
func continuation(r *rand.Rand, v *vocab.Vocab, text []byte, cut, i int) []byte {
	token := func() []byte {
		for {
			if id := vocab.ID(r.IntN(v.Len())); v.IsText(id) {
				return v.Bytes(id)
			}
		}
	}
	switch {
	case i < 5: // the truth, cut at several lengths
		return text[cut:min(len(text), cut+1<<(2*i))]
	case i < 10:
		return slices.Concat(token(), token())
	case i < 15: // from elsewhere
		at := r.IntN(len(text))
		return text[at:min(len(text), at+1+r.IntN(24))]
	case i < 18:
		return []byte{byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))}
	default:
		tails := []string{" ", "\n", "  x", "s", "'s", "re", "\t", "\r\n", "é", "\u2003", "1", "."}
		return []byte(tails[r.IntN(len(tails))])
	}
}
