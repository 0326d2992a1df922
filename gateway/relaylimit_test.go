package gateway

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"testing"
)

// FuzzLimit reads what comes out of a limit as servers do: by exact names, the
// last of several, numbers in strings too.
func FuzzLimit(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"max_tokens":100}`, `{"max_tokens":101}`, `{"max_tokens":null,"x":[{"max_tokens":7}]}`, `{"n_predict":-1,"max_tokens":3}`,
		`{"n_predict":-0}`, `{"max_tokens":1e2}`, `{"max_tokens":1e400}`, `{"max_tokens":"9"}`, `{"max_tokens":1,"max_tokens":1000}`,
		`{"MAX_TOKENS":1,"max_tokens":1000}`, `{"max\u005ftokens":1000}`, ` { } `, `{"max_completion_tokens":true}`, `{"max_tokens":[]}`, `[1]`, ``,
		`{"n_predict":0}`, `{"max_tokens":0,"n_predict":-1}`, "\ufeff{\"max_tokens\":1000}",
	} {
		for i := range 2 {
			f.Add([]byte(body), i == 0)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, native bool) {
		const most = 100
		m := &model{Model: Model{MaxTokens: most, Native: true}}
		path, own := chatPath, "max_tokens"
		if native {
			path, own = "/completion", "n_predict"
		}
		kept := bytes.Clone(body)
		out, err := m.limit(&exchange{r: httptest.NewRequest("POST", path, nil)}, body)
		if !bytes.Equal(body, kept) {
			t.Fatalf("%q was changed to %q", kept, body)
		}
		if err != nil {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(out, &members); err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		said := false
		for _, name := range limitFields {
			v := string(members[name])
			if v == "" || v == "null" {
				continue
			}
			var text string
			if json.Unmarshal([]byte(v), &text) == nil {
				v = text
			}
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || n > most || n < 0 {
				t.Fatalf("%q became %q, which asks for %s", body, out, v)
			}
			said = true
		}
		if !said {
			t.Fatalf("%q became %q, which does not say how much", body, out)
		}
		if !bytes.Equal(out, body) && string(members[own]) != strconv.Itoa(most) {
			t.Fatalf("%q became %q", body, out)
		}
	})
}
