package gateway

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/toolcall"
)

// RecoverMode is what is done to answers.
type RecoverMode string

// The modes.
const (
	RecoverOff    RecoverMode = "off"    // nothing
	RecoverReport RecoverMode = "report" // nothing, but what would be is reported
	// RecoverRepair mends structure and text, and turns calls that were written as
	// text into calls.
	RecoverRepair RecoverMode = "repair"
	// RecoverFull also cuts loops, stopping the server, and has it go on with
	// answers that were cut.
	RecoverFull RecoverMode = "full"
)

// RecoverModes lists every mode.
func RecoverModes() []RecoverMode {
	return []RecoverMode{RecoverOff, RecoverReport, RecoverRepair, RecoverFull}
}

// ToolCallPolicy is what becomes of tool calls whose arguments are not as they
// should be. The receipt marks them whatever the policy.
type ToolCallPolicy string

// The policies.
const (
	// DropCalls leaves out calls that break off. A choice with such a call, or with
	// one whose arguments were mended, ends with finish reason length.
	DropCalls ToolCallPolicy = "drop"
	// MarkCalls gives calls that break off closed, with finish reason length too.
	MarkCalls ToolCallPolicy = "mark"
	// RepairCalls takes mended calls for the model's own; those that break off are
	// as with MarkCalls.
	RepairCalls ToolCallPolicy = "repair"
)

// FailurePolicy is what a client gets where nothing helped.
type FailurePolicy string

// The policies.
const (
	GivePartial FailurePolicy = "partial" // the answer as it is
	GiveError   FailurePolicy = "error"   // an error, with the receipt
)

// ContinueWay is how a server is asked to go on with a message.
type ContinueWay string

// The ways.
const (
	// ContinueAuto is ContinueFields for models in this process, ContinueLast for
	// servers of llama.cpp, and ContinueInstruct for others.
	ContinueAuto     ContinueWay = ""
	ContinueFields   ContinueWay = "final_message" // continue_final_message, as vLLM has it
	ContinueLast     ContinueWay = "last_message"  // a last message of the assistant is continued
	ContinuePrefix   ContinueWay = "prefix"        // "prefix": true on that message
	ContinueInstruct ContinueWay = "instruct"      // a message of the user asks for it
	ContinueNone     ContinueWay = "none"          // no way is known
)

// Recovery says how answers are recovered, and how far requests may change that:
// to any of the allowed modes, to some of the strategies, to less of what there are limits of.
// The zero value of a field is its default.
type Recovery struct {
	// Mode is what is done where a request does not say; "": RecoverOff.
	Mode RecoverMode
	// Allowed is what a request may ask for; nil: every mode.
	Allowed []RecoverMode
	// Strategies are those of [recovery.Strategies] that may be used; nil: all.
	Strategies []string

	// Attempts is how often the model may be asked to go on with one answer; 0: 3,
	// negative: never.
	Attempts int
	// MaxTokens is the most that the continuations of one answer may have together,
	// beyond the request's max_tokens; 0: 1024. With a reserve they have that and no
	// more. Requests that have a max_tokens and do not ask for recovery themselves
	// get no continuation without a reserve.
	MaxTokens int
	// ReservePercent is how much of a request's max_tokens is kept for
	// continuations in mode full; 0 or less: nothing.
	ReservePercent int

	Time     time.Duration // of work on one answer, asking not included; 0: 5 seconds
	MaxBytes int           // of an answer that is looked at, larger ones pass; 0: 8 MiB

	ToolCalls ToolCallPolicy // "": DropCalls
	OnFailure FailurePolicy  // "": GivePartial
	// Fallback is the name of the model that is asked where nothing helped; "": none.
	Fallback string
	Continue ContinueWay
}

const (
	recoverAttempts = 3
	recoverTokens   = 1024
	recoverTime     = 5 * time.Second
	recoverBytes    = 8 << 20
	maxAttempts     = 10
	maxReserve      = 90 // percent
	recoverFindings = 1000
	recoverEdits    = 100_000
	recoverDepth    = 10_000
	recoverCalls    = 1024 // of one choice, those behind them pass
)

