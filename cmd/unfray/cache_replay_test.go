package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// traceFile writes a trace, and hides the model that a developer may have.
func traceFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNFRAY_MODEL", filepath.Join(t.TempDir(), "none.gguf"))
	return path
}

// idsLine is a prompt of runs of equal tokens: token, length, token, length, …
func idsLine(runs ...int) string {
	var ids []int
	for i := 0; i < len(runs); i += 2 {
		ids = append(ids, slices.Repeat([]int{runs[i]}, runs[i+1])...)
	}
	text, _ := json.Marshal(map[string]any{"prompt": ids}) // numbers are always written
	return string(text)
}

// hashLine is a prompt of block hashes.
func hashLine(at int, hashes ...int) string {
	text, _ := json.Marshal(map[string]any{"timestamp": at, "input_length": 512 * len(hashes), "output_length": 1, "hash_ids": hashes})
	return string(text)
}

// results runs cache replay --json and gives the objects by name of the cache.
func replayResults(t *testing.T, args ...string) (map[string][]map[string]any, string) {
	t.Helper()
	out, errs := runCache(t, append([]string{"replay", "--json"}, args...)...)
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		var one map[string]any
		if err := json.Unmarshal([]byte(out), &one); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		list = append(list, one)
	}
	byName := map[string][]map[string]any{}
	for _, r := range list {
		name, _ := r["policy"].(string)
		byName[name] = append(byName[name], r)
	}
	return byName, errs
}

// TestReplayCacheRAM: what llama.cpp's server gave with one slot and --cache-ram 0 for A, B, A, half of A and B, A, and
// what overwrites a slot is lost for lack of room.
func TestReplayCacheRAM(t *testing.T) {
	path := traceFile(t, idsLine(1, 64), idsLine(2, 64), idsLine(1, 64), idsLine(1, 32, 2, 64), idsLine(1, 64))
	for _, flags := range [][]string{nil, {"--capacity", "128"}} {
		got, _ := replayResults(t, append([]string{"--engine", "llamacpp", "--slots", "1", "--cache-ram", "0", path}, flags...)...)
		r := got["llamacpp"][0]
		loss := r["loss"].(map[string]any)
		if r["hit_tokens"] != 64.0 || loss["capacity"] != 94.0 || loss["rounding"] != 2.0 {
			t.Errorf("%v: %v", flags, r)
		}
	}
	got, _ := replayResults(t, "--engine", "llamacpp", "--slots", "1", path)
	if r := got["llamacpp"][0]; r["hit_tokens"] != 127.0 {
		t.Errorf("with prompts in RAM: %v", r)
	}
}

// TestUnlimitedSlots: a cache without limit finds all that slots find.
func TestUnlimitedSlots(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := simulation{engine: engineLlamaCpp, slots: 1 + rng.IntN(3), capacity: rng.IntN(2) * 200, cacheRAM: []int64{prefixcache.CacheRAMOff, prefixcache.CacheRAMUnlimited, 1 << 20}[rng.IntN(3)]}
		limited, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
		unlimited, err := s.unlimited()
		if err != nil {
			t.Fatal(err)
		}
		var known [][]vocab.ID
		for range 40 {
			var prompt []vocab.ID
			if len(known) > 0 {
				old := known[rng.IntN(len(known))]
				prompt = slices.Clone(old[:rng.IntN(len(old)+1)])
			}
			for range 1 + rng.IntN(20) {
				prompt = append(prompt, vocab.ID(rng.IntN(3)))
			}
			prompt = prompt[:min(len(prompt), 40)]
			q := &prefixcache.Request{Prompt: prompt, Keys: prefixcache.Keys{Salt: []string{"", "a"}[rng.IntN(2)]}}
			output := make([]vocab.ID, rng.IntN(4))
			a, err := limited.Begin(q)
			if err != nil {
				t.Fatal(err)
			}
			b, err := unlimited.Begin(q)
			if err != nil {
				t.Fatal(err)
			}
			if a.Cached > b.Cached {
				t.Fatalf("seed %d: %+v finds %d of %v, without limit %d", seed, s, a.Cached, prompt, b.Cached)
			}
			limited.End(a, output)
			unlimited.End(b, output)
			known = append(known, slices.Concat(prompt, output))
		}
	}
}

