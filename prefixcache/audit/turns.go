package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Errors of [Turns] about its arguments.
var (
	ErrNoTemplate  = errors.New("audit: the chat template is nil: give that of the model")
	ErrNoAnswer    = errors.New("audit: no message of the conversation is the assistant's: give one with answers")
	ErrFewOutputs  = errors.New("audit: there are more outputs than messages of the assistant")
	ErrFewMoments  = errors.New("audit: the times of the requests must be as many as the prompts, or none")
	ErrBlockLength = errors.New("audit: TurnsOptions.BlockSize is below zero: give the block size in tokens, as the engine reports it")
)

// TurnsOptions say how turns are rendered and counted. The zero value works.
type TurnsOptions struct {
	// Names are the spellings of BOS and EOS in the template; zero: those of the
	// tokenizer.
	Names chattemplate.Names
	// Template puts the tokens before each prompt that the tokenizer's file puts
	// before a text (BOS), as engines do where a client renders and sends text.
	Template bool
	// BlockSize is that of the cache, in tokens; 0: 16.
	BlockSize int
	// Price is nil if costs do not matter.
	Price *Price
	// Arguments are further variables for the template, such as enable_thinking;
	// they replace those of the conversation.
	Arguments map[string]any
	// DropReasoning is for clients that do not send reasoning_content back.
	DropReasoning bool
	// Outputs are what the model really wrote for the assistant's messages, in
	// their order, as far as that is known. What is left out, or empty, is written
	// as the template writes the message.
	Outputs []Output
	// Times are when the prompts were rendered, one for each; nil: all at
	// Conversation.Now.
	Times []time.Time
}

// Output is what a model wrote, up to the token that ended it. IDs count where
// they are given.
type Output struct {
	Text string
	IDs  []vocab.ID
}

// TurnsReport says whether each prompt of a conversation begins with the prompt
// before it and what the model answered to that.
type TurnsReport struct {
	Steps []TurnStep `json:"steps"`
	// Requests are the prompts of the steps as an audit of a log lists them: each
	// with what it does not find again of the step before it.
	Requests []TurnRequest `json:"requests"`
	// FirstDivergence is that of the request that loses most; nil if no request
	// loses anything.
	FirstDivergence *TurnDrift `json:"first_divergence"`

	BlockSize int `json:"block_size"` // tokens
	// Preserving says that no step loses a token.
	Preserving bool `json:"preserving"`
	// HeldTokens are what the cache held after each step that another one followed,
	// prompt and answer; LostTokens those of them that the next prompt did not
	// begin with. LostBlocks counts full blocks.
	HeldTokens int `json:"held_tokens"`
	LostTokens int `json:"lost_tokens"`
	LostBlocks int `json:"lost_blocks"`
	// Cost is what the lost tokens cost above the price of cached ones; nil without
	// a price.
	Cost     *float64 `json:"cost,omitempty"`
	Currency string   `json:"currency,omitempty"`
	// DoubleBOS says that prompts begin with BOS twice: the template writes it, and
	// the tokenizer adds it.
	DoubleBOS bool `json:"double_bos,omitempty"`
	// ReasoningHidden and ToolsHidden say that the template does not show them even
	// in the newest answer, so that nothing is known about them.
	ReasoningHidden bool `json:"reasoning_hidden,omitempty"`
	ToolsHidden     bool `json:"tools_hidden,omitempty"`
}

// TurnStep is one request: a prompt, and what was answered.
type TurnStep struct {
	// Name is "turn 2", or "turn 2a" and so on where a turn has several requests,
	// as those that call tools.
	Name         string `json:"name"`
	Turn         int    `json:"turn"`    // the user's messages so far
	Message      int    `json:"message"` // the index of the answer among the messages
	PromptBytes  int    `json:"prompt_bytes"`
	PromptTokens int    `json:"prompt_tokens"`
	Output       string `json:"output"`
	OutputTokens int    `json:"output_tokens"` // the one that ended it included
	// Derived says that Output is the template's spelling of the message, not what
	// a model is known to have written.
	Derived bool `json:"derived"`
	// Drift is how the next prompt differs; nil if it goes on, or if there is none.
	Drift *TurnDrift `json:"drift,omitempty"`

	prompt string
	ids    []vocab.ID // of the prompt
	out    []vocab.ID
}

