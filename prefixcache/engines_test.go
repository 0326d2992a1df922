package prefixcache

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/unfray/unfray/internal/servertest"
	"github.com/unfray/unfray/vocab"
)

// An exchange is a recording of testdata/conversations.py's steps with an engine.
type exchange struct {
	Name   string
	Engine string

	// vLLM
	Block, Blocks int

	// llama.cpp
	Settings struct {
		Slots       int   `json:"n_parallel"`
		Context     int   `json:"n_ctx"`
		Unified     bool  `json:"kv_unified"`
		RAM         *int  `json:"cache_ram_mib"`
		CopyIdle    *bool `json:"cache_idle_slots"`
		Reuse       int   `json:"n_cache_reuse"`
		Checkpoints int   `json:"n_ctx_checkpoints"`
	}
	Window bool

	steps []exchangeStep
}

// An exchangeStep is a request of an exchange and what the engine told.
type exchangeStep struct {
	Base, Keep int
	Cut        [2]int // start and length of what is left out of that
	New        []vocab.ID
	Max        int
	EOS        bool
	Salt       string
	Bypass     bool
	Slot       int
	Beside     bool // begins while the step before it runs, and ends before that
	Late       bool // ends after it

	Output []vocab.ID
	Prompt int // tokens
	Cached int
	At     int // llama.cpp's slot
}

func readExchange(t testing.TB, path string) *exchange {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	x := &exchange{}
	if err := d.Decode(x); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for {
		var s exchangeStep
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return x
		} else if err != nil {
			t.Fatalf("%s: step %d: %v", path, len(x.steps), err)
		}
		x.steps = append(x.steps, s)
	}
}

// prompt returns the prompt of step i, made of the prompts and outputs of the steps before.
func (x *exchange) prompt(prompts [][]vocab.ID, i int) []vocab.ID {
	s := &x.steps[i]
	var p []vocab.ID
	if s.Base >= 0 {
		p = slices.Concat(prompts[s.Base], x.steps[s.Base].Output)
		p = p[:min(s.Keep, len(p))]
		from := min(s.Cut[0], len(p))
		p = slices.Delete(p, from, min(from+s.Cut[1], len(p)))
	}
	return append(p, s.New...)
}

// replay sends the steps to a simulator, in the order of the recording, and reports where it tells other than the engine.
// It returns how many tokens the engine had cached, and of how many steps the simulator told otherwise.
func (x *exchange) replay(t *testing.T, c Cache, slots bool) (hits, differ int) {
	t.Helper()
	var prompts [][]vocab.ID
	begin := func(i int) (Lease, error) {
		s := &x.steps[i]
		if len(prompts[i]) != s.Prompt {
			t.Fatalf("step %d: a prompt of %d tokens, recorded are %d", i, len(prompts[i]), s.Prompt)
		}
		l, err := c.Begin(&Request{Prompt: prompts[i], Keys: Keys{Salt: s.Salt}, Bypass: s.Bypass, Slot: s.Slot})
		if err != nil {
			return l, err
		}
		if l.Cached != s.Cached || slots && l.Slot != s.At+1 {
			differ++
			t.Errorf("step %d of %d tokens: %d cached in slot %d, %s says %d in slot %d", i, s.Prompt, l.Cached, l.Slot-1, x.Engine, s.Cached, s.At)
		}
		hits += s.Cached
		return l, nil
	}
	type run struct {
		lease Lease
		step  int
	}
	var running []run
	for i := range x.steps {
		prompts = append(prompts, x.prompt(prompts, i))
		l, err := begin(i)
		if errors.Is(err, ErrNoRoom) && len(running) > 0 { // the engine made it wait for the step before
			c.End(running[0].lease, x.steps[running[0].step].Output)
			running = running[:0]
			l, err = begin(i)
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		running = append(running, run{l, i})
		if i+1 < len(x.steps) && x.steps[i+1].Beside {
			continue
		}
		if !x.steps[i].Late {
			slices.Reverse(running)
		}
		for _, r := range running {
			c.End(r.lease, x.steps[r.step].Output)
		}
		running = running[:0]
	}
	return hits, differ
}

// slotsOptions are the options of the server that made a recording.
func (x *exchange) slotsOptions() SlotsOptions {
	s := &x.Settings
	o := SlotsOptions{Slots: s.Slots, Context: s.Context / s.Slots, Unified: s.Unified, CacheReuse: s.Reuse, Checkpoints: s.Checkpoints}
	if s.Unified {
		o.Context = s.Context
	}
	if s.RAM != nil {
		o.CacheRAM = cmp.Or(int64(*s.RAM)<<20, CacheRAMOff)
	}
	o.KeepIdle = s.CopyIdle != nil && !*s.CopyIdle
	// SmolLM2-135M: 30 layers of 3 heads of 64 numbers, and 12 bytes that say where the token stands
	o.TokenBytes = 30*3*64*2*2 + 12
	if x.Window {
		o.Window = 512
		// gemma-3-270m: 18 layers of a head of 256 numbers, every sixth looks at all tokens
		o.TokenBytes = 3*256*2*2 + 12
		o.WindowTokenBytes = 15*256*2*2 + 12
	}
	return o
}

// What llama.cpp's server b11549 told of each request; testdata/llamacpp/record.py.
func TestSlotsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/llamacpp/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			x := readExchange(t, file)
			c, err := NewSlots(x.slotsOptions())
			if err != nil {
				t.Fatal(err)
			}
			hits, differ := x.replay(t, c, true)
			t.Logf("%d steps, %d differ, %d tokens cached; %+v", len(x.steps), differ, hits, c.Stats())
		})
	}
}

