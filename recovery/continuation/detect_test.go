package continuation

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

func TestDetect(t *testing.T) {
	const answer = "The capital of France is Paris. It lies on the Seine."
	for _, tt := range []struct {
		name      string
		text      string
		o         DetectOptions
		cut       bool
		malformed bool
		why       []Why
		open      string // kinds
	}{
		{"a whole answer", answer, DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"a whole answer at the limit", answer, DetectOptions{FinishReason: "length"}, true, false, []Why{FinishLength}, ""},
		{"Anthropic's reason", answer, DetectOptions{FinishReason: "max_tokens"}, true, false, []Why{FinishLength}, ""},
		{"Gemini's reason", answer, DetectOptions{FinishReason: "MAX_TOKENS"}, true, false, []Why{FinishLength}, ""},
		{"nothing is known", answer, DetectOptions{}, false, false, nil, ""},
		{"a sentence in the middle", answer + " In sum", DetectOptions{FinishReason: "stop"}, false, false, []Why{MidSentence}, ""},
		{"at the cap, although it says stop", answer + " In sum", DetectOptions{FinishReason: "stop", CompletionTokens: 20, MaxTokens: 20}, true, false, []Why{UsageAtCap, MidSentence}, ""},
		{"at the cap, ended", answer, DetectOptions{FinishReason: "stop", CompletionTokens: 20, MaxTokens: 20}, false, false, []Why{UsageAtCap}, ""},
		{"at the cap, no reason", answer, DetectOptions{CompletionTokens: 20, MaxTokens: 20}, true, false, []Why{UsageAtCap}, ""},
		{"inside a character", "caf\xc3", DetectOptions{FinishReason: "stop"}, true, false, []Why{MidCharacter}, ""},

		{"open JSON, although it says stop", `{"content": "abc`, DetectOptions{FinishReason: "stop"}, true, false, []Why{OpenStructure}, "object string"},
		{"open arguments, although it says tool_calls", `{"content": "abc`, DetectOptions{FinishReason: "tool_calls"}, true, false, []Why{OpenStructure}, "object string"},
		{"malformed and whole", `{"action": listt_windows"}`, DetectOptions{FinishReason: "tool_calls"}, false, true, nil, ""},
		{"malformed and whole, at the limit", `{"action": listt_windows"}`, DetectOptions{FinishReason: "length"}, false, true, []Why{FinishLength}, ""},
		{"malformed and cut", `{'a': 'x', 'b': 'y`, DetectOptions{FinishReason: "stop"}, true, true, []Why{OpenStructure}, "object string"},
		{"whole JSON at the limit", `{"a": [1, 2]}`, DetectOptions{FinishReason: "length"}, false, false, []Why{FinishLength}, ""},
		{"white space until the limit", `{"a": [1, 2]}` + strings.Repeat("\n", 500), DetectOptions{FinishReason: "length"}, false, false, []Why{FinishLength}, ""},
		{"white space inside until the limit", `{"a": [1, 2]` + strings.Repeat("\n", 500), DetectOptions{FinishReason: "length"}, true, false, []Why{OpenStructure, FinishLength}, "object"},
		{"JSON asked for, none there", "I cannot do that.", DetectOptions{FinishReason: "stop", Form: JSON}, false, true, nil, ""},
		{"JSON asked for, a cut number", "12", DetectOptions{FinishReason: "length", Form: JSON}, true, false, []Why{FinishLength}, ""},
		{"JSON asked for, in a fence", "```json\n{\"a\": 1}\n```", DetectOptions{FinishReason: "length", Form: JSON}, false, true, []Why{FinishLength}, ""},
		{"JSON in prose", `Here it is: {"a": [1, {"b": "c`, DetectOptions{FinishReason: "stop"}, true, false, []Why{OpenStructure}, "object array object string"},
		{"an open fence with JSON", "```json\n{\"a\": [1", DetectOptions{FinishReason: "stop"}, true, false, []Why{OpenStructure}, "fence object array number"},
		{"a fence whose closer was forgotten", "```json\n{\"a\": [1]}\n", DetectOptions{FinishReason: "stop"}, false, false, []Why{UnclosedFence}, "fence"},
		{"an open fence with code", "Look:\n\n```go\nfunc f() {\n", DetectOptions{FinishReason: "stop"}, true, false, []Why{UnclosedFence}, "fence"},
		{"an open fence in a list", "1. Look:\n   ```go\n   func f() {\n", DetectOptions{FinishReason: "stop"}, true, false, []Why{UnclosedFence}, "fence"},
		{"a closed fence", "Look:\n\n```go\nfunc f() {}\n```\n", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"a closed fence with a shorter one inside", "````md\n```go\nx\n```\n````", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"nothing but a closed fence, at the limit", "```go\nfunc f() {}\n```", DetectOptions{FinishReason: "length"}, false, false, []Why{FinishLength}, ""},
		{"other marks do not close it", "~~~\nx\n```\n", DetectOptions{FinishReason: "stop"}, true, false, []Why{UnclosedFence}, "fence"},
		{"inline code is no fence", "Use ```x``` here.", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"open reasoning", "<think>Let me see", DetectOptions{FinishReason: "length"}, true, false, []Why{OpenStructure, FinishLength}, "reasoning"},
		{"JSON behind reasoning", "<think>{\"x\"?</think>\n{\"a\": ", DetectOptions{FinishReason: "stop"}, true, false, []Why{OpenStructure}, "object value"},
		{"an open tool call", "<tool_call>\n{\"name\": \"f\", \"arguments\": {", DetectOptions{FinishReason: "stop"}, true, false, []Why{OpenStructure}, "tool_call"},
		{"a closed tool call", "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"tags inside JSON", `{"text": "<tool_call> and <think>"}`, DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"a tag that is spoken of", "The model writes [TOOL_CALLS] before a call.", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"a footnote is no array", "[1] Smith, 2019. It was long.", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"a link is no array", "[Paris](https://example.org) is the capital.", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"a template is no object", "{name} is the placeholder.", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
		{"JSON and prose behind it", "{\"a\": 1}\n\nThis object has one member", DetectOptions{FinishReason: "length"}, true, false, []Why{FinishLength}, ""},
		{"empty", "", DetectOptions{FinishReason: "stop"}, false, false, nil, ""},
	} {
		got := Detect([]byte(tt.text), tt.o)
		var kinds []string
		for _, o := range got.Open {
			kinds = append(kinds, o.Kind)
		}
		if got.Cut != tt.cut || got.Malformed != tt.malformed || !slices.Equal(got.Why, tt.why) || strings.Join(kinds, " ") != tt.open {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// TestDetectEveryPrefix cuts JSON everywhere: no beginning passes for whole, and none
// for malformed.
func TestDetectEveryPrefix(t *testing.T) {
	for _, doc := range whole[:3] {
		for _, before := range []string{"", "```json\n", "<think>Hm {\"</think>\n\n"} {
			for cut := 3; cut < len(doc); cut++ {
				got := Detect([]byte(before+doc[:cut]), DetectOptions{FinishReason: "stop"})
				if !got.Cut || got.Malformed || !got.Has(OpenStructure) || !got.IsOpen() {
					t.Fatalf("%q: %+v", before+doc[:cut], got)
				}
			}
			if got := Detect([]byte(before+doc), DetectOptions{FinishReason: "stop"}); got.Cut || got.Malformed {
				t.Errorf("%q: %+v", before+doc, got)
			}
		}
	}
}

// machineCases are looked at by the strict validator too.
var machineCases = []string{
	``, ` `, `{`, `}`, `{}`, `[]`, `[1]`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `01`, `-`, `-0`, `1.`, `1.5e+3`, `1e`, `[1 2]`, `tru`, `true`, `truex`,
	`nul`, `"a`, `"\x"`, `"\u12"`, `"\u12G4"`, `"\u00e9"`, "\"a\nb\"", `[{"a":[{}]}]`, `{"a":1}}`, `{"a":1} x`, `[1}`, `{"a":[1}`, ` [ 1 , -2.5E-3 , null ] `, `{1:2}`, `[-]`, `[0.]`, `[1.e3]`, `"a" "b"`, `\`,
}

// compareMachine fails unless the machine goes as far as the validator.
func compareMachine(t testing.TB, text []byte) {
	t.Helper()
	m := &machine{}
	n := m.run(text)
	err := jsonrepair.Check(text, 0)
	viable := err == nil || err.Offset == len(text)
	if !utf8.Valid(text) {
		return // the machine takes bytes
	}
	if (n == len(text)) != viable {
		t.Fatalf("%q: the machine took %d of %d bytes, the validator says %v", text, n, len(text), err)
	}
	complete := n == len(text) && (m.end > 0 || m.depth == 0 && m.state == inNumber && m.number.whole())
	if complete != json.Valid(text) {
		t.Fatalf("%q: whole %v", text, complete)
	}
}

func TestMachine(t *testing.T) {
	for _, text := range append(append([]string{}, machineCases...), whole[:3]...) {
		for cut := range len(text) + 1 {
			compareMachine(t, []byte(text[:cut]))
		}
	}
}
