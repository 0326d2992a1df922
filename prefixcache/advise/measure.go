package advise

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A Seam is a text, and what is put behind it.
type Seam struct {
	Prefix, Next []byte
}

// A Measured says what happens to the tokens at the ends of texts once
// something follows.
type Measured struct {
	Seams int `json:"seams"`
	// Dirty is the share of seams at which tokens change: from 0 to 1.
	Dirty float64 `json:"dirty"`
	// Changed counts seams by how many tokens change, r: 0, 1, 2, and 3 or more.
	Changed [4]int `json:"changed"`
	// Mean and Max are of r; MeanDirty is the mean over dirty seams.
	Mean      float64 `json:"mean"`
	MeanDirty float64 `json:"mean_dirty"`
	Max       int     `json:"max"`
	// PrefixTokens is the mean length of the texts, in tokens.
	PrefixTokens float64 `json:"prefix_tokens"`
	// PendingTokens and PendingBytes are the means of what stands after the stable
	// prefix: what healing takes off the end, which is never less than r.
	PendingTokens float64 `json:"pending_tokens"`
	PendingBytes  float64 `json:"pending_bytes"`
	// Extra is the mean number of tokens more that an engine computes behind what
	// is kept than if what follows had been tokenized for itself behind a stable
	// seam. It is near 0, or below: tokens change because they merge with what
	// follows, so that fewer are computed of that.
	Extra float64 `json:"extra_tokens"`
	// Blocks are the losses of a cache that shares whole blocks.
	Blocks []BlockLoss `json:"blocks"`
}

// A BlockLoss is what a cache loses at seams because the text's tokens change.
type BlockLoss struct {
	Block int `json:"block"` // tokens
	// Tokens is the mean over seams of the tokens in blocks that are lost.
	Tokens float64 `json:"tokens"`
	// Requests is the share of seams that lose a block at all.
	Requests float64 `json:"requests"`
	// AnyLength is Requests if a text of any length stood before the seams, such
	// as a system prompt: the mean over all lengths. Tokens is then the mean r, for
	// any block.
	AnyLength float64 `json:"requests_any_length"`
	// Most is the largest loss met, and Worst the largest that is possible with
	// the largest r met.
	Most  int `json:"most"`
	Worst int `json:"worst"`
}

// A Measurer counts what happens at seams, one after another. It is for one
// goroutine.
type Measurer struct {
	x      *tokenizer.Text
	alone  []vocab.ID
	blocks []int
	ids    []vocab.ID

	seams, changed, dirty int
	counts                [4]int
	most                  int
	tokens                int
	pending, pendingBytes int
	extra                 int
	lost, hit, worst      []int
	edges                 []int // the sum of r, at most a block each
}

// DefaultBlocks are block sizes of engines, in tokens: SGLang's page, vLLM's
// block, that of attention with a latent, and two of hybrid models.
var DefaultBlocks = []int{1, 16, 64, 528, 1056}

// NewMeasurer makes a measurer. blocks are the sizes of a cache's blocks in
// tokens; none: [DefaultBlocks]. It is an error if one is not positive.
func NewMeasurer(t *tokenizer.Tokenizer, blocks ...int) (*Measurer, error) {
	if len(blocks) == 0 {
		blocks = DefaultBlocks
	}
	for _, b := range blocks {
		if b < 1 {
			return nil, fmt.Errorf("advise: a block of %d tokens: give a positive size", b)
		}
	}
	n := len(blocks)
	return &Measurer{
		x: t.NewText(false), blocks: slices.Clone(blocks),
		lost: make([]int, n), hit: make([]int, n), worst: make([]int, n), edges: make([]int, n),
	}, nil
}

// Add counts one seam: all of s.Next is put behind s.Prefix.
func (m *Measurer) Add(s Seam) {
	m.x.Reset()
	m.x.Append(s.Prefix)
	m.grow(s.Next)
}

// AddKeystrokes counts a seam for each character of s.Next: it is put behind
// what stands before it. Bytes that are no character count as one each.
func (m *Measurer) AddKeystrokes(s Seam) {
	m.x.Reset()
	m.x.Append(s.Prefix)
	for next := s.Next; len(next) > 0; {
		_, n := utf8.DecodeRune(next)
		m.grow(next[:n])
		next = next[n:]
	}
}

