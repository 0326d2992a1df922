package config

import "encoding/json"

// Schema is the JSON Schema (2020-12) of the file, for editors. It knows the
// keys and the form of values; names, files and what goes with what are only
// checked here.
func Schema() []byte {
	top := schema.form.document()
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "unfray configuration"
	top["patternProperties"] = map[string]any{"^x-": true}
	// Maps and strings can always be written.
	text, _ := json.MarshalIndent(top, "", "  ")
	return append(text, '\n')
}

// document is the JSON Schema of one form.
func (f form) document() map[string]any {
	doc := map[string]any{}
	for k, v := range f.schema {
		doc[k] = v
	}
	switch {
	case f.item != nil:
		doc["type"], doc["items"] = "array", f.item.document()
	case f.named != nil:
		doc["type"], doc["additionalProperties"] = "object", f.named.document()
	case f.fields != nil:
		properties, required := map[string]any{}, []string{}
		for _, field := range f.fields {
			property := field.form.document()
			property["description"] = field.doc
			properties[field.key] = property
			if field.required {
				required = append(required, field.key)
			}
		}
		doc["type"], doc["additionalProperties"], doc["properties"] = "object", false, properties
		if len(required) > 0 {
			doc["required"] = required
		}
	}
	return doc
}

// oneOfKeys is the schema of objects that have exactly one of these keys.
func oneOfKeys(keys ...string) map[string]any {
	var one []any
	for _, k := range keys {
		one = append(one, map[string]any{"required": []string{k}})
	}
	return map[string]any{"oneOf": one}
}
