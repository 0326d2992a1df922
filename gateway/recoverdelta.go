package gateway

import (
	"bytes"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
)

// channel is a text on its way through recovery. As long as what recovery has given
// is what came, events need no change.
type channel struct {
	out     []byte // given, and in no event yet
	changed bool
}

// waits reports whether more may come that makes out begin with text.
func (c *channel) waits(text []byte) bool {
	return !c.changed && len(c.out) < len(text) && bytes.HasPrefix(text, c.out)
}

// take returns the text for the place in which text came.
func (c *channel) take(text []byte) []byte {
	if !c.changed && bytes.HasPrefix(c.out, text) {
		out := c.out[:len(text)]
		c.out = c.out[len(text):]
		return out
	}
	if len(c.out) > 0 || len(text) > 0 {
		c.changed = true
	}
	out := c.out
	c.out = nil
	return out
}

// rest returns all that is left.
func (c *channel) rest() []byte {
	out := c.out
	c.out = nil
	return out
}

// recoverChoice is a choice of a stream.
type recoverChoice struct {
	w      *recoverWriter
	rec    *recovering
	index  int
	chat   bool
	stream *recovery.Stream
	ask    *asker

	text      channel
	has       bool   // it has a text, if only an empty one
	given     bool   // some of its text has been given
	most      int    // bytes of text, and of arguments, that are looked at
	seen      int    // bytes of text
	seenArgs  int    // bytes of arguments
	raw       []byte // all that came, until then
	reasoning []byte
	calls     []*streamCall
	byIndex   map[int]*streamCall
	settled   int // of calls, from the first on
	dropped   int

	was     string // why it ended, as the server says
	ended   bool   // the server says so
	stopped bool   // it repeats itself
	closed  bool
	said    bool // the calls of the report are in an event
	report  *choiceReport
}

func (w *recoverWriter) newChoice(in *wire.AnswerChoice) *recoverChoice {
	c := &recoverChoice{w: w, rec: w.rec, index: in.Index, chat: in.IsChat()}
	o := w.rec.options
	c.most = max(o.Budget.Bytes/w.rec.choices(), 1<<16)
	o.Budget.Bytes = c.most
	c.ask = w.asker(in.Index)
	c.ask.stream = c
	c.ask.arm(&o)
	c.stream = recovery.NewStream(o)
	return c
}

// write takes more of the text.
func (c *recoverChoice) write(text []byte) {
	if c.stopped {
		return
	}
	if c.seen > c.most { // the stream has given all that it had
		c.text.out = append(c.text.out, text...)
		return
	}
	c.seen += len(text)
	d := c.stream.Write(text)
	c.give(d)
	if c.raw = append(c.raw, text...); c.given {
		c.raw = nil
	}
	if d.Stop && c.rec.Mode == RecoverFull {
		c.stopped = true
	}
}

func (c *recoverChoice) give(d recovery.Delta) {
	c.text.out = append(c.text.out, d.Text...)
	c.given = c.given || len(d.Text) > 0
	if len(d.Reasoning) > 0 {
		c.reasoning = append(c.reasoning, d.Reasoning...)
		c.text.changed = true
	}
}

func (c *recoverChoice) takeReasoning() []byte {
	if !c.chat {
		return nil
	}
	r := c.reasoning
	c.reasoning = nil
	return r
}

// close ends the recovery. ask is false where the model must not be asked to go on.
func (c *recoverChoice) close(w *recoverWriter, ask bool) {
	c.closed = true
	c.ask.off = !ask
	was := c.was
	if c.stopped && was == "" {
		was = "length"
	}
	if !c.has || len(c.raw) == 0 && !c.given && len(c.calls) > 0 {
		c.stream = recovery.NewStream(recovery.Options{Form: recovery.Text}) // calls are what the answer is, or a refusal
	}
	d, res := c.stream.Close(w.ctx, was)
	c.give(d)
	if res.Text == nil && !c.given {
		c.text.out = c.raw // the client gets what could not be saved as it is
	}
	c.raw = nil
	c.report = &choiceReport{result: res, was: c.was, loops: c.stopped, tokens: c.ask.tokens, fell: c.ask.fell}
	for i, k := range c.calls {
		finish := "tool_calls" // the next one has begun
		if i == len(c.calls)-1 {
			finish = was
		}
		k.settle(w, finish)
		c.report.calls = append(c.report.calls, k.judged)
	}
	c.report.calls = append(c.report.calls, fromText(res.Calls, len(c.calls))...)
	c.rec.conclude(c.report)
}

