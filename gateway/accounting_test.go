package gateway_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/gateway"
)

// normalized drops what differs from request to request, or says how the healing
// went.
func normalized(t *testing.T, a *answer) []any {
	t.Helper()
	var parts []string
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		parts = strings.Split(strings.TrimSpace(string(a.body)), "\n\n")
	} else {
		parts = []string{string(a.body)}
	}
	var out []any
	for _, p := range parts {
		p = strings.TrimPrefix(p, "data: ")
		var v map[string]any
		if json.Unmarshal([]byte(p), &v) != nil {
			out = append(out, p)
			continue
		}
		for _, name := range []string{"id", "created", "unfray"} {
			delete(v, name)
		}
		if choices, ok := v["choices"].([]any); ok {
			for _, c := range choices {
				delete(c.(map[string]any), "unfray")
			}
		}
		out = append(out, v)
	}
	return out
}

// Whoever runs the model, a request is answered and counted in the same way: the
// model of the toy is the same here and "on a server".
func TestAccountingIsTheSame(t *testing.T) {
	scripts := []string{"The capital of France is Paris.\n\nIt is a city."}
	local := newRig(t, rigOptions{scripts: scripts})
	far := newRig(t, rigOptions{scripts: scripts})
	m, err := unfray.NewModel(&serverToy{Toy: far.toy}, far.tok)
	if err != nil {
		t.Fatal(err)
	}
	if far.gateway, err = gateway.New(gateway.Config{
		Models: []gateway.Model{{Name: "toy", Model: m, Upstream: &gateway.Upstream{Transport: &recorder{}}, Native: true}},
		Log:    newLog(far.log),
	}); err != nil {
		t.Fatal(err)
	}
	const p = `"prompt":"The capital of France is Pa","unfray":{"heal":"stable"}`
	for _, body := range []string{
		`"max_tokens":5,"temperature":0`,
		`"max_tokens":1,"temperature":0`,
		`"max_tokens":9,"temperature":0,"stop":["."]`,
		`"max_tokens":9,"temperature":0,"stop":["ris"]`,
		`"max_tokens":9,"temperature":0,"stop":["Paris"]`,
		`"max_tokens":9,"temperature":0,"stop":["Pa","\n"]`,
		`"max_tokens":4,"temperature":0,"echo":true`,
		`"max_tokens":4,"temperature":0,"logprobs":2`,
		`"max_tokens":4,"temperature":0.9,"seed":3,"n":3`,
		`"max_tokens":4,"temperature":0.9,"seed":3,"n":2,"logprobs":0`,
		`"max_tokens":40,"temperature":0`,
		`"max_tokens":4,"temperature":0,"suffix":""`,
	} {
		for _, stream := range []string{"", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`} {
			if stream != "" && strings.Contains(body, `"n":`) {
				continue // the order of the choices' chunks is free
			}
			request := fmt.Sprintf("{%s,%s%s}", p, body, stream)
			a, b := local.complete(request), far.complete(request)
			if a.status != 200 || b.status != 200 {
				t.Fatalf("%s: %d, %d %s", request, a.status, b.status, b.body)
			}
			if x, y := normalized(t, a), normalized(t, b); !reflect.DeepEqual(x, y) {
				t.Errorf("%s:\nhere     %v\non a server %v", request, x, y)
			}
		}
	}
}

// onServer makes a gateway to a model that "a server" runs of a rig.
func onServer(t *testing.T, r *rig, change func(*gateway.Model)) {
	t.Helper()
	m, err := unfray.NewModel(&serverToy{Toy: r.toy}, r.tok)
	if err != nil {
		t.Fatal(err)
	}
	served := gateway.Model{Name: "toy", Model: m, Upstream: &gateway.Upstream{Transport: &recorder{}}, Native: true}
	if change != nil {
		change(&served)
	}
	if r.gateway, err = gateway.New(gateway.Config{Models: []gateway.Model{served}, Log: newLog(r.log)}); err != nil {
		t.Fatal(err)
	}
}

// Likewise for other shapes of prompts, clean ones where somebody asks, and those
// to be filled in.
func TestAccountingIsTheSameForShapes(t *testing.T) {
	scripts := []string{"The capital of France is Paris.\n\nIt is a city."}
	local, far := newRig(t, rigOptions{scripts: scripts}), newRig(t, rigOptions{scripts: scripts})
	onServer(t, far, nil)
	ids := func(s string) string {
		b, _ := json.Marshal(local.tok.Encode(nil, []byte(s)))
		return string(b)
	}
	fills, farFills := fillRig(t), fillRig(t)
	onServer(t, farFills, nil)
	const (
		stable = `"temperature":0,"unfray":{"heal":"stable"}`
		typed  = `"<|fim_prefix|>x = hel<|fim_suffix|>` + "\\nprint(x) # what was greeted\\nend of the file\\n" + `<|fim_middle|>"`
		infill = `"input_prefix":"x = ","prompt":"hel","input_suffix":"` + "\\nprint(x) # what was greeted\\nend of the file\\n" + `"`
	)
	for _, tc := range []struct {
		here, there *rig
		path, body  string
		want        string // in both answers
	}{
		{local, far, "/v1/completions", `"max_tokens":3,"prompt":["The capital of France is Pa","The capital","The capital of France is P"]`, `"index":2`},
		{local, far, "/v1/completions", `"max_tokens":3,"echo":true,"prompt":` + ids("The capital of France is Pa"), "The capital of France is Paris"},
		{local, far, "/v1/completions", `"max_tokens":3,"logprobs":2,"prompt":[` + ids("The capital of France is Pa") + `,` + ids("The capital") + `]`, `"text_offset"`},
		{local, far, "/v1/completions", `"max_tokens":3,"prompt":"The capital of France is Paris.\n\n"`, `"tokens_removed"`},
		{local, far, "/completion", `"n_predict":0,"prompt":"The capital of France is Pa"`, `"tokens_predicted":0`},
		{local, far, "/completion", `"n_predict":3,"prompt":[` + strings.Trim(ids("The capital of France is "), "[]") + `,"Pa"]`, `"content":"ris`},
		{fills, farFills, "/v1/completions", `"max_tokens":50,"prompt":` + typed, `"text":"lo world(1, 2)`},
		{fills, farFills, "/v1/completions", `"max_tokens":50,"prompt":"x = hel","suffix":"\nprint(x) # what was greeted\nend of the file\n"`, `"text":"lo world(1, 2)"`},
		{fills, farFills, "/infill", `"n_predict":200,` + infill, `"content":"lo world(1, 2)"`},
		{fills, farFills, "/infill", `"n_predict":0,` + infill, `"content":""`},
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			if stream != "" && strings.Contains(tc.body, `"prompt":[`) && tc.path != "/completion" {
				continue // the order of the choices' chunks is free
			}
			request := fmt.Sprintf("{%s,%s%s}", stable, tc.body, stream)
			a, b := tc.here.send("POST", tc.path, request), tc.there.send("POST", tc.path, request)
			if a.status != 200 || b.status != 200 || stream == "" && !strings.Contains(string(b.body), tc.want) {
				t.Errorf("%s: %d %s, %d %s", request, a.status, a.body, b.status, b.body)
				continue
			}
			if x, y := normalized(t, a), normalized(t, b); !reflect.DeepEqual(x, y) {
				t.Errorf("%s:\nhere     %v\non a server %v", request, x, y)
			}
		}
	}
}
