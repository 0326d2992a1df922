package jsonrepair

import "unicode/utf8"

// Report is the JSON form of a [Result], as the command and the gateway print it.
type Report struct {
	// ID is that of the request, where there is one.
	ID      Raw    `json:"id,omitempty"`
	Outcome string `json:"outcome"`
	// Text is nil where there is none. Strict JSON is UTF-8, so a string holds it.
	Text *string `json:"text,omitempty"`
	// Value is Text as a part of the report's own JSON. It is left out where it is
	// nested more than a thousand levels deep, which most readers refuse.
	Value    Raw             `json:"value,omitempty"`
	Edits    []ReportEdit    `json:"edits"` // never nil
	Open     []Open          `json:"open,omitempty"`
	Readings []ReportReading `json:"readings,omitempty"`
	Findings []Finding       `json:"findings,omitempty"`
	Error    *ReportError    `json:"error,omitempty"`
}

// ReportEdit is an [Edit]. Where Before is not valid UTF-8, JSON shows U+FFFD in
// it and BeforeBytes, in base64, is exact.
type ReportEdit struct {
	Edit
	BeforeBytes []byte `json:"before_bytes,omitempty"`
}

// ReportReading is a [Reading].
type ReportReading struct {
	Text string `json:"text"`
	Why  string `json:"why"`
	Cost int    `json:"cost"` // edits
}

// ReportError is an [Error].
type ReportError struct {
	Offset int    `json:"offset"` // bytes of input
	Cause  string `json:"cause"`
	Tried  string `json:"tried,omitempty"`
}

// Raw is a JSON text that stands for itself in another one.
type Raw []byte

// MarshalJSON returns r.
func (r Raw) MarshalJSON() ([]byte, error) { return r, nil }

// UnmarshalJSON keeps a copy of b.
func (r *Raw) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// Embed returns a JSON text as a part of another one, nil where it is nested more
// than a thousand levels deep, which most readers refuse.
func Embed(text []byte) Raw {
	if !depthWithin(text, maxValueDepth) {
		return nil
	}
	return text
}

// maxValueDepth is how deep a value may be nested to be part of a report.
const maxValueDepth = 1000

// Report returns the JSON form of the result. It shares Text and the lists with it.
func (r *Result) Report() *Report {
	p := &Report{
		Outcome:  r.Outcome.String(),
		Edits:    make([]ReportEdit, r.EditCount()),
		Open:     r.Open,
		Findings: r.Findings,
	}
	if r.Text != nil {
		text := string(r.Text)
		p.Text = &text
		p.Value = Embed(r.Text)
	}
	i := 0
	for e := range r.Edits() {
		p.Edits[i].Edit = e
		if !utf8.ValidString(e.Before) {
			p.Edits[i].BeforeBytes = []byte(e.Before)
		}
		i++
	}
	for _, w := range r.Readings {
		p.Readings = append(p.Readings, ReportReading{string(w.Text), w.Why, w.Cost})
	}
	if r.Err != nil {
		p.Error = &ReportError{r.Err.Offset, r.Err.Cause, r.Err.Tried}
	}
	return p
}

// depthWithin reports whether no more than most containers of a JSON text are open
// at once.
func depthWithin(text []byte, most int) bool {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '{' || c == '[':
			if depth++; depth > most {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}
