package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/unfray/unfray/vocab"
)

// faultyLlama speaks enough of llama.cpp's API to be healed by.
type faultyLlama struct{ *faultyServer }

func (f *faultyLlama) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]json.RawMessage
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_ = json.Unmarshal(data, &body) // what is no object has no fields
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/health":
		fmt.Fprint(w, `{"status":"ok"}`)
	case "/v1/models":
		fmt.Fprintf(w, `{"data":[{"id":"toy","meta":{"n_vocab":%d,"n_ctx_train":4096}}]}`, f.tok.Vocab().Len())
	case "/props":
		fmt.Fprint(w, `{"total_slots":4,"build_info":"toy","default_generation_settings":{"n_ctx":4096,"params":{"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,"repeat_penalty":1,"n_predict":-1}}}`)
	case "/tokenize":
		f.tokenize(w, body)
	case "/infill":
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusNotImplemented)
	case "/completion":
		f.complete(w, r, body, data)
	default:
		f.plain(w, r, data)
	}
}

func (f *faultyLlama) tokenize(w http.ResponseWriter, body map[string]json.RawMessage) {
	var in struct {
		Content              string
		AddSpecial, ParseAll bool
	}
	json.Unmarshal(body["content"], &in.Content)
	json.Unmarshal(body["parse_special"], &in.ParseAll)
	json.Unmarshal(body["add_special"], &in.AddSpecial)
	ids := []vocab.ID{}
	if sp := f.tok.Vocab().Specials(); in.AddSpecial && sp.AddBOS && sp.BOS != vocab.None {
		ids = append(ids, sp.BOS)
	}
	if in.ParseAll {
		ids = f.tok.EncodeSpecial(ids, []byte(in.Content))
	} else {
		ids = f.tok.Encode(ids, []byte(in.Content))
	}
	json.NewEncoder(w).Encode(map[string]any{"tokens": ids})
}

// forced is the token that a bias or a probe's grammar demands, if they do.
func (f *faultyLlama) forced(ids []vocab.ID, body map[string]json.RawMessage) (vocab.ID, bool) {
	var pairs [][2]json.Number
	if json.Unmarshal(body["logit_bias"], &pairs) == nil && len(pairs) == 1 {
		n, err := pairs[0][0].Int64()
		return vocab.ID(n), err == nil
	}
	var grammar string
	var id vocab.ID
	json.Unmarshal(body["grammar"], &grammar)
	n, _ := fmt.Sscanf(grammar, "root ::= <[%d]> tail", &id)
	return id, n == 1 && len(ids) == 1
}

func (f *faultyLlama) complete(w http.ResponseWriter, r *http.Request, body map[string]json.RawMessage, raw []byte) {
	var ids []vocab.ID
	if json.Unmarshal(body["prompt"], &ids) != nil {
		f.plain(w, r, raw)
		return
	}
	var n int
	json.Unmarshal(body["n_predict"], &n)
	d := f.draw()
	stream := string(body["stream"]) == "true"
	if f.instead(w, r, d) {
		return
	}
	var parts []string
	for k := range n {
		best := f.likeliest(ids)
		id, forced := f.forced(ids, body)
		if !forced {
			id = best
		}
		switch {
		case d == strangeToken && k == n/2:
			id = 1 << 29
		case d == constraintIgnored && k == 0 && len(body["grammar"]) > 0:
			id = f.tok.Encode(nil, []byte("z"))[0]
		}
		if id == f.tok.Vocab().Specials().EOS {
			break
		}
		ids = append(ids, id)
		parts = append(parts, fmt.Sprintf(`{"content":"x","tokens":[%d],"stop":false,"tokens_predicted":%d,"id_slot":1,`+
			`"completion_probabilities":[{"id":%d,"logprob":-9,"top_logprobs":[{"id":%d,"logprob":-0.1},{"id":1,"logprob":-3}]}]}`, id, k+1, id, best))
	}
	if stream {
		f.stream(w, r, d, parts)
		return
	}
	var tokens []string
	for _, p := range parts {
		_, list, _ := strings.Cut(p, `"tokens":[`)
		id, _, _ := strings.Cut(list, "]")
		tokens = append(tokens, id)
	}
	answer := fmt.Sprintf(`{"tokens":[%s],"completion_probabilities":[%s],"stop_type":"limit","tokens_predicted":%d,"timings":{"cache_n":1},"id_slot":1}`,
		strings.Join(tokens, ","), topOf(parts), len(parts))
	w.Header().Set("Content-Type", "application/json")
	if d == dieMidway || d == halfEvent {
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		io.WriteString(w, answer[:len(answer)/2])
		cut(w)
	}
	io.WriteString(w, answer)
}

func topOf(parts []string) string {
	var out []string
	for _, p := range parts {
		_, list, _ := strings.Cut(p, `"completion_probabilities":[`)
		out = append(out, strings.TrimSuffix(list, "]}"))
	}
	return strings.Join(out, ",")
}

func (f *faultyLlama) stream(w http.ResponseWriter, r *http.Request, d fault, parts []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i, p := range parts {
		if i == len(parts)/2 {
			switch d {
			case dieMidway:
				cut(w)
			case halfEvent:
				fmt.Fprintf(w, "data: %s", p[:len(p)/2])
				return
			case errorFrame:
				io.WriteString(w, "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n")
				return
			case noEnd:
				return
			}
		}
		fmt.Fprintf(w, "data: %s\n\n", p)
		http.NewResponseController(w).Flush()
	}
	io.WriteString(w, `data: {"content":"","tokens":[],"stop":true,"stop_type":"limit","id_slot":1,"tokens_predicted":`+fmt.Sprint(len(parts))+`,"timings":{"cache_n":2}}`+"\n\n")
}
