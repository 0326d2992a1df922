// Package prefixcache simulates the prefix caches of serving engines on token
// IDs: what of a prompt an engine finds computed, what it keeps, and what it
// throws away. [Paged] does as vLLM's V1 engine, [Radix] as SGLang, [TGI] as
// text-generation-inference, [Slots] as llama.cpp's server.
//
// A simulator takes requests in the order in which the engine admits them, and
// a request holds its room from [Cache.Begin] to [Cache.End]. It knows no time:
// a caller that replays one calls Begin and End in the order of the events.
package prefixcache

import (
	"errors"

	"github.com/unfray/unfray/vocab"
)

// Keys separate what must not be shared although the tokens are equal.
type Keys struct {
	// Salt is vLLM's and SGLang's cache_salt.
	Salt string
	// LoRA is the name of the adapter that the request runs with.
	LoRA string
	// Extra is SGLang's extra_key.
	Extra string
	// Media are the items that placeholder tokens of the prompt stand for, in
	// the order of their offsets.
	Media []Media
}

// Media is an image or another item in a prompt.
type Media struct {
	Hash   string // the engine's hash of the content
	Offset int    // tokens of the prompt before its first placeholder
	Length int    // placeholders
}

// A Request is a prompt as an engine admits it.
type Request struct {
	Prompt []vocab.ID
	Keys   Keys
	// Bypass says that the engine does not look the prompt up, because it was
	// asked for something about every token of it: vLLM's prompt_logprobs,
	// SGLang's logprob_start_len, TGI's decoder_input_details. What it computes
	// is kept all the same.
	Bypass bool
	// Slot is the number of the slot of llama.cpp's server that the client asked
	// for (id_slot) plus one; 0: the server chooses.
	Slot int
	// Priority is SGLang's priority of the request, for its policy of that name.
	Priority int
}

// A Lease is the room that a running request holds.
type Lease struct {
	// Cached is how many tokens of the prompt were found computed.
	Cached int
	// Slot is the number of the slot of llama.cpp's server plus one; 0 elsewhere.
	Slot int

	id uint64
}

// NewLease is for caches of other packages: id tells a lease from the others of
// its cache.
func NewLease(id uint64, cached int) Lease { return Lease{Cached: cached, id: id} }

// ID is what the cache tells the lease by.
func (l Lease) ID() uint64 { return l.id }

// ErrNoRoom is what Begin returns where running requests hold so much that the
// prompt does not fit: the engine would leave it in its queue. A caller ends a
// running request and tries again. A prompt that is larger than the whole cache
// gets [ErrTooLarge].
var ErrNoRoom = errors.New("prefixcache: running requests hold the room that the prompt needs")

// ErrTooLarge is what Begin returns for a prompt that the whole cache cannot
// hold.
var ErrTooLarge = errors.New("prefixcache: the prompt is larger than the cache")

// A Cache simulates the prefix cache of one engine. It is not safe for use by
// several goroutines.
type Cache interface {
	// Begin admits a request. It does not keep r or its slices.
	Begin(r *Request) (Lease, error)
	// End frees what the request held. output are the tokens it generated, all of
	// them: the cache itself knows which of them the engine had computed (not the
	// last one, which was never fed back). A lease ends once.
	End(l Lease, output []vocab.ID)
	// Stats says what the cache did since it was made or reset.
	Stats() Stats
	// Reset forgets everything that is cached, and the counts. No request may be
	// running.
	Reset()
}

// Stats counts what a cache did, and what it holds.
type Stats struct {
	Requests     int64 `json:"requests"`
	PromptTokens int64 `json:"prompt_tokens"`
	HitTokens    int64 `json:"hit_tokens"` // of the prompts, found computed

	// Unit is the size of what Blocks and Evictions count, in tokens: the block
	// or page; 1 where single tokens are kept.
	Unit      int   `json:"unit"`
	Blocks    int64 `json:"blocks"`    // cached now, running requests included
	Evictions int64 `json:"evictions"` // units thrown away to make room
}

// HitRate is the share of the prompts' tokens that were found computed; 0
// without prompts.
func (s Stats) HitRate() float64 {
	if s.PromptTokens == 0 {
		return 0
	}
	return float64(s.HitTokens) / float64(s.PromptTokens)
}
