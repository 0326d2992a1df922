package gateway

import (
	"context"
	"errors"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

var errTemplate = errors.New("gateway: the chat template refused the messages")

// templatePrompt renders a conversation by the model's own template and
// tokenizes it.
func templatePrompt(ctx context.Context, chat *chattemplate.Chat, req *wire.ChatRequest) ([]vocab.ID, error) {
	conv := &chattemplate.Conversation{
		Messages:             make([]*chattemplate.Object, len(req.Messages)),
		Arguments:            req.TemplateArguments,
		AddGenerationPrompt:  or(req.AddGenerationPrompt, true),
		ContinueFinalMessage: req.ContinueFinalMessage,
	}
	for i, m := range req.Messages {
		msg := chattemplate.NewMessage(m.Role, m.Content)
		if m.Name != "" {
			msg.Set("name", m.Name)
		}
		conv.Messages[i] = msg
	}
	ids, err := chat.Prompt(ctx, conv)
	if refused := (*chattemplate.RefusedError)(nil); errors.As(err, &refused) {
		e := badRequest("messages", "%s", refused.Text)
		e.cause = errTemplate // the reason may quote messages, which the log must not
		return nil, e
	}
	return ids, err
}
