package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/continuation"
)

// asks reports whether the model may be asked to go on.
func (r *recovering) asks() bool {
	return r.left > 0 && slices.Contains(r.options.Strategies, recovery.Continue) && len(r.modes()) > 0
}

// falls reports whether another model may be asked.
func (r *recovering) falls() bool {
	return r.Fallback != "" && slices.Contains(r.options.Strategies, recovery.Fall)
}

// choices is how many choices the answer is to have.
func (r *recovering) choices() int { return max(r.view.N, 1) * max(len(r.view.Prompts), 1) }

// heals reports whether the end of a text is healed where the model goes on with
// it.
func (r *recovering) heals() bool {
	m := r.model
	return m != nil && m.Model.Model != nil && m.noHeal.Load() == nil && (m.Heal != heal.Off || m.Upstream == nil)
}

// way is how a conversation is continued.
func (r *recovering) way() ContinueWay {
	switch {
	case r.Continue != ContinueAuto:
		return r.Continue
	case r.model != nil && r.model.Upstream == nil:
		return ContinueFields
	case r.model != nil && r.model.Native:
		return ContinueLast
	}
	return ContinueInstruct
}

// modes are the ways to go on that there are, the best first.
func (r *recovering) modes() []continuation.Mode {
	way := r.way()
	if way == ContinueNone || !r.chat && r.view.Prompts == nil || r.view.Suffix && r.chat {
		return nil
	}
	var out []continuation.Mode
	if !r.chat || way != ContinueInstruct {
		out = append(out, continuation.Prefill)
		if r.heals() {
			out[0] = continuation.Exact
		}
	}
	if r.chat {
		out = append(out, continuation.Instruct)
	}
	return out
}

// asker asks for more of one choice, by a request of its own through the gateway:
// keys, limits, healing and the choice of a server hold for it as for any other.
type asker struct {
	w      *recoverWriter
	index  int            // of the choice
	stream *recoverChoice // nil: the answer is whole
	off    bool           // the answer broke off, or the client has gone
	tokens int            // of all answers
	fell   string         // why the answer of another model ended
}

func (w *recoverWriter) asker(index int) *asker { return &asker{w: w, index: index} }

// arm gives recovery the means to ask.
func (a *asker) arm(o *recovery.Options) {
	rec := a.w.rec
	if rec.asks() {
		o.Ask, o.Seam.Modes = a.ask, rec.modes()
		o.Budget.Tokens = rec.left
	}
	if rec.falls() {
		o.Fallback = a.fall
	}
}

var errNotAsked = errors.New("gateway: the model is not asked")

// ask implements [continuation.Ask].
func (a *asker) ask(ctx context.Context, q continuation.Request) (continuation.Answer, error) {
	if a.off {
		return continuation.Answer{}, errNotAsked
	}
	body, begun, err := a.body(q)
	if err != nil {
		return continuation.Answer{}, err
	}
	got, x, err := a.inner(ctx, body)
	if err != nil {
		return continuation.Answer{}, err
	}
	a.tokens += got.tokens
	text := got.text
	// Some servers send the message that they continue, too.
	if q.Mode != continuation.Instruct && a.w.rec.chat && len(begun) > 0 {
		text = bytes.TrimPrefix(text, begun)
	}
	return continuation.Answer{Text: text, FinishReason: got.finish, Tokens: got.tokens, Exact: x.healed}, nil
}

// fall implements [recovery.Fallback]: it asks another model, once, unless a part of
// the answer has been given already.
func (a *asker) fall(ctx context.Context, _ *recovery.Result, attempt int) ([]byte, error) {
	if a.off || attempt > 1 || a.stream != nil && a.stream.given {
		return nil, nil
	}
	rec := a.w.rec
	name, err := wire.Marshal(rec.Fallback)
	if err != nil {
		return nil, err
	}
	body, err := a.single(wire.SetMember(a.w.q.body, "model", name))
	if err != nil {
		return nil, err
	}
	got, _, err := a.inner(ctx, body)
	if err != nil {
		return nil, err
	}
	a.tokens += got.tokens
	a.fell = got.finish
	return got.text, nil
}

