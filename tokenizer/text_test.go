package tokenizer_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

const cl100k = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

const o200k = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

var toyMerges = [][2]string{
	{"a", "b"}, {" ", "a"}, {" a", "b"}, {"a", "a"}, {"ab", "ab"}, {"b", "'"}, {"é"[:1], "é"[1:]}, {"1", "2"}, {" ", " "},
	{"\n", "\n"}, {"b", "c"}, {" ab", "c"}, {"中"[:1], "中"[1:2]}, {"e", "\u0301"[:1]},
}

// toys are tokenizers of every family that small vocabularies can show.
var toys = map[string]tokenizertest.Toy{
	"gpt2":   {Merges: toyMerges},
	"cl100k": {Merges: toyMerges, PreTokenizer: tokenizertest.Split(cl100k), IgnoreMerges: true, Tokens: []string{"bab"}},
	"o200k":  {Merges: toyMerges, PreTokenizer: tokenizertest.Split(o200k)},
	"nfc":    {Merges: toyMerges, PreTokenizer: tokenizertest.Split(cl100k), Normalizer: `{"type":"NFC"}`},
	"nfkc":   {Merges: toyMerges, Normalizer: `{"type":"NFKC"}`},
	"added": {Merges: toyMerges, Added: []tokenizertest.ToyAdded{
		{Content: "<a>"}, {Content: "<a><b>"}, {Content: "ab<"}, {Content: "<|s|>", Special: true},
	}},
	"flags": {Merges: toyMerges, Added: []tokenizertest.ToyAdded{
		{Content: "<a>", LStrip: true}, {Content: "<b>", RStrip: true}, {Content: "ab", SingleWord: true},
	}},
	"given up": {Merges: [][2]string{{">", "1"}, {"a", "b"}}, Added: []tokenizertest.ToyAdded{
		{Content: "<a>", SingleWord: true}, {Content: ">"}, {Content: "中", SingleWord: true},
	}},
	"given up, rewritten": {Merges: toyMerges, Normalizer: `{"type":"Replace","pattern":{"String":"ab"},"content":"c"}`, Added: []tokenizertest.ToyAdded{
		{Content: "ab<", SingleWord: true, Normalized: true}, {Content: "a", RStrip: true, Normalized: true},
	}},
	"taken in": {Merges: toyMerges, Normalizer: `{"type":"NFKD"}`, Added: []tokenizertest.ToyAdded{
		{Content: " a", LStrip: true, RStrip: true, Normalized: true},
	}},
	"prefixes": {Merges: toyMerges, PreTokenizer: strings.Replace(tokenizertest.ByteLevel, `"add_prefix_space":false`, `"add_prefix_space":true`, 1), Added: []tokenizertest.ToyAdded{
		{Content: "a", SingleWord: true, Normalized: true}, {Content: "<b>", Normalized: true},
	}},
	"normalized": {Merges: toyMerges, Normalizer: `{"type":"NFC"}`, Added: []tokenizertest.ToyAdded{
		{Content: "é<", Normalized: true}, {Content: "<a>"},
	}},
	"llama2": {
		Meta: true, Chars: "abc é<>\n", Merges: [][2]string{{"a", "b"}, {" ", "a"}, {" ", " "}, {" a", "b"}, {"b", "c"}, {"ab", "ab"}},
		Normalizer: tokenizertest.MetaPrepend, Decoder: tokenizertest.MetaDecoder,
		Added: []tokenizertest.ToyAdded{{Content: "<a>"}, {Content: "<s>", Special: true}},
	},
	"gemma": {
		Meta: true, Chars: "abc é<>\n", Merges: [][2]string{{"a", "b"}, {" ", "a"}, {" ", " "}, {" a", "b"}, {"b", "c"}, {">", " <"}, {" ", "<"}},
		Normalizer: tokenizertest.MetaReplace,
	},
	"prefix":          {Merges: toyMerges, PreTokenizer: strings.Replace(tokenizertest.ByteLevel, `"add_prefix_space":false`, `"add_prefix_space":true`, 1)},
	"unknown pattern": {Merges: toyMerges, PreTokenizer: tokenizertest.Split(`[ab]+|\s+(?!b)|.`)},
}

func openToy(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	return toys[name].Open(t)
}

// pieces are what the random texts are made of.
var pieces = []string{
	"a", "b", "ab", " ", "  ", "\n", "c", "'", "s", "1", "2", "12", "é", "e", "\u0301", "中", "A", "<a>", "<b>", "<", "<a", "<s>", "|s|>",
	"\xe4", "\xb8", "\xad", "\xff", ".", "/", "\r", "\t", "ﬁ", " ab", "abab",
}

func randomText(r *rand.Rand, n int) []byte {
	var b []byte
	for range n {
		b = append(b, pieces[r.IntN(len(pieces))]...)
	}
	return b
}

// TestTextIsWhole checks that a text that grows, is cut and edited has at every
// moment the tokens of the whole.
func TestTextIsWhole(t *testing.T) {
	for name := range toys {
		t.Run(name, func(t *testing.T) {
			tok := openToy(t, name)
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 1))
				checkEdits(t, tok, r, seed%2 == 0, 40)
			}
		})
	}
}

