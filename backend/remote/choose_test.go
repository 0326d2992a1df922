package remote

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

func logSumExp(row []float32) float64 {
	m, sum := float64(slices.Max(row)), 0.0
	for _, l := range row {
		sum += math.Exp(float64(l) - m)
	}
	return m + math.Log(sum)
}

type fixedChooser struct{ path []vocab.ID }

func (c *fixedChooser) Row([]vocab.ID, []float32) {}
func (c *fixedChooser) Next(*rand.Rand) ([]vocab.ID, bool, error) {
	return c.path, true, nil
}

// pairChooser chooses among pairs of tokens, by the product of their
// probabilities, best first: a first token's row is asked for only if its own
// probability is above the best pair known.
type pairChooser struct {
	firsts, seconds []vocab.ID

	first map[vocab.ID]float64
	pairs map[[2]vocab.ID]float64
	had   map[vocab.ID]bool
	asked int
}

func (c *pairChooser) Reset() {
	c.first, c.pairs, c.had = map[vocab.ID]float64{}, map[[2]vocab.ID]float64{}, map[vocab.ID]bool{}
}

func (c *pairChooser) Matters(path []vocab.ID) []vocab.ID {
	if len(path) == 0 {
		return slices.Clone(c.firsts)
	}
	return slices.Clone(c.seconds)
}

func (c *pairChooser) Row(path []vocab.ID, row []float32) {
	if c.first == nil {
		c.Reset()
	}
	norm := logSumExp(row)
	p := slices.Clone(row)
	for i := range p {
		p[i] -= float32(norm)
	}
	c.Part(path, p)
}

func (c *pairChooser) Part(path []vocab.ID, row []float32) {
	if len(path) == 0 {
		for _, id := range c.firsts {
			c.first[id] = float64(row[id])
		}
		return
	}
	c.had[path[0]] = true
	for _, id := range c.seconds {
		c.pairs[[2]vocab.ID{path[0], id}] = c.first[path[0]] + float64(row[id])
	}
}

func (c *pairChooser) Next(rng *rand.Rand) ([]vocab.ID, bool, error) {
	best, value := [2]vocab.ID{vocab.None, vocab.None}, math.Inf(-1)
	for _, a := range c.firsts {
		for _, b := range c.seconds {
			if l, ok := c.pairs[[2]vocab.ID{a, b}]; ok && l > value {
				best, value = [2]vocab.ID{a, b}, l
			}
		}
	}
	for _, a := range c.firsts {
		if !c.had[a] && (c.first[a] > value || rng != nil) {
			c.asked++
			return []vocab.ID{a}, false, nil
		}
	}
	if rng == nil {
		return best[:], true, nil
	}
	sum := 0.0
	for _, a := range c.firsts {
		for _, b := range c.seconds {
			sum += math.Exp(c.pairs[[2]vocab.ID{a, b}])
		}
	}
	x := rng.Float64() * sum
	for _, a := range c.firsts {
		for _, b := range c.seconds {
			if x -= math.Exp(c.pairs[[2]vocab.ID{a, b}]); x < 0 {
				return []vocab.ID{a, b}, true, nil
			}
		}
	}
	return best[:], true, nil
}

// A choice from parts of rows is that from whole rows: at temperature 0 in all
// cases, else as likely.
func TestChoiceFromParts(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) (ids []vocab.ID) {
		for len(ids) < n {
			if id := vocab.ID(rng.IntN(v.Len())); v.IsText(id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	more := 0
	for i := range 60 {
		prompt := append(pick(3), pick(2)...)
		firsts, seconds := pick(4), pick(4)
		if !slices.Contains(firsts, prompt[3]) {
			firsts[0] = prompt[3]
			slices.Sort(firsts)
		}
		seed := uint64(i)
		s := backend.Sampling{Temperature: float64(i % 2), Seed: &seed}
		var got [2][]vocab.ID
		for k, top := range []int{0, 2} {
			e := &toyEngine{top: top}
			server := newToyServer(e)
			ids, end := collect(t, server, &backend.Request{
				Prompt: prompt, Keep: 3, MaxTokens: 2, Sampling: s,
				Choose: &pairChooser{firsts: firsts, seconds: seconds},
			})
			got[k] = ids
			if top > 0 && end.Requests > 2+len(firsts) {
				more++
			}
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%d: from whole rows %v, from parts %v", i, got[0], got[1])
		}
	}
	if more == 0 {
		t.Error("no row was had in more detail: the test shows nothing")
	}
}

func TestPartRowBound(t *testing.T) {
	lp := math.Log
	for _, tt := range []struct {
		name        string
		top, others []backend.Logprob
		want        float64
	}{
		{"nothing known", nil, nil, 0},
		{"by the smallest", []backend.Logprob{{ID: 1, Logprob: lp(0.3)}, {ID: 2, Logprob: lp(0.1)}}, nil, lp(0.1)},
		{"by what is left", []backend.Logprob{{ID: 1, Logprob: lp(0.5)}, {ID: 2, Logprob: lp(0.45)}}, nil, lp(0.05)},
		{"others bound nothing", []backend.Logprob{{ID: 1, Logprob: lp(0.3)}}, []backend.Logprob{{ID: 2, Logprob: lp(0.01)}}, lp(0.3)},
		{"sums above 1", []backend.Logprob{{ID: 1, Logprob: lp(0.7)}, {ID: 2, Logprob: lp(0.301)}}, nil, lp(1e-12)},
	} {
		if r := newPartRow(tt.top, tt.others, 100, someValues); math.Abs(r.bound-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tt.name, r.bound, tt.want)
		}
	}
}
