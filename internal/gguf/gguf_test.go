package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/gguf/gguftest"
)

// sample has every type that a model file uses.
func sample() []byte {
	return gguftest.Build(
		gguftest.Pair{Key: "general.architecture", Value: "llama"},
		gguftest.Pair{Key: "u8", Value: uint8(200)},
		gguftest.Pair{Key: "i8", Value: int8(-3)},
		gguftest.Pair{Key: "u16", Value: uint16(60000)},
		gguftest.Pair{Key: "i16", Value: int16(-30000)},
		gguftest.Pair{Key: "u32", Value: uint32(4000000000)},
		gguftest.Pair{Key: "i32", Value: int32(-2000000000)},
		gguftest.Pair{Key: "u64", Value: uint64(math.MaxUint64)},
		gguftest.Pair{Key: "i64", Value: int64(math.MinInt64)},
		gguftest.Pair{Key: "f32", Value: float32(1.5)},
		gguftest.Pair{Key: "f64", Value: float64(-2.25)},
		gguftest.Pair{Key: "yes", Value: true},
		gguftest.Pair{Key: "no", Value: false},
		gguftest.Pair{Key: "empty", Value: ""},
		gguftest.Pair{Key: "tokens", Value: []string{"a", "", "ccc", "\xff\x00"}},
		gguftest.Pair{Key: "none", Value: []string{}},
		gguftest.Pair{Key: "types", Value: []int32{1, -1, 6}},
		gguftest.Pair{Key: "scores", Value: []float32{0, -1.25}},
		gguftest.Pair{Key: "flags", Value: []bool{true, false}},
	)
}

