package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unfray/unfray/internal/deps/corpus"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// printGoroutines encodes a corpus in requests of 4 KiB by many goroutines that share a tokenizer.
func printGoroutines(w io.Writer, e *environment) error {
	fmt.Fprintf(w, "### One tokenizer, many goroutines\n\nThe go corpus with o200k_base in requests of 4 KiB, caches warm, on all %d CPUs. Waiting is what all goroutines together waited for locks, by runtime/metrics.\n\n", runtime.NumCPU())
	fmt.Fprint(w, "| goroutines | MB/s | to one | waiting |\n|---:|---:|---:|---:|\n")
	tok, err := tokenizer.Open(e.vocabPath("o200k_base.tiktoken"))
	if err != nil {
		return err
	}
	var requests [][]byte
	for _, c := range corpus.Chunks(e.texts["go"]) {
		requests = append(requests, c)
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
	defer runtime.GOMAXPROCS(1)
	encodeAll(tok, requests, 16)
	var one float64
	for _, n := range []int{1, 2, 4, 16} {
		var took []time.Duration
		before := lockWait()
		for range *rounds {
			took = append(took, timed(func() { encodeAll(tok, requests, n) }))
		}
		waited := lockWait() - before
		rate := perSecond(len(e.texts["go"]), median(took))
		if n == 1 {
			one = rate
		}
		fmt.Fprintf(w, "| %d | %.0f | %.2f | %v |\n", n, rate, rate/one, waited.Round(10*time.Microsecond))
	}
	return nil
}

func encodeAll(tok *tokenizer.Tokenizer, requests [][]byte, goroutines int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var ids []vocab.ID
			for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
				ids = tok.Encode(ids[:0], requests[i])
			}
		})
	}
	wg.Wait()
}

// lockWait is the time that all goroutines have waited for sync.Mutex, sync.RWMutex and runtime locks.
func lockWait() time.Duration {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return seconds(sample[0].Value.Float64())
}