// TestReplayOtherEngines keeps the results of engines that can take a trace, and says why others cannot.
func TestReplayOtherEngines(t *testing.T) {
	hashes := traceFile(t, hashLine(0, 1, 2), hashLine(1, 1, 2), hashLine(2, 1, 3))
	got, errs := replayResults(t, "--engine", "llamacpp,vllm,trie", "--policy", "lru", "--capacity", "1k,10k", "--workers", "1,2", hashes)
	if r := got["llamacpp"]; len(r) != 1 || !strings.Contains(fmt.Sprint(r[0]["error"]), "--engine llamacpp takes tokens") {
		t.Errorf("llamacpp: %v", r)
	}
	if len(got["vllm block 512"]) != 4 || len(got["trie lru block 512"]) != 2 || strings.Count(errs, "llamacpp is left out") != 1 {
		t.Errorf("%v\n%s", got, errs)
	}
	if r := got["vllm block 512"]; r[0]["worker_count"] != 1.0 || r[1]["worker_count"] != 2.0 || r[1]["workers"] == nil {
		t.Errorf("workers: %v", r)
	}
	ids := traceFile(t, idsLine(1, 40), idsLine(1, 40))
	got, errs = replayResults(t, "--engine", "vllm,trie", "--capacity", "10,100", ids)
	if r := got["vllm block 16"]; len(r) != 2 || !strings.Contains(fmt.Sprint(r[0]["error"]), "--capacity 10") || r[1]["hit_tokens"] != 32.0 {
		t.Errorf("vllm: %v", r)
	}
	if r := got["trie"]; len(r) != 1 {
		t.Errorf("trie: %v", r)
	}
	if !strings.Contains(errs, "trie is left out: --engine trie takes traces of block hashes") {
		t.Errorf("%s", errs)
	}
	for flags, want := range map[string]string{
		"--groups window:0":                                   "--groups: group 1, its window is 0",
		"--groups mamba,full@32":                              "--groups: group 1: a Mamba group",
		"--engine sglang --prefill-chunk -1":                  "--prefill-chunk",
		"--engine tgi --block-size 16 --capacity 20":          "--capacity 20",
		"--workers 0":                                         "--workers",
		"--cache-threshold 1.5":                               "--cache-threshold",
		"--price 1,2,3":                                       "--price",
		"--balance-abs-threshold -1":                          "--balance-abs-threshold",
		"--engine sglang --eagle --capacity 1 --block-size 2": "--capacity 1",
	} {
		var out, errs bytes.Buffer
		args := append([]string{"cache", "replay", ids}, strings.Fields(flags)...)
		status := run(t.Context(), args, strings.NewReader(""), &out, &errs)
		if status != exitUsage || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "Options") {
			t.Errorf("%s: status %d, %s", flags, status, errs.String())
		}
	}
}

// TestReplayLeftOut shows how many requests a hit rate is not of, and draws no line through such rates.
func TestReplayLeftOut(t *testing.T) {
	path := traceFile(t, idsLine(1, 40), idsLine(2, 400), idsLine(1, 40), idsLine(2, 400))
	html := filepath.Join(t.TempDir(), "page.html")
	out, errs := runCache(t, "replay", "--capacity", "32,64,1k,2k", "--html", html, "--price", "3000,300", "--currency", "USD", path)
	var rows [][]string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Fields(line))
	}
	if !strings.Contains(out, "left out") || !strings.Contains(out, "1.52 USD") || !slices.Contains(rows[1], "4") || !slices.Contains(rows[1], "-") || slices.Contains(rows[1], "0.0") {
		t.Errorf("a cache that nothing fits in:\n%s", out)
	}
	if !strings.Contains(errs, "With a capacity of 32, 64 some prompts are larger") {
		t.Errorf("%s", errs)
	}
	page, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"How it was replayed", "--capacity=32,64,1000,2000", "--price=3000,300", "vllm block 16: blocks of 16 tokens", "price of a million input tokens: 3000 USD; of a million cached ones: 300", "some prompts are larger", "hit rate"} {
		if !strings.Contains(strings.ToLower(string(page)), strings.ToLower(want)) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if n := strings.Count(string(page), " at 64</title>") + strings.Count(string(page), " at 32</title>"); n != 0 {
		t.Errorf("%d points of caches that left requests out are drawn", n)
	}
}

