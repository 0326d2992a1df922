package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// Options configure a [Toy]. The zero value works.
type Options struct {
	Vocab         *vocab.Vocab // nil: Vocabulary(VocabularyOptions{})
	Name          string       // "": "toy"
	ChatTemplate  string
	ContextLength int // tokens; 0: 2048

	// Parallel requests run at once (0: 4), Queue more may wait (0: 64,
	// negative: none).
	Parallel int
	Queue    int

	// StepDelay is how long one decode step takes.
	StepDelay time.Duration
	// Gate, if not nil, is received from before every decode step of every
	// request: a test that sends n values allows n steps.
	Gate <-chan struct{}

	// Scripts are token sequences the model knows by heart: when the tokens so
	// far, a leading BOS aside, are the beginning of one, its next token (at
	// its end an end-of-generation token) is by far the likeliest. The first
	// that matches wins. The same text in other tokens does not match, which is
	// what a real model's surprise at a badly tokenized prompt looks like.
	Scripts [][]vocab.ID
}

// Toy is an in-memory [backend.Backend] over a small vocabulary. Its logits
// are a hash of the last three tokens: deterministic, and different in every
// context. It gives every guarantee of package backend.
type Toy struct {
	vocab *vocab.Vocab
	opts  Options
	slots chan struct{}

	mu      sync.Mutex
	closed  bool
	waiting int
	running int
	streams map[*toyStream]struct{}
}

var _ backend.LogitsReader = (*Toy)(nil)

var errEmptyMask = errors.New("backendtest: the mask allows no token")

