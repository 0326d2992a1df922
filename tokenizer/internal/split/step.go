package split

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Step is one pre-tokenizer of a tokenizer.json. A Sequence is several.
type Step struct {
	// Type is Split, ByteLevel, Digits, Metaspace, Whitespace, WhitespaceSplit,
	// Punctuation, BertPreTokenizer, CharDelimiterSplit or FixedLength.
	Type       string
	Pattern    string // Split: a regular expression, if Regex, or a string
	Regex      bool
	Behavior   string // Split, Punctuation: Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous
	Invert     bool   // Split
	UseRegex   bool   // ByteLevel: split as GPT-2 does
	Individual bool   // Digits: each by itself
	Split      bool   // Metaspace: pretokens begin at each ' '
	Delimiter  rune   // CharDelimiterSplit
	Length     int    // FixedLength, in code points
}

// New gives the splitter of the steps of a tokenizer.json, each of which cuts
// the pretokens of the one before. Without steps a segment is one pretoken.
func New(steps []Step) (Splitter, error) {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return !s.Cuts() })
	if s := knownSequence(steps); s != nil {
		return s, nil
	}
	var last stage = whole{}
	for i, step := range slices.Backward(steps) {
		if i > 0 && steps[i-1].Type == "ByteLevel" && !strings.HasPrefix(step.Pattern, "[0-9]") {
			return nil, fmt.Errorf("split: pre-tokenizer %s after ByteLevel is not supported: it would see bytes spelled as letters", step.Type)
		}
		s, err := newStage(step)
		if err != nil {
			return nil, fmt.Errorf("split: pre-tokenizer %d: %w", i+1, err)
		}
		switch {
		case i == len(steps)-1:
			last = s
		case !restarts(s, last):
			return nil, fmt.Errorf("split: pre-tokenizer %s before %s is not supported: it cannot be resumed inside its pretokens", s, last)
		default:
			last = newSequence(s, last)
		}
	}
	return last, nil
}

// Cuts reports whether the step does anything to a text.
func (s Step) Cuts() bool {
	switch s.Type {
	case "ByteLevel":
		return s.UseRegex
	case "Metaspace":
		return s.Split
	case "Split":
		return s.Regex || s.Pattern != ""
	}
	return true
}

// knownSequence gives the scanner that does at once what several steps do, nil
// if there is none.
func knownSequence(steps []Step) stage {
	f := family{unicode160(), foldFull}
	isolate := func(re string) Step { return Step{Type: "Split", Pattern: re, Regex: true, Behavior: "Isolated"} }
	switch {
	case slices.Equal(steps, []Step{{Type: "Digits", Individual: true}, {Type: "ByteLevel", UseRegex: true}}):
		f.t = unicode170Numbers()
		return likeStarCoder.in(f)
	case slices.Equal(steps, []Step{isolate(`\p{N}`), {Type: "ByteLevel", UseRegex: true}}),
		slices.Equal(steps, []Step{isolate(`\p{N}`), isolate(gpt2Text)}):
		return likeStarCoder.in(f)
	case slices.Equal(steps, []Step{isolate(numbersText), isolate(kanaText), isolate(deepseekText)}):
		return likeDeepSeek.in(f)
	case slices.Equal(steps, []Step{isolate(numbersText), isolate(strings.Replace(cl100kText, numbersText, `\p{N}+`, 1))}):
		return likeMiniCPM5.in(f)
	}
	return nil
}

// restarts reports whether first cuts the rest of one of its pretokens, from a
// cut of then on, as it cut the whole.
func restarts(first, then stage) bool {
	switch s := first.(type) {
	case *cuts:
		return true
	case *exact: // the numbers of " ?\p{N}+" are at the end of a pretoken
		m, ok := s.matcher.(*gpt2)
		return ok && !m.digits && cutsNumbersOnly(then)
	case *inexact:
		return s.behavior == isolated && !s.invert && s.run != nil
	case *delimited:
		f, ok := s.finder.(*repeat)
		return ok && s.behavior == isolated && !s.invert && (f.least <= 1 && f.most <= 1 || keepsNumbers(then) && f.set == numbers)
	}
	return false
}

// cutsNumbersOnly reports whether s never cuts but beside a number.
func cutsNumbersOnly(s stage) bool {
	switch s := s.(type) {
	case *cuts:
		return s.name == digitsName
	case *delimited:
		f, ok := s.finder.(*repeat)
		return ok && f.set == numbers
	case *sequence:
		return cutsNumbersOnly(s.first) && cutsNumbersOnly(s.then)
	}
	return false
}

