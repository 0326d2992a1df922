package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"
)

// schema is what a tool's JSON Schema says of its parameters by itself, without
// resolving references.
type schema struct {
	types map[string][]string // of each property
	open  bool                // nothing is known of the properties
}

// readSchema reads the schema of a tool's parameters. One that cannot be read says nothing.
func readSchema(raw json.RawMessage) *schema {
	s := &schema{types: map[string][]string{}}
	var doc struct {
		Properties map[string]struct {
			Type  any   `json:"type"`
			Enum  []any `json:"enum"`
			AnyOf []struct {
				Type any `json:"type"`
			} `json:"anyOf"`
		} `json:"properties"`
	}
	if len(bytes.TrimSpace(raw)) == 0 || json.Unmarshal(raw, &doc) != nil || doc.Properties == nil {
		s.open = true
		return s
	}
	for name, p := range doc.Properties {
		types := typeNames(p.Type)
		for _, a := range p.AnyOf {
			types = append(types, typeNames(a.Type)...)
		}
		if len(types) == 0 && len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(v any) bool { _, ok := v.(string); return !ok }) {
			types = []string{"string"}
		}
		s.types[name] = types
	}
	return s
}

func typeNames(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var names []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				names = append(names, s)
			}
		}
		return names
	}
	return nil
}

// typesOf returns the types that a property may have; none: unknown.
func (s *schema) typesOf(key string) []string {
	if s == nil {
		return nil
	}
	return s.types[key]
}

// key returns a key without Markdown escapes where the schema proves that they are.
func (s *schema) key(key string) (string, bool) {
	if s == nil || s.open {
		return key, false
	}
	if _, ok := s.types[key]; ok {
		return key, false
	}
	plain := unescapeMarkdown(key)
	_, ok := s.types[plain]
	return plain, ok
}
