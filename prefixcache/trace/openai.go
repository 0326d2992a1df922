package trace

import (
	"fmt"
	"math"

	"github.com/unfray/unfray/vocab"
)

// Fields of a request's body, and of what logs put around it: OpenAI's
// completions and chat, its batch API (custom_id, body), vLLM's cache_salt and
// prompt_token_ids, SGLang's native text, input_ids, extra_key and lora_path, and
// TGI's inputs.
var requestFields = []string{
	"timestamp", "time", "ts", "created_at", "created", // in the order in which they are preferred
	"id", "custom_id", "request_id", "session_id", "conversation_id", "worker", "model",
	"request", "body", "response",
	"prompt", "text", "inputs", "input_ids", "prompt_token_ids", "messages", "tools",
	"cache_salt", "extra_key", "lora_path",
	"usage", "prompt_tokens", "completion_tokens", "cached_tokens", "output", "output_ids",
}

const (
	rqCreated = 4 + iota
	rqID
	rqCustomID
	rqRequestID
	rqSession
	rqConversation
	rqWorker
	rqModel
	rqRequest
	rqBody
	rqResponse
	rqPrompt
	rqText
	rqInputs
	rqInputIDs
	rqPromptIDs
	rqMessages
	rqTools
	rqSalt
	rqExtra
	rqLoRA
	rqUsage
	rqPromptTokens
	rqCompletionTokens
	rqCachedTokens
	rqOutput
	rqOutputIDs
)

// A draft is what is known of a record's requests while it is read.
type draft struct {
	s        *scanner // that reads now
	from     *scanner // that prompts are in
	out      *scanner // that answers are in
	stamp    int      // rank of the time that is known
	prompted bool
	prompts  []mark     // the elements of an array of prompts
	texts    []mark     // the texts of choices, in c their index
	idLists  []mark     // the same of their tokens
	ids      []vocab.ID // tokens that are only looked at, so that no part is bad
}

func (d *draft) reset(s *scanner, stamp int) {
	*d = draft{s: s, from: s, out: s, stamp: stamp, prompts: d.prompts[:0], texts: d.texts[:0], idLists: d.idLists[:0], ids: d.ids[:0]}
}

func (r *Reader) openAI() bool {
	d := &r.draft
	d.reset(&r.s, math.MaxInt)
	r.request(0)
	r.s.end()
	return r.drafted()
}

// request reads a request and what is around it.
func (r *Reader) request(depth int) {
	d, q := &r.draft, &r.req
	s := d.s
	for m := s.object(requestFields); m.next(s); {
		if s != d.out && (m.field == rqResponse || m.field == rqOutput || m.field == rqOutputIDs) {
			s.skip()
			continue
		}
		switch m.field {
		case rqRequest, rqBody:
			if s.peek() == '"' {
				r.quotedRequest(m.at, depth)
			} else {
				r.request(depth + 1)
			}
		case rqResponse:
			r.response()
		case rqPrompt, rqText, rqInputs, rqInputIDs:
			r.prompt(&m)
		case rqPromptIDs:
			q.IDs = s.ids(q.IDs[:0])
		case rqMessages:
			if d.prompted {
				s.fail(m.at, Content, "a request with both messages and a prompt")
			}
			q.Messages, d.prompted = s.messages(), true
		case rqTools:
			if s.peek() != '[' {
				s.wrong("an array of tools")
			}
			q.Tools = s.raw()
		case rqUsage:
			r.usage(s)
		case rqPromptTokens:
			q.PromptTokens = s.tokens()
		case rqCompletionTokens:
			q.OutputTokens = s.tokens()
		case rqCachedTokens:
			q.Cached = s.tokens()
		case rqOutput:
			r.outputText(m.at, 0)
		case rqOutputIDs:
			r.outputIDs(m.at, 0)
		default:
			r.label(&m, depth)
		}
	}
}

// quotedRequest reads a request that stands as a string. One that is no JSON
// object, as in "POST /v1/completions", tells nothing.
func (r *Reader) quotedRequest(at, depth int) {
	d := &r.draft
	s := d.s
	text := s.string()
	if s != &r.s || d.from != s || len(text) == 0 || text[0] != '{' {
		return
	}
	r.inner.reset(text)
	d.s, d.from = &r.inner, &r.inner
	r.request(depth + 1)
	r.inner.end()
	r.outer(at, "")
	d.s = s
}

// label reads what a request is called and kept apart by.
func (r *Reader) label(m *members, depth int) {
	d, q := &r.draft, &r.req
	s := d.s
	switch m.field {
	case rqID, rqCustomID, rqRequestID:
		if id := s.name(); q.ID == "" {
			q.ID = id
		}
	case rqSession, rqConversation:
		q.Conversation = s.name()
	case rqWorker:
		q.Worker = s.name()
	case rqModel:
		q.Model = string(s.string())
	case rqSalt:
		q.Keys.Salt = string(s.string())
	case rqExtra:
		q.Keys.Extra = string(s.string())
	case rqLoRA:
		q.Keys.LoRA = string(s.string())
	default: // a time
		if rank := depth<<8 + m.field; rank < d.stamp {
			d.stamp = rank
			q.At = r.stamp(s)
			if r.timeAt = m.at; s != &r.s {
				r.timeAt = 0
			}
			return
		}
		s.skip()
	}
}

