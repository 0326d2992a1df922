package chattemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// Limits on chat templates.
const (
	maxTemplate     = 256 << 10 // bytes of source; the parser recurses on it
	renderTimeout   = 5 * time.Second
	maxRendered     = 64 << 20 // bytes
	parallelRenders = 4
)

// deepestMacros is how deep macros of a source of n bytes may call each other. Go
// ends a process whose stack grows beyond 1 GB, and a byte of an expression that
// is nested as deep as it is long takes some 500 bytes of stack.
func deepestMacros(n int) int { return min(1000, 600<<20/(512*n)) }

// A RefusedError says why a conversation has no prompt. Templates refuse what
// they were not made for, such as two messages of the user in a row. The text
// is meant for whoever sent the conversation, and may quote it.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// A Template is a compiled chat template. It may be used by several goroutines.
type Template struct {
	tmpl   *jinja.Template
	source string
	// takesParts says in which form contents are given, see [Template.Fit].
	takesParts bool
	// slots bounds the renderings at work, those that were given up included:
	// they cannot be stopped.
	slots chan struct{}
}

// Compile parses a template.
func Compile(source string) (*Template, error) {
	t, err := compile(source)
	if err != nil {
		return nil, fmt.Errorf("chattemplate: the template %w", err)
	}
	return t, nil
}

// compile is Compile with errors that lack their subject.
func compile(source string) (t *Template, err error) {
	if source == "" {
		return nil, errors.New("is empty")
	}
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("is %d bytes long, more than the %d allowed", len(source), maxTemplate)
	}
	translated, err := translate(source)
	if err != nil {
		return nil, fmt.Errorf("cannot be parsed: %w", err)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be parsed: %v", p)
		}
	}()
	tmpl, err := jinja.Compile(translated)
	if err != nil {
		return nil, fmt.Errorf("cannot be parsed: %w", err)
	}
	list, _ := pieces(source)
	return &Template{tmpl: tmpl, source: source, takesParts: takesParts(list), slots: make(chan struct{}, parallelRenders)}, nil
}

// Source returns the text that the template was compiled from.
func (t *Template) Source() string { return t.source }

// Names are the spellings of the tokens that a template may name.
type Names struct{ BOS, EOS string }

// variables are what a template of the Hugging Face convention may name.
func (t *Template) variables(c *Conversation, messages []*Object, names Names) map[string]jinja.Value {
	vars := map[string]jinja.Value{}
	for name, v := range c.Arguments {
		vars[name] = toJinja(v)
	}
	// Set last: arguments of a request must not replace them.
	list := make([]jinja.Value, len(messages))
	for i, m := range messages {
		list[i] = toJinja(m)
	}
	vars["messages"] = jinja.NewList(list)
	vars["add_generation_prompt"] = jinja.NewBool(c.AddGenerationPrompt)
	vars["bos_token"], vars["eos_token"] = jinja.NewString(names.BOS), jinja.NewString(names.EOS)
	vars["tools"], vars["documents"] = jinja.None(), jinja.None()
	if len(c.Tools) > 0 {
		vars["tools"] = toJinja(c.Tools)
	}
	now := time.Now
	if !c.Now.IsZero() {
		now = func() time.Time { return c.Now }
	}
	maps.Copy(vars, builtins(now, deepestMacros(len(t.source))))
	return vars
}

func toJinja(v any) jinja.Value {
	switch v := v.(type) {
	case []any:
		items := make([]jinja.Value, len(v))
		for i, e := range v {
			items[i] = toJinja(e)
		}
		return jinja.NewList(items)
	case *Object:
		out := jinja.NewDict()
		for _, k := range v.keys {
			out.AsDict().Set(k, toJinja(v.values[k]))
		}
		return out
	}
	return jinja.FromGoValue(v)
}

// Render returns the text of a conversation. Errors are [*RefusedError], or that
// of ctx.
func (t *Template) Render(ctx context.Context, c *Conversation, names Names) (string, error) {
	messages, final := c.Messages, ""
	if c.ContinueFinalMessage {
		var err error
		if messages, final, err = openFinal(c.Messages); err != nil {
			return "", err
		}
	}
	text, err := t.run(ctx, t.variables(c, messages, names))
	if err != nil || !c.ContinueFinalMessage {
		return text, err
	}
	return cutFinal(text, final)
}

// finalMark is put after the content of a final message that is to be
// continued, to find its end again. It is transformers' own
// (utils/chat_template_utils.py, render_jinja_template), blank included, by
// which it sees whether the template trims.
const finalMark = "CONTINUE_FINAL_MESSAGE_TAG "

func openFinal(messages []*Object) (opened []*Object, final string, err error) {
	last := len(messages) - 1
	if last < 0 {
		return nil, "", &RefusedError{"there is no final message to continue"}
	}
	content, _ := messages[last].Get("content")
	final, ok := content.(string)
	if !ok {
		return nil, "", &RefusedError{"the final message has no text to continue"}
	}
	opened = append([]*Object(nil), messages...)
	opened[last] = messages[last].Clone()
	opened[last].Set("content", final+finalMark)
	return opened, final, nil
}

func cutFinal(text, final string) (string, error) {
	at := strings.LastIndex(text, strings.TrimSpace(finalMark))
	if at < 0 || !strings.Contains(text, strings.TrimSpace(final)) {
		return "", &RefusedError{"the model's chat template leaves out parts of the final message, so that it cannot be continued"}
	}
	if strings.HasPrefix(text[at:], finalMark) {
		return text[:at], nil
	}
	return strings.TrimRightFunc(text[:at], isBlank), nil
}

// run runs the template within the limits.
func (t *Template) run(ctx context.Context, vars map[string]jinja.Value) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("chattemplate: waiting to render: %w", ctx.Err())
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
			return "", &RefusedError{fmt.Sprintf("the model's chat template refused the messages: %s", r.err)}
		case len(r.text) > maxRendered:
			return "", &RefusedError{fmt.Sprintf("the model's chat template made %d bytes of the messages, more than the %d allowed", len(r.text), maxRendered)}
		}
		return r.text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("chattemplate: rendering: %w", ctx.Err())
	}
}

// knowsDeveloper says whether the template knows the role "developer", as the
// role "system" is called since OpenAI's reasoning models.
func (t *Template) knowsDeveloper() bool { return strings.Contains(t.source, "developer") }
