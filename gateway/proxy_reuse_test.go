package gateway_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/gateway"
)

// TestProxyReusedConnection has a server that closes each connection after one
// answer without having said so. A request on such a connection is sent again;
// one that a new connection did not answer is not.
func TestProxyReusedConnection(t *testing.T) {
	const stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n" +
		"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
	var mu sync.Mutex
	answered := map[net.Conn]bool{}
	up := newRawServer(t, func(m *message, c net.Conn) bool {
		mu.Lock()
		defer mu.Unlock()
		if answered[c] || strings.Contains(string(m.body), "crash") {
			return false
		}
		answered[c] = true
		_, err := io.WriteString(c, stream)
		return err == nil
	})
	f := newFront(t, up.addr, gateway.Config{})
	const head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n"
	for i := range 5 {
		if m := mustExchange(t, f.addr, head+`{"prompt":"a"}`); m.status() != 200 {
			t.Fatalf("request %d: %s", i, m)
		}
	}
	for _, m := range first(up.take()) {
		if _, sent := m.fields["idempotency-key"]; sent {
			t.Errorf("the upstream got %s", m)
		}
	}
	f = newFront(t, up.addr, gateway.Config{})
	if m := mustExchange(t, f.addr, head+`{"p": "crash"}`); m.status() != 502 {
		t.Errorf("a crash: %s", m)
	}
	if got := first(up.take()); len(got) != 1 {
		t.Errorf("a request that was not answered was sent %d times", len(got))
	}
}

func first[A, B any](a A, _ B) A { return a }
