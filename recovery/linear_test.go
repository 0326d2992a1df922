package recovery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/recovery"
)

// hostile are shapes that make somebody's recovery quadratic. n is bytes, about.
var hostile = map[string]func(n int) string{
	"openers":         func(n int) string { return strings.Repeat("[", n) },
	"objects":         func(n int) string { return strings.Repeat(`{"a":`, n/5) },
	"closers":         func(n int) string { return "{" + strings.Repeat("}", n) },
	"quotes":          func(n int) string { return `{"a":` + strings.Repeat(`"`, n) },
	"inner quotes":    func(n int) string { return `{"a":"` + strings.Repeat(`say "hi" now, `, n/14) },
	"brackets":        func(n int) string { return `{"a":"` + strings.Repeat(`(5") `, n/5) },
	"fences":          func(n int) string { return strings.Repeat("```json\n{\n", n/10) },
	"ticks":           func(n int) string { return strings.Repeat("`", n) },
	"thinking":        func(n int) string { return strings.Repeat("<think>", n/7) },
	"thoughts end":    func(n int) string { return strings.Repeat("</think>", n/8) },
	"calls":           func(n int) string { return strings.Repeat(`<tool_call>{"name":`, n/19) },
	"small calls":     func(n int) string { return strings.Repeat(`<tool_call>{"name":"f","arguments":{}}</tool_call>`, n/50) },
	"small objects":   func(n int) string { return strings.Repeat(`{"a":1} `, n/8) },
	"objects in text": func(n int) string { return strings.Repeat("see {\"a\":1}, or\n", n/16) },
	"entities":        func(n int) string { return strings.Repeat("&amp;", n/5) },
	"ampersands":      func(n int) string { return strings.Repeat("&", n) },
	"mojibake":        func(n int) string { return strings.Repeat("Ã©", n/4) },
	"bytes":           func(n int) string { return strings.Repeat("\xff\xc3", n/2) },
	"escapes":         func(n int) string { return strings.Repeat("\x1b[", n/2) },
	"backslashes":     func(n int) string { return `{"a":"` + strings.Repeat(`\`, n) },
	"words":           func(n int) string { return strings.Repeat("no ", n/3) },
	"one letter":      func(n int) string { return strings.Repeat("a", n) },
	"lines":           func(n int) string { return strings.Repeat("\n", n) },
	"blanks":          func(n int) string { return strings.Repeat("\u00a0", n/2) },
	"keys":            func(n int) string { return strings.Repeat("a: 1\n", n/5) },
	"tags":            func(n int) string { return strings.Repeat("<a>", n/3) },
	"colons":          func(n int) string { return strings.Repeat(":", n) },
	"code":            func(n int) string { return "```go\n" + strings.Repeat("func f() {", n/10) },
	"fibonacci":       fibonacci,
}

// fibonacci has no period and repeats everywhere.
func fibonacci(n int) string {
	a, b := "a", "ab"
	for len(b) < n {
		a, b = b, b+a
	}
	return b[:n]
}

// raceEnabled is set by race_test.go.
var raceEnabled bool

// Time grows with the input, whatever it is.
func TestLinearTime(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("takes a while")
	}
	const n = 40_000
	for name, shape := range hostile {
		for _, form := range []recovery.Form{recovery.Text, recovery.JSON, recovery.Code} {
			o := recovery.Options{Form: form, AnyTool: true, FinishReason: "length"}
			o.Budget.Time = -1
			small, large := []byte(shape(n)), []byte(shape(8*n))
			// Eight times the input takes eight times as long, and 64 times if the
			// time is quadratic. Other work on the machine disturbs the figures.
			for try := 0; ; try++ {
				took := timed(large, o)
				ratio := float64(took) / float64(timed(small, o))
				if ratio < 24 || took < noise {
					break
				}
				if try == 4 {
					t.Errorf("%s as %s: eight times the input takes %.0f times as long", name, form, ratio)
					break
				}
			}
		}
	}
}

// noise is a time below which a ratio says nothing: other work may have taken it.
const noise = 400 * time.Millisecond

func timed(text []byte, o recovery.Options) time.Duration {
	best := time.Duration(1 << 62)
	for range 2 {
		begun := time.Now()
		recovery.Recover(context.Background(), text, o)
		best = min(best, time.Since(begun))
	}
	return best
}

// A stream takes linear time too, byte by byte.
func TestLinearTimeOfStream(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("takes a while")
	}
	stream := func(text []byte, o recovery.Options) time.Duration {
		begun := time.Now()
		s := recovery.NewStream(o)
		for i := 0; i < len(text); i += 7 {
			s.Write(text[i:min(len(text), i+7)])
		}
		return time.Since(begun)
	}
	for name, shape := range hostile {
		for _, form := range []recovery.Form{recovery.Auto, recovery.Text, recovery.JSON} {
			o := recovery.Options{Form: form, AnyTool: true, FinishReason: "length"}
			small, large := []byte(shape(20_000)), []byte(shape(160_000))
			for try := 0; ; try++ {
				took := stream(large, o)
				ratio := float64(took) / float64(stream(small, o))
				if ratio < 24 || took < noise {
					break
				}
				if try == 4 {
					t.Errorf("%s as %q: eight times the input takes %.0f times as long", name, form, ratio)
					break
				}
			}
		}
	}
}