// NewToy returns a toy backend.
func NewToy(o Options) *Toy {
	if o.Vocab == nil {
		o.Vocab = Vocabulary(VocabularyOptions{})
	}
	if o.Name == "" {
		o.Name = "toy"
	}
	if o.ContextLength == 0 {
		o.ContextLength = 2048
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	if o.Queue == 0 {
		o.Queue = 64
	}
	return &Toy{
		vocab: o.Vocab, opts: o,
		slots:   make(chan struct{}, o.Parallel),
		streams: map[*toyStream]struct{}{},
	}
}

// Info implements [backend.Backend].
func (t *Toy) Info() backend.Info {
	return backend.Info{
		Name: t.opts.Name, Description: "toy model for tests",
		ContextLength: t.opts.ContextLength, VocabSize: t.vocab.Len(), ChatTemplate: t.opts.ChatTemplate,
		Created:      time.Unix(1700000000, 0),
		Capabilities: backend.Capabilities{Steer: true, Logprobs: true, Logits: true, Choose: true},
	}
}

// Running is the number of requests that hold a place in the batch.
func (t *Toy) Running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// Waiting is the number of requests in the queue.
func (t *Toy) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// check refuses prompts that cannot be run.
func (t *Toy) check(prompt []vocab.ID) error {
	if len(prompt) == 0 {
		return backend.ErrEmptyPrompt
	}
	for i, id := range prompt {
		if !t.vocab.Valid(id) {
			return &backend.InvalidTokenError{ID: id, Position: i, VocabSize: t.vocab.Len()}
		}
	}
	if len(prompt) >= t.opts.ContextLength {
		return &backend.PromptTooLongError{Tokens: len(prompt), ContextLength: t.opts.ContextLength}
	}
	return nil
}

// Generate implements [backend.Backend].
func (t *Toy) Generate(ctx context.Context, req *backend.Request) (backend.Stream, error) {
	if err := t.check(req.Prompt); err != nil {
		return nil, err
	}
	for id := range req.Sampling.LogitBias {
		if !t.vocab.Valid(id) {
			return nil, &backend.InvalidTokenError{ID: id, Position: -1, VocabSize: t.vocab.Len()}
		}
	}
	if req.Choose != nil && (req.Keep < 1 || req.Keep >= len(req.Prompt)) {
		return nil, fmt.Errorf("backendtest: a choice that keeps %d of %d tokens of the prompt", req.Keep, len(req.Prompt))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, backend.ErrClosed
	}
	if t.running+t.waiting >= t.opts.Parallel+max(t.opts.Queue, 0) {
		return nil, &backend.QueueFullError{Waiting: t.waiting, RetryAfter: time.Second + t.opts.StepDelay}
	}
	t.waiting++
	ctx, cancel := context.WithCancelCause(ctx)
	s := &toyStream{
		toy: t, req: req, ctx: ctx, cancel: cancel,
		tokens: make(chan backend.Token), done: make(chan struct{}),
		end: backend.End{EndToken: vocab.None},
	}
	t.streams[s] = struct{}{}
	go s.run()
	return s, nil
}

// Logits implements [backend.LogitsReader].
func (t *Toy) Logits(ctx context.Context, ids []vocab.ID, from int) ([][]float32, error) {
	if err := t.check(ids); err != nil {
		return nil, err
	}
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, backend.ErrClosed
	}
	if from < 0 || from >= len(ids) {
		return nil, fmt.Errorf("backendtest: position %d is outside the prompt of %d tokens", from, len(ids))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows := make([][]float32, 0, len(ids)-from)
	for i := from; i < len(ids); i++ {
		rows = append(rows, t.logits(ids[:i+1]))
	}
	return rows, nil
}

// Close implements [backend.Backend].
func (t *Toy) Close() error {
	t.mu.Lock()
	t.closed = true
	open := make([]*toyStream, 0, len(t.streams))
	for s := range t.streams {
		open = append(open, s)
	}
	t.mu.Unlock()
	for _, s := range open {
		s.cancel(backend.ErrClosed)
		<-s.done
	}
	return nil
}

// logits is the toy's model: one raw row for the token that follows ids.
func (t *Toy) logits(ids []vocab.ID) []float32 {
	h := uint64(14695981039346656037) // FNV-1a over the last three IDs
	for _, id := range ids[max(0, len(ids)-3):] {
		h = (h ^ uint64(id+1)) * 1099511628211
	}
	rng := rand.New(rand.NewPCG(h, uint64(t.vocab.Len())))
	row := make([]float32, t.vocab.Len())
	for i := range row {
		row[i] = rng.Float32() * 4
	}
	if next := t.scripted(ids); next != vocab.None {
		row[next] = 24
	}
	return row
}

// scripted returns the token that the first matching script has next.
func (t *Toy) scripted(ids []vocab.ID) vocab.ID {
	sp := t.vocab.Specials()
	for _, s := range t.opts.Scripts {
		have := ids
		if len(have) > 0 && have[0] == sp.BOS && (len(s) == 0 || s[0] != sp.BOS) {
			have = have[1:]
		}
		if len(have) > len(s) || !slices.Equal(have, s[:len(have)]) {
			continue
		}
		if len(have) == len(s) {
			return sp.EOS
		}
		return s[len(have)]
	}
	return vocab.None
}

// toyStream is one request: run, on its own goroutine, produces what Next hands out.
type toyStream struct {
	toy    *Toy
	req    *backend.Request
	ctx    context.Context
	cancel context.CancelCauseFunc
	tokens chan backend.Token
	done   chan struct{}

	// Written by run before done is closed.
	end backend.End
	err error
}

// Next implements [backend.Stream].
func (s *toyStream) Next() (backend.Token, error) {
	select {
	case tok := <-s.tokens:
		return tok, nil
	case <-s.done:
		return backend.Token{}, s.err
	}
}

// End implements [backend.Stream].
func (s *toyStream) End() backend.End {
	<-s.done
	return s.end
}

// Close implements [backend.Stream].
func (s *toyStream) Close() error {
	s.cancel(context.Canceled)
	<-s.done
	return nil
}

func (s *toyStream) run() {
	t := s.toy
	started := s.admit()
	if started {
		s.err = s.decode()
		<-t.slots
	} else {
		s.err = s.canceled()
	}
	t.mu.Lock()
	delete(t.streams, s)
	if started {
		t.running--
	} else {
		t.waiting--
	}
	t.mu.Unlock()
	s.cancel(nil)
	close(s.done)
}

// admit waits for a place in the batch.
func (s *toyStream) admit() bool {
	select {
	case s.toy.slots <- struct{}{}:
	case <-s.ctx.Done():
		return false
	}
	s.toy.mu.Lock()
	s.toy.waiting--
	s.toy.running++
	s.toy.mu.Unlock()
	return true
}

// step waits until one decode step is allowed and has taken its time.
func (s *toyStream) step() error {
	if gate := s.toy.opts.Gate; gate != nil {
		select {
		case <-gate:
		case <-s.ctx.Done():
		}
	}
	if d := s.toy.opts.StepDelay; d > 0 {
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
		}
	}
	return s.canceled()
}

