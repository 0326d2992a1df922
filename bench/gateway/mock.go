//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// The mock answers the same bytes to the same request: its clock stands still.
const (
	fixedDate  = "Mon, 02 Nov 2026 10:00:00 GMT"
	fixedTime  = "1793613600"
	modelName  = "mock"
	jsonBytes  = 1024 // of an answer of /v1/completions that is no stream
	contextLen = 32768
)

// A mock is a server that answers at once, in the dialect of one kind of inference server.
type mock struct {
	*script
	kind    string   // llamacpp or vllm
	tokens  []string // llama.cpp: `"id":…,"token":…,"bytes":[…]` of every token
	buffers sync.Pool
}

// kinds are the servers that the mock can stand for.
var kinds = []string{"llamacpp", "vllm"}

// serveMock serves until it is killed. The first line that it prints is its address.
func serveMock(listen, kind, tokenizerPath string) error {
	var tok *tokenizer.Tokenizer
	if tokenizerPath != "" {
		var err error
		if tok, err = tokenizer.Open(tokenizerPath); err != nil {
			return err
		}
	}
	m, err := newMock(tok, kind)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "http://%s\n", ln.Addr())
	return http.Serve(ln, m.handler())
}

func newMock(tok *tokenizer.Tokenizer, kind string) (*mock, error) {
	s, err := newScript(tok)
	if err != nil {
		return nil, err
	}
	m := &mock{script: s, kind: kind}
	m.buffers.New = func() any { return new([]byte) }
	switch kind {
	case "llamacpp":
		m.tokens = describeTokens(tok)
	case "vllm":
	default:
		return nil, fmt.Errorf("there is no kind %q: say %s", kind, strings.Join(kinds, " or "))
	}
	return m, nil
}

func (m *mock) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		send(w, "application/json", []byte(`{"status":"ok"}`))
	})
	mux.HandleFunc("POST /v1/completions", m.answering(m.completion))
	mux.HandleFunc("POST /v1/chat/completions", m.answering(m.chat))
	if m.kind == "llamacpp" {
		m.llamacppRoutes(mux)
	} else {
		m.vllmRoutes(mux)
	}
	return mux
}

// A reply is an answer as a whole or, where events is set, as a stream of them.
type reply struct {
	whole  []byte
	events func(send func(event []byte))
}

// answering reads a question, has it answered and sends the answer. A stream's events are written one by one.
func (m *mock) answering(answer func(*question) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := m.buffers.Get().(*[]byte)
		defer m.buffers.Put(p)
		body, err := readBody(r, *p)
		*p = body[:0]
		if err != nil {
			refuse(w, err)
			return
		}
		q, err := m.readQuestion(body)
		if err != nil {
			refuse(w, err)
			return
		}
		a := answer(q)
		if a.events == nil {
			send(w, "application/json", a.whole)
			return
		}
		header(w, "text/event-stream")
		flusher, _ := w.(http.Flusher)
		a.events(func(event []byte) {
			w.Write(event) // a client that has left needs no rest
			flusher.Flush()
		})
	}
}

func readBody(r *http.Request, buffer []byte) ([]byte, error) {
	const limit = 16 << 20
	if r.ContentLength < 0 || r.ContentLength > limit {
		return io.ReadAll(io.LimitReader(r.Body, limit))
	}
	if int64(cap(buffer)) < r.ContentLength {
		buffer = make([]byte, r.ContentLength)
	}
	buffer = buffer[:r.ContentLength]
	_, err := io.ReadFull(r.Body, buffer)
	return buffer, err
}

func header(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h["Date"] = []string{fixedDate}
	h["Server"] = []string{modelName}
	h["Content-Type"] = []string{contentType}
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	header(w, contentType)
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.Write(body) // a client that has left needs no rest
}

