package vocab_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// large makes a vocabulary with ranges of all sizes: words that share stems,
// runs of one byte, zero bytes, and some tokens twice.
func large(n int) []token {
	rng := rand.New(rand.NewPCG(1, 2))
	stems := []string{"", " ", " ", " ", " s", " the", "\x00", "\x00\x00", "un", "\xc3", "\xe4\xb8", "        ", "\xff"}
	const letters = "etaoinshrdlu\x00\xff\xa9 "
	tokens := make([]token, n)
	for i := range tokens {
		var text string
		switch rng.IntN(16) {
		case 0:
			text = strings.Repeat(" \x00-a\xff"[rng.IntN(5):][:1], 1+rng.IntN(40))
		case 1:
			text = tokens[rng.IntN(i+1)].bytes + "\x00"
		case 2:
			text = tokens[rng.IntN(i+1)].bytes
		default:
			text = stems[rng.IntN(len(stems))]
			for range 1 + rng.IntN(6) {
				k := int(float64(len(letters)) * rng.Float64() * rng.Float64())
				text += letters[k : k+1]
			}
		}
		tokens[i] = token{text, []vocab.Kind{vocab.Normal, vocab.Normal, vocab.Byte, vocab.UserDefined, vocab.Control}[rng.IntN(5)]}
	}
	return tokens
}

func TestLargeAgainstNaive(t *testing.T) {
	tokens := large(20_000)
	v := build(t, tokens, vocab.NoSpecials())
	var want []vocab.ID
	lookup := map[string]vocab.ID{}
	rank := map[vocab.Kind]int{vocab.Normal: 0, vocab.UserDefined: 1, vocab.Byte: 2}
	for id, tok := range tokens {
		if isText(tok) {
			want = append(want, vocab.ID(id))
		}
	}
	slices.SortFunc(want, func(a, b vocab.ID) int {
		return cmp.Or(
			strings.Compare(tokens[a].bytes, tokens[b].bytes),
			cmp.Compare(rank[tokens[a].kind], rank[tokens[b].kind]),
			cmp.Compare(a, b),
		)
	})
	for _, id := range slices.Backward(want) {
		lookup[tokens[id].bytes] = id
	}
	if got := v.Sorted(v.PrefixRange(nil)); !slices.Equal(got, want) {
		t.Fatal("tokens are not in byte order, those with the same bytes as Lookup prefers them")
	}
	mask, naive := vocab.NewMask(v.Len()), vocab.NewMask(v.Len())
	for i, tok := range tokens {
		if id, ok := lookup[tok.bytes]; ok {
			if got, _ := v.Lookup([]byte(tok.bytes)); got != id {
				t.Fatalf("Lookup(%q) = %d, want %d", tok.bytes, got, id)
			}
		}
		prefix := []byte(tok.bytes[:(len(tok.bytes)*(i%4)+2)/3%(len(tok.bytes)+1)])
		if i%5 == 0 {
			prefix = append(prefix, byte(i), 0)[:len(prefix)+1+i%2]
		}
		r, want := v.PrefixRange(prefix), naiveRange(v, want, prefix)
		if r.Len() != want.Len() || want.Len() > 0 && r != want {
			t.Fatalf("PrefixRange(%q) = %v, want %v", prefix, r, want)
		}
		v.PrefixMask(mask, prefix)
		naive.Clear()
		naive.SetIDs(v.Sorted(want))
		if !slices.Equal(mask, naive) {
			t.Fatalf("PrefixMask(%q) is not the mask of its %d tokens", prefix, want.Len())
		}
	}
}

// naiveRange is two plain binary searches.
func naiveRange(v *vocab.Vocab, sorted []vocab.ID, prefix []byte) vocab.Range {
	lo := sort.Search(len(sorted), func(i int) bool { return bytes.Compare(v.Bytes(sorted[i]), prefix) >= 0 })
	hi := sort.Search(len(sorted), func(i int) bool {
		b := v.Bytes(sorted[i])
		return bytes.Compare(b[:min(len(b), len(prefix))], prefix) > 0
	})
	return vocab.Range{Lo: lo, Hi: hi}
}

// TestManyLargeRanges has more ranges than masks are kept for.
func TestManyLargeRanges(t *testing.T) {
	var tokens []token
	for n := range 2000 {
		tokens = append(tokens, token{strings.Repeat("a", n), vocab.Normal})
	}
	v := build(t, tokens, vocab.NoSpecials())
	m := vocab.NewMask(v.Len())
	for range 2 {
		for n := range tokens {
			v.PrefixMask(m, []byte(tokens[n].bytes))
			if want := len(tokens) - max(n, 1); m.Count() != want || !m.Has(1999) || n > 0 && m.Has(vocab.ID(n-1)) {
				t.Fatalf("PrefixMask of %d letters has %d tokens, want %d", n, m.Count(), want)
			}
		}
	}
}

