package loop

import "unicode/utf8"

// words tells how much of a text is new: the share of its runs of four words that
// have not been there before. Numbers are all the same word, and letters of either
// case are, so that lines which differ in a number only are not new.
type words struct {
	seen []uint32 // hashes of runs of four words, by their lower bits

	hash  uint32    // of the word so far, 0 between words
	digit bool      // it is a number
	lead  int       // bytes of its character that are still to come
	last  [3]uint32 // the words before
	n     int       // bytes read

	off bool // the text is too short

	total, fresh, plain int // in this stretch: runs, new ones, and words with letters
	marks               int
	from                int // where the stretch begins
	stale               int // stretches before this one that had nothing new
	staleFrom           int // where they begin
}

const (
	gramBits = 14
	// A stretch is so many words. Templated text is reported when staleLimit stretches
	// in a row had less than a freshPart-th of new runs.
	stretch    = 512
	staleLimit = 3
	freshPart  = 16
)

func (w *words) add(b byte) {
	w.n++
	if w.off {
		return
	}
	switch {
	case b >= utf8.RuneSelf:
		w.addWide(b)
	case b >= '0' && b <= '9':
		if w.hash == 0 || !w.digit {
			w.end()
			w.hash, w.digit = '0', true
		}
	case b|0x20 >= 'a' && b|0x20 <= 'z':
		if w.digit {
			w.end()
		}
		w.letter(uint32(b | 0x20))
	default:
		w.end()
		if isMark(b) {
			w.marks++
		}
	}
}

// isMark reports whether a character is frequent in code and tables, and rare in
// prose.
func isMark(b byte) bool {
	switch b {
	case '{', '}', '[', ']', ';', '=', '<', '>', '\\', '$', '@', '&', '+', '^', '%', '~', '_', '|', '/', '"', '(', ')', '\t', 0:
		return true
	}
	return false
}

func (w *words) letter(c uint32) {
	w.hash = (w.hash ^ c) * 0x01000193
	if w.hash == 0 {
		w.hash = 1
	}
}

// addWide reads a byte of a character outside ASCII. In scripts without spaces each
// character is a word.
func (w *words) addWide(b byte) {
	if w.digit {
		w.end()
	}
	w.letter(uint32(b))
	switch {
	case b >= 0xe3 && b <= 0xed: // U+3000 to U+DFFF
		w.lead = 2
	case w.lead > 0:
		if w.lead--; w.lead == 0 {
			w.end()
		}
	}
}

// hashOf is what [words.letter] makes of a word.
func hashOf(s string) uint32 {
	var w words
	for _, c := range []byte(s) {
		w.letter(uint32(c))
	}
	return w.hash
}

var hashNull, hashTrue, hashFalse = hashOf("null"), hashOf("true"), hashOf("false")

// end ends the word, if there is one.
func (w *words) end() {
	if w.hash == 0 {
		return
	}
	if !w.digit && w.hash != hashNull && w.hash != hashTrue && w.hash != hashFalse {
		w.plain++
	}
	run := w.hash
	for i, h := range w.last {
		run = (run ^ h + uint32(i)) * 0x9e3779b1
		run ^= run >> 15
	}
	w.last[2], w.last[1], w.last[0] = w.last[1], w.last[0], w.hash
	w.hash, w.digit, w.lead = 0, false, 0
	if w.seen == nil {
		w.seen = make([]uint32, 1<<gramBits)
	}
	w.total++
	if place := &w.seen[run>>(32-gramBits)]; *place != run {
		w.fresh++
		*place = run
	}
}

// full reports whether a stretch has ended.
func (w *words) full() bool { return w.total >= stretch }

// collapse ends a stretch and reports a templated loop if nothing has been new for
// long.
func (d *Detector) collapse() {
	w := &d.words
	prose := 3*w.plain >= 2*w.total && 6*w.marks < w.total && !d.lines.fenced()
	if !prose || w.fresh*freshPart > w.total {
		w.stale = 0
	} else {
		if w.stale == 0 {
			w.staleFrom = w.from
		}
		w.stale++
	}
	w.total, w.fresh, w.plain, w.marks, w.from = 0, 0, 0, 0, w.n
	switch {
	case w.stale < staleLimit:
		if d.loop != nil {
			d.loop.Broken = true
		}
	case d.loop != nil:
		if !d.loop.Broken {
			d.loop.End = d.n
		}
	case d.o.Asked:
	default:
		context := Prose
		if d.o.Context != "" {
			context = d.o.Context
		} else if d.lines.reasoning {
			context = Reasoning
		}
		d.loop = &Loop{Kind: Templated, Context: context, Start: w.staleFrom, End: d.n, Cut: -1}
	}
}
