package toolcall

import (
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// malformedCases are texts that are not well-formed, and what they should give.
var malformedCases = []struct {
	name     string
	text     string
	want     string // name and arguments of the calls
	rest     string
	complete bool
	problem  Problem
	outcome  jsonrepair.Outcome // of Repair
}{
	{"missing brace", `<tool_call>{"name":"g","arguments":{"y":"a"}</tool_call>`, `g {"y":"a"}`, "", true, "", jsonrepair.Truncated},
	{"missing braces, number", `<tool_call>{"name":"f","arguments":{"x":12` + "\n</tool_call>", `f {"x":12}`, "", true, "", jsonrepair.Truncated},
	{"surplus brace", `<tool_call>{"name":"g","arguments":{"y":"a"}}}</tool_call>`, `g {"y":"a"}`, "", true, "", jsonrepair.Repaired},
	{"surplus brace inside", `<tool_call>{"name":"g","arguments":{"o":{"b":1}}},"id":"2"}</tool_call>`, `g {"o":{"b":1}}`, "", true, "", jsonrepair.Repaired},
	{"no arguments but members", `<tool_call>{"name": "f", "x": 1}</tool_call>`, `f `, "", true, Malformed, jsonrepair.Valid},
	{"comma between", `<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>, <tool_call>{"name":"get_time","arguments":{}}</tool_call>`, `f {"x":1} get_time {}`, "", true, "", jsonrepair.Valid},
	{"empty array", `<tool_call>[]</tool_call> Nothing to do.`, ``, " Nothing to do.", true, "", jsonrepair.Valid},
	{"single quotes", `<tool_call>{'name': 'g', 'arguments': {'y': "it's {"}}</tool_call>`, `g {"y":"it's {"}`, "", true, "", jsonrepair.Repaired},
	{"python literals", `<tool_call>{"name": "g", "arguments": {"on": True, "y": None}}</tool_call>`, `g {"on":true,"y":null}`, "", true, "", jsonrepair.Repaired},
	{"unescaped quotes", `<tool_call>{"name":"g","arguments":{"y":"say "hi {" now"}}</tool_call> ok`, `g {"y":"say \"hi {\" now"}`, " ok", true, "", jsonrepair.Repaired},
	{"missing quote", `<tool_call>{"name":"g","arguments":{"y": listt_windows"}}</tool_call>`, `g {"y":"listt_windows"}`, "", true, "", jsonrepair.Repaired},
	{"raw newline", "<tool_call>{\"name\":\"g\",\"arguments\":{\"y\":\"a\nb\"}}</tool_call>", `g {"y":"a\nb"}`, "", true, "", jsonrepair.Repaired},
	{"trailing comma", `[TOOL_CALLS][{"name":"g","arguments":{"y":"a",},},]`, `g {"y":"a"}`, "", true, "", jsonrepair.Repaired},
	{"windows path", `[TOOL_CALLS]write_file[ARGS]{"path":"C:\Users\x"}`, `write_file {"path":"C:\\Users\\x"}`, "", true, "", jsonrepair.Repaired},
	{"markdown escapes", `[TOOL_CALLS]get\_weather[ARGS]{"ci\_ty": "a\_b"}`, `get_weather {"ci_ty":"a_b"}`, "", true, "", jsonrepair.Repaired},
	{"markdown escapes in strict JSON", `<tool_call>{"name":"get\\_weather","arguments":{"ci\\ty":"x","ci\\_ty":"a\\_b","o":{"ci\\_ty":1}}}</tool_call>`, `get_weather {"ci\\ty":"x","ci\\_ty":"a\\_b","o":{"ci\\_ty":1}}`, "", true, "", jsonrepair.Valid},
	{"markdown escapes of a key", `<tool_call>{"name":"vid","arguments":{"video\\_id":"a\\_b","x":{"video\\_id":1}}}</tool_call>`, `vid {"video_id":"a\\_b","x":{"video\\_id":1}}`, "", true, "", jsonrepair.Valid},
	{"cut string", `<tool_call>{"name":"g","arguments":{"y":"\"\"\"Regression tests for`, `g {"y":"\"\"\"Regression tests for"}`, "", false, Truncated, jsonrepair.Truncated},
	{"cut string at the marker", `<tool_call>{"name":"g","arguments":{"y":"abc</tool_call>`, `g {"y":"abc"}`, "", false, Truncated, jsonrepair.Truncated},
	{"cut double", `<tool_call>{"name":"g","arguments":"{\"y\": \"ab`, `g {"y": "ab"}`, "", false, Truncated, jsonrepair.Truncated},
	{"double, broken", `<tool_call>{"name":"g","arguments":"{'y': 'ab'}"}</tool_call>`, `g {"y": "ab"}`, "", true, "", jsonrepair.Repaired},
	{"granite double", `<tool_call>{"name":"g","arguments":"{\n \"y\": \"max_connections\"\n}"}</tool_call>`, `g {"y":"max_connections"}`, "", true, "", jsonrepair.Valid},
	{"double of another kind", `<tool_call>{"name":"g","arguments":"hello"}</tool_call>`, `g `, "", true, NoObject, jsonrepair.Valid},
	{"two levels", `<tool_call>{"name":"g","arguments":"\"{\\\"y\\\":1}\""}</tool_call>`, `g `, "", true, NoObject, jsonrepair.Valid},
	{"array for arguments", `<tool_call>{"name":"g","arguments":[1]}</tool_call>`, `g `, "", true, NoObject, jsonrepair.Valid},
	{"null for arguments", `<tool_call>{"name":"g","arguments":null}</tool_call>`, `g {}`, "", true, "", jsonrepair.Valid},
	{"unknown name", `<tool_call>{"name":"rm","arguments":{}}</tool_call>`, `rm {}`, "", true, UnknownName, jsonrepair.Valid},
	{"doubled name", `<tool_call>{"name":"get_timeget_time","arguments":{}}</tool_call>`, `get_time {}`, "", true, "", jsonrepair.Valid},
	{"qualified name", `<tool_call>{"name":"functions.get_time","arguments":{}}</tool_call>`, `get_time {}`, "", true, "", jsonrepair.Valid},
	{"placeholder", `<|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{}{"y":"MSFT"}<|tool_call_end|>`, `g {"y":"MSFT"}`, "", true, "", jsonrepair.Valid},
	{"placeholder behind", `<|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{"y":"MSFT"}{}<|tool_call_end|>`, `g {"y":"MSFT"}`, "", true, "", jsonrepair.Valid},
	{"several arguments", `<|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{"y":"A"}{"y":"B"}<|tool_call_end|>`, `g {"y":"A"} g {"y":"B"}`, "", true, "", jsonrepair.Valid},
	{"qwen missing value end", "<function=g>\n<parameter=y>\na\n<parameter=on>\ntrue\n</parameter>\n</function>", `g {"y":"a","on":true}`, "", true, "", jsonrepair.Valid},
	{"qwen missing function end", "<tool_call>\n<function=g>\n<parameter=y>\na\n</parameter>\n</tool_call>", `g {"y":"a"}`, "", true, "", jsonrepair.Valid},
	{"qwen cut value", "<tool_call>\n<function=g>\n<parameter=y>\nabc", `g {"y":"abc"}`, "", false, Truncated, jsonrepair.Valid},
	{"qwen broken object", "<function=g>\n<parameter=o>\n{'a': 1}\n</parameter>\n</function>", `g {"o":{"a":1}}`, "", true, "", jsonrepair.Repaired},
	{"pythonic positional", `[g("a")]`, `g {}`, "", true, Malformed, jsonrepair.Valid},
	{"pythonic object", `[g({"y": "x", 'on': True})]`, `g {"y":"x","on":true}`, "", true, "", jsonrepair.Repaired},
	{"pythonic object of another kind", `[g({"z": "x"})]`, `g {}`, "", true, Malformed, jsonrepair.Valid},
	{"pythonic without parenthesis", `[g(y="x"]`, `g {"y":"x"}`, "", true, "", jsonrepair.Repaired},
	{"second behind a missing brace", "<tool_call>{\"name\": \"g\", \"arguments\": {\"o\": {\"b\": 1}}\n{\"name\": \"f\", \"arguments\": {\"x\": 2}\n</tool_call>", `g {"o":{"b":1}} f {"x":2}`, "", true, "", jsonrepair.Truncated},
	{"junk before the end", "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\nnoimage\n</tool_call> Hm.", `get_time {}`, " Hm.", true, "", jsonrepair.Valid},
	{"pythonic cut", `[g(y="abc`, `g {"y":"abc"}`, "", false, Truncated, jsonrepair.Valid},
	{"pythonic cut number", `[f(x=12`, `f {}`, "", false, Truncated, jsonrepair.Valid},
	{"llama surplus brace", `{"name": "g", "parameters": {"y": "a"}}}`, `g {"y":"a"}`, "", true, "", jsonrepair.Repaired},
	{"only a marker", "<tool_call>\n", ``, "", true, "", jsonrepair.Valid},
	{"name cut behind text", "Fine.<|tool_calls_section_begin|><|tool_call_begin|>functions.ge", ``, "Fine.", true, "", jsonrepair.Valid},
	{"header cut", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_wea", ``, "<|channel|>analysis<|message|>Hm.<|end|>", true, "", jsonrepair.Valid},
	{"name cut", "Hm.\n<tool_call>\n{\"name\": \"get_wea", ``, "Hm.\n", true, "", jsonrepair.Valid},
}

func TestMalformed(t *testing.T) {
	for _, c := range malformedCases {
		t.Run(c.name, func(t *testing.T) {
			text := []byte(c.text)
			r := Find(text, Options{Tools: tools})
			checkResult(t, text, r)
			got := ""
			for i, g := range r.Calls {
				if i > 0 {
					got += " "
				}
				got += g.Name + " " + string(g.Arguments)
				if g.Complete != c.complete || g.Problem != c.problem {
					t.Errorf("complete %v, problem %q; want %v, %q", g.Complete, g.Problem, c.complete, c.problem)
				}
				if outcome := repairOutcome(g); outcome != c.outcome {
					t.Errorf("repair %v, want %v", outcome, c.outcome)
				}
			}
			if strip(got) != strip(c.want) || string(r.Rest) != c.rest {
				t.Errorf("%q, rest %q; want %q, %q; findings %v", got, r.Rest, c.want, c.rest, r.Findings)
			}
			checkStream(t, text, oneByOne(text), Options{Tools: tools})
		})
	}
}

func repairOutcome(c Call) jsonrepair.Outcome {
	if c.Repair == nil {
		return jsonrepair.Valid
	}
	return c.Repair.Outcome
}

// strip drops white space.
func strip(s string) string {
	var b []byte
	for i := range len(s) {
		if !isSpace(s[i]) {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// textCases are texts in which no call may be found: they stay as they are.
var textCases = []string{
	"",
	"Hello.",
	"Use the <tool_call> tag to call a function, and </tool_call> to end it.",
	"The model writes `<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>` to call f.",
	"```\n<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>\n```",
	"```xml\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n```\n",
	"~~~\n[TOOL_CALLS]f[ARGS]{\"x\": 1}\n~~~\n",
	"````\n```\n<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>\n```\n````\n",
	"```json\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\n```",
	"Such a call looks like {\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}} in JSON.",
	"An example:\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\nshows the form.",
	"{\"name\": \"Ann\", \"age\": 3}",
	"{\"name\": \"Ann\", \"parameters\": {\"age\": 3}}",
	"{\"name\": \"f\", \"age\": 3}",
	"{\"name\": \"f\", \"description\": \"a function\", \"parameters\": {\"type\": \"object\"}}",
	"{\"id\": 1, \"name\": \"get_weather\", \"city\": \"Paris\"}",
	"{\"type\": \"object\", \"name\": \"f\", \"parameters\": {}}",
	"{\"role\": \"user\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]}",
	"{\"content\": \"call f\", \"name\": \"f\", \"arguments\": {}}",
	"{\"text\": \"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {}}</tool_call>\"}",
	"{\"text\": \"[TOOL_CALLS]f[ARGS]{}\",\n\"more\": [1, 2]}\n",
	"[{\"name\": \"Ann\"}, {\"name\": \"Bob\"}]",
	"[1, 2, 3]",
	"[link](url) and [f(x) is a function]",
	"[sin(x), cos(x)]",
	"f(x=1) is a call.",
	"get_weather",
	"get_weather(city=\"Paris\") tells the weather of Paris.",
	"get_weather\nis a function.",
	"<tool_call>{\"a\": 1}</tool_call>",
	"[TOOL_CALLS][{\"a\": 1}]",
	"def f(x):\n    return [g(x=1), f(x=2)]\n",
	"In Python, write [f(x=1)] to get a list.",
	"- [ ] task\n- [x] done\n",
	">>> f(x=1)\n2\n>>> g\n",
	">>> {\"a\": 1}\n",
	"a < b, <b>bold</b>, <invoke>, <function=, <|x|>, [TOOL], [TOOL_CALLS] is a token",
	"Mistral writes [TOOL_CALLS] before its calls",
	"Before its calls Mistral writes [TOOL_CALLS]",
	"Kimi's token is `<|tool_call_begin|>",
	"<|channel|>final<|message|>Hello",
	"<|channel|>commentary<|message|>I will call f.<|end|>",
	"<function_calls> holds <invoke> elements",
	"<invoke name=\"f\"> is an element",
	"{ x: 1 }",
	"{\"a\": \"unterminated\nline {\"name\": \"f\"",
	"Action: read the ```json``` part",
	"Action: ```json\n[{\"a\": 1}]\n```",
	"| a | b |\n|---|---|\n| `<tool_call>` | x |\n",
	"<tool_c",
	"<",
	"a\n```",
}

func TestText(t *testing.T) {
	for _, s := range textCases {
		for _, o := range []Options{{}, {Tools: tools}, {Tools: tools, Formats: Formats()}} {
			r := Find([]byte(s), o)
			checkResult(t, []byte(s), r)
			if string(r.Rest) != s || len(r.Calls) > 0 || len(r.Edits) > 0 {
				t.Errorf("%q: rest %q, calls %+v", s, r.Rest, r.Calls)
			}
			checkStream(t, []byte(s), oneByOne([]byte(s)), o)
		}
	}
	// Without tools, forms without a marker are text.
	for _, c := range formatCases {
		if r := Find([]byte(c.text), Options{}); (c.text[0] == '{' || c.text[0] == '[' && c.text[1] != 'T') && c.format != OpenAI && len(r.Calls) > 0 {
			t.Errorf("%q: calls without tools", c.text)
		}
	}
}
