// Package tokenizer turns text into token IDs and back, with the IDs that the
// vocabulary's own reference gives: tiktoken for rank files, Hugging Face
// tokenizers for tokenizer.json, SentencePiece for .model files and llama.cpp
// for GGUF.
//
// Text passes through five steps, each as the file declares it:
//
//	added tokens  are cut out of the text before all else
//	normalizer    rewrites what lies between them (Unicode forms, dummy space)
//	splitter      cuts that into pretokens, which tokens never cross
//	model         turns a pretoken into tokens: BPE, Unigram or WordPiece
//	template      says which control tokens stand around a whole text
//
// What a file declares and this package cannot do is refused by name when the
// file is opened. What is done in another way than declared is a [Note].
//
//   - Tokens are bytes. SentencePiece's ▁ is the space it stands for, <0x0A> is
//     a newline. Decoding gives bytes, not characters.
//   - Bytes that are not UTF-8 count as one character each that is no letter,
//     number or space; the references cannot be given such bytes.
//   - A control token is never the result of encoding plain text.
//   - Encoding takes time linear in the text, but for single pretokens of n
//     bytes, which may take n log n.
//
// A [Tokenizer] does not change after it is made and may be shared by
// goroutines.
package tokenizer

import (
	"fmt"

	"github.com/unfray/unfray/tokenizer/internal/normalize"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/vocab"
)

// Tokenizer encodes and decodes text for one vocabulary.
type Tokenizer struct {
	vocab  *vocab.Vocab
	plain  addedTokens // recognized in all text
	all    addedTokens // those and the control tokens
	norm   *normalize.Normalizer
	prefix prefixRule
	split  split.Splitter
	model  model

	before, after []vocab.ID // the template: control tokens around a text
	decoding      decoding
	kind          string // "byte-level BPE"
	notes         []Note

	scratches scratchList
}

// Note says what was done in another way than a tokenizer's file declares.
type Note struct{ Code, Text string }

// Codes of notes.
const (
	// CodePatternFallback: the pre-tokenizer's regular expression is none that
	// this package has a scanner for. It goes through a general engine, which
	// is slower, and the boundary analysis is cautious about it.
	CodePatternFallback = "pattern_fallback"
	// CodeIgnored: the file asks for something that is not part of encoding a
	// text, such as truncation or padding.
	CodeIgnored = "ignored"
)

// Vocab is the vocabulary that the IDs belong to.
func (t *Tokenizer) Vocab() *vocab.Vocab { return t.vocab }

// Notes says what is done in another way than the file declares.
func (t *Tokenizer) Notes() []Note { return t.notes }

// Template gives the control tokens that the file's post-processor puts before
// and after a single text. Encode adds neither. They must not be modified.
func (t *Tokenizer) Template() (before, after []vocab.ID) { return t.before, t.after }

// String describes the tokenizer in a few words.
func (t *Tokenizer) String() string {
	s := t.kind
	if t.norm != nil {
		s += ", normalizer " + t.norm.String()
	}
	if name := t.split.String(); name != "" {
		s += ", pre-tokenizer " + name
	}
	return fmt.Sprintf("%s, %d tokens", s, t.vocab.Len())
}

// Encode appends the tokens of plain text. Added tokens that are text are
// recognized in it; control tokens spelled in it stay text. The template's
// tokens are not added.
func (t *Tokenizer) Encode(dst []vocab.ID, text []byte) []vocab.ID {
	return t.encode(dst, text, &t.plain, atStart)
}

// EncodeSpecial is Encode, but control tokens spelled in the text become the
// control token, as in llama.cpp with parse_special and in Hugging Face
// tokenizers by default. It is for text whose author may give the model
// instructions: never for what a user typed.
func (t *Tokenizer) EncodeSpecial(dst []vocab.ID, text []byte) []vocab.ID {
	return t.encode(dst, text, &t.all, atStart)
}

// EncodeAfter is Encode for text that follows other tokens. Where the
// vocabulary puts a dummy space before a text, it may depend on those.
func (t *Tokenizer) EncodeAfter(dst, before []vocab.ID, text []byte) []vocab.ID {
	return t.encode(dst, text, &t.plain, t.positionAfter(before))
}

