package heal_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// end is the toy vocabulary's control token.
const end vocab.ID = 0

func toy(t testing.TB, merges ...[2]string) *tokenizer.Tokenizer {
	t.Helper()
	// A file that names no EOS has the eleventh token for it, here a byte.
	return tokenizertest.BPE(t, gguftest.BPE{Controls: []string{"<|end|>"}, Merges: merges},
		gguftest.Pair{Key: "tokenizer.ggml.eos_token_id", Value: uint32(end)})
}

// words has the tokens " user", "Na", " userName", "Par", " Par", " Paris".
func words(t testing.TB) *tokenizer.Tokenizer {
	return toy(t,
		[2]string{"u", "s"}, [2]string{"us", "e"}, [2]string{"use", "r"}, [2]string{" ", "user"},
		[2]string{"N", "a"}, [2]string{"Na", "m"}, [2]string{"Nam", "e"}, [2]string{" user", "Name"},
		[2]string{"a", "r"}, [2]string{"P", "ar"}, [2]string{" ", "Par"}, [2]string{"i", "s"}, [2]string{" Par", "is"},
		[2]string{"\xc3", "\xa9"},
	)
}

func ids(t testing.TB, tok *tokenizer.Tokenizer, tokens ...string) []vocab.ID {
	t.Helper()
	var out []vocab.ID
	for _, s := range tokens {
		id, ok := tok.Vocab().Lookup([]byte(s))
		if s == "<|end|>" {
			id, ok = end, true
		}
		if !ok {
			t.Fatalf("no token %q", s)
		}
		out = append(out, id)
	}
	return out
}

func TestPlan(t *testing.T) {
	tok := words(t)
	tests := []struct {
		name   string
		prompt []string // tokens
		mode   heal.Mode
		keep   int // tokens
		want   heal.Mode
		notes  []string
	}{
		{"two tokens back", []string{"x", " user", "Na"}, heal.Stable, 1, heal.Stable, nil},
		{"auto is stable", []string{"x", " user", "Na"}, heal.Auto, 1, heal.Stable, nil},
		{"empty mode is auto", []string{"x", " user", "Na"}, "", 1, heal.Stable, nil},
		{"exact", []string{"x", " user", "Na"}, heal.Exact, 1, heal.Exact, nil},
		{"last takes one", []string{"x", " user", "Na"}, heal.Last, 2, heal.Last, nil},
		{"off", []string{"x", " user", "Na"}, heal.Off, 3, heal.Off, nil},
		{"nothing can change", []string{"x", "?"}, heal.Stable, 2, heal.Stable, nil},
		{"control token last", []string{"x", " user", "<|end|>"}, heal.Stable, 3, heal.Stable, nil},
		{"control token last, last", []string{"x", "<|end|>"}, heal.Last, 2, heal.Last, nil},
		{"control token alone", []string{"<|end|>"}, heal.Stable, 1, heal.Stable, nil},
		{"not across a control token", []string{"x", "<|end|>", "N", "a"}, heal.Stable, 2, heal.Stable, []string{heal.CodeNotCanonical}},
		{"after a control token", []string{"x", "<|end|>", "Na"}, heal.Stable, 2, heal.Stable, nil},
		{"all may change", []string{" user", "Na"}, heal.Stable, 1, heal.Stable, []string{heal.CodeNothingBefore}},
		{"one token", []string{" user"}, heal.Stable, 1, heal.Stable, []string{heal.CodeNothingBefore}},
		{"one token, last", []string{" user"}, heal.Last, 1, heal.Last, []string{heal.CodeNothingBefore}},
		{"not canonical", []string{"x", " ", "u", "s", "e", "r"}, heal.Stable, 1, heal.Stable, []string{heal.CodeNotCanonical}},
		{"not canonical but final", []string{"x", "P", "ar", "?"}, heal.Stable, 4, heal.Stable, nil},
		{"inside a character", []string{"x", "\xc3"}, heal.Stable, 1, heal.Stable, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prompt := ids(t, tok, tt.prompt...)
			given := slices.Clone(prompt)
			p := heal.New(tok, prompt, tt.mode)
			if !slices.Equal(prompt, given) {
				t.Error("New changed the prompt it was given")
			}
			var codes []string
			for _, n := range p.Notes {
				codes = append(codes, n.Code)
			}
			if p.Mode != tt.want || !slices.Equal(p.Prompt, prompt[:tt.keep]) || p.Removed != len(prompt)-tt.keep || !slices.Equal(codes, tt.notes) {
				t.Errorf("mode %s, keeps %d, removes %d, notes %v; want %s, %d, %d, %v",
					p.Mode, len(p.Prompt), p.Removed, codes, tt.want, tt.keep, len(prompt)-tt.keep, tt.notes)
			}
			if want := tok.Decode(nil, prompt[tt.keep:]); !bytes.Equal(p.Pending, want) {
				t.Errorf("pending %q, want %q", p.Pending, want)
			}
			if done := p.NewSession().Done(); done != (len(p.Pending) == 0) {
				t.Errorf("a new session is done: %v", done)
			}
		})
	}
}

