package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unfray/unfray/gateway"
)

// BenchmarkProxy is an exchange of 1 kB each way over one connection, directly
// and through the gateway. Client and server are net/http's, in this process.
func BenchmarkProxy(b *testing.B) {
	body := strings.Repeat("a", 1000)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(w, body)
	}))
	defer up.Close()
	addr := up.Listener.Addr().String()
	for _, way := range []string{"direct", "gateway"} {
		b.Run(way, func(b *testing.B) {
			to := addr
			if way == "gateway" {
				to = newFront(b, addr, gateway.Config{}).addr
			}
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Post("http://"+to+"/x", "application/json", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
