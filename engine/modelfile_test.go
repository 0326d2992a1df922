package engine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/gguf/gguftest"
)

// modelFile is a GGUF file with every kind of metadata value and tensors of
// 32 float32 at the given offsets, followed by data bytes of data.
func modelFile(offsets []uint64, data int) []byte {
	b := metadata(uint64(len(offsets)))
	for i, off := range offsets {
		b = appendTensor(b, "blk."+string(rune('a'+i)), []uint64{16, 2}, tensorFloat32, off)
	}
	for len(b)%64 != 0 {
		b = append(b, 0)
	}
	return append(b, make([]byte, data)...)
}

// metadata is the head of a GGUF file, up to its table of tensors.
func metadata(tensors uint64, more ...gguftest.Pair) []byte {
	b := gguftest.Build(append([]gguftest.Pair{
		{Key: "general.architecture", Value: "llama"},
		{Key: "a.words", Value: []string{"one", "", "three"}},
		{Key: "a.scores", Value: []float32{1, 2, 3}},
		{Key: "a.bytes", Value: []uint8{1, 2, 3}},
		{Key: "a.flag", Value: true},
		{Key: "a.small", Value: int16(-3)},
		{Key: "a.large", Value: uint64(1) << 40},
		{Key: "general.alignment", Value: uint32(64)},
	}, more...)...)
	binary.LittleEndian.PutUint64(b[8:], tensors)
	return b
}

func appendTensor(b []byte, name string, sizes []uint64, typ uint32, off uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(sizes)))
	for _, n := range sizes {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, typ)
	return binary.LittleEndian.AppendUint64(b, off)
}

func TestCheckModelFile(t *testing.T) {
	whole := modelFile([]uint64{0, 256, 128}, 384)
	for _, c := range []struct {
		name    string
		content []byte
		want    string // in the error; empty: none
	}{
		{"whole", whole, ""},
		{"no tensors", modelFile(nil, 0), ""},
		{"last tensor not begun", whole[:len(whole)-128], "truncated"},
		{"only the table", whole[:len(whole)-384], "truncated"},
		{"cut inside the table", whole[:len(whole)-384-70], "damaged"},
		{"cut inside the metadata", whole[:60], "cannot be used as a model"},
		{"offset beyond any file", modelFile([]uint64{1<<64 - 1}, 64), "damaged"},
		{"text", []byte("once upon a time there was no model here"), "not a GGUF file"},
		{"empty", nil, "cannot be used as a model"},
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
	if err := checkModelFile(filepath.Join(t.TempDir(), "none.gguf")); err == nil || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("missing file: %v", err)
	}
	if err := checkModelFile(t.TempDir()); err == nil {
		t.Error("a folder is no model")
	}
}

// A damaged table of tensors gives an error or a size, never a panic.
func FuzzLastTensor(f *testing.F) {
	f.Add(string(modelFile([]uint64{0, 128}, 10)))
	f.Add(string(modelFile(nil, 0)))
	f.Add("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00")
	meta, err := gguf.Read(strings.NewReader(string(modelFile(nil, 0))), gguf.Limits{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if end, err := lastTensor(strings.NewReader(file), meta); err != nil && end != 0 {
			t.Errorf("end %d with %v", end, err)
		}
	})
}
