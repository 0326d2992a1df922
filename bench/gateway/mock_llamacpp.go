//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// llamacppRoutes adds what llama.cpp's server has beside OpenAI's API.
func (m *mock) llamacppRoutes(mux *http.ServeMux) {
	fixed := func(route, body string) {
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) { send(w, "application/json", []byte(body)) })
	}
	vocabSize := 0
	bos, eos := "", ""
	if m.tok != nil {
		v := m.tok.Vocab()
		vocabSize = v.Len()
		bos, eos = string(v.Bytes(v.Specials().BOS)), string(v.Bytes(v.Specials().EOS))
	}
	fixed("GET /v1/models", fmt.Sprintf(`{"object":"list","data":[{"id":"%s","object":"model","created":%s,"owned_by":"llamacpp","meta":{"vocab_type":2,"n_vocab":%d,"n_ctx":%d,"n_ctx_train":%[4]d}}]}`,
		modelName, fixedTime, vocabSize, contextLen))
	fixed("GET /props", fmt.Sprintf(`{"default_generation_settings":{"params":{"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05},"n_ctx":%d},"total_slots":64,"model_alias":"%s","model_path":"%[2]s","modalities":{"vision":false,"audio":false},"chat_template":"","bos_token":%q,"eos_token":%q,"build_info":"b11549-mock"}`,
		contextLen, modelName, bos, eos))
	slots := []byte{'['}
	for i := range 64 {
		slots = fmt.Appendf(slots, `{"id":%d,"n_ctx":%d,"speculative":false,"is_processing":false},`, i, contextLen)
	}
	fixed("GET /slots", string(slots[:len(slots)-1])+"]")
	mux.HandleFunc("POST /completion", m.answering(m.llamacpp))
	mux.HandleFunc("POST /tokenize", m.llamacppTokenize)
}

func (m *mock) llamacppTokenize(w http.ResponseWriter, r *http.Request) {
	in := struct {
		Content string `json:"content"`
		Special bool   `json:"add_special"`
		Parse   *bool  `json:"parse_special"`
		Pieces  bool   `json:"with_pieces"`
	}{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || m.tok == nil {
		refuse(w, errNoTokenizer)
		return
	}
	var ids []vocab.ID
	if in.Special {
		before, _ := m.tok.Template()
		ids = append(ids, before...)
	}
	if in.Parse == nil || *in.Parse {
		ids = m.tok.EncodeSpecial(ids, []byte(in.Content))
	} else {
		ids = m.tok.Encode(ids, []byte(in.Content))
	}
	b := []byte(`{"tokens":`)
	if !in.Pieces {
		send(w, "application/json", append(appendIDs(b, ids), '}'))
		return
	}
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(fmt.Appendf(b, `{"id":%d,"piece":`, id), jsonPiece(m.tok.Vocab().Bytes(id))...)
		b = append(b, '}')
	}
	send(w, "application/json", append(b, "]}"...))
}

// jsonPiece returns a token's text as /tokenize shows it: a string, or a list of bytes where it is no UTF-8.
func jsonPiece(text []byte) []byte {
	if string([]rune(string(text))) == string(text) {
		return appendString(nil, text)
	}
	return jsonBytesOf(text)
}

func jsonBytesOf(text []byte) []byte {
	b := []byte{'['}
	for i, c := range text {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, ']')
}

// describeTokens returns the members that name a token in lists of log-probabilities, for every token.
func describeTokens(tok *tokenizer.Tokenizer) []string {
	if tok == nil {
		return nil
	}
	v := tok.Vocab()
	all := make([]string, v.Len())
	for id := range all {
		text := v.Bytes(vocab.ID(id))
		all[id] = fmt.Sprintf(`"id":%d,"token":%s,"bytes":%s`, id, appendString(nil, text), jsonBytesOf(text))
	}
	return all
}

// llamacpp answers /completion.
func (m *mock) llamacpp(q *question) reply {
	pieces, whole := m.generate(q)
	total := countTokens(pieces)
	if !q.stream {
		b := append(appendText([]byte(`{"index":0,"content":"`), join(pieces)), `","tokens":`...)
		if q.returnIDs {
			b = appendIDs(b, pieceIDs(pieces))
		} else {
			b = append(b, "[]"...)
		}
		b = m.appendProbabilities(appendTimings(b, q, total, whole), q, pieces)
		return reply{whole: append(b, '}')}
	}
	return reply{events: func(send func([]byte)) {
		var b []byte
		predicted := 0
		for i, p := range pieces {
			predicted += max(1, len(p.ids))
			b = append(appendText(append(b[:0], `data: {"index":0,"content":"`...), p.text), `","tokens":`...)
			b = appendIDs(b, p.ids)
			b = fmt.Appendf(b, `,"stop":false,"id_slot":0,"tokens_predicted":%d,"tokens_evaluated":%d`, predicted, q.promptTokens)
			b = m.appendProbabilities(b, q, pieces[i:i+1])
			send(append(b, "}\n\n"...))
		}
		b = appendTimings(append(b[:0], `data: {"index":0,"content":"","tokens":[]`...), q, total, whole)
		send(append(b, "}\n\n"...))
	}}
}

// appendTimings appends the members with which a generation ends.
func appendTimings(b []byte, q *question, total int, whole bool) []byte {
	stop := "limit"
	if whole {
		stop = "eos"
	}
	return fmt.Appendf(b, `,"id_slot":0,"stop":true,"model":"%s","tokens_predicted":%d,"tokens_evaluated":%d,"has_new_line":false,"truncated":false,"stop_type":"%s","stopping_word":"","tokens_cached":%d,"timings":{"cache_n":0,"prompt_n":%[3]d,"prompt_ms":1.0,"predicted_n":%[2]d,"predicted_ms":1.0}`,
		modelName, total, q.promptTokens, stop, q.promptTokens+total)
}

// appendProbabilities appends n_probs alternatives for every token: the likeliest and the vocabulary's first. As on the
// real server they are the model's own, whatever a request forces.
func (m *mock) appendProbabilities(b []byte, q *question, pieces []piece) []byte {
	if q.top <= 0 || m.tok == nil {
		return b
	}
	open := `,"completion_probabilities":[`
	for _, p := range pieces {
		for i, id := range p.ids {
			likely := p.likeliest(i)
			b = append(append(append(append(b, open...), '{'), m.tokens[id]...), `,"logprob":`...)
			b = append(append(b, logprob(id == likely)...), `,"top_logprobs":[{`...)
			b = append(append(b, m.tokens[likely]...), `,"logprob":`+likelyLogprob+`}`...)
			for other, left := 0, min(q.top, len(m.tokens))-1; left > 0; other++ {
				if vocab.ID(other) != likely {
					b = append(append(append(b, `,{`...), m.tokens[other]...), `,"logprob":`+otherLogprob+`}`...)
					left--
				}
			}
			b, open = append(b, "]}"...), ","
		}
	}
	if open != "," {
		b = append(b, open...)
	}
	return append(b, ']')
}
