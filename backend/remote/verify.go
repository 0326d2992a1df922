package remote

import (
	"context"
	"fmt"
	"slices"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// probeTexts are what both tokenizers are given. Each is of a kind on which
// tokenizers of one family differ.
var probeTexts = []string{
	"The capital of France is Paris.",
	"  two spaces, a tab\t, three\n\n\nlines \r\n and trailing   ",
	"for (int i = 0; i < 1024; i++) {\n\t\tx[i] = f(\"a\\n\", i) != 0x7fff;\n    }\n",
	"1 12 123 1234 12345 3.14159 1,000,000 2026-11-30",
	"don't we'll I'M THEY'RE it's 'quoted'",
	"naïve café, Größe, señor, Ελληνικά, Русский текст, עברית, العربية",
	"日本語のテキスト、简体中文,한국어 문장",
	"हिन्दी में लिखा, ไทยไม่มีช่องว่าง",
	"🙂👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 \u00a0\u2003\u200b\ufeff",
	"{\"key\": [true, null, -1.5e-7], \"path\": \"C:\\\\tmp\"}",
	"https://www.example.com/a/b?c=d&e=%20#f user@example.org",
	"____ ---- ==== .... !!!! ????????? (((([[[[{{{{",
}

// maxProbeTokens is how many of the vocabulary's own tokens are compared.
const maxProbeTokens = 64

// MismatchError says that the tokenizer at hand and that of the server's model
// differ.
type MismatchError struct {
	Text string     // what was tokenized
	Want []vocab.ID // by the server
	Got  []vocab.ID // by the tokenizer at hand
	// Tokens is the server's number of token IDs where that is what differs, and
	// Size that of the tokenizer at hand.
	Tokens, Size int
}

func (e *MismatchError) Error() string {
	if e.Tokens != e.Size {
		return fmt.Sprintf("remote: the tokenizer is not that of the server's model: it has %d tokens, the model %d; give that model's own", e.Size, e.Tokens)
	}
	return fmt.Sprintf("remote: the tokenizer is not that of the server's model: %q is %v by the server and %v by it; give that model's own", e.Text, e.Want, e.Got)
}

// tokenizeFunc asks a server for the tokens of a text. Where special is true,
// texts of control tokens in it become those tokens; and bos asks for the tokens
// that a prompt begins with.
type tokenizeFunc func(ctx context.Context, text string, special, bos bool) ([]vocab.ID, error)

// verify compares a tokenizer with a server's. It returns a [*MismatchError], or
// why there is nothing to compare with.
func verify(ctx context.Context, t *tokenizer.Tokenizer, ask tokenizeFunc) error {
	for _, text := range probeTexts {
		if err := verifyText(ctx, t, ask, text); err != nil {
			return err
		}
	}
	if err := verifyText(ctx, t, ask, vocabText(t.Vocab())); err != nil {
		return err
	}
	for _, text := range specialTexts(t.Vocab()) {
		want, err := ask(ctx, text, true, false)
		if err != nil {
			return fmt.Errorf("remote: the server's tokenizer cannot be asked: %w", err)
		}
		if got := t.EncodeSpecial(nil, []byte(text)); !slices.Equal(got, want) {
			return &MismatchError{Text: text, Want: want, Got: got}
		}
	}
	return nil
}

func verifyText(ctx context.Context, t *tokenizer.Tokenizer, ask tokenizeFunc, text string) error {
	want, err := ask(ctx, text, false, false)
	if err != nil {
		return fmt.Errorf("remote: the server's tokenizer cannot be asked: %w", err)
	}
	if got := t.Encode(nil, []byte(text)); !slices.Equal(got, want) {
		return &MismatchError{Text: text, Want: want, Got: got}
	}
	return nil
}

// verifyPlain compares what is only told by servers that do not take the text of
// control tokens for these tokens: that text, and what comes before a prompt.
func verifyPlain(ctx context.Context, t *tokenizer.Tokenizer, ask tokenizeFunc) error {
	v := t.Vocab()
	for _, text := range specialTexts(v) {
		if err := verifyText(ctx, t, ask, text); err != nil {
			return err
		}
	}
	text := probeTexts[0]
	want, err := ask(ctx, text, false, true)
	if err != nil {
		return fmt.Errorf("remote: the server's tokenizer cannot be asked: %w", err)
	}
	var got []vocab.ID
	if sp := v.Specials(); sp.AddBOS && sp.BOS != vocab.None {
		got = append(got, sp.BOS)
	}
	got = t.Encode(got, []byte(text))
	if n := len(got); n > len(want) || !slices.Equal(got, want[:n]) || len(want) > n && !v.IsEOG(want[n]) {
		return &MismatchError{Text: text, Want: want, Got: got}
	}
	return nil
}

// vocabText joins tokens from all over the vocabulary: where one file has other
// IDs than the other, it shows.
func vocabText(v *vocab.Vocab) string {
	var b []byte
	step := max(1, v.Len()/maxProbeTokens)
	for id := step - 1; id < v.Len(); id += step {
		if t := v.Bytes(vocab.ID(id)); v.Kind(vocab.ID(id)) == vocab.Normal && isPlain(t) {
			b = append(append(b, t...), ' ')
		}
	}
	return string(b)
}

// isPlain keeps to printable ASCII, which no server alters on its way.
func isPlain(b []byte) bool {
	return len(b) > 0 && !slices.ContainsFunc(b, func(c byte) bool { return c < ' ' || c > '~' })
}

// specialTexts are the texts of a few control tokens, each between words.
func specialTexts(v *vocab.Vocab) (texts []string) {
	for _, id := range v.Controls() {
		if t := v.Bytes(id); isPlain(t) && len(texts) < 3 {
			texts = append(texts, "one"+string(t)+"two")
		}
	}
	return texts
}

// checkSize compares the number of tokens, where the server tells it.
func checkSize(t *tokenizer.Tokenizer, tokens int) error {
	if n := t.Vocab().Len(); tokens > 0 && tokens != n {
		return &MismatchError{Tokens: tokens, Size: n}
	}
	return nil
}

// settle makes what is known of the tokenizer part of the inspection and of
// what the backend can do.
func (s *server) settle(err error) {
	s.tokenizer = err
	switch {
	case s.vocab == nil:
		s.inspection.Tokenizer = "not given"
	case err == nil:
		s.inspection.Tokenizer = "verified"
		return
	default:
		s.inspection.Tokenizer = "differs: " + err.Error()
	}
	c := &s.info.Capabilities
	*c = backend.Capabilities{Logprobs: c.Logprobs, Cached: c.Cached, Grammars: c.Grammars}
}
