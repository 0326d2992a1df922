package recovery

import (
	"bytes"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/extract"
	"github.com/unfray/unfray/recovery/loop"
	"github.com/unfray/unfray/recovery/textrepair"
	"github.com/unfray/unfray/recovery/toolcall"
)

// Stream recovers an answer while it arrives. What it gives is final: it is never
// taken back. It is for one goroutine.
//
// Reasoning, calls, the syntax of JSON, and characters are recovered on the way.
// What needs the whole answer is done by [Stream.Close] as far as what was given
// already is the beginning of it: a value that was given stays, also where it does
// not fit the schema, and copies of a loop stay that were given before it was
// known for one. The result says what became of the text as it was given.
type Stream struct {
	o    Options
	form Form // Auto until enough has come to tell

	input []byte // all that came, up to the budget
	given []byte // all that was given
	over  bool   // more came than the budget allows
	// within is how much was given of what the budget allows, and reasoned the reasoning.
	within   int
	reasoned []byte
	// half is a character of the text of which a part has come, halfThought one of the
	// reasoning.
	half, halfThought []byte

	thoughts *extract.Scanner
	thought  thought
	trim     bool // white space behind reasoning is dropped
	// blank and held are the answer while the form is not known: white space, and what
	// is behind it.
	blank, held []byte
	json        *jsonrepair.Stream
	calls       *toolcall.Stream
	mend        *textrepair.Stream
	// loop and pondering look for loops, in what is given and in reasoning.
	loop, pondering *loop.Detector
	found           *loop.Loop // what stopped the stream
	stopped         bool
}

// Delta is what can be given on.
type Delta struct {
	Text, Reasoning []byte
	Calls           []toolcall.Delta
	// Stop says that the answer has run into a loop: nothing more of it is needed.
	Stop bool
}

// NewStream returns a stream without input. An answer of form Auto is taken for JSON
// where it begins like that, else for text. Code is given as it comes.
func NewStream(o Options) *Stream {
	o.Budget = o.Budget.withDefaults()
	o.Form = o.form()
	s := &Stream{o: o, form: o.Form}
	if o.uses(Reasoning) {
		if s.o.Extract.Unopened == 0 {
			s.o.Extract.Unopened = -1 // what was given cannot become reasoning
		}
		s.thoughts = extract.NewScanner(s.o.Extract)
	}
	if o.uses(Loops) {
		s.loop = loop.New(o.Loop)
		o.Loop.Context = loop.Reasoning
		s.pondering = loop.New(o.Loop)
	}
	if o.uses(Calls) && o.Form != Code && (len(o.Tools) > 0 || o.AnyTool) {
		s.calls = toolcall.NewStream(toolcall.Options{Tools: o.Tools})
	}
	s.begin()
	return s
}

// begin prepares for the form, once it is known.
func (s *Stream) begin() {
	switch s.form {
	case JSON:
		if s.o.uses(Repair) {
			o := s.o.JSON
			o.MaxDepth, o.MaxEdits = s.o.Budget.Depth, s.o.Budget.Edits
			s.json = jsonrepair.NewStream(o)
		}
	case Text:
		if s.o.uses(Mend) {
			o := s.o.Text
			o.MaxEdits = s.o.Budget.Edits
			s.mend = textrepair.NewStream(o)
		}
	}
}

// Write takes the next piece of the answer.
func (s *Stream) Write(p []byte) Delta {
	var d Delta
	if s.stopped {
		d.Stop = true
		return d
	}
	var beyond []byte
	if most := s.o.Budget.Bytes; s.over {
		p, beyond = nil, p
	} else if most > 0 && len(s.input)+len(p) > most {
		room := max(0, most-len(s.input))
		for room < len(p) && len(s.input)+room < most+utf8.UTFMax-1 && !utf8.RuneStart(p[room]) {
			room++ // a character is finished
		}
		p, beyond = p[:room], p[room:]
	}
	s.input = append(s.input, p...)
	if s.thoughts == nil {
		s.answer(p, &d)
	} else {
		s.think(s.thoughts.Write(p), &d)
	}
	if len(beyond) > 0 {
		s.overflow(beyond, &d)
	}
	d.Text, s.half = wholeRunes(s.half, d.Text)
	d.Reasoning, s.halfThought = wholeRunes(s.halfThought, d.Reasoning)
	s.give(&d)
	return d
}

