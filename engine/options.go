package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrNotLinked is returned by [Open] in builds without the llama tag.
var ErrNotLinked = errors.New("engine: this build of unfray does not contain the embedded engine; build it with `make build` or `go build -tags llama ./cmd/unfray`")

// Options configure an [Engine]. Every field but ModelPath and LibraryPath may
// be left at its zero value.
type Options struct {
	// ModelPath names a GGUF file. Of a model split into several files it
	// names the first.
	ModelPath string
	// LibraryPath names the folder of llama.cpp's shared libraries: libllama,
	// libggml, libggml-base and the libggml-<backend> modules beside them.
	// They are loaded once a process, so all engines of one use the same folder.
	LibraryPath string

	// Name is shown to clients. Empty: the base name of ModelPath without
	// its extension.
	Name string

	// Device selects what computes: "" is the best that the libraries offer,
	// "cpu" the processor, anything else the name of a backend ("cuda",
	// "vulkan", "metal", …) or of one of its devices ("CUDA1"), whatever the
	// case of its letters.
	Device string
	// GPULayers is how many layers a GPU holds; 0: all.
	GPULayers int
	// Threads is how many native threads compute; 0: one for each physical
	// core, GOMAXPROCS at most. They spin while they wait for each other, so
	// more threads than free cores slow everything down many times over.
	Threads int

	// ContextTokens is the most tokens that prompt and continuation of one
	// request have together; 0: what the model was trained for, 4096 at most.
	ContextTokens int
	// CacheTokens is how many tokens the sequences hold together, those kept
	// for reuse included; 0: twice ContextTokens. It is never less than
	// ContextTokens or BatchTokens.
	CacheTokens int
	// Parallel is how many requests run at once; 0: 8.
	Parallel int
	// QueueLimit is how many more requests may wait; 0: 64, negative: none.
	QueueLimit int
	// BatchTokens is the most tokens in one decode step, which bounds how long
	// a long prompt holds up the other requests and how late cancellation
	// takes effect; 0: 48 on the processor, where larger batches are no
	// faster a token, 512 on a GPU. It is never less than Parallel.
	BatchTokens int
}

const (
	defaultContextTokens = 4096
	defaultParallel      = 8
	defaultQueueLimit    = 64
	defaultBatchGPU      = 512

	// defaultBatchCPU stays below 64, where llama.cpp's attention changes to
	// another kernel and the same prompt to slightly different logits,
	// depending on how much of it was cached.
	defaultBatchCPU = 48

	// maxParallel is llama.cpp's LLAMA_MAX_SEQ; a larger context aborts.
	maxParallel = 256
	// maxContextTokens keeps positions and cell numbers within int32 with room
	// for the arithmetic on them.
	maxContextTokens = 1 << 28
	maxBatchTokens   = 1 << 16
	maxThreads       = 512
)

// OptionError says which of the [Options] is out of its range.
type OptionError struct {
	Option string // the name of the field
	Value  int
	Max    int // the largest value possible; the smallest is 0
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("engine: %s is %d; give a number from 0 to %d", e.Option, e.Value, e.Max)
}

// validate checks what can be told without the model.
func (o *Options) validate() error {
	if o.ModelPath == "" {
		return errors.New("engine: no model given; name a GGUF file (--model PATH)")
	}
	if o.LibraryPath == "" {
		return errors.New("engine: no folder of llama.cpp libraries given; `make deps` fetches one, or set UNFRAY_LLAMA_LIB to a folder that holds libllama and libggml")
	}
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"GPULayers", o.GPULayers, 1 << 20},
		{"Threads", o.Threads, maxThreads},
		{"ContextTokens", o.ContextTokens, maxContextTokens},
		{"CacheTokens", o.CacheTokens, maxContextTokens},
		{"Parallel", o.Parallel, maxParallel},
		{"BatchTokens", o.BatchTokens, maxBatchTokens},
	} {
		if f.value < 0 || f.value > f.max {
			return &OptionError{Option: f.name, Value: f.value, Max: f.max}
		}
	}
	return nil
}

// limits are the sizes an engine works with, all settled.
type limits struct {
	context   int // tokens a request
	cells     int // tokens of all sequences together
	sequences int // requests at once
	queue     int // requests waiting
	batch     int // tokens a decode step
	outputs   int // rows of logits a decode step
	vocab     int // token IDs
}

// extraOutputs is how many rows of logits a step may have beyond one for each
// sequence. They serve [Engine.Logits]; the native side keeps a buffer for them.
const extraOutputs = 32

// limits settles the sizes for a model that was trained for trained tokens.
func (o *Options) limits(trained, vocabSize int, gpu bool) limits {
	l := limits{context: o.ContextTokens, cells: o.CacheTokens, sequences: o.Parallel, queue: o.QueueLimit, batch: o.BatchTokens, vocab: vocabSize}
	if l.context == 0 {
		l.context = defaultContextTokens
		if trained > 0 {
			l.context = min(l.context, trained)
		}
	}
	if l.cells == 0 {
		l.cells = 2 * l.context
	}
	if l.sequences == 0 {
		l.sequences = defaultParallel
	}
	switch {
	case l.queue == 0:
		l.queue = defaultQueueLimit
	case l.queue < 0:
		l.queue = 0
	}
	switch {
	case l.batch > 0:
	case gpu:
		l.batch = defaultBatchGPU
	default:
		l.batch = defaultBatchCPU
	}
	l.batch = max(l.batch, l.sequences)
	l.cells = max(l.cells, l.context, l.batch) // a batch never exceeds the native context
	l.outputs = min(l.batch, l.sequences+extraOutputs)
	return l
}

// name is what clients call the model.
func (o *Options) name() string {
	if o.Name != "" {
		return o.Name
	}
	base := filepath.Base(o.ModelPath)
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".gguf") {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}
