package recovery

import (
	"bytes"
	"fmt"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/code"
	"github.com/unfray/unfray/recovery/extract"
	"github.com/unfray/unfray/recovery/loop"
)

// reasoning keeps what the model thought apart, and drops tokens that frame the
// answer.
func (a *attempt) reasoning() (Verdict, string) {
	var edits []Edit
	for _, s := range extract.Segments(a.text, a.o.Extract) {
		switch s.Kind {
		case extract.Reasoning:
			if !s.Closed && a.answersIn(s) {
				continue
			}
			a.think(a.text[s.BodyStart:s.BodyEnd])
			if !s.Closed {
				a.loopInReasoning(s)
				a.res.Open = append(a.res.Open, jsonrepair.Open{Kind: "reasoning", Offset: s.Start})
			}
		case extract.Marker:
		default:
			continue
		}
		end := s.End
		for end < len(a.text) && isSpace(a.text[end]) {
			end++
		}
		edits = append(edits, Edit{jsonrepair.Edit{Kind: jsonrepair.Reasoning, Offset: s.Start, Before: string(a.text[s.Start:end])}, Reasoning})
	}
	if edits == nil {
		return Nothing, "it has no reasoning"
	}
	a.apply(edits)
	why := fmt.Sprintf("%d bytes of reasoning kept apart", len(a.res.Reasoning))
	if a.form != Text && a.form != Code && !a.isCall() && a.takeStrict(a.text) {
		return Accepted, why
	}
	return Changed, why
}

// answersIn reports whether reasoning that never ends holds the JSON that was asked
// for, since the model forgot to end it.
func (a *attempt) answersIn(s extract.Segment) bool {
	if a.form != JSON && a.form != Auto {
		return false
	}
	found, _ := extract.Candidates(a.text[s.BodyStart:s.BodyEnd], a.o.answerOnly())
	for _, c := range found {
		if c.Type == extract.Scalar || c.Placeholder || c.Doubtful || c.Inside {
			continue
		}
		if a.form == JSON || c.Complete && s.BodyStart+c.End == len(bytes.TrimRight(a.text, " \t\r\n")) {
			return true
		}
	}
	return false
}

// loopInReasoning looks for what keeps reasoning from its end. It is not cut: reasoning
// is kept apart as it is.
func (a *attempt) loopInReasoning(s extract.Segment) {
	if !a.o.uses(Loops) {
		return
	}
	o := a.o.Loop
	o.Context = loop.Reasoning
	l := loop.Find(a.text[s.BodyStart:s.BodyEnd], o)
	if l == nil || l.Broken || l.Cut < 0 {
		return
	}
	l.Start, l.End, l.Cut = l.Start+s.BodyStart, l.End+s.BodyStart, -1
	a.res.Loop = l
}

// think adds to the reasoning.
func (a *attempt) think(body []byte) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return
	}
	if len(a.res.Reasoning) > 0 {
		a.res.Reasoning = append(a.res.Reasoning, '\n')
	}
	a.res.Reasoning = append(a.res.Reasoning, body...)
}

// answerOnly are the options for a text of which the reasoning has been taken.
func (o *Options) answerOnly() extract.Options {
	e := o.Extract
	e.Tags, e.Opened = []extract.Tag{}, false
	return e
}

// locateCode takes the code out of its fence.
func (a *attempt) locateCode() (Verdict, string) {
	var fences []extract.Segment
	for _, s := range extract.Segments(a.text, a.o.answerOnly()) {
		if s.Kind == extract.Fence {
			fences = append(fences, s)
		}
	}
	if len(fences) == 0 {
		return Nothing, "no fence"
	}
	first := fences[0]
	if head := bytes.TrimSpace(a.text[:first.Start]); len(head) > 0 && !endsAsProse(head) {
		blank := bytes.HasPrefix(a.text[first.BodyStart:], []byte("\n"))
		if first.Info == "" && (blank || len(fences) == 1 && !first.Closed) {
			// The model forgot to open it.
			a.fenced = true
			a.apply(cutTo(Locate, a.text, 0, first.Start, jsonrepair.Fence))
			return Changed, "the code before a fence that only closes"
		}
		if code.Check(a.o.Language, a.text, code.Options{}).Status == code.Parses {
			return Nothing, "all of it is code"
		}
	}
	best := first
	for _, s := range fences[1:] {
		if a.better(s, best) {
			best = s
		}
	}
	if a.o.Language == "" {
		a.language = code.Detect(nil, best.Info)
	}
	body := best.Body(a.text)
	a.fenced, a.fenceOpen = best.Closed, !best.Closed
	if bytes.Equal(body, a.text[best.BodyStart:best.BodyEnd]) {
		a.apply(cutTo(Locate, a.text, best.BodyStart, best.BodyEnd, jsonrepair.Fence))
	} else {
		a.apply([]Edit{{replacement(a.text, body, jsonrepair.Fence), Locate}})
	}
	return Changed, "the code of a fence"
}

// endsAsProse reports whether a text ends as what introduces code does.
func endsAsProse(text []byte) bool {
	return bytes.IndexByte([]byte(".:!?"), text[len(text)-1]) >= 0
}