// wholeRunes returns text behind what was held of a character, and holds back a character of
// which a part is missing at its end.
func wholeRunes(held, text []byte) (out, half []byte) {
	if len(held) > 0 {
		text = slices.Concat(held, text)
	}
	for n := 1; n <= min(utf8.UTFMax-1, len(text)); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-n], bytes.Clone(last)
			}
			break
		}
	}
	return text, nil
}

// overflow gives what comes beyond the budget as it is.
func (s *Stream) overflow(p []byte, d *Delta) {
	if !s.over {
		s.drain(d)
		s.over = true
		s.within = len(s.given) + len(s.half) + len(d.Text)
	}
	d.Text = append(d.Text, p...)
}

// think parts what the scanner gives. White space around reasoning belongs to nothing.
func (s *Stream) think(pieces []extract.Piece, d *Delta) {
	for _, p := range pieces {
		switch p.Kind {
		case extract.Reasoning:
			if p.Part == extract.Body {
				s.thought.add(p.Text, &d.Reasoning)
			} else if p.Part == extract.Closing {
				s.thought.end()
			}
			s.trim = true
		case extract.Marker:
			s.trim = true
		default:
			text := p.Text
			if s.trim {
				text = bytes.TrimLeft(text, " \t\r\n")
				s.trim = len(text) == 0
			}
			s.answer(text, d)
		}
	}
}

// thought joins stretches of reasoning, each without the white space around it.
type thought struct {
	space  []byte // held until something comes behind it
	within bool   // something of this stretch has been given
	any    bool   // something has been given
}

func (t *thought) add(p []byte, to *[]byte) {
	body := bytes.TrimRight(p, " \t\r\n\v\f")
	if len(body) == 0 {
		t.space = append(t.space, p...)
		return
	}
	if t.within {
		*to = append(*to, t.space...)
	} else {
		body = bytes.TrimLeft(body, " \t\r\n\v\f")
		if t.any {
			*to = append(*to, '\n')
		}
	}
	space := p[bytes.LastIndex(p, body)+len(body):]
	*to = append(*to, body...)
	t.space = append(t.space[:0], space...)
	t.within, t.any = true, true
}

func (t *thought) end() { t.space, t.within = t.space[:0], false }

// answer takes what is not reasoning, and takes the calls out of it.
func (s *Stream) answer(p []byte, d *Delta) {
	if s.calls == nil {
		s.rest(p, d)
		return
	}
	step := len(p)
	if s.form != Text {
		step = 1 // what stands before a call is told from what stands behind it
	}
	for ; len(p) > 0; p = p[step:] {
		step = min(step, len(p))
		text, calls, _ := s.calls.Write(p[:step]) // it is not closed
		s.called(calls, d)
		s.rest(text, d)
	}
}

// called passes calls on. Who calls a tool gives no other answer yet.
func (s *Stream) called(calls []toolcall.Delta, d *Delta) {
	d.Calls = append(d.Calls, calls...)
	if len(calls) > 0 && s.form != Text && len(s.given) == 0 && len(d.Text) == 0 {
		s.form, s.json = Text, nil
		s.begin()
		s.release(d)
	}
}

// release gives what was held while the form was not known.
func (s *Stream) release(d *Delta) {
	held := append(s.blank, s.held...)
	s.blank, s.held = nil, nil
	s.rest(held, d)
}

// rest takes what is neither reasoning nor a call.
func (s *Stream) rest(p []byte, d *Delta) {
	if s.form == Auto {
		if p = s.tell(p); s.form == Auto {
			return
		}
	}
	if s.json == nil {
		s.prose(p, d)
		return
	}
	s.json.Write(p) // an error is in the result too
	d.Text = append(d.Text, s.json.Committed()...)
}

