package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// keystrokeVocabs are the vocabularies of the table: names and files.
var keystrokeVocabs = [][2]string{
	{"Llama 3", "llama3/tokenizer.json"},
	{"o200k", "o200k_base.tiktoken"},
	{"Qwen 3", "qwen3/tokenizer.json"},
	{"DeepSeek V3", "deepseek_v3/tokenizer.json"},
	{"Gemma 3", "gemma3/tokenizer.json"},
}

// keystrokeBlocks are the block sizes of the table, in tokens.
var keystrokeBlocks = []int{1, 16, 64, 128, 528}

// systemPrompts is how many lengths of a system prompt are tried for each
// keystroke.
const systemPrompts = 50

// keystrokes are what typing did to prompts.
type keystrokes struct {
	rng      *rand.Rand
	n        int
	by       [5]int // keystrokes by tokens lost, the last: that many or more
	sum, max int
	blocks   []int // tokens lost, by block size, behind all system prompts
	computed int64 // tokens of the longer prompts that a cache of single tokens did not have
}

func printKeystrokes(w io.Writer, folder string) error {
	vocabs := os.Getenv("UNFRAY_TEST_VOCABS")
	if vocabs == "" {
		return errors.New("UNFRAY_TEST_VOCABS is not set: `go run ./internal/deps/fetch -no-engine -vocabs -env` fetches vocabularies and prints it")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "keystrokes-*.jsonl.gz"))
	if err != nil || len(paths) == 0 {
		return errors.Join(err, fmt.Errorf("no keystrokes-*.jsonl.gz in %s", folder))
	}
	fmt.Fprintln(w, "A prompt that grows by one typed character after another: how many of its last tokens r the next character changes, so that what a cache holds of them is of no use; what caches with blocks lose by it, in tokens a keystroke, behind system prompts of random lengths; and how many tokens of the longer prompt an engine computes that keeps single tokens of every prompt (`cache replay`, SGLang without a limit). It cannot be fewer than one, so most of what is lost costs nothing: its text is made part of a token that is new anyway.")
	fmt.Fprint(w, "\n| keystrokes | vocabulary | n | r = 0 | 1 | 2 | 3 | 4+ | most | mean r |")
	for _, b := range keystrokeBlocks {
		fmt.Fprintf(w, " blocks of %d |", b)
	}
	fmt.Fprintf(w, " computed |\n|---|---|%s\n", strings.Repeat("---:|", 9+len(keystrokeBlocks)))
	for _, path := range paths {
		for _, v := range keystrokeVocabs {
			t, err := tokenizer.Open(filepath.Join(vocabs, filepath.FromSlash(v[1])))
			if err != nil {
				return err
			}
			k, err := typed(path, t)
			if err != nil {
				return err
			}
			share := func(n int) float64 { return 100 * float64(n) / float64(k.n) }
			fmt.Fprintf(w, "| %s | %s | %d |", strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "keystrokes-"), ".jsonl.gz"), v[0], k.n)
			for _, n := range k.by {
				fmt.Fprintf(w, " %.1f %% |", share(n))
			}
			fmt.Fprintf(w, " %d | %.2f |", k.max, float64(k.sum)/float64(k.n))
			for _, n := range k.blocks {
				fmt.Fprintf(w, " %.2f |", float64(n)/float64(k.n*systemPrompts))
			}
			fmt.Fprintf(w, " %.2f |\n", float64(k.computed)/float64(k.n))
		}
	}
	return nil
}

// typed replays the keystrokes of a file.
func typed(path string, t *tokenizer.Tokenizer) (*keystrokes, error) {
	k := &keystrokes{rng: rand.New(rand.NewPCG(1, 1)), blocks: make([]int, len(keystrokeBlocks))}
	prompts, err := k.read(path, t)
	if err != nil {
		return nil, err
	}
	first := map[string]bool{}
	_, err = replay.Run(context.Background(), prompts, replay.Options{
		NewCache: func() (prefixcache.Cache, error) { return prefixcache.NewRadix(prefixcache.RadixOptions{}) },
		OnRecord: func(r *replay.Record) error {
			if salt := r.Request.Keys.Salt; first[salt] {
				k.computed += int64(r.PromptTokens - r.Cached)
			} else {
				first[salt] = true
			}
			return nil
		},
	})
	return k, err
}

// read makes a prompt for each character typed, those of each place with keys of
// their own, and counts what each does to the prompt before it.
func (k *keystrokes) read(path string, t *tokenizer.Tokenizer) (*held, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	prompts := &held{}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var place struct{ ID, Prefix, Next string }
		if err := json.Unmarshal(lines.Bytes(), &place); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var last []vocab.ID
		for end := range place.Next + "." {
			ids := t.Encode(nil, []byte(place.Prefix+place.Next[:end]))
			if end > 0 {
				k.count(last, ids)
			}
			last = ids
			prompts.requests = append(prompts.requests, trace.Request{IDs: ids, Keys: prefixcache.Keys{Salt: place.ID}, PromptTokens: -1, OutputTokens: -1, Cached: -1})
		}
	}
	return prompts, lines.Err()
}

func (k *keystrokes) count(last, ids []vocab.ID) {
	same := 0
	for same < min(len(last), len(ids)) && last[same] == ids[same] {
		same++
	}
	r := len(last) - same
	k.n++
	k.by[min(r, len(k.by)-1)]++
	k.sum += r
	k.max = max(k.max, r)
	for range systemPrompts {
		n := k.rng.IntN(1 << 20)
		for i, b := range keystrokeBlocks {
			k.blocks[i] += ((n+len(last))/b - (n+same)/b) * b
		}
	}
}
