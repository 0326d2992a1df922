package toolcall

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ParseTools reads a list of tools as requests carry it: OpenAI's
// {"type":"function","function":{"name","parameters"}}, the bare function, or
// Anthropic's {"name","input_schema"}; in an array, or in an object under "tools".
// Tools of other types than functions are left out.
func ParseTools(data []byte) ([]Tool, error) {
	list := json.RawMessage(data)
	var body struct {
		Tools json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(data, &body) == nil && body.Tools != nil {
		list = body.Tools
	}
	type function struct {
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var entries []struct {
		Type     string    `json:"type"`
		Function *function `json:"function"`
		function
	}
	if err := json.Unmarshal(list, &entries); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("toolcall: byte %d: the list of tools is no JSON: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf("toolcall: give an array of tools, as in OpenAI's requests: %w", err)
	}
	var tools []Tool
	for i, e := range entries {
		if e.Type != "" && e.Type != "function" && e.Type != "custom" {
			continue
		}
		f := e.function
		if e.Function != nil {
			f = *e.Function
		}
		if f.Name == "" {
			return nil, fmt.Errorf("toolcall: tool %d has no name", i)
		}
		if f.Parameters == nil {
			f.Parameters = f.InputSchema
		}
		tools = append(tools, Tool{Name: f.Name, Parameters: f.Parameters})
	}
	return tools, nil
}
