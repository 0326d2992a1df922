package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/wire"
)

// scripted is an upstream that answers as a test says.
type scripted struct {
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	// answer returns the media type and the pieces in which the answer comes.
	answer func(n int, body string) (kind string, pieces []string)
	header http.Header // more of the answer's
	ended  []error     // why bodies were given up
	fails  error       // in place of the end of an answer
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	n := len(s.bodies)
	s.bodies, s.heads = append(s.bodies, string(body)), append(s.heads, req.Header)
	s.mu.Unlock()
	kind, pieces := s.answer(n, string(body))
	resp := &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: &piecesBody{s: s, req: req, pieces: pieces},
	}
	for name, v := range s.header {
		resp.Header[name] = v
	}
	if kind == "application/json" && s.fails == nil {
		resp.ContentLength = int64(len(strings.Join(pieces, "")))
		resp.Header.Set("Content-Length", fmt.Sprint(resp.ContentLength))
	}
	return resp, nil
}

type piecesBody struct {
	s      *scripted
	req    *http.Request
	pieces []string
}

func (b *piecesBody) Read(p []byte) (int, error) {
	if err := b.req.Context().Err(); err != nil {
		return 0, err
	}
	if len(b.pieces) == 0 {
		if b.s.fails != nil {
			return 0, b.s.fails
		}
		return 0, io.EOF
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

func (b *piecesBody) Close() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.s.ended = append(b.s.ended, b.req.Context().Err())
	return nil
}

// recoverRig is a gateway before a scripted upstream.
func recoverRig(t testing.TB, rec gateway.Recovery, up *scripted, change ...func(*gateway.Config)) *rig {
	t.Helper()
	server := &gateway.Upstream{Transport: up}
	r := &rig{log: &bytes.Buffer{}}
	cfg := gateway.Config{
		Models:  []gateway.Model{{Name: "m", Upstream: server, Recovery: rec}},
		Default: server, Log: newLog(r.log),
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if r.gateway, err = gateway.New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

// The answers of the tests, by the text of their choices.

func jsonString(s string) string { return string(wire.AppendString(nil, []byte(s))) }

// wholeChat is an answer of a chat: content, tool_calls as JSON or "", and why it ended.
func wholeChat(content, calls, finish string) string {
	if calls != "" {
		calls = `,"tool_calls":[` + calls + `]`
	}
	return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` + jsonString(content) +
		calls + `,"x_unknown":[1, 2]},"logprobs":null,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12},"service_tier":"z"}` + "\n"
}

func chatChunk(delta, finish string) string {
	if finish == "" {
		finish = "null"
	} else {
		finish = `"` + finish + `"`
	}
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + "}]}\n\n"
}

const (
	chatRole  = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
	chatUsage = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7,\"total_tokens\":12}}\n\n"
	streamEnd = "data: [DONE]\n\n"
)

// chatStream is a streamed answer of pieces of text.
func chatStream(finish string, pieces ...string) []string {
	out := []string{chatRole, ": keep-alive\n\n"}
	for _, p := range pieces {
		out = append(out, chatChunk(`{"content":`+jsonString(p)+`}`, ""))
	}
	return append(out, chatChunk("{}", finish), chatUsage, streamEnd)
}

// cutText cuts a text at random places.
func cutText(rng *rand.Rand, s string) []string {
	var out []string
	for len(s) > 0 {
		n := min(1+rng.IntN(7), len(s))
		for n < len(s) && s[n]&0xc0 == 0x80 {
			n++
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

const events, asJSON = "text/event-stream", "application/json"

func chatBody(more string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hello"}]` + more + `}`
}

// got is what a client makes of an answer, whole or streamed.
type got struct {
	text, reasoning, finish string
	calls                   []gotCall
	usage                   *wire.Usage
	recovery                *gotReport
	done                    bool
	err                     string
}

type gotCall struct{ ID, Name, Arguments string }

type gotReport struct {
	Mode, Outcome string
	Edits         []struct{ Kind, Strategy string }
	Reasoning     string
	ToolCalls     []struct {
		Name, Status, Problem string
		Given                 bool
		Raw                   *string
	} `json:"tool_calls"`
	Loop         *struct{ Cut bool }
	Continuation *struct {
		Complete bool
		Attempts []struct{ Mode, Reason, Proof string }
	}
	Error   *struct{ Cause string }
	Tokens  int
	Reserve *struct {
		First, Kept int
		Used        bool
	}
	Trace []struct{ Strategy, Verdict, Why string }
}

