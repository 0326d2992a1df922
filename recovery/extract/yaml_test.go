package extract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/unfray/unfray/jsonrepair"
)

// yamlCases are answers and the JSON they are; "" where YAML refuses them.
var yamlCases = []struct{ name, in, want string }{
	{"lines", "name: Ann\nage: 3\n", `{"name":"Ann","age":3}`},
	{"one line", "name: Ann", `{"name":"Ann"}`},
	{"fence", "Here:\n```yaml\nname: Ann\n```\nOK.", `{"name":"Ann"}`},
	{"fence, short name", "```yml\nname: Ann\n```", `{"name":"Ann"}`},
	{"plain fence", "```\nname: Ann\nage: 3\n```", `{"name":"Ann","age":3}`},
	{"fence in a list", "- so:\n  ```yaml\n  name: Ann\n  tags:\n    - a\n  ```", `{"name":"Ann","tags":["a"]}`},
	{"fence in a quote", "> ```yaml\n> name: Ann\n> age: 3\n> ```", `{"name":"Ann","age":3}`},
	{"cut fence", "```yaml\nname: Ann\nage: 3", `{"name":"Ann","age":3}`},
	{"sequence in a fence", "```yaml\n- a\n- 1\n```", `["a",1]`},
	{"behind reasoning", "<think>x: y\nz: 1</think>\nname: Ann\nage: 3", `{"name":"Ann","age":3}`},
	{"prose around", "Here is the result:\n\nname: Ann\nage: 3\n\nLet me know if you need more!", `{"name":"Ann","age":3}`},
	{"a line that ends in a colon before", "Result:\n\nname: Ann\nage: 3", `{"name":"Ann","age":3}`},
	{"document marks", "---\nname: Ann\nage: 3\n...\n", `{"name":"Ann","age":3}`},
	{"comments", "# who\nname: Ann # really\nage: 3\n# end", `{"name":"Ann","age":3}`},
	{"nested", "a:\n  b: 1\n  c:\n    d: x\ne: 2", `{"a":{"b":1,"c":{"d":"x"}},"e":2}`},
	{"sequence", "a:\n  - x\n  - 1\nb: 2", `{"a":["x",1],"b":2}`},
	{"sequence, not indented", "a:\n- x\n- y\nb: 2", `{"a":["x","y"],"b":2}`},
	{"mappings in a sequence", "a:\n  - b: 1\n    c: 2\n  - b: 3\n", `{"a":[{"b":1,"c":2},{"b":3}]}`},
	{"mapping below a dash", "a:\n  -\n    b: 1\n  - c", `{"a":[{"b":1},"c"]}`},
	{"sequence in a sequence", "a:\n  - - 1\n    - 2\n  - - 3", `{"a":[[1,2],[3]]}`},
	{"empty values", "a:\nb: ~\nc: null\nd: \"\"\n", `{"a":null,"b":null,"c":null,"d":""}`},
	{"truth", "a: true\nb: False\nc: yes\nd: NO\ne: on\n", `{"a":true,"b":false,"c":"yes","d":"NO","e":"on"}`},
	{"numbers", "a: 1.10\nb: -3\nc: 1e5\nd: .5\ne: 12345678901234567890\n", `{"a":1.10,"b":-3,"c":1e5,"d":0.5,"e":12345678901234567890}`},
	{"no numbers", "a: 007\nb: 0x1F\nc: 1_000\nd: 12:30:45\ne: +1\nf: 1.2.3\ng: .inf\nh: 10%\n", `{"a":"007","b":"0x1F","c":"1_000","d":"12:30:45","e":"+1","f":"1.2.3","g":".inf","h":"10%"}`},
	{"dates", "a: 2024-01-02\nb: 2024-01-02T03:04:05Z\n", `{"a":"2024-01-02","b":"2024-01-02T03:04:05Z"}`},
	{"Norway", "country: NO\nother: SE", `{"country":"NO","other":"SE"}`},
	{"quotes", "a: \"x: \\\"y\\\" \\u00e9\\n\"\nb: 'it''s # so'\n'c d': 1\n", "{\"a\":\"x: \\\"y\\\" é\\n\",\"b\":\"it's # so\",\"c d\":1}"},
	{"surrogates", `a: "\ud83d\ude00"` + "\nb: 1", `{"a":"😀","b":1}`},
	{"quotes over lines", "a: \"x\n  y\n\n  z\"\nb: 1", `{"a":"x y\nz","b":1}`},
	{"text behind quotes", "a: \"Foo\" and bar\nb: 1", `{"a":"\"Foo\" and bar","b":1}`},
	{"colon in a value", "a: x: y\nb: http://x.y:80/\n", `{"a":"x: y","b":"http://x.y:80/"}`},
	{"marks in a value", "a: *bold* text\nb: @x\nc: 50% & more\nd: `x`\ne: & so", "{\"a\":\"*bold* text\",\"b\":\"@x\",\"c\":\"50% & more\",\"d\":\"`x`\",\"e\":\"& so\"}"},
	{"hash without space", "a: C#\nb: x#y", `{"a":"C#","b":"x#y"}`},
	{"literal", "a: |\n  x\n    y: z\n\n  w\nb: 1", `{"a":"x\n  y: z\n\nw\n","b":1}`},
	{"literal, stripped", "a: |-\n  x\nb: 1", `{"a":"x","b":1}`},
	{"literal, kept", "a: |+\n  x\n\nb: 1", `{"a":"x\n\n","b":1}`},
	{"literal, indented", "a: |2\n    x\nb: 1", `{"a":"  x\n","b":1}`},
	{"literal with a hash", "a: |\n  # x\n  y\nb: 1", `{"a":"# x\ny\n","b":1}`},
	{"folded", "a: >\n  x\n  y\n\n  z\nb: 1", `{"a":"x y\nz\n","b":1}`},
	{"folded, deeper lines", "a: >\n  x\n    y\n  z\nb: 1", `{"a":"x\n  y\nz\n","b":1}`},
	{"plain over lines", "a: x\n  y\n\n  z\nb: 1", `{"a":"x y\nz","b":1}`},
	{"value below", "a:\n  x\nb: 1", `{"a":"x","b":1}`},
	{"flow", "a: [1, x, \"y, z\", {b: 1, \"c\":2}]\nd: {}\ne: []\n", `{"a":[1,"x","y, z",{"b":1,"c":2}],"d":{},"e":[]}`},
	{"flow over lines", "a: [\n  1,\n  2\n]\nb: {\n  c: 1\n}", `{"a":[1,2],"b":{"c":1}}`},
	{"link", "a: [text](http://x)\nb: {name}\n", `{"a":"[text](http://x)","b":"{name}"}`},
	{"tags", "a: !!str 1\nb: !!int 2", `{"a":"1","b":2}`},
	{"carriage returns", "a: 1\r\nb:\r\n  - x\r\n", `{"a":1,"b":["x"]}`},
	{"names of words", "First name: Ann\nAge in years: 3", `{"First name":"Ann","Age in years":3}`},

	// What is not YAML, or not safe.
	{"prose", "Hello there.", ``},
	{"note", "Note: this is fine.", ``},
	{"one word", "Answer: 42", ``},
	{"sentences", "Note: this is all fine.\nWarning: that is not fine at all.", ``},
	{"prose with a colon", "The answer is simple: use a map.\nIt is fast.", ``},
	{"prose behind", "name: Ann\nage: 3\nHope this helps!", ``},
	{"Markdown", "**Name:** Ann\n**Age:** 3", ``},
	{"list", "- a\n- b", ``},
	{"Markdown list", "- **a**: x\n- **b**: y", ``},
	{"table", "| a: | b: |\n|---|---|", ``},
	{"JSON", `{"a": 1}`, ``},
	{"JSON lines", "[1]\n[2]", ``},
	{"Python", "try:\n  f()\nexcept:\n  g()", ``},
	{"Python function", "def f(x):\n    return x", ``},
	{"front matter", "---\nname: x\nabout: y\n---\n\n# Title\n\nText.", ``},
	{"source with fields", "from a import b\n\n\nclass R(T):\n    x: int\n\n\nx: int\ny: int", ``},
	{"changes", "Release notes\n=====\n\nAnn (2):\n      foo: do this\n      bar: do that\n", ``},
	{"URL", "http://x.y", ``},
	{"time", "12:30 lunch\n13:00 talk", ``},
	{"log", "2024-01-01 12:00:00 INFO: x\n2024-01-01 12:00:01 INFO: y", ``},
	{"code in a fence", "```go\nname: x\n```", ``},
	{"two fences", "```yaml\na: 1\n```\n```yaml\na: 2\n```", ``},
	{"alias", "a: &x 1\nb: *x", ``},
	{"merge", "a: 1\n<<: 2", ``},
	{"other tag", "a: !!binary aGk=\nb: 1", ``},
	{"same name twice", "a: 1\na: 2", ``},
	{"two documents", "a: 1\nb: 1\n---\na: 2", ``},
	{"directive", "%YAML 1.2\n---\na: 1\nb: 1", ``},
	{"open quotation mark", "a: \"x\nb: 1", ``},
	{"tab", "a:\n\tb: 1\nc: 1", ``},
	{"value and members", "a: x\n  b: 1", ``},
	{"wrong indentation", "a:\n    b: 1\n  c: 1", ``},
	{"XML", "<a>x: 1</a>", ``},
	{"empty", "", ``},
}

