package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/remote"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/tokenizer"
)

// envUpstreamKey holds the API key of the server that --upstream names. A flag
// would show it to everybody who can list processes.
const envUpstreamKey = "UNFRAY_UPSTREAM_KEY"

// Codes of notes on upstreams for which nothing is healed.
const (
	codeNoTokenizer       = "tokenizer_missing"
	codeTokenizerMismatch = "tokenizer_mismatch"
	codeKindPassedOn      = "kind_passed_on"
	codeServerLost        = "server_lost"
)

// healedKinds are the servers whose prompts are healed; requests to those of
// passedKinds are only passed on.
var (
	healedKinds = []string{remote.KindLlamaCpp, remote.KindVLLM}
	passedKinds = []string{"openai", "sglang", "tgi", "ollama", "anthropic"}
)

func upstreamKey() string { return os.Getenv(envUpstreamKey) }

// upstreamFlags choose a server that runs the model.
type upstreamFlags struct {
	addresses []string
	model     string
	tokenizer string
}

func (u *upstreamFlags) add(f *pflag.FlagSet) {
	u.addModel(f)
	f.StringArrayVar(&u.addresses, "upstream", nil, "KIND=URL of a server that runs the model: llamacpp, vllm, or one of "+strings.Join(passedKinds, ", ")+", to which requests are only passed on; again for more servers of the same model. $"+envUpstreamKey+" holds its API key")
}

// addModel adds the flags for the model on the server.
func (u *upstreamFlags) addModel(f *pflag.FlagSet) {
	f.StringVar(&u.model, "upstream-model", "", "the model's name on the server (default: its only one)")
	f.StringVarP(&u.tokenizer, "tokenizer", "t", "", "tokenizer of the server's model: tokenizer.json, .gguf, .model, or a folder (default: that of the file the server says it runs, if it can be read here)")
}

// spec reads the flags.
func (u *upstreamFlags) spec() (*upstreamSpec, error) {
	s := &upstreamSpec{wait: waitToAsk, model: u.model, tokenizer: u.tokenizer, key: upstreamKey()}
	for _, a := range u.addresses {
		kind, address, ok := strings.Cut(a, "=")
		if !ok || !slices.Contains(healedKinds, kind) && !slices.Contains(passedKinds, kind) {
			return nil, usageError(fmt.Sprintf("%s: give KIND=URL, with KIND one of %s, %s", a, strings.Join(healedKinds, ", "), strings.Join(passedKinds, ", ")))
		}
		if s.kind != "" && s.kind != kind {
			return nil, usageError(fmt.Sprintf("--upstream %s: several servers must be of one kind and run one model; use --config for others", a))
		}
		at, err := parseServerURL(kind+"=", address)
		if err != nil {
			return nil, err
		}
		s.kind = kind
		s.pool.Endpoints = append(s.pool.Endpoints, at)
	}
	return s, nil
}

// upstreamSpec is what must be known of a server to use it.
type upstreamSpec struct {
	kind      string
	model     string // its name there
	tokenizer string // path; "": to be found
	key       string
	pool      upstream.Config
	wait      time.Duration // for a server that is not up yet
	tell      func(string)  // that it is waited for; may be nil
}

// How long commands wait for a server that is not up yet.
const (
	waitToServe = 5 * time.Minute // loading a large model
	waitToAsk   = 5 * time.Second
)

// remoteBackend is what the servers of healedKinds have in common.
type remoteBackend interface {
	backend.Backend
	backend.ChatTokenizer
	Inspection() *remote.Inspection
	TokenizerError() error
}

// openedUpstream is a server that answered.
type openedUpstream struct {
	served     gateway.Model      // NoHeal says why there is no Model
	inspection *remote.Inspection // nil for kinds that are passed on
	backend    remoteBackend      // nil likewise
}

// Close frees the backend. The pool goes on.
func (o *openedUpstream) Close() error {
	if o.backend == nil {
		return nil
	}
	return o.backend.Close()
}

// passed is what requests to the server need.
func (s *upstreamSpec) passed(pool *upstream.Pool) *gateway.Upstream {
	return &gateway.Upstream{Transport: pool, Key: s.key}
}

// recovery is r with the way in which servers of this kind go on with a message.
func (s *upstreamSpec) recovery(r gateway.Recovery) gateway.Recovery {
	if r.Continue != gateway.ContinueAuto {
		return r
	}
	switch s.kind {
	case remote.KindLlamaCpp:
		r.Continue = gateway.ContinueLast
	case remote.KindVLLM, "sglang":
		r.Continue = gateway.ContinueFields
	default:
		r.Continue = gateway.ContinueInstruct
	}
	return r
}

