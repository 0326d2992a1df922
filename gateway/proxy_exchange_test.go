package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
)

var raceEnabled bool

// TestProxyExchanges sends odd and ordinary exchanges to a server directly and
// through the gateway. Both ends must see the same. Half of the time the gateway
// has read a request whole before it passes it on.
func TestProxyExchanges(t *testing.T) {
	total, workers := 5000, 4
	if testing.Short() || raceEnabled {
		total = 400
	}
	var identical atomic.Int64
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			p := newPair(t, worker%2 == 1)
			for i := range total / workers {
				seed := uint64(worker*1_000_000 + i)
				if diff := p.compare(t, newExchange(seed, p.server.addr)); diff != "" {
					t.Errorf("seed %d: %s", seed, diff)
					return
				}
				identical.Add(1)
			}
		})
	}
	running.Wait()
	t.Logf("%d of %d exchanges identical", identical.Load(), total)
}

// FuzzProxyExchanges is TestProxyExchanges for other seeds.
func FuzzProxyExchanges(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	pairs := []*pair{newPair(f, false), newPair(f, true)}
	f.Fuzz(func(t *testing.T, seed uint64) {
		for _, p := range pairs {
			p.mu.Lock()
			diff := p.compare(t, newExchange(seed, p.server.addr))
			p.conn = nil // it ends with this t
			p.mu.Unlock()
			if diff != "" {
				t.Errorf("read first: %v: %s", p.readFirst, diff)
			}
		}
	})
}

// pair is a server and a gateway before it.
type pair struct {
	mu        sync.Mutex
	server    *rawServer
	addr      string   // the gateway's
	readFirst bool     // it reads requests before it passes them on
	conn      *rawConn // to the gateway, nil: none is open
	now       atomic.Pointer[oddExchange]
}

