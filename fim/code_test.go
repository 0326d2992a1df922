package fim

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// TestJoinOnCode cuts a span out of real code and lets a model that knows it go
// on: it writes the span and ends, or it writes the span, the text behind it and
// never ends. A span that is cut short is a false alarm; it is one too where code
// really repeats what follows.
func TestJoinOnCode(t *testing.T) {
	text := tokenizertest.Corpus(t, "go")
	r := rand.New(rand.NewPCG(5, 6))
	for _, kind := range []struct {
		name  string
		lines bool // the span is whole lines
	}{{"spans of characters", false}, {"whole lines", true}} {
		const spans = 20_000
		short, early, exact, late, words := 0, 0, 0, 0, 0
		for range spans {
			at := r.IntN(len(text) - 4000)
			end := at + 1 + r.IntN(400)
			if kind.lines {
				at += bytes.IndexByte(text[at:], '\n') + 1
				end = max(end, at+1)
				end += bytes.IndexByte(text[end:], '\n') + 1
			}
			prefix, middle, suffix := text[max(0, at-1000):at], text[at:end], text[end:min(len(text), end+2000)]
			j := NewJoin(prefix, suffix)
			out, _ := j.Next(nil, middle)
			if out = j.End(out); len(out) < len(middle) {
				short++
			}
			j = NewJoin(prefix, suffix)
			out, stop := j.Next(nil, text[end-len(middle):min(len(text), end+2000)])
			switch {
			case !stop:
				late++
			case len(out) < len(middle):
				early++
			case len(out) == len(middle):
				exact++
			default:
				late++
			}
			words += len(j.pattern)
		}
		t.Logf("%s: of %d, %d cut short at their end, %d before the text behind them; %d ended exactly there, %d not; %d bytes compared on average",
			kind.name, spans, short, early, exact, late, words/spans)
		if short > spans/100 || early > spans/100 || exact < spans*99/100 {
			t.Errorf("%s: too many are wrong", kind.name)
		}
	}
}
