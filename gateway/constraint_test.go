package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// TestHostileConstraints sends odd values: each is answered in time, and not
// with a server's error.
func TestHostileConstraints(t *testing.T) {
	r := newRig(t, rigOptions{})
	g := `"grammar":"root ::= [a-z ]{0,5} \".\""`
	for _, body := range []string{
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":0}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":5}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":6}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":-1}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":1e99}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":1.5}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":"5"}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":9223372036854775807}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":-9223372036854775808}}`,
		`{"prompt":"hello",` + g + `,"unfray":{"grammar_bytes":null}}`,
		`{"prompt":"hello","unfray":{"grammar_bytes":3}}`,
		`{"prompt":[65,66],` + g + `,"unfray":{"grammar_bytes":1}}`,
		`{"prompt":["a","hello"],` + g + `,"unfray":{"grammar_bytes":2}}`,
		`{"prompt":"hello",` + g + `,"suffix":"x"}`,
		`{"prompt":"hello","suffix":"x"}`,
		`{"prompt":"hello","suffix":"x","stream":true}`,
		`{"prompt":"hello",` + g + `,"response_format":{"type":"json_object"}}`,
		`{"prompt":"hello","response_format":{"type":"json_object"},"max_tokens":1,"logprobs":5}`,
		`{"prompt":"hello wor",` + g + `,"max_tokens":1,"logprobs":5,"n":4,"stream":true}`,
		`{"prompt":"","grammar":"root ::= \"\""}`,
		`{"prompt":"hello","grammar":"root ::= \"\""}`,
		`{"prompt":"hello","grammar":"root ::= root"}`,
		`{"prompt":"hello","grammar":"root ::= [\\U00000000-\\U0010ffff]*"}`,
		`{"prompt":"hello","json_schema":"{\"type\":\"object\"}"}`,
		`{"prompt":"hello","json_schema":true}`,
		`{"prompt":"hello","json_schema":false}`,
		`{"prompt":"hello","json_schema":null}`,
		`{"prompt":"hello","json_schema":{"$ref":"#"}}`,
		`{"prompt":"hello","response_format":{}}`,
		`{"prompt":"hello","response_format":null}`,
		`{"prompt":"hello","response_format":{"type":"json_schema","json_schema":null}}`,
		`{"prompt":"hello","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"boolean"},"strict":true}}}`,
		`{"prompt":"hello","response_format":{"type":"text","schema":{"type":"null"}}}`,
		`{"prompt":"hello","structured_outputs":{"json":{"type":"null"},"regex":"a"}}`,
		`{"prompt":"hello","structured_outputs":{"choice":["a","b"]}}`,
		`{"prompt":"hello","structured_outputs":null}`,
		`{"prompt":"hello","structured_outputs":{"regex":"(a|b)+"},"guided_json":{}}`,
	} {
		for _, heal := range []string{"exact", "stable", "last", "off"} {
			done := make(chan *answer, 1)
			go func() { done <- r.complete(body, "X-Unfray-Heal", heal) }()
			select {
			case a := <-done:
				if a.status >= 500 || strings.Contains(string(a.body), `"server_error"`) {
					t.Errorf("%s %s: %d %s", heal, body, a.status, a.body)
				}
				if heal == "exact" {
					t.Logf("%d %s\n     %.260s", a.status, body, a.body)
				}
				if !utf8.Valid(a.body) {
					t.Errorf("%s: not UTF-8", body)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s %s: no answer", heal, body)
			}
		}
	}
	for _, body := range []string{
		`{"input_prefix":"a","input_suffix":"b"}`,
		`{"input_prefix":"a","input_suffix":"b","n_cmpl":0}`,
		`{"input_prefix":"a","input_suffix":"b","n_predict":0,"stream":true}`,
	} {
		a := r.send("POST", "/infill", body)
		t.Logf("%d %s %s", a.status, body, a.body)
	}
}

// TestParallelChoices has one compiled grammar and one plan used by many.
func TestParallelChoices(t *testing.T) {
	r := newRig(t, rigOptions{})
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range 32 {
		group.Go(func() {
			body := fmt.Sprintf(`{"prompt":"hello wor","n":4,"seed":%d,"max_tokens":20,"temperature":1,"grammar":"root ::= ([a-z]{1,3} \" \"){1,4} \".\"","stream":%v}`, i%4, i%2 == 0)
			if i%8 == 7 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*100*time.Microsecond)
				defer cancel()
				req := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(body)).WithContext(ctx)
				r.gateway.ServeHTTP(httptest.NewRecorder(), req)
				return
			}
			a := r.complete(body, "X-Unfray-Heal", "exact")
			if a.status != 200 && a.status != 503 && a.status != 429 {
				t.Errorf("%d %s", a.status, a.body)
				return
			}
			if i%2 == 1 && a.status == 200 {
				var c completion
				if err := json.Unmarshal(a.body, &c); err != nil {
					t.Error(err)
				}
				key := fmt.Sprint(i % 4)
				for _, ch := range c.Choices {
					key += fmt.Sprintf("|%q", ch.Text)
				}
				mu.Lock()
				seen[key] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(seen) > 4 {
		t.Errorf("seeds do not say what comes: %v", seen)
	}
}

// TestTinyTemperature must not keep the model from all others.
func TestTinyTemperature(t *testing.T) {
	r := newRig(t, rigOptions{})
	done := make(chan *answer, 1)
	go func() { done <- r.complete(`{"prompt":"hello wor","temperature":5e-324}`, "X-Unfray-Heal", "exact") }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		panic("no answer") // the rig cannot be closed any more
	}
}
