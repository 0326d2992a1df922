package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
)

// A server whose stream repeats itself is stopped, and the client told the end.
func TestRecoverStopsLoops(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		up := &scripted{answer: func(int, string) (string, []string) {
			pieces := []string{}
			add := func(text string) {
				if path == "/v1/completions" {
					pieces = append(pieces, `data: {"id":"c","object":"text_completion","choices":[{"text":`+jsonString(text)+`,"index":0,"finish_reason":null}]}`+"\n\n")
				} else {
					pieces = append(pieces, chatChunk(`{"content":`+jsonString(text)+`}`, ""))
				}
			}
			add("It begins well. ")
			for range 1500 {
				for _, w := range []string{"The same ", "sentence comes ", "again and ", "again here. "} {
					add(w)
				}
			}
			return events, pieces
		}}
		r := recoverRig(t, gateway.Recovery{}, up)
		body := `{"model":"m","stream":true,"prompt":"a","messages":[{"role":"user","content":"a"}],"unfray":{"recover":"full"}}`
		a := r.send("POST", path, body)
		g := readRecovered(t, a, 0)
		if g.finish != "length" || !g.done || g.recovery == nil || g.recovery.Loop == nil || len(g.text) > 4000 || !strings.HasPrefix(g.text, "It begins well. The same") {
			t.Errorf("%s: %d bytes, %+v %+v", path, len(g.text), g, g.recovery)
		}
		if len(up.ended) != 1 || up.ended[0] == nil {
			t.Errorf("%s: the server was not stopped: %v", path, up.ended)
		}
		if log := r.log.String(); strings.Contains(log, "sentence") || !strings.Contains(log, "loop_stopped=true") {
			t.Errorf("the log is %s", log)
		}
		r = recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull}, up)
		if g := readRecovered(t, r.send("POST", path, strings.Replace(body, `,"unfray":{"recover":"full"}`, "", 1)), 0); g.recovery == nil || g.finish != "length" {
			t.Errorf("%s: no receipt: %+v", path, g)
		}
		// Nothing of this happens in mode repair.
		b := readRecovered(t, r.send("POST", path, strings.Replace(body, "full", "repair", 1)), 0)
		if len(b.text) < 50_000 {
			t.Errorf("%s: repair gave %d bytes", path, len(b.text))
		}
	}
}

// byHeart is a model that knows a text: it goes on with what it is shown, limit
// bytes at a time.
type byHeart struct {
	script string
	limit  int
	echo   bool // the continued message is part of the answer
	seen   []map[string]any
}

func (m *byHeart) answer(_ int, body string) (string, []string) {
	var req map[string]any
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		panic(err)
	}
	m.seen = append(m.seen, req)
	begun, start := "", 0
	if messages, ok := req["messages"].([]any); ok {
		last := messages[len(messages)-1].(map[string]any)
		text := last["content"].(string)
		if last["role"] == "assistant" {
			begun, start = text, len(text)
			if !strings.HasPrefix(m.script, text) {
				panic(fmt.Sprintf("asked to go on with %q", text))
			}
		} else if _, ask, ok := strings.Cut(text, "without a break:\n\n"); ok {
			ask, _, _ = strings.Cut(ask, "\n\nDo not start")
			start = strings.Index(m.script, ask)
		}
	} else {
		start = len(strings.TrimPrefix(req["prompt"].(string), "PROMPT "))
	}
	end, finish := start+m.limit, "length"
	if end >= len(m.script) {
		end, finish = len(m.script), "stop"
	}
	text := m.script[start:end]
	if m.echo {
		text = begun + text
	}
	if stream, _ := req["stream"].(bool); stream {
		return events, chatStream(finish, cutText(rand.New(rand.NewPCG(5, 6)), text)...)
	}
	if _, ok := req["prompt"]; ok {
		return asJSON, []string{`{"choices":[{"index":0,"text":` + jsonString(text) + `,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`}
	}
	return asJSON, []string{wholeChat(text, "", finish)}
}

const longJSON = `{"title": "A report", "items": [{"name": "one", "size": 10}, {"name": "two", "size": 20}, {"name": "three", "size": 30}], "done": true}`

const longProse = "The first sentence is here to begin with. The second one says something else entirely. A third follows, as thirds do, with a clause or two. Then the fourth ends it all."

