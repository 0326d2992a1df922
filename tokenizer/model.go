package tokenizer

import (
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer/internal/bpe"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/tokenizer/internal/unigram"
	"github.com/unfray/unfray/tokenizer/internal/wordpiece"
	"github.com/unfray/unfray/vocab"
)

// model turns pretokens into tokens.
type model interface {
	// appendPieces appends the tokens of the pretokens text[from:ends[0]],
	// text[ends[0]:ends[1]] and so on.
	appendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *scratch) []vocab.ID
	appendPiece(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID
	// apart reports whether a and b stay as they are side by side in a pretoken.
	apart(t *Tokenizer, a, b vocab.ID) bool
	pairwise() bool // see Tokenizer.Pairwise
	proper() bool   // see Tokenizer.Proper
	// opaque says why the tokens of part of a pretoken say nothing about those
	// of the whole; empty if they do.
	opaque() string
	// lacks gives the offset of the first byte of normalized text that no token
	// stands for, or -1.
	lacks(t *Tokenizer, text []byte, s *scratch) int
}

type bpeModel struct {
	*bpe.Model
	bytewise bool // every symbol is a byte
	complete bool // every byte has a token
	unknown  vocab.ID
}

func newBPE(c bpe.Config) (*bpeModel, error) {
	m, err := bpe.New(c)
	if err != nil {
		return nil, err
	}
	b := &bpeModel{Model: m, bytewise: !c.Chars, complete: true, unknown: c.Unknown}
	for i := range 256 {
		b.complete = b.complete && !m.Lacks(byte(i))
	}
	return b, nil
}

func (m *bpeModel) appendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *scratch) []vocab.ID {
	return m.AppendPieces(dst, text, from, ends, &s.bpe)
}

func (m *bpeModel) appendPiece(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	return m.AppendPiece(dst, piece, &s.bpe)
}

func (m *bpeModel) apart(_ *Tokenizer, a, b vocab.ID) bool { return m.Apart(a, b) }
func (m *bpeModel) pairwise() bool                         { return m.Proper() }
func (m *bpeModel) proper() bool                           { return m.Proper() }
func (m *bpeModel) opaque() string                         { return "" }

func (m *bpeModel) lacks(t *Tokenizer, text []byte, s *scratch) int {
	switch {
	case m.complete:
		return -1
	case m.bytewise:
		for i, b := range text {
			if m.Lacks(b) {
				return i
			}
		}
		return -1
	}
	return firstUnknown(t, text, m.unknown, s)
}

// firstUnknown finds the first byte of text that the unknown token, or none,
// stands for.
func firstUnknown(t *Tokenizer, text []byte, unknown vocab.ID, s *scratch) int {
	ids := t.appendStretch(nil, text, s)
	at := 0
	for _, id := range ids {
		b := t.vocab.Bytes(id)
		if id == unknown || at+len(b) > len(text) || string(text[at:at+len(b)]) != string(b) {
			return at
		}
		at += len(b)
	}
	if at < len(text) {
		return at
	}
	return -1
}

type unigramModel struct {
	*unigram.Model
	unknown vocab.ID
}

func (m *unigramModel) appendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *scratch) []vocab.ID {
	for _, end := range ends {
		dst = m.AppendPiece(dst, text[from:end], &s.unigram)
		from = end
	}
	return dst
}

func (m *unigramModel) appendPiece(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	return m.AppendPiece(dst, piece, &s.unigram)
}

func (m *unigramModel) apart(t *Tokenizer, a, b vocab.ID) bool { return encodesApart(t, a, b) }

// encodesApart is [Tokenizer.Apart] by trying.
func encodesApart(t *Tokenizer, a, b vocab.ID) bool {
	text := append(append([]byte(nil), t.vocab.Bytes(a)...), t.vocab.Bytes(b)...)
	ids := t.EncodePiece(nil, text)
	return len(ids) == 2 && ids[0] == a && ids[1] == b
}

func (m *unigramModel) pairwise() bool { return false }
func (m *unigramModel) proper() bool   { return true }
func (m *unigramModel) opaque() string { return "" }

