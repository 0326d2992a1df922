// Package normalize rewrites text as the normalizers of tokenizer files do,
// before it is cut into pieces.
//
//   - The steps do what Hugging Face tokenizers 0.23 does with the same entries
//     of a tokenizer.json, whatever Unicode version each of its parts is built
//     on; the step SentencePiece does what that library does with the
//     normalizer of a .model file.
//   - Bytes that are no UTF-8 stay as they are, where the references are given
//     none or write U+FFFD.
//   - Spaces that the steps write as U+2581 come out as spaces, see
//     [Normalizer.Meta].
//   - Time is linear in the text, memory too.
//
// A [Normalizer] does not change after it is made and may be shared by
// goroutines.
package normalize

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// metaSpace is the character that stands for a space in SentencePiece's
// vocabularies.
const metaSpace = "\u2581"

// Step is one normalizer of a tokenizer file. Fields that the type does not
// name are ignored.
type Step struct {
	// Type is one of
	//
	//	NFC NFD NFKC NFKD
	//	Lowercase, StripAccents, Nmt
	//	Strip          Left, Right
	//	Prepend        Content
	//	Replace        Pattern, Regex, Content
	//	Precompiled    Charsmap, applied as Hugging Face does: by grapheme clusters
	//	BertNormalizer CleanText, ChineseChars, StripAccents, Lowercase
	//	ByteLevel      nothing to do where text is bytes; must be the last
	//	SentencePiece  Charsmap (or none), applied as SentencePiece does, spaces
	//	               written as U+2581; CollapseSpaces
	Type string

	Pattern, Content string
	Regex            bool // Pattern is a regular expression, else a plain string
	Left, Right      bool
	Charsmap         []byte // SentencePiece's precompiled_charsmap

	CleanText, ChineseChars, StripAccents, Lowercase bool

	// CollapseSpaces is SentencePiece's remove_extra_whitespaces: spaces at
	// both ends are dropped, runs of them become one.
	CollapseSpaces bool
}

// step is one transformation f of a text.
type step interface {
	// append appends f(src) to dst.
	append(dst, src []byte) []byte
	// same reports whether f(src) is src.
	same(src []byte) bool
	// cuts appends to c, in ascending order and from {0, 0} on, places at which
	// src may be cut whatever follows it.
	cuts(src []byte, c []cut) []cut
	// inert reports whether a character is one that f leaves as it is between
	// two others like it, and that f(a+b) is f(a)+f(b) if a ends in two of them
	// and b begins with one.
	inert(r rune) bool
	// joins reports whether an inert character may change for what else stands
	// beside it, and the one before a cut needs another before it.
	joins() bool
	String() string
}

// cut is a place in a text src: for every continuation s, f(src+s) begins with
// f(src[:in]), which is of out bytes.
type cut struct{ in, out int }

// Normalizer is a sequence of steps.
type Normalizer struct {
	steps  []step
	prefix string
	// prefixText is whether texts that become empty have the prefix too.
	prefixText bool
	meta       bool
	names      []string
	inert      [utf8.RuneSelf]bool // for all steps
}

// New makes a normalizer. An error names the step that is not supported.
func New(steps []Step) (*Normalizer, error) {
	n := new(Normalizer)
	prepended := false
	for i, s := range steps {
		made, err := newSteps(s, i == len(steps)-1)
		if err == nil && prepended {
			err = n.addToPrefix(s, made)
		}
		if err != nil {
			return nil, fmt.Errorf("normalize: step %d of %d, %s: %w", i+1, len(steps), s.Type, err)
		}
		if s.Type == "Prepend" {
			prepended, n.prefix = true, s.Content
			n.prefixText = i > 0 && steps[i-1].Type == "SentencePiece" && !steps[i-1].CollapseSpaces
		}
		n.steps = append(n.steps, made...)
		n.names = append(n.names, s.name())
		n.meta = n.meta || s.Type == "SentencePiece" || strings.Contains(s.Content, metaSpace) &&
			(s.Type == "Replace" || s.Type == "Prepend")
	}
	if n.meta {
		n.prefix = strings.ReplaceAll(n.prefix, metaSpace, " ")
		n.unescape()
	}
	for r := range n.inert {
		n.inert[r] = n.inertRune(rune(r))
	}
	return n, nil
}

