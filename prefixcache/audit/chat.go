package audit

import (
	"bytes"
	"fmt"
	"regexp"
)

// thoughts are the marks that reasoning stands between in the templates of open
// models.
var thoughts = []struct{ open, close string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<seed:think>", "</seed:think>"},
	{"[THINK]", "[/THINK]"},
	{"◁think▷", "◁/think▷"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<|channel|>analysis<|message|>", "<|end|>"},
	{"<|inner_prefix|>", "<|inner_suffix|>"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
}

// thinking: a reasoning block stands on one side only, or empty on one.
func (p *pair) thinking() *finding {
	for _, m := range thoughts {
		if f := p.emptied(m.open, m.close); f != nil {
			return f
		}
		for _, mark := range [2]string{m.open, m.close} {
			o, oOK := markAt(p.oldText(), p.lo, mark)
			n, nOK := markAt(p.newText(), p.l, mark)
			switch {
			case oOK && !nOK:
				end := thoughtEnd(p.oldText(), o, m.close, mark == m.close)
				before := p.back(p.lo - o)
				f := p.at(Thinking, before, end, p.resume(p.oldText(), end, p.newText(), p.l-before), "")
				f.why = fmt.Sprintf("the reasoning block %q, %s at byte %d of the earlier prompt, is gone: %q stands there now",
					clip(p.oldText()[o:end]), count(end-o, "byte"), o, clip(p.newText()[p.l-before:]))
				f.restorable = true
				return f
			case nOK && !oOK:
				end := thoughtEnd(p.newText(), n, m.close, mark == m.close)
				before := p.back(p.l - n)
				f := p.at(Thinking, before, p.resume(p.newText(), end, p.oldText(), p.lo-before), end, "")
				f.restorable = true
				f.why = fmt.Sprintf("a reasoning block %q, %s, was inserted at byte %d, where the earlier prompt has %q",
					clip(p.newText()[n:end]), count(end-n, "byte"), n, clip(p.oldText()[p.lo-before:]))
				return f
			}
		}
	}
	return nil
}

// switches are what turns reasoning on and off in prompts: Qwen's /no_think, and
// settings in words such as gpt-oss' "Reasoning: high".
var switches = regexp.MustCompile(`(?i)/(?:no_?)?think\b|\b(?:reasoning|thinking|think)\b[^\n\d]{0,24}?\b(?:on|off|none|minimal|low|medium|high|true|false|yes|no|enabled|disabled)\b`)

// thinkingSwitch: reasoning is turned on in one and off in the other.
func (p *pair) thinkingSwitch() *finding {
	o, n, ok := p.value(switches)
	if !ok {
		return nil
	}
	return p.valued(Thinking, "the switch for reasoning", o, n)
}

// emptied: both have the block, and it is empty in one.
func (p *pair) emptied(open, end string) *finding {
	head := p.newText()[max(0, p.l-len(open)-8):p.l]
	i := bytes.LastIndex(head, []byte(open))
	if i < 0 || blank(head[i+len(open):]) != len(head)-i-len(open) {
		return nil
	}
	before := len(head) - i
	if before > p.lo {
		return nil
	}
	o, n := p.oldText()[p.lo-before+len(open):], p.newText()[p.l-before+len(open):]
	oEmpty, nEmpty := bytes.HasPrefix(o[blank(o):], []byte(end)), bytes.HasPrefix(n[blank(n):], []byte(end))
	if oEmpty == nEmpty {
		return nil
	}
	oEnd, nEnd := thoughtEnd(p.oldText(), p.lo-before, end, false), thoughtEnd(p.newText(), p.l-before, end, false)
	what := "is empty now"
	if oEmpty {
		what = "was empty before"
	}
	f := p.at(Thinking, before, oEnd, nEnd, "the reasoning block at byte %d %s: %q instead of %q", p.l-before, what,
		clip(p.newText()[p.l-before:nEnd]), clip(p.oldText()[p.lo-before:oEnd]))
	f.restorable = true
	return f
}

// markAt finds a mark that begins at most white space after the divergence, or
// has it inside.
func markAt(text []byte, at int, mark string) (int, bool) {
	lo := max(0, at-len(mark)+1)
	skip := at + blank(text[at:])
	hi := min(len(text), skip+len(mark))
	i := bytes.Index(text[lo:hi], []byte(mark))
	if i < 0 || lo+i+len(mark) <= at {
		return 0, false
	}
	return lo + i, true
}

// thoughtEnd is the byte after the block that begins at byte lo, with the white
// space after it.
func thoughtEnd(text []byte, lo int, end string, closing bool) int {
	if !closing {
		i := bytes.Index(text[lo:], []byte(end))
		if i < 0 {
			return len(text)
		}
		lo += i
	}
	lo += len(end)
	return lo + blank(text[lo:])
}

// resume is the byte at which the text without the block goes on as the one with
// it does after it.
func (p *pair) resume(with []byte, end int, without []byte, at int) int {
	for _, skip := range [2]int{0, blank(without[at:])} {
		n := commonBytes(with[end:], without[at+skip:])
		if n >= minAgain || n > 0 && n == min(len(with)-end, len(without)-at-skip) {
			return at + skip
		}
	}
	return at
}

// minGone is how much text must be gone, or new, for a change of history.
const minGone = 16

// history: what followed the divergence before follows it later now, or the other
// way round, with messages between; or an answer was rewritten.
func (p *pair) history() *finding {
	if !p.chat() {
		return nil
	}
	for _, m := range p.matches() {
		if m.n < 2*minGone {
			continue
		}
		gone, added := m.old-p.lo, m.new-p.l
		switch {
		case gone >= minGone && added < minGone && p.message(p.old, p.lo, m.old):
			return p.gone(HistoryChange, m)
		case added >= minGone && gone < minGone && p.message(p.new, p.l, m.new):
			return p.inserted(HistoryChange, m)
		}
		break
	}
	return nil
}

// chat reports whether a chat template wrote the prompts: marks stand in them, at
// the end or, in a conversation, anywhere.
func (p *pair) chat() bool {
	if p.opening(p.new) < p.new.size {
		return true
	}
	return p.conversation() && p.templated()
}

// templated reports whether one of the texts has marks.
func (p *pair) templated() bool {
	return p.marked(p.new, 0, p.new.size) || p.marked(p.old, 0, len(p.oldText()))
}

// message reports whether a control token stands in the bytes, or whole lines of
// a conversation do.
func (p *pair) message(v *view, lo, hi int) bool {
	for i := v.tokenAt(lo); i < len(v.ids) && v.start(i) < hi; i++ {
		if mark(p.t, v.ids[i]) {
			return true
		}
	}
	return p.conversation() && bytes.IndexByte(v.text[lo:hi], '\n') >= 0
}

// drift: the next turn of a conversation does not begin as the one before it. One
// that has all of an earlier prompt up to the answer is such a turn too.
func (p *pair) drift() *finding {
	gen := p.opening(p.old)
	answered := p.old.apart && p.lo >= gen && len(p.newRest()) > 0
	if !answered && (!p.conversation() || p.newP.Turn == p.oldP.Turn && p.newP.Turn != 0) {
		return nil
	}
	if !p.templated() {
		return nil // a file that is being edited
	}
	switch {
	case p.lo >= p.old.size && p.old.apart:
		what := "answer"
		if p.control(p.old, p.lo) || p.control(p.new, p.l) {
			f := p.at(TemplateDrift, 0, p.lo, p.l, "the template ends the answer of the turn before in another way than the model did: %q at byte %d instead of %q", clip(p.newRest()), p.l, clip(p.oldRest()))
			f.restorable = true
			return f
		}
		oldEnd, newEnd := p.resumes()
		f := p.at(HistoryChange, 0, oldEnd, newEnd, "the %s of the turn before was rewritten at byte %d: %q instead of %q", what, p.l, clip(p.newRest()), clip(p.oldRest()))
		f.restorable = true
		return f
	case p.lo >= gen && p.lo <= p.old.size:
		f := p.at(TemplateDrift, 0, p.old.size, p.answer(), "the template opened the answer with %q and writes %q at byte %d in the next turn", clip(p.generation(p.old)), clip(p.newRest()), p.l)
		f.restorable = true
		return f
	}
	oldEnd, newEnd := p.resumes()
	f := p.at(HistoryChange, 0, oldEnd, newEnd, "an earlier turn was rewritten at byte %d: %q instead of %q", p.l, clip(p.newRest()), clip(p.oldRest()))
	f.restorable = true
	return f
}

// answer is the byte at which the answer of the turn before begins, if it stands
// near the first differing byte; else that byte.
func (p *pair) answer() int {
	start := clipAt(p.oldText()[p.old.size:], 2*minAgain)
	near := p.newRest()[:min(len(p.newRest()), 4*maxRole)]
	if i := bytes.Index(near, start); i > 0 && len(start) > 0 {
		return p.l + i
	}
	return p.l
}

// resumes is where the texts begin to be equal again.
func (p *pair) resumes() (old, new int) {
	for _, m := range p.matches() {
		if m.n >= 2*minGone {
			return m.old, m.new
		}
	}
	return len(p.oldText()), p.opening(p.new)
}

// control reports whether a control token begins at a byte, or holds it.
func (p *pair) control(v *view, at int) bool {
	i := v.tokenAt(at)
	return i < len(v.ids) && mark(p.t, v.ids[i])
}

// generation is the text of a prompt that opens the answer.
func (p *pair) generation(v *view) []byte {
	at := p.opening(v)
	first := v.tokenAt(at)
	for i := first + 1; i < v.n; i++ {
		if mark(p.t, v.ids[i]) {
			at = v.start(i)
			break
		}
	}
	return v.text[at:v.size]
}
