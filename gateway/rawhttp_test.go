package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/upstream"
)

// message is an HTTP/1.1 message as it was on the wire.
type message struct {
	start         string              // the request line or status line
	fields        map[string][]string // names in lower case
	framing       string              // "none", "length", "chunked" or "close"
	body          []byte
	trailers      map[string][]string
	informational []*message // before an answer
}

func (m *message) target() string { return strings.SplitN(m.start, " ", 3)[1] }
func (m *message) status() int {
	n, _ := strconv.Atoi(strings.SplitN(m.start, " ", 3)[1])
	return n
}

// String shows all that should survive a gateway.
func (m *message) String() string {
	var b strings.Builder
	for _, info := range m.informational {
		fmt.Fprintf(&b, "[%d %s] ", info.status(), showFields(info.fields))
	}
	fmt.Fprintf(&b, "%s\nfields %s\nframing %s\nbody %q\ntrailers %s", m.start, showFields(m.fields), m.framing, m.body, showFields(m.trailers))
	return b.String()
}

func showFields(fields map[string][]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "%s=%q ", name, fields[name])
	}
	return b.String()
}

// readLine reads a line that must end in CRLF and hold neither otherwise.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || strings.ContainsAny(text, "\r\n\x00") {
		return "", fmt.Errorf("line %q does not end in CRLF alone", line)
	}
	return text, nil
}

func readFields(r *bufio.Reader) (map[string][]string, error) {
	fields := map[string][]string{}
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, unexpected(err)
		}
		if line == "" {
			return fields, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t()<>@,;\\\"/[]?={}") {
			return nil, fmt.Errorf("field line %q", line)
		}
		name = strings.ToLower(name)
		fields[name] = append(fields[name], strings.Trim(value, " \t"))
	}
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readRequest reads a request strictly. It returns io.EOF between requests only.
func readRequest(r *bufio.Reader, carryOn func(m *message)) (*message, error) {
	m := &message{}
	var err error
	if m.start, err = readLine(r); err != nil {
		return nil, err
	}
	if parts := strings.Split(m.start, " "); len(parts) != 3 || parts[2] != "HTTP/1.1" {
		return nil, fmt.Errorf("request line %q", m.start)
	}
	if m.fields, err = readFields(r); err != nil {
		return nil, err
	}
	if len(m.fields["host"]) != 1 {
		return m, fmt.Errorf("%d fields Host", len(m.fields["host"]))
	}
	if carryOn != nil {
		carryOn(m)
	}
	return m, m.readBody(r, "none")
}

// readAnswer reads an answer and those that inform of it.
func readAnswer(r *bufio.Reader, method string) (*message, error) {
	var before []*message
	for {
		m := &message{}
		var err error
		if m.start, err = readLine(r); err != nil {
			return nil, unexpected(err)
		}
		if !strings.HasPrefix(m.start, "HTTP/1.") || len(m.start) < 12 {
			return nil, fmt.Errorf("status line %q", m.start)
		}
		if m.fields, err = readFields(r); err != nil {
			return nil, err
		}
		status := m.status()
		if status < 200 {
			before = append(before, m)
			continue
		}
		m.informational = before
		if method == "HEAD" || status == 204 || status == 304 {
			m.framing = "none"
			return m, nil
		}
		return m, m.readBody(r, "close")
	}
}

// readBody reads the content. unframed is what a message without a length has.
func (m *message) readBody(r *bufio.Reader, unframed string) (err error) {
	lengths, codings := m.fields["content-length"], m.fields["transfer-encoding"]
	switch {
	case len(lengths)+len(codings) > 1:
		return fmt.Errorf("framed twice: %q, %q", lengths, codings)
	case len(codings) == 1:
		if !strings.EqualFold(codings[0], "chunked") {
			return fmt.Errorf("transfer coding %q", codings[0])
		}
		m.framing = "chunked"
		return m.readChunks(r)
	case len(lengths) == 1:
		m.framing = "length"
		n, err := strconv.ParseUint(lengths[0], 10, 31)
		if err != nil {
			return err
		}
		m.body = make([]byte, n)
		got, err := io.ReadFull(r, m.body)
		m.body = m.body[:got]
		if n > 0 {
			err = unexpected(err)
		}
		return err
	}
	m.framing = unframed
	if unframed == "close" {
		m.body, err = io.ReadAll(r)
	}
	return err
}

