package tiktoken

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lines makes a rank file of the 256 bytes and more tokens.
func lines(more ...string) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, token := range more {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), 256+i)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	data := lines("th", " the", "\xff\x00") + base64.StdEncoding.EncodeToString([]byte("last")) + " 261"
	for _, text := range []string{data, data + "\n", strings.ReplaceAll(data, "\n", "\r\n"), strings.ReplaceAll(data, "\n", "\n\n")} {
		r, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if r.Len() != 262 || r.Count() != 260 || r.Hash() != sha256.Sum256([]byte(text)) {
			t.Errorf("%d ranks, %d tokens, hash %x", r.Len(), r.Count(), r.Hash())
		}
		for rank, want := range map[int]string{0: "\x00", 255: "\xff", 256: "th", 257: " the", 258: "\xff\x00", 259: "", 260: "", 261: "last"} {
			if got := r.Token(rank); string(got) != want || (got == nil) != (want == "") {
				t.Errorf("rank %d: %q, want %q", rank, got, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	all := lines()
	long := base64.StdEncoding.EncodeToString(make([]byte, MaxTokenBytes+3))
	for _, tt := range []struct {
		name  string
		data  string
		cause error
		line  int
	}{
		{"empty", "", ErrInvalid, 0},
		{"one token", "AA== 0\n", ErrInvalid, 1},
		{"HTML", "<html><head>\n", ErrFormat, 1},
		{"no rank", all + "dGg=\n", ErrFormat, 257},
		{"no digits", all + "dGg= \n", ErrFormat, 257},
		{"rank of letters", all + "dGg= x\n", ErrFormat, 257},
		{"negative rank", all + "dGg= -1\n", ErrFormat, 257},
		{"rank beyond the limit", all + "dGg= 4194304\n", ErrLimit, 257},
		{"rank beyond int", all + "dGg= 99999999999999999999999\n", ErrLimit, 257},
		{"zeros beyond int", all + "dGg= 00000000000000000000001\n", ErrLimit, 257},
		{"not base64", all + "d?g= 256\n", ErrFormat, 257},
		{"base64 cut", all + "dGg 256\n", ErrFormat, 257},
		{"stray bits", all + "dGh= 256\n", ErrFormat, 257},
		{"empty token", all + " 256\n", ErrInvalid, 257},
		{"two spaces", all + "dGg=  256\n", ErrFormat, 257},
		{"long token", all + long + " 256\n", ErrLimit, 257},
		{"rank twice", all + "dGg= 255\n", ErrInvalid, 257},
		{"token twice", all + "AA== 256\n", ErrInvalid, 257},
	} {
		r, err := Parse([]byte(tt.data))
		var e *Error
		if !errors.As(err, &e) || e.Cause != tt.cause || e.Line != tt.line || r != nil {
			t.Errorf("%s: %v; want %v in line %d", tt.name, err, tt.cause, tt.line)
		}
	}
}

// TestKnown compares with what tiktoken itself says (testdata/encodings.py).
func TestKnown(t *testing.T) {
	data, err := os.ReadFile("testdata/encodings.json")
	if err != nil {
		t.Fatal(err)
	}
	var want []struct {
		Name          string
		Pattern       string `json:"pat_str"`
		Hash          string `json:"expected_hash"`
		Special       int
		SpecialSHA256 string `json:"special_sha256"`
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(Names()) {
		t.Errorf("%d encodings, want %d", len(Names()), len(want))
	}
	for _, w := range want {
		e, ok := Known(w.Name)
		if !ok {
			t.Errorf("%s is not known", w.Name)
			continue
		}
		if e.Pattern != w.Pattern {
			t.Errorf("%s: pattern\n%s, want\n%s", w.Name, e.Pattern, w.Pattern)
		}
		if w.Hash != "" && e.Hash != w.Hash { // gpt2 has no rank file
			t.Errorf("%s: hash %s, want %s", w.Name, e.Hash, w.Hash)
		}
		var list []string
		for _, s := range e.Special {
			list = append(list, fmt.Sprintf("%d\t%s\n", s.ID, s.Text))
		}
		slices.SortFunc(list, func(a, b string) int {
			x, _, _ := strings.Cut(a, "\t")
			y, _, _ := strings.Cut(b, "\t")
			m, _ := strconv.Atoi(x)
			n, _ := strconv.Atoi(y)
			if m != n {
				return m - n
			}
			return strings.Compare(a, b)
		})
		sum := sha256.Sum256([]byte(strings.Join(list, "")))
		if len(list) != w.Special || hex.EncodeToString(sum[:]) != w.SpecialSHA256 {
			t.Errorf("%s: %d special tokens with the hash %x, want %d with %s", w.Name, len(list), sum, w.Special, w.SpecialSHA256)
		}
	}
	if _, ok := Known("o300k_base"); ok {
		t.Error("o300k_base is known")
	}
	if _, ok := ByHash([32]byte{}); ok {
		t.Error("a hash of zeros is known")
	}
}

// TestVendorFiles reads OpenAI's rank files from the folder that
// UNFRAY_TEST_VOCABS names and compares token by token with a plain reading.
func TestVendorFiles(t *testing.T) {
	dir := os.Getenv("UNFRAY_TEST_VOCABS")
	if dir == "" {
		t.Skip("UNFRAY_TEST_VOCABS is not set: make test fetches the vocabularies")
	}
	for name, tokens := range map[string]int{"o200k_base": 199998, "cl100k_base": 100256, "p50k_base": 50280, "r50k_base": 50256} {
		data, err := os.ReadFile(filepath.Join(dir, name+".tiktoken"))
		if err != nil {
			t.Error(err)
			continue
		}
		r, err := Parse(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e, ok := ByHash(r.Hash()); !ok || e.Name != name {
			t.Errorf("%s: by its hash it is %q", name, e.Name)
		}
		seen := 0
		for line := range bytes.Lines(data) {
			digits, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
			rank, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			token, err := base64.StdEncoding.DecodeString(digits)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.Token(rank), token) {
				t.Fatalf("%s: rank %d is %q, want %q", name, rank, r.Token(rank), token)
			}
			seen++
		}
		if seen != r.Count() || seen != tokens {
			t.Errorf("%s: %d tokens, %d lines, want %d", name, r.Count(), seen, tokens)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(lines("th", " the")))
	f.Add([]byte("AA== 0\r\nAQ== 1\n\ndGg= 5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(bytes.Clone(data))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
				t.Fatalf("%v", err)
			}
			return
		}
		count := 0
		for rank := range r.Len() {
			if r.Token(rank) != nil {
				count++
			}
		}
		if count != r.Count() {
			t.Fatalf("%d tokens, Count says %d", count, r.Count())
		}
	})
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(os.Getenv("UNFRAY_TEST_VOCABS"), "o200k_base.tiktoken"))
	if err != nil {
		b.Skip("UNFRAY_TEST_VOCABS is not set: make test fetches the vocabularies")
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
