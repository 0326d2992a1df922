//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// printPlans prints what a gateway with healing on does before it can ask the server: the time to tokenize a prompt and
// to plan its healing, in this process and on one CPU. The prompts are those of the bench, each with a serial number of
// its own.
func printPlans(w io.Writer, tokenizerPath string, texts []string, rounds int) error {
	if tokenizerPath == "" {
		return errors.New("give -tokenizer: a GGUF or a tokenizer.json")
	}
	tok, err := tokenizer.Open(tokenizerPath)
	if err != nil {
		return err
	}
	prompts, err := readPrompts(texts)
	if err != nil {
		return err
	}
	modes := []heal.Mode{heal.Stable, heal.Exact}
	fmt.Fprintf(w, "%v; medians of %d.\n\n| prompt, bytes | tokens | tokenized, µs | planned, `stable`, µs | planned, `exact`, µs |\n|---:|---:|---:|---:|---:|\n", tok, rounds*promptCount/len(promptSizes)*planRepeats)
	n := uint64(0)
	for k, size := range promptSizes {
		var encode []time.Duration
		plans := make([][]time.Duration, len(modes))
		tokens := 0
		for range rounds * planRepeats {
			for i := k; i < len(prompts); i += len(promptSizes) {
				n++
				number := newSerial(n)
				text := []byte(strings.Replace(prompts[i], serialZeros, string(number[:]), 1))
				var ids []vocab.ID
				encode = append(encode, timed(func() { ids = tok.EncodeSpecial(nil, text) }))
				tokens = len(ids)
				for m, mode := range modes {
					plans[m] = append(plans[m], timed(func() {
						p := heal.New(tok, ids, mode)
						if p.Mode == heal.Stable {
							p.NewSession()
						}
					}))
				}
			}
		}
		fmt.Fprintf(w, "| %d | %d | %d | %d | %d |\n", size, tokens, middleOf(encode).Microseconds(), middleOf(plans[0]).Microseconds(), middleOf(plans[1]).Microseconds())
	}
	return nil
}

// planRepeats is how often every prompt is planned in a round.
const planRepeats = 20

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func middleOf(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
