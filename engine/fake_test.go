package engine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// fakeDecoder is a model whose logits are a function of all tokens before, so
// any confusion of sequences changes what it says. It keeps cells as llama.cpp
// does and reports every call that llama.cpp would abort at.
type fakeDecoder struct {
	t     testing.TB
	lim   limits
	cells map[*fakeCell]bool
	seqs  [][]*fakeCell
	rows  map[int][]float32

	delay     time.Duration // of a decode step
	gate      chan struct{} // a step waits for a value, if not nil
	fail      func(batch []entry) error
	rigid     bool // cannot cut sequences, like recurrent memory
	decodes   atomic.Int64
	closed    atomic.Bool
	evaluated atomic.Int64 // tokens
}

type fakeCell struct {
	id   vocab.ID
	refs int
}

func newFake(t testing.TB, lim limits) *fakeDecoder {
	return &fakeDecoder{t: t, lim: lim, cells: map[*fakeCell]bool{}, seqs: make([][]*fakeCell, lim.sequences)}
}

func (f *fakeDecoder) decode(batch []entry) error {
	if f.closed.Load() {
		f.t.Error("decode after close")
	}
	if f.gate != nil {
		<-f.gate
	}
	if f.delay > 0 {
		time.Sleep(f.delay)
	}
	f.decodes.Add(1)
	f.evaluated.Add(int64(len(batch)))
	f.rows = map[int][]float32{}
	if len(batch) == 0 || len(batch) > f.lim.batch {
		f.t.Errorf("a batch of %d tokens, limit %d", len(batch), f.lim.batch)
	}
	if f.fail != nil {
		if err := f.fail(batch); err != nil {
			// What was done before the failure is unknown: do half.
			batch = batch[:len(batch)/2]
			f.append(batch)
			return err
		}
	}
	f.append(batch)
	if len(f.rows) > f.lim.outputs {
		f.t.Errorf("%d rows of logits, limit %d", len(f.rows), f.lim.outputs)
	}
	return nil
}

func (f *fakeDecoder) append(batch []entry) {
	for i, e := range batch {
		seq := f.seqs[e.seq]
		if int(e.pos) != len(seq) || len(seq) >= f.lim.context {
			f.t.Errorf("token at position %d of a sequence of %d", e.pos, len(seq))
		}
		if e.id < 0 || int(e.id) >= f.lim.vocab {
			f.t.Errorf("token %d", e.id)
		}
		c := &fakeCell{e.id, 1}
		f.cells[c] = true
		f.seqs[e.seq] = append(seq, c)
		if e.output {
			f.rows[i] = fakeLogits(f.ids(int(e.seq)), f.lim.vocab)
		}
	}
	if len(f.cells) > f.lim.cells {
		f.t.Errorf("%d cells of %d", len(f.cells), f.lim.cells)
	}
}

func (f *fakeDecoder) ids(seq int) []vocab.ID {
	var ids []vocab.ID
	for _, c := range f.seqs[seq] {
		ids = append(ids, c.id)
	}
	return ids
}

func (f *fakeDecoder) row(i int) ([]float32, error) {
	row := f.rows[i]
	if row == nil {
		f.t.Errorf("no logits were asked for entry %d", i)
		return nil, fmt.Errorf("no row %d", i)
	}
	return row, nil
}

func (f *fakeDecoder) truncate(seq, n int) bool {
	if n > len(f.seqs[seq]) {
		f.t.Errorf("truncate %d of %d tokens", n, len(f.seqs[seq]))
	}
	if f.rigid && n > 0 {
		return false
	}
	for _, c := range f.seqs[seq][n:] {
		if c.refs--; c.refs == 0 {
			delete(f.cells, c)
		}
	}
	f.seqs[seq] = slices.Clip(f.seqs[seq][:n])
	return true
}

func (f *fakeDecoder) copy(dst, src int) {
	if len(f.seqs[dst]) > 0 || dst == src {
		f.t.Errorf("copy of %d to %d, which has %d tokens", src, dst, len(f.seqs[dst]))
	}
	f.seqs[dst] = slices.Clone(f.seqs[src])
	for _, c := range f.seqs[dst] {
		c.refs++
	}
}

func (f *fakeDecoder) close() {
	if f.closed.Swap(true) {
		f.t.Error("closed twice")
	}
}

