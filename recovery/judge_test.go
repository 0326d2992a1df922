package recovery_test

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/schema"
)

func ageSchema(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(`{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}`), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemaDemandsJSON has an answer without a told form be JSON where a schema is given.
func TestSchemaDemandsJSON(t *testing.T) {
	o := recovery.Options{Schema: ageSchema(t)}
	for in, want := range map[string]recovery.Outcome{
		"I cannot tell.":                recovery.Failed,
		"She is {'age': \"31\"} or so.": recovery.Repaired,
		`{"age": 31}`:                   recovery.Valid,
	} {
		r := recovery.Recover(t.Context(), []byte(in), o)
		if r.Outcome != want || r.Form != recovery.JSON {
			t.Errorf("%s: %v, %s", in, r.Outcome, r.Form)
		}
		s := recovery.NewStream(o)
		s.Write([]byte(in))
		if _, r := s.Close(t.Context(), ""); r.Form != recovery.JSON {
			t.Errorf("%s: as a stream %s", in, r.Form)
		}
	}
}

// TestStreamHoldsToSchema has a value that was given, and does not fit, be no success.
func TestStreamHoldsToSchema(t *testing.T) {
	for in, want := range map[string]recovery.Outcome{
		`{"age": "31", "x": 1}`:       recovery.Failed,
		`{'age': 31, "x": 1}`:         recovery.Repaired,
		`{"age": 31, "x": 1}`:         recovery.Valid,
		`{"age": "31", "x": "a and b`: recovery.Truncated,
	} {
		s := recovery.NewStream(recovery.Options{Schema: ageSchema(t)})
		var given []byte
		for i := range in {
			given = append(given, s.Write([]byte(in[i:i+1])).Text...)
		}
		d, r := s.Close(t.Context(), "")
		given = append(given, d.Text...)
		if r.Outcome != want || string(r.Text) != string(given) || (r.Err != nil) != (want == recovery.Failed) {
			t.Errorf("%s: %v, %s, given %s, %v", in, r.Outcome, r.Text, given, r.Err)
		}
	}
}

// TestStepsHaveTheirEdits adds up the edits of the steps, which are those of the result.
func TestStepsHaveTheirEdits(t *testing.T) {
	r := recovery.Recover(t.Context(), []byte("<think>x</think>{'age': \"31\", 'name': \"CafÃ© Ã©tÃ©\""), recovery.Options{Schema: ageSchema(t)})
	of := map[string]int{}
	for _, e := range r.Edits {
		of[e.Strategy]++
	}
	for _, step := range r.Trace {
		if step.Edits != of[step.Strategy] {
			t.Errorf("%s: %d edits, want %d", step.Strategy, step.Edits, of[step.Strategy])
		}
	}
	if of[recovery.Repair] == 0 || of[recovery.Schema] == 0 || of[recovery.Reasoning] == 0 {
		t.Error(of)
	}
}

// TestExplainTellsReadings has an ambiguous answer come with its readings.
func TestExplainTellsReadings(t *testing.T) {
	r := recovery.Recover(t.Context(), []byte(`{"n": 1,234}`), recovery.Options{})
	if told := r.Explain(); strings.Count(told, "Can be read as ") != len(r.Readings) || len(r.Readings) < 2 {
		t.Error(told)
	}
}
