package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Errors of [Audit] about its options.
var (
	ErrNoTokenizer = errors.New("audit: Options.Tokenizer is nil: give the tokenizer of the model that the prompts are for")
	ErrBlockSize   = errors.New("audit: a block size is not above zero: give it in tokens, as the engine reports it")
	ErrPrice       = errors.New("audit: a price is negative, or that of cached tokens is above that of the others: give what a million tokens cost")
)

const (
	defaultBlock  = 16 // vLLM's CacheConfig.DEFAULT_BLOCK_SIZE
	defaultPairs  = 32
	defaultVerify = 8 << 20
)

// Audit compares prompts. The report lists them in the order in which it took
// them: by their times, and where those are equal or not known as they are given.
// It takes about the time of tokenizing them.
func Audit(prompts []Prompt, opts Options) (*Report, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	a := &audit{opts: &opts, t: opts.Tokenizer, r: newReader(&opts), prompts: inTime(prompts)}
	rep, err := a.report()
	if err != nil {
		return nil, err
	}
	if !opts.NoSuggestions && len(prompts) > 1 {
		if err := a.suggest(rep); err != nil {
			return nil, err
		}
	}
	return rep, nil
}

// inTime orders prompts by time.
func inTime(prompts []Prompt) []Prompt {
	byTime := func(a, b Prompt) int { return a.At.Compare(b.At) }
	if slices.IsSortedFunc(prompts, byTime) {
		return prompts
	}
	sorted := slices.Clone(prompts)
	for i := range sorted {
		sorted[i].Name = nameOf(prompts, i)
	}
	slices.SortStableFunc(sorted, byTime)
	return sorted
}

// complete checks the options and fills in what is left open.
func (o *Options) complete() error {
	if o.Tokenizer == nil {
		return ErrNoTokenizer
	}
	if len(o.BlockSizes) == 0 {
		o.BlockSizes = []int{defaultBlock}
	}
	for _, b := range o.BlockSizes {
		if b <= 0 {
			return fmt.Errorf("%w: it is %d", ErrBlockSize, b)
		}
	}
	if err := o.Price.check(); err != nil {
		return err
	}
	if o.MaxPairs == 0 {
		o.MaxPairs = defaultPairs
	}
	if o.MaxVerify <= 0 {
		o.MaxVerify = defaultVerify
	}
	return nil
}

// audit is one run.
type audit struct {
	opts     *Options
	t        *tokenizer.Tokenizer
	r        *reader
	prompts  []Prompt
	views    []view
	against  []int
	reused   []int
	findings []*finding // by prompt; nil where nothing diverges
	pairs    []*pair
}

func (a *audit) report() (*Report, error) {
	var err error
	if a.views, err = a.r.views(a.prompts); err != nil {
		return nil, err
	}
	a.against = a.counterparts()
	a.reused = reuse(a.views)
	rep := &Report{
		Requests: make([]Request, len(a.prompts)), Causes: []CauseSummary{}, Suggestions: []Suggestion{},
		Blocks: blockSums(a.opts.BlockSizes), t: a.t,
	}
	a.findings, a.pairs = make([]*finding, len(a.prompts)), make([]*pair, len(a.prompts))
	each(len(a.prompts), func(i int) { a.request(&rep.Requests[i], i) })
	a.sum(rep)
	if n := len(a.prompts); n > 1 && n <= a.opts.MaxPairs {
		rep.Pairs = a.matrix()
	}
	if len(a.opts.Separator) > 0 || len(a.opts.SeparatorIDs) > 0 {
		if rep.Separator, err = a.separator(); err != nil {
			return nil, err
		}
	}
	return rep, nil
}

