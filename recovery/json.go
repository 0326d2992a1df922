package recovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/extract"
	"github.com/unfray/unfray/recovery/schema"
	"github.com/unfray/unfray/recovery/textrepair"
)

// reading is one way to read the text as JSON.
type reading struct {
	strategy string
	text     []byte // strict JSON
	edits    []Edit // that make it of the attempt's text
	// place is where it stands in the attempt's text, and instead the kind of the one
	// edit that puts it there: they tell the edits of one of very many readings.
	place   *extract.Candidate
	instead jsonrepair.Kind
	outcome Outcome
	why     string
	cost    int // edits

	open         []jsonrepair.Open
	findings     []jsonrepair.Finding // offsets in the attempt's text
	alternatives []jsonrepair.Reading
}

// strict accepts an answer that is what was asked for.
func (a *attempt) strict() (Verdict, string) {
	bad := jsonrepair.Check(a.input, a.o.Budget.Depth)
	if bad != nil {
		return Nothing, fmt.Sprintf("no strict JSON: byte %d: %s", bad.Offset, bad.Cause)
	}
	if a.isCall() {
		return Nothing, "it is a call"
	}
	a.form = JSON
	if a.o.JSON.LaTeX || a.o.JSON.Paths {
		if verdict, why := a.repair(); verdict == Accepted {
			return verdict, why
		}
		a.readings = nil
	}
	return a.offer(reading{strategy: Strict, text: a.input, outcome: Valid, why: "as it is", findings: jsonrepair.Suspicions(a.input)})
}

// isCall reports whether JSON is a call of a tool, and not the value that a schema asks for.
func (a *attempt) isCall() bool {
	return (a.form == Auto || a.o.Schema == nil) && len(a.o.Tools) > 0 && a.o.uses(Calls) && len(a.findCalls().Calls) > 0
}

// offer takes a reading and accepts it if it is good for the form.
func (a *attempt) offer(r reading) (Verdict, string) {
	if r.cost == 0 {
		r.cost = len(r.edits)
	}
	fits, why := a.fits(r.text)
	if r.outcome <= Repaired && fits {
		a.take(r)
		return Accepted, r.why
	}
	a.keep(r)
	switch {
	case !fits:
		return Changed, r.why + "; " + why
	case r.outcome == Truncated:
		return Changed, "it breaks off"
	}
	return Changed, "it can be read in several ways"
}

// keep puts a reading with the others, unless the one before it, which took no more,
// is the same text.
func (a *attempt) keep(r reading) {
	if n := len(a.readings); n > 0 {
		last := a.readings[n-1]
		if last.outcome <= r.outcome && last.cost <= r.cost && bytes.Equal(last.text, r.text) {
			return
		}
	}
	a.readings = append(a.readings, r)
}

// fits reports whether a value is of the schema, and if not, why.
func (a *attempt) fits(value []byte) (bool, string) {
	if a.o.Schema == nil {
		return true, ""
	}
	v := a.o.Schema.Validate(value)
	if len(v) == 0 {
		return true, ""
	}
	return false, fmt.Sprintf("not of the schema: %s: %s", pathOr(v[0].Path), v[0].Message)
}

func pathOr(path string) string {
	if path == "" {
		return "the value"
	}
	return path
}

// editsOf returns the edits that make a reading of the attempt's text.
func (a *attempt) editsOf(r reading) []Edit {
	switch c := r.place; {
	case r.instead != "":
		return []Edit{{replacement(a.text, r.text, r.instead), r.strategy}}
	case c != nil && bytes.Equal(a.text[c.Start:c.End], r.text):
		return cutTo(r.strategy, a.text, c.Start, c.End, jsonrepair.Prose)
	case c != nil:
		return []Edit{{replacement(a.text, r.text, jsonrepair.Prose), r.strategy}}
	}
	return r.edits
}

// take makes a reading the text.
func (a *attempt) take(r reading) {
	a.form = JSON
	a.find(r.findings)
	m := newMapper(a.edits)
	open := slices.Clone(r.open)
	for i := range open {
		open[i].Offset = m.input(open[i].Offset)
	}
	a.apply(a.editsOf(r))
	if a.edits == nil {
		a.text = a.input
	}
	a.res.Outcome, a.res.Open, a.res.Readings = r.outcome, open, r.alternatives
	if len(a.edits) > 0 && r.outcome == Valid {
		a.res.Outcome = Repaired
	}
	a.readings = nil
}

