package boundary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Proof says for a text, such as a delimiter that a prompt ends with, whether
// its tokens stay whatever follows, and if not, what makes them change.
type Proof struct {
	// IDs is the tokenization of the text.
	IDs []vocab.ID
	// Stable says that no continuation changes any of IDs.
	Stable bool
	// Breaks lists the next bytes with which some continuation begins that
	// changes IDs. After any other byte nothing does. It is empty if Stable.
	Breaks []Break
}

// Break is a set of next bytes of one kind that are followed by a change.
type Break struct {
	Kind string  // in words: "a newline"
	Next ByteSet // the bytes
	// Example is a continuation that begins with the first of the bytes and
	// changes the tokens; it was encoded. It is nil if none was found: then the
	// bytes are here because nothing proves that they are harmless.
	Example []byte
	// Becomes holds the tokens of the text with the example, up to the one that
	// reaches or passes the end of the text.
	Becomes []vocab.ID
	// Kept is how many of the text's tokens Becomes begins with.
	Kept int
}

// ByteSet is a set of bytes.
type ByteSet [4]uint64

// Has reports whether a byte is in the set.
func (s *ByteSet) Has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// Set adds a byte.
func (s *ByteSet) Set(b byte) { s[b>>6] |= 1 << (b & 63) }

// String lists the bytes as characters and ranges of them: 'a'-'z' '\n' 0xe2.
func (s *ByteSet) String() string {
	var parts []string
	show := func(b int) string {
		if b < 0x80 {
			return fmt.Sprintf("%q", rune(b))
		}
		return fmt.Sprintf("%#02x", b)
	}
	for b := 0; b < 256; b++ {
		if !s.Has(byte(b)) {
			continue
		}
		end := b
		for end < 255 && s.Has(byte(end+1)) && (end+1 < 0x80) == (b < 0x80) {
			end++
		}
		switch {
		case end == b:
			parts = append(parts, show(b))
		case end == b+1:
			parts = append(parts, show(b), show(end))
		default:
			parts = append(parts, show(b)+"-"+show(end))
		}
		b = end
	}
	return strings.Join(parts, " ")
}

// Prove makes the proof for plain text.
func Prove(t *tokenizer.Tokenizer, text []byte) *Proof { return prove(t.NewText(false), text) }

// ProveSpecial makes the proof for text in which control tokens are recognized,
// as they are in what follows.
func ProveSpecial(t *tokenizer.Tokenizer, text []byte) *Proof { return prove(t.NewText(true), text) }

// prover tries what may follow a text.
type prover struct {
	a     analysis
	x     *tokenizer.Text
	size  int // bytes of the text
	proof *Proof
	tries int
}

func prove(x *tokenizer.Text, text []byte) *Proof {
	x.Append(text)
	p := &prover{x: x, size: len(text), proof: &Proof{IDs: slices.Clone(x.IDs())}}
	n := len(p.proof.IDs)
	if tokens, _ := Stable(x); tokens == n {
		p.proof.Stable = true
		return p.proof
	}
	for b := range 256 {
		x.Truncate(p.size)
		x.Append([]byte{byte(b)})
		p.a.load(x)
		kept := p.a.tail.Tokens + p.a.stable()
		if kept >= n && slices.Equal(p.a.ids[:n], p.proof.IDs) {
			continue
		}
		p.add(byte(b), p.example(byte(b)))
	}
	p.proof.Stable = len(p.proof.Breaks) == 0
	return p.proof
}

// add adds a byte to the break of its kind.
func (p *prover) add(b byte, found Break) {
	found.Kind = kindOf(b)
	for i := range p.proof.Breaks {
		o := &p.proof.Breaks[i]
		if o.Kind == found.Kind && (o.Example == nil) == (found.Example == nil) && o.Kept == found.Kept {
			o.Next.Set(b)
			return
		}
	}
	found.Next.Set(b)
	p.proof.Breaks = append(p.proof.Breaks, found)
}

// maxExamples bounds the continuations that are encoded for one byte.
const maxExamples = 400

// example looks for a continuation that begins with b and changes the tokens.
// p.a is the analysis of the text with b.
func (p *prover) example(b byte) (found Break) {
	p.tries = 0
	for s := range p.continuations(b) {
		if p.tries++; p.tries > maxExamples {
			break
		}
		if found, ok := p.try(s); ok {
			return found
		}
	}
	return found
}

