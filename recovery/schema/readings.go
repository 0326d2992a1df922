package schema

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// A Reading is one way to read an answer.
type Reading struct {
	Text []byte // strict JSON
	Cost int    // what it took to get it; of a repaired text its edits
}

// FitOptions says what may be done to make a value fit. The zero value is right for
// most.
type FitOptions struct {
	// Defaults puts in the schema's default for a required member that is missing. By
	// default nothing is invented.
	Defaults bool
	// Margin is by how much the score of a value, or with equal scores the cost of its
	// reading, must be better than that of another value, else both are told as ambiguous;
	// 0: 2. With 1 only what is equal is a tie.
	Margin int
}

func (o FitOptions) margin() int {
	if o.Margin > 0 {
		return o.Margin
	}
	return defaultMargin
}

const defaultMargin = 2

// A Coercion is a change of a value's type, spelling or structure.
type Coercion struct {
	Kind   jsonrepair.Kind `json:"kind"`
	Path   string          `json:"path"`   // JSON Pointer (RFC 6901) into the fitted value; of what was dropped where it was
	Before string          `json:"before"` // JSON, shortened where long
	After  string          `json:"after"`
	Score  int             `json:"score"` // its cost; see the table of the package
}

// A Candidate is one of several values that fit equally well.
type Candidate struct {
	Index     int    // of the reading
	Value     []byte // strict JSON, valid by the schema
	Edits     []jsonrepair.Edit
	Coercions []Coercion
	Score     int
}

// Fit is what became of readings that were held to a schema.
type Fit struct {
	// Outcome is Valid where a reading is valid as it is, Repaired after coercions,
	// Ambiguous where several values fit equally well, and Failed where none does.
	Outcome jsonrepair.Outcome
	// Index is that of the reading that was chosen, -1 for Ambiguous and Failed.
	Index int
	// Value is the fitted value: the reading's text with Edits applied; nil where
	// Ambiguous or Failed.
	Value     []byte
	Edits     []jsonrepair.Edit // offsets are bytes of the reading's text
	Coercions []Coercion
	Score     int // the sum of the coercions'
	// Violations say where the best attempt stays wrong, in its own terms; for Failed.
	Violations []Violation
	// Readings are the values that fit equally well, for Ambiguous, at most 16.
	Readings []Candidate
}

const maxCandidates = 16

// Fit chooses the reading that is valid by the schema, or is made so at the least
// cost, and makes it valid. A valid text comes back byte for byte. The score of the
// coercions decides first, then what the reading cost, each by the margin; where neither
// decides and the values differ, the outcome is ambiguous. The result holds for the schema in every
// case, or there is none.
func (s *Schema) Fit(readings []Reading, o FitOptions) *Fit {
	size := 0
	for _, r := range readings {
		size += len(r.Text)
	}
	f := s.newFitter(o, size)
	var tries []*attempt
	for i, r := range readings {
		tries = append(tries, f.attempt(i, r))
	}
	if f.exceeded {
		return &Fit{Outcome: jsonrepair.Failed, Index: -1, Violations: []Violation{limitViolation}}
	}
	var fitting []*attempt
	for _, a := range tries {
		if a.fit != nil && a.fit.ok {
			fitting = append(fitting, a)
		}
	}
	if len(fitting) == 0 {
		return s.failure(f, tries)
	}
	slices.SortStableFunc(fitting, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.fit.score, b.fit.score), cmp.Compare(a.cost, b.cost))
	})
	best := fitting[0]
	candidates := best.candidates()
	for _, a := range fitting[1:] {
		// What is valid as it is needs no margin.
		near := best.fit.score > 0 && a.fit.score-best.fit.score < o.margin()
		if (a.fit.score == best.fit.score || near) && a.cost-best.cost < o.margin() && len(candidates) < maxCandidates {
			candidates = append(candidates, a.candidates()...)
		}
	}
	candidates = f.distinct(candidates)
	if f.exceeded || len(candidates) == 0 {
		return &Fit{Outcome: jsonrepair.Failed, Index: -1, Violations: []Violation{limitViolation}}
	}
	if len(candidates) > 1 {
		return &Fit{Outcome: jsonrepair.Ambiguous, Index: -1, Readings: candidates}
	}
	c := candidates[0]
	fit := &Fit{Outcome: jsonrepair.Valid, Index: c.Index, Value: c.Value, Edits: c.Edits, Coercions: c.Coercions, Score: c.Score}
	if len(c.Edits) > 0 {
		fit.Outcome = jsonrepair.Repaired
	}
	return fit
}

func (s *Schema) newFitter(o FitOptions, size int) *fitter {
	next := 0
	return &fitter{evaluator: newEvaluator(s.stepsFor(size)), schema: s, o: o, views: map[string]*view{}, memo: map[fitKey]*fit{}, children: map[childKey]*view{}, named: map[int]string{}, next: &next}
}

// An attempt is the work on one reading.
type attempt struct {
	*fitter
	index, cost int
	root        *node
	fit         *fit
	err         *jsonrepair.Error
	echo        bool
}

func (f *fitter) attempt(index int, r Reading) *attempt {
	own := *f
	own.text = r.Text
	a := &attempt{fitter: &own, index: index, cost: r.Cost}
	if !f.chargeBytes(4 * len(r.Text)) {
		return a
	}
	a.root, a.err = readDocument(r.Text, f.schema.maxDepth, *f.next)
	if a.err != nil {
		return a
	}
	*f.next += a.root.size()
	top := own.view([]*rule{f.schema.root})
	if isSchema(a.root) && !own.allows(a.root, top) {
		a.echo = true
		return a
	}
	a.fit = own.fit(a.root, top, 0)
	return a
}

