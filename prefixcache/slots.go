package prefixcache

import (
	"errors"
	"fmt"

	"github.com/unfray/unfray/vocab"
)

// The defaults of llama.cpp's server that a zero field of [SlotsOptions] stands for.
const (
	DefaultSlots          = 4
	DefaultSimilarity     = 0.1
	DefaultCacheRAM       = 8192 << 20 // bytes
	DefaultCheckpoints    = 32
	DefaultCheckpointStep = 8192 // tokens
	DefaultBatch          = 2048 // tokens
	DefaultUbatch         = 512  // tokens

	// defaultTokenBytes is what a token's state takes in a model of 8 billion parameters with 32 layers of 8
	// key-value heads of 128 numbers, in 16 bits.
	defaultTokenBytes = 128 << 10
)

// Values of [SlotsOptions.CacheRAM] besides a number of bytes.
const (
	CacheRAMOff       = -1 // --cache-ram 0
	CacheRAMUnlimited = -2 // --cache-ram -1: the server then keeps as many tokens as its whole context has
)

// SlotsOptions are the settings of llama.cpp's server that decide what it finds computed. The zero value stands for a
// server with `--parallel 4` of a model whose layers all attend to every token.
type SlotsOptions struct {
	Slots int // --parallel; 0: [DefaultSlots]

	// Context is how many tokens a slot holds, all of them together with Unified; 0: no limit. The server makes it a
	// multiple of 256.
	Context int
	// Unified is --kv-unified, which the server sets itself where --parallel is not given: all slots share one
	// context, and an idle slot is emptied as soon as another request starts, so that what it held is found only in
	// CacheRAM.
	Unified bool
	// Similarity is --slot-prompt-similarity: the share of a prompt that a slot must hold to be chosen for it; 0:
	// [DefaultSimilarity], less than 0: slots are chosen by last use only.
	Similarity float32

	// CacheRAM is --cache-ram in bytes, the room for prompts that left their slots; 0: [DefaultCacheRAM]. See
	// [CacheRAMOff] and [CacheRAMUnlimited].
	CacheRAM int64
	// KeepIdle is --no-cache-idle-slots: idle slots are not copied into CacheRAM when a request starts.
	KeepIdle bool
	// TokenBytes is what a token's state takes in CacheRAM; 0: 128 KiB, as Llama 3.1 8B with a cache in 16 bits.
	// WindowTokenBytes is what it takes in the layers with a sliding window, in addition.
	TokenBytes, WindowTokenBytes int64
	// StateBytes is what a state takes however long it is: a recurrent model's.
	StateBytes int64

	// CacheReuse is --cache-reuse: chunks of so many tokens or more are shifted to where the prompt has them; 0: off.
	// Models whose state cannot be shifted do without it.
	CacheReuse int

	// Window is the sliding window of some of the model's layers, in tokens; 0: none, or --swa-full.
	Window int
	// Recurrent says that the model's state cannot be taken back by a token: Mamba, RWKV and models that mix them
	// with attention.
	Recurrent bool
	// Checkpoints is --ctx-checkpoints, how many states a slot keeps where Window or Recurrent need them; 0:
	// [DefaultCheckpoints], less than 0: none. CheckpointStep is --checkpoint-min-step; 0: [DefaultCheckpointStep].
	Checkpoints, CheckpointStep int
	// Batch and Ubatch are --batch-size and --ubatch-size in tokens; 0: [DefaultBatch], [DefaultUbatch]. They decide
	// where checkpoints are made.
	Batch, Ubatch int
}

// Slots simulates the prompt cache of llama.cpp's server: every slot holds the tokens of its last request, a prompt
// finds computed what it has in common with them from the start on, at least one of its tokens is computed anew, and
// prompts that leave their slots are kept in RAM.
//
// The rules are those of tools/server/server-context.cpp (get_available_slot, process_single_task, update_slots) and
// server-task.cpp (server_prompt_cache) of llama.cpp at 0c1e57098, checked against a running server b11549.
//
// Slots leaves out: chat messages' bounds, at which models with a window get further checkpoints; context shift
// (--context-shift), speculative decoding and children of one request (n > 1); the damage that server does when
// id_slot names a slot that is busy and one of the prompts in RAM fits better.
type Slots struct {
	o     SlotsOptions
	slots []promptSlot
	saved savedPrompts
	// media numbers the items of prompts, downwards from -2, so that their placeholders count as tokens.
	media map[Media]vocab.ID
	clock uint64 // of ends of requests
	tasks uint64 // requests begun
	stats Stats
}

