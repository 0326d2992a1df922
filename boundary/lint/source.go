package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/internal/wire"
)

// Source is a text to lint and where it comes from.
type Source struct {
	File string
	Line int // of a JSON Lines file, from 1; 0 if the text is the file
	// Name tells the texts of a file apart that is neither: a chat template's.
	Name string
	Kind Kind
	Text []byte
}

// String is the place before an offset in messages.
func (s *Source) String() string {
	switch {
	case s.Line > 0:
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	case s.Name != "":
		return fmt.Sprintf("%s(%s)", s.File, s.Name)
	}
	return s.File
}

// KindOf tells what a file holds by the end of its name.
func KindOf(path string) Kind {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jinja", ".jinja2", ".j2":
		return Jinja
	case ".md", ".markdown":
		return Markdown
	case ".jsonl", ".ndjson":
		return Prompt
	}
	return Template
}

// OpenGGUF gives the chat template in a model file.
func OpenGGUF(path string) ([]Source, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := f.String("tokenizer.chat_template")
	if errors.Is(err, gguf.ErrNoKey) {
		return nil, fmt.Errorf("%s holds no chat template", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return []Source{{File: path, Name: "chat_template", Kind: Jinja, Text: []byte(text)}}, nil
}

// Read gives the texts of a file's contents: the whole, or by the name's end
// those of a JSON Lines file, {"text"} or {"prompt"} a line, and the chat
// templates of a tokenizer_config.json or chat_template.json.
func Read(path string, contents []byte) ([]Source, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		return readLines(path, contents)
	case ".json":
		return readConfig(path, contents)
	}
	return []Source{{File: path, Kind: KindOf(path), Text: contents}}, nil
}

func readLines(path string, contents []byte) ([]Source, error) {
	var sources []Source
	n := 0
	for line := range bytes.Lines(contents) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var in struct {
			Text, Prompt *string
			Bytes        []byte
		}
		err := wire.Check(line)
		if err == nil {
			err = json.Unmarshal(line, &in)
		}
		s := Source{File: path, Line: n, Kind: Prompt}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		case in.Text != nil:
			s.Text = []byte(*in.Text)
		case in.Prompt != nil:
			s.Text = []byte(*in.Prompt)
		case in.Bytes != nil:
			s.Text = in.Bytes
		default:
			return nil, fmt.Errorf(`%s: line %d: none of "text", "prompt" and "bytes" is there`, path, n)
		}
		sources = append(sources, s)
	}
	return sources, nil
}

func readConfig(path string, contents []byte) ([]Source, error) {
	var config struct {
		ChatTemplate json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(contents, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(config.ChatTemplate) == 0 {
		return nil, fmt.Errorf(`%s has no "chat_template"; prompts are read from text, Markdown, Jinja and .jsonl files`, path)
	}
	var one string
	if json.Unmarshal(config.ChatTemplate, &one) == nil {
		return []Source{{File: path, Name: "chat_template", Kind: Jinja, Text: []byte(one)}}, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(config.ChatTemplate, &named); err != nil {
		return nil, fmt.Errorf("%s: chat_template is neither a text nor a list of named texts: %w", path, err)
	}
	var sources []Source
	for _, t := range named {
		sources = append(sources, Source{File: path, Name: t.Name, Kind: Jinja, Text: []byte(t.Template)})
	}
	return sources, nil
}
