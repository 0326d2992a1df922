package recovery

import "github.com/unfray/unfray/jsonrepair"

// Kinds of edits of this package's own strategies. Those of the parts are theirs:
// jsonrepair, textrepair, schema, code and toolcall.
const (
	BareValue     jsonrepair.Kind = "bare_value"     // an answer that is one value without quotation marks
	RepeatedTail  jsonrepair.Kind = "repeated_tail"  // a loop, cut to one copy
	Continued     jsonrepair.Kind = "continued"      // what the model said when asked to go on
	AnotherAnswer jsonrepair.Kind = "another_answer" // what the fallback gave instead
	CustomText    jsonrepair.Kind = "custom"         // what a strategy of the caller made of it
	Streamed      jsonrepair.Kind = "streamed"       // changed while it was streamed, where no finer edit can be told
)

// Kinds of findings.
const (
	OverBudget  jsonrepair.Kind = "over_budget"  // the rest was not looked at
	GivenBefore jsonrepair.Kind = "given_before" // a stream could not take back what the whole answer asks for
)
