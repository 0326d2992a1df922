package recovery

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/extract"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/textrepair"
	"github.com/unfray/unfray/recovery/toolcall"
)

// Call is a call of a tool that was written into the text.
type Call struct {
	toolcall.Call
	// Repaired says that name or arguments are not as the model wrote them.
	Repaired bool
	// Coercions are what was changed to fit the tool's parameters, and Violations
	// where the arguments do not.
	Coercions  []schema.Coercion
	Violations []schema.Violation
}

// calls takes tool calls out of the text.
func (a *attempt) calls() (Verdict, string) {
	if len(a.o.Tools) == 0 && !a.o.AnyTool {
		return Nothing, "no tools were offered"
	}
	r := a.findCalls()
	m := newMapper(a.edits)
	cut := 0
	for _, found := range r.Calls {
		c := Call{Call: found, Repaired: found.Repair != nil || mended(r.Findings, found)}
		var n int
		c.Start, n = m.span(found.Start, found.End-found.Start)
		c.End = c.Start + n
		if !c.Complete {
			cut++
		}
		a.checkCall(&c)
		a.res.Calls = append(a.res.Calls, c)
	}
	a.find(r.Findings)
	if len(r.Calls) == 0 {
		return Nothing, "it calls no tool"
	}
	a.apply(tagged(Calls, r.Edits))
	why := counted(len(r.Calls), "call")
	if cut > 0 {
		why += fmt.Sprintf(", %d of them cut", cut)
	}
	// Who calls a tool gives no other answer yet.
	a.form = Text
	return Changed, why
}

// findCalls looks for calls, also in a fence that is all of the answer, and in JSON of no
// told format that ends it.
func (a *attempt) findCalls() *toolcall.Result {
	o := toolcall.Options{Tools: a.o.Tools, JSON: a.jsonOptions()}
	r := toolcall.Find(a.text, o)
	if len(r.Calls) > 0 || len(a.o.Tools) == 0 {
		return r
	}
	found, _ := extract.Candidates(a.text, a.o.answerOnly())
	if len(found) != 1 {
		return r
	}
	c := found[0]
	from, to := c.Start, c.End
	switch {
	case c.Where == extract.InFence && a.isAllFence(c):
		from, to = 0, len(a.text)
	case c.Where == extract.InProse && c.Closed && a.onItsOwn(c) && len(bytes.TrimSpace(a.text[to:])) == 0:
	default:
		return r
	}
	inside := toolcall.Find(c.Text, o)
	if len(inside.Calls) == 0 || len(bytes.TrimSpace(inside.Rest)) > 0 {
		return r
	}
	for i := range inside.Calls {
		inside.Calls[i].Start += c.Start
		inside.Calls[i].End += c.Start
	}
	for i := range inside.Findings {
		inside.Findings[i].Offset += c.Start
	}
	inside.Edits = []jsonrepair.Edit{{Kind: toolcall.ToolCall, Offset: from, Before: string(a.text[from:to])}}
	return inside
}

// isAllFence reports whether nothing is around the fence that holds a candidate.
func (a *attempt) isAllFence(c extract.Candidate) bool {
	for _, s := range extract.Segments(a.text, a.o.answerOnly()) {
		inside := s.Start <= c.Start && c.End <= s.End
		if inside && s.Prefixed() || !inside && len(bytes.TrimSpace(a.text[s.Start:s.End])) > 0 {
			return false
		}
	}
	return true
}

// mended reports whether a name or the arguments of a call were changed otherwise
// than as JSON.
func mended(findings []jsonrepair.Finding, c toolcall.Call) bool {
	kinds := []jsonrepair.Kind{
		toolcall.DoubledName, toolcall.EscapedName, toolcall.QualifiedName, toolcall.DoubleEncoded,
		toolcall.Placeholder, toolcall.UnnamedArgument,
	}
	return slices.ContainsFunc(findings, func(f jsonrepair.Finding) bool {
		return f.Offset >= c.Start && f.Offset < c.End && slices.Contains(kinds, f.Kind)
	})
}

