package audit

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// toys are tokenizers of the kinds: byte-level with control tokens, SentencePiece
// with a dummy space, and one that normalizes.
func toys(t testing.TB) []*tokenizer.Tokenizer {
	marks := []tokenizertest.ToyAdded{
		{Content: "<|im_start|>", Special: true}, {Content: "<|im_end|>", Special: true}, {Content: "<s>", Special: true}, {Content: "<think>"},
	}
	merges := [][2]string{{"t", "h"}, {"th", "e"}, {" ", "the"}, {"\n", "\n"}, {":", "\n"}, {"1", "0"}, {"a", "b"}, {" ", "a"}}
	return []*tokenizer.Tokenizer{
		tokenizertest.Toy{Merges: merges, Added: marks}.Open(t),
		tokenizertest.Toy{Meta: true, Chars: "▁abcdefghijklmnopqrstuvwxyz<>|_", Merges: [][2]string{{"t", "h"}, {"th", "e"}, {" ", "the"}, {"a", "b"}},
			Normalizer: tokenizertest.MetaPrepend, Decoder: tokenizertest.MetaDecoder, Added: marks}.Open(t),
		tokenizertest.Toy{Merges: merges, Added: marks, Normalizer: `{"type":"NFC"}`}.Open(t),
	}
}

func FuzzAudit(f *testing.F) {
	f.Add([]byte("now 10:00\nthe rules of the house"), []byte(""), []byte("now 10:01\nthe rules of the house"), uint16(0))
	f.Add([]byte("<|im_start|>a\n"), []byte("<think>x</think>\n\nyes<|im_end|>"), []byte("<|im_start|>a\nyes<|im_end|>\n<|im_start|>b\n"), uint16(1|16))
	f.Add([]byte(`{"a": [1, 2], "b": "x"} tail`), []byte("the"), []byte(`{"b": "x", "a": [1.0, 2]} tail`), uint16(2))
	f.Add([]byte("cafe\u0301 a\r\nb, c, d."), []byte("\xc3"), []byte("café a\nb, d, c."), uint16(4|8))
	f.Add([]byte("{\"name\": \"a\", \"description\": \"\"}\n{\"name\": \"b\", \"description\": \"\"}\n"), []byte(""), []byte("{\"name\": \"b\", \"description\": \"\"}\n"), uint16(32))
	f.Add([]byte("the a\u00a0b"), []byte(" "), []byte("the a b\xff"), uint16(1|2|4|8|16|32|64|128|256))
	tokenizers := toys(f)
	f.Fuzz(func(t *testing.T, old, output, new []byte, flags uint16) {
		if len(old)+len(output)+len(new) > 4096 {
			return
		}
		tok := tokenizers[int(flags>>9)%len(tokenizers)]
		on := func(bit int) bool { return flags>>bit&1 != 0 }
		encode := tok.Encode
		if on(0) {
			encode = tok.EncodeSpecial
		}
		a, b := Prompt{Text: old, Output: output}, Prompt{Text: new}
		if on(1) {
			a.IDs = encode(encode([]vocab.ID{}, old[:len(old)/2]), old[len(old)/2:])
		}
		if on(2) {
			b.IDs = encode([]vocab.ID{}, new)
		}
		if on(3) {
			a.OutputIDs = encode(nil, output)
		}
		if on(4) {
			a.Conversation, b.Conversation, a.Turn, b.Turn = "c", "c", 1, 2
		}
		if on(5) {
			b.Segments = []Segment{{"{x}", 0, 0}}
			a.Segments = b.Segments
		}
		if n := len(encode(nil, new)); on(6) && n > 1 {
			b.Keys.Media = []prefixcache.Media{{Hash: "x", Offset: 1, Length: n / 2}}
		}
		o := Options{Tokenizer: tok, Special: on(0), Template: on(7), BlockSizes: []int{1, 7}, NoOutputs: on(8), Separator: []byte(", ")}
		prompts := []Prompt{a, b, a, {Text: append(append([]byte{}, new...), output...)}}
		rep, err := Audit(prompts, o)
		if err != nil {
			return // places of media or segments that the tokens do not have
		}
		check(t, prompts, o, rep)
	})
}

// check looks at what must be true of every report.
func check(t *testing.T, prompts []Prompt, o Options, rep *Report) {
	t.Helper()
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	views, err := newReader(&o).views(prompts)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i, q := range rep.Requests {
		lost += q.LostTokens
		v := &views[i]
		if q.Tokens != v.n || q.ReusedTokens > max(0, v.n-1) || q.LostEqualText > q.LostTokens || q.LostTokens < 0 {
			t.Fatalf("%+v of %d tokens", q, v.n)
		}
		d := q.FirstDivergence
		if d == nil {
			if q.LostTokens > 0 {
				t.Fatalf("lost without a divergence: %+v", q)
			}
			continue
		}
		if d.Why == "" || d.Cause == "" {
			t.Fatalf("no cause: %+v", d)
		}
		if d.Cause == Namespace || len(prompts[i].Keys.Media)+len(prompts[q.Against].Keys.Media) > 0 {
			continue
		}
		if same := vocab.CommonPrefix(v.ids[:v.n], views[q.Against].ids); d.Token != same {
			t.Fatalf("token %d, want %d", d.Token, same)
		}
		if d.Byte < d.TokenByte || d.Byte > v.size || d.TokenByte != v.start(d.Token) {
			t.Fatalf("places %+v in %d bytes", d, v.size)
		}
	}
	if lost != rep.LostTokens {
		t.Fatalf("%d tokens lost, the sum is %d", rep.LostTokens, lost)
	}
	for _, s := range rep.Suggestions {
		if s.Change != Nothing && s.Change != SmallerBlock && s.After.ComputedTokens >= s.Before.ComputedTokens {
			t.Fatalf("%s does not help: %+v", s.Change, s)
		}
	}
	if _, err := json.Marshal(rep); err != nil {
		t.Fatal(err)
	}
	if err := rep.Explain(io.Discard); err != nil {
		t.Fatal(err)
	}
}
