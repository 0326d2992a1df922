package boundary

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer"
)

// explain puts the report's result into words, with one example of a token
// that could take the place of pending ones.
func (r *Report) explain(readings []tokenizer.Reading) string {
	switch {
	case len(r.IDs) == 0:
		return "the text is empty"
	case len(r.text) == 0:
		return "the text ends with a control token, which no continuation changes"
	case len(r.Pending) == 0:
		return "no continuation changes these tokens: no longer token begins with any of the last bytes"
	}
	moving := fmt.Sprintf("the last %d tokens can still change", len(r.IDs)-r.Stable)
	if len(r.IDs)-r.Stable == 1 {
		moving = "the last token can still change"
	}
	if n := incomplete(r.Pending); n > 0 {
		return fmt.Sprintf("%s: the text ends inside a character, after %d of its bytes", moving, n)
	}
	for _, b := range r.Branches {
		if !b.Added {
			continue
		}
		for id := range b.Extensions(r.tok.Vocab()) {
			return fmt.Sprintf("%s: %q may become the added token %q", moving, b.Rest, r.tok.Vocab().Bytes(id))
		}
	}
	if longest := r.longestRest(); len(longest.Rest) > 0 {
		id := slices.Min(slices.Collect(longest.Extensions(r.tok.Vocab())))
		return fmt.Sprintf("%s: a longer token such as %q may take the place of %q", moving, r.tok.Vocab().Bytes(id), longest.Rest)
	}
	if len(readings) > 1 {
		return moving + ": what follows may split the text before it in another way"
	}
	return moving
}

// longestRest is the branch that leaves the prompt first. The one of its
// extensions with the lowest ID, most often the commonest, makes an example.
func (r *Report) longestRest() Branch {
	var longest Branch
	for _, b := range r.Branches {
		if len(b.Rest) > len(longest.Rest) {
			longest = b
		}
	}
	return longest
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
