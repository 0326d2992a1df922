package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// scanAll writes text to a scanner in pieces of the sizes that next gives, and
// checks what every stream keeps: the pieces are the text, in order, and no more is
// held back than may be.
func scanAll(t testing.TB, text []byte, o Options, next func() int) []Segment {
	t.Helper()
	var all []Segment
	at := 0
	s := NewScanner(o)
	add := func(pieces []Piece) {
		for _, p := range pieces {
			if p.Offset != at || !bytes.Equal(p.Text, text[at:at+len(p.Text)]) {
				t.Fatalf("%q: a piece %q at %d, not at %d", text, p.Text, p.Offset, at)
			}
			at += len(p.Text)
			if p.Segment == len(all) {
				all = append(all, Segment{Kind: p.Kind, Start: p.Offset, BodyStart: p.Offset, BodyEnd: p.Offset, Closed: p.Kind == Prose || p.Kind == Marker})
			}
			if p.Segment != len(all)-1 || p.Kind != all[p.Segment].Kind {
				t.Fatalf("%q: a piece of segment %d, %v, behind %d segments", text, p.Segment, p.Kind, len(all))
			}
			g := &all[p.Segment]
			switch p.Part {
			case Opening:
				g.BodyStart, g.BodyEnd = at, at
				g.Info += p.Info
			case Body:
				g.BodyEnd = at
			case Closing:
				g.Closed = true
			}
			g.End = at
		}
	}
	for rest := text; len(rest) > 0; {
		n := min(next(), len(rest))
		add(s.Write(rest[:n]))
		rest = rest[n:]
		if held := len(text) - len(rest) - at; held > Hold && held > o.Unopened+Hold {
			t.Fatalf("%d bytes are held back", held)
		}
	}
	add(s.Close())
	if at != len(text) {
		t.Fatalf("%q: %d of %d bytes came", text, at, len(text))
	}
	return all
}

// same compares what a whole text and a stream gave.
func same(t testing.TB, text []byte, o Options, next func() int) {
	t.Helper()
	want := Segments(text, o)
	if o.Unopened == 0 {
		o.Unopened = len(text)
	}
	got := scanAll(t, text, o, next)
	for i := range want {
		want[i].quotes, want[i].columns, want[i].line, want[i].nested = 0, 0, fenceLine{}, 0
		want[i].lazy = false
	}
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q\nstream %+v\nwhole  %+v", text, got, want)
	}
}

var scanOptions = []Options{{}, {Unopened: -1}, {Unopened: 20}, {Opened: true}, {Tags: []Tag{}}}

func TestScannerSplits(t *testing.T) {
	for _, c := range segmentCases {
		for _, o := range scanOptions {
			same(t, []byte(c.in), o, func() int { return 1 })
			for k := range len(c.in) {
				first := true
				same(t, []byte(c.in), o, func() int {
					if first && k > 0 {
						first = false
						return k
					}
					return len(c.in)
				})
			}
		}
	}
}

// atoms are what hard texts are made of.
var atoms = strings.Split("{|}|[|]|,|:|\"|'|a|1|\\|\\\"|\n|\n\n| |    |\t|> |- |1. |`|``|```|```json|```py|```md|~~~|````|\"\"\"|<think>|</think>|<think |<|>|<reasoning>|</reasoning>|[THINK]|[/THINK]|<|start|>assistant|<|channel|>analysis|<|channel|>final|to=f|<|message|>|<|end|>|{\"a\":1}|{\"a\":\"x\"|[1]|[\"a\",|word |two words |. |? |é|\xc3|“|”|｛|｝|&quot;|<answer>|</answer>|analysis|The|[END FINAL RESPONSE]|\r\n|//|{\"a\":|name: Ann\n|<b>|</b>|<a x=\"1\">|&amp;", "|")

// hard makes a text of n atoms.
func hard(r *rand.Rand, n int) []byte {
	var b []byte
	for range n {
		b = append(b, atoms[r.IntN(len(atoms))]...)
	}
	return b
}

func TestScannerRandom(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 3_000
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		text := hard(r, r.IntN(24))
		o := scanOptions[r.IntN(len(scanOptions))]
		same(t, text, o, func() int { return 1 + r.IntN(7) })
	}
}

func TestScannerHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, make := range hostile {
		text := []byte(make(20_000))
		t.Run(name, func(t *testing.T) { same(t, text, Options{Unopened: -1}, func() int { return 1 + r.IntN(3000) }) })
	}
}