// tell finds the form, from as few bytes as tell it, and returns all that came once it has.
func (s *Stream) tell(p []byte) []byte {
	for i, c := range p {
		if len(s.held) == 0 && isSpace(c) {
			s.blank = append(s.blank, c)
			continue
		}
		s.held = append(s.held, c)
		if s.form = startsAs(s.held); s.form == Auto && len(s.held) >= 4*maxUndecided {
			s.form = Text
		}
		if s.form != Auto {
			s.begin()
			all := slices.Concat(s.blank, s.held, p[i+1:])
			s.blank, s.held = nil, nil
			return all
		}
	}
	return nil
}

// startsAs tells the form by how an answer begins, Auto while that is open.
func startsAs(text []byte) Form {
	text = trimBlank(text)
	switch {
	case !utf8.FullRune(text): // none, too
		return Auto
	case text[0] == '{', text[0] == '[':
		switch likeJSON(text) {
		case yes:
			return JSON
		case undecided:
			return Auto
		}
		return Text
	}
	for _, fence := range []string{"```json", "~~~json"} {
		if bytes.HasPrefix(text, []byte(fence)) {
			return JSON
		}
		if bytes.HasPrefix([]byte(fence), text) {
			return Auto
		}
	}
	return Text
}

// prose mends characters.
func (s *Stream) prose(p []byte, d *Delta) {
	if s.mend == nil {
		d.Text = append(d.Text, p...)
		return
	}
	d.Text = append(d.Text, s.mend.Write(p)...)
}

// give keeps what is given, and looks for a loop in it.
func (s *Stream) give(d *Delta) {
	s.given = append(s.given, d.Text...)
	s.reasoned = append(s.reasoned, d.Reasoning...)
	if s.loop == nil || s.stopped {
		return
	}
	for _, l := range []*loop.Loop{s.loop.Write(d.Text), s.pondering.Write(d.Reasoning)} {
		if l != nil && (l.Cut >= 0 || l.Stop) && !s.stopped {
			s.stopped, d.Stop = true, true
			s.found = s.inInput(*l)
		}
	}
}

// inInput returns a loop that was found in what was given, with the place of its last copy
// in the input as its end.
func (s *Stream) inInput(l loop.Loop) *loop.Loop {
	length := l.End - l.Start
	l.Cut, l.End = -1, len(s.input)
	if at := bytes.LastIndex(s.input, l.Unit); at >= 0 {
		l.End = at + len(l.Unit)
	}
	l.Start = max(0, l.End-length)
	return &l
}

// drain gives what was held back.
func (s *Stream) drain(d *Delta) {
	if s.thoughts != nil {
		s.think(s.thoughts.Close(), d)
	}
	if s.calls != nil {
		text, calls, _ := s.calls.Close()
		s.called(calls, d)
		s.rest(text, d)
	}
	if s.form == Auto {
		s.form = Text
		s.begin()
		s.release(d)
	}
	if s.mend != nil {
		d.Text = append(d.Text, s.mend.Close()...)
	}
	if s.json != nil {
		s.json.Close()
		d.Text = append(d.Text, s.json.Committed()...)
	}
}

