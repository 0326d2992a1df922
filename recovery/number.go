package recovery

import (
	"bytes"
	"regexp"

	"github.com/unfray/unfray/jsonrepair"
)

// thousands is a number with commas between its digits. Read as JSON it would be
// several values, of which the last is another number.
var thousands = regexp.MustCompile(`^[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$`)

// asThousands reads an answer that is nothing but such a number as a string: what
// number it is the schema may tell.
func (a *attempt) asThousands() (reading, bool) {
	text := bytes.TrimSpace(a.text)
	if !thousands.Match(text) {
		return reading{}, false
	}
	start := bytes.Index(a.text, text)
	quote := func(at int) Edit {
		return Edit{jsonrepair.Edit{Kind: jsonrepair.MissingQuote, Offset: at, After: `"`}, Repair}
	}
	edits := []Edit{quote(start), quote(start + len(text))}
	return reading{strategy: Repair, text: Apply(a.text, edits), edits: edits, outcome: Repaired, why: "a number with commas, as a string"}, true
}
