package trace_test

import (
	"fmt"
	"strings"

	"github.com/unfray/unfray/prefixcache/trace"
)

func ExampleReader() {
	const log = `{"timestamp": 0, "input_length": 700, "output_length": 20, "hash_ids": [1, 2]}
{"timestamp": 250, "input_length": "many", "output_length": 20, "hash_ids": [1, 3]}
{"timestamp": 900, "input_length": 600, "output_length": 8, "hash_ids": [1, 4]}
`
	r, err := trace.NewReader(strings.NewReader(log), "trace.jsonl", trace.Options{SkipBad: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for q, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(q.Line, q.At, q.PromptTokens, "tokens in blocks", q.Blocks)
	}
	s := r.Stats()
	fmt.Println(s.Bad(), "skipped:", s.Errors[0])
	// Output:
	// 1 0s 700 tokens in blocks [1 2]
	// 3 900ms 600 tokens in blocks [1 4]
	// 1 skipped: trace.jsonl:2:36: input_length: want a whole number of tokens, got a string
}
