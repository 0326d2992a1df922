package config

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of keys into docs/configuration.md instead of comparing with it")

const docs = "../../docs/configuration.md"

// keyTable is every key of the file as a table in Markdown.
func keyTable() string {
	var b strings.Builder
	b.WriteString("| key | value | meaning |\n|---|---|---|\n")
	var walk func(f form, path string)
	walk = func(f form, path string) {
		switch {
		case f.item != nil:
			walk(*f.item, path+"[]")
		case f.named != nil:
			walk(*f.named, path+".NAME")
		}
		for _, k := range f.fields {
			at := join(path, k.key)
			if strings.HasSuffix(path, "[]") {
				at = path + "." + k.key
			}
			shown := "`" + at + "`"
			if k.required {
				shown = "**" + shown + "**"
			}
			value := k.form.name
			if words, ok := k.form.schema["enum"].([]string); ok {
				value = "`" + strings.Join(words, "`, `") + "`"
			}
			if least, ok := k.form.schema["minimum"].(int); ok {
				value += fmt.Sprintf(", %d to %d", least, k.form.schema["maximum"])
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", shown, value, k.doc)
			walk(k.form, at)
		}
	}
	walk(schema.form, "")
	return b.String()
}

func TestDocsListEveryKey(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)(<!-- keys -->\n).*?(<!-- /keys -->)`)
	if !block.Match(text) {
		t.Fatal("docs/configuration.md has no place for the table of keys")
	}
	want := block.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(keyTable(), "$", "$$")+"${2}"))
	if *update {
		if err := os.WriteFile(docs, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(want) != string(text) {
		t.Errorf("the table of keys in docs/configuration.md is not that of the schema: run go test -run TestDocs -update ./internal/config")
	}
}

// The examples in the docs are read, and together they have every key.
func TestDocsExamples(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 3 {
		t.Fatalf("%d examples in docs/configuration.md, want 3", len(examples))
	}
	env := func(string) (string, bool) { return "0123456789abcdef0123456789abcdef", true }
	for i, e := range examples {
		r := Reader{LookupEnv: env, SkipFiles: true}
		if i == 0 {
			// Two keys of the same value would be one key.
			r.LookupEnv = func(name string) (string, bool) { return name + "-0123456789abcdef", true }
		}
		c, err := r.Parse("unfray.yaml", []byte(e[1]))
		if err != nil {
			t.Errorf("example %d:\n%v", i, err)
			continue
		}
		for _, w := range c.Warnings {
			t.Errorf("example %d: %v", i, w)
		}
	}
	whole := examples[0][1]
	var check func(f form)
	check = func(f form) {
		if f.item != nil {
			check(*f.item)
		}
		if f.named != nil {
			check(*f.named)
		}
		for _, k := range f.fields {
			if !regexp.MustCompile(`(?m)(^|[ {-])` + k.key + `:`).MatchString(whole) {
				t.Errorf("the example with everything has no %s", k.key)
			}
			check(k.form)
		}
	}
	check(schema.form)
}
