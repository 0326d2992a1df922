package toolcall

import (
	"encoding/json"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// Format names the form that a family of models gives its calls.
type Format string

// The formats.
const (
	// Hermes is <tool_call>{"name":…,"arguments":…}</tool_call>, also of Qwen 2.5 and 3;
	// Nemotron's tag is <TOOLCALL>, Jamba's <tool_calls>.
	Hermes Format = "hermes"
	// Qwen3Coder is <function=NAME><parameter=KEY>VALUE</parameter></function>, in
	// <tool_call> or in the tags of Seed-OSS.
	Qwen3Coder Format = "qwen3_coder"
	// Llama3JSON is {"name":…,"parameters":…} behind <|python_tag|> or bare, several
	// separated by semicolons; and NAME.call(…) behind that tag.
	Llama3JSON Format = "llama3_json"
	// Pythonic is [f(x=1), g(y="a")] of Llama 3.2 and 4, of LFM2 between its markers.
	Pythonic Format = "pythonic"
	// Mistral is [TOOL_CALLS] before an array of calls, or before NAME[ARGS]{…}.
	Mistral Format = "mistral"
	// DeepSeek is that of V3, R1 (with a fence) and V3.1 (without).
	DeepSeek Format = "deepseek"
	// Kimi is that of Kimi K2.
	Kimi Format = "kimi_k2"
	// Granite is <|tool_call|> or <tool_call> before an array, and <function_call>.
	Granite Format = "granite"
	// Functionary is >>>NAME, a new line and JSON; and <function=NAME>{…}</function>.
	Functionary Format = "functionary"
	// CommandR is <|START_ACTION|> before an array with tool_name and parameters, and
	// "Action:" before the same in a fence.
	CommandR Format = "command_r"
	// GLM is <tool_call>NAME with <arg_key> and <arg_value>, of GLM 4.5 and later.
	GLM Format = "glm"
	// Harmony is <|channel|>commentary to=functions.NAME … <|message|>{…}<|call|>, of gpt-oss.
	Harmony Format = "harmony"
	// Invoke is <invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>, with
	// or without a prefix, also of MiniMax M2 and DeepSeek V3.2.
	Invoke Format = "invoke"
	// OpenAI is an OpenAI message as text: {"tool_calls":[…]} or {"function_call":…}.
	OpenAI Format = "openai"
)

var formats = []Format{Hermes, Qwen3Coder, Llama3JSON, Pythonic, Mistral, DeepSeek, Kimi, Granite, Functionary, CommandR, GLM, Harmony, Invoke, OpenAI}

// Formats returns all formats.
func Formats() []Format { return slices.Clone(formats) }

// Tool is a function that the model may call.
type Tool struct {
	Name string
	// Parameters is the JSON Schema of its arguments; nil: unknown.
	Parameters json.RawMessage
}

// Options says how calls are read. The zero value is right for most.
type Options struct {
	// Tools are the functions that the request offered. With them other names are
	// problems, forms without a marker are read, and the parameters' types say how
	// untyped values are meant.
	Tools []Tool
	// Formats are those to read; nil: all. A form without a marker counts only if
	// Tools names the function, or if its format is listed here and there are no tools.
	Formats []Format
	// JSON says how arguments are repaired, with the limits of each of them. MaxDepth 0
	// is 1,000.
	JSON jsonrepair.Options
	// MaxCalls is how many calls are read, behind which all is text; 0: 1,024. So it is
	// behind eight times as many beginnings of calls.
	MaxCalls int
	// MaxHold is how many bytes of a form without a marker are kept until it is clear
	// whether it is a call; 0: 64 KiB. A longer one is text.
	MaxHold int
}

const (
	defaultCalls = 1024
	defaultHold  = 64 << 10
	defaultDepth = 1000
	maxFindings  = 1000
)

// Problem says why a call must not be executed as it is.
type Problem string

// The problems. A call without one may still have a Repair, which who executes it
// should know of.
const (
	UnknownName Problem = "unknown_name" // no tool is called that
	NoObject    Problem = "no_object"    // the arguments are no object
	Truncated   Problem = "truncated"    // it breaks off
	Malformed   Problem = "malformed"    // the arguments cannot be read
)

// Call is a call that was found.
type Call struct {
	Format Format
	Name   string
	// Arguments is a strict JSON object. Of a call that breaks off it holds what
	// was there, closed; it is nil where no object could be made out.
	Arguments []byte
	// ID is the one that the model wrote, if any.
	ID string
	// Start and End are bytes of the text.
	Start, End int
	// Complete says that the call and its arguments have ended.
	Complete bool
	// Repair is the receipt for the arguments' JSON, or for the JSON around them;
	// nil: it was strict. A stream's has neither text nor edits, and neither has one for
	// arguments in Python.
	Repair *jsonrepair.Result
	// RepairAt is where the document of Repair begins, in bytes of the text; -1 where
	// it was the content of a string.
	RepairAt int
	Problem  Problem
}

// Outcome tells what may be done with the call: Valid is to be executed as it is, where
// the name is known; Repaired and Ambiguous were not written so; Truncated breaks
// off; Failed has no arguments.
func (c *Call) Outcome() jsonrepair.Outcome {
	switch {
	case c.Problem == NoObject || c.Problem == Malformed:
		return jsonrepair.Failed
	case !c.Complete:
		return jsonrepair.Truncated
	case c.Repair == nil:
		return jsonrepair.Valid
	case c.Repair.Outcome == jsonrepair.Ambiguous:
		return jsonrepair.Ambiguous
	}
	return jsonrepair.Repaired // brackets that were missing before the end marker among it
}

// Result is what was found in a text.
type Result struct {
	Calls []Call
	// Rest is the text without the calls; where there are none it may be the text itself.
	Rest []byte
	// Edits are the removals that make Rest of the text, in order.
	Edits []jsonrepair.Edit
	// Findings are what was mended in names or seen and left alone, the first 1,000.
	Findings []jsonrepair.Finding
}

// withDefaults puts in the limits.
func (o Options) withDefaults() Options {
	if o.MaxCalls <= 0 {
		o.MaxCalls = defaultCalls
	}
	if o.MaxHold <= 0 {
		o.MaxHold = defaultHold
	}
	if o.JSON.MaxDepth <= 0 {
		o.JSON.MaxDepth = defaultDepth
	}
	return o
}

// Find finds the calls in a text, from which the model's reasoning has been taken.
func Find(text []byte, o Options) *Result {
	m := newMachine(o)
	if m.absent(text) {
		return &Result{Rest: text}
	}
	m.whole = true
	m.in, m.eof = text, true
	m.run()
	r := &Result{Rest: m.out, Findings: m.findings}
	if r.Rest == nil {
		r.Rest = []byte{}
	}
	for _, s := range m.spans {
		r.Edits = append(r.Edits, jsonrepair.Edit{Kind: s.kind, Offset: s.from, Before: string(text[s.from:s.to])})
	}
	for _, c := range m.calls {
		c.Arguments = c.args
		r.Calls = append(r.Calls, c.Call)
	}
	return r
}
