package gateway

import (
	"encoding/json"
	"strconv"

	"github.com/unfray/unfray/internal/wire"
)

// limitFields are the names by which servers know the most tokens of a
// continuation.
var limitFields = []string{"max_tokens", "max_completion_tokens", "n_predict"}

// limitPaths are the paths at which tokens are generated, with the name that the
// limit has there.
var limitPaths = map[string]string{
	completionsPath: "max_tokens", chatPath: "max_tokens",
	"/completion": "n_predict", "/completions": "n_predict", "/infill": "n_predict",
}

// lowestOf is the model whose limit requests to an upstream keep to that do not
// clearly name one of the gateway's models: the one with the lowest limit of those
// that it runs, since a server may know a model by other names, or take any. It is
// nil if there is no limit.
func (g *Gateway) lowestOf(up *Upstream) *model {
	var lowest *model
	for _, m := range g.models {
		if m.Upstream == up && m.MaxTokens > 0 && (lowest == nil || m.MaxTokens < lowest.MaxTokens) {
			lowest = m
		}
	}
	return lowest
}

// limit returns the body of a request that is passed on, with the model's
// limit in it where it does not say how many tokens it asks for. It refuses more
// than the model may give, and what it cannot read.
func (m *model) limit(x *exchange, body []byte) ([]byte, error) {
	path := x.r.URL.Path
	own := limitPaths[path]
	if m == nil || m.MaxTokens == 0 || own == "" {
		return body, nil
	}
	members, err := wire.Members(body)
	if err != nil {
		return nil, err
	}
	said, endless := false, false
	for _, name := range limitFields {
		v := members[name]
		if len(v) == 0 || string(v) == "null" {
			continue
		}
		n, err := strconv.ParseFloat(string(v), 64)
		switch {
		case err != nil && v[0] == '"', v[0] != '-' && (v[0] < '0' || v[0] > '9'):
			return nil, badRequest(name, "%s must be a number: this model gives at most %d tokens", name, m.MaxTokens)
		case name == own && n < 0: // llama.cpp's "as many as there are", whatever the others say
			endless = true
			continue
		case err != nil, n < 0, n > float64(m.MaxTokens):
			return nil, m.tooManyTokens(name)
		}
		said = true
	}
	if said && !endless {
		return body, nil
	}
	most := m.MaxTokens
	if _, given := members[own]; !given {
		if n := m.ownLimit(path); n > 0 && n <= most {
			return body, nil
		}
	}
	return wire.SetMember(body, own, json.RawMessage(strconv.Itoa(most))), nil
}

// ownLimit is the limit of the model's server for requests that do not say; 0:
// none.
func (m *model) ownLimit(path string) int {
	if !m.Native {
		if path == completionsPath {
			return defaultMaxTokens
		}
		return 0
	}
	return m.serverMaxTokens()
}

func (m *model) tooManyTokens(param string) error {
	return badRequest(param, "%s: this model gives at most %d tokens", param, m.MaxTokens)
}
