package textrepair

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Mojibake is found by its sequences: characters whose bytes in some code page are one character in UTF-8. Chance makes
// such sequences too, so each run of them must pay: the text with them must be stranger than the text without (see
// strangeness), by what the code page needs for proof. Once a line is proved damaged, the rest of its sequences need
// less. What was decoded is looked at again, for text is often damaged twice.

const (
	mojibakePasses = 8 // code pages and layers after one another in one line
	mojibakeDepth  = 4 // times that a text was damaged
)

// A sequence is a character that may have been damaged.
type sequence struct {
	cells int // it now takes
	r     rune
	// lost: a byte was replaced, by U+FFFD or by a space for the no-break space. It is no proof by itself.
	lost bool
}

// readSequence reads the characters at cells[i] as UTF-8 that was taken for the code page.
func readSequence(cells []cell, i, page int) (sequence, bool) {
	first, ok := byteIn(page, cells[i].r)
	if !ok || first < 0xC2 || first > 0xF4 {
		return sequence{}, false
	}
	n := 2
	switch {
	case first >= 0xF0:
		n = 4
	case first >= 0xE0:
		n = 3
	}
	if q, ok := lostSpace(cells, i, page, first); ok {
		return q, true
	}
	if i+n > len(cells) {
		return sequence{}, false
	}
	buf := [4]byte{first}
	q := sequence{cells: n}
	spaces, marks := 0, 0
	for j := 1; j < n; j++ {
		r := cells[i+j].r
		b, ok := byteIn(page, r)
		switch {
		case ok && b < 0xC0:
		case r == utf8.RuneError && (j > 1 || n == 2):
			marks++
			b = 0x80
		case r == '?' && j == 2 && n == 3 && first == 0xE2 && buf[1] == 0x80:
			marks++
			b = 0x80
		case r == ' ' && n > 2 && (j < n-1 || beginsSequence(cells, i+n, page)):
			spaces++
			b = 0xA0
		default:
			return sequence{}, false
		}
		buf[j] = b
	}
	if spaces > 1 {
		return sequence{}, false
	}
	q.lost = spaces+marks > 0
	if marks > 0 {
		q.r = utf8.RuneError
		return q, true
	}
	if first == 0xED && buf[1] >= 0xA0 {
		return readSurrogates(cells, i, page, buf)
	}
	r, size := utf8.DecodeRune(buf[:n])
	if size != n || !writable(r) {
		return sequence{}, false
	}
	q.r = r
	return q, true
}

// readSurrogates reads a pair of surrogates, each a sequence of three (CESU-8).
func readSurrogates(cells []cell, i, page int, high [4]byte) (sequence, bool) {
	if i+6 > len(cells) || high[1] >= 0xB0 {
		return sequence{}, false
	}
	var low [3]byte
	for j := range low {
		low[j], _ = byteIn(page, cells[i+3+j].r)
	}
	if low[0] != 0xED || low[1] < 0xB0 || low[1] > 0xBF || low[2] < 0x80 || low[2] > 0xBF {
		return sequence{}, false
	}
	r := 0x10000 + (rune(high[1]&0x0F)<<6|rune(high[2]&0x3F))<<10 + (rune(low[1]&0x0F)<<6 | rune(low[2]&0x3F))
	return sequence{cells: 6, r: r}, writable(r)
}

func beginsSequence(cells []cell, i, page int) bool {
	if i+1 >= len(cells) {
		return false
	}
	a, _ := byteIn(page, cells[i].r)
	b, _ := byteIn(page, cells[i+1].r)
	return a >= 0xC2 && a <= 0xF4 && b >= 0x80 && b < 0xC0
}

// lostSpace reads a sequence of two whose second character was a no-break space and became a space: à above all.
func lostSpace(cells []cell, i, page int, first byte) (sequence, bool) {
	if i+1 >= len(cells) || cells[i+1].r != ' ' {
		return sequence{}, false
	}
	rest := cells[i+2:]
	q := sequence{cells: 2, lost: true, r: rune(first&0x1F)<<6 | 0x20}
	next := spaceClass
	if len(rest) > 0 {
		next = classOf(rest[0].r)
	}
	switch first {
	case 0xC3: // à is mostly a word or ends one: the space stays, but in Portuguese às and àquele
		if next != spaceClass && !portugueseTail(rest) {
			q.cells = 1
		}
		if page == 0 && i > 0 && classOf(cells[i-1].r) == asciiLower && cells[i].r == 'Ã' {
			q.lost = false
		}
		return q, true
	case 0xC2: // a no-break space
		if i > 0 {
			before := classOf(cells[i-1].r)
			q.lost = before != asciiLower && before != digitClass
		}
		return q, cells[i].r == 'Â'
	case 0xC5: // Š
		return q, next == asciiLower
	case 0xD0, 0xD7: // Р, נ
		return q, beginsSequence(rest, 0, page)
	}
	return sequence{}, false
}

