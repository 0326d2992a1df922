// Package replay drives simulated prefix caches by logs of requests, and says
// what share of the prompts' tokens was found computed, and to what each other
// token was lost.
//
//   - [Run] replays any trace through one kind of cache: one engine or several
//     behind a router, one request after the other or by a model of time.
//   - [Sweep] replays a trace of block identities through many capacities and
//     policies at once.
//
// Every figure is in tokens, except where its name says blocks or requests.
package replay

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A Source gives the requests of a trace in order, and io.EOF after the last.
// [trace.Reader] is one. A request is valid until the next call.
type Source interface {
	Next() (*trace.Request, error)
}

// A BlockCache is a cache that takes the identities of a prompt's blocks in
// place of its tokens: [prefixcache.Paged], [prefixcache.Radix], [prefixcache.TGI].
type BlockCache interface {
	prefixcache.Cache
	// BeginBlocks admits a prompt of the given tokens, whose blocks' identities
	// stand for whole prefixes.
	BeginBlocks(blocks []uint64, tokens int) (prefixcache.Lease, error)
}

// Options say what a trace is replayed through. NewCache must be set.
type Options struct {
	// Policy names the cache in the result.
	Policy string
	// NewCache makes the cache of one engine. For a trace of block identities it
	// must be a [BlockCache].
	NewCache func() (prefixcache.Cache, error)
	// NewUnlimited makes a cache of the same kind that never lacks room. With it
	// the result tells what was lost to what; nil: it does not.
	NewUnlimited func() (prefixcache.Cache, error)

	// Workers is how many engines there are, at most [MaxWorkers]; 0 means one.
	Workers int
	// Routing chooses the engine of a request. A trace that names its workers is
	// not heeded: what would another router do is the question.
	Routing Routing
	// Thresholds are those of [PrefixAware]; nil: [DefaultThresholds].
	Thresholds *Thresholds
	// Seed is that of [Random].
	Seed uint64

	// Tokenizer encodes prompts that are text, and outputs. Control tokens
	// spelled in a prompt are parsed and the template's tokens put around it, as
	// engines do for completions.
	Tokenizer *tokenizer.Tokenizer
	// Vocab gives the bytes by which the loss at boundaries is told; nil: that of
	// Tokenizer.
	Vocab *vocab.Vocab
	// Encode is used in place of Tokenizer's own encoding of prompts.
	Encode func(dst []vocab.ID, text []byte) []vocab.ID
	// Render makes the prompt of a conversation; nil: conversations are skipped
	// and counted in Result.NoContent.
	Render func(messages, tools json.RawMessage) ([]vocab.ID, error)
	// SkipRefused leaves out conversations of which Render fails to make a prompt,
	// and counts them in Result.Refused. Else its error ends the replay.
	SkipRefused bool

	// Concurrency is how many requests run at a time on a worker, where Timing is
	// nil: the next one begins when the oldest ends. 0 means one: a request ends
	// before the next begins.
	Concurrency int
	// Timing replays the trace's times.
	Timing *Timing

	// Warmup is the share of the requests, from the first, that fill the cache
	// and are not counted: 0 to below 1.
	Warmup float64
	// Buckets is how many parts Result.Over has, of about equal numbers of
	// requests; 0 means none.
	Buckets int
	// OnRecord is told of each request when it begins; an error of it ends the
	// replay.
	OnRecord func(*Record) error
}

// MaxWorkers is the largest number of workers.
const MaxWorkers = 1024

// Timing is the model of time: a request holds its room from when it begins
// until it has read its uncached tokens and generated its output. It begins when
// it comes, or later where the worker lacks the room: then it waits for the
// running request that ends first, and those that come after it wait with it.
// Requests do not slow each other down.
type Timing struct {
	Prefill float64 // tokens of a prompt that an engine reads in a second
	Decode  float64 // tokens that a request generates in a second
	// Output is how many tokens a request generates whose output the trace does
	// not tell.
	Output int
}

// Routing is how a router chooses an engine.
type Routing uint8

const (
	// RoundRobin takes each engine in turn.
	RoundRobin Routing = iota
	// Random draws one.
	Random
	// LeastLoaded takes the engine with the fewest running and waiting requests,
	// of equal ones the one that was sent the fewest tokens.
	LeastLoaded
	// PrefixAware takes the engine that was sent the longest prefix of the prompt,
	// where that is more than a share of it and the engines are about equally
	// loaded; else as LeastLoaded: see [Thresholds]. The router knows what it sent
	// and not what engines threw away.
	PrefixAware
)

// Thresholds say when [PrefixAware] follows a prefix. The rule and the defaults
// are those of SGLang's router (sgl-model-gateway 0.3, policies/cache_aware.rs at
// 053b63f; cache_threshold, balance_abs_threshold and balance_rel_threshold of its
// launcher's router_args.py). A prompt that follows no prefix goes to the least
// loaded engine there; versions before took the one with the smallest tree, for
// which the tokens that were sent stand here among equally loaded ones. Unlike
// there, prefixes are of whole blocks and not of characters, and the index has no
// limit.
//
// Load is the number of running and waiting requests with [Timing]. Without it
// nothing takes time, so the requests that an engine was sent so far count as its
// load, and of equal ones the tokens.
type Thresholds struct {
	// Match is the share of a prompt, 0 to 1, of which more must have been sent to
	// an engine for the prompt to go there.
	Match float64
	// The engines are loaded unequally, and the least loaded one is taken whatever
	// it was sent, where the largest load is more than BalanceRequests above the
	// smallest and more than BalanceRatio times as large.
	BalanceRequests int
	BalanceRatio    float64
}

// DefaultThresholds are those that SGLang's router starts with.
func DefaultThresholds() Thresholds {
	return Thresholds{Match: 0.3, BalanceRequests: 64, BalanceRatio: 1.5}
}

