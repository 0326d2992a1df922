package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/unfray/unfray/tokenizer"
)

// printLoading compares opening a tokenizer with what encoding/json alone needs to decode the same file.
func printLoading(w io.Writer, e *environment) error {
	fmt.Fprint(w, "### Loading\n\nms from the file to a tokenizer that encodes, first use of its tables included; encoding/json decodes the vocabulary into a map and the merges into strings, and nothing else.\n\n")
	fmt.Fprint(w, "| file | bytes | unfray | encoding/json | ratio |\n|---|---:|---:|---:|---:|\n")
	for _, name := range []string{"llama3", "qwen3", "gemma3", "gptoss"} {
		path := e.vocabPath(name + "/tokenizer.json")
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		var own, std []time.Duration
		for range *rounds {
			start := time.Now()
			if err := decodeJSON(path); err != nil {
				return err
			}
			std = append(std, time.Since(start))
			took, err := openAndEncode(path)
			if err != nil {
				return err
			}
			own = append(own, took)
		}
		r := ratio(std, own)
		fmt.Fprintf(w, "| %s | %d | %.0f | %.0f | %.1f |\n", name, info.Size(), ms(median(own)), ms(median(std)), r)
	}
	for _, file := range []string{"o200k_base.tiktoken", "gemma2/tokenizer.model"} {
		path := e.vocabPath(file)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		var own []time.Duration
		for range *rounds {
			took, err := openAndEncode(path)
			if err != nil {
				return err
			}
			own = append(own, took)
		}
		fmt.Fprintf(w, "| %s | %d | %.0f | | |\n", filepath.ToSlash(file), info.Size(), ms(median(own)))
	}
	return nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

func openAndEncode(path string) (time.Duration, error) {
	start := time.Now()
	tok, err := tokenizer.Open(path)
	if err != nil {
		return 0, err
	}
	tok.Encode(nil, []byte("The quick brown fox"))
	return time.Since(start), nil
}

// decodeJSON decodes vocabulary and merges, which are strings in older files and pairs of strings in newer ones.
func decodeJSON(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var file struct {
		Model struct {
			Vocab  map[string]int32
			Merges merges
		}
	}
	return json.Unmarshal(text, &file)
}

type merges struct {
	joined []string
	pairs  [][2]string
}

func (m *merges) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[1] == '"' {
		return json.Unmarshal(text, &m.joined)
	}
	if err := json.Unmarshal(text, &m.pairs); err != nil {
		return json.Unmarshal(text, &m.joined)
	}
	return nil
}
