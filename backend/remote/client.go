package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/internal/wire"
)

// Bounds of what is read, in bytes.
const (
	// maxAnswer bounds a whole answer. A row of a vocabulary of 256 Ki tokens has
	// 25 MB.
	maxAnswer = 64 << 20
	// maxError bounds what is kept of a refusal.
	maxError = 64 << 10
	// maxEvent bounds one event of a stream, with the comments before it.
	maxEvent = 8 << 20
)

// client speaks JSON to one server. It sends every request once: trying again is
// the transport's business, which knows what was sent.
type client struct {
	transport http.RoundTripper
	base      *url.URL // nil: requests have a path only
	key       string
	timeout   time.Duration // of do
	// closing says that the server closes a connection after a stream, without
	// saying so: what was sent on it next would be lost.
	closing bool
}

func newClient(o *Options) *client {
	return &client{transport: o.Transport, base: o.Base, key: o.Key, timeout: o.Timeout}
}

// do sends in as JSON, nothing if it is nil, and reads a JSON answer into out,
// which is not looked at if it is nil. path may hold a query. It ends after the
// client's timeout.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("remote: %s %s: %w", method, path, err)
		}
	}
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err := c.exchange(within, method, path, body, out)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("remote: %s %s: no whole answer within %s: %w", method, path, c.timeout, within.Err())
	}
	return err
}

func (c *client) exchange(ctx context.Context, method, path string, body []byte, out any) error {
	res, err := c.send(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := checkType(res, "application/json"); err != nil {
		return err
	}
	answer, err := readAtMost(res.Body, res.ContentLength, maxAnswer)
	if err != nil {
		return c.broken(ctx, method, path, err)
	}
	if err := errorFrame(answer); err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &backend.ProtocolError{Text: method + " " + path + " gave no such JSON as it should", Err: err}
	}
	return nil
}

// send makes one exchange up to the headers of the answer. Refusals are
// [*backend.UpstreamError].
func (c *client) send(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	req.Header.Set("Accept", accept)
	req.Close = c.closing && accept == eventStream
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, c.broken(ctx, method, path, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	// What of the body cannot be read is left out: the status says enough.
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxError))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, &backend.UpstreamError{Status: res.StatusCode, Header: res.Header, Body: text}
}

func (c *client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	target, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	if b := c.base; b != nil {
		target.Scheme, target.Host = b.Scheme, b.Host
		target.Path = strings.TrimSuffix(b.Path, "/") + target.Path
	}
	var reader io.Reader // of a type by which the request can be sent again
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	// Asked for in so many words, or the transport would ask for compression.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "unfray")
	// Not sent: it tells net/http that the request may go out once more where an
	// idle connection turns out to be closed before any of the answer has come.
	req.Header["Idempotency-Key"] = []string{}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// broken is the error of an exchange that did not come to its end.
func (c *client) broken(ctx context.Context, method, path string, err error) error {
	var protocol *backend.ProtocolError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &protocol):
		return err
	}
	return fmt.Errorf("remote: %s %s: %w", method, path, err)
}

// checkType refuses an answer of another media type than want, and one that is
// compressed although nothing of the kind was asked for.
func checkType(res *http.Response, want string) error {
	if e := res.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return &backend.ProtocolError{Text: fmt.Sprintf("it is compressed (%.40q)", e)}
	}
	header := res.Header.Get("Content-Type")
	if got, _, _ := mime.ParseMediaType(header); got != want {
		return &backend.ProtocolError{Text: fmt.Sprintf("its content type is %.80q, not %s", header, want)}
	}
	return nil
}

// readAtMost reads a body of at most limit bytes. length is what its header says,
// negative if that is nothing.
func readAtMost(r io.Reader, length, limit int64) ([]byte, error) {
	tooLong := &backend.ProtocolError{Text: fmt.Sprintf("it has more than %d bytes", limit)}
	if length > limit {
		return nil, tooLong
	}
	var b bytes.Buffer
	if length > 0 {
		b.Grow(int(length) + bytes.MinRead) // read without growing once more
	}
	n, err := b.ReadFrom(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case n > limit:
		return nil, tooLong
	}
	return b.Bytes(), nil
}

