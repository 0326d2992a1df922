package replay

import (
	"testing"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/vocab"
)

// FuzzRun replays what bytes make of requests: losses add up, whatever the
// options.
func FuzzRun(f *testing.F) {
	f.Add([]byte("\x00abcdefgh\xf0abcdxyz\xf1abcd"), uint8(0), uint8(0), uint8(0))
	f.Add([]byte("aabb\xf0aabbaa\xf2\xf0aabbcc\xf3aabbdd\xf0"), uint8(3), uint8(2), uint8(1))
	f.Add([]byte("\x07\x06\x05\xf0\x06\x06\xf4\x06"), uint8(1), uint8(1), uint8(2))
	v := toyVocab(f)
	f.Fuzz(func(t *testing.T, data []byte, workers, routing, mode uint8) {
		reqs := fuzzRequests(data[:min(len(data), 600)])
		n := 0
		opt := Options{
			NewCache: paged(4, 12), NewUnlimited: paged(4, 0), Vocab: v,
			Workers: 1 + int(workers%5), Routing: Routing(routing % 4), Buckets: int(mode % 3), Warmup: float64(mode%7) / 8,
			OnRecord: func(r *Record) error {
				if n++; r.Loss.Tokens() != int64(r.PromptTokens) && !r.Rejected {
					t.Errorf("request %d of %d tokens: %+v", r.Index, r.PromptTokens, r.Loss)
				}
				l := r.Loss
				if min(l.Hit, l.Capacity, l.Routing, l.Rounding, l.Boundary, l.Content) < 0 || r.Wait < 0 {
					t.Errorf("request %d: %+v after %v", r.Index, l, r.Wait)
				}
				return nil
			},
		}
		if mode%3 == 0 {
			opt.Timing = &Timing{Prefill: 1 + float64(mode), Decode: 1, Output: int(mode)}
		} else {
			opt.Concurrency = int(mode % 5)
		}
		src := reqs
		res, err := Run(t.Context(), &src, opt)
		if err != nil {
			t.Fatal(err)
		}
		if res.Requests+res.Warmup+res.Rejected != int64(n) || n != len(reqs) || res.Loss.Tokens() != res.PromptTokens {
			t.Errorf("%d records of %d requests, %+v", n, len(reqs), res)
		}
	})
}

// fuzzRequests cuts data at bytes from 0xf0; the byte says more of the request
// before it.
func fuzzRequests(data []byte) (reqs requests) {
	r := trace.Request{PromptTokens: -1, OutputTokens: -1, Cached: -1}
	for i, b := range data {
		if b < 0xf0 {
			r.IDs = append(r.IDs, vocab.ID(b%uint8(len(toyTokens)+1)))
			continue
		}
		if len(r.IDs) == 0 {
			continue
		}
		r.At = time.Duration(i) * time.Second
		switch b & 7 {
		case 1:
			r.OutputIDs = r.IDs[:len(r.IDs)/2]
		case 2:
			r.Keys.Salt = "s"
		case 3:
			r.Keys.Media = []prefixcache.Media{{Hash: "h", Offset: len(r.IDs) / 2, Length: 2}}
		}
		reqs = append(reqs, r)
		r = trace.Request{PromptTokens: -1, OutputTokens: int(b & 3), Cached: -1}
	}
	return reqs
}

// FuzzSweep compares the policies with their definitions.
func FuzzSweep(f *testing.F) {
	f.Add([]byte("abc\xffabd\xffae\xffabc\xff"), uint8(3))
	f.Add([]byte("aaaaaaaa\xffb\xffaaaa\xffab\xff"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, capacity uint8) {
		var reqs requests
		var blocks []uint64
		for _, b := range data[:min(len(data), 120)] {
			if b < 0xf0 {
				blocks = append(blocks, uint64(b))
			} else if len(blocks) > 0 {
				reqs = append(reqs, trace.Request{Blocks: blocks, BlockTokens: 3, PromptTokens: 3*len(blocks) - int(b)%3})
				blocks = nil
			}
		}
		if len(reqs) == 0 {
			return
		}
		src, c := reqs, 1+int(capacity%40)
		res, err := Sweep(t.Context(), &src, SweepOptions{Policies: []string{LRU, Optimal}, Capacities: []int{c}})
		if err != nil {
			t.Fatal(err)
		}
		for _, pt := range res.Points {
			if hit, evictions := slow(pt.Policy, reqs, c); pt.HitTokens != hit || pt.Evictions != evictions {
				t.Errorf("%s with %d blocks: %d hits, %d evictions; by definition %d, %d", pt.Policy, c, pt.HitTokens, pt.Evictions, hit, evictions)
			}
		}
	})
}
