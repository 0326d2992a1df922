package chattemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A Chat turns conversations into prompts of a model. It may be used by several
// goroutines.
type Chat struct {
	tmpl     *Template
	tok      *tokenizer.Tokenizer
	controls *Scanner
}

// New compiles a model's template and tries it. Errors complete a sentence
// about the model.
func New(source string, tok *tokenizer.Tokenizer) (*Chat, error) {
	if source == "" {
		return nil, errors.New("its file has no chat template")
	}
	tmpl, err := compile(source)
	if err != nil {
		return nil, fmt.Errorf("its chat template %w", err)
	}
	c := &Chat{tmpl: tmpl, tok: tok, controls: NewScanner(tok.Vocab())}
	probe := &Conversation{Messages: []*Object{NewMessage("user", "Hello")}, AddGenerationPrompt: true}
	if _, err := c.Prompt(context.Background(), probe); err != nil {
		return nil, fmt.Errorf("its chat template cannot be used: %w", err)
	}
	return c, nil
}

// Prompt renders a conversation, its contents fitted to the template, and tokenizes it. A final message that is to be
// continued follows the header that an answer would follow. Control tokens come from the
// template only: what a message spells stays text. A role "developer" that the
// template does not know is shown as "system". Errors are [*RefusedError], or
// that of ctx.
func (c *Chat) Prompt(ctx context.Context, conv *Conversation) ([]vocab.ID, error) {
	messages, err := c.tmpl.Fit(conv.Messages)
	if err != nil {
		return nil, err
	}
	fitted := *conv
	fitted.Messages = messages
	conv = &fitted
	mark, err := freeMark(conv)
	if err != nil {
		return nil, err
	}
	g := guard{mark: mark, controls: c.controls}
	marked := g.conversation(conv)
	prefill := ""
	if last := len(marked.Messages) - 1; conv.ContinueFinalMessage && last >= 0 {
		prefill = marked.Messages[last].Text("content")
		marked.Messages = marked.Messages[:last]
		marked.AddGenerationPrompt, marked.ContinueFinalMessage = true, false
	}
	if !c.tmpl.knowsDeveloper() {
		for _, m := range marked.Messages {
			if m.Text("role") == "developer" {
				m.Set("role", "system") // what the role was called before
			}
		}
	}
	v := c.tok.Vocab()
	sp := v.Specials()
	text, err := c.tmpl.Render(ctx, marked, Names{BOS: string(v.Bytes(sp.BOS)), EOS: string(v.Bytes(sp.EOS))})
	if err != nil {
		return nil, err
	}
	ids := c.encode(text+prefill, mark)
	if sp.AddBOS && sp.BOS != vocab.None && (len(ids) == 0 || ids[0] != sp.BOS) {
		ids = append([]vocab.ID{sp.BOS}, ids...)
	}
	return ids, nil
}

// encode tokenizes a rendered conversation. Control tokens are recognized
// where no mark stands inside them; marks are dropped.
func (c *Chat) encode(rendered string, mark rune) []vocab.ID {
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
		id, n := c.controls.Match(text[i:])
		for len(marks) > 0 && marks[0] <= i {
			marks = marks[1:]
		}
		if n == 0 || len(marks) > 0 && marks[0] < i+n {
			i++
			continue
		}
		ids = append(c.tok.Encode(ids, text[plain:i]), id)
		i += n
		plain = i
	}
	return c.tok.Encode(ids, text[plain:])
}
