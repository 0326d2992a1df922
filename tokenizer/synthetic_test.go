package tokenizer

import (
	"bytes"
	"testing"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/vocab"
)

// synthetic describes a small vocabulary: a token for every byte, one for the
// result of each merge, then the added and the control tokens.
type synthetic struct {
	pre      string
	merges   [][2]string // strings of bytes, not spelled
	added    []string
	controls []string
	extra    []gguftest.Pair
}

// spell writes bytes as GPT-2's vocabulary does: its bytes_to_unicode.
func spell(s string) string {
	var out []rune
	for _, b := range []byte(s) {
		switch {
		case '!' <= b && b <= '~', 0xa1 <= b && b <= 0xac, 0xae <= b:
			out = append(out, rune(b))
		case b <= 0x20:
			out = append(out, 0x100+rune(b))
		case b <= 0xa0: // 0x7f … 0xa0 come after the 33 below
			out = append(out, 0x100+33+rune(b-0x7f))
		default: // 0xad
			out = append(out, 0x100+33+34)
		}
	}
	return string(out)
}

// pairs are the keys and values of the model file.
func (s synthetic) pairs() []gguftest.Pair {
	var tokens, merges []string
	var types []int32
	seen := map[string]bool{}
	add := func(text string, kind vocab.Kind) {
		if !seen[text] {
			seen[text] = true
			tokens = append(tokens, text)
			types = append(types, int32(kind))
		}
	}
	for b := range 256 {
		add(spell(string([]byte{byte(b)})), vocab.Normal)
	}
	for _, m := range s.merges {
		merges = append(merges, spell(m[0])+" "+spell(m[1]))
		add(spell(m[0]+m[1]), vocab.Normal)
	}
	for _, text := range s.added {
		add(text, vocab.UserDefined)
	}
	for _, text := range s.controls {
		add(text, vocab.Control)
	}
	pairs := []gguftest.Pair{
		{Key: "general.architecture", Value: "llama"},
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: s.pre},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: merges},
	}
	return append(pairs, s.extra...)
}

func (s synthetic) open(t testing.TB) *Tokenizer {
	t.Helper()
	return open(t, gguftest.Build(s.pairs()...))
}

// pieces gives the pretokens of a text as strings.
func pieces(t *Tokenizer, text string) []string {
	var out []string
	at := 0
	for _, e := range t.Pretokens(nil, []byte(text)) {
		out = append(out, text[at:e])
		at = e
	}
	return out
}

// openWith adds lines to the list of merges as they are.
func (s synthetic) openWith(t testing.TB, lines ...string) *Tokenizer {
	t.Helper()
	return edit(t, s, func(p *gguftest.Pair) {
		if p.Key == "tokenizer.ggml.merges" {
			p.Value = append(p.Value.([]string), lines...)
		}
	})
}

// openWithout makes the tokens of some bytes unused.
func (s synthetic) openWithout(t testing.TB, missing ...string) *Tokenizer {
	t.Helper()
	return edit(t, s, func(p *gguftest.Pair) {
		if types, ok := p.Value.([]int32); ok {
			for _, b := range missing {
				types[b[0]] = int32(vocab.Unused)
			}
		}
	})
}

func edit(t testing.TB, s synthetic, change func(*gguftest.Pair)) *Tokenizer {
	t.Helper()
	pairs := s.pairs()
	for i := range pairs {
		change(&pairs[i])
	}
	return open(t, gguftest.Build(pairs...))
}

func open(t testing.TB, b []byte) *Tokenizer {
	t.Helper()
	f, err := gguf.Read(bytes.NewReader(b), gguf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