func read(t testing.TB, b []byte) *gguf.File {
	t.Helper()
	f, err := gguf.Read(bytes.NewReader(b), gguf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestValues(t *testing.T) {
	f := read(t, sample())
	// Each row calls an accessor by name, so that one table serves all.
	for _, tc := range []struct {
		method, key string
		want        any
	}{
		{"String", "general.architecture", "llama"},
		{"String", "empty", ""},
		{"Bool", "yes", true},
		{"Bool", "no", false},
		{"Float", "f32", 1.5},
		{"Float", "f64", -2.25},
		{"Int", "u8", int64(200)},
		{"Int", "i8", int64(-3)},
		{"Int", "u16", int64(60000)},
		{"Int", "i16", int64(-30000)},
		{"Int", "u32", int64(4000000000)},
		{"Int", "i32", int64(-2000000000)},
		{"Int", "i64", int64(math.MinInt64)},
		{"Uint", "u8", uint64(200)},
		{"Uint", "u32", uint64(4000000000)},
		{"Uint", "u64", uint64(math.MaxUint64)},
		{"Int32s", "types", []int32{1, -1, 6}},
		{"Float32s", "scores", []float32{0, -1.25}},

		{"String", "u8", `gguf: key "u8": it is of type uint8, not string`},
		{"String", "tokens", `gguf: key "tokens": it is of type array of 4 string, not string`},
		{"String", "absent", `gguf: key "absent": not in the file`},
		{"Bool", "u8", `gguf: key "u8": it is of type uint8, not bool`},
		{"Float", "u8", `gguf: key "u8": it is of type uint8, not float`},
		{"Int", "f32", `gguf: key "f32": it is of type float32, not integer`},
		{"Int", "u64", `gguf: key "u64": 18446744073709551615 is too large`},
		{"Uint", "i8", `gguf: key "i8": -3 is negative`},
		{"Uint", "yes", `gguf: key "yes": it is of type bool, not integer`},
		{"Strings", "types", `gguf: key "types": it is of type array of 3 int32, not array of string`},
		{"Int32s", "scores", `gguf: key "scores": it is of type array of 2 float32, not array of int32`},
		{"Float32s", "types", `gguf: key "types": it is of type array of 3 int32, not array of float32`},
	} {
		out := reflect.ValueOf(f).MethodByName(tc.method).Call([]reflect.Value{reflect.ValueOf(tc.key)})
		got := out[0].Interface()
		if err, _ := out[1].Interface().(error); err != nil {
			got = err.Error()
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s(%q) = %v, want %v", tc.method, tc.key, got, tc.want)
		}
	}
	if f.Version != 3 || f.NTensors != 0 || f.Architecture() != "llama" || len(f.Keys()) != 19 {
		t.Errorf("version %d, %d tensors, architecture %q, %d keys", f.Version, f.NTensors, f.Architecture(), len(f.Keys()))
	}
	if !f.Has("u8") || f.Has("absent") {
		t.Error("Has is wrong")
	}
	if _, err := f.Int("absent"); !errors.Is(err, gguf.ErrNoKey) {
		t.Errorf("Int of an absent key: %v", err)
	}
}

func TestStrings(t *testing.T) {
	f := read(t, sample())
	for key, want := range map[string][]string{"tokens": {"a", "", "ccc", "\xff\x00"}, "none": {}} {
		a, err := f.Strings(key)
		if err != nil || a.Len() != len(want) {
			t.Fatalf("Strings(%q): %d, %v", key, a.Len(), err)
		}
		for i, w := range want {
			if got := string(a.At(i)); got != w {
				t.Errorf("Strings(%q).At(%d) = %q, want %q", key, i, got, w)
			}
		}
	}
}

func TestOneByteAtATime(t *testing.T) {
	f, err := gguf.Read(iotest.OneByteReader(bytes.NewReader(sample())), gguf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f, read(t, sample())) {
		t.Error("differs from a read at once")
	}
}

func TestVersion2(t *testing.T) {
	b := sample()
	b[4] = 2
	if f := read(t, b); f.Version != 2 || f.Architecture() != "llama" {
		t.Errorf("version %d, architecture %q", f.Version, f.Architecture())
	}
}

// TestTruncated cuts the sample at every byte.
func TestTruncated(t *testing.T) {
	b := sample()
	for n := range len(b) {
		_, err := gguf.Read(bytes.NewReader(b[:n]), gguf.Limits{})
		var fe *gguf.FormatError
		if !errors.As(err, &fe) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
		if n >= 4 && (fe.Offset != int64(n) || !errors.Is(err, io.ErrUnexpectedEOF)) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

// raw joins what damaged files are made of: strings as they are, numbers
// little-endian.
func raw(parts ...any) []byte {
	b := []byte("GGUF")
	for _, p := range parts {
		if s, ok := p.(string); ok {
			b = append(b, s...)
			continue
		}
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, p); err != nil {
			panic(err)
		}
	}
	return b
}

func TestDamaged(t *testing.T) {
	const v3 = uint32(3)
	none, one := uint64(0), uint64(1)
	for _, tc := range []struct {
		name   string
		file   []byte
		offset int64
		want   string
	}{
		{"empty", nil, 0, "not a GGUF file: it is empty"},
		{"short", []byte("GG"), 0, `not a GGUF file: begins with "GG", not "GGUF"`},
		{"safetensors", []byte("{\"a\":1}"), 0, `not a GGUF file: begins with "{\"a\"", not "GGUF"`},
		{"version 1", raw(uint32(1), none, none), 4, "GGUF version 1; only 2 and 3 are supported"},
		{"version 0", raw(uint32(0), none, none), 4, "GGUF version 0; only 2 and 3 are supported"},
		{"big-endian", raw(uint32(3<<24), none, none), 4, "a big-endian GGUF file"},
		{"pairs", raw(v3, none, uint64(math.MaxUint64)), 16, "18446744073709551615 key-value pairs: metadata is larger than the limit"},
		{"pairs of little use", raw(v3, none, uint64(1<<16+1)), 16, "65537 key-value pairs: metadata is larger than the limit of 65536"},
		{"pairs missing", raw(v3, none, uint64(1<<10)), 24, "the file ends inside its metadata"},
		{"key length", raw(v3, none, one, uint64(1<<40)), 24, "a key of 1099511627776 bytes; at most 65535"},
		{"type", raw(v3, none, one, one, "k", uint32(13)), 33, `key "k" has unknown type 13`},
		{"string", raw(v3, none, one, one, "k", uint32(8), uint64(math.MaxUint64)), 45, "18446744073709551615 bytes more: metadata is larger than the limit"},
		{"string missing", raw(v3, none, one, one, "k", uint32(8), uint64(200<<20), "abc"), 48, "the file ends inside its metadata"},
		{"bool", raw(v3, none, one, one, "k", uint32(7), uint8(2)), 37, "a bool is 2"},
		{"bools", raw(v3, none, one, one, "k", uint32(9), uint32(7), uint64(2), "\x01\x09"), 50, "a bool is 9"},
		{"nested", raw(v3, none, one, one, "k", uint32(9), uint32(9), one), 37, `key "k" is an array of arrays`},
		{"element type", raw(v3, none, one, one, "k", uint32(9), uint32(99), one), 37, `key "k" is an array of unknown type 99`},
		{"elements", raw(v3, none, one, one, "k", uint32(9), uint32(5), uint64(1<<62)), 37, "4611686018427387904 int32: metadata is larger than the limit"},
		{"elements missing", raw(v3, none, one, one, "k", uint32(9), uint32(5), uint64(1<<24)), 49, "the file ends inside its metadata"},
		{"strings", raw(v3, none, one, one, "k", uint32(9), uint32(8), uint64(1<<61)), 41, "2305843009213693952 strings: metadata is larger than the limit"},
		{"strings missing", raw(v3, none, one, one, "k", uint32(9), uint32(8), uint64(1<<24)), 49, "the file ends inside its metadata"},
		{"twice", raw(v3, none, uint64(2), one, "k", uint32(0), uint8(1), one, "k", uint32(0), uint8(1)), 38, `key "k" is there twice`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := gguf.Read(bytes.NewReader(tc.file), gguf.Limits{})
			var fe *gguf.FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("error %v", err)
			}
			if fe.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q at %d, want %q at %d", err, fe.Offset, tc.want, tc.offset)
			}
		})
	}
}

