package audit

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/unfray/unfray/vocab"
)

// explained is how many requests the text shows: the costliest of each cause, or
// the first ones where nothing is lost.
const explained = 5

// Explain writes the report as text: the figures, the causes, the two sides
// around the divergence of the requests that lose most, and what would help.
// Tokens are divided by ‧, and what is no printable character is escaped.
func (rep *Report) Explain(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := &explainer{rep: rep, w: b}
	e.figures()
	e.causes()
	e.requests()
	e.separator()
	e.suggestions()
	for _, n := range e.rep.Notes {
		e.line("\nnote: %s", n)
	}
	return b.Flush()
}

// explainer writes one report.
type explainer struct {
	rep *Report
	w   *bufio.Writer
}

func (e *explainer) line(format string, args ...any) {
	fmt.Fprintf(e.w, format+"\n", args...) // the writer keeps its first error for Flush
}

// percent is a share as text.
func percent(part, whole int) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func (e *explainer) figures() {
	r := e.rep
	e.line("%s, %s; the cache had %s of them (%s)", count(len(r.Requests), "prompt"), count(r.PromptTokens, "token"), thousands(r.ReusedTokens), percent(r.ReusedTokens, r.PromptTokens))
	if r.LostTokens == 0 {
		e.line("nothing was lost: no prompt repeats what the cache held after the place where it begins to differ")
		return
	}
	e.line("lost: %s (%s of the prompts), %s of equal text", count(r.LostTokens, "token"), percent(r.LostTokens, r.PromptTokens), thousands(r.LostEqualText))
	for _, b := range r.Blocks {
		e.line("      in blocks of %d: %s, %s", b.Size, count(b.Blocks, "block"), count(b.Tokens, "token"))
	}
	if r.Cost != nil {
		e.line("      cost: %s", amount(*r.Cost, r.Currency))
	}
}

func (e *explainer) causes() {
	if len(e.rep.Causes) == 0 {
		return
	}
	e.line("\ncauses")
	for _, c := range e.rep.Causes {
		e.line("  %-17s %s, %s, %s: %s", c.Cause, count(c.Requests, "prompt"), count(c.LostTokens, "token"), count(c.LostBlocks, "block"), c.Why)
	}
}

// requests shows both sides of the costliest divergences.
func (e *explainer) requests() {
	shown := e.rep.Causes[:min(len(e.rep.Causes), explained)]
	for _, c := range shown {
		e.request(&e.rep.Requests[c.Example])
	}
	if len(shown) > 0 {
		return
	}
	for i, n := 0, 0; i < len(e.rep.Requests) && n < explained; i++ {
		if q := &e.rep.Requests[i]; q.FirstDivergence != nil {
			e.request(q)
			n++
		}
	}
}

func (e *explainer) request(q *Request) {
	d := q.FirstDivergence
	e.line("\nprompt %s against %s: token %s, byte %s: %s", q.Name, q.AgainstName, thousands(d.Token), thousands(d.Byte), d.Cause)
	e.line("  %s", d.Why)
	if len(d.Old)+len(d.New) > 0 {
		kept := ""
		if d.Token > len(d.Kept) {
			kept = "…"
		}
		kept += e.tokens(d.Kept)
		if len(d.Kept) > 0 {
			kept += "‧"
		}
		pad := strings.Repeat(" ", len([]rune(kept)))
		e.line("  cached %s%s", kept, e.tokens(d.Old))
		e.line("  now    %s%s", kept, e.tokens(d.New))
		e.line("         %s^ %s", pad, firstIDs(d.Old, d.New))
	}
	e.line("  lost %s, %s of equal text; %s", count(q.LostTokens, "token"), thousands(q.LostEqualText), count(q.LostBlocks, "block"))
}

// firstIDs shows the first IDs of both sides.
func firstIDs(old, new []Token) string {
	show := func(list []Token) string {
		if len(list) == 0 {
			return "the end"
		}
		return fmt.Sprint(list[0].ID)
	}
	return show(old) + " was cached, " + show(new) + " is here"
}

func (e *explainer) tokens(list []Token) string {
	parts := make([]string, len(list))
	for i, t := range list {
		text := t.Text
		if e.rep.t != nil && t.ID != vocab.None {
			text = string(e.rep.t.Vocab().Bytes(t.ID))
		}
		parts[i] = escaped(text)
	}
	return strings.Join(parts, "‧")
}

// escaped is a text without quotes in which nothing moves the cursor.
func escaped(s string) string {
	q := fmt.Sprintf("%q", s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func (e *explainer) separator() {
	if s := e.rep.Separator; s != nil {
		e.line("\nseparator %q: %d of %d found by its tokens", s.Text, s.InTokens, s.InText)
		if s.Why != "" {
			e.line("  %s", s.Why)
		}
		if s.Instead != "" {
			e.line("  %q in its place is found everywhere", s.Instead)
		}
	}
}

func (e *explainer) suggestions() {
	if len(e.rep.Suggestions) == 0 {
		return
	}
	e.line("\nwhat helps, tried on %s", count(e.rep.Suggestions[0].Tried, "prompt"))
	for i := range e.rep.Suggestions {
		s := &e.rep.Suggestions[i]
		e.line("  %s", s.Text)
		switch s.Change {
		case Nothing:
			continue
		case SmallerBlock:
			e.line("    computed %s -> %s tokens where full blocks are kept", thousands(s.Before.ComputedInBlocks), thousands(s.After.ComputedInBlocks))
		default:
			cost := ""
			if s.Before.Cost != nil && s.After.Cost != nil {
				cost = fmt.Sprintf("; all prompts cost %s -> %s", amount(*s.Before.Cost, ""), amount(*s.After.Cost, e.rep.Currency))
			}
			e.line("    computed %s -> %s tokens, and %s -> %s where full blocks of %d are kept; %s changed%s", thousands(s.Before.ComputedTokens), thousands(s.After.ComputedTokens),
				thousands(s.Before.ComputedInBlocks), thousands(s.After.ComputedInBlocks), e.rep.Blocks[0].Size, count(s.Requests, "prompt"), cost)
		}
		if s.Price != "" {
			e.line("    but %s", s.Price)
		}
	}
}
