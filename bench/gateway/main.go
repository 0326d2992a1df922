//go:build unix

// Command gateway measures what a gateway adds to a request: unfray with healing off and on beside nginx, Envoy and
// LiteLLM, all in one run, in front of the same mock server and on the same two CPUs. It prints Markdown tables.
//
//	gateway/setup.sh FOLDER
//	go -C bench run ./gateway -peers FOLDER -unfray ../bin/unfray -tokenizer MODEL.gguf
//	go -C bench run ./gateway -tokenizer MODEL.gguf plan      the cost of tokenizing and planning alone
//	go -C bench run ./gateway -kind vllm -tokenizer MODEL.gguf mock      the mock server
//
// The mock answers at once, so that the figures are of the gateways alone. Every gateway runs all the time; they are
// measured in turns, in several rounds, and the figures are medians over the rounds. Every answer is checked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// defaultArgs is unfray's command line.
const defaultArgs = "serve --listen {listen} --upstream {kind}={upstream} --tokenizer {tokenizer} --heal {heal}"

var (
	peersDir   = flag.String("peers", "", "folder that setup.sh made; peers that are not there are left out")
	unfrayPath = flag.String("unfray", "", "unfray's binary; without it unfray is left out")
	unfrayArgs = flag.String("unfray-args", defaultArgs, "unfray's arguments; {listen}, {upstream}, {kind}, {heal}, {tokenizer} and {dir} are filled in")
	healModes  = flag.String("heal", "stable,exact", "modes of healing that unfray is measured with beside off, with commas between")
	kind       = flag.String("kind", "llamacpp", "server that the mock stands for: llamacpp or vllm")
	tokenizers = flag.String("tokenizer", "", "tokenizer of the mock's model: a GGUF, a tokenizer.json or a folder with it; healing needs one")
	texts      = flag.String("texts", "../docs/rationale.md,../boundary/boundary.go", "files that prompts are cut from, with commas between")
	chat       = flag.Bool("chat", false, "ask for chat completions; they end with the user's turn, so nothing is to be healed")
	rounds     = flag.Int("rounds", 5, "measure everything so many times and take medians")
	slice      = flag.Duration("slice", 900*time.Millisecond, "time of one measurement")
	warm       = flag.Duration("warm", 250*time.Millisecond, "time before each measurement that is not counted")
	only       = flag.String("only", "", "only these, with semicolons between: names of gateways as in the tables")
	peerCPUs   = flag.String("cpus", "", "CPUs of the gateways, as taskset has them; default 0,1")
	ownCPUs    = flag.String("own-cpus", "", "CPUs of the load and the mock; default the others if there are two more, else the same")
	listenOn   = flag.String("listen", "127.0.0.1:0", "mock: address to listen on")
	verbose    = flag.Bool("v", false, "show every measurement on standard error")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: gateway [flags] [mock|plan]")
		flag.PrintDefaults()
	}
	flag.Parse()
	var err error
	switch strings.Join(flag.Args(), " ") {
	case "mock":
		err = serveMock(*listenOn, *kind, *tokenizers) // until a signal ends the process
	case "plan":
		err = printPlans(os.Stdout, *tokenizers, strings.Split(*texts, ","), *rounds)
	case "":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = compare(ctx)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// compare starts everything, measures and prints.
func compare(ctx context.Context) (err error) {
	b := &bench{route: completionRoute, rounds: *rounds, warm: *warm, slice: *slice}
	if *chat {
		b.route = chatRoute
	}
	if b.rounds < 1 || b.slice <= 0 || b.warm < 0 {
		return errors.New("-rounds and -slice must be above 0, -warm not below")
	}
	if *verbose {
		b.progress = os.Stderr
	}
	b.peers = peers(*peersDir, *unfrayPath, *unfrayArgs, strings.Split(*healModes, ","))
	if *only != "" {
		wanted := strings.Split(*only, ";")
		b.peers = slices.DeleteFunc(b.peers, func(p *peer) bool {
			return p.command != nil && !slices.Contains(wanted, p.name)
		})
	}
	if *unfrayPath != "" && *tokenizers == "" {
		return errors.New("unfray heals with its model's tokenizer: give -tokenizer, a GGUF or a tokenizer.json")
	}
	dir, err := os.MkdirTemp("", "gateway-bench-")
	if err != nil {
		return err
	}
	// A gateway's own user, as nginx's workers have one, must get to its files.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir) // after a failure the logs are of use
		}
	}()
	gateways, own := chooseCPUs(*peerCPUs, *ownCPUs, runtime.NumCPU())
	if err := b.prepare(*kind, *tokenizers, strings.Split(*texts, ",")); err != nil {
		return err
	}
	defer b.stop()
	if err := b.start(ctx, dir, gateways, own); err != nil {
		return err
	}
	if err := b.measure(ctx); err != nil {
		return err
	}
	fmt.Printf("%s, %d CPUs, %s; gateways on CPUs %s, load and mock on %s; mock of %s; %d rounds of %v.\n\n",
		runtime.Version(), runtime.NumCPU(), cpuName(), gateways, own, *kind, b.rounds, b.slice)
	return b.print(os.Stdout)
}

// chooseCPUs returns the CPUs of the gateways and of the load and the mock: two for the gateways, the others for the
// rest where there are at least two others.
func chooseCPUs(gateways, own string, n int) (string, string) {
	if gateways == "" {
		gateways = "0,1"
		if n < 2 {
			gateways = "0"
		}
	}
	if own == "" {
		own = gateways
		if n >= 4 {
			own = fmt.Sprintf("2-%d", n-1)
		}
	}
	return gateways, own
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
