package heal

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Plan is what to do with one prompt. It does not change once made and may
// serve several generations at once, each with its own [Session].
type Plan struct {
	// Mode is what is done: Exact, Stable, Last or Off.
	Mode Mode
	// Prompt holds the IDs that stay, to be prefilled.
	Prompt []vocab.ID
	// Trunk holds the prompt's own IDs after Prompt where the plan is for
	// Exact and something is pending: [Plan.NewChoice] chooses among them and
	// others.
	Trunk []vocab.ID
	// Removed is how many of the prompt's own tokens are not in Prompt.
	Removed int
	// Pending holds the prompt's bytes that generation must produce first.
	Pending []byte
	// Branches are the canonical ways over the pending bytes, with paths that
	// start after Prompt. They are empty where nothing is pending and where
	// the replay goes by bytes alone.
	Branches []boundary.Branch
	// Notes says what was done in another way than asked.
	Notes []Note

	tok   *tokenizer.Tokenizer
	vocab *vocab.Vocab
	tree  *coverTree // nil: nothing to choose

	firstOnce sync.Once
	first     vocab.Mask // of a session that has accepted nothing; nil: not made
}

// New plans the healing of a prompt. The IDs must be in t's vocabulary; a BOS
// token is one of them. New does not keep or change ids. Auto is Stable, which
// needs a mask only: what a backend can do is for the caller to know.
func New(t *tokenizer.Tokenizer, ids []vocab.ID, mode Mode) *Plan {
	p := &Plan{Mode: mode, Prompt: slices.Clone(ids), tok: t, vocab: t.Vocab()}
	switch mode {
	case Off:
	case Last:
		p.planLast()
	default:
		p.Mode = Stable
		p.planStable(t, mode == Exact)
	}
	return p
}

func (p *Plan) note(code, text string) {
	p.Notes = append(p.Notes, Note{Code: code, Text: text})
}

// rollBack drops the last n tokens of the prompt and makes their bytes pending.
func (p *Plan) rollBack(n int) {
	keep := len(p.Prompt) - n
	for _, id := range p.Prompt[keep:] {
		p.Pending = append(p.Pending, p.vocab.Bytes(id)...)
	}
	p.Prompt, p.Removed = p.Prompt[:keep], n
}

// rollBackBytes is rollBack for a replay that goes by bytes. It leaves the
// prompt alone if no token can begin the replay, which only happens in
// vocabularies that lack some single bytes.
func (p *Plan) rollBackBytes(n int) {
	whole := p.Prompt
	p.rollBack(n)
	if n == 0 || len(p.vocab.AppendPrefixes(nil, p.Pending)) > 0 || p.vocab.PrefixRange(p.Pending).Len() > 0 {
		return
	}
	p.Prompt, p.Pending, p.Removed = whole, nil, 0
	p.note(CodeMaskEmpty, "no token of the vocabulary can produce the prompt's last bytes again; the prompt was left as it is")
}

// planLast drops the last token, unless it is a control token or the only one.
func (p *Plan) planLast() {
	n := len(p.Prompt)
	switch {
	case n == 0 || !p.vocab.IsText(p.Prompt[n-1]):
		return
	case n == 1:
		p.noteNothingBefore(0)
		return
	}
	p.rollBackBytes(1)
}

func (p *Plan) planStable(t *tokenizer.Tokenizer, exact bool) {
	whole := p.Prompt
	r, canonical := boundary.AnalyzeIDs(t, p.Prompt)
	if exact {
		defer func() { p.planExact(r, whole) }()
	}
	switch {
	case r.Loss != nil:
		p.Mode = Off
		p.note(CodeLossy, "the prompt's last bytes cannot be produced again: "+r.Loss.Reason+"; the prompt was left as it is")
	case !canonical:
		p.planBytes(r, Note{CodeNotCanonical, "the prompt's token IDs are not the tokenizer's own tokenization of their text; the bytes rolled back may be produced again by any tokens"})
	case len(r.Pending) == 0:
	case len(r.Branches) == 0:
		p.planBytes(r, Note{CodeUnproved, r.Reason + "; the bytes rolled back may be produced again by any tokens"})
	case r.Stable > 0:
		p.rollBack(len(p.Prompt) - r.Stable)
		p.Branches = r.Branches
	case len(p.Prompt) > 1:
		// Keep the first token all the same; what is left of the branches are
		// those that agree with it.
		first := p.Prompt[0]
		p.rollBack(len(p.Prompt) - 1)
		for _, b := range r.Branches {
			if len(b.Path) > 0 && b.Path[0] == first {
				b.Path = b.Path[1:]
				p.Branches = append(p.Branches, b)
			}
		}
		p.noteNothingBefore(1)
	default:
		p.noteNothingBefore(0)
	}
}

// planExact turns a plan for Stable into one for Exact where all covers are
// known and not too many.
func (p *Plan) planExact(r *boundary.Report, whole []vocab.ID) {
	switch {
	case p.Mode != Stable:
		return
	case len(p.Pending) == 0:
		p.Mode = Exact // nothing to choose: the prompt is as good as it can be
		return
	case len(p.Branches) == 0:
		return // by bytes, and a note says why
	}
	if p.tree = newCoverTree(r, p.Branches); p.tree == nil {
		p.note(CodeExactBound, fmt.Sprintf("the prompt's end can be tokenized in too many ways to weigh them all (more than %d tokens, or %d beginnings beside them); it was healed with stable", maxNodesTrunk, maxNodesBeside))
		return
	}
	p.Mode, p.Trunk = Exact, whole[len(p.Prompt):]
}

// planBytes rolls back to the last of the caller's own tokens that ends before
// the pending bytes. These may be produced by any tokens.
func (p *Plan) planBytes(r *boundary.Report, why Note) {
	var theirs []byte
	for _, id := range p.Prompt {
		theirs = append(theirs, p.vocab.Bytes(id)...)
	}
	pending := r.Pending
	if !bytes.HasSuffix(theirs, pending) {
		// They need not have the space that the vocabulary puts before a text.
		pending = pending[r.Prefix:]
	}
	stable := len(theirs) - len(pending)
	keep, at := 0, 0
	for keep < len(p.Prompt) {
		n := len(p.vocab.Bytes(p.Prompt[keep]))
		if at+n > stable {
			break
		}
		at += n
		keep++
	}
	if keep == len(p.Prompt) {
		return
	}
	p.Notes = append(p.Notes, why)
	if keep == 0 {
		keep = 1
		p.noteNothingBefore(1)
	}
	p.rollBackBytes(len(p.Prompt) - keep)
}

func (p *Plan) noteNothingBefore(kept int) {
	text := "the prompt is a single token that may still change, and the model has no start token to roll back to; the prompt was left as it is"
	if kept > 0 {
		text = "every token of the prompt may still change, and the model has no start token to roll back to; the first token was kept"
	}
	p.note(CodeNothingBefore, text)
}
