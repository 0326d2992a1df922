package tokenizer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/vocab"
)

func TestDecode(t *testing.T) {
	tok := synthetic{pre: "smollm", merges: [][2]string{{"a", "b"}}, controls: []string{"<|end|>"}}.open(t)
	end, _ := tok.vocab.LookupSpecial([]byte("<|end|>"))
	got := tok.Decode([]byte("x"), []vocab.ID{'a', vocab.None, 1 << 30, end, 256})
	if string(got) != "xa<|end|>ab" {
		t.Errorf("Decode gives %q", got)
	}
	if want := "byte-level BPE, pre-tokenizer smollm, 258 tokens"; tok.String() != want {
		t.Errorf("String gives %q, want %q", tok, want)
	}
}

func TestEveryByteOfTheVocabulary(t *testing.T) {
	tok := synthetic{pre: "gpt-2"}.open(t)
	for b := range 256 {
		if got := tok.vocab.Bytes(vocab.ID(b)); !bytes.Equal(got, []byte{byte(b)}) {
			t.Errorf("token %d stands for %q", b, got)
		}
	}
}

func TestKinds(t *testing.T) {
	s := synthetic{pre: "gpt-2", merges: [][2]string{{"a", "b"}}}
	pairs := s.pairs()
	for i := range pairs {
		switch v := pairs[i].Value.(type) {
		case []string:
			if pairs[i].Key == "tokenizer.ggml.tokens" {
				pairs[i].Value = append(v, "<0x0A>", "two words", "", "<unk>", "<gone>", "odd")
			}
		case []int32:
			pairs[i].Value = append(v, int32(vocab.Byte), int32(vocab.Normal), int32(vocab.Normal), int32(vocab.Unknown), int32(vocab.Unused), 77)
		}
	}
	tok := open(t, gguftest.Build(pairs...))
	for _, tc := range []struct {
		id    vocab.ID
		kind  vocab.Kind
		bytes string
		text  bool
	}{
		{256, vocab.Normal, "ab", true},
		{257, vocab.Byte, "\n", true},
		{258, vocab.Unused, "two words", false}, // a space spells no byte
		{259, vocab.Normal, "", false},
		{260, vocab.Unknown, "<unk>", false},
		{261, vocab.Unused, "<gone>", false},
		{262, vocab.Undefined, "odd", false},
	} {
		v := tok.vocab
		if v.Kind(tc.id) != tc.kind || string(v.Bytes(tc.id)) != tc.bytes || v.IsText(tc.id) != tc.text {
			t.Errorf("token %d: kind %d, %q, text %v; want %+v", tc.id, v.Kind(tc.id), v.Bytes(tc.id), v.IsText(tc.id), tc)
		}
	}
	if got := tok.EncodeSpecial(nil, []byte("<unk>")); !slices.Equal(got, []vocab.ID{260}) {
		t.Errorf("EncodeSpecial of an unknown token gives %v", got)
	}
	if got := tok.Encode(nil, []byte("\n")); !slices.Equal(got, []vocab.ID{'\n'}) {
		t.Errorf("a newline is token %v, want the normal one", got)
	}
}