// A cut answer is continued by the means that the server has, and joined.
func TestRecoverContinues(t *testing.T) {
	for _, way := range []gateway.ContinueWay{gateway.ContinueFields, gateway.ContinueLast, gateway.ContinuePrefix, gateway.ContinueInstruct} {
		for _, script := range []string{longJSON, longProse} {
			for _, stream := range []bool{false, true} {
				m := &byHeart{script: script, limit: 90, echo: way == gateway.ContinueLast}
				up := &scripted{answer: m.answer}
				r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull, Continue: way}, up)
				more := `,"max_tokens":30,"logprobs":true,"top_logprobs":2,"temperature":0`
				if script == longJSON {
					more += asObject
				}
				if stream {
					more += `,"stream":true,"stream_options":{"include_usage":true}`
				}
				a := r.send("POST", "/v1/chat/completions", chatBody(more), "X-Unfray-Recover", "full")
				g := readRecovered(t, a, 0)
				name := fmt.Sprintf("%s, stream %v, %.10q", way, stream, script)
				if g.text != script || g.finish != "stop" || g.recovery == nil || g.recovery.Continuation == nil || !g.recovery.Continuation.Complete {
					t.Errorf("%s: %q %s %+v\n%s", name, g.text, g.finish, g.recovery, a.body)
					continue
				}
				asked := len(m.seen) - 1
				if g.usage == nil || g.usage.CompletionTokens != 7*(1+asked) || g.usage.TotalTokens != 12+7*asked || g.recovery.Tokens != 7*asked {
					t.Errorf("%s: usage %+v after %d questions", name, g.usage, asked)
				}
				for _, req := range m.seen[1:] {
					for _, field := range []string{"unfray", "stream", "stream_options", "response_format", "logprobs", "n"} {
						if _, has := req[field]; has {
							t.Errorf("%s: a continuation has %s", name, field)
						}
					}
					_, field := req["continue_final_message"]
					last := req["messages"].([]any)
					prefix := last[len(last)-1].(map[string]any)["prefix"]
					if field != (way == gateway.ContinueFields) || (prefix == true) != (way == gateway.ContinuePrefix) || req["temperature"] != 0.0 || req["max_tokens"] == nil {
						t.Errorf("%s: asked by %v", name, req)
					}
				}
			}
		}
	}
}

func TestRecoverContinuesCompletions(t *testing.T) {
	m := &byHeart{script: longProse, limit: 70}
	r := recoverRig(t, gateway.Recovery{}, &scripted{answer: m.answer})
	g := readRecovered(t, r.send("POST", "/v1/completions", `{"model":"m","prompt":"PROMPT ","unfray":{"recover":{"mode":"full","max_attempts":3}}}`), 0)
	if g.text != longProse || g.finish != "stop" {
		t.Errorf("%q %s %+v", g.text, g.finish, g.recovery)
	}
	// A client that does not ask gets no more tokens than it wanted.
	m.seen = nil
	r = recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull}, &scripted{answer: m.answer})
	g = readRecovered(t, r.send("POST", "/v1/completions", `{"model":"m","prompt":"PROMPT ","max_tokens":20}`), 0)
	if len(m.seen) != 1 || g.text != longProse[:70] {
		t.Errorf("asked %d times: %+v", len(m.seen), g)
	}
	// The operator's limits hold.
	for _, rec := range []gateway.Recovery{{Attempts: -1}, {Strategies: []string{"text"}}, {Allowed: []gateway.RecoverMode{"full"}, Continue: gateway.ContinueNone}} {
		m.seen = nil
		r = recoverRig(t, rec, &scripted{answer: m.answer})
		g = readRecovered(t, r.send("POST", "/v1/completions", `{"model":"m","prompt":"PROMPT ","unfray":{"recover":"full"}}`), 0)
		if len(m.seen) != 1 || g.finish != "length" || g.text != longProse[:70] {
			t.Errorf("%+v: asked %d times: %+v", rec, len(m.seen), g)
		}
	}
}

// A reserve keeps tokens of the first request for the rest.
func TestRecoverReserve(t *testing.T) {
	for _, limit := range []int{60, 1000} {
		m := &byHeart{script: longJSON, limit: limit}
		r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull, ReservePercent: 30, Continue: gateway.ContinueFields}, &scripted{answer: m.answer})
		g := readRecovered(t, r.send("POST", "/v1/chat/completions", chatBody(`,"max_tokens":100,"unfray":{"recover":"full"}`+asObject)), 0)
		used := limit == 60
		if m.seen[0]["max_tokens"] != 70.0 || g.text != longJSON || g.recovery.Reserve == nil || g.recovery.Reserve.Kept != 30 || g.recovery.Reserve.Used != used {
			t.Errorf("limit %d: %v, %+v %+v", limit, m.seen[0], g, g.recovery.Reserve)
		}
		if used && m.seen[1]["max_tokens"] != 30.0 {
			t.Errorf("the rest may have %v tokens", m.seen[1]["max_tokens"])
		}
		metrics := string(r.send("GET", "/metrics", "").body)
		if want := fmt.Sprintf(`unfray_recovery_reserves_total{model="m",result="%s"} 1`, map[bool]string{true: "used", false: "unused"}[used]); !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// An answer that cannot be saved is had from another model, or refused.
