package wire

import (
	"bytes"
	"encoding/json"
	"math"
)

// Completion is the answer of /v1/completions, whole or, in a stream, a part.
type Completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // text_completion
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []CompletionChoice `json:"choices"`
	Usage   *UsageField        `json:"usage,omitempty"`
	Unfray  *Unfray            `json:"unfray,omitempty"`
}

// CompletionChoice is one continuation.
type CompletionChoice struct {
	Text         string              `json:"text"`
	Index        int                 `json:"index"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	// Bytes holds the exact bytes of a text that is not valid UTF-8.
	Bytes  []byte  `json:"bytes,omitempty"`
	Unfray *Unfray `json:"unfray,omitempty"`
}

// CompletionLogprobs describes tokens, each field having one element a token.
type CompletionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []Logprob            `json:"token_logprobs"`
	TopLogprobs   []map[string]Logprob `json:"top_logprobs"`
	// TextOffset counts characters (code points) from the prompt's start.
	TextOffset []int `json:"text_offset"`
}

// Logprob is a natural logarithm of a probability. Minus infinity, which JSON
// cannot write, is -9999, as in OpenAI's own answers.
type Logprob float64

// MarshalJSON implements [json.Marshaler].
func (l Logprob) MarshalJSON() ([]byte, error) {
	v := float64(l)
	if math.IsNaN(v) || v < -9999 {
		v = -9999
	}
	return json.Marshal(min(v, 0))
}

// ChatCompletion is the answer of /v1/chat/completions, whole or a part.
type ChatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"` // chat.completion or chat.completion.chunk
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   *UsageField  `json:"usage,omitempty"`
	Unfray  *Unfray      `json:"unfray,omitempty"`
}

// ChatChoice is one answer: Message when whole, Delta in a stream.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      *ChatMessage  `json:"message,omitempty"`
	Delta        *ChatDelta    `json:"delta,omitempty"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	// Bytes holds the exact bytes of a content that is not valid UTF-8.
	Bytes  []byte  `json:"bytes,omitempty"`
	Unfray *Unfray `json:"unfray,omitempty"`
}

// ChatMessage is a whole answer.
type ChatMessage struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"` // always null: it is the model's to refuse
}

// ChatDelta is a part of an answer.
type ChatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// ChatLogprobs describes the tokens of a chat answer.
type ChatLogprobs struct {
	Content []ChatToken `json:"content"`
	Refusal []ChatToken `json:"refusal"`
}

// ChatToken is a token with its log-probability.
type ChatToken struct {
	Token       string      `json:"token"`
	Logprob     Logprob     `json:"logprob"`
	Bytes       []int       `json:"bytes"` // numbers: OpenAI's form
	TopLogprobs []ChatToken `json:"top_logprobs,omitempty"`
}

// UsageField is the usage of an answer. A stream that will report its usage
// has the field in every chunk, null in all but the last.
type UsageField struct{ Value *Usage }

// MarshalJSON implements [json.Marshaler].
func (u UsageField) MarshalJSON() ([]byte, error) { return json.Marshal(u.Value) }

// Usage counts tokens.
type Usage struct {
	PromptTokens        int                  `json:"prompt_tokens"`
	CompletionTokens    int                  `json:"completion_tokens"`
	TotalTokens         int                  `json:"total_tokens"`
	PromptTokensDetails *PromptTokensDetails `json:"prompt_tokens_details,omitempty"`
}

// PromptTokensDetails says how many of the prompt's tokens were cached.
type PromptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// Unfray reports what was done to prompt and answer.
type Unfray struct {
	Healing  any `json:"healing,omitempty"`
	Recovery any `json:"recovery,omitempty"`
}

// ModelList is the answer of /v1/models.
type ModelList struct {
	Object string  `json:"object"` // list
	Data   []Model `json:"data"`
}

// Model describes one model.
type Model struct {
	ID          string `json:"id"`
	Object      string `json:"object"` // model
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len,omitempty"` // tokens; vLLM's name
	Description string `json:"description,omitempty"`
}

// Error is OpenAI's error object.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// ErrorBody is the body of an answer that failed.
type ErrorBody struct {
	Error  Error   `json:"error"`
	Unfray *Unfray `json:"unfray,omitempty"`
}

// Marshal encodes v without the escapes that only HTML needs.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
