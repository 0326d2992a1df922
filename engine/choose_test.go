package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

func choosing(asks int) *backend.Request {
	p := prompt(20)
	return &backend.Request{Prompt: p, Keep: 16, Choose: &hashChooser{trunk: p[16:], asks: asks}, MaxTokens: 6, Steer: noEnd()}
}

// TestChooseFaults breaks a choosing request at every step, by a native failure
// and by giving it up. Nothing of it stays but reusable tokens, and the engine
// goes on.
func TestChooseFaults(t *testing.T) {
	for _, failure := range []bool{true, false} {
		for at := 1; at < 14; at++ {
			calls, hit := 0, false
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e, f := openFake(t, fakeLimits(nil), func(f *fakeDecoder) {
				f.fail = func([]entry) error {
					if calls++; calls != at {
						return nil
					}
					hit = true
					if failure {
						return backend.ErrEngine
					}
					cancel()
					return nil
				}
			})
			s, err := e.Generate(ctx, choosing(3))
			if err != nil {
				t.Fatal(err)
			}
			_, err = drain(s)
			if want := map[bool]error{true: backend.ErrEngine, false: context.Canceled}[failure]; err != nil && !errors.Is(err, want) {
				t.Errorf("step %d: %v", at, err)
			}
			s.Close()
			st := waitIdle(t, e)
			if st.Idle != st.Sequences || failure && hit && st.CellsUsed != 0 {
				t.Errorf("step %d: %+v", at, st)
			}
			calls = at // no further fault
			toks, _ := generate(t, e, choosing(2))
			if want, _ := alone(choosing(2), 40); !slices.Equal(idsOf(toks), want) {
				t.Errorf("after a fault at step %d: %v, want %v", at, idsOf(toks), want)
			}
			st = waitIdle(t, e)
			e.Close()
			if st.CellsUsed != len(f.cells) {
				t.Errorf("step %d: the engine counts %d cells, the decoder has %d", at, st.CellsUsed, len(f.cells))
			}
		}
	}
}

// scripted asks for rows and chooses as it is told.
type scripted struct {
	asks   [][]vocab.ID
	choose []vocab.ID
}

func (c *scripted) Row([]vocab.ID, []float32) {}
func (c *scripted) Next(*rand.Rand) (path []vocab.ID, done bool, err error) {
	if len(c.asks) == 0 {
		return c.choose, true, nil
	}
	path, c.asks = c.asks[0], c.asks[1:]
	return path, false, nil
}

// TestChooseCost counts what is evaluated: the prompt once, a token for every
// row that is asked for, and nothing again that is there.
func TestChooseCost(t *testing.T) {
	p := prompt(20)
	for _, tt := range []struct {
		name               string
		asks               [][]vocab.ID
		choose             []vocab.ID
		decodes, evaluated int64 // until 3 tokens after the chosen ones are there
	}{
		{"none", nil, nil, 4, 22},
		{"the prompt's own", nil, p[17:], 4, 22},
		{"another last token", nil, []vocab.ID{p[17], p[18], 60}, 5, 23},
		{"another from the start", nil, []vocab.ID{60}, 5, 23},
		{"asked and taken", [][]vocab.ID{{60}}, []vocab.ID{60, 61}, 6, 24},
		{"asked and not taken", [][]vocab.ID{{60}}, p[17:], 5, 26},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, f := openFake(t, fakeLimits(func(l *limits) { l.batch, l.outputs = 30, 12 }), nil)
			req := &backend.Request{Prompt: p, MaxTokens: 3 + len(tt.choose), Steer: noEnd()}
			if tt.choose != nil {
				req.Keep, req.Choose = 17, &scripted{asks: tt.asks, choose: tt.choose}
			}
			toks, end := generate(t, e, req)
			if got := idsOf(toks); !slices.Equal(got[:len(tt.choose)], tt.choose) || len(got) != 3+len(tt.choose) {
				t.Errorf("tokens %v", got)
			}
			// The last token is not evaluated, so 3 tokens take 2 steps more.
			if d, n := f.decodes.Load(), f.evaluated.Load(); d != tt.decodes-1 || n != tt.evaluated || int64(end.ForwardPasses) != d {
				t.Errorf("%d decodes of %d tokens, %d passes; want %d of %d", d, n, end.ForwardPasses, tt.decodes-1, tt.evaluated)
			}
		})
	}
}
