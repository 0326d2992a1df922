package tiktoken

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Encoding is an encoding that OpenAI published. The values are those of
// tiktoken_ext/openai_public.py of tiktoken 0.14.
type Encoding struct {
	Name    string
	Pattern string         // the regular expression that cuts text into pretokens (pat_str)
	Special []SpecialToken // by ID; with the ranks they are all tokens
	Hash    string         // SHA-256 of the rank file, in hexadecimal digits
}

// SpecialToken is a token that no text gives unless it is asked for.
type SpecialToken struct {
	Text string
	ID   int
}

// Patterns. OpenAI rewrote those of r50k and cl100k with possessive
// quantifiers, for speed; what they match is what the originals matched.
const (
	patternR50k   = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
	patternCL100k = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
	patternO200k  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// Hashes of the rank files.
const (
	hashR50k   = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
	hashP50k   = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
	hashCL100k = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
	hashO200k  = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
)

// encodings are in the order in which ByHash prefers them.
var encodings = []Encoding{
	{"o200k_base", patternO200k, []SpecialToken{{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}, hashO200k},
	{"o200k_harmony", patternO200k, harmony(), hashO200k},
	{"cl100k_base", patternCL100k, []SpecialToken{
		{"<|endoftext|>", 100257},
		{"<|fim_prefix|>", 100258},
		{"<|fim_middle|>", 100259},
		{"<|fim_suffix|>", 100260},
		{"<|endofprompt|>", 100276},
	}, hashCL100k},
	{"p50k_base", patternR50k, []SpecialToken{{"<|endoftext|>", 50256}}, hashP50k},
	{"p50k_edit", patternR50k, []SpecialToken{
		{"<|endoftext|>", 50256},
		{"<|fim_prefix|>", 50281},
		{"<|fim_middle|>", 50282},
		{"<|fim_suffix|>", 50283},
	}, hashP50k},
	{"r50k_base", patternR50k, []SpecialToken{{"<|endoftext|>", 50256}}, hashR50k},
	// OpenAI publishes gpt2 as encoder.json and vocab.bpe; the tokens, their
	// ranks and IDs are those of r50k_base.
	{"gpt2", patternR50k, []SpecialToken{{"<|endoftext|>", 50256}}, hashR50k},
}

// harmony lists the special tokens of o200k_harmony. <|endofprompt|> and
// <|reserved_200018|> have the same ID; tiktoken encodes both to it and decodes
// it to the first.
func harmony() []SpecialToken {
	named := map[int]string{
		199998: "<|startoftext|>",
		199999: "<|endoftext|>",
		200002: "<|return|>",
		200003: "<|constrain|>",
		200005: "<|channel|>",
		200006: "<|start|>",
		200007: "<|end|>",
		200008: "<|message|>",
		200012: "<|call|>",
	}
	var all []SpecialToken
	for id := 199998; id < 201088; id++ {
		if id == 200018 {
			all = append(all, SpecialToken{"<|endofprompt|>", id})
		}
		text := named[id]
		if text == "" {
			text = fmt.Sprintf("<|reserved_%d|>", id)
		}
		all = append(all, SpecialToken{text, id})
	}
	return all
}

// Known finds a published encoding by name.
func Known(name string) (Encoding, bool) {
	for _, e := range encodings {
		if e.Name == name {
			return e, true
		}
	}
	return Encoding{}, false
}

// Names lists the published encodings.
func Names() []string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = e.Name
	}
	return names
}

// ByHash finds the published encoding whose rank file this is. Of those that
// share a file it gives the plain one: o200k_base, p50k_base, r50k_base.
func ByHash(hash [32]byte) (Encoding, bool) {
	text := hex.EncodeToString(hash[:])
	for _, e := range encodings {
		if strings.EqualFold(e.Hash, text) {
			return e, true
		}
	}
	return Encoding{}, false
}
