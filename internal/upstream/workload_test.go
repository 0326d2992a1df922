package upstream

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/url"
	"testing"
)

// workload is a synthetic load: conversations that grow turn by turn, some of
// them begun with one of a few system prompts, at a number of endpoints that
// cache every prefix they served.
type workload struct {
	r             *rand.Rand
	seed          maphash.Seed
	conversations [][]byte
	caches        []map[uint64]bool // of each endpoint, prefixes in steps of 256 bytes
	cached, total int               // bytes
	most          int               // load seen at one endpoint
}

const cacheStep = 256

func newWorkload(endpoints, conversations int) *workload {
	w := &workload{r: rand.New(rand.NewPCG(3, 4)), seed: maphash.MakeSeed(), caches: make([]map[uint64]bool, endpoints)}
	for i := range w.caches {
		w.caches[i] = map[uint64]bool{}
	}
	systems := make([][]byte, 4)
	for i := range systems {
		systems[i] = w.text(2000 + w.r.IntN(2000))
	}
	for range conversations {
		w.conversations = append(w.conversations, append([]byte{}, systems[w.r.IntN(len(systems))]...))
	}
	return w
}

func (w *workload) text(n int) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], w.r.Uint64())
	}
	return b[:n]
}

// turn takes a random conversation one turn on and returns its prompt. A
// conversation that has become long begins anew.
func (w *workload) turn() []byte {
	i := w.r.IntN(len(w.conversations))
	if len(w.conversations[i]) > 24<<10 {
		w.conversations[i] = w.text(100 + w.r.IntN(3000))
	}
	w.conversations[i] = append(w.conversations[i], w.text(200+w.r.IntN(1500))...)
	return append([]byte{}, w.conversations[i]...)
}

// serve counts how much of a prompt an endpoint has, and then has it all.
func (w *workload) serve(endpoint int, prompt []byte) {
	var sum uint64
	hit := true
	w.total += len(prompt)
	for at := 0; at+cacheStep <= len(prompt); at += cacheStep {
		sum = sum*0x9e3779b97f4a7c15 + maphash.Bytes(w.seed, prompt[at:at+cacheStep])
		if hit = hit && w.caches[endpoint][sum]; hit {
			w.cached += cacheStep
		}
		w.caches[endpoint][sum] = true
	}
}

// run sends turns through a pool, running at once, and returns the share of
// prompt bytes that the endpoints had cached.
func (w *workload) run(t *testing.T, p *Pool, keyed bool, turns, running int) float64 {
	t.Helper()
	var live []*endpoint
	for range turns {
		if len(live) == running {
			i := w.r.IntN(len(live))
			p.release(live[i])
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
		prompt := w.turn()
		var prefixes []uint64
		if keyed {
			prefixes = p.affinity.prefixes(nil, prompt)
		}
		e, err := p.acquire(prefixes, nil, reachAny)
		if err != nil {
			t.Fatal(err)
		}
		w.most = max(w.most, e.inFlight)
		w.serve(e.index, prompt)
		live = append(live, e)
	}
	for _, e := range live {
		p.release(e)
	}
	return float64(w.cached) / float64(w.total)
}

func manyURLs(n int) []*url.URL {
	var all []*url.URL
	for i := range n {
		all = append(all, &url.URL{Scheme: "http", Host: fmt.Sprintf("h%d.invalid", i)})
	}
	return all
}

// With keys the endpoints' caches hit almost as if there were one endpoint;
// without, mostly by what all prompts share. The load stays within the bound.
func TestAffinityHits(t *testing.T) {
	for _, tt := range []struct{ endpoints, conversations, running int }{
		{4, 100, 4}, {8, 100, 32}, {8, 400, 32}, {100, 400, 200},
	} {
		turns := 6 * tt.conversations
		run := func(endpoints int, keyed bool) (float64, int) {
			w := newWorkload(endpoints, tt.conversations)
			return w.run(t, open(t, quiet(manyURLs(endpoints)...)), keyed, turns, tt.running), w.most
		}
		one, _ := run(1, false)
		keyed, most := run(tt.endpoints, true)
		plain, plainMost := run(tt.endpoints, false)
		t.Logf("%3d endpoints, %4d conversations, %3d running: cached %.1f %% of the bytes with keys, %.1f %% without, %.1f %% at one endpoint; greatest load %d, %d",
			tt.endpoints, tt.conversations, tt.running, 100*keyed, 100*plain, 100*one, most, plainMost)
		if keyed < 0.85*one || keyed < plain+0.1 {
			t.Errorf("cached %.3f with keys, %.3f without, %.3f at one endpoint", keyed, plain, one)
		}
		if bound := 5*tt.running/(4*tt.endpoints) + 3; most > bound {
			t.Errorf("a load of %d, the bound is %d", most, bound)
		}
	}
}
