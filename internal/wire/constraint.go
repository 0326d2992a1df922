package wire

import (
	"regexp"
	"strings"
)

// ConstraintKind is the language of a [Constraint].
type ConstraintKind string

// The kinds.
const (
	ConstraintGBNF       ConstraintKind = "grammar"
	ConstraintJSONSchema ConstraintKind = "json_schema"
	ConstraintJSON       ConstraintKind = "json_object" // any JSON object; no Source
	ConstraintRegex      ConstraintKind = "regex"
)

// Constraint is what a request wants its output to keep to.
type Constraint struct {
	Kind   ConstraintKind
	Source string
	Param  string // path of the field that gave it
}

// constraint adds what a field says to list.
func constraint(list *[]Constraint, kind ConstraintKind) func(*field) error {
	return func(f *field) error {
		c := Constraint{Kind: kind, Param: f.path()}
		switch {
		case kind == ConstraintJSONSchema && f.raw[0] != '"':
			if f.raw[0] != '{' && f.raw[0] != 't' && f.raw[0] != 'f' {
				return f.wrongType("a JSON Schema")
			}
			c.Source = string(f.raw)
		case kind == ConstraintJSON:
			on, err := f.bool()
			if err != nil || !on {
				return err
			}
		default:
			s, err := f.string()
			if err != nil {
				return err
			}
			if c.Source = s; s == "" {
				return nil // llama.cpp's clients send an empty grammar for none
			}
		}
		*list = append(*list, c)
		return nil
	}
}

// choiceConstraint reads a list of strings, of which the output is to be one.
func choiceConstraint(list *[]Constraint) func(*field) error {
	return func(f *field) error {
		if f.raw[0] != '[' {
			return f.wrongType("an array of strings")
		}
		words, err := oneOrMore(f)
		if err != nil {
			return err
		}
		if len(words) == 0 {
			return f.fail("has no string to choose from")
		}
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		*list = append(*list, Constraint{ConstraintRegex, "(?:" + strings.Join(words, "|") + ")", f.path()})
		return nil
	}
}

// constraintReaders reads the fields of OpenAI, llama.cpp and vLLM.
func constraintReaders(list *[]Constraint, ignored *[]string) reader {
	structured := func(f *field) error {
		return reader{
			"json":        constraint(list, ConstraintJSONSchema),
			"regex":       constraint(list, ConstraintRegex),
			"grammar":     constraint(list, ConstraintGBNF),
			"json_object": constraint(list, ConstraintJSON),
			"choice":      choiceConstraint(list),
			"structural_tag": func(f *field) error {
				return f.fail("is not supported; say it as a grammar")
			},
		}.read(f, ignored)
	}
	return reader{
		// vLLM's older names.
		"guided_json":    constraint(list, ConstraintJSONSchema),
		"guided_regex":   constraint(list, ConstraintRegex),
		"guided_grammar": constraint(list, ConstraintGBNF),
		"guided_choice":  choiceConstraint(list),

		"grammar":            constraint(list, ConstraintGBNF),
		"json_schema":        constraint(list, ConstraintJSONSchema),
		"structured_outputs": structured,
		"response_format":    func(f *field) error { return responseFormat(f, list, ignored) },
	}
}

// responseFormat reads OpenAI's object; llama.cpp's has the schema beside the
// type.
func responseFormat(f *field, list *[]Constraint, ignored *[]string) error {
	var kind string
	var found []Constraint
	err := reader{
		"type":   into(&kind, (*field).string),
		"schema": constraint(&found, ConstraintJSONSchema),
		"json_schema": func(f *field) error {
			var unused []string // name, description, strict: they say nothing of the text
			return reader{"schema": constraint(&found, ConstraintJSONSchema)}.read(f, &unused)
		},
	}.read(f, ignored)
	switch {
	case err != nil:
		return err
	case kind == "" || kind == "text":
		return nil
	case kind != string(ConstraintJSON) && kind != string(ConstraintJSONSchema):
		return f.fail("has the type " + kind[:min(len(kind), 32)] + "; it may be text, json_object or json_schema")
	case len(found) > 0:
		*list = append(*list, found[0])
	case kind == string(ConstraintJSONSchema):
		return f.fail("has the type json_schema, but no json_schema.schema")
	default:
		*list = append(*list, Constraint{Kind: ConstraintJSON, Param: f.path()})
	}
	return nil
}