func newPair(t testing.TB, readFirst bool) *pair {
	p := &pair{readFirst: readFirst}
	p.server = newRawServer(t, func(_ *message, c net.Conn) bool {
		x := p.now.Load()
		for _, piece := range x.reply {
			if _, err := c.Write(piece); err != nil {
				return false
			}
		}
		return !x.close
	})
	p.server.early = func(m *message, c net.Conn) {
		if m.fields["expect"] != nil {
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
	}
	if !readFirst {
		p.addr = newFront(t, p.server.addr, gateway.Config{}).addr
		return p
	}
	g, err := gateway.New(gateway.Config{Default: &gateway.Upstream{Transport: newPool(t, p.server.addr)}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g.ReadFirst())
	t.Cleanup(s.Close)
	p.addr = s.Listener.Addr().String()
	return p
}

// compare returns how the two ways differ, or "".
func (p *pair) compare(t testing.TB, x *oddExchange) string {
	p.now.Store(x)
	direct := &rawConn{}
	var sent, answers [2]*message
	for way := range sent {
		conn := direct
		if way == 1 {
			conn = p.conn
		}
		if conn == nil || conn.Conn == nil {
			addr := p.server.addr
			if way == 1 {
				addr = p.addr
			}
			conn = dial(t, addr)
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second)) // it may be an old one
		for _, piece := range x.request {
			if _, err := conn.Write(piece); err != nil {
				return fmt.Sprintf("way %d: %v for %q", way, err, x.request)
			}
		}
		answer, err := readAnswer(conn.r, x.method)
		got, wrong := p.server.take()
		if err != nil || len(got) != 1 || len(wrong) > 0 {
			return fmt.Sprintf("way %d: %v, %v, %v, answer %v for %q\nreply %q", way, got, wrong, err, answer, x.request, x.reply)
		}
		sent[way], answers[way] = got[0], answer
		if way == 1 && answer.framing != "close" && !slices.Contains(answer.fields["connection"], "close") {
			p.conn = conn
			continue
		}
		conn.Close()
		if way == 1 {
			p.conn = nil
		}
	}
	if p.readFirst {
		// The client is done, and its trailers are known before they are sent.
		for _, name := range []string{"expect", "trailer"} {
			delete(sent[0].fields, name)
			delete(sent[1].fields, name)
		}
	}
	if a, b := endToEnd(sent[0], x.method), endToEnd(sent[1], x.method); a != b {
		return fmt.Sprintf("sent\n%s\nthrough the gateway\n%s\nwritten as %.2000q", a, b, x.request)
	}
	if a, b := endToEnd(answers[0], x.method), endToEnd(answers[1], x.method); a != b {
		return fmt.Sprintf("answered\n%s\nthrough the gateway\n%s\nto %s\nwritten as %.2000q", a, b, x.method, x.reply)
	}
	return ""
}

// endToEnd shows what of a message is meant for its receiver.
func endToEnd(m *message, method string) string {
	c := *m
	answer := strings.HasPrefix(c.start, "HTTP/")
	c.fields = endToEndFields(m.fields)
	if slices.Contains(tokens(m.fields["te"]), "trailers") {
		c.fields["te"] = []string{"trailers"}
	}
	if announced := tokens(m.fields["trailer"]); m.framing == "chunked" {
		slices.Sort(announced)
		c.fields["trailer"] = slices.Compact(announced)
	}
	switch {
	case answer:
		c.start = fmt.Sprint(m.status()) // the rest has no meaning
		if c.framing == "close" {
			c.framing = "chunked"
		}
		if m.status() == 204 {
			delete(c.fields, "content-length")
		}
	case c.framing == "none" && slices.Contains([]string{"POST", "PUT", "PATCH"}, method):
		c.framing, c.fields["content-length"] = "length", []string{"0"}
	}
	c.informational = nil
	for _, info := range m.informational {
		if info.status() != 100 {
			c.informational = append(c.informational, &message{start: info.start, fields: endToEndFields(info.fields)})
		}
	}
	for name, values := range c.fields {
		if len(values) == 0 {
			delete(c.fields, name)
		}
	}
	return c.String()
}

func endToEndFields(fields map[string][]string) map[string][]string {
	out := map[string][]string{}
	drop := append(tokens(fields["connection"]), "connection", "keep-alive", "proxy-connection", "proxy-authenticate",
		"proxy-authorization", "te", "transfer-encoding", "upgrade", "trailer")
	for name, values := range fields {
		if !slices.Contains(drop, name) {
			out[name] = values
		}
	}
	return out
}

func tokens(values []string) []string {
	var out []string
	for _, v := range values {
		for token := range strings.SplitSeq(v, ",") {
			token, _, _ = strings.Cut(token, ";")
			if token = strings.ToLower(strings.TrimSpace(token)); token != "" {
				out = append(out, token)
			}
		}
	}
	return out
}

// oddExchange is a request and its answer as they are written, in pieces.
type oddExchange struct {
	method         string
	request, reply [][]byte
	close          bool // the upstream closes after its answer
}

func newExchange(seed uint64, host string) *oddExchange {
	g := &generator{rand.New(rand.NewPCG(seed, 7))}
	x := &oddExchange{}
	x.method = g.pick("GET", "GET", "HEAD", "POST", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "M-SEARCH", "get", "QUERY", "!#$%&'*+-.^_`|~")
	b := &bytes.Buffer{}
	fmt.Fprintf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n", x.method, g.target(), host)
	fields := g.fields(requestFields)
	if g.odds(25) {
		fields = append(fields, g.pick("TE: trailers", "te: deflate;q=0.5, Trailers", "TE: deflate"))
	}
	if g.odds(30) {
		fields = append(fields, "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Connection: Upgrade, HTTP2-Settings")
	}
	switch g.IntN(5) {
	case 0:
		if g.odds(4) {
			fields = append(fields, "Content-Length: 0")
		}
		g.head(b, fields)
	case 1, 2:
		content := g.content()
		if len(content) > 0 && g.odds(20) {
			fields = append(fields, "Expect: 100-continue")
		}
		g.head(b, append(fields, fmt.Sprintf("Content-Length: %d", len(content))))
		b.Write(content)
	default:
		g.chunked(b, fields, requestFields, g.content())
	}
	x.request = g.pieces(b.Bytes())
	x.reply = g.pieces(g.answer(x))
	return x
}

type generator struct{ *rand.Rand }

func (g *generator) odds(n int) bool { return g.IntN(n) == 0 }

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// pieces cuts a message into the parts that it is written in.
func (g *generator) pieces(b []byte) [][]byte {
	var out [][]byte
	for len(b) > 0 && len(out) < 20 && !g.odds(4) {
		n := 1 + g.IntN(min(len(b), 1+g.IntN(2000)))
		out, b = append(out, b[:n]), b[n:]
	}
	return append(out, b)
}

func (g *generator) target() string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString("/" + g.pick("x", "v2", "", "%41", "%2f", "%2F..x", "a;b=c", "a:b@c", "!$&'()*+,;=", "~", "%e6%97%a5", "%ff%00", "[1]", "v1", "...", "a%20b", "%0d%0aX:%20y"))
	}
	b.WriteString("/y" + g.pick("", "", "?", "?a=b&c=%zz", "?\"<>\\^`{|}", "?\xff\x80\xc3", "?x=/../..", "??#", "?a=+%20"))
	return b.String()
}