// allowed lists what a mask holds, by the tokens' bytes.
func allowed(tok *tokenizer.Tokenizer, m vocab.Mask) []string {
	var out []string
	for id := range m.All() {
		out = append(out, string(tok.Vocab().Bytes(id)))
	}
	slices.Sort(out)
	return out
}

func TestMaskFollowsBranches(t *testing.T) {
	tok := words(t)
	s := heal.New(tok, ids(t, tok, "x", " user", "Na"), heal.Stable).NewSession()
	// Not " ", " u" or "us": the tokenizer would never put those there.
	if got, want := allowed(tok, s.Mask()), []string{" user", " userName"}; !slices.Equal(got, want) {
		t.Errorf("first mask %q, want %q", got, want)
	}
	if r, err := s.Accept(ids(t, tok, " user")[0]); err != nil || r.Bytes != 5 || r.Straddles {
		t.Errorf("accept: %+v, %v", r, err)
	}
	// Not "Name": with " user" it would be one token.
	if got, want := allowed(tok, s.Mask()), []string{"Na", "Nam"}; !slices.Equal(got, want) {
		t.Errorf("second mask %q, want %q", got, want)
	}
	if r, err := s.Accept(ids(t, tok, "Nam")[0]); err != nil || r.Bytes != 2 || !r.Straddles {
		t.Errorf("accept: %+v, %v", r, err)
	}
	if m := s.Mask(); m != nil || !s.Done() {
		t.Errorf("mask %v after the pending bytes", m)
	}
}

// TestUnproved has a vocabulary in which less can be proved.
func TestUnproved(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{Bare: [][2]string{{"a", "b"}}})
	p := heal.New(tok, tok.Encode(nil, []byte("? xa")), heal.Stable)
	if len(p.Notes) != 1 || p.Notes[0].Code != heal.CodeUnproved || string(p.Pending) != " xa" {
		t.Errorf("pending %q, notes %v", p.Pending, p.Notes)
	}
	walk(t, rand.New(rand.NewPCG(1, 1)), tok, p)
}

func TestMaskByBytes(t *testing.T) {
	tok := words(t)
	s := heal.New(tok, ids(t, tok, "x", " Par"), heal.Last).NewSession()
	if got, want := allowed(tok, s.Mask()), []string{" ", " Par", " Paris"}; !slices.Equal(got, want) {
		t.Errorf("first mask %q, want %q", got, want)
	}
	if _, err := s.Accept(ids(t, tok, " ")[0]); err != nil {
		t.Fatal(err)
	}
	if got, want := allowed(tok, s.Mask()), []string{"P", "Par"}; !slices.Equal(got, want) {
		t.Errorf("second mask %q, want %q", got, want)
	}
}

