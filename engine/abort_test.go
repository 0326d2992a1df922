package engine

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/gguf/gguftest"
)

// What llama.cpp v0.5.0 was seen to abort at, and the neighbours that it takes
// or refuses by itself.
func TestCheckModelFileAborts(t *testing.T) {
	const epsilon, tokens = "attention.layer_norm_rms_epsilon", "tokenizer.ggml.tokens"
	head := func(keyValues ...any) []byte {
		var pairs []gguftest.Pair
		for kv := range slices.Chunk(keyValues, 2) {
			pairs = append(pairs, gguftest.Pair{Key: "llama." + kv[0].(string), Value: kv[1]})
		}
		return metadata(0, pairs...)
	}
	tensor := func(name string, sizes []uint64, typ uint32) []byte {
		return append(appendTensor(metadata(1), name, sizes, typ, 0), make([]byte, 128)...)
	}
	unaligned := gguftest.Build(gguftest.Pair{Key: "general.alignment", Value: uint32(1)})
	unaligned[8] = 1 // tensors
	unaligned = append(appendTensor(unaligned, "output.weight", []uint64{16, 2}, tensorFloat32, 0), make([]byte, 128)...)
	for _, c := range []struct {
		name    string
		content []byte
		want    string // in the error; empty: none
	}{
		{"one block", head("block_count", uint32(1)), ""},
		{"most blocks", head("block_count", uint32(512)), ""},
		{"no block", head("block_count", uint32(0)), "llama.block_count is 0"},
		{"too many blocks", head("block_count", uint32(513)), "llama.block_count is 513"},
		{"blocks of another type", head("block_count", "many"), ""},
		{"all blocks predict ahead", head("block_count", uint32(2), "nextn_predict_layers", uint32(2)), ""},
		{"more blocks predict ahead", head("block_count", uint32(2), "nextn_predict_layers", uint32(3)), "llama.nextn_predict_layers is 3"},
		{"zero epsilon", head(epsilon, float32(0)), ""},
		{"negative epsilon", head(epsilon, float32(-1)), epsilon + " is -1"},
		{"epsilon not a number", head(epsilon, float32(math.NaN())), epsilon + " is NaN"},
		{"rope scaling", head("rope.scaling.type", "yarn"), ""},
		{"unknown rope scaling", head("rope.scaling.type", "bogus"), `type is "bogus"`},
		{"experts", head("expert_count", uint32(4), "expert_used_count", uint32(4)), ""},
		{"no experts", head("expert_count", uint32(0), "expert_used_count", uint32(0)), ""},
		{"no expert used", head("expert_count", uint32(4)), "expert_used_count 0"},
		{"more experts used", head("expert_count", uint32(4), "expert_used_count", uint32(5)), "expert_used_count 5"},
		{"experts used of none", head("expert_used_count", uint32(5)), "expert_count is 0"},
		{"too many experts", head("expert_count", uint32(513), "expert_used_count", uint32(1)), "expert_count is 513"},
		{"experts by layer", head("expert_count", uint32(4), "expert_used_count", []int32{1, 2}), ""},
		{"heads by layer", head("attention.head_count_kv", []int32{3, 3}), ""},
		{"a layer without heads", head("attention.head_count_kv", []int32{3, 0}), "head_count_kv is 0 in layer 1"},
		{"tokens", metadata(0, gguftest.Pair{Key: tokens, Value: []string{"a", "", "b", ""}}), ""},
		{"equal tokens", metadata(0, gguftest.Pair{Key: tokens, Value: []string{"a", "b", "a"}}), `tokens 0 and 2 are both "a"`},
		{"equal up to NUL", metadata(0, gguftest.Pair{Key: tokens, Value: []string{"a\x00b", "a"}}), "tokens 0 and 1"},
		{"data on no multiple of 32", unaligned, "general.alignment is 1"},
		{"norm in float32", tensor("output_norm.weight", []uint64{32}, 0), ""},
		{"norm in float16", tensor("output_norm.weight", []uint64{32}, 1), `tensor "output_norm.weight" has type 1`},
		{"norm of heads in bfloat16", tensor("blk.0.attn_q_norm.weight", []uint64{16, 2}, 30), "has type 30"},
		{"bias in int32", tensor("blk.0.attn_q.bias", []uint64{32}, 26), "has type 26"},
		{"matrix in float16", tensor("output.weight", []uint64{16, 2}, 1), ""},
		{"matrix in int32", tensor("output.weight", []uint64{16, 2}, 26), "has type 26"},
		{"table of integers", tensor("blk.0.table", []uint64{16, 2}, 26), ""},
		{"long name", tensor(strings.Repeat("n", 300)+"_norm.weight", []uint64{16, 2}, 1), ""},
	} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, c.content, 0o644); err != nil {
			t.Fatal(err)
		}
		err := checkModelFile(path)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
