package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// contests say which tools encode with which vocabulary.
var contests = []struct {
	vocab   string
	file    string
	corpora []string
	others  []string
}{
	{"o200k_base", "o200k_base.tiktoken", []string{"go", "multi", "fuzz"}, []string{"tiktoken", "gigatoken", "quicktok", "pkoukk", "tiktoken-go"}},
	{"cl100k_base", "cl100k_base.tiktoken", []string{"go", "multi", "fuzz"}, []string{"tiktoken", "gigatoken", "quicktok", "pkoukk", "tiktoken-go"}},
	{"llama3", "llama3/tokenizer.json", []string{"go", "multi"}, []string{"tokenizers", "gigatoken", "quicktok"}},
	{"qwen3", "qwen3/tokenizer.json", []string{"go", "multi"}, []string{"tokenizers", "gigatoken", "quicktok"}},
	{"gemma3", "gemma3/tokenizer.json", []string{"go", "multi"}, []string{"tokenizers", "gigatoken"}},
	{"mistral", "mistral/tokenizer.json", []string{"go", "multi"}, []string{"tokenizers", "gigatoken"}},
	{"gemma2", "gemma2/tokenizer.model", []string{"go", "multi"}, []string{"sentencepiece", "eliben", "gigatoken"}},
}

// partBytes is the length of the parts of a corpus that tools encode one by one.
const partBytes = 1 << 20

// cutParts cuts a corpus into parts of 1 MiB. For a slow tool it keeps as many as -slow-mib says, from all over it.
func cutParts(path string, text []byte, slow bool) *parts {
	p := &parts{path: path, text: text}
	for at := 0; at < len(text); {
		end := min(at+partBytes, len(text))
		if end < len(text) {
			for end > at && text[end-1] != '\n' {
				end--
			}
			if end == at {
				for end = at + partBytes; !utf8.RuneStart(text[end]); end-- {
				}
			}
		}
		p.cuts = append(p.cuts, [2]int{at, end})
		at = end
	}
	if n := *slowMiB; slow && n < len(p.cuts) {
		var some [][2]int
		for i := range n {
			some = append(some, p.cuts[i*len(p.cuts)/n])
		}
		p.cuts = some
	}
	for _, c := range p.cuts {
		p.bytes += c[1] - c[0]
	}
	return p
}

// Passes are a tool's two passes over the same parts: with empty caches, and again.
type passes struct {
	version    string
	cold, warm []time.Duration
	first      answer
}

func printThroughput(w io.Writer, e *environment) error {
	fmt.Fprint(w, "### Throughput\n\nMB/s of the first pass (caches empty) and of a second one over the same text. The ratios are unfray's rate to the tool's, on the same parts of the corpus.\n\n")
	fmt.Fprint(w, "| vocabulary | corpus | tool | bytes | cold | warm | unfray cold | warm | ratio cold | warm | ids |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n")
	for _, c := range contests {
		if *vocabs != "" && !slices.Contains(strings.Split(*vocabs, ","), c.vocab) {
			continue
		}
		for _, name := range c.corpora {
			for _, other := range c.others {
				if openers[other].python && e.references == "" {
					continue
				}
				p := cutParts(e.corpusPath(name), e.texts[name], openers[other].slow)
				own, theirs, err := contest(e, c.file, other, p)
				if _, refused := errors.AsType[errRefused](err); refused {
					fmt.Fprintf(w, "| %s | %s | %s | | | | | | | | fails: %v |\n", c.vocab, name, other, err)
					continue
				}
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", c.vocab, name, other, err)
				}
				printRow(w, c.vocab, name, p, own, theirs)
			}
		}
	}
	return nil
}

func printRow(w io.Writer, vocab, corpus string, p *parts, own, theirs *passes) {
	verdict := "same"
	if own.first.ids != theirs.first.ids || own.first.sum != theirs.first.sum {
		verdict = fmt.Sprintf("differ (%d, unfray %d)", theirs.first.ids, own.first.ids)
	}
	rate := func(d []time.Duration) float64 { return perSecond(p.bytes, median(d)) }
	fmt.Fprintf(w, "| %s | %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %s |\n", vocab, corpus, theirs.version, p.bytes,
		rate(theirs.cold), rate(theirs.warm), rate(own.cold), rate(own.warm),
		ratio(theirs.cold, own.cold), ratio(theirs.warm, own.warm), verdict)
}

// ratio is the median of the rounds' ratios.
func ratio(slow, fast []time.Duration) float64 {
	var r []float64
	for i := range slow {
		r = append(r, slow[i].Seconds()/fast[i].Seconds())
	}
	return median(r)
}

// contest lets unfray and another tool encode the parts in turn, both opened afresh in each round.
func contest(e *environment, file, other string, p *parts) (ours, theirs *passes, err error) {
	own := "unfray"
	if openers[other].special {
		own = "unfray special"
	}
	ours, theirs = &passes{}, &passes{}
	for range *rounds {
		if err := ours.round(e, file, own, p); err != nil {
			return nil, nil, err
		}
		if err := theirs.round(e, file, other, p); err != nil {
			return nil, nil, err
		}
	}
	return ours, theirs, nil
}

func (r *passes) round(e *environment, file, name string, p *parts) error {
	o, err := openers[name].open(e, file)
	if err != nil {
		return err
	}
	defer o.close()
	r.version = o.version
	// The page cache holds the corpus from the start; the first pass of a Go tool pays for its buffer too.
	cold, err := o.encode(p)
	if err != nil {
		return err
	}
	warm, err := o.encode(p)
	if err != nil {
		return err
	}
	if warm.sum != cold.sum || warm.ids != cold.ids {
		fmt.Fprintf(os.Stderr, "%s: the second pass gives other ids\n", o.version)
	}
	r.first, r.cold, r.warm = cold, append(r.cold, cold.took), append(r.warm, warm.took)
	return nil
}
