package tokenizer

import (
	"sync/atomic"

	"github.com/unfray/unfray/tokenizer/internal/bpe"
	"github.com/unfray/unfray/tokenizer/internal/unigram"
	"github.com/unfray/unfray/tokenizer/internal/wordpiece"
)

// scratch is the working memory of one call. It holds the model's cache of
// pretokens, so it is kept from call to call.
type scratch struct {
	ends           [256]int
	fixed          []int // ends of pretokens that no continuation changes
	parts          []fixedPart
	matches, inner []match
	norm           []byte // a segment, normalized
	early, text    []byte // normalized text with the dummy prefix
	segment        segment
	ids            idSink
	spelling       spelling
	spelt          []byte // a pretoken in GPT-2's alphabet

	bpe       bpe.Scratch
	unigram   unigram.Scratch
	wordpiece wordpiece.Scratch
}

// maxKept is the bytes of text above which a scratch's buffers are left to the
// garbage collector.
const maxKept = 4 << 20

// scratchList keeps scratches between calls. A sync.Pool would drop the caches
// at every garbage collection. Each place holds one or none and is taken by a
// single exchange, so goroutines do not wait for each other.
type scratchList struct {
	places [64]paddedScratch
}

// paddedScratch has a cache line to itself.
type paddedScratch struct {
	p atomic.Pointer[scratch]
	_ [56]byte
}

func (l *scratchList) get() *scratch {
	for i := range l.places {
		place := &l.places[i].p
		if place.Load() == nil {
			continue
		}
		if s := place.Swap(nil); s != nil {
			return s
		}
	}
	return new(scratch)
}

// put gives a scratch back. One that finds no place is left to the garbage
// collector.
func (l *scratchList) put(s *scratch) {
	s.segment = segment{}
	s.spelling = spelling{ends: s.spelling.ends[:0]}
	if cap(s.norm)+cap(s.early)+cap(s.text)+24*(cap(s.matches)+cap(s.inner))+8*cap(s.fixed)+16*cap(s.parts) > maxKept {
		s.norm, s.early, s.text, s.matches, s.inner, s.fixed, s.parts = nil, nil, nil, nil, nil, nil, nil
	}
	for i := range l.places {
		place := &l.places[i].p
		if place.Load() == nil && place.CompareAndSwap(nil, s) {
			return
		}
	}
}
