package wire

import (
	"encoding/json"
	"strings"
)

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Sampling
	Model    string
	Messages []Message

	MaxCompletionTokens *int // tokens; the newer name of max_tokens
	Logprobs            bool
	TopLogprobs         *int

	Tools      []json.RawMessage // also the older functions
	ToolChoice json.RawMessage   // also the older function_call
	Modalities []string

	// AddGenerationPrompt and ContinueFinalMessage are vLLM's: the last
	// message, an assistant's, is continued instead of answered.
	AddGenerationPrompt  *bool
	ContinueFinalMessage bool
	// TemplateArguments are further variables for the chat template.
	TemplateArguments map[string]any

	// Ignored lists the paths of fields that this package does not know.
	Ignored []string
}

// Message is one message of a conversation.
type Message struct {
	Role string
	// Content is the text, that of all text parts joined. HasContent tells an
	// empty text from none.
	Content    string
	HasContent bool
	Name       string
	ToolCalls  []json.RawMessage
	ToolCallID string
	// Unsupported names the type of a content part that is no text, or is "".
	Unsupported string
}

// DecodeChat reads the body of a chat completion request. Errors are
// [*DecodeError].
func DecodeChat(b []byte) (*ChatRequest, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	req := &ChatRequest{}
	r := req.Sampling.reader(&req.Ignored)
	r["model"] = into(&req.Model, (*field).string)
	r["messages"] = func(f *field) error {
		req.Messages = []Message{}
		return f.each(func(e *field) error {
			m, err := message(e, &req.Ignored)
			req.Messages = append(req.Messages, m)
			return err
		})
	}
	r["max_completion_tokens"] = given(&req.MaxCompletionTokens, small)
	r["logprobs"] = into(&req.Logprobs, (*field).bool)
	r["top_logprobs"] = given(&req.TopLogprobs, small)
	r["tools"] = into(&req.Tools, rawValues)
	r["functions"] = into(&req.Tools, rawValues)
	r["tool_choice"] = into(&req.ToolChoice, rawValue)
	r["function_call"] = into(&req.ToolChoice, rawValue)
	r["modalities"] = into(&req.Modalities, oneOrMore)
	r["add_generation_prompt"] = given(&req.AddGenerationPrompt, (*field).bool)
	r["continue_final_message"] = into(&req.ContinueFinalMessage, (*field).bool)
	r["chat_template_kwargs"] = into(&req.TemplateArguments, func(f *field) (map[string]any, error) {
		v, err := f.value()
		args, ok := v.(map[string]any)
		if err == nil && !ok {
			err = f.wrongType("an object")
		}
		return args, err
	})
	if err := r.read(f, &req.Ignored); err != nil {
		return nil, err
	}
	return req, nil
}

func rawValues(f *field) ([]json.RawMessage, error) {
	var out []json.RawMessage
	err := f.each(func(e *field) error {
		out = append(out, e.raw)
		return nil
	})
	return out, err
}

// message reads one message.
func message(f *field, ignored *[]string) (Message, error) {
	var m Message
	var parts strings.Builder
	err := reader{
		"role": into(&m.Role, (*field).string),
		"content": func(f *field) error {
			m.HasContent = true
			if f.raw[0] == '"' {
				return into(&m.Content, (*field).string)(f)
			}
			if f.raw[0] != '[' {
				return f.wrongType("a string or an array of content parts")
			}
			return f.each(func(e *field) error { return m.part(e, &parts, ignored) })
		},
		"name":         into(&m.Name, (*field).string),
		"tool_calls":   into(&m.ToolCalls, rawValues),
		"tool_call_id": into(&m.ToolCallID, (*field).string),
		"refusal":      func(*field) error { return nil }, // part of what a client got as an answer
	}.read(f, ignored)
	if parts.Len() > 0 {
		m.Content = parts.String()
	}
	if err == nil && m.Role == "" {
		err = f.fail("has no role")
	}
	return m, err
}

// part adds the text of one content part to parts.
func (m *Message) part(f *field, parts *strings.Builder, ignored *[]string) error {
	var kind, text string
	var rest []string
	err := reader{
		"type": into(&kind, (*field).string),
		"text": into(&text, (*field).string),
	}.read(f, &rest)
	switch {
	case err != nil:
		return err
	case kind == "":
		return f.fail("has no type")
	case kind != "text":
		m.Unsupported = kind // whose own fields are not strange ones
		return nil
	}
	*ignored = append(*ignored, rest...)
	parts.WriteString(text)
	return nil
}

// value reads any JSON value; whole numbers become int64.
func (f *field) value() (any, error) {
	switch f.raw[0] {
	case 'n':
		return nil, nil
	case '"':
		return f.string()
	case 't', 'f':
		return f.bool()
	case '[':
		list := []any{}
		err := f.each(func(e *field) error {
			v, err := e.value()
			list = append(list, v)
			return err
		})
		return list, err
	case '{':
		object := map[string]any{}
		err := f.members(func(m *field) (err error) {
			object[m.name], err = m.value()
			return err
		})
		return object, err
	}
	if v, err := f.integer(); err == nil {
		return v, nil
	}
	return f.float()
}
