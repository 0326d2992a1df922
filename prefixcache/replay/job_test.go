package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// toyTokenizer merges "ab", puts <s> before texts, and has <|end|> as a control
// token.
func toyTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	toy := tokenizertest.Toy{
		Merges: [][2]string{{"a", "b"}},
		Added:  []tokenizertest.ToyAdded{{Content: "<s>", Special: true}, {Content: "<|end|>", Special: true}},
		PostProcessor: `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],` +
			`"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[257],"tokens":["<s>"]}}}`,
	}
	tok, err := tokenizer.Read(bytes.NewReader(toy.JSON()), "tokenizer.json", tokenizer.ByFile)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// textPrompt is a request of a text.
func textPrompt(text, output string) trace.Request {
	return trace.Request{Text: []byte(text), Output: []byte(output), PromptTokens: -1, OutputTokens: -1, Cached: -1}
}

func replayed(t *testing.T, reqs requests, opt Options) (tokens []int, losses []string, res *Result) {
	t.Helper()
	opt.NewCache, opt.NewUnlimited = paged(1, 0), paged(1, 0)
	opt.OnRecord = func(r *Record) error {
		tokens, losses = append(tokens, r.PromptTokens), append(losses, fmt.Sprint(r.Loss))
		return nil
	}
	res, err := Run(t.Context(), &reqs, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tokens, losses, res
}

// Losses are hit, capacity, routing, rounding, boundary, content.
func TestTextTraces(t *testing.T) {
	tok := toyTokenizer(t)
	tests := []struct {
		name   string
		reqs   requests
		tokens []int
		losses []string
	}{
		// The last token is always computed.
		{"again", requests{textPrompt("xyz", ""), textPrompt("xyz", "")}, []int{4, 4}, []string{"{0 0 0 0 0 4}", "{3 0 0 1 0 0}"}},
		{"output replayed", requests{textPrompt("x", "yz"), textPrompt("xyzw", "")}, []int{2, 5}, []string{"{0 0 0 0 0 2}", "{3 0 0 1 0 1}"}},
		// a | b was generated, ab is read: its two bytes are inside what was seen.
		{"output merged", requests{textPrompt("xa", "bz"), textPrompt("xabzw", "")}, []int{3, 5}, []string{"{0 0 0 0 0 3}", "{2 0 0 0 2 1}"}},
		// ab was read; a is seen text, made of another token.
		{"cut inside", requests{textPrompt("xab", ""), textPrompt("xac", "")}, []int{3, 4}, []string{"{0 0 0 0 0 3}", "{2 0 0 0 1 1}"}},
		// a was read; of ab a part is new, so it is content.
		{"grown", requests{textPrompt("xa", ""), textPrompt("xab", "")}, []int{3, 3}, []string{"{0 0 0 0 0 3}", "{2 0 0 0 0 1}"}},
		{"control token", requests{textPrompt("x<|end|>y", ""), textPrompt("x<|end|>z", "")}, []int{4, 4}, []string{"{0 0 0 0 0 4}", "{3 0 0 0 0 1}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tokens, losses, _ := replayed(t, tt.reqs, Options{Tokenizer: tok})
			if !slices.Equal(tokens, tt.tokens) || !slices.Equal(losses, tt.losses) {
				t.Errorf("%v tokens, %v; want %v, %v", tokens, losses, tt.tokens, tt.losses)
			}
		})
	}
}

func TestConversations(t *testing.T) {
	request := func(line int, messages string) trace.Request {
		return trace.Request{Line: line, Messages: json.RawMessage(messages), Tools: json.RawMessage(`[]`), PromptTokens: -1, OutputTokens: -1, Cached: -1}
	}
	render := func(messages, tools json.RawMessage) ([]vocab.ID, error) {
		if string(tools) != "[]" {
			t.Errorf("tools %s", tools)
		}
		if string(messages) == `"?"` {
			return nil, errors.New("no such role")
		}
		return make([]vocab.ID, len(messages)), nil
	}
	tokens, _, res := replayed(t, requests{request(1, `["a"]`), request(2, `["ab"]`)}, Options{Render: render})
	if !slices.Equal(tokens, []int{5, 6}) || res.HitTokens != 5 {
		t.Errorf("%v tokens, %d hit", tokens, res.HitTokens)
	}
	src := requests{request(4, `"?"`)}
	_, err := Run(t.Context(), &src, Options{NewCache: paged(1, 0), Render: render})
	if err == nil || err.Error() != "replay: request at line 4: no such role" {
		t.Errorf("error %v", err)
	}
	tokens, _, res = replayed(t, requests{request(3, `["a"]`), request(4, `"?"`), request(5, `"?"`), request(6, `["ab"]`)}, Options{Render: render, SkipRefused: true})
	if !slices.Equal(tokens, []int{5, 6}) || res.Refused != 2 || res.NoContent != 0 ||
		!slices.Contains(res.Notes, "Conversations left out that have no prompt: 2. The first: request at line 4: no such role.") {
		t.Errorf("%v tokens, %d refused, %q", tokens, res.Refused, res.Notes)
	}
	src = requests{request(4, `"?"`)}
	if _, err := Run(t.Context(), &src, Options{NewCache: paged(1, 0), Render: render, SkipRefused: true}); err == nil || err.Error() != "replay: request at line 4: no such role" {
		t.Errorf("error %v", err)
	}
	src = requests{request(1, `["a"]`), textPrompt("x", "")}
	if _, err := Run(t.Context(), &src, Options{NewCache: paged(1, 0)}); !errors.Is(err, ErrNoContent) {
		t.Errorf("error %v, want %v", err, ErrNoContent)
	}
}

func TestNotes(t *testing.T) {
	tok := toyTokenizer(t)
	long := textPrompt("xy", "z")
	long.PromptTokens = 7
	_, _, res := replayed(t, requests{long, textPrompt("xy", "")}, Options{Tokenizer: tok})
	want := []string{
		"Requests run one after the other in the trace's order: none holds room while another runs.",
		"Outputs that the trace does not tell: 1. What later prompts repeat of them counts as new content.",
		"Prompts with another number of tokens here than the trace tells: 1 of 1. The tokenizer or the template may not be the engine's.",
	}
	if !slices.Equal(res.Notes, want) {
		t.Errorf("notes %q", res.Notes)
	}
	// A length that the blocks do not fit, one for which they do, and none.
	blocks := requests{
		{Blocks: []uint64{1, 2, 3}, BlockTokens: 4, PromptTokens: 5},
		{Blocks: []uint64{1, 2, 3}, BlockTokens: 4, PromptTokens: 9},
		{Blocks: []uint64{1, 2, 3}, BlockTokens: 4, PromptTokens: -1},
	}
	var tokens []int
	res, err := Run(t.Context(), &blocks, Options{
		NewCache: paged(4, 0), Workers: 2, Routing: PrefixAware, Concurrency: 3,
		OnRecord: func(r *Record) error { tokens = append(tokens, r.PromptTokens); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tokens, []int{5, 9, 12}) {
		t.Errorf("tokens %v", tokens)
	}
	want = []string{
		"3 requests run at a time on each worker: the next begins when the oldest ends.",
		"The router knows which prefixes it sent where, without limit, and not what workers threw away. It follows more than 30 % of a prompt, as SGLang's router does, unless a worker has over 64 requests more than another and over 1.5 times as many.",
		"Without times there are no running requests to balance: those that a worker was sent so far count instead.",
		"Outputs that the trace does not tell: 3. What later prompts repeat of them counts as new content.",
		"Prompts with more or fewer blocks than their length needs: 1 of 3. They were cut to fit.",
	}
	if !slices.Equal(res.Notes, want) {
		t.Errorf("notes %q", res.Notes)
	}
}

func TestRunRefuses(t *testing.T) {
	one := textPrompt("x", "")
	one.IDs = []vocab.ID{1, 2}
	broken := func() (prefixcache.Cache, error) { return nil, errors.New("no such engine") }
	tests := []struct {
		name string
		src  requests
		opt  Options
		want string
	}{
		{"no cache", nil, Options{}, "replay: Options.NewCache must be set"},
		{"workers", nil, Options{NewCache: broken, Workers: 5000}, "replay: 5000 workers: there must be 1 to 1024"},
		{"routing", nil, Options{NewCache: broken, Routing: 9}, "replay: unknown routing Routing(9)"},
		{"concurrency", nil, Options{NewCache: broken, Concurrency: -1}, "replay: Options.Concurrency is negative"},
		{"warm-up", nil, Options{NewCache: broken, Warmup: 1}, "replay: a warm-up of 1 of the requests: it must be 0 to below 1"},
		{"buckets", nil, Options{NewCache: broken, Buckets: -1}, "replay: Options.Buckets is negative"},
		{"both", nil, Options{NewCache: broken, Timing: &Timing{Prefill: 1, Decode: 1}, Concurrency: 1}, "replay: give Options.Timing or Concurrency, not both"},
		{"rates", nil, Options{NewCache: broken, Timing: &Timing{Prefill: 1}}, "replay: Timing needs a rate of reading and one of generating, in tokens a second, above 0"},
		{"cache", nil, Options{NewCache: broken}, "no such engine"},
		{"unlimited cache", nil, Options{NewCache: paged(1, 0), NewUnlimited: broken}, "no such engine"},
		{"small unlimited cache", requests{one}, Options{NewCache: paged(1, 0), NewUnlimited: paged(1, 2)}, "replay: request at line 0, in the cache without limit: " + prefixcache.ErrTooLarge.Error()},
		{"blocks without a size", requests{{Line: 3, Blocks: []uint64{1}}}, Options{NewCache: paged(1, 0)}, "replay: request at line 3 names blocks and not how many tokens they have"},
		{"blocks too large", requests{{Line: 3, Blocks: []uint64{1, 2}, BlockTokens: 1 << 30}}, Options{NewCache: paged(1, 0)}, "replay: request at line 3 has 2 blocks of 1073741824 tokens: a prompt may have 2147483647"},
		{"blocks for slots", requests{{Line: 3, Blocks: []uint64{1}, BlockTokens: 4}}, Options{NewCache: func() (prefixcache.Cache, error) { return &shelf{}, nil }}, "replay: request at line 3: the cache takes tokens, and the trace has identities of blocks only: choose another engine"},
		{"thresholds", nil, Options{NewCache: broken, Thresholds: &Thresholds{Match: math.NaN()}}, "replay: thresholds of the router: Match must be 0 to 1, the others 0 or more"},
		{"caller", requests{one}, Options{NewCache: paged(1, 0), OnRecord: func(*Record) error { return errors.New("disk full") }}, "disk full"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Run(t.Context(), &tt.src, tt.opt); err == nil || err.Error() != tt.want {
				t.Errorf("error %v\nwant  %s", err, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := requests{one}
	if _, err := Run(ctx, &src, Options{NewCache: paged(1, 0)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	blocks := requests{{Blocks: []uint64{1}, BlockTokens: 4}}
	if _, err := Sweep(ctx, &blocks, SweepOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// The result's JSON has the names that the command promises.
func TestResultJSON(t *testing.T) {
	src := requests{textPrompt("xy", "")}
	res, err := Run(t.Context(), &src, Options{Policy: "vllm", NewCache: paged(1, 0), Tokenizer: toyTokenizer(t)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"policy":"vllm","hit_tokens":0,"prompt_tokens":3,"hit_rate":0,"block_tokens":1,"blocks":3,"evictions":0,`; !strings.HasPrefix(string(text), want) {
		t.Errorf("got %s", text)
	}
}
