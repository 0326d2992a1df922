//go:build llama

package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// openGemma loads Gemma 3 270M: a SentencePiece vocabulary without pretokens, in
// which runs of spaces are added tokens, and words carry theirs in front.
func openGemma(t *testing.T) (*unfray.Model, *engine.Engine) {
	t.Helper()
	path := os.Getenv("UNFRAY_TEST_GEMMA")
	if path == "" {
		t.Skip("UNFRAY_TEST_GEMMA does not name Gemma 3 270M: `make gemma` fetches it, `make test-gemma` sets it")
	}
	flags := modelFlags{path: path, lib: testSetting(t, "UNFRAY_TEST_LIB"), threads: 1, context: 256, parallel: 1}
	m, e, err := flags.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, e
}

// gemmaPrompts are broken off where SentencePiece feels it.
var gemmaPrompts = []struct {
	prompt string
	begins string // what this model goes on with when healed with exact; "": anything
}{
	{prompt: "The capital of France is "},
	{prompt: "I read a book about "},
	{prompt: "x  "},
	{prompt: "def f(x):\n   "},
	{prompt: "def f(x):\n    return x\n\n"},
	{prompt: " The capital of Fran", begins: "ce"},
	{prompt: "   The capital of Fran", begins: "ce"},
	{prompt: " "},
	{prompt: "  "},
	{prompt: "a\t"},
	{prompt: "The capital of Fran", begins: "ce"},
	{prompt: "The largest planet is Jupi", begins: "ter"},
	{prompt: "print('Hello, worl", begins: "d"},
	{prompt: "The link is <a href=\"http:", begins: "//"},
	{prompt: "See https://www.goo", begins: "gle"},
	{prompt: "日本の首都は東", begins: "京"},
	{prompt: "日本の首都は\xe6\x9d", begins: "\xb1京"},
	{prompt: "I am happy \xf0\x9f"},
	{prompt: "I am happy \xf0\x9f\x98"},
	{prompt: "👩\u200d👩\u200d"},
	{prompt: "Ελληνικ"},
	{prompt: "naïve caf"},
	{prompt: "naïve caf\xc3", begins: "\xa9"},
	{prompt: "a \xe2\x96"}, // two thirds of ▁, which would become a space
	{prompt: "the end.\n"},
	{prompt: "1, 2, 3, "},
}

// TestGemmaHealing heals prompts in all modes. Whatever is generated, the tokens
// that the model has seen spell the prompt to the byte and then the text.
func TestGemmaHealing(t *testing.T) {
	m, _ := openGemma(t)
	tok := m.Tokenizer()
	healed := map[heal.Mode]int{}
	for _, tt := range gemmaPrompts {
		for _, mode := range []heal.Mode{heal.Exact, heal.Stable, heal.Last} {
			t.Run(fmt.Sprintf("%s %q", mode, tt.prompt), func(t *testing.T) {
				r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte(tt.prompt)}, Heal: mode, MaxTokens: 6})
				if r.Healing.Mode != mode || len(r.Healing.Notes) > 0 {
					t.Fatalf("healing %+v", r.Healing)
				}
				if r.Healing.TokensRemoved == 0 {
					t.Fatal("nothing was rolled back: this prompt tests nothing")
				}
				healed[mode]++
				checkStraddling(t, tok.Vocab(), tt.prompt, r)
				if mode == heal.Exact {
					checkCover(t, m, tt.prompt, r)
				}
				if mode == heal.Exact && !strings.HasPrefix(string(r.Text), tt.begins) {
					t.Errorf("continuation %q, want %q…", r.Text, tt.begins)
				}
			})
		}
	}
	t.Logf("healed: %v", healed)
}

// checkStraddling expects the tokens of a result to spell its text, but for what
// the first repeats of the prompt's end.
func checkStraddling(t *testing.T, v *vocab.Vocab, prompt string, r *unfray.Result) {
	t.Helper()
	var spelt []byte
	for i, token := range r.Tokens {
		b := v.Bytes(token.ID)
		over, ok := bytes.CutSuffix(b, token.Bytes)
		if token.Straddles {
			ok = ok && i == 0 && len(over) > 0 && len(over) <= r.Healing.BytesPending && strings.HasSuffix(prompt, string(over))
		} else {
			ok = ok && len(over) == 0
		}
		if !ok {
			t.Errorf("token %d of the text is %q for %q, the prompt %q", i, b, token.Bytes, prompt)
		}
		spelt = append(spelt, token.Bytes...)
	}
	if !bytes.Equal(spelt, r.Text) {
		t.Errorf("the tokens spell %q, the text is %q", spelt, r.Text)
	}
}