// A promptSlot is what a slot holds. While it is busy its tokens are the prompt, which a request alone sees.
type promptSlot struct {
	slotState
	busy   bool
	filled bool // by the request that runs; not with an empty prompt
	lease  uint64
	used   uint64 // by the clock, when a request last ended
	lora   string
	memory *windowMemory // nil without a window
}

// A slotState is what can move between a slot and RAM.
type slotState struct {
	tokens      []vocab.ID
	checkpoints []checkpoint
}

// NewSlots returns an empty cache. Its error names the option that is out of range.
func NewSlots(o SlotsOptions) (*Slots, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Slots{o: o}
	s.Reset()
	return s, nil
}

// fill checks the options and puts the defaults in.
func (o *SlotsOptions) fill() error {
	for _, f := range []struct {
		name  string
		value *int
		zero  int
		least int
	}{
		{"Slots", &o.Slots, DefaultSlots, 1},
		{"Context", &o.Context, 0, 0},
		{"CacheReuse", &o.CacheReuse, 0, 0},
		{"Window", &o.Window, 0, 0},
		{"Checkpoints", &o.Checkpoints, DefaultCheckpoints, -1 << 31},
		{"CheckpointStep", &o.CheckpointStep, DefaultCheckpointStep, 0},
		{"Batch", &o.Batch, DefaultBatch, 1},
		{"Ubatch", &o.Ubatch, DefaultUbatch, 1},
	} {
		if *f.value == 0 {
			*f.value = f.zero
		}
		if *f.value < f.least {
			return fmt.Errorf("prefixcache: SlotsOptions.%s is %d: give %d or more", f.name, *f.value, f.least)
		}
	}
	if o.Slots > 1<<16 {
		return fmt.Errorf("prefixcache: SlotsOptions.Slots is %d: give at most %d", o.Slots, 1<<16)
	}
	if o.TokenBytes < 0 || o.WindowTokenBytes < 0 || o.StateBytes < 0 || o.CacheRAM < CacheRAMUnlimited {
		return errors.New("prefixcache: SlotsOptions: a number of bytes is negative")
	}
	if o.Window > 0 && o.Recurrent {
		return errors.New("prefixcache: SlotsOptions: give Window or Recurrent, not both")
	}
	if o.CacheRAM == 0 {
		o.CacheRAM = DefaultCacheRAM
	}
	if o.TokenBytes == 0 {
		o.TokenBytes = defaultTokenBytes
	}
	if o.Similarity == 0 {
		o.Similarity = DefaultSimilarity
	}
	o.Ubatch = min(o.Ubatch, o.Batch)
	if o.Window > 0 || o.Recurrent {
		o.CacheReuse = 0
	}
	return nil
}

// Reset empties the slots and the RAM cache and sets the counts to zero.
func (s *Slots) Reset() {
	s.slots = make([]promptSlot, s.o.Slots)
	s.saved = savedPrompts{}
	s.media = nil
	s.clock, s.tasks = 0, 0
	s.stats = Stats{Unit: 1}
	if s.o.Window == 0 {
		return
	}
	shared := newWindowMemory(s.o)
	for i := range s.slots {
		if !s.o.Unified {
			shared = newWindowMemory(s.o)
		}
		s.slots[i].memory = shared
	}
}

// Stats says what the cache did. Blocks are the tokens in slots and, once more, in RAM. Evictions are tokens that a slot
// gave up without a copy in RAM, and those of the prompts that RAM gave up for room.
func (s *Slots) Stats() Stats {
	st := s.stats
	st.Blocks = int64(s.saved.tokens)
	for i := range s.slots {
		st.Blocks += int64(len(s.slots[i].tokens))
	}
	return st
}

