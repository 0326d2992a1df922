package code

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/jsonrepair"
)

// checkText checks what holds for every text in every language.
func checkText(t *testing.T, lang string, src []byte) {
	t.Helper()
	edits, r := Close(lang, src)
	if len(edits) > 0 && r.Status != Cut {
		t.Fatalf("%s %q: edits in code that is %s", lang, src, r.Status)
	}
	for _, o := range r.Open {
		if o.Offset < 0 || o.Offset > len(src) {
			t.Fatalf("%s %q: open at %d", lang, src, o.Offset)
		}
	}
	for _, p := range r.Problems {
		if p.Offset < 0 || p.Offset > len(src) || p.Line != lineOf(src, p.Offset) || p.Message == "" {
			t.Fatalf("%s %q: problem %+v", lang, src, p)
		}
	}
	if len(edits) == 0 {
		return
	}
	if r.Language != "json" && (len(edits) != 1 || edits[0].Offset+len(edits[0].Before) != len(src) || len(edits[0].Before) > 3) {
		t.Fatalf("%s %q: edits not at the end: %+v", lang, src, edits)
	}
	closed := jsonrepair.Apply(src, slices.Values(edits))
	status := Check(lang, closed, Options{}).Status
	if r.Closed != (status == Parses) || r.Parser == "lexer" && !r.Closed {
		t.Fatalf("%s %q: closed %v, but %q is %s", lang, src, r.Closed, closed, status)
	}
}

// TestEveryCut: of code that is whole, every beginning is cut or whole, never broken,
// and what is closed is whole.
func TestEveryCut(t *testing.T) {
	for _, c := range whole {
		for i := range c.src {
			src := []byte(c.src[:i])
			checkText(t, c.lang, src)
			r := Check(c.lang, src, Options{})
			switch c.lang {
			case "go", "yaml", "perl": // a parser may be wiser
			default:
				if r.Status == Broken && !strings.Contains(r.Problems[0].Message, "character literal") {
					t.Errorf("%s %q: %+v", c.lang, src, r.Problems)
				}
			}
		}
	}
}

func TestGarbage(t *testing.T) {
	for _, lang := range Languages() {
		for name, make := range hostile {
			if testing.Short() && name > "m" {
				continue
			}
			checkText(t, lang, []byte(make(200)))
		}
		for _, c := range whole { // another language's
			checkText(t, lang, []byte(c.src))
		}
	}
}

func FuzzCode(f *testing.F) {
	names := Languages()
	for i, name := range names {
		for _, c := range whole {
			if c.lang == name {
				f.Add(uint8(i), []byte(c.src))
				f.Add(uint8(i), []byte(c.src[:len(c.src)/2]))
			}
		}
	}
	f.Add(uint8(0), []byte("> - ```js\n> x\n``"))
	f.Fuzz(func(t *testing.T, lang uint8, src []byte) {
		if len(src) > 4096 {
			return
		}
		checkText(t, names[int(lang)%len(names)], src)
		checkText(t, "", src)
		if edits, ok := CloseFence(src); ok {
			closed := jsonrepair.Apply(src, slices.Values(edits))
			if _, ok := CloseFence(closed); ok {
				t.Fatalf("%q is still open", closed)
			}
		}
	})
}

// hostile are shapes of text that are hard on scanners.
var hostile = map[string]func(n int) string{
	"apostrophes":  func(n int) string { return strings.Repeat("'", n) },
	"backslashes":  func(n int) string { return strings.Repeat(`\`, n) },
	"backticks":    func(n int) string { return strings.Repeat("`", n) },
	"brackets":     func(n int) string { return strings.Repeat("([{", n/3) },
	"classes":      func(n int) string { return strings.Repeat("/[", n/2) },
	"closers":      func(n int) string { return strings.Repeat(")", n) },
	"comments":     func(n int) string { return strings.Repeat("/* ", n/3) },
	"dashes":       func(n int) string { return strings.Repeat("-", n) },
	"dollar runs":  func(n int) string { return strings.Repeat("$", n) },
	"at signs":     func(n int) string { return strings.Repeat("@", n) },
	"returns":      func(n int) string { return "a: |\n  " + strings.Repeat("\r", n) },
	"flow":         func(n int) string { return "a: [" + strings.Repeat("- - ", n/4) },
	"directives":   func(n int) string { return strings.Repeat("#if 0\n", n/6) },
	"dollars":      func(n int) string { return strings.Repeat("$a", n/2) },
	"equals":       func(n int) string { return strings.Repeat("[=", n/2) },
	"hashes":       func(n int) string { return strings.Repeat("#", n) },
	"heredocs":     func(n int) string { return strings.Repeat("<<A ", n/4) + "\n" + strings.Repeat("a\n", n/2) },
	"indentation":  func(n int) string { return deeper(n) },
	"less":         func(n int) string { return strings.Repeat("<", n) },
	"open string":  func(n int) string { return `"` + strings.Repeat("a ", n/2) },
	"percents":     func(n int) string { return strings.Repeat("%w(", n/3) },
	"quotes":       func(n int) string { return strings.Repeat(`"`, n) },
	"raw":          func(n int) string { return strings.Repeat("r#", n/2) },
	"slashes":      func(n int) string { return strings.Repeat("a / ", n/4) },
	"tags":         func(n int) string { return strings.Repeat("<a>", n/3) },
	"templates":    func(n int) string { return strings.Repeat("`${", n/3) },
	"wrong tags":   func(n int) string { return strings.Repeat("<a></b>", n/7) },
	"words":        func(n int) string { return strings.Repeat("if do case ", n/11) },
	"yaml":         func(n int) string { return strings.Repeat("- ", n/2) + "a" },
	"yaml anchors": func(n int) string { return strings.Repeat("- &a *a\n", n/8) },
	"yaml scalars": func(n int) string { return strings.Repeat("a: |\n  b\n", n/9) },
}

// deeper is lines of which each is indented more.
func deeper(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%*sif x:\n", i, "")
	}
	return b.String()
}

// TestLinear: eight times the text takes about eight times as long, not 64 times. What
// looks worse is measured again, as the machine may be busy.
func TestLinear(t *testing.T) {
	if testing.Short() || fewer > 1 {
		t.Skip("takes time")
	}
	const small = 4 << 10
	for _, lang := range Languages() {
		for name, make := range hostile {
			took := func(n int) time.Duration {
				src := []byte(make(n))
				begin := time.Now()
				Close(lang, src)
				return time.Since(begin)
			}
			var a, b time.Duration
			for range 5 {
				if a, b = took(small), took(8*small); b <= 24*a+20*time.Millisecond {
					break
				}
			}
			if b > 24*a+20*time.Millisecond && lang != "yaml" || b > time.Second {
				t.Errorf("%s, %s: %v for %d bytes, %v for %d", lang, name, a, small, b, 8*small)
			}
		}
	}
}

func TestFenceLinear(t *testing.T) {
	for _, shape := range []string{"```\n", "> ", "- ", "> - ", "1. ```\n", "~~~\n```\n"} {
		src := bytes.Repeat([]byte(shape), 1<<20/fewer/len(shape))
		begin := time.Now()
		CloseFence(src)
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("%q: %v for a text of this", shape, d)
		}
	}
}
