package boundary

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// heads says which tokens of a tokenizer may be the first of a pretoken.
type heads struct {
	tests atomic.Int64 // that a table would have saved
	once  sync.Once
	// before[i] is how many of the first i tokens in byte order may.
	before []uint32
}

// headTables holds the heads of the tokenizers in use, by weak pointer.
var headTables sync.Map

// countHeads counts the tokens after a branch at the start of a stretch of text,
// where it does not matter what the text is. It reports false if the branch is
// not such. The table for it takes a look at every token of the vocabulary, so
// it is made once a share of that has been looked at anyway.
func (a *analysis) countHeads(b *Branch) (int, bool) {
	if b.Added || len(b.ways) != 1 {
		return 0, false
	}
	rd := &a.readings[b.ways[0].reading]
	if b.ways[0].p != rd.Open || rd.Open != a.tail.Stretch {
		return 0, false
	}
	r := extensions(a.v, b.Rest)
	key := weak.Make(a.t)
	h, loaded := headTables.LoadOrStore(key, new(heads))
	if !loaded {
		runtime.AddCleanup(a.t, func(key weak.Pointer[tokenizer.Tokenizer]) { headTables.Delete(key) }, key)
	}
	t := h.(*heads)
	if t.tests.Add(int64(r.Len())) < int64(a.v.Len()/8) {
		return 0, false
	}
	t.once.Do(func() { t.before = newAnalysis(a.t).countBefore() })
	n := int(t.before[r.Hi] - t.before[r.Lo])
	if b.plain {
		for i, id := range a.v.Sorted(r) {
			if a.v.Kind(id) == vocab.UserDefined {
				n -= int(t.before[r.Lo+i+1] - t.before[r.Lo+i])
			}
		}
	}
	return n, true
}

// newAnalysis is of an empty text.
func newAnalysis(t *tokenizer.Tokenizer) *analysis {
	a := new(analysis)
	a.load(t.NewText(false))
	return a
}

// countBefore makes the table of heads. The analysis is of an empty text.
func (a *analysis) countBefore() []uint32 {
	empty := &reading{}
	empty.Added = vocab.None
	sorted := a.v.Sorted(a.v.PrefixRange(nil))
	a.tried = nil
	before := make([]uint32, len(sorted)+1)
	for i, id := range sorted {
		before[i+1] = before[i]
		if a.joins(empty, 0, vocab.None, id) {
			before[i+1]++
		}
	}
	return before
}