// prompt reads a prompt: a text, tokens, or an array of either.
func (r *Reader) prompt(m *members) {
	d, q := &r.draft, &r.req
	s := d.s
	if d.prompted {
		s.fail(m.at, Content, "a request with two prompts")
		return
	}
	d.prompted = true
	if s.peek() == '"' {
		q.Text = s.string()
		return
	}
	e := s.array("a prompt as a string or an array of tokens")
	for e.next(s) {
		c := s.peek()
		switch {
		case c == '"' || c == '[':
			if len(q.IDs) > 0 {
				s.fail(s.i, Content, "text among tokens: such prompts cannot be read")
			}
			d.prompts = append(d.prompts, mark{a: s.i})
			if c == '"' {
				s.string()
			} else {
				d.ids = s.ids(d.ids[:0])
			}
		case len(d.prompts) > 0:
			s.wrong("a prompt")
		default:
			q.IDs = append(q.IDs, s.id())
			q.IDs = s.plainIDs(q.IDs, &e)
		}
	}
	if s.err == nil && e.n == 0 {
		s.fail(m.at, Content, "the prompt is empty: send a text or tokens")
	}
}

// drafted gives what was read to req, or to parts where there are several
// prompts.
func (r *Reader) drafted() bool {
	d, q := &r.draft, &r.req
	if d.s.err == nil && !d.prompted && len(q.IDs) == 0 && q.PromptTokens < 0 {
		d.s.fail(0, Missing, "no prompt, no messages, and no prompt_tokens")
	}
	if d.s.err != nil {
		return false
	}
	n := max(1, len(d.prompts))
	if n == 1 {
		if len(d.prompts) == 1 {
			r.onePrompt(d.prompts[0].a)
		}
		for _, t := range d.texts {
			if t.c == 0 {
				r.readOutput(mark{b: t.a, c: -1})
			}
		}
		for _, t := range d.idLists {
			if t.c == 0 {
				r.readOutput(mark{b: -1, c: t.a})
			}
		}
		return d.s.err == nil
	}
	// Choices of one prompt follow each other; the first of them is taken.
	marks := append(r.parts.marks[:0], d.prompts...)
	for i := range marks {
		marks[i].b, marks[i].c = -1, -1
	}
	for _, t := range d.texts {
		if each := max(1, len(d.texts)/n); t.c%each == 0 && t.c/each < n {
			marks[t.c/each].b = t.a
		}
	}
	for _, t := range d.idLists {
		if each := max(1, len(d.idLists)/n); t.c%each == 0 && t.c/each < n {
			marks[t.c/each].c = t.a
		}
	}
	r.parts.marks = marks
	r.parts.common, r.parts.timeAt = *q.Clone(), r.timeAt
	return false
}

// promptOf reads one of several prompts. The counts of the record are sums, and
// are left out.
func (r *Reader) promptOf(m mark) {
	c := &r.parts.common
	r.begin()
	q := &r.req
	q.At, q.ID, q.Conversation, q.Model, q.Worker, q.Keys = c.At, c.ID, c.Conversation, c.Model, c.Worker, c.Keys
	r.timeAt = r.parts.timeAt
	// The record's scanner may hold the text that prompts are in, so only that of
	// the prompts is emptied.
	from := r.draft.from
	from.text = from.text[:0]
	r.onePrompt(m.a)
	r.readOutput(m)
}

func (r *Reader) onePrompt(at int) {
	s, q := r.draft.from, &r.req
	if s.i = at; s.peek() == '"' {
		q.Text = s.string()
		return
	}
	q.IDs = s.ids(q.IDs[:0])
}

func (r *Reader) readOutput(m mark) {
	s, q := r.draft.out, &r.req
	if m.b >= 0 {
		s.i = m.b
		q.Output = s.string()
	}
	if m.c >= 0 {
		s.i = m.c
		q.OutputIDs = s.ids(q.OutputIDs[:0])
	}
}

// Fields of an answer: OpenAI's, vLLM's token IDs, SGLang's native text,
// output_ids and meta_info, and llama.cpp's content and tokens. A batch's output
// has them in body.
var (
	responseFields = []string{"body", "usage", "choices", "prompt_token_ids", "created", "model",
		"text", "output_ids", "meta_info", "content", "tokens", "generated_text"}
	choiceFields  = []string{"index", "text", "message", "token_ids", "prompt_token_ids"}
	messageFields = []string{"content"}
	usageFields   = []string{"prompt_tokens", "completion_tokens", "cached_tokens", "prompt_tokens_details", "input_tokens", "output_tokens", "input_tokens_details"}
	detailsFields = []string{"cached_tokens"}
)