// counterparts chooses what each prompt is compared with.
func (a *audit) counterparts() []int {
	n := len(a.prompts)
	own := nearest(n, byText(a.views, true))
	all := own
	if slices.ContainsFunc(a.views, func(v view) bool { return v.space != 0 }) {
		all = nearest(n, byText(a.views, false))
	}
	last := map[string]int{} // of each conversation, the latest turn so far
	found := make([]int, n)
	for i := range a.prompts {
		v, p := &a.views[i], &a.prompts[i]
		found[i] = own[i]
		if j := all[i]; j >= 0 && (own[i] < 0 || a.views[own[i]].space != v.space ||
			commonBytes(v.text[:v.size], a.views[j].text) > commonBytes(v.text[:v.size], a.views[own[i]].text)) {
			found[i] = j
		}
		if p.Conversation == "" {
			continue
		}
		if j, ok := last[p.Conversation]; ok && (a.prompts[j].Turn < p.Turn || p.Turn == 0) {
			found[i] = j
		}
		last[p.Conversation] = i
	}
	return found
}

// reuse is how many leading tokens of each prompt an earlier request of its
// namespace had. Engines compute the last token anew in any case.
func reuse(views []view) []int {
	o := byTokens(views)
	found := nearest(len(views), o)
	reused := make([]int, len(views))
	for i, j := range found {
		if j >= 0 {
			reused[i] = max(0, min(o.common(i, j), views[i].n-1))
		}
	}
	return reused
}

// request compares one prompt.
func (a *audit) request(q *Request, i int) {
	v := &a.views[i]
	*q = Request{Name: nameOf(a.prompts, i), Tokens: v.n, Bytes: v.size, Against: a.against[i], ReusedTokens: a.reused[i]}
	if q.Against < 0 {
		return
	}
	q.AgainstName = nameOf(a.prompts, q.Against)
	p, ok := newPair(a.r, a.views, a.prompts, q.Against, i, a.opts.Separator)
	if !ok {
		return
	}
	f := p.classify()
	a.findings[i], a.pairs[i] = f, p
	q.FirstDivergence = p.divergence(f)
	q.LostTokens, q.LostEqualText = p.lost(f)
	// What another earlier request had of it is no loss.
	had := max(0, a.reused[i]-p.d)
	q.LostTokens, q.LostEqualText = max(0, q.LostTokens-had), max(0, q.LostEqualText-had)
	if p.d+had >= v.n-1 {
		q.LostTokens, q.LostEqualText = 0, 0 // only the last token, which is computed anew
	}
	if s := p.placeholder(); s != "" {
		q.FirstDivergence.Placeholder = s
		if f.cause.fromValues() {
			q.FirstDivergence.Why += p.beforeConstant(s, f)
		}
	}
	if f.cause.fromValues() && f.cause != PartBoundary && p.same > 0 && q.LostTokens > 0 && q.FirstDivergence.Placeholder == "" {
		q.FirstDivergence.Why += fmt.Sprintf(", before %s that are the same in both", count(p.same, "byte"))
	}
	q.Blocks = make([]BlockLoss, len(a.opts.BlockSizes))
	kept := max(a.reused[i], min(p.d, v.n-1))
	if !p.sameSpace() {
		kept = a.reused[i]
	}
	ideal := min(kept+q.LostTokens, max(v.n-1, kept))
	for k, b := range a.opts.BlockSizes {
		lost := ideal/b - kept/b
		q.Blocks[k] = BlockLoss{Size: b, Blocks: lost, Tokens: lost * b}
	}
	q.LostBlocks = q.Blocks[0].Blocks
	q.Cost = a.opts.Price.above(q.LostTokens)
}

func blockSums(sizes []int) []BlockLoss {
	sums := make([]BlockLoss, len(sizes))
	for i, b := range sizes {
		sums[i].Size = b
	}
	return sums
}

