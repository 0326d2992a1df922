package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/config"
)

// defaultListen is where the gateway listens unless told otherwise.
const defaultListen = "127.0.0.1:8080"

// serveFlags are the gateway's settings.
type serveFlags struct {
	model      modelFlags
	upstream   upstreamFlags
	config     string
	listen     string
	heal       string
	recover    string
	maxBody    int64
	timeout    time.Duration
	drain      time.Duration
	logPrompts bool
	noPredict  bool
}

func newServe() *cobra.Command {
	var s serveFlags
	cmd := &cobra.Command{
		Use:   "serve [-m MODEL | --upstream KIND=URL | --config FILE] [--listen ADDRESS]",
		Short: "Serve healed completions over HTTP, in OpenAI's dialect",
		Long: `Serve healed completions over HTTP, in OpenAI's and llama.cpp's dialects. The
model runs in this process, or on a server: then requests whose prompts need no
healing, and all that are about something else, go there as they came.

The server stops on SIGTERM or SIGINT (Ctrl-C): it refuses new requests and lets
running ones finish. A second signal ends it at once.`,
		Example: `  unfray serve --listen 127.0.0.1:8080
  unfray serve --upstream llamacpp=http://127.0.0.1:8081
  unfray serve --upstream vllm=http://127.0.0.1:8000 --tokenizer ~/models/qwen
  unfray serve --config unfray.yaml
  curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' \
    -d '{"prompt": "const userNa", "max_tokens": 8, "temperature": 0}'`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	s.model.add(f)
	s.upstream.add(f)
	f.StringVar(&s.config, "config", "", "configuration file (docs/configuration.md), in place of all flags but --listen")
	f.StringVar(&s.listen, "listen", defaultListen, "address to listen on; port 0 takes a free one")
	addHealFlag(cmd, &s.heal, "healing of requests that do not ask for one")
	f.StringVar(&s.recover, "recover", string(gateway.RecoverOff), "recovery of answers to requests that do not ask for one: "+strings.Join(recoverModes(), ", "))
	f.Int64Var(&s.maxBody, "max-body", 0, "largest request body in bytes (default 8 MiB)")
	f.DurationVar(&s.timeout, "timeout", 0, "longest time one request may take (default 10m; below 0: no limit)")
	f.DurationVar(&s.drain, "drain", 0, "time that running requests have to finish when the server stops (default 30s; below 0: none)")
	f.BoolVar(&s.logPrompts, "log-prompts", false, "write prompts to the log")
	f.BoolVar(&s.noPredict, "no-cache-prediction", false, "do not log how many tokens of each prompt are expected in the engine's cache")
	cmd.MarkFlagsMutuallyExclusive("model", "upstream", "config")
	engineFlagsOnly(cmd)
	cmd.RunE = handler(func(cmd *cobra.Command, _ []string) error {
		if s.config != "" {
			return s.runConfig(cmd)
		}
		mode, err := heal.ParseMode(s.heal)
		if err != nil {
			return usageError(err.Error())
		}
		if !slices.Contains(recoverModes(), s.recover) {
			return usageError(fmt.Sprintf("--recover: no mode %q; choose one of %s", s.recover, strings.Join(recoverModes(), ", ")))
		}
		if s.maxBody < 0 {
			return usageError("--max-body must not be negative")
		}
		return s.run(cmd, gateway.Model{Heal: mode, Recovery: gateway.Recovery{Mode: gateway.RecoverMode(s.recover)}})
	})
	return cmd
}

// recoverModes are the names of the gateway's modes of recovery.
func recoverModes() []string {
	var names []string
	for _, m := range gateway.RecoverModes() {
		names = append(names, string(m))
	}
	return names
}

func (s *serveFlags) run(cmd *cobra.Command, m gateway.Model) (err error) {
	ctx := cmd.Context()
	// The port first: loading a model only to find it taken wastes time.
	ln, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	setup := newSetup(slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	if s.noPredict {
		setup.prediction = config.Off
	}
	defer func() { err = errors.Join(err, setup.Close()) }()
	if len(s.upstream.addresses) > 0 {
		spec, err := s.upstream.spec()
		if err != nil {
			return err
		}
		spec.wait, spec.tell = waitToServe, teller(cmd)
		if err := setup.addUpstream(ctx, spec, m, true); err != nil {
			return err
		}
	} else if err := setup.addEngine(ctx, &s.model, m); err != nil {
		return err
	}
	setup.cfg.MaxBodyBytes = s.maxBody
	setup.cfg.Timeout = s.timeout
	setup.cfg.DrainTimeout = s.drain
	setup.cfg.LogPrompts = s.logPrompts
	return setup.serve(ctx, cmd.ErrOrStderr(), ln)
}

// teller tells the operator something before there is anything to serve.
func teller(cmd *cobra.Command) func(string) {
	return func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "unfray:", text) }
}

// serve runs the gateway until ctx ends.
func (s *setup) serve(ctx context.Context, errOut io.Writer, listeners ...net.Listener) error {
	g, err := gateway.New(s.cfg)
	if err != nil {
		return err
	}
	for _, a := range s.admissions {
		a.serve(g)
	}
	for _, line := range s.lines {
		fmt.Fprintln(errOut, "unfray:", line)
	}
	for _, ln := range listeners {
		scheme := "http"
		if _, ok := ln.(*tlsListener); ok {
			scheme = "https"
		}
		fmt.Fprintf(errOut, "unfray: listening on %s://%s\n", scheme, ln.Addr())
	}
	return g.Serve(ctx, listeners...)
}

// listen opens the gateway's port. A taken one is the commonest mistake, so
// its error says what to do.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use: end what listens there, or choose another port with --listen: %w", address, err)
	}
	return ln, err
}

// describeAs is describe for a model that clients call by another name, if not "".
func describeAs(name string, m *unfray.Model) string {
	if name == "" {
		return describe(m)
	}
	return name + ": " + describe(m)
}

func describe(m *unfray.Model) string {
	info := m.Info()
	return fmt.Sprintf("%s, %s, context %d tokens", info.Name, m.Tokenizer(), info.ContextLength)
}
