package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const output = `{"Action":"run","Test":"TestNativeConformance"}
{"Action":"pass","Test":"TestNativeConformance/max_tokens"}
{"Action":"pass","Test":"TestNativeConformance/logits"}
{"Action":"pass","Test":"TestNativeConformance/logits/deep"}
{"Action":"pass","Test":"TestConformanceVLLM/max_tokens"}
{"Action":"skip","Test":"TestConformanceVLLM/choose"}
{"Action":"output","Test":"","Output":"ok\n"}
`

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(path, []byte("a\n"+begin+"old\n"+end+"b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(strings.NewReader(output), &out, path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "a\n" + begin + `| guarantee | embedded llama.cpp | llama.cpp's server | vLLM |
|---|:-:|:-:|:-:|
| max tokens | ✓ | – | ✓ |
| logits | ✓ | – | – |
| choose | – | – | – |
` + end + "b\n"
	if string(got) != want {
		t.Errorf("%s", got)
	}
	if out.String() != "ok\n" {
		t.Errorf("printed %q", out.String())
	}
	failing := output + `{"Action":"fail","Test":"TestConformanceVLLM/max_tokens"}` + "\n"
	if err := run(strings.NewReader(failing), &out, path); err == nil {
		t.Error("a failure is in the table")
	}
}
