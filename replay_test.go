package unfray

import (
	"slices"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// far stands for a model on a server, with the capabilities of one.
type far struct {
	*backendtest.Toy
	can backend.Capabilities
}

func (f *far) Info() backend.Info {
	info := f.Toy.Info()
	info.Capabilities = f.can
	return info
}

func farModel(t *testing.T, can backend.Capabilities) *Model {
	t.Helper()
	tok := tokenizertest.Open(t, backendtest.GGUF(backendtest.VocabularyOptions{}))
	toy := backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab()})
	t.Cleanup(func() { toy.Close() })
	m, err := NewModel(&far{toy, can}, tok)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What a server does by itself depends on what it would cost.
func TestModeOnServers(t *testing.T) {
	all := backend.Capabilities{Replay: true, Choose: true, ChoosePlain: true}
	for _, tc := range []struct {
		name        string
		can         backend.Capabilities
		asked       heal.Mode
		temperature float64
		bias        map[vocab.ID]float64
		want        heal.Mode
		note        string
	}{
		{"auto, greedy", all, heal.Auto, 0, nil, heal.Exact, ""},
		{"auto, drawn", all, heal.Auto, 0.1, nil, heal.Stable, ""},
		{"exact, drawn", all, heal.Exact, 0.8, nil, heal.Exact, ""},
		{"exact, hot", all, heal.Exact, 1.5, nil, heal.Stable, heal.CodeExactUnavailable},
		{"exact, biased", all, heal.Exact, 0, map[vocab.ID]float64{1: 2}, heal.Stable, heal.CodeExactUnavailable},
		{"auto, biased", all, heal.Auto, 0, map[vocab.ID]float64{1: 2}, heal.Stable, ""},
		{"last", all, heal.Last, 0, nil, heal.Last, ""},
		{"no rows", backend.Capabilities{Replay: true}, heal.Exact, 0, nil, heal.Stable, heal.CodeExactUnavailable},
		{"nothing", backend.Capabilities{}, heal.Auto, 0, nil, heal.Off, heal.CodeMaskUnavailable},
	} {
		m := farModel(t, tc.can)
		p, err := m.Prepare(&Request{
			Prompt: Prompt{Text: []byte("The capital of France is Pa")}, Heal: tc.asked,
			Sampling: backend.Sampling{Temperature: tc.temperature, LogitBias: tc.bias},
		})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		note := ""
		if len(p.Notes()) > 0 {
			note = p.Notes()[0].Code
		}
		if p.Mode() != tc.want || note != tc.note {
			t.Errorf("%s: %s with note %q, want %s with %q", tc.name, p.Mode(), note, tc.want, tc.note)
		}
	}
}

// The replay as data allows what the masks allow, at every step.
func TestReplayIsTheMasks(t *testing.T) {
	tok := tokenizertest.Open(t, backendtest.GGUF(backendtest.VocabularyOptions{}))
	for _, text := range []string{"The capital of France is Pa", "import num", "x = [1, 2", "a", "caf\xc3", "one two  ", "don'"} {
		for _, mode := range []heal.Mode{heal.Stable, heal.Last} {
			plan := heal.New(tok, tok.Encode(nil, []byte(text)), mode)
			r := newReplay(plan, tok)
			if (r == nil) != (len(plan.Pending) == 0) {
				t.Fatalf("%q: replay %v, pending %q", text, r, plan.Pending)
			}
			if r != nil {
				compareReplay(t, tok, plan, r, nil)
			}
		}
	}
}

// compareReplay follows all paths of at most three tokens, the first few of each
// mask.
func compareReplay(t *testing.T, tok *tokenizer.Tokenizer, plan *heal.Plan, r *backend.Replay, path []vocab.ID) {
	t.Helper()
	s := plan.NewSession()
	for _, id := range path {
		if _, err := s.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	mask := s.Mask()
	if mask == nil || len(path) == 3 {
		return
	}
	got := replayNext(tok.Vocab(), r, path)
	want := slices.Collect(mask.All())
	if !slices.Equal(got, want) {
		t.Fatalf("pending %q after %v: the replay allows %v, the mask %v", plan.Pending, path, got, want)
	}
	for i, id := range want {
		if i < 4 {
			compareReplay(t, tok, plan, r, append(slices.Clone(path), id))
		}
	}
}

// replayNext lists the tokens that may follow path by the definition of a
// replay, ascending.
func replayNext(v *vocab.Vocab, r *backend.Replay, path []vocab.ID) (ids []vocab.ID) {
	if len(r.Ways) == 0 {
		var done []byte
		for _, id := range path {
			done = append(done, v.Bytes(id)...)
		}
		rest := string(r.Pending[len(done):])
		for id := range vocab.ID(v.Len()) {
			b := string(v.Bytes(id))
			if n := min(len(b), len(rest)); v.IsText(id) && n > 0 && b[:n] == rest[:n] && !v.IsEOG(id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for _, w := range r.Ways {
		switch {
		case len(w.Path) < len(path) || !slices.Equal(w.Path[:len(path)], path):
		case len(w.Path) > len(path):
			ids = append(ids, w.Path[len(path)])
		default:
			ids = append(ids, w.Last...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
