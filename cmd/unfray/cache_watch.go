package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/live"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// watchFlags are those of cache watch.
type watchFlags struct {
	upstream  upstreamFlags
	trace     traceFlags
	engine    engineFlags // what the server does not tell, or wrongly
	events    live.Source
	log       string
	send      string
	interval  time.Duration
	runFor    time.Duration
	maxTokens int
	requests  int
	strict    bool
	begun     bool // the server has told something
	asJSON    bool
}

func newCacheWatch() *cobra.Command {
	var w watchFlags
	cmd := &cobra.Command{
		Use:   "watch --upstream KIND=URL [--events tcp://HOST:PORT] [--log FILE] [--send TRACE]",
		Short: "Predicted and reported hits of a live engine, side by side",
		Long: `Follow the prefix cache of a running vLLM, SGLang or llama.cpp server. A line is
printed for each interval: the tokens of prompts, how many of them the engine says
it found, how full its cache is.

  --events  vLLM and SGLang publish which blocks they store and remove
            (--kv-events-config); with them the blocks that are cached are counted
  --log     the log of "unfray serve" in JSON (log.format json): what was predicted for
            its requests, and what boundaries cost
  --send    sends the prompts of a trace one after another and compares, for each,
            what the simulated cache of the server predicts with what the server
            reports; differences are listed. What the server has cached from before
            the simulation does not know: start it anew. vLLM needs --enable-prompt-tokens-details.
            --slots, --cache-ram, --block-size and --capacity correct what the server
            tells of its cache; llama.cpp does not tell its --cache-ram`,
		Example: `  unfray cache watch --upstream vllm=http://127.0.0.1:8000
  unfray cache watch --upstream vllm=http://127.0.0.1:8000 --events tcp://127.0.0.1:5557 --log gateway.log
  unfray cache watch --upstream llamacpp=http://127.0.0.1:8081 --send conversations.jsonl`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	w.upstream.add(f)
	f.StringVar(&w.events.Endpoint, "events", "", "where the engine publishes its events, such as tcp://127.0.0.1:5557")
	f.StringVar(&w.events.Replay, "events-replay", "", "its replay_endpoint: events of before are asked for, and lost ones again")
	f.StringVar(&w.events.Topic, "events-topic", "", "its topic (default: every one)")
	f.StringVar(&w.log, "log", "", "log of the gateway in JSON, followed from its end")
	f.StringVar(&w.send, "send", "", "trace whose prompts are sent")
	f.DurationVar(&w.interval, "interval", 5*time.Second, "time between two lines")
	f.DurationVar(&w.runFor, "for", 0, "end after this time (default: when interrupted)")
	f.IntVar(&w.maxTokens, "max-tokens", 1, "with --send: tokens to generate for each prompt")
	f.IntVarP(&w.requests, "requests", "n", 200, "with --send: the first n requests; 0: all")
	f.BoolVar(&w.strict, "strict", false, "with --send: exit status 1 where a prediction differs from what is reported")
	f.BoolVar(&w.asJSON, "json", false, "print JSON, an object a line; with --send the last one sums up")
	w.engine.addOverrides(f)
	w.trace.add(cmd, f)
	cmd.RunE = handler(w.run)
	return cmd
}

func (w *watchFlags) run(cmd *cobra.Command, _ []string) error {
	if len(w.upstream.addresses) != 1 {
		return usageError("give one --upstream KIND=URL to watch")
	}
	if w.interval <= 0 {
		return usageError("--interval must be positive")
	}
	for _, name := range []string{"slots", "cache-ram", "block-size", "capacity"} {
		if w.send == "" && cmd.Flags().Changed(name) {
			return usageError("--" + name + " is for --send: what the server reports is printed as it is")
		}
	}
	engine, probe, err := parseProbe(w.upstream.addresses[0])
	if err != nil {
		return err
	}
	if w.runFor > 0 {
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), w.runFor, errWatched)
		defer cancel()
		cmd.SetContext(ctx)
	}
	if w.send != "" {
		err = w.compare(cmd, engine, probe)
	} else {
		err = w.follow(cmd, engine, probe)
	}
	switch {
	case !errors.Is(err, errWatched):
		return err
	case !w.begun:
		return fmt.Errorf("%s told nothing in the time of --for", probe.URL.Redacted())
	}
	return nil
}

// engineNames are what engines call themselves.
var engineNames = map[live.Engine]string{live.VLLM: "vLLM", live.SGLang: "SGLang", live.LlamaCpp: "llama.cpp", live.TGI: "TGI"}