// TestFirstUseByMany has goroutines race for what is made on first use.
func TestFirstUseByMany(t *testing.T) {
	tokens := large(5000)
	for range 3 {
		v := build(t, tokens, vocab.NoSpecials())
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				m, want := vocab.NewMask(v.Len()), vocab.NewMask(v.Len())
				for i := range 300 {
					prefix := tokens[(i/(1+g%3))%len(tokens)].bytes
					prefix = prefix[:min(len(prefix), i%3)]
					v.PrefixMask(m, []byte(prefix))
					want.Clear()
					want.SetIDs(v.Sorted(v.PrefixRange([]byte(prefix))))
					if !slices.Equal(m, want) {
						t.Errorf("PrefixMask(%q) is wrong", prefix)
					}
				}
			})
		}
		wg.Wait()
	}
}

// benchVocabulary is o200k_base where UNFRAY_TEST_VOCABS names a folder that
// has o200k_base.tiktoken, and a made-up one of the same size otherwise.
func benchVocabulary(b *testing.B) (tokens [][]byte, kinds []vocab.Kind) {
	b.Helper()
	file, err := os.Open(filepath.Join(os.Getenv("UNFRAY_TEST_VOCABS"), "o200k_base.tiktoken"))
	if err != nil {
		for _, tok := range large(200_000) {
			tokens = append(tokens, []byte(tok.bytes))
		}
	} else {
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			text, _, _ := bytes.Cut(lines.Bytes(), []byte(" "))
			token, err := base64.StdEncoding.AppendDecode(nil, text)
			if err != nil {
				b.Fatal(err)
			}
			tokens = append(tokens, token)
		}
	}
	return tokens, slices.Repeat([]vocab.Kind{vocab.Normal}, len(tokens))
}

// BenchmarkVocab measures queries, and what they are to be compared with. The
// prefixes are random ones of random tokens.
func BenchmarkVocab(b *testing.B) {
	tokens, kinds := benchVocabulary(b)
	v, err := vocab.New(tokens, kinds, vocab.NoSpecials())
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 1 << 16
	// They stand one after the other, so that reading them costs little.
	var prefixes, texts [n][]byte
	var all []byte
	for i := range prefixes {
		t := tokens[rng.IntN(len(tokens))]
		all = append(all, t...)
		texts[i] = all[len(all)-len(t):]
		prefixes[i] = texts[i][:1+rng.IntN(len(t))]
	}
	sorted := v.Sorted(v.PrefixRange(nil))
	ids := make([]vocab.ID, 0, 256)
	m := vocab.NewMask(v.Len())
	run := func(name string, f func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f(i % n)
			}
		})
	}
	run("lookup", func(i int) { v.Lookup(texts[i]) })
	run("lookup/absent", func(i int) { v.Lookup(prefixes[i][1:]) })
	run("prefix-range", func(i int) { v.PrefixRange(prefixes[i]) })
	run("prefix-range/naive", func(i int) { naiveRange(v, sorted, prefixes[i]) })
	run("append-prefixes", func(i int) { ids = v.AppendPrefixes(ids[:0], texts[i]) })
	run("mask/clear", func(i int) { m.Clear() })
	run("mask/random", func(i int) { v.PrefixMask(m, prefixes[i]) })
	run("mask/naive-all", func(i int) { m.Clear(); m.SetIDs(sorted) })
	for _, size := range []int{1, 64, 256, 319, 320, 512, 1000, 4000, 100_000, 200_000} {
		// The prefix of at most four bytes whose range is nearest to size.
		best, distance := []byte(nil), len(sorted)
		for _, p := range prefixes {
			p = p[:min(len(p), 4)]
			if d := v.PrefixRange(p).Len() - size; max(d, -d) < distance {
				best, distance = p, max(d, -d)
			}
		}
		if d := len(sorted) - size; max(d, -d) < distance {
			best = nil
		}
		run("mask/"+strconv.Itoa(v.PrefixRange(best).Len())+"-tokens", func(int) { v.PrefixMask(m, best) })
	}
}

func BenchmarkNew(b *testing.B) {
	tokens, kinds := benchVocabulary(b)
	var blob []byte
	var ends []uint32
	for _, t := range tokens {
		blob = append(blob, t...)
		ends = append(ends, uint32(len(blob)))
	}
	run := func(name string, prefix []byte, ask bool) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				v, err := vocab.NewFrom(blob, ends, kinds, vocab.NoSpecials())
				if err != nil {
					b.Fatal(err)
				}
				if ask {
					v.PrefixRange(prefix)
				}
			}
		})
	}
	run("lookup-only", nil, false)
	run("with-index", nil, true)
}