// takeStrict accepts the text if it is good for the form as it stands.
func (a *attempt) takeStrict(text []byte) bool {
	if jsonrepair.Check(text, a.o.Budget.Depth) != nil {
		return false
	}
	verdict, _ := a.offer(reading{strategy: Strict, text: text, outcome: Valid, why: "it is strict JSON now"})
	return verdict == Accepted
}

func (a *attempt) jsonOptions() jsonrepair.Options {
	o := a.o.JSON
	o.Ended = o.Ended || a.o.ended()
	o.MaxDepth, o.MaxEdits = a.o.Budget.Depth, a.o.Budget.Edits
	if !a.end.IsZero() {
		o.MaxTime = max(time.Until(a.end), time.Nanosecond)
	}
	return o
}

// locate finds JSON that is strict where it stands, and the fence that holds code.
func (a *attempt) locate() (Verdict, string) {
	if a.form == Code {
		return a.locateCode()
	}
	found, err := extract.Candidates(a.text, a.o.answerOnly())
	if a.form == Auto {
		if a.form = a.guess(found); a.form == Text {
			return Nothing, "the answer is text"
		}
	}
	var whole []extract.Candidate
	for _, c := range found {
		if c.Complete && !c.Placeholder && !c.Doubtful && !c.Inside {
			whole = append(whole, c)
		}
	}
	switch {
	case err != nil && len(whole) == 0:
		return Exceeded, err.Error()
	case len(whole) == 0:
		if c := a.begunAgain(); c != nil {
			return a.offer(a.candidate(c))
		}
		return Nothing, "no strict JSON stands anywhere in it"
	case a.o.Schema != nil:
		return a.offerFitting(whole)
	}
	if c := a.single(found, whole); c != nil {
		return a.offer(a.candidate(c))
	}
	if len(whole) == len(found) {
		if r := a.allOf(whole); r != nil {
			return a.offer(*r)
		}
	}
	return Nothing, "strict JSON stands in it, but more than prose is around it"
}

// single returns the one place of strict JSON that is the answer by itself, nil where
// there are several or what is around it may belong to it.
func (a *attempt) single(found, whole []extract.Candidate) *extract.Candidate {
	first := &whole[0]
	var fenced []*extract.Candidate
	others := 0 // that are neither fenced nor in code of another language
	equal, alone := true, true
	for i := range found {
		c := &found[i]
		alone = alone && (c.Index == first.Index || c.Doubtful || c.Placeholder || c.Where >= extract.InCode || begins(first.Text, c))
		switch {
		case c.Doubtful || c.Placeholder || c.Inside:
		case c.Where == extract.InFence && c.Complete:
			fenced = append(fenced, c)
		case c.Where < extract.InCode && !begins(first.Text, c):
			others++
		}
		equal = equal && (c.Doubtful || c.Inside || c.Complete && sameValue(c.Text, first.Text))
	}
	switch {
	case equal && len(whole) > 1, len(whole) == 1 && a.standsAlone(*first), alone && a.standsFirst(*first):
		return first
	case len(fenced) == 1 && others == 0:
		return fenced[0]
	}
	return nil
}

// allOf is the reading of an answer that holds several values and, around them, nothing but
// prose: a list of them.
func (a *attempt) allOf(whole []extract.Candidate) *reading {
	if len(whole) < 2 || len(whole) > maxReadings {
		return nil
	}
	r := reading{strategy: Locate, outcome: Repaired, why: fmt.Sprintf("%d values, strict JSON", len(whole))}
	at, between := 0, "["
	for i := range whole {
		c := &whole[i]
		if c.Start < at || c.Type == extract.Scalar || c.Where != extract.InProse || !bytes.Equal(a.text[c.Start:c.End], c.Text) || bytes.ContainsAny(a.text[at:c.Start], "{}[]\"") {
			return nil
		}
		r.edits = append(r.edits, Edit{jsonrepair.Edit{Kind: jsonrepair.SeveralValues, Offset: at, Before: string(a.text[at:c.Start]), After: between}, Locate})
		at, between = c.End, ","
	}
	if bytes.ContainsAny(a.text[at:], "{}[]\"") {
		return nil
	}
	r.edits = append(r.edits, Edit{jsonrepair.Edit{Kind: jsonrepair.SeveralValues, Offset: at, Before: string(a.text[at:]), After: "]"}, Locate})
	r.text = Apply(a.text, r.edits)
	return &r
}