func (r *Reader) response() {
	d, q := &r.draft, &r.req
	s := d.s
	if s.peek() == '"' {
		r.outputText(s.i, 0)
		return
	}
	for m := s.object(responseFields); m.next(s); {
		switch m.field {
		case 0:
			r.response()
		case 1, 8:
			r.usage(s)
		case 2:
			for e := s.array("an array of choices"); e.next(s); {
				r.choice(e.n - 1)
			}
		case 3:
			q.IDs = s.ids(q.IDs[:0])
		case 4:
			if rank := 1<<16 + rqCreated; rank < d.stamp && s == &r.s {
				d.stamp, r.timeAt = rank, m.at
				q.At = r.stamp(s)
			} else {
				s.skip()
			}
		case 5:
			if model := s.string(); q.Model == "" {
				q.Model = string(model)
			}
		case 6, 9, 11:
			if s.peek() == '"' {
				r.outputText(m.at, 0)
			} else {
				s.skip()
			}
		case 7, 10:
			if s.peek() == '[' {
				r.outputIDs(m.at, 0)
			} else {
				s.skip()
			}
		}
	}
}

// choice reads one of the choices, the index of which may be told.
func (r *Reader) choice(index int) {
	d, q := &r.draft, &r.req
	s := d.s
	text, ids := -1, -1
	for m := s.object(choiceFields); m.next(s); {
		switch m.field {
		case 0:
			index = int(s.integer("a whole number", 0, math.MaxInt32))
		case 1:
			text = m.at
			s.string()
		case 2:
			for m := s.object(messageFields); m.next(s); {
				if s.peek() == '"' {
					text = m.at
				}
				s.skip()
			}
		case 3:
			ids = m.at
			d.ids = s.ids(d.ids[:0])
		case 4:
			if index == 0 {
				q.IDs = s.ids(q.IDs[:0])
			} else {
				s.skip()
			}
		}
	}
	if text >= 0 {
		d.texts = append(d.texts, mark{a: text, c: index})
	}
	if ids >= 0 {
		d.idLists = append(d.idLists, mark{a: ids, c: index})
	}
}

func (r *Reader) outputText(at, index int) {
	r.draft.s.string()
	r.draft.texts = append(r.draft.texts, mark{a: at, c: index})
}

func (r *Reader) outputIDs(at, index int) {
	d := &r.draft
	d.ids = d.s.ids(d.ids[:0])
	d.idLists = append(d.idLists, mark{a: at, c: index})
}

// usage reads the counts of an answer.
func (r *Reader) usage(s *scanner) {
	q := &r.req
	for m := s.object(usageFields); m.next(s); {
		switch m.field {
		case 0, 4:
			q.PromptTokens = s.tokens()
		case 1, 5:
			q.OutputTokens = s.tokens()
		case 2:
			q.Cached = s.tokens()
		case 3, 6:
			for m := s.object(detailsFields); m.next(s); {
				q.Cached = s.tokens()
			}
		}
	}
}

// messages goes over the messages of a chat and returns them as they are written.
func (s *scanner) messages() []byte {
	s.peek()
	start := s.i
	e := s.array("an array of messages")
	for e.next(s) {
		s.peek()
		at := s.i
		m := s.object(roleField)
		for m.next(s) {
			s.string()
		}
		s.needAt(at, &m, 0)
	}
	switch {
	case s.err != nil:
		return nil
	case e.n == 0:
		s.fail(start, Content, "want at least one message")
		return nil
	}
	return s.b[start:s.i:s.i]
}

var roleField = []string{"role"}

// ids reads token IDs.
func (s *scanner) ids(to []vocab.ID) []vocab.ID {
	e := s.array("an array of token IDs")
	for e.next(s) {
		to = append(to, s.id())
		to = s.plainIDs(to, &e)
	}
	return to
}

func (s *scanner) id() vocab.ID {
	return vocab.ID(s.integer("a token ID, a whole number", 0, math.MaxInt32))
}

// plainIDs reads elements of at most nine digits that come as "1, 2" or "1,2". It
// stands behind an element before and after.
func (s *scanner) plainIDs(to []vocab.ID, e *elements) []vocab.ID {
	b, i := s.b, s.i
	for i < len(b) && b[i] == ',' {
		j := i + 1
		if j < len(b) && b[j] == ' ' {
			j++
		}
		start, v := j, 0
		for j < len(b) && b[j] >= '0' && b[j] <= '9' && j-start < 10 {
			v = v*10 + int(b[j]-'0')
			j++
		}
		if n := j - start; n == 0 || n > 9 || n > 1 && b[start] == '0' || j == len(b) || b[j] != ',' && b[j] != ']' {
			break
		}
		to = append(to, vocab.ID(v))
		e.n++
		i = j
	}
	s.i = i
	return to
}

// outer moves an error of an inner scanner to the record's. Its text is a string
// at the given byte of the record, the value of the named field; "" if the record
// is being read there.
func (r *Reader) outer(at int, name string) {
	in := r.draft.s
	if in == &r.s || in.err == nil {
		return
	}
	if name != "" {
		r.s.path = append(r.s.path[:0], step{name, -1})
	}
	r.s.fail(at, in.err.Kind, fmt.Sprintf("inside the string, at byte %d: %s", in.err.Offset, in.err.Text))
}
