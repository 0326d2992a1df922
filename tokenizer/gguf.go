package tokenizer

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/vocab"
)

// OpenGGUF reads the tokenizer of the model file at path. Of the file only the
// metadata is read.
func OpenGGUF(path string) (*Tokenizer, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	t, err := FromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// FromGGUF makes the tokenizer that a model's metadata describes.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	model, err := f.String("tokenizer.ggml.model")
	if errors.Is(err, gguf.ErrNoKey) {
		return nil, errors.New("tokenizer: the GGUF file holds no tokenizer (no key tokenizer.ggml.model); it may be the second part of a split model: name the first")
	}
	if err != nil {
		return nil, err
	}
	if model != "gpt2" {
		return nil, fmt.Errorf("tokenizer: model %q is not supported; supported is gpt2, which is byte-level BPE", model)
	}
	name, err := f.String("tokenizer.ggml.pre")
	if errors.Is(err, gguf.ErrNoKey) {
		return nil, errors.New("tokenizer: the GGUF file does not name its pre-tokenizer (no key tokenizer.ggml.pre); convert the model anew with a current converter")
	}
	if err != nil {
		return nil, err
	}
	pre, err := newPretokenizer(name)
	if err != nil {
		return nil, err
	}
	v, err := readVocab(f)
	if err != nil {
		return nil, err
	}
	list, err := f.Strings("tokenizer.ggml.merges")
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		vocab:  v,
		pre:    pre,
		merges: newMerges(v, list),
		added:  newMatcher(v, v.UserDefined()),
	}
	special := append([]vocab.ID(nil), v.UserDefined()...)
	special = append(special, v.Controls()...)
	for id := range vocab.ID(v.Len()) {
		if v.Kind(id) == vocab.Unknown {
			special = append(special, id)
		}
	}
	t.special = newMatcher(v, special)
	return t, nil
}

// readVocab reads the tokens, their kinds and their roles.
func readVocab(f *gguf.File) (*vocab.Vocab, error) {
	texts, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	r := &roles{
		file:   f,
		byText: make(map[string]vocab.ID, texts.Len()),
		kinds:  make([]vocab.Kind, texts.Len()),
		eog:    map[vocab.ID]bool{},
	}
	types, err := f.Int32s("tokenizer.ggml.token_type")
	switch {
	case err == nil && len(types) < texts.Len():
		return nil, fmt.Errorf("tokenizer: %d token types for %d tokens", len(types), texts.Len())
	case err != nil && !errors.Is(err, gguf.ErrNoKey):
		return nil, err
	}
	for i := range r.kinds {
		r.kinds[i] = vocab.Normal
		if types != nil {
			r.kinds[i] = kindOf(types[i])
		}
		text := texts.At(i)
		if len(text) == 0 {
			continue
		}
		if first, dup := r.byText[string(text)]; dup {
			return nil, fmt.Errorf("tokenizer: tokens %d and %d are both %q", first, i, text)
		}
		r.byText[string(text)] = vocab.ID(i)
	}
	specials, err := r.specials()
	if err != nil {
		return nil, err
	}
	tokens := make([][]byte, texts.Len())
	var block []byte
	for i := range tokens {
		start := len(block)
		block, r.kinds[i], err = appendToken(block, texts.At(i), r.kinds[i])
		if err != nil {
			return nil, fmt.Errorf("tokenizer: token %d: %w", i, err)
		}
		tokens[i] = block[start:]
	}
	return vocab.New(tokens, r.kinds, specials)
}

func kindOf(n int32) vocab.Kind {
	if n < 0 || n > int32(vocab.Byte) {
		return vocab.Undefined
	}
	return vocab.Kind(n)
}

// appendToken appends the bytes that a token stands for. A normal token that
// spells none can neither be encoded nor shown: it counts as unused.
func appendToken(dst, text []byte, kind vocab.Kind) ([]byte, vocab.Kind, error) {
	switch kind {
	case vocab.Normal:
		if dst, ok := appendSpelled(dst, text); ok {
			return dst, kind, nil
		}
		kind = vocab.Unused
	case vocab.Byte:
		if len(text) != 6 || string(text[:3]) != "<0x" || text[5] != '>' {
			return nil, 0, fmt.Errorf("%q is of type byte, but not of the form <0x0A>", text)
		}
		b, err := strconv.ParseUint(string(text[3:5]), 16, 8)
		if err != nil {
			return nil, 0, fmt.Errorf("%q is of type byte, but not of the form <0x0A>", text)
		}
		return append(dst, byte(b)), kind, nil
	}
	return append(dst, text...), kind, nil
}
