package textrepair

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// MaxLine is how many bytes of a line are looked at together. A longer line is cut where a space stands between ASCII
// letters or digits, if there is one in the last quarter.
const MaxLine = 4096

// MaxHold is how many bytes a [Stream] holds back at most.
const MaxHold = MaxLine + 4

const (
	maxFindings = 1000 // as in jsonrepair
	contextSize = 1024 // bytes before a line that are searched for words about entities
)

// Kinds of edits.
const (
	Mojibake       jsonrepair.Kind = "mojibake"    // UTF-8 that was read as another encoding
	Entity         jsonrepair.Kind = "entity"      // HTML entity, decoded once
	Surrogate      jsonrepair.Kind = "surrogate"   // half of a pair replaced by U+FFFD, or both joined
	C1Control      jsonrepair.Kind = "c1_control"  // byte of Windows-1252 that was read as a control character
	SingleByte     jsonrepair.Kind = "single_byte" // byte of Windows-1252 in a line that is no UTF-8
	InvalidUTF8                    = jsonrepair.InvalidUTF8
	CutCharacter   jsonrepair.Kind = "cut_character"   // beginning of a character at the very end, dropped
	Control        jsonrepair.Kind = "control"         // control character, dropped
	TerminalEscape jsonrepair.Kind = "terminal_escape" // escape sequence or overstriking, dropped
	ByteOrderMark                  = jsonrepair.ByteOrderMark
	ZeroWidth      jsonrepair.Kind = "zero_width"   // invisible character that no script needs there, dropped
	BidiControl    jsonrepair.Kind = "bidi_control" // in code without right-to-left letters, dropped
	TokenMark      jsonrepair.Kind = "token_mark"   // Ġ, Ċ, ▁ and other letters for bytes of a vocabulary
	ByteToken      jsonrepair.Kind = "byte_token"   // <0x0A>
	LineEnd        jsonrepair.Kind = "line_end"     // CR CR LF, U+2028, U+2029
)

// Kinds of edits that are made on request.
const (
	CurlyQuote jsonrepair.Kind = "curly_quote"
	Width      jsonrepair.Kind = "width"
	Ligature   jsonrepair.Kind = "ligature"
	Composed   jsonrepair.Kind = "composed"
)

// Kinds of findings besides those of edits that were not made.
const (
	ReplacementCharacter jsonrepair.Kind = "replacement_character" // U+FFFD in the input: what it was is lost
	EscapedText          jsonrepair.Kind = "escaped_text"          // \ud83d written out
)

// A TextKind says what the text is.
type TextKind uint8

// Kinds of text.
const (
	// Auto takes text for prose, and what stands in Markdown fences for code.
	Auto TextKind = iota
	Prose
	// Code is text in which a character means itself: entities and tokenizer marks stay, invisible characters go.
	Code
)

// A Policy says when to act.
type Policy uint8

// Policies.
const (
	ByEvidence Policy = iota
	Always
	Never
)

// Options say what to mend. The zero value is right for the output of a model.
type Options struct {
	Kind TextKind
	// Entities are decoded by evidence: in prose, where no raw < stands before or in the line, none of the characters that
	// the entity stands for, and no word says that the text is about entities. Always decodes them in code too.
	Entities Policy
	// Leave names kinds of edits that are not made.
	Leave []jsonrepair.Kind

	StraightQuotes bool // “ ” ‘ ’ become " and '
	NarrowWidth    bool // full-width ASCII and half-width kana take their usual width
	SplitLigatures bool // ﬁ becomes fi
	NFC            bool // e + combining acute becomes é
	LineFeeds      bool // CR LF and CR become LF

	Keys bool // RepairJSON mends keys too

	// MaxEdits is after how many edits the rest of the text is left as it is; a line that is
	// being mended is finished. 0: no limit.
	MaxEdits int
}

// A Result is mended text and the receipt for it.
type Result struct {
	// Text is the input itself where nothing was mended.
	Text []byte
	// Edits make Text of the input, in order. See jsonrepair.Apply.
	Edits []jsonrepair.Edit
	// Findings are places that were seen and left as they are, the first 1,000.
	Findings []jsonrepair.Finding
	// Full says that Options.MaxEdits was reached: what follows the last edit was not looked at.
	Full bool
	// Err says why RepairJSON did nothing: the input is not JSON.
	Err *jsonrepair.Error
}

// Repair mends text. It takes any bytes: what is no UTF-8 becomes U+FFFD, unless it proves to be Windows-1252.
func Repair(text []byte, o Options) *Result {
	e := newEngine(o)
	for at, lineAt := 0, 0; ; {
		at, _ = e.scan(text, at, true)
		if at == len(text) || e.full() {
			break
		}
		start, end, _ := segmentAround(text, lineAt, at, true)
		e.repairSegment(text[start:end], start, at-start, text[:start], end == len(text))
		at, lineAt = end, end
	}
	return e.result(text)
}

func (e *engine) result(text []byte) *Result {
	r := &Result{Text: text, Edits: e.edits, Findings: e.findings, Full: e.full()}
	if len(r.Edits) > 0 {
		r.Text = jsonrepair.Apply(text, slices.Values(r.Edits))
	}
	return r
}

// segmentAround returns the segment of text that holds position at. No segment before from is of interest. It fails
// where text must go on for it to be known.
func segmentAround(text []byte, from, at int, final bool) (start, end int, ok bool) {
	start = from
	if i := bytes.LastIndexByte(text[from:at], '\n'); i >= 0 {
		start = from + i + 1
	}
	for {
		end, ok = segmentEnd(text, start, final)
		if !ok || end > at {
			return start, end, ok
		}
		start = end
	}
}

// segmentEnd returns the end of the segment that begins at start: behind a newline, or where a long line is cut.
func segmentEnd(text []byte, start int, final bool) (end int, ok bool) {
	window := text[start:min(len(text), start+MaxLine)]
	if i := bytes.IndexByte(window, '\n'); i >= 0 {
		return start + i + 1, true
	}
	switch rest := len(text) - start; {
	case rest > MaxLine:
	case final:
		return len(text), true
	default:
		return start, false
	}
	for cut := start + MaxLine; cut > start+MaxLine*3/4; cut-- {
		if text[cut-1] == ' ' && alnum(text[cut-2]) && alnum(text[cut]) {
			return cut, true
		}
	}
	end = start + MaxLine
	for back := 0; back < 3 && text[end]&0xC0 == 0x80; back++ {
		end--
	}
	return end, true
}

func alnum(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