func TestYAML(t *testing.T) {
	for _, c := range yamlCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadYAML([]byte(c.in), Options{})
			checkConverted(t, []byte(c.in), got, err)
			if err == nil != (c.want != "") || err == nil && string(got.JSON) != c.want {
				t.Errorf("%q\n got %s (%v)\nwant %s", c.in, jsonOf(got), err, c.want)
			}
		})
	}
}

func jsonOf(c *Converted) []byte {
	if c == nil {
		return nil
	}
	return c.JSON
}

// checkConverted checks what always holds.
func checkConverted(t testing.TB, text []byte, c *Converted, err error) {
	t.Helper()
	if err != nil {
		var n *NotationError
		n, ok := err.(*NotationError)
		if !ok || n.Offset < 0 || n.Offset > len(text) || n.Cause == "" || c != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return
	}
	if e := jsonrepair.Check(c.JSON, 0); e != nil {
		t.Fatalf("%q: %s is not JSON: %v", text, c.JSON, e)
	}
	if e := jsonrepair.Check(c.Wrapped(), 0); e != nil {
		t.Fatalf("%q: %s is not JSON: %v", text, c.Wrapped(), e)
	}
	if got := jsonrepair.Apply(text, slices.Values(c.Edits)); !bytes.Equal(got, c.JSON) {
		t.Fatalf("%q: the edits give %s, not %s", text, got, c.JSON)
	}
	for _, f := range c.Findings {
		if f.Offset < 0 || f.Offset+f.Length > len(text) {
			t.Fatalf("%q: finding %+v", text, f)
		}
	}
}

