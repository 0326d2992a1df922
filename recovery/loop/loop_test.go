package loop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// intro is prose that no loop begins in.
const intro = "Here is the summary that you asked for. It covers the first quarter and names what changed.\n\n"

// block returns n lines of different prose.
func block(n int) string {
	var b strings.Builder
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	names := strings.Fields("harbor garden letter winter engine silver market bridge window forest valley river")
	for i := range n {
		fmt.Fprintf(&b, "%s the %s near the %s, %s\n", names[i%len(names)], names[rng.IntN(12)], names[rng.IntN(12)], names[rng.IntN(12)])
	}
	return b.String()
}

var loops = []struct {
	name    string
	before  string
	unit    string
	copies  int
	kind    Kind
	context Context
	within  int // bytes of the run after which it must be found; 0: five copies
}{
	{"a sentence", intro, "The committee met again on Tuesday to discuss the budget. ", 40, Exact, Prose, 0},
	{"a short sentence", intro, "I am sorry. ", 60, Exact, Prose, 300},
	{"a line", intro, "The committee met again on Tuesday to discuss the budget.\n", 40, Exact, Prose, 0},
	{"two paragraphs", intro, block(4) + "\n" + block(3) + "\n", 10, Exact, Prose, 0},
	{"92 lines", intro, block(92), 32, Exact, Prose, 0},
	{"2,000 bytes", intro, block(60)[:2000], 8, Exact, Prose, 0},
	{"14 kB", intro, block(400)[:14000], 5, Exact, Prose, 0},
	{"a word", intro, "the ", 200, Exact, Prose, 300},
	{"two words", intro, "very good ", 200, Exact, Prose, 300},
	{"list items", intro, "- Check the configuration of the server again\n", 60, Exact, List, 400},
	{"numbered sections", intro, "1. First, open the settings page.\n2. Then select the network tab.\n3. Finally, press the save button.\n", 30, Exact, List, 0},
	{"closing tags", intro + "<think>Let me see.</think>", "</think>", 271, Exact, Prose, 400},
	{"special tokens", intro, "<|im_end|>\n", 200, Exact, Prose, 400},
	{"reasoning", "<think>\nLet me count.\n", "Wait, let me check that again. So the answer might be different after all.\n", 30, Exact, Reasoning, 0},
	{"Chinese", intro, "我们需要重新考虑这个问题，因为之前的答案可能是错误的。", 30, Exact, Prose, 0},
	{"Russian", intro, "Мы продолжаем работу над этим вопросом и скоро ответим. ", 30, Exact, Prose, 0},
	{"Japanese words", intro, "ありがとう", 100, Exact, Prose, 300},
	{"emoji", intro, "🎉🎊 party ", 100, Exact, Prose, 300},
	{"a letter", intro, "a", 3000, CharacterRun, Prose, 1100},
	{"exclamation marks", intro, "!", 9000, CharacterRun, Prose, 4700},
	{"line feeds", intro, "\n", 9000, CharacterRun, Prose, 4700},
	{"a Chinese character", intro, "的", 3000, CharacterRun, Prose, 1200},
	{"a line of code", intro + "```go\nfunc main() {\n", "\tfmt.Println(\"hello\", i)\n", 600, Exact, Code, 9300},
	{"a block of code", intro + "```python\n", "def area(self, width, height):\n    \"\"\"Return the area of a rectangle.\"\"\"\n    if width < 0 or height < 0:\n        raise ValueError(\"negative\")\n    return width * height\n\nclass Shape:\n    def __init__(self, name):\n        self.name = name\n        self.parts = []\n\n", 20, Exact, Code, 2400},
	{"JSON objects", `{"items": [`, `{"name": "widget", "price": 10, "tags": ["new", "sale"]}, `, 100, Exact, JSON, 2400},
	{"marks in lines", intro, "# \n", 2000, Exact, Prose, 2300},
	{"text in JSON", `{"title": "Minutes", "summary": "`, "The committee met again on Tuesday to discuss the budget. ", 40, Exact, Prose, 0},
	{"a table that goes on", "| a | b |\n|---|---|\n", "| the same value | and the same note |\n", 600, Exact, Table, 9500},
	{"numbers", intro, "0, 1, ", 12000, Exact, Numbers, 46000},
}

