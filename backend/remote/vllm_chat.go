package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

const vllmTokenize = "/tokenize"

// vllmTokens is an answer of /tokenize.
type vllmTokens struct {
	Tokens []vocab.ID `json:"tokens"`
}

// chatFields are the fields of a chat request that /tokenize reads as the chat
// endpoint does.
var chatFields = []string{
	"messages", "tools", "add_generation_prompt", "continue_final_message", "add_special_tokens",
	"chat_template", "chat_template_kwargs", "mm_processor_kwargs", "media_io_kwargs",
}

// chatUnknown are fields that shape a chat's prompt and that /tokenize does not
// know.
var chatUnknown = []string{"documents", "reasoning_effort", "truncate_prompt_tokens", "mm_payload"}

// TokenizeChat implements [backend.ChatTokenizer].
func (v *VLLM) TokenizeChat(ctx context.Context, body []byte) ([]vocab.ID, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("remote: the chat request is no JSON object: %w", err)
	}
	for _, name := range chatUnknown {
		if given(fields, name) {
			return nil, &backend.UnsupportedError{Param: name, Text: "the server makes the prompt's tokens known without it only"}
		}
	}
	var choice string
	if given(fields, "tools") && json.Unmarshal(fields["tool_choice"], &choice) == nil && choice == "none" {
		return nil, &backend.UnsupportedError{Param: "tool_choice", Text: "whether the server leaves the tools out of the prompt then is not known"}
	}
	in := map[string]any{}
	for _, name := range chatFields {
		if given(fields, name) {
			in[name] = fields[name]
		}
	}
	req := &backend.Request{Fields: fields}
	v.address(in, req)
	delete(in, "return_token_ids")
	delete(in, "return_tokens_as_token_ids")
	var out vllmTokens
	if err := v.client.do(ctx, http.MethodPost, vllmTokenize, in, &out); err != nil {
		return nil, err
	}
	return v.checked(out.Tokens)
}

// tokenize asks the server for the tokens of a text. It reads texts of control
// tokens as those in any case.
func (v *VLLM) tokenize(ctx context.Context, text string, _, bos bool) ([]vocab.ID, error) {
	in := map[string]any{"model": v.info.Name, "prompt": text, "add_special_tokens": bos}
	var out vllmTokens
	if err := v.client.do(ctx, http.MethodPost, vllmTokenize, in, &out); err != nil {
		return nil, err
	}
	return v.checked(out.Tokens)
}

// checked refuses an answer without tokens and those that are negative. Others
// beyond the vocabulary are for the caller to see.
func (v *VLLM) checked(ids []vocab.ID) ([]vocab.ID, error) {
	if ids == nil {
		return nil, &backend.ProtocolError{Text: "it lists no tokens"}
	}
	for _, id := range ids {
		if id < 0 || v.vocab != nil && !v.vocab.Valid(id) {
			return nil, &backend.ProtocolError{Text: fmt.Sprintf("it lists token %d, which is none of the vocabulary", id)}
		}
	}
	return ids, nil
}
