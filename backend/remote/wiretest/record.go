package wiretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
)

// Recorder is an [http.RoundTripper] that keeps what passes. An exchange counts
// from when its request is sent; its answer is whatever was read of it.
type Recorder struct {
	Transport http.RoundTripper
	// Name, if not nil, names the exchanges from then on.
	Name func() string

	mu   sync.Mutex
	list []*Exchange
	err  error
	open int // answers that are still being read
}

// RoundTrip implements [http.RoundTripper].
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	q, err := newRequest(req, body)
	if err != nil {
		return nil, err
	}
	e := &Exchange{Request: q}
	r.mu.Lock()
	e.Name = fmt.Sprint(len(r.list))
	if r.Name != nil {
		e.Name = r.Name()
	}
	r.list = append(r.list, e)
	r.open++
	r.mu.Unlock()

	res, err := r.Transport.RoundTrip(req)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		// Nothing came: a replay waits until the client leaves.
		e.Response, e.Note = Response{}, closedByClient
		if req.Context().Err() == nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s %s: %w", q.Method, q.Path, err))
		}
		r.open--
		return nil, err
	}
	e.Response.Status, e.Response.Headers = res.StatusCode, keptHeaders(res.Header)
	res.Body = &recorded{ReadCloser: res.Body, done: func(data []byte, whole bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		var err error
		if e.Response.Body, err = newBody(res.Header.Get("Content-Type"), data); err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s %s: %w", q.Method, q.Path, err))
		}
		if !whole {
			e.Note = closedByClient
		}
		r.open--
	}}
	return res, nil
}

// recorded is the body of an answer.
type recorded struct {
	io.ReadCloser
	data  []byte
	whole bool
	done  func(data []byte, whole bool)
	once  sync.Once
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.data = append(r.data, p[:n]...)
	r.whole = r.whole || errors.Is(err, io.EOF)
	return n, err
}

func (r *recorded) Close() error {
	err := r.ReadCloser.Close()
	r.once.Do(func() { r.done(r.data, r.whole) })
	return err
}

// modelRoot is where vLLM says its model is: a path of the machine that recorded.
var modelRoot = regexp.MustCompile(`"root":"/[^"]*"`)

// Write writes the recording to a file. All bodies must have been closed.
func (r *Recorder) Write(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return fmt.Errorf("wiretest: %w", r.err)
	}
	if r.open != 0 {
		return fmt.Errorf("wiretest: %d answers have not been closed", r.open)
	}
	var b bytes.Buffer
	for _, e := range r.list {
		if len(e.Response.Body) == 0 {
			e.Response.Body = []byte("null")
		}
		line, err := marshal(e)
		if err != nil {
			return fmt.Errorf("wiretest: %w", err)
		}
		b.Write(append(modelRoot.ReplaceAll(line, []byte(`"root":"/models/smollm2"`)), '\n'))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
