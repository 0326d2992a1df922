package backendtest

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// chooser asks for rows and chooses as it is told, and notes what it is given.
type chooser struct {
	asks   [][]vocab.ID
	choose []vocab.ID
	err    error

	paths [][]vocab.ID
	rows  [][]float32
}

func (c *chooser) Row(path []vocab.ID, row []float32) {
	c.paths = append(c.paths, slices.Clone(path))
	c.rows = append(c.rows, slices.Clone(row))
}

func (c *chooser) Next(*rand.Rand) (path []vocab.ID, done bool, err error) {
	if c.err != nil {
		return nil, false, c.err
	}
	if len(c.asks) == 0 {
		return c.choose, true, nil
	}
	path, c.asks = c.asks[0], c.asks[1:]
	return path, false, nil
}

// watcher is a Steer without masks.
type watcher struct {
	accepted  []vocab.ID
	uncounted int // tokens at the beginning
	stop      int // the token to stop at; 0: none
}

func (w *watcher) Mask() vocab.Mask { return nil }

func (w *watcher) Accept(id vocab.ID) backend.Verdict {
	w.accepted = append(w.accepted, id)
	return backend.Verdict{Uncounted: len(w.accepted) <= w.uncounted, Stop: len(w.accepted) == w.stop}
}

// partChooser chooses the likeliest of a few tokens, as far as it is told their
// values.
type partChooser struct {
	matters []vocab.ID
	best    vocab.ID
	resets  int
	t       *testing.T
}

func (c *partChooser) Row([]vocab.ID, []float32) { c.t.Error("Row was called beside Part") }

func (c *partChooser) Matters([]vocab.ID) []vocab.ID { return slices.Clone(c.matters) }

func (c *partChooser) Reset() { c.best = vocab.None; c.resets++ }

func (c *partChooser) Part(path []vocab.ID, row []float32) {
	if len(path) > 0 {
		return
	}
	for _, l := range row {
		if l > 0 || l != l {
			c.t.Errorf("a log-probability of %v", l)
			break
		}
	}
	for _, id := range c.matters {
		if c.best == vocab.None || row[id] > row[c.best] {
			c.best = id
		}
	}
}

func (c *partChooser) Next(*rand.Rand) (path []vocab.ID, done bool, err error) {
	return []vocab.ID{c.best}, true, nil
}

// chooseByParts checks that a [backend.PartChooser] comes to the choice that
// whole rows would have led to, however improbable what it looks at is.
func (c *conformance) chooseByParts(t *testing.T) {
	prompt := c.Prompts[0]
	keep := len(prompt) - 1
	whole := &chooser{choose: prompt[keep:]}
	c.generate(t, &backend.Request{Prompt: prompt, Keep: keep, Choose: whole, MaxTokens: 1})
	if len(whole.rows) == 0 {
		t.Fatal("the Chooser was given no row")
	}
	row := whole.rows[0]
	for salt := range 3 {
		ch := &partChooser{matters: slices.Collect(c.pick(6, 40+salt).All()), best: vocab.None, t: t}
		want := ch.matters[0]
		for _, id := range ch.matters {
			if row[id] > row[want] {
				want = id
			}
		}
		if !c.takesParts(t, prompt, keep, ch) {
			return // whole rows are given to all Choosers
		}
		if ch.best != want && math.Abs(float64(row[ch.best]-row[want])) > c.Tolerance {
			t.Errorf("of %v it chose %d, the likeliest is %d", ch.matters, ch.best, want)
		}
	}
}

// takesParts makes a choice and reports whether it was made from parts.
func (c *conformance) takesParts(t *testing.T, prompt []vocab.ID, keep int, ch *partChooser) bool {
	t.Helper()
	if c.b.Info().Capabilities.Logits {
		return false
	}
	toks, _ := c.generate(t, &backend.Request{Prompt: prompt, Keep: keep, Choose: ch, MaxTokens: 1})
	if len(toks) != 1 || toks[0].ID != ch.best {
		t.Errorf("generated %v, chosen was %d", idsOf(toks), ch.best)
	}
	return true
}

