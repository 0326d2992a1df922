package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

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
		return templateError(a.trace.template, err)
	}
	if source == "" {
		return usageError("there is no chat template beside the tokenizer: give --chat-template")
	}
	tmpl, err := chattemplate.Compile(source)
	if err != nil {
		return templateError(a.trace.template, err)
	}
	opt := audit.TurnsOptions{Price: a.opt.Price}
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
	if conv.Messages, err = tmpl.Fit(conv.Messages); err != nil {
		return fmt.Errorf("%s: %w", a.turns, err)
	}
	rep, err := audit.Turns(cmd.Context(), tmpl, t, conv, opt)
	if err != nil {
		return fmt.Errorf("%s: %w", a.turns, err)
	}
	page := &plot.Page{Title: "Turns of " + a.turns, Lead: turnsLead(rep), Sections: []plot.Section{turnsSection("", rep)}}
	if err := a.draw.write(page); err != nil {
		return err
	}
	if a.asJSON {
		return writeJSON(out, rep)
	}
	return printTurns(out, rep)
}

// turnsLead says what a conversation loses, and what is not known.
func turnsLead(rep *audit.TurnsReport) string {
	var b strings.Builder
	if rep.Preserving {
		fmt.Fprintf(&b, "each prompt begins with the one before it and its answer: nothing of %s tokens is lost\n", grouped(int64(rep.HeldTokens)))
	} else {
		fmt.Fprintf(&b, "%s of %s held tokens are lost (%s), %s of %d%s\n", grouped(int64(rep.LostTokens)), grouped(int64(rep.HeldTokens)),
			percent(shareOf(int64(rep.LostTokens), int64(rep.HeldTokens))), counted(rep.LostBlocks, "block"), rep.BlockSize, lossCost(rep.Cost, rep.Currency))
	}
	if rep.DoubleBOS {
		fmt.Fprintln(&b, "prompts begin with BOS twice: the template writes it, and the tokenizer adds it")
	}
	if rep.ReasoningHidden {
		fmt.Fprintln(&b, "the template never shows reasoning: what becomes of it is not known")
	}
	if rep.ToolsHidden {
		fmt.Fprintln(&b, "the template never shows tool calls: what becomes of them is not known")
	}
	return b.String()
}

// lossCost is what lost tokens cost, empty without a price.
func lossCost(cost *float64, currency string) string {
	if cost == nil {
		return ""
	}
	return strings.TrimRight(", cost "+amount(*cost)+" "+currency, " ")
}

// amount writes money to six digits, without an exponent.
func amount(cost float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(cost, 'g', 6, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// printTurns prints what each turn loses.
func printTurns(w io.Writer, rep *audit.TurnsReport) error {
	fmt.Fprint(w, turnsLead(rep))
	for _, s := range rep.Steps {
		if s.Drift == nil {
			continue
		}
		d := s.Drift
		fmt.Fprintf(w, "after %s: %s, %s: at byte %d, token %d: %s\n    held: %s\n    next: %s\n", s.Name, counted(d.LostTokens, "token"), counted(d.LostBlocks, "block"),
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
	if err := table(w, 4, []string{"conversation", "verdict", "tokens lost", "why"}, rows); err != nil {
		return err
	}
	if rep.Cost != nil {
		fmt.Fprintf(w, "%s lost in all%s\n", counted(rep.LostTokens, "token"), lossCost(rep.Cost, rep.Currency))
	}
	return nil
}

func probePage(rep *audit.ProbeReport) *plot.Page {
	page := &plot.Page{Title: "Chat template, five turns", Lead: "Whether each prompt begins with the prompt before it and its answer."}
	for _, p := range probes(rep) {
		if p.Turns == nil {
			page.Sections = append(page.Sections, plot.Section{Title: p.name + ": " + string(p.Verdict), Text: p.Why})
			continue
		}
		section := turnsSection(p.name+": "+string(p.Verdict), p.Turns)
		section.Text = turnsLead(p.Turns)
		page.Sections = append(page.Sections, section)
	}
	return page
}

// turnsSection draws what each turn holds and loses.
func turnsSection(title string, rep *audit.TurnsReport) plot.Section {
	s := plot.Section{Title: title, Head: []string{"request", "why the next one parts", "prompt tokens", "tokens lost", fmt.Sprintf("blocks of %d lost", rep.BlockSize), "at byte"}, Left: 2}
	chart := &plot.Bars{Title: "Held tokens that the next prompt begins with", Unit: "tokens", Parts: []plot.Part{{Name: "kept"}, {Name: "lost"}}}
	if rep.Cost != nil {
		s.Head = append(s.Head, strings.TrimRight("cost "+rep.Currency, " "))
	}
	for i, t := range rep.Steps {
		lost, why, blocks, at := 0, "", 0, ""
		if d := t.Drift; d != nil {
			lost, why, blocks, at = d.LostTokens, d.Why, d.LostBlocks, strconv.Itoa(d.Byte)
		}
		row := []string{t.Name, why, grouped(int64(t.PromptTokens)), grouped(int64(lost)), strconv.Itoa(blocks), at}
		if rep.Cost != nil {
			cost := ""
			if i+1 < len(rep.Requests) {
				cost = amount(*rep.Requests[i+1].Cost)
			}
			row = append(row, cost)
		}
		s.Rows = append(s.Rows, row)
		if i == len(rep.Steps)-1 {
			break // nothing follows that could keep it
		}
		chart.Labels = append(chart.Labels, t.Name)
		held := t.PromptTokens + max(0, t.OutputTokens-1) // the last one was never fed back
		chart.Parts[0].Values = append(chart.Parts[0].Values, float64(held-lost))
		chart.Parts[1].Values = append(chart.Parts[1].Values, float64(lost))
	}
	if len(chart.Labels) > 0 {
		s.Figures = []plot.Figure{chart}
	}
	return s
}
