// Package backend says what unfray asks of a model server: run these token
// IDs, keep to this mask, hand back token IDs.
//
// A backend knows nothing of healing. It is given a prompt as IDs and what the
// generation must begin with: as a [Steer] to consult at every token where the
// model runs in this process, as a [Replay] to state once where a server runs
// it. How either came about is not its business.
// The guarantees every implementation gives are executable: see
// [github.com/unfray/unfray/backend/backendtest].
package backend

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/unfray/unfray/vocab"
)

// Backend runs one model. All methods may be called from several goroutines.
type Backend interface {
	// Info describes the model. It does not change during the backend's life.
	Info() Info

	// Generate admits a request and returns the stream of its tokens. It
	// returns once the request is queued; an error means that it was not
	// admitted ([*QueueFullError], [*PromptTooLongError], [*InvalidTokenError], …).
	// The request must not be changed until the stream has ended. Canceling
	// ctx ends the generation within one decode step.
	Generate(ctx context.Context, req *Request) (Stream, error)

	// Close stops running requests, waits for them and frees the model.
	Close() error
}

// Info describes a model and what its backend can do.
type Info struct {
	Name          string // identifier shown to clients, as in /v1/models
	Description   string // for people: architecture, size, quantization
	ContextLength int    // tokens, prompt and continuation together, a request
	VocabSize     int    // number of token IDs; rows of logits have this length
	ChatTemplate  string // Jinja source, or empty
	Created       time.Time

	// Defaults is what a server does where a request leaves settings out; nil:
	// what OpenAI's API says.
	Defaults *Defaults

	Capabilities Capabilities
}

// Defaults are the settings of requests that name none.
type Defaults struct {
	Sampling  Sampling
	MaxTokens int // of text completions; 0: no limit but the context
}

// Capabilities says which parts of a [Request] a backend honors.
type Capabilities struct {
	Steer    bool // consults Request.Steer at every token
	Replay   bool // keeps to Request.Replay; see there
	Logprobs bool // fills Token.Logprob and Token.Top
	Logits   bool // also implements [LogitsReader]
	Choose   bool // consults Request.Choose
	// ChoosePlain narrows Choose to requests without penalties and bias, because
	// the probabilities at hand are the model's own.
	ChoosePlain bool
	// Grammars lists the kinds of Request.Grammar that the backend takes.
	Grammars []GrammarKind
	Cached   bool // fills End.CachedTokens
}

// LogitsReader is implemented by backends that can hand out whole rows of
// logits. Exact healing weighs the ways to cover a prompt's end with them.
type LogitsReader interface {
	// Logits prefills ids and returns one row for each position from..len(ids)-1,
	// all from the same prefill. Row i holds the raw logits of the token that
	// follows ids[:from+i+1]. The rows are the caller's.
	Logits(ctx context.Context, ids []vocab.ID, from int) ([][]float32, error)
}

// Request asks for one continuation.
type Request struct {
	// Prompt is prefilled as it is: no BOS is added. It holds at least one ID.
	Prompt []vocab.ID

	Sampling Sampling

	// MaxTokens limits the tokens that Steer counts (all of them without a
	// Steer). Zero means as many as the context holds.
	MaxTokens int

	// Logprobs asks for the log-probability of every token, TopLogprobs for
	// that many likeliest alternatives beside it.
	Logprobs    bool
	TopLogprobs int

	// Steer, if not nil, is consulted at every token. A backend that has Replay
	// but not Steer calls its Accept for every token, and its Mask only before
	// tokens of the replay, if at all.
	Steer Steer

	// Replay, if not nil, says what Steer's masks say before they become nil, as
	// data. A backend that states a constraint once needs nothing else.
	Replay *Replay

	// Grammar, if not nil, is what the text after the prompt, and after the
	// pending bytes of Replay, keeps to. Backends with Steer find it in the masks.
	Grammar *Grammar

	// Fields are settings by the name and value of the server's own API. A backend
	// in front of a server sends them as they are, in place of Sampling, except
	// those that it must set itself; others ignore them.
	Fields map[string]json.RawMessage

	// Choose, if not nil, replaces the tokens of Prompt from Keep on by others
	// before generation begins. Keep is at least 1 and less than len(Prompt).
	Choose Chooser
	Keep   int
}

// Chooser picks one of several token paths by what the model gives each, from
// few rows of logits. A backend hands it the rows after Prompt[:Keep],
// Prompt[:Keep+1] and so on to the one before the last token of the prompt, all
// from the same prefill, then calls Next. While that asks for the row of
// another path, the backend hands it that row and calls Next again. The tokens
// chosen are part of the generation: they stand in the stream, and Steer accepts
// each, without a mask. Where they are the prompt's own, nothing is evaluated
// twice.
//
// Its methods are never called from two goroutines at once. They run between
// decode steps: they must be quick and must not block.
type Chooser interface {
	// Row takes the logits of the token that follows Prompt[:Keep] and path,
	// with Sampling's bias and penalties applied, the tokens of path counting as
	// generated. row is valid during the call only.
	Row(path []vocab.ID, row []float32)
	// Next returns the chosen path, at least one token, and done, or a path
	// whose row it needs. All beginnings of that path have had their row. rng
	// is that of Sampling's seed, nil at temperature 0.
	Next(rng *rand.Rand) (path []vocab.ID, done bool, err error)
}

