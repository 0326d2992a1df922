package unfray

import (
	"errors"
	"fmt"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/fim"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/vocab"
)

// CodeFilesDropped is the code of a note on files that the model is not shown.
const CodeFilesDropped = "files_dropped"

// Fill is the text after the cursor, for a continuation that is to go between
// the prompt and it.
type Fill struct {
	Suffix []byte // may be empty; plain text
	// Order is that of the sections; nil: the usual one of the model's family.
	Order *fim.Order
	// Files are shown to the model first, in Repo, with Name as that of the file
	// to be filled in. Those that do not fit are left out, with a note, the first
	// ones first.
	Files      []fim.File
	Repo, Name string
}

// FIM is the layout of the model's prompts for filling in the middle. The error
// is a [*fim.NoFIMError] if the model has no tokens for it.
func (m *Model) FIM() (*fim.Layout, error) { return m.fim() }

// filling is what a request with a Fill needs beside a plan.
type filling struct {
	layout *fim.Layout
	prefix []byte
	suffix []byte
}

// prepareFill arranges the sections. The healing is planned for the end of the
// prefix section: the markers and the suffix are never touched.
func (m *Model) prepareFill(req *Request) (*Prepared, error) {
	if req.Prompt.IDs != nil {
		return nil, &RequestError{Param: "suffix", Text: "a prompt of token IDs cannot have a suffix: give the prompt as text, or put the model's own markers among the IDs"}
	}
	layout, err := m.fim()
	if err == nil && req.Fill.Order != nil {
		layout, err = layout.In(*req.Fill.Order)
	}
	if err != nil {
		return nil, &RequestError{Param: "suffix", Text: err.Error(), Err: err}
	}
	var head []vocab.ID
	if sp := m.tok.Vocab().Specials(); sp.AddBOS && sp.BOS != vocab.None && !req.Prompt.NoBOS {
		head = append(head, sp.BOS)
	}
	before := []vocab.ID{layout.Before()}
	prefix := m.tok.EncodeAfter(nil, before, req.Prompt.Text)
	suffix := layout.EncodeSuffix(nil, req.Fill.Suffix)
	whole, _ := layout.Arrange(nil, head, prefix, suffix)
	limit := m.Info().ContextLength
	if len(whole) >= limit {
		return nil, &backend.PromptTooLongError{Tokens: len(whole), ContextLength: limit}
	}
	// Files take what the continuation leaves.
	room := limit - len(whole) - 1 - min(max(req.MaxTokens, minForMiddle), limit/4)
	dropped := len(req.Fill.Files)
	if room > 0 {
		head, dropped = layout.Context(head, req.Fill.Repo, req.Fill.Files, req.Fill.Name, room)
	}
	plain := *req
	plain.Prompt.ParseSpecial = false
	// The plan sees the prefix section behind its marker, which is a fence.
	plan := m.plan(append(before, prefix...), &plain)
	kept := plan.Prompt[len(before):]
	plan.Prompt, _ = layout.Arrange(nil, head, kept, suffix)
	if dropped > 0 {
		plan.Notes = append(plan.Notes, heal.Note{Code: CodeFilesDropped, Text: droppedText(layout, dropped, len(req.Fill.Files))})
	}
	return &Prepared{
		model: m, req: *req, plan: plan,
		prompt: len(plan.Prompt) - len(kept) + len(prefix),
		fill:   &filling{layout: layout, prefix: req.Prompt.Text, suffix: req.Fill.Suffix},
	}, nil
}

// planMarked plans for a prompt in which the client has put the markers of the
// order prefix, suffix, middle itself. It ends with a control token, but its
// boundary is the end of the prefix section. planMarked returns nil for all
// other prompts: where the prefix stands last, its end is the prompt's.
func (m *Model) planMarked(ids []vocab.ID, req *Request) *heal.Plan {
	layout, err := m.fim()
	if err != nil || layout.Order != fim.PSM || ids[len(ids)-1] != layout.Middle || req.Heal == heal.Off {
		return nil
	}
	head, prefix, suffix, ok := layout.Split(ids)
	if !ok || req.Prompt.IDs == nil && m.tok.Loss(req.Prompt.Text) != nil {
		return nil
	}
	mode, notes := m.mode(req)
	before := []vocab.ID{layout.Before()}
	plan := heal.New(m.tok, append(before, prefix...), mode)
	plan.Notes = append(notes, plan.Notes...)
	plan.Prompt, _ = layout.Arrange(nil, head, plan.Prompt[len(before):], suffix)
	return plan
}

// minForMiddle is how many tokens of the context files leave free at least.
const minForMiddle = 256

func droppedText(l *fim.Layout, dropped, files int) string {
	if !l.HasContext() {
		return fmt.Sprintf("the model has no tokens that set files apart: it was not shown the %d files", files)
	}
	return fmt.Sprintf("the context has no room for the first %d of %d files: the model was not shown them", dropped, files)
}

// fillMatcher ends a middle in an assembler.
type fillMatcher struct {
	join *fim.Join
	ends []vocab.ID
	out  []byte // what join gives out, which the assembler has itself
}

func (f *filling) matcher() *fillMatcher {
	if f == nil {
		return nil
	}
	return &fillMatcher{join: fim.NewJoin(f.prefix, f.suffix), ends: f.layout.Ends}
}

// IsNoFIM reports whether a request failed since the model cannot fill in the
// middle.
func IsNoFIM(err error) bool { return errors.As(err, new(*fim.NoFIMError)) }
