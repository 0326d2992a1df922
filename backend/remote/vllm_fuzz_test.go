package remote

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

// canned answers every request with the same body.
type canned struct{ contentType, body string }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {c.contentType}}, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader(c.body)), Request: r,
	}, nil
}

var toyVocab = sync.OnceValue(func() *vocab.Vocab { return backendtest.Vocabulary(backendtest.VocabularyOptions{}) })

// cannedVLLM is a backend that was not probed.
func cannedVLLM(c canned) *VLLM {
	o := Options{Transport: c, Base: &url.URL{Scheme: "http", Host: "x"}, MaxMask: 1024, Timeout: time.Minute}
	v := &VLLM{lark: true, server: server{client: newClient(&o), options: o, vocab: toyVocab()}}
	v.engine = v
	v.info = backend.Info{Name: "toy", ContextLength: 64, VocabSize: v.vocab.Len()}
	v.inspection.Logprobs, v.inspection.IDPrompts, v.inspection.IDsBack = 20, true, true
	return v
}

func checkTokens(t *testing.T, v *VLLM, toks ...backend.Token) {
	t.Helper()
	for _, tok := range toks {
		if !v.vocab.Valid(tok.ID) || tok.Logprob > 0 || math.IsNaN(tok.Logprob) {
			t.Fatalf("token %+v", tok)
		}
		for i, l := range tok.Top {
			if !v.vocab.Valid(l.ID) || l.Logprob > 0 || math.IsNaN(l.Logprob) || i > 0 && l.Logprob > tok.Top[i-1].Logprob {
				t.Fatalf("alternatives %+v", tok.Top)
			}
		}
	}
}

// Whatever a stream holds, it ends in a way that can be told, and its tokens
// are tokens.
func FuzzVLLMStream(f *testing.F) {
	withProbs := `data: {"choices":[{"index":0,"prompt_token_ids":[3],"token_ids":[7],"logprobs":{"tokens":["token_id:7"],"token_logprobs":[-0.5],"top_logprobs":[{"token_id:7":-0.5,"token_id:8":-1}]},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens_details":{"cached_tokens":1}}}` + "\n\n"
	for _, s := range []string{firstEvent + lastEvent + doneEvent, firstEvent + doneEvent, withProbs, firstEvent + withProbs + doneEvent, `data: {"error":{"code":500}}` + "\n\n", "data: {}\n\n", ""} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, body string, logprobs bool) {
		v := cannedVLLM(canned{"text/event-stream", body})
		s, err := v.Generate(t.Context(), &backend.Request{Prompt: []vocab.ID{3}, Logprobs: logprobs, MaxTokens: 8})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n := 0; ; n++ {
			tok, err := s.Next()
			switch {
			case errors.Is(err, io.EOF):
				if e := s.End(); e.Reason == "" || e.EndToken != vocab.None && !v.vocab.Valid(e.EndToken) || e.CachedTokens < 0 {
					t.Fatalf("end %+v", e)
				}
				return
			case err != nil:
				return
			case n >= 8:
				t.Fatal("more tokens than were asked for")
			}
			checkTokens(t, v, tok)
		}
	})
}

// The same for an answer to a request for one token.
func FuzzVLLMAnswer(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"index":0,"token_ids":[7],"prompt_token_ids":[3],"finish_reason":"length"}]}`,
		`{"choices":[{"index":0,"token_ids":[7],"logprobs":{"tokens":["token_id:7"],"token_logprobs":[-0.5],"top_logprobs":[{"token_id:7":-0.5,"token_id:300":-9}]}}],"usage":{"prompt_tokens_details":null}}`,
		`{"choices":[]}`, `{"tokens":[1,2]}`, `{"tokens":[-1]}`, `[]`, `{"error":{"code":400}}`, `{"detail":"x"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		v := cannedVLLM(canned{"application/json", body})
		if tok, _, _, err := v.one(t.Context(), map[string]any{}, true, 5); err == nil {
			checkTokens(t, v, tok)
		}
		r := &rowReader{v: v, ctx: t.Context(), req: &backend.Request{}, ids: []vocab.ID{3}, matters: []vocab.ID{7, 300}, told: &answered{}}
		for _, d := range []detail{someValues, moreValues, allValues} {
			if row, err := r.read(d); err == nil && (math.IsNaN(row.bound) || row.bound > 0) {
				t.Fatalf("bound %v", row.bound)
			}
		}
		ids, err := v.TokenizeChat(t.Context(), []byte(`{"messages":[]}`))
		for _, id := range ids {
			if err == nil && !v.vocab.Valid(id) {
				t.Fatalf("token %d", id)
			}
		}
	})
}