// What vLLM 0.32.0 told of each request; testdata/vllm-server/record.py.
func TestPagedServerRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/vllm-server/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			x := readExchange(t, file)
			c, err := NewPaged(PagedOptions{BlockSize: x.Block, Blocks: x.Blocks})
			if err != nil {
				t.Fatal(err)
			}
			hits, differ := x.replay(t, c, false)
			t.Logf("%d steps, %d differ, %d tokens cached; %+v", len(x.steps), differ, hits, c.Stats())
		})
	}
}

// An asker sends a prompt to an engine and returns the output, the tokens cached and the slot. If first is not nil it is
// called once the engine has generated a token.
type asker func(s *exchangeStep, prompt []vocab.ID, first func()) (output []vocab.ID, cached, at int, err error)

// send posts JSON. The caller closes the answer's body.
func send(url string, body map[string]any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(text))
	if err == nil && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", resp.Status, text)
	}
	return resp, err
}

// rerun sends the first count steps of a recording to a running engine and puts what it answers in their place.
func (x *exchange) rerun(t *testing.T, count int, ask asker) {
	t.Helper()
	x.steps = x.steps[:count]
	var prompts [][]vocab.ID
	send := func(i int, first func()) error {
		s := &x.steps[i]
		s.Prompt = len(prompts[i])
		var err error
		if s.Output, s.Cached, s.At, err = ask(s, prompts[i], first); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		return nil
	}
	for i := 0; i < len(x.steps); i++ {
		prompts = append(prompts, x.prompt(prompts, i))
		if i+1 == len(x.steps) || !x.steps[i+1].Beside {
			if err := send(i, nil); err != nil {
				t.Fatal(err)
			}
			continue
		}
		prompts = append(prompts, x.prompt(prompts, i+1))
		begun, done := make(chan bool, 1), make(chan error, 1)
		go func() { done <- send(i, func() { begun <- true }) }() // it ends with the request, which is awaited below
		<-begun
		guest := &x.steps[i+1]
		guest.Beside = len(done) == 0 // else it comes after its host
		err := send(i+1, nil)
		guest.Late = len(done) > 0
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		i++
	}
}

// The simulator tells the same as a running llama.cpp server.
func TestConformanceSlots(t *testing.T) {
	for _, name := range []string{"slots", "unified"} {
		t.Run(name, func(t *testing.T) {
			x := readExchange(t, filepath.Join("testdata", "llamacpp", name+".jsonl"))
			s := servertest.Llama(t, servertest.LlamaOptions{Slots: x.Settings.Slots, Context: x.Settings.Context / x.Settings.Slots, Threads: 1,
				Settings: map[string]any{"kv_unified": x.Settings.Unified}})
			x.rerun(t, 30, askLlama(s.URL))
			c, err := NewSlots(x.slotsOptions())
			if err != nil {
				t.Fatal(err)
			}
			hits, differ := x.replay(t, c, true)
			t.Logf("%d steps, %d differ, %d tokens cached", len(x.steps), differ, hits)
		})
	}
}

