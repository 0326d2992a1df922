package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// llamaAnswer is an answer of /completion, or a part of it.
type llamaAnswer struct {
	Content   string      `json:"content"`
	Tokens    []vocab.ID  `json:"tokens"`
	Probs     []llamaProb `json:"completion_probabilities"`
	Stop      bool        `json:"stop"`
	StopType  string      `json:"stop_type"`
	Predicted int         `json:"tokens_predicted"`
	Slot      int         `json:"id_slot"`
	Timings   struct {
		CacheN int `json:"cache_n"`
	} `json:"timings"`

	weighed int // requests that had to be sent for log-probabilities
}

type llamaProb struct {
	ID      vocab.ID   `json:"id"`
	Logprob float64    `json:"logprob"`
	Top     []llamaTop `json:"top_logprobs"`
}

type llamaTop struct {
	ID      vocab.ID `json:"id"`
	Logprob float64  `json:"logprob"`
}

// llamaSource reads the stream of /completion.
type llamaSource struct {
	e   *llamaEngine
	ctx context.Context
	c   *call
	ev  *events

	ready []backend.Token
	got   []vocab.ID // all tokens so far, those in ready included
	told  int        // how many there are by the server's count
	end   ended
	over  bool

	cached, slot, requests int
}

// next implements [source].
func (s *llamaSource) next() (backend.Token, error) {
	for {
		switch {
		case len(s.ready) > 0:
			tok := s.ready[0]
			s.ready = s.ready[1:]
			return tok, nil
		case s.over:
			return backend.Token{}, io.EOF
		}
		var msg llamaAnswer
		err := s.ev.decode(&msg)
		if errors.Is(err, io.EOF) {
			err = &backend.ProtocolError{Text: "its stream ends before the generation does"}
		}
		if err == nil {
			err = s.take(&msg)
		}
		if err != nil {
			return backend.Token{}, err
		}
	}
}

// take makes the tokens of a message ready.
func (s *llamaSource) take(msg *llamaAnswer) error {
	s.cached = max(s.cached, msg.Timings.CacheN)
	if msg.Stop {
		return s.finish(msg)
	}
	toks, err := s.e.tokens(s.ctx, s.c, s.got, msg)
	s.requests += msg.weighed
	if err != nil {
		return err
	}
	// A token that ends inside a character is held back, and so is its ID. The
	// text comes with the token that completes the character.
	if lost := msg.Predicted - s.told - len(toks); lost > 0 && len(toks) > 0 {
		before, err := s.recover(msg, lost)
		if err != nil {
			return err
		}
		toks = append(before, toks...)
	}
	s.told = max(s.told, msg.Predicted)
	s.put(toks)
	return nil
}

func (s *llamaSource) put(toks []backend.Token) {
	for _, t := range toks {
		s.got = append(s.got, t.ID)
		if s.e.s.vocab.IsEOG(t.ID) {
			s.end.token = t.ID
			return // nothing comes after it
		}
		s.ready = append(s.ready, t)
	}
}

// finish takes the last message.
func (s *llamaSource) finish(msg *llamaAnswer) error {
	s.slot = msg.Slot
	s.over, s.ev.done = true, true
	switch msg.StopType {
	case "eos":
		s.end.reason = backend.FinishStop
	case "limit":
		s.end.reason = backend.FinishLength
	default:
		return &backend.ProtocolError{Text: fmt.Sprintf("its generation ended for a reason that was not given: %.20q", msg.StopType)}
	}
	if lost := msg.Predicted - len(s.got); lost > 0 && !s.e.constrained(s.c.req) {
		return s.regain(lost)
	}
	return nil
}

// regain has the last tokens again, whose IDs were held back as they end inside
// a character. Nobody has seen them: others are as good where they are drawn. A
// grammar cannot be gone on with: there they are left out.
func (s *llamaSource) regain(lost int) error {
	c := *s.c
	c.ids, c.max, c.replay = slices.Concat(s.c.ids, s.got), lost, nil
	var out llamaAnswer
	a, err := s.e.ask(s.ctx, &c, s.e.body(&c), &out)
	s.requests += a.requests
	if err != nil {
		return err
	}
	toks, err := s.e.tokens(s.ctx, &c, nil, &out)
	s.requests += out.weighed
	if err != nil {
		return err
	}
	s.put(toks)
	return nil
}

// maxLost is how many tokens without IDs are made out, and maxSplits how many
// ways to do so are looked at.
const (
	maxLost   = 16
	maxSplits = 64
)

// recover finds the tokens that were held back before those of a message. Its
// text holds the bytes of all of them.
func (s *llamaSource) recover(msg *llamaAnswer, lost int) ([]backend.Token, error) {
	v := s.e.s.vocab
	var own []byte
	for _, id := range msg.Tokens {
		if v.IsText(id) {
			own = append(own, v.Bytes(id)...)
		}
	}
	if msg.Content == string(own) {
		return nil, nil // counted ahead, as by speculation
	}
	unknown := &backend.ProtocolError{Text: fmt.Sprintf("it leaves out the IDs of %d tokens, and its text does not tell them", lost)}
	if lost > maxLost {
		return nil, unknown
	}
	var ways [][]vocab.ID
	if text, ok := strings.CutSuffix(msg.Content, string(own)); ok && !strings.ContainsRune(msg.Content, utf8.RuneError) {
		for n := lost; n > 0 && len(ways) == 0; n-- {
			ways = splits(v, []byte(text), n)
		}
	}
	if len(ways) == 1 && !s.c.req.Logprobs {
		toks := make([]backend.Token, len(ways[0]))
		for i, id := range ways[0] {
			toks[i].ID = id
		}
		return toks, nil
	}
	toks, err := s.again(msg, lost)
	if err != nil {
		return nil, err
	}
	text := own
	var before []byte
	for _, t := range toks {
		before = append(before, v.Bytes(t.ID)...)
	}
	if text = append(before, own...); strings.ToValidUTF8(string(text), "\ufffd") != msg.Content {
		return nil, unknown
	}
	return toks, nil
}

