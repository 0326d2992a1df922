package loop

import (
	"math/bits"
	"unicode/utf8"
)

// Detector looks for a loop in a text that comes in pieces. It does not matter how
// the text is split. Use [New].
type Detector struct {
	o      Options
	n      int      // bytes read
	tail   []byte   // the last ones, at least window of them if there were so many
	seen   []uint32 // where a gram ended last, by its hash
	shift  int      // from a hash to its place
	gram   uint64   // the last 8 bytes
	hits   int      // bytes up to here whose gram was seen within maxPeriod
	border []int32
	run    run
	lines  lines
	words  words

	loop *Loop
	work int // comparisons of tails, for tests
}

const (
	// A gram is looked up by a hash of so many bits at most. Grams that share a place only
	// make for more hits: in the second copy of a loop and later ones, every gram is a
	// hit whatever else there was.
	seenBits = 15
	gramSize = 8

	// A tail of length l is looked at every l/16 bytes, beginning at 16·stepMin.
	stepMin = 16
	stepLog = 4
	// The longest period in a tail of length l is 2l/7: 3.5 copies.
	copiesNum, copiesDen = 7, 2
)

// New returns a detector.
func New(o Options) *Detector {
	return newDetector(o, seenBits)
}

func newDetector(o Options, bits int) *Detector {
	return &Detector{o: o, seen: make([]uint32, 1<<bits), shift: 64 - bits}
}

// Write reads more of the text and returns the first loop found so far, nil if there
// is none. Once there is one, its End and Copies go on counting with each Write
// until it breaks. A loop that is only reported gives way to one that is to be cut.
func (d *Detector) Write(p []byte) *Loop {
	for len(p) > 0 {
		if d.loop != nil && d.loop.Kind != Templated {
			d.follow(p)
			break
		}
		d.add(p[0])
		p = p[1:]
	}
	return d.loop
}

// Close ends the text and returns the loop.
func (d *Detector) Close() *Loop { return d.loop }

// follow counts on while the loop that was found continues.
func (d *Detector) follow(p []byte) {
	l := d.loop
	for i := 0; i < len(p) && !l.Broken; i++ {
		if p[i] != d.tail[len(d.tail)-l.Period] {
			l.Broken = true
			break
		}
		d.keep(p[i])
		l.End++
	}
	l.Copies = (l.End - l.Start) / l.Period
	if d.o.ToolArguments && !l.Broken && l.End-l.Start >= d.o.toolBound() {
		l.Stop = true
	}
}

// keep appends a byte to the tail.
func (d *Detector) keep(b byte) {
	if len(d.tail) == 2*window {
		copy(d.tail, d.tail[window:])
		d.tail = d.tail[:window]
	}
	d.tail = append(d.tail, b)
	d.n++
}

// add reads one byte.
func (d *Detector) add(b byte) {
	d.keep(b)
	d.lines.add(b)
	d.words.add(b)
	d.gram = d.gram<<8 | uint64(b)
	// Positions are kept modulo 2³²: one of long ago may look recent, which is but a
	// hit too many. Those never written are 0, so count from behind maxPeriod.
	at := uint32(d.n + maxPeriod)
	place := &d.seen[d.gram*0x9e3779b97f4a7c15>>d.shift]
	if at-*place <= maxPeriod {
		d.hits++
	} else {
		d.hits = 0
	}
	*place = at
	if d.n%stepMin == 0 && d.hits >= leastHits {
		d.check()
	}
	if d.words.full() {
		d.collapse()
	}
}

// leastHits is what the shortest loop gives: its bytes without the first copy and a
// gram.
const leastHits = minBytes*(copiesNum-copiesDen)/copiesNum - gramSize

// check looks for a loop at the end of the tail. How long a tail is looked at depends
// on where in the text it ends: 256 bytes every 16, 512 every 32, and so on, which
// finds a loop of l bytes not later than l/8 bytes behind, at a constant cost for
// each byte.
func (d *Detector) check() {
	l := 1 << (bits.TrailingZeros(uint(d.n)) + stepLog)
	l = min(l, window, len(d.tail))
	// No run can be longer than its hits say.
	l = min(l, (d.hits+gramSize)*copiesNum/(copiesNum-copiesDen)+1)
	if l < minBytes {
		return
	}
	if len(d.border) < l {
		d.border = make([]int32, min(window, 2*l))
	}
	d.work += suffixPeriods(d.tail[len(d.tail)-l:], d.border, func(period, length int) bool {
		return d.judge(period, length)
	})
}

// suffixPeriods calls found with each number that is the smallest period of some
// suffix of s and the length of the longest such suffix, the shortest first, as long
// as found returns false and a longer suffix can still have 3.5 copies. Border is
// scratch of at least len(s). It returns the number of comparisons, at most 2·len(s).
//
// The prefix function of the reversed text gives it: a suffix of length i whose
// longest border is b has the smallest period i-b, which never falls as i grows.
func suffixPeriods(s []byte, border []int32, found func(period, length int) bool) (work int) {
	last := len(s) - 1
	border[0] = 0
	k, period := 0, 1
	for i := 1; i < len(s); i++ {
		c := s[last-i]
		for k > 0 && c != s[last-k] {
			k = int(border[k-1])
			work++
		}
		if c == s[last-k] {
			k++
		}
		work++
		border[i] = int32(k)
		if p := i + 1 - k; p != period {
			if i*copiesDen >= period*copiesNum && found(period, i) {
				return work
			}
			period = p
			if period*copiesNum > len(s)*copiesDen {
				return work
			}
		}
	}
	if len(s)*copiesDen >= period*copiesNum {
		found(period, len(s))
	}
	return work
}

// judge decides whether a run at the end of the tail is a loop, and reports it. The
// run has at least length bytes.
func (d *Detector) judge(period, length int) bool {
	if length < minBytes || period > d.o.maxPeriod() {
		return false
	}
	start := d.runStart(period, length)
	k := d.classify(start, period)
	if d.o.Asked {
		k.limit = k.limit.asked()
	}
	length = len(d.tail) - start
	if !k.limit.passed(period, length) {
		return false
	}
	for start > 0 && d.tail[start-1] == d.tail[start-1+period] {
		start--
	}
	for i := 1; i < utf8.UTFMax && !utf8.RuneStart(d.tail[start]) && start > 0; i++ {
		start++
	}
	base := d.n - len(d.tail)
	length = len(d.tail) - start
	l := &Loop{
		Kind: Exact, Context: k.context,
		Start: base + start, End: d.n,
		Period: period, Copies: length / period,
		Unit: append([]byte(nil), d.tail[start:start+period]...),
		Cut:  -1,
	}
	if k.single {
		l.Kind = CharacterRun
	}
	if d.o.ToolArguments {
		l.Stop = length >= d.o.toolBound()
	} else {
		l.Cut = base + cutAt(d.tail, start, period)
		l.Stop = true
	}
	d.loop = l
	return true
}

// A run is what was found out about the one looked at last, in bytes of the text.
type run struct{ period, start, end int }

// runStart returns where in the tail a run begins that is known to have length bytes.
// So that the cost is in proportion to that length, it goes at most four times as far
// back at once, from where it got the last time if the run is the same.
func (d *Detector) runStart(period, length int) int {
	base := d.n - len(d.tail)
	start := len(d.tail) - length
	if r := d.run; r.period == period && base+start+period <= r.end {
		start = min(start, max(0, r.start-base))
	}
	for i := 0; i < 4*length && start > 0 && d.tail[start-1] == d.tail[start-1+period]; i++ {
		start--
		d.work++
	}
	d.run = run{period, base + start, d.n}
	return start
}
