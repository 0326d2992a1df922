package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/wire"
)

// sendAny is send for answers that may be cut off.
func (r *rig) sendAny(path, body string) *answer {
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		r.gateway.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	}()
	return &answer{w.Code, w.Header(), w.Body.Bytes()}
}

// FuzzRecoverStage: whatever a server sends, the gateway neither fails nor makes
// events of what were none, and in mode report it changes nothing but for receipts.
func FuzzRecoverStage(f *testing.F) {
	for _, seed := range []string{
		strings.Join(chatStream("stop", "<think>a</think>", "text ", "{\"a\": 1,"), ""),
		strings.Join(callStream("tool_calls", "{\"a\"", ": [1,"), ""),
		strings.Join(interleaved([]string{"one", `{"a":1,}`}), ""),
		wholeChat("<tool_call>{\"name\":\"f\",\"arguments\":{}}", `{"id":"1","function":{"name":"f","arguments":"{a"}}`, "tool_calls"),
		"data: {\"choices\":[{\"index\":7,\"text\":\"\\ud83d\",\"finish_reason\":\"length\"},{\"index\":7}]}\r\n\r\ndata: {\"error\":{}}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"text\":\"a\",\"bytes\":\"/w==\"}]}\n\ndata: {\"choices\":[]}\n\n: c\n\ndata: x",
	} {
		f.Add([]byte(seed), uint64(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, how uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		kind := events
		if how&1 != 0 {
			kind = asJSON
		}
		up := &scripted{answer: func(int, string) (string, []string) { return kind, reslice(rng, []string{string(data)}) }}
		modes := gateway.RecoverModes()
		rec := gateway.Recovery{
			Mode: modes[1+int(how>>1)%3], MaxBytes: 1 << 12, Attempts: 1,
			ToolCalls: []gateway.ToolCallPolicy{gateway.DropCalls, gateway.MarkCalls, gateway.RepairCalls}[int(how>>3)%3],
		}
		r := recoverRig(t, rec, up)
		path := []string{"/v1/chat/completions", "/v1/completions"}[int(how>>5)%2]
		more := fmt.Sprintf(`,"prompt":"p","stream":%v,"n":%d`, kind == events, 1+int(how>>6))
		if how>>7 == 1 {
			more += asObject + withTool
		}
		a := r.sendAny(path, chatBody(more))
		if log := r.log.String(); strings.Contains(log, "panic") {
			t.Fatal(log)
		}
		if len(a.body) > 100*len(data)+1<<16 {
			t.Fatalf("%d bytes became %d", len(data), len(a.body))
		}
		checkEvents(t, data, a.body, kind)
		if rec.Mode == gateway.RecoverReport && !bytes.Contains(a.body, []byte(`"recovery"`)) && a.status == 200 && !bytes.Equal(a.body, data) {
			t.Fatalf("%q\nbecame\n%q", data, a.body)
		}
	})
}

// checkEvents: where all of a server's events are JSON, so are those of the client.
func checkEvents(t *testing.T, sent, got []byte, kind string) {
	t.Helper()
	if kind != events {
		if json.Valid(sent) && !json.Valid(got) {
			t.Fatalf("%s\nbecame\n%s", sent, got)
		}
		return
	}
	all := func(stream []byte) bool {
		r := wire.NewEventReader(bytes.NewReader(stream))
		for {
			e, err := r.Next()
			if err != nil {
				return true
			}
			if string(bytes.TrimSpace(e.Data)) != wire.Done && !json.Valid(e.Data) {
				return false
			}
		}
	}
	if all(sent) && !all(got) {
		t.Fatalf("%q\nbecame\n%q", sent, got)
	}
}

// Streamed and whole, texts of any damage come to the same, but where the text
// itself can be read in several ways.
func TestRecoverStreamIsWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	const sound = `{"name": "A \"quoted\" name", "list": [1, 2.5, true, null, {"x": "é😀"}], "end": "last"}`
	for i := range rounds {
		text := []byte(sound)
		for range rng.IntN(3) {
			at := rng.IntN(len(text))
			switch rng.IntN(4) {
			case 0:
				text = append(text[:at:at], text[at+1:]...)
			case 1:
				text = append(text[:at:at], append([]byte{`{}[],:"`[rng.IntN(7)]}, text[at:]...)...)
			case 2:
				text = text[:max(at, 1)]
			case 3:
				text = append([]byte("Here it is:\n```json\n"), append(text, "\n```\n"...)...)
			}
		}
		text = bytes.ToValidUTF8(text, []byte("?"))
		finish := []string{"stop", "length"}[rng.IntN(2)]
		kind, pieces := asJSON, []string{wholeChat(string(text), "", finish)}
		up := &scripted{answer: func(int, string) (string, []string) { return kind, pieces }}
		r := recoverRig(t, gateway.Recovery{}, up)
		whole := readRecovered(t, r.send("POST", "/v1/chat/completions", chatBody(asObject+`,"unfray":{"recover":"repair"}`)), 0)
		first := ""
		for k := range 3 {
			kind, pieces = events, chatStream(finish, cutText(rng, string(text))...)
			a := r.send("POST", "/v1/chat/completions", chatBody(asObject+`,"stream":true,"unfray":{"recover":"repair"}`))
			stream := readRecovered(t, a, 0)
			if k == 0 {
				first = stream.text
			}
			if stream.text != first {
				t.Fatalf("%q: streamed in two ways it is %q and %q", text, first, stream.text)
			}
			same := whole.recovery.Outcome == "valid" || whole.recovery.Outcome == "repaired" && stream.recovery.Outcome == "repaired" && len(whole.recovery.Edits) == len(stream.recovery.Edits)
			if same && (stream.text != whole.text || stream.finish != whole.finish) {
				t.Errorf("%d: %q: whole %q %s, streamed %q %s", i, text, whole.text, whole.finish, stream.text, stream.finish)
			}
		}
	}
}

