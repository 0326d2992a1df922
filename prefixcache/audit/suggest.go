package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// trial is a change to try on the sample.
type trial struct {
	change      Change
	text, price string
	// cuts says that the change helps by making prompts shorter; others must make
	// the cache find more.
	cuts bool
	// apply gives the changed prompts and how many changed.
	apply func(s *sample) (changed []Prompt, n int, err error)
}

// sample is the beginning of the prompts, on which changes are tried.
type sample struct {
	*audit
	prompts []Prompt
	before  Figures
	note    string // of the change that was tried last: an example
}

// sampled takes the first prompts up to the bound.
func (a *audit) sampled() *sample {
	s := &sample{audit: a}
	size := 0
	for i := range a.prompts {
		size += len(a.views[i].text)
		if i > 1 && size > a.opts.MaxVerify {
			break
		}
		s.prompts = a.prompts[:i+1]
	}
	s.before = a.figures(a.views[:len(s.prompts)], a.reused, a.opts.BlockSizes[0])
	return s
}

// figures sums up what is computed.
func (a *audit) figures(views []view, reused []int, block int) (f Figures) {
	for i := range views {
		f.PromptTokens += views[i].n
		f.ComputedTokens += views[i].n - reused[i]
		f.ComputedInBlocks += views[i].n - reused[i]/block*block
	}
	if p := a.opts.Price; p != nil {
		c := (float64(f.ComputedTokens)*p.PerMillion + float64(f.PromptTokens-f.ComputedTokens)*p.PerMillionCached) / 1e6
		f.Cost = &c
	}
	return f
}

// run gives the figures of changed prompts.
func (s *sample) run(prompts []Prompt) (Figures, error) {
	views, err := s.r.views(prompts)
	if err != nil {
		return Figures{}, err
	}
	return s.figures(views, reuse(views), s.opts.BlockSizes[0]), nil
}

// suggest tries the changes that the causes call for, and keeps those that help.
func (a *audit) suggest(rep *Report) error {
	s := a.sampled()
	for _, t := range s.trials() {
		s.note = ""
		changed, n, err := t.apply(s)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		after, err := s.run(changed)
		if err != nil {
			return err
		}
		if after.ComputedTokens >= s.before.ComputedTokens || after.ComputedInBlocks > s.before.ComputedInBlocks ||
			!t.cuts && after.reused() <= s.before.reused() {
			continue
		}
		text := t.text
		if s.note != "" {
			text += ", as in " + s.note
		}
		rep.Suggestions = append(rep.Suggestions, Suggestion{
			Change: t.change, Text: text, Price: t.price, Requests: n, Tried: len(s.prompts), Before: s.before, After: after,
		})
	}
	s.smallerBlock(rep)
	rep.Suggestions = best(rep.Suggestions)
	a.nothing(rep, s)
	return nil
}

// best sorts suggestions by what they save and leaves out a variant of a change
// that saves less than another one of it.
func best(list []Suggestion) []Suggestion {
	slices.SortStableFunc(list, func(x, y Suggestion) int {
		return cmp.Or(cmp.Compare(y.saves(), x.saves()), cmp.Compare(x.After.PromptTokens, y.After.PromptTokens))
	})
	kept := []Suggestion{}
	seen := map[Change]bool{}
	for _, s := range list {
		if !seen[s.Change] {
			seen[s.Change] = true
			kept = append(kept, s)
		}
	}
	return kept
}

func (f *Figures) reused() int { return f.PromptTokens - f.ComputedTokens }

// saves is how many tokens less are computed.
func (s *Suggestion) saves() int {
	if s.Change == SmallerBlock {
		return s.Before.ComputedInBlocks - s.After.ComputedInBlocks
	}
	return s.Before.ComputedTokens - s.After.ComputedTokens
}

// smallLoss is the mean loss in tokens a request up to which the report says to
// leave it.
const smallLoss = 2

// nothing says so if the loss is too small to act on.
func (a *audit) nothing(rep *Report, s *sample) {
	n := 0
	for i := range rep.Requests {
		if rep.Requests[i].Against >= 0 {
			n++
		}
	}
	if n == 0 || rep.LostTokens == 0 || float64(rep.LostTokens) > smallLoss*float64(n) {
		return
	}
	rep.Suggestions = append([]Suggestion{{
		Change: Nothing, Text: fmt.Sprintf("leave it: it costs %.1f tokens a request", float64(rep.LostTokens)/float64(n)),
		Tried: len(s.prompts), Before: s.before, After: s.before,
	}}, rep.Suggestions...)
}