// better reports whether a fence is likelier to hold the code than an earlier one: it
// is the one of the language, or so much longer that the other is an example.
func (a *attempt) better(s, than extract.Segment) bool {
	if a.o.Language != "" {
		is, was := code.Detect(nil, s.Info) == a.o.Language, code.Detect(nil, than.Info) == a.o.Language
		if is != was {
			return is
		}
	}
	return s.BodyEnd-s.BodyStart > 4*(than.BodyEnd-than.BodyStart)
}

// loops cuts a tail that repeats itself.
func (a *attempt) loops() (Verdict, string) {
	if a.form == JSON && (a.accepted || a.res.Outcome != Truncated) {
		return Nothing, "the JSON ends"
	}
	text := a.text
	if a.form == JSON {
		text = a.input // the closers behind the loop are not the model's
	}
	l := loop.Find(text, a.o.Loop)
	switch {
	case l == nil && a.res.Loop != nil:
		return Nothing, "the reasoning repeats itself"
	case l == nil:
		return Nothing, "nothing repeats"
	}
	what := fmt.Sprintf("%d copies of %d bytes", l.Copies, l.Period)
	cut := Edit{jsonrepair.Edit{Kind: RepeatedTail, Offset: l.Cut}, Loops}
	if l.Cut >= 0 {
		cut.Before = string(text[l.Cut:])
	}
	found := *l
	a.res.Loop = &found
	if a.form != JSON {
		m := newMapper(a.edits)
		found.Start, found.End, found.Cut = m.input(l.Start), m.input(l.End), m.input(l.Cut)
	}
	switch {
	case l.Cut < 0:
		found.Cut = -1
		return Nothing, what + " are left alone: " + string(l.Kind)
	case l.Broken:
		found.Cut = -1
		return Nothing, what + ", but the text goes on behind them"
	}
	if a.form != JSON {
		a.apply([]Edit{cut})
		return Changed, what + " cut to one"
	}
	return a.restart(cut, what)
}

// restart repairs JSON again without the loop at its end.
func (a *attempt) restart(cut Edit, what string) (Verdict, string) {
	r := jsonrepair.Repair(a.input[:cut.Offset], a.jsonOptions())
	if r.Text == nil {
		return Rejected, what + ", but without them there is no JSON"
	}
	var edits []Edit
	for e := range r.Edits() {
		edits = append(edits, Edit{e, Repair})
	}
	a.text, a.edits = a.input, nil
	a.apply([]Edit{cut})
	a.apply(edits)
	a.res.Outcome, a.res.Open, a.res.Readings = Truncated, r.Open, nil
	return Changed, what + " cut to one"
}

// structure checks code, and closes what a cut left open.
func (a *attempt) structure() (Verdict, string) {
	if a.form == Code {
		return a.checkCode()
	}
	edits, ok := code.CloseFence(a.text)
	at := a.openFence()
	if !ok || at < 0 {
		return Nothing, "no fence is open"
	}
	a.fenceOpen = true
	m := newMapper(a.edits)
	a.res.Open = append(a.res.Open, jsonrepair.Open{Kind: "fence", Offset: m.input(at)})
	a.apply(tagged(Structure, edits))
	return Changed, "the last fence closed"
}

// openFence is where the fence begins that is open at the end of the text, -1 if none is:
// the line of tildes below a heading opens none.
func (a *attempt) openFence() int {
	s := extract.Segments(a.text, a.o.answerOnly())
	if len(s) == 0 || s[len(s)-1].Kind != extract.Fence || s[len(s)-1].Closed {
		return -1
	}
	last := s[len(s)-1]
	if len(s) == 1 {
		return last.Start
	}
	before := a.text[s[len(s)-2].Start:last.Start]
	heading := bytes.TrimRight(before, "\r\n")
	heading = heading[bytes.LastIndexByte(heading, '\n')+1:]
	mark := bytes.TrimSpace(a.text[last.Start:last.BodyStart])
	underlines := len(mark) > 0 && len(bytes.Trim(mark, "~")) == 0 && len(bytes.TrimRight(before, " \t\r\n"))+2 >= len(before) &&
		len(bytes.TrimSpace(heading)) > 0 && len(heading) <= len(mark)+2
	if underlines {
		return -1
	}
	return last.Start
}

func (a *attempt) checkCode() (Verdict, string) {
	lang := a.codeLanguage()
	a.res.Code = code.Check(lang, a.text, code.Options{})
	switch a.res.Code.Status {
	case code.Cut:
		if a.fenced {
			return Nothing, "it breaks off inside a fence that is closed"
		}
		edits, report := code.Close(lang, a.text)
		m := newMapper(a.edits)
		for _, o := range a.res.Code.Open {
			a.res.Open = append(a.res.Open, jsonrepair.Open{Kind: o.Kind, Offset: m.input(o.Offset)})
		}
		a.apply(tagged(Structure, edits))
		a.res.Code.Closed = report != nil && report.Closed
		return Changed, "cut code closed"
	case code.Broken:
		return Nothing, "it does not parse"
	}
	return Nothing, "its structure is sound"
}
