package tokenizertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/unfray/unfray/tokenizer"
)

// Toy describes a small tokenizer.json. Fields with JSON in them are put in as
// they are; empty is null.
type Toy struct {
	// Merges are pairs of texts whose bytes, or with Meta characters, merge.
	Merges [][2]string
	// Tokens are more tokens, which no merge makes.
	Tokens []string
	// Meta makes it a vocabulary of SentencePiece's kind: symbols are
	// characters of Chars, spaces are written ▁, other characters fall back to
	// bytes.
	Meta  bool
	Chars string

	Normalizer, PreTokenizer, Decoder, PostProcessor string // JSON
	IgnoreMerges                                     bool
	Added                                            []ToyAdded
}

// ToyAdded is an added token of a Toy.
type ToyAdded struct {
	Content    string `json:"content"`
	ID         int    `json:"id"`
	Special    bool   `json:"special"`
	Normalized bool   `json:"normalized"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
}

// JSON is the tokenizer.json.
func (y Toy) JSON() []byte {
	vocab := map[string]int{}
	add := func(s string) {
		if _, ok := vocab[s]; !ok {
			vocab[s] = len(vocab)
		}
	}
	spell := Spell
	if y.Meta {
		spell = func(s string) string { return metaSpelled(s) }
		add("<unk>")
		for b := range 256 {
			add(byteToken(byte(b)))
		}
		for _, r := range y.Chars {
			add(spell(string(r)))
		}
	} else {
		for b := range 256 {
			add(spell(string([]byte{byte(b)})))
		}
	}
	merges := [][2]string{}
	for _, m := range y.Merges {
		merges = append(merges, [2]string{spell(m[0]), spell(m[1])})
		add(spell(m[0] + m[1]))
	}
	for _, s := range y.Tokens {
		add(spell(s))
	}
	model := map[string]any{
		"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": y.IgnoreMerges,
	}
	if y.Meta {
		model["unk_token"], model["byte_fallback"], model["fuse_unk"] = "<unk>", true, true
	}
	added := []ToyAdded{}
	for i, a := range y.Added {
		a.ID = len(vocab) + i
		if id, ok := vocab[a.Content]; ok {
			a.ID = id
		}
		added = append(added, a)
	}
	pre := y.PreTokenizer
	if pre == "" && !y.Meta {
		pre = ByteLevel
	}
	raw := func(s string) json.RawMessage {
		if s == "" {
			s = "null"
		}
		return json.RawMessage(s)
	}
	out, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": added, "normalizer": raw(y.Normalizer), "pre_tokenizer": raw(pre),
		"post_processor": raw(y.PostProcessor), "decoder": raw(y.Decoder), "model": model,
	})
	if err != nil {
		panic(err)
	}
	return out
}

// JSON of common components.
const (
	ByteLevel = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}`
	// MetaReplace and MetaPrepend are the normalizers of Gemma and of Llama 2.
	MetaReplace = `{"type":"Replace","pattern":{"String":" "},"content":"▁"}`
	MetaPrepend = `{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},` + MetaReplace + `]}`
	// MetaDecoder is Llama 2's.
	MetaDecoder = `{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},` +
		`{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`
)

// Split is the JSON of a pre-tokenizer that cuts by a pattern.
func Split(pattern string) string {
	quoted, err := json.Marshal(pattern)
	if err != nil {
		panic(err)
	}
	return `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":` + string(quoted) +
		`},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]}`
}

// Spell writes bytes as GPT-2's vocabulary does (bytes_to_unicode in its
// encoder.py).
func Spell(s string) string {
	var out []rune
	for _, b := range []byte(s) {
		switch {
		case '!' <= b && b <= '~', 0xa1 <= b && b <= 0xac, 0xae <= b:
			out = append(out, rune(b))
		case b <= 0x20:
			out = append(out, 0x100+rune(b))
		case b <= 0xa0: // 0x7f to 0xa0 come after the 33 below
			out = append(out, 0x100+33+rune(b-0x7f))
		default: // 0xad
			out = append(out, 0x100+33+34)
		}
	}
	return string(out)
}

func metaSpelled(s string) string {
	var out []rune
	for _, r := range s {
		if r == ' ' {
			r = '▁'
		}
		out = append(out, r)
	}
	return string(out)
}

func byteToken(b byte) string {
	const hex = "0123456789ABCDEF"
	return "<0x" + string([]byte{hex[b>>4], hex[b&15]}) + ">"
}

// Open opens the tokenizer.
func (y Toy) Open(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, y.JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
