package bpe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// toy is a vocabulary and its merges, with byte-pair encoding as it is
// defined: over and over, of all neighbours that merge, the leftmost of those
// with the lowest rank are joined.
type toy struct {
	alphabet []string // of random texts
	tokens   []string
	kinds    []vocab.Kind
	merges   [][2]string // without byID and scores
	byID     bool
	scores   []float32

	chars, whole, fallback, fuse, dropFirst bool
	unknown                                 vocab.ID
}

func (c toy) String() string {
	return fmt.Sprintf("tokens %q merges %q byID %v scores %v chars %v whole %v fallback %v fuse %v dropFirst %v unknown %d",
		c.tokens, c.merges, c.byID, c.scores, c.chars, c.whole, c.fallback, c.fuse, c.dropFirst, c.unknown)
}

func (c toy) config(t testing.TB) Config {
	t.Helper()
	var tokens [][]byte
	for _, s := range c.tokens {
		tokens = append(tokens, []byte(s))
	}
	kinds := slices.Clone(c.kinds)
	for len(kinds) < len(tokens) {
		kinds = append(kinds, vocab.Normal)
	}
	v, err := vocab.New(tokens, kinds, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	conf := Config{
		Vocab: v, ByID: c.byID, Scores: c.scores, Chars: c.chars, Whole: c.whole,
		ByteFallback: c.fallback, Unknown: c.unknown, FuseUnknown: c.fuse, DropFirst: c.dropFirst,
	}
	if !c.byID && c.scores == nil {
		conf.Merges = func(yield func(left, right []byte) bool) {
			for _, m := range c.merges {
				if !yield([]byte(m[0]), []byte(m[1])) {
					return
				}
			}
		}
	}
	return conf
}

func (c toy) model(t testing.TB) *Model {
	t.Helper()
	m, err := New(c.config(t))
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	return m
}

// id finds a token that merging may name: Normal ones only, to keep it simple.
func (c toy) id(s string) vocab.ID {
	for i, token := range c.tokens {
		if token == s && (i >= len(c.kinds) || c.kinds[i] == vocab.Normal) {
			return vocab.ID(i)
		}
	}
	return vocab.None
}

func (c toy) byteID(b byte) vocab.ID {
	for i, token := range c.tokens {
		if i < len(c.kinds) && c.kinds[i] == vocab.Byte && token == string([]byte{b}) {
			return vocab.ID(i)
		}
	}
	return vocab.None
}

// rank gives the rank of a pair as a number of which the lowest comes first.
func (c toy) rank(left, right string) (float64, bool) {
	switch {
	case c.byID:
		id := c.id(left + right)
		return float64(id), id != vocab.None
	case c.scores != nil:
		id := c.id(left + right)
		if id == vocab.None {
			return 0, false
		}
		return -float64(c.scores[id]), true
	}
	i := slices.Index(c.merges, [2]string{left, right})
	return float64(i), i >= 0
}

// lost gives what a character without a token becomes.
func (c toy) lost(char string) []vocab.ID {
	var ids []vocab.ID
	if c.fallback {
		for _, b := range []byte(char) {
			if id := c.byteID(b); id != vocab.None {
				ids = append(ids, id)
			}
		}
		if len(ids) == len(char) {
			return ids
		}
	}
	if c.unknown != vocab.None {
		return []vocab.ID{c.unknown}
	}
	return nil
}

func (c toy) characters(text string) []string {
	var parts []string
	for len(text) > 0 {
		size := 1
		if c.chars {
			_, size = utf8.DecodeRuneInString(text)
		}
		parts = append(parts, text[:size])
		text = text[size:]
	}
	return parts
}

// encode is the definition. Parts that are lost are "", with their tokens
// kept beside them.
func (c toy) encode(text string, whole bool) []vocab.ID {
	if id := c.id(text); whole && c.whole && id != vocab.None {
		return []vocab.ID{id}
	}
	type part struct {
		text string
		lost []vocab.ID
	}
	var parts []part
	for _, char := range c.characters(text) {
		if c.id(char) != vocab.None || c.merging(char) {
			parts = append(parts, part{text: char})
		} else if ids := c.lost(char); ids != nil || !c.dropFirst {
			parts = append(parts, part{lost: ids})
		}
	}
	for {
		best, at := 0.0, -1
		for i := range len(parts) - 1 {
			if parts[i].text == "" || parts[i+1].text == "" {
				continue
			}
			if r, ok := c.rank(parts[i].text, parts[i+1].text); ok && (at < 0 || r < best) {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		parts[at].text += parts[at+1].text
		parts = slices.Delete(parts, at+1, at+2)
	}
	var ids []vocab.ID
	add := func(id vocab.ID) {
		if !(c.fuse && id == c.unknown && len(ids) > 0 && ids[len(ids)-1] == id) {
			ids = append(ids, id)
		}
	}
	for _, p := range parts {
		for _, id := range p.lost {
			add(id)
		}
		if p.text == "" {
			continue
		}
		if id := c.id(p.text); id != vocab.None {
			add(id)
			continue
		}
		for _, char := range c.characters(p.text) {
			if id := c.id(char); id != vocab.None {
				add(id)
				continue
			}
			for _, id := range c.lost(char) {
				add(id)
			}
		}
	}
	return ids
}

// merging reports whether a character without a token takes part in merges.
// Bytes do so only if nothing else becomes of them.
func (c toy) merging(char string) bool {
	if c.chars && !utf8.ValidString(char) || !c.chars && (c.unknown != vocab.None || c.dropFirst || c.lost(char) != nil) {
		return false
	}
	if c.byID {
		return true
	}
	for i, token := range c.tokens {
		if c.scores != nil && c.kinds[i] == vocab.Normal && strings.Contains(token, char) {
			return true
		}
	}
	return slices.ContainsFunc(c.merges, func(m [2]string) bool { return m[0] == char || m[1] == char })
}

// alphabets are the letters of random vocabularies.
var (
	byteAlphabets = [][]string{
		{"a", "b", "\xc3", "\xa9", " "},    // é is two of them
		{"\xe4", "\xb8", "\xad", " ", "a"}, // 中 is three of them
	}
	charAlphabet = []string{"a", "b", " ", "é", "中"}
)

// randomToy makes a vocabulary in which each token is a letter or made by a
// merge of others, over a few letters so that merges compete.
func randomToy(rng *rand.Rand) toy {
	c := toy{unknown: vocab.None, chars: rng.IntN(2) == 0}
	c.alphabet = byteAlphabets[rng.IntN(len(byteAlphabets))]
	if c.chars {
		c.alphabet = charAlphabet
	}
	letters := slices.Clone(c.alphabet[:2+rng.IntN(len(c.alphabet)-1)])
	all := append(slices.Clone(letters), "!")
	c.tokens = slices.Clone(letters)
	for range 2 + rng.IntN(25) {
		m := [2]string{c.tokens[rng.IntN(len(c.tokens))], c.tokens[rng.IntN(len(c.tokens))]}
		if len(m[0]+m[1]) > 12 || slices.Contains(c.merges, m) {
			continue
		}
		c.merges = append(c.merges, m)
		if !slices.Contains(c.tokens, m[0]+m[1]) {
			c.tokens = append(c.tokens, m[0]+m[1])
		}
	}
	// Neither lists nor ranks need be in an order in which tokens can be made.
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(c.merges), func(i, j int) { c.merges[i], c.merges[j] = c.merges[j], c.merges[i] })
		rng.Shuffle(len(c.tokens), func(i, j int) { c.tokens[i], c.tokens[j] = c.tokens[j], c.tokens[i] })
	}
	if rng.IntN(4) == 0 { // a token that merges do not make, or a letter that is none
		if i := rng.IntN(len(c.tokens)); len(c.tokens[i]) > 1 || c.merges == nil {
			c.tokens[i] = "ba" + c.tokens[i]
		}
	}
	switch by := rng.IntN(3); {
	case by == 0 && !c.chars:
		c.byID, c.merges = true, nil
	case by <= 1:
		c.merges = nil
		for range c.tokens {
			c.scores = append(c.scores, float32(rng.IntN(3*len(c.tokens)))) // some alike
		}
	}
	for range c.tokens {
		c.kinds = append(c.kinds, vocab.Normal)
	}
	c.whole = rng.IntN(3) == 0
	switch rng.IntN(4) {
	case 0:
		c.unknown = c.add("<unk>", vocab.Unknown)
		c.fuse = rng.IntN(2) == 0
	case 1:
		c.fallback = true
		for _, char := range all {
			for _, b := range []byte(char) {
				if c.byteID(b) == vocab.None {
					c.add(string([]byte{b}), vocab.Byte)
				}
			}
		}
	case 2:
		c.dropFirst = true
	}
	return c
}

func (c *toy) add(s string, k vocab.Kind) vocab.ID {
	c.tokens, c.kinds = append(c.tokens, s), append(c.kinds, k)
	if c.scores != nil {
		c.scores = append(c.scores, 0)
	}
	return vocab.ID(len(c.tokens) - 1)
}

// complete adds what makes the vocabulary lose nothing.
func (c *toy) complete() {
	c.unknown, c.fuse, c.fallback = vocab.None, false, c.chars
	for b := range 256 {
		one := string([]byte{byte(b)})
		switch {
		case c.chars && c.byteID(byte(b)) == vocab.None:
			c.add(one, vocab.Byte)
		case !c.chars && c.id(one) == vocab.None:
			c.add(one, vocab.Normal)
		}
	}
}

// texts lists all texts of up to n of the letters, which may or may not be
// tokens.
func (c toy) texts(n int) []string {
	letters := append(slices.Clone(c.alphabet[:4]), "!")
	texts := []string{""}
	for from := 0; n > 0; n-- {
		to := len(texts)
		for _, t := range texts[from:to] {
			for _, l := range letters {
				texts = append(texts, t+l)
			}
		}
		from = to
	}
	return texts
}

func randomText(rng *rand.Rand, c toy, n int) string {
	var b strings.Builder
	for range n {
		if rng.IntN(20) == 0 {
			b.WriteString("!\xe4\xb8"[rng.IntN(3):])
		}
		b.WriteString(c.alphabet[rng.IntN(len(c.alphabet))])
	}
	return b.String()
}

// pieces encodes with the pieces that end at ends.
func (m *Model) pieces(text string, ends []int, s *Scratch) []vocab.ID {
	return m.AppendPieces(nil, []byte(text), 0, ends, s)
}