// checkEngine says so where a server is another than was named.
func checkEngine(named live.Engine, is live.Engine, probe *live.Probe) error {
	if named == is {
		return nil
	}
	at := probe.URL.Redacted()
	return fmt.Errorf("the metrics of %s are %s's, not %s's: give --upstream %s=%s", at, engineNames[is], engineNames[named], is, at)
}

// errWatched ends a watch after its time.
var errWatched = errors.New("the time of --for is over")

// A watched is what one line tells.
type watched struct {
	live.Counters
	HitRate *float64     `json:"hit_rate"` // in the interval; null without prompts
	Events  *live.Counts `json:"events,omitempty"`
	Log     *logged      `json:"log,omitempty"`
	Note    string       `json:"note,omitempty"`
}

// logged sums what the gateway's log says of requests whose tokens it knew.
type logged struct {
	Requests  int `json:"requests"`
	Prompt    int `json:"prompt_tokens"`
	Predicted int `json:"predicted_cached_tokens"`
	Reported  int `json:"cached_tokens"`
	Equal     int `json:"equal_requests"` // of those that have both figures
	Both      int `json:"compared_requests"`
	Boundary  int `json:"boundary_loss_tokens"`
}

// follow prints a line for each interval.
func (w *watchFlags) follow(cmd *cobra.Command, engine live.Engine, probe *live.Probe) error {
	ctx := cmd.Context()
	before, err := probe.Read(ctx)
	if err == nil {
		err = checkEngine(engine, before.Engine, probe)
	}
	if err != nil {
		return err
	}
	w.begun = true
	var mirror *mirrored
	if w.events.Endpoint != "" {
		if mirror, err = startMirror(ctx, w.events); err != nil {
			return err
		}
	}
	var log *logTail
	if w.log != "" {
		if log, err = openLogTail(w.log); err != nil {
			return err
		}
		defer log.f.Close()
	}
	if !w.asJSON {
		fmt.Fprintf(cmd.OutOrStdout(), "%-8s  %12s  %12s  %8s  %6s%s\n", "time", "prompt tok.", "found", "hit rate", "full", w.headings())
	}
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := probe.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "unfray:", message(err))
			continue
		}
		line := watched{Counters: now.Since(before)}
		before = now
		if line.TellHit && line.Queries > 0 {
			rate := line.Hits / line.Queries
			line.HitRate = &rate
		}
		if mirror != nil {
			counts := mirror.counts()
			line.Events = &counts
		}
		if log != nil {
			if line.Log, err = log.read(); err != nil {
				return err
			}
		}
		if err := w.print(cmd.OutOrStdout(), &line); err != nil {
			return err
		}
	}
}

func (w *watchFlags) headings() string {
	s := ""
	if w.events.Endpoint != "" {
		s += fmt.Sprintf("  %10s  %9s", "blocks", "removed")
	}
	if w.log != "" {
		s += fmt.Sprintf("  %12s  %12s  %7s  %8s", "predicted", "reported", "equal", "boundary")
	}
	return s
}

func (w *watchFlags) print(out io.Writer, l *watched) error {
	if w.asJSON {
		return writeJSON(out, l)
	}
	rate, found, full := "-", "-", "-"
	if l.HitRate != nil {
		rate = percent(*l.HitRate)
	}
	if l.TellHit {
		found = grouped(int64(l.Hits))
	}
	if l.Usage != nil {
		full = percent(*l.Usage)
	}
	prompts := "-"
	if l.TellHit || l.TellComputed {
		prompts = grouped(int64(max(l.Queries, l.Computed)))
	}
	_, err := fmt.Fprintf(out, "%-8s  %12s  %12s  %8s  %6s", l.At.Format(time.TimeOnly), prompts, found, rate, full)
	if l.Events != nil && err == nil {
		_, err = fmt.Fprintf(out, "  %10s  %9s", grouped(int64(l.Events.Blocks)), grouped(int64(l.Events.Removed)))
	}
	if l.Log != nil && err == nil {
		_, err = fmt.Fprintf(out, "  %12s  %12s  %7s  %8s", grouped(int64(l.Log.Predicted)), grouped(int64(l.Log.Reported)), fmt.Sprintf("%d/%d", l.Log.Equal, l.Log.Both), grouped(int64(l.Log.Boundary)))
	}
	if err == nil {
		_, err = fmt.Fprintln(out)
	}
	return err
}