// unescape makes U+2581 a space at the end of all steps.
func (n *Normalizer) unescape() {
	if len(n.steps) > 0 {
		switch last := n.steps[len(n.steps)-1].(type) {
		case *sentencePiece:
			return // it does so itself
		case *replaceLiteral:
			if last.pattern == " " && last.content == metaSpace {
				n.steps = n.steps[:len(n.steps)-1]
			} else {
				last.content = strings.ReplaceAll(last.content, metaSpace, " ")
			}
		case *replaceRuns:
			last.content = strings.ReplaceAll(last.content, metaSpace, " ")
		}
	}
	n.steps = append(n.steps, newReplaceLiteral(metaSpace, " "))
}

// newSteps makes what a Step stands for: none where there is nothing to do.
func newSteps(s Step, last bool) ([]step, error) {
	one := func(s step) ([]step, error) { return []step{s}, nil }
	switch s.Type {
	case "NFC":
		return one(newFormStep(composed))
	case "NFD":
		return one(newFormStep(0))
	case "NFKC":
		return one(newFormStep(compatible | composed))
	case "NFKD":
		return one(newFormStep(compatible))
	case "Lowercase":
		return one(newCharStep("Lowercase", lowercase))
	case "StripAccents":
		return one(newCharStep("StripAccents", dropSet(markSet)))
	case "Nmt":
		return one(newCharStep("Nmt", nmt))
	case "Strip":
		if !s.Left && !s.Right {
			return nil, nil
		}
		return one(&strip{s.Left, s.Right})
	case "Prepend":
		return nil, nil // New does it
	case "Replace":
		return newReplace(s)
	case "Precompiled":
		m, err := newCharsmap(s.Charsmap)
		if err != nil {
			return nil, err
		}
		return one(newPrecompiled(m))
	case "SentencePiece":
		var m *charsmap
		if len(s.Charsmap) > 0 {
			var err error
			if m, err = newCharsmap(s.Charsmap); err != nil {
				return nil, err
			}
		}
		return one(newSentencePiece(m, s.CollapseSpaces))
	case "BertNormalizer":
		return bertSteps(s), nil
	case "ByteLevel":
		if !last {
			return nil, fmt.Errorf("steps after it would see mapped bytes, which is not supported")
		}
		return nil, nil
	}
	return nil, fmt.Errorf("this type of normalizer is not supported")
}

// addToPrefix lets a step that stands after a Prepend have its way with the
// prefix. That can be said apart from the text only if the step never joins the
// two, and never leaves less than one character of a text.
func (n *Normalizer) addToPrefix(s Step, made []step) error {
	switch s.Type {
	case "Strip", "SentencePiece", "StripAccents", "BertNormalizer", "Nmt", "Precompiled", "Prepend":
		return fmt.Errorf("it is not supported after a Prepend")
	case "Replace":
		if s.Content == "" {
			return fmt.Errorf("a replacement by nothing is not supported after a Prepend")
		}
	}
	for _, f := range made {
		c := f.cuts([]byte(n.prefix), nil)
		if c[len(c)-1].in < len(n.prefix) {
			return fmt.Errorf("it may join the text with the prefix %q of a Prepend, which is not supported", n.prefix)
		}
		n.prefix = string(f.append(nil, []byte(n.prefix)))
	}
	return nil
}

// name is a step in words.
func (s Step) name() string {
	switch s.Type {
	case "Prepend":
		return fmt.Sprintf("Prepend %q", s.Content)
	case "Replace":
		if s.Regex {
			return fmt.Sprintf("Replace regexp %q by %q", s.Pattern, s.Content)
		}
		return fmt.Sprintf("Replace %q by %q", s.Pattern, s.Content)
	case "Strip":
		switch {
		case !s.Left:
			return "Strip right"
		case !s.Right:
			return "Strip left"
		}
	case "SentencePiece":
		if s.CollapseSpaces {
			return "SentencePiece, spaces collapsed"
		}
	}
	return s.Type
}

// Prefix is what a Prepend puts before segments, U+2581 as a space: "" for
// none. [Normalizer.Append] leaves it to the caller; [Normalizer.PrefixOf] says
// which segments have it.
func (n *Normalizer) Prefix() string { return n.prefix }

// PrefixOf is [Normalizer.Prefix] if it is put before a segment of this text
// and normal form, else "": an empty one has none. Before SentencePiece's
// normalizer without CollapseSpaces the text counts, else the normal form.
func (n *Normalizer) PrefixOf(text, normal []byte) string {
	if len(normal) > 0 || n.prefixText && len(text) > 0 {
		return n.prefix
	}
	return ""
}

// Meta reports whether the steps write spaces as U+2581. Both come out as
// spaces then; that a text had a U+2581 of its own is lost.
func (n *Normalizer) Meta() bool { return n.meta }

