//go:build js && wasm && !repaironly

package main

import (
	"bytes"
	"maps"
	"syscall/js"

	"github.com/unfray/unfray/internal/views"
	"github.com/unfray/unfray/tokenizer"
)

var tokenizers opened[*tokenizer.Tokenizer]

func init() {
	maps.Copy(functions, map[string]func(args []js.Value) (any, error){
		"tokenizerOpen": tokenizerOpen,
		"boundary":      analyze,
		"tokenizerFree": tokenizerFree,
	})
}

func tokenizerOpen(args []js.Value) (any, error) {
	t, err := tokenizer.Read(bytes.NewReader(data(args[0])), args[1].String(), tokenizer.ByFile)
	if err != nil {
		return nil, err
	}
	return tokenizers.add(t), nil
}

// analyze reports on a prompt: tokenizer, text, special, covers.
func analyze(args []js.Value) (any, error) {
	t, err := tokenizers.get(args[0])
	if err != nil {
		return nil, err
	}
	return encode(views.Analyze(t, data(args[1]), args[2].Truthy(), max(0, args[3].Int())))
}

func tokenizerFree(args []js.Value) (any, error) {
	delete(tokenizers.m, args[0].Int())
	return nil, nil
}
