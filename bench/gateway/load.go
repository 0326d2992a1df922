//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A load sends the requests of one workload to one address, over connections that stay open, each waiting for an answer
// before it asks again.
type load struct {
	address   string // host:port
	route     string
	exercises []exercise
	stream    bool
	identical bool // answers must be the mock's to the byte
	conns     int
	warm      time.Duration
	measure   time.Duration
}

// A result is what a load saw after its warm-up.
type result struct {
	latency   histogram     // from the first byte sent to the last received
	first     histogram     // to the first byte of the answer's body
	wrong     int           // errors and wrong answers, those of the warm-up too
	dials     int           // connections opened
	all       int           // requests, those of the warm-up too
	why       error         // of the first of the wrong
	elapsed   time.Duration // of one connection, to the end of its last answer
	perSecond float64
}

// run loads until the time is over. Wrong answers are counted, not returned as an error.
func (l *load) run(ctx context.Context, serials *atomic.Uint64) *result {
	ctx, cancel := context.WithTimeout(ctx, l.warm+l.measure+answerLimit)
	defer cancel()
	parts := make([]*result, l.conns)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() { parts[i] = l.connection(ctx, start.Add(l.warm), serials) })
	}
	wg.Wait()
	total := &result{}
	for _, p := range parts {
		total.latency.merge(&p.latency)
		total.first.merge(&p.first)
		total.wrong += p.wrong
		total.dials += p.dials
		total.all += p.all
		if p.elapsed > 0 { // a sum of rates: connections end at different times
			total.perSecond += float64(p.latency.n) / p.elapsed.Seconds()
		}
		if total.why == nil {
			total.why = p.why
		}
	}
	return total
}

// answerLimit is how long an answer may take.
const answerLimit = 20 * time.Second

// connection is the work of one connection. Requests that begin before warm are not measured; at least one is.
func (l *load) connection(ctx context.Context, warm time.Time, serials *atomic.Uint64) *result {
	r := &result{}
	c := &client{address: l.address}
	defer c.close()
	var request, body, text, want []byte
	for {
		n := serials.Add(1)
		e := &l.exercises[n%uint64(len(l.exercises))]
		number := newSerial(n)
		body = e.body.fill(body, number)
		request = appendRequest(request[:0], l.address, l.route, body)
		begin := time.Now()
		if begin.After(warm.Add(l.measure)) && r.latency.n > 0 || ctx.Err() != nil {
			r.dials = c.dials
			return r
		}
		status, firstByte, err := c.exchange(ctx, request)
		end := time.Now()
		r.all++
		if err == nil {
			text = answerText(text, c.body, l.route)
			want = e.text.fill(want, number)
			err = l.check(c, status, text, want)
			if err == nil && l.identical {
				want = e.bytes.fill(want, number)
				err = same("the answer", c.body, want)
			}
		}
		if err != nil {
			r.wrong++
			if r.why == nil {
				r.why = err
			}
			if r.wrong >= 10 {
				r.dials = c.dials
				return r
			}
			continue
		}
		if !begin.Before(warm) {
			r.latency.add(end.Sub(begin))
			r.first.add(firstByte.Sub(begin))
			r.elapsed = end.Sub(warm)
		}
	}
}

func (l *load) check(c *client, status int, text, want []byte) error {
	switch {
	case status != 200:
		return fmt.Errorf("status %d: %.300s", status, c.body)
	case !bytes.Equal(text, want):
		return same("the text", text, want)
	case l.stream && !bytes.HasSuffix(bytes.TrimSpace(c.body), []byte("data: [DONE]")):
		return fmt.Errorf("the stream ends with %q", c.body[max(0, len(c.body)-80):])
	}
	return nil
}

func same(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return fmt.Errorf("%s differs from the mock's at byte %d of %d (it has %d): %.60q, want %.60q", what, at, len(want), len(got), got[at:], want[at:])
}

func appendRequest(b []byte, host, route string, body []byte) []byte {
	b = append(append(append(append(b, "POST "...), route...), " HTTP/1.1\r\nHost: "...), host...)
	b = append(b, "\r\nUser-Agent: gateway-bench\r\nAccept: */*\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	return append(append(b, "\r\n\r\n"...), body...)
}

// A client is one HTTP/1.1 connection, opened when it is needed. It does no more than this bench needs: net/http's would
// take a large part of two cores for itself.
type client struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	body    []byte // of the last answer, until the next exchange
	dials   int
	served  bool // the connection has had an answer
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// exchange sends a request and reads the answer. A kept connection that the server has closed meanwhile is opened anew.
func (c *client) exchange(ctx context.Context, request []byte) (status int, first time.Time, err error) {
	for {
		if c.conn == nil {
			d := net.Dialer{Timeout: answerLimit}
			if c.conn, err = d.DialContext(ctx, "tcp", c.address); err != nil {
				c.conn = nil
				return 0, first, err
			}
			c.in, c.served = bufio.NewReaderSize(c.conn, 32<<10), false
			c.dials++
		}
		c.conn.SetDeadline(time.Now().Add(answerLimit))
		if _, err = c.conn.Write(request); err == nil {
			_, err = c.in.Peek(1)
		}
		if err != nil {
			c.close()
			if c.served && !errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
				continue
			}
			return 0, first, err
		}
		status, first, err = c.read()
		c.served = true
		if err != nil {
			c.close()
		}
		return status, first, err
	}
}

// read reads an answer's head and body.
func (c *client) read() (status int, first time.Time, err error) {
	line, err := c.line()
	if err != nil {
		return 0, first, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, first, fmt.Errorf("no answer of HTTP/1.1: %.60q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, first, err
	}
	length, chunked, last := -1, false, false
	for {
		if line, err = c.line(); err != nil {
			return status, first, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return status, first, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			last = bytes.EqualFold(value, []byte("close"))
		}
	}
	if _, err = c.in.Peek(1); err != nil {
		return status, first, err
	}
	first = time.Now()
	c.body = c.body[:0]
	switch {
	case chunked:
		err = c.readChunks()
	case length >= 0:
		err = c.readPart(length)
	default:
		return status, first, errors.New("an answer with neither a length nor chunks")
	}
	if last {
		c.close()
	}
	return status, first, err
}

// line reads a line, which holds until the next read, without its end.
func (c *client) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

const bodyLimit = 8 << 20

func (c *client) readPart(n int) error {
	if n < 0 || len(c.body)+n > bodyLimit {
		return fmt.Errorf("an answer of more than %d bytes", bodyLimit)
	}
	at := len(c.body)
	if cap(c.body) < at+n {
		c.body = append(make([]byte, 0, 2*(at+n)), c.body...)
	}
	c.body = c.body[:at+n]
	_, err := io.ReadFull(c.in, c.body[at:])
	return err
}

func (c *client) readChunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil {
			return fmt.Errorf("a chunk's length: %w", err)
		}
		if n == 0 {
			for len(line) > 0 { // trailers, to the empty line
				if line, err = c.line(); err != nil {
					return err
				}
			}
			return nil
		}
		if err := c.readPart(int(n)); err != nil {
			return err
		}
		if line, err = c.line(); err != nil || len(line) > 0 {
			return errors.Join(errors.New("a chunk is longer than it says"), err)
		}
	}
}
