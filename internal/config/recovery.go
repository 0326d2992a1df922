package config

import (
	"slices"
	"time"

	"github.com/unfray/unfray/recovery"
)

// RecoverMode is what is done to answers.
type RecoverMode string

// The modes.
const (
	RecoverOff    RecoverMode = "off"    // nothing
	RecoverReport RecoverMode = "report" // nothing, but what would be is reported
	RecoverRepair RecoverMode = "repair" // structure, text and calls
	RecoverFull   RecoverMode = "full"   // loops are cut and cut answers continued too
)

// RecoverModes lists every mode.
func RecoverModes() []RecoverMode {
	return []RecoverMode{RecoverOff, RecoverReport, RecoverRepair, RecoverFull}
}

// Recovery says how answers are recovered. The zero value of a field is its
// default.
type Recovery struct {
	Mode  RecoverMode   // where a request does not say; "": off
	Allow []RecoverMode // what a request may ask for; nil: every mode
	// Strategies are those that may be used; nil: all.
	Strategies []string

	Attempts       int           // of asking the model to go on; negative: none
	MaxTokens      int           // of all continuations of one answer
	ReservePercent int           // of a request's max_tokens, kept for continuations
	Time           time.Duration // of work on one answer
	Bytes          int64         // of one answer

	ToolCalls ToolCalls
	OnFailure OnFailure
	// Fallback is the model that is asked where nothing helped; "": none.
	Fallback string
	Continue Continue
}

// ToolCalls is what becomes of calls whose arguments are not as they should be.
type ToolCalls string

// The policies.
const (
	DropCalls   ToolCalls = "drop"   // calls that break off are left out
	MarkCalls   ToolCalls = "mark"   // they are closed; the choice does not end as one with calls
	RepairCalls ToolCalls = "repair" // those that were mended count as the model's own
)

// OnFailure is what a client gets where nothing helped.
type OnFailure string

// The answers.
const (
	Partial OnFailure = "partial" // the answer as it is
	Fail    OnFailure = "error"
)

// Continue is how a server is asked to go on with an answer.
type Continue string

// The ways.
const (
	ContinueAuto     Continue = "auto"          // by the kind of the server
	ContinueFields   Continue = "final_message" // continue_final_message, as vLLM has it
	ContinueLast     Continue = "last_message"  // a last message of the assistant is continued
	ContinuePrefix   Continue = "prefix"        // "prefix": true on that message
	ContinueInstruct Continue = "instruct"      // a message of the user asks for it
	ContinueNone     Continue = "none"          // no way is known
)

var recovering = object(
	key("mode", oneOf("mode", RecoverModes()...), func(r *Recovery) *RecoverMode { return &r.Mode },
		"Recovery of answers to requests that do not ask for one. Default: off."),
	key("allow", listOf(oneOf("mode", RecoverModes()...), 1), func(r *Recovery) *[]RecoverMode { return &r.Allow },
		"Recovery that requests may ask for. Default: any."),
	key("strategies", listOf(strategy(), 1), func(r *Recovery) *[]string { return &r.Strategies },
		"What may be tried. Default: all that the mode has."),
	key("attempts", integer("number", 0, 10, true), func(r *Recovery) *int { return &r.Attempts },
		"How often the model may be asked to go on with one answer. Default: 3."),
	key("max_tokens", integer("tokens", 1, maxContext, false), func(r *Recovery) *int { return &r.MaxTokens },
		"Most tokens that the continuations of one answer may have together, beside the reserve. Default: 1024."),
	key("reserve_percent", integer("percent", 0, 90, true), func(r *Recovery) *int { return &r.ReservePercent },
		"Part of a request's max_tokens that is kept for continuations in mode full; then there are no others. Default: 0."),
	key("time", duration(false), func(r *Recovery) *time.Duration { return &r.Time },
		"Work on one answer, asking not included. Default: 5s."),
	key("bytes", size(1<<10, maxBody), func(r *Recovery) *int64 { return &r.Bytes },
		"Largest answer that is looked at; larger ones pass. Default: 8MiB."),
	key("tool_calls", oneOf("policy", DropCalls, MarkCalls, RepairCalls), func(r *Recovery) *ToolCalls { return &r.ToolCalls },
		"What becomes of tool calls whose arguments were cut or mended. Default: drop."),
	key("on_failure", oneOf("policy", Partial, Fail), func(r *Recovery) *OnFailure { return &r.OnFailure },
		"Whether an answer that cannot be saved is given as it is, or an error. Default: partial."),
	key("fallback", str("name", nil, checkName), func(r *Recovery) *string { return &r.Fallback },
		"Model of this file that is asked where an answer cannot be saved. Default: none."),
	key("continue", oneOf("way", ContinueAuto, ContinueFields, ContinueLast, ContinuePrefix, ContinueInstruct, ContinueNone), func(r *Recovery) *Continue { return &r.Continue },
		"How the server is asked to go on with a message. Default: auto, by the kind of the server; instruct for proxy."),
)

// inherit fills in what a model's recovery leaves to that of the whole file.
func (r *Recovery) inherit(from *Recovery) {
	def(&r.Mode, from.Mode)
	def(&r.Attempts, from.Attempts)
	def(&r.MaxTokens, from.MaxTokens)
	def(&r.ReservePercent, from.ReservePercent)
	def(&r.Time, from.Time)
	def(&r.Bytes, from.Bytes)
	def(&r.ToolCalls, from.ToolCalls)
	def(&r.OnFailure, from.OnFailure)
	def(&r.Fallback, from.Fallback)
	def(&r.Continue, from.Continue)
	if r.Allow == nil {
		r.Allow = from.Allow
	}
	if r.Strategies == nil {
		r.Strategies = from.Strategies
	}
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// checkRecovery reports recovery that cannot be done or is named twice, and lets
// models inherit what the file says.
func (d *decoder) checkRecovery(c *Config, names map[string]string) {
	d.checkOneRecovery(c, &c.Recovery, "recovery", "", names)
	for i := range c.Models {
		m := &c.Models[i]
		d.checkOneRecovery(c, &m.Recovery, at("models", i)+".recovery", m.Name, names)
		m.Recovery.inherit(&c.Recovery)
		if m.Recovery.Fallback == m.Name {
			m.Recovery.Fallback = "" // inherited: the others fall back to this one
		}
	}
}

func (d *decoder) checkOneRecovery(c *Config, r *Recovery, path, model string, names map[string]string) {
	for i, mode := range r.Allow {
		if mode != "" && slices.Index(r.Allow, mode) < i {
			d.failAt(at(path+".allow", i), "the mode stands twice")
		}
	}
	for i, s := range r.Strategies {
		if s != "" && slices.Index(r.Strategies, s) < i {
			d.failAt(at(path+".strategies", i), "the strategy stands twice")
		}
	}
	if r.Fallback == "" {
		return
	}
	switch to, ok := names[r.Fallback]; {
	case !ok:
		d.failAt(path+".fallback", "%s", noName("model", r.Fallback, modelNames(c)))
	case to == model:
		d.failAt(path+".fallback", "the model cannot fall back to itself")
	default:
		r.Fallback = to
	}
}

// strategy is the name of a strategy of package recovery. Those of callers are none
// of a file's.
func strategy() value[string] {
	names := slices.DeleteFunc(recovery.Strategies(), func(name string) bool { return name == recovery.Own })
	return oneOf("strategy", names...)
}
