package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

// maxStops is how many stop strings a request may give. OpenAI takes four.
const maxStops = 16

// job is a request that was found good, whatever its dialect.
type job struct {
	id      string
	created time.Time
	model   *model

	settings *unfray.Request // what all choices share
	asked    []unfray.Prompt
	prompts  []*unfray.Prepared
	n        int    // choices of each prompt
	seed     *int64 // of the first choice of each prompt; nil: at random

	stream       bool
	includeUsage bool
	noDone       bool        // a stream ends without OpenAI's [DONE]
	healAsked    bool        // the request said how to heal
	expected     *prediction // of the engine's cache; nil: nothing is
	d            dialect
}

// dialect writes answers in one of OpenAI's forms. One goroutine uses it.
type dialect interface {
	// whole is the answer that is not streamed.
	whole(j *job, results []*unfray.Result) any
	// start opens a choice of a stream: an event, if not nil, and text that is
	// shown before the continuation.
	start(j *job, choice int) (event any, text []byte)
	delta(j *job, choice int, p part) any
	finish(j *job, choice int, res *unfray.Result, extra *wire.Unfray) any
	// usage is the chunk that closes a stream, which has no choices.
	usage(j *job, u *wire.Usage, extra *wire.Unfray) any
}

// part is a piece of a streamed choice.
type part struct {
	text   string
	exact  []byte         // the bytes of text, if it is not all of them
	tokens []unfray.Token // those that arrived since the last part
	// arrived holds the bytes of the continuation that arrived since the last
	// part; those that are not a whole character yet are not in text.
	arrived []byte
}

// sampling reads what both dialects share into the request of choice 0.
func (m *model) sampling(s *wire.Sampling) (*unfray.Request, error) {
	if len(s.Stop) > maxStops {
		return nil, badRequest("stop", "stop: %d strings are more than the %d allowed", len(s.Stop), maxStops)
	}
	r := &unfray.Request{Stop: s.Stop}
	def := m.defaultSampling()
	r.Sampling = backend.Sampling{
		Temperature: or(s.Temperature, def.Temperature), TopP: or(s.TopP, def.TopP), TopK: max(or(s.TopK, def.TopK), 0), MinP: or(s.MinP, def.MinP),
		RepeatPenalty:    or(s.RepetitionPenalty, def.RepeatPenalty),
		FrequencyPenalty: or(s.FrequencyPenalty, def.FrequencyPenalty), PresencePenalty: or(s.PresencePenalty, def.PresencePenalty),
	}
	// llama.cpp and vLLM say "all tokens" with different values of top_k.
	if s.TopK != nil && *s.TopK < -1 {
		return nil, badRequest("top_k", "top_k: %d is neither a number of tokens nor -1 or 0, which mean all", *s.TopK)
	}
	if !(r.Sampling.TopP > 0) {
		return nil, badRequest("top_p", "top_p must be above 0 and at most 1; for the likeliest token alone set temperature to 0")
	}
	if s.MaxTokens != nil && *s.MaxTokens < 1 {
		return nil, badRequest("max_tokens", "max_tokens must be at least 1, not %d", *s.MaxTokens)
	}
	r.MaxTokens = or(s.MaxTokens, m.serverMaxTokens())
	var err error
	if m.Upstream != nil {
		r.Source, err = m.grammarSource(s)
	} else {
		r.Grammar, err = constrain(s)
	}
	if err != nil {
		return nil, err
	}
	r.GrammarBytes = or(s.Unfray.GrammarBytes, 0)
	for id, bias := range s.LogitBias {
		if !(bias >= -100 && bias <= 100) {
			return nil, badRequest("logit_bias", "logit_bias: %v for token %d is not between -100 and 100", bias, id)
		}
		if r.Sampling.LogitBias == nil {
			r.Sampling.LogitBias = make(map[vocab.ID]float64, len(s.LogitBias))
		}
		r.Sampling.LogitBias[vocab.ID(id)] = bias
	}
	return r, nil
}

// defaultSampling is what a request leaves to the server, OpenAI's if that is not
// known.
func (m *model) defaultSampling() backend.Sampling {
	if d := m.Model.Model.Info().Defaults; d != nil {
		return d.Sampling
	}
	return backend.Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1}
}

// serverMaxTokens is the limit that the model's server has of its own; 0: none.
func (m *model) serverMaxTokens() int {
	if m.Model.Model == nil || m.Model.Model.Info().Defaults == nil {
		return 0
	}
	return m.Model.Model.Info().Defaults.MaxTokens
}

// defaultMaxTokens is the limit of a text completion that names none.
func (m *model) defaultMaxTokens() int {
	if m.Model.Model.Info().Defaults != nil {
		return m.serverMaxTokens()
	}
	return defaultMaxTokens
}