// portugueseTail reports whether the text goes on with what makes à the word às, àquele, àquela or àquilo.
func portugueseTail(cells []cell) bool {
	for _, tail := range []string{"s ", "quele", "quela", "quilo"} {
		if len(cells) < len(tail) {
			continue
		}
		same := true
		for i, r := range tail {
			same = same && cells[i].r == r
		}
		if same {
			return true
		}
	}
	return false
}

// writable reports whether somebody may have written the character.
func writable(r rune) bool {
	switch {
	case r == 0x2028 || r == 0x2029: // they would split the line
		return false
	case r < 0xA0, r == 0xFEFF, r == utf8.RuneError, r >= 0xE0020 && r < 0xE0080:
		return true
	}
	return unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r)
}

// A run is consecutive sequences.
type run struct {
	lo, hi    int // in the cells
	sequences int
	weak      bool   // every sequence of it lost a byte
	doubtful  bool   // it counts only where another is proof
	text      []cell // decoded once
	gain      int
}

// findRuns returns the runs of a code page, and how many letters from the upper half of the page are in none.
func (m mender) findRuns(cells []cell, page int) (runs []run, outside int) {
	for i := 0; i < len(cells); {
		q, ok := sequence{}, false
		h := head(cells[i].r)
		if h.lead&(1<<page) != 0 && cells[i].start >= m.floor {
			q, ok = readSequence(cells, i, page)
		}
		if !ok {
			if h.lead&(1<<page) != 0 && classOf(cells[i].r).letter() {
				outside++
			}
			i++
			continue
		}
		if len(runs) == 0 || runs[len(runs)-1].hi != i {
			runs = append(runs, run{lo: i, hi: i, weak: true})
		}
		last := &runs[len(runs)-1]
		last.text = append(last.text, cell{r: q.r, start: cells[i].start, end: cells[i+q.cells-1].end, kind: Mojibake})
		last.hi = i + q.cells
		last.sequences++
		last.weak = last.weak && q.lost
		i = last.hi
	}
	return runs, outside
}

// A mender mends mojibake.
type mender struct {
	caution int // more proof that is asked for
	floor   int // where in the input nothing can begin before
}

// mend returns the cells with damaged runs mended, or the same cells. depth counts how often what the cells came from
// was decoded.
func (m mender) mend(cells []cell, depth int) []cell {
	if depth > mojibakeDepth {
		return cells
	}
	passes := mojibakePasses
	if depth > 0 {
		passes = 2
	}
	for range passes {
		pages := candidatePages(cells)
		var best []run
		bestGain := 0
		for page := 0; pages != 0; page, pages = page+1, pages>>1 {
			if pages&1 == 0 {
				continue
			}
			runs, gain := m.proved(cells, page, depth)
			if gain > bestGain {
				best, bestGain = runs, gain
			}
		}
		if best == nil {
			return cells
		}
		cells = replaceRuns(cells, best)
	}
	return cells
}

// candidatePages returns the code pages of which a sequence may begin somewhere.
func candidatePages(cells []cell) pageSet {
	var pages pageSet
	for i := 0; i+1 < len(cells); i++ {
		if lead := head(cells[i].r).lead; lead != 0 {
			pages |= lead & follows(cells[i].r, cells[i+1].r)
		}
	}
	return pages
}

// follows returns the code pages in which b may be the second character of a sequence that a begins.
func follows(a, b rune) pageSet {
	switch {
	case b == utf8.RuneError:
		return allPages
	case b == ' ':
		return head(a).space
	case b < 0x80:
		return 0
	}
	return head(b).cont
}

func replaceRuns(cells []cell, runs []run) []cell {
	out := make([]cell, 0, len(cells))
	from := 0
	for _, r := range runs {
		out = append(append(out, cells[from:r.lo]...), r.text...)
		from = r.hi
	}
	return append(out, cells[from:]...)
}

