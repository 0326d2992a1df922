package trace

// Fields of the traces of agents that inference-perf replays (commit 7de5ef2,
// datagen/replay): OpenTelemetry's spans with the attributes of its conventions
// for generative AI, in which messages are JSON in a string.
var (
	otelFields = []string{"spans"}
	spanFields = []string{"trace_id", "span_id", "start_time", "attributes"}
	attrFields = []string{"gen_ai.input.messages", "gen_ai.output.text", "gen_ai.output.messages", "gen_ai.request.model",
		"gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
		"gen_ai.usage.cache_read.input_tokens", "gen_ai.tool.definitions", "gen_ai.conversation.id", "exgentic.session.id"}
)

// otel finds the spans of a document. Those without messages are no calls of a
// model.
func (r *Reader) otel() bool {
	s := &r.s
	m := s.object(otelFields)
	for m.next(s) {
		for e := s.array("an array of spans"); e.next(s); {
			s.peek()
			at, isCall := s.i, false
			for m := s.object(spanFields); m.next(s); {
				if m.field != 3 {
					s.skip()
					continue
				}
				for m := s.object(attrFields); m.next(s); {
					isCall = isCall || m.field == 0
					s.skip()
				}
			}
			if isCall && s.err == nil {
				// Read once now, so that no part is bad.
				r.parts.marks = append(r.parts.marks, mark{a: at})
				i, n := s.i, len(s.path)
				if r.span(mark{a: at}); s.err == nil {
					s.i = i
				}
				s.path = s.path[:n]
			}
		}
	}
	s.end()
	s.need(&m, 0)
	if s.err != nil {
		r.parts.marks = r.parts.marks[:0]
	}
	return false
}

// span reads a call of a model.
func (r *Reader) span(at mark) {
	s, q := &r.s, &r.req
	s.i, s.text = at.a, s.text[:0]
	r.begin()
	m := s.object(spanFields)
	for m.next(s) {
		switch m.field {
		case 0:
			if id := s.name(); q.Conversation == "" {
				q.Conversation = id
			}
		case 1:
			q.ID = s.name()
		case 2:
			r.timeAt = m.at
			q.At = r.stamp(s)
		case 3:
			for m := s.object(attrFields); m.next(s); {
				r.attribute(&m)
			}
		}
	}
	s.needAt(at.a, &m, 2)
}

func (r *Reader) attribute(m *members) {
	s, q := &r.s, &r.req
	switch m.field {
	case 0:
		q.Messages = r.quoted(m.at, (*scanner).messages)
	case 1:
		q.Output = s.string()
	case 2:
		out := r.quoted(m.at, func(in *scanner) (text []byte) {
			for e := in.array("an array of messages"); e.next(in); {
				for m := in.object(messageFields); m.next(in); {
					if in.peek() == '"' {
						text = in.string()
					} else {
						in.skip()
					}
				}
			}
			return text
		})
		if q.Output == nil {
			q.Output = out
		}
	case 3:
		q.Model = string(s.string())
	case 4, 6:
		q.PromptTokens = s.tokens()
	case 5, 7:
		q.OutputTokens = s.tokens()
	case 8:
		q.Cached = s.tokens()
	case 9:
		q.Tools = r.quoted(m.at, (*scanner).raw)
	case 10, 11:
		q.Conversation = s.name()
	}
}

// quoted reads a value that is JSON in a string, or stands as it is.
func (r *Reader) quoted(at int, read func(*scanner) []byte) []byte {
	s := &r.s
	if s.peek() != '"' {
		return read(s)
	}
	// The scanner's texts stay until the next record or span.
	in := scanner{b: s.string()}
	v := read(&in)
	in.end()
	r.draft.s = &in
	r.outer(at, "")
	r.draft.s = s
	return v
}
