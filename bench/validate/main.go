// Command validate compares jsonrepair.Check with other validators of JSON in
// Go, on one thread and in one run. It prints two Markdown tables: MB/s for
// each document, and which texts that are not JSON each validator lets pass.
//
//	go -C bench run ./validate
//	GOEXPERIMENT=jsonv2 go -C bench run ./validate -rounds 40 FILE.json…
//
// All validators take turns in every round and the best round of each counts,
// so that what else the machine does falls on all. Documents below a megabyte
// are repeated, as elements of an array, until they have one.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

var (
	rounds = flag.Int("rounds", 15, "measure everything so many times and take the best")
	only   = flag.String("only", "", "only documents whose name contains this")
)

// least is how large a document is made, in bytes.
const least = 1_000_000

func main() {
	flag.Parse()
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "validate:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string) error {
	docs, err := documents(files)
	if err != nil {
		return err
	}
	docs = slices.DeleteFunc(docs, func(d document) bool { return !strings.Contains(d.name, *only) })
	contestants := append(allContestants(), ours, standard)
	printMachine(w)
	results := measure(contestants, docs)
	printSpeed(w, contestants, docs, results)
	printStrictness(w, contestants)
	return nil
}

// measure gives the best speed of each contestant on each document in MB/s, 0
// where it refuses the document.
func measure(contestants []contestant, docs []document) [][]float64 {
	best := make([][]float64, len(docs))
	for i := range best {
		best[i] = make([]float64, len(contestants))
	}
	for range *rounds {
		for i, d := range docs {
			for j, c := range contestants {
				start := time.Now()
				valid := c.valid(d.text)
				if speed := float64(len(d.text)) / 1e6 / time.Since(start).Seconds(); valid {
					best[i][j] = max(best[i][j], speed)
				}
			}
		}
	}
	return best
}

func printSpeed(w io.Writer, contestants []contestant, docs []document, results [][]float64) {
	names := []string{"document", "MB"}
	for _, c := range contestants {
		names = append(names, c.name)
	}
	names = append(names, "unfray ÷ encoding/json", "unfray ÷ the fastest strict")
	row(w, names)
	row(w, slices.Repeat([]string{"---"}, len(names)))
	self, std := indexOf(contestants, ours.name), indexOf(contestants, standard.name)
	for i, d := range docs {
		cells := []string{d.name, fmt.Sprintf("%.1f", float64(len(d.text))/1e6)}
		fastest := 0
		for j, c := range contestants {
			cell := fmt.Sprintf("%.0f", results[i][j])
			if results[i][j] == 0 {
				cell = "refused"
			}
			cells = append(cells, cell)
			if j != self && len(accepted(c)) == 0 && (results[i][j] > results[i][fastest] || fastest == self || len(accepted(contestants[fastest])) > 0) {
				fastest = j
			}
		}
		speed := results[i][self]
		cells = append(cells, fmt.Sprintf("%.1f", speed/results[i][std]), fmt.Sprintf("%.2f (%s)", speed/results[i][fastest], contestants[fastest].name))
		row(w, cells)
	}
	fmt.Fprintln(w)
}

func indexOf(contestants []contestant, name string) int {
	return slices.IndexFunc(contestants, func(c contestant) bool { return c.name == name })
}

func row(w io.Writer, cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

func printMachine(w io.Writer) {
	experiments := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "GOEXPERIMENT" {
				experiments = ", GOEXPERIMENT=" + s.Value
			}
		}
		fmt.Fprintf(w, "%s %s/%s%s, best of %d rounds, MB/s. Versions:", runtime.Version(), runtime.GOOS, runtime.GOARCH, experiments, *rounds)
		for _, m := range info.Deps {
			if slices.ContainsFunc(peers, func(p string) bool { return p == m.Path }) {
				fmt.Fprintf(w, " %s %s,", m.Path, m.Version)
			}
		}
	}
	fmt.Fprint(w, " encoding/json of this Go.\n\n")
}

// A document is valid JSON.
type document struct {
	name string
	text []byte
}

// grow repeats a document as elements of an array until it is large enough.
func grow(text []byte) []byte {
	if len(text) >= least {
		return text
	}
	text = bytes.TrimSpace(text)
	out := []byte{'['}
	for len(out) < least {
		out = append(append(out, text...), ',')
	}
	out[len(out)-1] = ']'
	return out
}

func readFile(path string) (document, error) {
	text, err := os.ReadFile(path)
	return document{filepath.Base(path), grow(text)}, err
}