// or returns what p points to, or fallback if p is nil.
func or[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

// healMode finds how to heal: as the body says, else the header, else fallback.
func (m *model) healMode(x *exchange, o *wire.Options, fallback heal.Mode) (mode heal.Mode, asked bool, err error) {
	param, name := "unfray.heal", or(o.Heal, "")
	if name == "" {
		param, name = "X-Unfray-Heal", x.r.Header.Get("X-Unfray-Heal")
	}
	if name == "" {
		return fallback, false, nil
	}
	mode, err = heal.ParseMode(name)
	if err != nil {
		return "", false, badRequest(param, "%s: no mode %.40q; choose one of %s", param, name, joinModes(heal.Modes()))
	}
	if m.AllowedHeal != nil && !slices.Contains(m.AllowedHeal, mode) {
		return "", false, badRequest(param, "%s: mode %q is not allowed for this model; choose one of %s", param, name, joinModes(m.AllowedHeal))
	}
	return mode, true, nil
}

func joinModes(modes []heal.Mode) string {
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}

// checkChoices refuses requests for no continuation or for too many.
func (g *Gateway) checkChoices(prompts, n int) error {
	if n < 1 {
		return badRequest("n", "n must be at least 1, not %d", n)
	}
	if n > g.cfg.MaxChoices || prompts*n > g.cfg.MaxChoices {
		return badRequest("n", "n: %d prompts with %d choices each are more than the %d continuations allowed in a request", prompts, n, g.cfg.MaxChoices)
	}
	return nil
}

// prepare makes the continuations of prompts, n of each, with the settings that
// all of them share.
func (j *job) prepare(r *unfray.Request, prompts []unfray.Prompt, seed *int64) error {
	j.settings, j.seed, j.asked = r, seed, prompts
	if j.model.Upstream != nil && seed != nil && *seed == -1 {
		j.seed = nil // both servers' "at random"
	}
	if most := j.model.MaxTokens; most > 0 {
		if r.MaxTokens > most {
			return j.model.tooManyTokens("max_tokens")
		}
		if r.MaxTokens == 0 {
			r.MaxTokens = most
		}
	}
	for _, p := range prompts {
		c := *r
		c.Prompt = p
		prepared, err := j.model.Model.Model.Prepare(&c)
		if err != nil {
			return err
		}
		j.prompts = append(j.prompts, prepared)
	}
	return nil
}

// heals reports whether some prompt is to be given to the model in another form
// than it was sent.
func (j *job) heals() bool {
	return slices.ContainsFunc(j.prompts, (*unfray.Prepared).Heals)
}

// choices is how many continuations the job has.
func (j *job) choices() int { return len(j.prompts) * j.n }

// generate starts a continuation. Each choice of a prompt has a seed of its own.
func (j *job) generate(ctx context.Context, choice int) (*unfray.Stream, error) {
	var seed *uint64
	if j.seed != nil {
		s := uint64(*j.seed) + uint64(choice%j.n)
		seed = &s
	}
	return j.prompts[choice/j.n].Generate(ctx, seed)
}

// run answers a job.
func (g *Gateway) run(x *exchange, j *job) error {
	x.note(slog.String("model", j.model.Name), slog.Int("choices", j.choices()), slog.Bool("stream", j.stream))
	if err := g.begin(); err != nil {
		return err
	}
	defer g.end()
	gen, err := generate(x.ctx, j)
	if err != nil {
		return err
	}
	j.expected = j.model.predict(j) // of what the engine has admitted
	defer j.expected.end()
	defer gen.close()
	x.healed = j.settings.Heal != heal.Off
	if j.stream {
		return g.stream(x, j, gen)
	}
	results := make([]*unfray.Result, j.choices())
	if err := gen.collect(func(p progress) error {
		if p.result != nil {
			results[p.choice] = p.result
		}
		return nil
	}); err != nil {
		return err
	}
	g.account(x, j, results)
	return g.answer(x, j.d.whole(j, results))
}

// account notes the usage for the log and counts it.
func (g *Gateway) account(x *exchange, j *job, results []*unfray.Result) {
	for _, r := range results {
		g.metrics.account(j.model.Name, r)
	}
	u := j.totalUsage(results)
	x.note(slog.Int("prompt_tokens", u.PromptTokens), slog.Int("completion_tokens", u.CompletionTokens),
		slog.Int("cached_tokens", u.PromptTokensDetails.CachedTokens))
	if j.expected != nil {
		j.expected.told(j, results)
		j.expected.note(g, x, j.model)
	}
}

// totalUsage adds up a request. A prompt counts once, however many choices.
func (j *job) totalUsage(results []*unfray.Result) *wire.Usage {
	u := &wire.Usage{PromptTokensDetails: &wire.PromptTokensDetails{}}
	for i, r := range results {
		if i%j.n == 0 {
			u.PromptTokens += r.Usage.PromptTokens
			u.PromptTokensDetails.CachedTokens += r.Usage.CachedTokens
		}
		u.CompletionTokens += r.Usage.CompletionTokens
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// noteStraddle is the code of a note on log-probabilities.
const noteStraddle = "logprob_straddles"

// report says what healing did to a choice, or nil if it did nothing and
// nobody asked.
func (j *job) report(r *unfray.Result) *wire.Unfray {
	h := r.Healing
	if j.settings.Logprobs && len(r.Tokens) > 0 && r.Tokens[0].Straddles {
		text := "the first token began inside the prompt: its text is the part beyond it, its log-probability that of the whole token"
		if h.Mode == heal.Exact {
			text = "the first token began inside the prompt: its text is the part beyond it, its log-probability that of this part after the prompt; those of its alternatives are of whole tokens"
		}
		h.Notes = append(slices.Clone(h.Notes), heal.Note{
			Code: noteStraddle,
			Text: text,
		})
	}
	if !j.healAsked && h.TokensRemoved == 0 && h.BytesPending == 0 && len(h.Notes) == 0 {
		return nil
	}
	return &wire.Unfray{Healing: h}
}

// reportChoice is report for the choice itself, where there are several.
func (j *job) reportChoice(r *unfray.Result) *wire.Unfray {
	if j.choices() == 1 {
		return nil
	}
	return j.report(r)
}

func finishReason(r *unfray.Result) *string {
	s := string(r.FinishReason)
	return &s
}
