package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// decode reads one JSON value with its numbers as they are written. Of a key that comes twice the last counts.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text behind the value")
	}
	return v, nil
}

// equal compares decoded values. 1.10 is 1.1 and 1e2 is 100, to the last digit.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return a == b
}

func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if hugeExponent(a) || hugeExponent(b) {
		return false
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// hugeExponent says whether a number has too many digits to write them out.
func hugeExponent(n string) bool {
	_, exponent, found := strings.Cut(strings.ToLower(n), "e")
	e, err := strconv.Atoi(exponent)
	return found && (err != nil || e > 5000 || e < -5000)
}
