package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/unfray/unfray/jsonrepair/jsontest"
)

// real are documents that come with a contestant's module, so that go.sum pins
// them.
var real = []string{
	"twitter", "citm_catalog", "github_events", "apache_builds", "gsoc-2018", "instruments", "update-center", "random", "twitterescaped", "payload-large",
	"canada", "mesh.pretty",
}

// documents are those of the generator, real ones, and files.
func documents(files []string) ([]document, error) {
	docs := []document{
		{"generated, one document", jsontest.Document(1, least)},
		{"generated, many small ones", small()},
		{"tool calls", toolCalls()},
	}
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/minio/simdjson-go").Output()
	if err != nil {
		return nil, fmt.Errorf("go list, which finds the documents of simdjson-go: %w; run it with go -C bench run ./validate", err)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	for _, name := range real {
		packed, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "testdata", name+".json.zst"))
		if err != nil {
			return nil, err
		}
		text, err := reader.DecodeAll(packed, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		docs = append(docs, document{name, grow(text)})
	}
	for _, path := range files {
		d, err := readFile(path)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	for _, d := range docs {
		if !standard.valid(d.text) {
			return nil, fmt.Errorf("%s is not one JSON document", d.name)
		}
	}
	return docs, nil
}

// small is an array of the generator's documents.
func small() []byte {
	g := jsontest.New(2)
	out := []byte{'['}
	for len(out) < least {
		out = append(g.Append(out, 0), ',')
	}
	out[len(out)-1] = ']'
	return out
}

// toolCalls is a conversation as chat servers store it: the arguments are JSON
// in strings.
func toolCalls() []byte {
	out := []byte(`{"object":"list","data":[`)
	for i := 0; len(out) < least; i++ {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"id":"chatcmpl-%08x","object":"chat.completion","created":%d,"model":"example-70b-instruct","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"search_documents","arguments":"{\"query\": \"quarterly revenue of department %d\", \"limit\": %d, \"filters\": {\"lang\": [\"en\", \"de\"], \"archived\": false}}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d},"system_fingerprint":"fp_%08x"}`,
			i*2654435761, 1_700_000_000+i*37, i, i%97, 1+i%50, 200+i%4_000, 20+i%300, 220+i%4_300, i*40503)
	}
	return append(out, `],"has_more":false}`...)
}
