package normalize

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
)

// answers is what testdata/record.py wrote.
type answers struct {
	Texts     []string
	Points    [][2]rune
	Charsmaps map[string][]byte
	Cases     []answerCase
	Outputs   [][]*string // by text, by case; nil for the text itself
}

type answerCase struct {
	Name  string
	Steps []struct {
		Step
		Map string
	}
	Whole string
}

// normalizer makes what the case is about.
func (c *answerCase) normalizer(t testing.TB, a *answers) *Normalizer {
	t.Helper()
	var steps []Step
	for _, s := range c.Steps {
		if s.Map != "" {
			s.Charsmap = a.Charsmaps[s.Map]
		}
		steps = append(steps, s.Step)
	}
	n, err := New(steps)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var recorded = sync.OnceValues(func() (*answers, error) {
	f, err := os.Open("testdata/answers.json.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	a := new(answers)
	return a, json.NewDecoder(z).Decode(a)
})

func loadAnswers(t testing.TB) *answers {
	t.Helper()
	a, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// normal is what the pipeline makes of a segment.
func normal(n *Normalizer, text string) string {
	out := n.Append(nil, []byte(text))
	return n.PrefixOf([]byte(text), out) + string(out)
}

func TestAnswers(t *testing.T) {
	a := loadAnswers(t)
	for i, c := range a.Cases {
		t.Run(c.Name, func(t *testing.T) {
			n := c.normalizer(t, a)
			unescape := func(s string) string {
				if n.Meta() {
					s = strings.ReplaceAll(s, metaSpace, " ")
				}
				return s
			}
			for j, text := range a.Texts {
				want := text
				if o := a.Outputs[j][i]; o != nil {
					want = *o
				}
				want = unescape(want)
				if got := normal(n, text); got != want {
					t.Errorf("%+q\ngot  %+q\nwant %+q", text, got, want)
				}
				if n.Same([]byte(text)) && string(n.Append(nil, []byte(text))) != text {
					t.Errorf("%+q is said to be normal", text)
				}
				if t.Failed() {
					break
				}
			}
		})
	}
}

// TestWholeRange is about every character that is special in any way, in two
// contexts.
func TestWholeRange(t *testing.T) {
	if raceEnabled {
		t.Skip("takes long, and TestAnswers does the same")
	}
	a := loadAnswers(t)
	for _, c := range a.Cases {
		t.Run(c.Name, func(t *testing.T) {
			n := c.normalizer(t, a)
			if n.Meta() {
				t.Skip("U+2581 and spaces come out alike")
			}
			h := sha256.New()
			var text, out []byte
			for _, p := range a.Points {
				for r := p[0]; r <= p[1]; r++ {
					text = append(append(append(text[:0], 'x'), string(r)...), "\u0327\u0301"...)
					out = append(n.Append(out[:0], text), '\n')
					text = append(append(append(append(text[:0], "\u1100"...), string(r)...), string(r)...), "\u0316y"...)
					out = append(n.Append(out, text), '\n')
					h.Write(out)
				}
			}
			if got := hex.EncodeToString(h.Sum(nil)); got != c.Whole {
				t.Errorf("hash of all results is %s, want %s", got, c.Whole)
			}
		})
	}
}
