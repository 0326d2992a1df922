package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/unfray/unfray/jsonrepair"
)

func diffOf(t testing.TB, d display, in string, o jsonrepair.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.diff(&b, []byte(in), changesOf(jsonrepair.Repair([]byte(in), o))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "[1]", "valid, no edits\n"},
		{"replaced", `{"ok": True, "n": 1}`, `
byte 7, line 1: literal
- {"ok": True, "n": 1}
         ~~~~
+ {"ok": true, "n": 1}
         ~~~~
repaired, 1 edit: 1 literal
`},
		{"inserted", "[1\n 2]", `
byte 2, line 1: missing_comma
- [1↵ 2]
+ [1,↵ 2]
    ~
repaired, 1 edit: 1 missing_comma
`},
		{"removed", "[1,\t]", `
byte 2, line 1: surplus_comma
- [1,→]
    ~
+ [1→]
repaired, 1 edit: 1 surplus_comma
`},
		{"two places", "[+1,\n\n" + strings.Repeat("1,", 60) + "+2]", `
byte 1, line 1: number
- [+1,↵↵1,1,1,1,1,1,1,1,1,1,1…
   ~~
+ [1,↵↵1,1,1,1,1,1,1,1,1,1,1…
   ~
byte 126, line 3: number
- …1,1,1,1,1,1,1,1,1,1,1,1,+2]
                           ~~
+ …1,1,1,1,1,1,1,1,1,1,1,1,2]
                           ~
repaired, 2 edits: 2 number
`},
		{"wide characters", "{'日本': '語'}", `
byte 1, line 1: quote
- {'日本': '語'}
   ~    ~  ~  ~
+ {"日本": "語"}
   ~    ~  ~  ~
repaired, 4 edits: 4 quote
`},
		{"bytes", "[\"\xff\"]", `
byte 2, line 1: invalid_utf8
- ["\xff"]
    ~~~~
+ ["` + "\ufffd" + `"]
    ~
byte 2, line 1: invalid_utf8: this byte is not part of any UTF-8 sequence
? ["\xff"]
    ~~~~
repaired, 1 edit: 1 invalid_utf8
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := diffOf(t, display{columns: 80}, tc.in, jsonrepair.Options{}); got != strings.TrimPrefix(tc.want, "\n") {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func TestDiffColours(t *testing.T) {
	got := diffOf(t, display{columns: 80, colour: true}, `[True]`, jsonrepair.Options{})
	want := "\x1b[1mbyte 1, line 1:\x1b[0m literal\n" +
		"- [\x1b[31mTrue\x1b[0m]\n   \x1b[31m~~~~\x1b[0m\n" +
		"+ [\x1b[32mtrue\x1b[0m]\n   \x1b[32m~~~~\x1b[0m\n" +
		"repaired, 1 edit: 1 literal\n"
	if got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// A long text is shown without its middle, and no row is much wider than the
// terminal.
func TestDiffLong(t *testing.T) {
	in := "Here it is. " + strings.Repeat("Words and more wörds. ", 100) + "\n{'a': 1}"
	got := diffOf(t, display{columns: 60}, in, jsonrepair.Options{})
	if !strings.Contains(got, "- Here·it·is.·Word … 2313 bytes … nd·more·wörds.·↵{…\n") {
		t.Error(got)
	}
	for line := range strings.Lines(got) {
		if runewidth.StringWidth(line) > 120 {
			t.Errorf("a row of %d columns: %s", runewidth.StringWidth(line), line)
		}
	}
}

// A diff of anything is text that no control character of the input reaches.
func FuzzDiff(f *testing.F) {
	for _, s := range append([]string{"[1,\x1b[31m2]", "{\"a\":\"\u202e\x00"}, brokenTexts...) {
		for _, columns := range []int{40, -10, math.MaxInt} { // not what a terminal says, but what COLUMNS can
			f.Add([]byte(s), columns)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, columns int) {
		got := diffOf(t, display{columns: columns}, string(in), jsonrepair.Options{MaxEdits: 1000})
		if !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
		for _, c := range got {
			if c < ' ' && c != '\n' || c == 0x7f || c == 0x9b {
				t.Errorf("%q", got)
			}
		}
	})
}
