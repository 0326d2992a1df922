package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// vllmDropped are fields of a client's request that are not sent: they are set
// here, they speak of what this package does itself, or they belong to the other
// endpoint, where the prompt was made from them.
var vllmDropped = map[string]bool{
	"model": true, "prompt": true, "max_tokens": true, "max_completion_tokens": true, "stream": true, "stream_options": true,
	"return_token_ids": true, "return_tokens_as_token_ids": true, "logprobs": true, "top_logprobs": true,
	"n": true, "best_of": true, "echo": true, "stop": true, "suffix": true, "request_id": true, "detokenize": true,
	"add_special_tokens": true, "return_token_offsets": true, "return_prompt_text": true, "unfray": true,

	"messages": true, "tools": true, "tool_choice": true, "functions": true, "function_call": true, "parallel_tool_calls": true,
	"chat_template": true, "chat_template_kwargs": true, "documents": true, "add_generation_prompt": true,
	"continue_final_message": true, "reasoning_effort": true, "include_reasoning": true,
}

// vllmConstraints are the fields by which a client states a grammar.
var vllmConstraints = []string{"structured_outputs", "response_format", "guided_json", "guided_regex", "guided_choice", "guided_grammar"}

// vllmKept are the fields of a client's request that every request to the
// server carries: they say whose it is, not how tokens are drawn.
var vllmKept = []string{"cache_salt", "priority", "user"}

// maxBias is what vLLM clamps biases to.
const maxBias = 100

// given reports whether a field has a value other than null.
func given(fields map[string]json.RawMessage, name string) bool {
	v := bytes.TrimSpace(fields[name])
	return len(v) > 0 && !bytes.Equal(v, []byte("null"))
}

// constrained returns the field by which a client's request states a grammar, or
// "".
func constrained(fields map[string]json.RawMessage) string {
	for _, name := range vllmConstraints {
		if !given(fields, name) {
			continue
		}
		var format struct {
			Type string `json:"type"`
		}
		if name == "response_format" && json.Unmarshal(fields[name], &format) == nil && format.Type == "text" {
			continue
		}
		return name
	}
	return ""
}

// check implements engine.
func (v *VLLM) check(req *backend.Request) error {
	f := req.Fields
	for _, name := range []string{"truncate_prompt_tokens", "prompt_embeds", "prompt_logprobs", "logprob_token_ids"} {
		if given(f, name) {
			return &backend.UnsupportedError{Param: name, Text: "it does not go together with a prompt of token IDs that is streamed"}
		}
	}
	var beam bool
	if json.Unmarshal(f["use_beam_search"], &beam) == nil && beam {
		return &backend.UnsupportedError{Param: "use_beam_search", Text: "beams cannot be streamed token by token"}
	}
	if req.Grammar != nil && (req.Logprobs || req.TopLogprobs > 0) {
		return &backend.UnsupportedError{Param: "logprobs", Text: "under a grammar vLLM gives log-probabilities that are not the model's own"}
	}
	if req.Replay == nil && req.Choose == nil {
		return nil
	}
	// What is said of tokens must not forbid those that come first.
	for _, name := range []string{"allowed_token_ids", "bad_words"} {
		if given(f, name) && string(bytes.TrimSpace(f[name])) != "[]" {
			return &backend.UnsupportedError{Param: name, Text: "it may forbid the tokens that produce the prompt's last bytes again"}
		}
	}
	if name := constrained(f); name != "" && req.Grammar == nil {
		return &backend.UnsupportedError{Param: name, Text: "the prompt's last bytes cannot be put before it"}
	}
	switch {
	case req.Choose != nil && req.Grammar != nil:
		return unsupportedGrammar("the tokens over the prompt's end cannot be weighed under it")
	case req.Choose != nil || len(req.Replay.Pending) == 0:
		return nil
	case req.Grammar != nil:
		_, err := v.constraint(req.Grammar, newReplay(v.vocab, req.Replay))
		return err
	}
	t, err := newTokenTree(newReplay(v.vocab, req.Replay))
	if err == nil && !v.lark && t.widest() > v.options.MaxMask {
		err = v.tooMany(t.widest())
	}
	return err
}

