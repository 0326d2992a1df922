// Capabilities writes the table of docs/backends.md from what the conformance
// suite found: it reads the output of `go test -json` on standard input.
//
//	make conformance
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// backends are the tests that run the suite, by the column of the table.
var backends = []struct{ test, column string }{
	{"TestNativeConformance", "embedded llama.cpp"},
	{"TestConformanceLlamaCpp", "llama.cpp's server"},
	{"TestConformanceVLLM", "vLLM"},
}

// The marks between which the table stands.
const (
	begin = "<!-- begin: written by make conformance -->\n"
	end   = "<!-- end -->\n"
)

// event is a line of `go test -json`.
type event struct {
	Action, Test, Output string
}

func main() {
	path := flag.String("write", "", "file whose table is replaced; none: print the table")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *path); err != nil {
		fmt.Fprintln(os.Stderr, "capabilities:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, path string) error {
	results, order, failed, err := read(in, out)
	if err != nil {
		return err
	}
	if failed {
		return errors.New("tests failed: the table stays as it was")
	}
	if path == "" {
		_, err = out.Write(table(results, order))
		return err
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	doc, err = replace(doc, table(results, order))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, doc, 0o644)
}

// read returns the outcome of each guarantee by column, and the guarantees in
// their order. What the tests print goes to out.
func read(in io.Reader, out io.Writer) (results map[string]map[string]string, order []string, failed bool, err error) {
	results = map[string]map[string]string{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // from the build
			continue
		}
		if e.Action == "output" && (e.Test == "" || strings.Contains(e.Output, "---") || !strings.HasPrefix(e.Output, "=== ")) {
			fmt.Fprint(out, e.Output)
		}
		failed = failed || e.Action == "fail"
		test, guarantee, ok := strings.Cut(e.Test, "/")
		i := slices.IndexFunc(backends, func(b struct{ test, column string }) bool { return b.test == test })
		if !ok || i < 0 || strings.Contains(guarantee, "/") {
			continue
		}
		switch e.Action {
		case "pass", "fail", "skip":
			if results[guarantee] == nil {
				results[guarantee] = map[string]string{}
				order = append(order, guarantee)
			}
			results[guarantee][backends[i].column] = e.Action
		}
	}
	return results, order, failed, lines.Err()
}

// table is the table in Markdown. A guarantee about what a backend cannot do has
// a dash, and so has a backend that was not run a whole column of them.
func table(results map[string]map[string]string, order []string) []byte {
	var b bytes.Buffer
	b.WriteString("| guarantee |")
	for _, c := range backends {
		fmt.Fprintf(&b, " %s |", c.column)
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(backends)) + "\n")
	for _, g := range order {
		fmt.Fprintf(&b, "| %s |", strings.ReplaceAll(g, "_", " "))
		for _, c := range backends {
			cell := map[string]string{"pass": "✓", "fail": "✗"}[results[g][c.column]]
			if cell == "" {
				cell = "–"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// replace puts a table between the marks of a document.
func replace(doc, table []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, errors.New("the marks of the table are missing")
	}
	return slices.Concat(before, []byte(begin), table, []byte(end), after), nil
}
