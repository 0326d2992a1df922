// Package unigram cuts text into the pieces of a unigram language model: of all
// ways to write a text as a sequence of pieces, the one with the best sum of
// scores (Kudo 2018, "Subword Regularization"; Viterbi 1967).
//
//   - The IDs are those of SentencePiece 0.2.3 ([Config].Single) or Hugging Face
//     tokenizers 0.23, also where sums tie: both keep the first of equal ones,
//     and what is equal depends on how they round. SentencePiece up to 0.2.1
//     compared sums before it rounded them and scored user-defined pieces
//     otherwise; its IDs differ where sums are equal or nearly so.
//   - The best path to a place in a text is the beginning of the best path to
//     every later place that passes there; so [Model.AppendPiece] of text[:p] is
//     the best path to p, whatever follows.
//   - Time is linear in the text, by at most the length of the longest piece for
//     each character.
package unigram

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer/internal/unigram/trie"
	"github.com/unfray/unfray/vocab"
)

// Config is what a model is made of.
type Config struct {
	Vocab *vocab.Vocab
	// Scores by ID. Tokens beyond them are none of the model's pieces.
	Scores []float64
	// Single is for SentencePiece: sums are float32, and only tokens of the
	// kinds Normal and UserDefined are pieces. Otherwise all tokens with a score
	// are, those of kind Byte as they are spelled: "<0x0A>".
	Single bool
	// Unknown stands for characters without a piece; [vocab.None] leaves them
	// out.
	Unknown vocab.ID
	// ByteFallback makes the Byte tokens of their bytes stand for them instead.
	ByteFallback bool
	// Absent reports tokens that no text holds as they are spelt; it may be nil.
	Absent func(id vocab.ID) bool
	// FuseUnknown makes one Unknown of several side by side.
	FuseUnknown bool
}

// unknownPenalty is how much worse than the worst piece a character without one
// is.
const unknownPenalty = 10

// Model is a unigram model. It does not change after it is made and may be
// shared by goroutines.
type Model struct {
	trie         *trie.Trie
	maxLen       int // bytes of the longest piece
	single       bool
	unknown      vocab.ID
	unknownScore float64
	fuse         bool
	fallback     bool
	bytes        [256]vocab.ID // Byte tokens
}

// New makes a model.
func New(c Config) (*Model, error) {
	if len(c.Scores) > c.Vocab.Len() {
		return nil, fmt.Errorf("unigram: %d scores for %d tokens", len(c.Scores), c.Vocab.Len())
	}
	if c.Unknown != vocab.None && !c.Vocab.Valid(c.Unknown) {
		return nil, fmt.Errorf("unigram: the unknown token is %d, but there are %d tokens", c.Unknown, c.Vocab.Len())
	}
	m := &Model{single: c.Single, unknown: c.Unknown, fuse: c.FuseUnknown, fallback: c.ByteFallback}
	for b := range m.bytes {
		m.bytes[b] = vocab.None
	}
	for i := range c.Vocab.Len() {
		id := vocab.ID(i)
		if b := c.Vocab.Bytes(id); c.Vocab.Kind(id) == vocab.Byte && len(b) == 1 {
			m.bytes[b[0]] = id
		}
	}
	for id, score := range c.Scores {
		if math.IsNaN(score) || math.IsInf(score, 0) || c.Single && math.Abs(score) > math.MaxFloat32 {
			return nil, fmt.Errorf("unigram: the score of token %d is %v", id, score)
		}
	}
	entries := m.entries(c)
	var err error
	m.trie, err = trie.New(entries)
	for _, e := range entries {
		m.maxLen = max(m.maxLen, len(e.Text))
	}
	return m, err
}

