package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// handler answers a request or says what is wrong. An error after the first
// byte of an answer has no place in it; see [Gateway.stream].
type handler func(x *exchange) error

// route is what can be done at a path.
type route struct {
	get, post   handler
	promptParam string // what errors about the prompt name
	own         bool   // no upstream has anything to say here
	name        string // in metrics
}

// table lists the paths. A trailing slash takes everything below it.
func (g *Gateway) table() map[string]route {
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	return map[string]route{
		completionsPath:      {post: g.completions, promptParam: "prompt"},
		chatPath:             {post: g.chatCompletions, promptParam: "messages"},
		"/completion":        {post: g.native, promptParam: "prompt"},
		"/completions":       {post: g.native, promptParam: "prompt"},
		"/infill":            {post: g.infill, promptParam: "input_prefix"},
		"/tokenize":          {post: g.tokenize, promptParam: "content"},
		"/detokenize":        {post: g.detokenize, promptParam: "tokens"},
		"/unfray/v1/repair":  {post: g.repair(places), promptParam: "text", own: true},
		"/unfray/v1/recover": {post: g.recoverText(places), promptParam: "text", own: true},
		"/v1/models":         {get: g.listModels},
		modelsPath:           {get: g.getModel},
		"/healthz":           {get: g.healthz, own: true},
		"/readyz":            {get: g.readyz, own: true},
		"/metrics":           {get: g.serveMetrics, own: true},
	}
}

func (g *Gateway) find(path string) (route, bool) {
	r, ok := g.routes[path]
	// Names of models may hold slashes, so the rest is one name.
	if strings.HasPrefix(path, modelsPath) && path != modelsPath {
		path, ok = modelsPath, true
		r = g.routes[path]
	} else if strings.HasSuffix(path, "/") {
		ok = false
	}
	if !ok {
		return route{name: "other"}, false
	}
	r.name = path
	return r, true
}

// Paths of OpenAI's API.
const (
	completionsPath = "/v1/completions"
	chatPath        = "/v1/chat/completions"
	modelsPath      = "/v1/models/"
)

func (r route) methods() string {
	var m []string
	if r.get != nil {
		m = append(m, http.MethodGet, http.MethodHead)
	}
	if r.post != nil {
		m = append(m, http.MethodPost)
	}
	return strings.Join(append(m, http.MethodOptions), ", ")
}

// exchange is one request and its answer. It is the [http.ResponseWriter] of
// the answer and remembers whether that has begun.
type exchange struct {
	w   http.ResponseWriter
	r   *http.Request
	ctx context.Context // the request's, ending at the time limit too
	key *Key            // nil: nobody asked for one

	promptParam string // what errors about the prompt name
	status      int    // 0 until the answer has begun
	log         []slog.Attr

	uncoded bool // the answer must come without a content coding
	inner   bool // it is one of the gateway's own, to go on with another
	healed  bool // the prompt was healed, or needed no healing

	watched *job        // one that is passed on and has a prediction; else nil
	chat    *passedChat // one that is passed on and being tokenized; else nil
	heard   *heard      // of the answer, where it is looked at; else nil
}

// Header implements [http.ResponseWriter].
func (x *exchange) Header() http.Header { return x.w.Header() }

// WriteHeader implements [http.ResponseWriter].
func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.w.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	if x.heard != nil {
		x.heard.write(b)
	}
	return x.w.Write(b)
}

// Unwrap serves [http.ResponseController].
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

func (x *exchange) note(attrs ...slog.Attr) { x.log = append(x.log, attrs...) }

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := &exchange{w: w, r: r, ctx: r.Context()}
	id := rand.Text()
	w.Header().Set("X-Request-Id", id)
	if g.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		x.ctx, cancel = context.WithTimeoutCause(x.ctx, g.cfg.Timeout, errTimeout)
		defer cancel()
	}
	if r.ContentLength != 0 {
		// For whoever reads the body, if only to throw it away.
		http.NewResponseController(w).SetReadDeadline(start.Add(g.cfg.ReadTimeout))
	}
	if r.ContentLength < 0 {
		// net/http hides whether a Content-Length was there beside the chunks. If
		// so the connection must not be used again: RFC 9112, 6.1.
		w.Header().Set("Connection", "close")
	}
	rt, known := g.find(r.URL.Path)
	x.promptParam = rt.promptParam
	g.metrics.inFlight.Inc()
	defer func() {
		g.metrics.inFlight.Dec()
		g.metrics.observe(rt.name, x.status, time.Since(start))
	}()
	err := g.dispatch(x, rt, known)

	level := slog.LevelInfo
	if err != nil {
		api := publicError(g.cause(x, err), x.promptParam)
		broken := x.status != 0 // the status line said 200 already
		if !broken {
			g.limitWrite(x)
			writeError(x, api)
		}
		x.status = api.status
		x.note(slog.String("error", api.Error()))
		if api.status >= 500 {
			level = slog.LevelError
		}
		if broken && !errors.As(err, new(*reportedError)) {
			defer panic(http.ErrAbortHandler) // net/http's way to cut a connection
		}
	}
	x.note(slog.Int("status", x.status), slog.Duration("duration", time.Since(start)))
	g.cfg.Log.LogAttrs(context.WithoutCancel(x.ctx), level, "request",
		append([]slog.Attr{slog.String("id", id), slog.String("method", r.Method), slog.String("path", r.URL.Path)}, x.log...)...)
}

