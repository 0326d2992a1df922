package continuation

import "fmt"

// Reason says why a text was not continued, or an answer not joined to it. Scripts
// may rely on the values.
type Reason string

// The reasons.
const (
	// Of a text that is not continued.
	EmptyText     Reason = "empty"      // there is nothing to go on with
	InToolCall    Reason = "tool_call"  // the text ends inside a tool call
	InReasoning   Reason = "reasoning"  // the text ends inside the model's reasoning
	Filtered      Reason = "filtered"   // the upstream withheld the rest
	MalformedText Reason = "malformed"  // the text is broken, not cut
	OutOfAttempts Reason = "attempts"   // all attempts were used
	OutOfTokens   Reason = "tokens"     // the budget of tokens was used
	AskFailed     Reason = "ask_failed" // the upstream's error is the cause

	// Of an answer that is not joined.
	Mismatch   Reason = "mismatch"    // the bytes cut off were not produced again
	NoOverlap  Reason = "no_overlap"  // nothing shows where the answer begins
	Restart    Reason = "restart"     // it begins at the text's beginning
	Ambiguous  Reason = "ambiguous"   // it overlaps in several ways
	Structure  Reason = "structure"   // joined, it would break the JSON at the seam
	Repetition Reason = "repetition"  // what it adds was there before
	NothingNew Reason = "nothing_new" // it adds nothing
)

var causes = map[Reason]string{
	EmptyText:     "there is no text to go on with; ask again from the start",
	InToolCall:    "the text ends inside a tool call; ask for the call again, or allow this by AllowToolCall",
	InReasoning:   "the text ends inside the model's reasoning, which no upstream continues from text; ask again with more tokens",
	Filtered:      "the upstream withheld the rest by its content filter",
	MalformedText: "the text is malformed and does not break off; repair it",
	OutOfAttempts: "the text still breaks off after all attempts; raise Attempts",
	OutOfTokens:   "the text still breaks off and the budget of tokens is used up; raise MaxTokens",
	AskFailed:     "the upstream could not be asked",
	Mismatch:      "the answer does not produce again what was cut off, so that nothing shows that it goes on there",
	NoOverlap:     "the answer has no verified overlap with the end of the text",
	Restart:       "the answer starts the text again, in other words",
	Ambiguous:     "the answer overlaps the end of the text in several ways",
	Structure:     "joined, text and answer would not be JSON any more",
	Repetition:    "the answer repeats what the text already says",
	NothingNew:    "the answer adds nothing to the text",
}

// SeamError says why a text was not continued. The text is as it was.
type SeamError struct {
	Reason Reason
	// Offset is where it shows: in bytes of the answer where one was refused, else
	// of the text.
	Offset int
	// Overlap is how many bytes of the answer had been found to repeat the text's
	// end before it was refused.
	Overlap int
	Err     error // cause, may be nil
}

func (e *SeamError) Error() string {
	s := fmt.Sprintf("continuation: byte %d: %s", e.Offset, causes[e.Reason])
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *SeamError) Unwrap() error { return e.Err }