func TestRecoverFailure(t *testing.T) {
	const bad = "I cannot do that."
	answer := func(_ int, body string) (string, []string) {
		text := bad
		if strings.Contains(body, `"model":"other"`) {
			text = `{"a":1}`
		}
		if strings.Contains(body, `"stream":true`) {
			return events, chatStream("stop", text)
		}
		return asJSON, []string{wholeChat(text, "", "stop")}
	}
	second := func(c *gateway.Config) {
		c.Models = append(c.Models, gateway.Model{Name: "other", Upstream: c.Default})
	}
	for _, stream := range []bool{false, true} {
		body := chatBody(fmt.Sprintf(`,"stream":%v`, stream) + asObject)
		r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverRepair, Fallback: "other"}, &scripted{answer: answer}, second)
		if g := readRecovered(t, r.send("POST", "/v1/chat/completions", body), 0); g.text != `{"a":1}` || g.usage.CompletionTokens != 14 || g.recovery == nil {
			t.Errorf("stream %v: the other model: %+v", stream, g)
		}
		r = recoverRig(t, gateway.Recovery{Mode: gateway.RecoverRepair}, &scripted{answer: answer})
		if g := readRecovered(t, r.send("POST", "/v1/chat/completions", body), 0); g.text != bad || g.recovery.Outcome != "failed" || g.recovery.Error == nil {
			t.Errorf("stream %v: partial: %+v", stream, g)
		}
		r = recoverRig(t, gateway.Recovery{Mode: gateway.RecoverRepair, OnFailure: gateway.GiveError}, &scripted{answer: answer})
		a := r.send("POST", "/v1/chat/completions", body)
		g := readRecovered(t, a, 0)
		if g.err != "recovery_failed" || g.recovery == nil || g.recovery.Outcome != "failed" || g.done || !stream && a.status != 502 {
			t.Errorf("stream %v: error: %d %s", stream, a.status, a.body)
		}
		if strings.Contains(r.log.String(), "cannot do that") {
			t.Errorf("the log has the answer: %s", r.log)
		}
	}
}

// Each choice has a recovery of its own, and a receipt.
func TestRecoverChoices(t *testing.T) {
	texts := []string{`{"a":1,}`, "text <think>x</think>", `{"b":2}`}
	for _, mode := range []string{"report", "repair", "full"} {
		for _, stream := range []bool{false, true} {
			up := &scripted{answer: func(int, string) (string, []string) {
				if !stream {
					var choices []string
					for i, text := range texts {
						choices = append(choices, fmt.Sprintf(`{"index":%d,"message":{"content":%s},"finish_reason":"stop"}`, i, jsonString(text)))
					}
					return asJSON, []string{`{"choices":[` + strings.Join(choices, ",") + `]}`}
				}
				return events, interleaved(texts)
			}}
			r := recoverRig(t, gateway.Recovery{Attempts: -1}, up)
			a := r.send("POST", "/v1/chat/completions", chatBody(fmt.Sprintf(`,"n":3,"stream":%v,"unfray":{"recover":%q}`, stream, mode)+asObject))
			want := []string{`{"a":1}`, texts[1], texts[2]}
			if mode == "report" {
				want[0] = texts[0]
			}
			outcomes := []string{"repaired", "failed", "valid"}
			for i := range texts {
				g := readRecovered(t, a, i)
				own := ownReport(t, a, i)
				if g.text != want[i] || g.finish != "stop" || own == nil || own.Outcome != outcomes[i] || g.recovery == nil || g.recovery.Outcome != "repaired" {
					t.Errorf("%s, stream %v, choice %d: %+v, %+v in %s", mode, stream, i, g, own, a.body)
				}
			}
		}
	}
}