// Streams without an end of lines, events or choices are bounded.
func TestRecoverHostileStreams(t *testing.T) {
	for name, piece := range map[string]string{
		"one line":        "data: " + strings.Repeat("a", 1<<10),
		"comments":        ": c\n\n",
		"choices":         "data: {\"choices\":[{\"index\":%d,\"delta\":{\"content\":\"abc\"}}]}\n\n",
		"calls":           "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%d,\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n",
		"arguments":       "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{[{[{[{[\"}}]}}]}\n\n",
		"ends":            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
		"open quotes":     "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\\"\\\\\\\\u12\"}}]}\n\n",
		"thoughts":        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>\"}}]}\n\n",
		"broken JSON":     "data: {\"choices\":[{\n\n",
		"huge numbers":    "data: {\"choices\":[{\"index\":99999999999999999999,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":1e999,\"total_tokens\":-1}}\n\n",
		"twice":           "data: {\"choices\":[{\"index\":0,\"index\":1,\"delta\":{\"content\":\"a\"}}]}\n\n",
		"line feeds":      "\n\r\r\n",
		"text after ends": "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			var pieces []string
			size := 0
			for i := 0; size < 1<<19; i++ {
				p := piece
				if strings.Contains(p, "%d") {
					p = fmt.Sprintf(p, i)
				}
				pieces = append(pieces, p)
				size += len(p)
			}
			for _, mode := range []gateway.RecoverMode{gateway.RecoverReport, gateway.RecoverFull} {
				up := &scripted{answer: func(n int, _ string) (string, []string) {
					if n > 0 {
						return asJSON, []string{wholeChat("more", "", "stop")}
					}
					return events, append([]string{}, pieces...)
				}}
				r := recoverRig(t, gateway.Recovery{Mode: mode, MaxBytes: 1 << 16}, up)
				begun := time.Now()
				a := r.sendAny("/v1/chat/completions", chatBody(`,"stream":true`+withTool))
				if took := time.Since(begun); took > 30*time.Second {
					t.Errorf("%s took %v", mode, took)
				}
				if a.status != 200 || len(a.body) > 3*size {
					t.Errorf("%s: %d, %d bytes of %d", mode, a.status, len(a.body), size)
				}
				if strings.Contains(r.log.String(), "panic") {
					t.Error(r.log)
				}
				if mode == gateway.RecoverReport && !bytes.HasPrefix(a.body, []byte(strings.Join(pieces, "")[:size/2])) {
					t.Errorf("%s changes what came", mode)
				}
			}
		})
	}
}

