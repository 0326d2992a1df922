package toolcall

import (
	"strings"
	"testing"
)

// hostile texts are made to be long, and to hold what may be read again and again.
var hostile = map[string]func(n int) string{
	"prose":           func(n int) string { return strings.Repeat("Lorem ipsum < dolor [sit] amet. ", n/32) },
	"brackets":        func(n int) string { return strings.Repeat("[", n) },
	"braces in lines": func(n int) string { return strings.Repeat("{\n", n/2) },
	"markers":         func(n int) string { return strings.Repeat("<tool_call>", n/11) },
	"markers in JSON": func(n int) string { return strings.Repeat("<tool_call>{", n/12) },
	"cut markers":     func(n int) string { return strings.Repeat("<tool_cal", n/9) },
	"open strings":    func(n int) string { return strings.Repeat("<tool_call>{\"a", n/14) },
	"late calls":      func(n int) string { return "x\n" + strings.Repeat("{\"name\":\"f\",\"parameters\":{}}\n", n/29) + "x" },
	"late openings":   func(n int) string { return "x\n" + strings.Repeat("{\"arguments\":\n", n/14) },
	"late python":     func(n int) string { return "x\n" + strings.Repeat("[f(x=\n", n/6) },
	"calls": func(n int) string {
		return strings.Repeat("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n", n/51)
	},
	"closers":          func(n int) string { return "<tool_call>{\"name\":\"f\"" + strings.Repeat("}", n) },
	"closers, members": func(n int) string { return "<tool_call>{" + strings.Repeat("},\"a\":1", n/7) },
	"depth":            func(n int) string { return "<tool_call>" + strings.Repeat("{\"a\":", n/5) },
	"quotes":           func(n int) string { return "<tool_call>{\"a\":" + strings.Repeat("\" ", n/2) },
	"python depth":     func(n int) string { return "[f(x=" + strings.Repeat("[", n) },
	"python strings":   func(n int) string { return "[f(x=" + strings.Repeat("'a' ", n/4) + ")]" },
	"python arguments": func(n int) string { return "[f(" + strings.Repeat("x=1,", n/4) + ")]" },
	"parameters":       func(n int) string { return "<function=f>" + strings.Repeat("<parameter=x>\n1\n</parameter>", n/28) },
	"open value":       func(n int) string { return "<function=f><parameter=x>" + strings.Repeat("\n<", n/2) },
	"untyped value":    func(n int) string { return "<function=unknown><parameter=x>{" + strings.Repeat("a", n) },
	"fences":           func(n int) string { return strings.Repeat("```\n", n/4) },
	"backticks":        func(n int) string { return strings.Repeat("`", n) },
	"documents":        func(n int) string { return "<tool_call>" + strings.Repeat("{}", n/2) },
	"long name":        func(n int) string { return "<function=" + strings.Repeat("a", n) },
	"blanks":           func(n int) string { return strings.Repeat("<tool_call>"+strings.Repeat(" ", 250), n/261) },
	"double": func(n int) string {
		return "<tool_call>{\"name\":\"f\",\"arguments\":\"{" + strings.Repeat("\\\"a\\\":", n/6)
	},
}

// TestLinear doubles texts and compares how many bytes are looked at.
func TestLinear(t *testing.T) {
	const n = 1 << 13
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			a, b := cost(make(n)), cost(make(2*n))
			if b > 3*a+1<<16 {
				t.Errorf("%d steps for %d bytes, %d for twice as many", a, n, b)
			}
			if testing.Verbose() {
				t.Logf("%d bytes: %d steps", n, a)
			}
		})
	}
}

// cost counts the bytes that are looked at for a text that comes in pieces, and as a whole.
func cost(text string) int {
	m := newMachine(Options{Tools: tools, MaxHold: 1000})
	for i := 0; i < len(text); i += 16 {
		m.write([]byte(text[i:min(i+16, len(text))]))
		m.out = nil
	}
	m.eof = true
	m.run()
	w := newMachine(Options{Tools: tools, MaxHold: 1000})
	w.whole, w.in, w.eof = true, []byte(text), true
	w.run()
	return m.looks + w.looks
}
