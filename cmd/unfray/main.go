// Command unfray heals prompts that end in the middle of a token and serves
// healed completions. Run "unfray help" for its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
)

// Exit statuses, as scripts rely on them.
const (
	exitOK     = 0
	exitFailed = 1 // the input could not be handled
	exitUsage  = 2 // wrong usage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end, a second one gets an abrupt end.
	context.AfterFunc(ctx, stop)
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// failure marks an error that is not the command line's fault.
type failure struct{ err error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// usageError marks a mistake in the command line that only the command itself
// could see.
type usageError string

func (e usageError) Error() string { return string(e) }

// run is main without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addCompletion(root)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "unfray: interrupted")
		return exitFailed
	case errors.As(err, new(failure)):
		fmt.Fprintln(stderr, "unfray:", message(err))
		return exitFailed
	default:
		fmt.Fprintf(stderr, "unfray: %s\nRun \"unfray help\" for usage.\n", message(err))
		return exitUsage
	}
}

// addCompletion makes cobra's own command that prints completion scripts, which
// keeps the output that root has now, and gives it an example.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Example = "  source <(unfray completion bash)"
		}
	}
}

// message is the text of an error without the name of package unfray, which is
// the command's too.
func message(err error) string { return strings.TrimPrefix(err.Error(), "unfray: ") }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "unfray",
		Short: "Heal the edges of LLM text",
		Long: `unfray keeps the edges of LLM text from fraying. A prompt that ends in the
middle of a token ("const userNa", a trailing blank, "https:") puts a model off
its stride; unfray rolls the prompt back to the tokens that nothing can change
and makes the model produce the dropped bytes again, so that the right
continuation can happen.`,
		Example: `  unfray complete 'The capital of France is Par' --compare
  unfray boundary 'const userNa'
  unfray lint prompts/*.txt
  unfray repair answer.json
  unfray serve --listen 127.0.0.1:8080`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		newComplete(), newTokenize(), newDetokenize(), newBoundary(), newLint(), newRepair(), newRecover(), newCache(),
		newEval(), newServe(), newUpstream(), newConfig(), newDemo(), newVersion(),
	)
	return root
}

// handler adapts a command's function: its errors are failures unless it says
// that they are wrong usage, or they are about a setting that a flag gave.
func handler(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		var setting *unfray.RequestError
		switch {
		case err == nil, errors.As(err, new(usageError)):
			return err
		case errors.As(err, &setting) && setting.Param != "prompt":
			return err
		}
		return failure{err}
	}
}
