//go:build !js

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/internal/views"
	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/tokenizer"
)

// TestInNode runs the module in Node and compares its answers with those of this
// process.
func TestInNode(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a WebAssembly module")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must test the module, but there is no node")
		}
		t.Skip("node is not installed")
	}
	texts := caseTexts(t)
	file := backendtest.GGUF(backendtest.VocabularyOptions{})
	prompts := []string{"The capital of Fr", "", "const userNa", "naïve \U0001f600 <a href=\"https:"}
	in, err := json.Marshal(map[string]any{"texts": texts, "tokenizer": file, "prompts": prompts})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "unfray_test.mjs")
	cmd.Dir = buildModule(t)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var got struct {
		Reports, Boundaries []map[string]any
		Streams             []streamed
		Strict              string
		Errors              []string
	}
	decode(t, out, &got)
	for i, text := range texts {
		r := jsonrepair.Repair(text, jsonrepair.Options{})
		compare(t, text, got.Reports[i], r.Report())
		compareStream(t, text, &got.Streams[i])
	}
	tok, err := tokenizer.Read(bytes.NewReader(file), "toy.gguf", tokenizer.ByFile)
	if err != nil {
		t.Fatal(err)
	}
	for i, prompt := range prompts {
		compare(t, []byte(prompt), got.Boundaries[i], views.Analyze(tok, []byte(prompt), false, 4))
	}
	if got.Strict != "ambiguous" {
		t.Errorf("the option strict: outcome %q", got.Strict)
	}
	for i, want := range []string{"no option sticky", "maxBytes must be a number", "no tokenizer file", "closed before", "longer than allowed"} {
		if !strings.Contains(got.Errors[i], want) {
			t.Errorf("error %q, want one with %q", got.Errors[i], want)
		}
	}
	t.Logf("%d texts, %d prompts", len(texts), len(prompts))
}

// streamed is what a stream gave in pieces of three bytes.
type streamed struct {
	Text   string
	Edits  []jsonrepair.Edit
	Ends   []string // paths of complete values
	Last   string   // the value before Close
	Report jsonrepair.Report
	Error  string // of a write behind Close
}

func compareStream(t *testing.T, text []byte, got *streamed) {
	t.Helper()
	s := jsonrepair.NewStream(jsonrepair.Options{})
	s.Write(text)
	r := s.Close()
	var v jsonrepair.View
	committed := string(s.Committed())
	v.Write([]byte(committed))
	v.Close()
	var ends []string
	for e := range v.Events() {
		if e.Complete() {
			ends = append(ends, string(e.Path))
		}
	}
	if got.Text != committed || strings.Join(got.Ends, " ") != strings.Join(ends, " ") || got.Report.Outcome != r.Outcome.String() || len(got.Edits) != len(s.Edits()) {
		t.Errorf("%.80q: the stream gives\n%+v, want %v\n%s\n%s", text, got, r.Outcome, committed, ends)
	}
	if !strings.Contains(got.Error, "closed before") {
		t.Errorf("a write behind the end: error %q", got.Error)
	}
}

// decode keeps numbers as they are written: some are too large for a float64.
func decode(t *testing.T, text []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %.500q", err, text)
	}
}

// compare compares JSON forms, but for the values: JavaScript has other numbers.
func compare(t *testing.T, text []byte, got map[string]any, want any) {
	t.Helper()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var form map[string]any
	decode(t, b, &form)
	_, has := got["value"]
	if _, wants := form["value"]; has != wants {
		t.Errorf("%.80q: a value is there: %v, want %v", text, has, wants)
	}
	delete(got, "value")
	delete(form, "value")
	if !reflect.DeepEqual(got, form) {
		t.Errorf("%.80q: got\n%v\nwant\n%v", text, got, form)
	}
}

// caseTexts returns the inputs of the cases of package jsonrepair.
func caseTexts(t *testing.T) (texts [][]byte) {
	t.Helper()
	f, err := os.Open("../jsonrepair/testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c struct {
			In  string
			B64 []byte
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, append(append([]byte{}, c.B64...), c.In...))
	}
	return texts
}

// buildModule returns a folder with the module, its face and the test program.
func buildModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "unfray.wasm"), ".")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"), "unfray.mjs", "unfray_test.mjs"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
