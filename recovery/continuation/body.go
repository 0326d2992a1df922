package continuation

import "bytes"

// echoWindow is how many bytes of the text's end are looked at for what an answer
// repeats, at echoPlaces places at most, longestEcho how many bytes may be the same, shortestEcho how many
// characters an answer has that is all repetition.
const (
	echoWindow   = 8192
	echoPlaces   = 256
	longestEcho  = 160
	shortestEcho = 16
)

// probation is how many new bytes of JSON are held back before a seam that was not
// proven by many bytes is relied on.
const probation = 32

// nearSeam is how many bytes behind a seam a fault in JSON speaks against it.
const nearSeam = 64

// accept takes the seam for found: behind skip bytes of the head and overlap more.
func (j *Joiner) accept(skip, overlap int, p Proof) {
	s := j.s
	j.found = true
	j.joined = Joined{Skipped: j.base + skip, Overlap: overlap, Proof: p}
	if s.Mode != Exact {
		if s.isJSON() {
			j.m = s.shape.m.clone()
		} else if s.shape.fence.at == none { // code does repeat itself
			j.places = beginnings(s.text[max(0, len(s.text)-echoWindow):])
			if n := len(bytes.TrimLeft(s.Require, " \t\r\n")); n > 0 {
				j.places = append(j.places, n)
			}
			j.echoes = append([]int{}, j.places...)
		}
	}
	rest := j.head[min(skip+overlap, len(j.head)):]
	j.head = nil
	j.at -= len(rest)
	for _, c := range rest {
		if j.at++; j.err == nil {
			j.add(c)
		}
	}
}

// beginnings are the places where a line or sentence begins, counted from the end of
// the text.
func beginnings(text []byte) []int {
	all := []int{}
	for i := range text {
		if !isSpace(text[i]) && (i == 0 || text[i-1] == '\n' || i > 1 && isSpace(text[i-1]) && endsSentence(text, i-1)) {
			all = append(all, len(text)-i)
		}
	}
	return all[max(0, len(all)-echoPlaces):]
}

// endsSentence reports whether a sentence or line ends before the white space at i.
func endsSentence(text []byte, i int) bool {
	if text[i] == '\n' || text[i] == '\r' {
		return true
	}
	switch text[i-1] {
	case '!', '?':
		return true
	case '.': // but not of a number in a list
		return i > 1 && !isDigit(text[i-2])
	}
	return false
}

// add takes a byte behind the seam.
func (j *Joiner) add(c byte) {
	if j.over {
		j.joined.Dropped++
		return
	}
	if !j.reads(c) {
		return
	}
	j.pending = append(j.pending, c)
	j.listen(c)
	if j.err == nil && j.certain() {
		j.pass()
	}
}

func (j *Joiner) pass() {
	j.out = append(j.out, j.pending...)
	j.passed += len(j.pending)
	j.pending = j.pending[:0]
}

// reads reports whether the byte is one to be added.
func (j *Joiner) reads(c byte) bool {
	switch {
	case j.m == nil:
		return true
	case j.m.end == 0:
		if j.m.step(c) {
			return true
		}
		if j.joined.Proof == Structural || j.passed+len(j.pending) < nearSeam {
			j.fail(Structure, j.at-1)
			return false
		}
		// The model's own fault, which is for a repair.
		j.m, j.joined.Malformed = nil, true
		return true
	case j.fenced:
		j.over = true
		j.joined.Dropped++
		return false
	case isSpace(c):
		return true
	case bytes.IndexByte([]byte(`,:]}"`), c) >= 0:
		j.fail(Structure, j.at-1)
		return false
	}
	j.m = nil // what follows is not JSON's business
	return true
}

// listen follows the places of the text that the new bytes repeat, from their
// beginning and from that of each paragraph.
func (j *Joiner) listen(c byte) {
	if j.places == nil {
		return
	}
	if isSpace(c) && len(j.echoes) == 0 || j.matched == 0 && isSpace(c) {
		if c == '\n' {
			j.breaks++
		}
		return
	}
	if j.breaks >= 2 && len(j.echoes) == 0 {
		j.echoes, j.matched = append(j.echoes[:0], j.places...), 0
	}
	j.breaks = 0
	text, kept := j.s.text, j.echoes[:0]
	for _, back := range j.echoes {
		i := len(text) - back + j.matched
		if i < len(text) && text[i] == c {
			kept = append(kept, back)
		}
		// All from there to the end: the end was repeated twice.
		if j.passed == 0 && i == len(text)-1 && text[i] == c && weight(text[len(text)-back:]) >= j.s.o.MinOverlap {
			j.fail(Repetition, j.at-back)
			return
		}
	}
	if j.echoes = kept; len(kept) > 0 {
		if j.matched++; j.matched >= longestEcho {
			j.fail(Repetition, j.at-j.matched)
		}
	}
}

// certain reports whether pending bytes may be passed on.
func (j *Joiner) certain() bool {
	if j.passed > 0 {
		return len(j.echoes) == 0 && j.settled()
	}
	if len(j.pending) > j.limit && len(bytes.TrimSpace(j.pending)) == 0 {
		j.fail(NothingNew, j.at)
		return false
	}
	return len(j.echoes) == 0 && !isSpace(j.pending[len(j.pending)-1]) && j.settled()
}

// settled reports whether enough JSON was read behind the seam.
func (j *Joiner) settled() bool {
	return j.m == nil || j.m.end > 0 || j.passed+len(j.pending) >= probation ||
		j.joined.Proof != Structural && j.joined.Overlap >= probation
}

// finish ends the answer behind the seam.
func (j *Joiner) finish() {
	switch {
	case j.err != nil:
	case j.passed == 0 && len(bytes.TrimSpace(j.pending)) == 0:
		j.fail(NothingNew, j.at)
	case j.passed == 0 && len(j.echoes) > 0 && weight(j.pending) >= shortestEcho:
		j.fail(Repetition, j.at-len(j.pending))
	default:
		j.pass()
	}
}
