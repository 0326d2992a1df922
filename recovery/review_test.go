package recovery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/jsonrepair/jsontest"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/continuation"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/toolcall"
)

// Texts that begin with a bracket, or hold one, and are no JSON.
var textsWithBrackets = []string{
	"[2024-05-01 12:00:00] INFO started\n[2024-05-01 12:00:01] WARN x",
	"[0.000000] Linux version 6.1\n[0.000000] Command line: x",
	"[10:30] <bob> hi\n[10:31] <ann> hello",
	"[1] Smith, J. The book. 2020.\n[2] Lee, A. Another one.",
	"[404] Not found",
	"[test]\npytest>=3.0.0\npytest-cov",
	"[tool.black]\nline-length = 88",
	"[[table]]\nname = 1",
	"[false alarm] all is good",
	"[null] was returned",
	"[1, 2, 3] is a list.",
	"[-1, 1] is the interval.",
	"[ ] Buy milk\n[ ] Call Ann",
	"[-] removed\n[+] added",
	"[] means no items, {} means no members.",
	"['a', 'b'] is the list that you asked for.",
	"[\"Hello\"](http://example.com) is a link",
	"{% if x %}\nHello\n{% endif %}",
	"{{ .Name }} has {{ .Count }} things.",
	"{{- define \"x\" -}}\nhi\n{{- end -}}",
	"{ echo hi; echo there; } | cat",
	"{\\bf Theorem 1.} Let $x$ be real.",
	"{name}, welcome to {place}!",
	"{\n  x := 1\n  f(x)\n}",
	"{1, 2, 3} is a set and {4, 5} another.",
	"{x | x > 0}",
	"{} is the empty object.",
	"{\"a\": 1} is valid JSON, but {'a': 1} is not.",
	"apiVersion: v1\nkind: Pod\nspec:\n  args: [\"a\", \"b\"]\n  x: y\n",
	"Citations:\n[1]",
	"-- .info --\n{\"Version\": \"v1.0.0\"}\n-- go.mod --\nmodule x\n",
	"> quote\n[1]",
}

func TestTextWithBracketsIsText(t *testing.T) {
	for _, in := range textsWithBrackets {
		if r := recovery.Recover(context.Background(), []byte(in), recovery.Options{}); r.Form != recovery.Text || r.Outcome != recovery.Valid {
			t.Errorf("%q is taken for %s, %v: %q", in, r.Form, r.Outcome, r.Text)
		}
	}
}

// Answers that begin like JSON, however broken, stay JSON.
func TestBrokenJSONIsJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{name": "x", "b": 1}`: `{"name":"x","b":1}`, `[red", "blue"]`: `["red","blue"]`, `{name: 'x'}`: `{"name":"x"}`,
		`{}{"stock":"MSFT"}`: `{"stock":"MSFT"}`, "\ufeff{\"a\":1,}": `{"a":1}`, "{\u00a0\"a\": 1,}": `{"a":1}`,
		`{{"a": 1}}`: `{"a":1}`, `{“a”: 1}`: `{"a":1}`, `{\"a\": 1}`: `{"a":1}`, `{&quot;a&quot;: 1}`: `{"a":1}`,
		"[1, 2, 3,]": `[1,2,3]`, "[1\n2]": `[1,2]`, "{ // the answer\n \"a\": 1}": `{"a":1}`, "**Answer:** {\"a\": 1}": `{"a":1}`,
		"```json\n{\"a\": 1, \"statu": `{"a":1}`,
	} {
		r := recovery.Recover(context.Background(), []byte(in), recovery.Options{})
		checkReceipt(t, []byte(in), r)
		if r.Form != recovery.JSON || !sameJSON(r.Text, []byte(want)) {
			t.Errorf("%q is taken for %s, %v: %q, want %s", in, r.Form, r.Outcome, r.Text, want)
		}
	}
}

// Tools that are offered change nothing of JSON that calls none of them.
func TestValidJSONBesideToolsIsUntouched(t *testing.T) {
	tools := []toolcall.Tool{{Name: "get_weather"}, {Name: "search", Parameters: []byte(`{"type":"object"}`)}}
	g := jsontest.New(8)
	for i := range docs(2000) {
		doc := g.Append(nil, 0)
		for _, form := range []recovery.Form{recovery.Auto, recovery.JSON} {
			r := recovery.Recover(context.Background(), doc, recovery.Options{Form: form, Tools: tools, AnyTool: true})
			if r.Outcome != recovery.Valid || len(r.Edits) > 0 || !bytes.Equal(r.Text, doc) || len(r.Calls) > 0 {
				t.Fatalf("document %d, form %q: %v, %d edits, %d calls: %q", i, form, r.Outcome, len(r.Edits), len(r.Calls), doc)
			}
		}
	}
}

