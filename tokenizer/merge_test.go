package tokenizer

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// naiveMerge is byte-pair encoding as it is defined: over and over, of all
// neighbours that stand in the list of merges, the leftmost of those that
// stand first in the list are joined.
func naiveMerge(merges [][2]string, text string) []string {
	var parts []string
	for i := range len(text) {
		parts = append(parts, text[i:i+1])
	}
	for {
		rank, at := len(merges), -1
		for i := range len(parts) - 1 {
			r := slices.Index(merges, [2]string{parts[i], parts[i+1]})
			if r >= 0 && r < rank {
				rank, at = r, i
			}
		}
		if at < 0 {
			return parts
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
}

// randomMerges makes a list in which each string is a byte or made by a merge
// before, over a few letters so that merges compete.
func randomMerges(rng *rand.Rand, n int) [][2]string {
	parts := []string{"a", "b", "c"}
	var merges [][2]string
	for range n {
		m := [2]string{parts[rng.IntN(len(parts))], parts[rng.IntN(len(parts))]}
		if len(m[0]+m[1]) > 12 || slices.Contains(merges, m) {
			continue
		}
		merges = append(merges, m)
		if !slices.Contains(parts, m[0]+m[1]) {
			parts = append(parts, m[0]+m[1])
		}
	}
	// The list need not be in the order in which tokens can be made.
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
	}
	return merges
}

func TestMergesAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 60 {
		merges := randomMerges(rng, 1+rng.IntN(30))
		tok := synthetic{pre: "gpt-2", merges: merges}.open(t)
		for range 60 {
			n := rng.IntN(20)
			if rng.IntN(4) == 0 {
				n = shortPiece - 2 + rng.IntN(60) // on both sides of the change of method
			}
			var b strings.Builder
			for range n {
				b.WriteByte("abc"[rng.IntN(3)])
			}
			checkMerge(t, tok, merges, b.String())
		}
	}
}

func checkMerge(t *testing.T, tok *Tokenizer, merges [][2]string, text string) {
	t.Helper()
	want := naiveMerge(merges, text)
	var got []string
	for _, id := range tok.EncodePiece(nil, []byte(text)) {
		got = append(got, string(tok.vocab.Bytes(id)))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q merges into %q, want %q; merges %q", text, got, want, merges)
	}
}

func TestLongAndShortPiecesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	tok := synthetic{pre: "gpt-2", merges: randomMerges(rng, 40)}.open(t)
	s := new(scratch)
	for range 5000 {
		b := make([]byte, 1+rng.IntN(shortPiece))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		short, long := tok.merges.append(nil, b, s), tok.merges.appendLong(nil, b, s)
		if !slices.Equal(short, long) {
			t.Fatalf("%q: %v by array, %v by heap", b, short, long)
		}
	}
}

func TestMergeList(t *testing.T) {
	// A merge into a control token must not make one out of plain text, and one
	// into a string that is no token is undone down to the bytes.
	tok := synthetic{
		pre:      "gpt-2",
		controls: []string{"xy"},
		merges:   [][2]string{{"a", "b"}, {"a", "b"}},
	}.openWith(t, "x y", "ab ", " ab", "", "nospace", "a中 b", "ab ab")
	for _, tc := range []struct{ text, want string }{
		{"xy", "x y"}, {"ab", "ab"}, {"abab", "a b a b"}, {"aab", "a ab"},
	} {
		var got []string
		for _, id := range tok.Encode(nil, []byte(tc.text)) {
			got = append(got, string(tok.vocab.Bytes(id)))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q is %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestProper(t *testing.T) {
	if !(synthetic{pre: "gpt-2", merges: [][2]string{{"a", "b"}}}).open(t).Proper() {
		t.Error("a vocabulary with all its merges' tokens is not proper")
	}
	if (synthetic{pre: "gpt-2"}).openWith(t, "x y").Proper() {
		t.Error("a vocabulary without the token \"xy\" that a merge makes is proper")
	}
}

func TestMissingBytes(t *testing.T) {
	tok := synthetic{pre: "gpt-2"}.openWithout(t, "\x04", "\xff")
	text := []byte("a\x04b\xff\n")
	got := tok.Decode(nil, tok.Encode(nil, text))
	if string(got) != "ab\n" {
		t.Errorf("%q became %q, want the bytes without tokens left out", text, got)
	}
	if i := tok.Unencodable(text); i != 1 {
		t.Errorf("Unencodable = %d, want 1", i)
	}
	if i := tok.Unencodable([]byte("ab\n")); i != -1 {
		t.Errorf("Unencodable = %d, want -1", i)
	}
}

func FuzzMerges(f *testing.F) {
	f.Add(uint64(1), "abcabcaab")
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		if len(text) > 80 {
			return
		}
		merges := randomMerges(rand.New(rand.NewPCG(seed, 0)), 20)
		checkMerge(t, synthetic{pre: "gpt-2", merges: merges}.open(t), merges, strings.Map(func(r rune) rune { return 'a' + r%3 }, text))
	})
}

// TestHostilePieces encodes what costs a quadratic method minutes.
func TestHostilePieces(t *testing.T) {
	merges := [][2]string{{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"aaaaaaaa", "aaaaaaaa"}, {" ", " "}, {"b", "a"}}
	tok := synthetic{pre: "smollm", merges: merges, added: []string{"zz", "zzz"}}.open(t)
	for _, text := range []string{
		strings.Repeat("a", 200_000), strings.Repeat(" ", 200_000), strings.Repeat("ba", 100_000),
		strings.Repeat("z", 200_001), strings.Repeat("'", 200_000), strings.Repeat("\xe2", 200_000),
	} {
		ids := tok.Encode(nil, []byte(text))
		if got := string(tok.Decode(nil, ids)); got != text {
			t.Errorf("%d bytes %q… came back as %d", len(text), text[:4], len(got))
		}
	}
	if ids := tok.Encode(nil, []byte(strings.Repeat("a", 160_000))); len(ids) != 10_000 || ids[0] != vocab.ID(256+3) {
		t.Errorf("160,000 letters are %d tokens, the first %d", len(ids), ids[0])
	}
}

// TestHostileAdded has added tokens that are runs of one character, as phi-2
// does, and a text that is one long run: each place then begins as many of them
// as there are lengths.
func TestHostileAdded(t *testing.T) {
	var added []string
	for n := 2; n <= 31; n++ {
		added = append(added, strings.Repeat(" ", n))
	}
	tok := synthetic{pre: "gpt-2", added: added}.open(t)
	text := []byte(strings.Repeat(" ", 31*2000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ids := tok.Encode(nil, text)
	runtime.ReadMemStats(&after)
	if len(ids) != 2000 || string(tok.Decode(nil, ids)) != string(text) {
		t.Errorf("%d blanks are %d tokens, want 2000", len(text), len(ids))
	}
	// Thirty occurrences a byte would be three thousand bytes of memory each.
	if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(text)); got > 1000 {
		t.Errorf("encoding allocated %d bytes a byte of text", got)
	}
}