// grow appends to the text and counts the tokens that change.
func (m *Measurer) grow(next []byte) {
	m.ids = append(m.ids[:0], m.x.IDs()...)
	n := len(m.ids)
	stable, stableBytes := boundary.Stable(m.x)
	m.pending += n - stable
	m.pendingBytes += len(m.x.Bytes()) - stableBytes
	m.x.Append(next)
	r := n - vocab.CommonPrefix(m.ids, m.x.IDs())
	m.alone = m.x.Tokenizer().EncodeInside(m.alone[:0], next)
	m.extra += len(m.x.IDs()) - (n - r) - len(m.alone)
	m.seams++
	m.tokens += n
	m.changed += r
	m.counts[min(r, len(m.counts)-1)]++
	m.most = max(m.most, r)
	if r > 0 {
		m.dirty++
	}
	for i, b := range m.blocks {
		lost := LostTokens(n, r, b)
		m.lost[i] += lost
		m.edges[i] += min(r, b)
		m.worst[i] = max(m.worst[i], lost)
		if lost > 0 {
			m.hit[i]++
		}
	}
}

// LostTokens is how many of n tokens a cache of whole blocks has lost if the
// last r of them change: those of the blocks that were full before and are not
// any more. Over many n it is r on average, for any block size.
func LostTokens(n, r, block int) int {
	return (n/block - (n-r)/block) * block
}

// Result is what was counted so far. Shares and means are 0 without seams.
func (m *Measurer) Result() Measured {
	seams := float64(max(m.seams, 1))
	d := Measured{
		Seams: m.seams, Changed: m.counts, Max: m.most,
		Dirty: float64(m.dirty) / seams, Mean: float64(m.changed) / seams,
		MeanDirty: float64(m.changed) / float64(max(m.dirty, 1)), PrefixTokens: float64(m.tokens) / seams,
		PendingTokens: float64(m.pending) / seams, PendingBytes: float64(m.pendingBytes) / seams,
		Extra: float64(m.extra) / seams,
	}
	for i, b := range m.blocks {
		d.Blocks = append(d.Blocks, BlockLoss{
			Block: b, Tokens: float64(m.lost[i]) / seams, Requests: float64(m.hit[i]) / seams,
			AnyLength: float64(m.edges[i]) / seams / float64(b),
			Most:      m.worst[i], Worst: (m.most + b - 1) / b * b,
		})
	}
	return d
}

// Measure counts seams: with keystrokes one for each character that follows,
// else one for each text. blocks are as in [NewMeasurer].
func Measure(t *tokenizer.Tokenizer, seams iter.Seq[Seam], keystrokes bool, blocks ...int) (Measured, error) {
	m, err := NewMeasurer(t, blocks...)
	if err != nil {
		return Measured{}, err
	}
	for s := range seams {
		if keystrokes {
			m.AddKeystrokes(s)
		} else {
			m.Add(s)
		}
	}
	return m.Result(), nil
}

// Markdown writes a table of the measured figures, a row for each of names.
func Markdown(w io.Writer, names []string, rows []Measured) error {
	if len(names) != len(rows) {
		return fmt.Errorf("advise: %d names for %d rows", len(names), len(rows))
	}
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("| tokenizer, text | seams | dirty | r = 0 | 1 | 2 | 3+ | mean r | max | extra |")
	for _, l := range rows[0].Blocks {
		fmt.Fprintf(&b, " tokens lost, B = %d (requests; any length) |", l.Block)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", 9+len(rows[0].Blocks)) + "\n")
	for i, m := range rows {
		seams := float64(max(m.Seams, 1))
		fmt.Fprintf(&b, "| %s | %d | %.1f %% |", names[i], m.Seams, 100*m.Dirty)
		for _, n := range m.Changed {
			fmt.Fprintf(&b, " %.1f %% |", 100*float64(n)/seams)
		}
		fmt.Fprintf(&b, " %.3f | %d | %+.3f |", m.Mean, m.Max, m.Extra)
		for _, l := range m.Blocks {
			fmt.Fprintf(&b, " %.2f (%.2f %%; %.2f %%) |", l.Tokens, 100*l.Requests, 100*l.AnyLength)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
