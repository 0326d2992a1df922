package gateway

import (
	"strings"

	"github.com/unfray/unfray/internal/wire"
)

func (m *model) describe() wire.Model {
	info := m.Model.Model.Info()
	d := wire.Model{
		ID: m.Name, Object: "model", OwnedBy: "unfray",
		MaxModelLen: info.ContextLength, Description: info.Description,
	}
	if !info.Created.IsZero() {
		d.Created = info.Created.Unix()
	}
	return d
}

func (g *Gateway) listModels(x *exchange) error {
	list := wire.ModelList{Object: "list", Data: []wire.Model{}}
	for _, m := range g.models {
		list.Data = append(list.Data, m.describe())
	}
	return g.answer(x, list)
}

func (g *Gateway) getModel(x *exchange) error {
	name := strings.TrimPrefix(x.r.URL.Path, "/v1/models/")
	m := g.lookup(name)
	if m == nil {
		return noModel(name)
	}
	return g.answer(x, m.describe())
}
