package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/unfray/unfray/boundary/lint"
	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// templateSource reads a chat template: the file's, or that beside the
// tokenizer. It is "" where nothing was named and there is none.
func templateSource(path, tokenizerPath string) (string, error) {
	if path != "" {
		return readTemplate(path)
	}
	at, err := modelPath(tokenizerPath)
	if err != nil {
		return "", nil // the tokenizer's own error says more
	}
	if strings.EqualFold(filepath.Ext(at), ".gguf") {
		text, err := readTemplate(at)
		if err != nil {
			return "", nil // a model without one
		}
		return text, nil
	}
	dir := at
	if info, err := os.Stat(at); err == nil && !info.IsDir() {
		dir = filepath.Dir(at)
	}
	for _, name := range []string{"chat_template.jinja", "tokenizer_config.json", "chat_template.json"} {
		text, err := readTemplate(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoTemplate):
		default:
			return text, err
		}
	}
	return "", nil
}

// errNoTemplate is the error of a file that has no chat template.
var errNoTemplate = errors.New("it has no chat template")

// readTemplate reads the chat template of a file. Of several the one named
// "default" is taken, else the first.
func readTemplate(path string) (string, error) {
	var sources []lint.Source
	var err error
	if strings.EqualFold(filepath.Ext(path), ".gguf") {
		sources, err = lint.OpenGGUF(path)
	} else {
		var text []byte
		if text, err = readFile(path); err == nil && noTemplate(path, text) {
			err = fmt.Errorf("%s: %w", path, errNoTemplate)
		}
		if err == nil {
			sources, err = lint.Read(path, text)
		}
	}
	if err != nil {
		return "", err
	}
	for _, s := range sources {
		if s.Name == "default" {
			return string(s.Text), nil
		}
	}
	if len(sources) == 0 || len(sources[0].Text) == 0 {
		return "", fmt.Errorf("%s: %w", path, errNoTemplate)
	}
	return string(sources[0].Text), nil
}

// noTemplate reports whether a file is a tokenizer's configuration that tells no
// template.
func noTemplate(path string, text []byte) bool {
	if !strings.EqualFold(filepath.Ext(path), ".json") {
		return false
	}
	var config struct {
		ChatTemplate json.RawMessage `json:"chat_template"`
	}
	return json.Unmarshal(text, &config) == nil && (len(config.ChatTemplate) == 0 || string(config.ChatTemplate) == "null")
}

// templateError names the flag where it was given: else the file says enough.
func templateError(flag string, err error) error {
	if flag == "" {
		return fmt.Errorf("the chat template beside the tokenizer: %w", err)
	}
	return fmt.Errorf("--chat-template: %w", err)
}

// errNoPrompt is the error of a trace of which no prompt can be made, where there
// is no chat template.
var errNoPrompt = errors.New("no request of the trace tells its prompt: conversations need a chat template, and there is none beside the tokenizer; give --chat-template")

// renderFunc makes a prompt of a conversation.
type renderFunc = func(messages, tools json.RawMessage) ([]vocab.ID, error)

// openRenderer makes prompts of conversations; nil without a template.
func openRenderer(ctx context.Context, path, tokenizerPath string, t *tokenizer.Tokenizer) (renderFunc, error) {
	source, err := templateSource(path, tokenizerPath)
	if err != nil {
		return nil, templateError(path, err)
	}
	if source == "" {
		return nil, nil
	}
	chat, err := chattemplate.New(source, t)
	if err != nil {
		if path == "" {
			return nil, nil // conversations are counted as left out
		}
		return nil, fmt.Errorf("--chat-template %s: %w", path, err)
	}
	return func(messages, tools json.RawMessage) ([]vocab.ID, error) {
		body, err := json.Marshal(struct {
			Messages json.RawMessage `json:"messages"`
			Tools    json.RawMessage `json:"tools,omitempty"`
		}{messages, tools})
		if err != nil {
			return nil, err
		}
		conv, err := chattemplate.ParseConversation(body)
		if err != nil {
			return nil, err
		}
		return chat.Prompt(ctx, conv)
	}, nil
}

// renderer is openRenderer for the conversations of a trace. Its errors say how to
// go on without the ones that have no prompt.
func (t *traceFlags) renderer(ctx context.Context, tokenizerPath string, tok *tokenizer.Tokenizer) (renderFunc, error) {
	render, err := openRenderer(ctx, t.template, tokenizerPath, tok)
	if err != nil || render == nil || t.opt.SkipBad {
		return render, err
	}
	return func(messages, tools json.RawMessage) ([]vocab.ID, error) {
		ids, err := render(messages, tools)
		if err != nil {
			return nil, fmt.Errorf("%w; --skip-bad leaves such conversations out", err)
		}
		return ids, nil
	}, nil
}
