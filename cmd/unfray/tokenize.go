package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/internal/views"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

func newTokenize() *cobra.Command {
	var chosen tokenizerFlags
	var special, asJSON, count, jsonl, show bool
	cmd := &cobra.Command{
		Use:   "tokenize [-t TOKENIZER] [TEXT]",
		Short: "Print the token IDs of a text",
		Example: `  unfray tokenize 'The capital of France is Par'
  unfray tokenize -t o200k_base.tiktoken --show 'const userName = 1;'
  unfray tokenize -t model.gguf --json 'const userNa'
  unfray tokenize -t ./Qwen3-0.6B --count - < README.md`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	chosen.add(cmd)
	f.BoolVar(&special, "special", false, "text that spells a control token becomes that token")
	f.BoolVar(&show, "show", false, "draw the text cut into its tokens (· space, → tab, ↵ newline)")
	f.BoolVar(&asJSON, "json", false, "print ids, and each token with its place, as JSON")
	f.BoolVar(&count, "count", false, "print the number of tokens alone")
	f.BoolVar(&jsonl, "jsonl", false, `read {"text"} a line, print {"ids"} a line`)
	cmd.MarkFlagsMutuallyExclusive("json", "count", "jsonl", "show")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		t, err := chosen.open(cmd)
		if err != nil {
			return err
		}
		encode := t.Encode
		if special {
			encode = t.EncodeSpecial
		}
		out := cmd.OutOrStdout()
		if jsonl {
			return eachText(cmd, args, func(text []byte) error {
				return writeJSON(out, struct {
					IDs []vocab.ID `json:"ids"`
				}{encode([]vocab.ID{}, text)})
			})
		}
		text, err := textArg(cmd, args)
		if err != nil {
			return err
		}
		switch {
		case asJSON:
			ids, ends := t.EncodeEnds([]vocab.ID{}, nil, text, special)
			return writeJSON(out, struct {
				IDs    []vocab.ID    `json:"ids"`
				Tokens []views.Token `json:"tokens"`
			}{ids, views.Tokens(t, text, ids, ends)})
		case show:
			ids := encode(nil, text)
			_, err = io.WriteString(out, newDisplay(out).draw(picture{cells: tokenCells(t, ids, len(ids))}))
		case count:
			_, err = fmt.Fprintln(out, len(encode(nil, text)))
		default:
			_, err = fmt.Fprintln(out, joinIDs(encode(nil, text)))
		}
		return err
	})
	return cmd
}

func joinIDs(ids []vocab.ID) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(int(id)))
	}
	return b.String()
}

func newDetokenize() *cobra.Command {
	var chosen tokenizerFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "detokenize [-t TOKENIZER] [ID…]",
		Short: "Print the exact bytes of token IDs",
		Long: `Print the exact bytes of token IDs, which may be separated by blanks, commas and
brackets. IDs on standard input are decoded as they come.`,
		Example: `  unfray detokenize 504 3575 282 4649
  unfray tokenize 'some text' | unfray detokenize -`,
	}
	f := cmd.Flags()
	chosen.add(cmd)
	f.BoolVar(&asJSON, "json", false, `print {"text"}, or {"bytes"} in base64 where it is not valid UTF-8`)
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		in, wrong := cmd.InOrStdin(), func(err error) error { return err }
		if len(args) > 0 && !(len(args) == 1 && args[0] == "-") {
			in = strings.NewReader(strings.Join(args, " "))
			wrong = func(err error) error { return usageError(err.Error()) }
		}
		t, err := chosen.open(cmd)
		if err != nil {
			return err
		}
		if asJSON {
			var text bytes.Buffer
			if err := decodeIDs(&text, in, t, wrong); err != nil {
				return err
			}
			return writeJSON(cmd.OutOrStdout(), views.NewExact(text.Bytes()))
		}
		return decodeIDs(cmd.OutOrStdout(), in, t, wrong)
	})
	return cmd
}

// decodeIDs writes the bytes of the IDs that in lists. What is no number at all
// is an error that wrong may turn into one of usage.
func decodeIDs(w io.Writer, in io.Reader, t *tokenizer.Tokenizer, wrong func(error) error) (err error) {
	out := bufio.NewWriter(w)
	defer func() { err = errors.Join(err, out.Flush()) }()
	sc := bufio.NewScanner(in)
	sc.Split(splitIDs)
	d := t.NewDecoder()
	var buf []byte
	for i := 1; sc.Scan(); i++ {
		n, err := strconv.ParseInt(sc.Text(), 10, 32)
		if err != nil {
			return wrong(fmt.Errorf("ID %d: %q is not a token ID", i, sc.Text()))
		}
		if !t.Vocab().Valid(vocab.ID(n)) {
			return fmt.Errorf("ID %d: token %d is outside the vocabulary of %d tokens; is -t the tokenizer that made it?", i, n, t.Vocab().Len())
		}
		buf = d.Append(buf[:0], vocab.ID(n))
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("reading IDs: %w", err)
	}
	return nil
}

// splitIDs is a bufio.SplitFunc for what stands between blanks, commas and
// brackets.
func splitIDs(data []byte, atEOF bool) (advance int, token []byte, err error) {
	between := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",[]", r) }
	start := len(data) - len(bytes.TrimLeftFunc(data, between))
	end := bytes.IndexFunc(data[start:], between)
	switch {
	case end >= 0:
		_, size := utf8.DecodeRune(data[start+end:])
		return start + end + size, data[start : start+end], nil
	case atEOF && start < len(data):
		return len(data), data[start:], nil
	}
	return start, nil, nil
}
