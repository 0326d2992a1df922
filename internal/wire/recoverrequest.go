package wire

import "encoding/json"

// RecoverRequest is the body of POST /unfray/v1/recover, and a line of a bulk
// recovery.
type RecoverRequest struct {
	ID json.RawMessage // any value, nil if there is none
	// Text is the answer to recover. A request gives it as "text" or, where it is
	// no UTF-8, as "bytes" in base64.
	Text []byte

	Form, Language string
	Schema         json.RawMessage
	Tools          []RecoverTool
	// FinishReason is why the model ended, Tokens and MaxTokens how long the answer
	// is and might have been; "" and 0: not told.
	FinishReason      string
	Tokens, MaxTokens int
	Strategies        []string // nil: all
	LaTeX, Paths      bool
	// Strings also mends the strings of JSON that is valid.
	Strings bool
	Budget  RecoverBudget

	// Ignored lists the paths of fields that this package does not know.
	Ignored []string
}

// RecoverBudget limits one recovery. 0: not given.
type RecoverBudget struct {
	Bytes, Edits, Depth int
	TimeMillis          int
}

// DecodeRecoverRequest reads a request to recover an answer. Errors are
// [*DecodeError]; with them comes a request that holds the ID if that could be
// read.
func DecodeRecoverRequest(b []byte) (*RecoverRequest, error) {
	req := &RecoverRequest{}
	f, err := body(b)
	if err != nil {
		return req, withBytes(err)
	}
	var text textField
	view := &RecoverView{}
	r := reader{
		"id":            into(&req.ID, rawValue),
		"form":          into(&req.Form, (*field).string),
		"language":      into(&req.Language, (*field).string),
		"schema":        into(&req.Schema, jsonSchema),
		"tools":         view.tools,
		"finish_reason": into(&req.FinishReason, (*field).string),
		"tokens":        into(&req.Tokens, count),
		"max_tokens":    into(&req.MaxTokens, count),
		"strategies": func(f *field) error {
			req.Strategies = []string{}
			names, err := oneOrMore(f)
			req.Strategies = append(req.Strategies, names...)
			return err
		},
		"latex":   into(&req.LaTeX, (*field).bool),
		"paths":   into(&req.Paths, (*field).bool),
		"strings": into(&req.Strings, (*field).bool),
		"budget": func(f *field) error {
			return reader{
				"bytes":   into(&req.Budget.Bytes, count),
				"edits":   into(&req.Budget.Edits, count),
				"depth":   into(&req.Budget.Depth, count),
				"time_ms": into(&req.Budget.TimeMillis, count),
			}.read(f, &req.Ignored)
		},
	}
	text.addTo(r, &req.Text)
	err = r.read(f, &req.Ignored)
	req.Tools = view.Tools
	if err == nil {
		err = text.check("recover")
	}
	return req, err
}

// count reads a number of things.
func count(f *field) (int, error) {
	n, err := small(f)
	if err == nil && n < 0 {
		err = f.fail("must not be negative")
	}
	return n, err
}

// textField reads a text that is given as "text" or as "bytes".
type textField struct{ text, exact bool }

func (t *textField) addTo(r reader, to *[]byte) {
	r["text"] = func(f *field) error {
		s, err := f.string()
		*to, t.text = []byte(s), true
		return err
	}
	r["bytes"] = func(f *field) error {
		if _, err := f.string(); err != nil {
			return err
		}
		t.exact = true
		if json.Unmarshal(f.raw, to) != nil {
			return f.fail("must be base64")
		}
		return nil
	}
}

// check reports whether exactly one was given. verb is what is done to the text.
func (t *textField) check(verb string) error {
	switch {
	case t.text && t.exact:
		return &DecodeError{Param: "bytes", Offset: -1, Text: `is given beside "text": give one of them`}
	case !t.text && !t.exact:
		return &DecodeError{Param: "text", Offset: -1, Text: `is missing: give the text to ` + verb + `, or "bytes" in base64`}
	}
	return nil
}