// keepsNumbers reports whether s never cuts up to three numbers.
func keepsNumbers(s stage) bool {
	if e, ok := s.(*exact); ok {
		switch m := e.matcher.(type) {
		case *gpt2:
			return !m.digits
		case *cl100k:
			return m.digits != 1
		}
	}
	return false
}

func newStage(step Step) (stage, error) {
	switch step.Type {
	case "Split":
		return newSplit(step)
	case "ByteLevel":
		return likeGPT2.in(family{unicode160(), foldFull}), nil
	case "Digits":
		return newDigits(step.Individual), nil
	case "Metaspace":
		return newCuts("Metaspace", nil, ' ', mergedWithNext, false), nil
	case "Whitespace":
		return newWhitespace(), nil
	case "WhitespaceSplit":
		return newCuts("WhitespaceSplit", spaces.has, -1, removed, false), nil
	case "Punctuation":
		b, err := behaviorNamed(step.Type, step.Behavior)
		if err != nil {
			return nil, err
		}
		return newCuts("Punctuation", func(c class) bool { return c&bert != 0 }, -1, b, false), nil
	case "BertPreTokenizer":
		return newBert(), nil
	case "CharDelimiterSplit":
		if !utf8.ValidRune(step.Delimiter) {
			return nil, fmt.Errorf("CharDelimiterSplit: delimiter %#x is not a character", step.Delimiter)
		}
		return newCuts(fmt.Sprintf("CharDelimiterSplit %q", step.Delimiter), nil, step.Delimiter, removed, false), nil
	case "FixedLength":
		if step.Length <= 0 {
			return nil, fmt.Errorf("FixedLength: length %d is not positive", step.Length)
		}
		return fixedLength(step.Length), nil
	}
	return nil, fmt.Errorf("type %q is not supported", step.Type)
}

func newSplit(step Step) (stage, error) {
	b, err := behaviorNamed(step.Type, step.Behavior)
	if err != nil {
		return nil, err
	}
	if !step.Regex {
		if r, n := utf8.DecodeRuneInString(step.Pattern); n == len(step.Pattern) && (r != utf8.RuneError || n > 1) {
			return newCuts(fmt.Sprintf("Split %q", step.Pattern), nil, r, b, step.Invert), nil
		}
		return &delimited{newPlainText(step.Pattern), fmt.Sprintf("Split %q", step.Pattern), b, step.Invert}, nil
	}
	// A pattern that matches everything leaves nothing between its matches.
	if e := hubPattern(step.Pattern); e != nil && (b == isolated && !step.Invert || b == removed && step.Invert) {
		return e, nil
	}
	if f, ok := repeats[step.Pattern]; ok {
		return &delimited{&f, "Split " + step.Pattern, b, step.Invert}, nil
	}
	return newRegexp(step.Pattern, b, step.Invert, oniguruma)
}

// whole makes a segment one pretoken.
type whole struct{}

func (whole) next(text []byte, _ int) (end, look int) { return len(text), len(text) }

func (whole) Scan(ends []int, text []byte, from int) int {
	if from >= len(text) || len(ends) == 0 {
		return 0
	}
	ends[0] = len(text)
	return 1
}

func (whole) Next(text []byte, _ int) (end int, fixed bool) { return len(text), false }

func (whole) Probes(text []byte, from int) []string {
	if from >= len(text) {
		return nothing
	}
	return wholeProbes
}

var wholeProbes = []string{"", "a"}

func (whole) Completions(part []byte) []string { return unicode160().completions(part, nil) }
func (whole) Keeps([]byte) bool                { return true }
func (whole) Exact() bool                      { return true }
func (whole) String() string                   { return "none" }

// fixedLength cuts after so many characters.
type fixedLength int

func (s fixedLength) next(text []byte, from int) (end, look int) {
	for range s {
		_, n := unicode160().at(text, from)
		if n == 0 {
			return from, from
		}
		look = from
		from += n
	}
	return from, look
}

func (s fixedLength) Scan(ends []int, text []byte, from int) int {
	n := 0
	for n < len(ends) && from < len(text) {
		from, _ = s.next(text, from)
		ends[n] = from
		n++
	}
	return n
}

func (s fixedLength) Next(text []byte, from int) (end int, fixed bool) {
	end, look := s.next(text, from)
	return end, look < settled(text)
}

func (s fixedLength) Probes(text []byte, from int) []string { return whole{}.Probes(text, from) }

func (fixedLength) Completions(part []byte) []string { return unicode160().completions(part, nil) }
func (fixedLength) Keeps([]byte) bool                { return true }
func (fixedLength) Exact() bool                      { return true }
func (s fixedLength) String() string                 { return fmt.Sprintf("FixedLength %d", int(s)) }
