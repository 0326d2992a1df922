package loop

import "math/bits"

// Kind says what kind of repetition a [Loop] is.
type Kind string

// The kinds.
const (
	Exact        Kind = "exact"         // a unit of several characters, byte for byte
	CharacterRun Kind = "character_run" // one character
	Templated    Kind = "templated"     // phrases that have all been there before, with other numbers or in another order
)

// Context says what kind of text a loop is in. It decides how much repetition is
// too much.
type Context string

// The contexts.
const (
	Prose     Context = "prose"
	List      Context = "list"
	Table     Context = "table"
	Code      Context = "code" // code, markup, logs; everything in a fence
	Numbers   Context = "numbers"
	JSON      Context = "json"
	Reasoning Context = "reasoning" // prose or a list between <think> and </think>
)

// Loop is a repetition.
type Loop struct {
	Kind    Kind    `json:"kind"`
	Context Context `json:"context"`

	// Start and End delimit all that is repeated, with its first copy and a last one
	// that may be incomplete; in bytes of the text. End grows while the loop goes on.
	Start int `json:"start"`
	End   int `json:"end"`
	// Period is the length of the unit in bytes, and Copies how many whole ones there
	// are. Both are 0 for [Templated].
	Period int `json:"period"`
	Copies int `json:"copies"`
	// Unit is the first copy, from Start on; nil for [Templated].
	Unit []byte `json:"unit"`

	// Cut is where to cut the text, in bytes of it: behind the first whole unit, at the
	// end of a paragraph, line, sentence or word if there is one in the next, and
	// never inside a character. What is to be removed is [Cut, End). It is -1 for what
	// is only reported: a templated loop, and any in tool arguments.
	Cut int `json:"cut"`
	// Stop says that the text will not end by itself, so that who produces it should be
	// stopped.
	Stop bool `json:"stop"`
	// Broken says that the text went on with something else at End.
	Broken bool `json:"broken"`
}

// Options says what is known of the text. The zero value is right for most.
type Options struct {
	// Context, if it is known: [Reasoning] where the text is a model's reasoning without
	// its tags; any other replaces the detector's own judgement. Empty: judged by the
	// text.
	Context Context
	// Asked says that the user asked for repetition ("print ha 2,000 times"). Only what
	// repeats for 40,000 bytes is a loop then.
	Asked bool
	// ToolArguments says that the text is the arguments of a tool call. They are never
	// cut; Stop is set only where a loop covers ToolBound bytes.
	ToolArguments bool
	// ToolBound: 0 means 32 KiB.
	ToolBound int
	// MaxPeriod is the longest unit that is looked for, in bytes; 0 and more than 16 KiB
	// mean 16 KiB.
	MaxPeriod int
}

const (
	maxPeriod = 16 << 10
	window    = 64 << 10 // bytes of the tail that are kept and compared
	toolBound = 32 << 10
)

func (o Options) maxPeriod() int {
	if o.MaxPeriod <= 0 || o.MaxPeriod > maxPeriod {
		return maxPeriod
	}
	return o.MaxPeriod
}

func (o Options) toolBound() int {
	if o.ToolBound <= 0 {
		return toolBound
	}
	return o.ToolBound
}

// Find returns the first loop of a text, as a [Detector] that has read it tells; nil
// if there is none.
func Find(text []byte, o Options) *Loop {
	if len(text) < minBytes {
		return nil
	}
	// The size of the table has no influence on what is found.
	d := newDetector(o, min(seenBits, bits.Len(uint(len(text)))))
	d.words.off = len(text) < staleLimit*stretch
	d.Write(text)
	return d.Close()
}
