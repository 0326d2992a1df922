package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/vocab"
)

const chatPath = "/v1/chat/completions"

// TestPassedOnChatIsPredicted sends a conversation of two turns that is passed on: of the second prompt, the first one and
// its answer are expected.
func TestPassedOnChatIsPredicted(t *testing.T) {
	const first, answer = `{"role":"user","content":"Hello"}`, "Hi there."
	second := first + `,{"role":"assistant","content":"` + answer + `"},{"role":"user","content":"And now?"}`
	for name, tc := range map[string]struct {
		answer string
		more   string // fields of the requests
		output bool   // the answer's tokens are expected
	}{
		"whole":        {`{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi there."},"finish_reason":"stop"}],"usage":{"prompt_tokens_details":{"cached_tokens":5}}}`, "", true},
		"stream":       {"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi there.\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"timings\":{\"cache_n\":5}}\n\ndata: [DONE]\n\n", "", true},
		"two answers":  {`{"choices":[{"index":0,"message":{"content":"Hi there."},"finish_reason":"stop"},{"index":1,"message":{"content":"Eh?"},"finish_reason":"stop"}],"timings":{"cache_n":5}}`, `,"n":2`, true},
		"reasoned":     {`{"choices":[{"index":0,"message":{"content":"Hi there.","reasoning_content":"Hm."},"finish_reason":"stop"}],"timings":{"cache_n":5}}`, "", false},
		"with a call":  {`{"choices":[{"index":0,"message":{"content":"Hi there.","tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}],"timings":{"cache_n":5}}`, "", false},
		"without call": {`{"choices":[{"index":0,"message":{"content":"Hi there.","tool_calls":[],"reasoning":null},"finish_reason":"stop"}],"timings":{"cache_n":5}}`, "", true},
	} {
		up := &says{answers: []string{tc.answer, tc.answer}}
		r := newRelayRig(t, func(m *gateway.Model) {
			m.Cache, m.Upstream, m.Chat = radix(t), &gateway.Upstream{Transport: up}, nil
		})
		template, err := chattemplate.New(r.server.Info().ChatTemplate, r.tok)
		if err != nil {
			t.Fatal(err)
		}
		var prompts [][]vocab.ID
		var got []map[string]string
		for _, messages := range []string{first, second} {
			conv, err := chattemplate.ParseConversation([]byte(`[` + messages + `]`))
			if err != nil {
				t.Fatal(err)
			}
			ids, err := template.Prompt(t.Context(), conv)
			if err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, ids)
			if a := r.send("POST", chatPath, `{"model":"toy","messages":[`+messages+`]`+tc.more+`}`); a.status != 200 || string(a.body) != tc.answer {
				t.Fatalf("%s: %d %s", name, a.status, a.body)
			}
			got = append(got, fields(t, r.rig))
		}
		held := prompts[0]
		if tc.output {
			held = r.tok.EncodeAfter(slices.Clone(held), held, []byte(answer))
		}
		want := 0
		for want < len(held) && held[want] == prompts[1][want] {
			want++
		}
		if want < len(prompts[0])-1 {
			t.Fatalf("the template drifts at token %d of %d", want, len(prompts[0]))
		}
		for i, want := range []int{0, want} {
			g := got[i]
			if g["predicted_cached_tokens"] != fmt.Sprint(want) || g["cached_tokens"] != "5" || g["prompt_tokens"] != fmt.Sprint(len(prompts[i])) || g["model"] != "toy" {
				t.Errorf("%s, turn %d: want %d of %d tokens, the log has %v", name, i+1, want, len(prompts[i]), g)
			}
		}
	}
}

// chatTokenizer is a server's way to tokenize conversations.
type chatTokenizer func(context.Context) ([]vocab.ID, error)

func (f chatTokenizer) TokenizeChat(ctx context.Context, _ []byte) ([]vocab.ID, error) { return f(ctx) }

// TestPassedOnChatIsNotHeldUp answers where the tokens of a conversation are not to be had.
func TestPassedOnChatIsNotHeldUp(t *testing.T) {
	const answer = `{"choices":[],"usage":{"prompt_tokens_details":{"cached_tokens":7}}}`
	for name, tc := range map[string]struct {
		tokenize chatTokenizer
		messages string
		want     string // predicted
	}{
		"known":   {func(context.Context) ([]vocab.ID, error) { return []vocab.ID{1, 2, 3}, nil }, "", "0"},
		"refused": {func(context.Context) ([]vocab.ID, error) { return nil, errors.New("no") }, "", ""},
		"hangs":   {func(ctx context.Context) ([]vocab.ID, error) { <-ctx.Done(); return nil, ctx.Err() }, "", ""},
		"panics":  {func(context.Context) ([]vocab.ID, error) { panic("x") }, "", ""},
		"image": {func(context.Context) ([]vocab.ID, error) { t.Error("an image is tokenized"); return nil, nil },
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}`, ""},
		"unasked": {func(context.Context) ([]vocab.ID, error) { t.Error("the server is asked"); return nil, nil }, "", ""},
		"tools":   {nil, `{"role":"user","content":"a"},{"role":"tool","content":"b"}`, ""},
		"refuses": {nil, `{"role":"user","content":[{"type":"text","text":7}]}`, ""},
	} {
		r := newRelayRig(t, func(m *gateway.Model) {
			m.Cache, m.Upstream, m.Chat = radix(t), &gateway.Upstream{Transport: answering(answer)}, backend.ChatTokenizer(tc.tokenize)
			m.AskChats = name != "unasked"
			if tc.tokenize == nil {
				m.Chat = nil
			}
		})
		messages := tc.messages
		if messages == "" {
			messages = `{"role":"user","content":"a"}`
		}
		start := time.Now()
		a := r.send("POST", chatPath, `{"model":"toy","messages":[`+messages+`]}`)
		if d := time.Since(start); a.status != 200 || string(a.body) != answer || d > 2*time.Second {
			t.Errorf("%s: %d %s after %v", name, a.status, a.body, d)
		}
		got := fields(t, r.rig)
		if got["predicted_cached_tokens"] != tc.want || !strings.Contains(name, "refuses") && got["cached_tokens"] != "7" {
			t.Errorf("%s: the log has %v", name, got)
		}
	}
}

// TestAttributesStandOnce logs a request that could not be healed and was passed on: readers of JSON refuse a name that
// stands twice.
func TestAttributesStandOnce(t *testing.T) {
	r := newRelayRig(t, func(m *gateway.Model) { m.Cache, m.AskChats = radix(t), true })
	r.server.err = &backend.UnsupportedError{Param: "grammar", Text: "x"}
	if a := r.complete(`{"prompt":"The capital of France is Pa","temperature":0,"max_tokens":4}`); a.status != 200 || len(r.up.bodies) != 1 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(` (\w+)=`).FindAllStringSubmatch(r.log.String(), -1) {
		if seen[m[1]] {
			t.Errorf("%s stands twice: %s", m[1], r.log)
		}
		seen[m[1]] = true
	}
	if !seen["model"] || !seen["predicted_cached_tokens"] {
		t.Errorf("%s", r.log)
	}
}
