package continuation

import (
	"bytes"
	"strings"
)

// search takes a byte before the seam.
func (j *Joiner) search(c byte) {
	j.head = append(j.head, c)
	switch {
	case j.closer != "":
		j.skipReasoning()
	case j.begun:
		j.compare(len(j.head))
	case !j.mayReason():
		j.begin()
	}
}

// mayReason reports whether the answer may begin with reasoning, which is not part of
// the text.
func (j *Joiner) mayReason() bool {
	head := bytes.TrimLeft(j.head, " \t\r\n")
	for _, tag := range reasoningTags {
		if strings.HasPrefix(tag.open, string(head)) {
			if len(head) == len(tag.open) {
				j.closer, j.base, j.head = tag.end, j.base+len(j.head), nil
			}
			return len(j.head) <= j.limit
		}
	}
	return false
}

// skipReasoning forgets what a model thinks.
func (j *Joiner) skipReasoning() {
	if bytes.HasSuffix(j.head, []byte(j.closer)) {
		j.base += len(j.head)
		j.head, j.closer, j.begun = nil, "", true
		return
	}
	if keep := len(j.closer); len(j.head) >= 64+keep {
		n := copy(j.head, j.head[len(j.head)-keep:])
		j.base += len(j.head) - n
		j.head = j.head[:n]
	}
}

// begin compares what has been waited with.
func (j *Joiner) begin() {
	if j.begun || j.closer != "" {
		return
	}
	j.begun = true
	// The seam may be found before all of it.
	for n := 1; n <= len(j.head) && !j.found && j.err == nil; n++ {
		j.compare(n)
	}
}

// compare looks at the head's first n bytes, of which all but the last have been
// looked at.
func (j *Joiner) compare(n int) {
	s, c := j.s, j.head[n-1]
	if j.exact != none {
		if j.s.Require[j.exact] != c {
			j.exact = none
		} else if j.exact++; j.exact == len(j.s.Require) {
			if j.decisive() {
				j.accept(0, n, Reproduced)
				return
			}
			j.exact, j.loose = none, nil
		}
	}
	if j.loose != nil {
		j.loose.step(c, n)
	}
	if j.exact == none && j.loose != nil && j.loose.done > 0 && !isSpace(c) && j.loose.done < n && j.decisive() {
		j.accept(0, s.behindSpace(j.head[:n], j.loose.done), Structural)
	}
	// An upstream may send all of its message back, which need not be held to be known.
	if j.again = j.again && n <= len(s.text) && c == s.text[n-1]; j.found {
		return
	}
	if j.again && n == len(s.text) && weight(s.text) >= s.o.MinOverlap {
		j.accept(0, n, Overlap)
	} else if !j.again && n >= j.limit {
		j.resolve()
	}
}

// decisive reports whether an answer that begins with what was cut off can have only
// one meaning. A model that is shown the text's end may repeat more than it was asked
// to, and if the same bytes stand there twice, this may be either.
func (j *Joiner) decisive() bool {
	s := j.s
	return s.proves() && (s.Mode == Prefill || unique(j.tail, s.Require))
}

// isJSON reports whether the text is JSON that has not ended.
func (s *Seam) isJSON() bool { return s.shape.json != none && !s.shape.whole() }

// resolve looks for the seam in all of the head, and fails if there is none.
func (j *Joiner) resolve() {
	s := j.s
	if j.found || j.err != nil {
		return
	}
	if j.closer != "" || len(bytes.TrimSpace(j.head)) == 0 {
		j.fail(NothingNew, j.at)
		return
	}
	var best start
	overlap, proof, reason := 0, Proof(""), NoOverlap
	all := starts(j.head)
	for _, st := range all {
		if st.fenced && !s.isJSON() && s.shape.fence.at == none {
			continue // what the fence holds is not the text
		}
		n, p, doubt := j.overlapAt(st)
		if doubt {
			reason = Ambiguous
		} else if n > overlap {
			best, overlap, proof = st, n, p
		}
	}
	switch {
	case reason == Ambiguous:
		j.fail(Ambiguous, j.base)
		return
	case overlap == 0:
		j.fail(j.unproven(all))
		return
	}
	j.fenced = best.fenced && s.shape.fence.at == none
	j.accept(best.at, overlap, proof)
}

