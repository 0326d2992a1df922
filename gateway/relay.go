package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

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

// request is a body that may be healed.
type request struct {
	body  []byte
	model string // as the body names it
	err   error  // why it could not be read
	whole bool   // the upstream would not understand it: it must be healed
	// pass is the body to pass on in place of body; nil: that one.
	pass []byte
	read func(q *request) // fills in what body says
	// unread are the paths of fields that the gateway does not know.
	unread []string
	// job makes of the body what it asks for. fields are those that are the
	// server's business.
	job func(m *model, fields map[string]json.RawMessage) (*job, error)
}

// relay answers a request that may be healed. read fills in what its body says.
func (g *Gateway) relay(x *exchange, read func(q *request)) error {
	body, err := g.readBody(x)
	if err != nil {
		return err
	}
	if g.passesUnread(x, body) {
		return g.passUnread(x, body)
	}
	q := &request{body: body, read: read}
	read(q)
	return g.serve(x, q)
}

// passed is the body of a request that is passed on.
func (q *request) passed() []byte {
	if q.pass != nil {
		return q.pass
	}
	return q.body
}

// serve answers a request and recovers the answer where that is asked for.
func (g *Gateway) serve(x *exchange, q *request) error {
	var decode *wire.DecodeError
	switch {
	case errors.As(q.err, &decode) && strings.HasPrefix(decode.Param, "unfray.recover"):
		return q.err // no server knows better
	case q.err != nil:
		return g.serveUnread(x, q)
	}
	m, err := g.choose(q.model)
	switch {
	case err == nil:
		err = g.mayUse(x, m.Name)
		defer m.limitTime(x)()
	case g.cfg.Default != nil:
		m, err = nil, g.mayUse(x, q.model)
	}
	if err != nil {
		return err
	}
	do := func(q *request) error { return g.serveModel(x, m, q) }
	if x.inner {
		return do(q)
	}
	rec, err := g.recoveryFor(x, m, q.body)
	switch {
	case err != nil:
		return err
	case rec == nil:
		return do(q)
	}
	return g.recovered(x, q, rec, do)
}

// serveModel answers a request, by way of the model's own server where it has one
// and nothing is to be healed. m is nil for a model that only the default upstream
// knows.
func (g *Gateway) serveModel(x *exchange, m *model, q *request) error {
	if m == nil {
		body, err := g.lowestOf(g.cfg.Default).limit(x, q.passed())
		if err != nil {
			return err
		}
		return g.proxy(x, g.cfg.Default, body)
	}
	if m.Upstream == nil {
		j, err := q.job(m, nil)
		if err != nil {
			return err
		}
		return g.run(x, j)
	}
	limited, err := m.limit(x, q.passed())
	if err != nil {
		return err
	}
	x.ctx = upstream.WithKey(x.ctx, q.body)
	note, err := g.tryHealed(x, m, q)
	if note == "" || x.status != 0 {
		return err
	}
	if q.whole {
		if err == nil {
			why := "there is none"
			if no := m.noHeal.Load(); no != nil {
				why = no.Text
			}
			err = badRequest("", "this endpoint needs the model's tokenizer, and %s", why)
		}
		return err
	}
	if note != noNote {
		x.Header().Set("X-Unfray-Note", note)
	}
	g.metrics.passedOn(m.Name)
	return g.forwardWatched(x, m, q.model, limited)
}

// limitTime applies the model's own time limit. The caller calls what it
// returns when the request is over.
func (m *model) limitTime(x *exchange) context.CancelFunc {
	if m == nil || m.Timeout <= 0 {
		return func() {}
	}
	var cancel context.CancelFunc
	x.ctx, cancel = context.WithTimeoutCause(x.ctx, m.Timeout, errTimeout)
	return cancel
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
	if name := m.upstreamName(); named != "" && named != name && !m.AnyName {
		body = wire.ReplaceString(body, "model", name)
	}
	return g.proxy(x, m.Upstream, body)
}

