package audit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// growing are the requests of conversations that grow, branch, and change a token
// now and then.
func growing(rng *rand.Rand, n, tokens int) []Prompt {
	random := func(n int) []vocab.ID {
		ids := make([]vocab.ID, n)
		for i := range ids {
			ids[i] = vocab.ID(rng.IntN(tokens))
		}
		return ids
	}
	var list []Prompt
	for range n {
		ids := random(1 + rng.IntN(40))
		if len(list) > 0 {
			p := &list[rng.IntN(len(list))]
			whole := slices.Concat(p.IDs, p.OutputIDs)
			ids = slices.Concat(whole[:rng.IntN(len(whole)+1)], ids)
			if rng.IntN(3) == 0 {
				ids = slices.Concat(whole, ids[len(ids)/2:])
			}
		}
		list = append(list, Prompt{IDs: ids, OutputIDs: random(rng.IntN(3) * rng.IntN(30)), Keys: prefixcache.Keys{Salt: []string{"", "x"}[rng.IntN(8)/7]}})
	}
	return list
}

// An audit's ideal cache reuses what the simulators of SGLang and vLLM find, which
// are checked against those engines, where these have room for everything.
func TestAsSimulators(t *testing.T) {
	tok := toys(t)[0]
	rng := rand.New(rand.NewPCG(9, 10))
	const block = 4
	for range 60 {
		prompts := growing(rng, 30, 1+rng.IntN(40))
		rep, err := Audit(prompts, Options{Tokenizer: tok, BlockSizes: []int{block}, NoSuggestions: true})
		if err != nil {
			t.Fatal(err)
		}
		radix, err := prefixcache.NewRadix(prefixcache.RadixOptions{})
		if err != nil {
			t.Fatal(err)
		}
		paged, err := prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: block})
		if err != nil {
			t.Fatal(err)
		}
		for i := range prompts {
			q := &rep.Requests[i]
			if got := admit(t, radix, &prompts[i]); got != q.ReusedTokens {
				t.Fatalf("prompt %d: %d tokens reused, the radix tree has %d", i, q.ReusedTokens, got)
			}
			if got := admit(t, paged, &prompts[i]); got != q.ReusedTokens/block*block {
				t.Fatalf("prompt %d: %d tokens reused, blocks have %d", i, q.ReusedTokens, got)
			}
		}
	}
}

func admit(t *testing.T, c prefixcache.Cache, p *Prompt) int {
	t.Helper()
	l, err := c.Begin(&prefixcache.Request{Prompt: p.IDs, Keys: p.Keys})
	if err != nil {
		t.Fatal(err)
	}
	c.End(l, p.OutputIDs)
	return l.Cached
}
