package recovery_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/toolcall"
)

// readLines decodes a file of one JSON object a line.
func readLines[T any](t testing.TB, path string) []*T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	d.DisallowUnknownFields()
	var all []*T
	for {
		v := new(T)
		switch err := d.Decode(v); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s, line %d: %v", path, len(all)+1, err)
		}
		all = append(all, v)
	}
}

// demand is what a case or a transcript asks of recovery.
type demand struct {
	Form         string          `json:"form"`
	Schema       json.RawMessage `json:"schema"`
	Tools        json.RawMessage `json:"tools"`
	FinishReason string          `json:"finish_reason"`
}

var forms = map[string]recovery.Form{
	"auto": recovery.Auto, "tool_calls": recovery.Auto, "text": recovery.Text, "json": recovery.JSON, "code": recovery.Code,
}

// options makes the options that say so.
func (d *demand) options() (o recovery.Options, err error) {
	form, ok := forms[d.Form]
	if !ok {
		return o, fmt.Errorf("no form %q", d.Form)
	}
	o.Form, o.FinishReason = form, d.FinishReason
	if d.Schema != nil {
		if o.Schema, err = schema.Parse(d.Schema, schema.Options{}); err != nil {
			return o, err
		}
	}
	if d.Tools == nil {
		return o, nil
	}
	var tools []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if err := json.Unmarshal(d.Tools, &tools); err != nil {
		return o, err
	}
	for _, f := range tools {
		o.Tools = append(o.Tools, toolcall.Tool{Name: f.Function.Name, Parameters: f.Function.Parameters})
	}
	return o, nil
}

// checkReceipt checks what holds for every result: the edits are in order and make
// the text, and a valid answer is untouched.
func checkReceipt(t testing.TB, input []byte, r *recovery.Result) {
	t.Helper()
	end := 0
	for i, e := range r.Edits {
		if e.Offset < end || e.Offset+len(e.Before) > len(input) || string(input[e.Offset:e.Offset+len(e.Before)]) != e.Before {
			t.Fatalf("edit %d does not fit the input: %+v", i, e)
		}
		if e.Before == e.After {
			t.Errorf("edit %d changes nothing: %+v", i, e)
		}
		end = e.Offset + len(e.Before)
	}
	if r.Text != nil {
		if got := recovery.Apply(input, r.Edits); !bytes.Equal(got, r.Text) {
			t.Errorf("the edits make %q, the text is %q", got, r.Text)
		}
	}
	for _, f := range r.Findings {
		if f.Offset < 0 || f.Length < 0 || f.Offset+f.Length > len(input) {
			t.Errorf("a finding outside the input: %+v", f)
		}
	}
	switch {
	case r.Outcome == recovery.Valid && (len(r.Edits) > 0 || !bytes.Equal(r.Text, input)):
		t.Errorf("valid, with %d edits, text %q", len(r.Edits), r.Text)
	case r.Outcome == recovery.Repaired && len(r.Edits) == 0:
		t.Error("repaired without an edit")
	case r.Outcome == recovery.Failed && r.Err == nil:
		t.Error("failed without a reason")
	}
	if r.Form == recovery.JSON && r.Text != nil && !jsonrepair.IsValid(r.Text) {
		t.Errorf("no strict JSON: %q", r.Text)
	}
}

// sameJSON compares values by number texts.
func sameJSON(a, b []byte) bool {
	x, errX := decodeJSON(a)
	y, errY := decodeJSON(b)
	return errX == nil && errY == nil && equalValues(x, y)
}

func decodeJSON(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// equalValues compares numbers by value where both are of moderate size, as 2.0 and
// 2, and by text otherwise.
func equalValues(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		if len(a)+len(b) > 40 || strings.ContainsAny(string(a)+string(b), "eE") {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalValues)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equalValues(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}
