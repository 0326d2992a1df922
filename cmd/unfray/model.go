package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/engine"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/deps"
	"github.com/unfray/unfray/tokenizer"
)

// modelFlags choose a model and how it is run.
type modelFlags struct {
	path     string
	lib      string
	device   string
	threads  int
	context  int
	parallel int
	queue    int
}

func (m *modelFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&m.path, "model", "m", "", "a .gguf file, run by the embedded engine (default: $"+deps.EnvModel+", else the model of \"make deps\")")
	f.StringVar(&m.lib, "lib", "", "folder of llama.cpp libraries (default: $"+deps.EnvLib+", else that of \"make deps\")")
	f.StringVar(&m.device, "device", "", "what computes: cpu, or a GPU backend of the library such as cuda, vulkan or metal (default: the best there is)")
	f.IntVar(&m.threads, "threads", 0, "CPU threads (default: the machine's cores)")
	f.IntVar(&m.context, "context", 0, "context of one request, in tokens (default: the model's, at most 4096)")
	f.IntVar(&m.parallel, "parallel", 0, "requests that are generated at once (default 8)")
	f.IntVar(&m.queue, "queue", 0, "requests that may wait for a place (default 64; below 0: none)")
}

// engineFlagsOnly refuses flags of the embedded engine beside --upstream, where
// they would do nothing.
func engineFlagsOnly(cmd *cobra.Command) {
	for _, name := range []string{"lib", "device", "threads", "context", "parallel", "queue"} {
		cmd.MarkFlagsMutuallyExclusive("upstream", name)
	}
}

// optionFlags names the flag that sets an option of the engine.
var optionFlags = map[string]string{"Threads": "threads", "ContextTokens": "context", "Parallel": "parallel"}

// open loads the model. The caller closes the returned engine.
func (m *modelFlags) open(ctx context.Context) (*unfray.Model, *engine.Engine, error) {
	path, err := modelPath(m.path)
	if err != nil {
		return nil, nil, err
	}
	t, err := tokenizer.OpenGGUF(path)
	if err != nil {
		return nil, nil, err
	}
	lib := m.lib
	if lib == "" && engine.Linked {
		cache, err := deps.DefaultCache()
		if err != nil {
			return nil, nil, err
		}
		if lib, err = cache.FindLib(); err != nil {
			return nil, nil, err
		}
	}
	e, err := engine.Open(engine.Options{
		ModelPath:     path,
		LibraryPath:   lib,
		Device:        m.device,
		Threads:       m.threads,
		ContextTokens: m.context,
		Parallel:      m.parallel,
		QueueLimit:    m.queue,
	})
	var option *engine.OptionError
	if errors.As(err, &option) {
		return nil, nil, usageError(fmt.Sprintf("--%s %d: give a number from 0 to %d", optionFlags[option.Option], option.Value, option.Max))
	}
	if err != nil {
		return nil, nil, err
	}
	model, err := unfray.NewModel(e, t)
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return model, e, nil
}

// openModel opens the model that the flags choose, in this process or on a server,
// and says how many continuations are worth running at once.
func openModel(cmd *cobra.Command, m *modelFlags, u *upstreamFlags) (model *unfray.Model, parallel int, closer io.Closer, err error) {
	if len(u.addresses) == 0 {
		model, e, err := m.open(cmd.Context())
		if err != nil {
			return nil, 0, nil, err
		}
		return model, e.Stats().Sequences, e, nil
	}
	spec, err := u.spec()
	if err != nil {
		return nil, 0, nil, err
	}
	s := newSetup(discardLog())
	if err := s.addUpstream(cmd.Context(), spec, gateway.Model{}, true); err != nil {
		return nil, 0, nil, errors.Join(err, s.Close())
	}
	if len(s.cfg.Models) == 0 || s.cfg.Models[0].Model == nil {
		return nil, 0, nil, errors.Join(errors.New(strings.Join(s.lines, "; ")), s.Close())
	}
	return s.cfg.Models[0].Model, max(s.slots, 1), s, nil
}

// modelPath is the model to use where the flag does not name one.
func modelPath(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	cache, err := deps.DefaultCache()
	if err != nil {
		return "", err
	}
	return cache.FindModel()
}

// tokenizerFlags choose a tokenizer.
type tokenizerFlags struct {
	path      string
	reference string
}

// references are the values of --reference.
var references = map[string]tokenizer.Reference{
	"file": tokenizer.ByFile, "huggingface": tokenizer.HuggingFace, "llamacpp": tokenizer.LlamaCpp,
}

func (f *tokenizerFlags) add(cmd *cobra.Command) {
	names := slices.Sorted(maps.Keys(references))
	cmd.Flags().StringVar(&f.reference, "reference", "file", "whose IDs count where programs differ about a tokenizer.json or a .gguf (NFC, the order of added tokens): "+strings.Join(names, ", "))
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("reference", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVarP(&f.path, "tokenizer", "t", "", "tokenizer.json, .tiktoken (or NAME=PATH), SentencePiece .model, tekken.json, .gguf, or a folder with one (default: $"+deps.EnvModel+", else the model of \"make deps\")")
}

// open reads the tokenizer. What it does in another way than its file declares
// is said on standard error.
func (f *tokenizerFlags) open(cmd *cobra.Command) (*tokenizer.Tokenizer, error) {
	ref, ok := references[f.reference]
	if !ok {
		return nil, usageError(fmt.Sprintf("--reference %s: choose one of %s", f.reference, strings.Join(slices.Sorted(maps.Keys(references)), ", ")))
	}
	path, err := modelPath(f.path)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.OpenAs(path, ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("-t %s: there is no such file or folder", path)
	case err != nil:
		return nil, err
	}
	for _, n := range t.Notes() {
		fmt.Fprintf(cmd.ErrOrStderr(), "unfray: note: %s: %s\n", path, n.Text)
	}
	return t, nil
}
