package tekken

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

type token struct {
	Rank  int     `json:"rank"`
	Bytes []byte  `json:"token_bytes"` // encoding/json writes base64
	Text  *string `json:"token_str"`
}

type special struct {
	Rank    int    `json:"rank"`
	Text    string `json:"token_str"`
	Control bool   `json:"is_control"`
}

type document struct {
	Config  map[string]any `json:"config"`
	Vocab   []token        `json:"vocab"`
	Special []special      `json:"special_tokens,omitempty"`
	Image   map[string]any `json:"image,omitempty"`
	Type    string         `json:"type,omitempty"`
}

// sample is a small file in the published form.
func sample(change func(d *document)) []byte {
	d := document{
		Config: map[string]any{
			"pattern": `\p{L}+|\s+`, "num_vocab_tokens": 259, "default_vocab_size": 262, "default_num_special_tokens": 4, "version": "v7",
		},
		Special: []special{{0, "<unk>", true}, {1, "<s>", true}, {2, "[IMG]", false}},
		Image:   map[string]any{"image_patch_size": 16},
		Type:    "Tekken",
	}
	for i := range 256 {
		text := string(rune(i))
		d.Vocab = append(d.Vocab, token{i, []byte{byte(i)}, &text})
	}
	d.Vocab = append(d.Vocab, token{256, []byte("th"), nil}, token{257, []byte(" the"), nil}, token{258, []byte("unused"), nil})
	if change != nil {
		change(&d)
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return data
}

func TestParse(t *testing.T) {
	f, err := Parse(sample(nil))
	if err != nil {
		t.Fatal(err)
	}
	if f.Pattern != `\p{L}+|\s+` || f.Version != "v7" {
		t.Errorf("pattern %q, version %q", f.Pattern, f.Version)
	}
	want := []SpecialToken{{"<unk>", true}, {"<s>", true}, {"[IMG]", false}, {"<SPECIAL_3>", true}}
	if fmt.Sprint(f.Special) != fmt.Sprint(want) {
		t.Errorf("special tokens %v, want %v", f.Special, want)
	}
	if f.Len() != 258 || string(f.Token(0)) != "\x00" || string(f.Token(255)) != "\xff" || string(f.Token(257)) != " the" {
		t.Errorf("%d ranks, the last is %q", f.Len(), f.Token(f.Len()-1))
	}
}

// TestEarly: files up to version 7 may leave the special tokens to the library.
func TestEarly(t *testing.T) {
	data := sample(func(d *document) {
		d.Special = nil
		d.Config["version"], d.Config["default_num_special_tokens"], d.Config["default_vocab_size"] = "v3", 1000, 1258
	})
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Special) != 1000 || f.Special[3].Text != "[INST]" || f.Special[19].Text != "[TOOL_CONTENT]" || f.Special[20].Text != "<SPECIAL_20>" {
		t.Errorf("%d special tokens: %v …", len(f.Special), f.Special[:21])
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *document)
		cause  error
		path   string
	}{
		{"no pattern", func(d *document) { delete(d.Config, "pattern") }, ErrInvalid, "config.pattern"},
		{"no size", func(d *document) { delete(d.Config, "default_vocab_size") }, ErrInvalid, "config.default_vocab_size"},
		{"no number of special tokens", func(d *document) { delete(d.Config, "default_num_special_tokens") }, ErrInvalid, "config.default_num_special_tokens"},
		{"unknown setting", func(d *document) { d.Config["dropout"] = 0.1 }, ErrUnsupported, "config.dropout"},
		{"no special tokens", func(d *document) { d.Special = nil; d.Config["version"] = "v11" }, ErrInvalid, "special_tokens"},
		{"too many special tokens", func(d *document) { d.Config["default_num_special_tokens"] = 2 }, ErrInvalid, "special_tokens"},
		{"special tokens without order", func(d *document) { d.Special[1].Rank = 2 }, ErrInvalid, "special_tokens[1]"},
		{"special token twice", func(d *document) { d.Special[1].Text = "<unk>" }, ErrInvalid, "special_tokens"},
		{"special token without text", func(d *document) { d.Special[1].Text = "" }, ErrInvalid, "special_tokens[1]"},
		{"vocabulary too small", func(d *document) { d.Config["default_vocab_size"] = 1000 }, ErrInvalid, "config.default_vocab_size"},
		{"fewer than the bytes", func(d *document) { d.Config["default_vocab_size"] = 100 }, ErrInvalid, "config.default_vocab_size"},
		{"ranks without order", func(d *document) { d.Vocab[256].Rank = 300 }, ErrInvalid, "vocab[256]"},
		{"bytes without order", func(d *document) { d.Vocab[7].Bytes = []byte{8} }, ErrInvalid, "vocab[7]"},
		{"empty token", func(d *document) { d.Vocab[256].Bytes = []byte{} }, ErrInvalid, "vocab[256]"},
		{"token twice", func(d *document) { d.Vocab[257].Bytes = []byte("th") }, ErrInvalid, "vocab"},
		{"negative size", func(d *document) { d.Config["default_vocab_size"] = -1 }, ErrSyntax, "config.default_vocab_size"},
		{"huge size", func(d *document) { d.Config["default_num_special_tokens"] = 1 << 30 }, ErrLimit, "config.default_num_special_tokens"},
	} {
		f, err := Parse(sample(tt.change))
		var e *jsonscan.Error
		if !errors.As(err, &e) || e.Cause != tt.cause || e.Path != tt.path || f != nil {
			t.Errorf("%s: %v; want %v at %q", tt.name, err, tt.cause, tt.path)
		}
	}
	for name, data := range map[string]string{
		"not base64":        strings.Replace(string(sample(nil)), `"dGg="`, `"d?"`, 1),
		"unknown field":     strings.Replace(string(sample(nil)), `"token_str":null`, `"score":1`, 1),
		"garbage after":     string(sample(nil)) + "{}",
		"tokenizer.json":    `{"model":{"type":"BPE","vocab":{}}}`,
		"another kind":      `[]`,
		"cut":               string(sample(nil)[:500]),
		"vocab of a kind":   `{"vocab":{}}`,
		"special of a kind": `{"special_tokens":{}}`,
	} {
		if _, err := Parse([]byte(data)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestVendorFile reads Mistral's vocabulary of July 2024 (240718) and compares
// it with what encoding/json reads. The package it is fetched with keeps the
// tokens in one string; here they get back the published form.
func TestVendorFile(t *testing.T) {
	dir := os.Getenv("UNFRAY_TEST_VOCABS")
	if dir == "" {
		t.Skip("UNFRAY_TEST_VOCABS is not set: make test fetches the vocabularies")
	}
	data, err := os.ReadFile(filepath.Join(dir, "tekken", "tekken.json"))
	if err != nil {
		t.Fatal(err)
	}
	var packed struct {
		Config map[string]any `json:"config"`
		Ranks  string         `json:"bpe_ranks"` // "! 0" and the tokens in base64
	}
	if err := json.Unmarshal(data, &packed); err != nil {
		t.Fatal(err)
	}
	want := document{Config: packed.Config}
	for rank, digits := range strings.Fields(strings.TrimPrefix(packed.Ranks, "! 0 ")) {
		text, err := base64.StdEncoding.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		want.Vocab = append(want.Vocab, token{Rank: rank, Bytes: text})
	}
	if data, err = json.Marshal(want); err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if used := int(want.Config["default_vocab_size"].(float64) - want.Config["default_num_special_tokens"].(float64)); f.Len() != used {
		t.Fatalf("%d ranks, want %d", f.Len(), used)
	}
	for rank := range f.Len() {
		if !bytes.Equal(f.Token(rank), want.Vocab[rank].Bytes) {
			t.Fatalf("rank %d is %q, want %q", rank, f.Token(rank), want.Vocab[rank].Bytes)
		}
	}
	if len(f.Special) != 1000 || f.Special[1].Text != "<s>" || f.Special[999].Text != "<SPECIAL_999>" {
		t.Errorf("%d special tokens", len(f.Special))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample(nil))
	f.Add([]byte(`{"config":{"pattern":"x","default_vocab_size":1,"default_num_special_tokens":1},"vocab":[{"rank":0,"token_bytes":"AA=="}],"special_tokens":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(bytes.Clone(data))
		if err != nil {
			var e *jsonscan.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
				t.Fatalf("%v", err)
			}
			return
		}
		for rank := range file.Len() {
			if len(file.Token(rank)) == 0 {
				t.Fatalf("rank %d has no bytes", rank)
			}
		}
	})
}
