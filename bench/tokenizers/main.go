// Command tokenizers compares unfray's tokenizers with others, in one run and
// on one thread: throughput with the ids compared, loading, worst cases, many
// goroutines, prefix queries and stable prefixes. It prints Markdown tables.
//
//	settings=$(go run ./internal/deps/fetch -no-engine -vocabs -references bench/tokenizers -env) && eval "$settings"
//	go -C bench run ./tokenizers
//	GOEXPERIMENT=simd go -C bench run ./tokenizers -only throughput
//
// Tools that are not Go run in a Python process of their own, driven through
// their native cores; only the call that encodes is timed. Without
// UNFRAY_TEST_REFERENCES they are left out.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/internal/deps/corpus"
)

var (
	rounds  = flag.Int("rounds", 3, "measure everything so many times and take medians")
	slowMiB = flag.Int("slow-mib", 4, "MiB of a corpus that slow tools encode; what they are compared with is measured on the same")
	only    = flag.String("only", "", "print only these tables, with commas between: throughput, loading, worst, goroutines, prefixes")
	vocabs  = flag.String("vocabs", "", "print only these vocabularies' throughput, with commas between")
)

// tables are the parts of the output, in order.
var tables = []struct {
	name  string
	print func(w io.Writer, e *environment) error
}{
	{"throughput", printThroughput},
	{"loading", printLoading},
	{"worst", printWorst},
	{"goroutines", printGoroutines},
	{"prefixes", printPrefixes},
}

// An environment is what all tables are made from.
type environment struct {
	vocabDir   string
	references string // PYTHONPATH of the contestants, or ""
	texts      map[string][]byte
}

func main() {
	flag.Parse()
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tokenizers:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	e := &environment{vocabDir: os.Getenv("UNFRAY_TEST_VOCABS"), references: os.Getenv("UNFRAY_TEST_REFERENCES"), texts: map[string][]byte{}}
	if e.vocabDir == "" {
		return errors.New("UNFRAY_TEST_VOCABS is not set: `go run ./internal/deps/fetch -no-engine -vocabs -references bench/tokenizers -env` fetches what is needed and prints it")
	}
	fmt.Fprintf(w, "%s, %d CPUs, %s; MB are 10^6 bytes; medians of %d rounds; one thread, but for the table of goroutines.\n\n", runtime.Version(), runtime.NumCPU(), cpuName(), *rounds)
	fmt.Fprint(w, "| corpus | bytes | SHA-256 | made of |\n|---|---:|---|---|\n")
	for _, c := range corpus.All {
		text, err := os.ReadFile(e.corpusPath(c.Name))
		if err == nil {
			err = c.Check(text)
		}
		if err != nil {
			return err
		}
		e.texts[c.Name] = text
		fmt.Fprintf(w, "| %s | %d | %.12s… | %s |\n", c.Name, c.Bytes, c.SHA256, c.From)
	}
	if e.references == "" {
		fmt.Fprint(w, "\nUNFRAY_TEST_REFERENCES is not set: tiktoken, tokenizers, sentencepiece, quicktok and gigatoken are left out.\n")
	}
	runtime.GOMAXPROCS(1)
	for _, table := range tables {
		if *only == "" || slices.Contains(strings.Split(*only, ","), table.name) {
			fmt.Fprintln(w)
			if err := table.print(w, e); err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
	}
	return nil
}

func (e *environment) corpusPath(name string) string {
	return filepath.Join(e.vocabDir, "corpora", name+".txt")
}

func (e *environment) vocabPath(file string) string {
	return filepath.Join(e.vocabDir, filepath.FromSlash(file))
}

// cpuName returns the processor's name where the system tells it.
func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

// median sorts values and returns the middle one.
func median[T time.Duration | float64](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// timed returns how long f takes.
func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// perSecond returns the rate in MB (10^6 bytes) a second.
func perSecond(bytes int, d time.Duration) float64 { return float64(bytes) / d.Seconds() / 1e6 }
