package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
)

// TestConformanceChatPrediction holds two conversations with the real server in turn. They are passed on; what is predicted
// of them is what the server reports.
func TestConformanceChatPrediction(t *testing.T) {
	s := oneThread(t)
	l := startLogServe(t, "--config", jsonConfig(t, "llamacpp", s.URL, filepath.Base(s.Model), ", cache_prediction: on"))
	talks := [2][]object{}
	for i := range talks {
		talks[i] = []object{{"role": "system", "content": fmt.Sprintf("You are assistant number %d. Answer in one sentence.", i)}}
	}
	const turns = 12
	for turn := range turns {
		messages := &talks[turn/2%2]
		question := any(fmt.Sprintf("What is %d times %d?", turn, turn+7))
		if turn%3 == 1 {
			question = []object{{"type": "text", "text": question}}
		}
		*messages = append(*messages, object{"role": "user", "content": question})
		r := post(t, l.url+"/v1/chat/completions", object{"model": "m", "messages": *messages, "max_tokens": 4 + 5*turn, "temperature": 0})
		if r.status != http.StatusOK {
			t.Fatalf("turn %d: %d %s", turn, r.status, r.body)
		}
		var answer struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.Unmarshal(r.body, &answer); err != nil || len(answer.Choices) != 1 {
			t.Fatalf("turn %d: %s", turn, r.body)
		}
		*messages = append(*messages, object{"role": "assistant", "content": answer.Choices[0].Message.Content})
		l.records(t, turn+1)
		awaitIdle(t, s)
	}
	for i, rec := range l.records(t, turns) {
		if rec.Predicted == nil || rec.Cached == nil || *rec.Predicted != *rec.Cached {
			t.Errorf("turn %d: predicted %v, reported %v", i, number(rec.Predicted), number(rec.Cached))
		}
		if i%2 == 1 && rec.Cached != nil && *rec.Cached == 0 {
			t.Errorf("turn %d: nothing was found", i)
		}
	}
}

func number(n *int) any {
	if n == nil {
		return "nothing"
	}
	return *n
}
