// Command strata makes files of cuts for "unfray eval" from texts that packages
// ship, cut at places that are hard for a tokenizer:
//
//	url     inside a URL
//	latex   inside the name of a LaTeX command
//	cjk     where Han, Kana or Hangul text meets Latin text
//	indent  inside or behind the blanks at the start of a line of code
//	json    inside a key of a JSON object
//
// It walks the folders given, by default the Go distribution and the module
// cache; folders of npm and pip packages do as well. The same files and seed give
// the same cuts.
//
//	go run ./strata -out /tmp/strata [-n 200] [-seed 1] [FOLDER…]
package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what is read and written, in bytes.
const (
	minFile   = 256
	maxFile   = 256 << 10
	minBefore = 80
	before    = 1500 // of the prompt
	after     = 120  // of the truth
	perFile   = 2    // cuts of a kind
)

// stratum is a kind of place. In what whole matches, the cut is at a random
// character boundary inside the group; an empty group is the place itself.
type stratum struct {
	name  string
	files *regexp.Regexp // of names; nil: all
	whole *regexp.Regexp
}

const (
	cjk  = `[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]`
	text = `\.(md|txt|rst|tex|html|py|js|mjs|ts|go|c|h|json|ipynb)$`
)

var strata = []stratum{
	{"url", regexp.MustCompile(text), regexp.MustCompile(`https?://([0-9A-Za-z._~/#?&=%-]{12,})`)},
	{"latex", regexp.MustCompile(`\.(md|txt|rst|tex|py|ipynb|js)$`), regexp.MustCompile(`\\((?:alpha|approx|begin|beta|cdot|delta|epsilon|equiv|frac|gamma|infty|lambda|langle|ldots|left|leq|mathbb|mathbf|mathcal|mathrm|operatorname|partial|prod|rangle|right|rightarrow|sigma|sqrt|subset|textbf|theta|times|varphi)[ {}_^()\\])`)},
	{"cjk", regexp.MustCompile(text), regexp.MustCompile(cjk + `( ?)[A-Za-z]{3}|[A-Za-z]{3}( ?)` + cjk)},
	{"indent", regexp.MustCompile(`\.(go|py|js|mjs|ts|c|h)$`), regexp.MustCompile(`\n((?: {4,}|\t{2,})[^\s])`)},
	{"json", regexp.MustCompile(`\.json$`), regexp.MustCompile(`"([A-Za-z_]{5,30})"\s*:`)},
}

// cut is a line of a file.
type cut struct {
	ID     string `json:"id"`
	Prefix string `json:"prefix"`
	Next   string `json:"next"`
}

// sample keeps n of a stream, each with equal probability.
type sample struct {
	rng  *rand.Rand
	kept []cut
	seen int
}

func (s *sample) add(c cut, n int) {
	s.seen++
	if len(s.kept) < n {
		s.kept = append(s.kept, c)
	} else if k := s.rng.IntN(s.seen); k < n {
		s.kept[k] = c
	}
}

func main() {
	out := flag.String("out", "", "folder to write NAME.jsonl.gz to; made if it is not there")
	n := flag.Int("n", 200, "cuts of each kind")
	seed := flag.Uint64("seed", 1, "which cuts")
	flag.Parse()
	if err := run(*out, *n, *seed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "strata:", err)
		os.Exit(1)
	}
}

func run(out string, n int, seed uint64, roots []string) error {
	if out == "" || n < 1 {
		return errors.New("give -out FOLDER and a positive -n")
	}
	if len(roots) == 0 {
		dirs, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
		if err != nil {
			return fmt.Errorf("go env: %w", err)
		}
		roots = strings.Fields(string(dirs))
	}
	samples := make([]*sample, len(strata))
	for i := range samples {
		samples[i] = &sample{rng: rand.New(rand.NewPCG(seed, uint64(i)))}
	}
	for _, root := range roots {
		if err := walk(root, n, samples); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for i, s := range samples {
		path := filepath.Join(out, strata[i].name+".jsonl.gz")
		s.rng.Shuffle(len(s.kept), func(a, b int) { s.kept[a], s.kept[b] = s.kept[b], s.kept[a] })
		if err := write(path, s.kept); err != nil {
			return err
		}
		fmt.Printf("%s: %d cuts of %d places\n", path, len(s.kept), s.seen)
	}
	return nil
}

// walk cuts every file under a folder that looks like text.
func walk(root string, n int, samples []*sample) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		wanted := func(s stratum) bool { return s.files.MatchString(path) }
		if !slices.ContainsFunc(strata, wanted) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() < minFile || info.Size() > maxFile {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(b) || strings.ContainsRune(string(b), 0) {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for i, s := range strata {
			if wanted(s) {
				cutFile(s, filepath.ToSlash(name), string(b), n, samples[i])
			}
		}
		return nil
	})
}

// cutFile cuts a text at perFile of its places.
func cutFile(s stratum, name, text string, n int, to *sample) {
	places := s.whole.FindAllStringSubmatchIndex(text, -1)
	to.rng.Shuffle(len(places), func(a, b int) { places[a], places[b] = places[b], places[a] })
	taken := 0
	for _, p := range places {
		lo, hi := p[2], p[3]
		if lo < 0 { // the other group
			lo, hi = p[4], p[5]
		}
		at := lo
		if hi-lo > 1 {
			at = lo + 1 + to.rng.IntN(hi-lo-1)
		}
		if at < minBefore || len(text)-at < after {
			continue
		}
		to.add(cut{
			ID:     fmt.Sprintf("%s:%d", name, at),
			Prefix: whole(text[max(0, at-before):at], false),
			Next:   whole(text[at:min(len(text), at+after)], true),
		}, n)
		if taken++; taken == perFile {
			return
		}
	}
}

// whole takes half a character off the start of a text, or off its end.
func whole(s string, end bool) string {
	for len(s) > 0 && !utf8.ValidString(s) {
		if end {
			s = s[:len(s)-1]
		} else {
			s = s[1:]
		}
	}
	return s
}

func write(path string, cuts []cut) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	for _, c := range cuts {
		if err := enc.Encode(c); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(z.Close(), f.Close())
}