// TestMaskWithoutEnds has an end-of-generation token that is text.
func TestMaskWithoutEnds(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{Merges: [][2]string{{"<", "!"}}, Added: []string{"<e>"}},
		gguftest.Pair{Key: "tokenizer.ggml.eos_token_id", Value: uint32(257)})
	if id := ids(t, tok, "<e>")[0]; !tok.Vocab().IsEOG(id) || !tok.Vocab().IsText(id) {
		t.Fatalf("token %d is not both text and end of generation", id)
	}
	for _, mode := range []heal.Mode{heal.Stable, heal.Last} {
		s := heal.New(tok, tok.Encode(nil, []byte("x<")), mode).NewSession()
		if got, want := allowed(tok, s.Mask()), []string{"<", "<!"}; !slices.Equal(got, want) {
			t.Errorf("%s: mask %q, want %q", mode, got, want)
		}
	}
}

func TestAcceptRefusesWhatIsNotPending(t *testing.T) {
	tok := words(t)
	s := heal.New(tok, ids(t, tok, "x", " user", "Na"), heal.Stable).NewSession()
	for _, token := range []string{" Par", "<|end|>"} {
		_, err := s.Accept(ids(t, tok, token)[0])
		var re *heal.ReplayError
		if !errors.As(err, &re) || string(re.Want) != " userNa" || re.At != 0 {
			t.Errorf("accept %q: %v", token, err)
		}
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]heal.Mode{"": heal.Auto, "auto": heal.Auto, "exact": heal.Exact, "stable": heal.Stable, "last": heal.Last, "off": heal.Off} {
		if got, err := heal.ParseMode(in); err != nil || got != want {
			t.Errorf("ParseMode(%q) = %q, %v", in, got, err)
		}
	}
	if _, err := heal.ParseMode("Stable"); err == nil {
		t.Error("ParseMode takes a mode that is none")
	}
}

// alphabet makes texts in which every kind of seam occurs.
var alphabet = []string{"a", "b", " ", "\n", "'", "r", "e", "1", "é", "\u2003", "\xe2", "\xc3"}

func randomToy(t testing.TB, r *rand.Rand) *tokenizer.Tokenizer {
	var known []string
	for _, s := range alphabet {
		for i := range len(s) {
			if !slices.Contains(known, s[i:i+1]) {
				known = append(known, s[i:i+1])
			}
		}
	}
	var merges [][2]string
	for len(merges) < 30 {
		a, b := known[r.IntN(len(known))], known[r.IntN(len(known))]
		if len(a+b) <= 6 && !slices.Contains(known, a+b) {
			known = append(known, a+b)
			merges = append(merges, [2]string{a, b})
		}
	}
	return toy(t, merges...)
}

func randomText(r *rand.Rand, n int) []byte {
	var b []byte
	for range n {
		b = append(b, alphabet[r.IntN(len(alphabet))]...)
	}
	return b
}

// TestReplayIsExact walks at random through the masks of random prompts:
// whatever is chosen, the bytes produced are the pending ones, and the walk
// ends. And the way that the tokenizer takes over the prompt's end, whatever
// text follows, is always open.
func TestReplayIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		tok := randomToy(t, r)
		for range 200 {
			text := randomText(r, 1+r.IntN(12))
			prompt := tok.Encode(nil, text)
			for _, mode := range []heal.Mode{heal.Stable, heal.Last} {
				p := heal.New(tok, prompt, mode)
				walk(t, r, tok, p)
				if mode == heal.Stable {
					follow(t, tok, p, text, randomText(r, r.IntN(6)))
				}
			}
		}
	}
}

