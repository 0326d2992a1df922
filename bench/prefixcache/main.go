// Command prefixcache measures the replay of traces through simulated prefix
// caches, in one run, on one core: against kvcache-simulator on the same traces,
// policies and capacities with the hits compared, by the size of the trace, and
// on keystrokes. It prints Markdown tables.
//
//	settings=$(go run ./internal/deps/fetch -no-engine -vocabs -references bench/prefixcache -env) && eval "$settings"
//	go -C bench run ./prefixcache FOLDER
//
// FOLDER has mooncake-*.jsonl.gz and keystrokes-*.jsonl.gz. The comparison needs
// Python 3 with the package that the first command installs, c++ for its faster
// backend, and taskset to keep each contestant on one core. The table of
// keystrokes needs vocabularies.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

var (
	rounds = flag.Int("rounds", 5, "measure everything so many times, in turn, and take medians")
	only   = flag.String("only", "", "print only these tables, with commas between: kvcache, blocks, keystrokes")
	python = flag.Bool("python", true, "kvcache: also measure kvcache-simulator's Python backend")
	most   = flag.Int("blocks", 10_000_000, "blocks: the largest trace")
)

// tables are the parts of the output, in order.
var tables = []struct {
	name  string
	print func(w io.Writer, folder string) error
}{
	{"kvcache", printKVCache},
	{"blocks", printBlocks},
	{"keystrokes", printKeystrokes},
}

func main() {
	flag.Parse()
	err := errors.New("usage: prefixcache [flags] FOLDER")
	switch {
	case flag.Arg(0) == "worker":
		err = work(os.Stdout, flag.Args()[1:])
	case flag.NArg() == 1:
		err = run(os.Stdout, flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prefixcache:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, folder string) error {
	fmt.Fprintf(w, "%s, %d CPUs, %s; one core, medians of %d rounds.\n", runtime.Version(), runtime.NumCPU(), cpuName(), *rounds)
	for _, table := range tables {
		if *only == "" || slices.Contains(strings.Split(*only, ","), table.name) {
			fmt.Fprintln(w)
			if err := table.print(w, folder); err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
	}
	return nil
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
