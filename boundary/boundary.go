package boundary

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Report is what [Analyze] finds out about a prompt's end. Its methods are for
// one goroutine.
type Report struct {
	// IDs is the tokenization of the prompt.
	IDs []vocab.ID
	// Stable is the number of leading IDs that every continuation keeps.
	Stable int
	// StableBytes is the length of the prompt's text that those IDs stand for,
	// in bytes.
	StableBytes int
	// Pending is what the tokens after the stable ones spell. Generation that
	// starts from the stable tokens must first produce these bytes. If Loss is
	// nil they are the prompt from StableBytes on, but for Prefix.
	Pending []byte
	// Prefix is how many bytes at the start of Pending are not in the prompt: 1
	// for the space that a vocabulary puts before a text, else 0.
	Prefix int
	// Loss, if not nil, is why the tokens after the stable ones do not spell
	// the prompt: what they spell must not be generated in its place. Bytes lost
	// before that do not count here: see [tokenizer.Tokenizer.Loss].
	Loss *tokenizer.Loss
	// Branches lists the canonical ways over the pending bytes. The first is
	// the trunk: the prompt's own tokens. Where it would take long to find out
	// that no token can leave the prompt by a branch, that branch is here too.
	// There are none where Loss says why, and where the model is of a kind in
	// which the tokens of a pretoken's beginning say nothing about those of the
	// whole.
	Branches []Branch
	// Reason says in words why the tokens after the stable ones may change, or
	// why none may.
	Reason string

	a *analysis // what Branches come from; nil without any
	// fixed is how many tokens of the analysis' trunk are stable.
	fixed int
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

	// ways are the readings of the text that the branch comes from.
	ways []way
	// last is the token before the next one; None if that begins the tail. joined
	// says that both stand in one pretoken.
	last   vocab.ID
	joined bool
	// plain says that another branch of the same Path and Rest has all that goes
	// on with a user-defined token.
	plain bool
}

// Joins reports whether the tokenizer may leave a token beside the end of Path,
// for one of [Branch.Extensions]. It does not look at what the pre-tokenizer
// forbids, and may be asked by several goroutines, which [Report.Follows] may
// not.
func (b *Branch) Joins(t *tokenizer.Tokenizer, id vocab.ID) bool {
	return !b.joined || !t.Pairwise() || t.Apart(b.last, id)
}

// Range is where the tokens that begin with Rest and are longer stand in byte
// order; it is empty if Rest is. If Added is true only the user-defined ones
// among them may follow.
func (b *Branch) Range(v *vocab.Vocab) vocab.Range {
	if len(b.Rest) == 0 {
		return vocab.Range{}
	}
	return extensions(v, b.Rest)
}