// Begin takes a request into a slot: the one that r names, or else the free one that has most of the prompt, or else the
// one whose last request ended first. It returns [ErrNoRoom] where the slot, or every one, is busy, and [ErrTooLarge]
// for a prompt that does not fit into a slot and leaves room for no token after it; the server has chosen a slot and
// filled it from RAM by then. r.Bypass is `"cache_prompt": false`. Of r.Keys the server knows LoRA, as its adapters are
// given by the request, and Media.
func (s *Slots) Begin(r *Request) (Lease, error) {
	prompt := s.identify(r)
	if s.o.Unified && s.o.Context > 0 && s.busyTokens()+len(prompt) > s.o.Context && len(prompt) < s.o.Context {
		return Lease{}, ErrNoRoom // the server would fail the requests that run
	}
	number, update := s.choose(prompt, r.Slot)
	if number < 0 {
		return Lease{}, ErrNoRoom
	}
	slot := &s.slots[number]
	copied := false
	if update && s.o.CacheRAM != CacheRAMOff {
		if copied = s.save(number); s.load(number, prompt, copied) {
			copied = false // RAM gave its copy up
		}
		s.trimSaved()
	}
	if r.Keys.LoRA != "" && r.Keys.LoRA != slot.lora {
		s.evicted(&slot.slotState, 0, copied)
		slot.tokens, slot.checkpoints = slot.tokens[:0], nil
	}
	slot.lora = r.Keys.LoRA
	s.tasks++
	slot.busy, slot.lease = true, s.tasks
	s.copyIdle()
	if s.o.Context > 0 && len(prompt) >= s.o.Context {
		s.release(slot)
		return Lease{}, ErrTooLarge
	}

	cached := 0
	if slot.filled = len(prompt) > 0; slot.filled {
		cached = s.reuse(number, prompt, r.Bypass)
		s.evicted(&slot.slotState, cached, copied)
		slot.tokens = append(slot.tokens[:cached], prompt[cached:]...)
		s.compute(number, cached)
		s.purgeIdle()
	}
	s.stats.Requests++
	s.stats.PromptTokens += int64(len(prompt))
	s.stats.HitTokens += int64(cached)
	return Lease{Cached: cached, Slot: number + 1, id: slot.lease}, nil
}

// End leaves the prompt and the output but its last token in the slot: that one was sampled and never computed.
func (s *Slots) End(l Lease, output []vocab.ID) {
	if l.Slot < 1 || l.Slot > len(s.slots) {
		return
	}
	slot := &s.slots[l.Slot-1]
	if !slot.busy || slot.lease != l.id {
		return
	}
	if slot.filled && len(output) > 1 {
		from := len(slot.tokens)
		slot.tokens = append(slot.tokens, output[:len(output)-1]...)
		if slot.memory != nil {
			for pos := from; pos < len(slot.tokens); pos++ {
				slot.memory.add(l.Slot-1, pos, pos+1, s.o.Window)
			}
		}
		s.purgeIdle()
	}
	s.release(slot)
}

func (s *Slots) release(slot *promptSlot) {
	s.clock++
	slot.busy, slot.used = false, s.clock
}

// identify returns the prompt with a number below -1 for each placeholder of an item.
func (s *Slots) identify(r *Request) []vocab.ID {
	if len(r.Keys.Media) == 0 {
		return r.Prompt
	}
	prompt := append([]vocab.ID(nil), r.Prompt...)
	for _, m := range r.Keys.Media {
		key := Media{Hash: m.Hash, Length: m.Length}
		id, ok := s.media[key]
		if !ok {
			if s.media == nil {
				s.media = map[Media]vocab.ID{}
			}
			id = vocab.ID(-2 - len(s.media))
			s.media[key] = id
		}
		for i := max(0, m.Offset); i < min(len(prompt), m.Offset+m.Length); i++ {
			prompt[i] = id
		}
	}
	return prompt
}