// candidates lists the values of an attempt: one, and one more for each alternative.
func (a *attempt) candidates() []Candidate {
	list := []Candidate{a.candidate(nil)}
	for _, instead := range a.fit.replacements(nil) {
		list = append(list, a.candidate(instead))
	}
	return list
}

func (a *attempt) candidate(instead map[*fit]*fit) Candidate {
	top := a.fit
	if other, ok := instead[top]; ok {
		top = other
	}
	if len(top.parts) == 0 {
		return Candidate{Index: a.index, Value: a.text}
	}
	out, coercions := a.edited(a.root, top, instead)
	c := Candidate{Index: a.index, Edits: out.edits, Coercions: coercions, Score: top.score}
	c.Value = slices.Concat(a.text[:a.root.start], out.text, a.text[a.root.end:])
	return c
}

// replacements lists the ways to take one alternative for what was taken.
func (ft *fit) replacements(list []map[*fit]*fit) []map[*fit]*fit {
	for _, alternative := range ft.alternatives {
		if len(list) < maxCandidates {
			list = append(list, map[*fit]*fit{ft: alternative})
		}
	}
	for _, p := range ft.parts {
		if p.inner != nil && p.inner.ambiguous {
			list = p.inner.replacements(list)
		}
	}
	return list
}

// distinct keeps the candidates that are valid and differ in value.
func (f *fitter) distinct(candidates []Candidate) []Candidate {
	if len(candidates) == 1 && len(candidates[0].Edits) == 0 {
		return candidates
	}
	var values []string
	var list []Candidate
	for _, c := range candidates {
		if !f.chargeBytes(8 * len(c.Value)) {
			break
		}
		n := f.read(c.Value)
		if len(c.Edits) > 0 && !f.valid(n, f.schema.root) {
			continue
		}
		if len(candidates) == 1 {
			return candidates
		}
		if value := n.canonical(); !slices.Contains(values, value) {
			values = append(values, value)
			list = append(list, c)
		}
	}
	return list
}

// An edited value is its text and what was done to it.
type edited struct {
	text  []byte
	edits []jsonrepair.Edit
}

// edited makes a fit's changes. The coercions are in the order of the text.
func (f *fitter) edited(root *node, ft *fit, instead map[*fit]*fit) (edited, []Coercion) {
	var out edited
	var coercions []Coercion
	at := root.start
	if other, ok := instead[ft]; ok {
		ft = other
	}
	ft.walk("", instead, func(c *change, path string) {
		before := string(f.text[c.start:c.end])
		out.text = append(out.text, f.text[at:c.start]...)
		out.text = append(out.text, c.after...)
		at = c.end
		if before != c.after {
			out.edits = append(out.edits, jsonrepair.Edit{Kind: c.kind, Offset: c.start, Before: before, After: c.after})
		}
		if c.cost > 0 {
			coercions = append(coercions, Coercion{c.kind, path, cmp.Or(c.was, shorten(before)), coercionAfter(c), c.cost})
		}
		for _, inner := range c.inner {
			inner.Path = path + inner.Path
			coercions = append(coercions, inner)
		}
	})
	out.text = append(out.text, f.text[at:root.end]...)
	return out, coercions
}

func coercionAfter(c *change) string {
	if c.was != "" && c.is == "" {
		return "" // dropped
	}
	return cmp.Or(c.is, shorten(c.after))
}

// failure says what the best attempt leaves wrong.
func (s *Schema) failure(f *fitter, tries []*attempt) *Fit {
	fit := &Fit{Outcome: jsonrepair.Failed, Index: -1}
	best := -1
	for _, a := range tries {
		var found []Violation
		cost := 0
		switch {
		case a.err != nil:
			found = []Violation{{"", "json", fmt.Sprintf("reading %d is not JSON: byte %d: %s", a.index, a.err.Offset, a.err.Cause)}}
			cost = 1_000_000
		case a.echo:
			found = []Violation{{"", "schema", "the answer repeats the schema; it is no value for it"}}
			cost = 500_000
		default:
			out, _ := a.edited(a.root, a.fit, nil)
			if found = s.Validate(out.text); len(found) == 0 {
				// What was tried led to a tie or to nothing; the text itself is not valid.
				found = s.Validate(a.text)
			}
			for _, v := range found {
				cost += []int{1000, 100, 10, 1}[rank(v.Keyword)]
				if v.Path == "" && v.Keyword == "type" {
					cost += 10_000 // not even of the kind
				}
			}
		}
		if best < 0 || cost < best {
			best, fit.Violations = cost, found
		}
	}
	if len(tries) == 0 {
		fit.Violations = []Violation{{"", "json", "there is no reading to choose from"}}
	}
	return fit
}

// notFitting is the least score of values that cannot be made to fit.
const notFitting = 1000

// Score ranks candidates quickly; less is better. It is 0 for a valid value and below
// 1,000 for one that can be coerced: the cost of that, as in [Fit].Score. Of others it
// tells how far they are from it, structure before content. It is 1,000,000 for what is
// not JSON.
func (s *Schema) Score(value []byte) int {
	f := s.newFitter(FitOptions{}, len(value))
	a := f.attempt(0, Reading{Text: value})
	switch {
	case a.err != nil || a.root == nil:
		return 1_000_000
	case f.exceeded || a.echo:
		return 500_000
	case a.fit.ok && !a.fit.ambiguous:
		return min(a.fit.score, notFitting-1)
	case a.fit.ok:
		return notFitting
	}
	score := notFitting
	for _, v := range f.violations(a.root, s.root) {
		score += []int{1000, 100, 10, 1}[rank(v.Keyword)]
	}
	return min(score, 400_000)
}
