package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/trace"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A job is a request as caches take it: block identities or tokens.
type job struct {
	prefixcache.Request
	blocks      []uint64 // nil: Prompt has the tokens
	blockTokens int
	tokens      int // of the prompt
	output      []vocab.ID
	generated   int // tokens of the output; -1: unknown
	at          time.Duration
}

// begin admits the job to a cache.
func (j *job) begin(c prefixcache.Cache) (prefixcache.Lease, error) {
	if j.blocks == nil {
		return c.Begin(&j.Request)
	}
	b, ok := c.(BlockCache)
	if !ok {
		return prefixcache.Lease{}, ErrTakesTokens
	}
	return b.BeginBlocks(j.blocks, j.tokens)
}

// clone copies what is valid until the next request only.
func (j *job) clone() *job {
	c := *j
	c.Prompt, c.blocks, c.output = slices.Clone(j.Prompt), slices.Clone(j.blocks), slices.Clone(j.output)
	c.Keys.Media = slices.Clone(j.Keys.Media)
	return &c
}

// rememberedText is how many bytes of prompts are remembered, so that those that
// go on from one are encoded at the cost of what is new.
const rememberedText = 64 << 20

// A reader makes jobs of a trace's requests: named ones, by their blocks, or
// written ones, in text or tokens.
type reader struct {
	opt   *Options
	texts *tokenizer.Conversations // nil without a tokenizer
	job   job                      // reused

	noContent, refused, named, written, unknownOutput, otherLength, told int64
	firstRefused                                                         error
}

func newReader(o *Options) *reader {
	rd := &reader{opt: o}
	if o.Tokenizer != nil {
		rd.texts = o.Tokenizer.NewConversations(rememberedText, true)
	}
	return rd
}

// read gives the job of a request; nil if the trace does not tell its prompt. It
// is valid until the next call.
func (rd *reader) read(r *trace.Request) (*job, error) {
	j := &rd.job
	*j = job{Request: prefixcache.Request{Prompt: j.Prompt[:0], Keys: r.Keys}, output: j.output[:0], generated: -1, at: r.At}
	switch {
	case len(r.Blocks) > 0:
		return j, rd.readBlocks(r)
	case len(r.IDs) > 0:
		j.Prompt = append(j.Prompt, r.IDs...)
	case r.Text != nil && rd.opt.Encode != nil:
		j.Prompt = rd.opt.Encode(j.Prompt, r.Text)
	case r.Text != nil && rd.texts != nil:
		before, after := rd.opt.Tokenizer.Template()
		j.Prompt = rd.texts.Encode(append(j.Prompt, before...), r.Text)
		j.Prompt = append(j.Prompt, after...)
	case r.Messages != nil && rd.opt.Render != nil:
		ids, err := rd.opt.Render(r.Messages, r.Tools)
		if err != nil {
			err = fmt.Errorf("replay: request at line %d: %w", r.Line, err)
			if !rd.opt.SkipRefused {
				return nil, err
			}
			if rd.refused++; rd.firstRefused == nil {
				rd.firstRefused = err
			}
			return nil, nil
		}
		j.Prompt = append(j.Prompt, ids...)
	}
	if len(j.Prompt) == 0 {
		rd.noContent++
		return nil, nil
	}
	rd.written++
	j.tokens = len(j.Prompt)
	if r.PromptTokens >= 0 {
		if rd.told++; r.PromptTokens != j.tokens {
			rd.otherLength++
		}
	}
	switch {
	case len(r.OutputIDs) > 0:
		j.output = append(j.output, r.OutputIDs...)
	case len(r.Output) > 0 && rd.opt.Tokenizer != nil:
		j.output = rd.opt.Tokenizer.EncodeAfter(j.output, j.Prompt, r.Output)
	default:
		rd.unknownOutput++
	}
	if j.generated = r.OutputTokens; j.generated < 0 && len(j.output) > 0 {
		j.generated = len(j.output)
	}
	return j, nil
}

func (rd *reader) readBlocks(r *trace.Request) error {
	if err := checkBlocks(r); err != nil {
		return err
	}
	rd.named++
	rd.unknownOutput++
	j := &rd.job
	j.blocks, j.blockTokens, j.generated = r.Blocks, r.BlockTokens, r.OutputTokens
	j.tokens = len(r.Blocks) * r.BlockTokens
	if r.PromptTokens > 0 && r.PromptTokens != j.tokens {
		if r.PromptTokens > j.tokens || r.PromptTokens <= j.tokens-r.BlockTokens {
			rd.otherLength++
		}
		// Whole blocks and at most one part, as a cache takes them.
		j.tokens = min(j.tokens, r.PromptTokens)
		j.blocks = r.Blocks[:(j.tokens+r.BlockTokens-1)/r.BlockTokens]
	}
	rd.told++
	return nil
}

