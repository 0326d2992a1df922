package vocab_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// token is a row of a test vocabulary.
type token struct {
	bytes string
	kind  vocab.Kind
}

func build(t testing.TB, tokens []token, specials vocab.Specials) *vocab.Vocab {
	t.Helper()
	var texts [][]byte
	var kinds []vocab.Kind
	for _, tok := range tokens {
		texts = append(texts, []byte(tok.bytes))
		kinds = append(kinds, tok.kind)
	}
	v, err := vocab.New(texts, kinds, specials)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// isText is the definition, apart from the index.
func isText(tok token) bool {
	return tok.bytes != "" && (tok.kind == vocab.Normal || tok.kind == vocab.UserDefined || tok.kind == vocab.Byte)
}

// nasty has zero bytes, one-byte tokens beside their extensions, 0xff runs,
// duplicates of every kind, and tokens that stand for no text.
var nasty = []token{
	{"a", vocab.Normal}, {"a\x00", vocab.Normal}, {"a\x00\x00", vocab.Normal}, {"ab", vocab.Normal},
	{"abc", vocab.Byte}, {"abc", vocab.UserDefined}, {"abc", vocab.Normal}, {"abc", vocab.Normal},
	{"a\xff", vocab.Normal}, {"a\xff\xff", vocab.Normal}, {"b", vocab.Byte}, {"b", vocab.Normal},
	{"\x00", vocab.Byte}, {"\x00\x00", vocab.Normal}, {"\x00\x01", vocab.Normal}, {"\xff", vocab.Byte},
	{"\xff\xff", vocab.Normal}, {"\xff\xff\xff", vocab.Normal}, {"\xff\x00", vocab.Normal},
	{"<eos>", vocab.Control}, {"<bos>", vocab.Control}, {"<eos>", vocab.Control}, {"<unk>", vocab.Unknown},
	{"abcdef", vocab.Control}, {"", vocab.Normal}, {"", vocab.Control}, {"unused", vocab.Unused},
	{"undefined", vocab.Undefined}, {"<tool>", vocab.UserDefined}, {"<tool_call>", vocab.UserDefined},
	{"\xc3\xa9", vocab.Normal}, {"\xc3", vocab.Byte}, {"ac", vocab.Normal}, {"`z", vocab.Normal}, {"b\x00", vocab.Normal},
}

func TestPrefixRange(t *testing.T) {
	v := build(t, nasty, vocab.NoSpecials())
	for n := range 4 {
		for _, prefix := range texts("\x00\x01ab\xfe\xff`c", n) {
			checkPrefix(t, v, nasty, []byte(prefix))
		}
	}
	for _, tok := range nasty {
		for n := range len(tok.bytes) + 1 {
			checkPrefix(t, v, nasty, []byte(tok.bytes[:n]))
		}
		checkPrefix(t, v, nasty, []byte(tok.bytes+"\x00"))
	}
}

func checkPrefix(t *testing.T, v *vocab.Vocab, tokens []token, prefix []byte) {
	t.Helper()
	want := map[vocab.ID]bool{}
	for id, tok := range tokens {
		if isText(tok) && strings.HasPrefix(tok.bytes, string(prefix)) {
			want[vocab.ID(id)] = true
		}
	}
	r := v.PrefixRange(prefix)
	got := v.Sorted(r)
	if r.Len() != len(got) || len(got) != len(want) {
		t.Fatalf("PrefixRange(%q) has %d tokens, want %d", prefix, r.Len(), len(want))
	}
	for i, id := range got {
		if !want[id] {
			t.Errorf("PrefixRange(%q) holds token %d, %q", prefix, id, v.Bytes(id))
		}
		if i > 0 && bytes.Compare(v.Bytes(got[i-1]), v.Bytes(id)) > 0 {
			t.Errorf("PrefixRange(%q) is not in byte order at %d", prefix, i)
		}
	}
	m := vocab.NewMask(v.Len())
	for i := range m {
		m[i] = 0xa5a5a5a5
	}
	v.PrefixMask(m, prefix)
	for id := range m.All() {
		if !want[id] {
			t.Errorf("PrefixMask(%q) holds token %d, %q", prefix, id, v.Bytes(id))
		}
	}
	if m.Count() != len(want) {
		t.Errorf("PrefixMask(%q) has %d tokens, want %d", prefix, m.Count(), len(want))
	}
}

func TestPrefixMaskOfAnotherSize(t *testing.T) {
	v := build(t, nasty, vocab.NoSpecials())
	full := vocab.NewMask(v.Len())
	v.PrefixMask(full, nil)
	long := vocab.NewMask(v.Len() + 64)
	long.Set(vocab.ID(v.Len() + 63))
	v.PrefixMask(long, nil)
	if want := append(slices.Clone(full), 0, 0); !slices.Equal(long, want) {
		t.Errorf("longer mask %x, want %x", long, want)
	}
	short := vocab.NewMask(32)
	v.PrefixMask(short, nil)
	if !slices.Equal(short, full[:1]) {
		t.Errorf("shorter mask %x, want %x", short, full[:1])
	}
}

// texts lists all strings of n bytes of the alphabet.
func texts(alphabet string, n int) []string {
	all := []string{""}
	for range n {
		var longer []string
		for _, s := range all {
			for i := range len(alphabet) {
				longer = append(longer, s+alphabet[i:i+1])
			}
		}
		all = longer
	}
	return all
}

func TestAppendPrefixes(t *testing.T) {
	v := build(t, nasty, vocab.NoSpecials())
	for n := range 5 {
		for _, text := range texts("\x00abc\xff", n) {
			checkAppendPrefixes(t, v, nasty, []byte(text))
		}
	}
	checkAppendPrefixes(t, v, nasty, []byte("<tool_call> and more"))
	checkAppendPrefixes(t, v, nasty, []byte("abcdef"))
}

func checkAppendPrefixes(t *testing.T, v *vocab.Vocab, tokens []token, text []byte) {
	t.Helper()
	count := 0
	for _, tok := range tokens {
		if isText(tok) && strings.HasPrefix(string(text), tok.bytes) {
			count++
		}
	}
	got := v.AppendPrefixes([]vocab.ID{7}, text)
	if got[0] != 7 {
		t.Fatalf("AppendPrefixes(%q) overwrote what was there", text)
	}
	got = got[1:]
	if len(got) != count {
		t.Fatalf("AppendPrefixes(%q) = %v, want %d tokens", text, got, count)
	}
	seen := map[vocab.ID]bool{}
	for i, id := range got {
		if !v.IsText(id) || !bytes.HasPrefix(text, v.Bytes(id)) || seen[id] {
			t.Errorf("AppendPrefixes(%q) holds token %d, %q", text, id, v.Bytes(id))
		}
		if i > 0 && len(v.Bytes(got[i-1])) > len(v.Bytes(id)) {
			t.Errorf("AppendPrefixes(%q) = %v: not the shortest first", text, got)
		}
		seen[id] = true
	}
}

// naiveLookup is the definition.
func naiveLookup(tokens []token, b string) vocab.ID {
	rank := map[vocab.Kind]int{vocab.Normal: 0, vocab.UserDefined: 1, vocab.Byte: 2}
	best := vocab.None
	for id, tok := range tokens {
		if isText(tok) && tok.bytes == b && (best == vocab.None || rank[tok.kind] < rank[tokens[best].kind]) {
			best = vocab.ID(id)
		}
	}
	return best
}

func TestLookup(t *testing.T) {
	v := build(t, nasty, vocab.NoSpecials())
	for _, tc := range []struct {
		bytes string
		want  vocab.ID
	}{
		{"abc", 6}, // Normal before Byte 4 and UserDefined 5, lowest ID of two
		{"b", 11},  // Normal before Byte 10
		{"a", 0}, {"a\x00", 1}, {"\x00", 12}, {"\xff\xff\xff", 17}, {"<tool>", 28},
		{"", vocab.None}, {"abcdef", vocab.None}, {"<eos>", vocab.None}, {"unused", vocab.None},
		{"a\x01", vocab.None}, {"\xff\xff\xff\xff", vocab.None}, {"<tool", vocab.None}, {strings.Repeat("x", 99), vocab.None},
	} {
		got, ok := v.Lookup([]byte(tc.bytes))
		if got != tc.want || ok != (tc.want != vocab.None) {
			t.Errorf("Lookup(%q) = %d, %v, want %d", tc.bytes, got, ok, tc.want)
		}
	}
	for _, tc := range []struct {
		text string
		want vocab.ID
	}{
		{"<eos>", 19}, {"<bos>", 20}, {"abcdef", 23}, {"", vocab.None}, {"abc", vocab.None},
		{"<unk>", vocab.None}, {"<tool>", vocab.None}, {"abcdefg", vocab.None}, {"a", vocab.None},
	} {
		got, ok := v.LookupSpecial([]byte(tc.text))
		if got != tc.want || ok != (tc.want != vocab.None) {
			t.Errorf("LookupSpecial(%q) = %d, %v, want %d", tc.text, got, ok, tc.want)
		}
	}
}

func TestTokens(t *testing.T) {
	sp := vocab.NoSpecials()
	sp.EOS, sp.EOG = 19, []vocab.ID{19, 21}
	v := build(t, nasty, sp)
	for id, tok := range nasty {
		id := vocab.ID(id)
		if got := string(v.Bytes(id)); got != tok.bytes {
			t.Errorf("Bytes(%d) = %q, want %q", id, got, tok.bytes)
		}
		if v.Kind(id) != tok.kind || v.IsText(id) != isText(tok) || !v.Valid(id) {
			t.Errorf("token %d: kind %d, text %v, valid %v", id, v.Kind(id), v.IsText(id), v.Valid(id))
		}
		if v.IsEOG(id) != (id == 19 || id == 21) {
			t.Errorf("IsEOG(%d) = %v", id, v.IsEOG(id))
		}
	}
	for _, id := range []vocab.ID{vocab.None, -2, vocab.ID(len(nasty)), 1 << 30} {
		if v.Valid(id) || v.Bytes(id) != nil || v.Kind(id) != vocab.Undefined || v.IsText(id) || v.IsEOG(id) {
			t.Errorf("ID %d is taken for a token", id)
		}
	}
	if want := []vocab.ID{23, 19, 20, 21}; !slices.Equal(v.Controls(), want) {
		t.Errorf("Controls() = %v, want %v", v.Controls(), want)
	}
	if want := []vocab.ID{29, 28, 5}; !slices.Equal(v.UserDefined(), want) {
		t.Errorf("UserDefined() = %v, want %v", v.UserDefined(), want)
	}
	if v.MaxLen() != len("<tool_call>") || v.Len() != len(nasty) {
		t.Errorf("MaxLen() = %d, Len() = %d", v.MaxLen(), v.Len())
	}
}

func TestBytesCannotGrowIntoTheNextToken(t *testing.T) {
	v := build(t, []token{{"a", vocab.Normal}, {"b", vocab.Normal}}, vocab.NoSpecials())
	_ = append(v.Bytes(0), 'x')
	if got := string(v.Bytes(1)); got != "b" {
		t.Errorf("token 1 became %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	with := func(set func(*vocab.Specials)) vocab.Specials {
		sp := vocab.NoSpecials()
		set(&sp)
		return sp
	}
	two := [][]byte{[]byte("a"), []byte("b")}
	kinds := []vocab.Kind{vocab.Normal, vocab.Normal}
	for _, tc := range []struct {
		name  string
		kinds []vocab.Kind
		sp    vocab.Specials
		want  string
	}{
		{"lengths", kinds[:1], vocab.NoSpecials(), "2 tokens but 1 kinds"},
		{"BOS", kinds, with(func(s *vocab.Specials) { s.BOS = 2 }), "the BOS token is 2, but there are 2 tokens"},
		{"negative", kinds, with(func(s *vocab.Specials) { s.FIMMiddle = -7 }), "the FIM middle token is -7"},
		{"EOG", kinds, with(func(s *vocab.Specials) { s.EOG = []vocab.ID{0, 9} }), "end-of-generation token is 9"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := vocab.New(two, tc.kinds, tc.sp)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestNewFrom(t *testing.T) {
	kinds := []vocab.Kind{vocab.Normal, vocab.Control, vocab.Byte}
	v, err := vocab.NewFrom([]byte("abcde"), []uint32{2, 2, 4}, kinds, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range []string{"ab", "", "cd"} {
		if got := string(v.Bytes(vocab.ID(id))); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", id, got, want)
		}
	}
	for _, tc := range []struct {
		ends []uint32
		want string
	}{
		{[]uint32{2, 4}, "2 tokens but 3 kinds"},
		{[]uint32{2, 1, 4}, "token 1 ends at byte 1 of 5, but begins at 2"},
		{[]uint32{2, 4, 6}, "token 2 ends at byte 6 of 5, but begins at 4"},
	} {
		if _, err := vocab.NewFrom([]byte("abcde"), tc.ends, kinds, vocab.NoSpecials()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("ends %v: error %v, want %q", tc.ends, err, tc.want)
		}
	}
}

func TestEmptyVocabulary(t *testing.T) {
	v := build(t, nil, vocab.NoSpecials())
	for _, prefix := range []string{"", "a", "ab", "abc"} {
		if n := v.PrefixRange([]byte(prefix)).Len(); n != 0 {
			t.Errorf("PrefixRange(%q) has %d tokens", prefix, n)
		}
		if ids := v.AppendPrefixes(nil, []byte(prefix)); len(ids) != 0 {
			t.Errorf("AppendPrefixes(%q) = %v", prefix, ids)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	v := build(t, nasty, vocab.NoSpecials())
	m := vocab.NewMask(v.Len())
	text := []byte("abcdef")
	ids := make([]vocab.ID, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		for n := range text {
			v.PrefixMask(m, text[:n])
		}
		ids = v.AppendPrefixes(ids[:0], text)
		v.Lookup(text)
		v.LookupSpecial(text)
		for id := range m.All() {
			m.Remove(id)
		}
		_ = m.Count() + len(ids)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzIndex makes a vocabulary of the pieces between separators and asks it
// about prefixes of its own tokens and of an outside text.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("a|ab|abc|a\x00|\xff\xff|ab"), []byte("abcd"))
	f.Add([]byte("||\x00|\x00\x00"), []byte("\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, list, text []byte) {
		if len(list) > 400 || len(text) > 100 {
			return
		}
		kinds := []vocab.Kind{vocab.Normal, vocab.Byte, vocab.UserDefined, vocab.Control, vocab.Normal}
		var tokens []token
		for i, b := range bytes.Split(list, []byte("|")) {
			tokens = append(tokens, token{string(b), kinds[i%len(kinds)]})
		}
		v := build(t, tokens, vocab.NoSpecials())
		for n := range text {
			checkPrefix(t, v, tokens, text[:n])
		}
		checkAppendPrefixes(t, v, tokens, text)
		for _, tok := range tokens {
			checkPrefix(t, v, tokens, []byte(tok.bytes))
			want := naiveLookup(tokens, tok.bytes)
			if got, ok := v.Lookup([]byte(tok.bytes)); got != want || ok != (want != vocab.None) {
				t.Errorf("Lookup(%q) = %d, %v, want %d", tok.bytes, got, ok, want)
			}
		}
	})
}
