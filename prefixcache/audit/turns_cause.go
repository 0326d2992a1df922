package audit

import (
	"fmt"
	"strings"

	"github.com/unfray/unfray/internal/chattemplate"
)

// The causes that only a template tells.
const (
	GenerationPrompt Cause = "generation_prompt" // the header of the answer differs from that in the history
	EndOfTurn        Cause = "end_of_turn"       // the answer is ended in another way in the history
	SystemMoved      Cause = "system_moved"      // the system message stands at another place now
	ToolsMoved       Cause = "tools_moved"       // so does the list of tools
)

// cause says why the prompt after the i-th step differs at byte n from old, the
// prompt of that step with its answer. held says that all that a cache held is
// kept.
func (t *turnRun) cause(i int, old string, n int, held bool) (Cause, string, error) {
	s, next := &t.report.Steps[i], &t.report.Steps[i+1]
	end := lastControl(t, old)
	if held {
		there := clip([]byte(next.prompt[min(n, len(old)-len(end)):]))
		return EndOfTurn, fmt.Sprintf("the answer ended with %q, and the history has %q in its place; no cache held that token yet, so that nothing is lost", end, there), nil
	}
	if then, now := t.moment(i), t.moment(i+1); !then.Equal(now) {
		again, err := t.render(t.history[:next.Message], true, then)
		if err != nil {
			return "", "", fmt.Errorf("audit: the prompt of turn %d: %w", next.Turn, err)
		}
		if commonBytes([]byte(old), []byte(again)) > n {
			return Timestamp, fmt.Sprintf("the template writes the time of the request at byte %d: %q where %q was", n, clip([]byte(next.prompt[n:])), clip([]byte(old[n:]))), nil
		}
	}
	if c, why := t.moved(old, next.prompt, n); c != "" {
		return c, why, nil
	}
	f, err := t.finding(s, next)
	if err != nil {
		return "", "", err
	}
	switch {
	case f == nil:
		return OwnIDs, "the model's own tokens are others than those of their text", nil
	case f.cause != Content && f.cause != TemplateDrift && f.cause != HistoryChange:
		return f.cause, f.why, nil
	}
	header, err := t.headerStart(i)
	if err != nil {
		return "", "", err
	}
	switch {
	case n >= header && n < len(s.prompt):
		return GenerationPrompt, fmt.Sprintf("the header %q stood before the answer; the history has %q in its place", clip([]byte(s.prompt[header:])), clip([]byte(next.prompt[min(header, n):]))), nil
	case n >= len(old)-len(end):
		return EndOfTurn, fmt.Sprintf("the answer ended with %q; the history has %q there", end, clip([]byte(next.prompt[n:]))), nil
	}
	return f.cause, f.why, nil
}

// finding is what an audit says of the two prompts.
func (t *turnRun) finding(s, next *TurnStep) (*finding, error) {
	prompts := []Prompt{
		{IDs: s.ids, OutputIDs: s.out, Conversation: "turns", Turn: 1},
		{IDs: next.ids, Conversation: "turns", Turn: 2},
	}
	r := newReader(&Options{Tokenizer: t.tok, Special: true})
	views, err := r.views(prompts)
	if err != nil {
		return nil, err
	}
	p, ok := newPair(r, views, prompts, 0, 1, nil)
	if !ok {
		return nil, nil
	}
	return p.classify(), nil
}

// headerStart is where the header of the answer begins in the prompt of a step.
func (t *turnRun) headerStart(i int) (int, error) {
	s := &t.report.Steps[i]
	without, err := t.render(t.history[:s.Message], false, t.moment(i))
	if err != nil {
		return len(s.prompt), nil // not every template renders a history without it
	}
	return commonBytes([]byte(s.prompt), []byte(without)), nil
}

// maxControl is how long a control token may be, in bytes.
const maxControl = 256

// lastControl is the control token at the end of a text, "" if there is none.
func lastControl(t *turnRun, text string) string {
	for i := max(0, len(text)-maxControl); i < len(text); i++ {
		if _, n := t.controls.Match([]byte(text[i:])); n == len(text)-i {
			return text[i:]
		}
	}
	return ""
}

// moved: what the system message or the list of tools says stands later in the
// next prompt, or not at all, and the difference begins where it stood.
func (t *turnRun) moved(old, next string, n int) (Cause, string) {
	place := func(what, s string) string {
		a, b := strings.Index(old, s), strings.Index(next, s)
		switch {
		case s == "" || a < 0 || n > a+len(s) || a-n >= maxPart || strings.Count(old, s) != 1:
			return ""
		case b > a:
			return fmt.Sprintf("%s stood at byte %d, and stands at byte %d now: the template puts it at another place as the conversation grows", what, a, b)
		case b < 0:
			return fmt.Sprintf("%s stood at byte %d, and is gone: the template shows it only after some messages", what, a)
		}
		return ""
	}
	for _, tool := range t.conv.Tools {
		o, _ := tool.(*chattemplate.Object)
		if o == nil {
			continue
		}
		if v, ok := o.Get("function"); ok {
			o, _ = v.(*chattemplate.Object)
		}
		if o == nil {
			continue
		}
		if why := place("the list of tools", o.Text("description")); why != "" {
			return ToolsMoved, why
		}
	}
	for _, m := range t.history {
		if role := m.Text("role"); role != "system" && role != "developer" {
			continue
		}
		if why := place("the system message", strings.TrimSpace(m.Text("content"))); why != "" {
			return SystemMoved, why
		}
	}
	return "", ""
}
