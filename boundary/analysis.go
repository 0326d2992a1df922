package boundary

import (
	"bytes"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// analysis is what is known about the end of one text, with the memory that
// finding it out takes. Paths start where the tail does.
type analysis struct {
	t    *tokenizer.Tokenizer
	v    *vocab.Vocab
	tail tokenizer.Tail
	raw  []byte     // the whole text, only until the text changes
	text []byte     // raw from the tail's start on, likewise
	ids  []vocab.ID // of the whole text, likewise

	trunk []vocab.ID // the tokens of the tail
	ends  []int      // where each ends in tail.Text
	// lossy says that the trunk does not spell tail.Text.
	lossy bool
	// opaque says why nothing is known about branches; empty if they are known.
	opaque   string
	readings []reading
	special  bool // control tokens are recognized in the text

	// work is what may still be spent on trials, in about the time that one
	// token takes. A trial that is not made counts as passed.
	work int

	trial tokenizer.Trial
	tried *reading // what the trial is set to

	path  []vocab.ID // scratch of pathTo
	piece []byte     // scratch
	enc   []vocab.ID // scratch
}

// reading is a reading of the tail with the tokens of its pretokens.
type reading struct {
	tokenizer.Reading
	// ids holds the tokens of the closed pretokens, closed of them, and if the
	// open one is long, those that it would have if it went on.
	ids    []vocab.ID
	closed int
	long   bool
	ends   []int // if long, where each of ids[closed:] ends, after Open
	common int   // how many tokens ids and the trunk begin with in common
}

var analyses = sync.Pool{New: func() any { return new(analysis) }}

// trials bounds the work of finding out which branches are dead. One branch too
// many costs a token of stability at worst.
const trials = 4096

// load looks at the end of a text.
func (a *analysis) load(x *tokenizer.Text) {
	x.Tail(&a.tail)
	a.t = x.Tokenizer()
	a.v = a.t.Vocab()
	a.ids = x.IDs()
	a.raw = x.Bytes()
	a.special = x.Special()
	a.text = a.raw[a.tail.Start:]
	a.trunk = append(a.trunk[:0], a.ids[a.tail.Tokens:]...)
	a.work = trials
	a.tried = nil
	a.ends = a.ends[:0]
	at := 0
	a.lossy = false
	for _, id := range a.trunk {
		b := a.v.Bytes(id)
		a.lossy = a.lossy || !bytes.HasPrefix(a.tail.Text[min(at, len(a.tail.Text)):], b)
		at += len(b)
		a.ends = append(a.ends, at)
	}
	a.lossy = a.lossy || at != len(a.tail.Text)
	a.opaque = a.tail.Opaque
	switch {
	case a.opaque != "":
	case a.lossy:
		a.opaque = opaqueLossy
	case !a.t.Proper():
		a.opaque = opaqueImproper
	default:
		a.loadReadings()
	}
}

// Texts of analysis.opaque.
const (
	opaqueLossy    = "the tokens do not give the text back to the byte"
	opaqueImproper = "this vocabulary has merges that make no token, so all tokens of the last pretokens may change"
	opaqueAdded    = "an added token at the end of the text may take in its neighbours or cease to match, and what it does then is not foreseen"
)

// loadReadings finds the tokens of the readings' closed pretokens.
func (a *analysis) loadReadings() {
	a.readings = slices.Grow(a.readings[:0], len(a.tail.Readings))[:len(a.tail.Readings)]
	for i := range a.readings {
		rd := &a.readings[i]
		rd.Reading = a.tail.Readings[i]
		rd.ids, rd.ends = rd.ids[:0], rd.ends[:0]
		at, shared := 0, true
		for k, end := range rd.Closed {
			first := a.readings[0].Closed
			shared = shared && (k < len(first) && first[k] == end || k == len(first) && end == a.readings[0].Until)
			lo, okLo := a.tokensUpTo(at)
			hi, okHi := a.tokensUpTo(end)
			if shared && okLo && okHi {
				rd.ids = append(rd.ids, a.trunk[lo:hi]...)
			} else {
				rd.ids = a.t.EncodePiece(rd.ids, a.tail.Text[at:end])
			}
			at = end
		}
		rd.closed = len(rd.ids)
		rd.long = false
		if rd.Added == vocab.None && rd.Until-rd.Open > 2*windowBytes {
			a.loadLong(rd)
		}
		rd.common = vocab.CommonPrefix(rd.ids, a.trunk)
	}
	first := &a.readings[0]
	if first.common < first.closed {
		a.opaque = opaqueAdded
	}
}

// tokensUpTo is how many tokens of the trunk end at or before a byte of the
// tail, and whether one ends there.
func (a *analysis) tokensUpTo(at int) (int, bool) {
	if at == 0 {
		return 0, true
	}
	n, ok := slices.BinarySearch(a.ends, at)
	if ok {
		n++
	}
	return n, ok
}

// end is where the first n tokens of the trunk end in the tail.
func (a *analysis) end(n int) int {
	if n == 0 {
		return 0
	}
	return min(a.ends[n-1], len(a.tail.Text))
}

// textEnd is where the first n tokens of the trunk end in the whole text.
func (a *analysis) textEnd(n int) int {
	if n == 0 {
		return a.tail.Start
	}
	if n == len(a.trunk) {
		return len(a.raw)
	}
	// Up to the first byte that the normalizer rewrote, one is the other.
	same, own := 0, a.tail.Text[a.tail.Prefix:]
	for same < len(own) && same < len(a.text) && own[same] == a.text[same] {
		same++
	}
	if end := max(0, a.end(n)-a.tail.Prefix); !a.lossy && end <= same {
		return a.tail.Start + end
	}
	if pending := a.tail.Text[max(a.end(n), a.tail.Prefix):]; !a.lossy && len(pending) > 0 && bytes.HasSuffix(a.text, pending) {
		return len(a.raw) - len(pending)
	}
	ids, ends := a.t.EncodeEnds(nil, nil, a.raw, a.special)
	if n += a.tail.Tokens; n <= len(ids) {
		return ends[n-1]
	}
	return a.tail.Start
}

// stable is how many tokens of the trunk every continuation keeps.
func (a *analysis) stable() int {
	if a.opaque != "" {
		return a.stableClosed()
	}
	common := len(a.trunk)
	for i := range a.readings {
		rd := &a.readings[i]
		if rd.Added != vocab.None {
			common = min(common, rd.common)
			continue
		}
		for p := a.firstRest(rd); p < rd.Until && common > 0; p++ {
			if extensions(a.v, a.tail.Text[p:rd.Until]).Len() == 0 {
				continue
			}
			shared, own := a.pathTo(rd, p)
			if k := a.commonPrefix(rd, shared, own); k < common && a.leaves(rd, p, lastOf(rd.ids[:shared], own)) {
				common = k
			}
		}
		shared, own := a.pathToEnd(rd)
		k := a.commonPrefix(rd, shared, own)
		if i == 0 && k < len(a.trunk) {
			a.opaque = opaqueAdded
			return a.stableClosed()
		}
		if k < common && a.endsHere(rd) {
			common = k
		}
		shared, own = a.pathTo(rd, rd.Until)
		if k := a.commonPrefix(rd, shared, own); k < common && a.goesOn(rd, lastOf(rd.ids[:shared], own)) {
			common = k
		}
	}
	return common
}

// commonPrefix is how many tokens a path, given in two parts, and the trunk
// begin with in common.
func (a *analysis) commonPrefix(rd *reading, shared int, own []vocab.ID) int {
	if shared > rd.common {
		return rd.common
	}
	return shared + vocab.CommonPrefix(own, a.trunk[shared:])
}

// stableClosed counts the tokens of the pretokens that all readings have closed.
func (a *analysis) stableClosed() int {
	rs := a.tail.Readings
	if len(rs) == 0 {
		return 0
	}
	n := len(rs[0].Closed)
	for _, r := range rs[1:] {
		k := 0
		for k < min(n, len(r.Closed)) && r.Closed[k] == rs[0].Closed[k] {
			k++
		}
		n = k
	}
	var ids []vocab.ID
	at := 0
	for _, end := range rs[0].Closed[:n] {
		ids = a.t.EncodePiece(ids, a.tail.Text[at:end])
		at = end
	}
	return vocab.CommonPrefix(ids, a.trunk)
}

// firstRest is the first byte of the tail from which a token may leave it in
// the open pretoken.
func (a *analysis) firstRest(rd *reading) int {
	return max(rd.Open, rd.Until-a.v.MaxLen()+1)
}

// lastOf is the last token of a path in two parts; None if it is empty.
func lastOf(shared, own []vocab.ID) vocab.ID {
	if len(own) > 0 {
		return own[len(own)-1]
	}
	if len(shared) > 0 {
		return shared[len(shared)-1]
	}
	return vocab.None
}

// leaves reports whether some text goes on with a token that begins at byte p of
// the tail and ends after the reading. last is the token before.
func (a *analysis) leaves(rd *reading, p int, last vocab.ID) bool {
	rest := a.tail.Text[p:rd.Until]
	for _, id := range a.v.Sorted(extensions(a.v, rest)) {
		if a.work <= 0 || a.rewritten(rd, a.v.Bytes(id)[len(rest):]) && a.joins(rd, p, last, id) {
			return true
		}
	}
	return false
}

// rewritten reports whether the text may go on with more after the reading. If
// that is one before the tail's end, a normalizer writes what comes, which are
// characters; of texts that go on as the tail does other readings speak.
//
// A normalizer that composes leaves the first character, or makes one of it that
// is neither ASCII nor white space: no composed character is.
func (a *analysis) rewritten(rd *reading, more []byte) bool {
	tail := a.tail.Text[rd.Until:]
	switch {
	case len(tail) == 0:
		return true
	case !utf8.RuneStart(more[0]) || bytes.HasPrefix(more, tail):
		return false
	case !a.tail.Composes:
		return true
	}
	first, size := utf8.DecodeRune(tail)
	if first == utf8.RuneError && size == 1 || bytes.HasPrefix(more, tail[:size]) {
		return true // a half character may become one that another stands for
	}
	r, _ := utf8.DecodeRune(more)
	return r >= utf8.RuneSelf && (r == utf8.RuneError || !unicode.IsSpace(r))
}

// endsHere reports whether a pretoken may end where the reading does.
func (a *analysis) endsHere(rd *reading) bool {
	if rd.Open == rd.Until {
		return true
	}
	a.work -= a.cost(rd)
	a.try(rd)
	return a.trial.Ends()
}

// goesOn reports whether the open pretoken, unless it is empty, may go on with
// a token that begins where the reading ends.
func (a *analysis) goesOn(rd *reading, last vocab.ID) bool {
	if rd.Open == rd.Until {
		return false
	}
	for i := range len(likely) {
		if id, ok := a.v.Lookup([]byte{likely[i]}); ok && a.joins(rd, rd.Until, last, id) {
			return true
		}
	}
	for _, id := range a.v.Sorted(a.v.PrefixRange(nil)) {
		if a.work <= 0 || a.joins(rd, rd.Until, last, id) {
			return true
		}
	}
	return false
}

// likely are bytes to try first: most pretokens go on with one of them.
const likely = "zqZ9!/ \n\x80\xbf"

// cost is the work of looking at the reading's pretokens.
func (a *analysis) cost(rd *reading) int {
	return 1 + (rd.Until-a.tail.Stretch)/64
}

// joins reports whether id may be the next token after the path to byte p, of
// which last is the last token. It begins there and ends after the reading.
func (a *analysis) joins(rd *reading, p int, last, id vocab.ID) bool {
	b := a.v.Bytes(id)
	switch {
	case p == rd.Open:
		a.work--
		if !a.begins(id, b) {
			return false
		}
	case a.t.Pairwise():
		a.work--
		if !a.t.Apart(last, id) {
			return false
		}
	default:
		a.work -= 1 + (p-rd.Open)/8
		a.piece = append(append(a.piece[:0], a.tail.Text[rd.Open:p]...), b...)
		a.enc = a.t.EncodePiece(a.enc[:0], a.piece)
		if a.enc[len(a.enc)-1] != id {
			return false
		}
	}
	a.work -= a.cost(rd)
	a.try(rd)
	return a.trial.GoesOn(b[rd.Until-p:])
}

// try sets the trial to a reading.
func (a *analysis) try(rd *reading) {
	if a.tried != rd {
		a.trial.Set(a.t, &a.tail, &rd.Reading)
		a.tried = rd
	}
}

// begins reports whether a token may be the first of a pretoken.
func (a *analysis) begins(id vocab.ID, b []byte) bool {
	a.enc = a.t.EncodePiece(a.enc[:0], b)
	if len(a.enc) != 1 || a.enc[0] != id {
		return false
	}
	if a.v.Kind(id) != vocab.UserDefined {
		return true
	}
	// The text of an added token is that token, unless flags forbid it.
	a.enc = a.merged(a.enc[:0], b)
	return len(a.enc) == 1 && a.enc[0] == id
}
