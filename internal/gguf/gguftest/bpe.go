package gguftest

import (
	"strings"

	"github.com/unfray/unfray/vocab"
)

// BPE describes a small byte-level BPE vocabulary: control tokens first, then
// the 256 single bytes, then what each merge makes, then added tokens.
type BPE struct {
	Pre      string      // pre-tokenizer; "" is "gpt-2"
	Controls []string    // control tokens
	Merges   [][2]string // bytes of the left and the right token, by rank
	Added    []string    // user-defined tokens
	Missing  string      // bytes that have no token
	Bare     [][2]string // merges after the others that make no token
}

// Display writes bytes as GPT-2's vocabulary does, each byte as a character
// that prints.
func Display(b string) string {
	out := make([]rune, len(b))
	for i := range len(b) {
		out[i] = displayBytes[b[i]]
	}
	return string(out)
}

var displayBytes = func() (m [256]rune) {
	hidden := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			m[b] = rune(b)
			continue
		}
		m[b] = hidden
		hidden++
	}
	return m
}()

// Pairs returns the metadata of a GGUF file with this vocabulary.
func (v BPE) Pairs() []Pair {
	var tokens, merges []string
	var kinds []int32
	add := func(text string, kind vocab.Kind) {
		tokens = append(tokens, text)
		kinds = append(kinds, int32(kind))
	}
	for _, c := range v.Controls {
		add(c, vocab.Control)
	}
	for b := range 256 {
		if c := string([]byte{byte(b)}); !strings.Contains(v.Missing, c) {
			add(Display(c), vocab.Normal)
		}
	}
	for _, m := range v.Merges {
		add(Display(m[0]+m[1]), vocab.Normal)
		merges = append(merges, Display(m[0])+" "+Display(m[1]))
	}
	for _, m := range v.Bare {
		merges = append(merges, Display(m[0])+" "+Display(m[1]))
	}
	for _, a := range v.Added {
		add(a, vocab.UserDefined)
	}
	pre := v.Pre
	if pre == "" {
		pre = "gpt-2"
	}
	return []Pair{
		{"general.architecture", "llama"},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", pre},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", kinds},
		{"tokenizer.ggml.merges", merges},
	}
}