func checkEdits(t *testing.T, tok *tokenizer.Tokenizer, r *rand.Rand, special bool, steps int) {
	t.Helper()
	x := tok.NewText(special)
	var want []byte
	var log []string
	for range steps {
		switch k := r.IntN(10); {
		case k < 6:
			b := randomText(r, r.IntN(8))
			if r.IntN(8) == 0 {
				b = randomText(r, 600)
			}
			x.Append(b)
			want = append(want, b...)
			log = append(log, fmt.Sprintf("append %q", clip(b)))
		case k < 7:
			n := r.IntN(len(want) + 1)
			x.Truncate(n)
			want = want[:n]
			log = append(log, fmt.Sprintf("truncate %d", n))
		default:
			lo := r.IntN(len(want) + 1)
			hi := lo + r.IntN(min(20, len(want)-lo)+1)
			b := randomText(r, r.IntN(4))
			x.Replace(lo, hi, b)
			want = slices.Concat(want[:lo], b, want[hi:])
			log = append(log, fmt.Sprintf("replace %d:%d by %q", lo, hi, b))
		}
		encode := tok.Encode
		if special {
			encode = tok.EncodeSpecial
		}
		if !bytes.Equal(x.Bytes(), want) {
			t.Fatalf("text is %q, want %q, after %q", clip(x.Bytes()), clip(want), log)
		}
		if got, want := x.IDs(), encode(nil, want); !slices.Equal(got, want) {
			at := vocab.CommonPrefix(got, want)
			t.Fatalf("tokens differ from %d on: %v, want %v; after %q", at, got[at:min(len(got), at+8)], want[at:min(len(want), at+8)], log)
		}
	}
}

// TestTextOfPieces is TestTextIsWhole for SentencePiece models, which put a space
// before a text even where a control token begins it.
func TestTextOfPieces(t *testing.T) {
	for _, name := range []string{"bpe.model", "unigram.model"} {
		tok, err := tokenizer.Open(filepath.Join("internal", "spmodel", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		x := tok.NewText(true)
		for _, s := range []string{"<s", ">", "</s>", "ab", " <s>"} {
			x.Append([]byte(s))
			x.Tail(new(tokenizer.Tail))
			if got, want := x.IDs(), tok.EncodeSpecial(nil, x.Bytes()); !slices.Equal(got, want) {
				t.Errorf("%s, %q: %v, want %v", name, x.Bytes(), got, want)
			}
		}
		for seed := range uint64(60) {
			checkEdits(t, tok, rand.New(rand.NewPCG(seed, 1)), seed%2 == 0, 40)
		}
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 60)] }

func FuzzTextIsWhole(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, i*7)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range toys {
			if !yield(name) {
				return
			}
		}
	})
	all := make([]*tokenizer.Tokenizer, len(names))
	for i, name := range names {
		all[i] = openToy(f, name)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		checkEdits(t, all[r.IntN(len(all))], r, a%2 == 0, 8)
	})
}

// TestTailSettles checks against continuations that the tokens before a tail
// stay, and that its readings have what pretokens come of them.
func TestTailSettles(t *testing.T) {
	for name := range toys {
		t.Run(name, func(t *testing.T) {
			tok := openToy(t, name)
			var tail tokenizer.Tail
			for seed := range uint64(400) {
				r := rand.New(rand.NewPCG(seed, 2))
				text := randomText(r, r.IntN(12))
				x := tok.NewText(false)
				x.Append(text)
				x.Tail(&tail)
				own := tok.Encode(nil, text)
				if !slices.Equal(own, x.IDs()) {
					t.Fatalf("%q: tokens after Tail are %v, want %v", text, x.IDs(), own)
				}
				for range 30 {
					more := slices.Concat(text, randomText(r, 1+r.IntN(3)))
					got := tok.Encode(nil, more)
					if !slices.Equal(got[:min(len(got), tail.Tokens)], own[:tail.Tokens]) {
						t.Fatalf("%q: of %v the first %d are said to stay, but %q has %v", text, own, tail.Tokens, more, got)
					}
				}
			}
		})
	}
}

// TestConversations checks that remembered beginnings change no token.
func TestConversations(t *testing.T) {
	for _, name := range []string{"o200k", "nfc", "llama2", "added"} {
		tok := openToy(t, name)
		c := tok.NewConversations(1<<16, false)
		r := rand.New(rand.NewPCG(3, 4))
		var talks [4][]byte
		for range 300 {
			i := r.IntN(len(talks))
			switch {
			case r.IntN(10) == 0:
				talks[i] = talks[i][:r.IntN(len(talks[i])+1)]
			case r.IntN(10) == 0 && i > 0:
				talks[i] = slices.Clone(talks[i-1])
			}
			talks[i] = append(talks[i], randomText(r, r.IntN(400))...)
			if len(talks[i]) > 20000 {
				talks[i] = talks[i][:3000]
			}
			if got, want := c.Encode(nil, talks[i]), tok.Encode(nil, talks[i]); !slices.Equal(got, want) {
				at := vocab.CommonPrefix(got, want)
				t.Fatalf("%s: tokens of %d bytes differ from %d on", name, len(talks[i]), at)
			}
		}
	}
}

// TestRealTextGrows is TestTextIsWhole on real vocabularies and text.
func TestRealTextGrows(t *testing.T) {
	folder := os.Getenv("UNFRAY_TEST_VOCABS")
	if folder == "" {
		t.Skip("UNFRAY_TEST_VOCABS is not set: make test fetches the vocabularies")
	}
	text, err := os.ReadFile("../testdata/languages.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"o200k_base.tiktoken", "qwen3", "deepseek_v3", "gemma3", "mistral", "gemma2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok, err := tokenizer.Open(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			x := tok.NewText(false)
			r := rand.New(rand.NewPCG(5, 6))
			for at := 0; at < len(text); {
				n := min(len(text)-at, r.IntN(1500))
				x.Append(text[at : at+n])
				at += n
				if got, want := x.IDs(), tok.Encode(nil, text[:at]); !slices.Equal(got, want) {
					t.Fatalf("tokens of the first %d bytes differ", at)
				}
			}
		})
	}
}