// mirrored follows events beside the command.
type mirrored struct {
	mu sync.Mutex
	m  *live.Mirror
}

func startMirror(ctx context.Context, src live.Source) (*mirrored, error) {
	s, err := live.Subscribe(ctx, src)
	if err != nil {
		return nil, err
	}
	m := &mirrored{m: live.NewMirror(0)}
	go func() {
		defer s.Close()
		for {
			u, err := s.Next()
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				continue // the batch is counted as missed with the next one
			}
			m.mu.Lock()
			m.m.Apply(u)
			m.mu.Unlock()
		}
	}()
	return m, nil
}

func (m *mirrored) counts() live.Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m.Counts()
}

// logTail reads what is added to a log.
type logTail struct {
	f    *os.File
	rest []byte // a line that is not whole yet
}

func openLogTail(path string) (*logTail, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &logTail{f: f}, nil
}

// maxLogLine bounds a line of a log that is followed: one with prompts in it is
// passed over.
const maxLogLine = 16 << 20

// read sums what was added since the last call. Lines that are none of the
// gateway's are passed over. A log that was cut short is read from its start.
func (t *logTail) read() (*logged, error) {
	sum := &logged{}
	at, err := t.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	info, err := t.f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < at {
		if _, err := t.f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		t.rest = nil
	}
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(t.rest), t.f), 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line) < maxLogLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			t.rest = line
			return sum, nil
		case err != nil:
			return nil, err
		}
		sum.add(line)
		line = line[:0]
	}
}

// add adds a line of the log.
func (l *logged) add(line []byte) {
	var r struct {
		Msg       string `json:"msg"`
		Prompt    int    `json:"prompt_tokens"`
		Predicted *int   `json:"predicted_cached_tokens"`
		Reported  *int   `json:"cached_tokens"`
		Boundary  *int   `json:"boundary_loss_tokens"`
	}
	if json.Unmarshal(line, &r) != nil || r.Msg != "request" || r.Boundary == nil {
		return
	}
	l.Requests++
	l.Prompt += r.Prompt
	l.Boundary += *r.Boundary
	if r.Predicted != nil {
		l.Predicted += *r.Predicted
	}
	if r.Reported != nil {
		l.Reported += *r.Reported
	}
	if r.Predicted != nil && r.Reported != nil {
		l.Both++
		if *r.Predicted == *r.Reported {
			l.Equal++
		}
	}
}

// sendOne sends a prompt; it gives nil for one that the server has no room for. Of
// its keys the server is told the salt only.
func (w *watchFlags) sendOne(ctx context.Context, model *unfray.Model, cache prefixcache.Cache, prompt []vocab.ID, q *trace.Request) (*sent, error) {
	lease, err := cache.Begin(&prefixcache.Request{Prompt: prompt, Keys: prefixcache.Keys{Salt: q.Keys.Salt}})
	if errors.Is(err, prefixcache.ErrTooLarge) {
		return nil, nil // the server would refuse it
	} else if err != nil {
		return nil, err
	}
	req := &unfray.Request{Prompt: unfray.Prompt{IDs: prompt}, Heal: heal.Off, MaxTokens: w.maxTokens}
	if q.Keys.Salt != "" {
		salt, err := json.Marshal(q.Keys.Salt)
		if err != nil {
			return nil, err
		}
		req.Fields = map[string]json.RawMessage{"cache_salt": salt}
	}
	res, err := model.Complete(ctx, req)
	if err != nil {
		return nil, err
	}
	output := res.IDs
	if res.FinishReason == backend.FinishStop && res.StopString == "" {
		output = append(output, res.EndToken) // it was drawn, and never computed
	}
	cache.End(lease, output)
	return &sent{Prompt: len(prompt), Predicted: lease.Cached, Reported: res.Usage.CachedTokens}, nil
}

// promptIDs are a request's tokens; nil if it does not tell its prompt.
func promptIDs(q *trace.Request, t *tokenizer.Tokenizer, render renderFunc) ([]vocab.ID, error) {
	switch {
	case q.IDs != nil:
		return q.IDs, nil
	case q.Messages != nil && render != nil:
		return render(q.Messages, q.Tools)
	case q.Text != nil:
		before, after := t.Template()
		ids := append([]vocab.ID{}, before...)
		return append(t.EncodeSpecial(ids, q.Text), after...), nil
	}
	return nil, nil
}
