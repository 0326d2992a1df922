package textrepair

import (
	"runtime"
	"strings"
	"testing"
)

// hostile are texts made to cost much, to be repeated.
var hostile = map[string]string{
	"leads":    "ÃÂâðÐÑÃÂâðÐÑ",
	"layers":   "ÃƒÆ’Ã‚Â©",
	"MacRoman": "‚Äö√†√∂¬¨¬©",
	"pages":    "вЂ™Ã©├⌐√©Ă©",
	"lost":     "â€\ufffd Ã Ð ",
	"entities": "&amp;`&lt;",
	"escapes":  "\x1b[1;2;3\x1b]8;;",
	"bytes":    "\xff\xe2\x80\xed\xa0",
	"marks":    "ĠaĊ▁b<0x0A>",
	"controls": "a\u200b\r\r\b_\b",
}

// TestLinear doubles the input and compares how much memory was asked for, which goes with the work.
func TestLinear(t *testing.T) {
	for name, unit := range hostile {
		cost := func(n int) float64 {
			text := []byte(strings.Repeat(unit, n/len(unit)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			Repair(text, Options{})
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		small, large := cost(16<<10), cost(64<<10)
		if large > 6*small+1e5 {
			t.Errorf("%s: %.0f bytes of memory for 16 KiB, %.0f for 64 KiB", name, small, large)
		}
	}
}

// TestCleanTextCostsNothing holds the fast path.
func TestCleanTextCostsNothing(t *testing.T) {
	for _, line := range []string{"plain text & more <b>, it's \"quoted\"\n", "L’été — c’était délicieux…\n", "Привет, как дела?\n", "你好，世界。\n", "Καλημέρα κόσμε!\n"} {
		text := []byte(strings.Repeat(line, 1000))
		if n := testing.AllocsPerRun(3, func() { Repair(text, Options{}) }); n > 3 {
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}
