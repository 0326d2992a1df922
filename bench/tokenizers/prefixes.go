package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sort"
	"testing"
	"time"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// printPrefixes measures queries of vocabulary and boundary with o200k_base, each against a plain way or a yardstick.
func printPrefixes(w io.Writer, e *environment) error {
	tok, err := tokenizer.Open(e.vocabPath("o200k_base.tiktoken"))
	if err != nil {
		return err
	}
	fmt.Fprint(w, "### Prefixes and stable prefixes\n\nns a call with o200k_base; medians of the rounds.\n\n| call | ns | allocations | yardstick | ns | yardstick ÷ call |\n|---|---:|---:|---|---:|---:|\n")
	printQueries(w, tok.Vocab())
	printMasks(w, tok.Vocab())
	printStable(w, tok, e.texts["go"], "go")
	printStable(w, tok, e.texts["multi"], "multi")
	return nil
}

// A query is a call, measured at n inputs of which it is handed the number, and the plain way or yardstick that it is
// compared with at the same inputs.
type query struct {
	call      string
	run       func(i int) int
	yardstick string
	compare   func(i int) int
	n         int
}

func (q *query) print(w io.Writer) {
	var own, other []time.Duration
	q.each(q.run)
	for range *rounds {
		own, other = append(own, q.each(q.run)), append(other, q.each(q.compare))
	}
	i := 0
	allocs := testing.AllocsPerRun(100, func() { q.run(i % q.n); i++ })
	fmt.Fprintf(w, "| %s | %d | %.0f | %s | %d | %.2f |\n", q.call, median(own).Nanoseconds(), allocs, q.yardstick, median(other).Nanoseconds(), ratio(other, own))
}

// each returns the mean time of a call. Adding up what the calls return keeps them from being optimized away.
func (q *query) each(call func(i int) int) time.Duration {
	total := 0
	took := timed(func() {
		for i := range q.n {
			total += call(i)
		}
	})
	runtime.KeepAlive(total)
	return took / time.Duration(q.n)
}

// printQueries compares prefix queries with two binary searches over the sorted tokens.
func printQueries(w io.Writer, v *vocab.Vocab) {
	sorted := v.Sorted(v.PrefixRange(nil))
	spelled := make([][]byte, len(sorted))
	for i, id := range sorted {
		spelled[i] = v.Bytes(id)
	}
	prefixes := randomPrefixes(spelled, 100_000)
	q := query{n: len(prefixes)}
	q.call, q.run = "PrefixRange, prefixes of random tokens", func(i int) int { return v.PrefixRange(prefixes[i]).Lo }
	q.yardstick, q.compare = "two sort.Search with bytes.Compare", func(i int) int {
		lo := sort.Search(len(spelled), func(k int) bool { return bytes.Compare(spelled[k], prefixes[i]) >= 0 })
		hi := sort.Search(len(spelled), func(k int) bool {
			return bytes.Compare(spelled[k], prefixes[i]) > 0 && !bytes.HasPrefix(spelled[k], prefixes[i])
		})
		return lo + hi
	}
	q.print(w)
}

// randomPrefixes returns prefixes of all lengths of random tokens.
func randomPrefixes(tokens [][]byte, n int) [][]byte {
	g := rand.New(rand.NewPCG(3, 4))
	prefixes := make([][]byte, n)
	for i := range prefixes {
		token := tokens[g.IntN(len(tokens))]
		prefixes[i] = token[:1+g.IntN(len(token))]
	}
	return prefixes
}

// printMasks compares the mask of a prefix with clearing one.
func printMasks(w io.Writer, v *vocab.Vocab) {
	mask := vocab.NewMask(v.Len())
	for _, prefix := range []string{"", " ", " t", " th", "user", "://", ":"} {
		b := []byte(prefix)
		q := query{n: 2000}
		q.call, q.run = fmt.Sprintf("PrefixMask %q", prefix), func(int) int { v.PrefixMask(mask, b); return len(mask) }
		q.yardstick, q.compare = "clearing the mask", func(int) int { clear(mask); return len(mask) }
		q.print(w)
	}
}

const (
	promptBytes = 1500
	typedBytes  = 16 // of a prompt, that come after the rest was analyzed
	prompts     = 500
)

// printStable compares the analysis of a prompt that has grown by its last bytes with encoding 1,000 bytes of the same
// text. Figures are medians over the prompts, of each prompt the least of the rounds.
func printStable(w io.Writer, tok *tokenizer.Tokenizer, text []byte, name string) {
	g := rand.New(rand.NewPCG(5, 6))
	cuts := make([][]byte, prompts)
	for i := range cuts {
		end := promptBytes + g.IntN(len(text)-promptBytes)
		cuts[i] = text[end-promptBytes : end]
	}
	var ids []vocab.ID
	encode := medianOf(cuts, func(cut []byte) func() {
		return func() { ids = tok.Encode(ids[:0], cut[:1000]) }
	})
	grown := func(analyze func(x *tokenizer.Text)) time.Duration {
		x := tok.NewText(false)
		return medianOf(cuts, func(cut []byte) func() {
			x.Reset()
			x.Append(cut[:promptBytes-typedBytes])
			boundary.Stable(x)
			return func() {
				x.Append(cut[promptBytes-typedBytes:])
				analyze(x)
			}
		})
	}
	row := func(call string, took time.Duration) {
		fmt.Fprintf(w, "| %s, %s | %d | | encoding 1,000 bytes | %d | %.2f |\n", call, name, took.Nanoseconds(), encode.Nanoseconds(), float64(encode)/float64(took))
	}
	row("stable prefix of a grown prompt", grown(func(x *tokenizer.Text) { boundary.Stable(x) }))
	row("the same with branches and reason", grown(func(x *tokenizer.Text) { boundary.AnalyzeText(x) }))
	row("the same with covers counted", grown(func(x *tokenizer.Text) { boundary.AnalyzeText(x).Count() }))
	row("all of it from the whole prompt", medianOf(cuts, func(cut []byte) func() {
		return func() { boundary.Analyze(tok, cut) }
	}))
}

// medianOf gives the median over the prompts of the time of a call, which prepare makes ready anew for each round.
func medianOf(cuts [][]byte, prepare func(cut []byte) func()) time.Duration {
	least := make([]time.Duration, len(cuts))
	for round := range *rounds + 1 {
		for i, cut := range cuts {
			if took := timed(prepare(cut)); round == 1 || round > 1 && took < least[i] {
				least[i] = took
			}
		}
	}
	return median(least)
}
