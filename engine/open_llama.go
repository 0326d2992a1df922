//go:build llama

package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// Linked says whether this build contains the engine: whether it was built
// with the tag llama.
const Linked = true

// Open loads the libraries, unless that was done before, and a model.
func Open(o Options) (*Engine, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := checkModelFile(o.ModelPath); err != nil {
		return nil, err
	}
	if err := library.load(o.LibraryPath); err != nil {
		return nil, err
	}
	c, err := openContext(&o)
	if err != nil {
		return nil, err
	}
	info := backend.Info{
		Name:         o.name(),
		Description:  llama.ModelDesc(c.model),
		ChatTemplate: llama.ModelChatTemplate(c.model, ""),
	}
	if st, err := os.Stat(o.ModelPath); err == nil {
		info.Created = st.ModTime()
	}
	return newEngine(c, info, c.lim, endTokens(c.model, c.lim.vocab)), nil
}

// nativeLibrary is llama.cpp, which a process can load once.
type nativeLibrary struct {
	mu     sync.Mutex
	folder string // that was loaded, or that failed halfway
	err    error
}

var library nativeLibrary

func (l *nativeLibrary) load(path string) error {
	folder, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == folder {
		return l.err
	}
	if l.folder != "" {
		return fmt.Errorf("engine: this process has loaded the llama.cpp libraries of %s and cannot load those of %s too", l.folder, folder)
	}
	// What can be seen without loading leaves the process free to try again.
	if err := checkLibraries(folder); err != nil {
		return err
	}
	l.folder = folder
	l.err = loadLibraries(folder)
	return l.err
}

// checkLibraries looks for the three libraries that are linked by name.
func checkLibraries(folder string) error {
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		return fmt.Errorf("engine: %s is not a folder of llama.cpp libraries; `make deps` fetches one, or set UNFRAY_LLAMA_LIB", folder)
	}
	for _, name := range []string{"ggml", "ggml-base", "llama"} {
		file := "lib" + name + ".so"
		switch runtime.GOOS {
		case "darwin":
			file = "lib" + name + ".dylib"
		case "windows":
			file = name + ".dll"
		}
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			return fmt.Errorf("engine: %s holds no %s; it must be a folder of llama.cpp libraries, in which a versioned file such as lib%s.v0.5.0.so has a link with the plain name", folder, file, name)
		}
	}
	return nil
}

func loadLibraries(folder string) error {
	if err := llama.Load(folder); err != nil {
		return fmt.Errorf("engine: the llama.cpp libraries of %s do not fit this build, which was made for llama.cpp v0.5.0: %w", folder, err)
	}
	llama.LogSet(llama.LogSilent())
	// A structure of another version would be filled in differently.
	if p := llama.ContextDefaultParams(); p.NCtx != 512 || p.NBatch != 2048 || p.TypeK != llama.GGMLTypeF16 || p.TypeV != llama.GGMLTypeF16 || p.CtxOther != 0 {
		return fmt.Errorf("engine: the llama.cpp libraries of %s have another interface than v0.5.0, for which this build was made", folder)
	}
	llama.BackendInit()
	if err := llama.GGMLBackendLoadAllFromPath(folder); err != nil {
		return fmt.Errorf("engine: the backends in %s: %w", folder, err)
	}
	if llama.GGMLBackendDeviceCount() == 0 {
		return fmt.Errorf("engine: %s holds no backend for this processor; a libggml-cpu library must lie beside libggml", folder)
	}
	return nil
}

// device is what Options.Device stands for.
type device struct {
	gpu  bool
	list []llama.GGMLBackendDevice // ends with zero; nil: llama.cpp's own choice
}

