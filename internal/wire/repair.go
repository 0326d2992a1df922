package wire

import (
	"encoding/json"
	"strings"
)

// RepairRequest is the body of POST /unfray/v1/repair, and a line of a bulk
// repair.
type RepairRequest struct {
	ID json.RawMessage // any value, nil if there is none
	// Text is the text to repair. A request gives it as "text" or, where it is no
	// UTF-8, as "bytes" in base64.
	Text []byte

	Strict, LaTeX, Paths, Ended bool
	// FinishReason is why the model that wrote the text ended; "" if not told.
	FinishReason string

	// Ignored lists the paths of fields that this package does not know.
	Ignored []string
}

// IsEnded reports whether the text is known not to break off.
func (q *RepairRequest) IsEnded() bool {
	switch q.FinishReason {
	case "stop", "tool_calls", "function_call": // OpenAI's
		return true
	case "end_turn", "tool_use": // Anthropic's
		return true
	}
	return q.Ended
}

// DecodeRepair reads a request to repair a text. Errors are [*DecodeError]; with
// them comes a request that holds the ID if that could be read.
func DecodeRepair(b []byte) (*RepairRequest, error) {
	req := &RepairRequest{}
	f, err := body(b)
	if err != nil {
		return req, withBytes(err)
	}
	var text textField
	r := reader{
		"id":            into(&req.ID, rawValue),
		"strict":        into(&req.Strict, (*field).bool),
		"latex":         into(&req.LaTeX, (*field).bool),
		"paths":         into(&req.Paths, (*field).bool),
		"ended":         into(&req.Ended, (*field).bool),
		"finish_reason": into(&req.FinishReason, (*field).string),
	}
	text.addTo(r, &req.Text)
	if err = r.read(f, &req.Ignored); err == nil {
		err = text.check("repair")
	}
	return req, err
}

// withBytes says what can be done about a text that JSON cannot carry.
func withBytes(err error) error {
	e, ok := err.(*DecodeError)
	if !ok {
		return err
	}
	what, _, found := strings.Cut(e.Text, "; to continue text")
	if !found {
		return err
	}
	return &DecodeError{Offset: e.Offset, Text: what + `; send a text that is not UTF-8 as "bytes", in base64`}
}
