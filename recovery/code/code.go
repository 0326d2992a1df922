package code

import (
	"bytes"

	"github.com/unfray/unfray/jsonrepair"
)

// Kinds of edits.
const (
	CodeCut   jsonrepair.Kind = "code_cut"   // what was open at the end of code, closed
	FenceOpen jsonrepair.Kind = "fence_open" // a code fence that was open at the end, closed
)

// Status says what became of code.
type Status string

// The statuses.
const (
	Parses  Status = "parses"  // by a parser; by lexical rules: nothing is open or out of place
	Broken  Status = "broken"  // something is out of place before the end
	Cut     Status = "cut"     // in order as far as it goes, and it breaks off
	Unknown Status = "unknown" // the language is not known, a limit was reached, or the rules are not sure
)

// Open is something that had not ended where the code ends.
type Open struct {
	Kind   string `json:"kind"`   // bracket, string, character, regex, comment, heredoc, block, tag, directive, interpolation
	Text   string `json:"text"`   // what opened it
	Offset int    `json:"offset"` // bytes of the code
}

// Problem is something out of place.
type Problem struct {
	Offset  int    `json:"offset"` // bytes of the code
	Line    int    `json:"line"`   // from 1
	Message string `json:"message"`
}

// Report is what a check found.
type Report struct {
	Language string    `json:"language"` // as in [Languages]; empty if it is not known
	Status   Status    `json:"status"`
	Parser   string    `json:"parser"`             // go/parser, jsonrepair, goccy/go-yaml or lexer; empty for [Unknown] languages
	Open     []Open    `json:"open,omitempty"`     // the outermost first
	Problems []Problem `json:"problems,omitempty"` // the first ones, at most 20
	// Closed says that the code is in order with the edits that [Close] gave.
	Closed bool `json:"closed,omitempty"`
}

// Options are limits. The zero value is right for most.
type Options struct {
	MaxBytes int // of code that is looked at; beyond it the status is unknown. 0: 4 MiB
	MaxDepth int // of what is open at once; 0: 10,000
}

const (
	maxProblems = 20
	// A recursive parser is not given more than this.
	maxYAML      = 64 << 10
	maxYAMLDepth = 200
)

func (o Options) maxBytes() int {
	if o.MaxBytes <= 0 {
		return 4 << 20
	}
	return o.MaxBytes
}

func (o Options) maxDepth() int {
	if o.MaxDepth <= 0 || o.MaxDepth > 10_000 {
		return 10_000
	}
	return o.MaxDepth
}

// Check looks at the structure of code in the language that lang names, as the word
// behind a fence does. If lang is empty, it is found out by [Detect].
func Check(lang string, src []byte, o Options) *Report {
	r, _ := check(lang, src, o)
	return r
}

// check also returns the scanner that has read the code, nil if none has.
func check(lang string, src []byte, o Options) (*Report, *scanner) {
	name := canonical(lang)
	if lang == "" {
		name = Detect(src, "")
	}
	r := &Report{Language: name, Status: Unknown}
	if name == "" || len(src) > o.maxBytes() {
		return r, nil
	}
	switch name {
	case "json":
		checkJSON(src, o, r)
		return r, nil
	case "yaml":
		checkYAML(src, r)
		return r, nil
	}
	s := scan(languages[name], src, o)
	s.report(r)
	if s.lang.variant != "" && r.Status != Parses {
		// Dialects write strings differently: if one reading is whole, it is that.
		v, other := scan(languages[s.lang.variant], src, o), *r
		if v.report(&other); other.Status == Parses {
			*r, s = other, v
		}
	}
	if name == "go" {
		checkGo(src, s, r)
	}
	return r, s
}

// report sums up what the scanner found.
func (s *scanner) report(r *Report) {
	r.Parser, r.Problems, r.Open = "lexer", s.problems, s.open()
	switch {
	case s.overflow:
		r.Status, r.Open = Unknown, nil
	case len(s.problems) > 0:
		r.Status = Broken
	case len(r.Open) > 0:
		r.Status = Cut
	default:
		r.Status = Parses
	}
	if r.Status != Parses && s.unsure {
		r.Status = Unknown
	}
}

func checkJSON(src []byte, o Options, r *Report) {
	r.Parser = "jsonrepair"
	err := jsonrepair.Check(src, o.maxDepth())
	s := scan(languages["json"], src, o)
	switch {
	case err == nil:
		r.Status = Parses
	case s.overflow:
		r.Status = Unknown
	case err.Offset >= len(bytes.TrimRight(src, " \t\r\n")) && len(s.problems) == 0:
		r.Status, r.Open = Cut, s.open()
	default:
		r.Status = Broken
		r.Problems = []Problem{{err.Offset, lineOf(src, err.Offset), err.Cause}}
	}
}

// lineOf returns the line that byte offset is in, from 1.
func lineOf(src []byte, offset int) int {
	return 1 + bytes.Count(src[:min(offset, len(src))], []byte{'\n'})
}
