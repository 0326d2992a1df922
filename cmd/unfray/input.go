package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/wire"
)

// maxInput limits what is read from standard input or a line of a file, in
// bytes.
const maxInput = 256 << 20

// textArg returns a command's text: its only argument or, if that is "-" or
// missing, all of standard input, to the byte.
func textArg(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 1 && args[0] != "-" {
		return []byte(args[0]), nil
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("standard input holds more than %d bytes", maxInput)
	}
	return text, nil
}

// LineError says which line of a JSON Lines input is wrong.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// eachText is what --jsonl does: it calls f with the text of every line of
// standard input.
func eachText(cmd *cobra.Command, args []string, f func(text []byte) error) error {
	if len(args) > 0 && args[0] != "-" {
		return usageError("give either a text or --jsonl, which reads standard input")
	}
	return eachLine(cmd.InOrStdin(), func(line []byte) error {
		text, err := lineText(line)
		if err != nil {
			return err
		}
		return f(text)
	})
}

// eachLine calls f with every line of a JSON Lines input that is not blank. It
// refuses lines that Go's decoder would read but change, such as half of a
// surrogate pair.
func eachLine(r io.Reader, f func(line []byte) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxInput)
	n := 0
	for sc.Scan() {
		n++
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		err := wire.Check(sc.Bytes())
		if err == nil {
			err = f(sc.Bytes())
		}
		if err != nil {
			return &LineError{Line: n, Err: err}
		}
	}
	if err := sc.Err(); err != nil {
		return &LineError{Line: n + 1, Err: err}
	}
	return nil
}

// lineText reads the text of a JSON Lines input.
func lineText(line []byte) ([]byte, error) {
	var in struct {
		Text  *string `json:"text"`
		Bytes []byte  `json:"bytes"`
	}
	if err := decodeLine(line, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Text != nil:
		return []byte(*in.Text), nil
	case in.Bytes != nil:
		return in.Bytes, nil
	}
	return nil, errors.New(`neither "text" nor "bytes" is there`)
}

// decodeLine decodes a line of a JSON Lines input. Its errors speak of JSON, not
// of Go's types.
func decodeLine(line []byte, into any) error {
	err := json.Unmarshal(line, into)
	var mismatch *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &mismatch):
		return err
	case mismatch.Field == "":
		return fmt.Errorf("a line must be a JSON object, not %s", mismatch.Value)
	}
	return fmt.Errorf("%q cannot be %s", mismatch.Field, mismatch.Value)
}

// addHealFlag adds --heal, with completion of its values.
func addHealFlag(cmd *cobra.Command, mode *string, what string) {
	var names []string
	for _, m := range heal.Modes() {
		names = append(names, string(m))
	}
	cmd.Flags().StringVar(mode, "heal", string(heal.Auto), what+": "+strings.Join(names, ", "))
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("heal", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// writeJSON prints one JSON object on one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