// EncodeInside is Encode for text in front of which other text stands: no dummy
// space is put before it.
func (t *Tokenizer) EncodeInside(dst []vocab.ID, text []byte) []vocab.ID {
	return t.encode(dst, text, &t.plain, inside)
}

// EncodeEnds is Encode, or with special EncodeSpecial, and also appends to ends
// the byte offset in text at which each token ends. Where the normalizer
// rewrites text, the tokens of what it wrote end where the text that it was made
// of ends.
func (t *Tokenizer) EncodeEnds(dst []vocab.ID, ends []int, text []byte, special bool) ([]vocab.ID, []int) {
	set := &t.plain
	if special {
		set = &t.all
	}
	s := t.scratches.get()
	out := &endSink{idSink{t, s, dst}, ends}
	t.walk(text, set, atStart, s, out)
	t.scratches.put(s)
	return out.ids, out.ends
}

// EncodePiece appends the tokens of one pretoken: it is not split further. A
// piece that is an added token of plain text gives that token, as those are
// pieces of their own.
func (t *Tokenizer) EncodePiece(dst []vocab.ID, piece []byte) []vocab.ID {
	if len(piece) == 0 {
		return dst
	}
	if id, ok := t.plain.raw.lookup(piece); ok {
		return append(dst, id)
	}
	if id, ok := t.plain.normalized.lookup(piece); ok {
		return append(dst, id)
	}
	s := t.scratches.get()
	dst = t.model.appendPiece(dst, piece, s)
	t.scratches.put(s)
	return dst
}

// Apart reports whether a and b stay as they are when they stand side by side
// in a pretoken. Tokens are what BPE makes of their text exactly if every
// adjacent pair is apart.
func (t *Tokenizer) Apart(a, b vocab.ID) bool { return t.model.apart(t, a, b) }

// Pairwise reports whether [Tokenizer.Apart] decides about sequences: whether
// the model is BPE and every merge makes a token, as in all vocabularies that
// are trained.
func (t *Tokenizer) Pairwise() bool { return t.model.pairwise() }

// Proper reports whether the tokens of the beginning of a pretoken are those
// that begin the tokens of the whole wherever the whole has a token boundary
// there. What merges that make no token put together may be taken apart again,
// and WordPiece decides on whole words.
func (t *Tokenizer) Proper() bool { return t.model.proper() }

// Loss is why tokens do not give a text back to the byte.
type Loss struct {
	Offset int    // byte of the text where it begins
	Reason string // in words
}

// Loss says whether the tokens of plain text spell that text, the dummy prefix
// apart. It is nil if they do.
func (t *Tokenizer) Loss(text []byte) *Loss {
	s := t.scratches.get()
	defer t.scratches.put(s)
	at := 0
	for _, m := range append(t.plain.raw.appendMatches(nil, text), match{start: len(text)}) {
		if seg := text[at:m.start]; !t.same(seg) {
			at += commonBytes(seg, t.norm.Append(nil, seg))
			return &Loss{at, fmt.Sprintf("the normalizer (%s) rewrites the text at offset %d", t.norm, at)}
		}
		at = m.end
	}
	l := lossSink{t: t, s: s}
	t.walk(text, &t.plain, atStart, s, &l)
	return l.loss
}

// lossSink finds the first bytes that no token stands for.
type lossSink struct {
	t    *Tokenizer
	s    *scratch
	loss *Loss
}

func (o *lossSink) token(id vocab.ID, start, end int) {
	if o.loss == nil && end-start > len(o.t.vocab.Bytes(id)) {
		o.loss = &Loss{start, fmt.Sprintf("the added token %q takes in the white space beside it at offset %d", o.t.vocab.Bytes(id), start)}
	}
}

func (o *lossSink) stretch(norm []byte, prefix, from int, seg *segment) {
	if o.loss != nil {
		return
	}
	at := o.t.model.lacks(o.t, norm, o.s)
	if at < 0 {
		return
	}
	b := norm[at]
	at = seg.at + from + max(0, at-prefix)
	o.loss = &Loss{at, fmt.Sprintf("byte %#02x at offset %d has no token in this vocabulary", b, at)}
}

func commonBytes(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
