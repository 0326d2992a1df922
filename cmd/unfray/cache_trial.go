package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/replay"
)

// A replayed is a simulation with what it gave.
type replayed struct {
	simulation
	workers int
	result  *replay.Result // nil where the cache cannot take the trace
	failed  error          // why
	never   bool           // it cannot at any capacity
	cost    *spent         // of the prompts; nil without prices
}

// label names a result among others.
func (r *replayed) label() string {
	s := r.name()
	if r.workers > 1 {
		s += fmt.Sprintf(", %d workers", r.workers)
	}
	return s
}

// leftOut is how many requests the hit rate is not of, those of the warm-up aside.
func (r *replayed) leftOut() int64 { return r.result.Rejected + r.result.NoContent + r.result.Refused }

// spent is what the prompts of a run cost.
type spent struct {
	Cost     float64 `json:"cost"`
	Uncached float64 `json:"cost_uncached"` // had nothing been cached
	Currency string  `json:"currency,omitempty"`
}

func (m *spent) text() string {
	if m == nil {
		return "-"
	}
	return m.amount(m.Cost)
}

// amount writes a sum with cents, or with three digits where it is below 1.
func (m *spent) amount(f float64) string {
	text := strconv.FormatFloat(f, 'f', 2, 64)
	if f < 1 {
		text = strconv.FormatFloat(f, 'g', 3, 64)
	}
	return strings.TrimSpace(text + " " + m.Currency)
}

// priceFlags are prices of tokens.
type priceFlags struct {
	prices   []float64
	currency string
}

func (p *priceFlags) add(f *pflag.FlagSet) {
	f.Float64SliceVar(&p.prices, "price", nil, "price of a million input tokens, and of a million cached ones: 3,0.3")
	f.StringVar(&p.currency, "currency", "", "what prices are in, such as USD")
}

func (p *priceFlags) check() error {
	if len(p.prices) > 2 {
		return usageError("--price: give the price of a million input tokens and, after a comma, of a million cached ones")
	}
	for _, f := range p.prices {
		if !(f >= 0 && f <= math.MaxFloat64) {
			return usageError("--price: a price is a number that is not negative")
		}
	}
	return nil
}

// of is what prompts cost, a part of whose tokens is cached; nil without prices.
func (p *priceFlags) of(prompt, cached int64) *spent {
	if len(p.prices) == 0 {
		return nil
	}
	full, hit := p.prices[0], 0.0
	if len(p.prices) == 2 {
		hit = p.prices[1]
	}
	const per = 1e-6
	return &spent{
		Cost:     (float64(prompt-cached)*full + float64(cached)*hit) * per,
		Uncached: float64(prompt) * full * per, Currency: p.currency,
	}
}

// A trial replays a trace through caches.
type trial struct {
	*replayFlags
	cmd        *cobra.Command
	paths      []string
	opt        replay.Options
	traceBlock int // of a trace of block hashes; 0: it has text or tokens
	results    []replayed
	notes      []string
}

// note keeps notes, each once.
func (t *trial) note(notes ...string) {
	for _, n := range notes {
		if !slices.Contains(t.notes, n) {
			t.notes = append(t.notes, n)
		}
	}
}