// Faults of servers while answers are recovered: each request ends, in an answer, an
// error or a cut connection, and none gets another's text.
func TestRecoverFaults(t *testing.T) {
	n := 400
	if *faultRequests > 0 {
		n = *faultRequests
	}
	if testing.Short() {
		n = 100
	}
	words := regexp.MustCompile("word([0-9]+)")
	var log bytes.Buffer
	up := &gateway.Upstream{Transport: faultyAnswers{}}
	cfg := gateway.Config{
		Models: []gateway.Model{
			{Name: "m", Upstream: up, Recovery: gateway.Recovery{Mode: gateway.RecoverFull, Fallback: "other", Attempts: 2}},
			{Name: "other", Upstream: up},
		},
		Log: newLog(&log),
	}
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{gateway: g, log: &log}
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				word := fmt.Sprintf("word%d", i)
				body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s %d"}],"stream":%v%s}`, word, i, i%2 == 0, []string{"", asObject, withTool}[i%3])
				a := r.sendAny("/v1/chat/completions", body)
				for _, digits := range words.FindAllStringSubmatch(string(a.body), -1) {
					if !strings.HasPrefix(fmt.Sprint(i), digits[1]) {
						t.Errorf("request %d got %s", i, a.body)
					}
				}
				if a.status == 500 {
					t.Errorf("request %d: %s", i, a.body)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if strings.Contains(log.String(), "panic") {
		t.Error(log.String())
	}
}

// faultyAnswers is a server that fails in a way that the request's last number
// chooses.
type faultyAnswers struct{}

func (faultyAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var body struct {
		Stream   bool
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, err
	}
	var word string
	var i int
	fmt.Sscanf(body.Messages[0].Content, "%s %d", &word, &i)
	rng := rand.New(rand.NewPCG(uint64(i), uint64(len(data))))
	text := []string{word + " is here. ", `{"a": "` + word + `",}`, "<think>" + word + "</think>{\"a\":1}", `{"a": "` + word, strings.Repeat(word+" again and again. ", 200)}[rng.IntN(5)]
	finish := []string{"stop", "length"}[rng.IntN(2)]
	s := &scripted{answer: func(int, string) (string, []string) { return asJSON, []string{wholeChat(text, "", finish)} }}
	if body.Stream {
		pieces := chatStream(finish, cutText(rng, text)...)
		switch rng.IntN(5) {
		case 0:
			pieces = pieces[:rng.IntN(len(pieces))]
		case 1:
			pieces = append(pieces[:rng.IntN(len(pieces))], "data: {\"error\":{\"message\":\"x\"}}\n\n")
		case 2:
			pieces[rng.IntN(len(pieces))] = "data: {]not json\n\n"
		case 3:
			pieces = pieces[:rng.IntN(len(pieces))]
			s.fails = io.ErrUnexpectedEOF
		}
		s.answer = func(int, string) (string, []string) { return events, pieces }
	} else {
		switch rng.IntN(6) {
		case 0:
			s.fails = io.ErrUnexpectedEOF
		case 1:
			s.answer = func(int, string) (string, []string) { return "text/html", []string{"<html>"} }
		case 2:
			return nil, io.ErrUnexpectedEOF
		}
	}
	req.Body = io.NopCloser(bytes.NewReader(data))
	return s.RoundTrip(req)
}
