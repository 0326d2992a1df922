package extract

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// A corpus is a megabyte of what answers are like.
var corpus = map[string]string{
	"prose":  fill("Some models \"think\" before they answer [1], others don't. It's a question of `temperature`, and of how long\nthe answer may be (see the table).\n\n- First, measure.\n- Then change one thing.\n\n"),
	"JSON":   "[" + strings.TrimSuffix(fill("{\"id\": 12, \"name\": \"A name with \\\"marks\\\"\", \"tags\": [\"a\", \"b\"], \"ok\": true},\n"), ",\n") + "]",
	"fences": fill("Then run it:\n\n```go\nfunc main() {\n\tfmt.Println(\"hello\", map[string]int{\"a\": 1})\n}\n```\n\nThat is all.\n\n"),
	"lines":  fill("{\"id\": 12, \"name\": \"A name\", \"ok\": true}\n"),
	"think":  "<think>" + fill("So the user wants {\"a\": 1}, or <b>? Let me see what comes out.\n") + "</think>{\"a\": 1}",
	"broken": "{'list': [" + fill("{'id': 12, name: \"A name\", \"ok\": True},\n"),
	"YAML":   "```yaml\nitems:\n" + fill("  - id: 12\n    name: A name of words\n    tags: [a, b]\n    text: |\n      one\n      two\n") + "```",
	"XML":    "<items>\n" + fill("  <item id=\"1\"><name>A name</name><text>one &amp; two</text></item>\n") + "</items>",
}

func fill(s string) string { return strings.Repeat(s, 1_000_000/len(s)) }

func BenchmarkText(b *testing.B) {
	run := func(name, what string, f func([]byte)) {
		text := []byte(corpus[name])
		b.Run(what+"/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f(text)
			}
		})
	}
	for _, name := range []string{"prose", "JSON", "fences", "lines", "think", "broken"} {
		run(name, "Segments", func(text []byte) { Segments(text, Options{}) })
		run(name, "Scanner", func(text []byte) {
			s := NewScanner(Options{})
			for len(text) > 0 {
				n := min(16, len(text))
				s.Write(text[:n])
				text = text[n:]
			}
			s.Close()
		})
		run(name, "Candidates", func(text []byte) { Candidates(text, Options{}) })
	}
	o := Options{MaxBytes: 2 << 20}
	run("YAML", "ReadYAML", func(text []byte) {
		if _, err := ReadYAML(text, o); err != nil {
			b.Fatal(err)
		}
	})
	run("XML", "ReadXML", func(text []byte) {
		if _, err := ReadXML(text, o); err != nil {
			b.Fatal(err)
		}
	})
	run("JSON", "IsValid", func(text []byte) { jsonrepair.IsValid(text) })
}
