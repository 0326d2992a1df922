package audit

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// pieces gives the tokens that are these texts.
func pieces(t *testing.T, tok *tokenizer.Tokenizer, texts ...string) []vocab.ID {
	t.Helper()
	var ids []vocab.ID
	for _, s := range texts {
		id, ok := tok.Vocab().Lookup([]byte(s))
		if !ok {
			if id, ok = tok.Vocab().LookupSpecial([]byte(s)); !ok {
				t.Fatalf("no token is %q", s)
			}
		}
		ids = append(ids, id)
	}
	return ids
}

// second audits two prompts and gives what became of the second.
func second(t *testing.T, o Options, prompts ...Prompt) (*Report, Request) {
	t.Helper()
	rep, err := Audit(prompts, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep, rep.Requests[len(prompts)-1]
}

func suggested(rep *Report, c Change) *Suggestion {
	for i := range rep.Suggestions {
		if rep.Suggestions[i].Change == c {
			return &rep.Suggestions[i]
		}
	}
	return nil
}

// The model's own tokens, published with these pieces: prime-rl #1863 ("\n" twice,
// where the tokenizer has one token for both), mlc-llm #3179 (Llama 3).
func TestOwnTokens(t *testing.T) {
	for _, c := range []struct {
		vocab  string
		output []string
		end    string
	}{
		{"qwen3", []string{"Yes", ".", "\n", "\n", "It", " runs", "."}, "<|im_end|>"},
		{"llama3", []string{"Han", "zi", " is", " a", " script", "."}, "<|eot_id|>"},
		{"llama3", []string{"[", "(", "hu", ")", "]"}, "<|eot_id|>"},
	} {
		t.Run(strings.Join(c.output, "·"), func(t *testing.T) {
			tok := open(t, c.vocab)
			prompt := chatML("user", "Tell me.", open4)
			if c.vocab == "llama3" {
				prompt = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nTell me.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
			}
			out := pieces(t, tok, append(slices.Clone(c.output), c.end)...)
			text := prompt + strings.Join(c.output, "") + c.end
			next := text + "\n" + open4
			rep, q := second(t, Options{Tokenizer: tok, Special: true, BlockSizes: []int{1}},
				Prompt{Text: []byte(prompt), OutputIDs: out}, Prompt{Text: []byte(next)})
			d := q.FirstDivergence
			// By hand: the tokens of both sides.
			held := slices.Concat(tok.EncodeSpecial(nil, []byte(prompt)), out)
			now := tok.EncodeSpecial(nil, []byte(next))
			same := vocab.CommonPrefix(held, now)
			lost := len(held) - 1 - same // the last token was never fed back
			if lost < 0 {
				t.Fatal("the pieces are the tokenizer's own")
			}
			if d == nil || d.Cause != OwnIDs || d.Token != same || d.Byte != len(text) {
				t.Fatalf("divergence %+v, want own_ids at token %d, byte %d", d, same, len(text))
			}
			if q.LostTokens != lost || q.LostBlocks != lost {
				t.Errorf("%d tokens lost, want %d", q.LostTokens, lost)
			}
			s := suggested(rep, ReplayIDs)
			if s == nil || s.After.reused()-s.Before.reused() != lost {
				t.Errorf("replaying is not suggested, or does not help: %+v", s)
			}
		})
	}
}

// An answer sent back as text (inference-perf #649): the tokens of prompt and
// answer by themselves are not those of both together.
func TestAnswerAsText(t *testing.T) {
	tok := open(t, "o200k")
	_, q := second(t, Options{Tokenizer: tok},
		Prompt{Text: []byte("Complete: The hydr"), Output: []byte("oelectric plant is old.")},
		Prompt{Text: []byte("Complete: The hydroelectric plant is old. It was")})
	if d := q.FirstDivergence; d == nil || d.Cause != OwnIDs {
		t.Fatalf("divergence %+v", d)
	}
	// A cache without outputs has another cause for the same texts.
	_, q = second(t, Options{Tokenizer: tok, NoOutputs: true},
		Prompt{Text: []byte("Complete: The hydr"), Output: []byte("oelectric plant is old.")},
		Prompt{Text: []byte("Complete: The hydroelectric plant is old. It was")})
	if d := q.FirstDivergence; d == nil || d.Cause != TailRetokenised {
		t.Fatalf("divergence %+v", d)
	}
}

func TestSpecialTokens(t *testing.T) {
	tok := open(t, "qwen3")
	text := []byte(chatML("system", strings.TrimSpace(rules), "user", "hi", open4))
	special, plain := tok.EncodeSpecial(nil, text), tok.Encode(nil, text)
	for _, c := range []struct{ old, new []vocab.ID }{{special, plain}, {plain, special}} {
		rep, q := second(t, Options{Tokenizer: tok}, Prompt{IDs: c.old}, Prompt{IDs: c.new})
		d := q.FirstDivergence
		if d == nil || d.Cause != SpecialToken || d.Token != 0 || d.TokenByte != 0 {
			t.Fatalf("divergence %+v", d)
		}
		if q.LostTokens != len(c.old) {
			t.Errorf("%d tokens lost of %d", q.LostTokens, len(c.old))
		}
		if s := suggested(rep, TokenizeWhole); s == nil || s.After.ComputedTokens != len(special)+1 {
			t.Errorf("tokenizing the whole is not suggested: %+v", s)
		}
	}
}

func TestBOS(t *testing.T) {
	tok := open(t, "llama3")
	bos := tok.Vocab().Specials().BOS
	body := tok.Encode(nil, []byte(rules))
	one, two := append([]vocab.ID{bos}, body...), append([]vocab.ID{bos, bos}, body...)
	for _, c := range []struct {
		name     string
		old, new []vocab.ID
		token    int
	}{{"doubled", one, two, 1}, {"no longer doubled", two, one, 1}, {"missing", one, body, 0}, {"added", body, one, 0}} {
		t.Run(c.name, func(t *testing.T) {
			rep, q := second(t, Options{Tokenizer: tok}, Prompt{IDs: c.old}, Prompt{IDs: c.new})
			d := q.FirstDivergence
			if d == nil || d.Cause != BOS || d.Token != c.token {
				t.Fatalf("divergence %+v", d)
			}
			if q.LostTokens < len(body) {
				t.Errorf("%d tokens lost, want %d: %v", q.LostTokens, len(body), rep)
			}
			if s := suggested(rep, DropBOS); s == nil || s.After.ComputedTokens != len(one)+1 {
				t.Errorf("one BOS is not suggested: %+v", s)
			}
		})
	}
	if race || testing.Short() {
		return // a large vocabulary
	}
	// A template that writes BOS before a tokenizer that adds it.
	_, q := second(t, Options{Tokenizer: open(t, "gemma3"), Special: true, Template: true}, Prompt{Text: []byte(rules)}, Prompt{Text: []byte("<bos>" + rules)})
	if d := q.FirstDivergence; d == nil || d.Cause != BOS || d.Token != 1 {
		t.Errorf("divergence %+v", d)
	}
}

// Parts tokenized by themselves, and put together.
func TestParts(t *testing.T) {
	tok := open(t, "qwen3")
	a, b := "Use the notes.\n\n", "\nNotes: the pump runs. "+rules
	whole := tok.Encode(nil, []byte(a+b))
	parts := tok.Encode(tok.Encode(nil, []byte(a)), []byte(b))
	for _, c := range [][2][]vocab.ID{{whole, parts}, {parts, whole}} {
		rep, q := second(t, Options{Tokenizer: tok}, Prompt{IDs: c[0]}, Prompt{IDs: c[1]})
		d := q.FirstDivergence
		if d == nil || d.Cause != PartBoundary || d.Token != vocab.CommonPrefix(whole, parts) {
			t.Fatalf("divergence %+v", d)
		}
		if s := suggested(rep, TokenizeWhole); s == nil || s.After.ComputedTokens != len(whole)+1 {
			t.Errorf("tokenizing the whole is not suggested: %+v", s)
		}
	}
}

// LMCache #1136: the separator's tokens alone are not those in its context; #3228:
// a separator encoded with BOS is never found.
func TestSeparator(t *testing.T) {
	tok := open(t, "llama3")
	sep := []byte(" # # ")
	prompt := func(chunks ...string) Prompt { return Prompt{Text: []byte(strings.Join(chunks, string(sep)))} }
	alone := tok.Encode(nil, sep)
	bos := append([]vocab.ID{tok.Vocab().Specials().BOS}, alone...)
	for _, c := range []struct {
		name  string
		ids   []vocab.ID
		found int
		why   string
	}{{"in context", nil, -1, ""}, {"with BOS", bos, 0, "control token <|begin_of_text|>"}} {
		rep, err := Audit([]Prompt{prompt("Chunk one.", "Chunk two.", "Why?"), prompt("Chunk one.", " Chunk two.", "1")},
			Options{Tokenizer: tok, Separator: sep, SeparatorIDs: c.ids})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		ids := c.ids
		if ids == nil {
			ids = alone
		}
		for _, p := range []string{"Chunk one. # # Chunk two. # # Why?", "Chunk one. # #  Chunk two. # # 1"} {
			want += countRuns(tok.Encode(nil, []byte(p)), ids)
		}
		if s := rep.Separator; s.InText != 4 || s.InTokens != want || want == 4 || !strings.Contains(s.Why, c.why) {
			t.Errorf("%s: %+v, want %d found", c.name, s, want)
		}
		// What is named in its place is found in all of them.
		sep := rep.Separator.Instead
		for _, p := range []string{"Chunk one. # # Chunk two. # # Why?", "Chunk one. # #  Chunk two. # # 1"} {
			text := strings.ReplaceAll(p, " # # ", sep)
			if n := countRuns(tok.Encode(nil, []byte(text)), tok.Encode(nil, []byte(sep))); sep != "" && n != strings.Count(text, sep) {
				t.Errorf("%s: %q is found %d times in %q", c.name, sep, n, text)
			}
		}
		t.Logf("%+v", rep.Separator)
	}
	// Where the shared beginning ends in it, its tokens change with what follows.
	_, q := second(t, Options{Tokenizer: tok, Separator: []byte("\n###\n")}, Prompt{Text: []byte(rules + "\n###\nThe pump")}, Prompt{Text: []byte(rules + "\n###\n\nOil")})
	if d := q.FirstDivergence; d == nil || d.Cause != Separator {
		t.Errorf("divergence %+v", d)
	}
}

func countRuns(ids, run []vocab.ID) (n int) {
	for i := range ids {
		if i+len(run) <= len(ids) && slices.Equal(ids[i:i+len(run)], run) {
			n++
		}
	}
	return n
}

// An image before the text that stays (chandra #89).
func TestMediaFirst(t *testing.T) {
	tok := open(t, "qwen3")
	pad := pieces(t, tok, "<|image_pad|>")[0]
	text := tok.EncodeSpecial(nil, []byte(long+rules))
	ids := append(slices.Repeat([]vocab.ID{pad}, 16), text...)
	image := func(hash string) prefixcache.Keys {
		return prefixcache.Keys{Media: []prefixcache.Media{{Hash: hash, Length: 16}}}
	}
	rep, q := second(t, Options{Tokenizer: tok}, Prompt{IDs: ids, Keys: image("a")}, Prompt{IDs: ids, Keys: image("b")})
	d := q.FirstDivergence
	if d == nil || d.Cause != Media || d.Token != 0 || q.ReusedTokens != 0 || q.LostTokens != len(text) {
		t.Fatalf("divergence %+v, %d tokens lost, want %d", d, q.LostTokens, len(text))
	}
	if s := suggested(rep, MoveToEnd); s == nil || s.Before.ComputedTokens-s.After.ComputedTokens != len(text) {
		t.Errorf("images last are not suggested: %+v", s)
	}
	if _, q = second(t, Options{Tokenizer: tok}, Prompt{IDs: ids, Keys: image("a")}, Prompt{IDs: ids, Keys: image("a")}); q.FirstDivergence != nil {
		t.Errorf("the same image diverges: %+v", q.FirstDivergence)
	}
}

func TestNamespace(t *testing.T) {
	tok := open(t, "qwen3")
	for _, k := range []prefixcache.Keys{{Salt: "b"}, {LoRA: "b"}, {Extra: "b"}} {
		rep, q := second(t, Options{Tokenizer: tok}, Prompt{Text: []byte(rules), Keys: prefixcache.Keys{Salt: "a"}}, Prompt{Text: []byte(rules), Keys: k})
		d := q.FirstDivergence
		if d == nil || d.Cause != Namespace || d.Token != 0 || d.Byte != 0 || q.ReusedTokens != 0 {
			t.Fatalf("divergence %+v", d)
		}
		if n := len(tok.Encode(nil, []byte(rules))); q.LostTokens != n && q.LostTokens != n-1 {
			t.Errorf("%d tokens lost of %d", q.LostTokens, n)
		}
		if s := suggested(rep, ShareNamespace); s == nil {
			t.Errorf("no suggestion")
		}
	}
}

func TestGivenText(t *testing.T) {
	tok := open(t, "llama3")
	bos := tok.Vocab().Specials().BOS
	text := "The pump at 10:00 runs. " + rules
	other := "The pump at 11:00 runs. " + rules
	withBOS := func(s string) Prompt {
		return Prompt{Text: []byte(s), IDs: append([]vocab.ID{bos}, tok.Encode(nil, []byte(s))...)}
	}
	_, q := second(t, Options{Tokenizer: tok}, withBOS(text), withBOS(other))
	d := q.FirstDivergence
	if want := bytes.IndexByte([]byte(text), ':') - 1; d == nil || d.Byte != want || d.Cause != Timestamp || q.Bytes != len(other) {
		t.Errorf("divergence %+v, want byte %d", d, want)
	}
}

// Where an answer opens, in the forms of templates.
func TestOpening(t *testing.T) {
	for _, c := range []struct{ vocab, head, tail string }{
		{"qwen3", "<|im_start|>user\nHi", "<|im_end|>\n<|im_start|>assistant\n"},
		{"qwen3", "<|im_start|>user\nHi", "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		{"qwen3", "<|im_start|>user\nHi", "<|im_end|>\n"},
		{"qwen3", "<|im_start|>user\nassistants are many", ""},
		{"llama3", "<|start_header_id|>user<|end_header_id|>\n\nHi", "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
		{"gemma3", "<bos><start_of_turn>user\nHi", "<end_of_turn>\n<start_of_turn>model\n"},
		{"deepseek", "<｜begin▁of▁sentence｜>Rules.<｜User｜>Hi", "<｜Assistant｜>"},
		{"deepseek", "<｜begin▁of▁sentence｜>Rules.<｜User｜>Hi", "<｜Assistant｜><think>\n"},
		{"gpt2", "No control tokens here.", ""},
	} {
		if (race || testing.Short()) && (c.vocab == "gemma3" || c.vocab == "deepseek") {
			continue
		}
		tok := open(t, c.vocab)
		v := new(view)
		if err := newReader(&Options{Tokenizer: tok, Special: true}).view(v, &Prompt{Text: []byte(c.head + c.tail)}); err != nil {
			t.Fatal(err)
		}
		if at := (&pair{t: tok}).opening(v); at != len(c.head) {
			t.Errorf("%s %q: byte %d, want %d", c.vocab, c.head+c.tail, at, len(c.head))
		}
	}
}
