package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/vocab"
)

func TestParseRouting(t *testing.T) {
	for r := RoundRobin; r <= PrefixAware; r++ {
		if got, err := ParseRouting(r.String()); err != nil || got != r {
			t.Errorf("%v reads as %v, %v", r, got, err)
		}
	}
	if _, err := ParseRouting("nearest"); err == nil || err.Error() != `replay: unknown routing "nearest": want one of round-robin, random, least-loaded, prefix-aware` {
		t.Errorf("error %v", err)
	}
}

// routed gives the workers that requests are sent to.
func routed(t *testing.T, reqs requests, opt Options) (workers []int) {
	t.Helper()
	opt.NewCache, opt.OnRecord = paged(16, 0), func(r *Record) error {
		workers = append(workers, r.Worker)
		return nil
	}
	if _, err := Run(t.Context(), &reqs, opt); err != nil {
		t.Fatal(err)
	}
	return workers
}

// text makes a prompt of sections of 16 equal tokens, and a rest.
func text(rest int, sections ...vocab.ID) (r trace.Request) {
	for _, s := range sections {
		r.IDs = append(r.IDs, slices.Repeat([]vocab.ID{s}, routerBlock)...)
	}
	r.IDs = append(r.IDs, slices.Repeat([]vocab.ID{1000}, rest)...)
	r.PromptTokens, r.Cached = -1, -1
	return r
}

func salted(r trace.Request, salt string) trace.Request {
	r.Keys.Salt = salt
	return r
}