// try encodes the text with a continuation.
func (p *prover) try(s []byte) (Break, bool) {
	p.x.Truncate(p.size)
	p.x.Append(s)
	ids := p.x.IDs()
	kept := vocab.CommonPrefix(ids, p.proof.IDs)
	if kept == len(p.proof.IDs) {
		return Break{}, false
	}
	_, ends := p.x.Tokenizer().EncodeEnds(nil, nil, p.x.Bytes(), p.x.Special())
	n := 0
	for n < len(ids) && (n == 0 || ends[n-1] < p.size) {
		n++
	}
	return Break{Example: slices.Clone(s), Becomes: slices.Clone(ids[:n]), Kept: min(kept, n)}, true
}

// follow are tried after what a branch suggests.
var follow = []string{"", "a", " ", "\n", "1", "!", "s", " a", "\n\n"}

// composing are characters that normal forms put together with letters.
var composing = []string{"\u0300", "\u0301", "\u0302", "\u0303", "\u0308", "\u030a", "\u030c", "\u0327", "\u0328", "\u0338", "\u0345", "\u0653", "\u0654", "\u093c", "\u1161", "\u11a8", "\u3099", "\u309a"}

// continuations lists what may follow the text, beginning with b: first what
// the branches of the text with b suggest.
func (p *prover) continuations(b byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, f := range follow {
			if !yield(append([]byte{b}, f...)) {
				return
			}
		}
		for _, more := range p.suggestions() {
			for _, f := range follow {
				if !yield(append(append([]byte{b}, more...), f...)) {
					return
				}
			}
		}
		for _, c := range composing {
			if c[0] == b && !yield([]byte(c)) || !yield(append([]byte{b}, c...)) {
				return
			}
		}
	}
}

// suggestions are the ends of tokens that may go on after the text with one more
// byte, by the branches that leave its tokens first.
func (p *prover) suggestions() (list [][]byte) {
	a := &p.a
	if a.opaque != "" {
		return nil
	}
	add := func(id vocab.ID, n int) { list = append(list, a.v.Bytes(id)[n:]) }
	for i := range a.readings {
		rd := &a.readings[i]
		rest := a.tail.Text[rd.Open:rd.Until]
		if rd.Added != vocab.None {
			add(rd.Added, len(rest))
			continue
		}
		if rd.Until < len(a.tail.Text) {
			continue
		}
		a.work = trials
		for q := a.firstRest(rd); q < rd.Until; q++ {
			rest := a.tail.Text[q:rd.Until]
			shared, own := a.pathTo(rd, q)
			last := lastOf(rd.ids[:shared], own)
			n := 0
			for _, id := range a.v.Sorted(extensions(a.v, rest)) {
				if n == 3 || a.work <= 0 {
					break
				}
				if a.joins(rd, q, last, id) {
					add(id, len(rest))
					n++
				}
			}
		}
	}
	return list
}

// kindOf says in words what kind of byte comes next.
func kindOf(b byte) string {
	switch {
	case b == '\n' || b == '\r':
		return "a newline"
	case b == ' ':
		return "a space"
	case b == '\t' || b == '\v' || b == '\f':
		return "a tab"
	case b == '\'':
		return "an apostrophe"
	case 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z':
		return "a letter"
	case '0' <= b && b <= '9':
		return "a digit"
	case b < ' ' || b == 0x7f:
		return "a control character"
	case b < 0x80:
		return "a punctuation mark or sign"
	case 0xc2 <= b && b <= 0xf4:
		return "a character beyond ASCII"
	}
	return "a byte that begins no character"
}

// String says in one line what the proof shows.
func (p *Proof) String() string {
	if p.Stable {
		return "stable before any continuation"
	}
	var kinds []string
	for i := range p.Breaks {
		b := &p.Breaks[i]
		s := b.Kind + " (" + b.Next.String() + ")"
		if b.Example == nil {
			s += ", not proved harmless"
		}
		kinds = append(kinds, s)
	}
	return "stable unless the next text begins with " + strings.Join(kinds, "; or ")
}
