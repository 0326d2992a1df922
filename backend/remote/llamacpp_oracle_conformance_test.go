package remote

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/servertest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// cutTexts returns prompts that end anywhere, also inside characters: the texts
// of many languages, and this package's own source.
func cutTexts(t *testing.T) (cuts [][]byte) {
	t.Helper()
	languages, err := os.ReadFile("../../testdata/languages.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(languages), []byte("\n")) {
		for _, part := range []int{40, 71} {
			if end := len(line)*part/100 + i%3; end > 4 && end < len(line) {
				cuts = append(cuts, line[:end])
			}
		}
	}
	source, err := os.ReadFile("client.go")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		end := 700 + i*137
		cuts = append(cuts, source[end-500:end])
	}
	return cuts
}

// planned is a prompt with its healing, as a request states it.
func planned(b *LlamaCpp, text []byte, mode heal.Mode) (*heal.Plan, *backend.Replay) {
	tok := b.options.Tokenizer
	p := heal.New(tok, tok.Encode(nil, text), mode)
	if len(p.Pending) == 0 {
		return p, nil
	}
	r := &backend.Replay{Pending: p.Pending}
	for i := range p.Branches {
		br := &p.Branches[i]
		w := backend.Way{Path: br.Path, Rest: br.Rest}
		for id := range br.Extensions(tok.Vocab()) {
			if len(br.Rest) > 0 && br.Joins(tok, id) && !tok.Vocab().IsEOG(id) {
				w.Last = append(w.Last, id)
			}
		}
		slices.Sort(w.Last)
		if w.Last = slices.Compact(w.Last); len(w.Last) > 0 || len(br.Rest) == 0 {
			r.Ways = append(r.Ways, w)
		}
	}
	return p, r
}

// sessionSteer counts as package unfray does: what is replayed is free.
type sessionSteer struct{ s *heal.Session }

func (s *sessionSteer) Mask() vocab.Mask { return s.s.Mask() }

func (s *sessionSteer) Accept(id vocab.ID) backend.Verdict {
	if s.s.Done() {
		return backend.Verdict{}
	}
	r, err := s.s.Accept(id)
	return backend.Verdict{Uncounted: !r.Straddles, Stop: err != nil}
}

// oracle drives the server itself, token by token: of those that the session's
// mask allows, the one with the largest log-probability.
type oracle struct {
	t    *testing.T
	b    *LlamaCpp
	url  string
	gaps []float64 // at each token, by how much the next likeliest is less so
}

func (o *oracle) ask(ids []vocab.ID, probs int) llamaAnswer {
	o.t.Helper()
	body, _ := json.Marshal(map[string]any{"prompt": ids, "n_predict": 1, "temperature": 0, "n_probs": probs, "return_tokens": true, "cache_prompt": true,
		"logit_bias": [][2]int{{int(o.b.engine.(*llamaEngine).letter), 256}}}) // without it there are no probabilities where half a character is next
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post(o.url+"/completion", "application/json", bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	var a llamaAnswer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil || len(a.Probs) == 0 {
		o.t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	return a
}

func (o *oracle) next(ids []vocab.ID, mask vocab.Mask) vocab.ID {
	o.t.Helper()
	for _, probs := range []int{1024, o.b.vocab.Len()} {
		a := o.ask(ids, probs)
		best := vocab.None
		var value float64
		gap := 99.0
		for _, p := range a.Probs[0].Top {
			if mask != nil && !mask.Has(p.ID) {
				continue
			}
			if best != vocab.None {
				gap = value - p.Logprob
				break
			}
			best, value = p.ID, p.Logprob
		}
		if best != vocab.None {
			o.gaps = append(o.gaps, gap)
			return best
		}
	}
	o.t.Fatal("no token of the mask has a log-probability")
	return vocab.None
}

// run generates until n tokens count or an end.
func (o *oracle) run(p *heal.Plan, n int) (got []vocab.ID) {
	o.gaps = nil
	session := p.NewSession()
	ids := slices.Clone(p.Prompt)
	for n > 0 {
		id := o.next(ids, session.Mask())
		if o.b.vocab.IsEOG(id) {
			break
		}
		done := session.Done()
		r, err := session.Accept(id)
		if err != nil {
			o.t.Fatal(err)
		}
		if done || r.Straddles {
			n--
		}
		ids, got = append(ids, id), append(got, id)
	}
	return got
}

// counting counts what is sent.
type counting struct {
	http.RoundTripper
	generations, grammars, tokens, biases int
	last                                  string
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/completion" {
		body, _ := r.GetBody()
		text, _ := io.ReadAll(body)
		c.generations++
		c.last = string(text)
		if strings.Contains(c.last, `"grammar"`) {
			c.grammars++
		}
		if strings.Contains(c.last, `"grammar":"root ::= (`) {
			c.tokens++
		}
		if strings.Contains(c.last, `"logit_bias"`) {
			c.biases++
		}
	}
	return c.RoundTripper.RoundTrip(r)
}

// One request with the replay stated in it gives the tokens that stepping under
// the masks gives, always.
func TestConformanceLlamaCppEqualsSteps(t *testing.T) {
	// With one slot a request that follows another finds the same cache as the
	// oracle's: else the arithmetic differs, and with it what is nearly as likely.
	s := servertest.Llama(t, servertest.LlamaOptions{Threads: 1, Slots: 1})
	count := &counting{RoundTripper: http.DefaultTransport}
	tok, err := tokenizer.Open(s.Model)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenLlamaCpp(t.Context(), Options{Base: s.Endpoint(t), Tokenizer: tok, Transport: count})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const n = 4
	o := &oracle{t: t, b: b, url: s.URL}
	healed, requests, differ := 0, 0, 0
	*count = counting{RoundTripper: count.RoundTripper}
	var one, steps time.Duration
	for _, text := range cutTexts(t) {
		p, r := planned(b, text, heal.Stable)
		if r == nil {
			continue
		}
		healed++
		// Both evaluate the prompt's last token alone then: the same arithmetic.
		o.ask(p.Prompt, 1)
		began := time.Now()
		st, err := b.Generate(t.Context(), &backend.Request{Prompt: p.Prompt, Replay: r, Steer: &sessionSteer{p.NewSession()}, MaxTokens: n})
		if err != nil {
			t.Errorf("%q: %v (%.300s)", text[max(0, len(text)-20):], err, count.last)
			continue
		}
		var got []vocab.ID
		for {
			tok, err := st.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v (%.300s)", text[max(0, len(text)-20):], err, count.last)
			}
			got = append(got, tok.ID)
		}
		st.Close()
		requests += st.End().Requests
		one += time.Since(began)
		began = time.Now()
		want := o.run(p, n)
		steps += time.Since(began)
		if n := vocab.CommonPrefix(got, want); n < len(got) || n < len(want) {
			differ++
			t.Errorf("%q, pending %q, %d ways: %v, by steps %v (at %d; gaps %.3f; %d requests)", text[max(0, len(text)-20):], p.Pending, len(r.Ways), got, want, n, o.gaps, st.End().Requests)
		}
	}
	t.Logf("%d healed cuts, %.2f requests each (%d by token literals, %d with any grammar, %d by bias), %d differ; %v each, by steps %v",
		healed, float64(requests)/float64(healed), count.tokens, count.grammars, count.biases, differ, one/time.Duration(healed), steps/time.Duration(healed))
	if healed < 60 {
		t.Errorf("only %d cuts were healed", healed)
	}
}