// overlapAt finds how much of the text's end stands at a place of the head: all that
// was cut off, at least, but for white space before it. doubt says that it is not
// clear how much.
func (j *Joiner) overlapAt(st start) (n int, proof Proof, doubt bool) {
	s, at := j.s, j.head[st.at:]
	need := s.o.MinOverlap
	if st.prose {
		need += need / 2
	}
	longest, shorter := overlap(j.tail, at)
	all := longest == len(s.text)
	switch {
	case longest < len(bytes.TrimLeft(s.Require, " \t\r\n")):
	case weight(at[:longest]) >= need:
		return longest, Overlap, j.doubtful(at, longest, shorter, all)
	case all && s.isJSON():
		// All of a short text: either it was started again, or there is no other
		// reading.
		m := &machine{}
		if rest := at[skipSpace(at, 0):]; m.run(rest) == len(rest) && !s.takes(rest) {
			return longest, Structural, false
		}
	}
	if !j.decisive() {
		return 0, "", false
	}
	l := newLoose(s)
	for i := 0; l != nil && i < len(at) && !l.failed; i++ {
		if l.step(at[i], i+1); l.done > 0 {
			return s.behindSpace(at, l.done), Structural, false
		}
	}
	return 0, "", false
}

// doubtful reports whether an overlap may be shorter, or chance: it ends as it begins,
// its bytes come twice in the text, the answer begins with what was asked for too, or
// would be JSON right behind the text.
func (j *Joiner) doubtful(at []byte, longest, shorter int, all bool) bool {
	s := j.s
	if 2*weight(at[:shorter]) >= s.o.MinOverlap || s.isJSON() && shorter > 0 && !all {
		return true
	}
	if all {
		return false
	}
	asked := s.Mode == Instruct && longest > len(s.Require) && len(s.Require) > 0 && bytes.HasPrefix(at, s.Require)
	return asked || !unique(j.tail, at[:longest]) || s.isJSON() && s.takes(at)
}

// takes reports whether an answer would be JSON right behind the text.
func (s *Seam) takes(answer []byte) bool {
	m := s.shape.m.clone()
	return m.run(answer) == len(answer) || m.end > 0
}

// unproven says what an answer is that repeats nothing of the text's end, and where.
// That it begins right behind the text cannot be told from an answer that has left
// something out, in JSON neither.
func (j *Joiner) unproven(all []start) (Reason, int) {
	s := j.s
	for _, st := range all {
		at := j.head[st.at:]
		if restarts(s.text, at, false) || restarts(s.text[s.shape.body:], at, false) ||
			s.shape.json != none && restarts(s.text[s.shape.json:], at, true) {
			return Restart, j.base + st.at
		}
	}
	if s.Mode == Prefill && len(s.Require) > 0 {
		return Mismatch, j.base
	}
	return NoOverlap, j.base
}

// behindSpace returns how many bytes of an answer repeat the text where n do that are
// not white space: the text may have the white space behind them already.
func (s *Seam) behindSpace(answer []byte, n int) int {
	if last := len(s.text) - 1; !s.shape.m.inText() && isSpace(s.text[last]) {
		return skipSpace(answer, n)
	}
	return n
}

// loose compares an answer with what was cut off, whatever the white space between
// the tokens of JSON.
type loose struct {
	m      *machine
	want   []byte
	done   int // bytes of the answer with which all was found
	failed bool
}

// newLoose returns nil where white space counts.
func newLoose(s *Seam) *loose {
	if !s.isJSON() || len(bytes.TrimSpace(s.Require)) == 0 {
		return nil
	}
	l := &loose{m: &machine{}, want: s.Require}
	if n := s.shape.json - len(s.Keep); n > 0 {
		if len(bytes.TrimSpace(s.Require[:n])) > 0 {
			return nil
		}
		l.want = s.Require[n:]
	} else {
		l.m.run(s.text[s.shape.json:len(s.Keep)])
	}
	return l
}

// step takes the answer's n-th byte.
func (l *loose) step(c byte, n int) {
	if l.failed || l.done > 0 {
		return
	}
	if isSpace(c) && !l.m.inText() {
		l.failed = !l.m.step(c)
		return
	}
	l.space()
	if l.failed = l.want[0] != c || !l.m.step(c); l.failed {
		return
	}
	l.want = l.want[1:]
	if l.space(); len(l.want) == 0 {
		l.done = n
	}
}

// space passes over white space that was cut off.
func (l *loose) space() {
	for len(l.want) > 0 && isSpace(l.want[0]) && !l.m.inText() && l.m.step(l.want[0]) {
		l.want = l.want[1:]
	}
}
