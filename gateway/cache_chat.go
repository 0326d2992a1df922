package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

// chatWait is how long a conversation that was passed on is waited for to be
// tokenized, once it has been answered.
const chatWait = 200 * time.Millisecond

// A passedChat is a conversation that is passed on, of which the prompt's tokens
// are asked for while the server answers.
type passedChat struct {
	job    *job // what is known of the request without its prompt
	cancel context.CancelFunc
	done   chan *prediction // one, nil where the tokens are not known
}

// watchChat begins to tokenize a conversation that is passed on, where the model
// has a simulated cache and the server need not be asked, or may be.
func (x *exchange) watchChat(m *model, body []byte) {
	if m.watch == nil || m.Chat == nil && m.template == nil {
		return
	}
	ctx, cancel := context.WithCancel(x.ctx)
	c := &passedChat{job: &job{model: m, n: 1}, cancel: cancel, done: make(chan *prediction, 1)}
	x.chat = c
	if m.Chat != nil && !m.AskChats {
		c.done <- nil // what the answer reports is noted all the same
		return
	}
	go func() {
		defer func() {
			if recover() != nil {
				c.done <- nil // nobody else would catch it
			}
		}()
		ids, n, err := m.passedPrompt(ctx, body)
		if err != nil || len(ids) == 0 {
			c.done <- nil // the server sees to it
			return
		}
		c.job.n = n
		fields, _ := wire.Members(body) // it has been read
		c.done <- m.watch.begin(fields, [][]vocab.ID{ids})
	}()
}

// errPromptUnknown is the error of a conversation whose tokens only its server knows.
var errPromptUnknown = errors.New("gateway: the prompt's tokens are not known")

// passedPrompt returns the tokens that a server makes of a conversation, and how
// many answers are asked for. The model's template is not asked where servers do
// more than render it.
func (m *model) passedPrompt(ctx context.Context, body []byte) (ids []vocab.ID, n int, err error) {
	req, err := wire.DecodeChat(body)
	if err != nil {
		return nil, 0, err
	}
	calls := len(req.Tools) > 0
	for _, msg := range req.Messages {
		if msg.Unsupported != "" {
			return nil, 0, errPromptUnknown
		}
		calls = calls || len(msg.ToolCalls) > 0 || msg.Role == "tool" || msg.Role == "function"
	}
	n = max(1, or(req.N, 1))
	if m.Chat != nil {
		ids, err = m.Chat.TokenizeChat(ctx, body)
		return ids, n, err
	}
	var own struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if json.Unmarshal(body, &own) != nil || own.Template != nil || calls || len(req.Messages) > maxMessages {
		return nil, 0, errPromptUnknown
	}
	conv, err := chattemplate.ParseConversation(body)
	if err != nil {
		return nil, 0, err
	}
	ids, err = m.template.Prompt(ctx, conv)
	return ids, n, err
}

// forwardChat is forwardWatched for a conversation.
func (g *Gateway) forwardChat(x *exchange, m *model, named string, body []byte, c *passedChat) error {
	x.heard = &heard{}
	err := g.forward(x, m, named, body)
	if err != nil {
		c.cancel()
	}
	p := c.wait()
	defer p.end()
	g.noteHeard(x, m, c.job, p, err)
	return err
}

// wait returns what is expected of the conversation, nil if its tokens are not
// known by now.
func (c *passedChat) wait() *prediction {
	defer c.cancel()
	timer := time.NewTimer(chatWait)
	defer timer.Stop()
	select {
	case p := <-c.done:
		return p
	case <-timer.C:
		c.cancel()
		return <-c.done
	}
}
