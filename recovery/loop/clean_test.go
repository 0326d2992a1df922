package loop

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// numbered joins what f gives for 1 to n.
func numbered(n int, f func(i int) string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(f(i))
	}
	return b.String()
}

// clean are texts that repeat themselves for good reasons.
var clean = map[string]string{
	"periodic fraction": "That is $0." + strings.Repeat("9", 500) + " or 0." + strings.Repeat("142857", 100) + ".",
	"a googol":          "1" + strings.Repeat("0", 1000),
	"codons":            "The sequence is " + strings.Repeat("CCA GCT GCC ", 20) + "and so on.",
	"table": "| Name | Value | Unit | Note |\n|---|---|---|---|\n" + numbered(40, func(i int) string {
		return fmt.Sprintf("| item %d | 0 | n/a | - |\n", i)
	}),
	"table of equal rows":    "| a | b | c | d |\n|---|---|---|---|\n" + strings.Repeat("| - | 0 | no | none |\n", 60),
	"table in one line":      "| x |" + strings.Repeat(" yes |", 200) + "\n",
	"table separator":        "|" + strings.Repeat("---|", 300) + "\n",
	"ASCII table":            "+" + strings.Repeat("------+", 200) + "\n",
	"rulers":                 "Title\n" + strings.Repeat("=", 300) + "\n\n" + strings.Repeat("-", 1000) + "\n" + strings.Repeat("- ", 200) + "\n" + strings.Repeat("*", 120),
	"box drawing":            "┌" + strings.Repeat("─", 400) + "┐\n",
	"leaders":                "Chapter 1 " + strings.Repeat(".", 300) + " 12\nChapter 2 " + strings.Repeat(". ", 200) + " 15\n",
	"blank template":         strings.Repeat("Name: ____________________\nDate: ____________________\n", 20),
	"blank lines":            "a" + strings.Repeat("\n", 200) + "b" + strings.Repeat(" ", 1000) + "c",
	"matrix of zeros":        numbered(100, func(int) string { return strings.Repeat("0 ", 99) + "0\n" }),
	"JSON matrix of zeros":   "[" + numbered(100, func(int) string { return "[" + strings.Repeat("0, ", 99) + "0],\n" }) + "]",
	"array of nulls":         "[" + strings.Repeat("null, ", 2000) + "null]",
	"array of booleans":      "[" + strings.Repeat("true, false, ", 1000) + "true]",
	"array of empty strings": "[" + strings.Repeat(`"", `, 500) + `""]`,
	"empty CSV":              "a,b,c\n" + strings.Repeat(",,\n", 500),
	"pretty JSON": "{\n  \"cells\": [\n" + strings.Repeat("    {\n      \"state\": \"empty\"\n    },\n", 40) +
		"    {}\n  ]\n}",
	"numbers list":      numbered(2000, func(i int) string { return fmt.Sprint(i, "\n") }),
	"hexadecimal bytes": "var zero = []byte{\n" + strings.Repeat("\t0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,\n", 300) + "}\n",
	"hex dump":          numbered(500, func(i int) string { return fmt.Sprintf("%08x  00 00 00 00 00 00 00 00  |........|\n", i*16) }),
	"base64":            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" + base64.StdEncoding.EncodeToString(make([]byte, 6000)),
	"base64 in lines": numbered(100, func(int) string {
		return strings.Repeat("A", 76) + "\n"
	}) + "iVBORw0KGgo=\n",
	"minified JS": "!function(e,t){" + strings.Repeat("e.push({a:1,b:2});", 100) + strings.Repeat("}", 60) + strings.Repeat("});", 60) + "}(this);",
	"markup":      "<div>" + strings.Repeat("<div><span></span></div>\n", 60) + strings.Repeat("</div>", 80),
	"list in HTML": "<ul>\n" + strings.Repeat("  <li><a href=\"#\">Item</a></li>\n", 60) +
		"</ul>\n",
	"code in a fence": "```c\n" + strings.Repeat("    counter++;\n    check(counter);\n", 30) + "```\n",
	"text in a fence": "```\n" + strings.Repeat("Retrying the connection to the server now.\n", 60) + "```\n",
	"unrolled loop":   "```asm\n" + strings.Repeat("\tMOVQ\t(SI), CX\n\tADDQ\t$8, SI\n", 400) + "```\n",
	"log with times": numbered(300, func(i int) string {
		return fmt.Sprintf("2026-01-02T10:%02d:%02dZ INFO request handled in 5 ms\n", i/60, i%60)
	}),
	"log of equal lines": strings.Repeat("[INFO] 10:00:00 GET /health 200 (0ms) ua=\"probe/1.0\"\n", 100),
	"numbered lines":     numbered(40, func(i int) string { return fmt.Sprintf("Line %d: item number %d of forty\n", i, i) }),
	"poem with refrain": numbered(6, func(i int) string {
		return fmt.Sprintf("Verse %d of the ballad tells of the sea,\nof %d ships and what they would be.\n\n", i, i*i) +
			strings.Repeat("And the wind blows on, and the wind blows on,\n", 4) + "\n"
	}),
	"chorus three times": "Oh come with me now to the shore,\nwhere the sea sings the song of before,\n\n" +
		strings.Repeat("Sing it loud, sing it clear,\nsing it so that all can hear,\nfor the night is almost gone,\nand the morning will be here.\n\n", 3) + "The end.",
	"short song lines": strings.Repeat("na na na na hey\n", 10),
	"laughter":         strings.Repeat("ha", 60) + " " + strings.Repeat("ha ", 60) + strings.Repeat("!", 100),
	"scream":           "N" + strings.Repeat("o", 150) + "!",
	"checkboxes":       "Tasks:\n" + strings.Repeat("- [ ] \n", 60),
	"equal cells":      strings.Repeat("x\to\tx\n", 300),
	"board":            strings.Repeat(". . . . . . . .\n", 40),
	"pretty code": "func f() {\n" + strings.Repeat("\tif err != nil {\n\t\treturn err\n\t}\n", 40) +
		"}\n",
	"LaTeX":     `\begin{pmatrix}` + strings.Repeat(`0 & 0 & 0 & 0 \\ `, 60) + `\end{pmatrix}`,
	"emoji row": strings.Repeat("😂", 60) + strings.Repeat("🟩", 100),
}

func TestClean(t *testing.T) {
	for name, text := range clean {
		for _, o := range []Options{{}, {Context: Reasoning}} {
			if l := Find([]byte(text), o); l != nil {
				t.Errorf("%s: %s in %s, %d × %d bytes: %.60q", name, l.Kind, l.Context, l.Copies, l.Period, l.Unit)
			}
			if l := Find([]byte(intro+text), o); l != nil {
				t.Errorf("%s behind prose: %s in %s, %d × %d bytes: %.60q", name, l.Kind, l.Context, l.Copies, l.Period, l.Unit)
			}
		}
	}
}
