package trace

import (
	"slices"
	"strconv"
	"strings"
)

// A conversation becomes a request for each answer of the model, with all
// messages before it, and one for each message of the user that got none. Their
// Messages are the beginnings of one text in parts.buf, in which the array's end
// is written for each in turn.
type conversation struct {
	r    *Reader
	last string // role of the last message
	name string
}

// Roles of OpenAI's API.
const (
	user      = "user"
	assistant = "assistant"
	system    = "system"
	tool      = "tool"
)

// add adds a message whose other members are written in rest. Its content is at
// at in the record; -1 if it has none.
func (c *conversation) add(role string, at int, rest ...[]byte) {
	p := &c.r.parts
	if len(p.buf) == 0 {
		p.buf = append(p.buf, '[')
	}
	switch {
	case c.last == "": // nothing yet to answer
	case role == assistant && c.last != assistant:
		p.marks = append(p.marks, mark{a: len(p.buf) - 1, b: at})
	case role == user && c.last == user:
		p.marks = append(p.marks, mark{a: len(p.buf) - 1, b: -1})
	}
	p.buf = append(p.buf, `{"role":"`...)
	p.buf = append(p.buf, role...)
	p.buf = append(p.buf, '"')
	for _, m := range rest {
		p.buf = append(p.buf, m...)
	}
	p.buf = append(p.buf, `},`...)
	c.last = role
}

// end ends a conversation. It is read part by part.
func (c *conversation) end() bool {
	p := &c.r.parts
	if c.last != "" && c.last != assistant {
		p.marks = append(p.marks, mark{a: len(p.buf) - 1, b: -1})
	}
	if c.r.s.err != nil {
		p.marks = p.marks[:0]
	}
	if p.name = c.name; p.name == "" {
		p.name = "record " + strconv.Itoa(c.r.stats.Records)
	}
	return false
}

// turn reads a request of a conversation.
func (r *Reader) turn(m mark) {
	p, s := &r.parts, &r.s
	if p.closed > 0 {
		p.buf[p.closed] = ','
	}
	p.buf[m.a], p.closed = ']', m.a
	r.begin()
	q := &r.req
	q.Messages, q.Conversation, q.Model = p.buf[:m.a+1:m.a+1], p.name, p.model
	if m.b >= 0 {
		s.i, s.text = m.b, s.text[:0]
		if s.peek() == '"' {
			q.Output = s.string()
		}
	}
}

var shareGPTRoles = map[string]string{
	"human": user, "user": user, "gpt": assistant, "assistant": assistant, "chatgpt": assistant, "bing": assistant,
	"bard": assistant, "model": assistant, "bot": assistant, "function_call": assistant, "system": system,
	"tool": tool, "observation": tool, "function_response": tool,
}

// Fields of ShareGPT's conversations, as vLLM's benchmark reads them (0.32,
// benchmarks/datasets, ShareGPTDataset).
var (
	shareGPTFields = []string{"id", "conversations", "model"}
	shareGPTTurn   = []string{"from", "value"}
)

func (r *Reader) shareGPT() bool {
	s := &r.s
	c := conversation{r: r}
	m := s.object(shareGPTFields)
	for m.next(s) {
		switch m.field {
		case 0:
			c.name = s.name()
		case 1:
			for e := s.array("an array of turns"); e.next(s); {
				c.turn(s)
			}
		case 2:
			r.parts.model = string(s.string())
		}
	}
	s.end()
	s.need(&m, 1)
	return c.end()
}

func (c *conversation) turn(s *scanner) {
	var role string
	var content []byte
	at := 0
	s.peek()
	start := s.i
	m := s.object(shareGPTTurn)
	for m.next(s) {
		switch m.field {
		case 0:
			from := s.string()
			if role = shareGPTRoles[strings.ToLower(string(from))]; role == "" && s.err == nil {
				s.fail(m.at, Content, "want human, gpt, system or tool, got "+quoteShort(from))
			}
		case 1:
			if at = m.at; s.peek() != '"' {
				s.wrong("a string")
			}
			content = s.raw()
		}
	}
	s.needAt(start, &m, 0, 1)
	if s.err == nil {
		c.add(role, at, []byte(`,"content":`), content)
	}
}

// Fields of an agent's trajectory: SWE-agent's .traj (history) and
// mini-swe-agent's (messages).
var (
	agentFields  = []string{"history", "messages", "instance_id", "model"}
	agentMessage = []string{"role", "content", "tool_calls", "tool_call_id", "tool_call_ids", "name"}
)

func (r *Reader) agent() bool {
	s := &r.s
	c := conversation{r: r}
	m := s.object(agentFields)
	for m.next(s) {
		switch m.field {
		case 0, 1:
			if c.last != "" {
				s.fail(m.at, Content, "a trajectory with both history and messages")
			}
			for e := s.array("an array of messages"); e.next(s); {
				c.agentMessage(s)
			}
		case 2:
			c.name = s.name()
		case 3:
			if s.peek() == '"' {
				r.parts.model = string(s.string())
			} else {
				s.skip()
			}
		}
	}
	s.end()
	if !m.has(0) && !m.has(1) {
		s.fail(0, Missing, "no history and no messages")
	}
	return c.end()
}

func (c *conversation) agentMessage(s *scanner) {
	var role string
	var rest [][]byte
	contentAt := -1
	s.peek()
	start := s.i
	m := s.object(agentMessage)
	for m.next(s) {
		switch m.field {
		case 0:
			role = string(s.string())
			if !slices.Contains([]string{user, assistant, system, tool, "developer"}, role) && s.err == nil {
				s.fail(m.at, Content, "want user, assistant, system or tool, got "+quoteShort([]byte(role)))
			}
			continue
		case 1:
			if contentAt = m.at; s.peek() != '"' && s.peek() != '[' {
				s.wrong("a string or an array of parts")
			}
			rest = append(rest, []byte(`,"content":`), s.raw())
		case 2:
			rest = append(rest, []byte(`,"tool_calls":`), s.raw())
		case 3:
			rest = append(rest, []byte(`,"tool_call_id":`), s.raw())
		case 4:
			// One message holds the answer to the first of them.
			for e := s.array("an array of names"); e.next(s); {
				if id := s.raw(); e.n == 1 {
					rest = append(rest, []byte(`,"tool_call_id":`), id)
				}
			}
		case 5:
			rest = append(rest, []byte(`,"name":`), s.raw())
		}
	}
	s.needAt(start, &m, 0)
	if s.err == nil {
		c.add(role, contentAt, rest...)
	}
}
