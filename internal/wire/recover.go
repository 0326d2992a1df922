package wire

import (
	"encoding/json"
	"slices"
)

// RecoverOptions are what a request says of the recovery of its answer: in
// "unfray.recover" a mode alone, or an object.
type RecoverOptions struct {
	Mode           string
	Form           string
	Language       string
	Strategies     []string // nil: not given
	MaxAttempts    *int
	MaxTokens      *int
	ReservePercent *int
	Schema         json.RawMessage
	ToolCalls      string
	OnFailure      string
	// Raw asks for the texts of tool calls that were left out.
	Raw bool
}

// recovery reads the field, which may be a word.
func recovery(f *field) (RecoverOptions, error) {
	var o RecoverOptions
	if f.raw[0] == '"' {
		err := into(&o.Mode, (*field).string)(f)
		return o, err
	}
	if f.raw[0] != '{' {
		return o, f.wrongType("a mode or an object")
	}
	r := reader{
		"mode":            into(&o.Mode, (*field).string),
		"form":            into(&o.Form, (*field).string),
		"language":        into(&o.Language, (*field).string),
		"strategies":      into(&o.Strategies, oneOrMore),
		"max_attempts":    given(&o.MaxAttempts, small),
		"max_tokens":      given(&o.MaxTokens, small),
		"reserve_percent": given(&o.ReservePercent, small),
		"schema":          into(&o.Schema, jsonSchema),
		"tool_calls":      into(&o.ToolCalls, (*field).string),
		"on_failure":      into(&o.OnFailure, (*field).string),
		"raw":             into(&o.Raw, (*field).bool),
	}
	var unknown []string
	if err := r.read(f, &unknown); err != nil {
		return o, err
	}
	if len(unknown) > 0 {
		return o, &DecodeError{Param: unknown[0], Offset: -1, Text: "is no setting of recovery"}
	}
	if o.Strategies == nil && hasEmptyArray(f, "strategies") {
		o.Strategies = []string{}
	}
	return o, nil
}

func hasEmptyArray(f *field, name string) (is bool) {
	_ = f.members(func(m *field) error { // it has been read
		is = is || m.name == name && m.raw[0] == '['
		return nil
	})
	return is
}

func jsonSchema(f *field) (json.RawMessage, error) {
	if f.raw[0] != '{' && f.raw[0] != 't' && f.raw[0] != 'f' {
		return nil, f.wrongType("a JSON Schema")
	}
	return f.raw, nil
}

// RecoverView is what the recovery of an answer has to know of a request. It is
// read from any body that is JSON: fields of shapes that are unknown here are
// left out, since the server may know them.
type RecoverView struct {
	Options *RecoverOptions // nil: the request does not say
	// JSON says that the answer is to be JSON, Schema of which schema, if any.
	JSON   bool
	Schema json.RawMessage
	// Tools are the functions that the model may call.
	Tools []RecoverTool

	Prompts []Prompt // of completions; nil where they are of another shape
	// Continues says that the conversation's last message may be the one to
	// continue, an assistant's, and what ContinueField says of that. Begun is its
	// text.
	Continues     bool
	ContinueField *bool
	Begun         string

	N              int
	Echo, Suffix   bool
	MaxTokens      int    // the most that is given; 0: none is
	MaxTokensField string // that gives it
}

// RecoverTool is a function of a request.
type RecoverTool struct {
	Name       string
	Parameters json.RawMessage
}

// DecodeRecover reads what a body says of recovery. The error is a
// [*DecodeError] of the field "unfray.recover", or of a body that is no JSON
// object.
func DecodeRecover(b []byte) (*RecoverView, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	v := &RecoverView{N: 1}
	var constraints []Constraint
	var unused []string
	lenient := reader{
		"prompt":                 into(&v.Prompts, prompts),
		"messages":               v.messages,
		"n":                      into(&v.N, small),
		"echo":                   into(&v.Echo, (*field).bool),
		"suffix":                 func(*field) error { v.Suffix = true; return nil },
		"tools":                  v.tools,
		"functions":              func(f *field) error { return f.each(v.function) },
		"tool_choice":            func(*field) error { return nil },
		"continue_final_message": given(&v.ContinueField, (*field).bool),
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "n_predict"} {
		lenient[name] = func(f *field) error {
			n, err := small(f)
			if err == nil && n > v.MaxTokens { // servers differ in which of several counts
				v.MaxTokens, v.MaxTokensField = n, name
			}
			return err
		}
	}
	for name, read := range constraintReaders(&constraints, &unused) {
		lenient[name] = read
	}
	none := false
	err = f.members(func(m *field) error {
		if m.name == "unfray" {
			return reader{"recover": given(&v.Options, recovery)}.read(m, &unused)
		}
		if read := lenient[m.name]; read != nil && !m.isNull() {
			_ = read(m) // a shape that only the server knows
		}
		none = none || m.name == "tool_choice" && string(m.raw) == `"none"`
		return nil
	})
	if none {
		v.Tools = nil
	}
	for _, c := range constraints {
		switch c.Kind {
		case ConstraintJSONSchema:
			v.JSON, v.Schema = true, json.RawMessage(c.Source)
		case ConstraintJSON:
			v.JSON = true
		}
	}
	return v, err
}

// messages reads what the last message is.
func (v *RecoverView) messages(f *field) error {
	var last []byte
	err := f.each(func(e *field) error {
		last = e.raw
		return nil
	})
	if err != nil || last == nil || last[0] != '{' {
		return err
	}
	var unused []string
	m, err := message(&field{raw: last, index: -1}, &unused)
	v.Continues, v.Begun = m.Role == "assistant" && len(m.ToolCalls) == 0, m.Content
	return err
}

func (v *RecoverView) tools(f *field) error {
	return f.each(func(e *field) error {
		var unused []string
		return reader{"function": v.function}.read(e, &unused)
	})
}

func (v *RecoverView) function(f *field) error {
	var t RecoverTool
	var unused []string
	err := reader{
		"name":       into(&t.Name, (*field).string),
		"parameters": into(&t.Parameters, rawValue),
	}.read(f, &unused)
	if err == nil && t.Name != "" {
		t.Parameters = slices.Clone(t.Parameters)
		v.Tools = append(v.Tools, t)
	}
	return err
}
