package audit

import (
	"bytes"
	"hash/maphash"
)

// Bounds of parts that moved, in bytes.
const (
	minMoved = 32 // shortest part that is recognized by itself
	maxGap   = 4  // between the divergence and the part that begins there
	minLine  = 16 // shortest line that shows an order where other text follows
)

// reorderedLines: the same lines stand in another order, whatever follows them.
func (p *pair) reorderedLines() *finding {
	before := p.l - 1 - bytes.LastIndexByte(p.newText()[:p.l], '\n')
	if before > p.lo || before > maxPart {
		return nil
	}
	a, b := p.oldText()[p.lo-before:], p.newText()[p.l-before:max(p.l, p.opening(p.new))]
	if len(firstLine(a)) < minLine || len(firstLine(b)) < minLine {
		return nil
	}
	// The longest runs of lines of which each stands as often in the one as in the
	// other.
	excess := map[uint64]int{}
	differing, lines := 0, 0
	add := func(line []byte, n int) {
		h := maphash.Bytes(partSeed, line)
		if excess[h] == 0 {
			differing++
		}
		if excess[h] += n; excess[h] == 0 {
			differing--
		}
	}
	parts, oldEnd, newEnd := 0, 0, 0
	for i, j := 0, 0; ; {
		x, m := nextLine(a[i:])
		y, n := nextLine(b[j:])
		if m == 0 || n == 0 {
			break
		}
		i, j = i+m, j+n
		lines++
		add(x, 1)
		add(y, -1)
		if differing == 0 {
			parts, oldEnd, newEnd = lines, i, j
		}
	}
	if parts < 2 {
		return nil
	}
	f := p.at(Reordered, before, p.lo-before+oldEnd, p.l-before+newEnd, "the same %s stand in another order from byte %d on: %q comes first instead of %q",
		count(parts, "line"), p.l-before, clip(b), clip(a))
	f.same, f.restorable = true, true
	return f
}

// nextLine is the first line of text that is not blank, without the white space
// around it, and how many bytes it takes up with all before it; 0 if there is none.
func nextLine(text []byte) ([]byte, int) {
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if line := bytes.TrimSpace(text[at:end]); len(line) > 0 {
			return line, end
		}
		at = end
	}
	return nil, 0
}

func firstLine(text []byte) []byte {
	line, _ := nextLine(text)
	return line
}

// swapped: the part that begins at the divergence stood later before, and the one
// that stood there stands later now.
func (p *pair) swapped() *finding {
	list := p.matches()
	first := -1
	oldEnd, newEnd, covered, ahead := p.lo, p.l, 0, 0
	back := false
	for i, m := range list {
		switch {
		case m.n < minMoved:
			continue
		case first < 0:
			if m.new-p.l > maxGap || m.old-p.lo <= maxGap {
				return nil
			}
			first = i
		case m.old > list[first].old:
			continue
		default:
			ahead += m.n
			back = back || m.old-p.lo <= maxGap
		}
		oldEnd, newEnd = max(oldEnd, m.old+m.n), max(newEnd, m.new+m.n)
		covered += m.n
	}
	if !back || 10*ahead < 9*(list[first].old-p.lo) {
		return nil
	}
	f := p.at(Reordered, 0, oldEnd, newEnd, "the same parts stand in another order from byte %d on: %q stood %s later before",
		p.l, clip(p.newText()[list[first].new:]), count(list[first].old-p.lo, "byte"))
	// Other text between them is not to be changed.
	f.restorable = 10*covered >= 9*max(oldEnd-p.lo, newEnd-p.l)
	return f
}

// turnRemoved: the text goes on as the earlier one did a message later, or earlier
// messages stand before what went on here.
func (p *pair) turnRemoved() *finding {
	if !p.chat() {
		return nil
	}
	for _, m := range p.matches() {
		if m.n < minMoved {
			continue
		}
		gone, added := m.old-p.lo, m.new-p.l
		switch {
		case added == 0 && gone >= minGone && p.marked(p.old, p.lo, m.old):
			return p.gone(HistoryChange, m)
		case gone == 0 && added >= minGone && p.marked(p.new, p.l, m.new):
			return p.inserted(HistoryChange, m)
		}
		break
	}
	return nil
}

// gone makes the finding that text before a match was taken out.
func (p *pair) gone(cause Cause, m match) *finding {
	f := p.at(cause, 0, m.old, m.new, "%s of the earlier prompt, from byte %d on, are gone, and it goes on as before: %q …", count(m.old-p.lo, "byte"), p.lo, clip(p.oldRest()))
	f.restorable = true
	return f
}