// open asks the server what it is and whether it cuts text into the same tokens
// as the tokenizer here. A server that does not is served without healing.
func (s *upstreamSpec) open(ctx context.Context, pool *upstream.Pool) (*openedUpstream, error) {
	// A server that is only passed on to may speak any dialect.
	o := &openedUpstream{served: gateway.Model{Name: s.model, Native: s.kind != remote.KindVLLM}}
	if !slices.Contains(healedKinds, s.kind) {
		o.served.NoHeal = &heal.Note{Code: codeKindPassedOn, Text: "requests to servers of this kind are only passed on"}
		return o, nil
	}
	b, tok, err := s.connect(ctx, pool)
	if err != nil {
		return nil, err
	}
	o.backend, o.inspection = b, b.Inspection()
	o.served.Name = o.inspection.Model
	if tok == nil {
		o.served.NoHeal = &heal.Note{Code: codeNoTokenizer, Text: "the file of the model's tokenizer is not known: name it with --tokenizer"}
		return o, nil
	}
	err = s.verifyAll(ctx, b, tok)
	if err == nil {
		o.served.Model, err = unfray.NewModel(b, tok)
	}
	if err != nil {
		o.served.NoHeal = &heal.Note{Code: codeTokenizerMismatch, Text: err.Error()}
		return o, nil
	}
	o.served.Chat = b
	return o, nil
}

// connect opens the backend with the model's tokenizer, nil if that is not to be
// found.
func (s *upstreamSpec) connect(ctx context.Context, pool *upstream.Pool) (remoteBackend, *tokenizer.Tokenizer, error) {
	opt := remote.Options{Transport: pool, OneServer: len(s.pool.Endpoints) == 1, Key: s.key, Model: s.model}
	b, err := s.await(ctx, opt)
	if err != nil {
		return nil, nil, fmt.Errorf("the %s server at %s: %w", s.kind, s.pool.Endpoints[0].Redacted(), err)
	}
	path := s.tokenizer
	if path == "" {
		if path = findTokenizer(b.Inspection().ModelPath); path == "" {
			return b, nil, nil
		}
	}
	tok, err := tokenizer.OpenAs(path, tokenizerReference(s.kind))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the tokenizer %s: %w", path, err), b.Close())
	}
	if err := b.Close(); err != nil {
		return nil, nil, err
	}
	opt.Tokenizer = tok
	b, err = openRemote(ctx, s.kind, opt)
	return b, tok, err
}

// await opens the backend once the server is up: those that load a model refuse
// connections, or answer 503, for a while.
func (s *upstreamSpec) await(ctx context.Context, o remote.Options) (remoteBackend, error) {
	deadline := time.Now().Add(s.wait)
	for told := false; ; {
		b, err := openRemote(ctx, s.kind, o)
		var answer *backend.UpstreamError
		var trouble *upstream.Error
		starting := errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable ||
			errors.As(err, &trouble) && trouble.Phase == upstream.PhaseConnect
		if !starting || time.Now().After(deadline) {
			return b, err
		}
		if !told && s.tell != nil {
			s.tell(fmt.Sprintf("waiting for the %s server at %s", s.kind, s.pool.Endpoints[0].Redacted()))
			told = true
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tokenizerReference is whose way of reading a tokenizer file counts.
func tokenizerReference(kind string) tokenizer.Reference {
	if kind == remote.KindLlamaCpp {
		return tokenizer.LlamaCpp
	}
	return tokenizer.HuggingFace
}

// findTokenizer returns the file or folder that a server says its model is of, if
// it is here.
func findTokenizer(modelPath string) string {
	if modelPath == "" || !filepath.IsAbs(modelPath) {
		return ""
	}
	if _, err := os.Stat(modelPath); err != nil {
		return ""
	}
	return modelPath
}

// verifyAll asks each server by itself: all of them must run the same model. One
// that does not answer now is not asked.
func (s *upstreamSpec) verifyAll(ctx context.Context, b remoteBackend, tok *tokenizer.Tokenizer) error {
	if err := b.TokenizerError(); err != nil || len(s.pool.Endpoints) == 1 {
		return err
	}
	for _, at := range s.pool.Endpoints {
		if err := s.verifyOne(ctx, at, tok); errors.As(err, new(*remote.MismatchError)) {
			return err
		}
	}
	return nil
}

// verifyOne asks a server by itself.
func (s *upstreamSpec) verifyOne(ctx context.Context, at *url.URL, tok *tokenizer.Tokenizer) error {
	one, err := openRemote(ctx, s.kind, remote.Options{Base: at, Key: s.key, Model: s.model, Tokenizer: tok})
	if err == nil {
		err = errors.Join(one.TokenizerError(), one.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at.Redacted(), err)
	}
	return nil
}

func openRemote(ctx context.Context, kind string, o remote.Options) (remoteBackend, error) {
	if kind == remote.KindVLLM {
		return remote.OpenVLLM(ctx, o)
	}
	return remote.OpenLlamaCpp(ctx, o)
}

// guessKind asks a server which of healedKinds it is.
func guessKind(ctx context.Context, address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return "", usageError(fmt.Sprintf("%s: not the address of a server; it is like http://127.0.0.1:8000", address))
	}
	kind, err := remote.Identify(ctx, remote.Options{Base: at, Key: os.Getenv(envUpstreamKey)})
	var trouble net.Error
	switch {
	case err == nil:
		return kind, nil
	case errors.As(err, &trouble):
		return "", fmt.Errorf("%s: %w; check that the server runs, and the address", address, err)
	}
	return "", fmt.Errorf("%s: %w; check the address, which has no /v1 at its end, or name the kind, as in llamacpp=%s", address, err, address)
}