// Close ends the answer. It gives the rest and tells what became of all: of Text as
// it was given from the first byte on. finishReason is why the model ended, "" if it
// is not known. Where the answer breaks off the model is asked to go on, if
// Options.Ask says how.
func (s *Stream) Close(ctx context.Context, finishReason string) (Delta, *Result) {
	var d Delta
	o := s.o
	if finishReason != "" {
		o.FinishReason = finishReason
	}
	if s.form != Auto {
		o.Form = s.form
	}
	if most := o.Budget.Bytes; s.over || most > 0 && len(s.input) > most {
		s.overflow(nil, &d)
		d.Text, d.Reasoning = slices.Concat(s.half, d.Text), slices.Concat(s.halfThought, d.Reasoning)
		s.half, s.halfThought = nil, nil
		s.give(&d)
		var edits []Edit
		if within := s.given[:s.within]; !bytes.Equal(s.input, within) {
			edits = []Edit{{replacement(s.input, within, Streamed), Repair}}
		}
		return d, &Result{
			Outcome: Truncated, Form: formOr(o.Form), Text: s.given, Reasoning: s.reasoned, Edits: edits,
			Findings: []jsonrepair.Finding{{Kind: OverBudget, Offset: len(s.input), Text: "what came from here on was passed on as it was: the answer is longer than the budget allows"}},
		}
	}
	whole := Recover(ctx, s.input, o)
	if whole.Loop == nil {
		whole.Loop = s.found
	}
	if rest, ok := bytes.CutPrefix(whole.Text, s.given); ok && (whole.Text != nil || len(s.given) == 0) {
		d.Text = rest
		s.closeThoughts(&d)
		whole.Reasoning = append(s.reasoned, d.Reasoning...)
		if s.o.Form == Auto && o.Form == Text && o.holdsJSON(whole.Text) {
			whole.Findings = append(whole.Findings, jsonrepair.Finding{
				Kind: GivenBefore, Offset: len(s.input), Text: "as a whole it would have been taken for JSON: it begins as text, and was given as text",
			})
		}
		return d, whole
	}
	s.drain(&d)
	d.Text, s.half = slices.Concat(s.half, d.Text), nil
	d.Reasoning, s.halfThought = slices.Concat(s.halfThought, d.Reasoning), nil
	s.given = append(s.given, d.Text...)
	s.reasoned = append(s.reasoned, d.Reasoning...)
	return d, s.settle(ctx, o, whole)
}

// holdsJSON reports whether an answer of no told form is taken for JSON as a whole.
func (o Options) holdsJSON(text []byte) bool {
	o.Form = Auto
	a := newAttempt(context.Background(), text, &o)
	found, _ := extract.Candidates(text, o.answerOnly())
	return a.guess(found) == JSON
}

// closeThoughts gives the reasoning that was held back, and calls.
func (s *Stream) closeThoughts(d *Delta) {
	var rest Delta
	s.drain(&rest)
	d.Reasoning, d.Calls = slices.Concat(s.halfThought, rest.Reasoning), rest.Calls
	s.half, s.halfThought = nil, nil
}

// settle returns the result for what was given where the whole answer would be
// read otherwise.
func (s *Stream) settle(ctx context.Context, o Options, whole *Result) *Result {
	o.Ask, o.Fallback, o.Custom, o.Schema = nil, nil, nil, nil
	o.Strategies = []string{}
	for _, name := range []string{Reasoning, Calls, Repair, Mend} {
		if s.o.uses(name) {
			o.Strategies = append(o.Strategies, name)
		}
	}
	r := Recover(ctx, s.input, o)
	if !bytes.Equal(r.Text, s.given) {
		r.Text, r.Edits = s.given, nil
		if !bytes.Equal(s.input, s.given) {
			r.Edits = []Edit{{replacement(s.input, s.given, Streamed), Repair}}
		}
		r.Readings = nil
	}
	if r.Outcome < whole.Outcome {
		r.Outcome = whole.Outcome
	}
	r.Reasoning = s.reasoned
	r.Loop, r.Violations, r.Err, r.Trace = whole.Loop, whole.Violations, whole.Err, whole.Trace
	s.judge(r)
	if r.Loop != nil && r.Loop.Cut >= 0 {
		l := *r.Loop
		l.Cut = -1
		r.Loop = &l
	}
	r.Findings = append(r.Findings, jsonrepair.Finding{
		Kind: GivenBefore, Offset: len(s.input), Text: "more would have been changed had it not been given already",
	})
	return r
}

// judge holds what was given to the schema.
func (s *Stream) judge(r *Result) {
	if s.o.Schema == nil || r.Form != JSON || r.Outcome > Ambiguous || len(r.Calls) > 0 {
		return
	}
	v := s.o.Schema.Validate(r.Text)
	if len(v) == 0 {
		return
	}
	r.Violations = v
	if r.Outcome == Truncated {
		return
	}
	r.Outcome = Failed
	r.Err = &Error{
		Cause: "the value does not fit the schema: " + pathOr(v[0].Path) + ": " + v[0].Message,
		Tried: "it was given before it could be changed; recover the whole answer",
	}
}