// TestReplayOnRealText is the same with real vocabularies, in which some
// branches lead nowhere: a walk must not enter them.
func TestReplayOnRealText(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	text, err := os.ReadFile("plan.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpt2", "llama3", "cl100k_base.tiktoken"} {
		tok, err := tokenizer.Open(tokenizertest.Path(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			at := 300 + r.IntN(len(text)-300)
			prompt := tok.Encode(nil, text[at-300:at])
			for _, mode := range []heal.Mode{heal.Stable, heal.Last} {
				p := heal.New(tok, prompt, mode)
				for range 5 {
					walk(t, r, tok, p)
				}
			}
		}
	}
}

func walk(t *testing.T, r *rand.Rand, tok *tokenizer.Tokenizer, p *heal.Plan) {
	t.Helper()
	s := p.NewSession()
	var out []byte
	for steps := 0; !s.Done(); steps++ {
		choices := slices.Collect(s.Mask().All())
		if len(choices) == 0 || steps > len(p.Pending) {
			t.Fatalf("pending %q: stuck after %q", p.Pending, out)
		}
		id := choices[r.IntN(len(choices))]
		if !tok.Vocab().IsText(id) {
			t.Fatalf("pending %q: mask holds control token %d", p.Pending, id)
		}
		if _, err := s.Accept(id); err != nil {
			t.Fatal(err)
		}
		out = append(out, tok.Vocab().Bytes(id)...)
	}
	if !bytes.HasPrefix(out, p.Pending) {
		t.Fatalf("pending %q: produced %q", p.Pending, out)
	}
}

func follow(t *testing.T, tok *tokenizer.Tokenizer, p *heal.Plan, text, next []byte) {
	t.Helper()
	for _, n := range p.Notes {
		if n.Code == heal.CodeNothingBefore {
			return // the first token was kept although it may change
		}
	}
	whole := tok.Encode(nil, slices.Concat(text, next))
	if !slices.Equal(whole[:len(p.Prompt)], p.Prompt) {
		t.Fatalf("prompt %q, continuation %q: tokens %v do not begin with %v", text, next, whole, p.Prompt)
	}
	s := p.NewSession()
	for _, id := range whole[len(p.Prompt):] {
		if s.Done() {
			return
		}
		if !s.Mask().Has(id) {
			t.Fatalf("prompt %q, continuation %q: mask forbids %q", text, next, tok.Vocab().Bytes(id))
		}
		if _, err := s.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
}

// openJSON opens a tokenizer.json.
func openJSON(t *testing.T, file string) *tokenizer.Tokenizer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestDummyPrefix rolls back to before a space that is not in the prompt. What
// is pending are the bytes of tokens, so it is among them.
func TestDummyPrefix(t *testing.T) {
	tok := openJSON(t, `{"version": "1.0", "added_tokens": [{"id": 0, "content": "<s>", "special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false}],
		"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
		"pre_tokenizer": null, "post_processor": null,
		"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
		"model": {"type": "BPE", "unk_token": null, "vocab": {"<s>": 0, "a": 1, "b": 2, "▁": 3, "▁a": 4, "▁ab": 5}, "merges": ["▁ a", "▁a b"]}}`)
	prompt := tok.Encode([]vocab.ID{0}, []byte("a"))
	p := heal.New(tok, prompt, heal.Stable)
	if p.Mode != heal.Stable || p.Removed != 1 || string(p.Pending) != " a" || len(p.Notes) != 0 {
		t.Fatalf("mode %s, %d removed, pending %q, notes %v", p.Mode, p.Removed, p.Pending, p.Notes)
	}
	if got, want := allowed(tok, p.NewSession().Mask()), []string{" a", " ab"}; !slices.Equal(got, want) {
		t.Errorf("mask %q, want %q", got, want)
	}
	// The caller may have left the space out.
	p = heal.New(tok, []vocab.ID{0, 1}, heal.Stable)
	if len(p.Notes) != 1 || p.Notes[0].Code != heal.CodeNotCanonical || p.Removed != 1 || string(p.Pending) != "a" {
		t.Errorf("%d removed, pending %q, notes %v", p.Removed, p.Pending, p.Notes)
	}
	walk(t, rand.New(rand.NewPCG(1, 1)), tok, p)
}

// TestWordPiece has tokens that do not spell the text between words.
func TestWordPiece(t *testing.T) {
	tok := openJSON(t, `{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
		"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}}`)
	prompt := tok.Encode(nil, []byte("a a"))
	p := heal.New(tok, prompt, heal.Stable)
	if p.Mode != heal.Off || p.Removed != 0 || len(p.Notes) != 1 || p.Notes[0].Code != heal.CodeLossy {
		t.Errorf("mode %s, %d removed, notes %v", p.Mode, p.Removed, p.Notes)
	}
}
