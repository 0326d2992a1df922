//go:build llama

package engine

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// nativeOptions names the libraries and SmolLM2-135M-Instruct, or skips. One
// thread does not spin, so tests stay quick beside other work.
func nativeOptions(t testing.TB) Options {
	lib, model := os.Getenv("UNFRAY_TEST_LIB"), os.Getenv("UNFRAY_TEST_MODEL")
	if lib == "" || model == "" {
		t.Skip("set UNFRAY_TEST_LIB to a folder of llama.cpp libraries and UNFRAY_TEST_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	return Options{LibraryPath: lib, ModelPath: model, Threads: 1}
}

func openNative(t testing.TB, change func(*Options)) *Engine {
	t.Helper()
	o := nativeOptions(t)
	if change != nil {
		change(&o)
	}
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// tokenize uses llama.cpp's own tokenizer. The vocabulary is that of a second
// copy of the model, loaded without weights.
func tokenize(t testing.TB, text string) []vocab.ID {
	t.Helper()
	o := nativeOptions(t)
	if err := library.load(o.LibraryPath); err != nil {
		t.Fatal(err)
	}
	m := vocabOnly(o.ModelPath)
	if m == 0 {
		t.Fatal("the vocabulary could not be loaded")
	}
	var ids []vocab.ID
	for _, id := range llama.Tokenize(llama.ModelGetVocab(m), text, false, false) {
		ids = append(ids, vocab.ID(id))
	}
	return ids
}

var vocabOnly = func() func(string) llama.Model {
	var once sync.Once
	var m llama.Model
	return func(path string) llama.Model {
		once.Do(func() {
			p := llama.ModelDefaultParams()
			p.VocabOnly = 1
			m, _ = llama.ModelLoadFromFile(path, p)
		})
		return m
	}
}()

// Facts of the model, seen with other programs: these are the tokens of "The
// capital of France is Par", and " Paris" follows "is".
var (
	parIDs          = []vocab.ID{504, 3575, 282, 4649, 314, 2860}
	paris  vocab.ID = 7042
)

func TestNativeKnownTokens(t *testing.T) {
	if got := tokenize(t, "The capital of France is Par"); !slices.Equal(got, parIDs) {
		t.Fatalf("tokens %v, want %v", got, parIDs)
	}
	e := openNative(t, nil)
	toks, end := generate(t, e, &backend.Request{Prompt: parIDs[:5], MaxTokens: 1})
	if len(toks) != 1 || toks[0].ID != paris || end.Reason != backend.FinishLength {
		t.Errorf("after \"… is\": %v, %+v", toks, end)
	}
	if in := e.Info(); in.VocabSize != 49152 || in.ContextLength != 4096 || !strings.Contains(in.Description, "Q4_1") || !strings.Contains(in.ChatTemplate, "<|im_start|>") {
		t.Errorf("%+v", in)
	}
}

// bareGreedy is the loop that any user of the library would write: one
// sequence, llama.cpp's own greedy sampler.
func bareGreedy(t testing.TB, prompt []vocab.ID, steps int) []vocab.ID {
	t.Helper()
	b := newBare(t, nativeOptions(t))
	defer b.free()
	return b.run(prompt, steps, func(vocab.ID) {})
}

type bare struct {
	t       testing.TB
	model   llama.Model
	context llama.Context
	sampler llama.Sampler
}

func newBare(t testing.TB, o Options) *bare {
	t.Helper()
	if err := library.load(o.LibraryPath); err != nil {
		t.Fatal(err)
	}
	b := &bare{t: t}
	var err error
	mp := llama.ModelDefaultParams()
	mp.SetCPUOnly()
	if b.model, err = llama.ModelLoadFromFile(o.ModelPath, mp); err != nil {
		t.Fatal(err)
	}
	p := llama.ContextDefaultParams()
	p.NCtx = 1024
	if o.Threads > 0 {
		p.NThreads, p.NThreadsBatch = int32(o.Threads), int32(o.Threads)
	}
	if b.context, err = llama.InitFromModel(b.model, p); err != nil {
		t.Fatal(err)
	}
	b.sampler = llama.SamplerInitGreedy()
	return b
}

// run generates until steps tokens or an end-of-generation token, which it
// leaves out, and calls each for every token.
func (b *bare) run(prompt []vocab.ID, steps int, each func(vocab.ID)) (ids []vocab.ID) {
	mem, err := llama.GetMemory(b.context)
	if err != nil {
		b.t.Fatal(err)
	}
	llama.MemoryClear(mem, false)
	next := make([]llama.Token, len(prompt))
	for i, id := range prompt {
		next[i] = llama.Token(id)
	}
	v := llama.ModelGetVocab(b.model)
	for range steps {
		if code, err := llama.Decode(b.context, llama.BatchGetOne(next)); code != 0 || err != nil {
			b.t.Fatal(code, err)
		}
		id := llama.SamplerSample(b.sampler, b.context, -1)
		if llama.VocabIsEOG(v, id) {
			break
		}
		ids = append(ids, vocab.ID(id))
		each(vocab.ID(id))
		next = []llama.Token{id}
	}
	return ids
}

func (b *bare) free() {
	llama.SamplerFree(b.sampler)
	llama.Free(b.context)
	llama.ModelFree(b.model)
}

func TestNativeEqualsBareLoop(t *testing.T) {
	e := openNative(t, nil)
	for _, text := range []string{
		"The capital of France is",
		"func main() {\n\tfmt.Println(\"",
		"Once upon a time, in a land far away,",
	} {
		prompt := tokenize(t, text)
		toks, end := generate(t, e, &backend.Request{Prompt: prompt, MaxTokens: 24})
		if want := bareGreedy(t, prompt, 24); !slices.Equal(idsOf(toks), want) {
			t.Errorf("%q: %v, bare loop %v", text, idsOf(toks), want)
		}
		if end.ForwardPasses < len(toks) {
			t.Errorf("%q: %d forward passes for %d tokens", text, end.ForwardPasses, len(toks))
		}
	}
}

// differ returns the largest difference of two rows.
func differ(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}

// tolerance of logits and log-probabilities computed in batches of different
// shape. A wrong cell in the attention moves them by several units.
const tolerance = 0.5

func TestNativeLogitsAtSeveralPositions(t *testing.T) {
	e := openNative(t, nil)
	rows, err := e.Logits(t.Context(), parIDs, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 5 {
		t.Fatalf("%d rows, want 5", len(rows))
	}
	if st := e.Stats(); st.Decodes != 1 {
		t.Errorf("%d decodes for one prompt", st.Decodes)
	}
	if id, err := argmax(rows[3], nil); err != nil || id != paris {
		t.Errorf("after \"is\" the likeliest is %d, want %d", id, paris)
	}
	worst := 0.0
	for i, row := range rows {
		fresh := openNative(t, nil) // nothing cached
		one, err := fresh.Logits(t.Context(), parIDs[:i+2], i+1)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, differ(row, one[0]))
		a, _ := argmax(row, nil)
		b, _ := argmax(one[0], nil)
		if a != b {
			t.Errorf("position %d: likeliest %d together, %d apart", i+1, a, b)
		}
		fresh.Close()
	}
	t.Logf("largest difference of a logit: %g", worst)
	if worst > tolerance {
		t.Errorf("rows differ by up to %g", worst)
	}
}

func TestNativePrefixReuse(t *testing.T) {
	e := openNative(t, nil)
	text := "Here is a short list of facts about the planet Mars. It is the fourth planet from the Sun. Its two moons are called"
	prompt := tokenize(t, text)
	req := &backend.Request{Prompt: prompt, MaxTokens: 16}
	first, end := generate(t, e, req)
	if end.CachedTokens != 0 {
		t.Errorf("first: %d cached", end.CachedTokens)
	}
	again, end := generate(t, e, req)
	if !slices.Equal(idsOf(first), idsOf(again)) || end.CachedTokens != len(prompt)-2 {
		t.Errorf("again: %v with %d cached, first %v", idsOf(again), end.CachedTokens, idsOf(first))
	}
	// One key more, as an editor sends it; and a copy while the first runs.
	longer := append(slices.Clone(prompt), idsOf(first)[:2]...)
	s, err := e.Generate(t.Context(), &backend.Request{Prompt: longer, MaxTokens: 30})
	if err != nil {
		t.Fatal(err)
	}
	other, end := generate(t, e, &backend.Request{Prompt: longer, MaxTokens: 14})
	if end.CachedTokens != len(longer)-2 {
		t.Errorf("copy: %d cached of %d", end.CachedTokens, len(longer))
	}
	if !slices.Equal(idsOf(other), idsOf(first)[2:]) {
		t.Errorf("copy: %v, want %v", idsOf(other), idsOf(first)[2:])
	}
	toks, err := drain(s)
	if err != nil || !slices.Equal(idsOf(toks)[:14], idsOf(first)[2:]) {
		t.Errorf("original of the copy: %v, %v", idsOf(toks), err)
	}
	if s.End().CachedTokens < len(prompt)-2 {
		t.Errorf("one key more: %d cached", s.End().CachedTokens)
	}
}

// Every token of every parallel request is one that the model, asked alone and
// in one piece, finds likeliest or as good as.
func TestNativeParallelRequests(t *testing.T) {
	e := openNative(t, func(o *Options) { o.QueueLimit = 32 })
	countries := []string{"France", "Italy", "Spain", "Germany", "Japan", "Russia", "Egypt", "Greece"}
	starts := []string{"The capital of ", "Some facts about ", "People who live in ", "A map of "}
	type answer struct {
		prompt []vocab.ID
		tokens []backend.Token
	}
	answers := make([]answer, 32)
	var wg sync.WaitGroup
	for i := range answers {
		prompt := tokenize(t, starts[i/8]+countries[i%8])
		wg.Go(func() {
			toks, _ := generate(t, e, &backend.Request{Prompt: prompt, MaxTokens: 8, Logprobs: true})
			answers[i] = answer{prompt, toks}
		})
	}
	wg.Wait()
	if st := waitIdle(t, e); st.Idle != 8 || st.CellsUsed > st.Cells {
		t.Errorf("%+v", st)
	}
	judge := openNative(t, nil)
	sum, worst, n := 0.0, 0.0, 0
	for i, a := range answers {
		rows, err := judge.Logits(t.Context(), append(slices.Clone(a.prompt), idsOf(a.tokens)...), len(a.prompt)-1)
		if err != nil {
			t.Fatal(err)
		}
		for j, tok := range a.tokens {
			best, _ := argmax(rows[j], nil)
			if short := float64(rows[j][best] - rows[j][tok.ID]); short > tolerance {
				t.Errorf("request %d: token %d is %d, %g below the likeliest", i, j, tok.ID, short)
			}
			logprob, _ := logprobs(rows[j], tok.ID, 0)
			d := math.Abs(tok.Logprob - logprob)
			sum, worst, n = sum+d, max(worst, d), n+1
		}
	}
	t.Logf("log-probabilities in parallel and alone differ by %.3f in the mean of %d, %.3f at most", sum/float64(n), n, worst)
	if worst > tolerance || sum/float64(n) > tolerance/5 {
		t.Error("that is too much for rounding")
	}
}

func TestNativeCancelFreesTheSequence(t *testing.T) {
	e := openNative(t, nil)
	long := slices.Repeat(tokenize(t, "All work and no play makes Jack a dull boy. "), 60)
	for name, read := range map[string]int{"in prefill": 0, "in generation": 2} {
		ctx, cancel := context.WithCancel(t.Context())
		prompt := long
		if read > 0 {
			prompt = long[:20]
		}
		s, err := e.Generate(ctx, &backend.Request{Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		for range read {
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		}
		before := e.Stats().Decodes
		cancel()
		if _, err := s.Next(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Next: %v", name, err)
		}
		st := waitIdle(t, e)
		// The step that was running, and one more if it had just begun.
		if st.Decodes-before > 2 || st.Idle != st.Sequences {
			t.Errorf("%s: %d decodes after cancel, %+v", name, st.Decodes-before, st)
		}
	}
}

func TestNativeRefusals(t *testing.T) {
	e := openNative(t, func(o *Options) { o.ContextTokens, o.Parallel, o.QueueLimit = 64, 1, -1 })
	_, err := e.Generate(t.Context(), &backend.Request{})
	if !errors.Is(err, backend.ErrEmptyPrompt) {
		t.Errorf("empty prompt: %v", err)
	}
	var invalid *backend.InvalidTokenError
	for _, id := range []vocab.ID{-1, 49152, math.MaxInt32, math.MinInt32} {
		if _, err = e.Generate(t.Context(), &backend.Request{Prompt: []vocab.ID{504, id}}); !errors.As(err, &invalid) {
			t.Errorf("token %d: %v", id, err)
		}
	}
	var long *backend.PromptTooLongError
	if _, err = e.Generate(t.Context(), &backend.Request{Prompt: slices.Repeat(parIDs, 20)}); !errors.As(err, &long) {
		t.Errorf("long prompt: %v", err)
	}
	s, err := e.Generate(t.Context(), &backend.Request{Prompt: parIDs})
	if err != nil {
		t.Fatal(err)
	}
	var full *backend.QueueFullError
	if _, err = e.Generate(t.Context(), &backend.Request{Prompt: parIDs}); !errors.As(err, &full) {
		t.Errorf("queue: %v", err)
	}
	s.Close()
	waitIdle(t, e)
	// A prompt of one special token, and the model's every limit at once.
	generate(t, e, &backend.Request{Prompt: []vocab.ID{0}, MaxTokens: 2})
	toks, end := generate(t, e, &backend.Request{Prompt: slices.Repeat(parIDs, 11)[:63]})
	if len(toks) > 1 || end.Reason == "" {
		t.Errorf("one token below the context: %v, %+v", toks, end)
	}
}

func TestNativeOpenErrors(t *testing.T) {
	good := nativeOptions(t)
	model, err := os.ReadFile(good.ModelPath)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"missing model":     {func(o *Options) { o.ModelPath = filepath.Join(dir, "none.gguf") }, "there is no model file"},
		"other file":        {func(o *Options) { o.ModelPath = file("a.gguf", []byte("hello, this is no model")) }, "not a GGUF file"},
		"half a model":      {func(o *Options) { o.ModelPath = file("b.gguf", model[:len(model)/2]) }, "truncated"},
		"last byte missing": {func(o *Options) { o.ModelPath = file("c.gguf", model[:len(model)-1]) }, "its end is missing"},
		"metadata cut":      {func(o *Options) { o.ModelPath = file("d.gguf", model[:100000]) }, "cannot be used as a model"},
		"empty file":        {func(o *Options) { o.ModelPath = file("e.gguf", nil) }, "cannot be used as a model"},
		"no libraries":      {func(o *Options) { o.LibraryPath = dir }, "cannot load those"},
		"no GPU":            {func(o *Options) { o.Device = "cuda" }, "no device \"cuda\""},
	} {
		o := good
		c.change(&o)
		if err := library.load(good.LibraryPath); err != nil {
			t.Fatal(err)
		}
		e, err := Open(o)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want … %s …", name, err, c.want)
		}
	}
	if err := checkLibraries(dir); err == nil || !strings.Contains(err.Error(), "holds no lib") {
		t.Errorf("a folder without libraries: %v", err)
	}
	if err := checkLibraries(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("no folder: %v", err)
	}
}

func TestNativeConformance(t *testing.T) {
	tok, err := tokenizer.OpenGGUF(nativeOptions(t).ModelPath)
	if err != nil {
		t.Fatal(err)
	}
	backendtest.Run(t, backendtest.Suite{
		Vocab:     tok.Vocab(),
		Tolerance: tolerance,
		Prompts: [][]vocab.ID{
			tokenize(t, "The three primary colors are red,"),
			tokenize(t, "import numpy as np\nimport matplotlib.pyplot as"),
		},
		Open: func(t *testing.T) backend.Backend {
			return openNative(t, func(o *Options) { o.ContextTokens, o.Parallel = 128, 4 })
		},
	})
}