type gotAnswer struct {
	Choices []struct {
		Index          int
		Text           string
		Message, Delta *struct {
			Content   *string
			Reasoning string `json:"reasoning_content"`
			ToolCalls []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
		Unfray       *struct{ Recovery *gotReport }
	}
	Usage  *wire.Usage
	Unfray *struct{ Recovery *gotReport }
	Error  *struct{ Code string }
}

// read adds an answer, or a chunk of one.
func (g *got) read(t *testing.T, data []byte, choice int) {
	t.Helper()
	var a gotAnswer
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if a.Error != nil {
		g.err = a.Error.Code
	}
	if a.Usage != nil {
		g.usage = a.Usage
	}
	if a.Unfray != nil {
		g.recovery = a.Unfray.Recovery
	}
	for _, c := range a.Choices {
		if c.Index != choice {
			continue
		}
		g.text += c.Text
		if c.FinishReason != "" {
			g.finish = c.FinishReason
		}
		m := c.Message
		if m == nil {
			m = c.Delta
		}
		if m == nil {
			continue
		}
		if m.Content != nil {
			g.text += *m.Content
		}
		g.reasoning += m.Reasoning
		for i, k := range m.ToolCalls {
			if c.Delta != nil {
				i = k.Index
			}
			for len(g.calls) <= i {
				g.calls = append(g.calls, gotCall{})
			}
			g.calls[i].ID += k.ID
			g.calls[i].Name += k.Function.Name
			g.calls[i].Arguments += k.Function.Arguments
		}
	}
}

// readRecovered reads all of an answer.
func readRecovered(t *testing.T, a *answer, choice int) *got {
	t.Helper()
	g := &got{}
	if !strings.HasPrefix(a.header.Get("Content-Type"), events) {
		g.read(t, a.body, choice)
		if n := a.header.Get("Content-Length"); n != "" && n != fmt.Sprint(len(a.body)) {
			t.Errorf("the length is said to be %s, it is %d", n, len(a.body))
		}
		return g
	}
	r := wire.NewEventReader(bytes.NewReader(a.body))
	for {
		e, err := r.Next()
		if err == io.EOF {
			return g
		}
		if err != nil {
			t.Fatalf("%v in %s", err, a.body)
		}
		if string(e.Data) == wire.Done {
			g.done = true
			continue
		}
		if g.done {
			t.Fatalf("an event after the end: %s", a.body)
		}
		g.read(t, e.Data, choice)
	}
}

// What is sound comes as it came, byte for byte, in every mode.
func TestRecoverLeavesSoundAnswers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prose := "Here is a list:\n\n- one\n- two\n\n```go\nfunc main() {}\n```\n\nIt ends here. 😀 \"quoted\" <b>"
	call := `{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\": [1,2]}"}}`
	type sound struct {
		name, path, body string
		kind             string
		pieces           []string
	}
	answers := []sound{
		{"chat", "/v1/chat/completions", chatBody(""), asJSON, []string{wholeChat(prose, "", "stop")}},
		{"odd spelling", "/v1/chat/completions", chatBody(""), asJSON, []string{strings.ReplaceAll(wholeChat("a", "", "stop"), `"a"`, `"\u0061"`)}},
		{"JSON", "/v1/chat/completions", chatBody(`,"response_format":{"type":"json_object"}`), asJSON, []string{wholeChat("{\"a\": 1.50 }\n", "", "stop")}},
		{"calls", "/v1/chat/completions", chatBody(`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`), asJSON, []string{wholeChat("", call, "tool_calls")}},
		{"completion", "/v1/completions", `{"model":"m","prompt":"a"}`, asJSON, []string{`{"choices":[{"text":" b","index":0,"finish_reason":"stop"}]}`}},
		{"no answer at all", "/v1/completions", `{"model":"m","prompt":"a"}`, asJSON, []string{`{"object":"list"}`}},
		{"no JSON", "/v1/completions", `{"model":"m","prompt":"a"}`, asJSON, []string{`{"choices":[`}},
		{"another type", "/v1/completions", `{"model":"m","prompt":"a"}`, "text/html", []string{"<html>"}},
	}
	for i := range 20 {
		answers = append(answers, sound{fmt.Sprint("stream ", i), "/v1/chat/completions", chatBody(`,"stream":true`), events, chatStream("stop", cutText(rng, prose)...)})
		answers = append(answers, sound{fmt.Sprint("JSON stream ", i), "/v1/chat/completions", chatBody(`,"stream":true,"response_format":{"type":"json_object"}`), events,
			chatStream("stop", cutText(rng, `{"a": "some text", "b": [1, 2, {"c": null}], "d": "é😀"}`)...)})
		parts := []string{chatRole, chatChunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`, "")}
		for _, p := range cutText(rng, `{"a": [1, "two"]}`) {
			parts = append(parts, chatChunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+jsonString(p)+`}}]}`, ""))
		}
		parts = append(parts, chatChunk(`{}`, "tool_calls"), streamEnd)
		answers = append(answers, sound{fmt.Sprint("call stream ", i), "/v1/chat/completions", chatBody(`,"stream":true`), events, parts})
	}
	for _, mode := range gateway.RecoverModes() {
		for _, policy := range []gateway.ToolCallPolicy{gateway.DropCalls, gateway.MarkCalls, gateway.RepairCalls} {
			for _, s := range answers {
				up := &scripted{answer: func(int, string) (string, []string) { return s.kind, reslice(rng, s.pieces) }}
				r := recoverRig(t, gateway.Recovery{Mode: mode, ToolCalls: policy}, up)
				a := r.send("POST", s.path, s.body)
				if want := strings.Join(s.pieces, ""); a.status != 200 || string(a.body) != want {
					t.Errorf("%s, %s, %s: %d\n%s\nwant\n%s", mode, policy, s.name, a.status, a.body, want)
				}
				if len(up.bodies) != 1 || up.bodies[0] != s.body {
					t.Errorf("%s, %s: the upstream got %q", mode, s.name, up.bodies)
				}
			}
		}
	}
}

// The damaged answers, with what is to become of them.
var damaged = []struct {
	name, more      string // of the request
	text, calls     string // of the answer
	finish          string
	want, reasoning string
	wantFinish      string
	wantCalls       []gotCall
	outcome, mode   string
	policy          gateway.ToolCallPolicy
	statuses        string
}{
	{name: "JSON in prose", more: asObject, text: "Sure, here it is:\n\n```json\n{\"a\": 1}\n```\n", finish: "stop", want: "{\"a\": 1}", wantFinish: "stop", outcome: "repaired"},
	{name: "surplus comma", more: asObject, text: "{\"a\": [1, 2,],}", finish: "stop", want: "{\"a\": [1, 2]}", wantFinish: "stop", outcome: "repaired"},
	{name: "cut JSON", more: asObject, text: "{\"a\": [1, {\"b\": \"c", finish: "length", want: "{\"a\": [1, {\"b\": \"c\"}]}", wantFinish: "length", outcome: "truncated"},
	{name: "cut JSON that says it is whole", more: asObject, text: "{\"a\": \"c", finish: "stop", want: "{\"a\": \"c\"}", wantFinish: "length", outcome: "truncated"},
	{name: "reasoning", text: "<think>\nhm\n</think>\n\nThe answer.", finish: "stop", want: "The answer.", reasoning: "hm", wantFinish: "stop", outcome: "repaired"},
	{name: "a call as text", more: withTool, text: "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", finish: "stop",
		wantFinish: "tool_calls", wantCalls: []gotCall{{Name: "f", Arguments: "{\"a\": 1}"}}, outcome: "repaired", statuses: "f valid given"},
	{name: "a cut call as text", more: withTool, text: "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"lon", finish: "length",
		wantFinish: "length", outcome: "truncated", statuses: "f truncated left out"},
	{name: "a call", more: withTool, calls: "{\"a\": 1,}", finish: "tool_calls", wantFinish: "length", wantCalls: []gotCall{{ID: "call_1", Name: "f", Arguments: "{\"a\": 1}"}},
		outcome: "repaired", statuses: "f repaired given"},
	{name: "a call that may be repaired", policy: gateway.RepairCalls, more: withTool, calls: "{\"a\": 1,}", finish: "tool_calls", wantFinish: "tool_calls",
		wantCalls: []gotCall{{ID: "call_1", Name: "f", Arguments: "{\"a\": 1}"}}, outcome: "repaired", statuses: "f repaired given"},
	{name: "a cut call", more: withTool, calls: "{\"a\": \"rm -r", finish: "length", wantFinish: "length", outcome: "truncated", statuses: "f truncated left out"},
	{name: "a cut call that says it is whole", more: withTool, calls: "{\"a\": \"rm -r", finish: "tool_calls", wantFinish: "length", outcome: "truncated", statuses: "f truncated left out"},
	{name: "a cut call, marked", policy: gateway.MarkCalls, more: withTool, calls: "{\"a\": \"rm -r", finish: "tool_calls", wantFinish: "length",
		wantCalls: []gotCall{{ID: "call_1", Name: "f", Arguments: "{\"a\": \"rm -r\"}"}}, outcome: "truncated", statuses: "f truncated given"},
	{name: "plain JSON in plain chat", text: "{'a': 1,}", finish: "stop", want: "{'a': 1,}", wantFinish: "stop", outcome: "valid"},
}

