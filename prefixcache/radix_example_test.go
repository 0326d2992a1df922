package prefixcache_test

import (
	"fmt"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// The second turn of a conversation finds what SGLang computed in the first, the
// answer included. TGI keeps the prompt alone.
func ExampleRadix_twoTurns() {
	radix, err := prefixcache.NewRadix(prefixcache.RadixOptions{})
	if err != nil {
		panic(err)
	}
	tgi, err := prefixcache.NewTGI(prefixcache.TGIOptions{})
	if err != nil {
		panic(err)
	}
	question, answer := []vocab.ID{1, 2, 3, 4}, []vocab.ID{5, 6, 7}
	next := []vocab.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, c := range []prefixcache.Cache{radix, tgi} {
		first, err := c.Begin(&prefixcache.Request{Prompt: question})
		if err != nil {
			panic(err)
		}
		c.End(first, answer)
		second, err := c.Begin(&prefixcache.Request{Prompt: next})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%T: %d of %d tokens\n", c, second.Cached, len(next))
	}
	// Output:
	// *prefixcache.Radix: 6 of 9 tokens
	// *prefixcache.TGI: 4 of 9 tokens
}
