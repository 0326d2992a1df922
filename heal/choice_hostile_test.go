package heal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// within runs f and reports whether it ended in time.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// TestChoiceEndsWithHostileRows gives rows that no model should give.
func TestChoiceEndsWithHostileRows(t *testing.T) {
	inf := float32(math.Inf(1))
	rows := map[string]func(r *rand.Rand, n int) []float32{
		"equal":    func(_ *rand.Rand, n int) []float32 { return make([]float32, n) },
		"all -Inf": func(_ *rand.Rand, n int) []float32 { return slices.Repeat([]float32{-inf}, n) },
		"one": func(r *rand.Rand, n int) []float32 {
			x := slices.Repeat([]float32{-inf}, n)
			x[r.IntN(n)] = 3
			return x
		},
		"NaN": func(r *rand.Rand, n int) []float32 {
			x := make([]float32, n)
			x[r.IntN(n)] = float32(math.NaN())
			return x
		},
		"+Inf": func(r *rand.Rand, n int) []float32 { x := make([]float32, n); x[r.IntN(n)] = inf; return x },
		"huge": func(r *rand.Rand, n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = (r.Float32()*2 - 1) * math.MaxFloat32
			}
			return x
		},
		"huge equal": func(r *rand.Rand, n int) []float32 { return slices.Repeat([]float32{-math.MaxFloat32}, n) },
		"half -Inf": func(r *rand.Rand, n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				if r.IntN(2) == 0 {
					x[i] = -inf
				} else {
					x[i] = float32(r.NormFloat64()) * 5
				}
			}
			return x
		},
		"normal": func(r *rand.Rand, n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(r.NormFloat64()) * 20
			}
			return x
		},
	}
	r := rand.New(rand.NewPCG(7, 8))
	cases := toyCases(t, 60)
	temps := []float64{0, 5e-324, 1e-310, 1e-300, 1e-20, 1e-6, 0.5, 1, 100, 1e6}
	var samplings []Sampling
	for _, T := range temps {
		for _, k := range []int{0, 1, 2, 1 << 30} {
			for _, p := range []float64{0, 5e-324, 1e-12, 0.5, 1 - 1e-16, 1} {
				for _, m := range []float64{0, 5e-324, 0.5, 1} {
					samplings = append(samplings, Sampling{T, k, p, m})
				}
			}
		}
	}
	failed := map[string]bool{}
	for name, make := range rows {
		for i := range cases {
			c := &cases[i]
			n := c.tok.Vocab().Len()
			for range 12 {
				s := samplings[r.IntN(len(samplings))]
				seed := r.Uint64()
				key := name
				ok := within(time.Minute, func() {
					rr := rand.New(rand.NewPCG(seed, 1))
					defer func() {
						if e := recover(); e != nil {
							t.Errorf("%s %+v: panic %v", name, s, e)
						}
					}()
					var allow func([]byte) bool
					switch rr.IntN(3) {
					case 0:
						allow = func([]byte) bool { return false }
					case 1:
						allow = func(b []byte) bool { return len(b) > 1 }
					}
					ch := c.plan.NewChoice(s, allow)
					for i := range c.plan.Trunk {
						ch.Row(c.plan.Trunk[:i], make(rr, n))
					}
					for steps := 0; ; steps++ {
						if steps > 1000 {
							t.Errorf("%s %+v: asks for ever", name, s)
							return
						}
						path, done, err := ch.Next(rr)
						if err != nil {
							return
						}
						if !done {
							ch.Row(path, make(rr, n))
							continue
						}
						if math.IsNaN(ch.Logprob()) || ch.Logprob() > 1e-6 {
							if !failed[key+"lp"] {
								failed[key+"lp"] = true
								t.Errorf("%s %+v: logprob %v", name, s, ch.Logprob())
							}
						}
						sess := c.plan.NewSession()
						for _, id := range path {
							if _, err := sess.Accept(id); err != nil {
								t.Errorf("%s %+v: %v", name, s, err)
							}
						}
						if !sess.Done() {
							t.Errorf("%s %+v: %v does not cover", name, s, path)
						}
						return
					}
				})
				if !ok && !failed[key] {
					failed[key] = true
					t.Errorf("%s %+v: no end", name, s)
				}
			}
		}
	}
}
