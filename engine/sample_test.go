package engine

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// distribution is the slow oracle: the probability of every token by the
// definition, each step over a full sorted list in float64.
func distribution(row []float32, mask vocab.Mask, ids []vocab.ID, promptLen int, s backend.Sampling) map[vocab.ID]float64 {
	type tok struct {
		id    vocab.ID
		logit float64
	}
	window := s.RepeatLastN
	if window == 0 {
		window = 64
	} else if window < 0 {
		window = len(ids)
	}
	var toks []tok
	for i, l := range row {
		id, logit := vocab.ID(i), float64(l)
		if mask != nil && !mask.Has(id) {
			continue
		}
		logit += s.LogitBias[id]
		if s.RepeatPenalty != 0 && slices.Contains(ids[max(0, len(ids)-window):], id) {
			if logit > 0 {
				logit /= s.RepeatPenalty
			} else {
				logit *= s.RepeatPenalty
			}
		}
		n := 0
		for _, g := range ids[promptLen:] {
			if g == id {
				n++
			}
		}
		if n > 0 {
			logit -= float64(n)*s.FrequencyPenalty + s.PresencePenalty
		}
		if !math.IsInf(logit, -1) {
			toks = append(toks, tok{id, logit})
		}
	}
	sort.SliceStable(toks, func(i, j int) bool { return toks[i].logit > toks[j].logit })
	if s.TopK > 0 && s.TopK < len(toks) {
		toks = toks[:s.TopK]
	}
	probs := func(t float64) []float64 {
		p, sum := make([]float64, len(toks)), 0.0
		for i, c := range toks {
			p[i] = math.Exp((c.logit - toks[0].logit) / t)
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	if s.TopP > 0 && s.TopP < 1 {
		mass := 0.0
		for i, p := range probs(1) {
			if mass += p; mass >= s.TopP {
				toks = toks[:i+1]
				break
			}
		}
	}
	if s.MinP > 0 {
		p := probs(1)
		n := 0
		for n < len(toks) && p[n] >= s.MinP*p[0]*(1-1e-12) {
			n++
		}
		toks = toks[:n]
	}
	if s.Temperature == 0 {
		return map[vocab.ID]float64{toks[0].id: 1}
	}
	d := map[vocab.ID]float64{}
	for i, p := range probs(s.Temperature) {
		d[toks[i].id] = p
	}
	return d
}

func randomRow(r *rand.Rand, n int) []float32 {
	row := make([]float32, n)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 3)
		if r.IntN(50) == 0 {
			row[i] = float32(math.Inf(-1))
		}
	}
	return row
}

func randomMask(r *rand.Rand, n int) vocab.Mask {
	if r.IntN(2) == 0 {
		return nil
	}
	m := vocab.NewMask(n)
	for range 1 + r.IntN(n) {
		m.Set(vocab.ID(r.IntN(n)))
	}
	return m
}

func randomSampling(r *rand.Rand, n int) backend.Sampling {
	var s backend.Sampling
	maybe := func(f func()) {
		if r.IntN(2) == 0 {
			f()
		}
	}
	maybe(func() { s.Temperature = r.Float64() * 2 })
	maybe(func() { s.TopK = r.IntN(n + 5) })
	maybe(func() { s.TopP = r.Float64() })
	maybe(func() { s.MinP = r.Float64() * 0.5 })
	maybe(func() { s.RepeatPenalty = 0.8 + r.Float64(); s.RepeatLastN = r.IntN(5) - 1 })
	maybe(func() { s.FrequencyPenalty = r.Float64() })
	maybe(func() { s.PresencePenalty = r.Float64()*2 - 1 })
	maybe(func() { s.LogitBias = map[vocab.ID]float64{0: 3, vocab.ID(r.IntN(n)): math.Inf(-1), 5: -1} })
	return s
}