// again generates the tokens that were held back once more: the likeliest that
// give the same text, which are those that were had where none is drawn.
func (s *llamaSource) again(msg *llamaAnswer, lost int) ([]backend.Token, error) {
	c := *s.c
	c.ids, c.max, c.replay = slices.Concat(s.c.ids, s.got), lost, nil
	b := s.e.body(&c)
	b["temperature"] = number(0)
	if lit, ok := gbnfLiteral([]byte(msg.Content)); ok && !strings.ContainsRune(msg.Content, utf8.RuneError) {
		b["grammar"] = quote("root ::= " + lit + " tail\n" + gbnfTail(s.e.literals))
	}
	var out llamaAnswer
	a, err := s.e.ask(s.ctx, &c, b, &out)
	s.requests += a.requests
	if err != nil {
		return nil, err
	}
	toks, err := s.e.tokens(s.ctx, &c, nil, &out)
	s.requests += out.weighed
	return toks, err
}

// splits lists the sequences of n tokens with the bytes of text, all of which
// end inside a character.
func splits(v *vocab.Vocab, text []byte, n int) (ways [][]vocab.ID) {
	if len(text) > maxLost*utf8.UTFMax {
		return nil
	}
	var path []vocab.ID
	var walk func(at, n int)
	walk = func(at, n int) {
		if n == 0 {
			if at == len(text) && len(ways) < maxSplits {
				ways = append(ways, append([]vocab.ID(nil), path...))
			}
			return
		}
		for end := at + 1; end <= len(text)-n+1 && len(ways) < maxSplits; end++ {
			if !endsInside(text[:end]) {
				continue
			}
			if id, ok := v.Lookup(text[at:end]); ok && v.IsText(id) {
				path = append(path, id)
				walk(end, n-1)
				path = path[:len(path)-1]
			}
		}
	}
	walk(0, n)
	return ways
}

// endsInside reports whether text ends inside a character.
func endsInside(text []byte) bool {
	for k := 1; k < utf8.UTFMax && k <= len(text); k++ {
		if tail := text[len(text)-k:]; utf8.RuneStart(tail[0]) {
			return !utf8.FullRune(tail)
		}
	}
	return false
}

// tokens checks the tokens of a message, which come after the call's and those
// of got.
func (e *llamaEngine) tokens(ctx context.Context, c *call, got []vocab.ID, msg *llamaAnswer) ([]backend.Token, error) {
	toks := make([]backend.Token, len(msg.Tokens))
	probs := msg.Probs
	for i, id := range msg.Tokens {
		if !e.s.vocab.Valid(id) {
			return nil, &backend.ProtocolError{Text: fmt.Sprintf("token %d is none of the vocabulary of %d", id, e.s.vocab.Len())}
		}
		toks[i].ID = id
		switch {
		case !c.req.Logprobs:
		case len(probs) > 0 && probs[0].ID == id:
			if err := checkTop(e.s.vocab, probs[0].Top); err != nil {
				return nil, err
			}
			toks[i].Logprob, toks[i].Top = min(0, probs[0].Logprob), topLogprobs(probs[0].Top, c.req.TopLogprobs)
			probs = probs[1:]
		default:
			before := slices.Concat(c.ids, got, msg.Tokens[:i])
			n, err := e.weigh(ctx, c, before, &toks[i])
			if msg.weighed += n; err != nil {
				return nil, err
			}
		}
	}
	return toks, nil
}

func topLogprobs(top []llamaTop, n int) (out []backend.Logprob) {
	for _, t := range top[:min(len(top), n)] {
		out = append(out, backend.Logprob{ID: t.ID, Logprob: min(0, t.Logprob)})
	}
	return out
}

// weigh finds the log-probability of a token that the server tells none of, as
// it ends inside a character.
func (e *llamaEngine) weigh(ctx context.Context, c *call, before []vocab.ID, tok *backend.Token) (requests int, err error) {
	at := *c
	at.ids = before
	for d := someValues; d <= allValues; d++ {
		rows, a, err := e.rows(ctx, &at, rowsAsked{detail: d})
		if requests += a.requests; err != nil {
			return requests, err
		}
		if l, ok := rows[0].known[tok.ID]; ok {
			tok.Logprob = min(0, l)
			tok.Top = slices.Clone(rows[0].top[:min(len(rows[0].top), c.req.TopLogprobs)])
			return requests, nil
		}
	}
	return requests, &backend.ProtocolError{Text: "it has no log-probability of a token"}
}

// checkTop refuses alternatives that are none of the vocabulary.
func checkTop(v *vocab.Vocab, top []llamaTop) error {
	for _, t := range top {
		if !v.Valid(t.ID) {
			return &backend.ProtocolError{Text: fmt.Sprintf("token %d is none of the vocabulary of %d", t.ID, v.Len())}
		}
	}
	return nil
}

// ended implements [source].
func (s *llamaSource) ended() ended { return s.end }

// answered implements [source].
func (s *llamaSource) answered() answered {
	return answered{cached: s.cached, slot: s.slot, requests: s.requests}
}

// close implements [source].
func (s *llamaSource) close() { s.ev.close() }
