package unfray_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/grammar"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

func regex(t testing.TB, src string) *grammar.Grammar {
	t.Helper()
	g, err := grammar.ParseRegex(src)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGrammar cuts prompts at every byte, inside characters too. Whatever the
// mode, what follows is of the grammar, or a beginning of it where the limit was
// met, and the prompt stays as it was.
func TestGrammar(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{})
	const text = "function userName is é The capital 日 of "
	r := rand.New(rand.NewPCG(1, 2))
	for _, src := range []string{`[0-9]{1,3}`, ` ?[a-z]+!`, `(Name|name) [0-9]+`, `[^a-z]+x`, `é?日?`} {
		g := regex(t, src)
		for cut := 1; cut < len(text); cut++ {
			for _, mode := range []heal.Mode{heal.Off, heal.Last, heal.Stable, heal.Exact} {
				seed := r.Uint64()
				res, err := m.Complete(t.Context(), &unfray.Request{
					Prompt: unfray.Prompt{Text: []byte(text[:cut])}, Heal: mode, Grammar: g, MaxTokens: 8,
					Sampling: backend.Sampling{Temperature: float64(seed % 2), Seed: &seed},
				})
				if err != nil {
					t.Fatalf("%q, %s, %s: %v", text[:cut], src, mode, err)
				}
				if s, ok := g.Start().AdvanceBytes(res.Text); !ok || res.FinishReason == backend.FinishStop && !s.Accepting() {
					t.Fatalf("%q, %s, %s: %q (%s)", text[:cut], src, mode, res.Text, res.FinishReason)
				}
			}
		}
	}
}

// TestGrammarInsidePrompt begins the grammar before the prompt's end.
func TestGrammarInsidePrompt(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{})
	g := regex(t, `(userName|userId)=[0-9]`)
	for cut := 1; cut < len("userName="); cut++ {
		prompt := "x = " + "userName="[:cut]
		for _, mode := range []heal.Mode{heal.Stable, heal.Exact} {
			res := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte(prompt)}, Heal: mode, Grammar: g, GrammarBytes: cut, MaxTokens: 20})
			if whole := "userName="[:cut] + string(res.Text); !g.Match([]byte(whole)) {
				t.Errorf("%q, %s: %q", prompt, mode, res.Text)
			}
		}
	}
	for _, n := range []int{-1, 2, 100} {
		_, err := m.Complete(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x = u")}, Grammar: g, GrammarBytes: n})
		var re *unfray.RequestError
		if !errors.As(err, &re) || !strings.Contains(re.Param, "grammar_bytes") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestGrammarDeadEnd has a grammar for which the vocabulary has tokens at
// first, and then none.
func TestGrammarDeadEnd(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{Missing: "\x04", Merges: [][2]string{{"a", "b"}}})
	toy := backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab()})
	defer toy.Close()
	m, err := unfray.NewModel(toy, tok)
	if err != nil {
		t.Fatal(err)
	}
	req := &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x y")}, Grammar: regex(t, `ab\x04`), MaxTokens: 5}
	if _, err := m.Complete(t.Context(), req); err == nil || !strings.Contains(err.Error(), "grammar") {
		t.Errorf("error %v", err)
	}
	req.Grammar = regex(t, `\x04`)
	var re *unfray.RequestError
	if _, err := m.Complete(t.Context(), req); !errors.As(err, &re) || re.Param != "grammar" {
		t.Errorf("error %v", err)
	}
}
