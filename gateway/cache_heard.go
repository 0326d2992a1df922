package gateway

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"github.com/unfray/unfray/vocab"
)

const (
	// maxTail is how much of an answer's end is looked through for what it reports,
	// in bytes: usage comes last in both servers' answers.
	maxTail = 4 << 10
	// maxHeard is how long an answer may be whose tokens are read, in bytes.
	maxHeard = 256 << 10
)

// heard is what is kept of an answer that is passed on.
type heard struct {
	whole []byte // nil once it is longer than maxHeard
	tail  []byte
}

func (h *heard) write(b []byte) {
	if h.tail == nil && len(h.whole)+len(b) <= maxHeard {
		h.whole = append(h.whole, b...)
		return
	}
	if h.tail == nil {
		h.tail = append(make([]byte, 0, maxTail), h.whole[max(0, len(h.whole)-maxTail):]...)
		h.whole = nil
	}
	if len(b) >= maxTail {
		h.tail = append(h.tail[:0], b[len(b)-maxTail:]...)
		return
	}
	if over := len(h.tail) + len(b) - maxTail; over > 0 {
		h.tail = append(h.tail[:0], h.tail[over:]...)
	}
	h.tail = append(h.tail, b...)
}

// reported are where servers say how many tokens of a prompt they had cached.
var reported = [][]byte{[]byte(`"cached_tokens"`), []byte(`"cache_n"`)}

// cached is what the answer reports last.
func (h *heard) cached() (n int, ok bool) {
	end := h.tail
	if end == nil {
		end = h.whole[max(0, len(h.whole)-maxTail):]
	}
	at := -1
	for _, name := range reported {
		if i := bytes.LastIndex(end, name); i > at {
			at, n = i+len(name), 0
		}
	}
	if at < 0 {
		return 0, false
	}
	rest := bytes.TrimLeft(end[at:], " \t\r\n:")
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(string(rest[:digits]))
	return n, err == nil
}

// heardChoice is a choice of an answer, or a part of one, in the dialects of OpenAI
// and llama.cpp.
type heardChoice struct {
	Index  int        `json:"index"`
	Text   string     `json:"text"`
	IDs    []vocab.ID `json:"token_ids"`
	Finish *string    `json:"finish_reason"`

	Content  string     `json:"content"`
	Tokens   []vocab.ID `json:"tokens"`
	StopType string     `json:"stop_type"`

	Message heardMessage `json:"message"`
	Delta   heardMessage `json:"delta"`
}

