package grammar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestSchemaNames has property names that look like what the reader calls a
// schema without one of its keywords.
func TestSchemaNames(t *testing.T) {
	g, err := ParseJSONSchema([]byte(`{"properties":{"a":{"maxLength":1,"type":"string","anyOf":[{"$ref":"#/properties/a%23-anyOf"}]},"a#-anyOf":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if g.Match([]byte(`{"a":"long"}`)) || !g.Match([]byte(`{"a":"l"}`)) {
		t.Error("maxLength was lost")
	}
}

// TestSchemaNestedID has references that are not to this document.
func TestSchemaNestedID(t *testing.T) {
	_, err := ParseJSONSchema([]byte(`{"$ref":"#/$defs/x","$defs":{"x":{"$id":"http://e/x","$ref":"#/$defs/y","$defs":{"y":{"type":"null"}}},"y":{"type":"string"}}}`))
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

// TestSchemaCombinations is refused before each of many properties is held to
// each of many schemas.
func TestSchemaCombinations(t *testing.T) {
	var props []string
	for i := range 20000 {
		props = append(props, fmt.Sprintf(`"p%d":{}`, i))
	}
	src := `{"allOf":[` + strings.Repeat(`{"additionalProperties":{}},`, 250) + `{"properties":{` + strings.Join(props, ",") + `}}]}`
	if _, err := ParseJSONSchema([]byte(src)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}
