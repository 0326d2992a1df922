package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/internal/plot"
	"github.com/unfray/unfray/prefixcache/audit"
	"github.com/unfray/unfray/tokenizer"
)

// runTurns audits a conversation turn by turn, or the chat template by the probe.
func (a *auditFlags) runTurns(cmd *cobra.Command, t *tokenizer.Tokenizer) error {
	source, err := templateSource(a.trace.template, a.tokenizer.path)
	if err != nil {
		return fmt.Errorf("--chat-template: %w", err)
	}
	if source == "" {
		return usageError("there is no chat template beside the tokenizer: give --chat-template")
	}
	tmpl, err := chattemplate.Compile(source)
	if err != nil {
		return fmt.Errorf("the chat template %w", err)
	}
	opt := audit.TurnsOptions{}
	if len(a.blocks) > 0 {
		opt.BlockSize = a.blocks[0]
	}
	out := cmd.OutOrStdout()
	if a.turns == "probe" {
		rep, err := audit.Probe(cmd.Context(), tmpl, t, opt)
		if err != nil {
			return err
		}
		if err := a.draw.write(probePage(rep)); err != nil {
			return err
		}
		if a.asJSON {
			return writeJSON(out, rep)
		}
		return printProbe(out, rep)
	}
	text, err := readFile(a.turns)
	if err != nil {
		return err
	}
	conv, err := chattemplate.ParseConversation(text)
	if err != nil {
		return fmt.Errorf("%s: %w", a.turns, err)
	}
	rep, err := audit.Turns(cmd.Context(), tmpl, t, conv, opt)
	if err != nil {
		return fmt.Errorf("%s: %w", a.turns, err)
	}
	if err := a.draw.write(&plot.Page{Title: "Turns of " + a.turns, Sections: []plot.Section{turnsSection("", rep)}}); err != nil {
		return err
	}
	if a.asJSON {
		return writeJSON(out, rep)
	}
	return printTurns(out, rep)
}

// printTurns prints what each turn loses.
func printTurns(w io.Writer, rep *audit.TurnsReport) error {
	if rep.Preserving {
		fmt.Fprintf(w, "each prompt begins with the one before it and its answer: nothing of %s tokens is lost\n", grouped(int64(rep.HeldTokens)))
	} else {
		fmt.Fprintf(w, "%s of %s held tokens are lost (%s), %s of %d\n", grouped(int64(rep.LostTokens)), grouped(int64(rep.HeldTokens)),
			percent(shareOf(int64(rep.LostTokens), int64(rep.HeldTokens))), counted(rep.LostBlocks, "block"), rep.BlockSize)
	}
	if rep.DoubleBOS {
		fmt.Fprintln(w, "prompts begin with BOS twice: the template writes it, and the tokenizer adds it")
	}
	if rep.ReasoningHidden {
		fmt.Fprintln(w, "the template never shows reasoning: what becomes of it is not known")
	}
	if rep.ToolsHidden {
		fmt.Fprintln(w, "the template never shows tool calls: what becomes of them is not known")
	}
	for _, s := range rep.Steps {
		if s.Drift == nil {
			continue
		}
		d := s.Drift
		fmt.Fprintf(w, "turn %d: %s, %s: at byte %d, token %d: %s\n    held: %s\n    next: %s\n", s.Turn, counted(d.LostTokens, "token"), counted(d.LostBlocks, "block"),
			d.Byte, d.Token, d.Why, strconv.Quote(d.Before), strconv.Quote(d.After))
	}
	return nil
}

// A probed is a kind of conversation with its verdict.
type probed struct {
	name string
	*audit.ProbeResult
}

func probes(rep *audit.ProbeReport) []probed {
	return []probed{{"plain", &rep.Plain}, {"tools", &rep.Tools}, {"reasoning", &rep.Reasoning}, {"both", &rep.Both}}
}

// printProbe prints the verdicts on a template.
func printProbe(w io.Writer, rep *audit.ProbeReport) error {
	var rows [][]string
	for _, p := range probes(rep) {
		lost := "-"
		if p.Turns != nil {
			lost = grouped(int64(p.Turns.LostTokens)) + " of " + grouped(int64(p.Turns.HeldTokens))
		}
		rows = append(rows, []string{p.name, string(p.Verdict), lost, p.Why})
	}
	return table(w, 4, []string{"conversation", "verdict", "tokens lost", "why"}, rows)
}

func probePage(rep *audit.ProbeReport) *plot.Page {
	page := &plot.Page{Title: "Chat template, five turns", Lead: "Whether each prompt begins with the prompt before it and its answer."}
	for _, p := range probes(rep) {
		if p.Turns == nil {
			page.Sections = append(page.Sections, plot.Section{Title: p.name + ": " + string(p.Verdict), Text: p.Why})
			continue
		}
		page.Sections = append(page.Sections, turnsSection(p.name+": "+string(p.Verdict), p.Turns))
	}
	return page
}

// turnsSection draws what each turn holds and loses.
func turnsSection(title string, rep *audit.TurnsReport) plot.Section {
	s := plot.Section{Title: title, Head: []string{"turn", "why", "prompt tokens", "tokens lost", "blocks lost", "at byte"}, Left: 2}
	chart := &plot.Bars{Title: "Held tokens that the next prompt begins with", Unit: "tokens", Parts: []plot.Part{{Name: "kept"}, {Name: "lost"}}}
	for _, t := range rep.Steps {
		lost, why, blocks, at := 0, "", 0, ""
		if d := t.Drift; d != nil {
			lost, why, blocks, at = d.LostTokens, d.Why, d.LostBlocks, strconv.Itoa(d.Byte)
		}
		s.Rows = append(s.Rows, []string{strconv.Itoa(t.Turn), why, grouped(int64(t.PromptTokens)), grouped(int64(lost)), strconv.Itoa(blocks), at})
		chart.Labels = append(chart.Labels, fmt.Sprintf("turn %d", t.Turn))
		chart.Parts[0].Values = append(chart.Parts[0].Values, float64(t.PromptTokens+t.OutputTokens-lost))
		chart.Parts[1].Values = append(chart.Parts[1].Values, float64(lost))
	}
	s.Figures = []plot.Figure{chart}
	return s
}
