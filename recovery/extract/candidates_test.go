package extract

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// showCandidates writes candidates in a short form: where, ! where nothing closes
// it, ~ where it is closed and not valid, and in parentheses p for a placeholder, d
// for doubtful, i for inside; the text between bars.
func showCandidates(found []Candidate) string {
	var b strings.Builder
	for _, c := range found {
		b.WriteString(c.Where.String())
		flags := ""
		if c.Placeholder {
			flags += "p"
		}
		if c.Doubtful {
			flags += "d"
		}
		if c.Inside {
			flags += "i"
		}
		if flags != "" {
			fmt.Fprintf(&b, "(%s)", flags)
		}
		if !c.Closed {
			b.WriteString("!")
		} else if !c.Complete {
			b.WriteString("~")
		}
		fmt.Fprintf(&b, "|%s| ", c.Text)
	}
	return strings.TrimSuffix(b.String(), " ")
}

var candidateCases = []struct{ name, in, want string }{
	{"object", ` {"a":1} `, `whole|{"a":1}|`},
	{"array", `[1,2]`, `whole|[1,2]|`},
	{"scalar", ` "a" `, `whole|"a"|`},
	{"number", `42`, `whole|42|`},
	{"empty object", `{}`, `whole|{}|`},
	{"tag in a string", `{"text":"<think>x</think>y"}`, `whole|{"text":"<think>x</think>y"}|`},
	{"fence in a string", "{\"md\":\"```js\\nx\\n```\"}", "whole|{\"md\":\"```js\\nx\\n```\"}|"},
	{"prose around", "Here:\n{\"a\":1}\nHope this helps!", `prose|{"a":1}|`},
	{"in a line", `The answer is {"a":1}, as you see.`, `prose|{"a":1}|`},
	{"fence", "Here:\n```json\n{\"a\":1}\n```\nOK", `fence|{"a":1}|`},
	{"fence without language", "```\n[1]\n```", `fence|[1]|`},
	{"scalar in a fence", "So:\n```json\n\"a\"\n```", `fence|"a"|`},
	{"no scalar in a plain fence", "So:\n```\n42\n```", ``},
	{"fence in a list", "- it:\n  ```json\n  {\n    \"a\": 1\n  }\n  ```", "fence|{\n    \"a\": 1\n  }|"},
	{"fence in a quote", "> ```json\n> {\n>   \"a\": 1\n> }\n> ```", "fence|{\n  \"a\": 1\n}|"},
	{"inline code", "Send `{\"a\":1}` there.", `prose|{"a":1}|`},
	{"inline fence", "So: ```{\"a\":1}``` there.", `prose|{"a":1}|`},
	{"unclosed fence", "```json\n{\"a\":1", `fence!|{"a":1|`},
	{"wrong language", "```javascript\n{\"a\": 1}\n```", `fence|{"a": 1}|`},
	{"wrong language, cut", "```text\n{\"a\": 1", `fence!|{"a": 1|`},
	{"other language", "```python\nx = {\"a\": 1}\n```", `code|{"a": 1}|`},
	{"lines", "{\"a\":1}\n{\"a\":2}\n", `prose|{"a":1}| prose|{"a":2}|`},
	{"two", `{"a":1}{"a":2}`, `prose|{"a":1}| prose|{"a":2}|`},
	{"placeholder", `{}{"stock":"MSFT"}`, `prose(p)|{}| prose|{"stock":"MSFT"}|`},
	{"placeholder behind", `{"stock":"MSFT"}{}`, `prose|{"stock":"MSFT"}| prose(p)|{}|`},
	{"only empty", "So:\n\n{}\n", `prose|{}|`},
	{"list with commas", "{\"a\":1},\n{\"a\":2}", `prose|{"a":1}| prose|{"a":2}|`},

	// Brackets of prose.
	{"citation", "As shown [1], it is {\"a\":1} [2].", `prose|{"a":1}|`},
	{"citations", "As shown [1, 2].", `prose(d)|[1, 2]|`},
	{"link", `See [the page](http://x.y) for {"a":1}`, `prose|{"a":1}|`},
	{"check boxes", "- [ ] a\n- [x] b", ``},
	{"placeholders", "Dear {name}, your {{order}} ${x} is {0}.", ``},
	{"set", "set notation {1,2} and {\"a\":1}", `prose|{"a":1}|`},
	{"code", "function f() { return {}; } and if (x) { y(); }", ``},
	{"bracket in a string", "Use the format \"I, [\"\n\n{\"a\":1}", `prose|{"a":1}|`},
	{"quote that is not closed", "The \" mark.\n{\"a\":1}", `prose|{"a":1}|`},
	{"smile", "Nice :-[ and :{ here.\n{\"a\":1}", `prose|{"a":1}|`},
	{"closers", "so ] and } and )\n{\"a\":1}", `prose|{"a":1}|`},
	{"openers", "so [ and { and (\n{\"a\":1}", `prose|{"a":1}|`},
	{"CSS", "a { color: red; }", ``},
	{"LaTeX", `\frac{1}{2} and \text{a: b}`, ``},
	{"Go", "m := map[string]int{} and []byte{1, 2}", ``},
	{"empty in a line", "It returns {} or [] then.", ``},
	{"apostrophes", "It's {'a': 'it's ok'} and that's it.", `prose~|{'a': 'it's ok'}|`},
	{"format first", "Format: {\"name\": string, \"age\": int}.\n\n{\"name\":\"Ann\",\"age\":3}", `prose~|{"name": string, "age": int}| prose|{"name":"Ann","age":3}|`},
	{"array in a line", `They are ["a", "b"] today.`, `prose|["a", "b"]|`},
	{"array in a string first", `{"a": see ["x"] here} done`, `prose~|{"a": see ["x"] here}|`},

	// Broken JSON.
	{"single quotes", "Here: {'a': 'b', 'c': [1, 2,]}.", `prose~|{'a': 'b', 'c': [1, 2,]}|`},
	{"no quotes", "Here: {a: 1, b: true}.", `prose~|{a: 1, b: true}|`},
	{"no quotes, own line", "Here:\n{a: b c}", `prose~|{a: b c}|`},
	{"inner quotes", `Here: {"a": "say "hi" now", "b": "}"} ok`, `prose~|{"a": "say "hi" now", "b": "}"}|`},
	{"curly marks", "Here:\n{“a”:“b}”}", "prose~|{“a”:“b}”}|"},
	{"full width", "Here:\n｛\"a\"：1｝ ok", "prose~|｛\"a\"：1｝|"},
	{"escaped", `Here: {\"a\":\"b}\"} ok`, `prose~|{\"a\":\"b}\"}|`},
	{"entities", `Here: {&quot;a&quot;: &quot;}&quot;} ok`, `prose~|{&quot;a&quot;: &quot;}&quot;}|`},
	{"no-break spaces", "{\u00a0\"a\":\u00a01}", "whole~|{\u00a0\"a\":\u00a01}|"},
	{"comment", "Here:\n{ // all\n\"a\": 1}", "prose~|{ // all\n\"a\": 1}|"},
	{"missing closer", `Here: {"a":[1,2} ok`, `prose~|{"a":[1,2}|`},
	{"surplus closers", `So {"a":{"b":1}}},"c":2} ok`, `prose~|{"a":{"b":1}}},"c":2}|`},
	{"surplus closers, array", "So:\n[{\"k\":1}]},\n{\"l\":2}]", "prose~|[{\"k\":1}]},\n{\"l\":2}]|"},
	{"wrong closer", `So [{"c":{"a":[1],"b":[{"d":"0"}}]},{"t":"x"}] ok`, `prose~|[{"c":{"a":[1],"b":[{"d":"0"}}]},{"t":"x"}]|`},
	{"triple quotes", `So {"a":"""x "y" z"""} ok`, `prose~|{"a":"""x "y" z"""}|`},
	{"set of strings in a fence", "```json\n{\"a\", \"b\"}\n```", `fence~|{"a", "b"}|`},
	{"no braces", `"a": 1, "b": 2`, `whole!|"a": 1, "b": 2|`},
	{"unbraced in a fence", "```json\n\"a\": 1\n```", `fence(d)~|"a": 1|`},

	{"all of it", "{a: 1}\n", `whole~|{a: 1}|`},

	// Cut.
	{"cut", `Here: {"a":[1,{"b":"c`, `prose!|{"a":[1,{"b":"c|`},
	{"cut list", `[{"a":1},{"a":2},{"a`, `whole!|[{"a":1},{"a":2},{"a|`},
	{"cut, then prose", "{\"a\":1\n\nHope this helps you.", `prose!|{"a":1|`},
	{"cut behind whole ones", "{\"a\":1}\n{\"a\":2", `prose|{"a":1}| prose!|{"a":2|`},
	{"cut key", "So:\n{\"na", `prose(d)!|{"na|`},
	{"cut opener", "So:\n{", `prose(d)!|{|`},
	{"second try", "{\"a\": \"x\n\nAgain:\n\n{\"a\": 1}", "whole~|{\"a\": \"x\n\nAgain:\n\n{\"a\": 1}| prose(i)|{\"a\": 1}|"},
	{"second try of an unclosed one", "{\"a\": \"x\n\nAgain:\n\n{\"b\": [1]", "whole!|{\"a\": \"x\n\nAgain:\n\n{\"b\": [1]| prose(i)!|{\"b\": [1]|"},

	// Reasoning.
	{"draft", `<think>maybe {"a":0}?</think>{"a":1}`, `prose|{"a":1}|`},
	{"unopened draft", `maybe {"a":0}?</think>{"a":1}`, `prose|{"a":1}|`},
	{"unclosed reasoning", "<think>so it is\n{\"title\":\"T\"}", `reasoning|{"title":"T"}|`},
	{"fence cut in a string", "```json\n{\"md\":\"# T\n```py\nx=1\n```", "fence!|{\"md\":\"# T\n```py\nx=1\n```|"},
	{"harmony", `<|channel|>analysis<|message|>{"a":0}<|end|><|start|>assistant<|channel|>final<|message|>{"a":1}<|return|>`, `prose|{"a":1}|`},
	{"answer tags", "<think>x</think><answer>{\"a\":1}</answer>", `prose|{"a":1}|`},

	{"nothing", "I cannot help with that.", ``},
	{"empty", "", ``},
}

