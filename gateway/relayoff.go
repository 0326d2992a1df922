package gateway

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/upstream"
)

// passesUnread reports whether a request goes to the default upstream whatever
// it says, so that it need not be read: nothing is healed unless a request asks
// for it, this one does not, and every name that it may give a model comes to the
// same.
func (g *Gateway) passesUnread(x *exchange, body []byte) bool {
	asked, mends := x.r.Header.Get("X-Unfray-Heal"), x.r.Header.Get("X-Unfray-Recover")
	path := x.r.URL.Path
	if !g.plain || !g.allNative && path != completionsPath && path != chatPath || asked != "" && asked != string(heal.Off) || asked == "" && !g.off || mends != "" && mends != string(RecoverOff) {
		return false
	}
	// A report may be asked for, or another mode.
	return mayUseAll(x) && !bytes.Contains(body, []byte("unfray")) && !escapesLetters(body)
}

// escapesLetters reports whether JSON may spell small letters by their numbers, as
// the name of a field might be.
func escapesLetters(body []byte) bool {
	return bytes.Contains(body, []byte(`\u006`)) || bytes.Contains(body, []byte(`\u007`))
}

// passUnread is for requests of which passesUnread is true.
func (g *Gateway) passUnread(x *exchange, body []byte) error {
	x.ctx = upstream.WithKey(x.ctx, body)
	g.metrics.passedOn(g.models[0].Name)
	return g.proxy(x, g.cfg.Default, body)
}

// isPlain reports whether the only model is one of the default upstream, by its
// own name, and there is nothing to say of a request or to look for in it. off
// says whether it is not healed where a request does not say, native whether the
// upstream speaks llama.cpp's own dialect.
func (g *Gateway) isPlain() (plain, off, native bool) {
	if len(g.models) != 1 || !g.sole() {
		return false, false, false
	}
	m := g.models[0]
	plain = (m.Recovery.Mode == "" || m.Recovery.Mode == RecoverOff) && m.MaxTokens == 0 && m.Timeout <= 0 && m.NoHeal == nil && m.watch == nil && (m.AllowedHeal == nil || slices.Contains(m.AllowedHeal, heal.Off))
	return plain, m.Heal == heal.Off, m.Native
}