// inserted makes the finding that text was put before a match.
func (p *pair) inserted(cause Cause, m match) *finding {
	return p.at(cause, 0, m.old, m.new, "%s were inserted at byte %d: %q …", count(m.new-p.l, "byte"), p.l, clip(p.newRest()))
}

// window: the text goes on as it did a little later, with what stood between gone,
// or goes on after something new: parts were dropped or inserted, or a window
// slides over a text that grows.
func (p *pair) window() *finding {
	for _, m := range p.matches() {
		if m.n < minContent {
			continue
		}
		gone, added := m.old-p.lo, m.new-p.l
		switch {
		case gone > 0 && added == 0 && 2*m.n >= len(p.newRest()):
			return p.gone(PartsChange, m)
		case gone == 0 && added >= minGone && 2*m.n >= len(p.oldRest()):
			return p.inserted(PartsChange, m)
		}
		return nil
	}
	return nil
}

// slid: a window over a text that grows begins later: the text goes on as it did a
// little later, up to the end of the earlier prompt and beyond.
func (p *pair) slid() *finding {
	if p.chat() {
		return nil
	}
	for _, m := range p.matches() {
		if m.n < minContent {
			continue
		}
		if m.old > p.lo && m.new == p.l && m.old+m.n >= p.old.size && m.new+m.n < p.new.size && 2*m.n >= len(p.newRest()) {
			return p.gone(PartsChange, m)
		}
		break
	}
	return nil
}

// rewritten: an answer inside both prompts differs, and the message after it is
// the same, which tells that both are of one conversation.
func (p *pair) rewritten() *finding {
	if !p.answering() {
		return nil
	}
	i, j := p.nextMark(p.old, p.lo), p.nextMark(p.new, p.l)
	if i < 0 || j < 0 {
		return nil
	}
	n := commonBytes(p.oldText()[i:], p.newText()[j:])
	if !p.whole(p.new, j, j+n) {
		return nil
	}
	f := p.at(HistoryChange, 0, i, j, "an earlier answer was rewritten at byte %d, before a message that is the same: %q instead of %q", p.l, clip(p.newRest()), clip(p.oldRest()))
	f.restorable = true
	return f
}

// answering reports whether the divergence is in a message of the model.
func (p *pair) answering() bool {
	v := p.new
	for k := v.tokenAt(max(p.l-1, 0)); k >= 0; k-- {
		if !mark(p.t, v.ids[k]) || int(v.ends[k]) > p.l {
			continue
		}
		piece := bytes.TrimSpace(clipAt(v.text[v.ends[k]:p.l], maxRole))
		if header(piece) || speaks(p.t.Vocab().Bytes(v.ids[k])) {
			return true
		}
		// The role may stand between two marks.
		for at := v.start(k); k > 0; k-- {
			if mark(p.t, v.ids[k-1]) {
				role := bytes.TrimSpace(v.text[v.ends[k-1]:at])
				return len(role) <= maxRole && header(role)
			}
		}
		return false
	}
	return false
}

// speaks reports whether a mark itself opens an answer, as DeepSeek's does.
func speaks(name []byte) bool {
	return header(bytes.Trim(name, "<|｜>[]"))
}

// nextMark is the first byte of the first mark at or after a byte, -1 if there is
// none.
func (p *pair) nextMark(v *view, at int) int {
	for i := v.tokenAt(at); i < len(v.ids); i++ {
		if v.start(i) >= at && mark(p.t, v.ids[i]) {
			return v.start(i)
		}
	}
	return -1
}

// marked reports whether a mark stands in the bytes.
func (p *pair) marked(v *view, lo, hi int) bool {
	i := p.nextMark(v, lo)
	return i >= 0 && i < hi
}

// whole reports whether a message, more than its role, stands between two marks of
// the bytes.
func (p *pair) whole(v *view, lo, hi int) bool {
	last := -1
	for i := v.tokenAt(lo); i < len(v.ids) && int(v.ends[i]) <= hi; i++ {
		if !mark(p.t, v.ids[i]) {
			continue
		}
		if last >= 0 {
			if piece := bytes.TrimSpace(v.text[last:v.start(i)]); len(piece) > 0 && !header(piece) && !role(piece) {
				return true
			}
		}
		last = int(v.ends[i])
	}
	return false
}

// role reports whether a text is the name of a role only.
func role(piece []byte) bool {
	switch string(bytes.ToLower(piece)) {
	case "system", "developer", "user", "human", "tool", "ipython", "function", "environment":
		return true
	}
	return false
}