// Names of fields that must not be lost, changed or added.
var (
	requestFields = []string{
		"Authorization", "Cookie", "Cookie", "Accept", "Accept-Encoding", "User-Agent", "User-Agent", "Content-Type", "Content-Encoding", "Range",
		"If-None-Match", "X-Forwarded-For", "Via", "Forwarded", "Date", "From", "Referer", "Origin", "X-Request-Id", "x-api-key", "Idempotency-Key",
		"Max-Forwards", "Cache-Control", "Pragma", "Priority", "traceparent", "OpenAI-Organization", "X-Unfray-Heal", "Accept-Language",
	}
	replyFields = []string{
		"Set-Cookie", "Set-Cookie", "Date", "Date", "Content-Type", "Content-Type", "Content-Encoding", "Server", "Server", "Via", "X-Request-Id", "ETag",
		"Last-Modified", "Vary", "Retry-After", "WWW-Authenticate", "Location", "Alt-Svc", "Cache-Control", "X-Content-Type-Options",
		"Access-Control-Allow-Origin", "Allow", "Link", "openai-processing-ms", "x-ratelimit-remaining-requests", "Content-Range", "X-Accel-Buffering",
	}
)

func (g *generator) name(known []string) string {
	name := known[g.IntN(len(known))]
	if g.odds(3) {
		const chars = "abcXYZ019!#$%&'*+-.^_`|~"
		b := []byte("X-")
		for range 1 + g.IntN(12) {
			b = append(b, chars[g.IntN(len(chars))])
		}
		name = string(b)
	}
	switch g.IntN(4) {
	case 0:
		name = strings.ToLower(name)
	case 1:
		name = strings.ToUpper(name)
	}
	return name
}

func (g *generator) value() string {
	n := g.IntN(30)
	switch g.IntN(12) {
	case 0:
		n = 0
	case 1:
		n = g.IntN(3000)
	}
	b := make([]byte, n)
	for i := range b {
		switch c := byte(g.IntN(256)); {
		case c >= ' ' && c != 0x7f && (c < 0x80 || n%3 == 0), c == '\t':
			b[i] = c
		default:
			b[i] = "a,; =\"\\"[g.IntN(7)]
		}
	}
	return string(b)
}

// fields makes field lines. Some are repeated, some are for one connection only.
func (g *generator) fields(known []string) []string {
	var out []string
	for range g.IntN(12) {
		name := g.name(known)
		for range 1 + g.IntN(3)/2 {
			out = append(out, name+":"+g.pick("", " ", "\t ")+g.value()+g.pick("", " ", "\t"))
		}
	}
	if g.odds(4) {
		out = append(out, "Connection: keep-alive, x-hop ,X-Hop2", "X-Hop: 1", "x-hop2: 2", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive")
	}
	return out
}

func isHop(line string) bool {
	return strings.HasPrefix(line, "Connection:") || strings.HasPrefix(strings.ToLower(line), "x-hop")
}

// head writes field lines in some order, those of one name in their own.
func (g *generator) head(b *bytes.Buffer, lines []string) {
	for len(lines) > 0 {
		i := g.IntN(len(lines))
		name, _, _ := strings.Cut(lines[i], ":")
		i = slices.IndexFunc(lines, func(line string) bool {
			other, _, _ := strings.Cut(line, ":")
			return strings.EqualFold(name, other)
		})
		b.WriteString(lines[i] + "\r\n")
		lines = slices.Delete(lines, i, i+1)
	}
	b.WriteString("\r\n")
}

func (g *generator) content() []byte {
	switch g.IntN(8) {
	case 0:
		return nil
	case 1:
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(g.bytes(g.IntN(5000)))
		w.Close()
		return b.Bytes()
	case 2:
		return g.bytes(g.IntN(200_000))
	case 3:
		return []byte("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n0\r\n\r\n")
	case 4:
		return []byte("<html><head><title>502 Bad Gateway</title></head></html>")
	case 5:
		var b bytes.Buffer
		for range g.IntN(30) {
			fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}%s", g.value(), g.pick("\n\n", "\r\n\r\n", "\r\r"))
		}
		return b.Bytes()
	}
	return []byte(`{"model":"m","input":"日本 🙂"}`)
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32() >> 7)
	}
	return b
}

