// Agree asks two gateways for the same healed continuations and compares their
// first bytes: one in front of the embedded engine, one in front of a server that
// runs the same model. Where they differ it asks both for what they give the
// tokens at the first difference, which tells a near tie from a fault.
//
//	unfray serve --listen 127.0.0.1:8080
//	unfray serve --listen 127.0.0.1:8090 --upstream llamacpp=http://127.0.0.1:8081
//	go -C bench run ./agree -tokenizer MODEL.gguf -heal stable -a http://127.0.0.1:8080 -b http://127.0.0.1:8090 CUTS.jsonl.gz
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/unfray/unfray/internal/eval"
	"github.com/unfray/unfray/tokenizer"
)

// settings of a comparison.
type settings struct {
	a, b   string // addresses
	heal   string
	bytes  int // compared
	tokens int // asked for
	cuts   int
	show   bool
	only   string // IDs of cuts, separated by commas; "": all
}

// answer is what matters of a completion.
type answer struct {
	text     string
	requests int // sent to the server
	cached   int // tokens of the prompt
	prompt   int // tokens
	steps    []step
}

// step is a token with its alternatives.
type step struct {
	text    string
	logprob float64
	top     map[string]float64
}

func main() {
	var s settings
	var tok string
	flag.StringVar(&s.a, "a", "http://127.0.0.1:8080", "gateway in front of the embedded engine")
	flag.StringVar(&s.b, "b", "http://127.0.0.1:8090", "gateway in front of a server")
	flag.StringVar(&s.heal, "heal", "stable", "mode")
	flag.StringVar(&tok, "tokenizer", "", "tokenizer of the model")
	flag.IntVar(&s.bytes, "bytes", 15, "bytes of the continuation that are compared")
	flag.IntVar(&s.tokens, "tokens", 16, "tokens that are asked for")
	flag.IntVar(&s.cuts, "cuts", 200, "cuts of each file")
	flag.StringVar(&s.only, "only", "", "IDs of the cuts to ask for, separated by commas (default: all)")
	flag.BoolVar(&s.show, "show", false, "print every difference")
	flag.Parse()
	t, err := tokenizer.Open(tok)
	if err == nil && flag.NArg() == 0 {
		err = fmt.Errorf("no file of cuts is named")
	}
	if err != nil {
		fail(err)
	}
	fmt.Printf("| cuts | healed | equal | differ | requests a completion | cached of the prompt's tokens | largest gap at a difference |\n|---|---|---|---|---|---|---|\n")
	for _, path := range flag.Args() {
		if err := compareFile(path, t, &s); err != nil {
			fail(fmt.Errorf("%s: %w", path, err))
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "agree:", err)
	os.Exit(1)
}

func compareFile(path string, t *tokenizer.Tokenizer, s *settings) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	cuts, _, err := eval.Read(r, t, eval.Options{Lines: s.cuts, PromptBytes: 1500})
	if err != nil {
		return err
	}
	var equal, differ, healed, requests, cached, prompt int
	widest := 0.0
	asked := 0
	for i := range cuts {
		if s.only != "" && !slices.Contains(strings.Split(s.only, ","), cuts[i].ID) {
			continue
		}
		asked++
		a, err := s.ask(s.a, cuts[i].Prompt, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", s.a, err)
		}
		b, err := s.ask(s.b, cuts[i].Prompt, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", s.b, err)
		}
		requests += b.requests
		if b.requests > 0 {
			healed++
			cached, prompt = cached+b.cached, prompt+b.prompt
		}
		if head(a.text, s.bytes) == head(b.text, s.bytes) {
			equal++
			continue
		}
		differ++
		gap, story, err := s.explain(cuts[i].Prompt)
		if err != nil {
			return err
		}
		widest = max(widest, gap)
		if s.show {
			fmt.Fprintf(os.Stderr, "%s: %q, %q: %s\n", cuts[i].ID, head(a.text, s.bytes), head(b.text, s.bytes), story)
		}
	}
	fmt.Printf("| %s | %d | %d of %d (%.1f %%) | %d | %.2f | %.1f %% | %.3f |\n", path, healed, equal, asked,
		100*float64(equal)/float64(max(asked, 1)), differ, float64(requests)/float64(max(healed, 1)), 100*float64(cached)/float64(max(prompt, 1)), widest)
	return nil
}

func head(s string, n int) string { return s[:min(n, len(s))] }

// explain asks both for log-probabilities, and says what each gives the two
// tokens at which they part. gap is the larger of the two distances.
func (s *settings) explain(prompt string) (gap float64, story string, err error) {
	a, err := s.ask(s.a, prompt, 20)
	if err != nil {
		return 0, "", err
	}
	b, err := s.ask(s.b, prompt, 20)
	if err != nil {
		return 0, "", err
	}
	for i := range min(len(a.steps), len(b.steps)) {
		p, q := a.steps[i], b.steps[i]
		if p.text == q.text {
			continue
		}
		gapA := math.Abs(value(p.top, p.text, i == 0) - value(p.top, q.text, i == 0))
		gapB := math.Abs(value(q.top, p.text, i == 0) - value(q.top, q.text, i == 0))
		if math.IsNaN(gapA + gapB) { // both are out of sight
			gapA, gapB = math.Inf(1), math.Inf(1)
		}
		return max(gapA, gapB), fmt.Sprintf("token %d: %q or %q, apart by %.3f here and %.3f there", i, p.text, q.text, gapA, gapB), nil
	}
	return 0, "no difference with log-probabilities asked for", nil
}

// value is the log-probability of a token among the likeliest, negative infinity
// if it is none of them. The first token may begin inside the prompt: its text is
// the part beyond it.
func value(top map[string]float64, text string, first bool) float64 {
	if v, ok := top[text]; ok && !first {
		return v
	}
	best := math.Inf(-1)
	for k, v := range top {
		if k == text || first && strings.HasSuffix(k, text) {
			best = max(best, v)
		}
	}
	return best
}

// ask completes a prompt.
func (s *settings) ask(base, prompt string, logprobs int) (*answer, error) {
	body := map[string]any{"prompt": prompt, "max_tokens": s.tokens, "temperature": 0, "unfray": map[string]string{"heal": s.heal}}
	if logprobs > 0 {
		body["logprobs"] = logprobs
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/completions", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, data)
	}
	return readAnswer(data)
}

func readAnswer(data []byte) (*answer, error) {
	var c struct {
		Choices []struct {
			Text     string `json:"text"`
			Logprobs *struct {
				Tokens   []string             `json:"tokens"`
				Logprobs []float64            `json:"token_logprobs"`
				Top      []map[string]float64 `json:"top_logprobs"`
			} `json:"logprobs"`
		} `json:"choices"`
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
		Unfray struct {
			Healing struct {
				Requests int `json:"upstream_requests"`
			} `json:"healing"`
		} `json:"unfray"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	if len(c.Choices) == 0 {
		return nil, fmt.Errorf("an answer without a choice: %s", data)
	}
	a := &answer{text: c.Choices[0].Text, requests: c.Unfray.Healing.Requests, cached: c.Usage.Details.Cached, prompt: c.Usage.Prompt}
	if l := c.Choices[0].Logprobs; l != nil {
		for i := range l.Tokens {
			st := step{text: l.Tokens[i], logprob: l.Logprobs[i]}
			if i < len(l.Top) {
				st.top = l.Top[i]
			}
			a.steps = append(a.steps, st)
		}
	}
	return a, nil
}