const (
	asObject = `,"response_format":{"type":"json_object"}`
	withTool = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{}}}}}]`
)

// Whole and streamed, damaged answers come to the same.
func TestRecoverDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, tc := range damaged {
		t.Run(tc.name, func(t *testing.T) {
			for i := range 12 {
				stream := i > 0
				up := &scripted{}
				body := chatBody(tc.more + `,"unfray":{"recover":"repair"}`)
				up.answer = func(int, string) (string, []string) {
					call := ""
					if tc.calls != "" {
						call = `{"id":"call_1","type":"function","function":{"name":"f","arguments":` + jsonString(tc.calls) + `}}`
					}
					return asJSON, []string{wholeChat(tc.text, call, tc.finish)}
				}
				if stream {
					body = chatBody(tc.more + `,"stream":true,"unfray":{"recover":"repair"}`)
					pieces := chatStream(tc.finish, cutText(rng, tc.text)...)
					if tc.calls != "" {
						pieces = callStream(tc.finish, cutText(rng, tc.calls)...)
					}
					up.answer = func(int, string) (string, []string) { return events, reslice(rng, pieces) }
				}
				r := recoverRig(t, gateway.Recovery{ToolCalls: tc.policy}, up)
				a := r.send("POST", "/v1/chat/completions", body)
				g := readRecovered(t, a, 0)
				if strings.Contains(up.bodies[0], "unfray") || len(up.bodies) != 1 {
					t.Fatalf("the upstream got %q", up.bodies)
				}
				for i := range g.calls {
					if tc.calls == "" {
						g.calls[i].ID = ""
					}
				}
				if g.text != tc.want || strings.TrimSpace(g.reasoning) != tc.reasoning || g.finish != tc.wantFinish || fmt.Sprint(g.calls) != fmt.Sprint(tc.wantCalls) || stream && !g.done {
					t.Fatalf("stream %v: %+v in\n%s", stream, g, a.body)
				}
				if g.recovery == nil || g.recovery.Outcome != tc.outcome || g.usage == nil || g.usage.TotalTokens != 12 {
					t.Fatalf("stream %v: the receipt is %+v in %s", stream, g.recovery, a.body)
				}
				statuses := ""
				for _, c := range g.recovery.ToolCalls {
					statuses += c.Name + " " + c.Status + map[bool]string{true: " given", false: " left out"}[c.Given]
				}
				if statuses != tc.statuses {
					t.Fatalf("stream %v: %s", stream, statuses)
				}
			}
		})
	}
}

// callStream is a streamed answer whose call's arguments come in pieces.
func callStream(finish string, pieces ...string) []string {
	out := []string{chatRole, chatChunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`, "")}
	for _, p := range pieces {
		out = append(out, chatChunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+jsonString(p)+`}}]}`, ""))
	}
	return append(out, chatChunk("{}", finish), chatUsage, streamEnd)
}

// reslice divides an answer anew, as networks do.
func reslice(rng *rand.Rand, pieces []string) []string {
	if rng.IntN(2) == 0 {
		return append([]string{}, pieces...)
	}
	all := strings.Join(pieces, "")
	var out []string
	for len(all) > 0 {
		n := min(1+rng.IntN(200), len(all))
		out, all = append(out, all[:n]), all[n:]
	}
	return out
}
