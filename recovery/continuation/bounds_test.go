package continuation

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

// runAny has an upstream give two answers in turn.
func runAny(t testing.TB, text []byte, attempts int, answers ...[]byte) *Result {
	t.Helper()
	asked := 0
	o := Options{Answer: cutByLength, Modes: []Mode{Exact, Prefill, Instruct}, Attempts: attempts}
	r := Run(t.Context(), text, o, func(_ context.Context, q Request) (Answer, error) {
		asked++
		return Answer{Text: answers[asked%len(answers)], FinishReason: []string{"stop", "length"}[asked%2]}, nil
	})
	if limit := max(attempts, 3); asked > limit || asked != len(r.Attempts) {
		t.Fatalf("%q: asked %d times, of %d", text, asked, limit)
	}
	return r
}

// TestJoinerHoldsBack gives answers byte by byte. A proven one is passed on at once,
// and no more is ever held than was said.
func TestJoinerHoldsBack(t *testing.T) {
	for _, tt := range []struct {
		text, answer string
		o            Options
		first        int // bytes of the answer with which something is passed on
	}{
		{story, " the water began to sing.", Options{}, len(" the water beg")},
		{story, "the gates, and the water began to sing.", Options{Mode: Instruct, Hold: 300}, len("the gates, and the water began to sing.")},
		{story, "the gates, and the water began to sing" + strings.Repeat(" and sing", 200), Options{Mode: Instruct, Hold: 300}, 300 + 2*longestIntroduction},
		{`{"a": "some text", "b": "more of`, ` "b": "more of the same, and then a little more", "c": 1}`, Options{}, len(` "b": "more of`) + probation},
		{`{"a": "some text", "b": "more of`, ` "b": "more of it"}`, Options{}, len(` "b": "more of it"}`)},
		{"abc", "def", Options{Mode: Exact}, 1},
	} {
		s, err := Plan([]byte(tt.text), tt.o)
		if err != nil {
			t.Fatal(err)
		}
		j, first := NewJoiner(s), 0
		for i := range len(tt.answer) {
			if _, err := j.Write([]byte(tt.answer[i : i+1])); err != nil {
				t.Fatalf("%q: %v", tt.answer, err)
			}
			if len(j.Take()) > 0 && first == 0 {
				first = i + 1
			}
		}
		if first == 0 {
			first = len(tt.answer)
		}
		if first != tt.first {
			t.Errorf("%q | %q, %q: passed on with byte %d, want %d", s.Keep, s.Require, tt.answer, first, tt.first)
		}
	}
}

// TestJoinerKeepsLittle has answers that never prove anything.
func TestJoinerKeepsLittle(t *testing.T) {
	const size = 1 << 20
	for name, answer := range map[string]string{
		"white space": strings.Repeat("\n", size),
		"reasoning":   "<think>" + strings.Repeat("<", size),
		"prose":       strings.Repeat("no overlap at all ", size/18),
		"echoes":      "\n and the water be" + strings.Repeat("\n\nThe old", size/9),
	} {
		s, err := Plan([]byte(story), Options{Mode: Instruct})
		if err != nil {
			t.Fatal(err)
		}
		j := NewJoiner(s)
		most := 0
		for b := []byte(answer); len(b) > 0; b = b[min(len(b), 512):] {
			if _, err := j.Write(b[:min(len(b), 512)]); err != nil {
				break
			}
			j.Take()
			most = max(most, len(j.head)+len(j.pending))
		}
		if _, err := j.Close(); err == nil && name != "echoes" {
			t.Errorf("%s: joined", name)
		}
		if most > j.limit+512 {
			t.Errorf("%s: %d bytes were held", name, most)
		}
	}
}

// TestCostIsLinear doubles hostile texts and answers: memory grows no faster, and a
// quarter of a megabyte is dealt with before the test's time is over.
func TestCostIsLinear(t *testing.T) {
	for name, unit := range map[string]string{
		"openers":     "[",
		"objects":     `{"a":`,
		"strings":     `"a",`,
		"fences":      "```\n",
		"calls":       "<tool_call></tool_call>",
		"backslashes": `\`,
		"periods":     "ab",
		"lines":       "\n\na",
		"thoughts":    "<think></think>",
		"prose JSON":  `x {"a":1 `,
	} {
		cost := func(n int) uint64 {
			text := []byte(strings.Repeat(unit, n))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			runAny(t, text, 3, text[len(text)/2:], bytes.Repeat(text[len(text)/2:], 2))
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if a, b := cost(20000), cost(40000); b > 3*a+1<<16 {
			t.Errorf("%s: %d bytes, then %d for twice the text", name, a, b)
		}
		begun := time.Now()
		cost(1 << 18 / len(unit))
		t.Logf("%s: %v for 256 KiB", name, time.Since(begun))
	}
}