// canceled says why the request was given up, or returns nil. Closing the
// backend is told from the caller's own cancellation.
func (s *toyStream) canceled() error {
	if err := context.Cause(s.ctx); err == backend.ErrClosed {
		return err
	}
	return s.ctx.Err()
}

// decode generates until an end. It returns io.EOF or why it was given up.
func (s *toyStream) decode() error {
	req, t := s.req, s.toy
	rng := newDraw(req.Sampling.Seed)
	ids, chosen, err := s.choose(rng)
	if err != nil {
		return err
	}
	counted := 0
	for i := 0; ; i++ {
		if i >= len(chosen) {
			if err := s.step(); err != nil {
				return err
			}
			s.end.ForwardPasses++
		}
		var mask vocab.Mask
		row := t.logits(ids)
		var id vocab.ID
		if i < len(chosen) {
			id = chosen[i]
		} else {
			if req.Steer != nil {
				mask = req.Steer.Mask()
			}
			if mask != nil && mask.Empty() {
				return errEmptyMask
			}
			id = choose(row, mask, &req.Sampling, ids, min(len(ids)-i, len(req.Prompt)), rng)
			if t.vocab.IsEOG(id) {
				s.end.Reason, s.end.EndToken = backend.FinishStop, id
				return io.EOF
			}
		}
		var verdict backend.Verdict
		if req.Steer != nil {
			verdict = req.Steer.Accept(id)
		}
		tok := backend.Token{ID: id}
		if req.Logprobs {
			tok.Logprob, tok.Top = logprobs(row, id, req.TopLogprobs)
		}
		select {
		case s.tokens <- tok:
		case <-s.ctx.Done():
			return s.canceled()
		}
		ids = append(ids, id)
		if !verdict.Uncounted {
			counted++
		}
		switch {
		case verdict.Stop:
			s.end.Reason = backend.FinishStop
			return io.EOF
		case req.MaxTokens > 0 && counted >= req.MaxTokens, len(ids) >= t.opts.ContextLength:
			s.end.Reason = backend.FinishLength
			return io.EOF
		}
	}
}

// choose asks the request's Chooser. It returns the tokens that stay and those
// that were chosen.
func (s *toyStream) choose(rng *rand.Rand) (ids, chosen []vocab.ID, err error) {
	req := s.req
	if req.Choose == nil {
		return slices.Clone(req.Prompt), nil, nil
	}
	kept := req.Prompt[:req.Keep]
	give := func(path []vocab.ID) {
		ids := slices.Concat(kept, path)
		row := s.toy.logits(ids)
		for i, l := range penalized(row, &req.Sampling, ids, len(kept)) {
			row[i] = float32(l)
		}
		req.Choose.Row(path, row)
	}
	if err := s.step(); err != nil {
		return nil, nil, err
	}
	s.end.ForwardPasses++
	for i := req.Keep; i < len(req.Prompt); i++ {
		give(req.Prompt[req.Keep:i])
	}
	for {
		path, done, err := req.Choose.Next(rng)
		switch {
		case err != nil:
			return nil, nil, err
		case done:
			return slices.Clone(kept), slices.Clone(path), nil
		}
		if err := s.step(); err != nil {
			return nil, nil, err
		}
		s.end.ForwardPasses++
		give(path)
	}
}
