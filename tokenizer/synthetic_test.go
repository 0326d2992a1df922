package tokenizer

import (
	"bytes"
	"math/rand/v2"
	"strings"
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

// pretokens gives the ends of the pretokens of a text that normalizes to itself.
func pretokens(t *Tokenizer, text []byte) []int {
	s := t.scratches.get()
	defer t.scratches.put(s)
	sp := spelling{t: t, s: s}
	t.walk(text, &t.plain, atStart, s, &sp)
	return sp.ends
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

// hard lists characters and fragments that a pre-tokenizer can stumble over.
var hard = []string{
	"a", "s", "t", "re", "ve", "m", "ll", "d", "l", "r", "v", "e", "A", "S", "'", "’", " ", "  ", "\n", "\r\n", "\t",
	"\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff",
	"\x1c", "\x1f", "\x7f", "5", "12", "٣", "²", "½", "Ⅷ", "〇", "é", "e\u0301", "ß", "ſ", "İ", "中", "한", "ㄱ", "あ",
	"ا", "ש", "ก", "ि", "😀", "👨‍👩‍👧", "🏳️", "\U000e0061", "\U0001d7d8", "\ufffd", "!", "...", "_", "-", "€", "`", "\\", "//", "",
	"\xff", "\xe2\x80", "\xc3", "\xf0\x9f", "\x80", "\xed\xa0\x80", "\xc0\x80", "\U0010ffff", "\u0378",
}

func randomText(rng *rand.Rand, parts []string, most int) string {
	var b strings.Builder
	for range rng.IntN(most) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()
}
