package boundary

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Report is what [Analyze] finds out about a prompt's end.
type Report struct {
	// IDs is the tokenization of the prompt.
	IDs []vocab.ID
	// Stable is the number of leading IDs that every continuation keeps.
	Stable int
	// StableBytes is the length of the text of those IDs, in bytes.
	StableBytes int
	// Pending is the prompt's text after the stable tokens. Generation that
	// starts from the stable tokens must first produce these bytes.
	Pending []byte
	// Branches lists the canonical ways over the pending bytes. The first is
	// the trunk: the prompt's own tokens. There are none where the pending text
	// has bytes that the vocabulary has no token for, and where the vocabulary
	// is not [tokenizer.Tokenizer.Proper].
	Branches []Branch
	// Reason says in words why the tokens after the stable ones may change, or
	// why none may.
	Reason string

	tok *tokenizer.Tokenizer
	// text is the prompt after its last control token.
	text []byte
	// fixed holds the stable tokens of the pretokens that may move.
	fixed []vocab.ID
}

// Branch is a family of covers: paths that begin with the same tokens and
// leave the prompt by their next one.
type Branch struct {
	// Path holds the tokens after the stable prefix. Each ends inside the
	// pending bytes or at their end.
	Path []vocab.ID
	// Rest is what Path leaves of the pending bytes. The token after Path
	// begins with Rest and is longer. If Rest is empty, Path is a cover.
	Rest []byte
	// Added says that only user-defined tokens may follow Path: Rest is one
	// half typed.
	Added bool
}

// Extensions lists the tokens that may follow the branch's path, in byte
// order: those that begin with Rest and are longer. It is empty if Rest is.
func (b Branch) Extensions(v *vocab.Vocab) iter.Seq[vocab.ID] {
	return func(yield func(vocab.ID) bool) {
		if len(b.Rest) == 0 {
			return
		}
		for _, id := range v.Sorted(extensions(v, b.Rest)) {
			if b.Added && v.Kind(id) != vocab.UserDefined {
				continue
			}
			if !yield(id) {
				return
			}
		}
	}
}

// Analyze reports on a prompt of plain text: control tokens spelled in it are
// text.
func Analyze(t *tokenizer.Tokenizer, text []byte) *Report {
	return analyze(t, nil, 0, text, t.Encode(nil, text))
}

// AnalyzeSpecial is Analyze, but control tokens spelled in the text are the
// control token, as in [tokenizer.Tokenizer.EncodeSpecial]. They are fences:
// neither they nor anything before them can change.
func AnalyzeSpecial(t *tokenizer.Tokenizer, text []byte) *Report {
	ids := t.EncodeSpecial(nil, text)
	head, at := afterControl(t.Vocab(), ids), 0
	if head > 0 {
		at = t.Ends(nil, text, ids[:head])[head-1]
	}
	return analyze(t, ids[:head], at, text[at:], ids[head:])
}

// AnalyzeIDs reports on a prompt given as token IDs, which must be in the
// vocabulary. Control tokens are fences: neither they nor anything before them
// can change. canonical is false if the IDs after the last control token are
// not the tokenizer's own tokenization of their text; the report is then about
// that tokenization.
func AnalyzeIDs(t *tokenizer.Tokenizer, ids []vocab.ID) (r *Report, canonical bool) {
	head := afterControl(t.Vocab(), ids)
	before := len(t.Decode(nil, ids[:head]))
	text := t.Decode(nil, ids[head:])
	own := t.Encode(nil, text)
	return analyze(t, ids[:head], before, text, own), slices.Equal(own, ids[head:])
}

// afterControl is how many of ids stand before the text at their end.
func afterControl(v *vocab.Vocab, ids []vocab.ID) int {
	n := len(ids)
	for n > 0 && v.IsText(ids[n-1]) {
		n--
	}
	return n
}

