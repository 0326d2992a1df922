package jsontest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair/jsontest"
)

func TestDocumentsAreValid(t *testing.T) {
	n := 50_000
	if testing.Short() {
		n = 5_000
	}
	g := jsontest.New(0)
	var doc []byte
	bytesMade := 0
	for seed := range n {
		g.Reset(uint64(seed))
		doc = g.Append(doc[:0], 0)
		bytesMade += len(doc)
		if !json.Valid(doc) || !utf8.Valid(doc) {
			t.Fatalf("seed %d: not valid: %q", seed, doc)
		}
	}
	t.Logf("%d documents, %d bytes on average", n, bytesMade/n)
}

func TestSize(t *testing.T) {
	for _, size := range []int{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000} {
		var total, least, most int
		const n = 40
		for seed := range uint64(n) {
			doc := jsontest.Document(seed, size)
			if !json.Valid(doc) {
				t.Fatalf("size %d, seed %d: not valid", size, seed)
			}
			total += len(doc)
			if seed == 0 {
				least = len(doc)
			}
			least, most = min(least, len(doc)), max(most, len(doc))
		}
		t.Logf("size %d: %d to %d bytes, %d on average", size, least, most, total/n)
		if most > 2*size+2_000 {
			t.Errorf("size %d: a document of %d bytes", size, most)
		}
		if size >= 1_000 && total/n < size/4 {
			t.Errorf("size %d: %d bytes on average", size, total/n)
		}
	}
}

// The same seed gives the same bytes, in every release of Go and on every machine.
func TestSeeds(t *testing.T) {
	h := fnv.New64a()
	g := jsontest.New(7)
	for range 1_000 {
		h.Write(g.Append(nil, 0))
	}
	if got, want := fmt.Sprintf("%x", h.Sum64()), "82f38ecd8ab5799b"; got != want {
		t.Errorf("1,000 documents of seed 7 have the hash %s, want %s; if the generator was changed on purpose, write the new one", got, want)
	}
	prefix := []byte("x")
	if got := jsontest.New(3).Append(prefix, 50); string(got) != "x"+string(jsontest.Document(3, 50)) {
		t.Errorf("Append to %q gave %q", prefix, got)
	}
}

// What the documents are for is in them.
func TestVariety(t *testing.T) {
	have := map[string]int{}
	g := jsontest.New(1)
	var all bytes.Buffer
	for range 20_000 {
		doc := g.Append(nil, 0)
		all.Write(doc)
		all.WriteByte(0) // no document has one
		trimmed := bytes.TrimSpace(doc)
		have["root "+string(trimmed[:1])]++
		if len(trimmed) < len(doc) {
			have["white space around"]++
		}
		depth, deepest := 0, 0
		d := json.NewDecoder(bytes.NewReader(doc))
		keys := []map[string]bool{nil}
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch token {
			case json.Delim('{'), json.Delim('['):
				depth++
				deepest = max(deepest, depth)
				keys = append(keys, map[string]bool{})
			case json.Delim('}'), json.Delim(']'):
				depth--
				keys = keys[:len(keys)-1]
			}
			if s, ok := token.(string); ok && keys[len(keys)-1] != nil {
				if keys[len(keys)-1][s] {
					have["string twice in a container"]++
				}
				keys[len(keys)-1][s] = true
			}
		}
		if deepest > 60 {
			have["deep"]++
		}
	}
	for _, piece := range []string{
		`{}`, `[]`, `{ }`, "[\n]", `""`, `-0`, `1.10`, `1E400`, `1234567890123456789012345678901234567890`, "```json", `//`, `/*`, `\"`, `\\\"`, `"{"`, `"["`, `"\""`,
		`x{`, `&quot;`, `\u0026quot;`, `\/`, `\ud83d\ude00`, `\uD800`, `😀`, `：`, `“`, `\u201c`, `C:\\new`, `\u0000`, `\f`, "\r\n", "\t", `": "`, `":"`, `" :`, `\n`, "\ufeff", `None`, `...`,
	} {
		have["piece "+piece] += strings.Count(all.String(), piece)
	}
	for _, root := range []string{`"`, `{`, `[`, `t`, `f`, `n`, `-`, `1`} {
		have["root "+root] += 0
	}
	for _, name := range []string{"deep", "string twice in a container", "white space around"} {
		have[name] += 0
	}
	for name, n := range have {
		if n < 10 {
			t.Errorf("%q: %d times", name, n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	g := jsontest.New(0)
	var doc []byte
	total := 0
	for b.Loop() {
		doc = g.Append(doc[:0], 0)
		total += len(doc)
	}
	b.SetBytes(int64(total / b.N))
}