func (r Recovery) withDefaults() Recovery {
	defaultOf(&r.Mode, RecoverOff)
	defaultOf(&r.Attempts, recoverAttempts)
	defaultOf(&r.MaxTokens, recoverTokens)
	defaultOf(&r.Time, recoverTime)
	defaultOf(&r.MaxBytes, recoverBytes)
	defaultOf(&r.ToolCalls, DropCalls)
	defaultOf(&r.OnFailure, GivePartial)
	r.Attempts, r.ReservePercent = max(r.Attempts, 0), max(r.ReservePercent, 0)
	return r
}

func defaultOf[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// check says what of a configuration cannot be.
func (r Recovery) check() error {
	for _, m := range append(slices.Clone(r.Allowed), r.Mode) {
		if m != "" && !slices.Contains(RecoverModes(), m) {
			return fmt.Errorf("no mode of recovery is %q", m)
		}
	}
	switch {
	case r.ToolCalls != "" && !slices.Contains([]ToolCallPolicy{DropCalls, MarkCalls, RepairCalls}, r.ToolCalls):
		return fmt.Errorf("no policy for tool calls is %q", r.ToolCalls)
	case r.OnFailure != "" && r.OnFailure != GivePartial && r.OnFailure != GiveError:
		return fmt.Errorf("no policy for failures is %q", r.OnFailure)
	case !slices.Contains([]ContinueWay{ContinueAuto, ContinueFields, ContinueLast, ContinuePrefix, ContinueInstruct, ContinueNone}, r.Continue):
		return fmt.Errorf("no way to go on is %q", r.Continue)
	case r.ReservePercent > maxReserve, r.Attempts > maxAttempts:
		return fmt.Errorf("a reserve of %d percent, or %d attempts, are too much: at most %d and %d", r.ReservePercent, r.Attempts, maxReserve, maxAttempts)
	}
	return recovery.CheckStrategies(r.Strategies)
}

// recovering is the recovery of one request's answer.
type recovering struct {
	Recovery
	model *model // nil: one that only the default upstream knows
	asked bool   // the request said so: it gets a receipt
	raw   bool   // and the texts of calls that were left out
	view  *wire.RecoverView
	chat  bool
	// first is how many tokens the first answer may have, left how many its
	// continuations; first is 0 where that is not known.
	first, left int
	options     recovery.Options
	schemas     map[string]*schema.Schema // of tools, once they were needed
	schemaNote  string                    // why the answer's own schema is not used
}

// recoversAt reports whether answers are recovered at a path.
func recoversAt(path string) bool { return path == completionsPath || path == chatPath }

// recoveryOf is what the operator says for a model, or for the default upstream.
func (g *Gateway) recoveryOf(m *model) Recovery {
	if m != nil {
		return m.Recovery.withDefaults()
	}
	return g.cfg.Recovery.withDefaults()
}

// recoveryFor reads how the answer to a request is to be recovered; nil: not at
// all. m is nil for what only the default upstream knows.
func (g *Gateway) recoveryFor(x *exchange, m *model, body []byte) (*recovering, error) {
	header, operator := x.r.Header.Get("X-Unfray-Recover"), g.recoveryOf(m)
	mayAsk := header != "" || bytes.Contains(body, []byte("recover")) || escapesLetters(body)
	if operator.Mode == RecoverOff && !mayAsk {
		return nil, nil
	}
	view, err := wire.DecodeRecover(body)
	if err != nil {
		return nil, err
	}
	r := &recovering{Recovery: operator, model: m, view: view, chat: x.r.URL.Path == chatPath}
	param, mode := "unfray.recover", ""
	if view.Options != nil {
		mode = view.Options.Mode
	}
	if view.Options == nil || mode == "" && header != "" {
		param, mode = "X-Unfray-Recover", header
	}
	if mode != "" {
		r.asked = true
		r.Mode = RecoverMode(mode)
		if err := operator.mayBe(param, r.Mode); err != nil {
			return nil, err
		}
	}
	if r.Mode == RecoverOff {
		return nil, nil
	}
	if !recoversAt(x.r.URL.Path) {
		if r.asked {
			return nil, badRequest(param, "%s: answers are recovered at %s and %s only; leave it out or send \"off\"", param, completionsPath, chatPath)
		}
		return nil, nil
	}
	if view.Echo {
		if r.asked {
			return nil, badRequest("echo", "echo: an answer that begins with its prompt is not recovered; leave out echo, or %s", param)
		}
		return nil, nil
	}
	if err := r.change(view.Options); err != nil {
		return nil, err
	}
	return r, r.prepare(g)
}

// mayBe refuses modes that there are not, or that are not allowed.
func (r Recovery) mayBe(param string, mode RecoverMode) error {
	all := RecoverModes()
	if !slices.Contains(all, mode) {
		return badRequest(param, "%s: no mode %.40q; choose one of %s", param, mode, joinWords(all))
	}
	if r.Allowed != nil && !slices.Contains(r.Allowed, mode) && mode != r.Mode {
		return badRequest(param, "%s: mode %q is not allowed for this model; choose one of %s", param, mode, joinWords(r.Allowed))
	}
	return nil
}

func joinWords[T ~string](words []T) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// change applies what a request says beside the mode, within the operator's
// limits.
func (r *recovering) change(o *wire.RecoverOptions) error {
	if o == nil {
		return nil
	}
	r.asked = true
	r.raw = o.Raw
	for _, n := range []struct {
		name  string
		value *int
		to    *int
		least int
	}{
		{"max_attempts", o.MaxAttempts, &r.Attempts, 0}, {"max_tokens", o.MaxTokens, &r.MaxTokens, 1},
	} {
		param := "unfray.recover." + n.name
		if n.value == nil {
			continue
		}
		if *n.value < n.least || *n.value > *n.to {
			return badRequest(param, "%s: %d is not between %d and %d", param, *n.value, n.least, *n.to)
		}
		*n.to = *n.value
	}
	if p := o.ReservePercent; p != nil {
		if *p < 0 || *p > maxReserve {
			return badRequest("unfray.recover.reserve_percent", "unfray.recover.reserve_percent: %d is not between 0 and %d", *p, maxReserve)
		}
		r.ReservePercent = *p
	}
	if err := recovery.CheckStrategies(o.Strategies); err != nil {
		return badRequest("unfray.recover.strategies", "unfray.recover.strategies: %v", err)
	}
	for _, name := range o.Strategies {
		if r.Strategies != nil && !slices.Contains(r.Strategies, name) {
			return badRequest("unfray.recover.strategies", "unfray.recover.strategies: %q is not allowed for this model; choose from %s", name, strings.Join(r.Strategies, ", "))
		}
	}
	if o.Strategies != nil {
		r.Strategies = o.Strategies
	}
	if err := oneWord("tool_calls", ToolCallPolicy(o.ToolCalls), &r.ToolCalls, DropCalls, MarkCalls, RepairCalls); err != nil {
		return err
	}
	return oneWord("on_failure", FailurePolicy(o.OnFailure), &r.OnFailure, GivePartial, GiveError)
}

func oneWord[T ~string](name string, word T, to *T, words ...T) error {
	if word == "" {
		return nil
	}
	if !slices.Contains(words, word) {
		return badRequest("unfray.recover."+name, "unfray.recover.%s: no %.40q; choose one of %s", name, word, joinWords(words))
	}
	*to = word
	return nil
}

// forms are those that a request may name.
var forms = []recovery.Form{"auto", recovery.Text, recovery.JSON, recovery.Code}

// prepare finds what the answer is to be.
func (r *recovering) prepare(g *Gateway) error {
	o := &r.options
	o.Budget = recovery.Budget{
		Bytes: r.MaxBytes, Edits: recoverEdits, Depth: recoverDepth, Time: r.Time, Attempts: max(r.Attempts, 1),
	}
	o.Form = recovery.Text
	source := r.view.Schema
	// A message that is continued holds the beginning of the answer, so that the
	// rest by itself is no JSON.
	if r.view.JSON && !r.continues() {
		o.Form = recovery.JSON
	} else {
		source = nil
	}
	own := r.view.Options
	if own == nil {
		own = &wire.RecoverOptions{}
	}
	if own.Form != "" {
		if !slices.Contains(forms, recovery.Form(own.Form)) {
			return badRequest("unfray.recover.form", "unfray.recover.form: no form %.40q; choose one of %s", own.Form, joinWords(forms))
		}
		if o.Form = recovery.Form(own.Form); own.Form == "auto" {
			o.Form = recovery.Auto
		}
	}
	o.Language = own.Language
	if own.Schema != nil {
		source = own.Schema
		if own.Form == "" {
			o.Form = recovery.JSON
		}
	}
	if source != nil && o.Form != recovery.Text && o.Form != recovery.Code {
		s, err := schema.Parse(source, schema.Options{})
		switch {
		case err != nil && own.Schema != nil:
			return badRequest("unfray.recover.schema", "unfray.recover.schema: %v", err)
		case err != nil:
			r.schemaNote = err.Error() // the server has accepted it: it knows more
		}
		o.Schema = s
	}
	if r.chat {
		for _, t := range r.view.Tools {
			o.Tools = append(o.Tools, toolcall.Tool{Name: t.Name, Parameters: t.Parameters})
		}
	}
	o.Strategies = r.strategies()
	r.budget(g)
	return nil
}

// name is the model's in metrics.
func (r *recovering) name() string {
	if r.model == nil {
		return ""
	}
	return r.model.Name
}

// continues reports whether the answer goes on with the request's last message.
func (r *recovering) continues() bool {
	if !r.view.Continues {
		return false
	}
	return or(r.view.ContinueField, r.model != nil && r.model.Native && r.model.Upstream != nil)
}

// strategies are those of the mode that may be used.
func (r *recovering) strategies() []string {
	var out []string
	for _, name := range recovery.Strategies() {
		switch {
		case r.Strategies != nil && !slices.Contains(r.Strategies, name):
		case name == recovery.Own:
		case name == recovery.Loops && r.Mode == RecoverRepair:
		case name == recovery.Continue && (r.Mode != RecoverFull || r.Attempts == 0):
		case name == recovery.Fall && (r.Mode == RecoverReport || r.Fallback == ""):
		default:
			out = append(out, name)
		}
	}
	return out
}

// budget divides the tokens between the answer and its continuations.
func (r *recovering) budget(g *Gateway) {
	most, limits := math.MaxInt, r.model
	if limits == nil {
		limits = g.lowestOf(g.cfg.Default)
	}
	if limits != nil && limits.MaxTokens > 0 {
		most = limits.MaxTokens
	}
	r.first, r.left = r.view.MaxTokens, r.MaxTokens
	if r.first == 0 && most < math.MaxInt {
		r.first = most
	}
	if r.reserves() {
		kept := r.view.MaxTokens * r.ReservePercent / 100
		r.first, r.left = r.view.MaxTokens-kept, kept
	}
	// A client that knows nothing of recovery gets no more than it has asked for.
	if !r.asked && r.view.MaxTokens > 0 && !r.reserves() {
		r.left = 0
	}
	if r.first > 0 && most < math.MaxInt {
		r.left = min(r.left, max(most-r.first, 0))
	}
}

// reserves reports whether a part of the request's tokens is kept for
// continuations.
func (r *recovering) reserves() bool {
	return r.ReservePercent > 0 && r.view.MaxTokens*r.ReservePercent/100 > 0 && slices.Contains(r.options.Strategies, recovery.Continue)
}
