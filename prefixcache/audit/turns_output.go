package audit

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/internal/chattemplate"
)

// derive returns what a model writes for the message at an index, in the
// template's own spelling: what follows the prompt when the message is added,
// up to the token that ends the turn.
//
// Where the prompt ends in a reasoning block that the history does not have, the
// answer is the message's reasoning, the end of the block in the spelling that
// goes with its beginning, and what the history has. An answer that the template
// does not end is ended by EOS, since something ended it.
func (t *turnRun) derive(prompt string, at int, now time.Time) (string, error) {
	m := t.messages[at]
	reasoning, _ := chattemplate.Reasoning(m)
	messages := append(append([]*chattemplate.Object(nil), t.history[:at]...), m)
	whole, err := t.render(messages, false, now)
	if err != nil {
		return "", err
	}
	without, err := t.render(t.history[:at], false, now)
	if err != nil {
		without = "" // no history that ends in a question: the header cannot be told
	}
	out := answerIn(prompt, whole, commonBytes([]byte(prompt), []byte(without)), m.Text("content"), reasoning)
	if r := strings.TrimSpace(reasoning); r != "" && !strings.Contains(out, r) {
		t.report.ReasoningHidden = true
	}
	calls, end := t.payload(m, out)
	if !calls {
		t.report.ToolsHidden = true
	}
	return t.cutAnswer(out, end, without == prompt), nil
}

// answerIn is what follows a prompt in the text of the whole. header is where
// the header of the answer begins.
func answerIn(prompt, whole string, header int, content, reasoning string) string {
	n := commonBytes([]byte(prompt), []byte(whole))
	for n < len(prompt) && n > 0 && !utf8.RuneStart(prompt[n]) {
		n--
	}
	open, mark, closing := openThought(prompt)
	switch {
	case n == len(prompt):
		return whole[n:]
	case open >= header && n >= open:
		return closeThought(prompt[open+len(mark):], reasoning, closing, whole[open:])
	case n >= header:
		return whole[n:]
	}
	// What stands before the header is written in another way where an answer
	// follows.
	after := func(s string) (string, bool) {
		i := strings.LastIndex(whole, s)
		if s == "" || i < 0 {
			return "", false
		}
		return whole[i+len(s):], true
	}
	if rest, ok := after(prompt[header:]); ok {
		return rest
	}
	if open >= header {
		if rest, ok := after(prompt[header:open]); ok {
			return closeThought(prompt[open+len(mark):], reasoning, closing, rest)
		}
	}
	return content
}

// openThought finds a reasoning block that a prompt opens at its end: where it
// begins, and its marks; -1 if there is none.
func openThought(prompt string) (at int, open, closing string) {
	trimmed := strings.TrimRightFunc(prompt, unicode.IsSpace)
	for _, m := range thoughts {
		if strings.HasSuffix(trimmed, m.open) {
			return len(trimmed) - len(m.open), m.open, m.close
		}
	}
	return -1, "", ""
}

// closeThought is an answer that begins in a reasoning block. blanks is what
// the prompt has after the block's mark, rest what the history has in the place
// of the block.
func closeThought(blanks, reasoning, closing, rest string) string {
	switch {
	case strings.HasPrefix(rest, closing):
		return reasoning + rest
	case strings.HasSuffix(blanks, "\n"):
		return reasoning + "\n" + closing + "\n\n" + rest
	}
	return reasoning + closing + rest
}

// payload says whether the tool calls of a message are shown in an answer, and
// where what the message spells ends in it, in bytes.
func (t *turnRun) payload(m *chattemplate.Object, out string) (calls bool, end int) {
	see := func(s string) bool {
		if s = strings.TrimSpace(s); s == "" {
			return true
		}
		i := strings.LastIndex(out, s)
		if i >= 0 {
			end = max(end, i+len(s))
		}
		return i >= 0
	}
	see(m.Text("content"))
	calls = true
	list, _ := m.Get("tool_calls")
	items, _ := list.([]any)
	for _, c := range items {
		call, _ := c.(*chattemplate.Object)
		if call == nil {
			continue
		}
		v, _ := call.Get("function")
		if f, ok := v.(*chattemplate.Object); ok {
			calls = see(f.Text("name")) && calls
			args, _ := f.Get("arguments")
			leaves(args, func(s string) { see(s) })
		}
	}
	return calls, end
}

// leaves calls see for the strings in a value.
func leaves(v any, see func(string)) {
	switch v := v.(type) {
	case string:
		see(v)
	case []any:
		for _, e := range v {
			leaves(e, see)
		}
	case *chattemplate.Object:
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			leaves(e, see)
		}
	}
}

// cutAnswer cuts an answer after the control token that ends the turn: the last
// one, if nothing but white space follows it. A template that puts the next
// header everywhere has it after the first one behind what the message spells.
func (t *turnRun) cutAnswer(out string, end int, always bool) string {
	cut := -1
	for i := 0; i < len(out); {
		_, n := t.controls.Match([]byte(out[i:]))
		if n == 0 {
			i++
			continue
		}
		i += n
		if i <= end {
			continue
		}
		cut = i
		if always {
			return out[:cut]
		}
	}
	if cut >= 0 && strings.TrimSpace(out[cut:]) == "" {
		return out[:cut]
	}
	return out + t.opts.Names.EOS
}
