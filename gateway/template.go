package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Limits on chat templates. A template is part of the model file, so it is
// trusted not to run for ever, but not relied on.
const (
	maxTemplate     = 256 << 10 // bytes of source; the parser recurses on it
	renderTimeout   = 5 * time.Second
	maxRendered     = 64 << 20 // bytes
	parallelRenders = 4
)

// chatTemplate turns conversations into prompts.
type chatTemplate struct {
	tmpl      *jinja.Template
	tok       *tokenizer.Tokenizer
	controls  *controlScanner
	developer bool // the template knows the role "developer"
	// slots bounds the renderings at work, those that were given up included:
	// they cannot be stopped.
	slots chan struct{}
}

// newChatTemplate compiles a template and tries it.
func newChatTemplate(source string, tok *tokenizer.Tokenizer) (*chatTemplate, error) {
	if source == "" {
		return nil, errors.New("its file has no chat template")
	}
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("its chat template is %d bytes long, more than the %d allowed", len(source), maxTemplate)
	}
	tmpl, err := compile(source)
	if err != nil {
		return nil, err
	}
	t := &chatTemplate{
		tmpl: tmpl, tok: tok, controls: newControlScanner(tok.Vocab()),
		developer: strings.Contains(source, "developer"),
		slots:     make(chan struct{}, parallelRenders),
	}
	probe := &wire.ChatRequest{Messages: []wire.Message{{Role: "user", Content: "Hello", HasContent: true}}}
	if _, err := t.prompt(context.Background(), probe); err != nil {
		return nil, fmt.Errorf("its chat template cannot be used: %w", err)
	}
	return t, nil
}

func compile(source string) (t *jinja.Template, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its chat template cannot be parsed: %v", p)
		}
	}()
	if t, err = jinja.Compile(trimBlocks(source)); err != nil {
		err = fmt.Errorf("its chat template cannot be parsed: %w", err)
	}
	return t, err
}

// prompt renders a conversation and tokenizes it. Special tokens come from the
// template only: what a message spells stays text.
func (t *chatTemplate) prompt(ctx context.Context, req *wire.ChatRequest) ([]vocab.ID, error) {
	messages, prefill := req.Messages, ""
	if req.ContinueFinalMessage {
		last := len(messages) - 1
		messages, prefill = messages[:last], messages[last].Content
	}
	mark, err := freeMark(req)
	if err != nil {
		return nil, err
	}
	g := guard{mark: mark, controls: t.controls}
	vars := t.variables(req, messages, g)
	text, err := t.render(ctx, vars)
	if err != nil {
		return nil, err
	}
	ids := t.encode(text+g.text(prefill), mark)
	if sp := t.tok.Vocab().Specials(); sp.AddBOS && sp.BOS != vocab.None && (len(ids) == 0 || ids[0] != sp.BOS) {
		ids = append([]vocab.ID{sp.BOS}, ids...)
	}
	return ids, nil
}

// variables are what a template of the Hugging Face convention may name.
func (t *chatTemplate) variables(req *wire.ChatRequest, messages []wire.Message, g guard) map[string]jinja.Value {
	v := t.tok.Vocab()
	vars := map[string]jinja.Value{}
	for name, arg := range req.TemplateArguments {
		vars[name] = g.value(arg)
	}
	list := make([]jinja.Value, len(messages))
	for i, m := range messages {
		role := m.Role
		if role == "developer" && !t.developer {
			role = "system" // what the role was called before
		}
		msg := jinja.NewDict()
		d := msg.AsDict()
		d.Set("role", jinja.NewString(role))
		d.Set("content", jinja.NewString(g.text(m.Content)))
		if m.Name != "" {
			d.Set("name", jinja.NewString(g.text(m.Name)))
		}
		list[i] = msg
	}
	// Set last: arguments of a request must not replace them.
	vars["messages"] = jinja.NewList(list)
	vars["add_generation_prompt"] = jinja.NewBool(req.ContinueFinalMessage || or(req.AddGenerationPrompt, true))
	vars["bos_token"] = jinja.NewString(string(v.Bytes(v.Specials().BOS)))
	vars["eos_token"] = jinja.NewString(string(v.Bytes(v.Specials().EOS)))
	vars["tools"], vars["documents"] = jinja.None(), jinja.None()
	return vars
}

var errTemplate = errors.New("gateway: the chat template refused the messages")

// render runs the template within the limits.
func (t *chatTemplate) render(ctx context.Context, vars map[string]jinja.Value) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("gateway: waiting to render a chat template: %w", ctx.Err())
	}
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("panic: %v", p)}
			}
			<-t.slots
		}()
		text, err := t.tmpl.RenderValues(vars)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil:
			// Templates refuse what they were not made for, such as two user
			// messages in a row; their reason is meant for the caller.
			e := badRequest("messages", "the model's chat template refused the messages: %s", r.err)
			e.cause = errTemplate // the reason may quote messages, which the log must not
			return "", e
		case len(r.text) > maxRendered:
			return "", badRequest("messages", "the model's chat template made %d bytes of the messages, more than the %d allowed", len(r.text), maxRendered)
		}
		return r.text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("gateway: rendering a chat template: %w", ctx.Err())
	}
}

// encode tokenizes a rendered conversation. Control tokens are recognized
// where no mark stands inside them; marks are dropped.
func (t *chatTemplate) encode(rendered string, mark rune) []vocab.ID {
	text := make([]byte, 0, len(rendered))
	var marks []int // byte offsets in text, ascending
	for {
		before, after, found := strings.Cut(rendered, string(mark))
		text = append(text, before...)
		if !found {
			break
		}
		marks = append(marks, len(text))
		rendered = after
	}

	var ids []vocab.ID
	plain := 0
	for i := 0; i < len(text); {
		id, n := t.controls.match(text[i:])
		for len(marks) > 0 && marks[0] <= i {
			marks = marks[1:]
		}
		if n == 0 || len(marks) > 0 && marks[0] < i+n {
			i++
			continue
		}
		ids = append(t.tok.Encode(ids, text[plain:i]), id)
		i += n
		plain = i
	}
	return t.tok.Encode(ids, text[plain:])
}
