package jsonrepair

import (
	"encoding/json"
	"fmt"
	"strings"
)

// OutcomeError says that a document could be read, but only in part or in one way
// of several: its outcome is Truncated or Ambiguous.
type OutcomeError struct {
	Result *Result
}

func (e *OutcomeError) Error() string {
	r := e.Result
	switch {
	case r.Outcome == Truncated && len(r.Open) > 0:
		last := r.Open[len(r.Open)-1]
		return fmt.Sprintf("jsonrepair: the document breaks off in the %s %q that begins at byte %d; the value holds what came before", last.Kind, last.Path, last.Offset)
	case r.Outcome == Truncated:
		return "jsonrepair: the document breaks off; the value holds what came before"
	case r.Text == nil:
		return fmt.Sprintf("jsonrepair: the document can be read in %d ways; without Strict the first is taken", len(r.Readings))
	}
	var why []string
	for _, reading := range r.Readings[min(1, len(r.Readings)):] {
		why = append(why, reading.Why)
	}
	return fmt.Sprintf("jsonrepair: the document can be read in %d ways; the value holds the first; others: %s", len(r.Readings), strings.Join(why, "; "))
}

// Unmarshal repairs a document and reads it into v by encoding/json, by whose rules
// numbers, names and duplicate names are taken. Several documents become an array.
//
// What may not be all that was meant is not passed over in silence: where the
// outcome is Truncated or Ambiguous the error is an [*OutcomeError], although v has
// been set. Who wants such a value too tests for it:
//
//	var o *jsonrepair.OutcomeError
//	if err != nil && !errors.As(err, &o) {
//		return err
//	}
//
// Other errors are the [*Error] of a result that is Failed, and those of
// encoding/json. With Options.Strict an ambiguous document leaves v as it is. The
// result is never nil.
func Unmarshal(data []byte, v any, o Options) (*Result, error) {
	r := Repair(data, o)
	if r.Outcome == Failed {
		return r, r.Err
	}
	if r.Text != nil {
		if err := json.Unmarshal(r.Text, v); err != nil {
			return r, err
		}
	}
	if r.Outcome == Truncated || r.Outcome == Ambiguous {
		return r, &OutcomeError{r}
	}
	return r, nil
}
