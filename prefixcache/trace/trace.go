// Package trace reads logs of requests to engines in the public formats.
package trace

import (
	"encoding/json"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// A Request is a line of a trace. What a format does not say is zero, except
// where a field says otherwise. One of Blocks, IDs, Text and Messages describes
// the prompt; a trace of lengths only has none of them.
type Request struct {
	Line int           // of the file, from 1
	At   time.Duration // since the trace's first request; 0 in traces without times
	ID   string        // of the request

	// Conversation names the requests that are turns of one conversation.
	Conversation string
	Model        string
	// Worker names the engine that answered.
	Worker string

	// Blocks are the identities of the prompt's blocks of BlockTokens tokens,
	// the last of which may be part of a block. An identity stands for the whole
	// prefix up to the block's end: equal ones in two requests mean equal
	// prefixes.
	Blocks      []uint64
	BlockTokens int

	IDs      []vocab.ID      // the prompt's tokens
	Text     []byte          // the prompt as text
	Messages json.RawMessage // a conversation, as OpenAI's API takes it
	Tools    json.RawMessage // the tools offered with Messages

	PromptTokens int // as the trace tells it; -1 if it does not
	OutputTokens int // as the trace tells it; -1 if it does not
	Output       []byte
	OutputIDs    []vocab.ID

	Keys prefixcache.Keys
	// Cached is how many tokens of the prompt the engine reported as cached, and
	// Predicted how many a simulation expected when the log was written; -1 if the
	// trace does not tell.
	Cached, Predicted int
}
