package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/wire"
)

func TestNativeCompletion(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{"The capital of France is Paris."}})
	const head = "The capital of France is "
	ids, _ := json.Marshal(r.tok.Encode(nil, []byte(head)))
	mixed := strings.TrimSuffix(string(ids), "]") + `,"Pa"]`
	for _, tc := range []struct {
		name, body, content, stop string
		several                   bool
	}{
		{"text", `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":4,"stop":["."]}`, "ris", "word", false},
		{"IDs and text", `{"prompt":` + mixed + `,"temperature":0,"n_predict":4,"stop":["."]}`, "ris", "word", false},
		{"a limit", `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":1}`, "ris", "limit", false},
		{"several texts", `{"prompt":["The capital of France is Pa","The capital of France is P"],"temperature":0,"n_predict":4,"stop":["."]}`, "ris", "word", true},
		{"several arrays", `{"prompt":[` + string(ids) + `,"The capital of France is P"],"temperature":0,"n_predict":5,"stop":["."]}`, "Paris", "word", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := r.send("POST", "/completion", tc.body)
			got := make([]wire.Infill, 1)
			err := json.Unmarshal(a.body, &got[0])
			if tc.several {
				err = json.Unmarshal(a.body, &got)
			}
			if err != nil || a.status != 200 || got[0].Content != tc.content || got[0].StopType != tc.stop {
				t.Fatalf("%d %s: %v", a.status, a.body, err)
			}
			if tc.several && (len(got) != 2 || got[1].Content == "") {
				t.Errorf("%s", a.body)
			}
		})
	}
}

func TestNativeTokens(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{"The capital of France is Paris."}})
	body := `{"prompt":"The capital of France is Pa","temperature":0,"n_predict":3,"return_tokens":true,"n_probs":2}`
	var whole wire.Infill
	if err := json.Unmarshal(r.send("POST", "/completion", body).body, &whole); err != nil {
		t.Fatal(err)
	}
	if len(whole.Tokens) == 0 || len(whole.Probs) != len(whole.Tokens) || len(whole.Probs[0].TopLogprobs) != 2 || whole.Probs[0].ID != whole.Tokens[0] {
		t.Errorf("%+v", whole)
	}
	a := r.send("POST", "/completion", strings.TrimSuffix(body, "}")+`,"stream":true}`)
	tokens := 0
	for e := range strings.SplitSeq(strings.TrimSpace(string(a.body)), "\n\n") {
		var part wire.Infill
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &part); err != nil {
			t.Fatal(err)
		}
		tokens += len(part.Tokens)
	}
	if tokens != len(whole.Tokens) {
		t.Errorf("%d tokens in the stream, %d in the whole", tokens, len(whole.Tokens))
	}
}

func TestTokenize(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, tc := range []struct{ path, body, want string }{
		{"/tokenize", `{"content":""}`, `{"tokens":[]}`},
		{"/detokenize", `{"tokens":[]}`, `{"content":""}`},
		{"/tokenize", `{"content":"\u00e1","with_pieces":true}`, `[195]`}, // half a character is told in bytes
		{"/tokenize", `{"content":1}`, `content must be a string`},
		{"/detokenize", `{"tokens":[99999999]}`, `outside the vocabulary`},
		{"/detokenize", `{"tokens":"a"}`, `must be an array`},
	} {
		if a := r.send("POST", tc.path, tc.body); !strings.Contains(string(a.body), tc.want) {
			t.Errorf("%s %s: %d %s", tc.path, tc.body, a.status, a.body)
		}
	}
	text := "Hello <|im_start|>, wörld\n"
	a := r.send("POST", "/tokenize", `{"content":`+quoted(text)+`}`)
	var ids struct{ Tokens []int }
	if err := json.Unmarshal(a.body, &ids); err != nil || len(ids.Tokens) != len(r.tok.EncodeSpecial(nil, []byte(text))) {
		t.Fatalf("%s", a.body)
	}
	again, _ := json.Marshal(ids)
	a = r.send("POST", "/detokenize", strings.Replace(string(again), "Tokens", "tokens", 1))
	var back wire.Detokenized
	if err := json.Unmarshal(a.body, &back); err != nil || back.Content != text {
		t.Errorf("%s", a.body)
	}
}
