package continuation

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// Why is evidence that a text breaks off. Scripts may rely on the values.
type Why string

// The kinds of evidence.
const (
	OpenStructure Why = "open_structure" // JSON, reasoning or a tool call has not ended
	UnclosedFence Why = "unclosed_fence" // a code block has not ended
	MidCharacter  Why = "mid_character"  // the text ends inside a UTF-8 sequence
	FinishLength  Why = "finish_length"  // the upstream says so
	UsageAtCap    Why = "usage_at_cap"   // as many tokens as were allowed
	// MidSentence is no more than a hint, and no reason by itself: many whole
	// answers end like this.
	MidSentence Why = "mid_sentence"
)

// DetectOptions is what is known of a text besides its bytes.
type DetectOptions struct {
	// FinishReason is the upstream's, in the spelling of any of the common APIs.
	FinishReason string
	// CompletionTokens and MaxTokens are the answer's length and its limit; 0: not
	// known.
	CompletionTokens, MaxTokens int
	Form                        Form
}

// Truncation says whether a text breaks off.
type Truncation struct {
	// Cut says that the text breaks off. A JSON text that is whole does not, whatever
	// the finish reason says.
	Cut bool
	// Malformed says that the text was to be JSON, and has a fault before its end.
	// That is for a repair; a text can be malformed and cut.
	Malformed bool
	Why       []Why
	// Open names what has not ended, the outermost first. Beside the kinds of
	// jsonrepair there are fence, reasoning and tool_call.
	Open []jsonrepair.Open
	// Fault is where malformed JSON stops being JSON.
	Fault *jsonrepair.Error
}

func (t *Truncation) add(w Why) { t.Why = append(t.Why, w) }

// Has reports whether w is among the evidence.
func (t *Truncation) Has(w Why) bool {
	for _, v := range t.Why {
		if v == w {
			return true
		}
	}
	return false
}

// IsOpen reports whether the text itself shows that it breaks off: something in it
// has not ended, if only a sentence.
func (t *Truncation) IsOpen() bool {
	return t.Cut && (len(t.Open) > 0 || t.Has(MidCharacter) || t.Has(MidSentence))
}

// finish is what a finish reason means.
type finish uint8

const (
	unknown  finish = iota
	stopped         // by the model
	limited         // by a limit
	withheld        // by a filter
)

var finishes = map[string]finish{
	"stop": stopped, "end_turn": stopped, "stop_sequence": stopped, "tool_calls": stopped, "tool_use": stopped,
	"function_call": stopped, "eos": stopped, "eos_token": stopped, "STOP": stopped, "COMPLETE": stopped, "completed": stopped,
	"length": limited, "max_tokens": limited, "MAX_TOKENS": limited, "max_output_tokens": limited,
	"model_context_window_exceeded": limited, "incomplete": limited, "model_length": limited, "limit": limited, "ERROR_LIMIT": limited,
	"content_filter": withheld, "refusal": withheld, "SAFETY": withheld, "RECITATION": withheld, "PROHIBITED_CONTENT": withheld,
	"BLOCKLIST": withheld, "SPII": withheld, "ERROR_TOXIC": withheld,
}

// Detect says whether a text breaks off. Finish reasons are wrong in both
// directions: so the structure counts first. Time is linear.
func Detect(text []byte, o DetectOptions) Truncation {
	var t Truncation
	s := look(text, o.Form)
	how := finishes[o.FinishReason]
	whole := t.structure(text, s, o.Form, how)
	if cut := incomplete(text); cut > 0 {
		t.add(MidCharacter)
	}
	certain := len(t.Why) > 0
	if how == limited {
		t.add(FinishLength)
	}
	atCap := o.MaxTokens > 0 && o.CompletionTokens >= o.MaxTokens
	if atCap {
		t.add(UsageAtCap)
	}
	middle := !certain && !whole && !t.Malformed && midSentence(text[s.body:])
	if middle {
		t.add(MidSentence)
	}
	t.Cut = !whole && (certain || how == limited || atCap && (how != stopped || middle))
	return t
}