// The line of tildes below a heading opens no fence.
func TestUnderlinesAreNoFences(t *testing.T) {
	for _, in := range []string{
		"oauthlib.oauth1.rfc5849\n~~~~~~~~~~~~~~\n\nThis module is one.\n",
		"<p><br>\n      Release 3.3.1 (4 June 2008)<br>\n~~~~~~~~~~~~~~~~~~~~~~~~~~~<br>\n3.3.1 fixes bugs.\n",
		"\"\"\"\n\n    module.labels\n    ~~~~~~~~~~~~~\n\n\"\"\"\nLABELS = {\n    'a': 'b',\n    'c': 'd'}\n",
	} {
		if r := recovery.Recover(context.Background(), []byte(in), recovery.Options{}); r.Outcome != recovery.Valid || r.Form != recovery.Text {
			t.Errorf("%q: %v %s %q", in, r.Outcome, r.Form, r.Text)
		}
	}
	in := []byte("Here it is:\n~~~~~~~~\nx = 1\n")
	if r := recovery.Recover(context.Background(), in, recovery.Options{FinishReason: "length"}); len(r.Open) != 1 || r.Open[0].Offset != 12 {
		t.Errorf("a fence of many tildes: %v", r.Open)
	}
}

// Values that no step may lose or run together.
func TestSeveralValues(t *testing.T) {
	for in, want := range map[string]string{
		"\"red\", \"dark green\", \"blue\"]":                                   `["red","dark green","blue"]`,
		"The schema {\"type\": \"object\"} asks for this: [\"red\", \"blue\"]": `[{"type":"object"},["red","blue"]]`,
		"[\"red\",\"dark \n\nSorry, again:\n[\"red\",\"dark green\"]":          `["red","dark green"]`,
		"[\"red\",\"blue\"]]":                               `["red","blue"]`,
		"{\"id\":1,\"t\":\"a\"b\"}\n{\"id\":1,\"t\":\"c\"}": `[{"id":1,"t":"a\"b"},{"id":1,"t":"c"}]`,
		"{\"name\":\"Ann\",\"note\":\"she sa\n\nLet me redo:\n{\"name\":\"Ann\",\"note\":\"she said\"}": `{"name":"Ann","note":"she said"}`,
	} {
		r := recovery.Recover(context.Background(), []byte(in), recovery.Options{Form: recovery.JSON})
		checkReceipt(t, []byte(in), r)
		if r.Outcome != recovery.Repaired || !sameJSON(r.Text, []byte(want)) {
			t.Errorf("%q: %v %s, want %s", in, r.Outcome, r.Text, want)
		}
	}
}

// Offsets are those of the input, whatever was taken out before.
func TestOffsetsAreOfTheInput(t *testing.T) {
	const thought = "<think>hm</think>\n"
	in := thought + `{"a": [1, {"b": 2`
	r := recovery.Recover(context.Background(), []byte(in), recovery.Options{FinishReason: "length"})
	for i, want := range []int{strings.Index(in, "{"), strings.Index(in, "["), strings.Index(in, `{"b"`)} {
		if i >= len(r.Open) || r.Open[i].Offset != want {
			t.Errorf("open %+v, want number %d at %d", r.Open, i, want)
		}
	}
	loop := strings.Repeat("The cat sat on the mat again. ", 40)
	r = recovery.Recover(context.Background(), []byte(thought+loop), recovery.Options{Form: recovery.Text})
	if l := r.Loop; l == nil || !strings.Contains((thought + loop)[l.Start:l.End], string(l.Unit)) || l.Start < len(thought) || l.End > len(thought+loop) || l.End < len(thought+loop)-40 {
		t.Errorf("loop %+v of %d bytes", l, len(thought+loop))
	}
}

// memory is how many bytes Recover allocates for each byte of a text.
func memory(text []byte, o recovery.Options) float64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	recovery.Recover(context.Background(), text, o)
	runtime.ReadMemStats(&b)
	return float64(b.TotalAlloc-a.TotalAlloc) / float64(len(text))
}

