package remote

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/servertest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// wholeRows hides that a choice can be made from parts of rows.
type wholeRows struct{ backend.Chooser }

// The choice made from the few values that the server is asked for first is that
// made from whole rows, and takes few requests.
func TestConformanceLlamaCppExact(t *testing.T) {
	s := servertest.Llama(t, servertest.LlamaOptions{Threads: 1, Slots: 1})
	tok, err := tokenizer.Open(s.Model)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenLlamaCpp(t.Context(), Options{Base: s.Endpoint(t), Tokenizer: tok, Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	run := func(p *heal.Plan, c backend.Chooser, s backend.Sampling) ([]vocab.ID, backend.End) {
		ids, end := []vocab.ID{}, backend.End{}
		st, err := b.Generate(t.Context(), &backend.Request{
			Prompt: slices.Concat(p.Prompt, p.Trunk), Keep: len(p.Prompt), Choose: c, Sampling: s,
			Steer: &sessionSteer{p.NewSession()}, MaxTokens: 1,
		})
		if err != nil {
			t.Errorf("%q: %v", p.Pending, err)
			return nil, end
		}
		defer st.Close()
		for {
			tok, err := st.Next()
			if err != nil {
				return ids, st.End()
			}
			ids = append(ids, tok.ID)
		}
	}
	healed, requests, compared := 0, 0, 0
	began := time.Now()
	for i, text := range cutTexts(t) {
		if i%3 != 0 {
			continue
		}
		p, _ := planned(b, text, heal.Exact)
		seed := uint64(i)
		sampling := backend.Sampling{Temperature: float64(i%2) * 0.8, Seed: &seed}
		choice := func() *heal.Choice {
			return p.NewChoice(heal.Sampling{Temperature: sampling.Temperature}, nil)
		}
		if choice() == nil {
			continue
		}
		got, end := run(p, choice(), sampling)
		healed++
		requests += end.Requests
		if i%24 != 0 {
			continue // whole rows take a second each
		}
		compared++
		paused := time.Now()
		want, _ := run(p, wholeRows{choice()}, sampling)
		if sampling.Temperature == 0 && !slices.Equal(got, want) {
			t.Errorf("%q, pending %q: %v, from whole rows %v", text[max(0, len(text)-20):], p.Pending, got, want)
		}
		began = began.Add(time.Since(paused))
	}
	t.Logf("%d exact choices, %.2f requests each, %v each, %d compared", healed, float64(requests)/float64(max(1, healed)), time.Since(began)/time.Duration(max(1, healed)), compared)
	if healed < 25 {
		t.Errorf("only %d choices were made", healed)
	}
}
