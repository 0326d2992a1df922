package boundary

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

const (
	reasonControl = "the text ends with a control token, which no continuation changes"
	reasonStable  = "no continuation changes these tokens: no longer token begins with any of the last bytes"
)

// explain puts the report's result into words, with one example of a token
// that could take the place of pending ones.
func (a *analysis) explain(r *Report) string {
	n := len(r.IDs)
	switch {
	case n == 0 && len(a.raw) == 0:
		return "the text is empty"
	case len(a.raw) == r.StableBytes && r.Stable == n:
		if n > 0 && !a.v.IsText(r.IDs[n-1]) {
			return reasonControl
		}
		return reasonStable
	}
	moving := fmt.Sprintf("the last %d tokens can still change", n-r.Stable)
	if n-r.Stable == 1 {
		moving = "the last token can still change"
	}
	switch {
	case a.tail.Opaque != "":
		return moving + ": " + a.tail.Opaque
	case r.Loss != nil:
		return moving + ", and they do not give the end of the text back: " + r.Loss.Reason
	case a.opaque != "":
		return moving + ": " + a.opaque
	}
	if k := incomplete(r.Pending); k > 0 {
		return fmt.Sprintf("%s: the text ends inside a character, after %d of its bytes", moving, k)
	}
	for i := range a.readings {
		if rd := &a.readings[i]; rd.Added != vocab.None {
			return fmt.Sprintf("%s: %q may become the added token %q", moving, a.tail.Text[rd.Open:rd.Until], a.v.Bytes(rd.Added))
		}
	}
	b := decisive(r)
	if b == nil {
		return moving + ": what follows may make the normalizer rewrite the end of the text, as when it composes the last letter and a combining mark"
	}
	id := r.example(b)
	if id == vocab.None {
		return moving + ": what follows may split the text before it in another way"
	}
	why := fmt.Sprintf("%s: %s, as in %q", moving, joining(b.Rest, a.v.Bytes(id)[len(b.Rest):]), a.v.Bytes(id))
	if _, ok := a.tokensUpTo(len(a.tail.Text) - len(b.Rest)); !ok {
		why += ", which divides the text before in another way"
	}
	return why
}

// decisive is the branch with the longest rest that leaves the trunk where the
// stable tokens end; nil if there is none.
func decisive(r *Report) (found *Branch) {
	trunk := r.Branches[0].Path
	for i := range r.Branches[1:] {
		b := &r.Branches[i+1]
		if len(b.Path) > 0 && len(trunk) > 0 && b.Path[0] == trunk[0] {
			continue
		}
		if found == nil || len(b.Rest) > len(found.Rest) {
			found = b
		}
	}
	return found
}

// examples bounds the tokens that are looked at for an example.
const examples = 512

// example is a token that may follow a branch: of several one with a low ID,
// which are the common ones.
func (r *Report) example(b *Branch) vocab.ID {
	if len(b.Rest) == 0 {
		return vocab.None
	}
	a := r.a
	sorted := a.v.Sorted(extensions(a.v, b.Rest))
	sorted = sorted[:min(len(sorted), examples)]
	low := vocab.ID(-1)
	for range 3 {
		next := vocab.None
		for _, id := range sorted {
			if id > low && (next == vocab.None || id < next) {
				next = id
			}
		}
		if next == vocab.None {
			break
		}
		if r.Follows(b, next) {
			return next
		}
		low = next
	}
	for _, id := range sorted[:min(len(sorted), 32)] {
		if r.Follows(b, id) {
			return id
		}
	}
	return vocab.None
}

// joining says what happens where rest, which ends the text, goes on with more.
func joining(rest, more []byte) string {
	last, _ := utf8.DecodeLastRune(rest)
	next, _ := utf8.DecodeRune(more)
	switch {
	case last == '\'' || last == '’':
		return "the apostrophe may begin a contraction or join a quotation"
	case next == '\'' || next == '’':
		return "a contraction may join the last word"
	case last == '\n' || last == '\r':
		return "what follows may join the newline"
	case next == '\n' || next == '\r':
		return "a newline may join the last signs"
	case unicode.IsSpace(last):
		if unicode.IsSpace(next) {
			return "more white space may join that at the end"
		}
		return "the next word takes in the blank before it"
	case unicode.IsLetter(last) && unicode.IsLetter(next):
		return "more letters may join the last word"
	case unicode.IsNumber(last) && unicode.IsNumber(next):
		return "more digits may join the last number"
	case unicode.IsMark(next):
		return "a combining mark may join the last letter"
	}
	return fmt.Sprintf("a longer token may take the place of %q", rest)
}

// incomplete is how many bytes at the end of text begin a UTF-8 sequence that
// needs more.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		tail := text[len(text)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
