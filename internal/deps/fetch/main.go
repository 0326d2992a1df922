// Command fetch brings the llama.cpp libraries and the model that unfray runs with, and on request what its tests run
// (OpenAI clients, vocabularies and corpora, reference tokenizers) into the cache. `make deps` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/unfray/unfray/internal/deps"
)

const usage = `usage: go run ./internal/deps/fetch [-no-engine] [-clients testdata/clients] [-vocabs] [-references testdata/reference] [-env]

Environment: %s (cache folder), %s (own GGUF file), %s (own llama.cpp libraries).
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	clients := flags.String("clients", "", "also install the OpenAI clients whose lock files lie in this `folder`")
	vocabs := flags.Bool("vocabs", false, "also fetch the vocabularies that the tests compare with their references, and make the corpora (about 300 MB to fetch, 170 MB kept)")
	references := flags.String("references", "", "also install the reference tokenizers whose lock file lies in this `folder`")
	noEngine := flags.Bool("no-engine", false, "leave out the llama.cpp libraries: the default build needs none")
	env := flags.Bool("env", false, "print the test settings as shell assignments on standard output, and on standard error only what is fetched")
	flags.Usage = func() {
		fmt.Fprintf(stderr, usage, deps.EnvCache, deps.EnvModel, deps.EnvLib)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		flags.Usage()
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := fetch(ctx, options{*clients, *references, *vocabs, !*noEngine, *env}, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// options say what to fetch and whether to print settings.
type options struct {
	clients    string // folder of lock files, or ""
	references string // folder of the lock file, or ""
	vocabs     bool
	engine     bool
	env        bool
}

func fetch(ctx context.Context, o options, stdout, stderr io.Writer) error {
	cache, err := deps.DefaultCache()
	if err != nil {
		return err
	}
	f := &deps.Fetcher{Cache: cache, Log: stderr, Quiet: o.env}
	var settings [][2]string
	if o.engine {
		lib, err := f.Engine(ctx)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_LIB", lib})
	}
	model, err := f.Model(ctx)
	if err != nil {
		return err
	}
	settings = append(settings, [2]string{"UNFRAY_TEST_MODEL", model})
	if o.clients != "" {
		dir, err := f.Clients(ctx, o.clients)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_CLIENTS", dir})
	}
	if o.vocabs {
		dir, err := f.Vocabs(ctx)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_VOCABS", dir})
	}
	if o.references != "" {
		dir, err := f.References(ctx, o.references)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_REFERENCES", dir})
	}
	if o.env {
		for _, s := range settings {
			fmt.Fprintf(stdout, "export %s='%s'\n", s[0], strings.ReplaceAll(s[1], "'", `'\''`))
		}
	}
	if o.engine {
		return deps.CheckLibffi()
	}
	return nil
}