// errorFrame returns the error that a message with status 200 stands for, nil if
// it is none: {"error": …}, and nothing of a generation beside it.
func errorFrame(data []byte) error {
	if len(data) > maxError || !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	var frame struct {
		Error   json.RawMessage `json:"error"`
		Choices json.RawMessage `json:"choices"`
		Content json.RawMessage `json:"content"`
	}
	// Of an array json reports an error and leaves frame as it is.
	if json.Unmarshal(data, &frame) != nil || frame.Choices != nil || frame.Content != nil {
		return nil
	}
	if e := frame.Error; len(e) == 0 || string(e) == "null" {
		return nil
	}
	var detail struct {
		Code json.RawMessage `json:"code"`
	}
	status := http.StatusBadGateway
	var code int
	if json.Unmarshal(frame.Error, &detail) == nil && json.Unmarshal(detail.Code, &code) == nil && code >= 400 && code < 600 {
		status = code
	}
	return &backend.UpstreamError{Status: status, Body: bytes.Clone(data)}
}

// events are the events of one answer. They are for one goroutine.
type events struct {
	ctx    context.Context
	cancel context.CancelFunc
	body   io.ReadCloser
	bound  *eventBound
	reader *wire.EventReader

	done bool // [DONE] has come, or the reader has seen what stands for it
	err  error
}

// stream sends a body of JSON and returns the events of the answer, which the
// caller closes. Canceling ctx closes the connection.
func (c *client) stream(ctx context.Context, path string, body []byte) (*events, error) {
	ctx, cancel := context.WithCancel(ctx)
	res, err := c.send(ctx, http.MethodPost, path, eventStream, body)
	if err != nil {
		cancel()
		return nil, err
	}
	if err := c.checkStream(ctx, path, res); err != nil {
		res.Body.Close()
		cancel()
		return nil, err
	}
	bound := &eventBound{r: res.Body}
	return &events{ctx: ctx, cancel: cancel, body: res.Body, bound: bound, reader: wire.NewEventReader(bound)}, nil
}

const eventStream = "text/event-stream"

// checkStream refuses an answer that is no stream of events. Some servers send
// an error as plain JSON all the same.
func (c *client) checkStream(ctx context.Context, path string, res *http.Response) error {
	err := checkType(res, eventStream)
	if err == nil || checkType(res, "application/json") != nil {
		return err
	}
	text, readErr := readAtMost(res.Body, res.ContentLength, maxError)
	if readErr != nil {
		return c.broken(ctx, http.MethodPost, path, readErr)
	}
	if frame := errorFrame(text); frame != nil {
		return frame
	}
	return err
}

// next returns the data of the next event, valid until the next call. It returns
// io.EOF where the server ended the stream, whether or not that was to be
// expected: see done.
func (e *events) next() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.bound.left = maxEvent
	event, err := e.reader.Next()
	switch {
	case e.ctx.Err() != nil:
		e.err = e.ctx.Err()
	case errors.Is(err, io.EOF):
		e.err = io.EOF
	case errors.Is(err, errEventTooLong), errors.Is(err, wire.ErrEventTooLong):
		e.err = &backend.ProtocolError{Text: fmt.Sprintf("an event of its stream has more than %d bytes", maxEvent)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.err = &backend.ProtocolError{Text: "its stream breaks off", Err: err}
	case err != nil:
		e.err = fmt.Errorf("remote: the stream broke off: %w", err)
	case string(bytes.TrimSpace(event.Data)) == wire.Done:
		e.done, e.err = true, io.EOF
	default:
		e.err = errorFrame(event.Data)
	}
	if e.err != nil {
		return nil, e.err
	}
	return event.Data, nil
}

// decode reads the next event into out.
func (e *events) decode(out any) error {
	data, err := e.next()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		e.err = &backend.ProtocolError{Text: "an event of its stream is no such JSON as it should be", Err: err}
		return e.err
	}
	return nil
}

// close gives the answer up: the server sees its connection closed, unless the
// answer was at its end. It may be called more than once.
func (e *events) close() {
	if e.done {
		e.drain()
	}
	e.cancel()
	e.body.Close()
	if e.err == nil {
		e.err = errStreamClosed
	}
}

// drain reads what is left after the last event, so that the connection can
// serve the next request. A server that does not end the answer is not waited
// for.
func (e *events) drain() {
	e.done = false
	timer := time.AfterFunc(drainTime, e.cancel)
	defer timer.Stop()
	e.bound.left = maxDrain
	io.Copy(io.Discard, e.bound)
}

const (
	drainTime = 20 * time.Millisecond
	maxDrain  = 4 << 10 // bytes
)

var (
	errEventTooLong = errors.New("remote: the event is too long")
	errStreamClosed = errors.New("remote: the stream was closed before its end")
)

// eventBound lets no more than left bytes pass.
type eventBound struct {
	r    io.Reader
	left int
}

func (b *eventBound) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errEventTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
