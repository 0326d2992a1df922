package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
)

// serveFlags are the gateway's settings.
type serveFlags struct {
	model      modelFlags
	listen     string
	heal       string
	maxBody    int64
	timeout    time.Duration
	drain      time.Duration
	logPrompts bool
}

func newServe() *cobra.Command {
	var s serveFlags
	cmd := &cobra.Command{
		Use:   "serve [-m MODEL] [--listen ADDRESS]",
		Short: "Serve healed completions over HTTP, in OpenAI's dialect",
		Long: `Serve healed completions over HTTP, in OpenAI's dialect. The server stops on
SIGTERM or SIGINT: it refuses new requests and lets running ones finish.`,
		Example: `  unfray serve --listen 127.0.0.1:8080
  curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' \
    -d '{"prompt": "const userNa", "max_tokens": 8, "temperature": 0}'`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	s.model.add(f)
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 takes a free one")
	addHealFlag(cmd, &s.heal, "healing of requests that do not ask for one")
	f.Int64Var(&s.maxBody, "max-body", 0, "largest request body in bytes (default 8 MiB)")
	f.DurationVar(&s.timeout, "timeout", 0, "longest time one request may take (default 10m; below 0: no limit)")
	f.DurationVar(&s.drain, "drain", 0, "time that running requests have to finish when the server stops (default 30s; below 0: none)")
	f.BoolVar(&s.logPrompts, "log-prompts", false, "write prompts to the log")
	cmd.RunE = handler(func(cmd *cobra.Command, _ []string) error {
		mode, err := heal.ParseMode(s.heal)
		if err != nil {
			return usageError(err.Error())
		}
		if s.maxBody < 0 {
			return usageError("--max-body must not be negative")
		}
		return s.run(cmd, mode)
	})
	return cmd
}

func (s *serveFlags) run(cmd *cobra.Command, mode heal.Mode) (err error) {
	ctx := cmd.Context()
	// The port first: loading a model only to find it taken wastes time.
	ln, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	model, e, err := s.model.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	g, err := gateway.New(gateway.Config{
		Models:       []gateway.Model{{Model: model, Heal: mode}},
		MaxBodyBytes: s.maxBody,
		Timeout:      s.timeout,
		DrainTimeout: s.drain,
		LogPrompts:   s.logPrompts,
		Log:          slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "unfray: %s, listening on http://%s\n", describe(model), ln.Addr())
	return g.Serve(ctx, ln)
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

func describe(m *unfray.Model) string {
	info := m.Info()
	return fmt.Sprintf("%s, %s, context %d tokens", info.Name, m.Tokenizer(), info.ContextLength)
}