func refuse(w http.ResponseWriter, err error) {
	header(w, "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":400}}`, err.Error())
}

var errNoTokenizer = errors.New("the mock was started without a tokenizer: give it one")

// completion answers /v1/completions as OpenAI does, with vLLM's additions where they are asked for.
func (m *mock) completion(q *question) reply {
	pieces, whole := m.generate(q)
	finish := finishReason(whole)
	if eos := m.eos(); q.returnIDs && whole && eos != vocab.None {
		pieces = append(slices.Clone(pieces), piece{ids: []vocab.ID{eos}}) // vLLM counts it among the tokens
	}
	if !q.stream {
		b := appendOpening(nil, "cmpl-", q.n, "text_completion")
		b = append(b, `"choices":[`...)
		b = m.appendChoice(b, q, pieces, finish, true)
		b = append(b, `],"usage":`...)
		b = appendUsage(b, q.promptTokens, countTokens(pieces))
		return reply{whole: appendPadding(b)}
	}
	return reply{events: func(send func([]byte)) {
		var b []byte
		chunk := func(p []piece, finish string, first bool) {
			b = appendOpening(append(b[:0], "data: "...), "cmpl-", q.n, "text_completion")
			b = append(b, `"choices":[`...)
			b = m.appendChoice(b, q, p, finish, first)
			b = append(b, "]}\n\n"...)
			send(b)
		}
		for i := range pieces {
			reason := "null"
			if i == len(pieces)-1 {
				reason = finish
			}
			chunk(pieces[i:i+1], reason, i == 0)
		}
		if len(pieces) == 0 {
			chunk(nil, finish, true)
		}
		if q.includeUsage {
			b = append(appendOpening(append(b[:0], "data: "...), "cmpl-", q.n, "text_completion"), `"choices":[],"usage":`...)
			b = append(appendUsage(b, q.promptTokens, countTokens(pieces)), "}\n\n"...)
			send(b)
		}
		send([]byte("data: [DONE]\n\n"))
	}}
}

// eos returns the token that ends an answer, vocab.None if there is none.
func (m *mock) eos() vocab.ID {
	if m.tok == nil {
		return vocab.None
	}
	return m.tok.Vocab().Specials().EOS
}

// finishReason returns the reason as JSON.
func finishReason(whole bool) string {
	if whole {
		return `"stop"`
	}
	return `"length"`
}

// chat answers /v1/chat/completions.
func (m *mock) chat(q *question) reply {
	pieces, whole := m.generate(q)
	finish := finishReason(whole)
	if !q.stream {
		b := appendOpening(nil, "chatcmpl-", q.n, "chat.completion")
		b = append(b, `"choices":[{"index":0,"message":{"role":"assistant","content":"`...)
		b = appendText(b, join(pieces))
		b = append(append(b, `"},"logprobs":null,"finish_reason":`...), finish...)
		b = appendUsage(append(b, `}],"usage":`...), q.promptTokens, countTokens(pieces))
		return reply{whole: appendPadding(b)}
	}
	return reply{events: func(send func([]byte)) {
		var b []byte
		chunk := func(delta string, text []byte, end, finish string) {
			b = appendOpening(append(b[:0], "data: "...), "chatcmpl-", q.n, "chat.completion.chunk")
			b = append(appendText(append(append(b, `"choices":[{"index":0,"delta":{`...), delta...), text), end...)
			b = append(append(append(b, `},"logprobs":null,"finish_reason":`...), finish...), "}]}\n\n"...)
			send(b)
		}
		chunk(`"role":"assistant","content":"`, nil, `"`, "null")
		for _, p := range pieces {
			chunk(`"content":"`, p.text, `"`, "null")
		}
		chunk("", nil, "", finish)
		if q.includeUsage {
			b = append(appendOpening(append(b[:0], "data: "...), "chatcmpl-", q.n, "chat.completion.chunk"), `"choices":[],"usage":`...)
			b = append(appendUsage(b, q.promptTokens, countTokens(pieces)), "}\n\n"...)
			send(b)
		}
		send([]byte("data: [DONE]\n\n"))
	}}
}

func appendOpening(b []byte, prefix string, n serial, object string) []byte {
	b = append(append(append(b, `{"id":"`...), prefix...), n[:]...)
	b = append(append(b, `","object":"`...), object...)
	return append(b, `","created":`+fixedTime+`,"model":"`+modelName+`",`...)
}

func appendUsage(b []byte, prompt, completion int) []byte {
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), int64(prompt), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(completion), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(prompt+completion), 10)
	return append(b, `,"prompt_tokens_details":{"cached_tokens":0}}`...)
}

// appendPadding closes an object, at jsonBytes where it is not longer already.
func appendPadding(b []byte) []byte {
	const open, end = `,"system_fingerprint":"`, `"}`
	b = append(b, open...)
	for len(b) < jsonBytes-len(end) {
		b = append(b, '-')
	}
	return append(b, end...)
}

// appendText appends what stands between the quotes of a JSON string. What is not UTF-8 becomes U+FFFD.
func appendText(b, text []byte) []byte {
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(string(text)) // a string always has its JSON
			return append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return append(b, text...)
}

func appendString(b, text []byte) []byte {
	return append(appendText(append(b, '"'), text), '"')
}

func appendIDs(b []byte, ids []vocab.ID) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

// pieceIDs returns the IDs of all tokens of the pieces.
func pieceIDs(pieces []piece) (ids []vocab.ID) {
	for _, p := range pieces {
		ids = append(ids, p.ids...)
	}
	return ids
}
