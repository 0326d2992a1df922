package audit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// finding is what the evidence around a divergence shows.
type finding struct {
	cause Cause
	why   string
	// old and new are the bytes that differ for that cause. What stands before them
	// is equal.
	old, new span
	// same says that the two say the same in other bytes, so that the old's are lost
	// too. restorable says that the old's could stand in the place of the new's.
	same, restorable bool
	// equal are stretches between further differences of the same kind, and reach is
	// where the last of them ends in both. Without any, equal is nil.
	equal []match
	reach match
	// seam is how many tokens the beginning up to the divergence would have if
	// nothing joined its end, less those that were kept.
	seam int
}

// at makes a finding about the bytes from the first differing one, before bytes
// more at the left, to the given ends.
func (p *pair) at(cause Cause, before, oldEnd, newEnd int, why string, args ...any) *finding {
	before = p.back(before)
	return &finding{
		cause: cause, why: fmt.Sprintf(why, args...),
		old: span{p.lo - before, max(oldEnd, p.lo)}, new: span{p.l - before, max(newEnd, p.l)},
	}
}

// back is how many of n bytes before the divergence both texts have.
func (p *pair) back(n int) int { return max(0, min(n, p.l, p.lo)) }

// classify finds the cause of a divergence.
func (p *pair) classify() *finding {
	tests := []func() *finding{
		p.namespace, p.media, p.bos, p.specialToken, p.ownTokens, p.tail,
		p.thinking, p.thinkingSwitch, p.turnRemoved, p.slid, p.timestamp, p.json, p.toolLines, p.randomID,
		p.unicodeForm, p.whitespace, p.letterCase, p.reordered, p.reorderedLines, p.swapped,
		p.rewritten, p.counter, p.history, p.window, p.drift, p.partBoundary,
	}
	for _, test := range tests {
		if f := test(); f != nil {
			return f
		}
	}
	return p.content()
}

// namespace: keys differ.
func (p *pair) namespace() *finding {
	if p.sameSpace() {
		return nil
	}
	o, n := &p.oldP.Keys, &p.newP.Keys
	what, a, b := "cache salt", o.Salt, n.Salt
	switch {
	case o.LoRA != n.LoRA:
		what, a, b = "adapter", o.LoRA, n.LoRA
	case o.Extra != n.Extra:
		what, a, b = "extra key", o.Extra, n.Extra
	}
	return p.at(Namespace, 0, 0, 0, "the %s is %q instead of %q: requests with different ones share nothing, however equal their prompts are", what, b, a)
}

// media: the first differing token stands for an image.
func (p *pair) media() *finding {
	if p.old.keyed[p.d] >= 0 && p.new.keyed[p.d] >= 0 {
		return nil
	}
	after := 0
	for _, m := range p.matches() {
		after += m.n
	}
	if p.old.ids[p.d] == p.new.ids[p.d] {
		after = p.new.size - p.newAt
	}
	return p.at(Media, 0, p.lo, p.l, "another image or item stands at token %d, before %s that were sent before too", p.d, count(after, "byte"))
}

// bos: one of the two has a BOS that the other has not.
func (p *pair) bos() *finding {
	bos := p.t.Vocab().Specials().BOS
	if bos == vocab.None || p.d > 1 {
		return nil
	}
	o, n := p.old.ids[p.d] == bos, p.new.ids[p.d] == bos
	name := p.t.Vocab().Bytes(bos)
	switch {
	case n && !o && p.d == 1 && p.new.ids[0] == bos:
		return p.at(BOS, 0, 0, 0, "the prompt begins with %s twice: the template writes it and the tokenizer adds it again", name)
	case o && !n && p.d == 1 && p.old.ids[0] == bos:
		return p.at(BOS, 0, 0, 0, "the earlier prompt begins with %s twice, this one with one", name)
	case n && !o && p.d == 0:
		return p.at(BOS, 0, 0, 0, "the prompt begins with %s, the earlier one does not", name)
	case o && !n && p.d == 0:
		return p.at(BOS, 0, 0, 0, "%s is missing at the start, which the earlier prompt has", name)
	}
	return nil
}

