package config

import (
	"encoding/json"
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

// The output in the docs is real.
func TestDocsOutput(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse("unfray.yaml", []byte(`listeners:
  - address: 127.0.0.1:8080

upstreams:
  gpu:
    kind: vllm
    urls:
      - http://10.0.0.11:8000
      - http://10.0.0.12:8000
    max_connections: 64
    timeouts:
      connect: 2s
      idle: 30s
      first_token: 60

models:
  - name: coder
    upstream: gpu
  - name: small
    upsteam: gpu
`))
	if want := "$ unfray config check unfray.yaml\n" + fmt.Sprint(err) + "\nunfray: "; !strings.Contains(string(text), want) {
		t.Errorf("docs/configuration.md does not have\n%s", want)
	}
}

// The schema is JSON and has every key with what it is for.
func TestSchema(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	upstreams := doc["properties"].(map[string]any)["upstreams"].(map[string]any)["additionalProperties"].(map[string]any)
	first := upstreams["properties"].(map[string]any)["timeouts"].(map[string]any)["properties"].(map[string]any)["first_token"].(map[string]any)
	if first["description"] == "" || !regexp.MustCompile(first["pattern"].(string)).MatchString("1h30m") || regexp.MustCompile(first["pattern"].(string)).MatchString("30") {
		t.Errorf("first_token is %v", first)
	}
	if got := fmt.Sprint(upstreams["required"]); got != "[kind urls]" || upstreams["additionalProperties"] != false {
		t.Errorf("upstreams need %s", got)
	}
}