func TestNotGGUFAndLimitAreCauses(t *testing.T) {
	if _, err := gguf.Read(strings.NewReader("PK\x03\x04"), gguf.Limits{}); !errors.Is(err, gguf.ErrNotGGUF) {
		t.Errorf("another kind of file: %v", err)
	}
	if _, err := gguf.Read(bytes.NewReader(sample()), gguf.Limits{Metadata: 200}); !errors.Is(err, gguf.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	b := sample()
	if _, err := gguf.Read(bytes.NewReader(b), gguf.Limits{Metadata: int64(len(b))}); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
}

func TestReadErrorPassesThrough(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, n := range []int{0, 10, 100} {
		_, err := gguf.Read(io.MultiReader(bytes.NewReader(sample()[:n]), iotest.ErrReader(broken)), gguf.Limits{})
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// TestClaimsCostNothing reads files of a few bytes that claim a lot.
func TestClaimsCostNothing(t *testing.T) {
	for _, b := range [][]byte{
		raw(uint32(3), uint64(0), uint64(1), uint64(1), "k", uint32(8), uint64(200<<20)),
		raw(uint32(3), uint64(0), uint64(1), uint64(1), "k", uint32(9), uint32(5), uint64(50<<20)),
		raw(uint32(3), uint64(0), uint64(1), uint64(1), "k", uint32(9), uint32(8), uint64(30<<20)),
		raw(uint32(3), uint64(0), uint64(200<<20)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := gguf.Read(bytes.NewReader(b), gguf.Limits{}); err == nil {
			t.Error("no error")
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%d bytes allocated for a file of %d", n, len(b))
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.gguf"), filepath.Join(dir, "bad.gguf")
	if err := errors.Join(os.WriteFile(good, sample(), 0o600), os.WriteFile(bad, []byte("<html>"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if f, err := gguf.Open(good); err != nil || f.Architecture() != "llama" {
		t.Errorf("Open: %v", err)
	}
	for path, want := range map[string]string{
		bad:                        bad + `: gguf: at byte 0: not a GGUF file: begins with "<htm", not "GGUF"`,
		filepath.Join(dir, "none"): "no such file",
		dir:                        "is a folder",
	} {
		if _, err := gguf.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s): %v, want %q", path, err, want)
		}
	}
	if _, err := gguf.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// FuzzRead looks for panics and for memory that the input does not pay for.
func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Add(raw(uint32(3), uint64(291), uint64(1), uint64(1), "k", uint32(9), uint32(8), uint64(2), uint64(1), "a", uint64(0)))
	f.Add(raw(uint32(2), uint64(0), uint64(1), uint64(1), "k", uint32(8), uint64(1<<33)))
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := gguf.Read(bytes.NewReader(b), gguf.Limits{Metadata: 1 << 20})
		if err != nil {
			var fe *gguf.FormatError
			if !errors.As(err, &fe) || fe.Offset < 0 || fe.Offset > int64(len(b)) {
				t.Fatalf("error %v for %d bytes", err, len(b))
			}
			return
		}
		for _, key := range file.Keys() {
			if a, err := file.Strings(key); err == nil {
				for i := range a.Len() {
					a.At(i)
				}
			}
			file.String(key)
			file.Int(key)
			file.Uint(key)
			file.Float(key)
			file.Bool(key)
			file.Int32s(key)
			file.Float32s(key)
		}
	})
}
