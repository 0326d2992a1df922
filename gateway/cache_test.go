package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/prefixcache"
)

// fields takes the last record of the log apart.
func fields(t *testing.T, r *rig) map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)=("[^"]*"|\S+)`).FindAllStringSubmatch(lines[len(lines)-1], -1) {
		found[m[1]] = strings.Trim(m[2], `"`)
	}
	return found
}

func radix(t *testing.T) prefixcache.Cache {
	t.Helper()
	c, err := prefixcache.NewRadix(prefixcache.RadixOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPredictionIsLogged sends a conversation: what an earlier answer left is expected of the next prompt, whether it is
// healed or passed on, streamed or not, and never under another salt.
func TestPredictionIsLogged(t *testing.T) {
	r := newRelayRig(t, func(m *gateway.Model) { m.Cache = radix(t) })
	const first = "The capital of France is Pa"
	tokens := func(s string) int { return len(r.tok.Encode(nil, []byte(s))) }
	kept := r.tok.Encode(nil, []byte(first)) // of which healing keeps all but the last
	for _, tc := range []struct {
		name, prompt, more string
		want               int
		passed             bool
	}{
		{"new", first, "", 0, false},
		{"again", first, "", len(kept) - 2, false}, // one token is computed
		{"streamed", first, `,"stream":true`, len(kept) - 2, false},
		{"with its answer", "The capital of France is Paris.\n", "", tokens("The capital of France is Paris"), false},
		{"another salt", first, `,"cache_salt":"x"`, 0, false},
		{"looked up in vain", first, `,"prompt_logprobs":1`, 0, true},
	} {
		a := r.complete(fmt.Sprintf(`{"model":"toy","max_tokens":3,"temperature":0,"prompt":%q%s}`, tc.prompt, tc.more))
		if a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", tc.name, a.status, a.body)
		}
		got := fields(t, r.rig)
		n, err := strconv.Atoi(got["predicted_cached_tokens"])
		if err != nil || n < tc.want-1 || n > tc.want || got["boundary_loss_tokens"] == "" {
			t.Errorf("%s: want %d tokens predicted, the log has %v", tc.name, tc.want, got)
		}
		if passed := len(r.up.bodies) > 0; passed != tc.passed {
			t.Errorf("%s: passed on: %v, want %v", tc.name, passed, tc.passed)
		}
		r.up.bodies = nil
		if _, ok := got["prompt_ids"]; ok {
			t.Errorf("%s: the log has the prompt: %v", tc.name, got)
		}
	}
}

// answering is a server that gives one answer.
type answering string

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(a))), ContentLength: int64(len(a)), Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// TestReportedOfPassed reads what an answer that is passed on reports, wherever it says it.
func TestReportedOfPassed(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	for name, tc := range map[string]struct{ answer, want string }{
		"vllm":      {`{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens": 7}}}`, "7"},
		"long":      {`{"choices":[{"text":"` + long + `"}],"usage":{"prompt_tokens_details":{"cached_tokens":0}}}`, "0"},
		"llama.cpp": {`{"content":"` + long + `","timings":{"cache_n":12,"prompt_n":1}}`, "12"},
		"stream":    {`data: {"usage":{"prompt_tokens_details":{"cached_tokens":3}}}` + "\n\ndata: [DONE]\n\n", "3"},
		"none":      {`{"choices":[{"text":"cached_tokens"}]}`, ""},
		"null":      {`{"usage":{"prompt_tokens_details":{"cached_tokens":null}}}`, ""},
	} {
		r := newRelayRig(t, func(m *gateway.Model) {
			m.Cache = radix(t)
			m.Upstream = &gateway.Upstream{Transport: answering(tc.answer)}
		})
		a := r.complete(`{"model":"toy","max_tokens":3,"prompt":"The capital of France is Pa"}`, "X-Unfray-Heal", "off")
		got := fields(t, r.rig)
		if a.status != 200 || string(a.body) != tc.answer || got["cached_tokens"] != tc.want || got["predicted_cached_tokens"] != "0" {
			t.Errorf("%s: %d, the log has %v", name, a.status, got)
		}
	}
}

// says is a server that answers with one text after another.
type says struct{ answers []string }

func (s *says) RoundTrip(req *http.Request) (*http.Response, error) {
	first := s.answers[0]
	s.answers = s.answers[1:]
	return answering(first).RoundTrip(req)
}

