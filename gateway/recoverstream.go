package gateway

import (
	"bytes"
	"strconv"
	"time"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/recovery"
)

// Bounds of what a stream keeps back, in bytes of events.
const (
	// holdText is how much waits for text whose reading is open. What waits longer
	// goes out with less text, which comes later.
	holdText = 16 << 10
	// holdTail is how much may follow the end of all choices.
	holdTail = 1 << 20
	// awaitEnd is how long a server may take to end its answer after [DONE], where
	// it is to be asked again: it may serve one request at a time.
	awaitEnd = 2 * time.Second
)

// recoverStream rewrites a stream of events. An event waits until the recovery
// has given all of its text; if that is the text that came, it goes out as it came.
// Where recovery has changed something, the text that is there goes into the
// event that is next. Comments do not wait.
type recoverStream struct {
	w       *recoverWriter
	split   *wire.EventSplitter
	choices map[int]*recoverChoice
	order   []*recoverChoice // as they came
	queue   []*heldEvent
	held    int // bytes of queue and tails
	// tails are what comes from the ends of choices on where the model may be asked
	// to go on: they wait for that.
	tails []*heldEvent
	// last is an event that may turn out to be the last before [DONE], where the
	// receipt belongs.
	last    *heldEvent
	like    *wire.Answer // a chunk, for those that are made here
	endSent bool         // an end of a choice has gone out

	// done is [DONE], and what came behind it, where it waits for the end of the
	// answer; late ends that.
	done []byte
	late *time.Timer

	added  int  // tokens of continuations
	pass   bool // all that comes is not for us any more
	halted bool // the server was stopped
	failed *choiceReport
	// refused is the error that has ended the stream.
	refused error
}

func newRecoverStream(w *recoverWriter) *recoverStream {
	return &recoverStream{w: w, split: wire.NewEventSplitter(min(wire.MaxEvent, w.most())), choices: map[int]*recoverChoice{}}
}

// heldEvent is an event on its way.
type heldEvent struct {
	e     wire.RawEvent
	a     *wire.Answer // nil: none that is looked at
	slots []slot
	lead  [][]byte // data of chunks that go before it
	trail []byte   // comments that came behind it
}

// slot is a choice's place in an event.
type slot struct {
	c     *recoverChoice
	in    *wire.AnswerChoice
	text  []byte
	calls []callSlot
	ends  bool
}

type callSlot struct {
	call *streamCall
	i    int    // in the choice's Calls
	text []byte // of the arguments
}

// write takes what the handler writes.
func (s *recoverStream) write(b []byte) error {
	if s.halted {
		return errLoop
	}
	if s.refused != nil {
		return s.refused
	}
	if s.pass {
		if err := s.w.put(s.split.Rest()); err != nil {
			return err
		}
		return s.w.put(b)
	}
	s.w.send()
	err := s.split.Write(b, s.event)
	if err == wire.ErrEventTooLong {
		return s.giveUp()
	}
	return err
}

// giveUp lets all that comes pass.
func (s *recoverStream) giveUp() error {
	if err := s.finish(false); err != nil {
		return err
	}
	s.pass = true
	return s.w.put(s.split.Rest())
}

