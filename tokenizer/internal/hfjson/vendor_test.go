package hfjson

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// vendorFiles lists the files NAME/tokenizer.json of the folder that
// UNFRAY_TEST_VOCABS names. Vendors' vocabularies are not in the repository:
// many come under terms of their own.
func vendorFiles(tb testing.TB) []string {
	tb.Helper()
	dir := os.Getenv("UNFRAY_TEST_VOCABS")
	if dir == "" {
		tb.Skip("UNFRAY_TEST_VOCABS is not set: make test fetches the vocabularies")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "tokenizer.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no tokenizer.json below %s: %v", dir, err)
	}
	return files
}

// plainFile is what encoding/json needs to know to read a tokenizer.json.
type plainFile struct {
	Added []struct {
		ID                                  int
		Content                             string
		SingleWord                          bool `json:"single_word"`
		LStrip, RStrip, Normalized, Special bool
	} `json:"added_tokens"`
	Model struct {
		Type   string
		Vocab  json.RawMessage
		Merges json.RawMessage
	}
}

// TestVendorFiles compares whole files, token by token and merge by merge,
// with what encoding/json reads.
func TestVendorFiles(t *testing.T) {
	for _, path := range vendorFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want plainFile
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got, err := Parse(bytes.Clone(data))
			if err != nil {
				t.Fatal(err)
			}
			compareVocab(t, &got.Model, want.Model.Vocab)
			compareMerges(t, &got.Model.Merges, want.Model.Merges)
			if len(got.AddedTokens) != len(want.Added) {
				t.Fatalf("%d added tokens, want %d", len(got.AddedTokens), len(want.Added))
			}
			ids := got.AddedIDs()
			for i, w := range want.Added {
				g := got.AddedTokens[i]
				if g.ID != w.ID || g.Content != w.Content || g.SingleWord != w.SingleWord || g.LStrip != w.LStrip ||
					g.RStrip != w.RStrip || g.Normalized != w.Normalized || g.Special != w.Special {
					t.Fatalf("added token %d: %+v, want %+v", i, g, w)
				}
				if ids[i] != g.ID {
					t.Fatalf("added token %q: the reference numbers it %d, the file %d", g.Content, ids[i], g.ID)
				}
			}
		})
	}
}

func compareVocab(t *testing.T, got *Model, data json.RawMessage) {
	t.Helper()
	var want map[string]int
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if got.Vocab.Count() != len(want) {
		t.Fatalf("%d tokens, want %d", got.Vocab.Count(), len(want))
	}
	for token, id := range want {
		if text, ok := got.Vocab.Token(id); !ok || string(text) != token {
			t.Fatalf("ID %d is %q, want %q", id, text, token)
		}
		if found, ok := got.Vocab.Lookup([]byte(token)); !ok || found != id {
			t.Fatalf("Lookup(%q) = %d, %v; want %d", token, found, ok, id)
		}
	}
}

func compareMerges(t *testing.T, got *Merges, data json.RawMessage) {
	t.Helper()
	var pairs [][2]string
	if err := json.Unmarshal(data, &pairs); err != nil {
		pairs = nil
		var lines []string
		if err := json.Unmarshal(data, &lines); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			left, right, _ := bytes.Cut([]byte(line), []byte(" "))
			pairs = append(pairs, [2]string{string(left), string(right)})
		}
	}
	if got.Len() != len(pairs) {
		t.Fatalf("%d merges, want %d", got.Len(), len(pairs))
	}
	i := 0
	for left, right := range got.All() {
		if string(left) != pairs[i][0] || string(right) != pairs[i][1] {
			t.Fatalf("merge %d: %q %q, want %q", i, left, right, pairs[i])
		}
		i++
	}
}

// BenchmarkParse and BenchmarkEncodingJSON read the same files. The second
// does the least that a user of encoding/json can do: decode into a map and a
// list.
func BenchmarkParse(b *testing.B) {
	for _, path := range vendorFiles(b) {
		b.Run(filepath.Base(filepath.Dir(path)), func(b *testing.B) {
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			work := make([]byte, len(data))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				copy(work, data)
				if _, err := Parse(work); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	for _, path := range vendorFiles(b) {
		b.Run(filepath.Base(filepath.Dir(path)), func(b *testing.B) {
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				var f struct {
					Model struct {
						Vocab  map[string]int
						Merges any
					}
				}
				if err := json.Unmarshal(data, &f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