func TestFromGGUFRefuses(t *testing.T) {
	base := synthetic{pre: "smollm"}
	with := func(key string, value any) []gguftest.Pair {
		pairs := slices.DeleteFunc(base.pairs(), func(p gguftest.Pair) bool { return p.Key == key })
		if value != nil {
			pairs = append(pairs, gguftest.Pair{Key: key, Value: value})
		}
		return pairs
	}
	for _, tc := range []struct {
		name  string
		pairs []gguftest.Pair
		want  string
	}{
		{"no model", with("tokenizer.ggml.model", nil), "holds no tokenizer"},
		{"model type", with("tokenizer.ggml.model", uint32(1)), "of type uint32, not string"},
		{"other model", with("tokenizer.ggml.model", "rwkv"), `model "rwkv" is not supported; supported are gpt2`},
		{"no pre", with("tokenizer.ggml.pre", nil), "does not name its pre-tokenizer"},
		{"other pre", with("tokenizer.ggml.pre", "superbpe"), `pre-tokenizer "superbpe"`},
		{"no tokens", with("tokenizer.ggml.tokens", nil), `"tokenizer.ggml.tokens": not in the file`},
		{"tokens type", with("tokenizer.ggml.tokens", []int32{1}), "not array of string"},
		{"no merges", with("tokenizer.ggml.merges", nil), `"tokenizer.ggml.merges": not in the file`},
		{"few types", with("tokenizer.ggml.token_type", []int32{1}), "1 token types for 256 tokens"},
		{"types type", with("tokenizer.ggml.token_type", []string{"a"}), "not array of int32"},
		{"twice", with("tokenizer.ggml.tokens", slices.Repeat([]string{"a"}, 256)), `tokens 0 and 1 are both "a"`},
		{"byte token", with("tokenizer.ggml.token_type", slices.Repeat([]int32{6}, 256)), "not of the form <0x0A>"},
		{"add BOS", append(with("tokenizer.ggml.token_type", nil)[:0:0], gguftest.Pair{Key: "tokenizer.ggml.model", Value: "gpt2"},
			gguftest.Pair{Key: "tokenizer.ggml.pre", Value: "gpt-2"}, gguftest.Pair{Key: "tokenizer.ggml.tokens", Value: []string{"a"}},
			gguftest.Pair{Key: "tokenizer.ggml.merges", Value: []string{}}, gguftest.Pair{Key: "tokenizer.ggml.add_bos_token", Value: true}),
			"add_bos_token is true, but there is no such token"},
		{"add BOS type", with("tokenizer.ggml.add_bos_token", uint8(1)), "of type uint8, not bool"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, err := gguf.Read(bytes.NewReader(gguftest.Build(tc.pairs...)), gguf.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := FromGGUF(f); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestOpenGGUF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if _, err := OpenGGUF(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, gguftest.Build(synthetic{pre: "superbpe"}.pairs()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGGUF(path); err == nil || !strings.HasPrefix(err.Error(), path+": tokenizer: pre-tokenizer \"superbpe\"") {
		t.Errorf("an unsupported file: %v", err)
	}
	if err := os.WriteFile(path, gguftest.Build(synthetic{pre: "olmo"}.pairs()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if tok, err := OpenGGUF(path); err != nil || tok.vocab.Len() != 256 {
		t.Errorf("a supported file: %v", err)
	}
}

func TestSpecials(t *testing.T) {
	const base = vocab.ID(256)
	key := func(name string, value any) gguftest.Pair {
		return gguftest.Pair{Key: "tokenizer.ggml." + name, Value: value}
	}
	sp := func(set func(*vocab.Specials)) vocab.Specials {
		s := vocab.NoSpecials()
		s.BOS, s.EOS, s.EOG = 11, 11, []vocab.ID{11}
		set(&s)
		return s
	}
	for _, tc := range []struct {
		name     string
		controls []string
		extra    []gguftest.Pair
		want     vocab.Specials
	}{
		{"defaults", nil, nil, sp(func(*vocab.Specials) {})},
		{"keys", []string{"<s>", "</x>", "<pad>", "<unk>", "<eot>", "<eom>"}, []gguftest.Pair{
			key("bos_token_id", uint32(256)), key("eos_token_id", uint32(257)), key("padding_token_id", uint32(258)),
			key("unknown_token_id", uint32(259)), key("eot_token_id", uint32(260)), key("eom_token_id", uint32(261)),
			key("add_bos_token", true), key("add_eos_token", false),
		}, sp(func(s *vocab.Specials) {
			s.BOS, s.EOS, s.Pad, s.Unknown, s.EOT, s.AddBOS = base, base+1, base+2, base+3, base+4, true
			s.EOG = []vocab.ID{base + 1, base + 4, base + 5}
		})},
		{"key out of range", nil, []gguftest.Pair{key("bos_token_id", uint32(9999)), key("eot_token_id", uint32(9999))}, sp(func(*vocab.Specials) {})},
		{"texts", []string{"<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|file_sep|>"}, nil,
			sp(func(s *vocab.Specials) {
				s.EOT, s.FIMPrefix, s.FIMSuffix, s.FIMMiddle = base+1, base+3, base+4, base+5
				s.FIMPad, s.FIMFile = base+6, base+7
				s.EOG = []vocab.ID{11, base, base + 1, base + 6, base + 7}
			})},
		{"old FIM keys", []string{"<x>", "<y>", "<z>"}, []gguftest.Pair{
			key("prefix_token_id", uint32(256)), key("fim_suf_token_id", uint32(257)), key("middle_token_id", uint32(258)),
		}, sp(func(s *vocab.Specials) { s.FIMPrefix, s.FIMSuffix, s.FIMMiddle = base, base+1, base+2 })},
		{"context keys", []string{"<x>", "<y>", "<z>"}, []gguftest.Pair{
			key("fim_pad_token_id", uint32(256)), key("fim_rep_token_id", uint32(257)), key("fim_sep_token_id", uint32(258)),
		}, sp(func(s *vocab.Specials) {
			s.FIMPad, s.FIMRepo, s.FIMFile = base, base+1, base+2
			s.EOG = []vocab.ID{11, base, base + 1, base + 2}
		})},
		{"harmony", []string{"<|end|>", "<|return|>", "<|call|>", "<|channel|>"}, nil,
			sp(func(s *vocab.Specials) { s.EOT, s.EOG = base, []vocab.ID{11, base + 1, base + 2} })},
		{"tool response", []string{"</s>", "<|tool_response>"}, nil,
			sp(func(s *vocab.Specials) { s.EOG = []vocab.ID{11, base + 1} })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := synthetic{pre: "gpt-2", controls: tc.controls, extra: tc.extra}.open(t).vocab
			got := v.Specials()
			if eog := got.EOG; !slices.Equal(eog, tc.want.EOG) {
				t.Errorf("end-of-generation tokens %v, want %v", eog, tc.want.EOG)
			}
			got.EOG, tc.want.EOG = nil, nil
			if !equalRoles(got, tc.want) {
				t.Errorf("specials %+v, want %+v", got, tc.want)
			}
		})
	}
}

func equalRoles(a, b vocab.Specials) bool {
	return [...]vocab.ID{a.BOS, a.EOS, a.EOT, a.Unknown, a.Pad, a.FIMPrefix, a.FIMSuffix, a.FIMMiddle, a.FIMPad, a.FIMRepo, a.FIMFile} ==
		[...]vocab.ID{b.BOS, b.EOS, b.EOT, b.Unknown, b.Pad, b.FIMPrefix, b.FIMSuffix, b.FIMMiddle, b.FIMPad, b.FIMRepo, b.FIMFile} &&
		a.AddBOS == b.AddBOS && a.AddEOS == b.AddEOS
}

// TestKindsByText: a token that looks like a control token is one, whatever its
// file says, and some control tokens are to be shown.
func TestKindsByText(t *testing.T) {
	tok := synthetic{pre: "gpt-2", added: []string{"<|im_end|>", "<|x|>"}, controls: []string{"<|channel|>", "<|end|>", "<|call|>", "<|return|>"}}.open(t)
	for text, want := range map[string]vocab.Kind{
		"<|im_end|>": vocab.Control, "<|x|>": vocab.UserDefined, "<|channel|>": vocab.UserDefined,
		"<|end|>": vocab.UserDefined, "<|call|>": vocab.Control,
	} {
		ids := tok.EncodeSpecial(nil, []byte(text))
		if len(ids) != 1 || tok.vocab.Kind(ids[0]) != want {
			t.Errorf("%s is %v of kind %d, want kind %d", text, ids, tok.vocab.Kind(ids[0]), want)
		}
	}
}

var raceEnabled bool

func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tok := synthetic{pre: "smollm", merges: [][2]string{{"a", "b"}}, added: []string{"<x>", "<xx>"}, controls: []string{"<c>"}}.open(t)
	text := []byte(strings.Repeat("abc 12  <x> it's <c> é中\n", 20) + strings.Repeat("ab", 300))
	dst := make([]vocab.ID, 0, 4*len(text))
	out := make([]byte, 0, 2*len(text))
	if n := testing.AllocsPerRun(50, func() {
		dst = tok.Encode(dst[:0], text)
		dst = tok.EncodeSpecial(dst[:0], text)
		out = tok.Decode(out[:0], dst)
		dst = tok.EncodePiece(dst[:0], text[:30])
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestGoroutinesShare(t *testing.T) {
	tok := synthetic{pre: "gpt-2", merges: [][2]string{{"a", "b"}, {"ab", "ab"}}}.open(t)
	text := []byte(strings.Repeat("abab ab  aba\n", 50) + strings.Repeat("ab", 100))
	want := tok.Encode(nil, text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := tok.Encode(nil, text); !slices.Equal(got, want) {
					t.Error("another result in another goroutine")
					return
				}
			}
		})
	}
	wg.Wait()
}

func FuzzRoundTrip(f *testing.F) {
	tok := synthetic{
		pre: "smollm", merges: [][2]string{{"a", "b"}, {" ", "ab"}, {"\xe2", "\x80"}, {"\n", "\n"}},
		added: []string{"<x>", "x>y", "  "}, controls: []string{"<|c|>"},
	}.open(f)
	for _, s := range hard {
		f.Add([]byte("ab " + s + " <x>y <|c|>"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		plain := tok.Encode(nil, text)
		if got := tok.Decode(nil, plain); !bytes.Equal(got, text) {
			t.Errorf("%q came back as %q", text, got)
		}
		if got := tok.Decode(nil, tok.EncodeSpecial(nil, text)); !bytes.Equal(got, text) {
			t.Errorf("%q came back as %q with special tokens", text, got)
		}
		var byPiece []vocab.ID
		at := 0
		for _, e := range pretokens(tok, text) {
			byPiece = tok.EncodePiece(byPiece, text[at:e])
			at = e
		}
		if !slices.Equal(plain, byPiece) || at != len(text) {
			t.Errorf("%q is %v at once, %v piece by piece", text, plain, byPiece)
		}
	})
}

// FuzzFromGGUF looks for panics on damaged vocabularies.
func FuzzFromGGUF(f *testing.F) {
	f.Add(gguftest.Build(synthetic{pre: "gpt-2", merges: [][2]string{{"a", "b"}}, added: []string{"<x>"}, controls: []string{"<|im_end|>"}}.pairs()...))
	f.Add(gguftest.Build(
		gguftest.Pair{Key: "tokenizer.ggml.model", Value: "gpt2"}, gguftest.Pair{Key: "tokenizer.ggml.pre", Value: "smollm"},
		gguftest.Pair{Key: "tokenizer.ggml.tokens", Value: []string{"a", "", "Ġ"}}, gguftest.Pair{Key: "tokenizer.ggml.merges", Value: []string{"a Ġ", " ", ""}},
	))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := gguf.Read(bytes.NewReader(b), gguf.Limits{Metadata: 1 << 20})
		if err != nil {
			return
		}
		tok, err := FromGGUF(file)
		if err != nil {
			return
		}
		text := []byte("a Ġ <x> ab\n")
		tok.Decode(nil, tok.EncodeSpecial(nil, text))
		x := tok.NewText(false)
		x.Append(text)
		x.Tail(new(Tail))
	})
}
