package main

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"github.com/unfray/unfray/backend/remote"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
)

// admission verifies an endpoint that was lost before IDs go there again: it may
// run another model now. One of several stays out as long as its tokenizer
// differs. With one alone, requests must go there all the same; then its models
// are not healed.
type admission struct {
	alone bool // there is one endpoint

	mu      sync.Mutex
	gateway *gateway.Gateway // nil: nothing is served yet
	models  []admitted
}

// admitted is a model whose prompts are sent as token IDs.
type admitted struct {
	name string
	spec *upstreamSpec
	tok  *tokenizer.Tokenizer
}

func (a *admission) add(m admitted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.models = append(a.models, m)
}

func (a *admission) serve(g *gateway.Gateway) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gateway = g
}

func (a *admission) now() (*gateway.Gateway, []admitted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gateway, a.models
}

var errNotServing = errors.New("nothing is served yet")

// admit is [upstream.Health.Admit].
func (a *admission) admit(ctx context.Context, at *url.URL) error {
	g, models := a.now()
	if g == nil {
		return errNotServing
	}
	for _, m := range models {
		err := m.spec.verifyOne(ctx, at, m.tok)
		switch {
		case err == nil:
			if a.alone {
				g.SetNoHeal(m.name, nil)
			}
		case a.alone && errors.As(err, new(*remote.MismatchError)):
			g.SetNoHeal(m.name, &heal.Note{Code: codeTokenizerMismatch, Text: err.Error()})
		default:
			return err
		}
	}
	return nil
}

// lost is [upstream.Health.Lost].
func (a *admission) lost(*url.URL) {
	g, models := a.now()
	if g == nil || !a.alone {
		return
	}
	for _, m := range models {
		g.SetNoHeal(m.name, &heal.Note{Code: codeServerLost, Text: "the server did not answer; its tokenizer is verified once it does"})
	}
}