// heardMessage is an answer to a conversation. Of what a server has read out of its
// text, the tokens are not known.
type heardMessage struct {
	Content          string          `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	ToolCalls        json.RawMessage `json:"tool_calls"`
}

func (m *heardMessage) parsed() bool {
	calls := string(m.ToolCalls)
	return m.ReasoningContent != "" || m.Reasoning != "" || calls != "" && calls != "null" && calls != "[]"
}

type heardAnswer struct {
	heardChoice
	Choices []heardChoice `json:"choices"`
}

// spoken is the text and the tokens of one choice.
type spoken struct {
	text    []byte
	ids     []vocab.ID
	ended   bool // something is known of its end
	stopped bool // by a token or a string, not by a limit
	parsed  bool // text does not have all of it
}

func (s *spoken) add(c *heardChoice) {
	s.text = append(append(s.text, c.Text...), c.Content...)
	s.text = append(append(s.text, c.Message.Content...), c.Delta.Content...)
	s.parsed = s.parsed || c.Message.parsed() || c.Delta.parsed()
	s.ids = append(append(s.ids, c.IDs...), c.Tokens...)
	switch {
	case c.Finish != nil:
		s.ended, s.stopped = true, *c.Finish == "stop"
	case c.StopType != "" && c.StopType != "none":
		s.ended, s.stopped = true, c.StopType != "limit"
	}
}

// choices are the choices of the answer by their numbers, nil where it is too long
// or of another form.
func (h *heard) choices() map[int]*spoken {
	found := map[int]*spoken{}
	if start := bytes.TrimSpace(h.whole); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		if !addHeard(found, start) {
			return nil
		}
		return found
	}
	for line := range bytes.Lines(h.whole) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || string(data) == "[DONE]" {
			continue
		}
		if !addHeard(found, data) {
			return nil
		}
	}
	return found
}

// addHeard adds an answer, a list of them, or an event of a stream. It reports
// whether data is one.
func addHeard(found map[int]*spoken, data []byte) bool {
	list := make([]heardAnswer, 1)
	var err error
	if len(data) > 0 && data[0] == '[' {
		err = json.Unmarshal(data, &list)
	} else {
		err = json.Unmarshal(data, &list[0])
	}
	if err != nil {
		return false
	}
	for i := range list {
		parts := list[i].Choices
		if parts == nil {
			parts = []heardChoice{list[i].heardChoice}
		}
		for k := range parts {
			s := found[parts[k].Index]
			if s == nil {
				s = &spoken{}
				found[parts[k].Index] = s
			}
			s.add(&parts[k])
		}
	}
	return true
}

// overheard takes over what an answer that was passed on tells of its tokens. Where
// it tells text only, the model may have written it with others than the
// tokenizer does.
func (p *prediction) overheard(j *job, h *heard) {
	choices := h.choices()
	if len(choices) == 0 {
		return
	}
	p.outputs = make([]output, len(p.prompts))
	tok := j.model.Model.Model.Tokenizer()
	d, _ := j.d.(*completionDialect)
	for i := range p.prompts {
		s := choices[i*j.n]
		if s == nil || !s.ended || s.parsed && s.ids == nil {
			continue
		}
		if s.ids == nil {
			if d != nil && d.echo {
				s.text, _ = bytes.CutPrefix(s.text, d.prompts[i])
			}
			s.ids = tok.EncodeAfter(nil, p.prompts[i], s.text)
		} else if slices.ContainsFunc(s.ids, func(id vocab.ID) bool { return !tok.Vocab().Valid(id) }) {
			continue
		} else if n := len(s.ids); s.stopped && tok.Vocab().IsEOG(s.ids[n-1]) {
			s.stopped = false // it is told with the others
		}
		p.outputs[i] = output{s.ids, s.stopped}
	}
}

// watch notes that a job is passed on.
func (x *exchange) watch(j *job) {
	if j.expected = j.model.predictPassed(j); j.expected != nil {
		x.watched = j
	}
}

// forwardWatched passes a request on, and where its tokens are known, notes what
// was expected of the cache beside what the answer reports.
func (g *Gateway) forwardWatched(x *exchange, m *model, named string, body []byte) error {
	if c := x.chat; c != nil {
		x.chat = nil
		return g.forwardChat(x, m, named, body, c)
	}
	j := x.watched
	if j == nil {
		return g.forward(x, m, named, body)
	}
	p := j.expected
	defer p.end()
	x.heard = &heard{}
	err := g.forward(x, m, named, body)
	g.noteHeard(x, m, j, p, err)
	return err
}

// noteHeard notes what the answer to a request that was passed on reports, and if
// p is not nil, what was expected. err is what became of it.
func (g *Gateway) noteHeard(x *exchange, m *model, j *job, p *prediction, err error) {
	if !slices.ContainsFunc(x.log, func(a slog.Attr) bool { return a.Key == "model" }) {
		x.note(slog.String("model", m.Name)) // what could not be healed has it already
	}
	if n, ok := x.heard.cached(); ok {
		x.note(slog.Int("cached_tokens", n))
	}
	if p == nil {
		return
	}
	tokens := 0
	for _, ids := range p.prompts {
		tokens += len(ids)
	}
	x.note(slog.Int("prompt_tokens", tokens))
	if err == nil && x.status == http.StatusOK {
		p.overheard(j, x.heard)
	}
	p.note(g, x, m)
}
