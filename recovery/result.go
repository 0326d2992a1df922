package recovery

import (
	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/code"
	"github.com/unfray/unfray/recovery/continuation"
	"github.com/unfray/unfray/recovery/loop"
	"github.com/unfray/unfray/recovery/schema"
)

// Result is an answer with the receipt for what was done to it.
type Result struct {
	Outcome Outcome
	Form    Form // what the answer was taken for; never Auto
	// Text is the answer, the input itself where the outcome is Valid. For the
	// form JSON it is strict JSON, nil where there is none.
	Text []byte
	// Reasoning is what the model thought before it answered, without its tags.
	Reasoning []byte
	// Calls are those of tools that were written into the text.
	Calls []Call

	// Edits are the changes that make Text of the input, in order. See [Apply].
	Edits []Edit
	// Coercions are the values that were changed to fit the schema.
	Coercions []schema.Coercion
	// Findings are places that were seen and left as they are. Offset is in the
	// input.
	Findings []jsonrepair.Finding
	// Open names what had not ended where the answer breaks off.
	Open []jsonrepair.Open
	// Readings are the ways to read an ambiguous answer, the likeliest first.
	Readings []jsonrepair.Reading
	// Violations say where the best value does not fit the schema.
	Violations []schema.Violation
	// Incomplete are the required members, as JSON Pointers, that an answer that breaks
	// off does not have, or not whole.
	Incomplete []string
	// Loop is the repetition that was found, nil if there was none.
	Loop *loop.Loop
	// Code is what the check of a code answer found.
	Code *code.Report
	// Continuation tells of asking the model to go on; nil if it was not asked.
	Continuation *continuation.Result

	// Trace lists the strategies that were tried, in order.
	Trace []Step
	// Err says why the outcome is Failed.
	Err *Error
}

// Report is the JSON form of a [Result].
type Report struct {
	ID      jsonrepair.Raw `json:"id,omitempty"`
	Outcome string         `json:"outcome"`
	Form    Form           `json:"form"`
	// Text is nil where there is none. Where it is not valid UTF-8, Bytes holds it
	// instead, in base64.
	Text  *string `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"`
	// Value is Text as a part of the report's own JSON, for the form JSON.
	Value        jsonrepair.Raw             `json:"value,omitempty"`
	Reasoning    string                     `json:"reasoning,omitempty"`
	Calls        []ReportCall               `json:"calls,omitempty"`
	Edits        []ReportEdit               `json:"edits"` // never nil
	Coercions    []schema.Coercion          `json:"coercions,omitempty"`
	Open         []jsonrepair.Open          `json:"open,omitempty"`
	Readings     []jsonrepair.ReportReading `json:"readings,omitempty"`
	Findings     []jsonrepair.Finding       `json:"findings,omitempty"`
	Violations   []schema.Violation         `json:"violations,omitempty"`
	Incomplete   []string                   `json:"incomplete,omitempty"`
	Loop         *ReportLoop                `json:"loop,omitempty"`
	Code         *ReportCode                `json:"code,omitempty"`
	Continuation *ReportContinuation        `json:"continuation,omitempty"`
	Trace        []Step                     `json:"trace,omitempty"`
	Error        *jsonrepair.ReportError    `json:"error,omitempty"`
}

// ReportEdit is an [Edit]. Where Before is not valid UTF-8, JSON shows U+FFFD in
// it and BeforeBytes, in base64, is exact.
type ReportEdit struct {
	Edit
	BeforeBytes []byte `json:"before_bytes,omitempty"`
}

// ReportCall is a call of a tool.
type ReportCall struct {
	ID        string         `json:"id,omitempty"`
	Name      string         `json:"name"`
	Arguments jsonrepair.Raw `json:"arguments,omitempty"`
	// Complete is false for a call that breaks off: it must not be executed.
	Complete bool `json:"complete"`
	// Repaired says that the arguments are not as the model wrote them.
	Repaired   bool               `json:"repaired,omitempty"`
	Problem    string             `json:"problem,omitempty"`
	Coercions  []schema.Coercion  `json:"coercions,omitempty"`
	Violations []schema.Violation `json:"violations,omitempty"`
	Format     string             `json:"format"`
	Start      int                `json:"start"` // bytes of input
	End        int                `json:"end"`
}

// ReportLoop is a repetition.
type ReportLoop struct {
	Kind   string `json:"kind"`
	Start  int    `json:"start"` // bytes of input
	End    int    `json:"end"`
	Period int    `json:"period"` // bytes
	Copies int    `json:"copies"`
	Unit   string `json:"unit"`
	Cut    bool   `json:"cut"`
}

// ReportCode says whether code parses.
type ReportCode struct {
	Language string `json:"language"`
	Status   string `json:"status"`
	Parser   string `json:"parser,omitempty"`
}

// ReportContinuation tells of asking the model to go on.
type ReportContinuation struct {
	Complete bool                   `json:"complete"`
	Added    int                    `json:"added"` // bytes
	Attempts []continuation.Attempt `json:"attempts"`
}