// entries lists the pieces and sets the score of the unknown.
func (m *Model) entries(c Config) []trie.Entry {
	worst := math.Inf(1)
	if c.Single {
		worst = math.MaxFloat32
	}
	var entries []trie.Entry
	for i, score := range c.Scores {
		id := vocab.ID(i)
		kind, text := c.Vocab.Kind(id), c.Vocab.Bytes(id)
		switch {
		case !c.Single:
			worst = min(worst, score)
			if c.Absent != nil && c.Absent(id) {
				continue
			}
			if kind == vocab.Byte && len(text) == 1 {
				text = fmt.Appendf(nil, "<0x%02X>", text[0])
			}
		case kind == vocab.Normal:
			score = float64(float32(score))
			worst = min(worst, score)
		case kind == vocab.UserDefined:
			score = userDefinedScore(text)
		default:
			continue
		}
		entries = append(entries, trie.Entry{Text: text, ID: int32(id), Score: score})
	}
	m.unknownScore = worst - unknownPenalty
	if c.Single {
		m.unknownScore = float64(float32(m.unknownScore))
	}
	return entries
}

// userDefinedScore is SentencePiece's score of a user-defined piece, so that it
// wins against any other way as a rule. Its length is that with spaces written
// as U+2581, of three bytes.
func userDefinedScore(text []byte) float64 {
	n := len(text) + 2*bytes.Count(text, []byte{' '})
	return float64(float32(0.1 * float64(n-1)))
}

// Scratch is the working memory of one goroutine. Its zero value is ready.
type Scratch struct {
	nodes []node
	path  []node
}

// node is the best way to a place in the text.
type node struct {
	score  float64
	id     int32 // of its last piece
	length int32 // of that, in bytes; 0 for places that no way leads to
}

const (
	// window is how many bytes of text are looked at before it is tried to
	// settle some of them.
	window = 1 << 12
	// maxKept is up to how many bytes of text the working memory is kept.
	maxKept = 1 << 16
)

// run is what has been settled of a text.
type run struct {
	dst  []vocab.ID
	text []byte
	at   int // where the settled part ends
	// unknownFrom is where the characters without a piece at its end begin, -1
	// for none.
	unknownFrom int
}

// AppendPiece appends the IDs of a segment of text to dst. Memory beyond the
// result is bounded on all texts but those over which two different best paths
// run side by side without end.
func (m *Model) AppendPiece(dst []vocab.ID, piece []byte, s *Scratch) []vocab.ID {
	if len(piece) == 0 {
		return dst
	}
	return m.appendPiece(dst, piece, s, window)
}

// appendPiece is AppendPiece with a window of limit bytes or more.
func (m *Model) appendPiece(dst []vocab.ID, piece []byte, s *Scratch, limit int) []vocab.ID {
	r := run{dst: dst, text: piece, unknownFrom: -1}
	s.reserve(min(len(piece), limit+m.maxLen+utf8.UTFMax) + 1)
	// Invariant: nodes[k] is of the place base+k; those up to far are made.
	nodes := s.nodes
	base, far := 0, 0
	nodes[0] = node{}
	for i := 0; i < len(piece); {
		if i-base >= limit {
			if p := meet(nodes, i-base, far-base); p > 0 {
				m.settle(&r, nodes, p, s)
				copy(nodes, nodes[p:far-base+1])
				base += p
			} else {
				limit *= 2
			}
			s.reserve(min(len(piece)-base, limit+m.maxLen+utf8.UTFMax) + 1)
			nodes = s.nodes
		}
		size := 1
		if piece[i] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(piece[i:])
		}
		if m.single {
			rebase(nodes[i-base : far-base+1])
		}
		far = m.extend(nodes[i-base:], piece[i:], size, far-i) + i
		i += size
	}
	m.settle(&r, nodes, len(piece)-base, s)
	m.endUnknown(&r)
	if cap(s.nodes) > maxKept {
		s.nodes, s.path = nil, nil
	}
	return r.dst
}

// reserve makes room for n nodes.
func (s *Scratch) reserve(n int) {
	if n > len(s.nodes) {
		s.nodes = append(s.nodes, make([]node, n-len(s.nodes))...)
	}
}

// maxScore is the sum beyond which SentencePiece counts anew, for the sake of
// what float32 rounds away.
const maxScore = 100_000

