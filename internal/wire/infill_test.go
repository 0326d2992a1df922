package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func TestDecodeInfill(t *testing.T) {
	for _, c := range []struct {
		body string
		want InfillRequest
	}{
		{`{}`, InfillRequest{}},
		// As llama.vscode sends it.
		{`{"input_prefix":"a\n","input_suffix":"b","input_extra":[{"filename":"x.py","text":"t","time":3},{"text":""}],"prompt":"  c",
			"n_predict":128,"n_cmpl":1,"top_k":40,"top_p":0.99,"stream":false,"samplers":["top_k","top_p","infill"],"cache_prompt":true,
			"id_slot":0,"n_indent":4,"t_max_prompt_ms":500,"t_max_predict_ms":500}`,
			InfillRequest{
				Sampling: Sampling{MaxTokens: ptr(128), N: ptr(1), TopK: ptr(40), TopP: ptr(0.99)},
				Prefix:   ptr("a\n"), Suffix: ptr("b"), Prompt: "  c", Extra: []InfillFile{{"x.py", "t"}, {}},
				Ignored: []string{"input_extra[0].time", "samplers", "cache_prompt", "id_slot", "n_indent", "t_max_prompt_ms", "t_max_predict_ms"},
			}},
		{`{"input_prefix":"","input_suffix":null,"n_predict":-1,"seed":-1,"max_tokens":3,"n":2}`, InfillRequest{Prefix: ptr(""), Endless: true, Ignored: []string{"max_tokens", "n"}}},
		{`{"n_predict":0,"seed":4,"unfray":{"heal":"off"},"stop":"x","repeat_penalty":1.5}`, InfillRequest{Sampling: Sampling{
			MaxTokens: ptr(0), Seed: ptr(int64(4)), Stop: []string{"x"}, RepetitionPenalty: ptr(1.5), Unfray: Options{Heal: ptr("off")},
		}}},
	} {
		got, err := DecodeInfill([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
		} else if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.body, *got, c.want)
		}
	}
}

func TestDecodeInfillRefuses(t *testing.T) {
	for body, param := range map[string]string{
		`{"input_prefix":1}`:                        "input_prefix",
		`{"input_suffix":["a",1]}`:                  "input_suffix",
		`{"input_extra":"a"}`:                       "input_extra",
		`{"input_extra":["a"]}`:                     "input_extra[0]",
		`{"input_extra":[{"text":"a"},{"text":1}]}`: "input_extra[1].text",
		`{"n_predict":"a"}`:                         "n_predict",
		`{"n_predict":1e20}`:                        "n_predict",
		`{"seed":1.5}`:                              "seed",
		`{"prompt":["a"]}`:                          "prompt",
		`{"prompt":"a","prompt":"b"}`:               "prompt",
		`[]`:                                        "",
		`{"prompt":"` + "\xff" + `"}`:               "",
	} {
		_, err := DecodeInfill([]byte(body))
		var bad *DecodeError
		if !errors.As(err, &bad) || bad.Param != param {
			t.Errorf("%s: %v, want an error at %q", body, err, param)
		}
	}
}

func FuzzDecodeInfill(f *testing.F) {
	for _, s := range []string{`{}`, `{"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":"x","text":"t"}],"n_predict":-1}`, `{"input_extra":[[]]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		req, err := DecodeInfill(b)
		if err != nil {
			if req != nil || !errors.As(err, new(*DecodeError)) {
				t.Fatalf("%v, %v", req, err)
			}
			return
		}
		if len(req.Extra) > len(b) || req.Endless && req.MaxTokens != nil {
			t.Fatalf("%+v", req)
		}
	})
}

func TestInfillForm(t *testing.T) {
	for _, c := range []struct {
		v    Infill
		want string
	}{
		{Infill{Content: "a", Tokens: []int32{}}, `{"index":0,"content":"a","tokens":[],"stop":false,"tokens_predicted":0,"tokens_evaluated":0}`},
		{Infill{Index: 1, Tokens: []int32{}, Stop: true, TokensPredicted: 2, TokensEvaluated: 3, InfillEnd: &InfillEnd{Model: "m", StopType: "eos"}},
			`{"index":1,"content":"","tokens":[],"stop":true,"tokens_predicted":2,"tokens_evaluated":3,"model":"m","has_new_line":false,"truncated":false,"stop_type":"eos","stopping_word":"","tokens_cached":0,"timings":{"cache_n":0,"prompt_n":0,"predicted_n":0}}`},
	} {
		got, err := json.Marshal(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
}