// notAgain are the fields of a request that a further one must not have: what
// concerns the number and form of answers, and the gateway.
var notAgain = []string{"unfray", "n", "stream_options", "echo", "best_of", "logprobs", "top_logprobs", "stream"}

// constraints are the fields that say what a whole answer keeps to, and not the rest
// of one.
var constraints = []string{
	"response_format", "structured_outputs", "guided_json", "guided_regex", "guided_grammar", "guided_choice", "json_schema", "grammar",
}

func without(body []byte, names []string) []byte {
	for _, name := range names {
		body = wire.RemoveMember(body, name)
	}
	return body
}

// single makes a request for one answer of a request, to the prompt of the choice.
func (a *asker) single(body []byte) ([]byte, error) {
	body = without(body, notAgain)
	v := a.w.rec.view
	if a.w.rec.chat || len(v.Prompts) < 2 {
		return body, nil
	}
	prompt, err := a.prompt()
	if err != nil {
		return nil, err
	}
	return wire.SetMember(body, "prompt", wire.AppendString(nil, prompt)), nil
}

// prompt is the text of the prompt that the choice belongs to.
func (a *asker) prompt() ([]byte, error) {
	v := a.w.rec.view
	i := a.index / max(v.N, 1)
	if i >= len(v.Prompts) {
		return nil, errNotAsked
	}
	p := v.Prompts[i]
	if p.IDs == nil {
		return []byte(p.Text), nil
	}
	m := a.w.rec.model
	if m == nil || m.Model.Model == nil {
		return nil, fmt.Errorf("%w: the prompt is tokens, and their tokenizer is not here", errNotAsked)
	}
	ids, err := m.completionPrompts(v.Prompts[i : i+1])
	if err != nil {
		return nil, err
	}
	text := spell(m.Model.Model.Tokenizer().Vocab(), ids[0].IDs)
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: the prompt is not UTF-8", errNotAsked)
	}
	return text, nil
}

// body makes the request to go on, and returns with it what the answer's message may
// begin with.
func (a *asker) body(q continuation.Request) (body, begun []byte, err error) {
	rec := a.w.rec
	if !utf8.Valid(q.Keep) {
		return nil, nil, fmt.Errorf("%w: the text is not UTF-8", errNotAsked)
	}
	if body, err = a.single(a.w.q.body); err != nil {
		return nil, nil, err
	}
	own := "max_tokens"
	if rec.view.MaxTokensField != "" {
		own = rec.view.MaxTokensField
	}
	body = without(body, limitFields)
	if q.MaxTokens > 0 {
		body = wire.SetMember(body, own, []byte(itoa(q.MaxTokens)))
	}
	free := without(body, constraints)
	switch {
	case len(free) == len(body):
	case rec.keepsConstraint(q.Mode):
		body = wire.SetMember(body, "unfray", []byte(`{"grammar_bytes":`+itoa(len(q.Keep))+`}`))
	default:
		body = free
	}
	if !rec.chat {
		prompt, err := a.prompt()
		if err != nil {
			return nil, nil, err
		}
		return wire.SetMember(body, "prompt", wire.AppendString(nil, append(prompt, q.Keep...))), nil, nil
	}
	return a.messages(body, q)
}

// keepsConstraint reports whether the text that there is can be put before what the
// request's constraint is about: by the engine in this process, in a prompt of text.
func (r *recovering) keepsConstraint(mode continuation.Mode) bool {
	return !r.chat && mode == continuation.Exact && r.model != nil && r.model.Upstream == nil
}