func TestCandidates(t *testing.T) {
	for _, c := range candidateCases {
		t.Run(c.name, func(t *testing.T) {
			found, err := Candidates([]byte(c.in), Options{})
			if got := showCandidates(found); got != c.want || err != nil {
				t.Errorf("%q\n got %s (%v)\nwant %s", c.in, got, err, c.want)
			}
			checkCandidates(t, []byte(c.in), found)
		})
	}
}

// checkCandidates checks what always holds.
func checkCandidates(t testing.TB, text []byte, found []Candidate) {
	t.Helper()
	end, outer := 0, 0
	for i, c := range found {
		switch {
		case c.Index != i, c.Start < 0, c.End > len(text), c.Start >= c.End:
			t.Fatalf("%q: candidate %d is %+v", text, i, c)
		case c.Complete != jsonrepair.IsValid(c.Text):
			t.Fatalf("%q: candidate %d is %q, complete %v", text, i, c.Text, c.Complete)
		case c.Inside != (c.Start < outer) && !c.quoted(text):
			t.Fatalf("%q: candidate %d, inside %v, begins before %d", text, i, c.Inside, outer)
		case c.Start < end && !c.quoted(text):
			t.Fatalf("%q: candidate %d begins at %d, before %d", text, i, c.Start, end)
		}
		if c.Complete || c.Inside && c.Closed {
			end = c.End
		} else {
			outer = max(outer, c.End)
		}
	}
}

