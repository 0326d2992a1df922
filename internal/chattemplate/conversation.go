package chattemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// A Conversation is what a template makes a prompt of.
//
// Its values are those that [Decode] returns. Arguments may hold Go's maps too,
// whose keys are taken in sorted order.
type Conversation struct {
	// Messages are the messages with the fields of OpenAI's API: role, content (a
	// string, an array of parts or null), reasoning_content, tool_calls (with
	// arguments as objects, see [ParseConversation]), tool_call_id, name, and what
	// else a template reads.
	Messages []*Object
	// Tools are the functions that the model may call, as OpenAI's API has them.
	Tools []any
	// Arguments are further variables for the template, such as enable_thinking.
	Arguments map[string]any
	// AddGenerationPrompt asks for the header of the answer at the end.
	AddGenerationPrompt bool
	// ContinueFinalMessage leaves the last message, an assistant's, open at its
	// end.
	ContinueFinalMessage bool
	// Now is the time that strftime_now tells; zero: that of the rendering, in the
	// time zone of the machine.
	Now time.Time
}

// ParseConversation reads the body of a request for chat completions: messages,
// tools, chat_template_kwargs, add_generation_prompt (true if it is missing)
// and continue_final_message. A JSON array is the messages alone. What vLLM does
// to messages before it shows them to a template is done here (vLLM 0.32.0,
// renderers/chat_utils.py: _postprocess_messages): arguments of tool calls that are a string become
// the object that they spell, or an empty one if they spell none; an assistant's empty
// tool_calls are dropped; and content that is null or missing becomes "".
func ParseConversation(body []byte) (*Conversation, error) {
	v, err := Decode(body)
	if err != nil {
		return nil, err
	}
	if list, ok := v.([]any); ok {
		o := &Object{}
		o.Set("messages", list)
		v = o
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, errors.New("chattemplate: a conversation is an object with messages, or an array of messages")
	}
	c := &Conversation{AddGenerationPrompt: true}
	if b, ok := o.values["add_generation_prompt"].(bool); ok {
		c.AddGenerationPrompt = b
	}
	c.ContinueFinalMessage, _ = o.values["continue_final_message"].(bool)
	if c.ContinueFinalMessage {
		c.AddGenerationPrompt = false
	}
	c.Tools, _ = o.values["tools"].([]any)
	if args, ok := o.values["chat_template_kwargs"].(*Object); ok {
		c.Arguments = args.values
	}
	messages, ok := o.values["messages"].([]any)
	if !ok {
		return nil, errors.New("chattemplate: the conversation has no array of messages")
	}
	for i, m := range messages {
		message, ok := m.(*Object)
		if !ok || message.Text("role") == "" {
			return nil, fmt.Errorf("chattemplate: messages[%d] is no object with a role", i)
		}
		if err := normalize(message); err != nil {
			return nil, fmt.Errorf("chattemplate: messages[%d]: %w", i, err)
		}
		c.Messages = append(c.Messages, message)
	}
	return c, nil
}

// normalize brings a message that was just read into the form for templates.
func normalize(m *Object) error {
	if content := m.values["content"]; content == nil {
		m.Set("content", "")
	}
	calls, given := m.values["tool_calls"].([]any)
	if given && len(calls) == 0 && m.Text("role") == "assistant" {
		m.Delete("tool_calls")
	}
	for i, c := range calls {
		call, _ := c.(*Object)
		if call == nil {
			return fmt.Errorf("tool_calls[%d] is no object", i)
		}
		function, _ := call.values["function"].(*Object)
		if function == nil {
			return fmt.Errorf("tool_calls[%d] has no function", i)
		}
		switch args := function.values["arguments"].(type) {
		case string:
			v, err := Decode([]byte(args))
			o, _ := v.(*Object)
			if err != nil || o == nil {
				o = &Object{} // such as those of a call that was cut at a limit
			}
			function.Set("arguments", o)
		case *Object:
		default:
			function.Set("arguments", &Object{})
		}
	}
	return nil
}

// NewMessage returns a message of text.
func NewMessage(role, content string) *Object {
	m := &Object{}
	m.Set("role", role)
	m.Set("content", content)
	return m
}

// An Object is a JSON object that keeps the order of its members: templates
// that write one, such as a tool's description, write it in that order.
type Object struct {
	keys   []string
	values map[string]any
}

// Len returns the number of members.
func (o *Object) Len() int { return len(o.keys) }

// Keys returns the names of the members in their order. Callers must not change
// them.
func (o *Object) Keys() []string { return o.keys }

// Get returns a member, and whether there is one of that name.
func (o *Object) Get(key string) (any, bool) {
	v, ok := o.values[key]
	return v, ok
}

// Text returns a member that is a string; "" if it is none.
func (o *Object) Text(key string) string {
	s, _ := o.values[key].(string)
	return s
}

// Set changes a member in its place, or adds one at the end.
func (o *Object) Set(key string, value any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Delete removes a member if it is there.
func (o *Object) Delete(key string) {
	if _, ok := o.values[key]; ok {
		delete(o.values, key)
		o.keys = slices.DeleteFunc(slices.Clone(o.keys), func(k string) bool { return k == key })
	}
}

// Clone returns a copy whose members can be changed. Their values are shared.
func (o *Object) Clone() *Object {
	return &Object{keys: slices.Clone(o.keys), values: maps.Clone(o.values)}
}

// maxDepth is how deep JSON values may be nested.
const maxDepth = 200

// Decode reads one JSON value: nil, bool, int64, float64, string, []any or
// [*Object]. A number without fraction and exponent that an int64 holds is one.
// Of members with the same name the last counts, as in Python.
func Decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, maxDepth)
	if err != nil {
		return nil, decodeError(d, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("chattemplate: at byte %d: more than one JSON value", d.InputOffset())
	}
	return v, nil
}

func decodeError(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("chattemplate: at byte %d: %w", d.InputOffset(), err)
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("JSON is nested deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			return decodeArray(d, depth)
		}
		return decodeObject(d, depth)
	}
	return t, nil // nil, bool, string
}

func decodeArray(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeValue(d, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	o := &Object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeValue(d, depth-1)
		if err != nil {
			return nil, err
		}
		o.Set(key.(string), v)
	}
	_, err := d.Token()
	return o, err
}