// choose checks what a [backend.Chooser] is given and what becomes of its
// choice.
func (c *conformance) choose(t *testing.T) {
	prompt := c.Prompts[0]
	keep := len(prompt) - 2
	other := slices.Collect(c.pick(2, 5).All())
	for _, tt := range []struct {
		name   string
		asks   [][]vocab.ID
		choose []vocab.ID
	}{
		{"the prompt's own tokens", nil, prompt[keep:]},
		{"one other token", nil, other[:1]},
		{"two other tokens", [][]vocab.ID{other[:1]}, other},
		{"asked for and not taken", [][]vocab.ID{other[:1], {prompt[keep], other[0]}}, prompt[keep:]},
	} {
		ch := &chooser{asks: tt.asks, choose: tt.choose}
		w := &watcher{uncounted: len(tt.choose)}
		toks, end := c.generate(t, &backend.Request{Prompt: prompt, Keep: keep, Choose: ch, Steer: w, MaxTokens: 3})
		got := idsOf(toks)
		if len(got) < len(tt.choose) || !slices.Equal(got[:len(tt.choose)], tt.choose) {
			t.Errorf("%s: generated %v, chosen were %v", tt.name, got, tt.choose)
			continue
		}
		if !slices.Equal(w.accepted, got) {
			t.Errorf("%s: Accept saw %v, the stream has %v", tt.name, w.accepted, got)
		}
		rest, restEnd := c.generate(t, &backend.Request{Prompt: slices.Concat(prompt[:keep], tt.choose), MaxTokens: 3})
		if !slices.Equal(got[len(tt.choose):], idsOf(rest)) || end.Reason != restEnd.Reason {
			t.Errorf("%s: went on with %v (%s), a prompt that ends so with %v (%s)", tt.name, got[len(tt.choose):], end.Reason, idsOf(rest), restEnd.Reason)
		}
		c.chooserRows(t, tt.name, prompt[:keep], ch, append([][]vocab.ID{nil, prompt[keep : keep+1]}, tt.asks...))
	}

	// The limit counts what Steer does not exempt.
	ch := &chooser{choose: other}
	if toks, end := c.generate(t, &backend.Request{Prompt: prompt, Keep: keep, Choose: ch, MaxTokens: 1}); !slices.Equal(idsOf(toks), other[:1]) || end.Reason != backend.FinishLength {
		t.Errorf("MaxTokens 1: %v, %s", idsOf(toks), end.Reason)
	}
	c.chooseErrors(t, prompt, keep)
}

// chooserRows compares the rows that a Chooser was given with those that
// LogitsReader reads, and their paths with want.
func (c *conformance) chooserRows(t *testing.T, name string, kept []vocab.ID, ch *chooser, want [][]vocab.ID) {
	t.Helper()
	if !slices.EqualFunc(ch.paths, want, func(a, b []vocab.ID) bool { return slices.Equal(a, b) }) {
		t.Errorf("%s: rows of the paths %v, want %v", name, ch.paths, want)
		return
	}
	r, ok := c.b.(backend.LogitsReader)
	if !ok {
		return
	}
	for i, path := range ch.paths {
		ids := slices.Concat(kept, path)
		rows, err := r.Logits(t.Context(), ids, len(ids)-1)
		if err != nil {
			t.Fatal(err)
		}
		a, b := logSumExp(rows[0]), logSumExp(ch.rows[i])
		for id := range rows[0] {
			p, q := math.Exp(float64(rows[0][id])-a), math.Exp(float64(ch.rows[i][id])-b)
			if math.Abs(p-q) > c.Tolerance {
				t.Errorf("%s: after %v token %d has probability %v, by Logits %v", name, path, id, q, p)
				break
			}
		}
	}
}

func (c *conformance) chooseErrors(t *testing.T, prompt []vocab.ID, keep int) {
	broken := errors.New("broken chooser")
	s, err := c.b.Generate(t.Context(), &backend.Request{Prompt: prompt, Keep: keep, Choose: &chooser{err: broken}, MaxTokens: 3})
	if err == nil {
		_, err = drain(s)
	}
	if err == nil || !strings.Contains(err.Error(), broken.Error()) {
		t.Errorf("the Chooser's error became %v", err)
	}
	for _, keep := range []int{-1, 0, len(prompt)} {
		if s, err := c.b.Generate(t.Context(), &backend.Request{Prompt: prompt, Keep: keep, Choose: &chooser{choose: prompt[:1]}, MaxTokens: 3}); err == nil {
			s.Close()
			t.Errorf("Keep %d of %d was taken", keep, len(prompt))
		}
	}
}