// checkCover encodes the prompt anew with what the chosen cover adds to it, and
// expects the tokens that the model has seen.
func checkCover(t *testing.T, m *unfray.Model, prompt string, r *unfray.Result) {
	t.Helper()
	tok := m.Tokenizer()
	encode := func(text string) []vocab.ID {
		return tok.Encode([]vocab.ID{tok.Vocab().Specials().BOS}, []byte(text))
	}
	plan := heal.New(tok, encode(prompt), heal.Exact)
	whole, straddles := prompt, r.Tokens[0].Straddles
	if straddles {
		whole += string(r.Tokens[0].Bytes)
	}
	ids := encode(whole)
	if n := len(plan.Prompt); len(ids) != n+r.Healing.TokensReplayed || !slices.Equal(ids[:n], plan.Prompt) || straddles && ids[len(ids)-1] != r.Tokens[0].ID {
		t.Errorf("%q is %v, the model has seen %v, %d tokens of the cover, and %d", whole, ids, plan.Prompt, r.Healing.TokensReplayed, r.Tokens[0].ID)
	}
}

// TestGemmaExactIsTheHeaviestCover weighs every cover of some prompts by rows of
// logits that are read one by one, and expects exact to have taken the heaviest.
func TestGemmaExactIsTheHeaviestCover(t *testing.T) {
	m, e := openGemma(t)
	beside := 0
	for _, prompt := range []string{
		"The capital of France is ", " The capital of Fran", "The largest planet is Jupi", "The link is <a href=\"http:",
		"日本の首都は東", "日本の首都は\xe6\x9d", "I am happy \xf0\x9f", "naïve caf\xc3", "def f(x):\n   ", "   x = (", "if x and no",
		"  ", "See https://www.goo",
	} {
		t.Run(prompt, func(t *testing.T) {
			tok := m.Tokenizer()
			ids := append([]vocab.ID{tok.Vocab().Specials().BOS}, tok.Encode(nil, []byte(prompt))...)
			plan := heal.New(tok, ids, heal.Exact)
			if plan.Mode != heal.Exact || len(plan.Pending) == 0 {
				t.Fatalf("plan for %s with %q pending", plan.Mode, plan.Pending)
			}
			w := newWeights(t, e, plan.Prompt)
			best, second, sum := math.Inf(-1), math.Inf(-1), 0.0
			var want []vocab.ID
			report, _ := boundary.AnalyzeIDs(tok, ids)
			covers := 0
			for c := range report.All() {
				lp := 0.0
				for i, id := range c.IDs {
					lp += w.logprob(c.IDs[:i], id)
				}
				covers++
				sum += math.Exp(lp)
				if lp > best {
					best, second, want = lp, best, slices.Clone(c.IDs)
				} else {
					second = max(second, lp)
				}
			}
			if len(w.rows) > len(plan.Trunk) {
				beside++
			}
			t.Logf("%d covers, %d rows; best %.3f, second %.3f", covers, len(w.rows), best, second)
			if best-second < 0.01 {
				t.Skip("the two heaviest covers weigh the same: rounding chooses")
			}
			r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte(prompt)}, Heal: heal.Exact, MaxTokens: 2, Logprobs: true})
			var spelt []byte
			for _, id := range want {
				spelt = append(spelt, tok.Vocab().Bytes(id)...)
			}
			beyond := spelt[len(plan.Pending):]
			if !bytes.HasPrefix(r.Text, beyond) || r.Healing.TokensReplayed != len(want) || r.Tokens[0].Straddles != (len(beyond) > 0) {
				t.Fatalf("text %q after %d tokens, want %q after %v", r.Text, r.Healing.TokensReplayed, beyond, want)
			}
			if len(beyond) == 0 {
				return
			}
			// Bounds that were left open count as they are: too low, if anything.
			if got, want := r.Tokens[0].Logprob, best-math.Log(sum); got > want+0.01 || got < best-0.01 {
				t.Errorf("log-probability %.4f, by the covers %.4f, unconditioned %.4f", got, want, best)
			}
		})
	}
	if beside == 0 {
		t.Error("no prompt has a row beside its own tokens")
	}
}

