// Package wordpiece cuts words into the pieces of a WordPiece vocabulary, as
// BERT does: always the longest piece that the rest of the word begins with
// (Wu et al. 2016, "Google's Neural Machine Translation System"). Pieces that do
// not begin a word are spelled with a prefix. A word that cannot be cut so is
// one unknown token.
package wordpiece

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer/internal/unigram/trie"
	"github.com/unfray/unfray/vocab"
)

// Config is what a model is made of.
type Config struct {
	Vocab *vocab.Vocab
	// Prefix is how the pieces begin that do not begin a word: "##". The bytes of
	// those tokens have it.
	Prefix string
	// MaxChars is the length in code points beyond which a word is unknown; 100
	// if it is 0.
	MaxChars int
	// Unknown stands for words that cannot be cut; [vocab.None] leaves them out.
	Unknown vocab.ID
	// Added reports tokens that are in the vocabulary but no pieces; it may be
	// nil.
	Added func(id vocab.ID) bool
}

const defaultMaxChars = 100

// Model is a WordPiece vocabulary. It does not change after it is made and may
// be shared by goroutines.
type Model struct {
	first, rest *trie.Trie // pieces that begin a word, and the others without prefix
	maxChars    int
	unknown     vocab.ID
}

// New makes a model.
func New(c Config) (*Model, error) {
	if c.MaxChars < 0 {
		return nil, fmt.Errorf("wordpiece: words of at most %d characters; give 0 for %d", c.MaxChars, defaultMaxChars)
	}
	if c.Unknown != vocab.None && !c.Vocab.Valid(c.Unknown) {
		return nil, fmt.Errorf("wordpiece: the unknown token is %d, but there are %d tokens", c.Unknown, c.Vocab.Len())
	}
	m := &Model{maxChars: c.MaxChars, unknown: c.Unknown}
	if m.maxChars == 0 {
		m.maxChars = defaultMaxChars
	}
	var first, rest []trie.Entry
	for i := range c.Vocab.Len() {
		if c.Added != nil && c.Added(vocab.ID(i)) {
			continue
		}
		text := c.Vocab.Bytes(vocab.ID(i))
		first = append(first, trie.Entry{Text: text, ID: int32(i)})
		if after, ok := bytes.CutPrefix(text, []byte(c.Prefix)); ok {
			rest = append(rest, trie.Entry{Text: after, ID: int32(i)})
		}
	}
	var err error
	if m.first, err = trie.New(first); err != nil {
		return nil, fmt.Errorf("wordpiece: %w", err)
	}
	if m.rest, err = trie.New(rest); err != nil {
		return nil, fmt.Errorf("wordpiece: %w", err)
	}
	return m, nil
}

// Scratch is the working memory of one goroutine: none, so far as the result
// has room.
type Scratch struct{}

// AppendPiece appends the IDs of a word to dst.
func (m *Model) AppendPiece(dst []vocab.ID, word []byte, _ *Scratch) []vocab.ID {
	if len(word) == 0 {
		return dst
	}
	if longer(word, m.maxChars) {
		return m.appendUnknown(dst)
	}
	n := len(dst)
	for pieces := m.first; len(word) > 0; pieces = m.rest {
		id, size := longest(pieces, word)
		if size == 0 {
			return m.appendUnknown(dst[:n])
		}
		dst = append(dst, vocab.ID(id))
		word = word[size:]
	}
	return dst
}

// longer reports whether a word has more than a number of code points.
func longer(word []byte, limit int) bool {
	if len(word) <= limit {
		return false
	}
	n := 0
	for i := 0; i < len(word); n++ {
		if n == limit {
			return true
		}
		_, size := utf8.DecodeRune(word[i:])
		i += size
	}
	return false
}

func (m *Model) appendUnknown(dst []vocab.ID) []vocab.ID {
	if m.unknown == vocab.None {
		return dst
	}
	return append(dst, m.unknown)
}

// longest finds the longest piece that text begins with: its ID and its size in
// bytes, 0 if there is none.
func longest(pieces *trie.Trie, text []byte) (id int32, size int) {
	base := pieces.Root()
	for i, c := range text {
		s := pieces.Child(base, c)
		if s == nil {
			break
		}
		if s.ID >= 0 {
			id, size = s.ID, i+1
		}
		base = s.Base()
	}
	return id, size
}
