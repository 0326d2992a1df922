package toolcall

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestMarkWords(t *testing.T) {
	for _, op := range openers {
		if !slices.ContainsFunc(markWords, func(w string) bool { return strings.Contains(op.mark, w) }) {
			t.Errorf("%s holds none of the words", op.mark)
		}
	}
}

// TestHeldBack writes a text without calls byte by byte: little of it may wait.
func TestHeldBack(t *testing.T) {
	text := strings.Repeat("Some prose, a <b>tag</b>, `code`, [a link](url), 2 < 3.\n\n```go\nf(x)\n```\n- {\"a\": 1}\n{\"b\": [1, \"<tool_call>\"]}\n{\"id\": 7, \"content\": \"a long answer\", \"name\": \"f\"}\n", 20)
	s := NewStream(Options{Tools: tools})
	given := 0
	for i := range len(text) {
		out, _, _ := s.Write([]byte{text[i]})
		if given += len(out); i+1-given > 32 {
			t.Fatalf("%d bytes wait behind %q", i+1-given, text[:i+1])
		}
	}
	out, _, _ := s.Close()
	if given+len(out) != len(text) {
		t.Errorf("%d of %d bytes", given+len(out), len(text))
	}
	if _, _, err := s.Write([]byte("x")); err == nil {
		t.Error("a closed stream takes text")
	}
}

// TestStreamIsPrompt writes a call byte by byte: its name comes with the first of its
// arguments, and these come while the call goes on.
func TestStreamIsPrompt(t *testing.T) {
	content := strings.Repeat("line of code;\\n", 100)
	for _, text := range []string{
		"<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"" + content + "\"}}\n</tool_call>",
		"[TOOL_CALLS]write_file[ARGS]{\"path\": \"a\", \"content\": \"" + content + "\"}",
		"<function=write_file>\n<parameter=content>\n" + content + "\n</parameter>\n</function>",
		"{\"name\": \"write_file\", \"parameters\": {\"content\": \"" + content + "\"}}",
		"<tool_call>\n{\"name\": \"write_file\", \"arguments\": \"{\\\"content\\\": \\\"" + strings.ReplaceAll(content, `\`, `\\`) + "\\\"}\"}\n</tool_call>",
	} {
		s := NewStream(Options{Tools: tools})
		given := 0
		for i := range len(text) {
			_, deltas, _ := s.Write([]byte{text[i]})
			for _, d := range deltas {
				given += len(d.Arguments)
			}
			if i > 100 && i < len(text)-100 && i-given > 400 {
				t.Fatalf("%d bytes of arguments wait behind %d of %q", i-given, i, text[:60])
			}
		}
	}
}

func TestMaxCalls(t *testing.T) {
	one := "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"
	for _, text := range []string{strings.Repeat(one, 5), "[TOOL_CALLS]" + strings.Repeat("f[ARGS]{}[TOOL_CALLS]", 5)} {
		r := Find([]byte(text), Options{MaxCalls: 3})
		checkResult(t, []byte(text), r)
		if len(r.Calls) != 3 || len(r.Rest) == 0 {
			t.Errorf("%d calls, rest %q", len(r.Calls), r.Rest)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	call := "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"" + strings.Repeat("line of code;\\n", 5000) + "\"}}\n</tool_call>"
	for _, c := range []struct{ name, text string }{
		{"prose", strings.Repeat("Lorem ipsum dolor sit amet, (consectetur) adipiscing elit.\n", 1000)},
		{"prose with words", strings.Repeat("The function calls a tool <b>often</b> `x`, get_weather too.\n", 1000)},
		{"JSON", "[" + strings.Repeat("{\"name\": \"Ann\", \"tags\": [1, 2.5, true]},", 1500) + "{}]"},
		{"call", call},
	} {
		text := []byte(c.text)
		b.Run(c.name+"/whole", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Find(text, Options{Tools: tools[:1]})
			}
		})
		b.Run(c.name+"/stream", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := NewStream(Options{Tools: tools})
				for p := range bytes.SplitAfterSeq(text, []byte(" ")) {
					s.Write(p)
				}
				s.Close()
			}
		})
	}
}
