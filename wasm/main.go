//go:build js && wasm

// Command wasm is repair and boundary as a WebAssembly module for browsers and
// Node. unfray.mjs is its face; functions that fail return a JavaScript Error.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall/js"
	"time"

	"github.com/unfray/unfray/jsonrepair"
)

// opened holds what JavaScript refers to by number.
type opened[T any] struct {
	last int
	m    map[int]T
}

func (o *opened[T]) add(v T) int {
	if o.m == nil {
		o.m = map[int]T{}
	}
	o.last++
	o.m[o.last] = v
	return o.last
}

func (o *opened[T]) get(id js.Value) (T, error) {
	v, ok := o.m[id.Int()]
	if !ok {
		return v, errors.New("it was closed before")
	}
	return v, nil
}

var streams opened[*stream]

var functions = map[string]func(args []js.Value) (any, error){
	"repair":        repair,
	"streamOpen":    streamOpen,
	"streamWrite":   streamWrite,
	"streamPartial": streamPartial,
	"streamClose":   streamClose,
}

func main() {
	exported := map[string]any{}
	for name, f := range functions {
		exported[name] = js.FuncOf(func(_ js.Value, args []js.Value) any {
			v, err := call(f, args)
			if err != nil {
				return js.Global().Get("Error").New(err.Error())
			}
			return v
		})
	}
	js.Global().Call("unfrayReady", exported)
	select {} // JavaScript calls them
}

// call calls f. What syscall/js panics with, arguments of the wrong type above all,
// would end the module: it becomes an error.
func call(f func(args []js.Value) (any, error), args []js.Value) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unfray: %v", r)
		}
	}()
	return f(args)
}

// encode writes a value as the JSON that JavaScript parses.
func encode(v any) (any, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.String(), nil
}

// data copies the bytes of a Uint8Array.
func data(v js.Value) []byte {
	b := make([]byte, v.Length())
	js.CopyBytesToGo(b, v)
	return b
}

// options reads an object, which may be missing. The names are those of
// jsonrepair.Options, their first letter small.
func options(v js.Value) (o jsonrepair.Options, err error) {
	if v.IsUndefined() || v.IsNull() {
		return o, nil
	}
	bools := map[string]*bool{"strict": &o.Strict, "latex": &o.LaTeX, "paths": &o.Paths, "ended": &o.Ended}
	numbers := map[string]*int{"window": &o.Window, "maxBytes": &o.MaxBytes, "maxDepth": &o.MaxDepth, "maxEdits": &o.MaxEdits}
	keys := js.Global().Get("Object").Call("keys", v)
	for i := range keys.Length() {
		key := keys.Index(i).String()
		value := v.Get(key)
		switch {
		case bools[key] != nil:
			*bools[key] = value.Truthy()
		case value.Type() != js.TypeNumber && (numbers[key] != nil || key == "maxMilliseconds"):
			return o, fmt.Errorf("option %s must be a number", key)
		case numbers[key] != nil:
			*numbers[key] = value.Int()
		case key == "maxMilliseconds":
			o.MaxTime = time.Duration(value.Float() * float64(time.Millisecond))
		default:
			return o, fmt.Errorf("there is no option %s", key)
		}
	}
	return o, nil
}

func repair(args []js.Value) (any, error) {
	o, err := options(args[1])
	if err != nil {
		return nil, err
	}
	return encode(jsonrepair.Repair(data(args[0]), o).Report())
}

// stream is a repair in progress with what has been committed.
type stream struct {
	s        *jsonrepair.Stream
	view     jsonrepair.View
	text     []byte
	document int // the last of several
	begin    int // of text, where that begins
}

// piece is what a write has brought.
type piece struct {
	Text   string             `json:"text"`
	Events []event            `json:"events"`
	Edits  []jsonrepair.Edit  `json:"edits"`
	Report *jsonrepair.Report `json:"report,omitempty"` // at the end
}

type event struct {
	Kind     jsonrepair.EventKind `json:"kind"`
	Path     string               `json:"path"`
	Text     *string              `json:"text,omitempty"`  // of a part of a string
	Value    jsonrepair.Raw       `json:"value,omitempty"` // of a scalar that is whole
	Document int                  `json:"document"`
}

func streamOpen(args []js.Value) (any, error) {
	o, err := options(args[0])
	if err != nil {
		return nil, err
	}
	return streams.add(&stream{s: jsonrepair.NewStream(o)}), nil
}

func streamWrite(args []js.Value) (any, error) {
	s, err := streams.get(args[0])
	if err != nil {
		return nil, err
	}
	if _, err := s.s.Write(data(args[1])); err != nil {
		return nil, err
	}
	return encode(s.take())
}

// take takes what is new.
func (s *stream) take() *piece {
	p := &piece{Events: []event{}, Edits: append([]jsonrepair.Edit{}, s.s.Edits()...)}
	text := s.s.Committed()
	p.Text = string(text)
	s.text = append(s.text, text...)
	// The text of a stream is JSON.
	_, _ = s.view.Write(text)
	for e := range s.view.Events() {
		if e.Document != s.document {
			s.document, s.begin = e.Document, e.Offset
		}
		v := event{Kind: e.Kind, Path: string(e.Path), Document: e.Document}
		switch {
		case e.Kind == jsonrepair.StringPart:
			text := e.Text()
			v.Text = &text
		case e.Raw != nil:
			v.Value = bytes.Clone(e.Raw)
		}
		p.Events = append(p.Events, v)
	}
	return p
}

// streamPartial returns the text so far of the last document, completed, or null.
func streamPartial(args []js.Value) (any, error) {
	s, err := streams.get(args[0])
	if err != nil {
		return nil, err
	}
	keep, closers := s.view.Ending()
	if keep == 0 {
		return nil, nil
	}
	return string(s.text[s.begin:keep]) + string(closers), nil
}

// streamClose returns the last piece, with a report that leaves out text and
// edits, which came in the pieces.
func streamClose(args []js.Value) (any, error) {
	s, err := streams.get(args[0])
	if err != nil {
		return nil, err
	}
	r := s.s.Close()
	s.view.Close()
	p := s.take()
	p.Report = (&jsonrepair.Result{Outcome: r.Outcome, Findings: r.Findings, Open: r.Open, Err: r.Err}).Report()
	delete(streams.m, args[0].Int())
	return encode(p)
}
