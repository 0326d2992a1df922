package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
)

// demoPrompts end in the middle of a token: code, a URL, prose.
var demoPrompts = []struct{ kind, text string }{
	{"code", "def fibonacci(n):\n    if n <= 1:\n        retu"},
	{"URL", "Visit our website at https:"},
	{"prose", "The largest planet in the solar system is Jupi"},
}

func newDemo() *cobra.Command {
	var model modelFlags
	var address string
	var stay bool
	cmd := &cobra.Command{
		Use:   "demo [--stay] [--listen ADDRESS]",
		Short: "Start the gateway and show through its port what healing does",
		Long: `Start the gateway, send it prompts that end in the middle of a token through
its HTTP port, and print the plain continuation beside the healed one.`,
		Example: `  unfray demo
  unfray demo --stay --listen 127.0.0.1:8080`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	model.add(f)
	f.StringVar(&address, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	f.BoolVar(&stay, "stay", false, "keep the gateway up afterwards and say what to try next")
	cmd.RunE = handler(func(cmd *cobra.Command, _ []string) (err error) {
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		ln, err := listen(ctx, address)
		if err != nil {
			return err
		}
		defer ln.Close()
		m, e, err := model.open(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		g, err := gateway.New(gateway.Config{
			Models: []gateway.Model{{Model: m, Heal: heal.Auto}},
			Log:    slog.New(slog.DiscardHandler), // the terminal is for the comparison
		})
		if err != nil {
			return err
		}
		served := make(chan error, 1)
		go func() { served <- g.Serve(ctx, ln) }()

		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "gateway: http://%s with %s\n\n", ln.Addr(), describe(m))
		if err := showHealing(ctx, out, ln.Addr()); err != nil {
			return err
		}
		if stay {
			printNext(out, ln.Addr(), m.Info().Name)
		} else {
			stop()
		}
		return <-served
	})
	return cmd
}

// demoAnswer is what the demo reads of a completion.
type demoAnswer struct {
	Choices []struct{ Text string }
	Unfray  struct {
		Healing struct {
			TokensRemoved int `json:"tokens_removed"`
			BytesPending  int `json:"bytes_pending"`
		}
	}
	Error *struct{ Message string }
}

// showHealing sends each prompt twice, unhealed and healed.
func showHealing(ctx context.Context, out io.Writer, addr net.Addr) error {
	for _, p := range demoPrompts {
		plain, err := ask(ctx, addr, p.text, heal.Off)
		if err != nil {
			return err
		}
		healed, err := ask(ctx, addr, p.text, heal.Auto)
		if err != nil {
			return err
		}
		h := healed.Unfray.Healing
		fmt.Fprintf(out, "%s: the prompt ends mid-token\n", p.kind)
		fmt.Fprintf(out, "  unhealed  %s‖%s\n", lastLine(p.text), oneLine(plain.Choices[0].Text))
		fmt.Fprintf(out, "  healed    %s‖%s\n", lastLine(p.text), oneLine(healed.Choices[0].Text))
		fmt.Fprintf(out, "            %s\n\n", rolledBack(h.TokensRemoved, p.text[len(p.text)-h.BytesPending:]))
	}
	return nil
}

// rolledBack says how far a prompt was rolled back.
func rolledBack(tokens int, pending string) string {
	unit := "tokens"
	if tokens == 1 {
		unit = "token"
	}
	return fmt.Sprintf("rolled back %d %s, %q", tokens, unit, pending)
}

// ask sends one completion request to the gateway.
func ask(ctx context.Context, addr net.Addr, prompt string, mode heal.Mode) (*demoAnswer, error) {
	body, err := json.Marshal(map[string]any{
		"prompt": prompt, "max_tokens": 12, "temperature": 0,
		"unfray": map[string]any{"heal": mode},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr.String()+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer demoAnswer
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("gateway answered %s: %w", resp.Status, err)
	}
	if answer.Error != nil {
		return nil, fmt.Errorf("gateway answered %s: %s", resp.Status, answer.Error.Message)
	}
	if len(answer.Choices) == 0 {
		return nil, fmt.Errorf("gateway answered %s without a choice", resp.Status)
	}
	return &answer, nil
}

// printNext says what to try while the gateway stays up.
func printNext(out io.Writer, addr net.Addr, model string) {
	fmt.Fprintf(out, `The gateway stays up; Ctrl-C ends it. To try next, with curl:

curl http://%[1]s/v1/completions -H 'Content-Type: application/json' \
  -d '{"prompt": "const userNa", "max_tokens": 8, "temperature": 0, "unfray": {"heal": "auto"}}'

with the OpenAI client for Python (python3 -m pip install openai):

python3 - <<'EOF'
from openai import OpenAI
client = OpenAI(base_url="http://%[1]s/v1", api_key="none")
answer = client.completions.create(model=%[2]q, prompt="const userNa", max_tokens=8, temperature=0)
print(answer.choices[0].text)
EOF

`, addr, model)
}

// lastLine is what follows the last newline of s.
func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// oneLine shows newlines as a mark.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "⏎") }
