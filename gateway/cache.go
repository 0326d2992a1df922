package gateway

import (
	"bytes"
	"encoding/json"
	"log/slog"

	"strconv"
	"sync"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/replay"
	"github.com/unfray/unfray/vocab"
)

// maxSeen is how much memory the text that was seen may take for each model, in
// bytes, before its older half is forgotten.
const maxSeen = 64 << 20

// cacheWatch predicts what the engine of a model has cached of each prompt whose
// tokens the gateway knows.
type cacheWatch struct {
	mu    sync.Mutex
	cache prefixcache.Cache
	seen  *replay.Seen
}

func newCacheWatch(c prefixcache.Cache, v *vocab.Vocab) *cacheWatch {
	return &cacheWatch{cache: c, seen: replay.NewSeen(v, maxSeen)}
}

// A prediction is what is expected of one request, all its prompts together.
type prediction struct {
	watch   *cacheWatch
	keys    prefixcache.Keys
	prompts []*unfray.Prepared
	leases  []prefixcache.Lease // of the prompts that had room
	held    []int               // their numbers
	n       int                 // choices of a prompt
	results []*unfray.Result

	cached, boundary int
	known            bool // every prompt had room
}

// predict begins the requests of a job in the model's simulated cache. It gives
// nil where there is none. The caller calls end when the engine is done.
func (m *model) predict(j *job) *prediction {
	if m.watch == nil {
		return nil
	}
	p := &prediction{watch: m.watch, prompts: j.prompts, n: j.n, known: true}
	req := prefixcache.Request{}
	readKeys(&req, j.settings.Fields)
	p.keys = req.Keys
	w := m.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, prompt := range j.prompts {
		req.Prompt = prompt.IDs()
		p.boundary += w.seen.Add(p.keys, req.Prompt, nil)
		lease, err := w.cache.Begin(&req)
		if err != nil {
			p.known = false // the engine lets it wait, or refuses it
			continue
		}
		p.cached += lease.Cached
		p.leases, p.held = append(p.leases, lease), append(p.held, i)
	}
	return p
}

// readKeys takes from the fields that are the server's business those that say
// what may be shared.
func readKeys(req *prefixcache.Request, fields map[string]json.RawMessage) {
	// What has another type is the server's to refuse.
	text := func(name string) (s string) { _ = json.Unmarshal(fields[name], &s); return s }
	req.Keys.Salt, req.Keys.Extra = text("cache_salt"), text("extra_key")
	if v := fields["prompt_logprobs"]; v != nil && string(v) != "null" {
		req.Bypass = true
	}
	if string(fields["cache_prompt"]) == "false" {
		req.Bypass = true
	}
	var slot int
	if json.Unmarshal(fields["id_slot"], &slot) == nil && slot >= 0 {
		req.Slot = slot + 1
	}
}

// end gives the room of the request back.
func (p *prediction) end() {
	if p == nil {
		return
	}
	w := p.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, lease := range p.leases {
		var output []vocab.ID
		// The choices of a prompt share its prompt; the first one's output stands
		// for all.
		if k := p.held[i] * p.n; k < len(p.results) && p.results[k] != nil {
			output = p.results[k].IDs
		}
		w.cache.End(lease, output)
		if len(output) > 0 {
			w.seen.Add(p.keys, p.prompts[p.held[i]].IDs(), output)
		}
	}
}

// note says in the request's record of the log what was expected, and what was
// lost because text that had been seen has other tokens now.
func (p *prediction) note(g *Gateway, x *exchange, model string) {
	if p == nil {
		return
	}
	if p.known {
		x.note(slog.Int("predicted_cached_tokens", p.cached))
		g.metrics.tokens.WithLabelValues(model, "predicted_cached").Add(float64(p.cached))
	}
	x.note(slog.Int("boundary_loss_tokens", p.boundary))
	g.metrics.tokens.WithLabelValues(model, "boundary_loss").Add(float64(p.boundary))
	if !g.cfg.LogPrompts || len(p.prompts) != 1 {
		return
	}
	// With the tokens the log can be replayed.
	x.note(slog.Any("prompt_ids", p.prompts[0].IDs()))
	if p.keys.Salt != "" {
		x.note(slog.String("cache_salt", p.keys.Salt))
	}
	if len(p.results) > 0 && p.results[0] != nil {
		x.note(slog.Any("output_ids", p.results[0].IDs))
	}
}

// maxTail is how much of an answer's end is looked through for what it reports:
// usage comes last in both servers' answers.
const maxTail = 4 << 10

// tail keeps the end of an answer that is passed on.
type tail struct{ b []byte }

// reported are where servers say how many tokens of a prompt they had cached.
var reported = [][]byte{[]byte(`"cached_tokens"`), []byte(`"cache_n"`)}

func (t *tail) write(b []byte) {
	if len(b) >= maxTail {
		t.b = append(t.b[:0], b[len(b)-maxTail:]...)
		return
	}
	if over := len(t.b) + len(b) - maxTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	t.b = append(t.b, b...)
}

// cached is what the answer reports last.
func (t *tail) cached() (n int, ok bool) {
	at := -1
	for _, name := range reported {
		if i := bytes.LastIndex(t.b, name); i > at {
			at, n = i+len(name), 0
		}
	}
	if at < 0 {
		return 0, false
	}
	rest := bytes.TrimLeft(t.b[at:], " \t\r\n:")
	end := 0
	for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(string(rest[:end]))
	return n, err == nil
}

// forwardWatched passes a request on whose tokens are known, and notes what was
// expected of the cache beside what the answer reports.
func (g *Gateway) forwardWatched(x *exchange, m *model, named string, body []byte) error {
	p := x.expected
	if p == nil {
		return g.forward(x, m, named, body)
	}
	defer p.end()
	x.tail = &tail{b: make([]byte, 0, maxTail)}
	err := g.forward(x, m, named, body)
	x.note(slog.String("model", m.Name))
	if n, ok := x.tail.cached(); ok {
		x.note(slog.Int("cached_tokens", n))
	}
	p.note(g, x, m.Name)
	return err
}