// streamCall is a call of a tool whose arguments arrive in parts.
type streamCall struct {
	c      *recoverChoice
	judged *judgedCall
	// repair gives the arguments while they come, where the policy is not to keep
	// calls back; else nil.
	repair  *jsonrepair.Stream
	edits   []jsonrepair.Edit
	all     []byte // what it has given
	text    channel
	settled bool
	checked int  // bytes of the arguments that were found not to be whole
	put     bool // parts went out before that
	over    bool // it is too long to be looked at, and passes
	done    bool // the arguments are in an event
	index   int  // as the client gets it
}

// call returns the call that a part belongs to, nil for one too many. A part of a
// new one settles those before it that are whole: parts of calls may alternate.
func (c *recoverChoice) call(part wire.AnswerCall) *streamCall {
	k := c.byIndex[part.Index]
	if k == nil {
		if len(c.calls) == recoverCalls {
			return nil
		}
		c.settleWhole()
		k = &streamCall{c: c, judged: &judgedCall{index: part.Index}}
		if c.rec.ToolCalls != DropCalls {
			k.repair = jsonrepair.NewStream(jsonrepair.Options{MaxDepth: recoverDepth, MaxEdits: recoverEdits})
		}
		if c.byIndex == nil {
			c.byIndex = map[int]*streamCall{}
		}
		c.byIndex[part.Index] = k
		c.calls = append(c.calls, k)
	}
	if k.judged.id == "" {
		k.judged.id = part.ID
	}
	if k.judged.name == "" {
		k.judged.name = part.Name
	}
	if part.Arguments != nil && !k.settled {
		k.write(part.Arguments.Value)
	}
	return k
}

func (k *streamCall) write(p []byte) {
	if k.c.seenArgs += len(p); k.c.seenArgs > k.c.most {
		k.over = true
	} else {
		k.judged.raw = append(k.judged.raw, p...)
	}
	if k.repair != nil {
		_, _ = k.repair.Write(p) // its result says what was wrong
		k.commit()
	}
}

// commit takes what is certain of the mended arguments.
func (k *streamCall) commit() {
	more := k.repair.Committed()
	k.text.out = append(k.text.out, more...)
	if !k.over {
		k.all = append(k.all, more...)
	}
	k.edits = append(k.edits, k.repair.Edits()...)
}

// ready reports whether an event with a part of the call can go out.
func (k *streamCall) ready(part []byte) bool {
	return k.settled || k.over || k.repair != nil && !k.text.waits(part)
}

// settleWhole settles calls, in their order, as long as they are whole.
func (c *recoverChoice) settleWhole() {
	for ; c.settled < len(c.calls); c.settled++ {
		k := c.calls[c.settled]
		if !k.whole() {
			return
		}
		k.settle(c.w, "tool_calls")
	}
}

// whole reports whether nothing can follow.
func (k *streamCall) whole() bool {
	raw := k.judged.raw
	if len(raw) == k.checked {
		return false
	}
	k.checked = len(raw)
	return isObject(raw) && jsonrepair.Check(raw, recoverDepth) == nil
}

// settle ends a call: it is known what becomes of it.
func (k *streamCall) settle(w *recoverWriter, finish string) {
	if k.settled {
		return
	}
	k.settled = true
	j, rec := k.judged, k.c.rec
	switch {
	case k.repair != nil && rec.Mode != RecoverReport:
		k.settleRepair()
	case k.over:
		j.status, j.problem = callMalformed, "too_large"
	default:
		rec.judge(w.ctx, j, finish)
	}
	rec.decide([]*judgedCall{j})
	j.given = j.given || k.put || k.over // the client has it
	k.index = j.index - k.c.dropped
	if !j.given {
		k.c.dropped++
	}
}

