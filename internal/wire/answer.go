package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Answer is an answer of OpenAI's API, whole or a chunk of a stream, whose texts
// can be changed in place: all that is not changed stays byte for byte, members
// that this package does not know and their order included.
type Answer struct {
	Choices []*AnswerChoice
	Usage   *AnswerUsage // nil if there is none, or null
	// Error says that the object has an error, as chunks of failed streams do.
	Error bool

	data    []byte
	object  *object
	splices []splice
}

// AnswerChoice is a choice of an answer.
type AnswerChoice struct {
	Index int
	// Text is that of a completion, of a message or of a delta; nil where there is
	// none, or null. Reasoning is what servers keep apart from it.
	Text, Reasoning *AnswerString
	// Exact holds the bytes of a text that is no UTF-8, where the answer is the
	// gateway's own; else nil.
	Exact []byte
	Calls []AnswerCall
	// FinishReason is "" where there is none, or null.
	FinishReason string

	answer *Answer
	object *object
	body   *object // the message or delta; the choice itself for completions
	chat   bool
}

// AnswerString is a string of an answer.
type AnswerString struct {
	// Value is the text. Halves of surrogate pairs, which JSON can write, are in
	// it as the three bytes that UTF-8 would give them.
	Value []byte
	raw   []byte
}

// AnswerCall is a call of a tool, or in a chunk a part of one.
type AnswerCall struct {
	Index     int // of the call; its place in a whole answer
	ID        string
	Name      string
	Arguments *AnswerString // nil where there are none
	raw       []byte        // the element
}

// AnswerUsage is the usage of an answer, as far as it is there.
type AnswerUsage struct {
	CompletionTokens int

	completion, total []byte // where the numbers stand
}

// errNoAnswer is the error for JSON that is no answer to a completion.
var errNoAnswer = errors.New("wire: no answer of OpenAI's API")