func TestRouting(t *testing.T) {
	blocks := func(b ...uint64) trace.Request { return trace.Request{Blocks: b, BlockTokens: 16, PromptTokens: -1} }
	tests := []struct {
		name    string
		routing Routing
		workers int
		reqs    requests
		want    []int
	}{
		{"round-robin", RoundRobin, 3, requests{text(1), text(1), text(1), text(1)}, []int{0, 1, 2, 0}},
		{"least-loaded", LeastLoaded, 3, requests{text(5), text(2), text(9), text(1), text(3), text(1)}, []int{0, 1, 2, 1, 1, 0}},
		{"prefix-aware", PrefixAware, 2, requests{
			text(0, 1, 2), text(0, 3), text(0, 1, 2, 4), // to where 1 2 went, though more was sent there
			text(8, 9), text(0, 3, 5), text(0, 1, 7), // nothing known: to the one that was sent less
			text(3, 1, 2, 4, 6),
		}, []int{0, 1, 0, 1, 1, 0, 0}},
		{"prefix-aware, several", PrefixAware, 70, requests{text(0, 1), salted(text(0, 1), "x"), text(0, 2), text(0, 1), salted(text(0, 1), "x"), text(0, 2)}, []int{0, 1, 2, 0, 1, 2}},
		{"prefix-aware, blocks", PrefixAware, 3, requests{blocks(1, 2), blocks(3), blocks(1, 2, 4), blocks(3, 5), blocks(6), blocks(6, 7)}, []int{0, 1, 0, 1, 2, 2}},
		{"one", PrefixAware, 1, requests{text(1), text(1)}, []int{0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := routed(t, tt.reqs, Options{Routing: tt.routing, Workers: tt.workers, Thresholds: &anyPrefix}); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// anyPrefix follows every prefix, whatever the load.
var anyPrefix = Thresholds{BalanceRequests: math.MaxInt}

// TestDefaultThresholds: prompts that share a small first part only are spread, those that go on from another follow
// it, and a prefix that all share does not send everything to one worker.
func TestDefaultThresholds(t *testing.T) {
	var little, turns, hot requests
	var spread, same []int
	for i := range vocab.ID(8) {
		little = append(little, text(0, 1, 10+i, 20+i, 30+i))
		spread = append(spread, int(i)%4)
	}
	for i := range vocab.ID(8) {
		turns = append(turns, text(0, slices.Repeat([]vocab.ID{1 + i%4}, 1+int(i)/4)...))
		same = append(same, int(i)%4)
	}
	if got := routed(t, little, Options{Routing: PrefixAware, Workers: 4}); !slices.Equal(got, spread) {
		t.Errorf("a quarter shared: %v", got)
	}
	if got := routed(t, turns, Options{Routing: PrefixAware, Workers: 4}); !slices.Equal(got, same) {
		t.Errorf("turns: %v", got)
	}
	for i := range 1000 {
		hot = append(hot, text(i%16, 1, 2, 3))
	}
	for name, timing := range map[string]*Timing{"in turn": nil, "timed": {Prefill: 1, Decode: 1}} {
		sent := make([]int, 4)
		for _, w := range routed(t, slices.Clone(hot), Options{Routing: PrefixAware, Workers: 4, Timing: timing}) {
			sent[w]++
		}
		if low, high := slices.Min(sent), slices.Max(sent); high-low > 65 && float64(high) > 1.5*float64(low)+2 {
			t.Errorf("%s, one prefix for all: %v", name, sent)
		}
	}
}

func TestRandomRouting(t *testing.T) {
	reqs := slices.Repeat(requests{text(1)}, 4000)
	a := routed(t, reqs, Options{Routing: Random, Workers: 4, Seed: 1})
	if !slices.Equal(a, routed(t, reqs, Options{Routing: Random, Workers: 4, Seed: 1})) {
		t.Error("the same seed gives other workers")
	}
	if slices.Equal(a, routed(t, reqs, Options{Routing: Random, Workers: 4, Seed: 2})) {
		t.Error("another seed gives the same workers")
	}
	n := map[int]int{}
	for _, w := range a {
		n[w]++
	}
	for w := range 4 {
		if n[w] < 850 || n[w] > 1150 {
			t.Errorf("worker %d got %d of 4000", w, n[w])
		}
	}
}

// The router that compares prefixes sends each prompt where one that compares it
// with everything sent would.
func TestPrefixAwareEqualsOracle(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		workers := 2 + rng.IntN(70)
		var reqs requests
		for range 200 {
			var sections []vocab.ID
			for range 1 + rng.IntN(5) {
				sections = append(sections, vocab.ID(rng.IntN(3)))
			}
			reqs = append(reqs, text(rng.IntN(routerBlock), sections...))
		}
		sent := make([][][]vocab.ID, workers)
		tokens := make([]int, workers)
		limits := Thresholds{Match: float64(rng.IntN(4)) / 4, BalanceRequests: rng.IntN(20), BalanceRatio: 1 + rng.Float64()}
		count := make([]int, workers)
		for i, w := range routed(t, reqs, Options{Routing: PrefixAware, Workers: workers, Thresholds: &limits}) {
			longestOf := func(w int) int { return longest(sent[w], reqs[i].IDs) / routerBlock }
			matched := 0
			for o := range workers {
				matched = max(matched, longestOf(o))
			}
			low, high := slices.Min(count), slices.Max(count)
			unequal := high-low > limits.BalanceRequests && float64(high) > limits.BalanceRatio*float64(low)
			follows := float64(matched*routerBlock) > limits.Match*float64(len(reqs[i].IDs))
			best := -1
			for o := range workers {
				if unequal && count[o] > low || !unequal && follows && longestOf(o) < matched {
					continue
				}
				if best < 0 || tokens[o] < tokens[best] {
					best = o
				}
			}
			if w != best {
				t.Fatalf("seed %d: request %d went to %d with %d blocks and %d tokens sent, not to %d with %d and %d", seed, i, w, longestOf(w), tokens[w], best, longestOf(best), tokens[best])
			}
			sent[w] = append(sent[w], reqs[i].IDs)
			tokens[w] += len(reqs[i].IDs)
			count[w]++
		}
	}
}

// With a prefix on one of two workers, what the other lacks is lost to routing.
func TestRoutingLoss(t *testing.T) {
	reqs := requests{text(1, 1, 2), text(1, 1, 2), text(1, 1, 2)}
	var got []string
	res, err := Run(t.Context(), &reqs, Options{
		NewCache: paged(16, 0), NewUnlimited: paged(16, 0), Workers: 2,
		OnRecord: func(r *Record) error {
			got = append(got, fmt.Sprint(r.Loss))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"{0 0 0 0 0 33}", "{0 0 32 1 0 0}", "{32 0 0 1 0 0}"}; !slices.Equal(got, want) {
		t.Errorf("losses %v, want %v", got, want)
	}
	if len(res.Workers) != 2 || res.Workers[0].Requests != 2 || res.Workers[0].HitTokens != 32 || res.Workers[1].PromptTokens != 33 {
		t.Errorf("workers %+v", res.Workers)
	}
}
