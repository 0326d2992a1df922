package remote

import (
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// stepped drives the server one token at a time under the masks of a session,
// each a list of allowed tokens, then without: what a replay that is stated
// once must equal. It returns the tokens after the plan's prompt.
func stepped(t *testing.T, v *VLLM, tok *tokenizer.Tokenizer, text string, rest int) (ids []vocab.ID, replayed int) {
	t.Helper()
	plan := heal.New(tok, tok.Encode(nil, []byte(text)), heal.Stable)
	s := plan.NewSession()
	all := slices.Clone(plan.Prompt)
	for !s.Done() {
		b := v.plain(&backend.Request{}, all)
		b["allowed_token_ids"] = slices.Collect(s.Mask().All())
		got, _, _, err := v.one(t.Context(), b, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Accept(got.ID); err != nil {
			t.Fatal(err)
		}
		all = append(all, got.ID)
	}
	replayed = len(all) - len(plan.Prompt)
	b := v.plain(&backend.Request{}, all)
	b["max_tokens"] = rest
	var a vllmAnswer
	if err := v.client.do(t.Context(), "POST", vllmCompletions, b, &a); err != nil {
		t.Fatal(err)
	}
	c, err := a.choice()
	if err != nil || c == nil {
		t.Fatalf("no choice: %v", err)
	}
	if _, _, err := c.end(); err != nil {
		t.Fatal(err)
	}
	return append(all, c.Tokens...)[len(plan.Prompt):], replayed
}