// specialToken: a control token on one side, its spelling as text on the other.
func (p *pair) specialToken() *finding {
	v := p.t.Vocab()
	o, n := p.old.ids[p.d], p.new.ids[p.d]
	oc, nc := v.Kind(o) == vocab.Control, v.Kind(n) == vocab.Control
	if oc == nc {
		return nil
	}
	id, rest := o, p.newText()[p.newAt:]
	if nc {
		id, rest = n, p.oldText()[p.oldAt:]
	}
	name := v.Bytes(id)
	if len(name) == 0 || !bytes.HasPrefix(rest, name) {
		return nil
	}
	f := &finding{cause: SpecialToken, old: span{p.oldAt, p.oldAt + len(name)}, new: span{p.newAt, p.newAt + len(name)}, same: true, restorable: true}
	if oc {
		f.why = fmt.Sprintf("%s at byte %d is spelled as text here, where the earlier prompt has the control token", name, p.newAt)
	} else {
		f.why = fmt.Sprintf("%s at byte %d is read as the control token here, where the earlier prompt has its spelling as text", name, p.newAt)
	}
	return f
}

// ownTokens: the tokens differ although the text goes on being equal, and one of
// the two has tokens that are not those of its text.
func (p *pair) ownTokens() *finding {
	if !(p.old.given || p.old.apart || p.new.given) {
		return nil
	}
	oldEnd, newEnd := int(p.old.ends[p.d]), int(p.new.ends[p.d])
	if min(oldEnd-p.oldAt, newEnd-p.newAt) > p.l-p.newAt {
		return nil // no token of equal text has changed
	}
	oldOwn, newOwn := p.canonical(p.old, len(p.old.text)), p.canonical(p.new, p.new.size)
	if oldOwn && newOwn {
		return nil
	}
	f := &finding{old: span{p.oldAt, p.lo}, new: span{p.newAt, p.l}, same: true, restorable: true}
	oldShow, newShow := p.show(p.old.ids[p.d:], 4), p.show(p.newIDs()[p.d:], 4)
	switch {
	case p.separates():
		f.cause = Separator
		f.why = fmt.Sprintf("the separator %q has the tokens %s in this context, and %s in the earlier one", p.sep, newShow, oldShow)
	case p.old.apart && oldEnd >= p.old.size:
		f.cause = OwnIDs
		f.why = fmt.Sprintf("the model wrote the tokens %s; the same text was sent back as %s", oldShow, newShow)
	default:
		f.cause = PartBoundary
		which := "the earlier prompt"
		if oldOwn {
			which = "this prompt"
		}
		f.why = fmt.Sprintf("parts of %s were tokenized by themselves: it has %s where the other one has %s for the same text", which,
			pick(oldOwn, newShow, oldShow), pick(oldOwn, oldShow, newShow))
	}
	return f
}

func pick(c bool, a, b string) string {
	if c {
		return a
	}
	return b
}

// canonicalBytes is how much text before a divergence is encoded again to see
// whether the tokens there are the tokenizer's.
const canonicalBytes = 4096

// canonical reports whether a view's tokens at the divergence are those of its
// text up to byte end.
func (p *pair) canonical(v *view, end int) bool {
	if !v.given && !v.apart {
		return true
	}
	// From a control token, or else from the start of a line, on.
	from := p.d
	for from > 0 && v.start(p.d)-v.start(from) < canonicalBytes && p.t.Vocab().Kind(v.ids[from]) != vocab.Control {
		from--
	}
	lo, hi := v.start(from), min(end, int(v.ends[p.d])+256)
	ids, _ := p.encode(v.text[lo:hi], lo)
	k := p.d - from
	return k < len(ids) && slices.Equal(ids[:k+1], v.ids[from:p.d+1])
}

// encode gives the tokens of text that begins at byte lo.
func (p *pair) encode(text []byte, lo int) ([]vocab.ID, []int) {
	ids, ends := p.t.EncodeEnds(nil, nil, text, p.special || p.old.given || p.new.given)
	if lo > 0 && !p.special {
		if inside := p.t.EncodeInside(nil, text); len(inside) == len(ids) {
			ids = inside
		}
	}
	return ids, ends
}

