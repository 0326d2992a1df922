package gateway

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/unfray/unfray"
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
	err := g.relay(x, func(q *request) {
		req, err := wire.DecodeInfill(q.body)
		if q.err = err; err == nil {
			q.model, q.unread, q.whole = req.Model, req.Ignored, g.lacksNative(req.Model)
			q.job = func(m *model, fields map[string]json.RawMessage) (*job, error) {
				if q.whole {
					fields = nil
				}
				return g.infillJob(x, m, req, fields)
			}
		}
	})
	if none := new(fim.NoFIMError); errors.As(err, &none) {
		return &apiError{status: http.StatusNotImplemented, kind: "not_supported_error", message: none.Error(), cause: err}
	}
	return err
}

// infillJob checks a request to fill in the middle. What it leaves out has
// llama.cpp's defaults.
func (g *Gateway) infillJob(x *exchange, m *model, req *wire.InfillRequest, fields map[string]json.RawMessage) (*job, error) {
	if fields == nil {
		showIgnored(x, req.Ignored)
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
	s, warm := warmUp(req.Sampling)
	r, err := m.nativeSampling(&s)
	if err != nil {
		return nil, err
	}
	r.Fields = fields
	r.Fill = &unfray.Fill{Suffix: []byte(*req.Suffix), Repo: infillRepo, Name: infillFile}
	for _, f := range req.Extra {
		if f.Filename == "" {
			f.Filename = infillExtra
		}
		r.Fill.Files = append(r.Fill.Files, fim.File{Name: f.Filename, Text: []byte(f.Text)})
	}
	j := &job{id: rand.Text(), created: time.Now(), model: m, n: n, stream: req.Stream, noDone: true, d: &nativeDialect{warm: warm, indent: indentation(fields)}}
	if r.Heal, j.healAsked, err = m.healMode(x, &req.Unfray, m.Heal); err != nil {
		return nil, err
	}
	// The prompt is the end of the prefix, tokenized with it.
	prompt := unfray.Prompt{Text: []byte(*req.Prefix + req.Prompt)}
	return j, j.prepare(r, []unfray.Prompt{prompt}, s.Seed)
}