// tooMany refuses a choice among n tokens.
func (v *VLLM) tooMany(n int) error {
	return &backend.UnsupportedError{Param: "prompt", Text: fmt.Sprintf("%d tokens may produce the prompt's last bytes again, but this server takes lists of %d only", n, v.options.MaxMask)}
}

// constraint returns structured_outputs for a grammar and what comes before it,
// nil if there is neither. It is for servers that read Lark, unless g is given.
func (v *VLLM) constraint(g *backend.Grammar, r *replay) (map[string]any, error) {
	switch {
	case g != nil && !slices.Contains(v.info.Capabilities.Grammars, g.Kind):
		return nil, unsupportedGrammar(fmt.Sprintf("this server reads no grammars of the kind %s", g.Kind))
	case g != nil && r.done():
		return composed(g, nil)
	case g != nil:
		out, err := composed(g, r.pending)
		if _, isLark := out["grammar"]; isLark && !v.lark {
			return nil, unsupportedGrammar("this server reads no grammars in which the prompt's last bytes could be put before it")
		}
		return out, err
	case r.done():
		return nil, nil
	}
	t, err := newTokenTree(r)
	if err != nil {
		return nil, err
	}
	source, err := t.lark()
	return map[string]any{"grammar": source}, err
}

// body returns the request of a call, without its constraint.
func (v *VLLM) body(c *call) map[string]any {
	b := map[string]any{}
	if c.req.Fields == nil {
		addSampling(b, &c.req.Sampling)
	}
	for name, value := range c.req.Fields {
		if !vllmDropped[name] && !(c.req.Grammar != nil && slices.Contains(vllmConstraints, name)) {
			b[name] = value
		}
	}
	if c.seed != nil {
		b["seed"] = *c.seed & math.MaxInt64 // a signed number there
	}
	if c.req.Logprobs || c.req.TopLogprobs > 0 {
		b["logprobs"] = c.req.TopLogprobs
	}
	v.address(b, c.req)
	b["prompt"], b["max_tokens"] = c.ids, c.max
	return b
}

// plain returns a request for one token after ids that shares nothing with the
// client's but whose it is.
func (v *VLLM) plain(req *backend.Request, ids []vocab.ID) map[string]any {
	b := map[string]any{}
	for _, name := range vllmKept {
		if given(req.Fields, name) {
			b[name] = req.Fields[name]
		}
	}
	addSampling(b, &backend.Sampling{})
	v.address(b, req)
	b["prompt"], b["max_tokens"] = ids, 1
	return b
}

// address says which model is meant and that token IDs are to come back. A
// client may name any model that the server lists: the adapters of one share its
// tokenizer.
func (v *VLLM) address(b map[string]any, req *backend.Request) {
	var name string
	if json.Unmarshal(req.Fields["model"], &name) != nil || !slices.Contains(v.models, name) {
		name = v.info.Name
	}
	b["model"] = name
	b["return_token_ids"], b["return_tokens_as_token_ids"] = true, true
}

// addSampling writes all settings, or the model's folder could fill in its own.
func addSampling(b map[string]any, s *backend.Sampling) {
	or := func(value, none float64) float64 {
		if value == 0 {
			return none
		}
		return value
	}
	maps.Copy(b, map[string]any{
		"temperature": s.Temperature, "top_k": s.TopK, "top_p": or(s.TopP, 1), "min_p": s.MinP,
		"repetition_penalty": or(s.RepeatPenalty, 1), "frequency_penalty": s.FrequencyPenalty, "presence_penalty": s.PresencePenalty,
	})
	if len(s.LogitBias) > 0 {
		bias := map[string]float64{}
		for id, x := range s.LogitBias {
			bias[strconv.Itoa(int(id))] = min(max(x, -maxBias), maxBias)
		}
		b["logit_bias"] = bias
	}
}
