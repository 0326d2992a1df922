package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/internal/gguf"
)

// llama.cpp refuses most of what is wrong in a model file, but some of it it
// asserts, which ends the process. The checks here come first. They are those
// of v0.5.0, and pass over what is absent or of another type: that it refuses.

// Limits of llama.cpp: LLAMA_MAX_LAYERS and LLAMA_MAX_EXPERTS.
const (
	maxBlocks  = 512
	maxExperts = 512
)

// ropeScalings are the values of rope.scaling.type that llama.cpp knows.
var ropeScalings = []string{"none", "linear", "yarn", "longrope"}

func checkHyperparameters(meta *gguf.File) error {
	arch := meta.Architecture() + "."
	blocks, err := meta.Uint(arch + "block_count")
	if err == nil && (blocks == 0 || blocks > maxBlocks) {
		return fmt.Errorf("%sblock_count is %d; llama.cpp takes 1 to %d", arch, blocks, maxBlocks)
	}
	if n, nextErr := meta.Uint(arch + "nextn_predict_layers"); err == nil && nextErr == nil && n > blocks {
		return fmt.Errorf("%snextn_predict_layers is %d, more than the %d of block_count", arch, n, blocks)
	}
	if err := checkExperts(meta, arch); err != nil {
		return err
	}
	// A layer without key-value heads has no attention, which other
	// architectures know but this one does not.
	if heads, err := meta.Int32s(arch + "attention.head_count_kv"); err == nil && arch == "llama." && slices.Contains(heads, 0) {
		return fmt.Errorf("%sattention.head_count_kv is 0 in layer %d", arch, slices.Index(heads, 0))
	}
	for _, name := range []string{"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "attention.group_norm_epsilon"} {
		if eps, err := meta.Float(arch + name); err == nil && !(eps >= 0) { // NaN too
			return fmt.Errorf("%s%s is %v; it cannot be below 0", arch, name, eps)
		}
	}
	if s, err := meta.String(arch + "rope.scaling.type"); err == nil && !slices.Contains(ropeScalings, s) {
		return fmt.Errorf("%srope.scaling.type is %q; llama.cpp knows %s", arch, s, strings.Join(ropeScalings, ", "))
	}
	return nil
}

// checkExperts checks the counts of a mixture of experts, each zero if absent.
func checkExperts(meta *gguf.File, arch string) error {
	count, err := meta.Uint(arch + "expert_count")
	used, usedErr := meta.Uint(arch + "expert_used_count")
	for _, err := range []error{err, usedErr} {
		if err != nil && !errors.Is(err, gguf.ErrNoKey) {
			return nil // a list, one number a layer
		}
	}
	if count > maxExperts || used > count || count > 0 && used == 0 {
		return fmt.Errorf("%sexpert_count is %d and expert_used_count %d; llama.cpp takes at most %d, of which at least one and no more than all are used", arch, count, used, maxExperts)
	}
	return nil
}

// checkTokens refuses a vocabulary in which two tokens have the same text. To
// llama.cpp a text ends at a NUL byte, and an empty one is unlike all others.
func checkTokens(meta *gguf.File) error {
	const key = "tokenizer.ggml.tokens"
	tokens, err := meta.Strings(key)
	if err != nil {
		return nil
	}
	first := make(map[string]int, tokens.Len())
	for i := range tokens.Len() {
		text, _, _ := bytes.Cut(tokens.At(i), []byte{0})
		if len(text) == 0 {
			continue
		}
		if j, ok := first[string(text)]; ok {
			return fmt.Errorf("%s: tokens %d and %d are both %.40q", key, j, i, text)
		}
		first[string(text)] = i
	}
	return nil
}

// Types of tensors, by ggml's numbers.
const (
	tensorFloat32 = 0
	tensorInt8    = 24 // and up to
	tensorFloat64 = 28 // int16, int32, int64
)

// checkTensor refuses types that load but that no kernel computes with: the
// first decode would abort. Vectors, norms and biases are float32 in every file
// that llama.cpp's converter writes.
func checkTensor(name string, dims uint64, typ uint32) error {
	vector := dims == 1 || strings.HasSuffix(name, "_norm.weight") || strings.HasSuffix(name, ".bias")
	number := typ >= tensorInt8 && typ <= tensorFloat64 && strings.HasSuffix(name, ".weight")
	if vector && typ != tensorFloat32 || number {
		return fmt.Errorf("tensor %q has type %d, which llama.cpp cannot compute with there", name, typ)
	}
	return nil
}