func askLlama(url string) asker {
	return func(s *exchangeStep, prompt []vocab.ID, first func()) ([]vocab.ID, int, int, error) {
		var answer struct {
			Tokens  []vocab.ID
			Slot    int `json:"id_slot"`
			Timings struct {
				Cached int `json:"cache_n"`
			}
		}
		if first != nil {
			done, polled := make(chan bool), make(chan bool)
			defer func() { close(done); <-polled }()
			go func() {
				defer close(polled)
				awaitLlama(url, done)
				first()
			}()
		}
		resp, err := send(url+"/completion", map[string]any{
			"prompt": prompt, "n_predict": s.Max, "temperature": 0, "ignore_eos": !s.EOS, "return_tokens": true,
			"cache_prompt": !s.Bypass, "id_slot": s.Slot - 1,
		})
		if err != nil {
			return nil, 0, 0, err
		}
		defer resp.Body.Close()
		err = json.NewDecoder(resp.Body).Decode(&answer)
		return answer.Tokens, answer.Timings.Cached, answer.Slot, err
	}
}

// awaitLlama waits until a slot has generated a token, or done is closed.
func awaitLlama(url string, done <-chan bool) {
	for {
		select {
		case <-done:
			return
		case <-time.After(2 * time.Millisecond):
		}
		resp, err := http.Get(url + "/slots")
		if err != nil {
			continue // the request itself tells what is wrong
		}
		var slots []struct {
			Busy bool `json:"is_processing"`
			Next []struct {
				Decoded int `json:"n_decoded"`
			} `json:"next_token"`
		}
		err = json.NewDecoder(resp.Body).Decode(&slots)
		resp.Body.Close()
		for _, slot := range slots {
			if err == nil && slot.Busy && len(slot.Next) > 0 && slot.Next[0].Decoded > 0 {
				return
			}
		}
	}
}

// The simulator tells the same as a running vLLM. It takes the server's blocks from its metrics.
func TestConformancePagedVLLM(t *testing.T) {
	s := servertest.VLLM(t)
	x := readExchange(t, filepath.Join("testdata", "vllm-server", "roomy.jsonl"))
	resp, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	label := func(name string) int {
		m := regexp.MustCompile(`vllm:cache_config_info{[^}]*[{,]` + name + `="(\d+)"`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("the metrics tell no %s", name)
		}
		n, _ := strconv.Atoi(string(m[1])) // digits
		return n
	}
	x.rerun(t, 40, askVLLM(s))
	c, err := NewPaged(PagedOptions{BlockSize: label("block_size"), Blocks: label("num_gpu_blocks")})
	if err != nil {
		t.Fatal(err)
	}
	hits, differ := x.replay(t, c, false)
	t.Logf("%d steps, %d differ, %d tokens cached", len(x.steps), differ, hits)
}

func askVLLM(server *servertest.Server) asker {
	return func(s *exchangeStep, prompt []vocab.ID, first func()) (output []vocab.ID, cached, at int, err error) {
		body := map[string]any{
			"model": server.Model, "prompt": prompt, "max_tokens": s.Max, "temperature": 0, "ignore_eos": !s.EOS,
			"return_token_ids": true, "stream": true, "stream_options": map[string]any{"include_usage": true},
		}
		if s.Salt != "" {
			body["cache_salt"] = s.Salt
		}
		resp, err := send(server.URL+"/v1/completions", body)
		if err != nil {
			return nil, 0, 0, err
		}
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: {"))
			if !ok {
				continue
			}
			var answer struct {
				Choices []struct {
					IDs []vocab.ID `json:"token_ids"`
				}
				Usage struct {
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				}
			}
			if err := json.Unmarshal(append([]byte("{"), text...), &answer); err != nil {
				return nil, 0, 0, err
			}
			for _, c := range answer.Choices {
				output = append(output, c.IDs...)
			}
			if first != nil && len(output) > 0 {
				first()
				first = nil
			}
			cached = max(cached, answer.Usage.Details.Cached)
		}
		return output, cached, 0, nil
	}
}
