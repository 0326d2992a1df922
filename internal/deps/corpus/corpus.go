// Package corpus defines the texts on which tokenizers are compared with their references: what they are made of, how
// long they are, and where they are cut. `go run ./internal/deps/fetch -vocabs` builds them into the cache.
//
//   - Everybody has the same bytes: each text has a pinned SHA-256.
//   - Every text is valid UTF-8, so that all references accept it.
package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"unicode/utf8"
)

// A Corpus is one text.
type Corpus struct {
	Name   string
	From   string // what it is made of
	Bytes  int    // its length
	SHA256 string // of its bytes, in hexadecimal
}

// Limit is the length in bytes that the corpora of real text are cut to.
const Limit = 20 << 20

// All lists the corpora.
var All = []Corpus{
	{
		Name: "go", From: "Go files of Kubernetes 1.36.3 that no generator wrote, in the order of their paths",
		Bytes: 20971520, SHA256: "4097276b7df898f1f0668b1e0af0f561e8621ca0e16198ccb3e35b5b68d11fa0",
	},
	{
		Name: "multi", From: "translations of Django 5.2.19, Horizon 27.0.0 and Wagtail 8.0.1 in about 100 languages, the Universal Declaration of Human Rights, VS Code's messages in Japanese, Korean, Russian and Chinese, War and Peace",
		Bytes: 20971520, SHA256: "4f55a2d0c77454f0b4656e7b009db85796b265cfa1811a912f74fb3841cb0cf9",
	},
	{
		Name: "fuzz", From: "every code point assigned in Unicode 15.1, and random strings of what pre-tokenizers disagree about",
		Bytes: 4194293, SHA256: "5a8727a8fc574ba7cde6931478ca49e45ba52194b42b23c43ebea9c9ebe67ef2",
	},
}

// Find returns the corpus of that name.
func Find(name string) (Corpus, bool) {
	for _, c := range All {
		if c.Name == name {
			return c, true
		}
	}
	return Corpus{}, false
}

// Check reports whether text is the corpus.
func (c Corpus) Check(text []byte) error {
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); len(text) != c.Bytes || got != c.SHA256 {
		return fmt.Errorf("corpus %s: %d bytes with SHA-256 %s, want %d with %s", c.Name, len(text), got, c.Bytes, c.SHA256)
	}
	return nil
}

// ChunkBytes is the length that chunks have at most.
const ChunkBytes = 4096

// Chunks cuts text into the pieces whose ids are recorded, and yields the offset of each in bytes. A chunk ends after
// the last newline in its second half, else before the character that would make it longer than [ChunkBytes].
// testdata/reference/record.py cuts in the same way.
func Chunks(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for at := 0; at < len(text); {
			end := at + cut(text[at:])
			if !yield(at, text[at:end]) {
				return
			}
			at = end
		}
	}
}

// cut returns the length of the chunk that text begins with.
func cut(text []byte) int {
	if len(text) <= ChunkBytes {
		return len(text)
	}
	if i := bytes.LastIndexByte(text[ChunkBytes/2:ChunkBytes], '\n'); i >= 0 {
		return ChunkBytes/2 + i + 1
	}
	return whole(text, ChunkBytes)
}

// whole returns the largest boundary of a character in text at or below n.
func whole(text []byte, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