// begunAgain finds the strict JSON that ends an answer which first broke off inside a string
// and then was begun again, with the same bytes: only prose is between.
func (a *attempt) begunAgain() *extract.Candidate {
	text := bytes.TrimSpace(a.text)
	if len(text) < 2*againBytes || text[0] != '{' && text[0] != '[' {
		return nil
	}
	i := bytes.LastIndex(a.text, append([]byte("\n"), text[:againBytes]...)) + 1
	end := bytes.LastIndexAny(a.text, "}]") + 1
	same := 0
	for same < len(text) && i+same < end && text[same] == a.text[i+same] {
		same++
	}
	start := bytes.IndexAny(a.text, "{[")
	if i == 0 || end <= i || start+same > i || bytes.ContainsAny(a.text[start+same:i], "{}[]\"") || jsonrepair.Check(a.text[i:end], a.o.Budget.Depth) != nil || bytes.ContainsAny(a.text[end:], "\"{[") {
		return nil
	}
	return &extract.Candidate{Start: i, End: end, Text: a.text[i:end], Complete: true, Closed: true}
}

// againBytes is how many bytes an answer that is begun again has in common with its first
// beginning.
const againBytes = 6

// begins reports whether a candidate that breaks off is the beginning of a text.
func begins(text []byte, c *extract.Candidate) bool {
	cut := bytes.TrimSpace(c.Text)
	return !c.Closed && len(cut) > 1 && bytes.HasPrefix(text, cut)
}

