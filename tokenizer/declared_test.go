package tokenizer_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// TestDeclared compares with ids that Hugging Face's tokenizers gave for what a
// tokenizer.json declares: testdata/declared.py.
func TestDeclared(t *testing.T) {
	data, err := os.ReadFile("testdata/declared.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data))
	for lines.Scan() {
		var c struct {
			Name  string
			File  json.RawMessage
			Cases []struct {
				Text string
				IDs  []vocab.ID
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			tok, err := tokenizer.Open(writeFile(t, filepath.Join(t.TempDir(), "tokenizer.json"), c.File))
			if err != nil {
				t.Fatal(err)
			}
			for _, tt := range c.Cases {
				text := []byte(tt.Text)
				if got := tok.EncodeSpecial(nil, text); !slices.Equal(got, tt.IDs) {
					t.Errorf("%q: got %v, want %v", text, got, tt.IDs)
				}
				ids, ends := tok.EncodeEnds(nil, nil, text, true)
				if !slices.Equal(ids, tt.IDs) || len(ends) != len(ids) || !slices.IsSorted(ends) || len(ends) > 0 && ends[len(ends)-1] > len(text) {
					t.Errorf("%q: EncodeEnds gives %v that end at %v", text, ids, ends)
				}
			}
		})
	}
}

// TestDeclaredRefused checks that what cannot be done as declared is named.
func TestDeclaredRefused(t *testing.T) {
	added := func(content, flags string) string {
		flag := func(c, name string) string {
			if strings.Contains(flags, c) {
				return `,"` + name + `":true`
			}
			return `,"` + name + `":false`
		}
		return `{"id":300,"content":"` + content + `"` + flag("w", "single_word") + flag("l", "lstrip") + flag("r", "rstrip") +
			flag("n", "normalized") + flag("s", "special") + `}`
	}
	const (
		byteLevel = `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`
		metaspace = `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}`
		words     = `{"type":"WhitespaceSplit"}`
	)
	sequence := func(kind string, parts ...string) string {
		return `{"type":"Sequence","` + kind + `":[` + strings.Join(parts, ",") + `]}`
	}
	tests := []struct {
		normalizer, pre, decoder, added, want string
	}{
		{"", sequence("pretokenizers", words, byteLevel), "", "", "ByteLevel that puts a space before each of the pretokens"},
		{"", sequence("pretokenizers", words, metaspace), "", "", "Metaspace after WhitespaceSplit"},
		{"", sequence("pretokenizers", `{"type":"Digits","individual_digits":true}`, metaspace), "", "", "Metaspace that puts a space before each of the pretokens"},
		{"", sequence("pretokenizers", byteLevel, words), "", "", "after ByteLevel that drops parts of the text"},
		{"", sequence("pretokenizers", byteLevel, byteLevel), "", "", "ByteLevel after ByteLevel"},
		{"", "null", byteLevel, "", "the decoder ByteLevel, where neither"},
		{sequence("normalizers", `{"type":"ByteLevel"}`, `{"type":"NFC"}`), "null", "", "", "NFC after ByteLevel"},
		{`{"type":"Prepend","prepend":"▁"}`, "null", "", "", "writes ▁ but leaves spaces"},
		{`{"type":"StripAccents"}`, metaspace, "", "", `"first" after the normalizer StripAccents`},
		{"", metaspace, "", added("▁x", "n"), "before Metaspace writes ▁"},
		{`{"type":"Strip","strip_left":true,"strip_right":true}`, "null", "", added("  ", "n"), "of which the normalizer leaves nothing"},
	}
	for _, tt := range tests {
		toy := tokenizertest.Toy{Normalizer: tt.normalizer, PreTokenizer: tt.pre, Decoder: tt.decoder}.JSON()
		if tt.added != "" {
			toy = bytes.Replace(toy, []byte(`"added_tokens":[`), []byte(`"added_tokens":[`+tt.added), 1)
		}
		_, err := tokenizer.Open(writeFile(t, filepath.Join(t.TempDir(), "tokenizer.json"), toy))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %s %s: error %v, want %q", tt.normalizer, tt.pre, tt.decoder, tt.added, err, tt.want)
		}
	}
}

// Models that SentencePiece 0.2.3 trained on "ab a b ba", "aa bb ab" and
// "b a ab ba" with normalization_rule_name identity and vocab_size 14, in
// base64: Unigram with the symbol "▁▁" and remove_extra_whitespaces off, and BPE
// with the symbol "a b".
const (
	symbolModel = "Cg4KBTx1bms+FQAAAAAYAgoMCgM8cz4VAAAAABgDCg0KBDwvcz4VAAAAABgDCg8KBuKWgeKWgRUAAAAAGAQKCwoE4paBYRV1kca/CgsKBOKW" +
		"gWIVfYnHvwoMCgXiloFhYhXKbee/CgwKBeKWgWJhFa0KGsAKCAoBYhXkxibACggKAWEV2CIowAoKCgPiloEV2CIowBITGAEgC4ABAfoBBuKWgeKWgYgCABoO" +
		"CghpZGVudGl0eRIAIAA="
	spacedModel = "Cg4KBTx1bms+FQAAAAAYAgoMCgM8cz4VAAAAABgDCg0KBDwvcz4VAAAAABgDCgwKA2EgYhUAAAAAGAQKCwoE4paBYRUAAACACgsKBOKWgWIV" +
		"AACAvwoMCgXiloFhYhUAAADACgwKBeKWgWJhFQAAQMAKDAoF4paBYWEVAACAwAoMCgXiloFiYhUAAKDACgkKAmFhFQAAwMAKCgoD4paBFQAA4MAKCAoBYRUA" +
		"AADBCggKAWIVAAAQwRIQGAIgDoABAfoBA2EgYogCABoMCghpZGVudGl0eRIA"
)

// TestSymbols checks that Unigram weighs user-defined symbols as pieces, with
// the IDs that the library gave, and which symbols are refused.
func TestSymbols(t *testing.T) {
	open := func(model string) (*tokenizer.Tokenizer, error) {
		data, err := base64.StdEncoding.DecodeString(model)
		if err != nil {
			t.Fatal(err)
		}
		return tokenizer.Open(writeFile(t, filepath.Join(t.TempDir(), "tokenizer.model"), data))
	}
	tok, err := open(symbolModel)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want []vocab.ID
	}{
		{"▁▁", []vocab.ID{10, 3}},
		{"  ", []vocab.ID{10, 3}},
		{"   a", []vocab.ID{3, 3, 9}},
		{"a  b", []vocab.ID{4, 3, 8}},
		{" ", []vocab.ID{3}},
		{"a", []vocab.ID{4}},
		{"ab   ", []vocab.ID{6, 10, 3}},
	} {
		got := tok.Encode(nil, []byte(tt.text))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		}
		want := strings.ReplaceAll(tt.text, "▁", " ")
		if text := string(tok.Decode(nil, got)); text != want {
			t.Errorf("%q: decoded as %q", tt.text, text)
		}
	}
	if _, err := open(spacedModel); err == nil || !strings.Contains(err.Error(), `user-defined symbol "a b"`) {
		t.Errorf("a symbol with a space: error %v", err)
	}
}
