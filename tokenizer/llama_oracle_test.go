//go:build llama

package tokenizer

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/tokenizer/internal/spmodel"
	"github.com/unfray/unfray/vocab"
)

var loadLlama = sync.OnceValue(func() error {
	lib := os.Getenv("UNFRAY_TEST_LIB")
	if lib == "" {
		return errors.New("UNFRAY_TEST_LIB does not name the folder of libllama")
	}
	if err := llama.Load(lib); err != nil {
		return err
	}
	llama.LogSet(llama.LogSilent())
	llama.Init()
	return nil
})

// openLlama loads the vocabulary of a model file into llama.cpp.
func openLlama(t *testing.T, path string) llama.Vocab {
	t.Helper()
	requireLlama(t)
	v, err := loadVocab(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// requireLlama skips the test where there is no libllama.
func requireLlama(t *testing.T) {
	t.Helper()
	if os.Getenv("UNFRAY_TEST_LIB") == "" {
		t.Skip("UNFRAY_TEST_LIB does not name the folder of libllama")
	}
	if err := loadLlama(); err != nil {
		t.Fatal(err)
	}
}

func loadVocab(t *testing.T, path string) (llama.Vocab, error) {
	params := llama.ModelDefaultParams()
	params.VocabOnly = 1
	model, err := llama.ModelLoadFromFile(path, params)
	if err != nil {
		return 0, err
	}
	t.Cleanup(func() { llama.ModelFree(model) })
	return llama.ModelGetVocab(model), nil
}

func llamaIDs(v llama.Vocab, text string, special bool) []vocab.ID {
	if text == "" {
		return nil
	}
	var ids []vocab.ID
	for _, id := range llama.Tokenize(v, text, false, special) {
		ids = append(ids, vocab.ID(id))
	}
	return ids
}

var record = flag.Bool("record", false, "write "+referenceFile+" anew from llama.cpp")

func TestOracle(t *testing.T) {
	tok := realModel(t)
	lv := openLlama(t, os.Getenv("UNFRAY_TEST_MODEL"))
	if *record {
		recordReference(t, lv)
	}
	code, prose := realText(t, 1<<20)
	t.Logf("%d bytes of code, %d of prose", len(code), len(prose))
	if len(code)+len(prose) < 2_000_000 {
		t.Errorf("only %d bytes of real text in the Go installation", len(code)+len(prose))
	}
	compare(t, tok, lv, code)
	compare(t, tok, lv, prose)
	for _, text := range referenceTexts() {
		compare(t, tok, lv, text)
	}
	for _, text := range codePointTexts("aX XX 1X\n", unicode.IsGraphic) {
		compare(t, tok, lv, text)
	}
	rng := rand.New(rand.NewPCG(17, 18))
	for range 10_000 {
		if text := randomText(rng, hard, 20); comparable(text) {
			compare(t, tok, lv, text)
		}
	}
}

// compare checks every ID, with control tokens recognized and not.
func compare(t *testing.T, tok *Tokenizer, lv llama.Vocab, text string) {
	t.Helper()
	compareIDs(t, tok, text, tok.Encode(nil, []byte(text)), llamaIDs(lv, text, false))
	compareIDs(t, tok, text, tok.EncodeSpecial(nil, []byte(text)), llamaIDs(lv, text, true))
}

func compareIDs(t *testing.T, tok *Tokenizer, text string, got, want []vocab.ID) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	at := len(tok.Decode(nil, got[:i]))
	t.Fatalf("token %d at byte %d of %.200q…: %v, llama.cpp has %v",
		i, at, text[min(at, len(text)):], got[i:min(i+5, len(got))], want[i:min(i+5, len(want))])
}

func recordReference(t *testing.T, lv llama.Vocab) {
	var b strings.Builder
	for _, text := range referenceTexts() {
		fmt.Fprintf(&b, "plain %+q%s\n", text, formatIDs(llamaIDs(lv, text, false)))
		if strings.Contains(text, "<") {
			fmt.Fprintf(&b, "special %+q%s\n", text, formatIDs(llamaIDs(lv, text, true)))
		}
	}
	if err := os.WriteFile(referenceFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOracleVocab compares bytes, kinds and roles of all tokens.
func TestOracleVocab(t *testing.T) {
	tok := realModel(t)
	compareVocab(t, tok.Vocab(), openLlama(t, os.Getenv("UNFRAY_TEST_MODEL")))
}

func compareVocab(t *testing.T, v *vocab.Vocab, lv llama.Vocab) {
	t.Helper()
	if int(llama.VocabNTokens(lv)) != v.Len() {
		t.Fatalf("%d tokens, llama.cpp has %d", v.Len(), llama.VocabNTokens(lv))
	}
	buf := make([]byte, 4096)
	for id := range vocab.ID(v.Len()) {
		lid := llama.Token(id)
		n := llama.TokenToPiece(lv, lid, buf, 0, true)
		if got := v.Bytes(id); n < 0 || string(got) != string(buf[:n]) {
			t.Errorf("token %d is %q, llama.cpp has %q", id, got, buf[:max(n, 0)])
		}
		if got := v.IsEOG(id); got != llama.VocabIsEOG(lv, lid) {
			t.Errorf("token %d ends a generation: %v, llama.cpp has %v", id, got, !got)
		}
		if got := v.Kind(id) == vocab.Control; got != llama.VocabIsControl(lv, lid) {
			t.Errorf("token %d is a control token: %v, llama.cpp has %v", id, got, !got)
		}
	}
	sp := v.Specials()
	for _, role := range []struct {
		name string
		got  vocab.ID
		want llama.Token
	}{
		{"BOS", sp.BOS, llama.VocabBOS(lv)}, {"EOS", sp.EOS, llama.VocabEOS(lv)}, {"padding", sp.Pad, llama.VocabPAD(lv)},
		{"FIM prefix", sp.FIMPrefix, llama.VocabFIMPre(lv)}, {"FIM suffix", sp.FIMSuffix, llama.VocabFIMSuf(lv)},
		{"FIM middle", sp.FIMMiddle, llama.VocabFIMMid(lv)}, {"FIM padding", sp.FIMPad, llama.VocabFIMPad(lv)},
		{"FIM repository", sp.FIMRepo, llama.VocabFIMRep(lv)}, {"FIM file", sp.FIMFile, llama.VocabFIMSep(lv)},
	} {
		if llama.Token(role.got) != role.want {
			t.Errorf("the %s token is %d, llama.cpp has %d", role.name, role.got, role.want)
		}
	}
	// llama.cpp takes any token that looks like EOT.
	if eot := llama.VocabEOT(lv); (eot < 0) != (sp.EOT == vocab.None) || eot >= 0 && !v.IsEOG(vocab.ID(eot)) {
		t.Errorf("the EOT token is %d, llama.cpp has %d", sp.EOT, eot)
	}
	if sp.AddBOS != llama.VocabGetAddBOS(lv) || sp.AddEOS != llama.VocabGetAddEOS(lv) {
		t.Errorf("BOS and EOS are added: %v, %v; llama.cpp has %v, %v", sp.AddBOS, sp.AddEOS, llama.VocabGetAddBOS(lv), llama.VocabGetAddEOS(lv))
	}
}

// codePointTexts gives every code point that is wanted in a few surroundings,
// written with X for it, many to a text.
func codePointTexts(around string, wanted func(rune) bool) []string {
	var texts []string
	var b strings.Builder
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && wanted(r) {
			b.WriteString(strings.ReplaceAll(around, "X", string(r)))
		}
		if b.Len() > 1<<16 || r == unicode.MaxRune {
			texts = append(texts, b.String())
			b.Reset()
		}
	}
	return texts
}

// openBoth opens a synthetic vocabulary here and in llama.cpp.
func openBoth(t *testing.T, s synthetic) (*Tokenizer, llama.Vocab) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vocab.gguf")
	if err := os.WriteFile(path, gguftest.Build(s.pairs()...), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.open(t), openLlama(t, path)
}

// classMerges joins the last byte of any character to one of each class, which
// shows in the IDs whether the two are in one pretoken.
func classMerges() [][2]string {
	var merges [][2]string
	for _, next := range []string{"a", "0", "!", "\n"} {
		for b := range 0xc0 {
			merges = append(merges, [2]string{string([]byte{byte(b)}), next})
		}
	}
	return merges
}

// TestOracleClasses compares the classes of code points: all where characters
// are assigned, some of the others.
func TestOracleClasses(t *testing.T) {
	for _, pre := range []string{"gpt-2", "smollm"} {
		tok, lv := openBoth(t, synthetic{pre: pre, merges: classMerges()})
		for _, text := range codePointTexts("XaX0X!X\nX", func(r rune) bool {
			return r < 0x33480 || r>>12 == 0xe0 || r%61 == 0
		}) {
			compareIDs(t, tok, text, tok.Encode(nil, []byte(text)), llamaIDs(lv, text, false))
		}
	}
}

// TestOracleNames asks llama.cpp whether all names of pre-tokenizers mean what
// they mean here. The library may be older than some names.
func TestOracleNames(t *testing.T) {
	requireLlama(t)
	rng := rand.New(rand.NewPCG(19, 20))
	texts := append(referenceTexts(), string(languages(t)))
	for range 500 {
		if text := randomText(rng, hard, 12); comparable(text) {
			texts = append(texts, text)
		}
	}
	path := filepath.Join(t.TempDir(), "vocab.gguf")
	var unknown []string
	for _, name := range split.Names() {
		s := synthetic{pre: name, merges: classMerges()}
		if err := os.WriteFile(path, gguftest.Build(s.pairs()...), 0o600); err != nil {
			t.Fatal(err)
		}
		lv, err := loadVocab(t, path)
		if err != nil {
			unknown = append(unknown, name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			tok := s.open(t)
			for _, text := range texts {
				compareIDs(t, tok, text, tok.Encode(nil, []byte(text)), llamaIDs(lv, text, false))
			}
		})
	}
	t.Logf("not known to this llama.cpp: %q", unknown)
	if len(unknown) > len(split.Names())/4 {
		t.Errorf("llama.cpp knows only %d of %d names", len(split.Names())-len(unknown), len(split.Names()))
	}
}

// TestOracleAdded compares tokens that are recognized in text, and their roles.
func TestOracleAdded(t *testing.T) {
	s := synthetic{
		pre: "gpt-2", merges: classMerges(),
		added:    []string{"<a>", "a>b", "<a>b<", "    ", "é", "\n\n", "<|channel|>"},
		controls: []string{"<|im_start|>", "<|im_end|>", "<|end|>", "<|im", "a<", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|return|>", "<|call|>", "</s>"},
		extra:    []gguftest.Pair{{Key: "tokenizer.ggml.bos_token_id", Value: uint32(300)}, {Key: "tokenizer.ggml.add_bos_token", Value: true}},
	}
	tok, lv := openBoth(t, s)
	compareVocab(t, tok.Vocab(), lv)
	parts := slices.Concat(s.added, s.controls, []string{"<", "a", ">", "b", " ", "\n", "|", "im"})
	rng := rand.New(rand.NewPCG(21, 22))
	for range 5000 {
		compare(t, tok, lv, randomText(rng, parts, 10))
	}
}

// TestOracleMerges compares merging over random lists of merges.
func TestOracleMerges(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 10 {
		tok, lv := openBoth(t, synthetic{pre: "gpt-2", merges: randomMerges(rng, 40)})
		for range 300 {
			compare(t, tok, lv, randomText(rng, []string{"a", "b", "c", "aaaa", "abcabcabc"}, 30))
		}
	}
}

// piecePairs are the keys and values of a model file with SentencePiece BPE.
func piecePairs(texts []string, scores []float32, types []int32) []gguftest.Pair {
	return []gguftest.Pair{
		{Key: "general.architecture", Value: "llama"},
		{Key: "tokenizer.ggml.model", Value: "llama"},
		{Key: "tokenizer.ggml.tokens", Value: texts},
		{Key: "tokenizer.ggml.scores", Value: scores},
		{Key: "tokenizer.ggml.token_type", Value: types},
	}
}

// openPieces opens a vocabulary here and in llama.cpp.
func openPieces(t *testing.T, pairs []gguftest.Pair) (*Tokenizer, llama.Vocab) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pieces.gguf")
	if err := os.WriteFile(path, gguftest.Build(pairs...), 0o600); err != nil {
		t.Fatal(err)
	}
	tok, err := OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok, openLlama(t, path)
}

// TestOraclePieces compares SentencePiece BPE: Gemma 2's vocabulary, and made-up
// ones, with and without the dummy space.
func TestOraclePieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	if folder := os.Getenv("UNFRAY_TEST_VOCABS"); folder != "" {
		m, err := spmodel.Open(filepath.Join(folder, "gemma2", "tokenizer.model"))
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		var scores []float32
		var types []int32
		for _, p := range m.Pieces {
			text := string(p.Text)
			if p.Type == spmodel.UserDefined {
				text = strings.ReplaceAll(text, "▁", " ") // as llama.cpp's converter does
			}
			texts, scores, types = append(texts, text), append(scores, p.Score), append(types, int32(p.Type))
		}
		tok, lv := openPieces(t, append(piecePairs(texts, scores, types), gguftest.Pair{Key: "tokenizer.ggml.add_space_prefix", Value: false}))
		compare(t, tok, lv, string(languages(t)))
		for range 2000 {
			if text := randomText(rng, append(hard, "▁"), 20); comparable(text) {
				compare(t, tok, lv, text)
			}
		}
	}
	for range 20 {
		texts := []string{"<unk>", "<s>", "</s>"}
		types := []int32{2, 3, 3}
		scores := []float32{0, 0, 0}
		add := func(text string, kind int32, score float32) {
			if !slices.Contains(texts, text) {
				texts, types, scores = append(texts, text), append(types, kind), append(scores, score)
			}
		}
		for b := range 256 {
			add(fmt.Sprintf("<0x%02X>", b), 6, 0)
		}
		for _, m := range randomMerges(rng, 30) {
			for _, text := range []string{m[0] + m[1], m[0], m[1]} {
				add(strings.ReplaceAll(text, "c", "▁"), 1, -float32(rng.IntN(40)))
			}
		}
		add("<x>", 4, 0)
		tok, lv := openPieces(t, piecePairs(texts, scores, types))
		for range 200 {
			compare(t, tok, lv, randomText(rng, []string{"a", "b", " ", "aaaa", "ab ab ab ", "é", "<x>", "<s>", "x", "▁", "▁a"}, 30))
		}
	}
}

// languages is text in many languages.
func languages(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../testdata/languages.txt")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// randomMerges makes up to n merges of a, b and c.
func randomMerges(rng *rand.Rand, n int) [][2]string {
	parts := []string{"a", "b", "c"}
	var merges [][2]string
	for range n {
		m := [2]string{parts[rng.IntN(len(parts))], parts[rng.IntN(len(parts))]}
		if len(m[0]+m[1]) > 12 || slices.Contains(merges, m) {
			continue
		}
		merges = append(merges, m)
		if !slices.Contains(parts, m[0]+m[1]) {
			parts = append(parts, m[0]+m[1])
		}
	}
	// The list need not be in the order in which tokens can be made.
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
	}
	return merges
}
