package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/unfray/unfray/internal/wire"
)

// Codes of X-Unfray-Note, for answers that are not recovered although the request
// is for it.
const (
	noteEncoded  = "answer_encoded"   // in a content coding that is not read here
	noteTooLarge = "answer_too_large" // than the operator lets be looked at
)

// errLoop ends a request to a server whose answer repeats itself.
var errLoop = errors.New("gateway: the answer repeats itself")

// errDone ends a request to a server that does not end an answer which is whole.
var errDone = errors.New("gateway: the answer is whole")

// recovered answers a request by do and recovers what do writes.
func (g *Gateway) recovered(x *exchange, q *request, rec *recovering, do func(q *request) error) error {
	if err := g.begin(); err != nil {
		return err
	}
	defer g.end()
	ctx, cancel := context.WithCancelCause(x.ctx)
	defer cancel(nil)
	outer := *x
	w := &recoverWriter{g: g, x: x, q: q, rec: rec, outer: outer.w, ctx: outer.ctx, cancel: cancel, header: outer.w.Header().Clone()}
	x.w, x.ctx, x.uncoded = w, ctx, true
	err := do(rec.request(q))
	x.w, x.ctx, x.uncoded = outer.w, outer.ctx, false
	return w.finish(err)
}

// request returns what is to be answered in place of q: without the gateway's own
// field, which servers may refuse, and with what is left of its tokens.
func (r *recovering) request(q *request) *request {
	pass := wire.RemoveMember(q.body, "unfray")
	if !r.reserves() {
		out := *q
		out.pass = pass
		return &out
	}
	out := &request{body: r.lower(q.body), read: q.read}
	out.pass = r.lower(pass)
	q.read(out)
	return out
}

// lower puts the tokens of the first answer into a body.
func (r *recovering) lower(body []byte) []byte {
	members, err := wire.Members(body)
	if err != nil {
		return body
	}
	for _, name := range limitFields {
		if n, err := strconv.ParseFloat(string(members[name]), 64); err == nil && n > float64(r.first) {
			body = wire.SetMember(body, name, []byte(itoa(r.first)))
		}
	}
	return body
}

// recoverWriter is the [http.ResponseWriter] of an answer that is recovered: one
// that is whole is kept until its end, a stream is rewritten on the way. All others
// pass.
type recoverWriter struct {
	g      *Gateway
	x      *exchange
	q      *request
	rec    *recovering
	outer  http.ResponseWriter
	ctx    context.Context // of the exchange, without the part that cancel ends
	cancel context.CancelCauseFunc

	header http.Header // as the handler sets it
	status int         // 0 until the answer has begun
	begun  http.Header // what header was then
	sent   bool        // begun has gone out

	whole  []byte // an answer that is kept
	keeps  bool
	stream *recoverStream // nil: it is no stream
	report answerReport
}

// Header implements [http.ResponseWriter].
func (w *recoverWriter) Header() http.Header { return w.header }

// Unwrap serves [http.ResponseController].
func (w *recoverWriter) Unwrap() http.ResponseWriter { return w.outer }

// WriteHeader implements [http.ResponseWriter].
func (w *recoverWriter) WriteHeader(status int) {
	if status < 200 {
		client := w.outer.Header()
		before := maps.Clone(client)
		maps.Copy(client, w.header)
		w.outer.WriteHeader(status)
		clear(client)
		maps.Copy(client, before)
		return
	}
	if w.status != 0 {
		return
	}
	w.status, w.begun = status, w.header.Clone()
	kind, _, _ := mime.ParseMediaType(w.header.Get("Content-Type"))
	coding := w.header.Get("Content-Encoding")
	switch {
	case status != http.StatusOK || kind != "application/json" && kind != "text/event-stream":
	case coding != "" && !strings.EqualFold(coding, "identity"):
		w.begun.Add("X-Unfray-Note", noteEncoded)
	case kind == "application/json":
		w.keeps = true
		return
	default:
		w.stream = newRecoverStream(w)
		w.forget()
	}
	w.send()
}