// quoted reports whether c is in a fence in a block quote.
func (c Candidate) quoted(text []byte) bool { return string(text[c.Start:c.End]) != string(c.Text) }

func TestRank(t *testing.T) {
	for _, c := range []struct {
		name, in string
		cost     func(Candidate) float64
		want     string // the text of the first
	}{
		{"complete before broken", `{"a": x} {"a":1}`, nil, `{"a":1}`},
		{"real before placeholder", `{}{"stock":"MSFT"}`, nil, `{"stock":"MSFT"}`},
		{"first", `{"a":1}{"a":2}`, nil, `{"a":1}`},
		{"fence before prose", "{\"a\":1}\n```json\n{\"a\":2}\n```", nil, `{"a":2}`},
		{"object before array", "[\"a\", \"b\"]\n{\"a\":1}", nil, `{"a":1}`},
		{"large before small", "{\"a\":1}\n{\"title\":\"A title\",\"text\":\"A text that is longer\"}", nil, `{"title":"A title","text":"A text that is longer"}`},
		{"citations last", "As [1, 2] say: {\"a\": x}", nil, `{"a": x}`},
		{"format first", "Format: {\"name\": string}.\n\n{\"name\":\"Ann\"}", nil, `{"name":"Ann"}`},
		{"part of a cut one", "{\"a\": 'x\n{\"b\":1}", nil, "{\"a\": 'x\n{\"b\":1}"},
		{"last of reasoning", "<think>{\"a\":0}, no:\n{\"a\":1}", nil, `{"a":1}`},
		{"by cost", `{"a":1}{"b":2}`, func(c Candidate) float64 {
			if strings.Contains(string(c.Text), `"b"`) {
				return 0
			}
			return math.Inf(1)
		}, `{"b":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Candidates([]byte(c.in), Options{})
			if err != nil {
				t.Fatal(err)
			}
			ranked := Rank(found, c.cost)
			if len(ranked) != len(found) || len(ranked) == 0 || string(ranked[0].Text) != c.want {
				t.Errorf("%s\nwant %s first", showCandidates(ranked), c.want)
			}
		})
	}
}
