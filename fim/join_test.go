package fim

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// joined runs a Join over text in pieces of n bytes (0: all at once).
func joined(t testing.TB, prefix, suffix, text string, n int) (out string, stopped bool) {
	t.Helper()
	j := NewJoin([]byte(prefix), []byte(suffix))
	rest := []byte(text)
	var dst []byte
	read := 0
	for len(rest) > 0 {
		k := len(rest)
		if n > 0 {
			k = min(n, k)
		}
		before := len(dst)
		dst, stopped = j.Next(dst, rest[:k])
		if read += k; !bytes.HasPrefix([]byte(text), dst) || len(dst) < before || j.Given() != len(dst) {
			t.Fatalf("suffix %q: %q is no beginning of %q", suffix, dst, text)
		}
		if stopped {
			return string(dst), true
		}
		if read-len(dst) > MaxHeld {
			t.Fatalf("suffix %q: %d bytes held back", suffix, read-len(dst))
		}
		rest = rest[k:]
	}
	return string(j.End(dst)), false
}

func TestJoin(t *testing.T) {
	const goTail = "\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdefer f.Close()\n}\n"
	for _, tc := range []struct{ name, prefix, suffix, text, want string }{
		{"lines", "def f(", "\n    return total_of(x)\n\nprint(f(1))\n", "a, b):\n    y = 1\n    return total_of(x)\n\nprint(f(1))\nmore", "a, b):\n    y = 1"},
		{"nothing between", "x = ", "compute_the_sum(1)\nprint(x) # the sum\n", "compute_the_sum(1)\nprint(x) # the sum\nx", ""},
		{"rest of the line", "print(", ")\n\nfoo(bar)\nprint(the_result_of_all)\n", "x)\n\nfoo(bar)\nprint(the_result_of_all)\n#", "x"},
		{"other blank lines", "x = 1", "\n\n\n    return compute(x)\n", " + 2\n    return compute(x)\nz", " + 2"},
		{"more blank lines", "x = 1", "\n    return compute(x)\n", " + 2\n\n\n    return compute(x)\nz", " + 2\n\n"},
		{"inside a word", "Not", "qual(a, b, ccc)\n", "Equal(a, b, ccc)\n", "E"},
		{"inside a word, at the end", "Not", "qual", "Equal", "E"},
		{"whole suffix", "a\n", "return x_y_z", "b\nreturn x_y_z\nc", "b\n"},
		{"end inside the second line", "x", goTail, " := 1\n\tif err != nil {\n\t\tret", " := 1"},
		{"end after a line", "  a", "\n  end\nend\n", "b\n  end", "b"},

		{"a bracket", "f(", ")", "x)", "x)"},
		{"a brace", "f {", "\n}\n", "\n\tx\n}\n", "\n\tx\n}\n"},
		{"braces", "f {", "\n\t}\n}\n", "\n\tx\n\t}\n}\n", "\n\tx\n\t}\n}\n"},
		{"fi", "if x; then", "\nfi\n", " y\nfi\n", " y\nfi\n"},
		{"the same lines, other text", "a, err := f()", goTail, "\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tb, err := g(a)", "\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tb, err := g(a)"},
		{"deeper", "x", "\n    return compute(x)\n", "\n        return compute(x)\n", "\n        return compute(x)\n"},
		{"deeper, suffix a line", "x\n", "    return compute(x)\n", "        return compute(x)\n", "        return compute(x)\n"},
		{"suffix a line", "x\n", "    return compute(x)\n", "    y\n    return compute(x)\n", "    y\n"},
		{"after the indentation", "x\n    ", "return compute(x)\n", "y = 1\n    return compute(x)\n", "y = 1\n    "},
		{"deeper, after the indentation", "x\n    ", "return compute(x)\n", "if y:\n        return compute(x)\n", "if y:\n        return compute(x)\n"},
		{"middle of a word", "y = ", "compute(xyz)\n", "recompute(xyz)\n", "recompute(xyz)\n"},
		{"longer word", "a\n", "return x_y_z", "b\nreturn x_y_zz\nc", "b\nreturn x_y_zz\nc"},
		{"short, in the middle", "  a", "\nend\n", "b\nend\n\ndef c\n  d", "b\nend\n\ndef c\n  d"},
		{"no suffix", "a", "", "b", "b"},
		{"blank suffix", "a", "\n \n", "b\n \n", "b\n \n"},
		{"indentation without end", "a", "\n" + strings.Repeat(" ", 1000) + "return x", "b\n", "b\n"},
		{"CRLF", "x = 1", "\r\n\r\n  return compute(x)\r\n", " + 2\r\n\r\n  return compute(x)\r\nz", " + 2"},
		{"no prefix", "", "package main_of_all\n\nfunc main() {}\n", "// x\n\npackage main_of_all\n\nfunc main() {}\n", "// x\n\n"},
		{"one long line", "a = ", strings.Repeat("some_words,", 100) + "\n", "1;" + strings.Repeat("some_words,", 100), "1;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 3, 7} {
				if got, _ := joined(t, tc.prefix, tc.suffix, tc.text, n); got != tc.want {
					t.Errorf("in pieces of %d: %q, want %q", n, got, tc.want)
				}
			}
		})
	}
}

