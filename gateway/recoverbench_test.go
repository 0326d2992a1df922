package gateway_test

import (
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unfray/unfray/gateway"
)

// BenchmarkRecoverStream is a stream of prose in about 2,000 events through the
// gateway; each mode beside off is what recovery costs.
func BenchmarkRecoverStream(b *testing.B) {
	pieces := chatStream("stop", cutText(rand.New(rand.NewPCG(1, 2)), strings.Repeat("Some prose that goes on for a while, and then some. ", 150))...)
	for _, mode := range gateway.RecoverModes() {
		b.Run(string(mode), func(b *testing.B) {
			up := &scripted{answer: func(int, string) (string, []string) { return events, append([]string{}, pieces...) }}
			r := recoverRig(b, gateway.Recovery{Mode: mode, Strategies: []string{"reasoning", "calls", "text", "structure"}}, up)
			body := chatBody(`,"stream":true`)
			for b.Loop() {
				up.bodies, up.heads, up.ended = nil, nil, nil
				r.gateway.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)))
				r.log.Reset()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pieces)), "ns/event")
		})
	}
}
