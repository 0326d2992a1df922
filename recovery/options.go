package recovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/continuation"
	"github.com/unfray/unfray/recovery/extract"
	"github.com/unfray/unfray/recovery/loop"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/textrepair"
	"github.com/unfray/unfray/recovery/toolcall"
)

// Options says what an answer is to be and what may be done to make it that. The
// zero value is right for most.
type Options struct {
	Form Form
	// Schema is what the JSON is to fit; nil: any JSON. With a schema the form Auto
	// is JSON.
	Schema *schema.Schema
	// Tools are the functions that the model was offered. Calls that the answer
	// makes of them are taken out of the text.
	Tools []toolcall.Tool
	// AnyTool also takes out calls of tools that are not known, in formats that
	// cannot be anything else.
	AnyTool bool
	// Language is what a code answer is written in; "": as its fence says.
	Language string

	// FinishReason is why the model ended, as its server says; "": not known.
	FinishReason string
	// Tokens is how long the answer is, and MaxTokens how long it was allowed to
	// be; 0: not known. An answer that is as long as allowed is taken to be cut.
	Tokens, MaxTokens int

	// Strategies are the names of those that may be used; nil: all. The order is
	// always that of [Strategies].
	Strategies []string
	// Custom strategies are tried after those of this package and before the
	// model is asked again.
	Custom []Strategy
	Budget Budget

	// Ask asks the model to go on with an answer that was cut; nil: it is not
	// asked. Seam says what its server can do.
	Ask  continuation.Ask
	Seam continuation.Options
	// Fallback is called when there is no acceptable result; nil: there is none.
	Fallback Fallback

	// Extract says what counts as reasoning.
	Extract extract.Options
	// JSON says how JSON is repaired; its limits are those of Budget.
	JSON jsonrepair.Options
	// Text says what is mended in text, and in strings of JSON that has to be
	// repaired anyway.
	Text textrepair.Options
	// Strings also mends the strings of JSON that is valid.
	Strings bool
	// Loop says what counts as a loop.
	Loop loop.Options
	// Fit says which values may be changed to fit the schema.
	Fit schema.FitOptions
}

// Strategy is one of the caller's own.
type Strategy struct {
	Name string
	// Try returns the text that it makes of an answer that is not acceptable yet,
	// nil if it has none, and in words what it did.
	Try func(text []byte, form Form) (out []byte, why string, err error)
}

// Names of strategies, in the order in which they are tried.
const (
	Strict    = "strict"    // the untouched text is valid for the form
	Reasoning = "reasoning" // what the model thought is kept apart
	Calls     = "calls"     // tool calls in text become calls
	Locate    = "locate"    // JSON or code in fences and prose
	Notation  = "notation"  // YAML and XML-ish answers where JSON was asked for
	Repair    = "repair"    // syntax of JSON
	Schema    = "schema"    // the reading that fits, values of the right type
	Mend      = "text"      // broken characters, entities, control characters
	Loops     = "loop"      // a tail that repeats is cut
	Structure = "structure" // code is checked, a cut fence or block is closed
	Own       = "custom"    // the caller's
	Continue  = "continue"  // the model is asked to go on
	Fall      = "fallback"  // another answer is had
)

// Strategies lists the names of all strategies in the order in which they are
// tried, which is that of their cost.
func Strategies() []string {
	out := make([]string, len(strategies))
	for i, s := range strategies {
		out[i] = s.name
	}
	return out
}

// CheckStrategies says which of names is none of [Strategies].
func CheckStrategies(names []string) error {
	all := Strategies()
	for _, n := range names {
		if !slices.Contains(all, n) {
			return fmt.Errorf("recovery: no strategy %.40q; there are %s", n, strings.Join(all, ", "))
		}
	}
	return nil
}

func (o *Options) uses(name string) bool {
	return o.Strategies == nil || slices.Contains(o.Strategies, name)
}

// withDefaults returns the budget with what was left out.
func (b Budget) withDefaults() Budget {
	b.Bytes = limit(b.Bytes, 16<<20)
	b.Edits = limit(b.Edits, 100_000)
	b.Depth = limit(b.Depth, 10_000)
	b.Time = limit(b.Time, 10*time.Second)
	b.Attempts = limit(b.Attempts, 3)
	return b
}

// limit returns n, fallback for 0 and 0, which is no limit, for less.
func limit[N ~int | ~int64](n, fallback N) N {
	switch {
	case n == 0:
		return fallback
	case n < 0:
		return 0
	}
	return n
}

// ended reports whether the answer is known to be whole.
func (o *Options) ended() bool {
	switch o.FinishReason {
	case "stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "eos", "eos_token":
		return o.MaxTokens == 0 || o.Tokens < o.MaxTokens
	}
	return false
}

// cut reports whether the answer is known to break off.
func (o *Options) cut() bool {
	switch o.FinishReason {
	case "length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded":
		return true
	}
	return o.MaxTokens > 0 && o.Tokens >= o.MaxTokens
}

// form is what the answer is to be.
func (o *Options) form() Form {
	if o.Form == Auto && o.Schema != nil {
		return JSON
	}
	return o.Form
}