// event takes one event.
func (s *recoverStream) event(e wire.RawEvent) error {
	switch {
	case s.refused != nil:
		return s.refused
	case s.halted:
		return errLoop
	case s.done != nil:
		if len(s.done) < holdTail { // nobody reads so far
			s.done = append(s.done, e.Raw...)
		}
		return nil
	case !e.HasData && s.last != nil && len(s.last.trail) < holdText:
		s.last.trail = append(s.last.trail, e.Raw...)
		return nil
	case s.pass || !e.HasData:
		return s.w.put(e.Raw)
	case string(bytes.TrimSpace(e.Data)) == wire.Done:
		if s.asks() {
			s.done = e.Raw
			s.late = time.AfterFunc(awaitEnd, func() { s.w.cancel(errDone) })
			return nil
		}
		if err := s.finish(true); err != nil {
			return err
		}
		s.pass = true
		return s.w.put(e.Raw)
	}
	a, err := wire.ParseAnswer(e.Data)
	if err != nil {
		return s.add(&heldEvent{e: e})
	}
	if a.Error {
		// It ends the stream, and what there is is all there will be.
		if err := s.finish(false); err != nil {
			return err
		}
		s.pass = true
		return s.w.put(e.Raw)
	}
	if s.like == nil && len(a.Choices) > 0 {
		s.like = a
	}
	h := &heldEvent{e: e, a: a}
	for _, c := range a.Choices {
		s.take(h, c)
	}
	if s.failed != nil {
		return s.finish(false) // nothing more of it is given
	}
	if err := s.add(h); err != nil {
		return err
	}
	return s.halt()
}

// take feeds a choice's part of an event to its recovery.
func (s *recoverStream) take(h *heldEvent, in *wire.AnswerChoice) {
	c := s.choice(in)
	if c == nil {
		return
	}
	if c.closed {
		if in.FinishReason != "" && s.w.rec.Mode != RecoverReport {
			in.SetFinishReason(c.report.finish) // said again
		}
		return
	}
	at := slot{c: c, in: in, text: textOf(in), ends: in.FinishReason != ""}
	if c.has = c.has || in.Text != nil; len(at.text) > 0 {
		c.write(at.text)
	}
	for i := range in.Calls {
		part := callSlot{call: c.call(in.Calls[i]), i: i}
		if a := in.Calls[i].Arguments; a != nil {
			part.text = a.Value
		}
		at.calls = append(at.calls, part)
	}
	if at.ends {
		c.was, c.ended = in.FinishReason, true
		if !s.asks() {
			s.close(c, true)
		}
	}
	h.slots = append(h.slots, at)
}

// asks reports whether a model may be asked for more at the end.
func (s *recoverStream) asks() bool { return s.w.rec.asks() || s.w.rec.falls() }

// choice returns the state of a choice, nil for one more than were asked for.
func (s *recoverStream) choice(in *wire.AnswerChoice) *recoverChoice {
	c := s.choices[in.Index]
	if c == nil && len(s.order) < s.w.rec.choices() {
		c = s.w.newChoice(in)
		s.choices[in.Index] = c
		s.order = append(s.order, c)
	}
	return c
}

// add puts an event into the queue and sends what can go.
func (s *recoverStream) add(h *heldEvent) error {
	s.held += len(h.e.Raw)
	tail := s.asks() && (s.over() || h.ends())
	if tail {
		s.tails = append(s.tails, h)
		if s.held > holdTail && s.over() {
			return s.giveUp()
		}
		return nil
	}
	s.queue = append(s.queue, h)
	return s.drain(false)
}

func (h *heldEvent) ends() bool {
	for _, at := range h.slots {
		if at.ends {
			return true
		}
	}
	return false
}

// over reports whether all choices have ended that were asked for.
func (s *recoverStream) over() bool {
	if len(s.order) < s.w.rec.choices() {
		return false
	}
	for _, c := range s.order {
		if !c.ended && !c.stopped {
			return false
		}
	}
	return true
}

// drain sends the events that wait for nothing, all of them with force.
func (s *recoverStream) drain(force bool) error {
	for len(s.queue) > 0 {
		h := s.queue[0]
		if !force && !s.ready(h) {
			return nil
		}
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.held -= len(h.e.Raw)
		if err := s.send(h); err != nil {
			return err
		}
	}
	return nil
}

// ready reports whether an event waits for nothing any more.
func (s *recoverStream) ready(h *heldEvent) bool {
	if s.w.rec.Mode == RecoverReport {
		return true
	}
	for _, at := range h.slots {
		for _, k := range at.calls {
			if k.call != nil && !k.call.ready(k.text) && s.held <= s.w.rec.MaxBytes {
				return false
			}
		}
		if !at.c.closed && at.c.text.waits(at.text) && s.held <= holdText {
			return false
		}
	}
	return true
}

