package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

// maxMessages is how many messages a conversation may have. Templates look at
// earlier messages from within their loop, so rendering may be quadratic.
const maxMessages = 4096

func (g *Gateway) chatCompletions(x *exchange) error {
	return g.relay(x, func(q *request) {
		req, err := wire.DecodeChat(q.body)
		if q.err = err; err == nil {
			q.model, q.unread = req.Model, req.Ignored
			q.job = func(m *model, fields map[string]json.RawMessage) (*job, error) {
				return g.chatJob(x, m, req, q.body, fields)
			}
		}
	})
}

// chatJob checks a request for chat completions.
func (g *Gateway) chatJob(x *exchange, m *model, req *wire.ChatRequest, body []byte, fields map[string]json.RawMessage) (*job, error) {
	if m.Upstream != nil && !m.continues(req) {
		return nil, errNotHealed
	}
	if fields == nil {
		showIgnored(x, req.Ignored)
	}
	if m.templateErr != nil {
		return nil, badRequest("model", "the model %s cannot chat: %s; use /v1/completions", m.Name, m.templateErr)
	}
	if err := chatUnsupported(req); err != nil {
		return nil, err
	}
	if req.MaxCompletionTokens != nil {
		req.MaxTokens = req.MaxCompletionTokens
	}
	n := or(req.N, 1)
	if err := g.checkChoices(1, n); err != nil {
		return nil, err
	}
	r, err := m.sampling(&req.Sampling)
	if err != nil {
		return nil, err
	}
	r.Logprobs, r.TopLogprobs = req.Logprobs, or(req.TopLogprobs, 0)
	r.Fields = fields
	j := &job{
		id: "chatcmpl-" + rand.Text(), created: time.Now(), model: m, n: n,
		stream: req.Stream, includeUsage: req.IncludeUsage && req.Stream,
	}
	d := &chatDialect{vocab: m.Model.Model.Tokenizer().Vocab()}
	if m.Upstream != nil && m.Native {
		d.begun = req.Messages[len(req.Messages)-1].Content
	}
	j.d = d
	// A template ends where the models it was written for learned to begin:
	// that boundary is theirs. Only a message to continue has a frayed end.
	fallback := heal.Off
	if req.ContinueFinalMessage && req.Messages[len(req.Messages)-1].Content != "" {
		fallback = m.Heal
	}
	if r.Heal, j.healAsked, err = m.healMode(x, &req.Unfray, fallback); err != nil {
		return nil, err
	}
	ids, err := m.chatPrompt(x, req, body)
	if err != nil {
		return nil, err
	}
	return j, j.prepare(r, []unfray.Prompt{{IDs: ids}}, req.Seed)
}

// continues reports whether the last message of a request to an upstream is to
// be continued. llama.cpp's server does so with every last message of the
// assistant.
func (m *model) continues(req *wire.ChatRequest) bool {
	if len(req.Messages) == 0 || req.Messages[len(req.Messages)-1].Role != "assistant" {
		return false
	}
	if m.Native && req.AddGenerationPrompt == nil {
		req.ContinueFinalMessage = true
	}
	return req.ContinueFinalMessage
}

// chatPrompt tokenizes a conversation, by the server's own means where a server
// runs the model.
func (m *model) chatPrompt(x *exchange, req *wire.ChatRequest, body []byte) ([]vocab.ID, error) {
	if m.Chat != nil {
		return m.Chat.TokenizeChat(x.ctx, body)
	}
	return templatePrompt(x.ctx, m.template, req)
}

