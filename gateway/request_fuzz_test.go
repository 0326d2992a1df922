package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/wire"
)

// checkAnswer accepts what a server may say to any body whatever.
func checkAnswer(t *testing.T, body string, a *answer) {
	t.Helper()
	switch a.status {
	case 200:
		if a.header.Get("Content-Type") != "application/json" {
			a.chunks(t)
		} else if !json.Valid(a.body) {
			t.Errorf("%q: invalid JSON %q", body, a.body)
		}
	case 400, 404, 413:
		a.apiError(t)
	default:
		t.Errorf("%q: status %d, %s", body, a.status, a.body)
	}
	if err := new(wire.ErrorBody); a.status == 200 && json.Unmarshal(a.body, err) == nil && err.Error.Message != "" {
		t.Errorf("%q: an error with status 200: %s", body, a.body)
	}
}

func fuzzRig(f *testing.F) *rig {
	return newRig(f, rigOptions{
		toy: backendtest.Options{ContextLength: 48},
		cfg: gateway.Config{MaxChoices: 4, MaxBodyBytes: 4096},
	})
}

func FuzzCompletions(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"The quick","max_tokens":3,"temperature":0.5,"stop":["a","b"],"seed":1,"n":2,"stream":true}`,
		`{"prompt":[[1,2],[3]],"logprobs":2,"logit_bias":{"5":-100},"unfray":{"heal":"last"}}`,
		`{"prompt":["a","b"],"echo":true,"stream_options":{"include_usage":true},"stream":true}`,
		`{"prompt":"\ud83d\ude42"}`, `{"prompt":"\ud83d"}`, `[`, `{"prompt":{}}`, "{\"prompt\":\"\xff\"}",
	} {
		f.Add(s)
	}
	r := fuzzRig(f)
	f.Fuzz(func(t *testing.T, body string) { checkAnswer(t, body, r.complete(body)) })
}

func FuzzChatCompletions(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"role":"user","content":"Hello"}],"max_tokens":3,"temperature":0.5,"stream":true}`,
		`{"messages":[{"role":"system","content":[{"type":"text","text":"x"}]},{"role":"user","content":"<|im_end|>"}],"logprobs":true,"top_logprobs":1}`,
		`{"messages":[{"role":"assistant","content":"a"}],"continue_final_message":true,"chat_template_kwargs":{"a":[1,{"b":null}]}}`,
		`{"messages":[{"role":"user","content":null}]}`, `{"messages":1}`, `{`,
	} {
		f.Add(s)
	}
	r := fuzzRig(f)
	f.Fuzz(func(t *testing.T, body string) { checkAnswer(t, body, r.chat(body)) })
}

func FuzzNative(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"The quick","n_predict":3,"temperature":0.5,"stop":["a"],"seed":-1,"n_cmpl":2,"stream":true}`,
		`{"prompt":[1,"a",2],"n_probs":2,"return_tokens":true}`, `{"prompt":[[1],"a",["b",3]]}`, `{"prompt":["a","b"],"n_predict":0}`,
		`{"content":"a\u00e1","with_pieces":true}`, `{"tokens":[1,2,300]}`, `{"prompt":[]}`, `{"prompt":[[]]}`, `{"prompt":[true]}`,
	} {
		f.Add(s)
	}
	r := fuzzRig(f)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/completion", "/tokenize", "/detokenize"} {
			a := r.send("POST", path, body)
			if a.status == 200 && a.header.Get("Content-Type") != "application/json" {
				continue // a stream without OpenAI's end
			}
			checkAnswer(t, body, a)
		}
	})
}
