package heal

import (
	"fmt"
	"strings"
)

// Mode is a healing strategy.
type Mode string

// The strategies, from none to the most faithful.
const (
	// Auto takes the best that the model's backend can do. The empty Mode
	// means the same.
	Auto Mode = "auto"
	// Exact draws among all canonical covers by their probability.
	Exact Mode = "exact"
	// Stable rolls back to the stable prefix and masks step by step.
	Stable Mode = "stable"
	// Last drops one token and masks step by step, the classic way.
	Last Mode = "last"
	// Off leaves the prompt as it is.
	Off Mode = "off"
)

// Modes lists every mode in the order in which help texts show them.
func Modes() []Mode { return []Mode{Auto, Exact, Stable, Last, Off} }

// ParseMode reads a mode by its name; the empty string is [Auto].
func ParseMode(s string) (Mode, error) {
	if s == "" {
		return Auto, nil
	}
	for _, m := range Modes() {
		if s == string(m) {
			return m, nil
		}
	}
	names := make([]string, 0, len(Modes()))
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return "", fmt.Errorf("heal: no mode %q; choose one of %s", s, strings.Join(names, ", "))
}

// Note says that something was done in another way than asked, or could not be
// done.
type Note struct {
	Code string `json:"code"` // stable, for programs
	Text string `json:"text"` // for people
}

// The codes of notes.
const (
	// CodeExactUnavailable: exact was asked for, but the backend gives no
	// logits; another mode was done.
	CodeExactUnavailable = "exact_unavailable"
	// CodeMaskUnavailable: healing was asked for, but the backend takes no
	// mask; nothing was done.
	CodeMaskUnavailable = "mask_unavailable"
	// CodeExactBound: there are more ways over the prompt's end than exact
	// weighs; stable was done.
	CodeExactBound = "exact_bound"
	// CodeNothingBefore: all tokens of the prompt may change, but a model
	// needs one token to start from, so fewer or none were rolled back.
	CodeNothingBefore = "nothing_before"
	// CodeNotCanonical: the prompt's IDs are not the tokenizer's own
	// tokenization of their text; the mask goes by bytes alone.
	CodeNotCanonical = "prompt_not_canonical"
	// CodeUnproved: the vocabulary is of a kind in which less can be proved, so
	// more was rolled back; the mask goes by bytes alone.
	CodeUnproved = "boundary_unproved"
	// CodeLossy: the prompt's last bytes are not what its last tokens spell,
	// because no token stands for them or a normalizer rewrote them. What is
	// rolled back could not be produced again, so the prompt was not healed. A
	// loss further to the front does no harm: generation goes on after the
	// prompt.
	CodeLossy = "prompt_lossy"
	// CodeMaskEmpty: no token of the vocabulary can continue the replay.
	CodeMaskEmpty = "mask_empty"
)
