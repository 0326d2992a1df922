package replay_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/prefixcache/trace"
)

const requestLog = `{"timestamp": 0, "input_length": 1200, "output_length": 10, "hash_ids": [1, 2, 3]}
{"timestamp": 500, "input_length": 1700, "output_length": 10, "hash_ids": [1, 2, 4, 5]}
{"timestamp": 900, "input_length": 1100, "output_length": 10, "hash_ids": [6, 7, 8]}
{"timestamp": 1700, "input_length": 1300, "output_length": 10, "hash_ids": [1, 2, 9]}
`

// What a log of block hashes would have found in a vLLM engine with room for four
// blocks, and to what it lost the rest.
func ExampleRun() {
	src, err := trace.NewReader(strings.NewReader(requestLog), "log.jsonl", trace.Options{Format: "mooncake"})
	if err != nil {
		log.Fatal(err)
	}
	vllm := func(blocks int) func() (prefixcache.Cache, error) {
		return func() (prefixcache.Cache, error) {
			return prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: 512, Blocks: blocks})
		}
	}
	res, err := replay.Run(context.Background(), src, replay.Options{
		NewCache:     vllm(4 + 1), // one block of vLLM's is never used
		NewUnlimited: vllm(0),
	})
	if err != nil {
		log.Fatal(err)
	}
	l := res.Loss
	fmt.Printf("%d tokens: %d hit; lost to capacity %d, to rounding %d; new %d\n", res.PromptTokens, l.Hit, l.Capacity, l.Rounding, l.Content)
	// Output: 5300 tokens: 1536 hit; lost to capacity 512, to rounding 0; new 3252
}

// The hit rates of a log by capacity and policy, in one reading.
func ExampleSweep() {
	src, err := trace.NewReader(strings.NewReader(requestLog), "log.jsonl", trace.Options{Format: "mooncake"})
	if err != nil {
		log.Fatal(err)
	}
	res, err := replay.Sweep(context.Background(), src, replay.SweepOptions{Capacities: []int{4, 8}})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range res.Points {
		fmt.Printf("%d blocks, %s: %.1f %%\n", p.Blocks, p.Policy, 100*p.HitRate)
	}
	fmt.Printf("without limit: %.1f %%\n", 100*res.Ceiling.HitRate)
	// Output:
	// 4 blocks, fifo: 19.3 %
	// 4 blocks, lru: 29.0 %
	// 4 blocks, optimal: 38.6 %
	// 8 blocks, fifo: 38.6 %
	// 8 blocks, lru: 38.6 %
	// 8 blocks, optimal: 38.6 %
	// without limit: 38.6 %
}
