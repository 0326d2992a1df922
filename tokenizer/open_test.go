package tokenizer_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOpenTellsKinds checks that files are known by content, under any name, and
// folders by what they hold.
func TestOpenTellsKinds(t *testing.T) {
	dir := t.TempDir()
	unigram, err := os.ReadFile("../testdata/reference/models/unigram.model")
	if err != nil {
		t.Fatal(err)
	}
	files := []struct {
		name string
		data []byte
		kind string
	}{
		{"tokenizer.json", toys["cl100k"].JSON(), "byte-level BPE"},
		{"other.txt", toys["llama2"].JSON(), "SentencePiece BPE"},
		{"x.bin", gguftest.Build(gguftest.BPE{Pre: "gpt-2"}.Pairs()...), "byte-level BPE"},
		{"tokenizer.model", unigram, "Unigram"},
	}
	for _, f := range files {
		tok, err := tokenizer.Open(writeFile(t, filepath.Join(dir, f.name), f.data))
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
		} else if !strings.HasPrefix(tok.String(), f.kind) {
			t.Errorf("%s is opened as %s, want %s", f.name, tok, f.kind)
		}
		if read, err := tokenizer.Read(bytes.NewReader(f.data), f.name, tokenizer.ByFile); err != nil || read.String() != tok.String() {
			t.Errorf("the content of %s is read as %v, %v; want %s", f.name, read, err, tok)
		}
	}
	if _, err := tokenizer.Read(strings.NewReader(""), "empty", tokenizer.ByFile); err == nil {
		t.Error("nothing is read as a tokenizer")
	}
	tok, err := tokenizer.Open(dir)
	if err != nil || !strings.HasPrefix(tok.String(), "byte-level BPE") {
		t.Errorf("the folder: %v, %v; want its tokenizer.json", tok, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	toy := func(y tokenizertest.Toy) []byte { return y.JSON() }
	edit := func(old, new string) []byte {
		return []byte(strings.Replace(string(toys["gpt2"].JSON()), old, new, 1))
	}
	var ranks []byte
	for b := range 256 {
		ranks = fmt.Appendf(ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"nonsense", []byte("hello there, this is text"), "this is no tokenizer file: expected a tokenizer.json"},
		{"ranks of nobody", ranks, "name its encoding, as in o200k_base=FILE"},
		{"cut", toys["gpt2"].JSON()[:2000], "not valid JSON"},
		{"normalizer", toy(tokenizertest.Toy{Normalizer: `{"type":"Rot13"}`}), `normalizer`},
		{"pattern of a normalizer", toy(tokenizertest.Toy{Normalizer: `{"type":"Replace","pattern":{"Regex":"(?<=a)b"},"content":"c"}`}), "normalizer"},
		{"pre-tokenizer", toy(tokenizertest.Toy{PreTokenizer: `{"type":"Astrology"}`}), "pre_tokenizer"},
		{"decoder", toy(tokenizertest.Toy{Decoder: `{"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":true}`}), "the decoder CTC"},
		{"dropout", edit(`"ignore_merges":false`, `"ignore_merges":false,"dropout":0.1`), "dropout 0.1"},
		{"suffix", edit(`"ignore_merges":false`, `"ignore_merges":false,"end_of_word_suffix":"</w>"`), "end_of_word_suffix"},
		{"word level", []byte(`{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":0,"<unk>":1},"unk_token":"<unk>"}}`), "the model WordLevel; supported are BPE, Unigram and WordPiece"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(dir, "file"), tt.data)
			_, err := tokenizer.Open(path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("error %v, want the path and %q", err, tt.want)
			}
		})
	}
	if _, err := tokenizer.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := tokenizer.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no tokenizer") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := tokenizer.Open("o300k=" + filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), `"o300k" is no encoding; known are o200k_base`) {
		t.Errorf("an unknown encoding: %v", err)
	}
}

// TestReferences checks where references differ: llama.cpp makes no NFC.
func TestReferences(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "tokenizer.json"), toys["nfc"].JSON())
	kelvin := []byte("\u212a") // NFC makes it K
	for _, tt := range []struct {
		ref  tokenizer.Reference
		want string
	}{{tokenizer.ByFile, "K"}, {tokenizer.HuggingFace, "K"}, {tokenizer.LlamaCpp, "\u212a"}} {
		tok, err := tokenizer.OpenAs(path, tt.ref)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Decode(nil, tok.Encode(nil, kelvin)); string(got) != tt.want {
			t.Errorf("reference %d: %q, want %q", tt.ref, got, tt.want)
		}
	}
}

