package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"
)

// Upstream is a server that requests are passed on to.
type Upstream struct {
	// Transport sends requests, whose URLs have path and query only, to the
	// server. It must set their host, keep the map of a request's Trailer
	// (which is filled while the body is sent) and not compress by itself:
	// see [http.Transport.DisableCompression].
	Transport http.RoundTripper
	// Key takes the place of the client's credentials, as a bearer token.
	// "": the client's own are sent, unless Config.Keys says that they are
	// for the gateway.
	Key string
}

// maxInformational is how many 1xx answers may precede an answer.
const maxInformational = 32

// passage is a request on its way to an upstream, and its answer on the way
// back. Both arrive as they were sent: method, target, end-to-end fields with
// all their values, content, trailers, whether the length was announced.
//
// Fields that concern a connection are left out (RFC 9110, 7.6.1), the host is
// the upstream's, and nothing is added. net/http does not keep what has no
// meaning in HTTP: the case and order of field names, the reason phrase, the
// bounds of chunks, and that a POST without content did not say so. It also hides
// what the Connection of an answer names that closes its connection; those fields
// reach the client.
//
// [net/http/httputil.ReverseProxy] is not used since it loses repeated
// User-Agent fields, fields of a 304 and the length of an empty chunked body,
// adds a Date, and reads from slow clients without a limit.
type passage struct {
	g    *Gateway
	x    *exchange
	own  http.Header // what the gateway has set on the answer
	body *clientBody // nil if no more of the request is to be read

	mu            sync.Mutex // guards what is written before the answer
	answered      bool       // the transport is done but for bodies
	informational int
}

// proxy passes a request on to up and its answer back. If body is not nil it
// holds what was read of the request's; else that is passed on as it comes.
// Fields that were set on the answer before, other than X-Request-Id, are
// added to the upstream's. An answer that fails midway is cut off.
func (g *Gateway) proxy(x *exchange, up *Upstream, body []byte) error {
	if err := g.begin(); err != nil {
		return err
	}
	defer g.end()
	p := &passage{g: g, x: x}
	out, err := p.request(up, body)
	if err != nil {
		return err
	}
	p.own = maps.Clone(x.Header())
	clear(x.Header())
	defer p.stop()
	resp, err := up.Transport.RoundTrip(out)
	p.mu.Lock()
	p.answered = true
	p.mu.Unlock()
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode < 200 {
			err = fmt.Errorf("gateway: the upstream answered with status %d", resp.StatusCode)
		} else {
			err = p.deliver(resp)
		}
	}
	switch {
	case err == nil:
	case x.status == 0:
		maps.Copy(x.Header(), p.own)
		p.closeUnlessRead()
		err = p.explain(err)
	default:
		err = p.explain(err)
		if resp.ContentLength < 0 && !x.r.ProtoAtLeast(1, 1) {
			reset(x.w)
		}
	}
	return err
}

// request makes the request to send.
func (p *passage) request(up *Upstream, body []byte) (*http.Request, error) {
	r := p.x.r
	target, err := passTarget(r)
	if err != nil {
		return nil, err
	}
	ctx := httptrace.WithClientTrace(p.x.ctx, &httptrace.ClientTrace{Got1xxResponse: p.inform})
	out := (&http.Request{
		Method: r.Method, URL: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: p.requestHeader(up), Body: http.NoBody, ContentLength: r.ContentLength,
	}).WithContext(ctx)
	chunked := r.ContentLength < 0
	if chunked {
		// Else net/http leaves an empty body out.
		out.TransferEncoding = []string{"chunked"}
		out.Trailer = make(http.Header)
		for name, values := range r.Trailer {
			if mayTrail(name) {
				out.Trailer[name] = values
			}
		}
	}
	switch {
	case body != nil:
		if !chunked {
			out.ContentLength = int64(len(body))
		}
		if chunked || len(body) > 0 {
			out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			out.Body, _ = out.GetBody()
			out.Header.Del("Expect") // the client has sent it all
			// llama.cpp's server closes the connection after a stream without saying
			// so. A field without values is not sent: it tells net/http that the
			// request may go out once more where an idle connection turns out to be
			// closed before any of the answer has come.
			if _, given := out.Header["Idempotency-Key"]; !given {
				out.Header["Idempotency-Key"] = nil
			}
		}
	case r.ContentLength > p.g.cfg.MaxBodyBytes:
		return nil, &http.MaxBytesError{Limit: p.g.cfg.MaxBodyBytes}
	case r.ContentLength != 0:
		p.body = newClientBody(p, out.Trailer)
		out.Body = p.body
	}
	return out, nil
}

// requestHeader returns the fields to send.
func (p *passage) requestHeader(up *Upstream) http.Header {
	r := p.x.r
	h := maps.Clone(r.Header)
	trailers := hasToken(h["Te"], "trailers")
	removeHopByHop(h)
	if trailers {
		h["Te"] = []string{"trailers"}
	}
	if len(p.g.cfg.Keys) > 0 || up.Key != "" {
		for _, name := range credentialFields {
			delete(h, name)
		}
	}
	if up.Key != "" {
		h["Authorization"] = []string{"Bearer " + up.Key}
	}
	if p.x.uncoded {
		h["Accept-Encoding"] = []string{"identity"}
		delete(h, "X-Unfray-Recover") // it has been heeded
	}
	// net/http sends a User-Agent of its own if there is none, and the first of
	// several. It does not know the field in lower case.
	switch agents := h["User-Agent"]; {
	case len(agents) == 1 && agents[0] != "":
	case len(agents) > 0:
		h["user-agent"] = agents
		fallthrough
	default:
		h["User-Agent"] = nil
	}
	// Likewise it announces that there is no content for three methods only.
	explicit := len(h["Content-Length"]) > 0 && r.ContentLength == 0
	delete(h, "Content-Length")
	if explicit && !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method) {
		h["content-length"] = []string{"0"}
	}
	return h
}