// interleaved are the choices of a stream in turn.
func interleaved(texts []string) []string {
	var out []string
	for k := 0; ; k++ {
		more := false
		for i, text := range texts {
			if k < len(text) {
				more = true
				out = append(out, fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", i, jsonString(text[k:k+1])))
			} else if k == len(text) {
				out = append(out, fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", i))
			}
		}
		if !more {
			return append(out, streamEnd)
		}
	}
}

// ownReport is the receipt of a choice.
func ownReport(t *testing.T, a *answer, index int) (own *gotReport) {
	t.Helper()
	for line := range strings.Lines(string(a.body)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		var got gotAnswer
		if json.Unmarshal([]byte(line), &got) != nil {
			continue
		}
		for _, c := range got.Choices {
			if c.Index == index && c.Unfray != nil {
				own = c.Unfray.Recovery
			}
		}
	}
	return own
}

// What a request may not ask for is refused by the name of the field.
func TestRecoverLimits(t *testing.T) {
	up := &scripted{answer: func(int, string) (string, []string) { return asJSON, []string{wholeChat("a", "", "stop")} }}
	rec := gateway.Recovery{
		Allowed: []gateway.RecoverMode{gateway.RecoverReport, gateway.RecoverFull}, Attempts: 2, MaxTokens: 100, Strategies: []string{"strict", "repair"},
	}
	r := recoverRig(t, rec, up)
	for recover, param := range map[string]string{
		`"always"`:                                         "unfray.recover",
		`"repair"`:                                         "unfray.recover",
		`7`:                                                "unfray.recover",
		`{"mode":"full","max_attempts":3}`:                 "unfray.recover.max_attempts",
		`{"mode":"full","max_attempts":-1}`:                "unfray.recover.max_attempts",
		`{"mode":"full","max_tokens":101}`:                 "unfray.recover.max_tokens",
		`{"mode":"full","reserve_percent":95}`:             "unfray.recover.reserve_percent",
		`{"mode":"full","strategies":["loop"]}`:            "unfray.recover.strategies",
		`{"mode":"full","strategies":["magic"]}`:           "unfray.recover.strategies",
		`{"mode":"full","form":"poem"}`:                    "unfray.recover.form",
		`{"mode":"full","schema":{"type":"nothing"}}`:      "unfray.recover.schema",
		`{"mode":"full","schema":[]}`:                      "unfray.recover.schema",
		`{"mode":"full","tool_calls":"run"}`:               "unfray.recover.tool_calls",
		`{"mode":"full","on_failure":"cry"}`:               "unfray.recover.on_failure",
		`{"mode":"full","bogus":1}`:                        "unfray.recover.bogus",
		`{"mode":"full","mode":"off"}`:                     "unfray.recover.mode",
		`{"mode":"full","strategies":["repair"],"raw":""}`: "unfray.recover.raw",
	} {
		a := r.send("POST", "/v1/chat/completions", chatBody(`,"unfray":{"recover":`+recover+`}`))
		var e struct{ Error struct{ Param string } }
		if json.Unmarshal(a.body, &e); a.status != 400 || e.Error.Param != param {
			t.Errorf("%s: %d %s", recover, a.status, a.body)
		}
	}
	for _, h := range []string{"repair", "x"} {
		if a := r.send("POST", "/v1/chat/completions", chatBody(""), "X-Unfray-Recover", h); a.status != 400 || !strings.Contains(string(a.body), `"param":"X-Unfray-Recover"`) {
			t.Errorf("%s: %d %s", h, a.status, a.body)
		}
	}
	if a := r.send("POST", "/completion", `{"model":"m","prompt":"a","unfray":{"recover":"full"}}`); a.status != 400 {
		t.Errorf("/completion: %d %s", a.status, a.body)
	}
	if a := r.send("POST", "/v1/completions", `{"model":"m","prompt":"a","echo":true,"unfray":{"recover":"full"}}`); a.status != 400 || !strings.Contains(string(a.body), `"param":"echo"`) {
		t.Errorf("echo: %d %s", a.status, a.body)
	}
	if len(up.bodies) != 0 {
		t.Errorf("the upstream was asked: %q", up.bodies)
	}
	for _, ok := range []string{`"off"`, `"full"`, `{"mode":"report"}`, `{"mode":"full","strategies":["repair"],"max_attempts":0,"max_tokens":100,"form":"json"}`} {
		if a := r.send("POST", "/v1/chat/completions", chatBody(`,"unfray":{"recover":`+ok+`}`)); a.status != 200 && ok != `"off"` {
			t.Errorf("%s: %d %s", ok, a.status, a.body)
		}
	}
}

// The header asks as the field does, and the field comes first. A receipt is given
// where one is asked for.
func TestRecoverReceipt(t *testing.T) {
	up := &scripted{answer: func(int, string) (string, []string) { return asJSON, []string{wholeChat("sound", "", "stop")} }}
	up.header = http.Header{"Etag": {`"x"`}}
	r := recoverRig(t, gateway.Recovery{}, up)
	a := r.send("POST", "/v1/chat/completions", chatBody(""), "X-Unfray-Recover", "repair", "Accept-Encoding", "gzip")
	if g := readRecovered(t, a, 0); g.recovery == nil || g.recovery.Outcome != "valid" || g.recovery.Mode != "repair" || a.header.Get("Etag") != "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if got := up.heads[0].Get("Accept-Encoding"); got != "identity" {
		t.Errorf("the upstream may answer in %q", got)
	}
	a = r.send("POST", "/v1/chat/completions", chatBody(`,"unfray":{"recover":"off"}`), "X-Unfray-Recover", "repair")
	if string(a.body) != wholeChat("sound", "", "stop") || !strings.Contains(up.bodies[1], `"unfray"`) || a.header.Get("Etag") == "" {
		t.Errorf("off: %s", a.body)
	}
	// Codings that are not read here pass.
	up.header = http.Header{"Content-Encoding": {"br"}}
	a = r.send("POST", "/v1/chat/completions", chatBody(""), "X-Unfray-Recover", "repair")
	if string(a.body) != wholeChat("sound", "", "stop") || a.header.Get("X-Unfray-Note") != "answer_encoded" {
		t.Errorf("%v %s", a.header, a.body)
	}
}

// Answers that are too large pass, and say so.
func TestRecoverTooLarge(t *testing.T) {
	big := wholeChat(strings.Repeat("a b ", 2<<20), "", "stop")
	up := &scripted{answer: func(int, string) (string, []string) { return asJSON, []string{big} }}
	r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverRepair, MaxBytes: 1 << 10}, up)
	a := r.send("POST", "/v1/chat/completions", chatBody(""))
	if string(a.body) != big || a.header.Get("X-Unfray-Note") != "answer_too_large" {
		t.Errorf("%d bytes, %v", len(a.body), a.header)
	}
	pieces := []string{}
	for range 2000 {
		pieces = append(pieces, chatChunk(`{"content":"`+strings.Repeat("word ", 20)+`"}`, ""))
	}
	pieces = append(pieces, chatChunk("{}", "stop"), streamEnd)
	up.answer = func(int, string) (string, []string) { return events, pieces }
	a = r.send("POST", "/v1/chat/completions", chatBody(`,"stream":true`))
	if g := readRecovered(t, a, 0); len(g.text) != 200_000 || !g.done {
		t.Errorf("%d bytes of text", len(g.text))
	}
}

