package extract_test

import (
	"fmt"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/extract"
)

func ExampleSegments() {
	text := []byte("<think>A short one.</think>Here:\n```go\nx := 1\n```")
	for _, s := range extract.Segments(text, extract.Options{}) {
		fmt.Printf("%v %q %q\n", s.Kind, s.Info, s.Body(text))
	}
	// Output:
	// reasoning "" "A short one."
	// prose "" "Here:\n"
	// fence "go" "x := 1\n"
}

func ExampleScanner() {
	s := extract.NewScanner(extract.Options{})
	give := func(pieces []extract.Piece) {
		for _, p := range pieces {
			if p.Part == extract.Body {
				fmt.Printf("%v %q\n", p.Kind, p.Text)
			}
		}
	}
	for _, chunk := range []string{"<thi", "nk>A short", " one.</th", "ink>", "Yes."} {
		give(s.Write([]byte(chunk)))
	}
	give(s.Close())
	// Output:
	// reasoning "A short"
	// reasoning " one."
	// prose "Yes."
}

func ExampleCandidates() {
	text := []byte("Use the format \"I, [\"\n\n{}{'stock': 'MSFT'} as in [1].")
	found, err := extract.Candidates(text, extract.Options{})
	if err != nil {
		fmt.Println(err)
	}
	for _, c := range extract.Rank(found, nil) {
		fmt.Printf("%s complete %v, placeholder %v\n", c.Text, c.Complete, c.Placeholder)
	}
	best := extract.Rank(found, nil)[0]
	fmt.Printf("%s\n", jsonrepair.Repair(best.Text, jsonrepair.Options{}).Text)
	// Output:
	// {'stock': 'MSFT'} complete false, placeholder false
	// {} complete true, placeholder true
	// {"stock": "MSFT"}
}

func ExampleReadYAML() {
	c, err := extract.ReadYAML([]byte("Here it is:\n\ncountry: NO\ntags:\n- a\n- b\n"), extract.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", c.JSON)
	for _, f := range c.Findings {
		fmt.Printf("byte %d: %s\n", f.Offset, f.Text)
	}
	_, err = extract.ReadYAML([]byte("Note: this is prose."), extract.Options{})
	fmt.Println(err)
	// Output:
	// {"country":"NO","tags":["a","b"]}
	// byte 22: it is text here; other readers of YAML take it for a truth value, a number or a date
	// extract: byte 0: the answer is not YAML: one line with a colon is prose; read it as text, or as JSON by Candidates
}

func ExampleReadXML() {
	c, err := extract.ReadXML([]byte("<person><name>Ann</name><tags><tag>a</tag></tags></person>"), extract.Options{})
	fmt.Printf("%s %s %v\n", c.JSON, c.Root, err)
	// Output: {"name":"Ann","tags":["a"]} person <nil>
}
