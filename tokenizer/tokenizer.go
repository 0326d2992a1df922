// Package tokenizer turns text into token IDs and back, with the IDs that
// llama.cpp gives for the same model file.
//
//   - Byte-level BPE of GPT-2's kind, read from GGUF, with the pre-tokenizers
//     that llama.cpp calls gpt-2 and smollm and those that equal them. Others
//     are refused by name.
//   - Decoding what was encoded gives the same bytes. Bytes that are not UTF-8
//     count as one character each that is no letter, number or space.
//     (llama.cpp replaces each by U+FFFD, so that its IDs differ there.)
//   - The exception is bytes that the vocabulary has no token for, as real ones
//     lack a few control characters. They are left out, as by llama.cpp; see
//     [Tokenizer.Unencodable].
//   - Encoding takes time linear in the text but for single pretokens of n
//     bytes, which take n log n.
//   - A control token is never the result of encoding plain text.
//
// A [Tokenizer] does not change after it is made and may be shared by
// goroutines.
package tokenizer

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/unfray/unfray/vocab"
)

// Tokenizer encodes and decodes text for one vocabulary.
type Tokenizer struct {
	vocab  *vocab.Vocab
	pre    pretokenizer
	merges *merges

	added   *matcher // user-defined tokens: recognized in all text
	special *matcher // those and the control tokens

	scratch sync.Pool // of *scratch
}

// scratch is the working memory of one call.
type scratch struct {
	syms    [shortPiece]symbol
	pairs   [shortPiece]mergeSlot // of syms[i] and syms[i+1]
	nodes   []node
	heap    rankHeap
	matches []match
}

// maxPooled is the bytes of working memory above which a call gives it back to
// the garbage collector rather than to the pool.
const maxPooled = 8 << 20

func (t *Tokenizer) getScratch() *scratch {
	if s, ok := t.scratch.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

func (t *Tokenizer) putScratch(s *scratch) {
	if 12*cap(s.nodes)+8*cap(s.heap)+24*cap(s.matches) <= maxPooled {
		t.scratch.Put(s)
	}
}

// Vocab is the vocabulary that the IDs belong to.
func (t *Tokenizer) Vocab() *vocab.Vocab { return t.vocab }

// String describes the tokenizer in a few words.
func (t *Tokenizer) String() string {
	return fmt.Sprintf("byte-level BPE, pre-tokenizer %s, %d tokens", t.pre.name, t.vocab.Len())
}

// Encode appends the tokens of plain text. User-defined tokens are recognized
// in it; control tokens spelled in it stay text. BOS and EOS are not added.
func (t *Tokenizer) Encode(dst []vocab.ID, text []byte) []vocab.ID {
	return t.encode(dst, text, t.added)
}

// EncodeSpecial is Encode, but control tokens spelled in the text become the
// control token, as in llama.cpp with parse_special. It is for text whose
// author may give the model instructions: never for what a user typed.
func (t *Tokenizer) EncodeSpecial(dst []vocab.ID, text []byte) []vocab.ID {
	return t.encode(dst, text, t.special)
}

func (t *Tokenizer) encode(dst []vocab.ID, text []byte, m *matcher) []vocab.ID {
	s := t.getScratch()
	s.matches = m.occurrences(s.matches[:0], text)
	at := 0
	for _, c := range m.choose(s.matches, text) {
		dst = t.encodeSegment(dst, text[at:c.start], s)
		dst = append(dst, c.id)
		at = c.end
	}
	dst = t.encodeSegment(dst, text[at:], s)
	t.putScratch(s)
	return dst
}

func (t *Tokenizer) encodeSegment(dst []vocab.ID, seg []byte, s *scratch) []vocab.ID {
	for len(seg) > 0 {
		n := t.pre.next(seg)
		dst = t.merges.append(dst, seg[:n], s)
		seg = seg[n:]
	}
	return dst
}

// EncodePiece appends the tokens of one pretoken: it is not split further. A
// piece that is a user-defined token gives that token, as [Tokenizer.Pretokens]
// gives those as pieces of their own.
func (t *Tokenizer) EncodePiece(dst []vocab.ID, piece []byte) []vocab.ID {
	if len(piece) == 0 {
		return dst
	}
	if id, ok := t.added.lookup(piece); ok {
		return append(dst, id)
	}
	s := t.getScratch()
	dst = t.merges.append(dst, piece, s)
	t.putScratch(s)
	return dst
}

// Pretokens appends the ends of the pretokens of plain text: byte offsets,
// ascending, the last one len(text). A user-defined token is a pretoken.
func (t *Tokenizer) Pretokens(dst []int, text []byte) []int {
	s := t.getScratch()
	s.matches = t.added.occurrences(s.matches[:0], text)
	at := 0
	for _, c := range t.added.choose(s.matches, text) {
		dst = append(t.pre.ends(dst, text[:c.start], at), c.end)
		at = c.end
	}
	dst = t.pre.ends(dst, text, at)
	t.putScratch(s)
	return dst
}

// Proper reports whether every merge makes a token, as in all vocabularies that
// are trained. What an improper one puts together may be taken apart again, so
// a part of its tokens is not always the tokens of a part of the text.
func (t *Tokenizer) Proper() bool { return !t.merges.improper }

// Unencodable gives the offset of the first byte of text that no token stands
// for, so that encoding leaves it out, or -1 if there is none.
func (t *Tokenizer) Unencodable(text []byte) int {
	for i, b := range text {
		if t.merges.byteIDs[b] == vocab.None {
			return i
		}
	}
	return -1
}

// Ends appends the byte offsets in text at which its tokens end, one for each of
// ids, which encoding the text gave. Bytes that no token stands for lie between
// tokens.
func (t *Tokenizer) Ends(dst []int, text []byte, ids []vocab.ID) []int {
	at := 0
	for _, id := range ids {
		b := t.vocab.Bytes(id)
		for at < len(text) && !bytes.HasPrefix(text[at:], b) {
			at++
		}
		at += len(b)
		dst = append(dst, at)
	}
	return dst
}

// Decode appends the bytes that the tokens stand for, the text of special
// tokens included. IDs outside the vocabulary contribute nothing.
func (t *Tokenizer) Decode(dst []byte, ids []vocab.ID) []byte {
	for _, id := range ids {
		dst = append(dst, t.vocab.Bytes(id)...)
	}
	return dst
}
