package advise_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/eval"
	"github.com/unfray/unfray/prefixcache/advise"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// dataFolder holds the handed keystrokes, relative to this package.
const dataFolder = "../../../shared/data"

// seams reads a handed file, or skips the test.
func seams(t testing.TB, name string) []advise.Seam {
	t.Helper()
	f, err := os.Open(filepath.Join(dataFolder, name))
	if err != nil {
		t.Skipf("the handed keystrokes are not there: %v", err)
	}
	defer f.Close()
	var list []advise.Seam
	err = eval.Each(f, func(prompt, truth string) error {
		list = append(list, advise.Seam{Prefix: []byte(prompt), Next: []byte(truth)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func open(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	path := tokenizertest.Path(t, name)
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// recorded is testdata/seams.json, which testdata/record.py writes.
type recorded struct {
	References string
	Blocks     []int
	Rows       []struct {
		Vocabulary, File, Way   string
		Seams, Sum, Max, Tokens int
		R                       [4]int
		Lost, Hit               []int
	}
}

// TestMeasure compares all figures with those of tiktoken and Hugging Face
// tokenizers on the handed keystrokes.
func TestMeasure(t *testing.T) {
	b, err := os.ReadFile("testdata/seams.json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recorded
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	var names []string
	var table []advise.Measured
	toks := map[string]*tokenizer.Tokenizer{}
	for _, row := range rec.Rows {
		if (testing.Short() || tokenizertest.Race) && (row.Vocabulary != "gpt2/tokenizer.json" || row.Way != "whole") {
			continue
		}
		if toks[row.Vocabulary] == nil {
			toks[row.Vocabulary] = open(t, row.Vocabulary)
		}
		m, err := advise.Measure(toks[row.Vocabulary], slices.Values(seams(t, row.File)), row.Way == "keystrokes", rec.Blocks...)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Join([]string{row.Vocabulary, row.File, row.Way}, " ")
		names, table = append(names, name), append(table, m)
		seams := float64(row.Seams)
		if m.Seams != row.Seams || m.Changed != row.R || m.Max != row.Max {
			t.Errorf("%s: %d seams, r %v, max %d; by %s %d, %v, %d", name, m.Seams, m.Changed, m.Max, rec.References, row.Seams, row.R, row.Max)
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s %v, recorded %v", name, what, got, want)
			}
		}
		near("dirty", m.Dirty, 1-float64(row.R[0])/seams)
		near("mean r", m.Mean, float64(row.Sum)/seams)
		near("tokens", m.PrefixTokens, float64(row.Tokens)/seams)
		for i, l := range m.Blocks {
			near(fmt.Sprintf("lost at %d", l.Block), l.Tokens, float64(row.Lost[i])/seams)
			near(fmt.Sprintf("hit at %d", l.Block), l.Requests, float64(row.Hit[i])/seams)
			if l.Most > l.Worst {
				t.Errorf("%s: a seam lost %d tokens, at most %d are possible", name, l.Most, l.Worst)
			}
		}
	}
	var out strings.Builder
	if err := advise.Markdown(&out, names, table); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
}

// TestLostTokens checks that the mean over prompt lengths is r, whatever the
// block, and the largest loss the blocks that r tokens can reach.
func TestLostTokens(t *testing.T) {
	for _, block := range []int{1, 16, 64, 528, 1056} {
		for r := 0; r <= 5; r++ {
			sum, most := 0, 0
			for n := 10 * block; n < 11*block; n++ {
				lost := advise.LostTokens(n, r, block)
				sum, most = sum+lost, max(most, lost)
			}
			if sum != r*block || most != (r+block-1)/block*block {
				t.Errorf("B = %d, r = %d: %d over %d lengths, most %d", block, r, sum, block, most)
			}
		}
	}
}

// TestMeasureToy counts by encoding everything anew.
func TestMeasureToy(t *testing.T) {
	tok := tokenizertest.Toy{Merges: [][2]string{{"a", "b"}, {"b", "a"}, {"ab", "a"}, {" ", "a"}}, PreTokenizer: tokenizertest.ByteLevel}.Open(t)
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var list []advise.Seam
		for range 5 {
			text := make([]byte, 1+r.IntN(20))
			for i := range text {
				text[i] = "ab é\n"[r.IntN(6)]
			}
			at := r.IntN(len(text) + 1)
			list = append(list, advise.Seam{Prefix: text[:at], Next: text[at:]})
		}
		got, err := advise.Measure(tok, slices.Values(list), false, 2)
		if err != nil {
			t.Fatal(err)
		}
		want, sum, lost := [4]int{}, 0, 0
		for _, s := range list {
			a, b := tok.Encode(nil, s.Prefix), tok.Encode(nil, slices.Concat(s.Prefix, s.Next))
			n := len(a) - vocab.CommonPrefix(a, b)
			want[min(n, 3)]++
			sum += n
			lost += (len(a)/2 - (len(a)-n)/2) * 2
		}
		if got.Changed != want || got.Mean != float64(sum)/5 || got.Blocks[0].Tokens != float64(lost)/5 {
			t.Fatalf("%q: %+v, want %v, sum %d, lost %d", list, got, want, sum, lost)
		}
	}
	if _, err := advise.Measure(tok, slices.Values([]advise.Seam(nil)), false, 0); err == nil {
		t.Error("a block of 0 tokens is taken")
	}
	none, err := advise.Measure(tok, slices.Values([]advise.Seam(nil)), true)
	if err != nil || none.Dirty != 0 || none.Mean != 0 || len(none.Blocks) != len(advise.DefaultBlocks) {
		t.Errorf("nothing measured: %+v, %v", none, err)
	}
}

// TestContextExample has the example by which it is often shown that a cache loses
// its prefix: "Context:" and a line's end, before a blank. No token changes.
func TestContextExample(t *testing.T) {
	for _, name := range []string{"mistral/tokenizer.json", "llama3/tokenizer.json", "cl100k_base.tiktoken", "o200k_base.tiktoken"} {
		if testing.Short() && name != "cl100k_base.tiktoken" {
			continue
		}
		m, err := advise.NewMeasurer(open(t, name))
		if err != nil {
			t.Fatal(err)
		}
		m.Add(advise.Seam{Prefix: []byte("Context:\n"), Next: []byte(" The answer is")})
		if r := m.Result(); r.Dirty != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