// structure fills in what the text's own form says. It reports whether the text is
// whole for certain.
func (t *Truncation) structure(text []byte, s *shape, form Form, how finish) (whole bool) {
	if s.fence.at != none {
		t.Open = append(t.Open, jsonrepair.Open{Kind: "fence", Offset: s.fence.at})
	}
	switch {
	case s.thinking != none:
		t.Open = append(t.Open, jsonrepair.Open{Kind: "reasoning", Offset: s.thinking})
		t.add(OpenStructure)
	case s.call != none:
		t.Open = append(t.Open, jsonrepair.Open{Kind: "tool_call", Offset: s.call})
		t.add(OpenStructure)
	case s.whole():
		if s.fence.at != none {
			t.add(UnclosedFence)
			return form == JSON || how != limited
		}
		return true
	case s.json != none && s.m.state == inNumber && s.m.depth == 0:
		return how != limited && s.m.number.whole()
	case s.json != none:
		t.openJSON(jsonrepair.Repair(text[s.json:], jsonrepair.Options{}), s.json)
		t.add(OpenStructure)
	case form == JSON || form == Auto && s.fence.at == none && !s.prose && resemblesJSON(text[s.body:]):
		return t.repaired(text, s.body)
	case s.fence.at != none:
		t.add(UnclosedFence)
	case s.wrapped:
		return true
	}
	return false
}

// openJSON takes over what a repair found open.
func (t *Truncation) openJSON(r *jsonrepair.Result, base int) {
	for _, o := range r.Open {
		o.Offset += base
		t.Open = append(t.Open, o)
	}
}

// repaired looks at what was to be JSON and is not.
func (t *Truncation) repaired(text []byte, at int) (whole bool) {
	if at >= len(text) {
		return false
	}
	r := jsonrepair.Repair(text[at:], jsonrepair.Options{})
	if r.Outcome == jsonrepair.Valid {
		return true
	}
	t.Malformed = true
	if t.Fault = jsonrepair.Check(text[at:], 0); t.Fault != nil {
		t.Fault.Offset += at
	}
	t.openJSON(r, at)
	if r.Outcome == jsonrepair.Truncated {
		t.add(OpenStructure)
	}
	return r.Outcome == jsonrepair.Repaired || r.Outcome == jsonrepair.Ambiguous
}

// resemblesJSON reports whether a text that is not strict JSON was to be JSON: an
// object, or an array of objects or strings.
func resemblesJSON(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	in := skipSpace(text, 1)
	switch {
	case in >= len(text):
		return false
	case text[0] == '[':
		return text[in] == '{' || text[in] == '"'
	case text[0] != '{':
		return false
	case text[in] == '"' || text[in] == '\'':
		return true
	}
	// {name: …
	n := in
	for n < len(text) && (text[n] == '_' || text[n] == '-' || unicode.IsLetter(rune(text[n])) || isDigit(text[n])) {
		n++
	}
	colon := skipSpace(text, n)
	return n > in && colon < len(text) && text[colon] == ':'
}

// incomplete returns how many bytes at the text's end begin a character that is not
// there.
func incomplete(text []byte) int {
	for k := 1; k < utf8.UTFMax && k <= len(text); k++ {
		if tail := text[len(text)-k:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return k
			}
			break
		}
	}
	return 0
}

// midSentence reports whether prose ends where no sentence does, although earlier
// ones did.
func midSentence(text []byte) bool {
	line := text
	if n := bytes.LastIndexByte(text, '\n'); n >= 0 {
		line = text[n+1:]
	}
	last, _ := utf8.DecodeLastRune(line)
	if !unicode.IsLetter(last) && !unicode.IsDigit(last) && last != ',' && last != ';' && last != '(' {
		return false
	}
	for i := 1; i < len(line); i++ {
		if isSpace(line[i]) && (line[i-1] == '.' || line[i-1] == '!' || line[i-1] == '?') {
			return true
		}
	}
	n := bytes.LastIndexAny(text[:len(text)-len(line)], ".!?")
	return n >= 0 && len(line) > 40
}