func TestLoops(t *testing.T) {
	for _, c := range loops {
		t.Run(c.name, func(t *testing.T) {
			text := []byte(c.before + strings.Repeat(c.unit, c.copies))
			d := New(Options{})
			found := 0
			for i := range text {
				if l := d.Write(text[i : i+1]); l != nil && l.Cut >= 0 && found == 0 {
					found = i + 1
				}
			}
			l := d.Close()
			if l == nil || l.Kind == Templated {
				t.Fatalf("no loop: %+v", l)
			}
			if l.Kind != c.kind || l.Context != c.context || !l.Stop || l.Broken {
				t.Errorf("%s in %s, stop %v, broken %v", l.Kind, l.Context, l.Stop, l.Broken)
			}
			if l.Period != len(c.unit) || l.End != len(text) || l.Start > len(c.before) || l.Start < len(c.before)-40 {
				t.Errorf("period %d of %d, [%d, %d) of [%d, %d)", l.Period, len(c.unit), l.Start, l.End, len(c.before), len(text))
			}
			within := c.within
			if within == 0 {
				within = 5 * len(c.unit)
			}
			if found-len(c.before) > within {
				t.Errorf("found after %d bytes, %.1f copies, want %d", found-len(c.before), float64(found-len(c.before))/float64(len(c.unit)), within)
			}
			checkLoop(t, text, l)
		})
	}
}