// settleRepair is for a call whose arguments have been given already, as far as
// they were certain.
func (k *streamCall) settleRepair() {
	j := k.judged
	res := k.repair.Close()
	k.commit()
	j.arguments, j.status = k.all, callValid
	switch res.Outcome {
	case jsonrepair.Repaired:
		j.status = callRepaired
	case jsonrepair.Truncated:
		j.status = callTruncated
	case jsonrepair.Ambiguous:
		j.status = callAmbiguous
	case jsonrepair.Failed:
		j.status = callMalformed
	}
	if len(j.raw) == 0 {
		j.status = callValid
	} else if j.status != callMalformed && !isObject(k.all) {
		j.status, j.problem = callMalformed, "no_object"
	}
	if j.status != callValid {
		j.result = &recovery.Result{Outcome: res.Outcome, Form: recovery.JSON, Open: res.Open}
		for _, e := range k.edits {
			j.result.Edits = append(j.result.Edits, recovery.Edit{Edit: e, Strategy: recovery.Repair})
		}
	}
}

// fillCalls puts into an event what has become of the calls that it has parts of.
func (c *recoverChoice) fillCalls(at *slot) {
	if len(at.calls) == 0 {
		return
	}
	var elements [][]byte
	changed := false
	for _, s := range at.calls {
		k, in := s.call, at.in
		switch {
		case k == nil:
			elements = append(elements, in.Element(s.i))
			continue
		case k.repair != nil:
			args := k.text.take(s.text)
			if string(args) == string(s.text) {
				elements = append(elements, in.Element(s.i))
				continue
			}
			elements = append(elements, in.ElementWith(s.i, k.judged.index, args))
		case k.over || k.put || !k.settled: // it is too long to wait for
			elements = append(elements, in.Element(s.i))
			k.put = true
			continue
		case !k.judged.given:
		case k.index == k.judged.index && string(k.judged.arguments) == string(k.judged.raw):
			elements = append(elements, in.Element(s.i))
			continue
		default:
			elements = append(elements, in.ElementWith(s.i, k.index, k.once(in.Calls[s.i].Arguments != nil)))
		}
		changed = true
	}
	if changed {
		at.in.SetCalls(elements...)
	}
}

// once returns the arguments for the first part of a call that has any, nothing for
// those after it.
func (k *streamCall) once(has bool) []byte {
	if !has || k.done {
		return nil
	}
	k.done = true
	return k.judged.arguments
}

// rest are the deltas of what a choice still has to say: text, reasoning, the
// ends of arguments, and calls that were written into the text.
func (c *recoverChoice) rest(text []byte) []string {
	var out []string
	if len(text) > 0 && !c.chat {
		out = append(out, string(wire.AppendString(nil, text)))
	}
	if !c.chat {
		return out
	}
	if r := c.takeReasoning(); len(r) > 0 {
		out = append(out, `{"reasoning_content":`+string(wire.AppendString(nil, r))+`}`)
	}
	if len(text) > 0 {
		out = append(out, `{"content":`+string(wire.AppendString(nil, text))+`}`)
	}
	if c.report == nil || c.said {
		return out
	}
	c.said = true
	for _, k := range c.calls {
		if k.repair != nil && len(k.text.out) > 0 {
			args := k.text.rest()
			out = append(out, `{"tool_calls":[{"index":`+itoa(k.judged.index)+`,"function":{"arguments":`+string(wire.AppendString(nil, args))+`}}]}`)
		}
	}
	for _, j := range c.report.calls {
		if j.fromText && j.given {
			j.index -= c.dropped
			out = append(out, `{"tool_calls":[`+string(j.element(true))+`]}`)
		}
	}
	return out
}

// chunk is the choices of a chunk that is made here. Without a delta it says that
// the choice has ended, and why.
func (c *recoverChoice) chunk(delta, finish string) []byte {
	reason := "null"
	if finish != "" {
		reason = string(wire.AppendString(nil, []byte(finish)))
	}
	name := "text"
	if c.chat {
		name = "delta"
	}
	if delta == "" {
		if delta = `""`; c.chat {
			delta = "{}"
		}
	}
	return []byte(`[{"index":` + itoa(c.index) + `,"` + name + `":` + delta + `,"logprobs":null,"finish_reason":` + reason + `}]`)
}