// choose returns the number of the slot for a prompt, -1 if none is free, and whether what the slot holds goes to RAM
// first. asked is [Request.Slot]. The shares are 32-bit numbers, as the server has them.
func (s *Slots) choose(prompt []vocab.ID, asked int) (number int, update bool) {
	number = -1
	if asked > 0 {
		number = (asked - 1) % len(s.slots)
		if s.slots[number].busy {
			return -1, false
		}
	}
	if s.o.Similarity > 0 {
		var best float32
		for i := range s.slots {
			slot := &s.slots[i]
			if slot.busy || len(slot.tokens) == 0 || asked > 0 && i != number {
				continue
			}
			if f := portion(sharedPrefix(slot.tokens, prompt), len(prompt)); f > best && f > s.o.Similarity {
				best, number = f, i
			}
		}
		if number >= 0 {
			// an empty slot makes it 0/0, which is less than nothing
			keep := best * float32(len(prompt)) / float32(len(s.slots[number].tokens))
			return number, keep < 0.5
		}
	}
	if number >= 0 {
		return number, false
	}
	for i := range s.slots {
		if !s.slots[i].busy && (number < 0 || s.slots[i].used <= s.slots[number].used) {
			number = i // of slots never used the last one
		}
	}
	return number, number >= 0
}

// reuse returns how many tokens of the prompt the slot has computed. It may move tokens of the slot, and drops the
// checkpoints that no longer hold.
func (s *Slots) reuse(number int, prompt []vocab.ID, bypass bool) int {
	slot := &s.slots[number]
	n := 0
	if !bypass {
		n = sharedPrefix(slot.tokens, prompt)
		if s.o.CacheReuse > 0 && !hasMedia(slot.tokens) {
			n = shiftChunks(slot.tokens, prompt, n, s.o.CacheReuse)
		}
	}
	n = s.rollBack(number, n, len(prompt))
	if n == len(prompt) {
		n--
	}
	return n
}

// shiftChunks moves chunks of at least so many tokens that the prompt has too, from n on, to where the prompt has them.
// It returns how many tokens of the prompt the slot then starts with.
func shiftChunks(slot, prompt []vocab.ID, n, least int) int {
	from, to := n, n
	for from < len(slot) && to < len(prompt) {
		match := sharedPrefix(slot[from:], prompt[to:])
		if match < least {
			from++
			continue
		}
		copy(slot[to:], slot[from:from+match])
		from, to, n = from+match, to+match, n+match
	}
	return n
}

// copyIdle copies the idle slots into RAM, as the server does when a request has started, and empties them where all
// share one context.
func (s *Slots) copyIdle() {
	if s.o.KeepIdle || s.o.CacheRAM == CacheRAMOff {
		return
	}
	for i := range s.slots {
		if s.slots[i].busy {
			continue
		}
		copied := s.save(i)
		if copied {
			s.trimSaved()
		}
		if s.o.Unified {
			s.clear(i, copied)
		}
	}
}

// purgeIdle empties idle slots, the first one first, until the shared context holds what the slots have.
func (s *Slots) purgeIdle() {
	if !s.o.Unified || s.o.Context == 0 {
		return
	}
	total := 0
	for i := range s.slots {
		total += len(s.slots[i].tokens)
	}
	for i := range s.slots {
		if slot := &s.slots[i]; total > s.o.Context && !slot.busy {
			total -= len(slot.tokens)
			s.clear(i, false)
		}
	}
}

// clear empties a slot. copied says that RAM has what it held.
func (s *Slots) clear(number int, copied bool) {
	slot := &s.slots[number]
	s.evicted(&slot.slotState, 0, copied)
	slot.tokens, slot.checkpoints = slot.tokens[:0], nil
	if slot.memory != nil {
		slot.memory.remove(number, 0, maxPosition)
	}
}

// evicted counts the tokens of a slot after the first keep.
func (s *Slots) evicted(state *slotState, keep int, copied bool) {
	if !copied {
		s.stats.Evictions += int64(len(state.tokens) - keep)
	}
}

// busyTokens is how many tokens the requests that run hold, as far as is known before they end.
func (s *Slots) busyTokens() int {
	n := 0
	for i := range s.slots {
		if s.slots[i].busy {
			n += len(s.slots[i].tokens)
		}
	}
	return n
}

// sharedPrefix returns how many leading tokens a and b share.
func sharedPrefix(a, b []vocab.ID) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// portion is n of total, not a number for 0 of 0.
func portion(n, total int) float32 { return float32(n) / float32(total) }

func hasMedia(tokens []vocab.ID) bool {
	for _, id := range tokens {
		if id < vocab.None {
			return true
		}
	}
	return false
}