// reached is the distribution that the sampler draws from.
func reached(s *sampler) map[vocab.ID]float64 {
	d, sum, m := map[vocab.ID]float64{}, 0.0, float64(s.maxLogit())
	for _, c := range s.cands {
		sum += math.Exp((float64(c.logit) - m) / s.params.Temperature)
	}
	for _, c := range s.cands {
		d[c.id] = math.Exp((float64(c.logit)-m)/s.params.Temperature) / sum
	}
	return d
}

func TestSamplerAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for trial := range 20000 {
		n := 6 + r.IntN(90)
		row, mask, params := randomRow(r, n), randomMask(r, n), randomSampling(r, n)
		promptLen := 1 + r.IntN(6)
		ids := make([]vocab.ID, promptLen+r.IntN(8))
		s := newSampler(params)
		for i := range ids {
			ids[i] = vocab.ID(r.IntN(n))
			if i >= promptLen {
				s.accept(ids[i])
			}
		}
		before := slices.Clone(row)
		id, err := s.sample(row, mask, ids)
		if !slices.Equal(row, before) {
			t.Fatalf("trial %d: the row was not restored", trial)
		}
		if err != nil {
			if !errors.Is(err, errNoToken) || hasFinite(row, mask, params) {
				t.Fatalf("trial %d: %v", trial, err)
			}
			continue
		}
		want := distribution(row, mask, ids, promptLen, params)
		if _, ok := want[id]; !ok {
			t.Fatalf("trial %d %+v: token %d, want one of %v", trial, params, id, want)
		}
		if params.Temperature == 0 || params.TopK == 1 {
			continue
		}
		got := reached(s)
		if len(got) != len(want) {
			t.Fatalf("trial %d %+v: %d tokens can be drawn, want %d", trial, params, len(got), len(want))
		}
		for id, p := range want {
			if math.Abs(got[id]-p) > 1e-4 { // adjusted logits are float32
				t.Fatalf("trial %d %+v: token %d has probability %g, want %g", trial, params, id, got[id], p)
			}
		}
	}
}

// hasFinite reports whether any token could have been chosen.
func hasFinite(row []float32, mask vocab.Mask, s backend.Sampling) bool {
	for i, l := range row {
		id := vocab.ID(i)
		if (mask == nil || mask.Has(id)) && !math.IsInf(float64(l)+s.LogitBias[id], -1) {
			return true
		}
	}
	return false
}

// The draw follows the distribution: chi-square at a level of about one in a
// million, with a fixed seed.
func TestDrawFollowsDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	row := randomRow(r, 40)
	mask := vocab.NewMask(40)
	for id := vocab.ID(0); id < 40; id += 2 {
		mask.Set(id)
	}
	for name, params := range map[string]backend.Sampling{
		"temperature": {Temperature: 1},
		"hot":         {Temperature: 3},
		"top-k":       {Temperature: 1.5, TopK: 10},
		"top-p":       {Temperature: 0.7, TopP: 0.9},
		"min-p":       {Temperature: 2, MinP: 0.05},
		"all":         {Temperature: 1.3, TopK: 12, TopP: 0.95, MinP: 0.01},
	} {
		for _, mask := range []vocab.Mask{nil, mask} {
			seed := uint64(4)
			params.Seed = &seed
			s := newSampler(params)
			const draws = 50000
			count := map[vocab.ID]float64{}
			for range draws {
				id, err := s.sample(row, mask, nil)
				if err != nil {
					t.Fatal(err)
				}
				count[id]++
			}
			chi, cells, rest, restCount := 0.0, 0, 0.0, 0.0
			for id, p := range distribution(row, mask, nil, 0, params) {
				if p*draws < 10 {
					rest, restCount = rest+p, restCount+count[id]
				} else {
					chi += (count[id] - p*draws) * (count[id] - p*draws) / (p * draws)
					cells++
				}
				delete(count, id)
			}
			if rest*draws >= 1 {
				chi += (restCount - rest*draws) * (restCount - rest*draws) / (rest * draws)
				cells++
			}
			if len(count) > 0 {
				t.Errorf("%s: impossible tokens %v", name, slices.Collect(maps.Keys(count)))
			}
			// Wilson and Hilferty's approximation of the quantile, z = 4.8.
			df := float64(max(1, cells-1))
			if limit := df * math.Pow(1-2/(9*df)+4.8*math.Sqrt(2/(9*df)), 3); chi > limit {
				t.Errorf("%s: chi-square %.1f with %d cells, limit %.1f", name, chi, cells, limit)
			}
		}
	}
}

func TestSamplerEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	set := func(ids ...vocab.ID) vocab.Mask { m := vocab.NewMask(4); m.SetIDs(ids); return m }
	type edge struct {
		name   string
		row    []float32
		mask   vocab.Mask
		params backend.Sampling
		want   vocab.ID
		err    error
	}
	edges := []edge{
		{name: "lowest of equals", row: []float32{1, 3, 3, 2}, want: 1},
		{name: "lowest of equals, masked", row: []float32{3, 3, 3, 2}, mask: set(1, 2), want: 1},
		{name: "single token in mask", row: []float32{9, 9, -50, 9}, mask: set(2), want: 2},
		{name: "mask beyond the vocabulary", row: []float32{1, 2, 3, 4}, mask: vocab.Mask{1 << 2, ^uint32(0)}, want: 2},
		{name: "mask bit beyond the vocabulary", row: []float32{1, 2, 3, 4}, mask: vocab.Mask{1<<1 | 1<<20}, want: 1},
		{name: "mask shorter than the row", row: make([]float32, 100), mask: vocab.Mask{1 << 5}, want: 5},
		{name: "empty mask", row: []float32{1, 2, 3, 4}, mask: set(), err: errEmptyMask},
		{name: "mask of no length", row: []float32{1, 2, 3, 4}, mask: vocab.Mask{}, err: errEmptyMask},
		{name: "only bits beyond the vocabulary", row: []float32{1, 2}, mask: vocab.Mask{1 << 7}, err: errNoToken},
		{name: "all impossible", row: []float32{-inf, -inf}, err: errNoToken},
		{name: "allowed ones impossible", row: []float32{1, -inf, -inf, 1}, mask: set(1, 2), err: errNoToken},
		{name: "not a number", row: []float32{1, nan, 2, 0}, err: errNaN},
		{name: "all not numbers", row: []float32{nan, nan}, err: errNaN},
		{name: "not a number, not allowed", row: []float32{1, nan, 2, 0}, mask: set(0, 2), want: 2},
		{name: "banned by bias", row: []float32{1, 9, 2, 0}, params: backend.Sampling{LogitBias: map[vocab.ID]float64{1: math.Inf(-1)}}, want: 2},
	}
	for _, c := range edges {
		for _, temperature := range []float64{0, 1e-300, 5e-324, 1e-9} {
			c.params.Temperature = temperature
			got, err := newSampler(c.params).sample(c.row, c.mask, nil)
			if c.err != nil {
				if !errors.Is(err, c.err) {
					t.Errorf("%s at %g: %v, want %v", c.name, temperature, err, c.err)
				}
			} else if err != nil || got != c.want && temperature == 0 || c.row[got] != c.row[c.want] {
				t.Errorf("%s at %g: token %d, %v; want %d", c.name, temperature, got, err, c.want)
			}
		}
	}
	for _, err := range []error{errNaN, errNoToken} {
		if !errors.Is(err, backend.ErrEngine) {
			t.Errorf("%v is not ErrEngine", err)
		}
	}
	for _, params := range []backend.Sampling{{Temperature: 1}, {Temperature: 1, TopP: 0.5}, {Temperature: 1, TopK: 2}} {
		if _, err := newSampler(params).sample([]float32{1, inf, 2}, nil, nil); !errors.Is(err, errNaN) {
			t.Errorf("infinite logit, %+v: %v", params, err)
		}
		if id, err := newSampler(backend.Sampling{Temperature: math.MaxFloat64, TopP: params.TopP, TopK: params.TopK}).sample([]float32{1, 3, 2}, nil, nil); err != nil || id < 0 {
			t.Errorf("enormous temperature: %v", err)
		}
	}
}