// separates reports whether the differing tokens are those of a separator.
func (p *pair) separates() bool {
	if len(p.sep) == 0 {
		return false
	}
	lo := max(0, p.newAt-len(p.sep))
	hi := min(p.new.size, int(p.new.ends[p.d])+len(p.sep))
	i := bytes.Index(p.newText()[lo:hi], p.sep)
	return i >= 0 && lo+i < int(p.new.ends[p.d])+len(p.sep) && lo+i+len(p.sep) > p.newAt
}

// tail: one text is the beginning of the other.
func (p *pair) tail() *finding {
	if !p.equalText() {
		return nil
	}
	r := len(p.old.ids) - p.d
	f := &finding{cause: TailRetokenised, old: span{p.oldAt, p.lo}, new: span{p.newAt, p.l}}
	if len(p.oldRest()) == 0 {
		k := p.new.tokenAt(max(p.l-1, p.newAt))
		f.why = fmt.Sprintf("the earlier text goes on, and its last %s %s become %s", count(r, "token"), p.show(p.old.ids[p.d:], r), p.show(p.newIDs()[p.d:], k-p.d+1))
		return f
	}
	f.why = fmt.Sprintf("this prompt is the beginning of the earlier one, and ends in %s where that one has %s",
		p.show(p.newIDs()[p.d:], 4), p.show(p.old.ids[p.d:], 4))
	return f
}

// partBoundary: the texts differ after a shared part whose last tokens join what
// follows.
func (p *pair) partBoundary() *finding {
	if p.l <= p.newAt || insideWord(p.newText(), p.l) || insideWord(p.oldText(), p.lo) {
		return nil
	}
	seam := p.seam(p.l)
	if end := len(bytes.TrimRight(p.newText()[:p.l], " \t")); seam > 0 && end < p.l {
		// A word takes in the blanks before it: that is how words are divided.
		seam = min(seam, p.seam(end))
	}
	if seam <= 0 {
		return nil
	}
	f := p.at(PartBoundary, p.l-p.newAt, p.lo, p.l, "")
	f.seam = seam
	oldK, newK := p.old.tokenAt(max(p.lo-1, p.oldAt)), p.new.tokenAt(max(p.l-1, p.newAt))
	f.why = fmt.Sprintf("the shared part ends in %q, which joins what follows: %s here, %s before",
		p.newText()[p.newAt:p.l], p.show(p.newIDs()[p.d:], newK-p.d+1), p.show(p.old.ids[p.d:], oldK-p.d+1))
	if len(p.sep) > 0 && p.separates() {
		f.cause = Separator
	}
	if f.cause == PartBoundary && p.laterLoss() > seam {
		return nil // what follows the other text is the greater loss
	}
	return f
}

// laterLoss counts the tokens of long equal stretches after the first differing
// byte.
func (p *pair) laterLoss() int {
	c := &finding{cause: Content}
	n, _ := p.lost(c)
	return n
}

// seam is how many more tokens than were kept the text up to byte end has, if
// nothing follows it.
func (p *pair) seam(end int) int {
	if end <= p.newAt {
		return 0
	}
	from := p.d
	for from > 0 && p.newAt-p.new.start(from) < canonicalBytes/16 && p.t.Vocab().Kind(p.new.ids[from]) != vocab.Control {
		from--
	}
	lo := p.new.start(from)
	_, ends := p.encode(p.newText()[lo:end], lo)
	n := 0
	for _, e := range ends {
		if lo+e > p.newAt {
			n++
		}
	}
	return n
}

// content: other text.
func (p *pair) content() *finding {
	oldEnd, newEnd := len(p.oldText()), p.opening(p.new)
	if m := p.matches(); len(m) > 0 {
		oldEnd, newEnd = max(m[0].old, p.lo), m[0].new
	}
	return p.at(Content, 0, oldEnd, newEnd, "other text begins here: %q instead of %q", clip(p.newRest()), clip(p.oldRest()))
}

// insideWord reports whether a letter or digit stands on both sides of a byte.
func insideWord(text []byte, at int) bool {
	return at > 0 && at < len(text) && wordByte(text[at-1]) && wordByte(text[at])
}

func wordByte(b byte) bool {
	return b >= 0x80 || b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
