// Command quality measures what healing does to real cuts: texts broken off
// where a person's cursor stood or at random characters, of which it is known
// what came next.
//
// For each set it runs "unfray complete --prompts" once a mode on the same
// prompts and prints a Markdown table: the share of cuts at which the first
// characters of the continuation are exactly those of the truth. A cut is
// dirty if the tokens of prompt+truth do not begin with the tokens of the
// prompt, else clean.
//
//	go run ./quality -unfray ../bin/unfray -tokenizer model.gguf FILE.jsonl.gz…
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// keepBytes is how much of a prompt's end is kept.
const keepBytes = 2000

var (
	unfrayPath = flag.String("unfray", "unfray", "the unfray binary, built with the embedded engine")
	tokPath    = flag.String("tokenizer", "", "the model's .gguf file")
	limit      = flag.Int("n", 200, "take the first n cuts of each file")
	modes      = flag.String("modes", "off,last,stable", "healing modes to compare; the first is the baseline")
	chars      = flag.Int("chars", 10, "characters that must agree")
	threads    = flag.Int("threads", 0, "native threads; 0: unfray's default")
	show       = flag.Bool("show", false, "print the cuts at which a mode loses against the first, to standard error")
	maxTokens  = flag.Int("max-tokens", 24, "tokens to generate at each cut")
)

// cut is a prompt with what really followed.
type cut struct {
	id, prompt, truth string
	dirty             bool
}

func main() {
	flag.Parse()
	if err := run(os.Stdout, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string) error {
	if *tokPath == "" || len(files) == 0 {
		return errors.New("give -tokenizer and at least one file of cuts")
	}
	t, err := tokenizer.OpenGGUF(*tokPath)
	if err != nil {
		return err
	}
	names := strings.Split(*modes, ",")
	fmt.Fprintf(w, "| set, stratum | n | %s |\n|---|---:|%s\n", strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	for _, file := range files {
		cuts, err := readCuts(file, t)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		hits := make([][]bool, len(names))
		texts := make([][]string, len(names))
		for i, mode := range names {
			if texts[i], err = complete(mode, cuts); err != nil {
				return err
			}
			for j, text := range texts[i] {
				hits[i] = append(hits[i], head(text, *chars) == head(cuts[j].truth, *chars))
			}
		}
		if *show {
			showLosses(os.Stderr, cuts, hits, texts)
		}
		set := strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")
		report(w, set, cuts, hits, texts)
	}
	return nil
}

// report prints the rows of one set. Wins and losses are against the first
// mode; "same" is how often the characters are the first mode's.
func report(w io.Writer, set string, cuts []cut, hits [][]bool, texts [][]string) {
	for _, s := range []struct {
		name string
		in   func(cut) bool
	}{
		{set + ", dirty", func(c cut) bool { return c.dirty }},
		{set + ", clean", func(c cut) bool { return !c.dirty }},
		{set + ", all", func(cut) bool { return true }},
	} {
		n := 0
		cells := make([]string, len(hits))
		for i := range hits {
			ok, wins, losses, same := 0, 0, 0, 0
			n = 0
			for j, c := range cuts {
				if !s.in(c) {
					continue
				}
				n++
				if hits[i][j] {
					ok++
				}
				if hits[i][j] && !hits[0][j] {
					wins++
				} else if !hits[i][j] && hits[0][j] {
					losses++
				}
				if head(texts[i][j], *chars) == head(texts[0][j], *chars) {
					same++
				}
			}
			cells[i] = fmt.Sprintf("%.1f %%", 100*float64(ok)/float64(max(1, n)))
			if i > 0 {
				cells[i] += fmt.Sprintf(" (+%d −%d, same %d)", wins, losses, same)
			}
		}
		fmt.Fprintf(w, "| %s | %d | %s |\n", s.name, n, strings.Join(cells, " | "))
	}
}

// showLosses prints the cuts that the first mode continues rightly and another
// does not.
func showLosses(w io.Writer, cuts []cut, hits [][]bool, texts [][]string) {
	for i := range hits {
		for j, c := range cuts {
			if hits[0][j] && !hits[i][j] {
				fmt.Fprintf(w, "%s: …%q, truth %q\n  %q\n  %q\n", c.id, c.prompt[max(0, len(c.prompt)-40):], head(c.truth, 20), texts[0][j], texts[i][j])
			}
		}
	}
}

// readCuts takes the first cuts whose truth is long enough to be compared. The
// truth of a random span goes on with the text behind the span.
func readCuts(file string, t *tokenizer.Tokenizer) ([]cut, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(z)
	var cuts []cut
	for read := 0; read < *limit; read++ {
		var in struct{ ID, Prefix, Middle, Next, Suffix string }
		if err := dec.Decode(&in); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		c := cut{id: in.ID, prompt: tail(in.Prefix, keepBytes), truth: in.Next}
		if in.Middle != "" {
			c.truth = in.Middle + in.Suffix
		}
		if utf8.RuneCountInString(c.truth) < *chars || c.prompt == "" {
			continue
		}
		whole := t.Encode(nil, []byte(c.prompt+c.truth))
		c.dirty = !hasPrefix(whole, t.Encode(nil, []byte(c.prompt)))
		cuts = append(cuts, c)
	}
	return cuts, nil
}

// complete runs one mode over all cuts, one after the other: in a batch the
// library rounds differently, which decides near ties.
func complete(mode string, cuts []cut) ([]string, error) {
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, c := range cuts {
		if err := enc.Encode(map[string]string{"id": c.id, "prompt": c.prompt}); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(*unfrayPath, "complete", "--prompts", "-", "--model", *tokPath,
		"--heal", mode, "--temperature", "0", "--max-tokens", strconv.Itoa(*maxTokens), "--threads", strconv.Itoa(*threads), "--parallel", "1")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mode, err)
	}
	var texts []string
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var r struct {
			ID, Text string
			Bytes    []byte // instead of Text where the limit cut a character
		}
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			return nil, err
		}
		if want := cuts[len(texts)].id; r.ID != want {
			return nil, fmt.Errorf("%s: result %d is of %q, not of %q", mode, len(texts)+1, r.ID, want)
		}
		texts = append(texts, r.Text+string(r.Bytes))
	}
	if len(texts) != len(cuts) {
		return nil, fmt.Errorf("%s: %d results for %d prompts", mode, len(texts), len(cuts))
	}
	return texts, sc.Err()
}

// head is the first n characters of s.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// tail is the last n bytes of s, less what would be half a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

func hasPrefix(ids, prefix []vocab.ID) bool {
	return len(ids) >= len(prefix) && slices.Equal(ids[:len(prefix)], prefix)
}