// rebase takes the first score from all, if it is too far from 0.
func rebase(nodes []node) {
	offset := nodes[0].score
	if -maxScore <= offset && offset <= maxScore {
		return
	}
	for k := range nodes {
		nodes[k].score = float64(float32(nodes[k].score - offset))
	}
}

// extend goes on from nodes[0] by every piece that text begins with, and by its
// first character, of size bytes, if that is none. Nodes up to far are made; the
// new far is returned.
func (m *Model) extend(nodes []node, text []byte, size, far int) int {
	score := nodes[0].score
	base, alone := m.trie.Root(), false
	for k, c := range text {
		s := m.trie.Child(base, c)
		if s == nil {
			break
		}
		if s.ID >= 0 {
			n := k + 1
			for far < n {
				far++
				nodes[far] = node{}
			}
			sum := s.Score + score
			if m.single {
				sum = float64(float32(sum))
			}
			if to := &nodes[n]; to.length == 0 || sum > to.score {
				*to = node{sum, s.ID, int32(n)}
			}
			alone = alone || n == size
		}
		base = s.Base()
	}
	if alone {
		return far
	}
	for far < size {
		far++
		nodes[far] = node{}
	}
	sum := m.unknownScore + score
	if m.single {
		sum = float64(float32(sum))
	}
	if to := &nodes[size]; to.length == 0 || sum > to.score {
		*to = node{sum, int32(m.unknown), int32(size)}
	}
	return far
}

// meet gives the last place that the best ways to all of nodes[lo:hi+1] pass,
// which no text to come can change. It is 0 if they part at once.
func meet(nodes []node, lo, hi int) int {
	// The marks of places that are passed are negative lengths.
	count := 0
	for k := lo; k <= hi; k++ {
		if n := &nodes[k]; n.length > 0 {
			n.length = -n.length
			count++
		}
	}
	met, k := 0, hi
	for ; k > 0; k-- {
		n := &nodes[k]
		if n.length >= 0 {
			continue
		}
		n.length = -n.length
		if count == 1 {
			met = k
			break
		}
		count--
		p := &nodes[k-int(n.length)]
		if p == &nodes[0] {
			break
		}
		if p.length > 0 {
			p.length = -p.length
			count++
		}
	}
	for j := range k {
		if n := &nodes[j]; n.length < 0 {
			n.length = -n.length
		}
	}
	return met
}

// settle appends the IDs of the best way to nodes[n].
func (m *Model) settle(r *run, nodes []node, n int, s *Scratch) {
	s.path = s.path[:0]
	for k := n; k > 0; k -= int(nodes[k].length) {
		s.path = append(s.path, nodes[k])
	}
	for _, n := range slices.Backward(s.path) {
		if vocab.ID(n.id) != m.unknown {
			m.endUnknown(r)
			r.dst = append(r.dst, vocab.ID(n.id))
		} else if r.unknownFrom < 0 {
			r.unknownFrom = r.at
		}
		r.at += int(n.length)
		if !m.fuse {
			m.endUnknown(r)
		}
	}
}

// endUnknown appends what stands for the characters without a piece at the end
// of the settled text.
func (m *Model) endUnknown(r *run) {
	if r.unknownFrom < 0 {
		return
	}
	text := r.text[r.unknownFrom:r.at]
	r.unknownFrom = -1
	if !m.single && len(text) <= m.maxLen {
		// Side by side they may be a piece that was worse than they are.
		if id, ok := m.trie.Find(text); ok {
			r.dst = append(r.dst, vocab.ID(id))
			return
		}
	}
	if m.fallback {
		n := len(r.dst)
		for _, b := range text {
			if m.bytes[b] == vocab.None {
				r.dst = r.dst[:n]
				break
			}
			r.dst = append(r.dst, m.bytes[b])
		}
		if len(r.dst) > n {
			return
		}
	}
	if m.unknown != vocab.None {
		r.dst = append(r.dst, m.unknown)
	}
}
