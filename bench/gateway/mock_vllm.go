//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/unfray/unfray/vocab"
)

// The log-probabilities of the mock: that of the token that follows in its script, and that of any other.
const (
	likelyLogprob = "-0.01"
	otherLogprob  = "-20.5"
)

func logprob(likely bool) string {
	if likely {
		return likelyLogprob
	}
	return otherLogprob
}

// vllmRoutes adds what vLLM serves beside OpenAI's API.
func (m *mock) vllmRoutes(mux *http.ServeMux) {
	fixed := func(route, body string) {
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) { send(w, "application/json", []byte(body)) })
	}
	fixed("GET /version", `{"version":"0.32.0"}`)
	fixed("GET /v1/models", fmt.Sprintf(`{"object":"list","data":[{"id":"%s","object":"model","created":%s,"owned_by":"vllm","root":"%[1]s","parent":null,"max_model_len":%[3]d,"permission":[]}]}`,
		modelName, fixedTime, contextLen))
	mux.HandleFunc("POST /tokenize", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Prompt  string `json:"prompt"`
			Special *bool  `json:"add_special_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || m.tok == nil {
			refuse(w, errNoTokenizer)
			return
		}
		var ids []vocab.ID
		if in.Special == nil || *in.Special {
			before, _ := m.tok.Template()
			ids = append(ids, before...)
		}
		ids = m.tok.EncodeSpecial(ids, []byte(in.Prompt))
		b := fmt.Appendf(nil, `{"count":%d,"max_model_len":%d,"tokens":`, len(ids), contextLen)
		send(w, "application/json", append(appendIDs(b, ids), `,"token_strs":null}`...))
	})
}

// appendChoice appends a choice, or a part of one, of /v1/completions.
func (m *mock) appendChoice(b []byte, q *question, pieces []piece, finish string, first bool) []byte {
	b = append(appendText(append(b, `{"index":0,"text":"`...), join(pieces)), `","logprobs":`...)
	if q.top < 0 || m.tok == nil {
		b = append(b, "null"...)
	} else {
		b = m.appendLogprobs(b, q, pieces)
	}
	b = append(append(b, `,"finish_reason":`...), finish...)
	if q.returnIDs {
		b = appendIDs(append(b, `,"stop_reason":null,"token_ids":`...), pieceIDs(pieces))
		if first && q.promptIDs != nil {
			b = append(append(b, `,"prompt_token_ids":`...), q.promptIDs...)
		}
	}
	return append(b, '}')
}

// appendLogprobs appends the values of every token, and beside them those of the likeliest, of the IDs that were asked for
// or of the vocabulary's first.
func (m *mock) appendLogprobs(b []byte, q *question, pieces []piece) []byte {
	list := func(name string, item func(id, likely vocab.ID)) {
		b = append(append(append(b, '"'), name...), `":[`...)
		sep := ""
		for _, p := range pieces {
			for i, id := range p.ids {
				b, sep = append(b, sep...), ","
				item(id, p.likeliest(i))
			}
		}
		b = append(b, ']')
	}
	b = append(b, '{')
	list("text_offset", func(_, _ vocab.ID) { b = append(b, '0') })
	b = append(b, ',')
	list("token_logprobs", func(id, likely vocab.ID) { b = append(b, logprob(id == likely)...) })
	b = append(b, ',')
	list("tokens", func(id, _ vocab.ID) { b = m.appendTokenName(b, q, id) })
	b = append(b, ',')
	list("top_logprobs", func(id, likely vocab.ID) {
		b = append(append(m.appendTokenName(append(b, '{'), q, id), ':'), logprob(id == likely)...)
		others := append([]vocab.ID{likely}, q.topIDs...)
		for k := 0; q.topIDs == nil && k < q.top; k++ {
			others = append(others, vocab.ID(k))
		}
		for i, other := range others {
			if other != id && (i == 0 || other != likely) && m.tok.Vocab().Valid(other) {
				b = append(append(m.appendTokenName(append(b, ','), q, other), ':'), logprob(other == likely)...)
			}
		}
		b = append(b, '}')
	})
	return append(b, '}')
}

func (m *mock) appendTokenName(b []byte, q *question, id vocab.ID) []byte {
	if q.idsAsText {
		return append(strconv.AppendInt(append(b, `"token_id:`...), int64(id), 10), '"')
	}
	return appendString(b, m.tok.Vocab().Bytes(id))
}
