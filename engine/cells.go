package engine

import "github.com/unfray/unfray/vocab"

// decoder is a native model context: sequences of cells that share one buffer,
// and batches that append to them. The scheduler's goroutine is its only user.
// What it is called with has been checked: a violated assertion in the native
// library ends the process.
type decoder interface {
	// decode evaluates a batch of at most limits.batch entries. After an error
	// the content of the sequences in the batch is unknown.
	decode(batch []entry) error
	// row returns the logits after the i-th entry of the last batch, which
	// must have asked for them. It may be written to and lives until the next decode.
	row(i int) ([]float32, error)
	// truncate keeps the first n tokens of seq and reports whether it could.
	// If not, the content of seq is unknown; n = 0 always works.
	truncate(seq, n int) bool
	// copy makes dst, which must be empty, hold what src holds, in the same cells.
	copy(dst, src int)
	close()
}

// entry is one token of a batch.
type entry struct {
	id     vocab.ID
	pos    int32 // tokens before it in its sequence
	seq    int32
	output bool // whether its row of logits is wanted
}

// sequence is one of the decoder's sequences. It keeps its tokens when its
// task is over, for a later prompt that begins with them.
type sequence struct {
	num    int
	tokens []vocab.ID // what the cells hold
	cells  []int32    // the cell of every token
	prompt int        // how many tokens the prompt of its latest task had
	task   *task      // nil: idle
	used   uint64     // cache.clock when it became idle
}

// cache mirrors which cells are in use, so that a decode that would not fit is
// never tried. A copied prefix shares the cells of its original. The numbers of
// the cells are the mirror's own; only how many are free matters.
type cache struct {
	dec   decoder
	seqs  []*sequence
	refs  []int32 // sequences that hold each cell
	free  []int32 // cells that none holds
	seen  []uint64
	clock uint64

	evictions uint64
}

func newCache(dec decoder, sequences, cells int) *cache {
	c := &cache{dec: dec, refs: make([]int32, cells), free: make([]int32, cells), seen: make([]uint64, cells)}
	for i := range c.free {
		c.free[i] = int32(cells - 1 - i)
	}
	for i := range sequences {
		c.seqs = append(c.seqs, &sequence{num: i})
	}
	return c
}

func (c *cache) used() int { return len(c.refs) - len(c.free) }

// tick returns a time later than every earlier one.
func (c *cache) tick() uint64 {
	c.clock++
	return c.clock
}

// extend takes cells for ids, which the next decode appends to s. There must
// be enough free ones.
func (c *cache) extend(s *sequence, ids []vocab.ID) {
	at := len(c.free) - len(ids)
	for _, cell := range c.free[at:] {
		c.refs[cell] = 1
	}
	s.cells = append(s.cells, c.free[at:]...)
	s.tokens = append(s.tokens, ids...)
	c.free = c.free[:at]
}

// truncate keeps the first n tokens of s, or none where the native side cannot
// cut there (recurrent state, a sliding window that has moved on).
func (c *cache) truncate(s *sequence, n int) {
	if n == len(s.tokens) {
		return
	}
	if !c.dec.truncate(s.num, n) && n > 0 {
		n = 0
		c.dec.truncate(s.num, 0)
	}
	for _, cell := range s.cells[n:] {
		if c.refs[cell]--; c.refs[cell] == 0 {
			c.free = append(c.free, cell)
		}
	}
	s.cells, s.tokens = s.cells[:n], s.tokens[:n]
}

// copyPrefix replaces the content of dst by the first n tokens of src.
func (c *cache) copyPrefix(dst, src *sequence, n int) {
	c.truncate(dst, 0)
	if n == 0 {
		return
	}
	c.dec.copy(dst.num, src.num)
	dst.tokens = append(dst.tokens, src.tokens...)
	dst.cells = append(dst.cells, src.cells...)
	for _, cell := range dst.cells {
		c.refs[cell]++
	}
	c.truncate(dst, n)
}

// evict empties the idle sequence that has been idle longest and reports
// whether there was one with tokens.
func (c *cache) evict() bool {
	var oldest *sequence
	for _, s := range c.seqs {
		if s.task == nil && len(s.tokens) > 0 && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	c.truncate(oldest, 0)
	c.evictions++
	return true
}

// busyCells counts the cells that would remain if every idle sequence but the
// first n tokens of keep were evicted.
func (c *cache) busyCells(keep *sequence, n int) int {
	mark, total := c.tick(), 0
	count := func(cells []int32) {
		for _, cell := range cells {
			if c.seen[cell] != mark {
				c.seen[cell] = mark
				total++
			}
		}
	}
	for _, s := range c.seqs {
		if s.task != nil {
			count(s.cells)
		}
	}
	if keep != nil {
		count(keep.cells[:n])
	}
	return total
}

// placement says in which sequence a task is to run.
type placement struct {
	dst    *sequence // idle
	src    *sequence // holds the prefix to start from; nil: none does
	reused int       // tokens of that prefix
}

// place finds the longest prefix of ids[:reusable] that a sequence holds, and an
// idle sequence for it. There must be an idle one.
func (c *cache) place(ids []vocab.ID, reusable int) placement {
	// A prompt that comes again runs where it ran: other cells are other places
	// in the native sums, which then round differently. What it had generated
	// there is thrown away.
	for _, s := range c.seqs {
		if s.task == nil && s.prompt == len(ids) && vocab.CommonPrefix(s.tokens, ids) == len(ids) {
			return placement{dst: s, src: s, reused: reusable}
		}
	}
	var p placement
	ids = ids[:reusable]
	for _, s := range c.seqs {
		n := vocab.CommonPrefix(s.tokens, ids)
		if n > p.reused || n > 0 && n == p.reused && p.src.task != nil && s.task == nil {
			p.src, p.reused = s, n
		}
	}
	// Going on in the same sequence throws the rest of it away. That rest is
	// kept by copying, unless it is small against what is reused.
	if p.src != nil && p.src.task == nil && len(p.src.tokens) <= 2*p.reused {
		p.dst = p.src
		return p
	}
	for _, s := range c.seqs {
		if s.task != nil || s == p.src {
			continue
		}
		if p.dst == nil || len(s.tokens) == 0 && len(p.dst.tokens) > 0 ||
			(len(s.tokens) == 0) == (len(p.dst.tokens) == 0) && s.used < p.dst.used {
			p.dst = s
		}
	}
	if p.dst == nil {
		p.dst = p.src
	}
	return p
}

// occupy prepares p.dst for a task and returns how many tokens it begins with.
func (c *cache) occupy(p placement) int {
	if p.src == p.dst {
		c.truncate(p.dst, p.reused)
	} else {
		c.copyPrefix(p.dst, p.src, p.reused)
	}
	return len(p.dst.tokens)
}