// A stream that fails gives what there is, then its error.
func TestRecoverBrokenStreams(t *testing.T) {
	text := "<think>a</think>\n\nSome text, and mor"
	for _, mode := range []gateway.RecoverMode{gateway.RecoverReport, gateway.RecoverRepair, gateway.RecoverFull} {
		pieces := chatStream("stop", cutText(rand.New(rand.NewPCG(1, 1)), text)...)
		pieces = pieces[:len(pieces)-3] // no end of any kind
		want := "Some text, and mor"
		if mode == gateway.RecoverReport {
			want = text
		}
		up := &scripted{answer: func(int, string) (string, []string) {
			return events, append(append([]string{}, pieces...), "data: {\"error\":{\"message\":\"x\",\"code\":\"boom\"}}\n\n")
		}}
		r := recoverRig(t, gateway.Recovery{Mode: mode}, up)
		a := r.send("POST", "/v1/chat/completions", chatBody(`,"stream":true`))
		if g := readRecovered(t, a, 0); g.text != want || g.err != "boom" || g.finish != "" || len(up.bodies) != 1 || !strings.HasSuffix(string(a.body), "\"boom\"}}\n\n") {
			t.Errorf("%s, an error event: %+v in %s", mode, g, a.body)
		}
		up = &scripted{answer: func(int, string) (string, []string) { return events, append([]string{}, pieces...) }, fails: io.ErrUnexpectedEOF}
		r = recoverRig(t, gateway.Recovery{Mode: mode}, up)
		a = r.sendBroken(t, "/v1/chat/completions", chatBody(`,"stream":true`))
		if g := readRecovered(t, a, 0); g.text != want || g.done || len(up.bodies) != 1 {
			t.Errorf("%s, broken off: %+v in %s", mode, g, a.body)
		}
		up = &scripted{answer: func(int, string) (string, []string) { return events, append([]string{}, pieces...) }}
		r = recoverRig(t, gateway.Recovery{Mode: mode}, up)
		a = r.send("POST", "/v1/chat/completions", chatBody(`,"stream":true`))
		if g := readRecovered(t, a, 0); g.text != want || g.done || g.recovery == nil || len(up.bodies) != 1 {
			t.Errorf("%s, no end: %+v in %s", mode, g, a.body)
		}
	}
	// A whole answer that breaks off has not begun: it is an error as any other.
	up := &scripted{answer: func(int, string) (string, []string) { return asJSON, []string{`{"choices":[{`} }, fails: io.ErrUnexpectedEOF}
	r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverFull}, up)
	if a := r.send("POST", "/v1/chat/completions", chatBody("")); a.status != 502 || !strings.Contains(string(a.body), "upstream_failed") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// sendBroken is send for an answer whose connection is cut.