// Very many values, places, segments and edits cost no more for each byte than few.
func TestMemoryIsBounded(t *testing.T) {
	person, err := schema.Parse([]byte(`{"type":"object","properties":{"name":{"type":"string"},"a":{"type":"integer"}},"required":["name"]}`), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := schema.Parse([]byte(`{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}}}}`), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		unit string
		o    recovery.Options
	}{
		"objects":  {"{}", recovery.Options{Form: recovery.JSON, Schema: person}},
		"in prose": {"see {\"a\":1}, or\n", recovery.Options{Form: recovery.JSON, Schema: person}},
		"numbers":  {`{"a":"1","b":"x"},`, recovery.Options{Form: recovery.JSON, Schema: list}},
		"thoughts": {"</think>", recovery.Options{Form: recovery.Text}},
		"marks":    {"a\u200b", recovery.Options{Form: recovery.Text}},
	} {
		o := c.o
		o.Budget.Time = -1
		text := strings.Repeat(c.unit, 3<<20/len(c.unit))
		if c.unit[0] == '{' && len(c.unit) > 2 {
			text = "[" + text + "]"
		}
		if got := memory([]byte(text), o); got > 400 {
			t.Errorf("%s: %.0f bytes for each byte", name, got)
		}
	}
}

// What the budget leaves undone is said.
func TestOverBudgetIsTold(t *testing.T) {
	text := []byte(strings.Repeat("a\u200bb ", 1000))
	r := recovery.Recover(context.Background(), text, recovery.Options{Form: recovery.Text, Budget: recovery.Budget{Edits: 10}})
	checkReceipt(t, text, r)
	if !hasFinding(r, recovery.OverBudget) || len(r.Edits) > 5000 {
		t.Errorf("%d edits, findings %v", len(r.Edits), r.Findings)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r = recovery.Recover(ctx, []byte("{\"a\": 1,}"), recovery.Options{Form: recovery.JSON})
	if r.Outcome != recovery.Failed || !hasFinding(r, recovery.OverBudget) {
		t.Errorf("ended before it began: %v, findings %v", r.Outcome, r.Findings)
	}
}

func hasFinding(r *recovery.Result, kind jsonrepair.Kind) bool {
	return slices.ContainsFunc(r.Findings, func(f jsonrepair.Finding) bool { return f.Kind == kind })
}

func TestOwnStrategies(t *testing.T) {
	own := func(out string, err error) []recovery.Strategy {
		return []recovery.Strategy{{Name: "none"}, {Name: "mine", Try: func([]byte, recovery.Form) ([]byte, string, error) { return []byte(out), "why", err }}}
	}
	numbers, err := schema.Parse([]byte(`{"type":"array","items":{"type":"number"}}`), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, in string
		o        recovery.Options
		outcome  recovery.Outcome
		text     string
	}{
		{"no JSON", `{"a":1}`, recovery.Options{Form: recovery.JSON, Schema: numbers, Custom: own("no JSON", nil)}, recovery.Failed, ""},
		{"another type", `{"a":1}`, recovery.Options{Form: recovery.JSON, Schema: numbers, Custom: own(`{"b":1}`, nil)}, recovery.Failed, ""},
		{"right", `{"a":1}`, recovery.Options{Form: recovery.JSON, Schema: numbers, Custom: own(`[1]`, nil)}, recovery.Repaired, "[1]"},
		{"error", "hello", recovery.Options{Form: recovery.Text, Custom: own("x", errors.New("no"))}, recovery.Valid, "hello"},
		{"too long", "hello", recovery.Options{Form: recovery.Text, Custom: own(strings.Repeat("x", 100), nil), Budget: recovery.Budget{Bytes: 50}}, recovery.Valid, "hello"},
		{"text", "hello", recovery.Options{Form: recovery.Text, Custom: own("help", nil)}, recovery.Repaired, "help"},
	} {
		r := recovery.Recover(context.Background(), []byte(c.in), c.o)
		checkReceipt(t, []byte(c.in), r)
		if r.Outcome != c.outcome || string(r.Text) != c.text {
			t.Errorf("%s: %v %q, want %v %q", c.name, r.Outcome, r.Text, c.outcome, c.text)
		}
	}
}

func TestFallbackEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	o := recovery.Options{Form: recovery.JSON, Budget: recovery.Budget{Attempts: -1}}
	o.Fallback = func(context.Context, *recovery.Result, int) ([]byte, error) {
		if n++; n == 10 {
			cancel()
		}
		return []byte("no JSON"), nil
	}
	if r := recovery.Recover(ctx, []byte("nothing here"), o); r.Outcome != recovery.Failed || n != 10 {
		t.Errorf("%v after %d answers", r.Outcome, n)
	}
	o.Budget = recovery.Budget{Bytes: 20}
	n = 0
	o.Fallback = func(context.Context, *recovery.Result, int) ([]byte, error) {
		n++
		return []byte(strings.Repeat(`{"a":1}`, n*2)), nil
	}
	in := []byte("nothing here")
	r := recovery.Recover(context.Background(), in, o)
	checkReceipt(t, in, r)
	if n != 1 || r.Outcome != recovery.Repaired {
		t.Errorf("%v after %d answers", r.Outcome, n)
	}
}

// The time that the strategies may take is that of all their turns together; that of
// whoever is asked does not count.
func TestTimeIsOfAllTurns(t *testing.T) {
	o := recovery.Options{Form: recovery.JSON, Budget: recovery.Budget{Time: 200 * time.Millisecond}}
	o.Ask = func(_ context.Context, q continuation.Request) (continuation.Answer, error) {
		time.Sleep(300 * time.Millisecond)
		return continuation.Answer{Text: append(bytes.Clone(q.Require), "2]}"...), FinishReason: "stop", Exact: true}, nil
	}
	in := []byte(`{"a": [1, `)
	r := recovery.Recover(context.Background(), in, o)
	checkReceipt(t, in, r)
	if r.Continuation == nil || r.Outcome != recovery.Repaired {
		t.Errorf("%v %q %v", r.Outcome, r.Text, r.Trace)
	}
}

// A stream gives whole characters, and the same for any pieces, also beyond its budget.
func TestStreamGivesWholeCharacters(t *testing.T) {
	texts := []string{"Été à Noël: 😀👩\u200d👧 日本語。", "<think>Été 😀</think>\n日本語", "{\"é\": \"😀日本\", \"b\": [1, 2]}", "\ufeff{\"a\": \"é\"}"}
	for _, text := range texts {
		for _, form := range []recovery.Form{recovery.Auto, recovery.Text, recovery.JSON, recovery.Code} {
			for most := range 12 {
				var all []string
				for _, size := range []int{1, 2, 5, len(text)} {
					s := recovery.NewStream(recovery.Options{Form: form, Budget: recovery.Budget{Bytes: most * 3}})
					var given []byte
					for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
						d := s.Write(rest[:min(size, len(rest))])
						if !utf8.Valid(d.Text) || !utf8.Valid(d.Reasoning) {
							t.Fatalf("%q in pieces of %d, form %q, budget %d: half a character in %q %q", text, size, form, most*3, d.Text, d.Reasoning)
						}
						given = append(given, d.Text...)
					}
					d, r := s.Close(context.Background(), "")
					given = append(given, d.Text...)
					all = append(all, string(given))
					if r.Text != nil && (!bytes.Equal(recovery.Apply([]byte(text), r.Edits), r.Text) || !bytes.Equal(r.Text, given)) {
						t.Fatalf("%q, form %q, budget %d: given %q, the text is %q, its edits make %q", text, form, most*3, given, r.Text, recovery.Apply([]byte(text), r.Edits))
					}
				}
				if len(slices.Compact(all)) > 1 {
					t.Errorf("%q, form %q, budget %d: in other pieces it comes to %q", text, form, most*3, all)
				}
			}
		}
	}
}

