package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/wire"
)

func newLog(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// pipeListener is a network in memory, whose time testing/synctest controls.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			here, there := net.Pipe()
			select {
			case l.conns <- there:
				return here, nil
			case <-l.closed:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}}
}

// served runs a rig's gateway on a pipe, inside a synctest bubble.
type served struct {
	*rig
	client *http.Client
	stop   context.CancelFunc
	ended  chan error
}

func serve(t *testing.T, o rigOptions) *served {
	s := &served{rig: newRig(t, o), ended: make(chan error, 1)}
	ln := newPipeListener()
	s.client = ln.client()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	t.Cleanup(func() { cancel(); s.client.CloseIdleConnections() })
	go func() { s.ended <- s.gateway.Serve(ctx, ln) }()
	return s
}

func (s *served) post(body string) (*http.Response, error) {
	return s.client.Post("http://gateway/v1/completions", "application/json", strings.NewReader(body))
}

func (s *served) status(path string) string {
	resp, err := s.client.Get("http://gateway" + path)
	if err != nil {
		return "unreachable"
	}
	defer resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, rigOptions{toy: backendtest.Options{StepDelay: time.Second}, scripts: []string{paris}})
		if s.status("/readyz") != "200" || s.status("/healthz") != "200" {
			t.Fatal("not ready")
		}
		resp, err := s.post(`{"prompt":"The","temperature":0,"stream":true,"unfray":{"heal":"off"}}`)
		if err != nil {
			t.Fatal(err)
		}
		s.stop()
		synctest.Wait()
		// The stream goes on; health is told; new work is refused.
		if got := s.status("/healthz") + s.status("/readyz"); got != "200503" {
			t.Errorf("healthz and readyz while draining: %s", got)
		}
		refused, err := s.post(`{"prompt":"The"}`)
		if err != nil {
			t.Fatal(err)
		}
		refused.Body.Close()
		if refused.StatusCode != 503 || refused.Header.Get("Retry-After") != "1" {
			t.Errorf("new request while draining: %d", refused.StatusCode)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), " Paris") || !strings.HasSuffix(string(body), wire.Done+"\n\n") {
			t.Errorf("%v, %s", err, body)
		}
		if err := <-s.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if got := s.status("/healthz"); got != "unreachable" {
			t.Errorf("after the drain: %s", got)
		}
	})
}

func TestDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, rigOptions{
			toy: backendtest.Options{StepDelay: time.Second},
			cfg: gateway.Config{DrainTimeout: 10 * time.Second},
		})
		whole := make(chan string, 1)
		go func() {
			resp, err := s.post(`{"prompt":"The","max_tokens":1000,"logit_bias":{"0":-100,"2":-100}}`)
			if err != nil {
				whole <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			whole <- fmt.Sprint(resp.StatusCode, string(body))
		}()
		resp, err := s.post(`{"prompt":"The","max_tokens":1000,"stream":true,"logit_bias":{"0":-100,"2":-100}}`)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		s.stop()
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if took := time.Since(start); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("the stream was canceled after %v", took)
		}
		if err != nil || !strings.Contains(string(body), `"code":"draining"`) || strings.Contains(string(body), wire.Done) {
			t.Errorf("%v, %s", err, body)
		}
		if got := <-whole; !strings.HasPrefix(got, "503") {
			t.Errorf("the request that does not stream: %s", got)
		}
		if err := <-s.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, rigOptions{
			toy: backendtest.Options{StepDelay: time.Second},
			cfg: gateway.Config{Timeout: 5 * time.Second},
		})
		start := time.Now()
		resp, err := s.post(`{"prompt":"The","max_tokens":1000,"logit_bias":{"0":-100,"2":-100}}`)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(start); resp.StatusCode != 504 || took > 6*time.Second {
			t.Errorf("status %d after %v", resp.StatusCode, took)
		}
		resp, err = s.post(`{"prompt":"The","max_tokens":1000,"stream":true,"logit_bias":{"0":-100,"2":-100}}`)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), `"code":"timeout"`) || strings.Contains(string(body), wire.Done) {
			t.Errorf("%v, %s", err, body)
		}
		s.stop()
		<-s.ended
	})
}

// A client that sends its request a byte at a time does not hold a connection.
func TestSlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, rigOptions{cfg: gateway.Config{ReadTimeout: 3 * time.Second}})
		body, feed := io.Pipe()
		defer feed.Close()
		req, err := http.NewRequest("POST", "http://gateway/v1/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 1000
		start := time.Now()
		resp, err := s.client.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != 400 {
				t.Errorf("status %d", resp.StatusCode)
			}
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("took %v", took)
		}
		feed.Close()
		s.stop()
		<-s.ended
	})
}

// A client that does not read holds its generation for WriteTimeout only.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, rigOptions{
			toy: backendtest.Options{ContextLength: 1 << 20},
			cfg: gateway.Config{WriteTimeout: 7 * time.Second},
		})
		start := time.Now()
		resp, err := s.post(`{"prompt":"The","stream":true,"n":4,"max_tokens":500000,"logit_bias":{"0":-100,"2":-100}}`)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the client's buffer is full
		if s.toy.Running() == 0 {
			t.Error("nothing runs")
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if n := s.toy.Running(); n != 0 {
			t.Errorf("%d generations run %v after their reader stopped", n, time.Since(start))
		}
		resp.Body.Close()
		s.stop()
		<-s.ended
	})
}

func TestServeReportsTheListener(t *testing.T) {
	r := newRig(t, rigOptions{})
	ln := newPipeListener()
	ln.Close()
	if err := r.gateway.Serve(t.Context(), ln); err == nil {
		t.Error("no error from a closed listener")
	}
}
