package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// Checked is what became of the arguments of a call.
type Checked struct {
	// Outcome is Valid for a strict JSON object, Repaired where one could be made out that
	// is whole, Truncated where the arguments break off, Ambiguous where they can be read
	// in several ways, and Failed where they are no object or nothing could be made out.
	Outcome jsonrepair.Outcome
	// Malformed says that there are faults that a cut does not explain: asking the
	// model again may help, going on may not. Truncated arguments without it can
	// be continued.
	Malformed bool
	// Arguments is a strict JSON object: the input itself where the outcome is Valid. It
	// is nil where the outcome is Failed. Of several objects it is the first.
	Arguments []byte
	// All are the objects, where the input held several: each is a call of its own.
	All [][]byte
	// Open names what had not ended where the arguments break off.
	Open []jsonrepair.Open
	// Repair is the receipt; nil: the arguments were strict, or empty. Where Decoded, it is
	// that of the string's content.
	Repair *jsonrepair.Result
	// Decoded says that the object was the content of a string. That is done once.
	Decoded bool
	// Edits make Arguments, or the array of All, of the input. An input that was decoded is
	// replaced as a whole.
	Edits    []jsonrepair.Edit
	Findings []jsonrepair.Finding
	Problem  Problem
}

// Arguments checks and repairs the arguments of a call to the function called name, as
// they stand in an OpenAI message: a text that should be a JSON object. Nothing is {}.
// The reason for which the model is said to have stopped is not asked for, since it is
// often wrong: what is open in the text decides.
func Arguments(name string, raw []byte, o Options) *Checked {
	a := &Checked{}
	m := newMachine(o)
	o = m.o
	if len(bytes.TrimSpace(raw)) == 0 {
		a.replace(raw, EmptyArguments, []byte("{}"))
		return a
	}
	if jsonrepair.Check(raw, o.JSON.MaxDepth) == nil && (o.JSON.MaxBytes <= 0 || len(raw) <= o.JSON.MaxBytes) {
		a.strict(raw, o)
	} else {
		a.repair(raw, o)
	}
	if a.Outcome != jsonrepair.Failed && len(a.All) == 0 {
		a.mendKeys(m, name, raw)
	}
	return a
}

// replace gives arguments for the whole input.
func (a *Checked) replace(raw []byte, k jsonrepair.Kind, args []byte) {
	a.Outcome, a.Arguments = jsonrepair.Repaired, args
	a.Edits = []jsonrepair.Edit{{Kind: k, Before: string(raw), After: string(args)}}
}

func (a *Checked) fail(p Problem) {
	a.Outcome, a.Problem, a.Malformed = jsonrepair.Failed, p, true
	a.Arguments, a.All, a.Edits = nil, nil, nil
}

// strict reads input that is JSON.
func (a *Checked) strict(raw []byte, o Options) {
	switch s := bytes.TrimSpace(raw); {
	case s[0] == '{':
		a.Arguments = raw
		if o.JSON.LaTeX || o.JSON.Paths {
			a.repair(raw, o)
			break
		}
		a.Findings = jsonrepair.Repair(raw, o.JSON).Findings
	case string(s) == "null":
		a.replace(raw, EmptyArguments, []byte("{}"))
	case s[0] == '"':
		var text string
		if json.Unmarshal(s, &text) != nil {
			a.fail(NoObject)
			break
		}
		a.decode(raw, []byte(text), o)
	default:
		a.fail(NoObject)
	}
}

// decode reads the content of a string.
func (a *Checked) decode(raw, text []byte, o Options) {
	s := bytes.TrimSpace(text)
	switch {
	case len(s) == 0:
		a.replace(raw, EmptyArguments, []byte("{}"))
		return
	case s[0] != '{':
		a.fail(NoObject)
		return
	case jsonrepair.Check(s, o.JSON.MaxDepth) == nil:
		a.Decoded = true
		a.replace(raw, DoubleEncoded, s)
		return
	}
	a.repair(s, o)
	if a.Outcome == jsonrepair.Failed {
		return
	}
	out := a.Arguments
	if len(a.All) > 0 {
		out = a.Repair.Text
	}
	a.Decoded = true
	a.Edits = []jsonrepair.Edit{{Kind: DoubleEncoded, Before: string(raw), After: string(out)}}
}

// repair reads input that is not JSON.
func (a *Checked) repair(raw []byte, o Options) {
	r := jsonrepair.Repair(raw, o.JSON)
	a.Repair, a.Outcome, a.Open, a.Findings = r, r.Outcome, r.Open, slices.Clone(r.Findings)
	a.Edits = slices.Collect(r.Edits())
	for _, e := range a.Edits {
		if e.Kind == jsonrepair.Placeholder {
			a.Findings = append(a.Findings, jsonrepair.Finding{Kind: Placeholder, Offset: e.Offset, Length: len(e.Before), Text: "an empty object beside the arguments was dropped"})
		}
		if e.Kind != jsonrepair.Cut && e.Kind != jsonrepair.Placeholder && e.Kind != jsonrepair.SeveralValues {
			a.Malformed = true
		}
	}
	switch r.Outcome {
	case jsonrepair.Valid:
		a.Repair = nil
	case jsonrepair.Failed:
		a.fail(Malformed)
		return
	case jsonrepair.Truncated:
		a.Problem = Truncated
	}
	all := slices.Collect(r.Values())
	if len(all) > 1 {
		a.All, a.Arguments = all, all[0]
		a.Findings = append(a.Findings, jsonrepair.Finding{Kind: SeveralArguments, Length: len(raw), Text: "several objects: each is a call of its own"})
	} else {
		a.Arguments = r.Text
	}
	if len(r.Text) == 0 && r.Outcome == jsonrepair.Ambiguous {
		return // Options.JSON.Strict
	}
	for _, v := range append(all, a.Arguments) {
		if s := bytes.TrimSpace(v); len(s) == 0 || s[0] != '{' {
			a.unobject(raw, s, o)
			return
		}
	}
}

// unobject is called where the repaired text is no object: it may be a string with one,
// which breaks off.
func (a *Checked) unobject(raw, s []byte, o Options) {
	var text string
	outcome, open := a.Outcome, a.Open
	if a.Decoded || len(a.All) > 0 || len(s) == 0 || s[0] != '"' || json.Unmarshal(s, &text) != nil || len(text) == 0 || text[0] != '{' {
		a.fail(NoObject)
		return
	}
	a.Decoded = true
	*a = Checked{Decoded: true, Malformed: a.Malformed}
	a.decode(raw, []byte(text), o)
	if a.Outcome < outcome {
		a.Outcome = outcome
	}
	if outcome == jsonrepair.Truncated && a.Outcome == outcome {
		a.Problem = Truncated
		if len(a.Open) == 0 {
			a.Open = open
		}
	}
}

// mendKeys drops Markdown's escapes from keys.
func (a *Checked) mendKeys(m *machine, name string, raw []byte) {
	c := &call{}
	m.nameCall(c, name, 0)
	m.findings = nil
	c.add(m, a.Arguments)
	if len(m.findings) == 0 {
		return
	}
	a.Findings = append(a.Findings, m.findings...)
	a.Arguments = c.args
	if a.Outcome == jsonrepair.Valid {
		a.Outcome = jsonrepair.Repaired
	}
	a.Malformed = true
	a.Edits = []jsonrepair.Edit{{Kind: EscapedName, Before: string(raw), After: string(c.args)}}
}