// ParseAnswer reads an answer or a chunk. data must stay as it is. The error is
// not for clients: what cannot be read is not to be changed.
func ParseAnswer(data []byte) (*Answer, error) {
	data = slices.Clip(data)
	if !json.Valid(data) {
		return nil, errNoAnswer
	}
	start := space(data)
	f := &field{raw: start[:valueLen(start)]}
	a := &Answer{data: data}
	var err error
	if a.object, err = a.open(f); err != nil {
		return nil, err
	}
	if v := a.object.members["error"]; v != nil && v[0] != 'n' {
		a.Error = true
	}
	choices := a.object.members["choices"]
	if choices == nil || choices[0] != '[' {
		if a.Error {
			return a, nil
		}
		return nil, errNoAnswer
	}
	err = (&field{raw: choices, index: -1}).each(func(e *field) error {
		c, err := a.choice(e.raw)
		a.Choices = append(a.Choices, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, a.usage()
}

// object is an object of an answer.
type object struct {
	raw     []byte
	members map[string][]byte // parts of the answer's data
	starts  map[string]int    // where their keys begin, in bytes of data
	count   int
}

// open reads an object. One that gives a member twice is none to change.
func (a *Answer) open(f *field) (*object, error) {
	if f.raw[0] != '{' {
		return nil, errNoAnswer
	}
	o := &object{raw: f.raw, members: map[string][]byte{}, starts: map[string]int{}}
	rest := space(f.raw[1:])
	for rest[0] != '}' {
		n := valueLen(rest)
		name := string(decodeString(rest[:n]))
		if _, twice := o.members[name]; twice || o.count == maxMembers {
			return nil, errNoAnswer
		}
		o.starts[name] = a.at(rest)
		rest = space(space(rest[n:])[1:])
		n = valueLen(rest)
		o.members[name] = rest[:n]
		o.count++
		if rest = space(rest[n:]); rest[0] == ',' {
			rest = space(rest[1:])
		}
	}
	return o, nil
}

// at is where a part of the data begins, which its capacity tells.
func (a *Answer) at(part []byte) int { return cap(a.data) - cap(part) }

func (a *Answer) choice(raw []byte) (*AnswerChoice, error) {
	c := &AnswerChoice{answer: a}
	var err error
	if c.object, err = a.open(&field{raw: raw}); err != nil {
		return nil, err
	}
	c.Index = number(c.object.members["index"])
	if v := c.object.members["finish_reason"]; v != nil && v[0] == '"' {
		c.FinishReason = string(decodeString(v))
	}
	if v := c.object.members["bytes"]; v != nil && v[0] == '"' {
		_ = json.Unmarshal(v, &c.Exact) // what is no base64 is not the gateway's
	}
	c.body = c.object
	text := "text"
	for _, name := range []string{"message", "delta"} {
		v := c.object.members[name]
		if v == nil || v[0] != '{' {
			continue
		}
		if c.body, err = a.open(&field{raw: v}); err != nil {
			return nil, err
		}
		c.chat, text = true, "content"
	}
	c.Text = stringIn(c.body, text)
	if c.chat {
		if c.Reasoning = stringIn(c.body, "reasoning_content"); c.Reasoning == nil {
			c.Reasoning = stringIn(c.body, "reasoning")
		}
		err = c.calls(c.body.members["tool_calls"])
	}
	return c, err
}

func (c *AnswerChoice) calls(raw []byte) error {
	if raw == nil || raw[0] != '[' {
		return nil
	}
	return (&field{raw: raw, index: -1}).each(func(e *field) error {
		o, err := c.answer.open(e)
		if err != nil {
			return err
		}
		call := AnswerCall{Index: len(c.Calls), raw: e.raw}
		if v := o.members["index"]; v != nil {
			call.Index = number(v)
		}
		if v := o.members["id"]; v != nil && v[0] == '"' {
			call.ID = string(decodeString(v))
		}
		if v := o.members["function"]; v != nil && v[0] == '{' {
			f, err := c.answer.open(&field{raw: v})
			if err != nil {
				return err
			}
			if name := stringIn(f, "name"); name != nil {
				call.Name = string(name.Value)
			}
			call.Arguments = stringIn(f, "arguments")
		}
		c.Calls = append(c.Calls, call)
		return nil
	})
}

func (a *Answer) usage() error {
	v := a.object.members["usage"]
	if v == nil || v[0] != '{' {
		return nil
	}
	o, err := a.open(&field{raw: v})
	if err != nil {
		return err
	}
	a.Usage = &AnswerUsage{completion: o.members["completion_tokens"], total: o.members["total_tokens"]}
	a.Usage.CompletionTokens = number(a.Usage.completion)
	return nil
}

// number reads a small whole number; anything else is 0.
func number(raw []byte) int {
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

func stringIn(o *object, name string) *AnswerString {
	v := o.members[name]
	if v == nil || v[0] != '"' {
		return nil
	}
	return &AnswerString{Value: decodeString(v), raw: v}
}

// splice replaces data[start:end].
type splice struct {
	start, end int
	text       []byte
}

func (a *Answer) replace(part, text []byte) {
	at := a.at(part)
	a.splices = append(a.splices, splice{at, at + len(part), text})
}

// set changes a member of an object, or adds it after the others.
func (a *Answer) set(o *object, name string, value []byte) {
	if old := o.members[name]; old != nil {
		a.replace(old, value)
		return
	}
	text := AppendString(nil, []byte(name))
	text = append(append(text, ':'), value...)
	if o.count > 0 {
		text = append([]byte{','}, text...)
	}
	o.count++
	end := a.at(o.raw) + len(o.raw) - 1
	a.splices = append(a.splices, splice{end, end, text})
}

// remove takes a member out of an object, with one comma.
func (a *Answer) remove(o *object, name string) {
	value, at := o.members[name], o.starts[name]
	if value == nil {
		return
	}
	end := a.at(value) + len(value)
	if rest := space(a.data[end:]); rest[0] == ',' {
		end = a.at(rest) + 1
	} else {
		for at > 0 && a.data[at-1] != ',' && a.data[at-1] != '{' {
			at--
		}
		if a.data[at-1] == ',' {
			at--
		}
	}
	a.splices = append(a.splices, splice{at, end, nil})
	delete(o.members, name)
	o.count--
}

// Changed reports whether anything was changed.
func (a *Answer) Changed() bool { return len(a.splices) > 0 }

// Bytes is the answer with its changes.
func (a *Answer) Bytes() []byte {
	if len(a.splices) == 0 {
		return a.data
	}
	slices.SortStableFunc(a.splices, func(x, y splice) int { return x.start - y.start })
	var out []byte
	done := 0
	for _, s := range a.splices {
		if s.start < done {
			continue // inside of what was replaced
		}
		out = append(append(out, a.data[done:s.start]...), s.text...)
		done = s.end
	}
	return append(out, a.data[done:]...)
}

// SetText changes the text. Of bytes that are no UTF-8 the answer shows U+FFFD.
func (c *AnswerChoice) SetText(text []byte) {
	name := "text"
	if c.chat {
		name = "content"
	}
	c.answer.set(c.body, name, AppendString(nil, text))
	c.answer.remove(c.object, "bytes") // it was about the old text
}

// ClearText makes the text null, as it is where calls are the whole answer.
func (c *AnswerChoice) ClearText() { c.answer.set(c.body, "content", []byte("null")) }

// SetReasoning changes what is kept apart from the text, or adds it. Completions
// have no place for it.
func (c *AnswerChoice) SetReasoning(text []byte) {
	if !c.chat {
		return
	}
	name := "reasoning_content"
	if c.Reasoning != nil && c.body.members[name] == nil {
		name = "reasoning"
	}
	c.answer.set(c.body, name, AppendString(nil, text))
}

// SetFinishReason changes why the choice ended.
func (c *AnswerChoice) SetFinishReason(reason string) {
	if reason != c.FinishReason {
		c.answer.set(c.object, "finish_reason", AppendString(nil, []byte(reason)))
	}
}

// IsChat reports whether the choice is a message or a delta.
func (c *AnswerChoice) IsChat() bool { return c.chat }

// Element is a call as it stands in tool_calls.
func (c *AnswerChoice) Element(i int) []byte { return c.Calls[i].raw }

// ElementWith is a call with other arguments, where it has any, and another index,
// where it has one.
func (c *AnswerChoice) ElementWith(i, index int, arguments []byte) []byte {
	call := c.Calls[i]
	e := &Answer{data: slices.Clip(slices.Clone(call.raw))}
	o, err := e.open(&field{raw: e.data})
	if err != nil {
		return call.raw
	}
	if v := o.members["index"]; v != nil && index != call.Index {
		e.replace(v, strconv.AppendInt(nil, int64(index), 10))
	}
	if v := o.members["function"]; v != nil && call.Arguments != nil {
		f, err := e.open(&field{raw: v})
		if err != nil {
			return call.raw
		}
		e.set(f, "arguments", AppendString(nil, arguments))
	}
	return e.Bytes()
}

// SetCalls replaces all calls by these elements; none: there are no calls. To a
// choice that is no chat it does nothing.
func (c *AnswerChoice) SetCalls(elements ...[]byte) {
	switch {
	case !c.chat:
	case len(elements) == 0:
		c.answer.remove(c.body, "tool_calls")
	default:
		c.answer.set(c.body, "tool_calls", slices.Concat([]byte("["), bytes.Join(elements, []byte(",")), []byte("]")))
	}
}

// AddUsage adds tokens to those of the completion and of the whole.
func (a *Answer) AddUsage(tokens int) {
	if a.Usage == nil || tokens == 0 {
		return
	}
	for _, n := range [][]byte{a.Usage.completion, a.Usage.total} {
		if n != nil && n[0] >= '0' && n[0] <= '9' {
			a.replace(n, strconv.AppendInt(nil, int64(number(n)+tokens), 10))
		}
	}
}

// SetReport adds a member to the answer's object "unfray", which is made if there
// is none.
func (a *Answer) SetReport(name string, value []byte) error { return a.report(a.object, name, value) }

// SetReport is that of the choice.
func (c *AnswerChoice) SetReport(name string, value []byte) error {
	return c.answer.report(c.object, name, value)
}

func (a *Answer) report(o *object, name string, value []byte) error {
	if v := o.members["unfray"]; v != nil && v[0] == '{' {
		own, err := a.open(&field{raw: v})
		if err != nil {
			return err
		}
		a.set(own, name, value)
		return nil
	}
	a.set(o, "unfray", slices.Concat([]byte("{"), AppendString(nil, []byte(name)), []byte(":"), value, []byte("}")))
	return nil
}

// Empty returns a chunk like this one with other choices, given as JSON, and
// without usage and reports.
func (a *Answer) Empty(choices []byte) []byte {
	e := &Answer{data: a.data, object: a.object}
	e.set(e.object, "choices", choices)
	for _, name := range []string{"usage", "unfray"} {
		if e.object.members[name] != nil {
			e.set(e.object, name, []byte("null"))
		}
	}
	return e.Bytes()
}

// decodeString returns the text of a valid JSON string. Halves of surrogate pairs
// become three bytes each; two that make a pair by standing side by side are one
// character.
func decodeString(raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return slices.Clip(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		if u, ok := hex4(raw[i:]); ok {
			i += 6
			if low, ok := hex4(raw[i:]); ok && u >= 0xd800 && u < 0xdc00 && low >= 0xdc00 && low < 0xe000 {
				u = 0x10000 + (u-0xd800)<<10 + (low - 0xdc00)
				i += 6
			}
			out = appendScalar(out, u)
			continue
		}
		out = append(out, unescape(raw[i+1]))
		i += 2
	}
	return out
}

// unescape is the byte that a backslash and c stand for.
func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func appendScalar(dst []byte, u uint32) []byte {
	if u >= 0xd800 && u < 0xe000 {
		return append(dst, 0xed, byte(0x80|u>>6&0x3f), byte(0x80|u&0x3f))
	}
	return utf8.AppendRune(dst, rune(u))
}

// AppendString appends text to dst as a JSON string: halves of surrogate pairs as
// escapes, U+FFFD for other bytes that are no UTF-8.
func AppendString(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c == '\n':
			dst = append(dst, `\n`...)
			i++
		case c == '\t':
			dst = append(dst, `\t`...)
			i++
		case c == '\r':
			dst = append(dst, `\r`...)
			i++
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		case c == 0xed && i+2 < len(text) && text[i+1] >= 0xa0 && text[i+1] <= 0xbf && text[i+2]&0xc0 == 0x80:
			u := 0xd000 | uint32(text[i+1]&0x3f)<<6 | uint32(text[i+2]&0x3f)
			dst = append(dst, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
			i += 3
		default:
			r, n := utf8.DecodeRune(text[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return append(dst, '"')
}
