package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/internal/wire"
)

// Codes of X-Unfray-Note, for answers that come from the upstream as they are
// although the gateway would have healed the prompt. The codes of healing's own
// notes stand there too.
const (
	noteUnknownField = "field_needs_upstream" // the request asks for what only the upstream's own answer holds
	noteUnread       = "request_not_read"     // the upstream may know what the gateway does not
)

// askUpstream are fields whose effect is in the upstream's own answer, or on the
// whole request, so that a healed one could not have it.
var askUpstream = []string{
	"prompt_logprobs", "return_token_ids", "return_tokens_as_token_ids", "logprob_token_ids", "return_tokens",
	"return_prompt_text", "return_progress", "prompt_embeds", "truncate_prompt_tokens", "allowed_token_ids", "use_beam_search",
	"include_stop_str_in_output", "add_special_tokens", "kv_transfer_params", "response_fields", "n_probs",
	"post_sampling_probs", "timings_per_token",
}

// ownFields are those that a healed request sets itself, has read, or has no
// meaning for. All others get to the server as they are.
var ownFields = []string{
	"model", "prompt", "suffix", "echo", "n", "n_cmpl", "best_of", "stream", "stream_options", "stop", "max_tokens",
	"max_completion_tokens", "n_predict", "logprobs", "top_logprobs", "user", "unfray",
	"input_prefix", "input_suffix", "input_extra",
	"messages", "continue_final_message", "add_generation_prompt", "chat_template", "chat_template_kwargs", "tools", "tool_choice",
	"grammar", "json_schema", "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_grammar", "guided_choice",
}

// request is a body that may be healed.
type request struct {
	body  []byte
	model string // as the body names it
	err   error  // why it could not be read
	whole bool   // the upstream would not understand it: it must be healed
	// job makes of the body what it asks for. fields are those that are the
	// server's business.
	job func(m *model, fields map[string]json.RawMessage) (*job, error)
}

// serve answers a request, by way of the model's own server where it has one
// and nothing is to be healed.
func (g *Gateway) serve(x *exchange, q *request) error {
	if q.err != nil {
		return g.serveUnread(x, q)
	}
	m, err := g.choose(q.model)
	if err != nil && g.cfg.Default != nil {
		if err := g.mayUse(x, q.model); err != nil {
			return err
		}
		return g.proxy(x, g.cfg.Default, q.body)
	}
	if err == nil {
		err = g.mayUse(x, m.Name)
	}
	if err != nil {
		return err
	}
	if m.Timeout > 0 {
		var cancel context.CancelFunc
		x.ctx, cancel = context.WithTimeoutCause(x.ctx, m.Timeout, errTimeout)
		defer cancel()
	}
	if m.Upstream == nil {
		j, err := q.job(m, nil)
		if err != nil {
			return err
		}
		return g.run(x, j)
	}
	if err := m.checkMaxTokens(q.body); err != nil {
		return err
	}
	x.ctx = upstream.WithKey(x.ctx, q.body)
	note, err := g.tryHealed(x, m, q)
	if note == "" || x.status != 0 {
		return err
	}
	if q.whole {
		if err == nil {
			err = badRequest("", "this endpoint needs the model's tokenizer, and %s", m.NoHeal.Text)
		}
		return err
	}
	if note != noNote {
		x.Header().Set("X-Unfray-Note", note)
	}
	g.metrics.passedOn(m.Name)
	return g.forward(x, m, q.model, q.body)
}

// upstreamName is what the model's server calls it.
func (m *model) upstreamName() string {
	if m.UpstreamName != "" {
		return m.UpstreamName
	}
	return m.Name
}

// forward sends a request to a model's upstream as it came, but for a name of the
// model that the upstream does not know.
func (g *Gateway) forward(x *exchange, m *model, named string, body []byte) error {
	if name := m.upstreamName(); named != "" && named != name {
		body = wire.ReplaceString(body, "model", name)
	}
	return g.proxy(x, m.Upstream, body)
}

// serveUnread passes on what the gateway cannot read: the upstream may, or says
// in its own words what is wrong.
func (g *Gateway) serveUnread(x *exchange, q *request) error {
	var named struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(q.body, &named) // what is no JSON names no model
	up := g.cfg.Default
	if m, err := g.choose(named.Model); err == nil {
		up = m.Upstream
	}
	// Whoever may use some models only must say clearly which.
	if up == nil || q.whole || g.mayUse(x, "") != nil {
		return q.err
	}
	x.Header().Set("X-Unfray-Note", noteUnread)
	return g.proxy(x, up, q.body)
}