func TestYAMLLimits(t *testing.T) {
	if _, err := ReadYAML([]byte("a: 1\nb: 2"), Options{MaxBytes: 5}); err == nil || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("MaxBytes: %v", err)
	}
	deep := "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\nb: [1]"
	if c, err := ReadYAML([]byte(deep), Options{}); err == nil && len(c.Findings) == 0 {
		t.Errorf("%s is nested too deep", c.JSON)
	}
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "%*sa:\n", i, "")
	}
	if _, err := ReadYAML([]byte(b.String()), Options{}); err == nil || !strings.Contains(err.Error(), "MaxDepth") {
		t.Errorf("MaxDepth: %v", err)
	}
	if c, err := ReadYAML([]byte(b.String()), Options{MaxDepth: 200}); err != nil {
		t.Errorf("MaxDepth 200: %v, %s", err, jsonOf(c))
	}
}

func TestYAMLFindings(t *testing.T) {
	const text = "country: NO\nname: a: b\ncode: 007\nok: fine"
	c, err := ReadYAML([]byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range c.Findings {
		got = append(got, text[f.Offset:f.Offset+f.Length])
	}
	if want := []string{"NO", "a: b", "007"}; !reflect.DeepEqual(got, want) {
		t.Errorf("findings of %q, want %q", got, want)
	}
}

// yamlScalars are written alike by our rules and by those of the library that is
// compared with.
var yamlScalars = []string{"x", "two words", "1", "-2", "1.5", "true", "false", "null", "~", "'single'", `"double"`, `"a\nb"`, "'it''s'", "x#y", "a:b", "[1, x]", "{k: v}", "[]", "{}", "http://x.y"}

// randomYAML writes a mapping or sequence in block style.
func randomYAML(r *rand.Rand, b *strings.Builder, indent, depth int) {
	if depth > 0 && r.IntN(3) == 0 {
		for range 1 + r.IntN(3) {
			fmt.Fprintf(b, "%*s- ", indent, "")
			randomValue(r, b, indent, depth, true)
		}
		return
	}
	for i := range 1 + r.IntN(3) {
		fmt.Fprintf(b, "%*skey%d:", indent, "", i)
		randomValue(r, b, indent, depth, false)
	}
}

func randomValue(r *rand.Rand, b *strings.Builder, indent, depth int, item bool) {
	switch n := r.IntN(8); {
	case n < 2 && depth < 4 && !item:
		b.WriteByte('\n')
		randomYAML(r, b, indent+1+r.IntN(3), depth+1)
	case n < 2 && depth < 4:
		fmt.Fprintf(b, "key: %s\n%*sother: 1\n", yamlScalars[r.IntN(len(yamlScalars))], indent+2, "")
	case n == 2:
		head := []string{"|", "|-", ">", ">-"}[r.IntN(4)]
		fmt.Fprintf(b, " %s\n", head)
		for range 1 + r.IntN(3) {
			fmt.Fprintf(b, "%*s%s\n", indent+2, "", []string{"line", "  deeper", "k: v", "# no comment"}[r.IntN(4)])
			if r.IntN(4) == 0 {
				b.WriteByte('\n')
			}
		}
	case n == 3 && !item:
		fmt.Fprintf(b, " words\n%*sthat go on\n", indent+2, "")
	case n == 4 && !item:
		b.WriteByte('\n')
	default:
		fmt.Fprintf(b, " %s\n", yamlScalars[r.IntN(len(yamlScalars))])
	}
}

// TestYAMLAgainstLibrary reads random documents with another reader of YAML.
func TestYAMLAgainstLibrary(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 2_000
	}
	r := rand.New(rand.NewPCG(3, 4))
	compared := 0
	for range n {
		var b strings.Builder
		randomYAML(r, &b, 0, 0)
		text := b.String()
		got, err := ReadYAML([]byte("```yaml\n"+text+"```"), Options{})
		var theirs any
		if other := yaml.Unmarshal([]byte(text), &theirs); other != nil {
			continue
		}
		if err != nil {
			t.Fatalf("%s\nrefused: %v\nit is %v", text, err, theirs)
		}
		want, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		var x, y any
		if json.Unmarshal(got.JSON, &x) != nil || json.Unmarshal(want, &y) != nil || !reflect.DeepEqual(x, y) {
			t.Fatalf("%s\n got %s\nwant %s", text, got.JSON, want)
		}
		compared++
	}
	if compared < n/2 {
		t.Errorf("only %d of %d documents were compared", compared, n)
	}
}
