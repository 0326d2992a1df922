// Package trace reads logs of requests to engines in the public formats. A
// [Reader] finds the format by the first record, or is told:
//
//   - mooncake: a line for a request with the identities of its prompt's blocks,
//     as Mooncake's traces (times in milliseconds, blocks of 512 tokens),
//     Qwen-Bailian's (seconds, 16 tokens; recognised by chat_id), what vLLM's
//     benchmark calls a timed trace, and kvcache-simulator's (block_size)
//   - sharegpt: conversations of turns with from and value
//   - agent: trajectories of SWE-agent (history) and mini-swe-agent (messages)
//   - unfray: the log of package gateway, as JSON. Prompts are in it only if the
//     operator has them logged; other lines tell lengths and what was cached
//   - otel: documents of spans with OpenTelemetry's attributes for generative AI,
//     as inference-perf replays them
//   - keystrokes: prefix and next, or prefix, middle and suffix
//   - vllm-bench: vLLM's custom data set, prompt and output_tokens
//   - openai: bodies of completions and chat requests, bare, in OpenAI's batch
//     format, or as {"request": …, "response": …}; also the native bodies of
//     SGLang, TGI and llama.cpp
//   - csv: lengths with a header, as BurstGPT and Azure's traces
//
// Records are lines, elements of one JSON array, or JSON values one after the
// other on several lines. gzip is recognised. One record is in memory at a time,
// and one that is longer than [Options.MaxLine] is passed without being held.
//
// Traces are read as strictly as they can be checked: a field that is read must
// have its type, be there once, and be valid UTF-8, and times must not run back.
// Errors name line and column of the value at fault. [Options.SkipBad] counts bad
// records and goes on.
package trace

import (
	"encoding/json"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// A Request is a request of a trace. What a format does not say is zero, except
// where a field says otherwise. One of Blocks, IDs, Text and Messages describes
// the prompt; a trace of lengths only has none of them. IDs may stand beside Text
// or Messages: they are then what the engine made of these.
type Request struct {
	Line int           // of the file, from 1; of a record on several lines, the first
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