// Extensions lists the tokens that begin with Rest and are longer, in byte
// order; none if Rest is empty. Not each of them is a cover's last token:
// [Report.All] looks at how they join what stands before.
func (b Branch) Extensions(v *vocab.Vocab) iter.Seq[vocab.ID] {
	return func(yield func(vocab.ID) bool) {
		if len(b.Rest) == 0 {
			return
		}
		for _, id := range v.Sorted(b.Range(v)) {
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
	x := t.NewText(false)
	x.Append(text)
	return analyze(x)
}

// AnalyzeSpecial is Analyze, but control tokens spelled in the text are the
// control token, as in [tokenizer.Tokenizer.EncodeSpecial]. They are fences:
// neither they nor anything before them can change.
func AnalyzeSpecial(t *tokenizer.Tokenizer, text []byte) *Report {
	x := t.NewText(true)
	x.Append(text)
	return analyze(x)
}

// AnalyzeText is [Analyze] for a text that grows. It costs by the end of the
// text that is not settled, not by the text, but for the copy in Report.IDs.
// The report does not change when the text does.
func AnalyzeText(x *tokenizer.Text) *Report { return analyze(x) }

// AnalyzeIDs reports on a prompt given as token IDs, which must be in the
// vocabulary. Control tokens are fences: neither they nor anything before them
// can change. canonical is false if the IDs after the last control token are
// not the tokenizer's own tokenization of their text; the report is then about
// that tokenization.
func AnalyzeIDs(t *tokenizer.Tokenizer, ids []vocab.ID) (r *Report, canonical bool) {
	n := afterControl(t.Vocab(), ids)
	head := ids[:n]
	x := t.NewTextAfter(head)
	text := t.DecodeAfter(nil, head, ids[n:])
	x.Append(text)
	if canonical = slices.Equal(x.IDs(), ids[n:]); !canonical && len(text) > 0 && text[0] == ' ' {
		// Some vocabularies put a space after each control token, and their
		// decoders leave it there.
		x.Reset()
		x.Append(text[1:])
		if canonical = slices.Equal(x.IDs(), ids[n:]); !canonical {
			x.Reset()
			x.Append(text)
		}
	}
	r = analyze(x)
	r.IDs = slices.Concat(head, r.IDs)
	r.Stable += n
	before := len(t.Decode(nil, head))
	r.StableBytes += before
	if r.Loss != nil {
		r.Loss.Offset += before
	}
	if n > 0 && n == len(ids) {
		r.Reason = reasonControl
	}
	return r, canonical
}

// afterControl is how many of ids stand before the text at their end.
func afterControl(v *vocab.Vocab, ids []vocab.ID) int {
	n := len(ids)
	for n > 0 && v.IsText(ids[n-1]) {
		n--
	}
	return n
}

// Stable gives the number of leading tokens of the text that every continuation
// keeps, and the bytes of the text that they stand for, as in
// [Report.Stable] and [Report.StableBytes]. It allocates nothing in steady
// state.
func Stable(x *tokenizer.Text) (tokens, bytes int) {
	a := analyses.Get().(*analysis)
	defer analyses.Put(a)
	a.load(x)
	fixed := a.stable()
	tokens, bytes = a.tail.Tokens+fixed, a.textEnd(fixed)
	a.raw, a.text, a.ids = nil, nil, nil
	return tokens, bytes
}

func analyze(x *tokenizer.Text) *Report {
	a := new(analysis)
	a.load(x)
	r := &Report{IDs: slices.Clone(a.ids)}
	r.fixed = a.stable()
	r.Stable = a.tail.Tokens + r.fixed
	r.StableBytes = a.textEnd(r.fixed)
	at := a.end(r.fixed)
	rest := a.raw[r.StableBytes:]
	r.Pending = slices.Clone(a.tail.Text[at:])
	if len(rest) > 0 || len(r.Pending) > 0 {
		r.findLoss(a, rest)
	}
	if r.Loss == nil && a.opaque == "" {
		r.a = a
		r.Branches = a.branches(r.fixed, at)
	}
	r.Reason = a.explain(r)
	a.raw, a.text, a.ids = nil, nil, nil // they change with the text
	return r
}

// findLoss compares what is pending with the text that it is to stand for.
func (r *Report) findLoss(a *analysis, rest []byte) {
	if !a.lossy {
		switch {
		case a.tail.Opaque != "" && a.t.Loss(rest) != nil:
			r.Loss = &tokenizer.Loss{Offset: r.StableBytes, Reason: "tokens of this kind do not say where white space stands"}
			return
		case bytes.Equal(r.Pending, rest):
			return
		case len(r.Pending) == len(rest)+1 && r.Pending[0] == ' ' && bytes.Equal(r.Pending[1:], rest):
			r.Prefix = 1
			return
		}
	}
	r.Pending = slices.Clone(rest)
	if r.Loss = a.t.Loss(a.raw); r.Loss != nil && r.Loss.Offset >= r.StableBytes {
		return
	}
	if r.Loss = a.t.Loss(rest); r.Loss == nil {
		// What is lost shows only together with what stands before.
		r.Loss = &tokenizer.Loss{Offset: r.StableBytes, Reason: "the tokens after the stable ones do not spell the text"}
		return
	}
	r.Loss.Offset += r.StableBytes
	r.Loss.Reason += fmt.Sprintf(", counted from byte %d", r.StableBytes)
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
