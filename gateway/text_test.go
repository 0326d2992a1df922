package gateway

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The Unicode standard's own examples, tables 3-8 to 3-11 of §3.9.
var illFormed = []struct{ bytes, text string }{
	{"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA"},
	{"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA"},
	{"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB"},
	{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "\ufffd\ufffd\ufffd\ufffdA"},
	{"\xf0\x9f\x99", "\ufffd"},
	{"\x9f\x99\x82 🙂\ufffd", "\ufffd\ufffd\ufffd 🙂\ufffd"},
	{"", ""},
}

func TestValidText(t *testing.T) {
	for _, c := range illFormed {
		got, exact := validText([]byte(c.bytes))
		if got != c.text {
			t.Errorf("% x: %q, want %q", c.bytes, got, c.text)
		}
		if utf8.ValidString(c.bytes) != (exact == nil) || exact != nil && string(exact) != c.bytes {
			t.Errorf("% x: exact bytes % x", c.bytes, exact)
		}
	}
}

// checkSplits compares a text passed on in two parts, and byte by byte, with
// the whole, and character offsets with those of the mended text.
func checkSplits(t *testing.T, b []byte) {
	t.Helper()
	whole, _ := validText(b)
	join := func(parts ...[]byte) string {
		var j utf8Joiner
		var s strings.Builder
		for _, p := range parts {
			text, _ := validText(j.next(p))
			s.WriteString(text)
		}
		text, _ := validText(j.rest())
		return s.String() + text
	}
	for i := range b {
		if got := join(b[:i], b[i:]); got != whole {
			t.Fatalf("% x split at %d: %q, whole %q", b, i, got, whole)
		}
	}
	var single [][]byte
	for i := range b {
		single = append(single, b[i:i+1])
	}
	if got := join(single...); got != whole {
		t.Fatalf("% x byte by byte: %q, whole %q", b, got, whole)
	}

	// The character that holds each byte, by walking over all units.
	var want []int
	for rest, n := b, 0; len(rest) > 0; n++ {
		size, _ := unit(rest)
		for range size {
			want = append(want, n)
		}
		rest = rest[size:]
	}
	all := charCounter{text: b}
	if got, n := all.at(len(b)), utf8.RuneCountInString(whole); got != n || len(want) > 0 && want[len(want)-1] != n-1 {
		t.Fatalf("% x: %d characters counted, %q has %d", b, got, whole, n)
	}
	c := charCounter{}
	for i := range b {
		c.text = b[:min(len(b), i+4)] // it grows as a stream does
		if got := c.at(i); got != want[i] {
			t.Fatalf("% x: byte %d is in character %d, want %d", b, i, got, want[i])
		}
	}
}

func TestTextAtEverySplit(t *testing.T) {
	for _, c := range illFormed {
		checkSplits(t, []byte(c.bytes))
	}
}

func FuzzTextSplits(f *testing.F) {
	for _, c := range illFormed {
		f.Add([]byte(c.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkSplits(t, b[:min(len(b), 64)])
	})
}

func TestTokenText(t *testing.T) {
	for b, want := range map[string]string{" a": " a", "é": "é", "\xe6\x97": `bytes:\xe6\x97`, "\x0a": "\n", "a\x80": `bytes:\x61\x80`, "\xf0\x05": `bytes:\xf0\x05`} {
		if got := tokenText([]byte(b)); got != want {
			t.Errorf("% x: %q, want %q", b, got, want)
		}
	}
}