// forget removes fields that describe bytes which are changed.
func (w *recoverWriter) forget() {
	for _, name := range []string{"Content-Length", "Etag", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Accept-Ranges"} {
		delete(w.begun, name)
	}
}

// send begins the answer.
func (w *recoverWriter) send() {
	if w.sent {
		return
	}
	w.sent = true
	client := w.outer.Header()
	clear(client)
	maps.Copy(client, w.begun)
	w.outer.WriteHeader(w.status)
}

// Write implements [http.ResponseWriter].
func (w *recoverWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.stream != nil:
		if err := w.stream.write(b); err != nil {
			return 0, err
		}
	case !w.keeps:
		return w.outer.Write(b)
	case len(w.whole)+len(b) > w.most():
		return len(b), w.letPass(b)
	default:
		w.whole = append(w.whole, b...)
	}
	return len(b), nil
}

// most is how many bytes an answer may have that is kept: its text with all that
// is around it.
func (w *recoverWriter) most() int { return 4*w.rec.MaxBytes + 1<<20 }

// letPass gives up on an answer that is too large.
func (w *recoverWriter) letPass(b []byte) error {
	w.begun.Add("X-Unfray-Note", noteTooLarge)
	w.keeps = false
	w.send()
	kept := w.whole
	w.whole = nil
	for _, part := range [][]byte{kept, b} {
		if _, err := w.outer.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// FlushError serves [http.ResponseController]. What is kept stays.
func (w *recoverWriter) FlushError() error {
	if w.keeps || w.status == 0 {
		return nil
	}
	return http.NewResponseController(w.outer).Flush()
}

// finish ends the answer that a handler has written, or has failed to write.
func (w *recoverWriter) finish(err error) error {
	switch {
	case w.status == 0 || w.keeps && err != nil:
		// Nothing has gone out: it is an error as any other.
		w.x.status = 0
		w.copyOwn()
		return err
	case w.stream != nil:
		err = w.stream.end(err)
	case w.keeps:
		err = w.finishWhole()
	}
	if err == nil {
		w.trailers()
	}
	return err
}

// copyOwn gives on what the handler has set before an error, but for fields of an
// answer that had begun.
func (w *recoverWriter) copyOwn() {
	client := w.outer.Header()
	for name, values := range w.header {
		if w.status == 0 || strings.HasPrefix(name, "X-Unfray-") || name == "Connection" {
			client[name] = values
		}
	}
}

// trailers gives on those that were set after the answer.
func (w *recoverWriter) trailers() {
	client := w.outer.Header()
	for name, values := range w.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			client[name] = values
		}
	}
}

// put writes to the client.
func (w *recoverWriter) put(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	w.g.limitWriteTo(w.outer)
	if _, err := w.outer.Write(b); err != nil {
		return clientGone(err)
	}
	return nil
}

// note logs what was done and counts it. It has no text.
func (w *recoverWriter) note(r *choiceReport) {
	w.g.metrics.recovered(w.rec.name(), w.rec, r)
	w.report.outcomes = append(w.report.outcomes, r.result.Outcome.String())
	w.report.edits += len(r.result.Edits)
	if c := r.result.Continuation; c != nil {
		w.report.attempts += len(c.Attempts)
	}
}

// logAll adds the numbers of all choices to the request's record.
func (w *recoverWriter) logAll() {
	r := &w.report
	if len(r.outcomes) == 0 {
		return
	}
	const most = 16
	if len(r.outcomes) > most {
		r.outcomes = append(slices.Clip(r.outcomes[:most]), "...")
	}
	w.x.note(slog.String("recover", string(w.rec.Mode)), slog.String("outcome", strings.Join(r.outcomes, ",")), slog.Int("edits", r.edits))
	if r.attempts > 0 {
		w.x.note(slog.Int("continuations", r.attempts))
	}
	if r.stopped {
		w.x.note(slog.Bool("loop_stopped", true))
	}
}

// answerReport adds up what was done to the choices of an answer.
type answerReport struct {
	outcomes        []string
	edits, attempts int
	stopped         bool
}
