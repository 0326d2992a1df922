package bpe

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// benchModels gives a model trained on a part of the Go source tree, and, if
// UNFRAY_TEST_VOCABS names a folder with o200k_base.tiktoken, that one, each
// with Go source in pieces to encode.
func benchModels(b *testing.B) map[string]Config {
	b.Helper()
	models := map[string]Config{"trained": trained(b)}
	if dir := os.Getenv("UNFRAY_TEST_VOCABS"); dir != "" {
		models["o200k"] = rankFile(b, filepath.Join(dir, "o200k_base.tiktoken"))
	}
	return models
}

// goSource reads files of the standard library, in one piece per word with the
// blank before it, or run of other characters.
func goSource(b *testing.B) (text []byte, ends []int) {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("no go command:", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "*", "*.go"))
	if err != nil || len(files) == 0 {
		b.Skip("no Go source tree")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		if text = append(text, data...); len(text) > 4<<20 {
			break
		}
	}
	isWord := func(c byte) bool { return c >= 0x80 || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }
	for i := 1; i < len(text); i++ {
		if isWord(text[i]) != isWord(text[i-1]) && text[i-1] != ' ' || text[i] == ' ' && text[i-1] != ' ' {
			ends = append(ends, i)
		}
	}
	return text, append(ends, len(text))
}

// trained makes a vocabulary of the commonest pieces of Go source and all
// their beginnings.
func trained(b *testing.B) Config {
	text, ends := goSource(b)
	c := toy{unknown: vocab.None, byID: true}
	seen := map[string]bool{}
	for i := range 256 {
		c.tokens = append(c.tokens, string([]byte{byte(i)}))
	}
	counts := map[string]int{}
	from := 0
	for _, end := range ends {
		piece := string(text[from:end])
		from = end
		if counts[piece]++; counts[piece] != 4 || len(piece) > 30 {
			continue
		}
		for n := 2; n <= len(piece); n++ {
			if part := piece[:n]; !seen[part] {
				seen[part] = true
				c.tokens = append(c.tokens, part)
			}
		}
	}
	return c.config(b)
}

func rankFile(b *testing.B, path string) Config {
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var tokens [][]byte
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		encoded, rank, _ := strings.Cut(s.Text(), " ")
		token, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			b.Fatal(err)
		}
		if id, err := strconv.Atoi(rank); err != nil || id != len(tokens) {
			b.Fatalf("rank %q after %d tokens", rank, len(tokens))
		}
		tokens = append(tokens, token)
	}
	kinds := make([]vocab.Kind, len(tokens))
	for i := range kinds {
		kinds[i] = vocab.Normal
	}
	v, err := vocab.New(tokens, kinds, vocab.NoSpecials())
	if err != nil {
		b.Fatal(err)
	}
	return Config{Vocab: v, ByID: true, Whole: true, Unknown: vocab.None}
}

func BenchmarkAppendPieces(b *testing.B) {
	text, ends := goSource(b)
	for name, conf := range benchModels(b) {
		m, err := New(conf)
		if err != nil {
			b.Fatal(err)
		}
		dst := make([]vocab.ID, 0, len(text))
		for _, cold := range []bool{true, false} {
			s := new(Scratch)
			m.AppendPieces(dst, text, 0, ends, s)
			mode := "warm"
			if cold {
				mode = "cold"
			}
			b.Run(name+"/"+mode, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if cold {
						s = new(Scratch)
					}
					m.AppendPieces(dst, text, 0, ends, s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ends)), "ns/piece")
			})
		}
	}
}

// BenchmarkMerge is without the cache and the Whole rule.
func BenchmarkMerge(b *testing.B) {
	text, ends := goSource(b)
	for name, conf := range benchModels(b) {
		conf.Whole = false
		m, err := New(conf)
		if err != nil {
			b.Fatal(err)
		}
		s := new(Scratch)
		var dst []vocab.ID
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				from := 0
				for _, end := range ends {
					dst = m.AppendPiece(dst[:0], text[from:end], s)
					from = end
				}
			}
		})
	}
}

func BenchmarkLongPiece(b *testing.B) {
	for name, conf := range benchModels(b) {
		m, err := New(conf)
		if err != nil {
			b.Fatal(err)
		}
		for _, letters := range []string{"a", " ", "qwertyuiopasdfghjklzxcvbnm"} {
			text := make([]byte, 1<<20)
			for i := range text {
				text[i] = letters[i*i%1009%len(letters)]
			}
			s := new(Scratch)
			var dst []vocab.ID
			b.Run(name+"/"+strconv.Itoa(len(letters))+letters[:1], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					dst = m.AppendPiece(dst[:0], text, s)
				}
			})
		}
	}
}

func BenchmarkApart(b *testing.B) {
	for name, conf := range benchModels(b) {
		m, err := New(conf)
		if err != nil {
			b.Fatal(err)
		}
		n, i := m.tokens, 0
		m.Apart(0, 1)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				i += 7919
				m.Apart(vocab.ID(i%n), vocab.ID(i/3%n))
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for name, conf := range benchModels(b) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := New(conf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