// proved returns the runs of a code page that are mojibake, and how much less strange the text is without them.
func (m mender) proved(cells []cell, page, depth int) ([]run, int) {
	runs, outside := m.findRuns(cells, page)
	need := codePages[page].need + m.caution
	if depth > 0 {
		need = 1
	}
	sequences, certain := 0, 0
	for i := range runs {
		r := &runs[i]
		sequences += r.sequences
		settled := m.mend(r.text, depth+1)
		if depth == 0 && page <= 1 { // those that are read as ISO 8859-1 too
			settled = withoutC1(settled)
		}
		r.gain = gain(cells, r, settled, depth)
		r.doubtful = oneScript(cells[r.lo:r.hi]) || !touchesLetters(cells, r, settled, page, depth)
	}
	switch {
	case outside > 2*sequences:
		need += 4
	case outside > 0:
		need++
	}
	for i := range runs {
		if !runs[i].weak && !runs[i].doubtful && runs[i].gain >= need {
			certain += runs[i].gain
		}
	}
	total := 0
	kept := runs[:0]
	for _, r := range runs {
		ok := !r.doubtful && r.gain >= need && (!r.weak || r.gain > need && r.text[0].r == utf8.RuneError && page == 0)
		if certain > need {
			ok = ok || r.gain > 0 || r.gain == 0 && !r.doubtful
		}
		if ok {
			kept = append(kept, r)
			total += r.gain + 1
		}
	}
	return kept, total
}

// withoutC1 returns cells with the C1 controls replaced that would be replaced later.
func withoutC1(cells []cell) []cell {
	for i := range cells {
		if _, ok := windows1252(cells[i].r); ok {
			cells = slices.Clone(cells)
			for j := i; j < len(cells); j++ {
				if c, ok := windows1252(cells[j].r); ok {
					cells[j].r = c
				}
			}
			break
		}
	}
	return cells
}

// gain is how much less strange the text is with the run replaced by settled.
func gain(cells []cell, r *run, settled []cell, depth int) int {
	var around [64]cell
	lo, hi := max(r.lo-2, 0), min(r.hi+2, len(cells))
	mended := append(append(append(around[:0], cells[lo:r.lo]...), settled...), cells[r.hi:hi]...)
	at := r.lo - lo
	before, after := strangeness(cells, r.lo, r.hi), strangeness(mended, at, at+len(settled))
	if 2*after > before+2 && depth == 0 { // damaged otherwise: this would make it worse
		return -1
	}
	g := before - after
	// Three or more characters that fit are rarer than two.
	if r.hi-r.lo >= 3*r.sequences && len(settled) > 0 {
		first := classOf(settled[0].r)
		if !first.letter() || r.lo == 0 || !classOf(cells[r.lo-1].r).letter() {
			g++
		}
		if first == openClass || first == closeClass { // most of what is damaged
			g++
		}
		if first == pictureClass && (r.lo == 0 || !classOf(cells[r.lo-1].r).letter()) {
			g++
		}
	}
	return g
}

// oneScript reports whether cells are letters of one alphabet other than Latin: then they are a word, or a part of one.
func oneScript(cells []cell) bool {
	before := classOf(cells[0].r)
	if before.latin() || !before.letter() || len(cells) < 2 {
		return false
	}
	for _, c := range cells[1:] {
		k := classOf(c.r)
		if k != before && !(k.cyrillic() && before.cyrillic()) || k.upper() && before.lower() {
			return false
		}
		before = k
	}
	return true
}

// touchesLetters holds for the code pages whose upper half is full of signs only where letters are concerned: pictures
// made of lines, and formulas, are full of sequences.
func touchesLetters(cells []cell, r *run, settled []cell, page, depth int) bool {
	switch codePages[page].name {
	case "MacRoman", "CP437", "CP850", "CP866", "KOI8-R":
	default:
		return true
	}
	boxes, letters := true, 0
	for _, c := range cells[r.lo:r.hi] {
		if k := classOf(c.r); k != boxClass {
			boxes = false
		}
	}
	for _, c := range settled {
		if classOf(c.r).letter() {
			letters++
		}
	}
	if depth > 0 && letters > 0 {
		return true
	}
	if boxes && letters < 3 {
		return false
	}
	if cells[r.lo].r == '√' && (cells[r.lo+1].r == 'π' || classOf(cells[r.lo+1].r) == mathClass) {
		return r.lo >= 2 && classOf(cells[r.lo-1].r).letter() && classOf(cells[r.lo-2].r).letter()
	}
	return letters >= 2 || letters == 1 && (touches(cells, r.lo-1) || touches(cells, r.hi)) ||
		r.lo > 0 && classOf(cells[r.lo-1].r).letter() || touches(cells, r.hi) && r.hi-r.lo > 2
}

func touches(cells []cell, i int) bool {
	return i >= 0 && i < len(cells) && classOf(cells[i].r).letter()
}