// A stream says where the whole answer would have been taken for JSON.
func TestStreamTellsOfJSONInText(t *testing.T) {
	s := recovery.NewStream(recovery.Options{})
	s.Write([]byte("Here you are:\n\n```json\n{\"a\": 1}\n```\n"))
	if _, r := s.Close(context.Background(), "stop"); r.Form != recovery.Text || !hasFinding(r, recovery.GivenBefore) {
		t.Errorf("%s, findings %v", r.Form, r.Findings)
	}
}

// Reports are JSON whatever the bytes.
func TestReportOfInvalidUTF8(t *testing.T) {
	for _, in := range []string{"\xff\xfe", "{\"a\xff\": \"\xc3\"", "<think>\xff</think>\xc3\x28", "```go\n\xff", "no\xff no\xff no\xff no\xff no\xff no\xff no\xff no\xff"} {
		for _, form := range []recovery.Form{recovery.Auto, recovery.Text, recovery.JSON, recovery.Code} {
			r := recovery.Recover(context.Background(), []byte(in), recovery.Options{Form: form})
			checkReceipt(t, []byte(in), r)
			b, err := json.Marshal(r.Report())
			if err != nil || !utf8.Valid(b) || !json.Valid(b) {
				t.Errorf("%q as %s: %v %q", in, form, err, b)
			}
		}
	}
}
