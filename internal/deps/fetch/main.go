// Command fetch brings the llama.cpp libraries and the model that unfray runs with, and on request what its tests run
// (OpenAI clients, vocabularies and corpora, reference tokenizers, llama.cpp's server) into the cache. `make deps` calls it.
package main

import (
	"bufio"
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

const usage = `usage: go run ./internal/deps/fetch [-no-engine] [-clients testdata/clients] [-vocabs] [-references testdata/reference] [-llama-server] [-gemma [-accept-gemma-terms]] [-env]

Environment: %s (cache folder), %s (own GGUF file), %s (own llama.cpp libraries).
`

func main() {
	var person io.Reader // nil: nobody is there to answer
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		person = os.Stdin
	}
	os.Exit(run(os.Args[1:], person, os.Stdout, os.Stderr))
}

func run(args []string, person io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	clients := flags.String("clients", "", "also install the OpenAI clients whose lock files lie in this `folder`")
	vocabs := flags.Bool("vocabs", false, "also fetch the vocabularies that the tests compare with their references, and make the corpora (about 300 MB to fetch, 170 MB kept)")
	references := flags.String("references", "", "also install the reference tokenizers whose lock file lies in this `folder`, and fetch the test cases of ftfy")
	llamaServer := flags.Bool("llama-server", false, "also install llama.cpp's own server (about 34 MB), which the conformance tests start")
	gemma := flags.Bool("gemma", false, "also fetch Gemma 3 270M as a second model (about 240 MB), once its terms of use are accepted")
	accept := flags.Bool("accept-gemma-terms", false, "accept the terms that -gemma shows; otherwise they are asked for where there is a terminal")
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
	o := options{
		clients: *clients, references: *references, vocabs: *vocabs, llamaServer: *llamaServer, gemma: *gemma,
		engine: !*noEngine, env: *env,
		accept: func(terms string) error { return acceptGemma(ctx, terms, *accept, person, stderr) },
	}
	if err := fetch(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// options say what to fetch and whether to print settings.
type options struct {
	clients     string // folder of lock files, or ""
	references  string // folder of the lock file, or ""
	vocabs      bool
	llamaServer bool
	gemma       bool
	engine      bool
	env         bool

	accept func(terms string) error // asks for consent to the terms of Gemma, which lie in a file
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
		if dir, err = f.MojibakeCases(ctx); err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_FTFY", dir})
	}
	if o.llamaServer {
		dir, err := f.LlamaServer(ctx)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_LLAMA_SERVER", dir})
	}
	if o.gemma {
		path, err := f.Gemma(ctx, o.accept)
		if err != nil {
			return err
		}
		settings = append(settings, [2]string{"UNFRAY_TEST_GEMMA", path})
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

// acceptGemma shows where the terms of use of Gemma are and returns an error unless they are accepted: beforehand, or
// by the answer of a person, if there is one.
func acceptGemma(ctx context.Context, terms string, accepted bool, person io.Reader, stderr io.Writer) error {
	fmt.Fprintf(stderr, `
Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms
(a copy: %s).
They bind whoever uses the model, forbid some uses (ai.google.dev/gemma/prohibited_use_policy), and say what must go
with it when it is passed on.

`, terms)
	if accepted {
		fmt.Fprintln(stderr, "The terms were accepted with the request.")
		return nil
	}
	if person != nil {
		fmt.Fprint(stderr, "Accept them and fetch the model (about 240 MB)? [y/N] ")
		answer := make(chan string, 1)
		go func() { // it ends with the process at the latest
			line, _ := bufio.NewReader(person).ReadString('\n') // no answer is none
			answer <- strings.ToLower(strings.TrimSpace(line))
		}()
		select {
		case a := <-answer:
			if a == "y" || a == "yes" {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the terms were not accepted, and Gemma was not fetched: `make gemma ACCEPT=yes` accepts them")
}
