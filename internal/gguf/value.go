package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// value is one value as it stood in the file.
type value struct {
	typ  Type
	elem Type     // of the elements, if typ is List
	n    int      // elements; 1 if typ is not List
	data []byte   // little-endian; strings without their lengths
	ends []uint32 // of the strings in data, if elem is Text
}

// describe says what a value is, for error texts.
func (v value) describe() string {
	if v.typ == List {
		return fmt.Sprintf("array of %d %v", v.n, v.elem)
	}
	return v.typ.String()
}

// ErrNoKey is the cause of a [KeyError] for a key that is not in the file.
var ErrNoKey = errors.New("not in the file")

// KeyError says that a key is missing or has another type than asked for.
type KeyError struct {
	Key   string
	Cause error
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("gguf: key %q: %v", e.Key, e.Cause)
}

func (e *KeyError) Unwrap() error { return e.Cause }

func (f *File) get(key, want string, fits func(value) bool) (value, error) {
	v, ok := f.values[key]
	if !ok {
		return v, &KeyError{key, ErrNoKey}
	}
	if !fits(v) {
		return v, &KeyError{key, fmt.Errorf("it is of type %s, not %s", v.describe(), want)}
	}
	return v, nil
}

// String gives the text of a key, which need not be UTF-8.
func (f *File) String(key string) (string, error) {
	v, err := f.get(key, "string", func(v value) bool { return v.typ == Text })
	if err != nil {
		return "", err
	}
	return string(v.data), nil
}

// Bool gives the truth value of a key.
func (f *File) Bool(key string) (bool, error) {
	v, err := f.get(key, "bool", func(v value) bool { return v.typ == Bool })
	if err != nil {
		return false, err
	}
	return v.data[0] != 0, nil
}

// Float gives the number of a key of type float32 or float64.
func (f *File) Float(key string) (float64, error) {
	v, err := f.get(key, "float", func(v value) bool { return v.typ == Float32 || v.typ == Float64 })
	if err != nil {
		return 0, err
	}
	if v.typ == Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data))), nil
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(v.data)), nil
}

// Int gives the number of a key of any integer type.
func (f *File) Int(key string) (int64, error) {
	v, err := f.get(key, "integer", isInteger)
	if err != nil {
		return 0, err
	}
	u := v.unsigned()
	switch v.typ {
	case Int8:
		return int64(int8(u)), nil
	case Int16:
		return int64(int16(u)), nil
	case Int32:
		return int64(int32(u)), nil
	case Uint64:
		if u > math.MaxInt64 {
			return 0, &KeyError{key, fmt.Errorf("%d is too large", u)}
		}
	}
	return int64(u), nil
}

// Uint gives the number of a key of any integer type that is not negative.
func (f *File) Uint(key string) (uint64, error) {
	v, err := f.get(key, "integer", isInteger)
	if err != nil {
		return 0, err
	}
	switch v.typ {
	case Int8, Int16, Int32, Int64:
		i, err := f.Int(key)
		if err == nil && i < 0 {
			err = &KeyError{key, fmt.Errorf("%d is negative", i)}
		}
		return uint64(i), err
	}
	return v.unsigned(), nil
}

func isInteger(v value) bool {
	switch v.typ {
	case Uint8, Int8, Uint16, Int16, Uint32, Int32, Uint64, Int64:
		return true
	}
	return false
}

// unsigned reads the bytes of an integer, without extending a sign.
func (v value) unsigned() uint64 {
	var u uint64
	for i, b := range v.data {
		u |= uint64(b) << (8 * i)
	}
	return u
}

// Int32s gives the elements of an array of int32 or uint32.
func (f *File) Int32s(key string) ([]int32, error) {
	v, err := f.get(key, "array of int32", func(v value) bool {
		return v.typ == List && (v.elem == Int32 || v.elem == Uint32)
	})
	if err != nil {
		return nil, err
	}
	ints := make([]int32, v.n)
	for i := range ints {
		ints[i] = int32(binary.LittleEndian.Uint32(v.data[4*i:]))
	}
	return ints, nil
}

// Float32s gives the elements of an array of float32.
func (f *File) Float32s(key string) ([]float32, error) {
	v, err := f.get(key, "array of float32", func(v value) bool { return v.typ == List && v.elem == Float32 })
	if err != nil {
		return nil, err
	}
	floats := make([]float32, v.n)
	for i := range floats {
		floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.data[4*i:]))
	}
	return floats, nil
}

// Strings gives the elements of an array of strings.
func (f *File) Strings(key string) (StringArray, error) {
	v, err := f.get(key, "array of string", func(v value) bool { return v.typ == List && v.elem == Text })
	if err != nil {
		return StringArray{}, err
	}
	return StringArray{v.data, v.ends}, nil
}

// StringArray is an array of strings in one block of memory.
type StringArray struct {
	data []byte
	ends []uint32
}

// Len is the number of strings.
func (a StringArray) Len() int { return len(a.ends) }

// At gives the bytes of string i. They must not be modified.
func (a StringArray) At(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = a.ends[i-1]
	}
	end := a.ends[i]
	return a.data[start:end:end]
}
