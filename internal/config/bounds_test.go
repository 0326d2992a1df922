package config

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// raceEnabled says that the race detector is on.
var raceEnabled bool

// upTo repeats a unit up to the largest file that may follow a prefix.
func upTo(prefix, unit string) string {
	return prefix + strings.Repeat(unit, min((maxFileBytes-len(prefix))/len(unit), (maxLines-2)/max(1, strings.Count(unit, "\n"))))
}

// line repeats a unit up to the longest line.
func line(unit string) string { return strings.Repeat(unit, (maxLineBytes-1)/len(unit)) + "\n" }

func staircase(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// Whatever a file has, reading it takes bounded time and memory. The limits
// here are many times what is measured.
func TestBounds(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("reads 60 files of the largest size")
	}
	blank := strings.Repeat("\n", maxBlankLines)
	laughs := "x-0: &a0 {name: a, file: f, zzz: 1}\n"
	for i := range 9 {
		laughs += fmt.Sprintf("x-%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	merges := "x-0: &a0 {file: f, zzz: 1}\n"
	for i := range 9 {
		merges += fmt.Sprintf("x-%d: &a%d {<<: [%s]}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	wide := "x-a: &a {"
	for i := range 1900 {
		wide += fmt.Sprintf("k%d: 1,", i)
		if i%100 == 99 {
			wide += "\n "
		}
	}
	wide += "}\n"
	for name, source := range map[string]string{
		"largest": upTo("", line("#")), "too large": strings.Repeat("#\n", maxFileBytes), "comments": upTo("", "#\n"), "lines": upTo("", "a\n"), "keys": upTo("", "a: b\n"), "no values": upTo("", "a:\n"),
		"brackets": upTo("", line("[")), "braces": upTo("", line("{")), "closing": upTo("", line("]")), "dashes": upTo("", line("- ")), "items": upTo("", "- a\n"), "null items": upTo("", "-\n"),
		"plain": upTo("a: b\n", line(" c")), "plain dashes": upTo("a: b\n", "  - c\n"), "quoted": upTo("a: \"\n", line("b ")), "quoted lines": upTo("a: \"", "b\n\n"), "single quotes": upTo("a: '\n", line(" ")),
		"block": upTo("a: |\n", "  b"+blank), "long block": upTo("a: |\n", "  "+strings.Repeat("b ", 1000)+"\n"), "blocks": upTo("", "a: |\n  c"+blank), "folded": upTo("a: >\n", "  c\n\n"), "block end": upTo("a: |\n", "  "+strings.Repeat("c", 2000)+"\n")[:maxFileBytes-3000] + blank,
		"colons": upTo("", line(":")), "keys in a line": upTo("", line("a: ")), "anchors": upTo("", line("&a ")), "aliases": upTo("", line("*a ")), "tags": upTo("", line("!a ")), "questions": upTo("", line("? ")),
		"flow nulls": upTo("a: {\n", line("a:,")), "flow keys": upTo("a: {\n", line("a,")), "flow items": upTo("a: [\n", line("a,")), "flow colons": upTo("a: {\n", line("a:b:")), "flow dashes": upTo("a: [\n", line("- ")), "flow columns": upTo("a: [\n", "a:\n"), "less": upTo("", line("<< ")),
		"maps": upTo("", "- a:\n"+strings.Repeat("  b:\n", maxKeys-2)), "sister maps": upTo("", "a:\n"+strings.Repeat(" b: 1\n", maxKeys-2)), "stairs": strings.Repeat(staircase(20), 400), "high stairs": staircase(1200), "stairs in brackets": "a: [\n" + staircase(1200),
		"long keys": strings.Repeat(strings.Repeat("k", 120)+":\n  "+strings.Repeat("j", 120)+":\n    "+strings.Repeat("- x: 1\n    ", 50)+"\n", 150),
		"spaces":    upTo("", strings.Repeat(" ", maxLineBytes-2)+"a\n"), "escapes": upTo("a: \"\n", line(`\x41`)), "CR": upTo("", "a\r"), "percent": upTo("", "%\n"), "dots": upTo("", "...\n"),
		"laughs": laughs + "models: *a9\n", "laughs in lists": laughs + "models: [" + strings.Repeat("\n"+strings.Repeat("{name: a, aliases: *a9}, ", 50), 20) + "]\n", "merges": merges + "models: [" + strings.Repeat("\n"+strings.Repeat("*a9, ", 400), 3) + "]\n",
		"wide aliases": wide + "models: [" + strings.Repeat("\n"+strings.Repeat("*a, ", 500), 15) + "]\n", "wide merges": wide + "models: [" + strings.Repeat("\n"+strings.Repeat("{<<: [*a, *a]}, ", 120), 15) + "]\n",
		"alias items": "x-a: &a [" + strings.Repeat("\n"+strings.Repeat("b,", 900), 8) + "]\nmodels: [" + strings.Repeat("\n"+strings.Repeat("{aliases: *a}, ", 120), 8) + "]\n",
		"errors":      "models:\n" + strings.Repeat("- {zzz: 1, namee: 2, fiel: 3}\n", 2500),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := testReader().Parse("file.yaml", []byte(source))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			mib := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%v, %d MiB allocated, %d bytes: %.100v", took.Round(time.Millisecond), mib, len(source), err)
			if took > 20*time.Second || mib > 1000 {
				t.Errorf("%d bytes take %v and %d MiB", len(source), took, mib)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestAliasesAreBounded(t *testing.T) {
	source := "x-a: &a [" + strings.Repeat("b,", 300) + "\n" + strings.Repeat("b,", 300) + "]\nmodels: [" + strings.Repeat("\n"+strings.Repeat("{aliases: *a}, ", 100), 3) + "]\n"
	_, err := testReader().Parse("file.yaml", []byte(source))
	for _, e := range listOfErrors(t, err) {
		if strings.Contains(e.Text, "aliases make more than 100000 keys and values of the file") {
			return
		}
	}
	t.Errorf("no error about aliases: %v", err)
}
