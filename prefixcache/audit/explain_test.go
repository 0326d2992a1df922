package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The text of a report, for a look at what a user reads: the figures in it are
// checked by other tests.
func TestExplain(t *testing.T) {
	tok := open(t, "gpt2")
	prompts := []Prompt{
		{Name: "monday", Text: []byte("It is 10:00:01 on Monday.\n" + rules + "Hello")},
		{Name: "later", Text: []byte("It is 10:00:09 on Monday.\n" + rules + "Hello")},
		{Name: "typed", Text: []byte("It is 10:00:09 on Monday.\n" + rules + "Hello, pump")},
	}
	rep, err := Audit(prompts, Options{Tokenizer: tok, BlockSizes: []int{16, 64}, Price: &Price{PerMillion: 3, PerMillionCached: 0.3, Currency: "USD"}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := rep.Explain(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "explain.txt")
	if os.Getenv("UPDATE_EXPLAIN") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("the text is\n%s\nwant\n%s\nUPDATE_EXPLAIN=1 writes %s", got, want, path)
	}
}

// What scripts read of a report.
func TestJSON(t *testing.T) {
	tok := open(t, "gpt2")
	encode := func(o Options, prompts ...Prompt) map[string]any {
		rep, err := Audit(prompts, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(rep)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b := Prompt{Text: []byte("At 10:00\n" + rules)}, Prompt{Text: []byte("At 10:01\n" + rules)}
	m := encode(Options{Tokenizer: tok, Price: &Price{PerMillion: 1}}, a, b)
	d := m["first_divergence"].(map[string]any)
	if d["byte"] != 7.0 || d["token"] != 3.0 || !strings.Contains(d["why"].(string), "10:01") || d["cause"] != "timestamp" {
		t.Errorf("first divergence %v", d)
	}
	if len(m["requests"].([]any)) != 2 || m["lost_tokens"].(float64) < 50 || m["lost_blocks"].(float64) < 3 || m["cost"].(float64) <= 0 {
		t.Errorf("report %v", m)
	}
	m = encode(Options{Tokenizer: tok})
	if _, ok := m["cost"]; ok || m["first_divergence"] != nil || len(m["requests"].([]any)) != 0 || m["causes"] == nil || m["suggestions"] == nil {
		t.Errorf("report of no prompts %v", m)
	}
}

// Logs of several engines are put in the order of their times.
func TestTimes(t *testing.T) {
	tok := open(t, "gpt2")
	at := func(s int, text string) Prompt { return Prompt{Text: []byte(text), At: time.Unix(int64(s), 0)} }
	rep, err := Audit([]Prompt{at(30, rules+"c"), at(10, rules), {Text: []byte("x")}, at(20, rules+"b")}, Options{Tokenizer: tok})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range rep.Requests {
		names = append(names, q.Name+"<"+q.AgainstName)
	}
	if got := strings.Join(names, " "); got != "3< 2<3 4<2 1<4" && got != "3< 2<3 4<2 1<2" {
		t.Errorf("order %s", got)
	}
}