// smallerBlock tries blocks of the sizes that engines offer, without a change of
// the prompts.
func (s *sample) smallerBlock(rep *Report) {
	block := s.opts.BlockSizes[0]
	for _, b := range []int{16, 32, 64, 128, 256} {
		if b >= block {
			break
		}
		after := s.figures(s.views[:len(s.prompts)], s.reused, b)
		if saved := s.before.ComputedInBlocks - after.ComputedInBlocks; saved*20 < s.before.PromptTokens {
			continue // less than 5 % of the prompts
		}
		rep.Suggestions = append(rep.Suggestions, Suggestion{
			Change: SmallerBlock, Text: fmt.Sprintf("let the engine keep blocks of %d tokens instead of %d", b, block),
			Price: "the attention kernel must support it", Tried: len(s.prompts), Before: s.before, After: after,
		})
	}
}

// has reports whether one of the causes occurs in the sample.
func (s *sample) has(causes ...Cause) bool {
	return slices.ContainsFunc(s.findings[:len(s.prompts)], func(f *finding) bool { return f != nil && slices.Contains(causes, f.cause) })
}

// trials lists what the causes call for.
func (s *sample) trials() (list []trial) {
	add := func(t trial, causes ...Cause) {
		if s.has(causes...) {
			list = append(list, t)
		}
	}
	add(trial{change: MoveToEnd, text: "put what changes with every request below what stays: at the end of the last message", apply: (*sample).moveValues},
		Timestamp, RandomID, Counter, Content)
	add(trial{change: SameTools, text: "send one list of tools with every request, new ones at its end, and say in tool_choice or in the last message which may be used",
		price: "prompts get longer by the tools that are not used", apply: (*sample).sameTools}, ToolsChange)
	add(trial{change: KeepParts, text: "leave parts that were sent where they were, and put new ones behind them",
		price: "prompts get longer by what is kept: where there is no room for it, cut much at once and seldom", apply: (*sample).keepParts}, PartsChange)
	add(trial{change: MoveToEnd, text: "put images and other items after the text that stays", apply: (*sample).moveMedia}, Media)
	for level, what := range [...]string{"leave the seconds out of the time", "round the time to the hour", "give the date without the clock"} {
		add(trial{change: CoarserTime, text: what, price: "the model no longer sees the exact time",
			apply: func(s *sample) ([]Prompt, int, error) { return s.coarser(level) }}, Timestamp)
	}
	add(trial{change: KeepBytes, text: "send what was sent before byte for byte: keep the text instead of writing it anew", apply: restoring(Whitespace, Case, UnicodeForm, JSONRewrite)},
		Whitespace, Case, UnicodeForm, JSONRewrite)
	add(trial{change: FixOrder, text: "keep the parts in one order, such as tools by name and documents by number", apply: restoring(Reordered)}, Reordered)
	add(trial{change: KeepHistory, text: "leave earlier turns as they were: keep reasoning blocks, answers and headers as the model saw them",
		price: "prompts get longer by what is kept: where there is no room for it, cut much at once and seldom", apply: restoring(Thinking, TemplateDrift, HistoryChange)}, Thinking, TemplateDrift, HistoryChange)
	add(trial{change: ReplayIDs, text: "send the tokens back that the model wrote, instead of tokenizing its text", apply: (*sample).replayIDs}, OwnIDs)
	add(trial{change: TokenizeWhole, text: "tokenize a prompt as a whole, with control tokens read as such, and not part by part", apply: (*sample).tokenizeWhole},
		PartBoundary, Separator, SpecialToken, OwnIDs)
	add(trial{change: DropBOS, text: "begin each prompt with one BOS: take it out of the template's text, or do not let the tokenizer add it", apply: (*sample).oneBOS}, BOS)
	add(trial{change: ShareNamespace, text: "give requests that may share the same cache salt, adapter and extra key",
		price: "a salt keeps tenants from seeing by the time what others sent: share it inside one only", apply: (*sample).oneNamespace}, Namespace)
	add(trial{change: HealEnd, cuts: true, text: "cut prompts to their stable prefix, and let generation write the rest",
		price: "generation has to write again what is cut, which takes longer than computing it in the prompt", apply: (*sample).healEnds}, TailRetokenised)
	add(trial{change: StripBlank, cuts: true, text: "end prompts without white space", apply: (*sample).stripEnds}, TailRetokenised)
	if s.has(PartBoundary, Separator) {
		list = append(list, s.seamTrials()...)
	}
	return list
}