// TestTemplate checks the control tokens around a text, and the roles that the
// files beside tokenizer.json give.
func TestTemplate(t *testing.T) {
	dir := t.TempDir()
	toy := tokenizertest.Toy{
		Added: []tokenizertest.ToyAdded{{Content: "<s>", Special: true}, {Content: "</s>", Special: true}, {Content: "<|im_end|>", Special: true}},
		PostProcessor: `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],` +
			`"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[256],"tokens":["<s>"]}}}`,
	}
	writeFile(t, filepath.Join(dir, "tokenizer.json"), toy.JSON())
	writeFile(t, filepath.Join(dir, "tokenizer_config.json"), []byte(`{"bos_token":"<s>","eos_token":{"content":"</s>"}}`))
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, after := tok.Template()
	sp := tok.Vocab().Specials()
	if !slices.Equal(before, []vocab.ID{256}) || after != nil || sp.BOS != 256 || sp.EOS != 257 || !sp.AddBOS || sp.AddEOS {
		t.Errorf("template %v, %v; roles %+v", before, after, sp)
	}
	if !tok.Vocab().IsEOG(257) || !tok.Vocab().IsEOG(258) || tok.Vocab().IsEOG(256) {
		t.Errorf("tokens that end a generation: %v", sp.EOG)
	}
}

// TestNotes checks what is said about files that are not done as they say.
func TestNotes(t *testing.T) {
	tok := openToy(t, "unknown pattern")
	if n := tok.Notes(); len(n) != 1 || n[0].Code != tokenizer.CodePatternFallback {
		t.Errorf("notes %v, want one of code %s", n, tokenizer.CodePatternFallback)
	}
	if n := openToy(t, "o200k").Notes(); len(n) != 0 {
		t.Errorf("notes %v of a tokenizer that needs none", n)
	}
}

// TestDecode checks decoding token by token against the whole, and against the
// text where nothing is lost.
func TestDecode(t *testing.T) {
	for _, name := range []string{"gpt2", "o200k", "added", "llama2", "gemma"} {
		tok := openToy(t, name)
		for _, text := range []string{"", " ", "  a", "ab <a>ab", "é中\n", "<a> a", "a<a>  ", "\xe4\xb8", "\xff a"} {
			ids := tok.Encode(nil, []byte(text))
			d := tok.NewDecoder()
			var streamed []byte
			for _, id := range ids {
				streamed = d.Append(streamed, id)
			}
			if got := tok.Decode(nil, ids); string(got) != text || string(streamed) != text {
				t.Errorf("%s: %q comes back as %q, streamed %q", name, text, got, streamed)
			}
			if loss := tok.Loss([]byte(text)); loss != nil {
				t.Errorf("%s: %q is said to be lost: %s", name, text, loss.Reason)
			}
		}
	}
}

// TestLoss checks that what tokens do not spell is named.
func TestLoss(t *testing.T) {
	for _, tt := range []struct {
		toy, text string
		offset    int
		want      string
	}{
		{"nfc", "ab e\u0301", 3, "the normalizer (NFC) rewrites the text at offset 3"},
		{"nfkc", "aﬁ", 1, "NFKC"},
		{"llama2", "a▁b", 1, "rewrites"},
		{"flags", "a <a>", 1, "takes in the white space"},
	} {
		loss := openToy(t, tt.toy).Loss([]byte(tt.text))
		if loss == nil || loss.Offset != tt.offset || !strings.Contains(loss.Reason, tt.want) {
			t.Errorf("%s: %q: %+v, want %q at %d", tt.toy, tt.text, loss, tt.want, tt.offset)
		}
	}
}

// TestEncodeEnds checks token ends against the bytes of the tokens, and for
// rewritten text that they ascend to the end.
func TestEncodeEnds(t *testing.T) {
	for name := range toys {
		tok := openToy(t, name)
		for _, text := range []string{"ab a 12", " ab<a>", "e\u0301ab ﬁ a", "a\xffé\xe4", "<a>  <b> ab"} {
			ids, ends := tok.EncodeEnds(nil, nil, []byte(text), false)
			if want := tok.Encode(nil, []byte(text)); !slices.Equal(ids, want) {
				t.Errorf("%s: %q: ids %v, want %v", name, text, ids, want)
			}
			if len(ends) != len(ids) || !slices.IsSorted(ends) || len(ends) > 0 && ends[len(ends)-1] != len(text) {
				t.Errorf("%s: %q has %d tokens that end at %v", name, text, len(ids), ends)
			}
			if tok.Loss([]byte(text)) != nil {
				continue
			}
			at := 0
			for i, id := range ids {
				b := string(tok.Vocab().Bytes(id))
				if got := text[at:ends[i]]; got != b && " "+got != b {
					t.Errorf("%s: %q: token %d is %q, its place holds %q", name, text, i, b, got)
				}
				at = ends[i]
			}
		}
	}
}

// TestOtherEncodingsFile checks that a published rank file is not opened as an
// encoding of other ranks.
func TestOtherEncodingsFile(t *testing.T) {
	r50k := tokenizertest.Path(t, "r50k_base.tiktoken")
	if _, err := tokenizer.Open("gpt2=" + r50k); err != nil {
		t.Error(err)
	}
	_, err := tokenizer.Open("o200k_base=" + r50k)
	if err == nil || !strings.Contains(err.Error(), "the rank file of r50k_base, not of o200k_base") {
		t.Errorf("error is %v", err)
	}
}
