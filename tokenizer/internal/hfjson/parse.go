package hfjson

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

// Open reads the tokenizer.json at path.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	file, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Read reads a tokenizer.json to its end.
func Read(r io.Reader) (*File, error) {
	data, err := readAll(r)
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// readAll reads at most MaxFileBytes and one more. The memory is of the right
// size at once where the size is known.
func readAll(r io.Reader) ([]byte, error) {
	size := int64(64 << 10)
	switch r := r.(type) {
	case *os.File:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size() + 1 // the last read finds the end
		}
	case interface{ Len() int }:
		size = int64(r.Len()) + 1
	}
	data := make([]byte, 0, min(size, MaxFileBytes+1))
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) > MaxFileBytes:
			return nil, jsonscan.Fail(ErrLimit, MaxFileBytes, "the file has more than the %d bytes that are read", MaxFileBytes)
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// Parse reads a tokenizer.json from memory. The File keeps data, and strings
// are decoded in it: data must not be used any more.
func Parse(data []byte) (*File, error) {
	text, err := jsonscan.New(data)
	if err != nil {
		return nil, err
	}
	s := &scanner{*text}
	f := &File{}
	models := 0
	err = s.Object(func(name []byte, at int) error {
		switch string(name) {
		case "version":
			return s.version()
		case "truncation":
			f.Truncation = !s.Null()
			return s.unlessNull(f.Truncation)
		case "padding":
			f.Padding = !s.Null()
			return s.unlessNull(f.Padding)
		case "added_tokens":
			if s.Null() {
				return nil
			}
			f.AddedTokens, err = s.addedTokens()
		case "normalizer":
			f.Normalizer, err = component(s, "normalizer", "normalizers", normalizerStep)
		case "pre_tokenizer":
			f.PreTokenizer, err = component(s, "pre_tokenizer", "pretokenizers", preTokenizerStep)
		case "post_processor":
			f.PostProcessor, err = component(s, "post_processor", "processors", postProcessorStep)
		case "decoder":
			f.Decoder, err = component(s, "decoder", "decoders", decoderStep)
		case "model":
			models++
			f.Model, err = s.model()
		default:
			if s.Null() {
				return nil
			}
			return jsonscan.Fail(ErrUnsupported, at, "unknown field")
		}
		return err
	})
	if err == nil {
		err = s.End()
	}
	if err == nil && models == 0 {
		err = jsonscan.Fail(ErrInvalid, len(data), `there is no "model"; the file is not a tokenizer.json of the tokenizers library`)
	}
	if err == nil {
		err = checkAdded(f)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// scanner is a JSON scanner with methods for the parts of a tokenizer.json.
type scanner struct{ jsonscan.Scanner }

// version takes the format's version.
func (s *scanner) version() error {
	if s.Null() {
		return nil
	}
	text, err := s.Text()
	if err == nil && string(text.Of(s.Data())) != "1.0" {
		err = jsonscan.Fail(ErrUnsupported, int(text.Off)-1, "version %q; known is \"1.0\"", text.Of(s.Data()))
	}
	return err
}

// unlessNull takes a value that is not looked at, if there is one.
func (s *scanner) unlessNull(there bool) error {
	if !there {
		return nil
	}
	return s.Skip()
}