// TestGemmaDraws draws after a lone blank, which half of the vocabulary may take
// the place of, and compares how often each token came with its share of all
// covers.
func TestGemmaDraws(t *testing.T) {
	m, e := openGemma(t)
	tok := m.Tokenizer()
	prompt := []byte("The capital of France is ")
	ids := tok.Encode([]vocab.ID{tok.Vocab().Specials().BOS}, prompt)
	plan := heal.New(tok, ids, heal.Exact)
	w := newWeights(t, e, plan.Prompt)
	report, _ := boundary.AnalyzeIDs(tok, ids)
	shares, all := map[vocab.ID]float64{}, 0.0
	for c := range report.All() {
		if len(c.IDs) != 1 {
			t.Fatalf("cover %v of several tokens", c.IDs)
		}
		shares[c.IDs[0]] = math.Exp(w.logprob(nil, c.IDs[0]))
		all += shares[c.IDs[0]]
	}
	const draws = 200
	counts := map[vocab.ID]float64{}
	for seed := range uint64(draws) {
		r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: prompt}, MaxTokens: 1, Sampling: backend.Sampling{Temperature: 1, Seed: &seed}})
		if r.Tokens[0].Straddles {
			counts[r.Tokens[0].ID]++
		} else {
			counts[plan.Trunk[0]]++
		}
	}
	// Pearson's statistic over the tokens of which at least five are expected,
	// and all others.
	chi, cells, rare, rarely := 0.0, 0, 0.0, float64(draws)
	for id, share := range shares {
		if want := draws * share / all; want >= 5 {
			chi += (counts[id] - want) * (counts[id] - want) / want
			rarely -= counts[id]
			cells++
		} else {
			rare += want
		}
	}
	chi += (rarely - rare) * (rarely - rare) / rare
	limit := float64(cells) + 4*math.Sqrt(2*float64(cells))
	t.Logf("%d tokens and the rest (%.0f expected, %.0f came): statistic %.1f, limit %.1f", cells, rare, rarely, chi, limit)
	if cells < 5 || chi > limit {
		t.Error("the draws do not follow the covers' shares")
	}
}

// weights reads the log-probabilities of tokens after a prompt, a row at a time.
type weights struct {
	t      *testing.T
	engine *engine.Engine
	prompt []vocab.ID
	rows   map[string][]float32
	norms  map[string]float64
}

func newWeights(t *testing.T, e *engine.Engine, prompt []vocab.ID) *weights {
	return &weights{t, e, prompt, map[string][]float32{}, map[string]float64{}}
}

func (w *weights) logprob(path []vocab.ID, id vocab.ID) float64 {
	key := fmt.Sprint(path)
	row, ok := w.rows[key]
	if !ok {
		whole := slices.Concat(w.prompt, path)
		rows, err := w.engine.Logits(w.t.Context(), whole, len(whole)-1)
		if err != nil {
			w.t.Fatal(err)
		}
		row = rows[0]
		top, sum := float64(slices.Max(row)), 0.0
		for _, x := range row {
			sum += math.Exp(float64(x) - top)
		}
		w.rows[key], w.norms[key] = row, top+math.Log(sum)
	}
	return float64(row[id]) - w.norms[key]
}

// TestGemmaClean completes prompts that no continuation can change, which this
// vocabulary has after digits, many characters of CJK, emoji and control tokens:
// healed or not, they have the same tokens.
func TestGemmaClean(t *testing.T) {
	m, _ := openGemma(t)
	for _, prompt := range []string{"The answer is 12", "日本語", " 今日は天気 😀", "<start_of_turn>user\nHi<end_of_turn>", "  ۞"} {
		want := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte(prompt), ParseSpecial: true}, Heal: heal.Off, MaxTokens: 12})
		for _, mode := range []heal.Mode{heal.Exact, heal.Stable} {
			got := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte(prompt), ParseSpecial: true}, Heal: mode, MaxTokens: 12})
			if h := got.Healing; h.Mode != mode || h.TokensRemoved != 0 || h.BytesPending != 0 {
				t.Errorf("%s %q: healing %+v, want nothing rolled back", mode, prompt, h)
			}
			if !slices.EqualFunc(got.Tokens, want.Tokens, func(a, b unfray.Token) bool { return a.ID == b.ID }) || !bytes.Equal(got.Text, want.Text) {
				t.Errorf("%s %q: %q, unhealed %q", mode, prompt, got.Text, want.Text)
			}
		}
	}
}

// TestGemmaMark: llama.cpp takes a ▁ in the text for a space, so what was rolled
// back could not be produced again. Such a prompt is left as it is, with a note.
func TestGemmaMark(t *testing.T) {
	m, _ := openGemma(t)
	r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("a ▁")}, MaxTokens: 2})
	if h := r.Healing; h.Mode != heal.Off || len(h.Notes) != 1 || h.Notes[0].Code != heal.CodeLossy {
		t.Errorf("healing %+v", h)
	}
	r = complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("the_▁_mark. The capital of Fran")}, MaxTokens: 2})
	if h := r.Healing; h.Mode != heal.Exact || !strings.HasPrefix(string(r.Text), "ce") {
		t.Errorf("a ▁ further to the front: %q, healing %+v", r.Text, h)
	}
}
