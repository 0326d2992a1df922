// Command repair compares package jsonrepair with other JSON repairers, all in one run and on the same inputs. It prints
// Markdown tables.
//
//	settings=$(go run ./internal/deps/fetch -no-engine -clients bench/repair -env) && eval "$settings"
//	go -C bench run ./repair cases      right, wrong and refused, on the cases of jsonrepair/testdata
//	go -C bench run ./repair damage     real documents with one structural byte removed, doubled or moved
//	go -C bench run ./repair speed      broken documents, and time per byte on hostile shapes
//
// Every contestant, unfray too, runs in a process of its own that is fed line by line; only the call itself is timed. A
// call that takes longer than -limit is an error and its process is started anew. Without UNFRAY_TEST_CLIENTS the
// contestants that are not Go are left out.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

var (
	casesDir = flag.String("cases", "../jsonrepair/testdata", "folder of the cases")
	verbose  = flag.Bool("v", false, "cases: list all that unfray gets wrong; damage: show some inputs that it gets wrong")
	limit    = flag.Duration("limit", 10*time.Second, "time for one call")
	only     = flag.String("only", "", "only these contestants, with commas between")
	docsDirs = flag.String("docs", "", "damage: folders with JSON files, with commas between; default: what npm, pip and Go have installed here")
	docCount = flag.Int("n", 200, "damage: number of documents")
	perDoc   = flag.Int("positions", 40, "damage: at most so many damages of one kind to a document, 0: all")
	rounds   = flag.Int("rounds", 3, "speed: measure so many times and take medians")
)

// tables know the subcommands by name.
var tables = map[string]func(w io.Writer, all []*contestant) error{
	"cases":  printCases,
	"damage": printDamage,
	"speed":  printSpeed,
	"stream": printStream,
}

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: repair [flags] cases|damage|speed|stream")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 2 && flag.Arg(0) == "serve" {
		exit(serve(flag.Arg(1), os.Stdin, os.Stdout))
	}
	if flag.NArg() != 1 || tables[flag.Arg(0)] == nil {
		flag.Usage()
		os.Exit(2)
	}
	all, err := openContestants(os.Getenv("UNFRAY_TEST_CLIENTS"))
	if err != nil {
		exit(err)
	}
	fmt.Printf("%s, %d CPUs, %s; one call at a time, at most %v each.\n\n", runtime.Version(), runtime.NumCPU(), cpuName(), *limit)
	err = tables[flag.Arg(0)](os.Stdout, all)
	for _, c := range all {
		c.stop()
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "repair:", err)
		os.Exit(1)
	}
	os.Exit(0)
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
