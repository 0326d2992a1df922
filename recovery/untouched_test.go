package recovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unfray/unfray/recovery"
)

// fragments are what strings of models' JSON hold and what repairers stumble over.
var fragments = []string{
	"plain words", "say \"hi\"", "it's", "a, b: c", "{", "}", "[", "]", "}{", "],[", "```", "```json\n{\"a\":1}\n```", "~~~", "// no", "/* no */", "# no",
	"<think>", "</think>", "<think>x</think>", "<tool_call>", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", "[f(x=1)]", "<json>", "</json>",
	"C:\\new\\table", "\\frac{1}{2}", "\\d+", "\\", "\\\\", "\n", "\r\n", "\t", "%s\\n", "…", "...", "“curly”", "„low“", "：，｛｝", "é", "日本語", "😀", "👩\u200d👧",
	"https://x.y/z?a=1&b=2", "None", "True", "NaN", "undefined", "1,234", "'a': 'b'", "\"key\": \"value\"", "{\"a\": 1,}", "key: value\n- item", "<a href=\"x\">y</a>",
	"no no no no no no no no no no no no", "|---|---|", "function f() { return [1, 2]; }", "SELECT ')' FROM t;", "$x^2$", "", " ", "_", "a\\_b", "[truncated]", "\u2028",
}

// valid makes a JSON value.
func valid(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case n < 2 && depth > 0:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = valid(r, depth-1)
		}
		return list
	case n < 5 && depth > 0:
		return object(r, depth)
	case n == 5:
		return json.Number([]string{"0", "-1", "12.50", "1e400", "12345678901234567890", "1E-2"}[r.IntN(6)])
	case n == 6:
		return []any{true, false, nil}[r.IntN(3)]
	}
	var s strings.Builder
	for range 1 + r.IntN(3) {
		s.WriteString(fragments[r.IntN(len(fragments))])
		if r.IntN(2) == 0 {
			s.WriteByte(' ')
		}
	}
	return s.String()
}

func object(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for i := range 1 + r.IntN(4) {
		key := fmt.Sprintf("k%d", i)
		if r.IntN(6) == 0 {
			key = fragments[r.IntN(len(fragments))]
		}
		m[key] = valid(r, depth-1)
	}
	return m
}

func encode(t testing.TB, v any, indent bool) []byte {
	t.Helper()
	var s strings.Builder
	e := json.NewEncoder(&s)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.TrimSuffix(s.String(), "\n"))
}

// docs is how many documents a test makes of n.
func docs(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// TestValidJSONIsUntouched holds the pipeline to its first promise.
func TestValidJSONIsUntouched(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for i := range docs(1500) {
		doc := encode(t, object(r, 3), i%2 == 0)
		for _, form := range []recovery.Form{recovery.JSON, recovery.Auto} {
			for _, finish := range []string{"", "stop", "length"} {
				res := recovery.Recover(context.Background(), doc, recovery.Options{Form: form, FinishReason: finish})
				if res.Outcome != recovery.Valid || len(res.Edits) > 0 || string(res.Text) != string(doc) {
					t.Fatalf("form %q, finish reason %q: %v, %d edits\n%s", form, finish, res.Outcome, len(res.Edits), doc)
				}
			}
		}
	}
}

// wrappings are what models put around JSON; %s stands for it.
var wrappings = []string{
	"```json\n%s\n```", "```\n%s\n```\n", "````json\n%s\n````", "~~~json\n%s\n~~~", "Sure, here it is:\n\n```json\n%s\n```\n\nTell me if you need more.",
	"Here you are: %s", "%s\n\nThat is all.", "<think>\nLet me see, {maybe}.\n</think>\n\n%s", "I will think.\n</think>\n%s", "<think>First.</think>\n```json\n%s\n```",
	"<json>%s</json>", "\ufeff%s", "%s<|im_end|>", "**Answer:**\n\n%s", "  ```json\r\n%s\r\n  ```\r\n", "```json\n%s",
}

// TestWrappedJSONIsFound wraps valid documents: their values must come back. Where
// the strings themselves hold what wraps JSON, another reading may be reported,
// never a wrong one as if it were certain.
func TestWrappedJSONIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	wrong, total := 0, 0
	for i := range docs(300) {
		doc := encode(t, object(r, 3), i%2 == 0)
		for _, wrapping := range wrappings {
			in := []byte(strings.Replace(wrapping, "%s", string(doc), 1))
			res := recovery.Recover(context.Background(), in, recovery.Options{Form: recovery.JSON})
			checkReceipt(t, in, res)
			total++
			if !sameJSON(res.Text, doc) {
				if wrong++; wrong <= 10 {
					t.Errorf("%v\n  in %q\n got %q\nwant %q", res.Outcome, in, res.Text, doc)
				}
			}
		}
	}
	t.Logf("%d of %d wrong", wrong, total)
}

// TestCutJSONIsTruncated cuts valid documents at every byte: what is left must be
// said to be cut, and must be a part of the whole.
func TestCutJSONIsTruncated(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	for i := range docs(60) {
		doc := encode(t, object(r, 3), i%2 == 0)
		whole, err := decodeJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, before := range []string{"", "Here it is:\n\n```json\n"} {
			for n := 1; n < len(doc); n++ {
				in := []byte(before + string(doc[:n]))
				res := recovery.Recover(context.Background(), in, recovery.Options{Form: recovery.JSON, FinishReason: "length"})
				checkReceipt(t, in, res)
				if res.Outcome < recovery.Truncated {
					t.Fatalf("%v, want truncated: %q", res.Outcome, in)
				}
				if res.Outcome != recovery.Truncated {
					continue
				}
				if part, err := decodeJSON(res.Text); err != nil || !isPart(part, whole) {
					t.Fatalf("in %q\n got %q, which is no part of\n%q", in, res.Text, doc)
				}
			}
		}
	}
}

// isPart reports whether a is what b is when it has come only in part.
func isPart(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && strings.HasPrefix(b, a)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) > len(b) {
			return false
		}
		for i := range a {
			if !isPart(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) > len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !isPart(v, w) {
				return false
			}
		}
		return true
	}
	return equalValues(a, b)
}

// TestCutCallsAreNotComplete cuts tool calls at every byte: a call that is said to
// be complete has the arguments that the whole one has.
func TestCutCallsAreNotComplete(t *testing.T) {
	for _, c := range readLines[recoveryCase](t, "testdata/cases.jsonl") {
		if c.Strategy != "tool_calls" || c.Want.Calls == nil || c.MustNot {
			continue
		}
		o, err := c.options()
		if err != nil {
			t.Fatal(err)
		}
		in := c.input()
		whole := recovery.Recover(context.Background(), in, o).Calls
		for n := 1; n < len(in); n++ {
			for _, finish := range []string{"", "length", "tool_calls"} {
				o.FinishReason = finish
				calls := recovery.Recover(context.Background(), in[:n], o).Calls
				for i, call := range calls {
					if !call.Complete || i < len(whole) && !whole[i].Complete {
						continue
					}
					if i >= len(whole) || call.Name != whole[i].Name || !sameJSON(call.Arguments, whole[i].Arguments) && call.Problem == "" {
						t.Errorf("%s, finish reason %q: %s(%s) is said to be complete in %q of %q", c.Name, finish, call.Name, call.Arguments, in[:n], in)
					}
				}
			}
		}
	}
}
