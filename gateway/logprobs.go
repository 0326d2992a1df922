package gateway

import (
	"github.com/unfray/unfray"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/vocab"
)

// completionLogprobs describes tokens in the form of /v1/completions. offset
// gives a token's position in characters.
func completionLogprobs(v *vocab.Vocab, tokens []unfray.Token, top int, offset func(unfray.Token) int) *wire.CompletionLogprobs {
	l := &wire.CompletionLogprobs{
		Tokens: []string{}, TokenLogprobs: []wire.Logprob{}, TextOffset: []int{},
	}
	for _, t := range tokens {
		l.Tokens = append(l.Tokens, tokenText(t.Bytes))
		l.TokenLogprobs = append(l.TokenLogprobs, wire.Logprob(t.Logprob))
		l.TextOffset = append(l.TextOffset, offset(t))
		if top == 0 {
			continue
		}
		best := make(map[string]wire.Logprob, len(t.Top))
		for _, alt := range t.Top {
			// Two tokens may have the same bytes: the likelier comes first.
			s := tokenText(v.Bytes(alt.ID))
			if _, known := best[s]; !known {
				best[s] = wire.Logprob(alt.Logprob)
			}
		}
		l.TopLogprobs = append(l.TopLogprobs, best)
	}
	return l
}

// chatLogprobs describes tokens in the form of /v1/chat/completions.
func chatLogprobs(v *vocab.Vocab, tokens []unfray.Token) *wire.ChatLogprobs {
	l := &wire.ChatLogprobs{Content: []wire.ChatToken{}}
	for _, t := range tokens {
		ct := chatToken(t.Bytes, t.Logprob)
		ct.TopLogprobs = []wire.ChatToken{}
		for _, alt := range t.Top {
			ct.TopLogprobs = append(ct.TopLogprobs, chatToken(v.Bytes(alt.ID), alt.Logprob))
		}
		l.Content = append(l.Content, ct)
	}
	return l
}

func chatToken(b []byte, logprob float64) wire.ChatToken {
	t := wire.ChatToken{Token: tokenText(b), Logprob: wire.Logprob(logprob), Bytes: make([]int, len(b))}
	for i, c := range b {
		t.Bytes[i] = int(c)
	}
	return t
}