func TestScannerUnopened(t *testing.T) {
	const text = "so it is 4.</think>4"
	s := NewScanner(Options{})
	var got []string
	add := func(pieces []Piece) {
		for _, p := range pieces {
			got = append(got, fmt.Sprintf("%v %v %q", p.Kind, p.Part, p.Text))
		}
	}
	add(s.Write([]byte(text)))
	add(s.Close())
	want := []string{`prose body "so it is 4."`, `reasoning closing "</think>"`, `prose body "4"`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for limit, want := range map[int]string{18: "P|so it is 4.| R|| P|4|", 19: "R|so it is 4.| P|4|", -1: "P|so it is 4.| R|| P|4|"} {
		if got := show(text, Segments([]byte(text), Options{Unopened: limit})); got != want {
			t.Errorf("Unopened %d: got %s, want %s", limit, got, want)
		}
	}
	if got := show("a</think>b", Segments([]byte("a</think>b"), Options{Opened: true})); got != "R|a| P|b|" {
		t.Errorf("Opened: got %s", got)
	}
	if got := show("a", Segments([]byte("a"), Options{Opened: true})); got != "R|a|!" {
		t.Errorf("Opened, cut: got %s", got)
	}
}

// hostile are shapes of input that are hard on the parts of this package, by name:
// each is made of about n bytes.
var hostile = map[string]func(n int) string{
	"brackets":         func(n int) string { return strings.Repeat("[", n) },
	"braces":           func(n int) string { return strings.Repeat("{", n) },
	"objects":          func(n int) string { return strings.Repeat(`{"a":`, n/5) },
	"objects, prose":   func(n int) string { return strings.Repeat(`x {"a": `, n/8) },
	"arrays, prose":    func(n int) string { return strings.Repeat(`x ["a", `, n/8) },
	"bare objects":     func(n int) string { return strings.Repeat("\n{a:", n/4) },
	"marks":            func(n int) string { return strings.Repeat(`"`, n) },
	"marks in JSON":    func(n int) string { return `{"a":"` + strings.Repeat(`"`, n) },
	"spaced marks":     func(n int) string { return `{"a":"` + strings.Repeat(`"  `, n/3) },
	"closers":          func(n int) string { return strings.Repeat("]}", n/2) },
	"surplus":          func(n int) string { return `{"a":1` + strings.Repeat(`},"b":2`, n/7) },
	"empty objects":    func(n int) string { return strings.Repeat("{}", n/2) },
	"lines":            func(n int) string { return strings.Repeat("{\"a\":1}\n", n/8) },
	"citations":        func(n int) string { return strings.Repeat("see [1] and {x} ", n/16) },
	"backticks":        func(n int) string { return strings.Repeat("`", n) },
	"backtick lines":   func(n int) string { return strings.Repeat("```\n", n/4) },
	"long fence lines": func(n int) string { return strings.Repeat("```"+strings.Repeat("x ", 700)+"\n", n/1404) },
	"long inner lines": func(n int) string { return "```py\n" + strings.Repeat("``` "+strings.Repeat("x ", 700)+"\n", n/1405) },
	"fence infos":      func(n int) string { return strings.Repeat("```json\n", n/8) },
	"fences in JSON":   func(n int) string { return "```json\n{\"a\":\"" + strings.Repeat("\n```\nx\n", n/7) },
	"in triples":       func(n int) string { return "```py\n\"\"\"" + strings.Repeat("\n```\nx\n", n/7) },
	"angles":           func(n int) string { return strings.Repeat("<", n) },
	"thinking":         func(n int) string { return strings.Repeat("<think>", n/7) },
	"tags, spoken of":  func(n int) string { return strings.Repeat("a <think> b </think> ", n/21) },
	"closing tags":     func(n int) string { return strings.Repeat("</think>\n", n/9) },
	"attributes":       func(n int) string { return strings.Repeat("<think a", n/8) },
	"heads":            func(n int) string { return strings.Repeat("<|channel|>", n/11) },
	"spaces":           func(n int) string { return strings.Repeat(" ", n) },
	"quotes":           func(n int) string { return strings.Repeat("> ", n/2) },
	"list marks":       func(n int) string { return strings.Repeat("- ", n/2) },
	"digits":           func(n int) string { return strings.Repeat("1", n) },
	"backslashes":      func(n int) string { return `{"a":"` + strings.Repeat(`\`, n) },
	"keys":             func(n int) string { return strings.Repeat("k: [\n", n/5) },
	"YAML lists":       func(n int) string { return "a:\n" + strings.Repeat("- ", n/2) },
	"YAML lines":       func(n int) string { return strings.Repeat("key: value\n", n/11) },
	"elements":         func(n int) string { return strings.Repeat("<a>", n/3) },
	"flat elements":    func(n int) string { return strings.Repeat("<a>1</a>", n/8) },
	"wrong closers":    func(n int) string { return strings.Repeat("<a>", n/8) + strings.Repeat("</b>", n/8) },
	"entities":         func(n int) string { return "<a>" + strings.Repeat("&amp;", n/5) },
	"invalid UTF-8":    func(n int) string { return strings.Repeat("\xe2", n) },
	"comments":         func(n int) string { return strings.Repeat("{/*", n/3) },
	"commas":           func(n int) string { return strings.Repeat("[,", n/2) },
}
