package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
)

// BenchmarkRoundTrip compares the pool with a plain transport, against a
// server in the same process: whole requests, read to the end.
func BenchmarkRoundTrip(b *testing.B) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"choices":[{"text":"hello"}]}`)
	}))
	defer ts.Close()
	body := `{"model":"m","prompt":"` + strings.Repeat("a", 2000) + `"}`
	cfg := quiet(parse(b, ts.URL))
	plain := newTransport(cfg.withDefaults())
	defer plain.CloseIdleConnections()
	pair := quiet(parse(b, ts.URL), parse(b, ts.URL+"/b"))
	one, two := open(b, cfg), open(b, pair)
	key := []byte(strings.Repeat("prompt ", 600)) // 4 KiB
	for _, bb := range []struct {
		name, host string
		rt         http.RoundTripper
		key        []byte
	}{
		{"Transport", ts.URL, plain, nil}, {"Pool1", "", one, nil}, {"Pool2", "", two, nil}, {"Pool2Key", "", two, key},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := b.Context()
				if bb.key != nil {
					ctx = WithKey(ctx, bb.key)
				}
				req := post(b, ctx, bb.host+"/v1/completions", body)
				resp, err := bb.rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

// canned answers at once, with the calls that a transport makes.
type canned struct{}

func (canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GetConn("")
		trace.GotConn(httptrace.GotConnInfo{})
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// BenchmarkOverhead is what the pool adds to a request, without a network.
func BenchmarkOverhead(b *testing.B) {
	key := []byte(strings.Repeat("prompt ", 600)) // 4 KiB
	p := open(b, quiet(manyURLs(2)...))
	p.transport.RegisterProtocol("http", canned{})
	req := post(b, WithKey(b.Context(), key), "http://a/v1/completions", "{}")
	for _, bb := range []struct {
		name string
		rt   http.RoundTripper
	}{{"Nothing", p.transport}, {"Pool", p}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := bb.rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

// BenchmarkAcquire is the choice of an endpoint alone.
func BenchmarkAcquire(b *testing.B) {
	for _, bb := range []struct {
		name      string
		endpoints int
		key       int // bytes
	}{{"2", 2, 0}, {"100", 100, 0}, {"2Key4KiB", 2, 4 << 10}, {"2Key256KiB", 2, 256 << 10}} {
		b.Run(bb.name, func(b *testing.B) {
			p := open(b, quiet(manyURLs(bb.endpoints)...))
			key := make([]byte, bb.key)
			var room [64]uint64
			b.SetBytes(int64(bb.key))
			for b.Loop() {
				e, err := p.acquire(p.affinity.prefixes(room[:0], key), nil, reachAny)
				if err != nil {
					b.Fatal(err)
				}
				p.release(e)
			}
		})
	}
}

// BenchmarkStreamRead is what a read of a response's body costs over the
// transport's own.
func BenchmarkStreamRead(b *testing.B) {
	p := open(b, quiet(manyURLs(1)...))
	t := &try{pool: p, e: p.endpoints[0], caller: b.Context(), cancel: func(error) {}}
	t.watch.firstByte, t.watch.idle, t.watch.phase = p.cfg.FirstByteTimeout, p.cfg.IdleTimeout, PhaseBody
	d := &download{t: t, src: endless{}}
	buf := make([]byte, 200)
	for b.Loop() {
		d.Read(buf)
	}
	t.watch.end()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }
