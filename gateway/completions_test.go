package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/wire"
)

const (
	paris = "The capital of France is Paris"
	code  = "function userName"
	kanji = "Hello, 日本 🙂 world"
)

func TestCompletion(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{paris}})
	c := r.complete(`{"model":"toy","prompt":"The capital of","temperature":0,"max_tokens":50}`).decode(t)
	if c.Object != "text_completion" || c.Model != "toy" || !strings.HasPrefix(c.ID, "cmpl-") || len(c.Choices) != 1 {
		t.Fatalf("%+v", c)
	}
	ch := c.Choices[0]
	if ch.Text != " France is Paris" || text(ch.FinishReason) != "stop" || ch.Bytes != nil || ch.Logprobs != nil {
		t.Errorf("%+v, finish %s", ch, text(ch.FinishReason))
	}
	// "The", " capital", " of"; " France", " is", " Paris".
	if *c.Usage != (wire.Usage{PromptTokens: 3, CompletionTokens: 3, TotalTokens: 6, PromptTokensDetails: c.Usage.PromptTokensDetails}) {
		t.Errorf("usage %+v", *c.Usage)
	}
	c = r.complete(`{"prompt":"The capital of","temperature":0,"max_tokens":2}`).decode(t)
	if ch := c.Choices[0]; ch.Text != " France is" || text(ch.FinishReason) != "length" || c.Usage.CompletionTokens != 2 {
		t.Errorf("max_tokens 2: %q, %s, %+v", ch.Text, text(ch.FinishReason), c.Usage)
	}
}

func TestCompletionHeals(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{code}})
	for _, c := range []struct {
		name, body string
		headers    []string
		text       string // "" if the model has lost its way
		report     bool
		mode       heal.Mode
	}{
		{"by default", `{"prompt":"function user","temperature":0}`, nil, "Name", true, heal.Exact},
		{"asked for", `{"prompt":"function user","temperature":0,"unfray":{"heal":"stable"}}`, nil, "Name", true, heal.Stable},
		{"last", `{"prompt":"function user","temperature":0,"unfray":{"heal":"last"}}`, nil, "Name", true, heal.Last},
		{"by header", `{"prompt":"function user","temperature":0}`, []string{"X-Unfray-Heal", "last"}, "Name", true, heal.Last},
		{"body before header", `{"prompt":"function user","temperature":0,"unfray":{"heal":"stable"}}`, []string{"X-Unfray-Heal", "off"}, "Name", true, heal.Stable},
		{"off is reported when asked for", `{"prompt":"function user","temperature":0,"unfray":{"heal":"off"}}`, nil, "", true, heal.Off},
	} {
		a := r.complete(c.body, c.headers...).decode(t)
		got := a.Choices[0].Text
		if c.text != "" && got != c.text || c.text == "" && strings.HasPrefix(got, "Name") {
			t.Errorf("%s: text %q, want %q", c.name, got, c.text)
		}
		if (a.Unfray != nil) != c.report {
			t.Errorf("%s: report %+v", c.name, a.Unfray)
		} else if h := a.Unfray.Healing; h.Mode != c.mode {
			t.Errorf("%s: mode %q, want %q", c.name, h.Mode, c.mode)
		} else if c.mode != heal.Off && (h.TokensRemoved < 1 || h.BytesPending < len("user") || h.TokensReplayed != 1 || len(h.Notes) > 0) {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}

// A clean prompt and no wish leave no report.
func TestNoReportWithoutHealing(t *testing.T) {
	r := newRig(t, rigOptions{cfg: gateway.Config{Models: []gateway.Model{{Heal: heal.Off}}}})
	if a := r.complete(`{"prompt":"function user"}`); strings.Contains(string(a.body), "unfray") {
		t.Errorf("%s", a.body)
	}
}

func TestHealingLimits(t *testing.T) {
	r := newRig(t, rigOptions{cfg: gateway.Config{Models: []gateway.Model{{Heal: heal.Off, AllowedHeal: []heal.Mode{heal.Off, heal.Last}}}}})
	for body, param := range map[string]string{
		`{"prompt":"The","unfray":{"heal":"stable"}}`:    "unfray.heal",
		`{"prompt":"The","unfray":{"heal":"whatever"}}`:  "unfray.heal",
		`{"prompt":"The","unfray":{"recover":"always"}}`: "unfray.recover",
		`{"prompt":"The","unfray":{"heal":3}}`:           "unfray.heal",
	} {
		a := r.complete(body)
		if e := a.apiError(t); a.status != 400 || text(e.Param) != param {
			t.Errorf("%s: %d %+v", body, a.status, e)
		}
	}
	for _, h := range []string{"X-Unfray-Heal", "X-Unfray-Recover"} {
		if a := r.complete(`{"prompt":"The"}`, h, "always"); a.status != 400 || text(a.apiError(t).Param) != h {
			t.Errorf("%s: %d %s", h, a.status, a.body)
		}
	}
	if a := r.complete(`{"prompt":"The","unfray":{"heal":"last","recover":"off"}}`, "X-Unfray-Recover", "off"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestSeveralPromptsAndChoices(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{paris, code}})
	ids, _ := json.Marshal(r.tok.Encode(nil, []byte("function")))
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"prompt":["The capital","function"],"n":6,"best_of":6,"temperature":0,"max_tokens":50,"stream":%v,"unfray":{"heal":"stable"},"stream_options":{"include_usage":true}}`, stream)
		a := r.complete(body)
		var c *completion
		if stream {
			c = joined(a.chunks(t))
			slices.SortFunc(c.Choices, func(a, b choice) int {
				return a.Index - b.Index
			})
		} else {
			c = a.decode(t)
		}
		if len(c.Choices) != 12 {
			t.Fatalf("stream %v: %d choices", stream, len(c.Choices))
		}
		for i, ch := range c.Choices {
			want := " of France is Paris"
			if i >= 6 {
				want = " userName"
			}
			if ch.Index != i || ch.Text != want || text(ch.FinishReason) != "stop" || ch.Unfray == nil {
				t.Errorf("stream %v: choice %d: %+v", stream, i, ch)
			}
		}
		// Two tokens and one, not multiplied by n. Generated: " of", " France",
		// " is", " Paris" and " ", "userName", six times.
		if c.Usage.PromptTokens != 3 || c.Usage.CompletionTokens != 36 || c.Usage.TotalTokens != 39 {
			t.Errorf("stream %v: usage %+v", stream, c.Usage)
		}
	}
	c := r.complete(`{"prompt":` + string(ids) + `,"temperature":0}`).decode(t)
	if c.Choices[0].Text != " userName" {
		t.Errorf("prompt of IDs: %q", c.Choices[0].Text)
	}
	c = r.complete(`{"prompt":[` + string(ids) + `,` + string(ids) + `],"temperature":0}`).decode(t)
	if len(c.Choices) != 2 || c.Choices[1].Text != " userName" {
		t.Errorf("two prompts of IDs: %+v", c.Choices)
	}
}

func TestSeeds(t *testing.T) {
	r := newRig(t, rigOptions{})
	texts := func(n, seed int) (out []string) {
		c := r.complete(fmt.Sprintf(`{"prompt":"The quick","n":%d,"seed":%d,"max_tokens":8}`, n, seed)).decode(t)
		for _, ch := range c.Choices {
			out = append(out, ch.Text)
		}
		return out
	}
	three := texts(3, 5)
	if again := texts(3, 5); !slices.Equal(three, again) {
		t.Errorf("same seed: %q, then %q", three, again)
	}
	for i, want := range three { // choice i draws with seed + i
		if got := texts(1, 5+i); got[0] != want {
			t.Errorf("seed %d: %q, as choice %d of seed 5: %q", 5+i, got[0], i, want)
		}
	}
	if three[0] == three[1] && three[1] == three[2] {
		t.Errorf("three choices are all %q", three[0])
	}
}

func TestStop(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{paris}})
	for stop, want := range map[string]string{
		`"is"`:              " France ",
		`["nce","is"]`:      " Fra",
		`" of"`:             " France is Paris", // in the prompt only
		`"f Fr"`:            " France is Paris", // across the prompt's end
		`["x","y","aris "]`: " France is Paris",
		`[]`:                " France is Paris",
	} {
		for _, stream := range []bool{false, true} {
			a := r.complete(fmt.Sprintf(`{"prompt":"The capital of","temperature":0,"max_tokens":50,"stop":%s,"stream":%v}`, stop, stream))
			var c *completion
			if stream {
				c = joined(a.chunks(t))
			} else {
				c = a.decode(t)
			}
			if got := c.Choices[0]; got.Text != want || text(got.FinishReason) != "stop" {
				t.Errorf("stop %s, stream %v: %q, %s; want %q", stop, stream, got.Text, text(got.FinishReason), want)
			}
		}
	}
}

func TestEcho(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{code}})
	for _, stream := range []bool{false, true} {
		a := r.complete(fmt.Sprintf(`{"prompt":"function us","echo":true,"temperature":0,"stream":%v}`, stream))
		var c *completion
		if stream {
			c = joined(a.chunks(t))
		} else {
			c = a.decode(t)
		}
		if got := c.Choices[0].Text; got != code {
			t.Errorf("stream %v: %q, want %q", stream, got, code)
		}
	}
	if a := r.complete(`{"prompt":"a","echo":true,"logprobs":1}`); a.status != 400 || text(a.apiError(t).Param) != "echo" {
		t.Errorf("%d %s", a.status, a.body)
	}
	small := newRig(t, rigOptions{cfg: gateway.Config{MaxBodyBytes: 1000}})
	if a := small.complete(`{"prompt":"` + strings.Repeat("a ", 250) + `","echo":true,"n":100}`); a.status != 400 || text(a.apiError(t).Param) != "echo" {
		t.Errorf("%d %.200s", a.status, a.body)
	}
}

func TestCompletionLogprobs(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{kanji}})
	for _, stream := range []bool{false, true} {
		a := r.complete(fmt.Sprintf(`{"prompt":"Hello, 日","temperature":0,"max_tokens":50,"logprobs":3,"stream":%v,"unfray":{"heal":"stable"}}`, stream))
		var c *completion
		if stream {
			c = joined(a.chunks(t))
		} else {
			c = a.decode(t)
		}
		ch := c.Choices[0]
		if "Hello, 日"+ch.Text != kanji {
			t.Fatalf("stream %v: %q", stream, ch.Text)
		}
		l := ch.Logprobs
		if l == nil || len(l.Tokens) != len(l.TokenLogprobs) || len(l.Tokens) != len(l.TopLogprobs) || len(l.Tokens) != len(l.TextOffset) {
			t.Fatalf("stream %v: %+v", stream, l)
		}
		// The first token began before the prompt's end: "日本" shows "本".
		if got := strings.Join(l.Tokens, ""); got != ch.Text || l.Tokens[0] != "本" {
			t.Errorf("stream %v: tokens %q, text %q", stream, l.Tokens, ch.Text)
		}
		whole := []rune(kanji)
		for i, tok := range l.Tokens {
			// Offsets count characters of prompt and text.
			from := l.TextOffset[i]
			if to := from + utf8.RuneCountInString(tok); to > len(whole) || string(whole[from:to]) != tok {
				t.Errorf("stream %v: token %q at %d of %q", stream, tok, from, kanji)
			}
			if len(l.TopLogprobs[i]) == 0 || len(l.TopLogprobs[i]) > 3 || l.TokenLogprobs[i] > 0 {
				t.Errorf("stream %v: token %q: %v, %v", stream, tok, l.TokenLogprobs[i], l.TopLogprobs[i])
			}
		}
		if c.Unfray == nil || !slices.ContainsFunc(c.Unfray.Healing.Notes, func(n heal.Note) bool { return n.Code == "logprob_straddles" }) {
			t.Errorf("stream %v: no note on the straddling token: %+v", stream, c.Unfray)
		}
	}
	c := r.complete(`{"prompt":"Hello, ","temperature":0,"logprobs":0}`).decode(t)
	if l := c.Choices[0].Logprobs; l == nil || len(l.Tokens) == 0 || l.TopLogprobs != nil {
		t.Errorf("logprobs 0: %+v", l)
	}
	if a := r.complete(`{"prompt":"Hello, ","logprobs":21}`); a.status != 400 || text(a.apiError(t).Param) != "logprobs" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A prompt of IDs may end inside a character, and a token limit may cut one.
func TestTextThatIsNotUTF8(t *testing.T) {
	r := newRig(t, rigOptions{scripts: []string{kanji}})
	idsOf := func(s string) string {
		b, err := json.Marshal(r.tok.Encode(nil, []byte(s)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		name, rest string
		prompt     string
		exact      string
	}{
		// 日本 🙂: e6 97 a5, e6 9c ac, space, f0 9f 99 82.
		{"begins inside a character", `"max_tokens":50,"unfray":{"heal":"off"},"stop":"本"`, idsOf("a\xe6\x97"), ""},
		{"begins inside, healed", `"max_tokens":50`, idsOf("Hello, \xe6\x97"), "\xa5本 🙂 world"},
		{"begins inside, echo", `"max_tokens":50,"echo":true`, idsOf("Hello, \xe6\x97"), kanji},
	} {
		body := `{"prompt":` + c.prompt + `,"temperature":0,` + c.rest
		whole := r.complete(body + `}`).decode(t).Choices[0]
		streamed := joined(r.complete(body + `,"stream":true}`).chunks(t)).Choices[0]
		if whole.Text != streamed.Text {
			t.Errorf("%s: whole %q, streamed %q", c.name, whole.Text, streamed.Text)
		}
		if c.exact == "" {
			continue
		}
		exact := whole.Bytes
		if exact == nil {
			exact = []byte(whole.Text)
		}
		if string(exact) != c.exact {
			t.Errorf("%s: %q, want %q", c.name, exact, c.exact)
		}
		if utf8.ValidString(c.exact) != (whole.Bytes == nil) {
			t.Errorf("%s: bytes %s beside text %q", c.name, base64.StdEncoding.EncodeToString(whole.Bytes), whole.Text)
		}
	}
	healed := r.complete(`{"prompt":` + idsOf("Hello, \xe6\x97") + `,"temperature":0,"max_tokens":50}`).decode(t).Choices[0]
	if healed.Text != "\ufffd本 🙂 world" {
		t.Errorf("text %q", healed.Text)
	}
}

func TestBadCompletions(t *testing.T) {
	r := newRig(t, rigOptions{toy: backendtest.Options{ContextLength: 64}, cfg: gateway.Config{MaxBodyBytes: 4096}})
	for _, c := range []struct {
		body   string
		status int
		param  string
		code   string
	}{
		{`{"prompt":""}`, 400, "prompt", "null"}, // no BOS to start from
		{`{}`, 400, "prompt", "null"},
		{`{"prompt":null}`, 400, "prompt", "null"},
		{`{"prompt":[]}`, 400, "prompt", "null"},
		{`{"prompt":[[]]}`, 400, "prompt", "null"},
		{`{"prompt":[1,100000]}`, 400, "prompt", "invalid_token"},
		{`{"prompt":[1,-1]}`, 400, "prompt[1]", "null"},
		{`{"prompt":[1,"x"]}`, 400, "prompt[1]", "null"},
		{`{"prompt":"` + strings.Repeat("a b ", 100) + `"}`, 400, "prompt", "context_length_exceeded"},
		{`{"prompt":[` + strings.Repeat("9,", 100) + `9]}`, 400, "prompt", "context_length_exceeded"},
		{`{"prompt":"` + strings.Repeat("a", 5000) + `"}`, 413, "null", "request_too_large"},
		{`{"prompt":"The","model":"other"}`, 404, "model", "model_not_found"},
		{`{"prompt":"The","max_tokens":0}`, 400, "max_tokens", "null"},
		{`{"prompt":"The","max_tokens":-1}`, 400, "max_tokens", "null"},
		{`{"prompt":"The","max_tokens":"many"}`, 400, "max_tokens", "null"},
		{`{"prompt":"The","n":0}`, 400, "n", "null"},
		{`{"prompt":"The","n":129}`, 400, "n", "null"},
		{`{"prompt":["The","The"],"n":65}`, 400, "n", "null"},
		{`{"prompt":"The","n":1000000000}`, 400, "n", "null"},
		{`{"prompt":"The","n":2,"best_of":3}`, 400, "best_of", "null"},
		{`{"prompt":"The","temperature":-1}`, 400, "temperature", "null"},
		{`{"prompt":"The","temperature":1e999}`, 400, "temperature", "null"},
		{`{"prompt":"The","top_p":1.5}`, 400, "top_p", "null"},
		{`{"prompt":"The","top_p":0}`, 400, "top_p", "null"},
		{`{"prompt":"The","top_k":-7}`, 400, "top_k", "null"},
		{`{"prompt":"The","presence_penalty":3}`, 400, "presence_penalty", "null"},
		{`{"prompt":"The","logit_bias":{"5":101}}`, 400, "logit_bias", "null"},
		{`{"prompt":"The","logit_bias":{"five":1}}`, 400, "logit_bias", "null"},
		{`{"prompt":"The","logit_bias":{"99999":1}}`, 400, "logit_bias", "invalid_token"},
		{`{"prompt":"The","stop":["a",""]}`, 400, "stop", "null"},
		{`{"prompt":"The","stop":[` + strings.Repeat(`"x",`, 16) + `"x"]}`, 400, "stop", "null"},
		{`{"prompt":"The","stop":3}`, 400, "stop", "null"},
		{`{"prompt":"The","suffix":" end"}`, 400, "suffix", "null"},
		{`{"prompt":"The","stream":"yes"}`, 400, "stream", "null"},
		{`{"prompt":"The","prompt":"An"}`, 400, "prompt", "null"},
		{`{"prompt":"The"`, 400, "null", "null"},
		{`{"prompt":"The\ud83d"}`, 400, "null", "null"},
		{"{\"prompt\":\"The\xff\"}", 400, "null", "null"},
		{``, 400, "null", "null"},
		{`[]`, 400, "null", "null"},
		{strings.Repeat("[", 100), 400, "null", "null"},
	} {
		a := r.complete(c.body)
		e := a.apiError(t)
		if a.status != c.status || text(e.Param) != c.param || text(e.Code) != c.code {
			t.Errorf("%.80s: status %d, param %s, code %s (%s); want %d, %s, %s",
				c.body, a.status, text(e.Param), text(e.Code), e.Message, c.status, c.param, c.code)
		}
	}
	if a := r.complete(`{"prompt":"The"}`, "Content-Encoding", "gzip"); a.status != 415 {
		t.Errorf("compressed: %d", a.status)
	}
	// And what looks bad but is not.
	for _, body := range []string{
		`{"prompt":[2]}`,            // one special token
		`{"prompt":"<|im_start|>"}`, // the same, spelled
		`{"prompt":[1]}`,
		`{"prompt":"The","suffix":"","n":null,"stop":null,"seed":-3,"top_k":-1,"user":"me","logit_bias":{"5":-100},"max_tokens":3.0}`,
		`{"prompt":"\ud83d\ude42"}`,
		` { "prompt" : "The" } `,
	} {
		if a := r.complete(body); a.status != 200 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

func TestIgnoredFieldsAreListed(t *testing.T) {
	r := newRig(t, rigOptions{})
	a := r.complete(`{"prompt":"The","frobnicate":1,"stream_options":{"x":2},"a b":3,"c\nd":4}`)
	if got := a.header.Get("X-Unfray-Ignored"); a.status != 200 || got != "frobnicate,stream_options.x,?" {
		t.Errorf("%d, X-Unfray-Ignored %q", a.status, got)
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"f%d":0,`, i)
	}
	a = r.complete(`{` + many.String() + `"prompt":"The"}`)
	if got := a.header.Get("X-Unfray-Ignored"); !strings.HasSuffix(got, ",f31,...") {
		t.Errorf("X-Unfray-Ignored %q", got)
	}
}

// With a BOS token a model can start from nothing.
func TestEmptyPromptWithBOS(t *testing.T) {
	r := newRig(t, rigOptions{vocab: backendtest.VocabularyOptions{AddBOS: true}, scripts: []string{paris}})
	c := r.complete(`{"prompt":"","temperature":0}`).decode(t)
	if c.Choices[0].Text != paris || c.Usage.PromptTokens != 1 {
		t.Errorf("%q, %+v", c.Choices[0].Text, c.Usage)
	}
}

// Special tokens spelled in a prompt count, as editors' templates need.
func TestPromptSpellsSpecialTokens(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.complete(`{"prompt":"<|im_start|>user","temperature":0,"max_tokens":1}`).decode(t)
	if c.Usage.PromptTokens != 2 {
		t.Errorf("%d tokens, want 2", c.Usage.PromptTokens)
	}
}