// reference is Join by its definition: it looks at every place of the whole
// text.
func reference(prefix, suffix, text string) string {
	j := NewJoin([]byte(prefix), []byte(suffix))
	if len(j.pattern) == 0 {
		return text
	}
	pattern, all := string(j.pattern), "\n"+prefix+text
	origin := len(all) - len(text)
	begins := func(at int, anywhere bool) bool {
		before := all[:origin+at]
		if anywhere {
			return true
		}
		if j.indent != nil {
			return strings.HasSuffix(before, string(j.indent))
		}
		return !j.word || !isWord(before[len(before)-1])
	}
	for end := range len(text) + 1 {
		at := end - len(pattern)
		if at < 0 || !j.certain || text[at:end] != pattern || !begins(at, j.strong) {
			continue
		}
		if j.ending && (end == len(text) || isWord(text[end])) {
			continue
		}
		return text[:at-j.empty([]byte(text[:at]))]
	}
	for at := range len(text) {
		if n := len(text) - at; n >= j.least && strings.HasPrefix(pattern, text[at:]) && begins(at, n == len(pattern) && j.strong) {
			return text[:at-j.empty([]byte(text[:at]))]
		}
	}
	return text
}

func TestJoinAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(alphabet []string, n int) string {
		var b strings.Builder
		for range r.IntN(n + 1) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	alphabets := [][]string{
		{"a", "\n", " "},
		{"abc", "\n", "\n ", " ", "("},
		{"ab", "a", "\n", "b"},
		{"return", "\n", "  ", "x", "\n\n", ")"},
	}
	cut, whole := 0, 0
	for range 200_000 {
		a := alphabets[r.IntN(len(alphabets))]
		prefix, suffix := pick(a, 3), pick(a, 8)
		text := pick(a, 10)
		if r.IntN(2) == 0 {
			text += suffix[:r.IntN(len(suffix)+1)] + pick(a, 2)
		}
		want := reference(prefix, suffix, text)
		if got, _ := joined(t, prefix, suffix, text, 1+r.IntN(4)); got != want {
			t.Fatalf("prefix %q suffix %q text %q: %q, want %q", prefix, suffix, text, got, want)
		}
		if want == text {
			whole++
		} else {
			cut++
		}
	}
	if cut < 5_000 || whole < 10_000 {
		t.Errorf("%d cut, %d whole: the texts test one of them only", cut, whole)
	}
}

// What is left out is in the suffix: the text that stands before the cursor
// with what was given out and the suffix behind is what the model wrote, as far
// as it goes.
func FuzzJoin(f *testing.F) {
	for _, s := range []string{"\n    return compute(x)\n", ")\n\nfoo(bar)\n", "}\n", "\r\n\r\n  x\r\n", "aaaaaaaaaaaa", "\xff\xfe\xff"} {
		f.Add([]byte("x = "), []byte(s), []byte("y"+s+"z"), byte(3))
		f.Add([]byte("x\n  "), []byte(s), []byte(s+s), byte(1))
	}
	f.Fuzz(func(t *testing.T, prefix, suffix, text []byte, n byte) {
		got, _ := joined(t, string(prefix), string(suffix), string(text), int(n))
		if want := reference(string(prefix), string(suffix), string(text)); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		left := text[len(got):]
		if len(left) == 0 {
			return
		}
		blank := len(suffix) - len(bytes.TrimLeft(suffix, " \t\r\n"))
		for i := range blank + 1 {
			if n := commonStart(suffix[i:], left); n >= tailWords {
				return
			}
		}
		t.Fatalf("%q was left out, which is not in the suffix", left)
	})
}

func commonStart(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Texts that come near the suffix again and again take no longer than others.
func BenchmarkJoin(b *testing.B) {
	suffix := strings.Repeat("a", 500) + "b"
	for _, bc := range []struct{ name, text string }{
		{"near", strings.Repeat("a", 1<<16)},
		{"far", strings.Repeat("xyz ", 1<<14)},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.SetBytes(int64(len(bc.text)))
			var dst []byte
			for b.Loop() {
				j := NewJoin(nil, []byte(suffix))
				j.indent, j.word = nil, false
				dst, _ = j.Next(dst[:0], []byte(bc.text))
			}
		})
	}
}