// TurnDrift is the first place where a prompt differs from the prompt before it
// and its answer.
type TurnDrift struct {
	// Byte is the offset of the first differing byte; if the texts agree, the end
	// of the earlier one.
	Byte int `json:"byte"`
	// Token is the index of the first differing token.
	Token int `json:"token"`
	// InAnswer says that Byte is in the answer, not in what stood before it.
	InAnswer bool   `json:"in_answer"`
	Cause    Cause  `json:"cause"`
	Why      string `json:"why"`
	Before   string `json:"before"` // what the cache held from Byte on, cut where it is long
	After    string `json:"after"`  // what the next prompt has
	// LostTokens are those of prompt and answer that cannot be reused. The token
	// that ends an answer is never computed, so that it is not among them.
	LostTokens int `json:"lost_tokens"`
	LostBlocks int `json:"lost_blocks"`
}

// turnRun is one run of [Turns].
type turnRun struct {
	ctx      context.Context
	tmpl     *chattemplate.Template
	tok      *tokenizer.Tokenizer
	conv     *chattemplate.Conversation
	opts     TurnsOptions
	controls *chattemplate.Scanner
	messages []*chattemplate.Object // as the model's answers are written
	history  []*chattemplate.Object // as the client sends them
	report   *TurnsReport
}

// Turns renders a conversation as a client sends it for each answer of the
// assistant, and looks whether each prompt begins with the tokens of the one
// before it and of the model's answer to that. Errors of the template are
// [*chattemplate.RefusedError].
func Turns(ctx context.Context, tmpl *chattemplate.Template, tok *tokenizer.Tokenizer, conv *chattemplate.Conversation, opts TurnsOptions) (*TurnsReport, error) {
	switch {
	case tok == nil:
		return nil, ErrNoTokenizer
	case tmpl == nil:
		return nil, ErrNoTemplate
	case opts.BlockSize < 0:
		return nil, ErrBlockLength
	}
	if err := opts.Price.check(); err != nil {
		return nil, err
	}
	if opts.BlockSize == 0 {
		opts.BlockSize = defaultBlock
	}
	if opts.Names == (chattemplate.Names{}) {
		opts.Names = namesOf(tok)
	}
	if len(opts.Arguments) > 0 {
		c := *conv
		c.Arguments = maps.Clone(opts.Arguments)
		for name, v := range conv.Arguments {
			if _, ok := c.Arguments[name]; !ok {
				c.Arguments[name] = v
			}
		}
		conv = &c
	}
	t := &turnRun{ctx: ctx, tmpl: tmpl, tok: tok, conv: conv, opts: opts, controls: chattemplate.NewScanner(tok.Vocab())}
	t.report = &TurnsReport{BlockSize: opts.BlockSize, Steps: []TurnStep{}}
	form, _ := tmpl.Form(ctx, opts.Names)
	var err error
	if t.messages, err = form.Apply(conv.Messages); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	t.history = t.messages
	if opts.DropReasoning {
		t.history = withoutReasoning(t.messages)
	}
	if err := t.steps(); err != nil {
		return nil, err
	}
	if err := t.compare(); err != nil {
		return nil, err
	}
	t.report.list(opts.Price)
	return t.report, nil
}

func namesOf(tok *tokenizer.Tokenizer) chattemplate.Names {
	v := tok.Vocab()
	sp := v.Specials()
	return chattemplate.Names{BOS: string(v.Bytes(sp.BOS)), EOS: string(v.Bytes(sp.EOS))}
}

func withoutReasoning(messages []*chattemplate.Object) []*chattemplate.Object {
	out := slices.Clone(messages)
	for i, m := range out {
		if text, _ := chattemplate.Reasoning(m); text != "" {
			out[i] = m.Clone()
			for _, f := range chattemplate.ReasoningFields {
				out[i].Delete(f)
			}
		}
	}
	return out
}

// moment is when the i-th prompt was rendered.
func (t *turnRun) moment(i int) time.Time {
	if i < len(t.opts.Times) {
		return t.opts.Times[i]
	}
	return t.conv.Now
}

func (t *turnRun) render(messages []*chattemplate.Object, generate bool, now time.Time) (string, error) {
	c := *t.conv
	c.Messages, c.AddGenerationPrompt, c.ContinueFinalMessage, c.Now = messages, generate, false, now
	return t.tmpl.Render(t.ctx, &c, t.opts.Names)
}

// encode tokenizes a prompt as engines do what a template wrote.
func (t *turnRun) encode(prompt string) []vocab.ID {
	var ids []vocab.ID
	if t.opts.Template {
		before, _ := t.tok.Template()
		if sp := t.tok.Vocab().Specials(); len(before) == 0 && sp.AddBOS && sp.BOS != vocab.None {
			before = []vocab.ID{sp.BOS}
		}
		ids = append(ids, before...)
	}
	ids = t.tok.EncodeSpecial(ids, []byte(prompt))
	if bos := t.tok.Vocab().Specials().BOS; bos != vocab.None && len(ids) > 1 && ids[0] == bos && ids[1] == bos {
		t.report.DoubleBOS = true
	}
	return ids
}

