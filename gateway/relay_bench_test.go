package gateway_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
)

// BenchmarkRelay is what the gateway does with a request of 8 KB that it passes
// on, without any network: not looked into, looked into, and planned.
func BenchmarkRelay(b *testing.B) {
	local := newRig(b, rigOptions{})
	body := `{"model":"toy","prompt":"` + strings.Repeat("and so it goes on, ", 400) + `.","temperature":0,"max_tokens":16}`
	for _, tc := range []struct {
		name string
		heal heal.Mode
		more string
	}{{"off", heal.Off, ""}, {"off, named", heal.Off, `"unfray":{"heal":"off"},`}, {"stable, with a field of the upstream's", heal.Stable, `"prompt_logprobs":1,`}} {
		b.Run(tc.name, func(b *testing.B) {
			m, err := unfray.NewModel(&serverToy{Toy: local.toy}, local.tok)
			if err != nil {
				b.Fatal(err)
			}
			up := &gateway.Upstream{Transport: &recorder{}}
			g, err := gateway.New(gateway.Config{
				Models:  []gateway.Model{{Name: "toy", Model: m, Upstream: up, Native: true, Heal: tc.heal}},
				Default: up, Log: newLog(local.log),
			})
			if err != nil {
				b.Fatal(err)
			}
			request := strings.Replace(body, `"temperature"`, tc.more+`"temperature"`, 1)
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				g.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(request)))
				if w.Body.String() != "as it is" {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