// inform passes an informational answer on. The transport calls it.
func (p *passage) inform(status int, header textproto.MIMEHeader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.informational++
	switch {
	case p.informational > maxInformational:
		return fmt.Errorf("gateway: the upstream sent more than %d informational answers", maxInformational)
	case p.answered, status == http.StatusContinue, !p.x.r.ProtoAtLeast(1, 1):
		return nil // the client is told to continue when its body is read
	}
	h := p.x.Header()
	maps.Copy(h, http.Header(header))
	removeHopByHop(h)
	p.g.limitWrite(p.x)
	p.x.w.WriteHeader(status) // x.WriteHeader would begin the answer
	clear(h)
	return nil
}

// begin begins the answer.
func (p *passage) begin(resp *http.Response) {
	h := p.x.Header()
	maps.Copy(h, resp.Header)
	removeHopByHop(h)
	for name, values := range p.own {
		if name != "X-Request-Id" {
			h[name] = append(slices.Clip(h[name]), values...)
		}
	}
	// What is there, if without values, is not added by net/http.
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := h[name]; !ok {
			h[name] = nil
		}
	}
	if resp.StatusCode == http.StatusNotModified {
		// net/http removes fields that describe the content that a 200 would
		// have. It does not know them in lower case.
		for _, name := range []string{"Content-Type", "Content-Length"} {
			if values := h[name]; values != nil {
				h[strings.ToLower(name)] = values
				delete(h, name)
			}
		}
	}
	if resp.ContentLength < 0 && len(resp.Trailer) > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), ", ")}
	}
	p.closeUnlessRead()
	p.g.limitWrite(p.x)
	p.x.WriteHeader(resp.StatusCode)
}

// closeUnlessRead ends the client's connection with the answer if more of the
// request may come: it must not be taken for another request. net/http would
// also read on before it answers, and so take away what is for the upstream.
func (p *passage) closeUnlessRead() {
	if p.body != nil && !p.body.ended.Load() {
		p.x.Header().Set("Connection", "close")
	}
}

var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// deliver passes an answer on. Each piece goes out as it comes.
func (p *passage) deliver(resp *http.Response) error {
	buf := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buf)
	// Where a length was announced, the answer begins with its first piece:
	// until then a failure can be told.
	begun := resp.ContentLength <= 0 || resp.Body == http.NoBody
	if begun {
		p.begin(resp)
	}
	if resp.ContentLength < 0 {
		if err := p.g.flush(p.x); err != nil {
			return err
		}
	}
	for {
		n, err := resp.Body.Read(buf[:])
		broken := err != nil && err != io.EOF
		if broken && !begun {
			return err
		}
		if !begun {
			p.begin(resp)
			begun = true
		}
		if n > 0 {
			p.g.limitWrite(p.x)
			if _, err := p.x.Write(buf[:n]); err != nil {
				return clientGone(err)
			}
		}
		if err == io.EOF {
			break
		}
		if err := p.g.flush(p.x); err != nil {
			return err
		}
		if broken {
			return err
		}
	}
	if len(resp.Trailer) > 0 && resp.ContentLength < 0 {
		h := p.x.Header()
		clear(h) // those announced would be sent again as trailers
		for name, values := range resp.Trailer {
			if mayTrail(name) {
				h[http.TrailerPrefix+name] = values
			}
		}
	}
	p.g.limitWrite(p.x)
	return nil
}

// stop ends the use of the client's body.
func (p *passage) stop() {
	if p.body != nil {
		p.body.stop()
	}
}

// explain tells whose failure err is.
func (p *passage) explain(err error) error {
	if p.body != nil {
		if failure := p.body.failure.Load(); failure != nil {
			return clientBodyError(*failure)
		}
	}
	if ctx := p.x.ctx; ctx.Err() != nil {
		// Whatever the transport makes of it, it is not the upstream's failure.
		return fmt.Errorf("%w (%v)", context.Cause(ctx), err)
	}
	if errors.As(err, new(*apiError)) {
		return err // the client's
	}
	api := &apiError{
		status: http.StatusBadGateway, kind: "server_error", code: "upstream_failed", cause: err,
		message: "the server behind this gateway failed to answer; retry, or see the gateway's log under this answer's X-Request-Id",
	}
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		api.status, api.code = http.StatusGatewayTimeout, "upstream_timeout"
		api.message = "the server behind this gateway did not answer in time; retry later, or see the gateway's log under this answer's X-Request-Id"
	}
	return api
}

// reset cuts a connection so that its end cannot be taken for an answer's.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		tcp.SetLinger(0)
	}
	conn.SetDeadline(time.Now())
	conn.Close()
}