// fakeLogits depends on every token and on their order.
func fakeLogits(ids []vocab.ID, size int) []float32 {
	h := uint64(len(ids))
	for _, id := range ids {
		h = (h ^ uint64(id)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	r := rand.New(rand.NewPCG(h, 1))
	row := make([]float32, size)
	for i := range row {
		row[i] = r.Float32() * 8
	}
	return row
}

const (
	fakeVocab = 64
	fakeEOG   = vocab.ID(1)
)

// fakeLimits are small, so that tests run into them.
func fakeLimits(change func(*limits)) limits {
	l := limits{context: 40, cells: 100, sequences: 4, queue: 50, batch: 12, outputs: 8, vocab: fakeVocab}
	if change != nil {
		change(&l)
	}
	return l
}

func openFake(t testing.TB, lim limits, change func(*fakeDecoder)) (*Engine, *fakeDecoder) {
	f := newFake(t, lim)
	if change != nil {
		change(f)
	}
	eog := vocab.NewMask(fakeVocab)
	eog.Set(fakeEOG)
	e := newEngine(f, backend.Info{Name: "fake"}, lim, eog)
	t.Cleanup(func() {
		e.Close()
		if !f.closed.Load() {
			t.Error("the decoder was not closed")
		}
	})
	return e, f
}

// alone computes what a request gives by itself, from the definition.
func alone(req *backend.Request, limit int) ([]vocab.ID, backend.End) {
	ids := slices.Clone(req.Prompt)
	sm := newSampler(req.Sampling)
	end := backend.End{EndToken: vocab.None}
	chosen := chosenAlone(req, sm, limit)
	if chosen != nil {
		ids = ids[:req.Keep]
	}
	first := len(ids)
	for counted := 0; ; {
		var mask vocab.Mask
		var id vocab.ID
		if len(chosen) > 0 {
			id, chosen = chosen[0], chosen[1:]
		} else {
			if req.Steer != nil {
				mask = req.Steer.Mask()
			}
			var err error
			if id, err = sm.sample(fakeLogits(ids, fakeVocab), mask, ids); err != nil {
				panic(err)
			}
		}
		if id == fakeEOG {
			end.Reason, end.EndToken = backend.FinishStop, id
			break
		}
		var v backend.Verdict
		if req.Steer != nil {
			v = req.Steer.Accept(id)
		}
		sm.accept(id)
		ids = append(ids, id)
		if !v.Uncounted {
			counted++
		}
		if v.Stop {
			end.Reason = backend.FinishStop
			break
		}
		if counted == req.MaxTokens && req.MaxTokens > 0 || len(ids) == limit {
			end.Reason = backend.FinishLength
			break
		}
	}
	return ids[first:], end
}

// chosenAlone is what the request's Chooser chooses.
func chosenAlone(req *backend.Request, sm *sampler, limit int) []vocab.ID {
	if req.Choose == nil {
		return nil
	}
	give := func(path []vocab.ID) {
		ids := slices.Concat(req.Prompt[:req.Keep], path)
		row := fakeLogits(ids, fakeVocab)
		sm.adjusted(row, ids, path, func() { req.Choose.Row(path, row) })
	}
	for i := req.Keep; i < len(req.Prompt); i++ {
		give(req.Prompt[req.Keep:i])
	}
	for {
		path, done, err := req.Choose.Next(sm.rng)
		switch {
		case err != nil:
			panic(err)
		case done:
			return path
		case req.Keep+len(path) >= limit:
			return req.Prompt[req.Keep:]
		}
		give(path)
	}
}

// hashChooser asks for rows and chooses as a hash of all rows given so far
// says: a row that is not the right one changes what it does.
type hashChooser struct {
	trunk []vocab.ID
	asks  int // rows still to ask for
	hash  uint64
	known [][]vocab.ID // paths whose rows have come
}

func (c *hashChooser) Row(path []vocab.ID, row []float32) {
	for _, l := range row {
		c.hash = (c.hash ^ uint64(math.Float32bits(l))) * 0x9e3779b97f4a7c15
		c.hash ^= c.hash >> 29
	}
	c.known = append(c.known, slices.Clone(path))
}

func (c *hashChooser) Next(rng *rand.Rand) ([]vocab.ID, bool, error) {
	if rng != nil {
		c.hash ^= rng.Uint64()
	}
	if c.asks == 0 && c.hash%3 == 0 {
		return c.trunk, true, nil
	}
	path := append(slices.Clone(c.known[c.hash/3%uint64(len(c.known))]), vocab.ID(2+c.hash/1000%(fakeVocab-2)))
	for slices.ContainsFunc(c.known, func(k []vocab.ID) bool { return slices.Equal(k, path) }) {
		path[len(path)-1] = 2 + (path[len(path)-1]-1)%(fakeVocab-2)
	}
	c.asks--
	return path, c.asks < 0, nil
}

func drain(s backend.Stream) ([]backend.Token, error) {
	var toks []backend.Token
	for {
		tok, err := s.Next()
		if errors.Is(err, io.EOF) {
			return toks, nil
		}
		if err != nil {
			return toks, err
		}
		toks = append(toks, tok)
	}
}

func generate(t testing.TB, b backend.Backend, req *backend.Request) ([]backend.Token, backend.End) {
	t.Helper()
	s, err := b.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	toks, err := drain(s)
	if err != nil {
		t.Fatal(err)
	}
	return toks, s.End()
}

func idsOf(toks []backend.Token) []vocab.ID {
	ids := make([]vocab.ID, len(toks))
	for i, tok := range toks {
		ids[i] = tok.ID
	}
	return ids
}
