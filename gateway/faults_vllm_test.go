package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/unfray/unfray/vocab"
)

// faultyVLLM speaks enough of vLLM's API to be healed by.
type faultyVLLM struct{ *faultyServer }

// vllmTop is how many alternatives the server gives.
const vllmTop = 20

// vllmBody is what the server reads of a request for tokens.
type vllmBody struct {
	Prompt     []vocab.ID
	Stream     bool
	MaxTokens  int `json:"max_tokens"`
	Logprobs   *int
	Named      []vocab.ID `json:"logprob_token_ids"`
	Allowed    []vocab.ID `json:"allowed_token_ids"`
	Structured struct {
		Grammar string
	} `json:"structured_outputs"`
}

func (f *faultyVLLM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/health":
	case "/version":
		io.WriteString(w, `{"version":"0.32.0"}`)
	case "/v1/models":
		io.WriteString(w, `{"object":"list","data":[{"id":"toy","created":1700000000,"max_model_len":4096,"parent":null}]}`)
	case "/tokenize":
		var in struct{ Prompt string }
		if json.Unmarshal(data, &in) != nil {
			http.Error(w, `{"detail":"no text"}`, http.StatusBadRequest)
			return
		}
		ids := f.tok.EncodeSpecial([]vocab.ID{}, []byte(in.Prompt))
		json.NewEncoder(w).Encode(map[string]any{"tokens": ids, "count": len(ids)})
	case "/v1/completions":
		f.complete(w, r, data)
	default:
		f.plain(w, r, data)
	}
}

func (f *faultyVLLM) complete(w http.ResponseWriter, r *http.Request, data []byte) {
	var body vllmBody
	if json.Unmarshal(data, &body) != nil { // the prompt is text
		f.plain(w, r, data)
		return
	}
	d := f.draw()
	if f.instead(w, r, d) {
		return
	}
	if n := body.Logprobs; n != nil && *n > vllmTop {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"Requested sample logprobs of %d, which is greater than max allowed: %d","code":400}}`, *n, vllmTop)
		return
	}
	choices := f.choices(&body, d)
	if body.Stream {
		f.stream(w, d, choices)
		return
	}
	choice := map[string]any{"index": 0, "finish_reason": "length"}
	if len(choices) > 0 {
		choice = choices[0]
	}
	answer, _ := json.Marshal(map[string]any{"choices": []any{choice}, "usage": cachedUsage})
	switch d {
	case errorFrame:
		answer = []byte(vllmError)
	case noEnd:
		answer = answer[:len(answer)-1]
	case dieMidway, halfEvent:
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		w.Write(answer[:len(answer)/2])
		cut(w)
	}
	w.Write(answer)
}

const vllmError = `{"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","param":null,"code":500}}`

var cachedUsage = map[string]any{"prompt_tokens_details": map[string]any{"cached_tokens": 2}}

// choices are what the events of an answer hold, one token each.
func (f *faultyVLLM) choices(body *vllmBody, d fault) []map[string]any {
	ids := slices.Clone(body.Prompt)
	var out []map[string]any
	for k := range body.MaxTokens {
		id := f.drawn(body, ids)
		switch {
		case d == strangeToken && k == body.MaxTokens/2:
			id = 1 << 29
		case d == constraintIgnored && k == 0 && body.Structured.Grammar != "":
			id = f.tok.Encode(nil, []byte("z"))[0]
		}
		choice := map[string]any{"index": 0, "text": "not to be read", "token_ids": []vocab.ID{id}, "prompt_token_ids": nil, "finish_reason": nil, "stop_reason": nil}
		if k == 0 {
			choice["prompt_token_ids"] = body.Prompt
		}
		if body.Logprobs != nil {
			choice["logprobs"] = f.logprobs(body, ids, id)
		}
		ids = append(ids, id)
		out = append(out, choice)
		if id == f.tok.Vocab().Specials().EOS {
			choice["finish_reason"] = "stop"
			break
		}
		if k == body.MaxTokens-1 {
			choice["finish_reason"] = "length"
		}
	}
	return out
}

// oneOfSet matches a grammar of one token, which is one of a set.
var oneOfSet = regexp.MustCompile(`^start: n0 <\[\*\]>\*\nn0: <\[([0-9,-]+)\]>\n$`)

// heldTo are the tokens that a request for one is held to, nil if all are. What
// the script goes on with is right under every other grammar.
func heldTo(body *vllmBody) []vocab.ID {
	m := oneOfSet.FindStringSubmatch(body.Structured.Grammar)
	if m == nil {
		return body.Allowed
	}
	var ids []vocab.ID
	for span := range strings.SplitSeq(m[1], ",") {
		from, to, isSpan := strings.Cut(span, "-")
		lo, _ := strconv.Atoi(from)
		hi := lo
		if isSpan {
			hi, _ = strconv.Atoi(to)
		}
		for id := lo; id <= hi; id++ {
			ids = append(ids, vocab.ID(id))
		}
	}
	return ids
}

// drawn is the likeliest token that a request admits after ids.
func (f *faultyVLLM) drawn(body *vllmBody, ids []vocab.ID) vocab.ID {
	best := f.likeliest(ids)
	if list := heldTo(body); len(ids) == len(body.Prompt) && len(list) > 0 && !slices.Contains(list, best) {
		return list[0]
	}
	return best
}

// logprobs are those after ids: nearly all is the likeliest token's.
func (f *faultyVLLM) logprobs(body *vllmBody, ids []vocab.ID, drawn vocab.ID) map[string]any {
	name := func(id vocab.ID) string { return "token_id:" + strconv.Itoa(int(id)) }
	top := map[string]float64{}
	for _, id := range body.Named {
		top[name(id)] = -9
	}
	if len(body.Named) == 0 {
		top[name(1)] = -3
	}
	if _, isNamed := top[name(drawn)]; !isNamed {
		top[name(drawn)] = -9
	}
	if best := f.likeliest(ids); best == drawn || len(body.Named) == 0 || slices.Contains(body.Named, best) {
		top[name(best)] = -0.1
	}
	return map[string]any{
		"tokens": []string{name(drawn)}, "token_logprobs": []float64{top[name(drawn)]}, "top_logprobs": []any{maps.Clone(top)}, "text_offset": []int{0},
	}
}

// stream writes the events.
func (f *faultyVLLM) stream(w http.ResponseWriter, d fault, choices []map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for i, c := range choices {
		event, _ := json.Marshal(map[string]any{"choices": []any{c}})
		if i == len(choices)/2 {
			switch d {
			case dieMidway:
				cut(w)
			case halfEvent:
				fmt.Fprintf(w, "data: %s", event[:len(event)/2])
				return
			case errorFrame:
				fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", vllmError)
				return
			case noEnd:
				io.WriteString(w, "data: [DONE]\n\n")
				return
			}
		}
		fmt.Fprintf(w, "data: %s\n\n", event)
		http.NewResponseController(w).Flush()
	}
	end, _ := json.Marshal(map[string]any{"choices": []any{}, "usage": cachedUsage})
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", end)
}