// String lists the steps.
func (n *Normalizer) String() string {
	if len(n.names) == 0 {
		return "none"
	}
	return strings.Join(n.names, ", ")
}

// buffers are the texts between the steps.
type buffers struct {
	text [2][]byte
	cuts [2][]cut
}

// maxKeptBytes is the size of a text between steps up to which its memory is
// kept for reuse.
const maxKeptBytes = 1 << 20

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func (b *buffers) free() {
	if cap(b.text[0])+cap(b.text[1])+16*(cap(b.cuts[0])+cap(b.cuts[1])) <= maxKeptBytes {
		bufferPool.Put(b)
	}
}

// Append appends the normal form of a segment of text to dst, without
// [Normalizer.Prefix].
func (n *Normalizer) Append(dst, text []byte) []byte {
	// Steps that change nothing cost one look at the text.
	i := 0
	for i < len(n.steps) && n.steps[i].same(text) {
		i++
	}
	switch len(n.steps) - i {
	case 0:
		return append(dst, text...)
	case 1:
		return n.steps[i].append(dst, text)
	}
	b := bufferPool.Get().(*buffers)
	defer b.free()
	k := 0
	for ; i < len(n.steps)-1; i++ {
		if k > 0 && n.steps[i].same(text) {
			continue
		}
		buf := &b.text[k%2]
		*buf = n.steps[i].append((*buf)[:0], text)
		text = *buf
		k++
	}
	return n.steps[i].append(dst, text)
}

// Same reports whether a text is its own normal form, apart from
// [Normalizer.Prefix]. It may be false for a text that one step changes and
// another changes back.
func (n *Normalizer) Same(text []byte) bool {
	for _, f := range n.steps {
		if !f.same(text) {
			return false
		}
	}
	return true
}

func (n *Normalizer) inertRune(r rune) bool {
	for _, f := range n.steps {
		if !f.inert(r) {
			return false
		}
	}
	return true
}

// Restart gives the last place w in text[:limit] of which can easily be shown
// that the normalizer starts afresh there: for every continuation s, the normal
// form of text+s is that of text[:w] followed by that of text[w:]+s. It is 0 if
// none is near limit.
func (n *Normalizer) Restart(text []byte, limit int) int {
	if len(n.steps) == 0 {
		return limit
	}
	// A step that joins may change the ends of a run of inert characters, so
	// that the run is shorter for the next one.
	before, after := 1, 1
	for _, f := range n.steps {
		if f.joins() {
			before, after = before+1, after+1
		}
	}
	const window = 1 << 12
	run, end := 0, limit
	for i := limit; i > 0 && i > limit-window; {
		r, size := utf8.DecodeLastRune(text[:i])
		if size == 1 && r == utf8.RuneError || r < utf8.RuneSelf && !n.inert[r] || r >= utf8.RuneSelf && !n.inertRune(r) {
			run = 0
		} else if run++; run == after {
			end = i - size
		} else if run >= after+before {
			return end
		}
		i -= size
	}
	return 0
}

// Settled gives an offset q in text such that for every continuation s the
// normal form of text+s begins with that of text[:q]. It is as large as the
// steps can prove one by one. White space that a step may strip or collapse is
// not settled at the text's end.
func (n *Normalizer) Settled(text []byte) int {
	if len(n.steps) == 0 {
		return len(text)
	}
	w := n.Restart(text, len(text))
	b := bufferPool.Get().(*buffers)
	defer b.free()
	text = text[w:]
	// Invariant: cuts lead from text[w:] to what comes out of the steps so far,
	// committed is the part of the last one's input up to the last cut.
	cuts := n.steps[0].cuts(text, b.cuts[0][:0])
	committed := text[:cuts[len(cuts)-1].in]
	for i, f := range n.steps[1:] {
		buf := &b.text[i%2]
		*buf = n.steps[i].append((*buf)[:0], committed)
		next := f.cuts(*buf, b.cuts[1][:0])
		b.cuts[1] = next
		var end int
		cuts, end = compose(cuts, next)
		committed = (*buf)[:end]
	}
	b.cuts[0] = cuts
	return w + cuts[len(cuts)-1].in
}

// compose keeps of the cuts of one step those at which the next one can be cut
// too, with what comes out of that. end is the last such place between the two.
func compose(cuts, next []cut) (kept []cut, end int) {
	kept = cuts[:0]
	for _, c := range cuts {
		for len(next) > 0 && next[0].in < c.out {
			next = next[1:]
		}
		if len(next) > 0 && next[0].in == c.out {
			kept = append(kept, cut{c.in, next[0].out})
			end = c.out
		}
	}
	return kept, end
}
