package prefixcache

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

func mustSlots(t testing.TB, o SlotsOptions) *Slots {
	t.Helper()
	s, err := NewSlots(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// letters gives every byte of s as a token.
func letters(s string) []vocab.ID {
	ids := make([]vocab.ID, len(s))
	for i := range s {
		ids[i] = vocab.ID(s[i])
	}
	return ids
}

// A slotsCall is a request that begins and ends before the next one, unless held.
type slotsCall struct {
	prompt, output string
	slot           int // as Request.Slot
	bypass         bool
	lora           string
	held           bool // runs on until the end of the test
	cached, at     int  // at is Lease.Slot
	err            error
}

func TestSlotsRules(t *testing.T) {
	off := int64(CacheRAMOff)
	tests := []struct {
		name  string
		o     SlotsOptions
		calls []slotsCall
	}{
		{"a prompt sent again computes its last token", SlotsOptions{Slots: 1, CacheRAM: off}, []slotsCall{
			{prompt: "abcd", output: "x", at: 1},
			{prompt: "abcd", output: "x", cached: 3, at: 1},
			{prompt: "abcdef", output: "x", cached: 4, at: 1},
			{prompt: "abzz", output: "x", cached: 2, at: 1},
			{prompt: "a", output: "x", cached: 0, at: 1},
		}},
		{"of the output all but the last token is there", SlotsOptions{Slots: 1, CacheRAM: off}, []slotsCall{
			{prompt: "abc", output: "xyz", at: 1},
			{prompt: "abcxyzd", cached: 5, at: 1},
		}},
		{"without an output the prompt is there", SlotsOptions{Slots: 1, CacheRAM: off}, []slotsCall{
			{prompt: "abc", at: 1},
			{prompt: "abcd", cached: 3, at: 1},
		}},
		{"an empty prompt changes nothing", SlotsOptions{Slots: 1, CacheRAM: off}, []slotsCall{
			{prompt: "abc", at: 1},
			{prompt: "", output: "xy", at: 1},
			{prompt: "abcd", cached: 3, at: 1},
		}},
		{"of slots never used the last one is taken, then the one used first", SlotsOptions{Slots: 3, CacheRAM: off}, []slotsCall{
			{prompt: "aaaa", at: 3}, {prompt: "bbbb", at: 2}, {prompt: "cccc", at: 1}, {prompt: "dddd", at: 3}, {prompt: "bbbb", cached: 3, at: 2},
			{prompt: "eeee", at: 1},
		}},
		{"a slot with a tenth of the prompt or less is not chosen for it", SlotsOptions{Slots: 2, CacheRAM: off}, []slotsCall{
			{prompt: "abbbbbbbbb", at: 2},
			{prompt: "accccccccc", at: 1},
			{prompt: "addddddddd", cached: 1, at: 2}, // by last use, with the one token in common
			{prompt: "accdddddd", cached: 3, at: 1},
		}},
		{"the better of two slots", SlotsOptions{Slots: 2, CacheRAM: off}, []slotsCall{
			{prompt: "abcd", at: 2}, {prompt: "xbcd", at: 1}, {prompt: "abcx", cached: 3, at: 2}, {prompt: "xbcdefgh", cached: 4, at: 1},
		}},
		{"similarity off: last use alone", SlotsOptions{Slots: 2, CacheRAM: off, Similarity: -1}, []slotsCall{
			{prompt: "abcd", at: 2}, {prompt: "abcd", at: 1}, {prompt: "abcd", cached: 3, at: 2},
		}},
		{"id_slot wraps round and may name a worse slot", SlotsOptions{Slots: 2, CacheRAM: off}, []slotsCall{
			{prompt: "abcd", slot: 1, at: 1}, {prompt: "abcd", slot: 4, at: 2}, {prompt: "abcd", slot: 3, cached: 3, at: 1},
		}},
		{"a busy slot", SlotsOptions{Slots: 2, CacheRAM: off}, []slotsCall{
			{prompt: "abcd", held: true, at: 2},
			{prompt: "abcd", at: 1},
			{prompt: "abcd", slot: 2, err: ErrNoRoom},
			{prompt: "abcd", held: true, cached: 3, at: 1},
			{prompt: "abcd", err: ErrNoRoom},
		}},
		{"a prompt as long as the context", SlotsOptions{Slots: 1, Context: 4, CacheRAM: off}, []slotsCall{
			{prompt: "abc", at: 1}, {prompt: "abcd", err: ErrTooLarge}, {prompt: "abc", cached: 2, at: 1},
		}},
		{"cache_prompt false", SlotsOptions{Slots: 1, CacheRAM: off}, []slotsCall{
			{prompt: "abcd", at: 1}, {prompt: "abcd", bypass: true, at: 1}, {prompt: "abcd", cached: 3, at: 1},
		}},
		{"another adapter", SlotsOptions{Slots: 1, CacheRAM: off}, []slotsCall{
			{prompt: "abcd", lora: "p", at: 1}, {prompt: "abcd", lora: "p", cached: 3, at: 1}, {prompt: "abcd", lora: "q", at: 1},
		}},
		{"a prompt that left its slot comes back from RAM", SlotsOptions{Slots: 1, KeepIdle: true}, []slotsCall{
			{prompt: "aaaabbbb", at: 1}, {prompt: "cccc", at: 1}, {prompt: "aaaabbbbd", cached: 8, at: 1},
		}},
		{"not if less than a quarter of it would stay", SlotsOptions{Slots: 1, KeepIdle: true}, []slotsCall{
			{prompt: "aabbbbbbb", at: 1}, {prompt: "cccc", at: 1}, {prompt: "aad", at: 1},
		}},
		{"not if more than half of the slot stays", SlotsOptions{Slots: 1, KeepIdle: true}, []slotsCall{
			{prompt: "abcdefgh", at: 1}, {prompt: "x", at: 1}, {prompt: "abcdzzzz", cached: 4, at: 1}, {prompt: "abcdefgh", cached: 4, at: 1},
		}},
		{"RAM holds the newest", SlotsOptions{Slots: 1, KeepIdle: true, TokenBytes: 1, CacheRAM: 9}, []slotsCall{
			{prompt: "aaaa", at: 1}, {prompt: "bbbb", at: 1}, {prompt: "cccc", at: 1}, {prompt: "dddd", at: 1}, {prompt: "aaaaa", at: 1},
			{prompt: "dddde", cached: 4, at: 1},
		}},
		{"idle slots are copied when a request starts", SlotsOptions{Slots: 2}, []slotsCall{
			{prompt: "aaaa", at: 2}, {prompt: "bbbb", at: 1},
			{prompt: "aaaac", slot: 1, cached: 4, at: 1}, // the other slot still has it
		}},
		{"and emptied where they share a context", SlotsOptions{Slots: 2, Unified: true}, []slotsCall{
			{prompt: "aaaa", at: 2}, {prompt: "bbbb", at: 1}, {prompt: "aaaac", cached: 4, at: 2}, {prompt: "aaaacd", cached: 5, at: 2},
		}},
		{"a shared context that is full", SlotsOptions{Slots: 2, Unified: true, CacheRAM: off, Context: 8}, []slotsCall{
			{prompt: "aaaa", at: 2}, {prompt: "bbbb", at: 1}, {prompt: "bbbbc", cached: 4, at: 1}, {prompt: "aaaac", at: 2},
			{prompt: "aaaacd", held: true, cached: 5, at: 2}, {prompt: "eee", err: ErrNoRoom},
		}},
		{"chunks move", SlotsOptions{Slots: 1, CacheRAM: off, CacheReuse: 3}, []slotsCall{
			{prompt: "sabcdxefgh", at: 1}, {prompt: "sefgh", cached: 4, at: 1}, // all of it but the last token
			{prompt: "sabfgh", cached: 1, at: 1},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustSlots(t, tt.o)
			for i, c := range tt.calls {
				l, err := s.Begin(&Request{Prompt: letters(c.prompt), Slot: c.slot, Bypass: c.bypass, Keys: Keys{LoRA: c.lora}})
				if !errors.Is(err, c.err) || err == nil && (l.Cached != c.cached || l.Slot != c.at) {
					t.Errorf("call %d, %q: %d tokens in slot %d, %v; want %d in slot %d, %v", i, c.prompt, l.Cached, l.Slot, err, c.cached, c.at, c.err)
				}
				if err == nil && !c.held {
					s.End(l, letters(c.output))
					s.End(l, letters("again")) // does nothing
				}
			}
		})
	}
}

// A copy in RAM takes the place of those that are prefixes of it, and is not made where one has all of it.
func TestSlotsCopies(t *testing.T) {
	s := mustSlots(t, SlotsOptions{Slots: 2})
	for _, step := range []struct {
		prompt string
		tokens int // in RAM
	}{
		{"aa", 0}, {"x", 2}, {"aaaaaa", 3}, {"xy", 7}, {"aaaaaaa", 8}, {"xy", 9}, {"xz", 9},
	} {
		l, err := s.Begin(&Request{Prompt: letters(step.prompt)})
		if err != nil || s.saved.tokens != step.tokens {
			t.Errorf("%q: %d tokens in RAM, %v; want %d", step.prompt, s.saved.tokens, err, step.tokens)
		}
		s.End(l, nil)
	}
}

func TestSlotsMedia(t *testing.T) {
	s := mustSlots(t, SlotsOptions{Slots: 1})
	ask := func(prompt, hash string, want int) {
		t.Helper()
		l, err := s.Begin(&Request{Prompt: letters(prompt), Keys: Keys{Media: []Media{{Hash: hash, Offset: 2, Length: 3}}}})
		if err != nil || l.Cached != want {
			t.Errorf("%q with item %s: %d tokens cached, %v; want %d", prompt, hash, l.Cached, err, want)
		}
		s.End(l, nil)
	}
	ask("ab...cd", "1", 0)
	ask("ab...ce", "1", 6)
	ask("ab...ce", "2", 2)
}

func TestSlotsOptions(t *testing.T) {
	for _, o := range []SlotsOptions{{Slots: -1}, {Context: -1}, {CacheReuse: -1}, {Slots: 1 << 20}, {TokenBytes: -1}, {CacheRAM: -3}, {Window: 1, Recurrent: true}} {
		if _, err := NewSlots(o); err == nil || !strings.HasPrefix(err.Error(), "prefixcache: SlotsOptions") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := NewSlots(SlotsOptions{}); err != nil {
		t.Error(err)
	}
}

// A prompt's end, as [Slots] without RAM sees it, found by trying every slot and every length.
func TestSlotsOracle(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(4)
		s := mustSlots(t, SlotsOptions{Slots: n, CacheRAM: CacheRAMOff})
		type held struct {
			tokens []vocab.ID
			ended  int
		}
		slots := make([]held, n)
		for step := range 150 {
			prompt := make([]vocab.ID, 1+r.IntN(30))
			for i := range prompt {
				prompt[i] = vocab.ID(r.IntN(2))
			}
			if r.IntN(2) == 0 {
				base := slots[r.IntN(n)].tokens
				prompt = append(slices.Clone(base[:r.IntN(len(base)+1)]), prompt...)
			}
			// the slot that has most of it, more than a tenth; else the one that ended first, the last of those
			best, most := -1, 0
			for i, slot := range slots {
				k := 0
				for k < len(slot.tokens) && k < len(prompt) && slot.tokens[k] == prompt[k] {
					k++
				}
				if k > most && 10*k > len(prompt) {
					best, most = i, k
				}
			}
			if best < 0 {
				best = 0
				for i := range slots {
					if slots[i].ended <= slots[best].ended {
						best = i
					}
				}
				for most < len(slots[best].tokens) && most < len(prompt) && slots[best].tokens[most] == prompt[most] {
					most++
				}
			}
			l, err := s.Begin(&Request{Prompt: prompt})
			if want := min(most, len(prompt)-1); err != nil || l.Cached != want || l.Slot != best+1 {
				t.Fatalf("seed %d, step %d: %d tokens in slot %d, %v; want %d in slot %d", seed, step, l.Cached, l.Slot, err, want, best+1)
			}
			output := prompt[:r.IntN(len(prompt))]
			s.End(l, output)
			slots[best] = held{append(slices.Clone(prompt), output[:max(0, len(output)-1)]...), step + 1}
		}
	}
}

// What must hold after any request, for all kinds of settings.
func TestSlotsInvariants(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		o := SlotsOptions{
			Slots: 1 + r.IntN(3), Context: r.IntN(2) * 256, Unified: r.IntN(2) == 0, KeepIdle: r.IntN(2) == 0, TokenBytes: 1,
			CacheRAM: []int64{0, CacheRAMOff, CacheRAMUnlimited, 200}[r.IntN(4)], CacheReuse: r.IntN(2) * 4,
			Checkpoints: r.IntN(4), CheckpointStep: 1 + r.IntN(40), Batch: 1 + r.IntN(64), Ubatch: 1 + r.IntN(64),
		}
		switch r.IntN(3) {
		case 0:
			o.Window, o.WindowTokenBytes = 2+r.IntN(40), 2
		case 1:
			o.Recurrent, o.StateBytes = true, 5
		}
		s := mustSlots(t, o)
		var running []Lease
		var last []vocab.ID
		for step := range 120 {
			prompt := append([]vocab.ID(nil), last[:r.IntN(len(last)+1)]...)
			for range r.IntN(60) {
				prompt = append(prompt, vocab.ID(r.IntN(3)))
			}
			l, err := s.Begin(&Request{Prompt: prompt, Slot: max(0, r.IntN(12)-8), Bypass: r.IntN(20) == 0})
			if err == nil {
				running = append(running, l)
				if l.Cached < 0 || l.Cached > max(0, len(prompt)-1) || l.Slot < 1 || l.Slot > o.Slots {
					t.Fatalf("seed %d, step %d: %+v for %d tokens", seed, step, l, len(prompt))
				}
				last = prompt
			}
			if len(running) > 0 && (err != nil || r.IntN(3) > 0) {
				i := r.IntN(len(running))
				s.End(running[i], prompt[:min(len(prompt), r.IntN(9))])
				running = slices.Delete(running, i, i+1)
			}
			checkSlots(t, s, seed, step)
		}
	}
}

func checkSlots(t *testing.T, s *Slots, seed uint64, step int) {
	t.Helper()
	bytes, tokens := int64(0), 0
	for _, p := range s.saved.list {
		bytes += p.bytes
		tokens += len(p.tokens)
	}
	if bytes != s.saved.bytes || tokens != s.saved.tokens || s.o.CacheRAM > 0 && bytes > s.o.CacheRAM {
		t.Fatalf("seed %d, step %d: RAM has %d bytes and %d tokens, says %d and %d", seed, step, bytes, tokens, s.saved.bytes, s.saved.tokens)
	}
	for i := range s.slots {
		slot := &s.slots[i]
		if len(slot.checkpoints) > max(0, s.o.Checkpoints) {
			t.Fatalf("seed %d, step %d: slot %d has %d checkpoints", seed, step, i, len(slot.checkpoints))
		}
		if slot.memory == nil {
			continue
		}
		first, last := slot.memory.bounds(i)
		if last+1 != len(slot.tokens) {
			t.Fatalf("seed %d, step %d: slot %d has %d tokens and cells up to %d (%+v)", seed, step, i, len(slot.tokens), last, s.o)
		}
		n, used := 0, 0
		for _, owner := range slot.memory.owner {
			if owner == int32(i) {
				n++
			}
			if owner >= 0 {
				used++
			}
		}
		if n > 0 && n != last-first+1 || used != slot.memory.used {
			t.Fatalf("seed %d, step %d: slot %d has %d cells for positions %d to %d; %d used, says %d", seed, step, i, n, first, last, used, slot.memory.used)
		}
	}
}

func TestSlotsReset(t *testing.T) {
	s := mustSlots(t, SlotsOptions{Slots: 2})
	for range 2 {
		for _, p := range []string{"abcd", "xyz", "abcde"} {
			l, err := s.Begin(&Request{Prompt: letters(p)})
			if err != nil {
				t.Fatal(err)
			}
			s.End(l, letters("op"))
		}
		if st := s.Stats(); st.Requests != 3 || st.PromptTokens != 12 || st.HitTokens != 4 || st.Unit != 1 {
			t.Errorf("%+v", st)
		}
		s.Reset()
		if st := s.Stats(); st != (Stats{Unit: 1}) {
			t.Errorf("after Reset %+v", st)
		}
	}
}

// The state of a model without attention is taken back to a checkpoint only: at 4 tokens and at a batch before the end of
// a prompt.
func TestSlotsRecurrent(t *testing.T) {
	s := mustSlots(t, SlotsOptions{Slots: 1, CacheRAM: CacheRAMOff, Recurrent: true, Ubatch: 16})
	ask := func(prompt []vocab.ID, output string, want int) {
		t.Helper()
		l, err := s.Begin(&Request{Prompt: prompt})
		if err != nil || l.Cached != want {
			t.Errorf("%d tokens: %d cached, %v; want %d", len(prompt), l.Cached, err, want)
		}
		s.End(l, letters(output))
	}
	long := countUp(100, 60)
	ask(long, "xyz", 0)
	ask(append(slices.Clone(long), letters("xya")...), "", 62)
	ask(append(slices.Clone(long[:50]), 1), "", 40)
	ask(append(slices.Clone(long[:30]), 1), "", 0)
}

// A conversation of 4,000 tokens grows by 40 a turn, in a server with four of them. The unit is a turn.
func BenchmarkSlots(b *testing.B) {
	for _, unified := range []bool{false, true} {
		b.Run(map[bool]string{false: "own", true: "unified"}[unified], func(b *testing.B) {
			s := mustSlots(b, SlotsOptions{Unified: unified})
			talks := make([][]vocab.ID, 4)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				talk := &talks[i%4]
				if len(*talk) == 0 || len(*talk) > 6000 {
					*talk = countUp(i*10000, 4000)
				}
				l, err := s.Begin(&Request{Prompt: *talk})
				if err != nil {
					b.Fatal(err)
				}
				*talk = append(*talk, countUp(i, 40)...)
				s.End(l, (*talk)[len(*talk)-40:len(*talk)-20])
			}
		})
	}
}