// chunked writes fields and content in chunks, maybe with trailers.
func (g *generator) chunked(b *bytes.Buffer, lines, known []string, content []byte) {
	var trailers []string
	if g.odds(3) {
		for range 1 + g.IntN(3) {
			name := "X-T" + strings.TrimPrefix(g.name([]string{"X-Checksum", "X-Sum"}), "X-")
			// net/http reads no more than 4 KiB of them.
			value := g.value()
			trailers = append(trailers, name+": "+value[:min(len(value), 1000)])
			if g.odds(2) {
				lines = append(lines, g.pick("Trailer: ", "trailer:")+name)
			}
			if g.odds(4) { // the same field before the content
				lines = append(lines, name+": "+g.value())
			}
		}
		if g.odds(4) {
			lines = append(lines, "Trailer: X-Never, X-Sent")
		}
	}
	g.head(b, append(lines, g.pick("Transfer-Encoding: chunked", "transfer-encoding:Chunked")))
	most := g.pick1(1, 10, 1000, 100_000)
	if most == 1 && len(content) > 3000 {
		content = content[:3000]
	}
	for len(content) > 0 {
		n := 1 + g.IntN(min(len(content), most))
		fmt.Fprintf(b, g.pick("%x", "%X", "0%x")+g.pick("", "", ";a=b", ";c=\"d\"")+"\r\n%s\r\n", n, content[:n])
		content = content[n:]
	}
	b.WriteString("0\r\n")
	for _, line := range trailers {
		b.WriteString(line + "\r\n")
	}
	b.WriteString("\r\n")
}

func (g *generator) pick1(from ...int) int { return from[g.IntN(len(from))] }

func (g *generator) answer(x *oddExchange) []byte {
	b := &bytes.Buffer{}
	for g.odds(8) {
		fmt.Fprintf(b, "HTTP/1.1 %d %s\r\n", g.pick1(102, 103, 104, 199), g.pick("", "Early Hints"))
		g.head(b, g.fields(replyFields))
	}
	status := g.pick1(200, 200, 200, 201, 204, 205, 304, 400, 404, 413, 429, 500, 502, 503, 200+g.IntN(400))
	fields := g.fields(replyFields)
	version := "1.1"
	x.close = g.odds(6)
	if x.close {
		// net/http does not tell what else this field names.
		fields = append(slices.DeleteFunc(fields, isHop), "Connection: close")
		version = g.pick("1.1", "1.0")
	}
	fmt.Fprintf(b, "HTTP/%s %d %s\r\n", version, status, g.pick("", "OK", "Not At All", "日本"))
	content := g.content()
	if x.method == "HEAD" || status == 304 {
		if g.odds(2) {
			fields = append(fields, fmt.Sprintf("Content-Length: %d", len(content)))
		} else if g.odds(3) && version == "1.1" && x.method == "HEAD" {
			fields = append(fields, "Transfer-Encoding: chunked")
		}
		g.head(b, fields)
		return b.Bytes()
	}
	switch how := g.IntN(5); {
	case status == http.StatusNoContent:
		g.head(b, fields)
	case x.close && (how == 0 || version == "1.0" && how > 2):
		g.head(b, fields)
		b.Write(content)
	case how < 3 || version == "1.0":
		g.head(b, append(fields, fmt.Sprintf("Content-Length: %d", len(content))))
		b.Write(content)
	default:
		g.chunked(b, fields, replyFields, content)
	}
	return b.Bytes()
}
