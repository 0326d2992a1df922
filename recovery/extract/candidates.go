package extract

import (
	"fmt"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// Where says in which part of the answer a candidate was found, the likeliest
// first.
type Where uint8

const (
	Whole       Where = iota // the whole text, but for white space
	InFence                  // a fence for JSON, or for no language
	InProse                  // among text
	InCode                   // a fence for another language
	InReasoning              // reasoning: a draft, or an answer that was never begun
)

var whereNames = []string{"whole", "fence", "prose", "code", "reasoning"}

func (w Where) String() string { return whereNames[w] }

// MarshalText gives the name.
func (w Where) MarshalText() ([]byte, error) { return []byte(whereNames[w]), nil }

// Type is what a candidate is, by how it begins.
type Type uint8

const (
	Object Type = iota
	Array
	Scalar
)

var typeNames = []string{"object", "array", "scalar"}

func (t Type) String() string { return typeNames[t] }

// MarshalText gives the name.
func (t Type) MarshalText() ([]byte, error) { return []byte(typeNames[t]), nil }

// A Candidate is a span of an answer that looks like JSON, whether it is valid or
// can only be after repair.
type Candidate struct {
	Start, End int    // bytes of the answer
	Text       []byte // the span; of one in a block quote without the marks of the quote
	Where      Where
	Type       Type
	Complete   bool // Text is strictly valid JSON
	Closed     bool // its last bracket is there; one that is not may have been cut off
	// Placeholder is set for {} and [] beside candidates that hold something.
	Placeholder bool
	// Doubtful is set for what is JSON by its form but may not have been meant as
	// JSON: numbers in brackets inside a line, a single key that nothing closes.
	Doubtful bool
	// Inside is set for what lies in another candidate that is broken: a part of it,
	// or the value that was meant. The first 16 are found.
	Inside bool
	Index  int // counts the candidates before it in the answer
}

// A LimitError says that not every candidate was found.
type LimitError struct {
	Limit  string // the field of Options
	Offset int    // bytes of the text that were looked at
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("extract: byte %d: %s is reached, what follows was not searched for JSON; raise it, or cut the text", e.Offset, e.Limit)
}

// Candidates returns the spans of an answer that look like JSON, in order. A text
// that is valid JSON is the only candidate of itself. Otherwise each place where an
// object or array begins is tried: in fences, in prose, and in reasoning that never
// ends. Brackets of prose, as in [1], [a link](…) or {placeholder}, are passed over
// by what stands in them.
//
// The error is nil or a *LimitError; what was found until there is valid.
func Candidates(text []byte, o Options) ([]Candidate, error) {
	f := finder{text: text, o: o, max: or(o.MaxCandidates, 10_000), starts: or(o.MaxStarts, 32), depth: or(o.MaxDepth, maxTracked)}
	if from, to := trim(text, 0, len(text)); from < to && f.valid(text[from:to]) {
		return []Candidate{{Start: from, End: to, Text: text[from:to], Type: typeOf(text[from]), Complete: true, Closed: true}}, nil
	}
	for _, s := range Segments(text, o) {
		f.segment(s)
	}
	if len(f.found) == 0 && f.limit == nil {
		f.unbraced()
	}
	f.finish()
	if f.limit != nil {
		return f.found, f.limit
	}
	return f.found, nil
}

type finder struct {
	text   []byte
	o      Options
	found  []Candidate
	max    int
	starts int // openers that are never closed and may still be followed
	depth  int
	limit  *LimitError
	track  track

	// Of the area that is searched.
	look   look
	shift  int // added to an offset in look.b to get one in text
	where  Where
	outer  int   // the end of the last candidate that nothing closes
	inside int   // candidates found in it
	lines  []int // the first lines that begin with a brace inside a string of the last span
}

func (f *finder) valid(b []byte) bool { return jsonrepair.Check(b, f.depth) == nil }

// trim takes white space off both ends.
func trim(b []byte, from, to int) (int, int) {
	for from < to && isSpace(b[from]) {
		from++
	}
	for from < to && isSpace(b[to-1]) {
		to--
	}
	return from, to
}

func typeOf(c byte) Type {
	switch c {
	case '{', 0xef:
		return Object
	case '[':
		return Array
	}
	return Scalar
}

// segment searches a part of the answer.
func (f *finder) segment(s Segment) {
	switch {
	case s.Kind == Marker || s.Kind == Reasoning && s.Closed && !f.o.InReasoning:
		return
	case s.Kind == Prose:
		f.area(s.Start, s.End, InProse)
	case s.Kind == Reasoning:
		f.area(s.BodyStart, s.BodyEnd, InReasoning)
	default:
		f.fence(s)
	}
}

// fence searches a code fence.
func (f *finder) fence(s Segment) {
	where, lang := InFence, s.Language()
	if lang != "" && !jsonLanguage(lang) {
		where = InCode
	}
	if where == InCode && f.onlyJSON(s) {
		where = InFence
	}
	if s.Prefixed() {
		f.quoted(s, where)
		return
	}
	from, to := trim(f.text, s.BodyStart, s.BodyEnd)
	if from < to && where == InFence && f.valid(f.text[from:to]) {
		c := Candidate{Start: from, End: to, Text: f.text[from:to], Where: where, Type: typeOf(f.text[from]), Complete: true, Closed: true}
		if c.Type != Scalar || jsonLanguage(lang) {
			f.add(c)
			return
		}
	}
	before := len(f.found)
	f.area(s.BodyStart, s.BodyEnd, where)
	if jsonLanguage(lang) && len(f.found) == before && from < to && f.limit == nil {
		// Somebody said that it is JSON.
		f.add(Candidate{Start: from, End: to, Text: f.text[from:to], Where: where, Type: Object, Closed: s.Closed, Doubtful: true})
	}
}

// onlyJSON reports whether a fence for another language holds one value and nothing
// else: the language was a slip.
func (f *finder) onlyJSON(s Segment) bool {
	body := s.Body(f.text)
	from, to := trim(body, 0, len(body))
	f.look = look{b: body[from:to], eof: true, reads: f.look.reads}
	if c, n := f.look.structAt(0); n == 0 || c != '{' && c != '[' || f.look.begins(0, false) != sure {
		return false
	}
	end, _ := f.span(0)
	return end == to-from
}

// quoted searches a fence in a block quote, by its content.
func (f *finder) quoted(s Segment, where Where) {
	body := s.Body(f.text)
	inner := finder{text: body, o: f.o, max: f.max - len(f.found), starts: f.starts, depth: f.depth}
	inner.area(0, len(body), where)
	for _, c := range inner.found {
		c.Start, c.End = s.BodyStart, s.BodyEnd
		f.add(c)
	}
	if inner.limit != nil && f.limit == nil {
		f.limit = &LimitError{Limit: inner.limit.Limit, Offset: s.BodyStart}
	}
	f.starts = inner.starts
}

func (f *finder) add(c Candidate) bool {
	if len(f.found) >= f.max {
		f.stop("MaxCandidates", c.Start)
		return false
	}
	f.found = append(f.found, c)
	return true
}

func (f *finder) stop(limit string, at int) {
	if f.limit == nil {
		f.limit = &LimitError{Limit: limit, Offset: at}
	}
}

// area searches text[from:to].
func (f *finder) area(from, to int, where Where) {
	f.look, f.shift, f.where, f.outer, f.inside = look{b: f.text[from:to], eof: true, reads: f.look.reads}, from, where, 0, 0
	for i := 0; i < to-from && f.limit == nil; {
		if c := f.look.b[i]; c != '{' && c != '[' && c != 0xef {
			i++
			continue
		}
		if s, _ := f.look.structAt(i); s != '{' && s != '[' {
			i++
			continue
		}
		i = f.opener(i)
	}
}

// opener tries the bracket at i, and returns where to go on.
func (f *finder) opener(i int) int {
	l := &f.look
	s, n := l.structAt(i)
	loose := f.where == InFence || f.lineStart(i, false)
	v := l.begins(i, loose && f.where != InCode)
	switch {
	case v == none, v == empty && !f.alone(i):
		return i + n
	case f.starts == 0:
		f.stop("MaxStarts", f.shift+i)
		return len(l.b)
	}
	end, closed := f.span(i)
	if !closed {
		f.starts--
		if !loose && s == '[' {
			return i + n // a bracket of prose
		}
	}
	c := Candidate{
		Start: f.shift + i, End: f.shift + end, Text: l.b[i:end], Where: f.where, Closed: closed,
		Doubtful: v == weak && !loose, Inside: i < f.outer, Placeholder: v == empty,
	}
	if s == '[' {
		c.Type = Array
	}
	c.Complete = closed && f.valid(c.Text)
	if v == weak && !closed && s == '{' {
		c.Doubtful = true
	}
	if !f.add(c) {
		return len(l.b)
	}
	if c.Inside {
		if f.inside++; f.inside >= maxInside {
			return max(f.outer, end)
		}
	}
	if closed {
		if !c.Complete && !c.Inside {
			f.restarts(slices.Clone(f.lines), end)
		}
		return end
	}
	// What is JSON as far as it goes was cut, and holds no other answer.
	if err := jsonrepair.Check(c.Text, f.depth); err != nil && err.Offset >= len(c.Text) {
		return end
	}
	if end > f.outer {
		f.outer = end
		if !c.Inside {
			f.inside = 0
		}
	}
	return i + n
}

// restarts looks for valid JSON at the places where a line began with a brace
// inside a string of what is broken: where a string never ended, the next try
// looks like a part of it.
func (f *finder) restarts(places []int, end int) {
	l := &f.look
	from := 0
	for _, i := range places {
		if i < from || l.begins(i, false) != sure {
			continue
		}
		to, closed := f.span(i)
		from = to
		if closed && to <= end && f.valid(l.b[i:to]) {
			f.add(Candidate{Start: f.shift + i, End: f.shift + to, Text: l.b[i:to], Where: f.where, Complete: true, Closed: true, Inside: true})
		}
	}
}

// maxInside is how many candidates are looked for inside one that never ends.
const maxInside = 16

// lineStart reports whether only white space and the marks of lists and quotes are
// before i in its line; with behind, also whether it follows the last candidate.
func (f *finder) lineStart(i int, behind bool) bool {
	for k := i - 1; k >= 0 && i-k < maxPrefix; k-- {
		c := f.look.b[k]
		switch {
		case c == '\n':
			return true
		case behind && (c == '}' || c == ']') && len(f.found) > 0 && f.found[len(f.found)-1].End == f.shift+k+1:
			return true
		case !isBlank(c) && c != '>' && c != '-' && c != '*' && c != '`' && c != ',':
			return false
		}
	}
	return i < maxPrefix
}

// alone reports whether an empty object or array at i stands for a value: in a
// line of its own, or beside another value. "returns {} then" is prose.
func (f *finder) alone(i int) bool {
	l := &f.look
	if f.where == InCode || !f.lineStart(i, true) {
		return false
	}
	s, n := l.structAt(i)
	r := l.comments(i+n, i+maxEvidence)
	_, n = l.structAt(r)
	r += n
	for c, ok := l.at(r); ok && (isBlank(c) || c == '`' || c == ','); c, ok = l.at(r) {
		r++
	}
	c, ok := l.at(r)
	next, _ := l.structAt(r)
	return s != 0 && (!ok || c == '\n' || (next == '{' || next == '[') && l.begins(r, true) != none)
}

// span returns the end of the value that begins at i, and whether that is where its
// last bracket is closed.
func (f *finder) span(i int) (int, bool) {
	l, t := &f.look, &f.track
	t.reset()
	f.lines = f.lines[:0]
	for k := i; k < len(l.b); {
		if l.b[k] == '{' && t.inString() && l.b[k-1] == '\n' && len(f.lines) < maxInside {
			f.lines = append(f.lines, k)
		}
		if t.inString() && !t.skip {
			for k < len(l.b) && !endsText[l.b[k]] {
				k++
			}
			if k == len(l.b) {
				break
			}
		}
		n := t.step(l, k)
		k += n
		switch {
		case t.lost && t.line && t.words >= 3:
			end := t.wordsAt
			for end > i && isSpace(l.b[end-1]) {
				end--
			}
			return end, false
		case t.lost:
			return len(l.b), false
		case t.done:
			comma, ok := f.surplus(k, l.b[i])
			if !ok {
				return k, true
			}
			// The closers were too many: the container goes on.
			opener, _ := l.structAt(i)
			t.reset()
			t.structure(opener)
			k = comma
		}
	}
	_, end := trim(l.b, i, len(l.b))
	return end, false
}

// surplus reports whether closers at i that close nothing are followed by what
// goes on in a container that opener began, and where: {"a":{"b":1}}},"c":2}
func (f *finder) surplus(i int, opener byte) (int, bool) {
	l := &f.look
	closers := 0
	for end := i + maxEvidence; i < end; closers++ {
		i = l.space(i, maxGap)
		s, n := l.structAt(i)
		if s != '}' && s != ']' {
			break
		}
		i += n
	}
	comma := l.space(i, maxGap)
	s, n := l.structAt(comma)
	if closers == 0 || s != ',' {
		return 0, false
	}
	i = l.space(comma+n, maxGap)
	if opener == '[' {
		s, _ = l.structAt(i)
		return comma, s == '{' || s == '['
	}
	_, m := l.quoteAt(i)
	return comma, m > 0 && l.key(i, i+maxEvidence, false) == sure
}

// unbraced takes the whole text for an object whose braces are missing.
func (f *finder) unbraced() {
	from, to := trim(f.text, 0, len(f.text))
	l := look{b: f.text[:to], eof: true}
	if _, n := l.quoteAt(from); n > 0 && l.key(from, from+maxEvidence, false) == sure {
		f.add(Candidate{Start: from, End: to, Text: f.text[from:to], Type: Object})
	}
}

// finish tells placeholders from values, and numbers the candidates.
func (f *finder) finish() {
	full := false
	from, to := trim(f.text, 0, len(f.text))
	for _, c := range f.found {
		full = full || !c.Placeholder && !c.Doubtful
	}
	for i := range f.found {
		f.found[i].Index = i
		if c := &f.found[i]; c.Start == from && c.End == to && c.Where == InProse {
			c.Where = Whole
		}
		f.found[i].Placeholder = f.found[i].Placeholder && full
	}
}