// sum fills in the figures of the whole report.
func (a *audit) sum(rep *Report) {
	by := map[Cause]*CauseSummary{}
	worst := -1
	for i := range rep.Requests {
		q := &rep.Requests[i]
		rep.PromptTokens += q.Tokens
		rep.ReusedTokens += q.ReusedTokens
		rep.LostTokens += q.LostTokens
		rep.LostEqualText += q.LostEqualText
		for k := range q.Blocks {
			rep.Blocks[k].Blocks += q.Blocks[k].Blocks
			rep.Blocks[k].Tokens += q.Blocks[k].Tokens
		}
		if q.LostTokens == 0 {
			continue
		}
		if worst < 0 || q.LostTokens > rep.Requests[worst].LostTokens {
			worst = i
		}
		s := by[q.FirstDivergence.Cause]
		if s == nil {
			s = &CauseSummary{Cause: q.FirstDivergence.Cause, Example: i}
			by[s.Cause] = s
		}
		s.Requests++
		s.LostTokens += q.LostTokens
		s.LostEqualText += q.LostEqualText
		s.LostBlocks += q.LostBlocks
		if q.LostTokens > rep.Requests[s.Example].LostTokens {
			s.Example = i
		}
		s.Why = rep.Requests[s.Example].FirstDivergence.Why
	}
	rep.LostBlocks = rep.Blocks[0].Blocks
	rep.Cost = a.opts.Price.above(rep.LostTokens)
	if a.opts.Price != nil {
		rep.Currency = a.opts.Price.Currency
	}
	if worst >= 0 {
		rep.FirstDivergence = rep.Requests[worst].FirstDivergence
	}
	for _, s := range by {
		rep.Causes = append(rep.Causes, *s)
	}
	slices.SortFunc(rep.Causes, func(x, y CauseSummary) int {
		return cmp.Or(cmp.Compare(y.LostTokens, x.LostTokens), cmp.Compare(x.Cause, y.Cause))
	})
}

// matrix is what each prompt shares with each other one.
func (a *audit) matrix() [][]int {
	rows := make([][]int, len(a.views))
	for i := range rows {
		rows[i] = make([]int, len(a.views))
		for j := range rows[i] {
			if v, w := &a.views[i], &a.views[j]; v.space == w.space {
				rows[i][j] = vocab.CommonPrefix(v.keyed[:v.n], w.keyed[:w.n])
			}
		}
	}
	return rows
}

// Tokens shown around a divergence.
const (
	showKept = 4
	showNext = 6
)

// shownBytes is how much of what differs a report quotes on each side.
const shownBytes = 400

func (p *pair) divergence(f *finding) *Divergence {
	d := &Divergence{
		Token: p.d, Byte: p.l, TokenByte: p.newAt, AgainstByte: p.oldAt, Cause: f.cause, Why: f.why,
		Before: string(clipAt(p.oldText()[f.old.lo:f.old.hi], shownBytes)),
		After:  string(clipAt(p.newText()[f.new.lo:min(f.new.hi, p.new.size)], shownBytes)),
	}
	if !p.sameSpace() {
		return d
	}
	ids := p.newIDs()
	d.Kept = p.tokens(ids[max(0, p.d-showKept):p.d])
	d.Old = p.tokens(p.old.ids[p.d:min(len(p.old.ids), p.d+showNext)])
	d.New = p.tokens(ids[p.d:min(len(ids), p.d+showNext)])
	return d
}

// placeholder is the name of the segment that both prompts have at the
// divergence.
func (p *pair) placeholder() string {
	s := segmentAt(p.newP.Segments, p.l)
	if s == "" || s != segmentAt(p.oldP.Segments, p.lo) {
		return ""
	}
	return s
}

// segmentAt is the name of the segment that holds a byte, or ends there.
func segmentAt(list []Segment, at int) string {
	name := ""
	for _, s := range list {
		if s.Start <= at && at <= s.End {
			name = s.Name
		}
	}
	return name
}

// beforeConstant says how much constant text of the template stands after a
// placeholder.
func (p *pair) beforeConstant(name string, f *finding) string {
	at, constant, start := 0, 0, p.l
	for _, s := range append(slices.Clone(p.newP.Segments), Segment{Start: p.new.size, End: p.new.size}) {
		if s.Start > p.l {
			constant += s.Start - max(at, min(p.l, s.Start))
		}
		if s.Start <= p.l && p.l <= s.End && s.Name == name {
			start = s.Start
		}
		at = s.End
	}
	if constant == 0 {
		return ""
	}
	return fmt.Sprintf("; %s at byte %d comes before %s", name, start, count(constant, "constant byte"))
}
