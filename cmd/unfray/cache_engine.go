package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/live"
	"github.com/unfray/unfray/prefixcache/replay"
)

// The values of --engine. trie is no engine: blocks of a trace in a trie, as
// simulators of traces have them.
const (
	engineVLLM     = "vllm"
	engineSGLang   = "sglang"
	engineTGI      = "tgi"
	engineLlamaCpp = "llamacpp"
	engineTrie     = "trie"
)

var cacheEngines = []string{engineVLLM, engineSGLang, engineTGI, engineLlamaCpp, engineTrie}

// engineFlags say which caches are simulated: all combinations of the lists.
type engineFlags struct {
	engines    []string
	blockSizes sizes
	capacities sizes
	policies   []string
	slots      int
	from       string
	hybrid     []string
	cacheRAM   int
	chunk      int
	output     int
	eagle      bool
	unified    bool

	told []string // what --settings-of could not find out
}

func (e *engineFlags) add(cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringSliceVar(&e.engines, "engine", []string{engineVLLM}, "whose cache: "+strings.Join(cacheEngines, ", ")+" (blocks of a trace in a trie, as trace simulators do)")
	f.Var(&e.blockSizes, "block-size", "tokens of a block or page (default: the engine's: vllm 16, sglang and tgi 1)")
	f.Var(&e.capacities, "capacity", "tokens that the cache of each worker holds, such as 100k or 1.5M; 0: no limit")
	f.StringSliceVar(&e.policies, "policy", nil, "what is thrown away first: sglang has "+policyNames()+"; trie has fifo, lru, optimal (which knows the future)")
	e.addSlots(f)
	f.StringSliceVar(&e.hybrid, "groups", nil, "vllm: groups of layers of a hybrid model: full, window:TOKENS, mamba; each may end in @BLOCK")
	f.BoolVar(&e.unified, "kv-unified", false, "llamacpp: all slots share one context, as the server does by itself where --parallel is not given")
	f.IntVar(&e.chunk, "prefill-chunk", 0, "tokens of a prompt that are computed at once: vllm's --max-num-batched-tokens, sglang's --chunked-prefill-size; 0: all")
	f.IntVar(&e.output, "max-new-tokens", 0, "tgi: tokens that each request may generate, for which it holds room from the start")
	f.BoolVar(&e.eagle, "eagle", false, "vllm and sglang: the engine drafts with EAGLE")
	f.StringVar(&e.from, "settings-of", "", "KIND=URL of a running server (vllm, sglang, llamacpp) that tells block size, capacity and policy")
	_ = cmd.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions(cacheEngines, cobra.ShellCompDirectiveNoFileComp))
}

func (e *engineFlags) addSlots(f *pflag.FlagSet) {
	f.IntVar(&e.slots, "slots", prefixcache.DefaultSlots, "llamacpp: slots, which share --capacity")
	f.IntVar(&e.cacheRAM, "cache-ram", prefixcache.DefaultCacheRAM>>20, "llamacpp: MiB for prompts that left their slots, as the server's flag; 0: none; -1: no limit")
}

// addOverrides adds those that correct what a running server tells.
func (e *engineFlags) addOverrides(f *pflag.FlagSet) {
	e.addSlots(f)
	f.Var(&e.blockSizes, "block-size", "with --send: tokens of a block or page (default: as the server tells)")
	f.Var(&e.capacities, "capacity", "with --send: tokens that the cache holds; 0: no limit (default: as the server tells)")
}

// override corrects the cache of a running server.
func (e *engineFlags) override(f *pflag.FlagSet, s *simulation) error {
	ram, err := e.cacheRAMBytes()
	switch {
	case err != nil:
		return err
	case len(e.blockSizes) > 1 || len(e.capacities) > 1:
		return usageError("--block-size and --capacity: the server has one of each")
	case e.slots < 1:
		return usageError(fmt.Sprintf("--slots %d: a server has at least one", e.slots))
	case s.engine != engineLlamaCpp && (f.Changed("slots") || f.Changed("cache-ram")):
		return usageError("--slots and --cache-ram are for llamacpp; the server is " + s.engine)
	case s.engine == engineLlamaCpp && f.Changed("block-size"):
		return usageError("--block-size: llama.cpp keeps single tokens")
	}
	s.cacheRAM = ram
	if f.Changed("slots") {
		s.slots = e.slots
	}
	if f.Changed("block-size") {
		if s.blockTokens = e.blockSizes[0]; s.blockTokens < 1 {
			return usageError("--block-size: a block has at least one token")
		}
	}
	if f.Changed("capacity") {
		s.capacity = e.capacities[0]
	}
	return nil
}

