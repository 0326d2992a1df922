package prefixcache

import "math"

// maxPosition ends a range of positions that has no end.
const maxPosition = math.MaxInt32

// A checkpoint is a copy of the part of a slot's state that cannot be taken back token by token.
type checkpoint struct {
	task     uint64 // the request that made it
	tokens   int    // that the state had
	min, max int    // positions that the state had then
}

// rollBack returns how many of the first n tokens of a slot can serve a prompt: all of them where the state still has
// what the layers look back at, else those of the newest checkpoint that has it, else none. It drops the checkpoints
// behind that point. length is the prompt's.
func (s *Slots) rollBack(number, n, length int) int {
	slot := &s.slots[number]
	next := n
	if n > 0 && n <= len(slot.tokens) {
		least := max(0, next-s.o.Window)
		if n >= length {
			least = max(0, next-s.o.Window-1)
		}
		if first, _ := s.positions(number); first >= least && (s.o.Recurrent || s.o.Window > 0) {
			n, next = s.restore(number, n, next, least)
		}
	}
	kept := slot.checkpoints[:0]
	for _, c := range slot.checkpoints {
		if c.max <= next {
			kept = append(kept, c)
		}
	}
	slot.checkpoints = kept
	return n
}

// restore goes back to a checkpoint. It returns how many tokens are then computed, and the position after them.
func (s *Slots) restore(number, n, next, least int) (int, int) {
	slot := &s.slots[number]
	for i := len(slot.checkpoints) - 1; i >= 0; i-- {
		c := slot.checkpoints[i]
		if c.max > next || c.min >= least && c.min != 0 {
			continue
		}
		if slot.memory != nil {
			slot.memory.restore(number, c.max+1, s.o.Window)
		}
		next = min(next, max(c.min+1, c.max))
		return min(next, len(slot.tokens), c.tokens), next
	}
	return 0, 0
}

// positions returns the first and the last position in the part of a slot's state that forgets; -1 if it has none.
func (s *Slots) positions(number int) (first, last int) {
	slot := &s.slots[number]
	switch {
	case s.o.Recurrent:
		return len(slot.tokens) - 1, len(slot.tokens) - 1
	case slot.memory != nil:
		return slot.memory.bounds(number)
	default:
		return 0, len(slot.tokens) - 1
	}
}

// compute evaluates the slot's tokens from n on, in the server's batches, and makes the checkpoints.
func (s *Slots) compute(number, n int) {
	slot := &s.slots[number]
	if !s.o.Recurrent && slot.memory == nil {
		return
	}
	if slot.memory != nil {
		slot.memory.remove(number, n, maxPosition)
	}
	length := len(slot.tokens)
	makes := s.o.Checkpoints > 0
	for from := n; from < length; {
		to := min(length, from+s.o.Batch)
		if makes {
			// the server ends a batch there so that it can make a checkpoint
			for _, offset := range [2]int{4 + s.o.Ubatch, 4} {
				if at := length - min(s.o.Batch, offset); at > from {
					to = min(to, at)
				}
			}
		}
		if makes && from > 0 && (to == length || length < to+s.o.Ubatch) {
			s.checkpoint(number, from)
		}
		if slot.memory != nil {
			for at := from; at < to; at += s.o.Ubatch {
				slot.memory.add(number, at, min(to, at+s.o.Ubatch), s.o.Window)
			}
		}
		from = to
	}
}

// checkpoint keeps the state of a slot's first n tokens.
func (s *Slots) checkpoint(number, n int) {
	slot := &s.slots[number]
	c := checkpoint{task: slot.lease, tokens: n, min: n - 1, max: n - 1}
	if slot.memory != nil {
		if c.min, c.max = slot.memory.bounds(number); c.min < 0 {
			return
		}
	}
	// a full list first gives up those of earlier requests that are close to one before them
	list, last := slot.checkpoints, -1
	for i := 0; i < len(list) && len(list)+1 >= s.o.Checkpoints; {
		if list[i].task != c.task && last >= 0 && list[i].tokens <= last+s.o.CheckpointStep {
			list = append(list[:i], list[i+1:]...)
			continue
		}
		last = list[i].tokens
		i++
	}
	for len(list) >= s.o.Checkpoints {
		list = append(list[:0], list[1:]...)
	}
	kept := list[:0]
	for _, old := range list {
		if old.tokens != n {
			kept = append(kept, old)
		}
	}
	slot.checkpoints = append(kept, c)
}

// A windowMemory is the cells for the keys and values of layers with a sliding window, of one slot or of all of them. A
// cell is used anew once its position has left the window, so what is left of a prompt depends on where its tokens lie.
// It follows src/llama-kv-cache.cpp (find_slot, apply_ubatch, seq_rm, state_read_meta) of llama.cpp at 0c1e57098.
type windowMemory struct {
	owner []int32 // the slot's number; -1: empty
	pos   []int32
	used  int
	head  int // where the search for a cell starts
}

func newWindowMemory(o SlotsOptions) *windowMemory {
	window := o.Window
	if o.Unified {
		window *= o.Slots
	}
	size := window + o.Ubatch
	if o.Context > 0 {
		size = min(size, (o.Context+255)&^255)
	}
	size = (size + 255) &^ 255
	m := &windowMemory{owner: make([]int32, size), pos: make([]int32, size)}
	for i := range m.owner {
		m.owner[i] = -1
	}
	return m
}

// bounds returns the first and the last position of a slot; -1 if it has none.
func (m *windowMemory) bounds(slot int) (first, last int) {
	first, last = -1, -1
	for i, owner := range m.owner {
		if owner != int32(slot) {
			continue
		}
		p := int(m.pos[i])
		if first < 0 || p < first {
			first = p
		}
		last = max(last, p)
	}
	return first, last
}

// remove empties the cells of a slot's positions from first until before end.
func (m *windowMemory) remove(slot, first, end int) {
	lowest := -1
	for i, owner := range m.owner {
		if owner == int32(slot) && int(m.pos[i]) >= first && int(m.pos[i]) < end {
			m.owner[i] = -1
			m.used--
			if lowest < 0 {
				lowest = i
			}
		}
	}
	if lowest >= 0 {
		m.head = min(m.head, lowest)
	}
}

// add puts the positions from first until before end of a slot into cells: empty ones, and those whose positions the
// next token of their slot no longer sees. Positions before an overwritten one go too.
func (m *windowMemory) add(slot, first, end, window int) {
	if m.head > m.used+2*(end-first) {
		m.head = 0
	}
	last := map[int32]int{} // of each slot that has cells here
	for i, owner := range m.owner {
		if owner >= 0 {
			last[owner] = max(last[owner], int(m.pos[i]))
		}
	}
	overwritten := map[int32]int{}
	at := m.head
	for tested := 0; first < end && tested < len(m.owner); tested++ {
		if at == len(m.owner) {
			at = 0
		}
		if owner := m.owner[at]; owner < 0 {
			m.used++
		} else if last[owner]+1-int(m.pos[at]) < window {
			at++
			continue
		} else {
			overwritten[owner] = max(overwritten[owner], int(m.pos[at])+1)
		}
		m.owner[at], m.pos[at] = int32(slot), int32(first)
		first++
		at++
	}
	for owner, end := range overwritten {
		m.remove(int(owner), 0, end)
	}
	m.head = at
}

// restore gives a slot the cells of a state of so many tokens: those that its last token sees.
func (m *windowMemory) restore(slot, tokens, window int) {
	m.remove(slot, 0, maxPosition)
	m.add(slot, max(0, tokens-window), tokens, window)
}