// all replays the trace through each cache. One that cannot take it is noted with
// its reason, and is an error only if it is the only one.
func (t *trial) all(list []simulation) error {
	var tries []simulation
	for _, s := range list {
		if s.engine == engineTrie && t.traceBlock > 0 {
			tries = append(tries, s)
			continue
		}
		for _, workers := range t.workers {
			if err := t.one(s, workers); err != nil {
				return err
			}
		}
	}
	if len(tries) > 0 {
		if err := t.sweep(tries); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(t.results, func(r replayed) bool { return r.failed == nil }) {
		return t.results[0].failed
	}
	for i := range t.results {
		r := &t.results[i]
		if r.failed != nil {
			t.note(fmt.Sprintf("%s is left out: %v", r.engine, r.failed))
			continue
		}
		if r.result.PromptTokens == 0 {
			continue
		}
		r.cost = t.price.of(r.result.PromptTokens, r.result.HitTokens)
	}
	t.noteLeftOut()
	return nil
}

// one replays the trace through a cache.
func (t *trial) one(s simulation, workers int) error {
	r := replayed{simulation: s, workers: workers}
	if r.failed = t.never(&s); r.failed != nil {
		r.never, r.workers, r.policy, r.blockTokens = true, 1, "", 1
	} else if _, r.failed = s.make(); r.failed == nil {
		src := t.source(t.cmd, t.paths)
		o := t.opt
		o.Workers, o.Policy, o.NewCache, o.NewUnlimited = workers, s.name(), s.make, s.unlimited
		res, err := replay.Run(t.cmd.Context(), src, o)
		switch err := errors.Join(err, src.Close()); {
		case errors.Is(err, replay.ErrTakesTokens):
			r.failed, r.never = errNoHashes(&s), true
		case errors.Is(err, replay.ErrNoContent) && o.Render == nil:
			return errNoPrompt
		case err != nil:
			return err
		default:
			t.note(src.notes()...)
			t.note(res.Notes...)
			r.result = res
		}
	}
	same := func(o replayed) bool {
		named := o.name() == r.name() || r.never && o.engine == r.engine
		return r.failed != nil && o.failed != nil && named && o.failed.Error() == r.failed.Error()
	}
	if !slices.ContainsFunc(t.results, same) {
		t.results = append(t.results, r)
	}
	return nil
}

func errNoHashes(s *simulation) error {
	return usageError("--engine " + s.engine + " takes tokens, and the trace has block hashes only: choose one of vllm, sglang, tgi, trie")
}

// never says why a cache cannot take the trace at any capacity.
func (t *trial) never(s *simulation) error {
	switch {
	case s.engine == engineTrie:
		return usageError("--engine trie takes traces of block hashes, and this one has none: choose one of " + strings.Join(cacheEngines[:len(cacheEngines)-1], ", "))
	case s.engine == engineLlamaCpp && t.traceBlock > 0:
		return errNoHashes(s)
	case s.eagle && s.engine == engineSGLang && t.traceBlock > 0:
		return usageError("--eagle: sglang then keys its tree by pairs of tokens, and the trace has block hashes only")
	}
	return nil
}

// sweep replays a trace of block hashes through tries of all capacities at once.
func (t *trial) sweep(list []simulation) error {
	block := max(t.traceBlock, 1)
	o := replay.SweepOptions{Measure: replay.Measure(t.measure), Policies: t.engine.policiesOf(engineTrie)}
	for _, s := range list {
		blocks := s.capacity / block
		switch {
		case s.capacity == 0: // the ceiling
		case blocks == 0:
			t.results = append(t.results, replayed{simulation: s, workers: 1, failed: usageError(fmt.Sprintf("--capacity %d: a block of the trace has %d tokens", s.capacity, block))})
		case !slices.Contains(o.Capacities, blocks):
			o.Capacities = append(o.Capacities, blocks)
		}
	}
	src := t.source(t.cmd, t.paths)
	res, err := replay.Sweep(t.cmd.Context(), src, o)
	if err := errors.Join(err, src.Close()); err != nil {
		return err
	}
	t.note(src.notes()...)
	for _, p := range append(res.Points, res.Ceiling) {
		s := simulation{engine: engineTrie, policy: p.Policy, blockTokens: res.BlockTokens, capacity: p.Blocks * res.BlockTokens}
		out := &replay.Result{
			Policy: s.name(), HitTokens: p.HitTokens, PromptTokens: p.PromptTokens, HitRate: p.HitRate,
			BlockTokens: res.BlockTokens, Blocks: min(int64(p.Blocks), res.UniqueBlocks), Evictions: p.Evictions, Requests: res.Requests,
			NoContent: res.Skipped,
		}
		if p.Blocks == 0 {
			out.Blocks = res.UniqueBlocks
		}
		r := replayed{simulation: s, workers: 1, result: out}
		if p.Underfilled {
			r.result, r.failed = nil, usageError("the first half of the trace does not fill the cache: --measure tail gives it no rate")
		}
		t.results = append(t.results, r)
	}
	return nil
}

// noteLeftOut says which hit rates are not of all requests.
func (t *trial) noteLeftOut() {
	var names []string
	for i := range t.results {
		if r := &t.results[i]; r.failed == nil && r.result.Rejected > 0 {
			if c := capacityText(r.capacity); !slices.Contains(names, c) {
				names = append(names, c)
			}
		}
	}
	if len(names) > 0 {
		t.note(fmt.Sprintf("With a capacity of %s some prompts are larger than the cache, or than a slot's part of it, and are left out. The hit rate is of the others: it cannot be compared with that of a larger cache, and the chart by capacity does not have it.", strings.Join(names, ", ")))
	}
}

// idle names flags that change nothing here.
func (r *replayFlags) idle(f *pflag.FlagSet, traceBlock int) (notes []string) {
	notes = r.engine.idle(f, traceBlock)
	say := func(reason string, names ...string) {
		for _, n := range names {
			if f.Changed(n) {
				notes = append(notes, "--"+n+" has no effect: "+reason)
			}
		}
	}
	onlyTrie := !slices.ContainsFunc(r.engine.engines, func(e string) bool { return e != engineTrie })
	switch {
	case onlyTrie:
		say("--engine trie is one cache, whose requests run one after the other", "workers", "routing", "seed", "concurrency", "prefill-rate", "decode-rate", "warmup",
			"cache-threshold", "balance-abs-threshold", "balance-rel-threshold")
	case slices.Max(r.workers) == 1:
		say("there is one worker", "routing", "seed", "cache-threshold", "balance-abs-threshold", "balance-rel-threshold")
	default:
		if r.routing != replay.Random.String() {
			say("it is that of --routing random", "seed")
		}
		if r.routing != replay.PrefixAware.String() {
			say("it is for --routing prefix-aware", "cache-threshold", "balance-abs-threshold", "balance-rel-threshold")
		}
	}
	if traceBlock > 0 {
		say("a trace of block hashes has no text", "tokenizer", "chat-template")
	} else {
		say("the trace has no block hashes", "trace-block")
	}
	if len(r.price.prices) == 0 {
		say("there is no --price", "currency")
	}
	return notes
}

// flagEngines are the engines that a flag is for.
var flagEngines = []struct {
	flag    string
	engines []string
}{
	{"block-size", []string{engineVLLM, engineSGLang, engineTGI}},
	{"groups", []string{engineVLLM}},
	{"slots", []string{engineLlamaCpp}},
	{"cache-ram", []string{engineLlamaCpp}},
	{"kv-unified", []string{engineLlamaCpp}},
	{"prefill-chunk", []string{engineVLLM, engineSGLang}},
	{"max-new-tokens", []string{engineTGI}},
	{"eagle", []string{engineVLLM, engineSGLang}},
}

// idle names flags that change nothing with the engines that were chosen.
func (e *engineFlags) idle(f *pflag.FlagSet, traceBlock int) (notes []string) {
	chosen := func(of ...string) bool {
		return slices.ContainsFunc(e.engines, func(engine string) bool { return slices.Contains(of, engine) })
	}
	for _, fe := range flagEngines {
		switch {
		case !f.Changed(fe.flag):
		case !chosen(fe.engines...):
			notes = append(notes, fmt.Sprintf("--%s has no effect: it is for %s", fe.flag, strings.Join(fe.engines, ", ")))
		case fe.flag == "block-size" && traceBlock > 0:
			notes = append(notes, fmt.Sprintf("--block-size has no effect: the blocks of the trace have %d tokens", traceBlock))
		}
	}
	for _, p := range e.policies {
		engines := []string{}
		for _, engine := range []string{engineSGLang, engineTrie} {
			if slices.Contains(policiesKnown(engine), p) {
				engines = append(engines, engine)
			}
		}
		if !chosen(engines...) {
			notes = append(notes, fmt.Sprintf("--policy %s has no effect: it is for %s", p, strings.Join(engines, ", ")))
			continue
		}
		switch prefixcache.Policy(p) {
		case prefixcache.ByPriority:
			notes = append(notes, "sglang priority: traces tell no priorities, so it throws away what lru does")
		case prefixcache.TLRU:
			notes = append(notes, "sglang tlru: its threshold and its estimate of the next prompt are 0 here, so it throws away what lru does")
		}
	}
	return notes
}
