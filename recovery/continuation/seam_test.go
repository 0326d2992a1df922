package continuation

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPlan(t *testing.T) {
	long := strings.Repeat("many words in one string, ", 30)
	for _, tt := range []struct {
		name, text string
		o          Options
		require    string
		reason     Reason
	}{
		{"the last words", "The old mill stood by the river. The water be", Options{}, " The water be", ""},
		{"more of them, if they come twice", "We saw the water. They saw the water", Options{}, " They saw the water", ""},
		{"white space at the end", "The old mill stood by the river.\n\n", Options{}, " the river.\n\n", ""},
		{"Chinese", "北京是中华人民共和国的首都，位于华北平原", Options{}, "都，位于华北平原", ""},
		{"a word without an end", strings.Repeat("abcdefghij", 60), Options{}, "cdefghij", ""},
		{"a short text", "The ca", Options{}, "The ca", ""},
		{"a fence is not divided", "```go\nx", Options{}, "```go\nx", ""},
		{"behind reasoning", "<think>Well.</think>\n\nThe ca", Options{}, "\n\nThe ca", ""},

		{"the last member", `{"name": "Ann Miller", "city": "San Fr`, Options{}, ` "city": "San Fr`, ""},
		{"a member that is long enough", `{"a": 1, "b": 2, "c": 3`, Options{}, ` "b": 2, "c": 3`, ""},
		{"inside a nested object", `{"a": {"b": [1, 2], "cc": {"dd": "eeee`, Options{}, `"dd": "eeee`, ""},
		{"inside a name", `{"a": "x", "long name`, Options{}, ` "long name`, ""},
		{"inside a literal", `{"a": "x", "flag": tru`, Options{}, ` "flag": tru`, ""},
		{"pretty", "{\n  \"a\": 1,\n  \"bcdef\": 2", Options{}, "\n  \"bcdef\": 2", ""},
		{"white space until the limit", `{"a": "some text"` + strings.Repeat("\n", 50), Options{}, `"a": "some text"` + strings.Repeat("\n", 50), ""},
		{"a long string", `{"a": "` + long + `and the end`, Options{}, ` and the end`, ""},
		{"a long string that ends in an escape", `{"a": "` + long + `and caf\u00`, Options{}, ` and caf\u00`, ""},
		{"escapes without spaces", `{"a": "` + strings.Repeat(`\u00e9`, 200), Options{}, `9\u00e9`, ""},
		{"JSON in a fence", "Here:\n```json\n{\"a\": \"x\", \"bcd\": \"yy", Options{}, ` "bcd": "yy`, ""},
		{"all of short JSON", "```json\n{\"a\"", Options{}, "\n{\"a\"", ""},

		{"exact", `{"city": "San Fr`, Options{Mode: Exact}, "", ""},
		{"exact, white space", "a \n", Options{Mode: Exact}, "", ""},
		{"exact, reasoning", "<think>Let me", Options{Mode: Exact}, "", ""},

		{"nothing", " \n", Options{}, "", EmptyText},
		{"a tool call", "<tool_call>\n{\"name\": ", Options{}, "", InToolCall},
		{"a tool call, exact", "<tool_call>\n{\"name\": ", Options{Mode: Exact}, "", InToolCall},
		{"arguments", `{"path": "/tm`, Options{ToolCall: true}, "", InToolCall},
		{"arguments, allowed", `{"path": "/tm`, Options{ToolCall: true, AllowToolCall: true}, `"path": "/tm`, ""},
		{"reasoning", "<think>Let me", Options{}, "", InReasoning},
	} {
		s, err := Plan([]byte(tt.text), tt.o)
		var e *SeamError
		if errors.As(err, &e) {
			if e.Reason != tt.reason {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if tt.name == "escapes without spaces" {
			tt.require = strings.Repeat(`\u00e9`, len(s.Require)/6)
		}
		if string(s.Require) != tt.require || tt.reason != "" {
			t.Errorf("%s: %q was cut off, want %q; %q is kept", tt.name, s.Require, tt.require, s.Keep)
		}
	}
}

// checkSeam fails unless a seam keeps the rules of its mode.
func checkSeam(t testing.TB, text []byte, s *Seam) {
	t.Helper()
	if got := append(bytes.Clone(s.Keep), s.Require...); !bytes.Equal(got, text) {
		t.Fatalf("%q and %q are not %q", s.Keep, s.Require, text)
	}
	if s.Mode == Exact {
		if len(s.Require) > 0 {
			t.Fatalf("%q was cut off %q", s.Require, text)
		}
		return
	}
	if r, _ := utf8.DecodeLastRune(s.Keep); len(s.Keep) > 0 && unicode.IsSpace(r) {
		t.Fatalf("%q ends in white space", s.Keep)
	}
	if utf8.Valid(text) && !utf8.Valid(s.Keep) {
		t.Fatalf("%q ends inside a character", s.Keep)
	}
	if splitsEscape(text, len(s.Keep)) {
		t.Fatalf("%q ends inside an escape", s.Keep)
	}
	if s.isJSON() && len(s.Keep) > s.shape.json && len(s.Require) > 0 {
		m := &machine{}
		m.run(text[s.shape.json:len(s.Keep)])
		next := text[len(s.Keep)]
		if m.state == inNumber && (isDigit(next) || bytes.IndexByte([]byte(".eE+-"), next) >= 0) || m.state == inLiteral || m.state == atColon {
			t.Fatalf("%q ends inside a member", s.Keep)
		}
	}
}

func TestPlanEverywhere(t *testing.T) {
	for _, doc := range whole {
		for cut := 1; cut < len(doc); cut++ {
			for _, mode := range []Mode{Exact, Prefill, Instruct} {
				s, err := Plan([]byte(doc[:cut]), Options{Mode: mode})
				if err != nil {
					t.Fatalf("%q: %v", doc[:cut], err)
				}
				checkSeam(t, []byte(doc[:cut]), s)
				if mode != Exact && len(s.Require) > 200 {
					t.Errorf("%q: %d bytes were cut off", doc[:cut], len(s.Require))
				}
				if !bytes.HasSuffix(s.Shown(), s.Require) || !utf8.Valid(s.Shown()) && utf8.ValidString(doc[:cut]) {
					t.Errorf("%q: shown is %q", doc[:cut], s.Shown())
				}
			}
		}
	}
}

func TestInstruction(t *testing.T) {
	s, err := Plan([]byte(city), Options{Mode: Instruct})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Instruction(); !strings.Contains(got, city) || !strings.Contains(got, "\n\n\"city\": \"San Fr\n\n") {
		t.Errorf("the instruction is %q", got)
	}
}

// TestOverlap compares with all beginnings, one by one.
func TestOverlap(t *testing.T) {
	words := func(n int) []string {
		all := []string{""}
		for i := 0; i < len(all) && len(all[i]) < n; i++ {
			all = append(all, all[i]+"a", all[i]+"b")
		}
		return all
	}
	for _, tail := range words(7) {
		for _, head := range words(6) {
			var want []int
			for k := min(len(tail), len(head)); k > 0; k-- {
				if strings.HasSuffix(tail, head[:k]) {
					want = append(want, k)
				}
			}
			want = append(want, 0, 0)
			if a, b := overlap([]byte(tail), []byte(head)); a != want[0] || b != want[1] {
				t.Fatalf("%q, %q: %d, %d; want %d, %d", tail, head, a, b, want[0], want[1])
			}
		}
	}
}

func TestSplitsEscape(t *testing.T) {
	const text = `a\n\\u00e9\\\u00e9x\ud83d\ude00 \"`
	inside := map[int]bool{2: true, 4: true, 11: true}
	for i := 13; i <= 17; i++ {
		inside[i] = true // é
	}
	for i := 20; i <= 30; i++ {
		inside[i] = true // a pair, its middle among them
	}
	inside[33] = true
	for i := 1; i < len(text); i++ {
		if got := splitsEscape([]byte(text), i); got != inside[i] {
			t.Errorf("%q|%q: %v", text[:i], text[i:], got)
		}
	}
}
