package fim_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/fim"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// toy opens a vocabulary of bytes and "def", with these control tokens.
func toy(t testing.TB, meta bool, controls ...string) *tokenizer.Tokenizer {
	t.Helper()
	y := tokenizertest.Toy{Merges: [][2]string{{"d", "e"}, {"de", "f"}}}
	if meta {
		y.Meta, y.Chars = true, " abcdefx"
		y.Normalizer, y.Decoder = tokenizertest.MetaPrepend, tokenizertest.MetaDecoder
	}
	for _, c := range controls {
		y.Added = append(y.Added, tokenizertest.ToyAdded{Content: c, Special: true})
	}
	return y.Open(t)
}

// show spells tokens, control tokens in their own form.
func show(t *tokenizer.Tokenizer, ids []vocab.ID) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(t.Vocab().Bytes(id))
	}
	return b.String()
}

func TestLayouts(t *testing.T) {
	for _, tc := range []struct {
		name     string
		controls []string
		psm, spm string // "" where the family has none
	}{
		{"Qwen2.5-Coder", []string{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
			"<|fim_prefix|>def <|fim_suffix|> x<|fim_middle|>", ""},
		{"StarCoder", []string{"<fim_middle>", "<fim_prefix>", "<fim_suffix>"},
			"<fim_prefix>def <fim_suffix> x<fim_middle>", "<fim_prefix><fim_suffix> x<fim_middle>def "},
		{"SantaCoder", []string{"<fim-middle>", "<fim-prefix>", "<fim-suffix>"},
			"<fim-prefix>def <fim-suffix> x<fim-middle>", "<fim-prefix><fim-suffix> x<fim-middle>def "},
		{"CodeLlama", []string{"▁<PRE>", "▁<SUF>", "▁<MID>", "<EOT>"},
			"▁<PRE>def ▁<SUF> x▁<MID>", "▁<PRE>▁<SUF> x▁<MID>def "},
		{"DeepSeek-Coder", []string{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
			"<｜fim▁begin｜>def <｜fim▁hole｜> x<｜fim▁end｜>", ""},
		{"Codestral", []string{"[PREFIX]", "[SUFFIX]"}, "", "[SUFFIX] x[PREFIX]def "},
		{"Codestral", []string{"[PREFIX]", "[SUFFIX]", "[MIDDLE]"}, "", "[SUFFIX] x[PREFIX]def "},
		{"as the vocabulary names them", []string{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
			"<|code_prefix|>def <|code_suffix|> x<|code_middle|>", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tok := toy(t, false, tc.controls...)
			l, err := fim.Find(tok)
			if err != nil {
				t.Fatal(err)
			}
			if l.Name != tc.name {
				t.Errorf("found %s", l.Name)
			}
			for order, want := range map[fim.Order]string{fim.PSM: tc.psm, fim.SPM: tc.spm} {
				l, err := l.In(order)
				if (err == nil) != (want != "") {
					t.Errorf("%s: %v", order, err)
				}
				if err == nil {
					checkLayout(t, tok, l, want)
				}
			}
			for _, id := range []vocab.ID{l.Prefix, l.Suffix} {
				if !slices.Contains(l.Ends, id) {
					t.Errorf("%q does not end a middle", tok.Vocab().Bytes(id))
				}
			}
		})
	}
}

func checkLayout(t *testing.T, tok *tokenizer.Tokenizer, l *fim.Layout, want string) {
	t.Helper()
	prefix := tok.Encode(nil, []byte("def "))
	suffix := l.EncodeSuffix(nil, []byte(" x"))
	head := []vocab.ID{'h'}
	ids, at := l.Arrange([]vocab.ID{'d'}, head, prefix, suffix)
	if got := show(tok, ids[2:]); ids[0] != 'd' || ids[1] != 'h' || got != want {
		t.Errorf("%s: %q, want %q", l.Order, got, want)
	}
	if !slices.Equal(ids[at-len(prefix):at], prefix) || ids[at-len(prefix)-1] != l.Before() {
		t.Errorf("%s: the prefix section does not end before %d of %v", l.Order, at, ids)
	}
	h, p, s, ok := l.Split(ids[1:])
	if !ok || !slices.Equal(h, head) || !slices.Equal(p, prefix) || !slices.Equal(s, suffix) {
		t.Errorf("%s: split into %v %v %v %v", l.Order, h, p, s, ok)
	}
	for _, bad := range [][]vocab.ID{nil, prefix, {l.Prefix}, {l.Suffix}, append(slices.Clone(ids), l.Suffix), {l.Suffix, l.Suffix}} {
		if _, _, _, ok := l.Split(bad); ok {
			t.Errorf("%s: %v is split", l.Order, bad)
		}
	}
	// All beginnings of the prefix section keep the markers.
	for n := range len(prefix) + 1 {
		cut, at := l.Arrange(nil, nil, prefix[:n], suffix)
		if _, p, s, ok := l.Split(cut); !ok || at-n < 1 || !slices.Equal(p, prefix[:n]) || !slices.Equal(s, suffix) {
			t.Errorf("%s: %d tokens of the prefix give %v", l.Order, n, cut)
		}
	}
}

// A vocabulary that puts a dummy space before a text has none before the suffix,
// which follows other text.
func TestSuffixHasNoDummySpace(t *testing.T) {
	tok := toy(t, true, "▁<PRE>", "▁<SUF>", "▁<MID>")
	l, err := fim.Find(tok)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"def": "def", " def": " def", "": "", "\r\n": "\r\n", "▁<MID>": " <MID>"} {
		if got := show(tok, l.EncodeSuffix(nil, []byte(text))); got != want {
			t.Errorf("the suffix %q is %q", text, got)
		}
	}
	if got := show(tok, tok.Encode(nil, []byte("def"))); got != " def" {
		t.Errorf("a text has no dummy space: %q", got)
	}
}

// What spells a marker in a section is text.
func TestSectionsAreText(t *testing.T) {
	tok := toy(t, false, "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>")
	l, err := fim.Find(tok)
	if err != nil {
		t.Fatal(err)
	}
	suffix := l.EncodeSuffix(nil, []byte("<fim_middle>"))
	context, _ := l.Context(nil, "<file_sep>", []fim.File{{Name: "<fim_prefix>", Text: []byte("<fim_suffix>")}}, "<repo_name>", 0)
	if slices.Contains(suffix, l.Middle) || slices.Contains(context, l.Prefix) || slices.Contains(context, l.Suffix) {
		t.Error("text became a marker")
	}
}

func TestContext(t *testing.T) {
	files := []fim.File{{"a.py", []byte("x")}, {"b.py", []byte("y\n")}}
	for _, tc := range []struct {
		controls []string
		limit    int
		want     string
		dropped  int
	}{
		{[]string{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"}, 0,
			"<|repo_name|>r\n<|file_sep|>a.py\nx\n<|file_sep|>b.py\ny\n<|file_sep|>c.py\n", 0},
		{[]string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>"}, 0,
			"<repo_name>r<file_sep>a.py\nx\n<file_sep>b.py\ny\n<file_sep>c.py\n", 0},
		{[]string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<filename>"}, 0,
			"<reponame>r<filename>a.py\nx\n<filename>b.py\ny\n<filename>c.py\n", 0},
		{[]string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<filename>"}, 17,
			"<reponame>r<filename>b.py\ny\n<filename>c.py\n", 1},
		{[]string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<filename>"}, 15, "", 2},
		{[]string{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, 0, "", 2},
		{[]string{"[PREFIX]", "[SUFFIX]", "<reponame>", "<filename>"}, 0, "", 2},
	} {
		tok := toy(t, false, tc.controls...)
		l, err := fim.Find(tok)
		if err != nil {
			t.Fatal(err)
		}
		ids, dropped := l.Context(nil, "r", files, "c.py", tc.limit)
		if got := show(tok, ids); got != tc.want || dropped != tc.dropped {
			t.Errorf("%v, limit %d: %q without %d, want %q without %d", tc.controls, tc.limit, got, dropped, tc.want, tc.dropped)
		}
		if tc.limit > 0 && len(ids) > tc.limit {
			t.Errorf("%d tokens, limit %d", len(ids), tc.limit)
		}
		if ids, dropped := l.Context(nil, "r", nil, "c", 0); ids != nil || dropped != 0 {
			t.Errorf("no files give %v", ids)
		}
	}
}

func TestNoFIM(t *testing.T) {
	for _, tc := range []struct {
		controls []string
		missing  string
	}{
		{nil, "prefix suffix middle"},
		{[]string{"<fim_prefix>", "<fim_suffix>"}, "middle"},
		{[]string{"<fim_prefix>", "<fim_middle>"}, "suffix"},
		{[]string{"[PREFIX]"}, "prefix suffix middle"},
		{[]string{"<reponame>", "<filename>"}, "prefix suffix middle"},
	} {
		l, err := fim.Find(toy(t, false, tc.controls...))
		var none *fim.NoFIMError
		if l != nil || !errors.As(err, &none) || strings.Join(none.Missing, " ") != tc.missing {
			t.Errorf("%v: %v", tc.controls, err)
		}
	}
}

// keys names the markers by metadata alone.
func TestGGUFKeys(t *testing.T) {
	tokens := []string{"<x>", "<y>", "<z>", "<p>", "<r>", "<s>"}
	types := make([]int32, len(tokens))
	for i := range types {
		types[i] = int32(vocab.Control)
	}
	for b := range 256 {
		tokens, types = append(tokens, tokenizertest.Spell(string([]byte{byte(b)}))), append(types, int32(vocab.Normal))
	}
	pairs := []gguftest.Pair{
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: "gpt-2"},
		{Key: "tokenizer.ggml.tokens", Value: tokens}, {Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: []string{}},
	}
	for _, names := range [][]string{
		{"fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"},
		{"prefix", "suffix", "middle", "fim_pad", "fim_rep", "fim_sep"},
	} {
		with := slices.Clone(pairs)
		for i, name := range names {
			with = append(with, gguftest.Pair{Key: "tokenizer.ggml." + name + "_token_id", Value: uint32(i)})
		}
		l, err := fim.Find(tokenizertest.Open(t, gguftest.Build(with...)))
		if err != nil {
			t.Fatal(err)
		}
		if l.Prefix != 0 || l.Suffix != 1 || l.Middle != 2 || l.Repo != 4 || l.File != 5 || l.Order != fim.PSM || !slices.Equal(l.Ends, []vocab.ID{0, 1, 2, 3, 4, 5}) {
			t.Errorf("%v: %+v", names, l)
		}
	}
}

// The tokenizers that models are published with.
func TestPublished(t *testing.T) {
	for file, want := range map[string]string{
		"qwen2_5/tokenizer.json":      "Qwen2.5-Coder PSM",
		"qwen3/tokenizer.json":        "Qwen2.5-Coder PSM",
		"deepseek_v3/tokenizer.json":  "DeepSeek-Coder PSM",
		"mistral_nemo/tokenizer.json": "Codestral SPM",
		"cl100k_base.tiktoken":        "Qwen2.5-Coder PSM",
		"llama3/tokenizer.json":       "",
		"gemma2/tokenizer.model":      "",
	} {
		t.Run(file, func(t *testing.T) {
			tok, err := tokenizer.Open(tokenizertest.Path(t, file))
			if err != nil {
				t.Fatal(err)
			}
			l, err := fim.Find(tok)
			if want == "" {
				if !errors.As(err, new(*fim.NoFIMError)) {
					t.Errorf("found %+v, %v", l, err)
				}
				return
			}
			if err != nil || l.Name+" "+l.Order.String() != want {
				t.Fatalf("found %+v, %v", l, err)
			}
			healPrefix(t, tok, l)
		})
	}
}

// healPrefix: for each cut of a text, what is rolled back is at the end of the
// prefix section, and the markers stay.
func healPrefix(t *testing.T, tok *tokenizer.Tokenizer, l *fim.Layout) {
	const text = "func main() {\n\tfmt.Println(\"Hello, worl"
	suffix := l.EncodeSuffix(nil, []byte("d\")\n}\n"))
	rolled := 0
	for n := range len(text) + 1 {
		x := tok.NewTextAfter([]vocab.ID{l.Before()})
		x.Append([]byte(text[:n]))
		r := boundary.AnalyzeText(x)
		ids, at := l.Arrange(nil, nil, r.IDs[:r.Stable], suffix)
		_, p, s, ok := l.Split(ids)
		if !ok || !slices.Equal(p, r.IDs[:r.Stable]) || !slices.Equal(s, suffix) || at < r.Stable {
			t.Fatalf("cut at %d: %v", n, ids)
		}
		if got := show(tok, p) + string(r.Pending); got != text[:n] {
			t.Fatalf("cut at %d: the prefix is %q", n, got)
		}
		rolled += len(r.IDs) - r.Stable
	}
	t.Logf("%d tokens rolled back at %d cuts", rolled, len(text)+1)
}

// The model that the tests run has tokens for files, but none for filling in.
func TestModelWithoutFIM(t *testing.T) {
	path := os.Getenv("UNFRAY_TEST_MODEL")
	if path == "" {
		t.Skip("UNFRAY_TEST_MODEL is not set")
	}
	tok, err := tokenizer.OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fim.Find(tok)
	if !errors.As(err, new(*fim.NoFIMError)) {
		t.Fatal(err)
	}
	t.Log(err)
}