// steps renders all prompts and answers. A prompt without answer at the end of
// the conversation is the last step, without output.
func (t *turnRun) steps() error {
	turn, answers := 0, 0
	for i, m := range t.history {
		last := i == len(t.history)-1
		switch role := m.Text("role"); {
		case role == "user":
			turn++
		case role == "assistant":
			answers++
			if err := t.step(i, turn, answers-1); err != nil {
				return err
			}
			continue
		}
		if last && answers > 0 {
			if err := t.step(i+1, turn, -1); err != nil {
				return err
			}
		}
	}
	switch {
	case answers == 0:
		return ErrNoAnswer
	case len(t.opts.Outputs) > answers:
		return ErrFewOutputs
	case len(t.opts.Times) > 0 && len(t.opts.Times) != len(t.report.Steps):
		return fmt.Errorf("%w: %d times, %d prompts", ErrFewMoments, len(t.opts.Times), len(t.report.Steps))
	}
	return nil
}

// step renders the prompt of the answer at one index, and the answer; answer is
// its number, or -1 if there is only a prompt.
func (t *turnRun) step(at, turn, answer int) error {
	now := t.moment(len(t.report.Steps))
	prompt, err := t.render(t.history[:at], true, now)
	if err != nil {
		return fmt.Errorf("audit: the prompt of turn %d: %w", turn, err)
	}
	s := TurnStep{Turn: turn, Message: at, PromptBytes: len(prompt), prompt: prompt, ids: t.encode(prompt)}
	s.PromptTokens = len(s.ids)
	switch {
	case answer < 0:
	case answer < len(t.opts.Outputs) && len(t.opts.Outputs[answer].IDs) > 0:
		s.out = t.opts.Outputs[answer].IDs
		for _, id := range s.out {
			if !t.tok.Vocab().Valid(id) {
				return fmt.Errorf("audit: output %d: the vocabulary has no token %d", answer, id)
			}
		}
		s.Output = string(t.tok.DecodeAfter(nil, s.ids, s.out))
	case answer < len(t.opts.Outputs) && t.opts.Outputs[answer].Text != "":
		s.Output = t.opts.Outputs[answer].Text
		s.out = t.tok.EncodeSpecial(nil, []byte(s.Output))
	default:
		s.Derived = true
		if s.Output, err = t.derive(prompt, at, now); err != nil {
			return fmt.Errorf("audit: the answer of turn %d: %w", turn, err)
		}
		s.out = t.tok.EncodeSpecial(nil, []byte(s.Output))
	}
	s.OutputTokens = len(s.out)
	t.report.Steps = append(t.report.Steps, s)
	return nil
}

// compare looks at each prompt with the one before it.
func (t *turnRun) compare() error {
	r := t.report
	for i := range len(r.Steps) - 1 {
		s, next := &r.Steps[i], &r.Steps[i+1]
		held := slices.Concat(s.ids, s.out)
		if len(s.out) > 0 {
			held = held[:len(held)-1] // the last token was never fed back
		}
		r.HeldTokens += len(held)
		kept := vocab.CommonPrefix(held, next.ids)
		old := s.prompt + s.Output
		n := commonBytes([]byte(old), []byte(next.prompt))
		if kept == len(held) && n == len(old) {
			continue
		}
		d := &TurnDrift{
			Byte: n, Token: kept, InAnswer: n >= len(s.prompt), LostTokens: len(held) - kept, LostBlocks: len(held)/r.BlockSize - kept/r.BlockSize,
			Before: string(clipAt([]byte(old[n:]), shownBytes)), After: string(clipAt([]byte(next.prompt[n:]), shownBytes)),
		}
		var err error
		if d.Cause, d.Why, err = t.cause(i, old, n, kept == len(held)); err != nil {
			return err
		}
		s.Drift = d
		r.LostTokens += d.LostTokens
		r.LostBlocks += d.LostBlocks
	}
	r.Preserving = r.LostTokens == 0
	return nil
}

// String says in a few lines what drifts.
func (r *TurnsReport) String() string {
	var b strings.Builder
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Drift == nil {
			continue
		}
		fmt.Fprintf(&b, "turn %d, message %d: byte %s, token %s, %s: %s; %s lost\n",
			s.Turn, s.Message, thousands(s.Drift.Byte), thousands(s.Drift.Token), s.Drift.Cause, s.Drift.Why, count(s.Drift.LostTokens, "token"))
	}
	if b.Len() == 0 {
		return "each prompt begins with the one before it and its answer\n"
	}
	return b.String()
}