func (m *message) readChunks(r *bufio.Reader) error {
	for {
		line, err := readLine(r)
		if err != nil {
			return unexpected(err)
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(size, 16, 31)
		if err != nil {
			return fmt.Errorf("chunk size %q", line)
		}
		if n == 0 {
			m.trailers, err = readFields(r)
			return err
		}
		chunk := make([]byte, n+2)
		got, err := io.ReadFull(r, chunk)
		m.body = append(m.body, chunk[:min(got, int(n))]...)
		if err != nil {
			return unexpected(err)
		}
		if string(chunk[n:]) != "\r\n" {
			return fmt.Errorf("chunk of %d bytes ends in %q", n, chunk[n:])
		}
	}
}

// rawServer is an upstream that notes what it gets and answers by hand.
type rawServer struct {
	addr  string
	early func(m *message, c net.Conn)      // called after the fields of a request, may be nil
	reply func(m *message, c net.Conn) bool // false closes the connection

	mu    sync.Mutex
	got   []*message
	wrong []error // why a connection's input was no request
	conns map[net.Conn]bool
}

// newRawServer starts a server. reply nil: each request gets "ok".
func newRawServer(t testing.TB, reply func(m *message, c net.Conn) bool) *rawServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if reply == nil {
		reply = say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
	s := &rawServer{addr: ln.Addr().String(), reply: reply, conns: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			running.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		running.Wait()
	})
	return s
}

func say(text string) func(*message, net.Conn) bool {
	return func(_ *message, c net.Conn) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	}
}

func (s *rawServer) serve(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		m, err := readRequest(r, func(m *message) {
			if s.early != nil {
				s.early(m, c)
			}
		})
		if err == io.EOF || m == nil && errors.Is(err, net.ErrClosed) {
			return
		}
		s.mu.Lock()
		if err != nil {
			s.wrong = append(s.wrong, err)
		} else {
			s.got = append(s.got, m)
		}
		s.mu.Unlock()
		if err != nil || !s.reply(m, c) {
			return
		}
	}
}

// take returns what came since the last call.
func (s *rawServer) take() (got []*message, wrong []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got, wrong = s.got, s.wrong
	s.got, s.wrong = nil, nil
	return got, wrong
}

func (s *rawServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// front is a gateway on a real network.
type front struct {
	addr string
	log  *syncBuffer
	stop context.CancelFunc
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newPool reaches a server at an address, maybe with a base path.
func newPool(t testing.TB, addr string) *upstream.Pool {
	t.Helper()
	u, err := url.Parse("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := upstream.New(upstream.Config{Endpoints: []*url.URL{u}, Health: upstream.Health{Interval: -1}, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// newFront serves cfg, whose requests go to addr unless it says otherwise.
func newFront(t testing.TB, addr string, cfg gateway.Config) *front {
	t.Helper()
	f := &front{log: &syncBuffer{}}
	cfg.Log = newDebugLog(f.log)
	if cfg.Default == nil {
		cfg.Default = &gateway.Upstream{}
	}
	if cfg.Default.Transport == nil {
		cfg.Default.Transport = newPool(t, addr)
	}
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return f
}

// rawConn is a client's connection.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, addr string) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { c.Close() })
	return &rawConn{c, bufio.NewReader(c)}
}

// exchange sends a request as it stands and reads the answer.
func exchange(t testing.TB, addr, request string) (*message, error) {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return readAnswer(c.r, strings.SplitN(request, " ", 2)[0])
}

func mustExchange(t testing.TB, addr, request string) *message {
	t.Helper()
	m, err := exchange(t, addr, request)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	return m
}
