package wordpiece

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// answerCase is what testdata/record.py wrote of one vocabulary.
type answerCase struct {
	Name, Prefix  string
	MaxChars      int
	Tokens, Words []string
	IDs           [][]vocab.ID
}

func (c *answerCase) config(t testing.TB) Config {
	t.Helper()
	var tokens [][]byte
	kinds := make([]vocab.Kind, len(c.Tokens))
	for i, text := range c.Tokens {
		tokens = append(tokens, []byte(text))
		kinds[i] = vocab.Normal
	}
	v, err := vocab.New(tokens, kinds, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	return Config{Vocab: v, Prefix: c.Prefix, MaxChars: c.MaxChars, Unknown: vocab.ID(slices.Index(c.Tokens, "[UNK]"))}
}

func (c *answerCase) model(t testing.TB) *Model {
	t.Helper()
	m, err := New(c.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var recorded = sync.OnceValues(func() ([]answerCase, error) {
	f, err := os.Open("testdata/answers.json.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var cases []answerCase
	return cases, json.NewDecoder(z).Decode(&cases)
})

func loadAnswers(t testing.TB) []answerCase {
	t.Helper()
	cases, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestAnswers(t *testing.T) {
	for _, c := range loadAnswers(t) {
		t.Run(c.Name, func(t *testing.T) {
			m := c.model(t)
			for i, word := range c.Words {
				if got := m.AppendPiece(nil, []byte(word), nil); !slices.Equal(got, c.IDs[i]) {
					t.Errorf("%.40q: got %v, want %v", word, got, c.IDs[i])
				}
			}
		})
	}
}

func TestUnknownIsLeftOut(t *testing.T) {
	c := loadAnswers(t)[0].config(t)
	c.Unknown = vocab.None
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.AppendPiece([]vocab.ID{3}, []byte("playz"), nil); !slices.Equal(got, []vocab.ID{3}) {
		t.Errorf("got %v, want what was there", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.MaxChars = -1 },
		func(c *Config) { c.Unknown = vocab.ID(c.Vocab.Len()) },
	} {
		c := loadAnswers(t)[0].config(t)
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("no error for %+v", c)
		}
	}
}

func TestAllocations(t *testing.T) {
	m := loadAnswers(t)[0].model(t)
	dst := make([]vocab.ID, 0, 16)
	words := [][]byte{[]byte("tokenization"), []byte("zzz"), bytes.Repeat([]byte("é"), 101)}
	if n := testing.AllocsPerRun(100, func() {
		dst = dst[:0]
		for _, w := range words {
			dst = m.AppendPiece(dst, w, nil)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzAppendPiece compares with the definition: prefix and rest, cut shorter and
// shorter, looked up.
func FuzzAppendPiece(f *testing.F) {
	cases := loadAnswers(f)
	for i, c := range cases {
		for _, w := range c.Words[:20] {
			f.Add(uint8(i), []byte(w))
		}
	}
	var models []*Model
	for _, c := range cases {
		models = append(models, c.model(f))
	}
	f.Fuzz(func(t *testing.T, which uint8, word []byte) {
		i := int(which) % len(cases)
		c := &cases[i]
		unknown := []vocab.ID{vocab.ID(slices.Index(c.Tokens, "[UNK]"))}
		var want []vocab.ID
		tooLong := utf8.RuneCount(word) > c.MaxChars
		for rest, at := string(word), 0; at < len(rest) && !tooLong; {
			end, id := len(rest), -1
			for ; end > at && id < 0; end-- {
				piece := rest[at:end]
				if at > 0 {
					piece = c.Prefix + piece
				}
				if id = slices.Index(c.Tokens, piece); id >= 0 {
					break
				}
			}
			if id < 0 {
				want = unknown
				break
			}
			want, at = append(want, vocab.ID(id)), end
		}
		if tooLong {
			want = unknown
		}
		if got := models[i].AppendPiece(nil, word, nil); !slices.Equal(got, want) {
			t.Errorf("%s: %q: got %v, want %v", c.Name, word, got, want)
		}
	})
}

func BenchmarkAppendPiece(b *testing.B) {
	c := loadAnswers(b)[0]
	m := c.model(b)
	words := bytes.Fields([]byte(strings.Repeat("unaffable playing tokenization the tokenizers ", 100)))
	n := 0
	for _, w := range words {
		n += len(w)
	}
	b.SetBytes(int64(n))
	var dst []vocab.ID
	for b.Loop() {
		dst = dst[:0]
		for _, w := range words {
			dst = m.AppendPiece(dst, w, nil)
		}
	}
}
