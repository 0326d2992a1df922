// Package gguftest writes GGUF headers for tests.
package gguftest

import (
	"encoding/binary"
	"fmt"

	"github.com/unfray/unfray/internal/gguf"
)

// Pair is a key and its value: a bool, a string, any fixed-size integer or
// float, or a slice of those.
type Pair struct {
	Key   string
	Value any
}

// Build writes a GGUF version 3 file without tensors. It panics on a value of
// a type that GGUF does not have.
func Build(pairs ...Pair) []byte {
	b := []byte("GGUF")
	b = binary.LittleEndian.AppendUint32(b, 3)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(pairs)))
	for _, p := range pairs {
		b = appendString(b, p.Key)
		b = appendValue(b, p.Value)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(appendType(b, gguf.Text), v)
	case []string:
		b = appendList(b, gguf.Text, len(v))
		for _, s := range v {
			b = appendString(b, s)
		}
		return b
	case []int32:
		b = appendList(b, gguf.Int32, len(v))
	case []uint32:
		b = appendList(b, gguf.Uint32, len(v))
	case []float32:
		b = appendList(b, gguf.Float32, len(v))
	case []bool:
		b = appendList(b, gguf.Bool, len(v))
	case []uint8:
		b = appendList(b, gguf.Uint8, len(v))
	default:
		b = appendType(b, scalarType(v))
	}
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

func appendType(b []byte, t gguf.Type) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(t))
}

func appendList(b []byte, elem gguf.Type, n int) []byte {
	b = appendType(appendType(b, gguf.List), elem)
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

func scalarType(v any) gguf.Type {
	switch v.(type) {
	case uint8:
		return gguf.Uint8
	case int8:
		return gguf.Int8
	case uint16:
		return gguf.Uint16
	case int16:
		return gguf.Int16
	case uint32:
		return gguf.Uint32
	case int32:
		return gguf.Int32
	case uint64:
		return gguf.Uint64
	case int64:
		return gguf.Int64
	case float32:
		return gguf.Float32
	case float64:
		return gguf.Float64
	case bool:
		return gguf.Bool
	}
	panic(fmt.Sprintf("gguftest: no GGUF type for %T", v))
}
