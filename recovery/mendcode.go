package recovery

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/code"
	"github.com/unfray/unfray/recovery/textrepair"
)

// mendCode repairs the characters of code. Entities and special white space, which may be
// meant, are changed only where the code parses then and did not before.
func (a *attempt) mendCode(o textrepair.Options) *textrepair.Result {
	o.Kind = textrepair.Code
	r := textrepair.Repair(a.text, o)
	lang := a.codeLanguage()
	if a.parses(lang, r.Text) || o.Entities == textrepair.Never {
		return r
	}
	o.Entities = textrepair.Always
	decoded := textrepair.Repair(a.text, o)
	for _, other := range []*textrepair.Result{decoded, spaced(r), spaced(decoded)} {
		if !bytes.Equal(other.Text, r.Text) && a.parses(lang, other.Text) {
			return other
		}
	}
	return r
}

func (a *attempt) parses(lang string, text []byte) bool {
	return code.Check(lang, text, code.Options{}).Status == code.Parses
}

// codeLanguage is the language of a code answer: as told, as its fence says, or by
// evidence.
func (a *attempt) codeLanguage() string {
	switch {
	case a.o.Language != "":
		return a.o.Language
	case a.language != "":
		return a.language
	}
	return code.Detect(a.text, "")
}

// spaced returns a result with no-break and other wide spaces of the text as plain ones.
func spaced(r *textrepair.Result) *textrepair.Result {
	var edits []jsonrepair.Edit
	for i, c := range string(r.Text) {
		switch c {
		case '\u00a0', '\u2007', '\u202f', '\u3000':
			edits = append(edits, jsonrepair.Edit{Kind: jsonrepair.SpecialSpace, Offset: i, Before: string(c), After: " "})
		}
	}
	if edits == nil {
		return r
	}
	out := &textrepair.Result{Text: jsonrepair.Apply(r.Text, slices.Values(edits)), Findings: r.Findings}
	for _, e := range compose(tagged(Mend, r.Edits), r.Text, tagged(Mend, edits)) {
		out.Edits = append(out.Edits, e.Edit)
	}
	return out
}