// checkCall fits the arguments of a call to the tool's parameters, and decodes
// entities in commands.
func (a *attempt) checkCall(c *Call) {
	if c.Arguments == nil || !c.Complete {
		return
	}
	if a.o.uses(Schema) {
		a.fitCall(c)
	}
	if !a.o.uses(Mend) {
		return
	}
	args, changed := mendCommands(c.Arguments, a.o.Text)
	if changed {
		c.Arguments, c.Repaired = args, true
	}
}

func (a *attempt) fitCall(c *Call) {
	parameters := a.o.parameters(c.Name)
	if parameters == nil {
		return
	}
	fit := parameters.Fit([]schema.Reading{{Text: c.Arguments}}, a.o.Fit)
	switch fit.Outcome {
	case Repaired:
		c.Arguments, c.Coercions, c.Repaired = fit.Value, fit.Coercions, true
	case Failed, Ambiguous:
		c.Violations = parameters.Validate(c.Arguments)
		if c.Problem == "" {
			c.Problem = Unfit
		}
	}
}

// Unfit is the problem of a call whose arguments do not fit the tool's parameters.
const Unfit toolcall.Problem = "unfit"

// parameters returns the schema of a tool's arguments, nil if there is none that
// can be used.
func (o *Options) parameters(name string) *schema.Schema {
	for _, t := range o.Tools {
		if t.Name != name || len(t.Parameters) == 0 {
			continue
		}
		if s, err := schema.Parse(t.Parameters, schema.Options{}); err == nil {
			return s
		}
	}
	return nil
}

// commandKeys are names of arguments that are run, in which an entity is never
// meant: models of some families write && as &amp;&amp; there.
var commandKeys = []string{"command", "cmd", "commands", "script", "shell", "bash", "code", "sql", "query", "expression"}

// mendCommands decodes entities in those arguments that are commands.
func mendCommands(args []byte, o textrepair.Options) (out []byte, changed bool) {
	var view jsonrepair.View
	view.Write(args)
	view.Close()
	shift := 0
	out = args
	for e := range view.Events() {
		if e.Kind != jsonrepair.StringEnd || e.Raw == nil || !isCommand(e.Path) {
			continue
		}
		at := e.Offset + shift
		value := out[at : at+len(e.Raw)]
		r := textrepair.RepairJSON(value, textrepair.Options{Entities: o.Entities, Leave: allBut(textrepair.Entity)})
		if r.Err != nil || len(r.Edits) == 0 {
			continue
		}
		shift += len(r.Text) - len(value)
		out = slices.Concat(out[:at], r.Text, out[at+len(value):])
		changed = true
	}
	return out, changed
}

// isCommand reports whether a JSON Pointer leads to a command, or to an item of one.
func isCommand(path []byte) bool {
	parts := strings.Split(string(path), "/")
	for i := len(parts) - 1; i > 0; i-- {
		if !isIndex(parts[i]) {
			return slices.Contains(commandKeys, strings.ToLower(parts[i]))
		}
	}
	return false
}

func isIndex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// allBut lists the kinds of edits of textrepair without one.
func allBut(kind jsonrepair.Kind) []jsonrepair.Kind {
	all := []jsonrepair.Kind{
		textrepair.Mojibake, textrepair.Entity, textrepair.Surrogate, textrepair.C1Control, textrepair.SingleByte,
		textrepair.CutCharacter, textrepair.Control, textrepair.TerminalEscape, textrepair.ByteOrderMark,
		textrepair.ZeroWidth, textrepair.BidiControl, textrepair.TokenMark, textrepair.ByteToken, textrepair.LineEnd,
	}
	return slices.DeleteFunc(all, func(k jsonrepair.Kind) bool { return k == kind })
}
