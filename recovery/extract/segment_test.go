package extract

import (
	"fmt"
	"strings"
	"testing"
)

// show writes segments in a short form: P for prose, R, F and M; the info string
// in parentheses; the body, as Body gives it, between bars; ! where nothing closes
// it.
func show(text string, segments []Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(strings.ToUpper(s.Kind.String()[:1]))
		if s.Info != "" {
			fmt.Fprintf(&b, "(%s)", s.Info)
		}
		fmt.Fprintf(&b, "|%s|", s.Body([]byte(text)))
		if !s.Closed {
			b.WriteByte('!')
		}
		b.WriteByte(' ')
	}
	return strings.TrimSuffix(b.String(), " ")
}

// segmentCases are texts and what they are made of, by show.
var segmentCases = []struct{ name, in, want string }{
	{"empty", "", ""},
	{"prose", "Hello.\n", "P|Hello.\n|"},

	// Reasoning.
	{"think", "<think>a</think>b", "R|a| P|b|"},
	{"lines", "<think>\na\n</think>\n\nb", "R|\na\n| P|\n\nb|"},
	{"space before", " \n<think>a</think>b", "P| \n| R|a| P|b|"},
	{"empty reasoning", "<think></think>b", "R|| P|b|"},
	{"letter case, attributes", "<Thinking mode='x'>a</THINKING>b", "R|a| P|b|"},
	{"other closer", "<thinking>a</think>b", "R|a| P|b|"},
	{"unclosed", "<think>a {\"b\":1}", "R|a {\"b\":1}|!"},
	{"unopened", "a\n</think>\nb", "R|a\n| P|\nb|"},
	{"unopened in a line", "so it is 4.</think>4", "R|so it is 4.| P|4|"},
	{"unopened with a fence", "a\n```py\nx\n```\nb\n</think>\n\nc", "R|a\n```py\nx\n```\nb\n| P|\n\nc|"},
	{"unopened, opener spoken of", "I use <think> tags.\n</think>\nb", "R|I use <think> tags.\n| P|\nb|"},
	{"pair over lines", "Wrap it in <think>\nso\n</think>\nand go on.", "P|Wrap it in <think>\nso\n</think>\nand go on.|"},
	{"unopened with JSON", "maybe {\"a\":0}?</think>{\"a\":1}", "R|maybe {\"a\":0}?| P|{\"a\":1}|"},
	{"closer first", "</think>b", "R|| P|b|"},
	{"closed twice", "<think>a</think>b\n</think>c", "R|a| P|b\n| R|| P|c|"},
	{"two parts", "<think>a</think>b\n<think>c</think>d", "R|a| P|b\n| R|c| P|d|"},
	{"fence in reasoning", "<think>\n```\nx\n```\n</think>b", "R|\n```\nx\n```\n| P|b|"},
	{"unclosed fence in reasoning", "<think>\n```\nx\n</think>b", "R|\n```\nx\n| P|b|"},
	{"fence right behind", "<think>a</think>```json\n{}\n```", "R|a| F(json)|{}\n|"},
	{"closer spoken of in reasoning", "<think>I end with `</think>`.</think>b", "R|I end with `</think>`.| P|b|"},
	{"behind a sentence", "Sure! <think>a</think>b", "P|Sure! | R|a| P|b|"},
	{"Magistral", "[THINK]a[/THINK]b", "R|a| P|b|"},
	{"Seed", "<seed:think>a</seed:think>b", "R|a| P|b|"},
	{"Kimi", "◁think▷a◁/think▷b", "R|a| P|b|"},
	{"Cohere", "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "R|a| M|<|START_RESPONSE|>| P|b| M|<|END_RESPONSE|>|"},
	{"Apertus, anywhere", "x <|inner_prefix|>a<|inner_suffix|>b", "P|x | R|a| P|b|"},
	{"Gemma", "<|channel>thought\na<channel|>b", "R|\na| P|b|"},
	{"Granite", "Here is my thought process:\na\nHere is my response:\nb", "R|\na\n| P|\nb|"},
	{"Apriel", "1. a\n[BEGIN FINAL RESPONSE]\nb\n[END FINAL RESPONSE]", "R|1. a\n| P|\nb\n| M|[END FINAL RESPONSE]|"},
	{"Ollama", "Thinking...\na\n...done thinking.\n\nb", "R|a\n| P|\n\nb|"},
	{"Hunyuan", "<think>\na\n</think>\n<answer>\nb\n</answer>", "R|\na\n| P|\n| M|<answer>| P|\nb\n| M|</answer>|"},
	{"ERNIE", "a\n</think>\n\n<response>\nb\n</response>\n", "R|a\n| P|\n\n| M|<response>| P|\nb\n| M|</response>| P|\n|"},
	{"harmony", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "R|a| M|<|start|>assistant<|channel|>final<|message|>| P|b| M|<|return|>|"},
	{"harmony cut", "<|channel|>analysis<|message|>a", "R|a|!"},
	{"harmony preamble", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b<|end|>", "R|a| M|<|start|>assistant<|channel|>commentary<|message|>| P|b| M|<|end|>|"},
	{"harmony without end", "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b", "R|a| M|<|start|>assistant<|channel|>final<|message|>| P|b|"},
	{"harmony tool call", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\":1}<|call|>", "R|a| P|<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\":1}<|call|>|"},
	{"harmony tool call, recipient first", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{\"x\":1}<|call|>", "P|<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{\"x\":1}<|call|>|"},
	{"harmony without tokens", "analysisThe user greets.assistantfinalHello", "R|The user greets.| P|Hello|"},

	// What is no reasoning.
	{"tag in a string", `{"text":"<think>x</think>y"}`, `P|{"text":"<think>x</think>y"}|`},
	{"tag in a string of several lines", "{\"text\":\"a\n<think>x</think>\ny\"}", "P|{\"text\":\"a\n<think>x</think>\ny\"}|"},
	{"tag behind a sentence in a string", `{"text":"Hm. <think>x</think>y"}`, `P|{"text":"Hm. <think>x</think>y"}|`},
	{"tag in single quotes", "{'text': 'a\n<think>x</think>\ny'}", "P|{'text': 'a\n<think>x</think>\ny'}|"},
	{"tag in triple quotes", "{\"text\": \"\"\"a\n<think>x</think>\n\"\"\"}", "P|{\"text\": \"\"\"a\n<think>x</think>\n\"\"\"}|"},
	{"tag in code", "s = re.sub(r\"<think>.*?</think>\", \"\", s)", "P|s = re.sub(r\"<think>.*?</think>\", \"\", s)|"},
	{"closing tag in code", "if s == \"a</think>b\" { return }", "P|if s == \"a</think>b\" { return }|"},
	{"tags in a list", "- <think>: opens it\n- </think>: closes it\n", "P|- <think>: opens it\n- </think>: closes it\n|"},
	{"tags in a table", "| <think> | opens |\n| </think> | closes |\n", "P|| <think> | opens |\n| </think> | closes |\n|"},
	{"tag in an array", `["<think>x</think>y"]`, `P|["<think>x</think>y"]|`},
	{"tag in a lone string", `"Hm. <think>x</think>y"`, `P|"Hm. <think>x</think>y"|`},
	{"tag in prose JSON", `Here: {"text":"Hm. <thinking>x</thinking>y"} ok`, `P|Here: {"text":"Hm. <thinking>x</thinking>y"} ok|`},
	{"tag in inline code", "Write `<think>` and `</think>` around it.", "P|Write `<think>` and `</think>` around it.|"},
	{"closing tag in inline code", "Close it by `</think>` then.", "P|Close it by `</think>` then.|"},
	{"tag spoken of", "Use <think> tags, ended by </think> tags.", "P|Use <think> tags, ended by </think> tags.|"},
	{"closing tag spoken of", "The </think> tag ends it.", "P|The </think> tag ends it.|"},
	{"pair in a line", "You can wrap it in <think>like so</think> and go on.", "P|You can wrap it in <think>like so</think> and go on.|"},
	{"tag in a fence", "```xml\n<think>a</think>\n```\n", "F(xml)|<think>a</think>\n| P|\n|"},
	{"closing tag in a fence", "a\n```xml\n</think>\n```\nb", "P|a\n| F(xml)|</think>\n| P|\nb|"},
	{"weak name later", "a\n<reasoning>b</reasoning>", "P|a\n<reasoning>b</reasoning>|"},
	{"XML answer", "<result><thought>a</thought></result>", "P|<result><thought>a</thought></result>|"},
	{"empty element", "<think/>\na", "P|<think/>\na|"},
	{"other tag", "<thinker>a</thinker>", "P|<thinker>a</thinker>|"},
	{"answer without reasoning", "<answer>b</answer>", "P|<answer>b</answer>|"},
	{"analysis of something", "analysis of the data", "P|analysis of the data|"},

	// Fences.
	{"fence", "a\n```go\nx := 1\n```\nb", "P|a\n| F(go)|x := 1\n| P|\nb|"},
	{"tildes", "~~~\nx\n~~~", "F|x\n|"},
	{"longer", "````md\n```go\nx\n```\n````", "F(md)|```go\nx\n```\n|"},
	{"closer longer", "```\nx\n`````", "F|x\n|"},
	{"closer shorter", "````\nx\n```\n", "F|x\n```\n|!"},
	{"other closer", "```\nx\n~~~\n", "F|x\n~~~\n|!"},
	{"unclosed", "```go\nfoo(", "F(go)|foo(|!"},
	{"opener only", "```json", "F(json)||!"},
	{"empty", "```\n```", "F||"},
	{"info string", "``` python title=\"a b\"\nx\n```", "F(python title=\"a b\")|x\n|"},
	{"carriage returns", "```go\r\nx\r\n```\r\ny", "F(go)|x\r\n| P|\r\ny|"},
	{"indented", "   ```go\n   x\n     y\n   ```", "F(go)|x\n  y\n|"},
	{"deeply indented", "      ```go\n      x\n      ```", "F(go)|x\n|"},
	{"in a list", "- ```go\n  x\n  ```\n- b", "P|- | F(go)|x\n| P|\n- b|"},
	{"in a numbered list", "1. Do:\n   ```sh\n   ls\n   ```\n2. b", "P|1. Do:\n| F(sh)|ls\n| P|\n2. b|"},
	{"in a quote", "> ```go\n> x\n>   y\n> ```\nb", "P|> | F(go)|x\n  y\n| P|\nb|"},
	{"quote ends it", "> ```go\n> x\nb\n", "P|> | F(go)|x\n|! P|b\n|"},
	{"quoted opener only", "> ```go\nx\n```\nb", "P|> | F(go)|x\n| P|\nb|"},
	{"quote in a list", "- > ```go\n  > x\n  > ```", "P|- > | F(go)|x\n|"},
	{"tabs", "\t```go\n\tx\n\t```", "F(go)|x\n|"},
	{"fence characters in the line", "```x``` is code\n", "P|```x``` is code\n|"},
	{"one line", "```json {\"a\":1}```", "F(json)| {\"a\":1}|"},
	{"one line, no language", "```{\"a\":1}```\nb", "F|{\"a\":1}| P|\nb|"},
	{"JSON on the opening line", "```json {\n\"a\":1}\n```", "F(json)|{\n\"a\":1}\n|"},
	{"JSON on the opening line, no language", "```{\"a\":\n1}\n```", "F|{\"a\":\n1}\n|"},
	{"attributes", "```{.python .numberLines}\nx\n```", "F({.python .numberLines})|x\n|"},
	{"JSON before the closer", "```json\n{\"a\":1}``` ok", "F(json)|{\"a\":1}| P| ok|"},
	{"text behind the closer", "```json\n{\"a\":1}\n``` ok", "F(json)|{\"a\":1}\n| P| ok|"},
	{"sentence behind the closer", "```py\nx\n``` This does it all.\nb", "F(py)|x\n| P| This does it all.\nb|"},
	{"no sentence behind it", "```py\nx\n``` a=1 b=2 c=3\nb\n```", "F(py)|x\n``` a=1 b=2 c=3\nb\n|"},
	{"forgotten closer", "```json\n{\"a\":1}\n```json\n{\"a\":2}\n```", "F(json)|{\"a\":1}\n|! F(json)|{\"a\":2}\n|"},
	{"opened twice", "```\n```json\n{\"a\":1}\n```\n```\nb", "F|```json\n{\"a\":1}\n```\n| P|\nb|"},
	{"nested in Markdown", "```markdown\n# T\n```py\nx\n```\nmore\n```\nb", "F(markdown)|# T\n```py\nx\n```\nmore\n| P|\nb|"},
	{"nested in triple quotes", "```python\ns = \"\"\"\n```js\nx\n```\n\"\"\"\n```\nb", "F(python)|s = \"\"\"\n```js\nx\n```\n\"\"\"\n| P|\nb|"},
	{"bare fence in triple quotes", "```python\ns = \"\"\"\n```\nx\n```\n\"\"\"\n```\nb", "F(python)|s = \"\"\"\n```\nx\n```\n\"\"\"\n| P|\nb|"},
	{"in a JSON string", "{\"md\":\"# T\n```py\nx=1\n```\n\",\"n\":1}", "P|{\"md\":\"# T\n```py\nx=1\n```\n\",\"n\":1}|"},
	{"in a JSON string in a fence", "```json\n{\"md\":\"# T\n```py\nx=1\n```\n\",\"n\":1}\n```\nb", "F(json)|{\"md\":\"# T\n```py\nx=1\n```\n\",\"n\":1}\n| P|\nb|"},
	{"bare one in a JSON string in a fence", "```json\n{\"md\":\"# T\n```\nx=1\n```\n\",\"n\":1}\n```\nb", "F(json)|{\"md\":\"# T\n```\nx=1\n```\n\",\"n\":1}\n| P|\nb|"},
	{"cut in a string in a fence", "```json\n{\"md\":\"# T\n```py\nx=1\n```", "F(json)|{\"md\":\"# T\n```py\nx=1\n```|!"},
	{"string that misses its end", "```json\n{\"a\": \"x\n```\nSee \"this\" too", "F(json)|{\"a\": \"x\n| P|\nSee \"this\" too|"},
	{"second try", "{\"a\": \"unclosed\n\nAgain:\n```json\n{\"a\": 1}\n```", "P|{\"a\": \"unclosed\n\nAgain:\n| F(json)|{\"a\": 1}\n|"},
	{"brackets in prose before", "Use \"I, [\"\n\n```json\n{\"a\":1}\n```", "P|Use \"I, [\"\n\n| F(json)|{\"a\":1}\n|"},
	{"unclosed JSON in prose before", "{\"a\":1\n\nOnce more, with \"marks\" and so on:\n\n```json\n{\"a\":1}\n```", "P|{\"a\":1\n\nOnce more, with \"marks\" and so on:\n\n| F(json)|{\"a\":1}\n|"},
	{"inline code over lines", "a `b\n```\nc\n```", "P|a `b\n| F|c\n|"},
}

func TestSegments(t *testing.T) {
	for _, c := range segmentCases {
		t.Run(c.name, func(t *testing.T) {
			if got := show(c.in, Segments([]byte(c.in), Options{})); got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

func TestOwnTags(t *testing.T) {
	o := Options{Tags: []Tag{
		{Open: "<plan>", Close: "</plan>", Place: AtLine, Unopened: true},
		{Open: "((", Close: "))", Also: []string{"}}", ""}, Until: []string{"", "STOP"}, Place: Anywhere},
	}}
	for in, want := range map[string]string{
		"<PLAN x>a</plan>b":      "R|a| P|b|",
		"a</plan>b":              "R|a| P|b|",
		"x ((a)) y ((b}} z":      "P|x | R|a| P| y | R|b| P| z|",
		"((a STOP b":             "R|a | P|STOP b|",
		"<think>a</think>b":      "P|<think>a</think>b|",
		"<|channel|>analysis":    "P|<|channel|>analysis|",
		"a\n<plan>\nb\n</plan>c": "P|a\n| R|\nb\n| P|c|",
	} {
		if got := show(in, Segments([]byte(in), o)); got != want {
			t.Errorf("%q\n got %s\nwant %s", in, got, want)
		}
		same(t, []byte(in), o, func() int { return 1 })
	}
	none := Options{Tags: []Tag{}}
	const in = "<think>a</think>\n```\nb\n```"
	if got := show(in, Segments([]byte(in), none)); got != "P|<think>a</think>\n| F|b\n|" {
		t.Errorf("no tags: got %s", got)
	}
}

func TestBodyIsPart(t *testing.T) {
	text := []byte("a\n```go\nx\n```\n")
	for _, s := range Segments(text, Options{}) {
		if b := s.Body(text); &b[0] != &text[s.BodyStart] {
			t.Errorf("the body of %v is a copy", s.Kind)
		}
	}
	for info, want := range map[string]string{"go": "go", " Python title=\"x\"": "python", "{.r .x}": "r", "{r}": "r", "c++": "c++", "json:schema": "json", "": "", "objective-c": "objective-c"} {
		if got := (Segment{Info: info}).Language(); got != want {
			t.Errorf("Language of %q is %q, want %q", info, got, want)
		}
	}
}

func TestCloser(t *testing.T) {
	for in, want := range map[string]string{
		"```go\nf(":                    "\n```",
		"````\nx\n":                    "````",
		"~~~":                          "\n~~~",
		"- ```go\n  f(":                "\n  ```",
		"> ```go\n> f(":                "\n> ```",
		"```md\n```go\nx":              "\n```\n```",
		"```json\n{\"a\":\"\n```py\nx": "\n```\n```",
		"```go\nf()\n```":              "",
		"<think>a":                     "",
		"a":                            "",
	} {
		segments := Segments([]byte(in), Options{})
		if got := segments[len(segments)-1].Closer([]byte(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
