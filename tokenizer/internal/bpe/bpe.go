// Package bpe is byte-pair encoding: it joins the neighbours in a piece of
// text, best merge first, until none are left that merge, and gives the tokens
// that stand there then.
//
//   - The result is that of the definition: of all neighbours that merge, the
//     one with the lowest rank is joined first, the leftmost of equal ones. All
//     short cuts (piece cache, character seeds, cuts by [Breaks]) are proved not
//     to change it.
//   - Ranks come from a list of merges, from the order of token IDs (tiktoken)
//     or from scores (SentencePiece).
//   - Time is O(n log n) in the length of a piece, memory O(n), for vocabularies
//     in use O(n) and constant. What a [Scratch] keeps between calls is bounded.
//
// A [Model] does not change after it is made and may be shared by goroutines.
// A [Scratch] belongs to one goroutine at a time.
package bpe

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// Config says what a model is made of. Exactly one of Merges, ByID and Scores
// gives the merges.
type Config struct {
	Vocab *vocab.Vocab

	// Merges lists the pairs that merge, best first: the bytes of the left and
	// of the right part, which are valid only during the call. Of equal pairs
	// the first counts, or with LastOfEqual, as in Hugging Face, the last. A merge
	// may make a string that is no token: it comes out as the tokens of its bytes
	// (characters).
	Merges      iter.Seq2[[]byte, []byte]
	LastOfEqual bool

	// ByID merges all neighbours that together are a Normal token, the lowest ID
	// first, as tiktoken does. It goes with bytes only.
	ByID bool

	// Scores, by ID, merges all neighbours that together are a token, the highest
	// score first, as SentencePiece and llama.cpp's SPM do. Unless Unused is set
	// the tokens of that kind are left out.
	Scores []float32

	// Added reports tokens that are in the vocabulary but not the model's: none
	// is merged to, or started from. It may be nil.
	Added func(id vocab.ID) bool

	Chars bool // merging starts from characters, not from bytes
	Whole bool // a piece that is a Normal token is that token, whatever the merges say

	// A character (byte, without Chars) that no token stands for becomes the Byte
	// tokens of its bytes if ByteFallback is set and there are such for all of
	// them, else Unknown, else (vocab.None) nothing.
	ByteFallback bool
	Unknown      vocab.ID
	FuseUnknown  bool // neighbouring Unknowns are one: SentencePiece always, Hugging Face by fuse_unk

	// DropFirst: characters that become nothing do so before merging, so that
	// those on both sides meet, as in Hugging Face; otherwise after, as in
	// llama.cpp.
	DropFirst bool

	// Unused: merges with Scores may make Unused pieces on the way to longer
	// ones. Those that remain are taken apart again by the merges that made them,
	// as in SentencePiece.
	Unused bool
}

// symbol is a string of bytes that merging starts from or makes. Symbols below
// the size of the vocabulary are its tokens, the others strings that merge but
// are no token for text.
type symbol = uint32

// symbolBits is the room for a symbol, and for a rank, in a slot of the pair
// table and an entry of the piece cache.
const symbolBits = 21

// noSymbol stands where a character is lost. It merges with nothing.
const noSymbol symbol = 1<<symbolBits - 1

// Model is byte-pair encoding with one vocabulary.
type Model struct {
	vocab  *vocab.Vocab
	tokens int      // symbols below are tokens
	extras [][]byte // bytes of the symbols from tokens on

	pairs pairTable
	// results gives the symbol that a merge makes by its order; nil if that is
	// the order itself (ByID).
	results []symbol
	// ties gives the rank by a merge's order where different merges share a rank;
	// nil if the order is the rank.
	ties []uint32

	byteSymbols [256]symbol
	allBytes    bool     // byte-level, with a symbol for each byte
	bytePairs   []uint32 // order of the merge of two bytes, by left<<8|right; noOrder if none
	seeds       *seeds   // nil where merging starts from single bytes or characters
	chars       *chars   // with Config.Chars, the symbols to start from
	fallback    [256]vocab.ID

	unknown      vocab.ID
	whole        bool
	byteFallback bool
	fuse         bool
	dropFirst    bool
	unused       bool
	direct       bool // every symbol that can remain is one token, whatever stands beside it
	proper       bool
	breaks       *Breaks

	derive    sync.Once
	tree      derivations
	scratches sync.Pool // of *Scratch
}

// New makes a model.
func New(c Config) (*Model, error) {
	if c.Vocab == nil {
		return nil, errors.New("bpe: no vocabulary")
	}
	if c.ByID && c.Chars {
		return nil, errors.New("bpe: ranks by ID are of bytes, not of characters")
	}
	if n := c.Vocab.Len(); n >= int(noSymbol) {
		return nil, fmt.Errorf("bpe: %d tokens; at most %d are supported", n, noSymbol-1)
	}
	m := &Model{
		vocab: c.Vocab, tokens: c.Vocab.Len(),
		unknown: c.Unknown, whole: c.Whole, byteFallback: c.ByteFallback,
		fuse: c.FuseUnknown, dropFirst: c.DropFirst, unused: c.Unused,
	}
	if m.unknown != vocab.None && !c.Vocab.Valid(m.unknown) {
		return nil, fmt.Errorf("bpe: the unknown token is %d, but there are %d tokens", m.unknown, m.tokens)
	}
	names := newNames(&c)
	list, err := names.merges(&c)
	if err != nil {
		return nil, err
	}
	m.findFallback()
	if c.Chars {
		m.chars = newChars(m, names)
	} else {
		m.startFromBytes(names)
	}
	m.extras = names.extras
	if len(list.pairs) >= int(noOrder) || m.tokens+len(m.extras) >= int(noSymbol) {
		return nil, fmt.Errorf("bpe: %d merges of %d strings; at most %d of each are supported", len(list.pairs), m.tokens+len(m.extras), noSymbol-1)
	}
	m.results, m.ties = list.results, list.ties
	var repeated bool
	if m.pairs, repeated = newPairTable(list.pairs, c.LastOfEqual); repeated {
		list.pairs = slices.DeleteFunc(list.pairs, func(p pair) bool { return m.pairs.find(p.left, p.right) != p.order })
	}
	m.findDirect(list)
	if !c.Chars {
		m.allBytes = !slices.Contains(m.byteSymbols[:], noSymbol)
		m.bytePairs = m.findBytePairs()
		m.seeds = m.newSeeds(list)
	}
	m.breaks = newBreaks(m, list)
	return m, nil
}

