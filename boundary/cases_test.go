package boundary_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// TestPublishedPairs has texts and continuations from reports about token
// healing: how many tokens a continuation takes back, and that the report keeps
// no more and knows the way.
func TestPublishedPairs(t *testing.T) {
	skipUnderRace(t)
	const o200k, cl100k = "o200k_base.tiktoken", "cl100k_base.tiktoken"
	for _, tt := range []struct {
		vocab, text, next string
		back              int // tokens that next changes
	}{
		{cl100k, "const userNa", "me", 2},
		{o200k, "const userNa", "me", 1},
		{cl100k, "print('Hello, worl", "d", 2},
		{o200k, "male nakednes", "s", 2},
		{o200k, "a\n ", "\n", 2},
		{o200k, "I don'", "t", 2},
		{o200k, "x  ", "y", 1},
		{cl100k, "```", "\n", 1},
		{o200k, "Answer: ", "42", 0},
		{o200k, "Answer: ", "yes", 1},
		{o200k, "if a ==", "=", 1},
		{o200k, "北", "京", 1},
		{cl100k, "\xf0\x9f\xa4", "\xa6", 0},
		{o200k, "\xf0\x9f", "\xa4\xa6", 1},
		{cl100k, "The link is <a href=\"http:", "//www", 1},
		{cl100k, "Five, Four, Thre", "e, Two", 2},
		{cl100k, "The capital of Fran", "ce", 1},
		{cl100k, "I read a book about ", "history", 1},
		{cl100k, "Shoggoth ", "is", 1},
		{cl100k, "An example [\"like this\"] and another example [", "\"x\"]", 1},
		{cl100k, "{\"na", "me\": 1}", 1},
		{cl100k, "Answer with pari", "ty", 1},
	} {
		t.Run(tt.vocab[:6]+" "+tt.text+"|"+tt.next, func(t *testing.T) {
			tok := openVocabulary(t, tt.vocab)
			text, next := []byte(tt.text), []byte(tt.next)
			rep := boundary.Analyze(tok, text)
			own := tok.Encode(nil, text)
			kept := vocab.CommonPrefix(own, tok.Encode(nil, slices.Concat(text, next)))
			if back := len(own) - kept; back != tt.back {
				t.Errorf("%q takes %d tokens back, want %d", tt.next, back, tt.back)
			}
			if _, err := check(tok, rep, text, next); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWhole has a token of Llama 3 that only ignore_merges makes.
func TestWhole(t *testing.T) {
	skipUnderRace(t)
	tok := openVocabulary(t, "llama3")
	n := 0
	for id := range vocab.ID(tok.Vocab().Len()) {
		b := tok.Vocab().Bytes(id)
		if tok.Vocab().Kind(id) != vocab.Normal || len(b) < 2 || tok.Apart(id, tok.Encode(nil, []byte("\xff"))[0]) {
			continue
		}
		n++
		rep := boundary.Analyze(tok, b)
		for _, s := range []string{"", "a", " a", "\n", "!", "1", "é", "aaaa", "s"} {
			if _, err := check(tok, rep, b, []byte(s)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d tokens come from no merge", n)
	}
	t.Logf("%d tokens come from no merge", n)
}

// reasonToys are tokenizers for the reasons.
func reasonToys(t testing.TB) map[string]*tokenizer.Tokenizer {
	return map[string]*tokenizer.Tokenizer{
		"bpe": openJSON(t, object{
			"model": byteLevel([][2]string{
				{"a", "b"}, {" ", "ab"}, {"1", "2"}, {"'", "s"}, {" ", "'s"}, {"\n", "\n"}, {"!", "\n"}, {"\xc3", "\xa9"}, {"a", "'s"},
			}),
			"pre_tokenizer": splitBy(llama3Pattern),
			"added_tokens": []any{
				object{"id": 265, "content": "<|im_start|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
				object{"id": 266, "content": "<tool>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false},
			},
		}),
		"nfc": openJSON(t, object{
			"model": byteLevel([][2]string{{"\xc3", "\xa9"}}), "pre_tokenizer": splitBy(qwenPattern), "normalizer": object{"type": "NFC"},
		}),
		"wordpiece": openJSON(t, object{
			"model":         object{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": object{"[UNK]": 0, "a": 1, "##b": 2}},
			"pre_tokenizer": object{"type": "BertPreTokenizer"},
		}),
		"regexp":  openJSON(t, object{"model": byteLevel([][2]string{{"a", "b"}}), "pre_tokenizer": splitBy(`[a-z]+\d?|\d+|\s+|.`)}),
		"missing": tokenizertest.BPE(t, gguftest.BPE{Missing: "\x04"}),
	}
}

func TestReasons(t *testing.T) {
	toys := reasonToys(t)
	for _, tt := range []struct {
		toy, text string
		special   bool
		want      string // part of the reason
	}{
		{"bpe", "", false, "the text is empty"},
		{"bpe", "x.", false, "no continuation changes"},
		{"bpe", "x<|im_start|>", true, "ends with a control token"},
		{"bpe", "x a", false, `more letters may join the last word, as in " ab"`},
		{"bpe", "x ", false, `the next word takes in the blank before it, as in " ab"`},
		{"bpe", "x1", false, `more digits may join the last number, as in "12"`},
		{"bpe", "x'", false, `the apostrophe may begin a contraction or join a quotation, as in "'s"`},
		{"bpe", "x\n", false, `what follows may join the newline, as in "\n\n"`},
		{"bpe", "x!", false, `a newline may join the last signs, as in "!\n"`},
		{"bpe", "x\xc3", false, "ends inside a character, after 1 of its bytes"},
		{"bpe", "x <|im_", true, `"<|im_" may become the added token "<|im_start|>"`},
		{"bpe", "x <too", false, `"<too" may become the added token "<tool>"`},
		{"nfc", "xe", false, "composes the last letter and a combining mark"},
		{"wordpiece", "a", false, "WordPiece decides on a whole word"},
		{"regexp", "x a", false, "regular expression that is not known here"},
		{"missing", "x\x04", false, "byte 0x04 at offset 1 has no token"},
	} {
		analyze := boundary.Analyze
		if tt.special {
			analyze = boundary.AnalyzeSpecial
		}
		if r := analyze(toys[tt.toy], []byte(tt.text)); !strings.Contains(r.Reason, tt.want) {
			t.Errorf("%s, %q: %q, want %q in it", tt.toy, tt.text, r.Reason, tt.want)
		}
	}
}

// TestLoss has text that tokens do not give back: what counts is whether that
// is so for the pending bytes.
func TestLoss(t *testing.T) {
	toys := reasonToys(t)
	for _, tt := range []struct {
		toy, text string
		offset    int // -1 for no loss
		part      string
	}{
		{"missing", "x\x04 a b", -1, ""},
		{"missing", "x b\x04", 3, "0x04"},
		{"nfc", "e\u0301 x", -1, ""},
		{"nfc", "x e\u0301", 2, "NFC"},
		{"wordpiece", "a a", 2, "white space"},
	} {
		r := boundary.Analyze(toys[tt.toy], []byte(tt.text))
		switch {
		case tt.offset < 0:
			if r.Loss != nil {
				t.Errorf("%s, %q: loss %+v", tt.toy, tt.text, *r.Loss)
			}
		case r.Loss == nil || r.Loss.Offset != tt.offset || !strings.Contains(r.Loss.Reason, tt.part):
			t.Errorf("%s, %q: loss %+v, want one at %d", tt.toy, tt.text, r.Loss, tt.offset)
		case len(r.Branches) > 0 || string(r.Pending) != tt.text[r.StableBytes:]:
			t.Errorf("%s, %q: pending %q, %d branches", tt.toy, tt.text, r.Pending, len(r.Branches))
		}
	}
}

// TestDummyPrefix has pending bytes that begin with a space that is not in the
// prompt.
func TestDummyPrefix(t *testing.T) {
	tok := openJSON(t, object{"model": metaBPE([]string{"a", "b", " "}, [][2]string{{" ", "a"}, {" a", "b"}}), "normalizer": metaNormalizer})
	r := boundary.Analyze(tok, []byte("a"))
	if r.Stable != 0 || r.StableBytes != 0 || string(r.Pending) != " a" || r.Prefix != 1 || r.Loss != nil {
		t.Errorf("%d tokens, %d bytes stable, pending %q, %d of them prefix, loss %v", r.Stable, r.StableBytes, r.Pending, r.Prefix, r.Loss)
	}
	if n, _ := r.Count(); n != 2 {
		t.Errorf("%d covers, want those of \" a\" and \" ab\"", n)
	}
	r = boundary.Analyze(tok, []byte("b a"))
	if r.StableBytes != 1 || string(r.Pending) != " a" || r.Prefix != 0 {
		t.Errorf("%d bytes stable, pending %q, %d of them prefix", r.StableBytes, r.Pending, r.Prefix)
	}
}

// TestProve compares proofs with all continuations up to a length.
func TestProve(t *testing.T) {
	for _, f := range families() {
		if f.name == "unknown pattern" || f.name == "WordPiece" {
			continue // the analysis does not know what follows: see TestProveCautious
		}
		t.Run(f.name, func(t *testing.T) {
			tok := f.open(t, newRand(31, len(f.name)), f.alphabet)
			var conts [][]byte
			texts(f.alphabet, 3, func(s []byte) { conts = append(conts, slices.Clone(s)) })
			proved, doubtful := 0, 0
			length := 2
			if testing.Short() || raceEnabled {
				length = 1
			}
			texts(f.alphabet, length, func(text []byte) {
				p := boundary.Prove(tok, text)
				var set boundary.ByteSet
				for _, b := range p.Breaks {
					for i := range b.Next {
						set[i] |= b.Next[i]
					}
					if b.Example == nil {
						doubtful++
						continue
					}
					ids := tok.Encode(nil, slices.Concat(text, b.Example))
					if !b.Next.Has(b.Example[0]) || !slices.Equal(ids[:len(b.Becomes)], b.Becomes) || vocab.CommonPrefix(ids, p.IDs) == len(p.IDs) {
						t.Errorf("%q: example %q is none: %v, %v before", text, b.Example, ids, p.IDs)
					}
				}
				if p.Stable {
					proved++
				}
				for _, s := range conts {
					if len(s) == 0 || set.Has(s[0]) {
						continue
					}
					if ids := tok.Encode(nil, slices.Concat(text, s)); vocab.CommonPrefix(ids, p.IDs) < len(p.IDs) {
						t.Errorf("%q: %v, but %q makes %v of %v", text, p, s, ids, p.IDs)
						return
					}
				}
			})
			t.Logf("%d texts proved stable, %d breaks without example", proved, doubtful)
		})
	}
}

// TestDelimiters proves delimiters of prompts in real vocabularies.
func TestDelimiters(t *testing.T) {
	skipUnderRace(t)
	for _, tt := range []struct {
		vocab, text string
		special     bool
		want        string
	}{
		{"o200k_base.tiktoken", "Answer:\n\n", false, "stable unless the next text begins with"},
		{"o200k_base.tiktoken", "Answer: ", false, "stable unless the next text begins with"},
		{"qwen3", "<|im_end|>", true, "stable before any continuation"},
		{"qwen3", "<|im_end|>\n", true, "stable unless the next text begins with"},
	} {
		tok := openVocabulary(t, tt.vocab)
		prove := boundary.Prove
		if tt.special {
			prove = boundary.ProveSpecial
		}
		p := prove(tok, []byte(tt.text))
		if !strings.HasPrefix(p.String(), tt.want) {
			t.Errorf("%s, %q: %v", tt.vocab, tt.text, p)
		}
		line := fmt.Sprintf("%s, %q: %v", tt.vocab, tt.text, p)
		for _, b := range p.Breaks {
			line += fmt.Sprintf("\n\t%s %s: %q gives %v of %v", b.Kind, &b.Next, b.Example, b.Becomes, p.IDs)
		}
		t.Log(line)
	}
}

func newRand(a, b int) *rand.Rand { return rand.New(rand.NewPCG(uint64(a), uint64(b))) }

// skipUnderRace is for tests of one goroutine that open large vocabularies.
func skipUnderRace(t *testing.T) {
	if raceEnabled {
		t.Skip("slow under the race detector, and one goroutine")
	}
}

// TestNeverEmitted has a token of o200k that its own pre-tokenizer cuts after a
// letter: it is no cover there. " I'" looks like another but begins " I'LL".
func TestNeverEmitted(t *testing.T) {
	skipUnderRace(t)
	tok := openVocabulary(t, "o200k_base.tiktoken")
	for _, tt := range []struct{ text, token string }{{"a\n", "\n\n//"}} {
		id, ok := tok.Vocab().Lookup([]byte(tt.token))
		if !ok {
			t.Errorf("no token %q", tt.token)
			continue
		}
		r := boundary.Analyze(tok, []byte(tt.text))
		for c := range r.All() {
			if c.IDs[len(c.IDs)-1] == id {
				t.Errorf("%q: cover %v ends with %q", tt.text, c.IDs, tt.token)
			}
		}
		if ids := tok.Encode(nil, []byte("a I'LL")); len(ids) != 3 || string(tok.Vocab().Bytes(ids[1])) != " I'" {
			t.Errorf("tokens %v", ids)
		}
		if n, exact := r.Count(); n < 2 || !exact && n < 1000 {
			t.Errorf("%q: %d covers (exact %v)", tt.text, n, exact)
		}
	}
}