// PartChooser is a Chooser for backends whose servers tell some values of a row
// only. Values that are not known are replaced by the largest they can be. If
// one of those is chosen, the row must be had in more detail, and the choice
// made again.
type PartChooser interface {
	Chooser
	// Matters returns the tokens whose values the row of path is looked at for,
	// ascending. The slice is the caller's.
	Matters(path []vocab.ID) []vocab.ID
	// Part is Row for log-probabilities: natural logarithms, by the model's own
	// distribution. They need not add up to 1.
	Part(path []vocab.ID, logprobs []float32)
	// Reset forgets all rows.
	Reset()
}

// Replay is what a generation begins with.
type Replay struct {
	// Pending holds the bytes that are produced first, at least one. The token
	// that produces the last of them may go beyond.
	Pending []byte
	// Ways lists the sequences of tokens that may produce them. If there are
	// none, any tokens may whose bytes are, joined, the pending ones, the last as
	// above.
	Ways []Way
}

// Way is a set of token sequences.
type Way struct {
	Path []vocab.ID // the tokens that come first
	// Rest holds the pending bytes after those of Path. If it is not empty, one
	// token of Last follows, each of which begins with Rest.
	Rest []byte
	Last []vocab.ID // ascending
}

// Grammar is a grammar in the form in which a server's own engine reads it.
type Grammar struct {
	Kind   GrammarKind
	Source string
}

// GrammarKind is a language of grammars.
type GrammarKind string

// The kinds.
const (
	GBNF       GrammarKind = "gbnf"        // llama.cpp's
	Regex      GrammarKind = "regex"       // of the whole text
	JSONSchema GrammarKind = "json_schema" // the schema as JSON
	Lark       GrammarKind = "lark"        // llguidance's
)

// ChatTokenizer is implemented by backends whose server turns conversations
// into prompts.
type ChatTokenizer interface {
	// TokenizeChat returns the prompt's tokens for the body of a request to
	// /v1/chat/completions, which may ask to continue its last message.
	TokenizeChat(ctx context.Context, body []byte) ([]vocab.ID, error)
}

// Steer narrows and watches one generation. A backend calls Mask, then Accept
// with the token it chose, alternately and never from two goroutines at once.
// Both run between decode steps: they must be quick and must not block.
type Steer interface {
	// Mask returns the IDs the next token may have, or nil if any may. The
	// mask holds at least one ID. It is valid until the next call of Accept.
	Mask() vocab.Mask
	// Accept takes the chosen token and says what it was. It is called for
	// every token of the stream, end-of-generation tokens excepted.
	Accept(vocab.ID) Verdict
}

// Verdict is what a [Steer] says of an accepted token.
type Verdict struct {
	Uncounted bool // does not count against MaxTokens
	Stop      bool // is the last token of this generation
}

// Sampling selects tokens from logits. The zero value is greedy: the likeliest
// token, the lowest ID among equals.
type Sampling struct {
	Temperature float64 // 0 is greedy
	TopK        int     // 0: off
	TopP        float64 // 0 or 1: off
	MinP        float64 // 0: off; relative to the likeliest token

	// RepeatPenalty divides (or, below zero, multiplies) the logits of tokens
	// seen in the last RepeatLastN tokens, prompt included; 0 or 1: off.
	RepeatPenalty float64
	RepeatLastN   int // 0: 64
	// FrequencyPenalty and PresencePenalty follow OpenAI's definition, over
	// generated tokens only.
	FrequencyPenalty float64
	PresencePenalty  float64

	LogitBias map[vocab.ID]float64

	// Seed makes sampling repeatable: the same logits give the same tokens. What
	// else a backend computes at the time may move logits in their last bits.
	// Nil draws a fresh seed.
	Seed *uint64
}

// Stream is a running generation. Next, End and Close are for one goroutine.
type Stream interface {
	// Next waits for the next token. It returns io.EOF after the last one, the
	// context's error when that was canceled, or the backend's error.
	Next() (Token, error)
	// End says how the generation ended. It is valid once Next has returned
	// an error, io.EOF included.
	End() End
	// Close gives the generation up, if it is still running, and frees what it
	// holds. It may be called more than once.
	Close() error
}

// Token is one generated token.
type Token struct {
	ID vocab.ID
	// Logprob is the natural logarithm of the token's probability by the
	// model's own distribution: before temperature, mask and bias.
	Logprob float64
	// Top lists the likeliest tokens by the same distribution, likeliest first.
	Top []Logprob
}

// Logprob is a token with its log-probability.
type Logprob struct {
	ID      vocab.ID
	Logprob float64
}

// FinishReason says why a generation ended.
type FinishReason string

// The reasons, as OpenAI's API spells them.
const (
	FinishStop   FinishReason = "stop"   // end-of-generation token or Verdict.Stop
	FinishLength FinishReason = "length" // MaxTokens or the context is used up
)

// End closes a stream.
type End struct {
	Reason FinishReason
	// EndToken is the end-of-generation token that was drawn, or vocab.None.
	EndToken vocab.ID
	// CachedTokens is how many of the prompt's tokens were not prefilled
	// because an earlier request had left them.
	CachedTokens int
	// ForwardPasses counts the decode calls that worked on this request; 0 where
	// a server does not tell.
	ForwardPasses int
	// Requests counts the requests that were sent to a server.
	Requests int
}
