package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/tokenizer/internal/bpe"
	"github.com/unfray/unfray/tokenizer/internal/normalize"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/vocab"
)

// OpenGGUF reads the tokenizer of the model file at path. Of the file only the
// metadata is read.
func OpenGGUF(path string) (*Tokenizer, error) {
	t, err := openGGUF(path, LlamaCpp)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func openGGUF(path string, ref Reference) (*Tokenizer, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	return fromGGUF(f, ref)
}

// FromGGUF makes the tokenizer that a model's metadata describes. It does as
// llama.cpp does, which leaves out what the model's own tokenizer.json may
// declare: there is no NFC, and added tokens are matched the longest first.
func FromGGUF(f *gguf.File) (*Tokenizer, error) { return fromGGUF(f, LlamaCpp) }

func fromGGUF(f *gguf.File, ref Reference) (*Tokenizer, error) {
	name, err := f.String("tokenizer.ggml.model")
	if errors.Is(err, gguf.ErrNoKey) {
		return nil, errors.New("tokenizer: the GGUF file holds no tokenizer (no key tokenizer.ggml.model); it may be the second part of a split model: name the first")
	}
	if err != nil {
		return nil, err
	}
	var t *Tokenizer
	switch name {
	case "gpt2":
		t, err = fromGGUFBytes(f, ref)
	case "llama":
		t, err = fromGGUFPieces(f)
	default:
		return nil, fmt.Errorf("tokenizer: model %q is not supported; supported are gpt2, which is byte-level BPE, and llama, which is SentencePiece BPE", name)
	}
	if err != nil {
		return nil, err
	}
	v := t.vocab
	special := slices.Concat(v.UserDefined(), v.Controls())
	for id := range vocab.ID(v.Len()) {
		if v.Kind(id) == vocab.Unknown {
			special = append(special, id)
		}
	}
	order := longestFirst
	if ref == HuggingFace {
		order = leftmostLongest
	}
	t.plain = addedTokens{matcherOf(v, v.UserDefined(), order), newAddedMatcher(nil, order)}
	t.all = addedTokens{matcherOf(v, special, order), newAddedMatcher(nil, order)}
	if sp := v.Specials(); sp.AddBOS {
		t.before = []vocab.ID{sp.BOS}
	}
	if sp := v.Specials(); sp.AddEOS {
		t.after = []vocab.ID{sp.EOS}
	}
	return t, nil
}

// wholePre are the values of tokenizer.ggml.pre for which llama.cpp takes a
// pretoken that is a token whole, whatever the merges say.
var wholePre = []string{
	"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken",
	"minicpm5", "youtu", "granite-embed-multi-97m",
}

// bosPre are those for which llama.cpp puts BOS before a text if the file does
// not say whether.
var bosPre = []string{
	"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken",
	"chameleon",
}

// fromGGUFBytes reads byte-level BPE.
func fromGGUFBytes(f *gguf.File, ref Reference) (*Tokenizer, error) {
	pre, err := f.String("tokenizer.ggml.pre")
	if errors.Is(err, gguf.ErrNoKey) {
		return nil, errors.New("tokenizer: the GGUF file does not name its pre-tokenizer (no key tokenizer.ggml.pre); convert the model anew with a current converter")
	}
	if err != nil {
		return nil, err
	}
	splitter, err := split.Named(pre)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	v, err := readVocab(f, appendByteLevel, roleDefaults{bos: defaultGPT2, eos: defaultGPT2, unknown: vocab.None, addBOS: slices.Contains(bosPre, pre)})
	if err != nil {
		return nil, err
	}
	list, err := f.Strings("tokenizer.ggml.merges")
	if err != nil {
		return nil, err
	}
	m, err := newBPE(bpe.Config{
		Vocab: v, Merges: ggufMerges(list), Whole: slices.Contains(wholePre, pre), Unknown: vocab.None,
	})
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t := &Tokenizer{vocab: v, split: splitter, model: m, kind: kindByteLevel}
	if ref == HuggingFace && slices.Contains(nfcPre, pre) {
		t.norm, err = normalize.New([]normalize.Step{{Type: "NFC"}})
	}
	return t, err
}

// nfcPre are the values of tokenizer.ggml.pre of the models whose tokenizer.json
// asks for NFC.
var nfcPre = []string{"qwen2", "qwen35", "deepseek-r1-qwen", "kormo", "megrez"}

// matcherOf finds tokens of v as they stand.
func matcherOf(v *vocab.Vocab, ids []vocab.ID, order matchOrder) *matcher {
	tokens := make([]addedToken, 0, len(ids))
	for _, id := range ids {
		tokens = append(tokens, addedToken{text: v.Bytes(id), id: id})
	}
	return newAddedMatcher(tokens, order)
}

// ggufMerges spells out the list of merges: two strings with a space between.
// Lines that cannot match anything are passed over.
func ggufMerges(list gguf.StringArray) iter.Seq2[[]byte, []byte] {
	return func(yield func(left, right []byte) bool) {
		var both []byte
		for i := range list.Len() {
			line := list.At(i)
			// A string may begin with the separator itself.
			at := bytes.IndexByte(line[min(1, len(line)):], ' ') + 1
			if at == 0 {
				continue
			}
			var okLeft, okRight bool
			both, okLeft = appendSpelled(both[:0], line[:at])
			left := len(both)
			both, okRight = appendSpelled(both, line[at+1:])
			if okLeft && okRight && left < len(both) && !yield(both[:left], both[left:]) {
				return
			}
		}
	}
}

// fromGGUFPieces reads SentencePiece BPE, which is all that llama.cpp's model
// "llama" can be.
func fromGGUFPieces(f *gguf.File) (*Tokenizer, error) {
	v, err := readVocab(f, appendMeta, roleDefaults{bos: 1, eos: 2, unknown: 0, addBOS: true})
	if err != nil {
		return nil, err
	}
	scores, err := f.Float32s("tokenizer.ggml.scores")
	if err != nil {
		return nil, err
	}
	if len(scores) != v.Len() {
		return nil, fmt.Errorf("tokenizer: %d scores for %d tokens", len(scores), v.Len())
	}
	texts, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	m, err := newBPE(bpe.Config{
		Vocab: v, Scores: scores, Chars: true, ByteFallback: true, Unknown: v.Specials().Unknown,
		// Merging goes on in text without spaces, only ▁: there, no token that is
		// spelt with a space is found.
		Added: func(id vocab.ID) bool { return bytes.IndexByte(texts.At(int(id)), ' ') >= 0 },
	})
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	// A ▁ in the text is a space from then on, but not yet where user-defined
	// tokens are looked for.
	norm, err := normalize.New([]normalize.Step{{Type: "Replace", Pattern: metaSpace, Content: " "}})
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{vocab: v, norm: norm, split: m.Breaks(), model: m, kind: kindPieces}
	prefix, err := f.Bool("tokenizer.ggml.add_space_prefix")
	if errors.Is(err, gguf.ErrNoKey) {
		prefix, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	if prefix {
		t.prefix.when = prefixSegments
		t.decoding = decoding{strip: true, stripAfter: true}
	}
	return t, nil
}

// Kinds of models, for [Tokenizer.String].
const (
	kindByteLevel = "byte-level BPE"
	kindPieces    = "SentencePiece BPE"
	kindUnigram   = "Unigram"
	kindWordPiece = "WordPiece"
)

// speller appends the bytes that the text of a normal token stands for. It
// reports false if it stands for none.
type speller func(dst, text []byte) ([]byte, bool)

func appendByteLevel(dst, text []byte) ([]byte, bool) { return appendSpelled(dst, text) }

// metaSpace is how SentencePiece writes a space: U+2581.
const metaSpace = "\u2581"

// appendMeta appends the text of a SentencePiece token.
func appendMeta(dst, text []byte) ([]byte, bool) {
	for {
		i := bytes.Index(text, []byte(metaSpace))
		if i < 0 {
			return append(dst, text...), true
		}
		dst = append(append(dst, text[:i]...), ' ')
		text = text[i+len(metaSpace):]
	}
}

// readVocab reads the tokens, their kinds and their roles.
func readVocab(f *gguf.File, spell speller, def roleDefaults) (*vocab.Vocab, error) {
	texts, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	r := &roles{
		file:   f,
		def:    def,
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
		block, r.kinds[i], err = appendToken(block, texts.At(i), r.kinds[i], spell)
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
func appendToken(dst, text []byte, kind vocab.Kind, spell speller) ([]byte, vocab.Kind, error) {
	switch kind {
	case vocab.Normal:
		if dst, ok := spell(dst, text); ok {
			return dst, kind, nil
		}
		kind = vocab.Unused
	case vocab.Byte:
		b, ok := byteToken(text)
		if !ok {
			return nil, 0, fmt.Errorf("%q is of type byte, but not of the form <0x0A>", text)
		}
		return append(dst, b), kind, nil
	}
	return append(dst, text...), kind, nil
}

// byteToken reads the byte that a token such as <0x0A> stands for.
func byteToken(text []byte) (byte, bool) {
	if len(text) != 6 || string(text[:3]) != "<0x" || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(string(text[3:5]), 16, 8)
	return byte(b), err == nil
}
