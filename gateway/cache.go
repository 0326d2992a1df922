package gateway

import (
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
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
	prompts [][]vocab.ID
	leases  []prefixcache.Lease // of the prompts that had room
	held    []int               // their numbers
	outputs []output            // by prompt; nil: not known

	cached int
	known  bool // every prompt had room
	seen   bool // the prompts were entered in the text that was seen
}

// An output is what was generated after a prompt.
type output struct {
	ids []vocab.ID
	// whole says that the engine computed all of ids: what ended the output came
	// after them.
	whole bool
}

// fed is the output as a simulator takes it, which leaves out its last token.
func (o output) fed() []vocab.ID {
	if !o.whole {
		return o.ids
	}
	return append(o.ids[:len(o.ids):len(o.ids)], vocab.None)
}

// predict begins the requests of a job in the model's simulated cache. It gives
// nil where there is none. The caller calls end when the engine is done.
func (m *model) predict(j *job) *prediction {
	if m.watch == nil {
		return nil
	}
	prompts := make([][]vocab.ID, len(j.prompts))
	for i, p := range j.prompts {
		prompts[i] = p.IDs()
	}
	return m.watch.begin(j.settings.Fields, prompts)
}

// predictPassed is predict for a job whose request is passed on: the server makes
// tokens of the whole prompt. It gives nil too where it makes a prompt of several
// parts.
func (m *model) predictPassed(j *job) *prediction {
	if m.watch == nil || j.settings.Fill != nil {
		return nil
	}
	prompts := make([][]vocab.ID, len(j.prompts))
	for i, p := range j.prompts {
		if p.Heals() {
			c := *j.settings
			c.Prompt, c.Heal = j.asked[i], heal.Off
			whole, err := m.Model.Model.Prepare(&c)
			if err != nil {
				return nil
			}
			p = whole
		}
		prompts[i] = p.IDs()
	}
	return m.watch.begin(j.settings.Fields, prompts)
}

// begin begins requests in the simulated cache. fields are those that are the
// server's business.
func (w *cacheWatch) begin(fields map[string]json.RawMessage, prompts [][]vocab.ID) *prediction {
	p := &prediction{watch: w, prompts: prompts, known: true}
	req := prefixcache.Request{}
	readKeys(&req, fields)
	p.keys = req.Keys
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, ids := range prompts {
		req.Prompt = ids
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

// told takes over what a healed request came to. The choices of a prompt share it;
// the output of the first one stands for all.
func (p *prediction) told(j *job, results []*unfray.Result) {
	p.outputs = make([]output, len(p.prompts))
	for i := range p.prompts {
		r := results[i*j.n]
		if r == nil {
			continue
		}
		p.outputs[i] = output{r.IDs, ended(r) || j.model.Upstream != nil && overruns(r)}
	}
}

// ended reports whether a token ended the continuation, which is not among those
// of the result.
func ended(r *unfray.Result) bool {
	return r.FinishReason == backend.FinishStop && r.StopString == ""
}

// overruns reports whether a server goes on behind the last token of the result,
// and is told to end. So it is at a stop string, and at a limit where it was
// asked for a token more for each byte of the prompt's end, and needed fewer.
func overruns(r *unfray.Result) bool {
	replayed := r.Healing.Mode == heal.Stable || r.Healing.Mode == heal.Last
	return r.StopString != "" || r.FinishReason == backend.FinishLength && replayed && r.Healing.TokensReplayed < r.Healing.BytesPending
}

// end gives the room of the request back.
func (p *prediction) end() {
	if p == nil {
		return
	}
	p.enter()
	w := p.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, lease := range p.leases {
		w.cache.End(lease, p.output(p.held[i]).fed())
	}
}

func (p *prediction) output(prompt int) output {
	if p.outputs == nil {
		return output{}
	}
	return p.outputs[prompt]
}

// enter makes prompts and outputs part of the text that was seen. It gives how
// many of the prompts' tokens stand for such text and were others then.
func (p *prediction) enter() (boundary int) {
	if p.seen {
		return 0
	}
	p.seen = true
	w := p.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, ids := range p.prompts {
		boundary += w.seen.Add(p.keys, ids, p.output(i).ids)
	}
	return boundary
}

// note says in the request's record of the log what was expected, and what was
// lost because text that had been seen has other tokens now.
func (p *prediction) note(g *Gateway, x *exchange, m *model) {
	if p == nil {
		return
	}
	if p.known {
		x.note(slog.Int("predicted_cached_tokens", p.cached))
		g.metrics.tokens.WithLabelValues(m.Name, "predicted_cached").Add(float64(p.cached))
	}
	boundary := p.enter()
	x.note(slog.Int("boundary_loss_tokens", boundary))
	g.metrics.tokens.WithLabelValues(m.Name, "boundary_loss").Add(float64(boundary))
	if !g.cfg.LogPrompts || len(p.prompts) != 1 {
		return
	}
	// With the tokens the log can be replayed.
	x.note(slog.Any("prompt_ids", p.prompts[0]))
	if p.keys.Salt != "" {
		x.note(slog.String("cache_salt", p.keys.Salt))
	}
	if p.outputs == nil {
		return
	}
	ids := p.outputs[0].ids
	if eos := m.Model.Model.Tokenizer().Vocab().Specials().EOS; p.outputs[0].whole && eos != vocab.None {
		ids = append(ids[:len(ids):len(ids)], eos)
	}
	x.note(slog.Any("output_ids", ids))
}