// analyze does the work for text after the fixed tokens head, which take the
// first bytes of the prompt, before of them; ids is the tokenization of text.
func analyze(t *tokenizer.Tokenizer, head []vocab.ID, before int, text []byte, ids []vocab.ID) *Report {
	r := &Report{tok: t, text: text, IDs: slices.Concat(head, ids)}
	readings := t.Readings(text)
	start := readings[0].Start
	base := tokensBefore(t, text, ids, start)
	if why := unanalyzable(t, text, before, start); why != "" {
		r.Stable, r.Pending = len(head)+base, text[start:]
		r.StableBytes = before + start
		r.Reason = why
		return r
	}
	trunk, at := ids[base:], start
	branches := []Branch{{Path: trunk}}
	c := newCanon(t, len(text)-start)
	for _, rd := range readings {
		branches = c.appendBranches(branches, text, rd)
	}
	common := len(trunk)
	for _, b := range branches {
		common = min(common, vocab.CommonPrefix(trunk, b.Path))
	}
	r.fixed = trunk[:common]
	for _, id := range r.fixed {
		at += len(t.Vocab().Bytes(id))
	}
	for i := range branches {
		branches[i].Path = branches[i].Path[common:]
	}
	r.Pending = text[at:]
	if len(r.Pending) == 0 {
		branches = branches[:1]
	}
	r.Stable = len(head) + base + common
	r.StableBytes = before + at
	r.Branches = branches
	r.Reason = r.explain(readings)
	return r
}

// unanalyzable says why the rule of this package does not hold for the pretokens
// after start; empty if it does. before is where text begins in the prompt.
func unanalyzable(t *tokenizer.Tokenizer, text []byte, before, start int) string {
	if i := t.Unencodable(text[start:]); i >= 0 {
		return fmt.Sprintf("byte %#02x at offset %d has no token in this vocabulary: the tokens after the stable ones do not give the text back, so it cannot be healed", text[start+i], before+start+i)
	}
	if !t.Proper() && start < len(text) {
		return "this vocabulary has merges that make no token, so all tokens of the last pretokens may change"
	}
	return ""
}

// tokensBefore is how many of ids, the tokens of text, come from the pretokens
// before start. They are not those of text[:start], which may split differently
// at its end.
func tokensBefore(t *tokenizer.Tokenizer, text []byte, ids []vocab.ID, start int) int {
	n, at := 0, 0
	if t.Unencodable(text[:start]) < 0 {
		for ; at < start; n++ {
			at += len(t.Vocab().Bytes(ids[n]))
		}
		return n
	}
	ids = nil
	for _, end := range t.Pretokens(nil, text) {
		if at >= start {
			break
		}
		ids = t.EncodePiece(ids[:0], text[at:end])
		n += len(ids)
		at = end
	}
	return n
}

// appendBranches adds the branches of one reading that are not there yet.
func (c *canon) appendBranches(dst []Branch, text []byte, rd tokenizer.Reading) []Branch {
	var closed []vocab.ID
	at := rd.Start
	for _, end := range rd.Closed {
		closed = c.t.Encode(closed, text[at:end])
		at = end
	}
	open := text[rd.Open:]
	if rd.Added != vocab.None {
		return appendBranch(dst, Branch{Path: closed, Rest: open, Added: true})
	}
	v := c.t.Vocab()
	enc := newPrefixEncoder(c, open)
	// The longest rest first: few tokens, and the likeliest, extend it.
	for p := max(0, len(open)-v.MaxLen()+1); p <= len(open); p++ {
		b := Branch{Rest: open[p:]}
		if len(b.Rest) > 0 && extensions(v, b.Rest).Len() == 0 {
			continue
		}
		b.Path = enc.encode(slices.Clip(closed), p)
		if len(b.Rest) > 0 && !c.live(b, p > 0) {
			continue
		}
		dst = appendBranch(dst, b)
	}
	return dst
}

func appendBranch(dst []Branch, b Branch) []Branch {
	for _, o := range dst {
		if o.Added == b.Added && bytes.Equal(o.Rest, b.Rest) && slices.Equal(o.Path, b.Path) {
			return dst
		}
	}
	return append(dst, b)
}

// extensions is the range of tokens that begin with rest and are longer.
func extensions(v *vocab.Vocab, rest []byte) vocab.Range {
	r := v.PrefixRange(rest)
	sorted := v.Sorted(r)
	// Tokens with exactly these bytes come first in byte order.
	for len(sorted) > 0 && len(v.Bytes(sorted[0])) == len(rest) {
		sorted = sorted[1:]
		r.Lo++
	}
	return r
}