// TestPassedOnAnswersArePredicted sends a prompt, and then the prompt with its answer: what the first answer told of its
// tokens, or its text, is expected of the second.
func TestPassedOnAnswersArePredicted(t *testing.T) {
	const prompt, text = "The capital of France is", " Paris.\n"
	for name, tc := range map[string]struct {
		answer string
		want   int // tokens of the answer that are expected
	}{
		"limit":        {`{"choices":[{"index":0,"text":" Paris.\n","finish_reason":"length"}]}`, -1},
		"end":          {`{"choices":[{"index":0,"text":" Paris.\n","finish_reason":"stop"}]}`, 0},
		"echo":         {`{"choices":[{"index":0,"text":"The capital of France is Paris.\n","finish_reason":"stop"}]}`, 0},
		"stream":       {"data: {\"choices\":[{\"index\":0,\"text\":\" Paris\"}]}\n\ndata: {\"choices\":[{\"index\":0,\"text\":\".\\n\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", 0},
		"tokens":       {`{"choices":[{"index":0,"text":" Paris.\n","token_ids":[IDS],"finish_reason":"length"}]}`, -1},
		"end's token":  {`{"choices":[{"index":0,"text":" Paris.\n","token_ids":[IDS,EOS],"finish_reason":"stop"}]}`, 0},
		"native":       {`{"index":0,"content":" Paris.\n","tokens":[],"stop_type":"eos"}`, 0},
		"wrong tokens": {`{"choices":[{"index":0,"text":" Paris.\n","token_ids":[-7,99999999],"finish_reason":"length"}]}`, -100},
		"cut":          {`{"choices":[{"index":0,"text":" Pa`, -100},
	} {
		up := &says{}
		r := newRelayRig(t, func(m *gateway.Model) { m.Cache, m.Upstream = radix(t), &gateway.Upstream{Transport: up} })
		answer := strings.NewReplacer("EOS", fmt.Sprint(r.tok.Vocab().Specials().EOS),
			"IDS", strings.Trim(strings.ReplaceAll(fmt.Sprint(r.tok.Encode(nil, []byte(text))), " ", ","), "[]")).Replace(tc.answer)
		up.answers = []string{answer, answer}
		echo := name == "echo"
		for _, p := range []string{prompt, prompt + text + "And"} {
			if a := r.complete(fmt.Sprintf(`{"model":"toy","max_tokens":9,"prompt":%q,"echo":%v}`, p, echo), "X-Unfray-Heal", "off"); a.status != 200 || string(a.body) != answer {
				t.Fatalf("%s: %d %s", name, a.status, a.body)
			}
		}
		head, whole := r.tok.Encode(nil, []byte(prompt)), r.tok.Encode(nil, []byte(prompt+text))
		want := max(len(head), len(whole)+tc.want)
		if got := fields(t, r.rig)["predicted_cached_tokens"]; got != fmt.Sprint(want) {
			t.Errorf("%s: %s tokens are expected, want %d", name, got, want)
		}
	}
}

// TestPassedOnPromptIsWhole expects of a prompt that could be healed and is passed on all of its tokens.
func TestPassedOnPromptIsWhole(t *testing.T) {
	r := newRelayRig(t, func(m *gateway.Model) { m.Cache = radix(t) })
	const prompt = "The capital of France is Pa"
	for _, more := range []string{"", `,"return_token_ids":true`} {
		r.complete(fmt.Sprintf(`{"model":"toy","max_tokens":9,"prompt":%q%s}`, prompt, more), "X-Unfray-Heal", map[bool]string{true: "off", false: "stable"}[more == ""])
	}
	if got, want := fields(t, r.rig)["predicted_cached_tokens"], fmt.Sprint(len(r.tok.Encode(nil, []byte(prompt)))-1); got != want || len(r.up.bodies) != 2 {
		t.Errorf("%s tokens are expected, want %s; the server saw %q", got, want, r.up.bodies)
	}
}

// TestRefusedIsNotExpected expects nothing of prompts that the server refused to heal, and all of one that was passed on
// for it.
func TestRefusedIsNotExpected(t *testing.T) {
	r := newRelayRig(t, func(m *gateway.Model) { m.Cache = radix(t) })
	const prompt = "The capital of France is Pa"
	whole := len(r.tok.Encode(nil, []byte(prompt))) - 1
	for i, tc := range []struct {
		err  error
		want string
	}{
		{&backend.UpstreamError{Status: 400, Body: []byte("no")}, ""},
		{&backend.UnsupportedError{Param: "grammar", Text: "no"}, "0"},
		{&backend.UnsupportedError{Param: "grammar", Text: "no"}, fmt.Sprint(whole)},
	} {
		r.server.err = tc.err
		r.complete(fmt.Sprintf(`{"model":"toy","max_tokens":3,"prompt":%q}`, prompt))
		if got := fields(t, r.rig)["predicted_cached_tokens"]; got != tc.want {
			t.Errorf("%d: %q tokens are expected, want %q", i, got, tc.want)
		}
	}
}

// TestPromptIDsAreLoggedOnRequest lets the log be replayed.
func TestPromptIDsAreLoggedOnRequest(t *testing.T) {
	r := newRig(t, rigOptions{
		scripts: []string{"The capital of France is Paris."},
		cfg:     gateway.Config{Models: []gateway.Model{{Cache: radix(t)}}, LogPrompts: true},
	})
	r.complete(`{"prompt":"The capital of France is Pa","max_tokens":2,"temperature":0}`)
	if !regexp.MustCompile(`prompt_ids="\[\d+ .*output_ids="\[\d+`).MatchString(r.log.String()) {
		t.Errorf("the log has %s", r.log)
	}
}