// TestReplayIdleFlags names flags that change nothing.
func TestReplayIdleFlags(t *testing.T) {
	ids, hashes := traceFile(t, idsLine(1, 40), idsLine(1, 40)), traceFile(t, hashLine(0, 1, 2), hashLine(1, 1, 2))
	for _, tt := range []struct {
		flags, trace string
		want         []string // "": none
	}{
		{"--engine vllm --block-size 32", ids, nil},
		{"--engine vllm --slots 2 --policy lfu --max-new-tokens 5 --cache-ram 3 --kv-unified", ids, []string{"--slots", "--policy lfu", "--max-new-tokens", "--cache-ram", "--kv-unified"}},
		{"--engine sglang --groups full --policy fifo", ids, []string{"--groups"}},
		{"--engine llamacpp --block-size 3 --prefill-chunk 16 --eagle", ids, []string{"--block-size", "--prefill-chunk", "--eagle"}},
		{"--block-size 16,256", hashes, []string{"--block-size"}},
		{"--engine trie --workers 3 --warmup 0.5 --policy lru", hashes, []string{"--workers", "--warmup"}},
		{"--routing random --currency EUR --trace-block 16", ids, []string{"--routing", "--currency", "--trace-block"}},
		{"--routing random --workers 2 --cache-threshold 0.5", ids, []string{"--cache-threshold"}},
		{"--workers 2 --seed 4", ids, []string{"--seed"}},
	} {
		_, errs := runCache(t, append([]string{"replay", tt.trace}, strings.Fields(tt.flags)...)...)
		for _, w := range tt.want {
			if !strings.Contains(errs, w+" has no effect") {
				t.Errorf("%s: nothing is said of %s:\n%s", tt.flags, w, errs)
			}
		}
		if n := strings.Count(errs, "has no effect"); n != len(tt.want) {
			t.Errorf("%s: %d flags have no effect:\n%s", tt.flags, n, errs)
		}
	}
	if _, errs := runCache(t, "replay", "--engine", "sglang", "--policy", "lru,priority,tlru", ids); !strings.Contains(errs, "sglang priority: traces tell no priorities") || !strings.Contains(errs, "sglang tlru") {
		t.Errorf("%s", errs)
	}
}

// TestReplayClock replays a trace whose clock runs back unless its times are used, and names the flag that sorts it.
func TestReplayClock(t *testing.T) {
	path := traceFile(t, hashLine(900, 1, 2), hashLine(100, 1, 2), hashLine(1000, 1, 3))
	out, errs := runCache(t, "replay", path)
	if !strings.Contains(out, "in 3 requests") || !strings.Contains(errs, "--sort") {
		t.Errorf("%s%s", out, errs)
	}
	if _, errs := runCache(t, "replay", "--sort", "1s", path); strings.Contains(errs, "--sort") {
		t.Errorf("%s", errs)
	}
	timed := []string{"replay", "--prefill-rate", "1000", "--decode-rate", "10", path}
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), append([]string{"cache"}, timed...), strings.NewReader(""), &stdout, &stderr); status == exitOK || !strings.Contains(stderr.String(), "the clock runs back by 800ms") || !strings.Contains(stderr.String(), "--sort 10m") {
		t.Errorf("status %d, %s", status, stderr.String())
	}
	if out, _ := runCache(t, append(timed, "--sort", "1s")...); !strings.Contains(out, "wait") || !strings.Contains(out, "prompt read after") {
		t.Errorf("%s", out)
	}
}

