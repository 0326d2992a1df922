package gateway

import (
	"slices"
	"strings"

	"github.com/unfray/unfray/internal/wire"
)

func (m *model) describe() wire.Model {
	d := wire.Model{ID: m.Name, Object: "model", OwnedBy: "unfray"}
	if m.Model.Model == nil {
		return d
	}
	info := m.Model.Model.Info()
	d.MaxModelLen, d.Description = info.ContextLength, info.Description
	if !info.Created.IsZero() {
		d.Created = info.Created.Unix()
	}
	return d
}

// sole reports whether all models are those of the default upstream, under its
// own names, so that it can tell of them better than the gateway.
func (g *Gateway) sole() bool {
	return g.cfg.Default != nil && !slices.ContainsFunc(g.models, func(m *model) bool {
		return m.Upstream != g.cfg.Default || m.upstreamName() != m.Name || len(m.Aliases) > 0
	})
}

func (g *Gateway) listModels(x *exchange) error {
	if g.sole() && mayUseAll(x) {
		return g.proxy(x, g.cfg.Default, nil)
	}
	list := wire.ModelList{Object: "list", Data: []wire.Model{}}
	for _, m := range g.models {
		if g.mayUse(x, m.Name) == nil {
			list.Data = append(list.Data, m.describe())
		}
	}
	return g.answer(x, list)
}

func (g *Gateway) getModel(x *exchange) error {
	if g.sole() && mayUseAll(x) {
		return g.proxy(x, g.cfg.Default, nil)
	}
	name := strings.TrimPrefix(x.r.URL.Path, "/v1/models/")
	m := g.lookup(name)
	if m == nil || g.mayUse(x, m.Name) != nil {
		return noModel(name)
	}
	return g.answer(x, m.describe())
}