func chooseDevice(name string) (device, error) {
	var names []string
	var found []llama.GGMLBackendDevice
	gpus := false
	for i := range llama.GGMLBackendDeviceCount() {
		d := llama.GGMLBackendDeviceGet(i)
		kind := llama.GGMLBackendDevType(d)
		if kind != llama.GGMLBackendDeviceTypeGPU && kind != llama.GGMLBackendDeviceTypeIGPU {
			continue
		}
		gpus = true
		own := llama.GGMLBackendDeviceName(d)
		family := llama.GGMLBackendRegName(llama.GGMLBackendDeviceBackendReg(d))
		names = append(names, own)
		if strings.EqualFold(name, own) || strings.EqualFold(name, family) || strings.EqualFold(name, "metal") && strings.EqualFold(family, "MTL") {
			found = append(found, d)
		}
	}
	switch {
	case name == "":
		return device{gpu: gpus && llama.SupportsGpuOffload()}, nil
	case strings.EqualFold(name, "cpu"):
		return device{}, nil
	case len(found) > 0:
		return device{gpu: true, list: append(found, 0)}, nil
	case len(names) == 0:
		return device{}, fmt.Errorf("engine: no device %q: the llama.cpp libraries offer the processor only; install a GPU build of them, or choose \"cpu\"", name)
	}
	return device{}, fmt.Errorf("engine: no device %q; there are cpu, %s", name, strings.Join(names, ", "))
}

// openContext loads the model and makes a context for it.
func openContext(o *Options) (_ *nativeContext, err error) {
	dev, err := chooseDevice(o.Device)
	if err != nil {
		return nil, err
	}
	mp := llama.ModelDefaultParams()
	if !dev.gpu {
		mp.SetCPUOnly()
	} else {
		if o.GPULayers > 0 {
			mp.NGpuLayers = int32(o.GPULayers)
		}
		if err := mp.SetDevices(dev.list); err != nil {
			return nil, fmt.Errorf("engine: %w", err)
		}
	}
	c := &nativeContext{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	c.model, err = llama.ModelLoadFromFile(o.ModelPath, mp)
	runtime.KeepAlive(dev.list)
	if err != nil {
		return nil, fmt.Errorf("engine: llama.cpp cannot load %s: it is damaged (its tensors are not what its metadata says, or its end is missing), of an architecture that this llama.cpp does not know, or too large for the memory", o.ModelPath)
	}
	if err := checkModel(c.model, o.ModelPath); err != nil {
		return nil, err
	}
	vocabSize := int(llama.VocabNTokens(llama.ModelGetVocab(c.model)))
	if vocabSize <= 0 {
		return nil, fmt.Errorf("engine: %s has no vocabulary", o.ModelPath)
	}
	c.lim = o.limits(int(llama.ModelNCtxTrain(c.model)), vocabSize, dev.gpu)
	c.window = int(llama.ModelNSWA(c.model))
	return c, c.init(o, dev)
}

// checkModel refuses what does not continue text token by token.
func checkModel(m llama.Model, path string) error {
	arch, _ := llama.ModelMetaValStr(m, "general.architecture")
	causal, ok := llama.ModelMetaValStr(m, arch+".attention.causal")
	switch {
	case llama.ModelHasEncoder(m) || !llama.ModelHasDecoder(m):
		return fmt.Errorf("engine: %s has an encoder (architecture %s); only decoder models continue a text", path, arch)
	case llama.ModelIsDiffusion(m):
		return fmt.Errorf("engine: %s is a diffusion model; only decoder models continue a text", path)
	case ok && causal == "false":
		return fmt.Errorf("engine: %s is an embedding model (architecture %s)", path, arch)
	}
	return nil
}

// endTokens is the set of end-of-generation tokens.
func endTokens(m llama.Model, size int) vocab.Mask {
	v, eog := llama.ModelGetVocab(m), vocab.NewMask(size)
	for id := range vocab.ID(size) {
		if llama.VocabIsEOG(v, llama.Token(id)) {
			eog.Set(id)
		}
	}
	return eog
}

// nativeContext is a llama.cpp context. It implements [decoder].
type nativeContext struct {
	lim    limits
	window int // tokens of the sliding attention window; 0: none

	model    llama.Model
	context  llama.Context
	memory   llama.Memory
	batch    llama.Batch
	hasBatch bool
	seq      [1]llama.SeqId
}

func (c *nativeContext) init(o *Options, dev device) (err error) {
	p := llama.ContextDefaultParams()
	p.NCtx = uint32(c.lim.cells)
	p.NBatch, p.NUbatch = uint32(c.lim.batch), uint32(c.lim.batch)
	p.NSeqMax = uint32(c.lim.sequences)
	p.NOutputsMax, p.NOutputsMaxPerSeq = uint32(c.lim.outputs), 0
	threads := o.Threads
	if threads == 0 {
		threads = min(int(llama.Threads()), runtime.GOMAXPROCS(0))
	}
	p.NThreads, p.NThreadsBatch = int32(threads), int32(threads)
	// One buffer for all sequences: copies share cells, and no sequence keeps
	// cells that another could use.
	p.KVUnified = 1
	// The whole sliding-window cache is kept, so that prefixes can be reused.
	p.SwaFull = 1
	if !dev.gpu {
		p.Offload_kqv, p.OpOffload = 0, 0
	}
	c.context, err = llama.InitFromModel(c.model, p)
	if err != nil {
		return fmt.Errorf("engine: llama.cpp cannot make a context of %d tokens for %d sequences; it may be too large for the memory: lower the context or cache size", c.lim.cells, c.lim.sequences)
	}
	if got := int(llama.NCtx(c.context)); got < c.lim.cells {
		return fmt.Errorf("engine: asked for a context of %d tokens, llama.cpp gave %d", c.lim.cells, got)
	}
	if got := int(llama.NBatch(c.context)); got < c.lim.batch {
		return fmt.Errorf("engine: asked for batches of %d tokens, llama.cpp allows %d", c.lim.batch, got)
	}
	if c.memory, err = llama.GetMemory(c.context); err != nil || c.memory == 0 {
		return errors.New("engine: the model has no memory of earlier tokens; only decoder models continue a text")
	}
	c.batch, c.hasBatch = llama.BatchInit(int32(c.lim.batch), 0, 1), true
	return nil
}

func (c *nativeContext) decode(batch []entry) error {
	c.batch.NTokens = 0
	outputs := 0
	for _, e := range batch {
		if e.id < 0 || int(e.id) >= c.lim.vocab || e.seq < 0 || int(e.seq) >= c.lim.sequences || e.pos < 0 || int(e.pos) >= c.lim.context {
			return fmt.Errorf("%w: token %d at position %d of sequence %d is out of range", backend.ErrEngine, e.id, e.pos, e.seq)
		}
		if e.output {
			outputs++
		}
		c.seq[0] = llama.SeqId(e.seq)
		if err := c.batch.Add(llama.Token(e.id), llama.Pos(e.pos), c.seq[:], e.output); err != nil {
			return fmt.Errorf("%w: %w", backend.ErrEngine, err)
		}
	}
	if outputs > c.lim.outputs {
		return fmt.Errorf("%w: %d rows of logits wanted, %d possible", backend.ErrEngine, outputs, c.lim.outputs)
	}
	code, err := llama.Decode(c.context, c.batch)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", backend.ErrEngine, err)
	case code == 1:
		return fmt.Errorf("%w: llama_decode found no room for %d tokens", backend.ErrEngine, len(batch))
	case code != 0:
		return fmt.Errorf("%w: llama_decode returned %d", backend.ErrEngine, code)
	}
	return nil
}