// TestReplayPrice: money for what was computed and what was found.
func TestReplayPrice(t *testing.T) {
	path := traceFile(t, idsLine(1, 40), idsLine(1, 40))
	got, _ := replayResults(t, "--price", "1000000,500000", "--currency", "EUR", path)
	if r := got["vllm block 16"][0]; r["cost"] != 64.0 || r["cost_uncached"] != 80.0 || r["currency"] != "EUR" {
		t.Errorf("%v", r)
	}
	if got, _ := replayResults(t, path); got["vllm block 16"][0]["cost"] != nil {
		t.Errorf("%v", got)
	}
}

// TestSettingsOfNoCache refuses a server that says its cache is off, however it spells that.
func TestSettingsOfNoCache(t *testing.T) {
	path := traceFile(t, idsLine(1, 40))
	for _, off := range []string{"False", "false", "0"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\",enable_prefix_caching=%q} 1\n", off)
		}))
		var out, errs bytes.Buffer
		if status := run(t.Context(), []string{"cache", "replay", "--settings-of", "vllm=" + s.URL, path}, strings.NewReader(""), &out, &errs); status == exitOK || !strings.Contains(errs.String(), "does not cache prefixes") {
			t.Errorf("%s: status %d, %s%s", off, status, out.String(), errs.String())
		}
		s.Close()
	}
}

// TestSettingsNotTold says what a server keeps to itself.
func TestSettingsNotTold(t *testing.T) {
	path := traceFile(t, idsLine(1, 40))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"total_slots":2}`)
	}))
	defer s.Close()
	_, errs := runCache(t, "replay", "--settings-of", "llamacpp="+s.URL, path)
	if !strings.Contains(errs, "does not tell the capacity") || !strings.Contains(errs, "does not tell its --cache-ram: 8192 MiB") {
		t.Errorf("%s", errs)
	}
	if _, errs = runCache(t, "replay", "--settings-of", "llamacpp="+s.URL, "--capacity", "100", "--cache-ram", "5", path); strings.Contains(errs, "the server does not tell") || strings.Contains(errs, "llama.cpp") {
		t.Errorf("%s", errs)
	}
}

// TestWatchOverrides corrects what a server tells of its cache.
func TestWatchOverrides(t *testing.T) {
	for flags, want := range map[string]string{
		"--slots 2":                "--send",
		"--send x --slots 0":       "--slots 0",
		"--send x --cache-ram 0":   "for llamacpp",
		"--send x --block-size 0":  "at least one token",
		"--send x --capacity 1,2":  "one of each",
		"--send x --cache-ram -2":  "--cache-ram -2",
		"--send x --capacity 1":    "--capacity 1",
		"--send x --block-size 4k": "", // a block of that size is simulated; the trace is missing
	} {
		var out, errs bytes.Buffer
		args := append([]string{"cache", "watch", "--upstream", "vllm=" + metricsServer(t)}, strings.Fields(flags)...)
		if status := run(t.Context(), args, strings.NewReader(""), &out, &errs); status == exitOK || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d, %s", flags, status, errs.String())
		}
	}
	e := engineFlags{}
	cmd := newCacheWatch()
	if err := cmd.ParseFlags([]string{"--slots", "3", "--cache-ram", "0", "--capacity", "90"}); err != nil {
		t.Fatal(err)
	}
	e.slots, e.cacheRAM, e.capacities = 3, 0, sizes{90}
	s := simulation{engine: engineLlamaCpp, blockTokens: 1, slots: 1, capacity: 50}
	if err := e.override(cmd.Flags(), &s); err != nil || s.slots != 3 || s.capacity != 90 || s.cacheRAM >= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{"a-b.jsonl": "a-b.jsonl", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := shellWord(s); got != want {
			t.Errorf("%q: %s", s, got)
		}
	}
}