// send writes an event, changed where its choices were.
func (s *recoverStream) send(h *heldEvent) error {
	if s.w.rec.Mode != RecoverReport {
		for i := range h.slots {
			s.fill(h, &h.slots[i])
		}
		if h.a != nil {
			h.a.AddUsage(s.added)
		}
	}
	if h.ends() {
		s.endSent = true
		s.attachOwn(h)
	}
	if !s.endSent {
		return s.put(h)
	}
	previous := s.last
	s.last = h
	return s.put(previous)
}

// put writes an event as it is now.
func (s *recoverStream) put(h *heldEvent) error {
	if h == nil {
		return nil
	}
	var out []byte
	for _, data := range h.lead {
		out = append(out, h.e.WithData(data)...)
	}
	if h.a != nil && h.a.Changed() {
		out = append(out, h.e.WithData(h.a.Bytes())...)
	} else {
		out = append(out, h.e.Raw...)
	}
	return s.w.put(append(out, h.trail...))
}

// fill puts into an event what recovery has given for a choice.
func (s *recoverStream) fill(h *heldEvent, at *slot) {
	c := at.c
	var text []byte
	if at.ends {
		// Clients may not look at the text of the chunk that ends a choice.
		if text = c.text.rest(); string(text) != string(at.text) {
			s.lead(h, c, text)
			text = nil
		} else {
			s.lead(h, c, nil)
		}
	} else {
		text = c.text.take(at.text)
		if r := c.takeReasoning(); len(r) > 0 {
			if at.in.Reasoning != nil {
				r = append(append([]byte{}, at.in.Reasoning.Value...), r...)
			}
			at.in.SetReasoning(r)
		}
	}
	if string(text) != string(at.text) {
		at.in.SetText(text)
	}
	c.fillCalls(at)
	if at.ends {
		at.in.SetFinishReason(c.report.finish)
	}
}

// lead puts chunks before an event with what a choice still has to say.
func (s *recoverStream) lead(h *heldEvent, c *recoverChoice, text []byte) {
	for _, delta := range c.rest(text) {
		h.lead = append(h.lead, s.like.Empty(c.chunk(delta, "")))
	}
}

// close ends the recovery of a choice.
func (s *recoverStream) close(c *recoverChoice, ask bool) {
	if c.closed {
		return
	}
	c.close(s.w, ask)
	s.w.note(c.report)
	s.added += c.report.added()
	if rec := s.w.rec; c.report.result.Outcome == recovery.Failed && rec.OnFailure == GiveError && rec.Mode != RecoverReport && s.failed == nil {
		s.failed = c.report
	}
}

// finish closes all choices and writes what is left, with the receipt. ask is false
// where the stream has broken off.
func (s *recoverStream) finish(ask bool) error {
	if ask && s.asks() {
		_ = s.w.FlushError() // asking takes long; a failure shows at the next write
	}
	for _, c := range s.order {
		s.close(c, ask && c.ended)
	}
	if s.failed != nil {
		return s.refuse()
	}
	if err := s.drain(true); err != nil {
		return err
	}
	tails := s.tails
	s.tails, s.held = nil, 0
	for _, h := range tails {
		if err := s.send(h); err != nil {
			return err
		}
	}
	if err := s.endUnended(); err != nil {
		return err
	}
	s.attach()
	last := s.last
	s.last = nil
	return s.put(last)
}

// endUnended writes what choices still have to say whose end did not come, and the
// end of those that were stopped.
func (s *recoverStream) endUnended() error {
	for _, c := range s.order {
		if c.ended || s.w.rec.Mode == RecoverReport {
			continue
		}
		for _, delta := range c.rest(c.text.rest()) {
			if err := s.make(c.chunk(delta, ""), false); err != nil {
				return err
			}
		}
		if c.stopped {
			if err := s.make(c.chunk("", "length"), true); err != nil {
				return err
			}
		}
	}
	return nil
}

