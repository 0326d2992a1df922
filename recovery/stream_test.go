package recovery_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
)

// streamed runs an answer through a stream, in pieces of random sizes.
func streamed(t testing.TB, text []byte, o recovery.Options, rng *rand.Rand) (given, thoughts []byte, calls []byte, r *recovery.Result) {
	t.Helper()
	s := recovery.NewStream(o)
	take := func(d recovery.Delta) {
		given = append(given, d.Text...)
		thoughts = append(thoughts, d.Reasoning...)
		for _, c := range d.Calls {
			calls = append(calls, c.Name+c.Arguments...)
		}
	}
	for rest := text; len(rest) > 0; {
		n := 1 + rng.IntN(min(len(rest), 1+rng.IntN(40)))
		d := s.Write(rest[:n])
		take(d)
		if rest = rest[n:]; d.Stop {
			text = text[:len(text)-len(rest)]
			break
		}
	}
	d, r := s.Close(context.Background(), o.FinishReason)
	take(d)
	if !bytes.Equal(r.Text, given) && (r.Text != nil || len(given) > 0) {
		t.Fatalf("%q: given %q, but the result has %q", text, given, r.Text)
	}
	if got := recovery.Apply(text, r.Edits); r.Text != nil && !bytes.Equal(got, r.Text) {
		t.Fatalf("%q: the edits make %q of it, the text is %q", text, got, r.Text)
	}
	return given, thoughts, calls, r
}

// An answer comes to the same however it is cut, and, where nothing of it was given
// too early, to what it comes to as a whole.
func TestStreamIsWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	same, all := 0, 0
	for _, c := range readLines[recoveryCase](t, "testdata/cases.jsonl") {
		o, err := c.options()
		if err != nil || c.Answers != nil || c.Meant != "" || o.Form == recovery.Code {
			continue
		}
		o.Extract.Unopened = -1
		text := c.input()
		given, thoughts, calls, r := streamed(t, text, o, rng)
		// A loop stops the stream with the piece in which it is found.
		for range 4 {
			if r.Loop != nil {
				break
			}
			g, th, ca, r2 := streamed(t, text, o, rng)
			if !bytes.Equal(g, given) || !bytes.Equal(th, thoughts) || !bytes.Equal(ca, calls) || r2.Outcome != r.Outcome {
				t.Errorf("%s: %q: in other pieces it comes to\n%q %q %q %v, not\n%q %q %q %v", c.Name, text, g, th, ca, r2.Outcome, given, thoughts, calls, r.Outcome)
				break
			}
		}
		all++
		whole := recovery.Recover(context.Background(), text, o)
		if bytes.Equal(whole.Text, given) {
			same++
			// What may have been reasoning was given as such before it ended nowhere.
			if !bytes.Equal(whole.Reasoning, thoughts) && r.Loop == nil && c.Name != "pipeline/reasoning_unclosed" {
				t.Errorf("%s: reasoning %q, as a whole %q", c.Name, thoughts, whole.Reasoning)
			}
		}
	}
	t.Logf("%d of %d cases come to the same in a stream as on the whole", same, all)
}

func options(n uint8) recovery.Options {
	o := recovery.Options{AnyTool: n&8 != 0, Strings: n&16 != 0}
	o.Form = []recovery.Form{recovery.Auto, recovery.Text, recovery.JSON, recovery.Code}[n&3]
	if n&4 != 0 {
		o.FinishReason = "length"
	}
	return o
}

func FuzzRecover(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		o := options(n)
		before := bytes.Clone(text)
		r := recovery.Recover(context.Background(), text, o)
		if !bytes.Equal(before, text) {
			t.Fatal("the input was written to")
		}
		checkReceipt(t, text, r)
		if r.Form == recovery.JSON && r.Text != nil && !jsonrepair.IsValid(r.Text) {
			t.Fatalf("%q: %q is no JSON", text, r.Text)
		}
		if o.Form == recovery.JSON && jsonrepair.IsValid(text) && !o.Strings && (r.Outcome != recovery.Valid || len(r.Edits) > 0) {
			t.Fatalf("%q is valid, and was changed to %q", text, r.Text)
		}
		_ = r.Explain()
	})
}

func FuzzStream(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		o := options(n)
		a, _, _, r := streamed(t, text, o, rng)
		b, _, _, _ := streamed(t, text, o, rng)
		if !bytes.Equal(a, b) && r.Loop == nil {
			t.Fatalf("%q: %q in some pieces, %q in others", text, a, b)
		}
	})
}

func seeds(f *testing.F) {
	for _, s := range []string{
		"", "{\"a\":1}", "<think>x</think>{\"a\":1,}", "```json\n{\"a\":1\n```", "Here: {'a': True} ok",
		"donâ€™t &amp; won't", "a\x1b[0mb", "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}</tool_call>",
		"no no no no no no no no no no no no no no", "a: 1\nb: 2", "```go\nfunc f() {", "[1, 2", "\xff\xfe", "{\"a\":\"\\ud83d",
	} {
		for n := range uint8(4) {
			f.Add([]byte(s), n*9)
		}
	}
}
