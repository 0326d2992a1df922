package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/vocab"
)

// toyTokens are the tokens of a vocabulary in which texts have many spellings.
var toyTokens = []string{"a", "b", "aa", "ab", "ba", "aba", "", "abab"}

func toyVocab(t testing.TB) *vocab.Vocab {
	t.Helper()
	var tokens [][]byte
	for _, s := range toyTokens {
		tokens = append(tokens, []byte(s))
	}
	v, err := vocab.New(tokens, make([]vocab.Kind, len(tokens)), vocab.Specials{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func paged(size, blocks int) func() (prefixcache.Cache, error) {
	return func() (prefixcache.Cache, error) {
		return prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: size, Blocks: blocks})
	}
}

// spelling cuts the toy text of ids into other tokens.
func spelling(rng *rand.Rand, ids []vocab.ID) (out []vocab.ID) {
	text := ""
	for _, id := range ids {
		text += toyTokens[id]
	}
	for text != "" {
		id := vocab.ID(rng.IntN(len(toyTokens)))
		if rest, ok := strings.CutPrefix(text, toyTokens[id]); ok {
			out = append(out, id)
			text = rest
		}
	}
	return out
}

// conversations makes growing and branching prompts of tokens with outputs, some
// of which come back as other tokens.
func conversations(rng *rand.Rand, n int) (reqs requests) {
	histories := [][]vocab.ID{nil}
	for i := range n {
		h := slices.Clone(histories[rng.IntN(len(histories))])
		switch rng.IntN(6) {
		case 0:
			h = h[:rng.IntN(len(h)+1)]
		case 1:
			h = spelling(rng, h)
		}
		for range 1 + rng.IntN(6) {
			h = append(h, vocab.ID(rng.IntN(len(toyTokens))))
		}
		h = h[:min(len(h), 60)]
		r := trace.Request{Line: i + 1, At: time.Duration(i) * time.Second, IDs: h, PromptTokens: -1, OutputTokens: -1, Cached: -1, Predicted: -1}
		if rng.IntN(4) > 0 {
			for range 1 + rng.IntN(8) {
				r.OutputIDs = append(r.OutputIDs, vocab.ID(rng.IntN(len(toyTokens))))
			}
		}
		r.Keys.Salt = []string{"", "", "", "tenant"}[rng.IntN(4)]
		if rng.IntN(8) == 0 {
			at := rng.IntN(len(h))
			m := prefixcache.Media{Hash: fmt.Sprint(rng.IntN(3)), Offset: at, Length: 1 + rng.IntN(len(h)-at)}
			for i := range m.Length {
				h[at+i] = 0
			}
			r.Keys.Media = []prefixcache.Media{m}
		}
		reqs = append(reqs, r)
		histories = append(histories, slices.Concat(h, r.OutputIDs))
	}
	return reqs
}

// A seen sequence, as an oracle compares it: a name for each token, with what a
// placeholder stands for, and the token's bytes.
type seen struct {
	salt   string
	names  []string
	bytes  []string
	kept   int // names that an engine had computed
	worker int
}

func sequence(r *trace.Request, worker int, output []vocab.ID) seen {
	s := seen{salt: r.Keys.Salt, worker: worker}
	for i, id := range slices.Concat(r.IDs, output) {
		name, text := fmt.Sprint(id), toyTokens[id]
		for _, m := range r.Keys.Media {
			if i >= m.Offset && i < m.Offset+m.Length && i < len(r.IDs) {
				name = fmt.Sprint(id, " ", i-m.Offset, " of ", m.Hash)
				text = "<" + m.Hash + ">"
			}
		}
		s.names, s.bytes = append(s.names, name), append(s.bytes, text)
	}
	s.kept = max(len(s.names)-1, len(r.IDs))
	return s
}

// oracle says what Loss must be for a request, given what came before, for caches
// of blocks of the given size.
func oracle(before []seen, r *trace.Request, worker, cached, size int) Loss {
	me := sequence(r, worker, nil)
	n := len(me.names)
	full := func(known int) int { return min(known, n-1) / size * size }
	var tokens, inside, own, all int
	for _, s := range before {
		if s.salt != me.salt {
			continue
		}
		k := longest2(me.names, s.names)
		tokens = max(tokens, k)
		// An engine keeps whole blocks, of what it computed.
		kept := full(min(k, s.kept/size*size))
		all = max(all, kept)
		if s.worker == worker {
			own = max(own, kept)
		}
		text := strings.Join(s.bytes, "")
		for i := range n + 1 {
			if i > 0 && me.bytes[i-1] != "" && strings.HasPrefix(text, strings.Join(me.bytes[:i], "")) {
				inside = max(inside, i)
			}
		}
	}
	return lossOf(cached, own, all, tokens, inside, n)
}

func longest2(a, b []string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestLossEqualsOracle(t *testing.T) {
	v := toyVocab(t)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		size := []int{1, 4, 16}[seed%3]
		workers := 1 + int(seed/3)%3
		reqs := conversations(rng, 60)
		var before []seen
		var sum Loss
		opt := Options{
			NewCache: paged(size, 20+100/size), NewUnlimited: paged(size, 0), Vocab: v,
			Workers: workers, Routing: Routing(seed % 4), Seed: seed,
			OnRecord: func(r *Record) error {
				if r.Rejected {
					return nil
				}
				want := oracle(before, r.Request, r.Worker, r.Cached, size)
				if r.Loss != want {
					t.Errorf("seed %d, request %d: %+v, want %+v", seed, r.Index, r.Loss, want)
				}
				if r.Loss.Tokens() != int64(r.PromptTokens) {
					t.Errorf("seed %d, request %d: %+v adds up to %d, not %d", seed, r.Index, r.Loss, r.Loss.Tokens(), r.PromptTokens)
				}
				before = append(before, sequence(r.Request, r.Worker, r.Request.OutputIDs))
				sum.add(r.Loss)
				return nil
			},
		}
		res, err := Run(t.Context(), &reqs, opt)
		if err != nil {
			t.Fatal(err)
		}
		if *res.Loss != sum || res.HitTokens != sum.Hit || res.PromptTokens != sum.Tokens() {
			t.Errorf("seed %d: %+v with %d of %d hit, want %+v", seed, *res.Loss, res.HitTokens, res.PromptTokens, sum)
		}
		if t.Failed() {
			return
		}
	}
}

// Blocks' losses add up, and their identities tell what was seen.
func TestLossOfBlocks(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		const size = 4
		reqs := prefixed(randomBlocks(rng, 60, 9))
		known, whole := map[uint64]bool{}, map[uint64]bool{}
		src := reqs
		_, err := Run(t.Context(), &src, Options{
			NewCache: paged(size, 20), NewUnlimited: paged(size, 0), Workers: 1 + int(seed%3), Routing: PrefixAware,
			OnRecord: func(r *Record) error {
				n := r.Request.PromptTokens
				tokens, all := 0, 0
				for i, b := range r.Request.Blocks {
					if !known[b] {
						break
					}
					tokens = min(tokens+size, n)
					if whole[b] && all == i*size && all+size < n {
						all += size
					}
				}
				l := r.Loss
				if l.Tokens() != int64(n) || l.Content != int64(n-tokens) || l.Boundary != 0 || l.Rounding != int64(tokens-all) || l.Hit != int64(r.Cached) {
					t.Fatalf("seed %d, request %d: %+v of %d tokens, %d of them seen", seed, r.Index, l, n, tokens)
				}
				for i, b := range r.Request.Blocks {
					known[b] = true
					whole[b] = whole[b] || (i+1)*size <= n
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A shelf is a cache with room for a number of tokens in prompts that run, which
// remembers nothing. It writes down what happens.
type shelf struct {
	room, held int
	log        *[]string
	stats      prefixcache.Stats
}

func (s *shelf) Begin(r *prefixcache.Request) (prefixcache.Lease, error) {
	switch n := len(r.Prompt); {
	case n > s.room:
		return prefixcache.Lease{}, prefixcache.ErrTooLarge
	case s.held+n > s.room:
		return prefixcache.Lease{}, prefixcache.ErrNoRoom
	default:
		s.held += n
		*s.log = append(*s.log, fmt.Sprint("begin ", r.Prompt[0]))
		return prefixcache.Lease{Cached: 0, Slot: int(r.Prompt[0])<<8 | n}, nil
	}
}

func (s *shelf) End(l prefixcache.Lease, output []vocab.ID) {
	s.held -= l.Slot & 0xff
	*s.log = append(*s.log, fmt.Sprintf("end %d%v", l.Slot>>8, output))
}

func (s *shelf) Stats() prefixcache.Stats { return s.stats }
func (s *shelf) Reset()                   {}

// prompt makes a request of n tokens, the first of which names it, with an output
// of two.
func prompt(name, n int, at time.Duration) trace.Request {
	ids := make([]vocab.ID, n)
	ids[0] = vocab.ID(name)
	return trace.Request{Line: name, At: at, IDs: ids, OutputIDs: []vocab.ID{vocab.ID(name), 0}, PromptTokens: -1, OutputTokens: -1, Cached: -1}
}

func TestOrderOfEvents(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name string
		reqs requests
		opt  Options
		want string
	}{
		{"serial", requests{prompt(1, 4, 0), prompt(2, 4, 0), prompt(3, 11, 0)}, Options{}, "begin 1, end 1[1 0], begin 2, end 2[2 0]"},
		{"two at a time", requests{prompt(1, 2, 0), prompt(2, 2, 0), prompt(3, 2, 0)}, Options{Concurrency: 2},
			"begin 1, begin 2, end 1[1 0], begin 3, end 2[2 0], end 3[3 0]"},
		{"no room for three", requests{prompt(1, 4, 0), prompt(2, 4, 0), prompt(3, 4, 0), prompt(4, 8, 0)}, Options{Concurrency: 4},
			"begin 1, begin 2, end 1[1 0], begin 3, end 2[2 0], end 3[3 0], begin 4, end 4[4 0]"},
		// A prompt of n tokens takes n seconds, its output two.
		{"by time", requests{prompt(1, 4, 0), prompt(2, 1, 1*s), prompt(3, 1, 5*s)}, Options{Timing: &Timing{Prefill: 1, Decode: 1}},
			"begin 1, begin 2, end 2[2 0], begin 3, end 1[1 0], end 3[3 0]"},
		{"waits", requests{prompt(1, 6, 0), prompt(2, 4, 1*s), prompt(3, 1, 2*s)}, Options{Timing: &Timing{Prefill: 1, Decode: 1}},
			"begin 1, begin 2, end 2[2 0], begin 3, end 1[1 0], end 3[3 0]"},
		{"waits for the first to end", requests{prompt(1, 6, 0), prompt(2, 3, 1*s), prompt(3, 3, 2*s)}, Options{Timing: &Timing{Prefill: 1, Decode: 1}},
			"begin 1, begin 2, end 2[2 0], begin 3, end 1[1 0], end 3[3 0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log []string
			tt.opt.NewCache = func() (prefixcache.Cache, error) { return &shelf{room: 10, log: &log}, nil }
			if _, err := Run(t.Context(), &tt.reqs, tt.opt); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(log, ", "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	const s = time.Second
	var log, got []string
	// 1 runs from 0 to 10, 2 from 1 to 5 for want of room; 3 may begin at 5, and 4
	// behind it.
	src := requests{prompt(1, 8, 0), prompt(2, 2, 1*s), prompt(3, 2, 2*s), prompt(4, 1, 3*s), prompt(5, 1, 20*s)}
	src[3].OutputIDs, src[4].OutputIDs = nil, nil
	src[4].OutputTokens = 7
	res, err := Run(t.Context(), &src, Options{
		NewCache: func() (prefixcache.Cache, error) { return &shelf{room: 10, log: &log}, nil },
		Timing:   &Timing{Prefill: 1, Decode: 1, Output: 3},
		OnRecord: func(r *Record) error {
			got = append(got, fmt.Sprint(r.Request.Line, " at ", r.Begin, " after ", r.Wait))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "1 at 0s after 0s, 2 at 1s after 0s, 3 at 5s after 3s, 4 at 9s after 6s, 5 at 20s after 0s"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if res.Wait != 9.0/5 {
		t.Errorf("mean wait %g, want %g", res.Wait, 9.0/5)
	}
	if tm := (Timing{Prefill: 1e-9, Decode: 1}); tm.ends(5, &job{tokens: 1 << 30}, 0) != 1<<60 {
		t.Error("a long time is not cut")
	}
}

func TestResult(t *testing.T) {
	var src requests
	for i := range 10 {
		r := prompt(1, 8, time.Duration(i)*time.Second)
		r.Cached = 4 * (i % 2)
		if i == 3 {
			r.IDs = make([]vocab.ID, 400)
		}
		src = append(src, r)
	}
	src = append(src, trace.Request{PromptTokens: 5, Cached: -1})
	res, err := Run(t.Context(), &src, Options{
		Policy: "vllm", NewCache: paged(4, 20), NewUnlimited: paged(4, 0), Warmup: 0.5, Buckets: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Of nine that run, four warm up; each later one finds the first of two blocks.
	if res.Policy != "vllm" || res.Requests != 5 || res.Warmup != 4 || res.Rejected != 1 || res.NoContent != 1 ||
		res.HitTokens != 20 || res.PromptTokens != 40 || res.HitRate != 0.5 || res.BlockTokens != 4 || res.Workers != nil {
		t.Errorf("%+v", res)
	}
	if *res.Loss != (Loss{Hit: 20, Rounding: 20}) {
		t.Errorf("loss %+v", *res.Loss)
	}
	// Of the rows 4 to 8 the trace's requests 5, 7 and 9 were told to have 4 cached.
	if want := (Reported{Requests: 5, PromptTokens: 40, CachedTokens: 12, HitTokens: 20, HitRate: 0.3, Equal: 3}); *res.Reported != want {
		t.Errorf("reported %+v, want %+v", *res.Reported, want)
	}
	var first, n []int64
	for _, b := range res.Over {
		first, n = append(first, b.First), append(n, b.Requests)
		if b.Loss.Tokens() != b.PromptTokens {
			t.Errorf("bucket %+v", b)
		}
	}
	if !slices.Equal(first, []int64{0, 3, 6}) || !slices.Equal(n, []int64{3, 3, 3}) || res.Over[1].At != 4 {
		t.Errorf("buckets %+v", res.Over)
	}
	want := []string{
		"Requests run one after the other in the trace's order: none holds room while another runs.",
		"Without a vocabulary, loss at boundaries is counted as new content.",
		"Requests left out: 1. The trace does not tell their prompt, or in a form that needs a tokenizer or a chat template.",
	}
	if !slices.Equal(res.Notes, want) {
		t.Errorf("notes %q", res.Notes)
	}
}

// Each kind of cache, without a limit: nothing is lost to capacity, and to rules
// no more than the engine's allow.
func TestLossOfEngines(t *testing.T) {
	engines := []struct {
		name string
		make func() (prefixcache.Cache, error)
		most int64 // lost to rounding by one request; -1: anything
	}{
		{"vllm", paged(16, 0), 16},
		{"sglang", func() (prefixcache.Cache, error) { return prefixcache.NewRadix(prefixcache.RadixOptions{}) }, 1},
		{"sglang, pages", func() (prefixcache.Cache, error) { return prefixcache.NewRadix(prefixcache.RadixOptions{PageSize: 4}) }, 4},
		// Nothing of outputs is kept.
		{"tgi", func() (prefixcache.Cache, error) { return prefixcache.NewTGI(prefixcache.TGIOptions{}) }, -1},
		// A slot holds one conversation.
		{"llama.cpp", func() (prefixcache.Cache, error) { return prefixcache.NewSlots(prefixcache.SlotsOptions{}) }, -1},
	}
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			for seed := range uint64(20) {
				reqs := conversations(rand.New(rand.NewPCG(seed, 11)), 60)
				for i := range reqs {
					reqs[i].Keys = prefixcache.Keys{} // not every engine knows all of them
				}
				_, err := Run(t.Context(), &reqs, Options{
					NewCache: e.make, NewUnlimited: e.make, Vocab: toyVocab(t),
					OnRecord: func(r *Record) error {
						l := r.Loss
						if l.Capacity != 0 || l.Routing != 0 || e.most >= 0 && l.Rounding > e.most || l.Tokens() != int64(r.PromptTokens) {
							t.Errorf("seed %d, request %d: %+v of %d tokens", seed, r.Index, l, r.PromptTokens)
						}
						return nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
