package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// tokenView is a token in a JSON result; Start and End are bytes of the text.
type tokenView struct {
	ID vocab.ID `json:"id"`
	exactText
	Start int `json:"start"`
	End   int `json:"end"`
}

// tokenViews describes ids, the tokens of text.
func tokenViews(t *tokenizer.Tokenizer, text []byte, ids []vocab.ID) []tokenView {
	views := make([]tokenView, 0, len(ids))
	ends := t.Ends(nil, text, ids)
	for i, id := range ids {
		b := t.Vocab().Bytes(id)
		views = append(views, tokenView{ID: id, exactText: newExactText(b), Start: ends[i] - len(b), End: ends[i]})
	}
	return views
}

func newTokenize() *cobra.Command {
	var path string
	var special, asJSON, count, jsonl bool
	cmd := &cobra.Command{
		Use:   "tokenize [-t TOKENIZER] [TEXT]",
		Short: "Print the token IDs of a text",
		Example: `  unfray tokenize 'The capital of France is Par'
  unfray tokenize -t model.gguf --json 'const userNa'
  unfray tokenize --count - < README.md`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	addTokenizerFlag(f, &path)
	f.BoolVar(&special, "special", false, "text that spells a control token becomes that token")
	f.BoolVar(&asJSON, "json", false, "print ids, and each token with its place, as JSON")
	f.BoolVar(&count, "count", false, "print the number of tokens alone")
	f.BoolVar(&jsonl, "jsonl", false, `read {"text"} a line, print {"ids"} a line`)
	cmd.MarkFlagsMutuallyExclusive("json", "count", "jsonl")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		t, err := openTokenizer(path)
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
		ids := encode([]vocab.ID{}, text)
		switch {
		case count:
			_, err = fmt.Fprintln(out, len(ids))
		case asJSON:
			err = writeJSON(out, struct {
				IDs    []vocab.ID  `json:"ids"`
				Tokens []tokenView `json:"tokens"`
			}{ids, tokenViews(t, text, ids)})
		default:
			_, err = fmt.Fprintln(out, joinIDs(ids))
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
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "detokenize [-t TOKENIZER] [ID…]",
		Short: "Print the exact bytes of token IDs",
		Example: `  unfray detokenize 504 3575 282 4649
  unfray tokenize 'some text' | unfray detokenize -`,
	}
	f := cmd.Flags()
	addTokenizerFlag(f, &path)
	f.BoolVar(&asJSON, "json", false, `print {"text"}, or {"bytes"} in base64 where it is not valid UTF-8`)
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		t, err := openTokenizer(path)
		if err != nil {
			return err
		}
		if len(args) == 0 || len(args) == 1 && args[0] == "-" {
			in, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxInput))
			if err != nil {
				return fmt.Errorf("reading standard input: %w", err)
			}
			args = []string{string(in)}
		}
		args = strings.FieldsFunc(strings.Join(args, " "), func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(",[]", r)
		})
		ids := make([]vocab.ID, 0, len(args))
		for i, arg := range args {
			n, err := strconv.ParseInt(arg, 10, 32)
			if err != nil {
				return usageError(fmt.Sprintf("ID %d: %q is not a token ID", i+1, arg))
			}
			if !t.Vocab().Valid(vocab.ID(n)) {
				return fmt.Errorf("ID %d: token %d is outside the vocabulary of %d tokens", i+1, n, t.Vocab().Len())
			}
			ids = append(ids, vocab.ID(n))
		}
		text := t.Decode(nil, ids)
		if asJSON {
			return writeJSON(cmd.OutOrStdout(), newExactText(text))
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	})
	return cmd
}
