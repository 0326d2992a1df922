package audit

import (
	"bytes"
	"slices"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// pair is a prompt and the earlier one that it is compared with.
type pair struct {
	t        *tokenizer.Tokenizer
	special  bool
	i, j     int // the prompt, and the earlier one
	old, new *view
	oldP     *Prompt
	newP     *Prompt
	sep      []byte // Options.Separator

	d            int // first differing token
	oldAt, newAt int // where it begins
	l            int // first differing byte of the texts from there on, of new
	lo           int // the same byte of old
	shared       []match
	same         int // bytes that lost found equal after what differs
}

// newPair compares; ok is false if one's tokens go on where the other's end.
func newPair(r *reader, views []view, prompts []Prompt, j, i int, sep []byte) (p *pair, ok bool) {
	p = &pair{t: r.t, special: r.special, i: i, j: j, old: &views[j], new: &views[i], oldP: &prompts[j], newP: &prompts[i], sep: sep}
	if p.old.space != p.new.space {
		return p, p.new.n > 0 && len(p.old.ids) > 0
	}
	ids := p.newIDs()
	p.d = vocab.CommonPrefix(p.old.keyed, p.new.keyed[:p.new.n])
	if p.d == len(ids) || p.d >= p.old.held {
		return p, false
	}
	p.oldAt, p.newAt = p.old.start(p.d), p.new.start(p.d)
	n := commonBytes(p.oldText()[p.oldAt:], p.newText()[p.newAt:])
	p.l, p.lo = p.newAt+n, p.oldAt+n
	return p, true
}

func (p *pair) newText() []byte    { return p.new.text[:p.new.size] }
func (p *pair) newIDs() []vocab.ID { return p.new.ids[:p.new.n] }
func (p *pair) oldText() []byte    { return p.old.text }

// oldRest and newRest are what follows the first differing byte.
func (p *pair) oldRest() []byte { return p.oldText()[p.lo:] }
func (p *pair) newRest() []byte { return p.newText()[p.l:] }

// sameSpace reports whether the two may share at all.
func (p *pair) sameSpace() bool { return p.old.space == p.new.space }

// equalText reports whether the texts end, or one of them, before they differ.
func (p *pair) equalText() bool { return len(p.oldRest()) == 0 || len(p.newRest()) == 0 }

// matches are the equal stretches after the first differing byte, with offsets
// into the whole texts.
func (p *pair) matches() []match {
	if p.shared == nil {
		p.shared = overlap(p.oldRest(), p.newRest())
		for i := range p.shared {
			p.shared[i].old += p.lo
			p.shared[i].new += p.l
		}
		if p.shared == nil {
			p.shared = []match{}
		}
	}
	return p.shared
}

// conversation reports whether the two are turns of one conversation.
func (p *pair) conversation() bool {
	return p.oldP.Conversation != "" && p.oldP.Conversation == p.newP.Conversation
}

// shortest equal stretches that count, in bytes: where other text made the
// difference, and where a volatile value did.
const (
	minContent = 256
	minValue   = 1
	minCounted = 16 // in all, behind a value
)

// lost counts the tokens that the cache held and that are computed again, and those whose
// text is the same in both.
func (p *pair) lost(f *finding) (tokens, equal int) {
	if !p.sameSpace() {
		n := vocab.CommonPrefix(p.old.keyed[:p.old.held], p.new.keyed[:p.new.n])
		return n, n
	}
	least := minValue
	if f.cause == Content || f.cause == PartBoundary {
		least = minContent
	}
	end := p.new.size
	if f.cause.fromValues() {
		end = p.opening(p.new)
	}
	var spans []span
	next := p.d
	for next < len(p.old.ids) && p.old.keyed[next] < 0 {
		next++ // what stands for another image is no loss
	}
	if at := p.old.start(next); p.lo > at && f.cause != Content {
		spans = append(spans, span{at, p.lo})
	}
	first, again := len(spans), 0
	for _, m := range p.repeated(f) {
		if n := min(m.n, end-m.new); n >= least {
			spans = append(spans, span{m.old, m.old + n})
			again += n
		}
	}
	for _, m := range f.equal {
		spans = append(spans, span{m.old, m.old + m.n})
	}
	p.same = again
	if f.cause.fromValues() && again < minCounted {
		spans = spans[:first]
	}
	equal = p.count(spans)
	if f.seam > 0 {
		equal = max(equal, f.seam)
	}
	tokens = equal
	if f.same {
		tokens = p.count(append(spans, span{f.old.lo, max(f.old.hi, f.reach.old)}))
	}
	return tokens, equal
}

// repeated are the equal stretches inside what differs for the finding's cause,
// right behind it and later. Knowing where it ends finds short ones too.
func (p *pair) repeated(f *finding) []match {
	if f.cause == Content || f.cause == PartBoundary || f.old.hi < p.lo || f.new.hi < p.l {
		return p.matches()
	}
	a, b := f.old.hi, min(f.new.hi, p.new.size)
	var list []match
	add := func(more []match, old, new int) {
		for _, m := range more {
			list = append(list, match{m.old + old, m.new + new, m.n})
		}
	}
	add(overlap(p.oldText()[p.lo:a], p.newText()[p.l:b]), p.lo, p.l)
	n := commonBytes(p.oldText()[a:], p.newText()[b:])
	if n > 0 {
		list = append(list, match{a, b, n})
	}
	add(overlap(p.oldText()[a+n:], p.newText()[b+n:]), a+n, b+n)
	return list
}

// fromValues reports whether what changed is meant to: only what stands after it
// could have been kept.
func (c Cause) fromValues() bool {
	switch c {
	case Timestamp, RandomID, Counter, Content, ToolsChange, PartBoundary:
		return true
	}
	return false
}

// count counts the old's tokens from the divergence on that lie in any of the
// spans.
func (p *pair) count(spans []span) (n int) {
	slices.SortFunc(spans, func(a, b span) int { return a.lo - b.lo })
	var merged []span
	for _, s := range spans {
		if k := len(merged); k > 0 && s.lo <= merged[k-1].hi {
			merged[k-1].hi = max(merged[k-1].hi, s.hi)
			continue
		}
		merged = append(merged, s)
	}
	for _, s := range merged {
		n += p.old.within(p.d, s.lo, s.hi)
	}
	return n
}

// maxRole is the longest text between control tokens that may be the header of
// an answer, in bytes.
const maxRole = 64

// opening is the byte at which the control tokens begin that open the answer,
// with those that end the last message before them; the end of the prompt if
// there are none.
func (p *pair) opening(v *view) int {
	at, last := v.size, v.size
	role := false
	for i := v.n - 1; i >= 0 && last-v.start(i) <= maxRole; i-- {
		if !mark(p.t, v.ids[i]) {
			continue
		}
		switch piece := bytes.TrimSpace(v.text[v.ends[i]:last]); {
		case len(piece) == 0:
		case !role && header(piece):
			role = true
		default:
			return at
		}
		at = v.start(i)
		last = at
	}
	return at
}

// mark reports whether a token divides messages: a control token, or an added one
// in the brackets of one, as DeepSeek's are.
func mark(t *tokenizer.Tokenizer, id vocab.ID) bool {
	switch t.Vocab().Kind(id) {
	case vocab.Control:
		return true
	case vocab.UserDefined:
		b := t.Vocab().Bytes(id)
		return len(b) > 3 && (b[0] == '<' && b[len(b)-1] == '>' || b[0] == '[' && b[len(b)-1] == ']')
	}
	return false
}

// header reports whether a text between control tokens opens an answer: by the
// role's name, or by a reasoning block.
func header(piece []byte) bool {
	for _, role := range []string{"assistant", "model", "bot", "ai"} {
		if n := len(role); len(piece) >= n && strings.EqualFold(string(piece[:n]), role) && (len(piece) == n || !wordByte(piece[n])) {
			return true
		}
	}
	for _, m := range thoughts {
		if bytes.HasPrefix(piece, []byte(m.open)) {
			return true
		}
	}
	return false
}
