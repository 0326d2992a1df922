package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// worstTexts are inputs that are one pretoken, whatever their length.
var worstTexts = []struct {
	name string
	make func(n int) []byte
}{
	{"one letter", func(n int) []byte { return bytes.Repeat([]byte("a"), n) }},
	{"blanks", func(n int) []byte { return bytes.Repeat([]byte(" "), n) }},
	{"random letters", func(n int) []byte {
		g := rand.New(rand.NewPCG(1, 2))
		text := make([]byte, n)
		for i := range text {
			text[i] = 'a' + byte(g.IntN(26))
		}
		return text
	}},
}

// worstTools are measured on them; slow ones only on the shorter text.
var worstTools = []struct{ file, tool string }{
	{"o200k_base.tiktoken", "unfray"},
	{"o200k_base.tiktoken", "tiktoken"},
	{"o200k_base.tiktoken", "gigatoken"},
	{"o200k_base.tiktoken", "quicktok"},
	{"llama3/tokenizer.json", "unfray"},
	{"llama3/tokenizer.json", "tokenizers"},
	{"gemma2/tokenizer.model", "unfray"},
	{"gemma2/tokenizer.model", "sentencepiece"},
	{"gemma3/tokenizer.json", "unfray"},
}

const (
	shortWorst = 200_000
	longWorst  = 2_000_000
)

func printWorst(w io.Writer, e *environment) error {
	fmt.Fprint(w, "### Worst cases\n\nMB/s on texts of one pretoken, caches empty. Linear time gives the same rate for both lengths. Left out: pkoukk/tiktoken-go and tiktoken-go/tokenizer, which are quadratic here.\n\n")
	fmt.Fprint(w, "| vocabulary | text | tool | 200 KB | 2 MB | time for 2 MB ÷ 200 KB |\n|---|---|---|---:|---:|---:|\n")
	dir, err := os.MkdirTemp("", "worst-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, text := range worstTexts {
		short, err := writeWhole(filepath.Join(dir, "short"), text.make(shortWorst))
		if err != nil {
			return err
		}
		long, err := writeWhole(filepath.Join(dir, "long"), text.make(longWorst))
		if err != nil {
			return err
		}
		for _, t := range worstTools {
			if openers[t.tool].python && e.references == "" {
				continue
			}
			if err := printWorstRow(w, e, t.file, t.tool, text.name, short, long); err != nil {
				return err
			}
		}
	}
	return nil
}

func printWorstRow(w io.Writer, e *environment, file, tool, name string, short, long *parts) error {
	took, version, err := encodeWhole(e, file, tool, short)
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	fmt.Fprintf(w, "| %s | %s | %s | %.1f |", file, name, version, perSecond(short.bytes, took))
	if openers[tool].slow {
		fmt.Fprint(w, " | |\n")
		return nil
	}
	tookLong, _, err := encodeWhole(e, file, tool, long)
	if _, refused := errors.AsType[errRefused](err); refused {
		fmt.Fprintf(w, " fails: %v | |\n", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	fmt.Fprintf(w, " %.1f | %.1f |\n", perSecond(long.bytes, tookLong), tookLong.Seconds()/took.Seconds())
	return nil
}

// writeWhole writes a text for the contestants and returns it as one part.
func writeWhole(path string, text []byte) (*parts, error) {
	return &parts{path, text, [][2]int{{0, len(text)}}, len(text)}, os.WriteFile(path, text, 0o644)
}

// encodeWhole returns the median time of a freshly opened tool's first pass.
func encodeWhole(e *environment, file, name string, p *parts) (time.Duration, string, error) {
	var took []time.Duration
	var version string
	for range *rounds {
		o, err := openers[name].open(e, file)
		if err != nil {
			return 0, "", err
		}
		a, err := o.encode(p)
		o.close()
		if err != nil {
			return 0, "", err
		}
		took, version = append(took, a.took), o.version
	}
	return median(took), version, nil
}
