package audit

import (
	"errors"
	"slices"
	"testing"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/vocab"
)

// TestTurnRequests: the requests of a conversation say of each prompt what its
// tokens say, and their losses add up to the report's.
func TestTurnRequests(t *testing.T) {
	tmpl, tok := chatTemplate(t, "qwen3", ""), turnTokenizer(t, "qwen3")
	names := namesOf(tok)
	conv, err := ProbeConversation(true, true)
	if err != nil {
		t.Fatal(err)
	}
	price := &Price{PerMillion: 3, PerMillionCached: 0.5, Currency: "EUR"}
	rep, err := Turns(t.Context(), tmpl, tok, conv, TurnsOptions{Names: names, Price: price})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Requests) != len(rep.Steps) {
		t.Fatalf("%d requests for %d steps", len(rep.Requests), len(rep.Steps))
	}
	tokens, blocks, worst := 0, 0, 0
	for i, q := range rep.Requests {
		tokens, blocks, worst = tokens+q.LostTokens, blocks+q.LostBlocks, max(worst, q.LostTokens)
		want := 0
		if i > 0 {
			s := &rep.Steps[i-1]
			held := slices.Concat(s.ids, s.out)
			want = vocab.CommonPrefix(held[:len(held)-1], rep.Steps[i].ids)
		}
		if q.ReusedTokens != want || q.Tokens != rep.Steps[i].PromptTokens || q.Name != rep.Steps[i].Name || *q.Cost != float64(q.LostTokens)*2.5/1e6 {
			t.Errorf("request %d: %+v, want %d tokens reused", i, q, want)
		}
	}
	if rep.LostTokens == 0 || tokens != rep.LostTokens || blocks != rep.LostBlocks || rep.FirstDivergence == nil || rep.FirstDivergence.LostTokens != worst ||
		*rep.Cost != float64(tokens)*2.5/1e6 || rep.Currency != "EUR" {
		t.Errorf("%d tokens lost in %d blocks, %d in %d by requests; the worst %d is %+v; cost %v", rep.LostTokens, rep.LostBlocks, tokens, blocks, worst, rep.FirstDivergence, rep.Cost)
	}
	// The probe calls a tool in turns 2 and 4, so that those have two requests.
	seen := map[string]bool{}
	for _, s := range rep.Steps {
		if seen[s.Name] {
			t.Errorf("two steps are called %q", s.Name)
		}
		seen[s.Name] = true
	}
	probe, err := Probe(t.Context(), tmpl, tok, TurnsOptions{Names: names, Price: price})
	if err != nil {
		t.Fatal(err)
	}
	lost := probe.Plain.Turns.LostTokens + probe.Tools.Turns.LostTokens + probe.Reasoning.Turns.LostTokens + probe.Both.Turns.LostTokens
	if probe.LostTokens != lost || probe.FirstDivergence == nil || probe.Cost == nil || len(probe.Requests) == 0 {
		t.Errorf("the probe loses %d, its conversations %d", probe.LostTokens, lost)
	}
	if _, err := Turns(t.Context(), tmpl, tok, conv, TurnsOptions{Price: &Price{PerMillion: 1, PerMillionCached: 2}}); !errors.Is(err, ErrPrice) {
		t.Errorf("a price that is none: %v", err)
	}
	one := &chattemplate.Conversation{Messages: conv.Messages[:3]}
	if rep, err = Turns(t.Context(), tmpl, tok, one, TurnsOptions{Names: names}); err != nil || rep.Requests == nil || rep.FirstDivergence != nil || rep.Cost != nil {
		t.Errorf("one answer: %+v, %v", rep, err)
	}
}

func TestLetters(t *testing.T) {
	for n, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "ab", 51: "az", 52: "ba", 701: "zz", 702: "aaa"} {
		if got := letters(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