// Loss divides the tokens of prompts by what became of them. The fields add up
// to the prompts' tokens.
//
// Seen text is that of earlier prompts and outputs with the same keys (salt,
// adapter, media), on whichever worker. Each of these counts can only be larger
// than the one before, and a field is the distance between two:
// what the cache gave, what an unlimited cache of the worker would have, what one
// unlimited cache of all workers would have, the longest common prefix in tokens
// with anything seen, the tokens inside the longest common prefix in bytes, the
// prompt.
type Loss struct {
	// Hit tokens were found computed.
	Hit int64 `json:"hit"`
	// Capacity tokens had been thrown away, or were held back by how the engine
	// makes room.
	Capacity int64 `json:"capacity"`
	// Routing tokens were on another worker only.
	Routing int64 `json:"routing"`
	// Rounding tokens were seen and are not reused by rule: parts of blocks, the
	// prompt's last token, requests that bypass the cache, outputs in engines that
	// keep none.
	Rounding int64 `json:"rounding"`
	// Boundary tokens are of seen text that was made of other tokens.
	Boundary int64 `json:"boundary"`
	// Content tokens are at or behind the prompt's first new byte, or were seen under
	// other keys only. What is behind it may be text that stood elsewhere in an
	// earlier prompt: package audit tells.
	Content int64 `json:"content"`
}

// Tokens is the sum of all fields.
func (l Loss) Tokens() int64 {
	return l.Hit + l.Capacity + l.Routing + l.Rounding + l.Boundary + l.Content
}

// A Record is what became of one request.
type Record struct {
	Request      *trace.Request // valid during the call only
	Index        int            // of the request among those with content, from 0
	Worker       int            // from 0
	PromptTokens int
	Cached       int // tokens that the simulated cache gave
	// Rejected says that the prompt is larger than the cache: it was not run, and
	// is not counted among the prompts.
	Rejected bool
	// Loss adds up to PromptTokens; it is zero without Options.NewUnlimited.
	Loss Loss
	// Begin is when the request began since the trace's first, and Wait how long
	// it had to; without Timing, when it came, and 0.
	Begin, Wait time.Duration
}

// A Result is what a replay gave. Requests of the warm-up are counted in Warmup
// only; Blocks and Evictions are of the whole replay.
type Result struct {
	Policy       string  `json:"policy"`
	HitTokens    int64   `json:"hit_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	HitRate      float64 `json:"hit_rate"`     // HitTokens of PromptTokens; 0 without prompts
	BlockTokens  int     `json:"block_tokens"` // tokens in one of Blocks
	Blocks       int64   `json:"blocks"`       // cached at the end, on all workers
	Evictions    int64   `json:"evictions"`    // blocks

	Requests  int64 `json:"requests"`
	Warmup    int64 `json:"warmup_requests"`
	Rejected  int64 `json:"rejected_requests"`   // prompts larger than the cache
	NoContent int64 `json:"no_content_requests"` // the trace does not tell the prompt
	Refused   int64 `json:"refused_requests"`    // conversations without a prompt, see Options.SkipRefused

	// Loss is nil without Options.NewUnlimited.
	Loss    *Loss          `json:"loss,omitempty"`
	Workers []WorkerResult `json:"workers,omitempty"` // if there are several
	Over    []Bucket       `json:"over,omitempty"`
	// Reported is nil where the trace tells no request's cached tokens.
	Reported *Reported `json:"reported,omitempty"`
	// Wait is the mean time in seconds that a request waited for room, with Timing.
	Wait float64 `json:"wait_s,omitempty"`
	// FirstToken is the mean time in seconds until a request's prompt was read,
	// Wait included, with Timing.
	FirstToken float64 `json:"first_token_s,omitempty"`
	// Notes say in sentences what the trace could not show, and what was assumed.
	Notes []string `json:"notes,omitempty"`
}

// WorkerResult is the part of one worker in a Result.
type WorkerResult struct {
	Requests     int64   `json:"requests"`
	HitTokens    int64   `json:"hit_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	HitRate      float64 `json:"hit_rate"`
	Blocks       int64   `json:"blocks"`
	Evictions    int64   `json:"evictions"`
}

// A Bucket is a run of requests, those of the warm-up included.
type Bucket struct {
	First        int64   `json:"first"` // number of its first request, from 0
	Requests     int64   `json:"requests"`
	At           float64 `json:"at_s"` // when the first came, in seconds; 0 without times
	HitTokens    int64   `json:"hit_tokens"`
	PromptTokens int64   `json:"prompt_tokens"`
	HitRate      float64 `json:"hit_rate"`
	Evictions    int64   `json:"evictions"`
	Loss         *Loss   `json:"loss,omitempty"`
}

// Reported compares the replay with what the engine reported in the trace, over
// the requests that tell it.
type Reported struct {
	Requests     int64   `json:"requests"`
	PromptTokens int64   `json:"prompt_tokens"`  // as replayed
	CachedTokens int64   `json:"cached_tokens"`  // as reported
	HitTokens    int64   `json:"hit_tokens"`     // as replayed
	HitRate      float64 `json:"hit_rate"`       // as reported
	Equal        int64   `json:"equal_requests"` // replay and report agree to the token
}

// ErrNoContent is what Run returns for a trace none of whose requests tells a
// prompt: it has lengths and times only, or what it has cannot be read with the
// Options given.
var ErrNoContent = errors.New("replay: no request of the trace tells its prompt")

// ErrTakesTokens is what Run returns where a trace names blocks and the cache is
// no [BlockCache].
var ErrTakesTokens = errors.New("the cache takes tokens, and the trace has identities of blocks only: choose another engine")
