package chattemplate

import (
	"context"
	"strings"
)

// A Form is how a template wants the assistant's messages. The zero value is
// what most want, and what [ParseConversation] makes.
type Form struct {
	TextArguments bool // arguments of tool calls are a string of JSON, as in OpenAI's API
	NullContent   bool // content is null where a message calls tools and says nothing
	// Reasoning is the field of the reasoning; "": reasoning_content.
	Reasoning string
}

// ReasoningFields are how servers and templates name the reasoning of a message.
var ReasoningFields = []string{"reasoning_content", "reasoning", "thinking"}

// Reasoning returns the reasoning of a message and the field that holds it; both
// are empty if there is none.
func Reasoning(m *Object) (text, field string) {
	for _, f := range ReasoningFields {
		if s := m.Text(f); s != "" {
			return s, f
		}
	}
	return "", ""
}

// Apply returns the messages in the form.
func (f Form) Apply(messages []*Object) ([]*Object, error) {
	out := make([]*Object, len(messages))
	for i, m := range messages {
		out[i] = m
		if m.Text("role") != "assistant" {
			continue
		}
		m = m.Clone()
		out[i] = m
		if text, field := Reasoning(m); f.Reasoning != "" && text != "" && field != f.Reasoning {
			m.Delete(field)
			m.Set(f.Reasoning, text)
		}
		calls, _ := m.values["tool_calls"].([]any)
		if len(calls) == 0 {
			continue
		}
		if content, _ := m.values["content"].(string); f.NullContent && content == "" {
			m.Set("content", nil)
		}
		if !f.TextArguments {
			continue
		}
		texts := make([]any, len(calls))
		for k, c := range calls {
			var err error
			if texts[k], err = textArguments(c); err != nil {
				return nil, err
			}
		}
		m.Set("tool_calls", texts)
	}
	return out, nil
}

// textArguments returns a tool call with its arguments as a string.
func textArguments(call any) (any, error) {
	c, _ := call.(*Object)
	if c == nil {
		return call, nil
	}
	function, _ := c.values["function"].(*Object)
	if function == nil {
		return call, nil
	}
	args, ok := function.values["arguments"]
	if _, isText := args.(string); !ok || isText {
		return call, nil
	}
	text, err := WriteJSON(args)
	if err != nil {
		return nil, err
	}
	function = function.Clone()
	function.Set("arguments", text)
	c = c.Clone()
	c.Set("function", function)
	return c, nil
}

// WriteJSON writes a value as json.dumps(v, ensure_ascii=False) of Python does:
// with ", " and ": ", and the members of objects in their order.
func WriteJSON(v any) (string, error) {
	w := &jsonWriter{item: ", ", key: ": "}
	err := w.value(toJinja(v), 0)
	return w.b.String(), err
}

// Form finds the form in which a template shows messages: the field of the
// reasoning by which a reasoning is written at all, and for tool calls the first
// form in which the function's name and its argument are written, and not as
// Python's text of a dict. tools is false if the template shows no tool calls.
func (t *Template) Form(ctx context.Context, names Names) (f Form, tools bool) {
	for _, field := range []string{"reasoning_content", "thinking", "reasoning"} {
		answer := NewMessage("assistant", "probe_answer")
		answer.Set(field, "probe_reasoning")
		conv := &Conversation{Messages: []*Object{NewMessage("user", "Hello"), answer}}
		if text, err := t.Render(ctx, conv, names); err == nil && strings.Contains(text, "probe_reasoning") {
			f.Reasoning = field
			break
		}
	}
	if f.Reasoning == "reasoning_content" {
		f.Reasoning = ""
	}
	conv, err := ParseConversation([]byte(toolProbe))
	if err != nil {
		return f, false
	}
	messages := conv.Messages
	for _, calls := range []Form{{}, {NullContent: true}, {TextArguments: true}, {TextArguments: true, NullContent: true}} {
		if conv.Messages, err = calls.Apply(messages); err != nil {
			return f, false
		}
		text, err := t.Render(ctx, conv, names)
		if err == nil && strings.Contains(text, "probe_value") && !strings.Contains(text, "{'probe_argument'") {
			f.TextArguments, f.NullContent = calls.TextArguments, calls.NullContent
			return f, true
		}
	}
	return f, false
}

// toolProbe is a conversation with a tool call.
const toolProbe = `{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"","tool_calls":[{"id":"call00001","type":"function",
	"function":{"name":"probe_function","arguments":{"probe_argument":"probe_value"}}}]},
	{"role":"tool","content":"probe_result","tool_call_id":"call00001","name":"probe_function"}],
	"tools":[{"type":"function","function":{"name":"probe_function","description":"Probe.","parameters":{"type":"object","properties":{
	"probe_argument":{"type":"string","description":"Probe."}},"required":["probe_argument"]}}}]}`