// Equal seeds draw equal tokens, and the order of LogitBias does not matter.
func TestSeed(t *testing.T) {
	row := randomRow(rand.New(rand.NewPCG(3, 3)), 500)
	draw := func(seed *uint64) (ids []vocab.ID) {
		s := newSampler(backend.Sampling{Temperature: 1.5, FrequencyPenalty: 0.5, LogitBias: map[vocab.ID]float64{1: 1, 2: 1, 3: -1}, Seed: seed})
		for range 50 {
			id, err := s.sample(row, nil, ids)
			if err != nil {
				t.Fatal(err)
			}
			s.accept(id)
			ids = append(ids, id)
		}
		return ids
	}
	a, b := uint64(7), uint64(8)
	if !slices.Equal(draw(&a), draw(&a)) {
		t.Error("one seed gave two results")
	}
	if slices.Equal(draw(&a), draw(&b)) || slices.Equal(draw(nil), draw(nil)) {
		t.Error("different seeds gave one result")
	}
}

func TestLogprobs(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for trial := range 2000 {
		row := make([]float32, 1+r.IntN(60))
		for i := range row {
			row[i] = float32(r.IntN(12)) * 10 // many equals, large differences
		}
		id, top := vocab.ID(r.IntN(len(row))), r.IntN(len(row)+3)
		got, list := logprobs(row, id, top)
		sum := 0.0
		for _, l := range row {
			sum += math.Exp(float64(l) - 110)
		}
		logprob := func(id vocab.ID) float64 { return float64(row[id]) - 110 - math.Log(sum) }
		if math.Abs(got-logprob(id)) > 1e-9 {
			t.Fatalf("trial %d: %g, want %g", trial, got, logprob(id))
		}
		order := make([]vocab.ID, len(row))
		for i := range order {
			order[i] = vocab.ID(i)
		}
		sort.SliceStable(order, func(i, j int) bool { return row[order[i]] > row[order[j]] })
		if len(list) != min(top, len(row)) {
			t.Fatalf("trial %d: %d of top %d", trial, len(list), top)
		}
		for i, l := range list {
			if l.ID != order[i] || math.Abs(l.Logprob-logprob(order[i])) > 1e-9 {
				t.Fatalf("trial %d: top %d is %+v, want %d at %g", trial, i, l, order[i], logprob(order[i]))
			}
		}
	}
}

func BenchmarkSample(b *testing.B) {
	const size = 49152
	row := randomRow(rand.New(rand.NewPCG(5, 5)), size)
	narrow, wide := vocab.NewMask(size), vocab.NewMask(size)
	for id := range vocab.ID(size) {
		if id%500 == 0 {
			narrow.Set(id)
		}
		if id%3 != 0 {
			wide.Set(id)
		}
	}
	ids := make([]vocab.ID, 200)
	for _, c := range []struct {
		name   string
		params backend.Sampling
		mask   vocab.Mask
	}{
		{name: "greedy"},
		{name: "greedy narrow mask", mask: narrow},
		{name: "greedy wide mask", mask: wide},
		{name: "greedy penalties", params: backend.Sampling{RepeatPenalty: 1.1, FrequencyPenalty: 1}},
		{name: "temperature", params: backend.Sampling{Temperature: 0.8}},
		{name: "temperature narrow mask", params: backend.Sampling{Temperature: 0.8}, mask: narrow},
		{name: "top-k", params: backend.Sampling{Temperature: 0.8, TopK: 40}},
		{name: "top-p", params: backend.Sampling{Temperature: 0.8, TopP: 0.95}},
		{name: "top-k top-p min-p", params: backend.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newSampler(c.params)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.sample(row, c.mask, ids); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("logprobs top 20", func(b *testing.B) {
		for b.Loop() {
			logprobs(row, 7, 20)
		}
	})
}