// sameValue reports whether two strict JSON texts differ in white space at most.
func sameValue(x, y []byte) bool {
	var a, b bytes.Buffer
	return bytes.Equal(x, y) || json.Compact(&a, x) == nil && json.Compact(&b, y) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// standsFirst reports whether the answer begins with a place and goes on with something else
// in a new line.
func (a *attempt) standsFirst(c extract.Candidate) bool {
	rest := bytes.TrimLeft(a.text[c.End:], " \t\r")
	next := bytes.TrimSpace(rest)
	return len(bytes.TrimSpace(a.text[:c.Start])) == 0 && len(next) > 0 && rest[0] == '\n' &&
		bytes.IndexByte([]byte(`,:]}{["`), next[0]) < 0
}

// candidate is the reading of a place that holds strict JSON.
func (a *attempt) candidate(c *extract.Candidate) reading {
	r := reading{strategy: Locate, text: c.Text, place: c, outcome: Valid, why: "strict JSON " + c.Where.String()}
	if c.Start > 0 {
		r.cost++
	}
	if c.End < len(a.text) {
		r.cost++
	}
	return r
}

// offerFitting offers the places whose JSON fits the schema. Of several the likeliest
// is taken, and of several that are as likely the last, for models correct
// themselves; if their values differ, that is ambiguous.
func (a *attempt) offerFitting(whole []extract.Candidate) (Verdict, string) {
	var fit []extract.Candidate
	why := ""
	for i := range whole[:min(len(whole), maxReadings)] {
		c := &whole[i]
		ok, not := a.fits(c.Text)
		if ok {
			fit = append(fit, *c)
			continue
		}
		r := a.candidate(c)
		a.keep(r)
		why = r.why + "; " + not
	}
	if len(fit) == 0 {
		return Changed, why
	}
	best := extract.Rank(fit, nil)[0]
	var equals []reading
	for i := range fit {
		if c := &fit[i]; c.Where == best.Where && c.Type == best.Type {
			equals = append(equals, a.candidate(c))
		}
	}
	slices.Reverse(equals)
	r := equals[0]
	if n := distinct(equals); n > 1 {
		r.outcome, r.why = Ambiguous, fmt.Sprintf("%d different values fit the schema; the last is taken", n)
		for _, e := range equals {
			r.alternatives = append(r.alternatives, jsonrepair.Reading{Text: e.text, Why: e.why, Cost: e.cost})
		}
		a.take(r)
		return Accepted, r.why
	}
	return a.offer(r)
}

// distinct counts the different texts of readings.
func distinct(rs []reading) int {
	seen := map[string]bool{}
	for _, r := range rs {
		seen[string(r.text)] = true
	}
	return len(seen)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// standsAlone reports whether what is around a place is prose: nothing there looks
// like a part of the same document.
func (a *attempt) standsAlone(c extract.Candidate) bool {
	rest := bytes.TrimSpace(a.text[c.End:])
	if len(rest) > 0 && bytes.IndexByte([]byte(",:]}"), rest[0]) >= 0 {
		return false
	}
	return !bytes.ContainsAny(a.text[:c.Start], "{[\"") && !bytes.ContainsAny(rest, "{}[]\"")
}

// repaired is the repair of the text. A number at the end of an answer that breaks off may
// have more digits, and is dropped where it is known that the answer was cut. Where nothing
// is known it is kept, and named with what is open.
func (a *attempt) repaired() *jsonrepair.Result {
	o := a.jsonOptions()
	r := jsonrepair.Repair(a.text, o)
	text := bytes.TrimRight(a.text, " \t\r\n")
	n := len(r.Open)
	if r.Outcome != Truncated || o.Ended || a.o.FinishReason != "" || a.o.cut() || n == 0 || r.Open[n-1].Kind != "number" || !isDigit(text[len(text)-1]) {
		return r
	}
	o.Ended = true
	kept := jsonrepair.Repair(a.text, o)
	if kept.Outcome != Truncated {
		return r
	}
	kept.Open = append(kept.Open, r.Open[n-1])
	return kept
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// repair mends the syntax.
func (a *attempt) repair() (Verdict, string) {
	if r, is := a.asThousands(); is {
		return a.offer(r)
	}
	if opened := a.opened(); opened != nil {
		opener := jsonrepair.Edit{Kind: jsonrepair.MissingOpener, After: "["}
		return a.offer(reading{strategy: Repair, text: opened, edits: []Edit{{opener, Repair}}, outcome: Repaired, why: "1 edit of the syntax"})
	}
	r := a.repaired()
	if r.Text == nil {
		if r.Outcome == Ambiguous { // and it was not to choose
			a.tie, a.res.Outcome, a.res.Readings = true, Ambiguous, r.Readings
			a.find(r.Findings)
			return Rejected, "it can be read in several ways"
		}
		if r.Err != nil {
			m := newMapper(a.edits)
			a.res.Err = &Error{m.input(r.Err.Offset), r.Err.Cause, r.Err.Tried}
		}
		return Nothing, "no JSON could be made of it"
	}
	edits := make([]Edit, 0, r.EditCount())
	prose := false
	for e := range r.Edits() {
		edits = append(edits, Edit{e, Repair})
		prose = prose || e.Kind == jsonrepair.Prose
	}
	if prose && a.onlyInSentences(r.Text) {
		return Nothing, "brackets in sentences are no answer"
	}
	if a.o.Schema != nil {
		// Each of several documents may be the one.
		for v := range r.Values() {
			if len(a.readings) >= maxReadings {
				break
			}
			a.readings = append(a.readings, reading{
				strategy: Repair, text: v, outcome: Repaired, why: "one of several values",
				instead: jsonrepair.SeveralValues, cost: len(edits),
			})
		}
		for _, alt := range r.Readings {
			a.readings = append(a.readings, reading{
				strategy: Repair, text: alt.Text, outcome: Repaired, why: alt.Why, cost: alt.Cost,
				instead: jsonrepair.DoubtfulQuote,
			})
		}
	}
	return a.offer(reading{
		strategy: Repair, text: r.Text, edits: edits, outcome: r.Outcome, open: r.Open,
		findings: r.Findings, alternatives: r.Readings, why: counted(len(edits), "edit") + " of the syntax",
	})
}

// opened returns the text as a list whose opener was forgotten, nil if it is not strict JSON
// then: "red", "blue"]
func (a *attempt) opened() []byte {
	text := bytes.TrimLeft(a.text, " \t\r\n")
	if len(text) == 0 || text[0] == '[' {
		return nil
	}
	bad := jsonrepair.Check(a.text, a.o.Budget.Depth)
	if bad == nil || bad.Offset >= len(a.text) || a.text[bad.Offset] != ',' {
		return nil
	}
	opened := slices.Concat([]byte("["), a.text)
	if jsonrepair.Check(opened, a.o.Budget.Depth) != nil {
		return nil
	}
	return opened
}

// onlyInSentences reports whether all that looks like JSON is a part of a sentence:
// empty brackets, citations, links, intervals. text is what was made of it.
func (a *attempt) onlyInSentences(text []byte) bool {
	found, _ := extract.Candidates(a.text, a.o.answerOnly())
	if len(found) == 0 {
		return string(text) == "{}" || string(text) == "[]" || bytes.Contains(a.text, []byte("]("))
	}
	return !slices.ContainsFunc(found, func(c extract.Candidate) bool {
		return c.Where != extract.InProse || !c.Doubtful && !c.Placeholder && string(c.Text) != "{}" && string(c.Text) != "[]" || a.onItsOwn(c)
	})
}

// notation reads YAML and XML-ish answers.
func (a *attempt) notation() (Verdict, string) {
	if a.o.Schema == nil {
		return Nothing, "no schema asks for members"
	}
	if found, _ := extract.Candidates(a.text, a.o.answerOnly()); slices.ContainsFunc(found, func(c extract.Candidate) bool {
		return c.Type != extract.Scalar && !c.Placeholder && (!c.Doubtful || bytes.IndexByte(bytes.TrimSpace(a.text), '\n') < 0)
	}) {
		return Nothing, "it is JSON"
	}
	for _, n := range []struct {
		name string
		read func([]byte, extract.Options) (*extract.Converted, error)
	}{{"YAML", extract.ReadYAML}, {"XML", extract.ReadXML}} {
		c, err := n.read(a.text, a.o.answerOnly())
		if err != nil {
			continue
		}
		r := reading{
			strategy: Notation, text: c.JSON, outcome: Repaired, why: "read as " + n.name,
			edits: tagged(Notation, c.Edits), findings: c.Findings,
		}
		if c.Truncated {
			r.outcome = Truncated
		}
		return a.offer(r)
	}
	return Nothing, "neither YAML nor XML"
}

// fit chooses among the readings by the schema and changes values to fit it.
func (a *attempt) fit() (Verdict, string) {
	switch {
	case a.o.Schema == nil:
		return Nothing, "no schema"
	case len(a.readings) == 0:
		return a.fitBare()
	}
	in := make([]schema.Reading, len(a.readings))
	size := 0
	for i, r := range a.readings {
		size += len(r.text)
		in[i] = schema.Reading{Text: r.text, Cost: r.cost}
		if r.outcome == Truncated {
			in[i].Cost += truncatedCost
		}
	}
	if size > maxFitted {
		return Exceeded, fmt.Sprintf("%d bytes are too many to change values in, more than %d", size, maxFitted)
	}
	f := a.o.Schema.Fit(in, a.o.Fit)
	switch f.Outcome {
	case Failed:
		a.res.Violations = f.Violations
		return Nothing, "no reading can be made to fit the schema"
	case Ambiguous:
		for _, c := range f.Readings {
			why := counted(len(c.Coercions), "value") + " changed to fit the schema"
			a.res.Readings = append(a.res.Readings, jsonrepair.Reading{Text: c.Value, Why: why, Cost: c.Score})
		}
		a.tie = true
		a.res.Outcome = Ambiguous
		return Rejected, "several values fit the schema equally well"
	}
	r := a.readings[f.Index]
	r.edits = compose(a.editsOf(r), r.text, tagged(Schema, f.Edits))
	r.place, r.instead = nil, ""
	r.text, r.alternatives = f.Value, nil
	r.why = counted(len(f.Coercions), "value") + " changed to fit the schema"
	if r.outcome != Truncated {
		r.outcome = Repaired
	}
	a.res.Coercions = f.Coercions
	a.take(r)
	if r.outcome == Truncated {
		a.readings = nil
		return Changed, r.why + "; it breaks off"
	}
	return Accepted, r.why
}

// maxBare is how long a value may be that stands without quotation marks.
const maxBare = 200

// fitBare takes a short answer of one line for the string, number or boolean that the
// schema asks for: Positive, Yes, 42.
func (a *attempt) fitBare() (Verdict, string) {
	text := bytes.TrimSpace(a.text)
	if len(text) == 0 || len(text) > maxBare || bytes.ContainsAny(text, "\n\"{}[]") {
		return Nothing, "no JSON was found to fit it"
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		return Nothing, err.Error()
	}
	f := a.o.Schema.Fit([]schema.Reading{{Text: quoted}}, a.o.Fit)
	if f.Outcome > Repaired || f.Value[0] == '{' || f.Value[0] == '[' {
		return Nothing, "no JSON was found to fit it, nor is the answer itself a value of it"
	}
	a.res.Coercions = f.Coercions
	a.take(reading{
		strategy: Schema, text: f.Value, outcome: Repaired, why: "a bare value",
		edits: []Edit{{replacement(a.text, f.Value, BareValue), Schema}},
	})
	return Accepted, "the answer itself is a value of the schema"
}

const (
	// maxReadings is how many places and values are weighed by the schema.
	maxReadings = 1000
	// maxFitted is how many bytes of all readings are read to change their values: it takes
	// a hundred times their memory.
	maxFitted = 2 << 20
)

// truncatedCost makes a reading that breaks off worse than any whole one.
const truncatedCost = 1000

// mend repairs characters: in text, or in the strings of JSON.
func (a *attempt) mend() (Verdict, string) {
	o := a.o.Text
	o.MaxEdits = a.o.Budget.Edits
	var r *textrepair.Result
	switch a.form {
	case JSON:
		a.settle()
		if !a.o.Strings {
			// What else looks strange in a string may have been meant.
			o.Leave = append(slices.Clip(o.Leave), textrepair.Control, textrepair.TerminalEscape, textrepair.ZeroWidth,
				textrepair.BidiControl, textrepair.LineEnd, textrepair.TokenMark, textrepair.ByteToken)
		}
		if !a.o.Strings && a.edits == nil {
			o.Leave = append(o.Leave, textrepair.Entity)
		}
		if r = textrepair.RepairJSON(a.text, o); r.Err != nil {
			return Nothing, "there is no JSON"
		}
	case Code:
		r = a.mendCode(o)
	default:
		r = textrepair.Repair(a.text, o)
	}
	a.find(r.Findings)
	if len(r.Edits) == 0 {
		return Nothing, "its characters are sound"
	}
	if r.Full {
		last := r.Edits[len(r.Edits)-1]
		at := last.Offset + len(last.Before)
		a.find([]jsonrepair.Finding{{Kind: OverBudget, Offset: at, Length: len(a.text) - at, Text: "the characters from here on were not looked at: more edits would be needed than the budget allows"}})
	}
	a.apply(tagged(Mend, r.Edits))
	if a.res.Outcome == Valid {
		a.res.Outcome = Repaired
	}
	if r.Full {
		return Exceeded, fmt.Sprintf("%d places mended, the rest is left", len(r.Edits))
	}
	return Changed, counted(len(r.Edits), "place") + " mended"
}

// settle takes the best reading where none was acceptable.
func (a *attempt) settle() {
	if a.accepted || a.tie || len(a.readings) == 0 {
		return
	}
	best := 0
	for i, r := range a.readings {
		if rank(r) < rank(a.readings[best]) {
			best = i
		}
	}
	a.take(a.readings[best])
}

// rank orders readings of which none is acceptable: lower is better.
func rank(r reading) int {
	n := int(r.outcome) * 1000
	if r.strategy == Repair && r.why == "one of several values" {
		n += 5000 // the array of all loses nothing
	}
	return n + r.cost
}