func (r *rig) sendBroken(t *testing.T, path, body string) *answer {
	t.Helper()
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the connection was not cut: %v", p)
			}
		}()
		r.gateway.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	}()
	return &answer{w.Code, w.Header(), w.Body.Bytes()}
}

// A client that goes away ends the requests to the server.
func TestRecoverClientGone(t *testing.T) {
	gone := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		for {
			if _, err := io.WriteString(w, chatChunk(`{"content":"word "}`, "")); err != nil {
				break
			}
			http.NewResponseController(w).Flush()
			if r.Context().Err() != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		gone <- r.Context().Err()
	}))
	defer server.Close()
	up := &gateway.Upstream{Transport: redirect{server.Listener.Addr().String()}}
	g, err := gateway.New(gateway.Config{Models: []gateway.Model{{Name: "m", Upstream: up, Recovery: gateway.Recovery{Mode: gateway.RecoverFull, Strategies: []string{"text"}}}}, Log: newLog(&bytes.Buffer{})})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	defer front.Close()
	resp, err := http.Post(front.URL+"/v1/chat/completions", asJSON, strings.NewReader(chatBody(`,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 500)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the server goes on")
	}
}

// redirect sends requests to an address.
type redirect struct{ host string }

func (d redirect) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "http", d.host
	return http.DefaultTransport.RoundTrip(out)
}

// The model in this process is recovered by the same stage.
func TestRecoverEngine(t *testing.T) {
	const script = `Q: JSON? A: {"city": "Paris", "country": "France",} and that is all.`
	r := newRig(t, rigOptions{scripts: []string{script}})
	body := `{"prompt":"Q: JSON? A: {\"city\": \"Par","temperature":0,"max_tokens":64,"unfray":{"recover":{"mode":"repair","form":"text"}}}`
	whole := readRecovered(t, r.complete(body), 0)
	if whole.recovery == nil || whole.text == "" {
		t.Fatalf("%+v", whole)
	}
	stream := readRecovered(t, r.complete(strings.Replace(body, `"temperature"`, `"stream":true,"temperature"`, 1)), 0)
	if stream.text != whole.text || stream.finish != whole.finish || stream.recovery == nil || !stream.done {
		t.Errorf("%+v\nwhole %+v", stream, whole)
	}
	a := r.complete(body)
	if !strings.Contains(string(a.body), `"healing"`) || !strings.Contains(string(a.body), `"recovery"`) {
		t.Errorf("the report is %s", a.body)
	}
}

// The model in this process goes on with its own answer, healed at the seam.
func TestRecoverEngineContinues(t *testing.T) {
	const script = "The capital of France is Paris, and the capital of Italy is Rome. So it goes on for a while, until it ends."
	for _, stream := range []bool{false, true} {
		r := newRig(t, rigOptions{scripts: []string{script}, cfg: gateway.Config{Models: []gateway.Model{{Heal: heal.Auto}}}})
		body := fmt.Sprintf(`{"prompt":"The capital of Fr","temperature":0,"max_tokens":8,"stream":%v,"unfray":{"recover":"full"}}`, stream)
		g := readRecovered(t, r.complete(body), 0)
		if "The capital of Fr"+g.text != script || g.finish != "stop" || g.recovery.Continuation == nil {
			t.Errorf("stream %v: %q %s %+v", stream, g.text, g.finish, g.recovery)
		}
	}
}

// POST /unfray/v1/recover.
func TestRecoverEndpoint(t *testing.T) {
	r := newRig(t, rigOptions{})
	for body, want := range map[string]string{
		`{"text":"{\"a\":1}"}`: `"outcome":"valid","form":"json","text":"{\"a\":1}","value":{"a":1}`,
		`{"id":7,"text":"Here: {\"a\":\"1\",}","schema":{"type":"object","properties":{"a":{"type":"integer"}}}}`:                                 `"value":{"a":1}`,
		`{"text":"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>","tools":[{"type":"function","function":{"name":"f"}}],"form":"text"}`: `"name":"f"`,
		`{"bytes":"/w==","form":"text"}`:                              `"outcome"`,
		`{"text":"{\"a\":1,}","form":"json","strategies":["strict"]}`: `"outcome":"failed"`,
		`{"text":"{\"a\":1,}","form":"json","budget":{"bytes":3}}`:    `"outcome":"failed"`,
	} {
		a := r.send("POST", "/unfray/v1/recover", body)
		if a.status != 200 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	for body, param := range map[string]string{
		`{}`: "text", `{"text":"a","bytes":"YQ=="}`: "bytes", `{"text":"a","form":"x"}`: "form", `{"text":"a","strategies":["x"]}`: "strategies",
		`{"text":"a","schema":{"type":3}}`: "schema", `{"text":"a","budget":{"bytes":-1}}`: "budget.bytes",
	} {
		a := r.send("POST", "/unfray/v1/recover", body)
		if a.status != 400 || !strings.Contains(string(a.body), `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

// Configurations that cannot be are refused.
func TestRecoverConfig(t *testing.T) {
	up := &gateway.Upstream{Transport: &scripted{}}
	for _, rec := range []gateway.Recovery{
		{Mode: "x"}, {Allowed: []gateway.RecoverMode{"x"}}, {ToolCalls: "x"}, {OnFailure: "x"}, {Continue: "x"}, {ReservePercent: 91},
		{Attempts: 11}, {Strategies: []string{"x"}}, {Fallback: "nobody"},
	} {
		if _, err := gateway.New(gateway.Config{Models: []gateway.Model{{Name: "m", Upstream: up, Recovery: rec}}}); err == nil {
			t.Errorf("%+v is taken", rec)
		}
	}
}

// Answers of other shapes than text.
func TestRecoverShapes(t *testing.T) {
	call := func(id, args string) string {
		return `{"index":` + id + `,"id":"call_` + id + `","type":"function","function":{"name":"f","arguments":` + jsonString(args) + `}}`
	}
	null := func(body string) string { return strings.Replace(body, `"content":""`, `"content":null`, 1) }
	both := asObject + withTool
	for _, tc := range []struct {
		name, more    string
		whole, stream []string
		check         func(g *got) bool
	}{
		{
			"calls where JSON was asked for", both, []string{null(wholeChat("", call("0", `{"a":1}`), "tool_calls"))},
			append([]string{chatRole, chatChunk(`{"tool_calls":[`+call("0", `{"a":1}`)+`]}`, "")}, chatChunk("{}", "tool_calls"), streamEnd),
			func(g *got) bool {
				return g.recovery.Outcome == "valid" && g.finish == "tool_calls" && len(g.calls) == 1
			},
		},
		{
			"a call in the middle that cannot be given", withTool, []string{wholeChat("", call("0", `{"a":1}`)+","+call("1", `{"a":`)+","+call("2", `{"a":3}`), "tool_calls")},
			append([]string{chatRole}, chatChunk(`{"tool_calls":[`+call("0", `{"a":1}`)+`]}`, ""), chatChunk(`{"tool_calls":[`+call("1", `{"a":`)+`]}`, ""),
				chatChunk(`{"tool_calls":[`+call("2", `{"a":3}`)+`]}`, "tool_calls"), streamEnd),
			func(g *got) bool {
				return g.finish == "length" && len(g.calls) == 2 && g.calls[1] == gotCall{"call_2", "f", `{"a":3}`} && len(g.recovery.ToolCalls) == 3
			},
		},
		{
			"a refusal", asObject, []string{null(wholeChat("", "", "stop"))},
			append([]string{strings.Replace(chatRole, `"content":""`, `"refusal":"no"`, 1)}, chatChunk("{}", "stop"), streamEnd),
			func(g *got) bool { return g.recovery.Outcome == "valid" && g.finish == "stop" },
		},
		{
			"halves of a pair", "", []string{strings.Replace(wholeChat("xy", "", "stop"), "xy", `a \ud83d\ude00 b`, 1)},
			append([]string{chatRole}, chatChunk(`{"content":"a \ud83d"}`, ""), chatChunk(`{"content":"\ude00 b"}`, ""), chatChunk("{}", "stop"), streamEnd),
			func(g *got) bool { return g.text == "a 😀 b" },
		},
	} {
		for i, pieces := range [][]string{tc.whole, tc.stream} {
			kind := []string{asJSON, events}[i]
			r := recoverRig(t, gateway.Recovery{}, &scripted{answer: func(int, string) (string, []string) { return kind, append([]string{}, pieces...) }})
			a := r.send("POST", "/v1/chat/completions", chatBody(tc.more+fmt.Sprintf(`,"stream":%v,"unfray":{"recover":"repair"}`, i == 1)))
			if g := readRecovered(t, a, 0); g.recovery == nil || !tc.check(g) {
				t.Errorf("%s, %s: %+v %+v\n%s", tc.name, kind, g, g.recovery, a.body)
			}
		}
	}
}

// The usage of an answer of several choices has the tokens of all continuations.
func TestRecoverUsageOfChoices(t *testing.T) {
	m := &byHeart{script: longProse, limit: 150}
	up := &scripted{answer: func(n int, body string) (string, []string) {
		if n > 0 {
			return m.answer(n, body)
		}
		cut := jsonString(longProse[:80])
		return asJSON, []string{`{"choices":[{"index":0,"text":` + cut + `,"finish_reason":"length"},{"index":1,"text":` + cut + `,"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`}
	}}
	r := recoverRig(t, gateway.Recovery{}, up)
	a := r.send("POST", "/v1/completions", `{"model":"m","prompt":"PROMPT ","n":2,"unfray":{"recover":"full"}}`)
	for i := range 2 {
		if g := readRecovered(t, a, i); g.text != longProse || g.usage.CompletionTokens != 7*len(up.bodies) || g.usage.TotalTokens != 5+7*len(up.bodies) {
			t.Errorf("choice %d: %+v after %d requests", i, g, len(up.bodies))
		}
	}
}

// A comment does not wait for the text before it.
func TestRecoverPassesComments(t *testing.T) {
	seen := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		for _, piece := range []string{chatChunk(`{"content":"<th"}`, ""), ": ping\n\n"} {
			io.WriteString(w, piece)
			http.NewResponseController(w).Flush()
		}
		select {
		case <-seen:
		case <-time.After(20 * time.Second):
			t.Error("the comment waits")
		}
		io.WriteString(w, chatChunk(`{"content":"ree"}`, "")+chatChunk("{}", "stop")+streamEnd)
	}))
	defer server.Close()
	up := &gateway.Upstream{Transport: redirect{server.Listener.Addr().String()}}
	g, err := gateway.New(gateway.Config{Models: []gateway.Model{{Name: "m", Upstream: up, Recovery: gateway.Recovery{Mode: gateway.RecoverRepair}}}, Log: newLog(&bytes.Buffer{})})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g)
	defer front.Close()
	resp, err := http.Post(front.URL+"/v1/chat/completions", asJSON, strings.NewReader(chatBody(`,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all []byte
	buf, told := make([]byte, 256), false
	for {
		n, err := resp.Body.Read(buf)
		all = append(all, buf[:n]...)
		if !told && bytes.Contains(all, []byte(": ping")) {
			told = true
			close(seen)
		}
		if err != nil {
			break
		}
	}
	if g := readRecovered(t, &answer{200, resp.Header, all}, 0); g.text != "<three" || !g.done {
		t.Errorf("%+v in %s", g, all)
	}
}

// A client's key holds for what the gateway asks in its place.
func TestRecoverKeepsToKeys(t *testing.T) {
	up := &scripted{answer: func(_ int, body string) (string, []string) {
		return asJSON, []string{wholeChat(map[bool]string{true: `{"a":1}`, false: "no"}[strings.Contains(body, `"other"`)], "", "stop")}
	}}
	const secret = "0123456789abcdef0123456789abcdef"
	for _, models := range [][]string{nil, {"m"}} {
		up.bodies = nil
		r := recoverRig(t, gateway.Recovery{Mode: gateway.RecoverRepair, Fallback: "other"}, up, func(c *gateway.Config) {
			c.Models = append(c.Models, gateway.Model{Name: "other", Upstream: c.Default})
			c.Keys = []gateway.Key{{Name: "k", SHA256: hash(secret), Models: models}}
		})
		g := readRecovered(t, r.send("POST", "/v1/chat/completions", chatBody(asObject), "Authorization", "Bearer "+secret), 0)
		if want := map[bool]string{true: `{"a":1}`, false: "no"}[models == nil]; g.text != want || (len(up.bodies) == 2) != (models == nil) {
			t.Errorf("models %v: %+v after %q", models, g, up.bodies)
		}
	}
}