// messages adds to a conversation what is to be continued.
func (a *asker) messages(body []byte, q continuation.Request) (out, begun []byte, err error) {
	rec := a.w.rec
	members, err := wire.Members(body)
	if err != nil {
		return nil, nil, err
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(members["messages"], &messages); err != nil {
		return nil, nil, err
	}
	text := q.Keep
	if q.Mode == continuation.Instruct {
		text = slices.Concat(q.Keep, q.Require)
	}
	if rec.continues() {
		messages = messages[:len(messages)-1]
		text = slices.Concat([]byte(rec.view.Begun), text)
	}
	message := slices.Concat([]byte(`{"role":"assistant","content":`), wire.AppendString(nil, text))
	way := rec.way()
	if q.Mode != continuation.Instruct && way == ContinuePrefix {
		message = append(message, `,"prefix":true`...)
	}
	messages = append(messages, append(message, '}'))
	if q.Mode == continuation.Instruct {
		messages = append(messages, slices.Concat([]byte(`{"role":"user","content":`), wire.AppendString(nil, []byte(q.Instruction)), []byte("}")))
	}
	list, err := wire.Marshal(messages)
	if err != nil {
		return nil, nil, err
	}
	body = without(wire.SetMember(body, "messages", list), []string{"continue_final_message", "add_generation_prompt"})
	if q.Mode != continuation.Instruct && way == ContinueFields {
		body = wire.SetMember(body, "continue_final_message", []byte("true"))
		body = wire.SetMember(body, "add_generation_prompt", []byte("false"))
	}
	return body, text, nil
}

// innerAnswer is what a request of the gateway's own got.
type innerAnswer struct {
	text   []byte
	finish string
	tokens int
}

// innerHeaders are the fields of a client's request that one in its place must not
// have: they speak of its body, or of its answer.
var innerHeaders = []string{
	"Content-Length", "Content-Encoding", "Content-Md5", "Digest", "Content-Digest", "Accept-Encoding", "Expect", "Trailer", "Te",
	"Transfer-Encoding", "Idempotency-Key", "X-Unfray-Recover", "If-None-Match", "If-Modified-Since", "Range", "If-Range",
}

// askError is the error of a request of the gateway's own. Its text is for receipts: as
// clients would be told.
type askError struct {
	text string
	err  error
}

func (e *askError) Error() string { return e.text }
func (e *askError) Unwrap() error { return e.err }

func (a *asker) inner(ctx context.Context, body []byte) (*innerAnswer, *exchange, error) {
	got, x, err := a.w.g.inner(ctx, a.w.x, a.w.q, body)
	if err != nil {
		a.w.x.note(slog.String("not_asked", err.Error()))
		err = &askError{publicError(err, a.w.x.promptParam).message, err}
	}
	return got, x, err
}

// inner sends a request with another body in place of a client's and returns the
// first choice of its answer.
func (g *Gateway) inner(ctx context.Context, x *exchange, q *request, body []byte) (*innerAnswer, *exchange, error) {
	if int64(len(body)) > g.cfg.MaxBodyBytes {
		return nil, nil, &http.MaxBytesError{Limit: g.cfg.MaxBodyBytes}
	}
	r := x.r.Clone(ctx)
	r.Body, r.ContentLength, r.Trailer, r.TransferEncoding = http.NoBody, int64(len(body)), nil, nil
	for _, name := range innerHeaders {
		r.Header.Del(name)
	}
	w := &memoryWriter{header: http.Header{}, most: recoverBytes}
	own := &exchange{w: w, r: r, ctx: ctx, key: x.key, promptParam: x.promptParam, inner: true, uncoded: true}
	in := &request{body: body, read: q.read}
	in.read(in)
	if err := g.serve(own, in); err != nil {
		return nil, nil, err
	}
	if own.status != http.StatusOK {
		return nil, nil, unusable(fmt.Sprintf("the model's server answered with status %d", own.status))
	}
	a, err := wire.ParseAnswer(w.body)
	if err != nil {
		return nil, nil, unusable("the model's server answered by something that is no answer")
	}
	if a.Error || len(a.Choices) == 0 || len(a.Choices[0].Calls) > 0 {
		return nil, nil, unusable("the model's server answered by something that is no text")
	}
	c := a.Choices[0]
	out := &innerAnswer{text: textOf(c), finish: c.FinishReason}
	if a.Usage != nil {
		out.tokens = a.Usage.CompletionTokens
	}
	return out, own, nil
}

func unusable(why string) error {
	return &apiError{status: http.StatusBadGateway, kind: "server_error", code: "upstream_failed", message: why}
}

// memoryWriter keeps an answer.
type memoryWriter struct {
	header http.Header
	body   []byte
	most   int
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (w *memoryWriter) Write(b []byte) (int, error) {
	if len(w.body)+len(b) > w.most {
		return 0, errors.New("gateway: the answer is too large")
	}
	w.body = append(w.body, b...)
	return len(b), nil
}