// checkLoop checks what holds for every loop.
func checkLoop(t *testing.T, text []byte, l *Loop) {
	t.Helper()
	if l.Kind == Templated {
		if l.Cut != -1 || l.Stop || l.Start < 0 || l.End > len(text) {
			t.Fatalf("templated: %+v", l)
		}
		return
	}
	run := text[l.Start:l.End]
	if l.Copies != len(run)/l.Period || l.Copies < 3 || !bytes.Equal(l.Unit, run[:l.Period]) {
		t.Fatalf("%d copies of %d bytes in %d", l.Copies, l.Period, len(run))
	}
	for i := l.Period; i < len(run); i++ {
		if run[i] != run[i-l.Period] {
			t.Fatalf("byte %d of the run is not repeated", i)
		}
	}
	for p := 1; p <= l.Period/2; p++ {
		if l.Period%p == 0 && bytes.Equal(l.Unit[p:], l.Unit[:l.Period-p]) {
			t.Fatalf("unit %q is not primitive", l.Unit)
		}
	}
	if l.Cut == -1 {
		return
	}
	if l.Cut < l.Start+l.Period || l.Cut >= l.Start+2*l.Period || l.Cut > l.End {
		t.Fatalf("cut at %d, run from %d by %d", l.Cut, l.Start, l.Period)
	}
	if utf8.Valid(text[l.Start:min(len(text), l.Cut+utf8.UTFMax)]) && !utf8.RuneStart(text[l.Cut]) {
		t.Fatalf("cut inside a character")
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct{ before, unit, want string }{
		{"Intro:\n", "The committee met again on Tuesday to discuss the budget.\n", "Intro:\nThe committee met again on Tuesday to discuss the budget.\n"},
		{"Intro. ", "The committee met again on Tuesday to discuss the budget. ", "Intro. The committee met again on Tuesday to discuss the budget. "},
		{"The beginning of ", "the old road leads to the end of the valley and then to ", "The beginning of the old road leads to the end of the valley and then to"},
		{"Nein", "的", "Nein的"},
		{"", "First line of the block, with text.\nSecond line of it, with more.\n\n", "First line of the block, with text.\nSecond line of it, with more.\n\n"},
		{"前文。", "我们需要重新考虑这个问题，因为之前的答案可能是错误的。", "前文。我们需要重新考虑这个问题，因为之前的答案可能是错误的。"},
	} {
		text := []byte(c.before + strings.Repeat(c.unit, 2000/len(c.unit)))
		l := Find(text, Options{})
		if l == nil || l.Cut < 0 {
			t.Errorf("%q: no loop", c.unit)
			continue
		}
		if got := string(text[:l.Cut]); got != c.want {
			t.Errorf("%q: cut to %q", c.unit, got)
		}
	}
}

func TestToolArguments(t *testing.T) {
	text := []byte(`{"path": "a.txt", "content": "` + strings.Repeat("The committee met again on Tuesday. ", 2000))
	d := New(Options{ToolArguments: true})
	stopped := 0
	for i := 0; i < len(text); i += 7 {
		l := d.Write(text[i:min(i+7, len(text))])
		if l != nil && l.Cut != -1 {
			t.Fatal("cut tool arguments")
		}
		if l != nil && l.Stop && stopped == 0 {
			stopped = i
		}
	}
	if stopped < 32<<10 || stopped > 33<<10 {
		t.Errorf("stopped at %d", stopped)
	}
	if l := Find(text[:5000], Options{ToolArguments: true}); l == nil || l.Stop {
		t.Errorf("got %+v", l)
	}
	if l := Find(text[:5000], Options{ToolArguments: true, ToolBound: 2000}); l == nil || !l.Stop || l.Cut != -1 {
		t.Errorf("got %+v", l)
	}
}

func TestAsked(t *testing.T) {
	text := []byte(strings.Repeat("I will not talk in class again.\n", 1000))
	if l := Find(text, Options{Asked: true}); l != nil {
		t.Errorf("got %+v", l)
	}
	if l := Find(bytes.Repeat(text, 2), Options{Asked: true}); l == nil || l.Cut < 0 {
		t.Error("64 kB are not found")
	}
}

func TestBroken(t *testing.T) {
	unit := "The committee met again on Tuesday to discuss the budget. "
	text := []byte(intro + strings.Repeat(unit, 10))
	end := len(text)
	text = append(text, "It rained."...)
	text = append(text, strings.Repeat(unit, 20)...)
	l := Find(text, Options{})
	if l == nil || !l.Broken || l.End != end || l.Copies != 10 {
		t.Errorf("got %+v", l)
	}
}

func TestTemplated(t *testing.T) {
	var b strings.Builder
	for i := range 600 {
		fmt.Fprintf(&b, "Processing item %d of the list, please wait a moment.\n", i*7919)
	}
	l := Find([]byte(b.String()), Options{})
	if l == nil || l.Kind != Templated || l.Cut != -1 || l.Stop {
		t.Fatalf("got %+v", l)
	}
	if l.Start > 6000 || l.End < b.Len()-4000 {
		t.Errorf("[%d, %d) of %d", l.Start, l.End, b.Len())
	}
	// What is certain replaces what is only reported.
	unit := "The committee met again on Tuesday to discuss the budget. "
	if l := Find([]byte(b.String()+strings.Repeat(unit, 10)), Options{}); l == nil || l.Kind != Exact {
		t.Errorf("got %+v", l)
	}
	if l := Find([]byte(block(2000)), Options{}); l != nil && l.Kind != Templated {
		t.Errorf("got %+v", l)
	}
}

func TestOptions(t *testing.T) {
	text := []byte(intro + strings.Repeat("The committee met again on Tuesday to discuss the budget. ", 12))
	if l := Find(text, Options{Context: Code}); l != nil {
		t.Errorf("in code: %+v", l)
	}
	if l := Find(text, Options{Context: Reasoning}); l == nil || l.Context != Reasoning {
		t.Errorf("in reasoning: %+v", l)
	}
	if l := Find(text, Options{MaxPeriod: 50}); l != nil {
		t.Errorf("period over the limit: %+v", l)
	}
}