// cacheRAMBytes reads --cache-ram as prefixcache.SlotsOptions has it.
func (e *engineFlags) cacheRAMBytes() (int64, error) {
	switch {
	case e.cacheRAM == 0:
		return prefixcache.CacheRAMOff, nil
	case e.cacheRAM == -1:
		return prefixcache.CacheRAMUnlimited, nil
	case e.cacheRAM < 0 || e.cacheRAM > 1<<30:
		return 0, usageError(fmt.Sprintf("--cache-ram %d: give MiB, 0 for none, or -1 for no limit", e.cacheRAM))
	}
	return int64(e.cacheRAM) << 20, nil
}

// assumedRAM says what llama.cpp's server does not tell.
func (e *engineFlags) assumedRAM() string {
	return fmt.Sprintf("llama.cpp's server does not tell its --cache-ram: %d MiB is taken; give --cache-ram if it has another", e.cacheRAM)
}

func policyNames() string {
	var names []string
	for _, p := range prefixcache.Policies {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// A simulation is one cache to replay a trace through.
type simulation struct {
	engine      string
	policy      string // "" where the engine has one only
	blockTokens int
	capacity    int // tokens; 0: no limit
	slots       int
	cacheRAM    int64 // as prefixcache.SlotsOptions has it
	groups      []prefixcache.LayerGroup
	chunk       int // tokens of a prompt computed at once; 0: all
	output      int // tokens that TGI makes room for
	eagle       bool
	unified     bool
}

// name says which cache it is.
func (s *simulation) name() string {
	parts := []string{s.engine}
	if s.policy != "" {
		parts = append(parts, s.policy)
	}
	if s.blockTokens > 1 {
		parts = append(parts, fmt.Sprintf("block %d", s.blockTokens))
	}
	return strings.Join(parts, " ")
}

// make makes the cache. What is wrong with it is said in the words of flags.
func (s *simulation) make() (prefixcache.Cache, error) {
	c, err := s.withCapacity(s.capacity)
	return c, inFlags(err)
}

// unlimited makes one that never lacks room. That of llama.cpp's slots keeps all
// tokens in a tree: what a slot overwrites is lost for lack of room.
func (s *simulation) unlimited() (prefixcache.Cache, error) {
	if s.engine == engineLlamaCpp {
		r, err := prefixcache.NewRadix(prefixcache.RadixOptions{})
		return saltless{r}, err
	}
	c, err := s.withCapacity(0)
	return c, inFlags(err)
}

// saltless knows the keys that llama.cpp's server knows.
type saltless struct{ *prefixcache.Radix }

// Begin implements [prefixcache.Cache].
func (c saltless) Begin(r *prefixcache.Request) (prefixcache.Lease, error) {
	q := *r
	q.Keys.Salt, q.Keys.Extra = "", ""
	return c.Radix.Begin(&q)
}

// flagNames are the flags that set the simulators' options.
var flagNames = strings.NewReplacer("prefixcache: ", "", "PagedOptions.Groups", "--groups", "PagedOptions.BlockSize", "--block-size",
	"PagedOptions.BatchTokens", "--prefill-chunk", "PagedOptions.Blocks", "--capacity in blocks", "page size", "--block-size", "block size ", "--block-size ",
	"a capacity of", "--capacity", "a chunk of", "--prefill-chunk", "an output of", "--max-new-tokens", "SlotsOptions.Slots", "--slots", "SlotsOptions.Context", "the slots' part of --capacity")

// groupOption is an option of a group in the words of package prefixcache.
var groupOption = regexp.MustCompile(`PagedOptions\.Groups\[(\d+)\](?:\.(\w+))?`)

// inFlags says what is wrong with options in the words of flags.
func inFlags(err error) error {
	if usage := usageError(""); err == nil || errors.As(err, &usage) {
		return err
	}
	text := groupOption.ReplaceAllStringFunc(err.Error(), func(option string) string {
		m := groupOption.FindStringSubmatch(option)
		n, _ := strconv.Atoi(m[1]) // digits
		name := fmt.Sprintf("--groups: group %d", n+1)
		switch m[2] {
		case "Window":
			name += ", its window"
		case "BlockSize":
			name += ", its block"
		}
		return name
	})
	return usageError(flagNames.Replace(text))
}

func (s *simulation) withCapacity(tokens int) (prefixcache.Cache, error) {
	if tokens > 0 && tokens < s.blockTokens {
		return nil, usageError(fmt.Sprintf("--capacity %d: it holds no block of %d tokens; give more, or 0 for no limit", tokens, s.blockTokens))
	}
	switch s.engine {
	case engineVLLM:
		o := prefixcache.PagedOptions{BlockSize: s.blockTokens, Groups: s.groups, BatchTokens: s.chunk, Eagle: s.eagle}
		if tokens > 0 {
			o.Blocks = tokens/s.blockTokens + 1 // and the null block
		}
		return prefixcache.NewPaged(o)
	case engineSGLang:
		return prefixcache.NewRadix(prefixcache.RadixOptions{PageSize: s.blockTokens, Capacity: tokens, Policy: prefixcache.Policy(s.policy), Chunk: s.chunk, Bigrams: s.eagle})
	case engineTGI:
		return prefixcache.NewTGI(prefixcache.TGIOptions{BlockSize: s.blockTokens, Capacity: tokens, Output: s.output})
	case engineLlamaCpp:
		if tokens > 0 && tokens < s.slots {
			return nil, usageError(fmt.Sprintf("--capacity %d: %d slots share it; give more, or fewer --slots", tokens, s.slots))
		}
		o := prefixcache.SlotsOptions{Slots: s.slots, Context: tokens / s.slots, CacheRAM: s.cacheRAM, Unified: s.unified}
		if s.unified {
			o.Context = tokens
		}
		return prefixcache.NewSlots(o)
	}
	return nil, fmt.Errorf("there is no cache of engine %s", s.engine)
}

// simulations reads the flags. blockTokens is that of a trace of block hashes, 0
// for others.
func (e *engineFlags) simulations(ctx context.Context, f *pflag.FlagSet, traceBlock int) ([]simulation, error) {
	ram, err := e.cacheRAMBytes()
	if err != nil {
		return nil, err
	}
	base := simulation{slots: e.slots, cacheRAM: ram, chunk: e.chunk, output: e.output, eagle: e.eagle, unified: e.unified}
	if e.slots < 1 {
		return nil, usageError(fmt.Sprintf("--slots %d: a server has at least one", e.slots))
	}
	capacities, blocks, engines := e.capacities, e.blockSizes, e.engines
	if e.from != "" {
		settings, err := settingsOf(ctx, e.from)
		if err != nil {
			return nil, err
		}
		if !f.Changed("engine") {
			engines = []string{string(settings.Engine)}
			e.engines = engines
		}
		if !f.Changed("block-size") {
			blocks = sizes{settings.BlockTokens}
		}
		if !f.Changed("capacity") {
			capacities = sizes{settings.CapacityTokens}
		}
		if settings.CapacityTokens == 0 && !f.Changed("capacity") {
			e.told = append(e.told, "the server does not tell the capacity of its cache: none is lacking here; give --capacity")
		}
		if settings.Engine == live.LlamaCpp && !f.Changed("cache-ram") {
			e.told = append(e.told, e.assumedRAM())
		}
		if settings.Slots > 0 && !f.Changed("slots") {
			base.slots = settings.Slots
		}
		if settings.Policy != "" && !f.Changed("policy") {
			e.policies = []string{settings.Policy}
			if err := e.checkPolicies(); err != nil {
				return nil, fmt.Errorf("%s: %w", e.from, err)
			}
		}
	}
	if len(capacities) == 0 {
		capacities = sizes{0}
	}
	var list []simulation
	for _, engine := range engines {
		s := base
		if s.engine = engine; !slices.Contains(cacheEngines, engine) {
			return nil, usageError(fmt.Sprintf("--engine %s: choose one of %s", engine, strings.Join(cacheEngines, ", ")))
		}
		if len(e.hybrid) > 0 && engine == engineVLLM {
			var err error
			if s.groups, err = parseGroups(e.hybrid); err != nil {
				return nil, err
			}
		}
		for _, b := range blockSizesOf(engine, blocks, traceBlock) {
			if s.blockTokens = b; b < 1 {
				return nil, usageError("--block-size: a block has at least one token")
			}
			for _, p := range e.policiesOf(engine) {
				s.policy = p
				for _, s.capacity = range capacities {
					list = append(list, s)
				}
			}
		}
	}
	return list, nil
}

// blockSizesOf are the block sizes to try with an engine.
func blockSizesOf(engine string, given sizes, traceBlock int) sizes {
	switch {
	case engine == engineLlamaCpp:
		return sizes{1}
	case traceBlock > 0:
		return sizes{traceBlock} // a trace of block hashes has one size only
	case len(given) > 0:
		return given
	case engine == engineVLLM:
		return sizes{prefixcache.DefaultBlockSize}
	}
	return sizes{1}
}

// policiesKnown are the policies that an engine has, its default first.
func policiesKnown(engine string) []string {
	switch engine {
	case engineTrie:
		return []string{replay.FIFO, replay.LRU, replay.Optimal}
	case engineSGLang:
		return strings.Split(policyNames(), ", ")
	}
	return nil
}

// policiesOf are the policies of --policy that the engine knows, each once, or
// its default; without one of its own, the trie has all.
func (e *engineFlags) policiesOf(engine string) []string {
	known := policiesKnown(engine)
	if known == nil {
		return []string{""}
	}
	var list []string
	for _, p := range e.policies {
		if slices.Contains(known, p) && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	switch {
	case len(list) > 0:
		return list
	case engine == engineTrie:
		return known
	}
	return known[:1]
}

// checkPolicies refuses names that no engine knows.
func (e *engineFlags) checkPolicies() error {
	known := append(strings.Split(policyNames(), ", "), replay.FIFO, replay.LRU, replay.Optimal)
	for _, p := range e.policies {
		if !slices.Contains(known, p) {
			return usageError(fmt.Sprintf("--policy %s: sglang has %s; trie has %s, %s, %s", p, policyNames(), replay.FIFO, replay.LRU, replay.Optimal))
		}
	}
	return nil
}

// parseGroups reads --groups.
func parseGroups(texts []string) ([]prefixcache.LayerGroup, error) {
	var groups []prefixcache.LayerGroup
	for _, text := range texts {
		var g prefixcache.LayerGroup
		name, block, sized := strings.Cut(text, "@")
		kind, window, windowed := strings.Cut(name, ":")
		var err error
		if sized {
			g.BlockSize, err = parseSize(block)
		}
		switch {
		case err != nil:
		case kind == "full" && !windowed:
			g.Kind = prefixcache.FullAttention
		case kind == "mamba" && !windowed:
			g.Kind = prefixcache.Mamba
		case kind == "window" && windowed:
			g.Kind = prefixcache.SlidingWindow
			g.Window, err = parseSize(window)
		default:
			err = fmt.Errorf("a group is full, window:TOKENS or mamba")
		}
		if err != nil {
			return nil, usageError(fmt.Sprintf("--groups %s: %v", text, err))
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// settingsOf asks a server that is given as KIND=URL.
func settingsOf(ctx context.Context, kindURL string) (live.Settings, error) {
	engine, probe, err := parseProbe(kindURL)
	if err != nil {
		return live.Settings{}, err
	}
	s, err := probe.Settings(ctx, engine)
	if err == nil {
		_, err = simulationOf(s)
	}
	if err != nil {
		return s, fmt.Errorf("--settings-of %s: %w", kindURL, err)
	}
	return s, nil
}

// simulationOf is the cache of a running server.
func simulationOf(s live.Settings) (*simulation, error) {
	switch {
	case s.Engine == live.TGI:
		return nil, errors.New("TGI does not tell how its cache is made")
	case !s.Caching:
		return nil, errors.New("the server does not cache prefixes")
	case s.BlockTokens == 0:
		return nil, errors.New("the server does not tell the size of its blocks")
	}
	return &simulation{engine: string(s.Engine), policy: s.Policy, blockTokens: s.BlockTokens, capacity: s.CapacityTokens, slots: max(s.Slots, 1)}, nil
}

// cache simulates the cache of a server that is the only one; nil for others.
func (s *upstreamSpec) cache(ctx context.Context) (prefixcache.Cache, error) {
	if len(s.pool.Endpoints) != 1 {
		return nil, errors.New("several servers have a cache each")
	}
	probe := &live.Probe{URL: s.pool.Endpoints[0], Key: s.key}
	settings, err := probe.Settings(ctx, live.Engine(s.kind))
	if err != nil {
		return nil, err
	}
	sim, err := simulationOf(settings)
	if err != nil {
		return nil, err
	}
	return sim.make()
}

// parseProbe reads KIND=URL.
func parseProbe(text string) (live.Engine, *live.Probe, error) {
	kind, address, ok := strings.Cut(text, "=")
	known := []live.Engine{live.VLLM, live.SGLang, live.LlamaCpp, live.TGI}
	if !ok || !slices.Contains(known, live.Engine(kind)) {
		return "", nil, usageError(fmt.Sprintf("%.40s: give KIND=URL, with KIND one of vllm, sglang, llamacpp, tgi", text))
	}
	at, err := parseServerURL(kind+"=", address)
	return live.Engine(kind), &live.Probe{URL: at, Key: upstreamKey()}, err
}

// parseServerURL reads the address of a server, without /v1.
func parseServerURL(flag, address string) (*url.URL, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, usageError(fmt.Sprintf("%s: not the address of a server; it is like http://127.0.0.1:8000", flag))
	}
	if strings.HasSuffix(strings.TrimRight(at.Path, "/"), "/v1") {
		return nil, usageError(fmt.Sprintf("%s: leave out /v1 at the end; it comes with each request", flag))
	}
	return at, nil
}