// cause prefers the reason for which a request was ended to the bare
// cancellation that the layers below have seen.
func (g *Gateway) cause(x *exchange, err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if cause := context.Cause(x.ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// dispatch runs the handler. A panic in it is an error, not the end.
func (g *Gateway) dispatch(x *exchange, rt route, known bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			err = fmt.Errorf("gateway: panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := g.authorize(x); err != nil {
		return err
	}
	if !known && g.cfg.Default != nil {
		return g.passOn(x)
	}
	if !known {
		return &apiError{
			status: http.StatusNotFound, kind: kindInvalid, code: "unknown_url",
			message: fmt.Sprintf("unknown path: %s %s", x.r.Method, x.r.URL.Path),
		}
	}
	var h handler
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		h = rt.get
	case http.MethodPost:
		h = rt.post
	case http.MethodOptions:
		if g.cfg.Default != nil && !rt.own {
			return g.passOn(x) // browsers ask what the server allows
		}
		x.Header().Set("Allow", rt.methods())
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	if h == nil && g.cfg.Default != nil && !rt.own {
		return g.passOn(x)
	}
	if h == nil {
		return &apiError{
			status: http.StatusMethodNotAllowed, kind: kindInvalid, code: "method_not_allowed", allow: rt.methods(),
			message: fmt.Sprintf("%s is not possible at %s: use %s", x.r.Method, x.r.URL.Path, rt.methods()),
		}
	}
	if err = h(x); errors.Is(err, errCompressed) && !rt.own {
		return g.serveUnread(x, &request{err: err})
	}
	return err
}

// errCompressed is returned before any of the body is read.
var errCompressed = &apiError{
	status: http.StatusUnsupportedMediaType, kind: kindInvalid,
	message: "compressed request bodies are not read: send it without Content-Encoding",
}

// readBody reads a request body within the limits.
func (g *Gateway) readBody(x *exchange) ([]byte, error) {
	if enc := x.r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, errCompressed
	}
	// The server's own limit ends with the request's header where it can.
	http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(g.cfg.ReadTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, g.cfg.MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		return nil, &apiError{
			status: http.StatusBadRequest, kind: kindInvalid, cause: err,
			message: "the request body could not be read to its end",
		}
	}
	if err != nil {
		return nil, err
	}
	http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	if g.cfg.LogPrompts {
		x.note(slog.String("body", string(body)))
	}
	return body, nil
}

// showIgnored names the fields of the request that have no effect here.
func showIgnored(x *exchange, paths []string) {
	const most = 32
	var names []string
	for _, p := range paths {
		switch {
		case len(names) == most:
			names = append(names, "...")
		case len(names) > most:
		case isPlainPath(p):
			names = append(names, p)
		case !slices.Contains(names, "?"): // would not survive in a header
			names = append(names, "?")
		}
	}
	if len(names) > 0 {
		x.Header().Set("X-Unfray-Ignored", strings.Join(names, ","))
	}
}

func isPlainPath(p string) bool {
	for _, c := range []byte(p) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-.[]", c) >= 0
		if !ok {
			return false
		}
	}
	return len(p) > 0 && len(p) <= 128
}

// limitWrite gives the client WriteTimeout to take what is written next.
func (g *Gateway) limitWrite(x *exchange) { g.limitWriteTo(x.w) }

func (g *Gateway) limitWriteTo(w http.ResponseWriter) {
	// Not every ResponseWriter has deadlines; those without have no client
	// that could be slow.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.cfg.WriteTimeout))
}

// answer writes a whole answer.
func (g *Gateway) answer(x *exchange, v any) error {
	g.limitWrite(x)
	return writeJSON(x, http.StatusOK, v)
}
