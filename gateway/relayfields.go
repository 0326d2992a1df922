package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/unfray/unfray/internal/wire"
)

// askedField is a field that asks for something of the upstream's own answer.
type askedField struct {
	name string
	// none lists the values that ask for nothing, as JSON; nil: those of nothing.
	none []string
}

// nothing are the values that leave a setting off. Null is for every field.
var nothing = []string{"false", "0", "[]", `""`}

// askUpstream are fields whose effect is in the upstream's own answer, or on the
// whole request, so that a healed one could not have it.
var askUpstream = []askedField{
	{"prompt_logprobs", []string{}}, // 0 and -1 are numbers of alternatives
	{"return_token_ids", nil}, {"return_tokens_as_token_ids", nil}, {"logprob_token_ids", nil}, {"return_tokens", nil},
	{"return_prompt_text", nil}, {"return_progress", nil}, {"return_token_offsets", nil}, {"prompt_embeds", nil},
	{"truncate_prompt_tokens", nil}, {"allowed_token_ids", nil}, {"use_beam_search", nil}, {"include_stop_str_in_output", nil},
	{"kv_transfer_params", nil}, {"ec_transfer_params", nil}, {"response_fields", nil}, {"n_probs", nil},
	{"post_sampling_probs", nil}, {"timings_per_token", nil}, {"verbose", nil},
	{"min_tokens", nil}, // the replay's tokens would count
	{"skip_special_tokens", []string{"true"}},
	{"grammar_lazy", nil}, {"grammar_triggers", nil}, {"preserved_tokens", nil}, // a grammar that begins later
}

// readFields are those of which a healed request sets what it has read. Where
// the decoder of an endpoint does not read them, a server may do so all the same:
// llama.cpp's knows each by several names.
var readFields = []string{
	"prompt", "suffix", "echo", "n", "n_cmpl", "best_of", "stream", "stream_options", "stop", "max_tokens",
	"max_completion_tokens", "n_predict", "logprobs", "top_logprobs", "input_prefix", "input_suffix",
	"grammar", "json_schema", "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_grammar", "guided_choice",
}

// ownFields are the others that a healed request sets itself, or has used up: a
// conversation is a prompt then. All that are left get to the server as they are.
var ownFields = []string{
	"model", "unfray", "input_extra",
	"messages", "continue_final_message", "add_generation_prompt", "chat_template", "chat_template_kwargs", "tools", "tool_choice",
}

// fieldsOf returns the fields of a body that are the server's own, and the name
// of one that asks for what only the server can do, if there is one. unread are
// the paths of fields that the gateway has not read.
func fieldsOf(body []byte, unread []string) (fields map[string]json.RawMessage, needs string) {
	fields, err := wire.Members(body)
	if err != nil {
		return map[string]json.RawMessage{}, "" // not so: the body has been read
	}
	for _, a := range askUpstream {
		if asks(fields[a.name], a.none) {
			return fields, a.name
		}
	}
	// A conversation's tokens are the server's own; those of a text begin with its
	// start token.
	if _, chat := fields["messages"]; !chat && asks(fields["add_special_tokens"], []string{"true"}) {
		return fields, "add_special_tokens"
	}
	if path := lost(fields, unread); path != "" {
		return fields, path
	}
	for _, name := range slices.Concat(readFields, ownFields) {
		delete(fields, name)
	}
	return fields, ""
}

// lost returns the path of a field that would be lost with one of readFields,
// since the gateway has not read it; "" if there is none.
func lost(fields map[string]json.RawMessage, unread []string) string {
	members := map[string]map[string]json.RawMessage{} // of readFields that are objects
	for _, path := range unread {
		name, rest := path, ""
		if i := strings.IndexAny(path, ".["); i >= 0 {
			name, rest = path[:i], path[i+1:]
		}
		if !slices.Contains(readFields, name) {
			continue
		}
		value := fields[name]
		if _, done := members[name]; rest != "" && !done {
			var object map[string]json.RawMessage
			_ = json.Unmarshal(value, &object) // an array has no members
			members[name] = object
		}
		if v := members[name][rest]; v != nil {
			value = v
		}
		if asks(value, nil) {
			return path
		}
	}
	return ""
}

// asks reports whether a value is another than null and those listed.
func asks(value json.RawMessage, none []string) bool {
	if none == nil {
		none = nothing
	}
	v := string(value)
	return v != "" && v != "null" && !slices.Contains(none, v)
}