func (m *unigramModel) lacks(t *Tokenizer, text []byte, s *scratch) int {
	return firstUnknown(t, text, m.unknown, s)
}

type wordpieceModel struct{ *wordpiece.Model }

func (m *wordpieceModel) appendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *scratch) []vocab.ID {
	for _, end := range ends {
		dst = m.AppendPiece(dst, text[from:end], &s.wordpiece)
		from = end
	}
	return dst
}

func (m *wordpieceModel) appendPiece(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	return m.AppendPiece(dst, piece, &s.wordpiece)
}

func (m *wordpieceModel) apart(*Tokenizer, vocab.ID, vocab.ID) bool { return false }
func (m *wordpieceModel) pairwise() bool                            { return false }
func (m *wordpieceModel) proper() bool                              { return false }

func (m *wordpieceModel) opaque() string {
	return "WordPiece decides on a whole word: one more letter may change all its tokens, or make it the unknown token"
}

// lacks reports the first byte: WordPiece's tokens do not give white space back.
func (m *wordpieceModel) lacks(_ *Tokenizer, text []byte, _ *scratch) int {
	if len(text) == 0 {
		return -1
	}
	return 0
}

// droppingModel is a model behind a splitter that does not keep all pretokens.
type droppingModel struct {
	model
	keeps func(piece []byte) bool
}

func (m *droppingModel) appendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *scratch) []vocab.ID {
	first, start := 0, from // of the pretokens kept since the last that was not
	for i, end := range ends {
		if !m.keeps(text[from:end]) {
			dst = m.model.appendPieces(dst, text, start, ends[first:i], s)
			first, start = i+1, end
		}
		from = end
	}
	return m.model.appendPieces(dst, text, start, ends[first:], s)
}

func (m *droppingModel) appendPiece(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	if !m.keeps(piece) {
		return dst
	}
	return m.model.appendPiece(dst, piece, s)
}

func (m *droppingModel) opaque() string {
	if why := m.model.opaque(); why != "" {
		return why
	}
	return "the pre-tokenizer drops parts of the text, which then have no tokens"
}

func (m *droppingModel) lacks(t *Tokenizer, text []byte, s *scratch) int {
	lost := m.model.lacks(t, text, s)
	for from := 0; from < len(text) && (lost < 0 || from < lost); {
		n := t.split.Scan(s.ends[:1], text, from)
		if !m.keeps(text[from:s.ends[0]]) {
			return from
		}
		from = s.ends[n-1]
	}
	return lost
}

// speltModel is a byte-level model behind pre-tokenizers that cut what ByteLevel
// has made of a pretoken: Falcon's Digits take the byte 0xb3 of "ó" for the
// number "³" that it is spelt as.
type speltModel struct {
	model
	split split.Splitter
}

func (m *speltModel) appendPieces(dst []vocab.ID, text []byte, from int, ends []int, s *scratch) []vocab.ID {
	for _, end := range ends {
		dst = m.appendPiece(dst, text[from:end], s)
		from = end
	}
	return dst
}

func (m *speltModel) appendPiece(dst []vocab.ID, piece []byte, s *scratch) []vocab.ID {
	s.spelt = appendSpelling(s.spelt[:0], piece)
	var ends [64]int
	at := 0 // in piece
	for from := 0; from < len(s.spelt); {
		n := m.split.Scan(ends[:], s.spelt, from)
		start := at
		for i, end := range ends[:n] {
			at += utf8.RuneCount(s.spelt[from:end]) // each character is a byte
			ends[i], from = at, end
		}
		dst = m.model.appendPieces(dst, piece, start, ends[:n], s)
	}
	return dst
}

func (m *speltModel) apart(t *Tokenizer, a, b vocab.ID) bool { return encodesApart(t, a, b) }
func (m *speltModel) pairwise() bool                         { return false }
func (m *speltModel) proper() bool                           { return false }

func (m *speltModel) opaque() string {
	return "a pre-tokenizer after ByteLevel cuts pretokens between bytes"
}