// checkBlocks says what is wrong with the blocks of a request.
func checkBlocks(r *trace.Request) error {
	switch {
	case r.BlockTokens <= 0:
		return fmt.Errorf("replay: request at line %d names blocks and not how many tokens they have", r.Line)
	case r.BlockTokens > math.MaxInt32/len(r.Blocks) || r.PromptTokens > math.MaxInt32:
		return fmt.Errorf("replay: request at line %d has %d blocks of %d tokens: a prompt may have %d", r.Line, len(r.Blocks), r.BlockTokens, math.MaxInt32)
	}
	return nil
}

// notes say what the trace could not show.
func (rd *reader) notes() (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if rd.named > 0 && rd.opt.NewUnlimited != nil {
		note("The trace names its prompts by blocks: new text and text that was only cut into other tokens cannot be told apart, so no loss at boundaries is shown, and the last equal tokens inside a block that differs count as new.")
	}
	if rd.written > 0 && rd.opt.vocab() == nil && rd.opt.NewUnlimited != nil {
		note("Without a vocabulary, loss at boundaries is counted as new content.")
	}
	if rd.unknownOutput > 0 {
		note("Outputs that the trace does not tell: %d. What later prompts repeat of them counts as new content.", rd.unknownOutput)
	}
	if rd.otherLength > 0 {
		if rd.named > 0 {
			note("Prompts with more or fewer blocks than their length needs: %d of %d. They were cut to fit.", rd.otherLength, rd.told)
		} else {
			note("Prompts with another number of tokens here than the trace tells: %d of %d. The tokenizer or the template may not be the engine's.", rd.otherLength, rd.told)
		}
	}
	if rd.refused > 0 {
		note("Conversations left out that have no prompt: %d. The first: %s.", rd.refused, strings.TrimPrefix(rd.firstRefused.Error(), "replay: "))
	}
	if rd.noContent > 0 {
		note("Requests left out: %d. The trace does not tell their prompt, or in a form that needs a tokenizer or a chat template.", rd.noContent)
	}
	return notes
}

func (o *Options) vocab() *vocab.Vocab {
	if o.Vocab == nil && o.Tokenizer != nil {
		return o.Tokenizer.Vocab()
	}
	return o.Vocab
}

// validate says what is wrong with options, and what to do.
func (o *Options) validate() error {
	switch {
	case o.NewCache == nil:
		return errors.New("replay: Options.NewCache must be set")
	case o.Workers < 0 || o.Workers > MaxWorkers:
		return fmt.Errorf("replay: %d workers: there must be 1 to %d", o.Workers, MaxWorkers)
	case o.Routing > PrefixAware:
		return fmt.Errorf("replay: unknown routing %v", o.Routing)
	case o.Thresholds != nil && !o.Thresholds.valid():
		return errors.New("replay: thresholds of the router: Match must be 0 to 1, the others 0 or more")
	case o.Concurrency < 0:
		return errors.New("replay: Options.Concurrency is negative")
	case !(o.Warmup >= 0 && o.Warmup < 1):
		return fmt.Errorf("replay: a warm-up of %g of the requests: it must be 0 to below 1", o.Warmup)
	case o.Buckets < 0:
		return errors.New("replay: Options.Buckets is negative")
	case o.Timing != nil && o.Concurrency > 0:
		return errors.New("replay: give Options.Timing or Concurrency, not both")
	case o.Timing != nil && !(o.Timing.Prefill > 0 && o.Timing.Decode > 0 && o.Timing.Output >= 0):
		return errors.New("replay: Timing needs a rate of reading and one of generating, in tokens a second, above 0")
	}
	return nil
}

func (t *Thresholds) valid() bool {
	return t.Match >= 0 && t.Match <= 1 && t.BalanceRequests >= 0 && t.BalanceRatio >= 0
}

// String names the routing as [ParseRouting] takes it.
func (r Routing) String() string {
	if int(r) < len(routings) {
		return routings[r]
	}
	return fmt.Sprintf("Routing(%d)", uint8(r))
}

var routings = []string{"round-robin", "random", "least-loaded", "prefix-aware"}

// ParseRouting reads a name that String gives.
func ParseRouting(s string) (Routing, error) {
	if i := slices.Index(routings, s); i >= 0 {
		return Routing(i), nil
	}
	return 0, fmt.Errorf("replay: unknown routing %q: want one of %s", s, strings.Join(routings, ", "))
}
