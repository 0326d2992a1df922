package engine

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       Options
		trained int
		gpu     bool
		want    limits
	}{
		{"zero value", Options{}, 8192, false, limits{context: 4096, cells: 8192, sequences: 8, queue: 64, batch: 48, outputs: 40, vocab: 100}},
		{"small model", Options{}, 2048, false, limits{context: 2048, cells: 4096, sequences: 8, queue: 64, batch: 48, outputs: 40, vocab: 100}},
		{"training length unknown", Options{}, 0, true, limits{context: 4096, cells: 8192, sequences: 8, queue: 64, batch: 512, outputs: 40, vocab: 100}},
		{"all given", Options{ContextTokens: 100, CacheTokens: 300, Parallel: 2, QueueLimit: 5, BatchTokens: 16}, 8192, true, limits{context: 100, cells: 300, sequences: 2, queue: 5, batch: 16, outputs: 16, vocab: 100}},
		{"cells hold a context", Options{ContextTokens: 100, CacheTokens: 10}, 8192, false, limits{context: 100, cells: 100, sequences: 8, queue: 64, batch: 48, outputs: 40, vocab: 100}},
		{"batch holds every sequence", Options{Parallel: 60, BatchTokens: 1, QueueLimit: -1}, 512, false, limits{context: 512, cells: 1024, sequences: 60, queue: 0, batch: 60, outputs: 60, vocab: 100}},
	} {
		if got := c.o.limits(c.trained, 100, c.gpu); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	ok := Options{ModelPath: "m.gguf", LibraryPath: "lib"}
	if err := ok.validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
	for want, change := range map[string]func(*Options){
		"--model":          func(o *Options) { o.ModelPath = "" },
		"UNFRAY_LLAMA_LIB": func(o *Options) { o.LibraryPath = "" },
		"GPULayers":        func(o *Options) { o.GPULayers = -1 },
		"Threads":          func(o *Options) { o.Threads = 100000 },
		"ContextTokens":    func(o *Options) { o.ContextTokens = math.MaxInt },
		"CacheTokens":      func(o *Options) { o.CacheTokens = -5 },
		"Parallel":         func(o *Options) { o.Parallel = 257 },
		"BatchTokens":      func(o *Options) { o.BatchTokens = math.MinInt },
	} {
		o := ok
		change(&o)
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	wrong := ok
	wrong.Threads = -1
	if err := new(OptionError); !errors.As(wrong.validate(), &err) || *err != (OptionError{Option: "Threads", Value: -1, Max: 512}) {
		t.Errorf("Threads -1: %+v", err)
	}
}

func TestName(t *testing.T) {
	for want, o := range map[string]Options{
		"SmolLM2.Q4_1": {ModelPath: "/models/SmolLM2.Q4_1.gguf"},
		"model.bin":    {ModelPath: "model.bin"},
		"mine":         {ModelPath: "a.gguf", Name: "mine"},
		"UPPER":        {ModelPath: "UPPER.GGUF"},
	} {
		if got := o.name(); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	_, err := Open(Options{})
	if Linked {
		if err == nil || !strings.Contains(err.Error(), "no model given") {
			t.Errorf("Open: %v", err)
		}
		return
	}
	if !errors.Is(err, ErrNotLinked) || !strings.Contains(err.Error(), "-tags llama") {
		t.Errorf("Open: %v", err)
	}
}
