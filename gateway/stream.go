package gateway

import (
	"errors"
	"io"
	"net/http"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/internal/wire"
)

// reportedError is an error that the answer's own event stream has told.
type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

// collect hands all news to do, until the end or the first error.
func (g *generation) collect(do func(progress) error) error {
	for {
		p, err := g.wait()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(p); err != nil {
			return err
		}
	}
}

// stream answers with an event for each chunk. A failure after the first event
// is told by an event with an error object; the stream then ends without
// [DONE], which would say that the answer is whole.
func (g *Gateway) stream(x *exchange, j *job, gen *generation) error {
	h := x.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would collect events otherwise
	h.Set("X-Content-Type-Options", "nosniff")
	x.WriteHeader(http.StatusOK)
	if err := g.flush(x); err != nil {
		return err
	}
	s := &eventStream{g: g, x: x, j: j,
		results: make([]*unfray.Result, j.choices()), choices: make([]streamChoice, j.choices())}
	err := s.run(gen)
	if err == nil {
		return nil
	}
	api := publicError(g.cause(x, err), x.promptParam)
	if api.status == statusClientGone {
		return err
	}
	data, encodeErr := wire.Marshal(api.body())
	if encodeErr != nil {
		return err
	}
	if writeErr := g.writeEvent(x, data); writeErr != nil {
		return writeErr
	}
	return &reportedError{err}
}

// eventStream is a streamed answer in the making.
type eventStream struct {
	g       *Gateway
	x       *exchange
	j       *job
	results []*unfray.Result
	choices []streamChoice
	ended   int
}

type streamChoice struct {
	started bool
	text    utf8Joiner
}

func (s *eventStream) run(gen *generation) error {
	if err := gen.collect(s.next); err != nil {
		return err
	}
	s.g.account(s.x, s.j, s.results)
	if s.j.includeUsage {
		if err := s.send(s.j.d.usage(s.j, s.j.totalUsage(s.results), s.j.report(s.results[0]))); err != nil {
			return err
		}
	}
	if s.j.noDone {
		return nil
	}
	return s.g.writeEvent(s.x, []byte(wire.Done))
}

func (s *eventStream) send(v any) error {
	data, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	return s.g.writeEvent(s.x, data)
}

// next sends the events for one piece of news.
func (s *eventStream) next(p progress) error {
	c := &s.choices[p.choice]
	if !c.started {
		c.started = true
		event, text := s.j.d.start(s.j, p.choice)
		if event != nil {
			if err := s.send(event); err != nil {
				return err
			}
		}
		if err := s.delta(p.choice, part{}, c.text.next(text)); err != nil {
			return err
		}
	}
	if p.result == nil {
		return s.delta(p.choice, part{tokens: p.chunk.Tokens, arrived: p.chunk.Text}, c.text.next(p.chunk.Text))
	}
	if err := s.delta(p.choice, part{}, c.text.rest()); err != nil {
		return err
	}
	s.results[p.choice] = p.result
	s.ended++
	var extra *wire.Unfray // belongs on the last chunk before [DONE]
	if s.ended == s.j.choices() && !s.j.includeUsage {
		extra = s.j.report(s.results[0])
	}
	return s.send(s.j.d.finish(s.j, p.choice, p.result, extra))
}

// delta sends a part whose text is b, unless there is nothing to send.
func (s *eventStream) delta(choice int, p part, b []byte) error {
	if len(b) == 0 && len(p.arrived) == 0 && len(p.tokens) == 0 {
		return nil
	}
	p.text, p.exact = validText(b)
	return s.send(s.j.d.delta(s.j, choice, p))
}

// flush passes on what was written.
func (g *Gateway) flush(x *exchange) error {
	err := http.NewResponseController(x.w).Flush()
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return clientGone(err)
	}
	return nil
}

// writeEvent writes one event and passes it on at once.
func (g *Gateway) writeEvent(x *exchange, data []byte) error {
	g.limitWrite(x)
	if _, err := x.Write(wire.AppendEvent(nil, data)); err != nil {
		return clientGone(err)
	}
	return g.flush(x)
}

// clientGone is the error for an answer that cannot be delivered.
func clientGone(err error) error {
	return &apiError{status: statusClientGone, kind: "client_error", message: "the client took no more of the answer", cause: err}
}