// make sends a chunk that no server has written.
func (s *recoverStream) make(choice []byte, ends bool) error {
	h, err := s.newEvent(s.like.Empty(choice))
	if err != nil {
		return err
	}
	if !ends && !s.endSent {
		return s.put(h)
	}
	s.endSent = true
	previous := s.last
	s.last = h
	return s.put(previous)
}

func (s *recoverStream) newEvent(data []byte) (*heldEvent, error) {
	a, err := wire.ParseAnswer(data)
	if err != nil {
		return nil, err
	}
	return &heldEvent{e: wire.RawEvent{Raw: wire.AppendEvent(nil, data), Data: data, HasData: true}, a: a}, nil
}

// attach adds the receipts to the last event, or to one that is made for them.
func (s *recoverStream) attach() {
	if len(s.order) == 0 {
		return
	}
	rec := s.w.rec
	did := rec.asked
	first := s.order[0]
	for _, c := range s.order {
		did = did || c.report.did()
		if c.index < first.index {
			first = c
		}
	}
	if !did {
		return
	}
	if s.last == nil || s.last.a == nil {
		h, err := s.newEvent(s.like.Empty([]byte("[]")))
		if err != nil {
			return
		}
		if s.last != nil {
			_ = s.put(s.last) // a failure shows at the next write
		}
		s.last = h
	}
	_ = s.last.a.SetReport("recovery", rec.receipt(first.report)) // what has no place for it goes without
}

// attachOwn adds their receipts to choices that end, where there are several.
func (s *recoverStream) attachOwn(h *heldEvent) {
	rec := s.w.rec
	if rec.choices() == 1 {
		return
	}
	for _, at := range h.slots {
		if p := at.c.report; at.ends && p != nil && (rec.asked || p.did()) {
			_ = at.in.SetReport("recovery", rec.receipt(p)) // what has no place for it goes without
		}
	}
}

// refuse ends the stream by an error.
func (s *recoverStream) refuse() error {
	s.pass = true
	s.queue, s.tails, s.last = nil, nil, nil
	api := s.w.failure(s.failed)
	data, err := wire.Marshal(api.body())
	if err != nil {
		return err
	}
	if err := s.w.put(wire.AppendEvent(nil, data)); err != nil {
		return err
	}
	s.refused = &reportedError{api}
	return s.refused
}

// halt stops the server once all choices have ended or repeat themselves.
func (s *recoverStream) halt() error {
	stopped := false
	for _, c := range s.order {
		stopped = stopped || c.stopped && !c.ended
	}
	if !stopped || !s.over() {
		return nil
	}
	s.halted, s.w.report.stopped = true, true
	s.w.g.metrics.stopped.WithLabelValues(s.w.rec.name()).Inc()
	s.w.cancel(errLoop)
	return errLoop
}

// end ends the stream after the handler has.
func (s *recoverStream) end(err error) error {
	defer s.w.logAll()
	switch {
	case s.refused != nil:
		return s.refused
	case s.halted:
		if err := s.finish(true); err != nil {
			return err
		}
		return s.w.put([]byte("data: " + wire.Done + "\n\n"))
	case s.done != nil:
		s.late.Stop()
		// All was said: an error behind it is none.
		if err := s.finish(s.w.ctx.Err() == nil); err != nil {
			return err
		}
		return s.w.put(append(s.done, s.split.Rest()...))
	case s.pass:
		if err == nil {
			err = s.w.put(s.split.Rest())
		}
		return err
	case err != nil:
		if s.w.ctx.Err() == nil {
			if failed := s.finish(false); failed != nil {
				return failed
			}
		}
		return err
	}
	if err := s.finish(true); err != nil {
		return err
	}
	return s.w.put(s.split.Rest())
}

func itoa(n int) string { return strconv.Itoa(n) }
