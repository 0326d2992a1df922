package split

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// reference is testdata/splits.json.gz, recorded by testdata/record.py: what
// Hugging Face tokenizers and tiktoken make of hard strings.
type reference struct {
	Texts []string
	Cases []referenceCase
}

type referenceCase struct {
	Name    string
	Steps   []Step
	Pattern string
	Ends    [][]int
}

func readReference(t testing.TB) (r reference) {
	t.Helper()
	readJSON(t, "testdata/splits.json.gz", &r)
	return r
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(v); err != nil {
		t.Fatal(err)
	}
}

func (c referenceCase) splitter() (Splitter, error) {
	if c.Pattern != "" {
		return Pattern(c.Pattern)
	}
	return New(c.Steps)
}

// kept gives the ends of the pretokens that are kept.
func kept(s Splitter, text []byte) []int {
	out := []int{}
	at := 0
	for _, end := range scanAll(s, text, 0) {
		if s.Keeps(text[at:end]) {
			out = append(out, end)
		}
		at = end
	}
	return out
}

func TestReference(t *testing.T) {
	r := readReference(t)
	for _, c := range r.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s, err := c.splitter()
			if err != nil {
				t.Fatal(err)
			}
			bad := 0
			for i, text := range r.Texts {
				if got := kept(s, []byte(text)); !slices.Equal(got, c.Ends[i]) {
					t.Errorf("%s splits %q into pretokens that end at %v, want %v", s, text, got, c.Ends[i])
					if bad++; bad == 3 {
						t.FailNow()
					}
				}
			}
		})
	}
}

// TestNamed compares with llama.cpp itself: testdata/llama.json.gz, recorded by
// testdata/record_llama.py.
func TestNamed(t *testing.T) {
	texts := readReference(t).Texts
	var r struct {
		Kinds map[string]string
		Ends  map[string][][]int
	}
	readJSON(t, "testdata/llama.json.gz", &r)
	for name := range llamaCpp {
		t.Run(name, func(t *testing.T) {
			s, err := Named(name)
			if err != nil {
				t.Fatal(err)
			}
			want := r.Ends[r.Kinds[name]]
			if want == nil {
				t.Fatalf("llama.cpp has no answers for %s", name)
			}
			bad := 0
			for i, text := range texts {
				if got := kept(s, []byte(text)); !slices.Equal(got, want[i]) {
					t.Errorf("splits %q into pretokens that end at %v, want %v", text, got, want[i])
					if bad++; bad == 3 {
						t.FailNow()
					}
				}
			}
		})
	}
}