// serveUnread passes on what the gateway cannot read: the upstream may, or says
// in its own words what is wrong.
func (g *Gateway) serveUnread(x *exchange, q *request) error {
	name, isClear := modelOf(q.body)
	up, allowed := g.cfg.Default, name
	m, err := g.choose(name)
	if err == nil {
		up, allowed = m.Upstream, m.Name
	}
	// Whoever may use some models only must say clearly which.
	if up == nil || q.whole || !isClear && !mayUseAll(x) {
		return q.err
	}
	if err := g.mayUse(x, allowed); err != nil {
		return err
	}
	limited := m
	if err != nil || !isClear {
		limited = g.lowestOf(up)
	}
	body, limitErr := limited.limit(x, q.body)
	switch {
	case errors.As(limitErr, new(*wire.DecodeError)):
		return q.err
	case limitErr != nil:
		return limitErr
	}
	x.Header().Set("X-Unfray-Note", noteUnread)
	x.ctx = upstream.WithKey(x.ctx, q.body)
	if err != nil {
		return g.proxy(x, up, body)
	}
	defer m.limitTime(x)()
	return g.forward(x, m, name, body)
}

// modelOf returns the model that a body names. isClear is false where another
// reader may find another name in it.
func modelOf(body []byte) (name string, isClear bool) {
	members, err := wire.Members(body)
	if err != nil {
		var named struct{ Model string }
		_ = json.Unmarshal(body, &named) // what is no JSON names no model
		return named.Model, false
	}
	if v := members["model"]; v != nil && json.Unmarshal(v, &name) != nil {
		return "", false
	}
	return name, true
}

// relayUnless answers by do where the model's tokenizer is here and its server, if
// there is one, does not know the request itself.
func (g *Gateway) relayUnless(x *exchange, body []byte, name string, own bool, do func(m *model) error) error {
	m, err := g.choose(name)
	if err != nil && g.cfg.Default != nil {
		if err := g.mayUse(x, name); err != nil {
			return err
		}
		return g.proxy(x, g.cfg.Default, body)
	}
	if err != nil {
		return err
	}
	if err := g.mayUse(x, m.Name); err != nil {
		return err
	}
	if m.Upstream != nil && (m.Native || own || m.Model.Model == nil) {
		defer m.limitTime(x)()
		return g.forward(x, m, name, body)
	}
	return do(m)
}

// noNote means that the request is passed on and there is nothing to say of it.
const noNote = "-"

// tryHealed answers a request for a model with an upstream if it is to be healed.
// If not, it returns why, and has written nothing.
func (g *Gateway) tryHealed(x *exchange, m *model, q *request) (note string, err error) {
	if no := m.noHeal.Load(); no != nil {
		return no.Code, nil
	}
	if m.Model.Model == nil {
		return noNote, nil
	}
	fields, needs := fieldsOf(q.body, q.unread)
	j, err := q.job(m, fields)
	switch {
	case isOwn(paramOf(err)):
		return "", err
	case errors.Is(err, errNotHealed):
		x.watchChat(m, q.body)
		return noNote, nil
	case err != nil:
		x.note(slog.String("not_healed", err.Error()))
		return noteOf(err), err
	case j.settings.Heal == heal.Off && !q.whole:
		x.watch(j)
		return noNote, nil
	case !j.heals() && !j.healAsked && !q.whole:
		x.healed = true // there is nothing to heal
		x.watch(j)
		return noNote, nil
	case needs != "" && !q.whole:
		x.watch(j)
		x.note(slog.String("not_healed", needs))
		return noteUnknownField, nil
	}
	err = g.run(x, j)
	g.metrics.failed(m.Name, err)
	if unsupported := new(backend.UnsupportedError); errors.As(err, &unsupported) {
		if x.status == 0 && !q.whole {
			x.watch(j)
		}
		x.note(slog.String("not_healed", unsupported.Error()))
		return noteOf(err), err
	}
	return "", err
}

// errNotHealed is the error of a request that healing has no place in.
var errNotHealed = errors.New("gateway: the request is not one to heal")

// paramOf is the field that an error is about, "" if it names none.
func paramOf(err error) string {
	var (
		api         *apiError
		request     *unfray.RequestError
		unsupported *backend.UnsupportedError
	)
	switch {
	case errors.As(err, &api):
		return api.param
	case errors.As(err, &request):
		return request.Param
	case errors.As(err, &unsupported):
		return unsupported.Param
	}
	return ""
}

// isOwn reports whether a parameter is one of the gateway's.
func isOwn(param string) bool {
	return strings.HasPrefix(param, "unfray") || strings.HasPrefix(param, "X-Unfray-")
}

// noteOf is the code for a request that is not healed because of err.
func noteOf(err error) string {
	switch {
	case errors.As(err, new(*backend.UnsupportedError)), unfray.IsNoFIM(err):
		return "not_supported"
	case errors.As(err, new(*backend.PromptTooLongError)), errors.As(err, new(*backend.InvalidTokenError)):
		return noNote // the upstream says so too
	}
	return noteUnread
}