// findFallback lists the Byte tokens, the lowest ID of each byte.
func (m *Model) findFallback() {
	for b := range m.fallback {
		m.fallback[b] = vocab.None
	}
	if !m.byteFallback {
		return
	}
	for i := m.tokens - 1; i >= 0; i-- {
		if id := vocab.ID(i); m.vocab.Kind(id) == vocab.Byte && len(m.vocab.Bytes(id)) == 1 {
			m.fallback[m.vocab.Bytes(id)[0]] = id
		}
	}
}

// startFromBytes finds the symbols of single bytes.
func (m *Model) startFromBytes(names *names) {
	for b := range m.byteSymbols {
		one := []byte{byte(b)}
		sym, ok := names.find(one)
		switch {
		case ok && int(sym) < m.tokens:
		case m.fallback[b] != vocab.None:
			sym = symbol(m.fallback[b])
		case m.unknown != vocab.None:
			sym = symbol(m.unknown)
		case !ok || m.dropFirst:
			sym = noSymbol
		}
		m.byteSymbols[b] = sym
	}
}

func (m *Model) findBytePairs() []uint32 {
	orders := make([]uint32, 1<<16)
	for i := range orders {
		orders[i] = m.pairs.find(m.byteSymbols[i>>8], m.byteSymbols[i&0xff])
	}
	return orders
}

// findDirect finds out whether symbols need no further look when they are
// given as tokens, and whether merges only make tokens.
func (m *Model) findDirect(list *mergeList) {
	m.proper = true
	for _, sym := range list.made() {
		if int(sym) >= m.tokens || m.vocab.Kind(vocab.ID(sym)) == vocab.Unused {
			m.proper = false
		}
	}
	m.direct = m.proper
	for _, b := range m.extras {
		// A character such as Gemma 2's tab, which only longer tokens have, is a
		// Byte token where it remains.
		m.direct = m.direct && len(b) == 1 && m.fallback[b[0]] != vocab.None
	}
	fuses := m.fuse && m.unknown != vocab.None
	if m.chars == nil {
		for _, sym := range m.byteSymbols {
			m.direct = m.direct && sym != noSymbol && !(fuses && sym == symbol(m.unknown))
		}
	} else if !m.fallsBack() {
		m.direct = m.direct && (m.dropFirst || m.unknown != vocab.None) && !fuses
	}
}

// fallsBack reports whether there is a Byte token for every byte, so that no
// character is unknown.
func (m *Model) fallsBack() bool {
	for _, id := range m.fallback {
		if id == vocab.None {
			return false
		}
	}
	return true
}

// Proper reports whether each symbol that merging can leave is one token. Then
// a sequence of tokens is what the model gives for its bytes (as one piece,
// apart from the Whole rule) if and only if [Model.Apart] holds for each two
// neighbours:
//
// Up to the first merge across a border between two tokens of the sequence,
// merging inside each token goes as it would alone, for the lowest and leftmost
// of all pairs is also that of any part. So that first merge happens with the
// two tokens on their own too; and if there is none, each token is made.
//
// It needs no order among ranks. Bytes that the model loses (see
// [Model.Lacks]) and Unknown are outside of it, and with Config.Chars so are
// runs of Byte tokens: whether these stand for one character that has a token
// only the whole run tells, see [Model.Known].
func (m *Model) Proper() bool { return m.proper }

// Lacks reports whether no token stands for text with this byte, so that
// encoding may lose it. With Config.Chars that is known of ASCII only; for the
// bytes of longer characters it says whether there is a Byte token.
func (m *Model) Lacks(b byte) bool {
	if m.fallback[b] != vocab.None {
		return false
	}
	var sym symbol
	switch {
	case m.chars == nil:
		sym = m.byteSymbols[b]
	case b >= utf8.RuneSelf:
		return true
	default:
		sym = m.chars.of(rune(b))
	}
	return int(sym) >= m.tokens || m.unknown != vocab.None && sym == symbol(m.unknown)
}

// Known reports whether merging starts from a token for this character, rather
// than from Byte tokens or Unknown. Without Config.Chars that is so for
// single bytes.
func (m *Model) Known(char []byte) bool {
	if m.chars == nil {
		return len(char) == 1 && !m.Lacks(char[0])
	}
	r, size := utf8.DecodeRune(char)
	return size == len(char) && (r != utf8.RuneError || size == 3) && int(m.chars.of(r)) < m.tokens
}
