package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/prefixcache"
)

// BenchmarkCachePrediction is a request of a conversation, healed or passed on,
// without any network: with no prediction, and with that of each kind of engine.
// A grown prompt shares all but its end with those before it, a new one nothing.
func BenchmarkCachePrediction(b *testing.B) {
	r := newRig(b, rigOptions{toy: backendtest.Options{ContextLength: 1 << 15}, scripts: []string{strings.Repeat("and so it goes on, ", 10)}})
	caches := []struct {
		name string
		make func() (prefixcache.Cache, error)
	}{
		{"off", func() (prefixcache.Cache, error) { return nil, nil }},
		{"vllm", func() (prefixcache.Cache, error) {
			return prefixcache.NewPaged(prefixcache.PagedOptions{Blocks: 1 << 14})
		}},
		{"sglang", func() (prefixcache.Cache, error) {
			return prefixcache.NewRadix(prefixcache.RadixOptions{Capacity: 1 << 18})
		}},
		{"llamacpp", func() (prefixcache.Cache, error) {
			return prefixcache.NewSlots(prefixcache.SlotsOptions{Context: 1 << 15})
		}},
	}
	whole := `{"choices":[{"index":0,"text":"and so it goes on, and so it goes on","finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":16}}`
	for _, way := range []struct{ name, heal string }{{"healed", "stable"}, {"passed on", "off"}} {
		for _, tokens := range []int{1000, 8000} {
			sentence := "It goes on, and on, and then some more of it came. "
			text := strings.Repeat(sentence, tokens/len(r.tok.Encode(nil, []byte(sentence)))+1)
			for _, kind := range []string{"grown", "new"} {
				for _, c := range caches {
					b.Run(fmt.Sprintf("%s/%d/%s/%s", way.name, tokens, kind, c.name), func(b *testing.B) {
						cache, err := c.make()
						if err != nil {
							b.Fatal(err)
						}
						g := benchGateway(b, r, whole, cache)
						b.ReportAllocs()
						n := 0
						for b.Loop() {
							n++
							prompt := fmt.Sprintf("%s%d The capital of France is Pa", text, n)
							if kind == "new" {
								prompt = fmt.Sprint(n, prompt)
							}
							req := fmt.Sprintf(`{"model":"toy","prompt":%q,"temperature":0,"max_tokens":16,"unfray":{"heal":%q}}`, prompt, way.heal)
							w := httptest.NewRecorder()
							if g.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(req))); w.Code != 200 {
								b.Fatal(w.Body)
							}
						}
					})
				}
			}
		}
	}
}

func benchGateway(b *testing.B, r *rig, whole string, cache prefixcache.Cache) *gateway.Gateway {
	m, err := unfray.NewModel(&serverToy{Toy: r.toy}, r.tok)
	if err != nil {
		b.Fatal(err)
	}
	served := gateway.Model{Name: "toy", Model: m, Cache: cache, Native: true, Upstream: &gateway.Upstream{Transport: answering(whole)}}
	g, err := gateway.New(gateway.Config{Models: []gateway.Model{served}, Default: served.Upstream, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return g
}
