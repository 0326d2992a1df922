package main

import (
	"math"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

func cellsOf(moving int, texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, s := range texts {
		cells[i] = cell{text: visible([]byte(s)), id: strings.Repeat("7", 1+i%5), moving: i >= moving, ends: strings.HasSuffix(s, "\n")}
	}
	return cells
}

func TestDraw(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    display
		p    picture
		want string
	}{
		{"moving", display{columns: 80}, picture{cells: cellsOf(2, "const", " user", "Na")}, `
const│·user‖Na
7    │77   ‖777
            ~~~
`},
		{"all stable", display{columns: 80}, picture{cells: cellsOf(2, "a", "b")}, `
a│b
7│77
`},
		{"all moving", display{columns: 80}, picture{cells: cellsOf(0, "a", " b")}, `
‖a│·b
‖7│77
 ~ ~~
`},
		{"wide characters", display{columns: 80}, picture{cells: cellsOf(1, "北京", "🤦🏽", "\u0301", "\xf0\x9f")}, `
北京‖🤦🏽│◌́  │\xf0\x9f
7   ‖77│777│7777
     ~~ ~~~ ~~~~~~~~
`},
		{"lines of the text", display{columns: 80}, picture{cells: cellsOf(9, "if x:", "\n", "\t", "y")}, `
if·x:│↵
7    │77
→  │y
777│7777
`},
		{"narrow", display{columns: 10}, picture{cells: cellsOf(3, "aaaa", "bbbb", "cccc", "dddd")}, `
aaaa│bbbb
7   │77
cccc‖dddd
777 ‖7777
     ~~~~
`},
		{"narrower than a token", display{columns: 3}, picture{cells: cellsOf(9, "abcdefghijkl")}, `
abcdefg…
7
`},
		{"the end alone", display{columns: 10}, picture{cells: cellsOf(1, "aaaa", "bbbb", "cccc", "dddd"), shown: 1}, `
… 2 tokens, of which 1 may move …
cccc│dddd
777 │7777
~~~~ ~~~~
`},
		{"any width that COLUMNS can say", display{columns: math.MaxInt}, picture{cells: cellsOf(1, "a", "b"), shown: 6}, `
a‖b
7‖77
  ~~
`},
		{"colours", display{columns: 80, colour: true}, picture{cells: cellsOf(1, "a", "b")},
			"\na\x1b[2m‖\x1b[0m\x1b[1;33mb\x1b[0m\n\x1b[2m7\x1b[0m\x1b[2m‖77\x1b[0m\n  \x1b[1;33m~~\x1b[0m\n"},
	} {
		if got := "\n" + tt.d.draw(tt.p); got != tt.want {
			t.Errorf("%s: got%s\nwant%s", tt.name, got, tt.want)
		}
	}
}

// TestDrawWidth: whatever the tokens and the width, no row is wider than asked
// for, down to the least width.
func TestDrawWidth(t *testing.T) {
	cells := cellsOf(7, "the", " quick", "北京", "🤦🏽‍♂️", strings.Repeat(" ", 300), "\n\n", "\x1b[31m", "e\u0301\u200b", "\xff\xfe\xfd", "ｗｉｄｅ")
	for columns := 9; columns < 120; columns++ {
		for _, row := range strings.Split(display{columns: columns}.draw(picture{cells: cells}), "\n") {
			if n := runewidth.StringWidth(row); n > columns {
				t.Fatalf("a row of %d columns where %d are there: %q", n, columns, row)
			}
		}
	}
}

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"a b", "a·b"},
		{"\t\r\n", "→␍↵"},
		{"\x00\x1b\x7f", "␀␛␡"},
		{"\u00a0\u200b\ufeff\u202e\ufe0f", "‹00A0›‹200B›‹FEFF›‹202E›‹FE0F›"},
		{"\u0301", "◌\u0301"},
		{"e\u0301", "e\u0301"},
		{"\xf0\x9f", `\xf0\x9f`},
		{strings.Repeat(" ", 8), "········"},
		{strings.Repeat(" ", 200) + "x", "·×200x"},
		{"", ""},
	} {
		if got := visible([]byte(tt.in)); got != tt.want {
			t.Errorf("visible(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestDisplay(t *testing.T) {
	t.Setenv("COLUMNS", "33")
	if d := newDisplay(&strings.Builder{}); d != (display{columns: 33}) {
		t.Errorf("%+v; want 33 columns and no colours where there is no terminal", d)
	}
	t.Setenv("COLUMNS", "wide")
	if d := newDisplay(&strings.Builder{}); d.columns != defaultColumns {
		t.Errorf("%d columns, want %d", d.columns, defaultColumns)
	}
}