// relayUnless answers by do where the model's tokenizer is here and no server of
// llama.cpp's dialect runs it; that answers itself.
func (g *Gateway) relayUnless(x *exchange, body []byte, name string, do func(m *model) error) error {
	m, err := g.choose(name)
	if err != nil {
		return g.relayOr(x, body, name, err)
	}
	if err := g.mayUse(x, m.Name); err != nil {
		return err
	}
	if m.Upstream != nil && (m.Native || m.Model.Model == nil) {
		return g.forward(x, m, name, body)
	}
	return do(m)
}

// relayOr passes a request on to the default upstream, or fails if there is none.
func (g *Gateway) relayOr(x *exchange, body []byte, name string, err error) error {
	return g.serveUnread(x, &request{body: body, model: name, err: err})
}

// noNote means that the request is passed on and there is nothing to say of it.
const noNote = "-"

// tryHealed answers a request for a model with an upstream if it is to be healed.
// If not, it returns why, and has written nothing.
func (g *Gateway) tryHealed(x *exchange, m *model, q *request) (note string, err error) {
	if m.NoHeal != nil {
		return m.NoHeal.Code, nil
	}
	if m.Model.Model == nil {
		return noNote, nil
	}
	fields, needs := fieldsOf(q.body)
	j, err := q.job(m, fields)
	var api *apiError
	switch {
	case errors.As(err, &api) && isOwn(api.param):
		return "", err
	case errors.Is(err, errNotHealed):
		return noNote, nil
	case err != nil:
		x.note(slog.String("not_healed", err.Error()))
		return noteOf(err), err
	case j.settings.Heal == heal.Off && !q.whole:
		return noNote, nil
	case !j.heals() && !j.healAsked && !q.whole:
		return noNote, nil
	case needs != "" && !q.whole:
		x.note(slog.String("not_healed", needs))
		return noteUnknownField, nil
	}
	err = g.run(x, j)
	g.metrics.failed(m.Name, err)
	if unsupported := new(backend.UnsupportedError); errors.As(err, &unsupported) {
		x.note(slog.String("not_healed", unsupported.Error()))
		return noteOf(err), err
	}
	return "", err
}

// checkMaxTokens refuses a request that asks for more than the model may give,
// in any dialect. A request that does not say is limited by the upstream.
func (m *model) checkMaxTokens(body []byte) error {
	if m.MaxTokens == 0 {
		return nil
	}
	var asked struct {
		A *float64 `json:"max_tokens"`
		B *float64 `json:"max_completion_tokens"`
		C *float64 `json:"n_predict"`
	}
	_ = json.Unmarshal(body, &asked) // what is no number is the upstream's to refuse
	for name, n := range map[string]*float64{"max_tokens": asked.A, "max_completion_tokens": asked.B, "n_predict": asked.C} {
		if n != nil && *n > float64(m.MaxTokens) {
			return m.tooManyTokens(name)
		}
	}
	return nil
}

func (m *model) tooManyTokens(param string) error {
	return badRequest(param, "%s: this model gives at most %d tokens", param, m.MaxTokens)
}

// errNotHealed is the error of a request that healing has no place in.
var errNotHealed = errors.New("gateway: the request is not one to heal")

// isOwn reports whether a parameter is one of the gateway's.
func isOwn(param string) bool {
	return len(param) >= 6 && param[:6] == "unfray" || len(param) >= 9 && param[:9] == "X-Unfray-"
}

// noteOf is the code for a request that is not healed because of err.
func noteOf(err error) string {
	switch {
	case errors.As(err, new(*backend.UnsupportedError)):
		return "not_supported"
	case errors.As(err, new(*backend.PromptTooLongError)), errors.As(err, new(*backend.InvalidTokenError)), errors.As(err, new(*unfray.RequestError)):
		return noNote // the upstream says so too
	}
	return noteUnread
}

// fieldsOf returns the fields of a body that are the server's own, and the name
// of one that asks for the server's own answer, if there is one.
func fieldsOf(body []byte) (fields map[string]json.RawMessage, needs string) {
	// The body has been read: it is an object.
	if json.Unmarshal(body, &fields) != nil {
		return nil, ""
	}
	for _, name := range askUpstream {
		switch v := string(fields[name]); v {
		case "", "null", "false", "0", "-1", "[]":
		default:
			if name == "add_special_tokens" && v == "true" {
				continue
			}
			return nil, name
		}
	}
	for _, name := range ownFields {
		delete(fields, name)
	}
	return fields, ""
}