// chatUnsupported refuses what would be answered wrongly if it were ignored.
func chatUnsupported(req *wire.ChatRequest) error {
	choice := bytes.Trim(req.ToolChoice, `"`)
	switch {
	case len(req.Tools) > 0 && string(choice) != "none":
		return badRequest("tools", "tools: this version makes no tool calls; leave tools out or set tool_choice to \"none\"")
	case len(req.Modalities) > 1, len(req.Modalities) == 1 && req.Modalities[0] != "text":
		return badRequest("modalities", "modalities: this model writes text only")
	case req.TopLogprobs != nil && !req.Logprobs:
		return badRequest("top_logprobs", "top_logprobs: set logprobs to true as well")
	case or(req.TopLogprobs, 0) < 0, or(req.TopLogprobs, 0) > unfray.MaxTopLogprobs:
		return badRequest("top_logprobs", "top_logprobs: %d is not between 0 and %d", *req.TopLogprobs, unfray.MaxTopLogprobs)
	case len(req.Messages) == 0:
		return badRequest("messages", "messages: give at least one message")
	case len(req.Messages) > maxMessages:
		return badRequest("messages", "messages: %d are more than the %d allowed", len(req.Messages), maxMessages)
	case req.ContinueFinalMessage && req.Messages[len(req.Messages)-1].Role != "assistant":
		return badRequest("continue_final_message", "continue_final_message: the last message must be the assistant's")
	}
	for i, msg := range req.Messages {
		switch {
		case msg.Unsupported != "":
			return badRequest("messages", "messages[%d].content: parts of type %.40q are not possible: this model reads text only", i, msg.Unsupported)
		case len(msg.ToolCalls) > 0 || msg.Role == "tool" || msg.Role == "function":
			return badRequest("messages", "messages[%d]: this version cannot show tool calls and their results to a model", i)
		case msg.Role != "system" && msg.Role != "developer" && msg.Role != "user" && msg.Role != "assistant":
			return badRequest("messages", "messages[%d].role: %.40q is none of system, developer, user, assistant", i, msg.Role)
		case !msg.HasContent:
			return badRequest("messages", "messages[%d].content is missing", i)
		}
	}
	return nil
}

// chatDialect writes the answers of /v1/chat/completions.
type chatDialect struct {
	vocab *vocab.Vocab
	// begun is the message that is continued, where the server's own answers
	// repeat it: llama.cpp's do, except in a stream.
	begun string
}

func (d *chatDialect) frame(j *job, choices ...wire.ChatChoice) *wire.ChatCompletion {
	c := &wire.ChatCompletion{
		ID: j.id, Object: "chat.completion.chunk", Created: j.created.Unix(), Model: j.model.Name,
		Choices: choices,
	}
	if choices == nil {
		c.Choices = []wire.ChatChoice{}
	}
	if j.includeUsage {
		c.Usage = &wire.UsageField{}
	}
	return c
}

func (d *chatDialect) logprobs(j *job, choice int, tokens []unfray.Token) *wire.ChatLogprobs {
	if !j.settings.Logprobs {
		return nil
	}
	return chatLogprobs(d.vocab, tokens)
}

func (d *chatDialect) whole(j *job, results []*unfray.Result) any {
	c := d.frame(j)
	c.Object = "chat.completion"
	for i, r := range results {
		choice := wire.ChatChoice{
			Index: i, Message: &wire.ChatMessage{Role: "assistant"},
			FinishReason: finishReason(r), Logprobs: d.logprobs(j, i, r.Tokens), Unfray: j.reportChoice(r),
		}
		choice.Message.Content, choice.Bytes = validText(append([]byte(d.begun), r.Text...))
		c.Choices = append(c.Choices, choice)
	}
	c.Usage = &wire.UsageField{Value: j.totalUsage(results)}
	c.Unfray = j.report(results[0])
	return c
}

func (d *chatDialect) start(j *job, choice int) (any, []byte) {
	empty := ""
	return d.frame(j, wire.ChatChoice{Index: choice, Delta: &wire.ChatDelta{Role: "assistant", Content: &empty}}), nil
}

func (d *chatDialect) delta(j *job, choice int, p part) any {
	return d.frame(j, wire.ChatChoice{
		Index: choice, Delta: &wire.ChatDelta{Content: &p.text}, Bytes: p.exact, Logprobs: d.logprobs(j, choice, p.tokens),
	})
}

func (d *chatDialect) finish(j *job, choice int, res *unfray.Result, extra *wire.Unfray) any {
	c := d.frame(j, wire.ChatChoice{
		Index: choice, Delta: &wire.ChatDelta{}, FinishReason: finishReason(res), Unfray: j.reportChoice(res),
	})
	c.Unfray = extra
	return c
}

func (d *chatDialect) usage(j *job, u *wire.Usage, extra *wire.Unfray) any {
	c := d.frame(j)
	c.Usage, c.Unfray = &wire.UsageField{Value: u}, extra
	return c
}