func (c *nativeContext) row(i int) ([]float32, error) {
	row, err := llama.GetLogitsIth(c.context, int32(i), c.lim.vocab)
	if err != nil || row == nil {
		return nil, fmt.Errorf("%w: no logits after token %d of the batch", backend.ErrEngine, i)
	}
	return row, nil
}

func (c *nativeContext) truncate(seq, n int) bool {
	if n == 0 {
		ok, err := llama.MemorySeqRm(c.memory, llama.SeqId(seq), -1, -1)
		return ok && err == nil
	}
	ok, err := llama.MemorySeqRm(c.memory, llama.SeqId(seq), llama.Pos(n), -1)
	if err != nil || !ok {
		return false
	}
	// The native side must agree on where the sequence ends. With a sliding
	// window it may have given old cells away that the next token needs.
	last, err := llama.MemorySeqPosMax(c.memory, llama.SeqId(seq))
	if err != nil || int(last) != n-1 {
		return false
	}
	first, err := llama.MemorySeqPosMin(c.memory, llama.SeqId(seq))
	return err == nil && (first == 0 || c.window > 0 && int(first) <= n-c.window)
}

func (c *nativeContext) copy(dst, src int) {
	// Only whole sequences: a partial range is an assertion failure on some memories.
	llama.MemorySeqCp(c.memory, llama.SeqId(src), llama.SeqId(dst), -1, -1)
}

func (c *nativeContext) close() {
	if c.hasBatch {
		llama.BatchFree(c.batch)
	}
	if c.context != 0 {
		llama.Free(c.context)
	}
	if c.model != 0 {
		llama.ModelFree(c.model)
	}
	*c = nativeContext{lim: c.lim}
}
