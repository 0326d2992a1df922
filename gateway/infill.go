package gateway

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/fim"
	"github.com/unfray/unfray/internal/wire"
)

// infillRepo is the name of the repository, which llama.cpp's request has no
// field for, and infillFile that of the file to be filled in. Both are those
// that llama.cpp's server gives.
const (
	infillRepo  = "myproject"
	infillFile  = "filename"
	infillExtra = "tmp" // of a file of input_extra without a name
)

// infill serves llama.cpp's POST /infill.
func (g *Gateway) infill(x *exchange) error {
	body, err := g.readBody(x)
	if err != nil {
		return err
	}
	req, err := wire.DecodeInfill(body)
	if err != nil {
		return err
	}
	showIgnored(x, req.Ignored)
	j, err := g.infillJob(x, req)
	if err != nil {
		if none := new(fim.NoFIMError); errors.As(err, &none) {
			return &apiError{status: http.StatusNotImplemented, kind: "not_supported_error", message: none.Error(), cause: err}
		}
		return err
	}
	return g.run(x, j)
}

// infillJob checks a request to fill in the middle. What it leaves out has
// llama.cpp's defaults.
func (g *Gateway) infillJob(x *exchange, req *wire.InfillRequest) (*job, error) {
	m, err := g.choose(req.Model)
	if err != nil {
		return nil, err
	}
	switch {
	case req.Prefix == nil:
		return nil, badRequest("input_prefix", "input_prefix is missing: give the text before the cursor, which may be empty")
	case req.Suffix == nil:
		return nil, badRequest("input_suffix", "input_suffix is missing: give the text after the cursor, which may be empty")
	}
	n := or(req.N, 1)
	if err := g.checkChoices(1, n); err != nil {
		return nil, err
	}
	// No tokens are asked for to have the prompt in the cache.
	warm := req.MaxTokens != nil && *req.MaxTokens == 0
	s := req.Sampling
	if warm {
		s.MaxTokens, s.Stop = new(int), nil
		*s.MaxTokens = 1
	}
	defaultTo(&s.Temperature, 0.8)
	defaultTo(&s.TopK, 40)
	defaultTo(&s.TopP, 0.95)
	defaultTo(&s.MinP, 0.05)
	r, err := m.sampling(&s)
	if err != nil {
		return nil, err
	}
	r.Fill = &unfray.Fill{Suffix: []byte(*req.Suffix), Repo: infillRepo, Name: infillFile}
	for _, f := range req.Extra {
		if f.Filename == "" {
			f.Filename = infillExtra
		}
		r.Fill.Files = append(r.Fill.Files, fim.File{Name: f.Filename, Text: []byte(f.Text)})
	}
	j := &job{id: rand.Text(), created: time.Now(), model: m, n: n, stream: req.Stream, noDone: true, d: &infillDialect{warm: warm}}
	if r.Heal, j.healAsked, err = m.healMode(x, &req.Unfray, m.Heal); err != nil {
		return nil, err
	}
	// The prompt is the end of the prefix, tokenized with it.
	prompt := unfray.Prompt{Text: []byte(*req.Prefix + req.Prompt)}
	return j, j.prepare(r, []unfray.Prompt{prompt}, s.Seed)
}

func defaultTo[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// infillDialect writes the answers of /infill.
type infillDialect struct{ warm bool }

func (d *infillDialect) whole(j *job, results []*unfray.Result) any {
	out := make([]wire.Infill, len(results))
	for i, r := range results {
		out[i] = d.end(j, i, r)
		if !d.warm {
			out[i].Content, out[i].Bytes = validText(r.Text)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

func (d *infillDialect) end(j *job, choice int, r *unfray.Result) wire.Infill {
	a := wire.Infill{
		Index: choice, Tokens: []int32{}, Stop: true, Unfray: j.report(r),
		TokensPredicted: r.Usage.CompletionTokens, TokensEvaluated: r.Usage.PromptTokens,
		InfillEnd: &wire.InfillEnd{
			Model: j.model.Name, HasNewLine: bytes.IndexByte(r.Text, '\n') >= 0,
			StopType: "eos", StoppingWord: r.StopString, TokensCached: r.Usage.CachedTokens,
		},
	}
	switch {
	case d.warm:
		a.TokensPredicted, a.HasNewLine, a.StopType = 0, false, "limit"
	case r.FinishReason == backend.FinishLength:
		a.StopType = "limit"
	case r.StopString != "":
		a.StopType = "word"
	}
	a.Timings = wire.InfillTimings{
		CacheN: r.Usage.CachedTokens, PromptN: r.Usage.PromptTokens - r.Usage.CachedTokens, PredictedN: a.TokensPredicted,
	}
	return a
}

func (d *infillDialect) start(*job, int) (any, []byte) { return nil, nil }

func (d *infillDialect) delta(_ *job, choice int, p part) any {
	if d.warm {
		return wire.Infill{Index: choice, Tokens: []int32{}}
	}
	return wire.Infill{Index: choice, Content: p.text, Bytes: p.exact, Tokens: []int32{}}
}

func (d *infillDialect) finish(j *job, choice int, r *unfray.Result, _ *wire.Unfray) any {
	return d.end(j, choice, r)
}

// usage is not asked for: each choice tells its own.
func (d *infillDialect) usage(*job, *wire.Usage, *wire.Unfray) any { return nil }
