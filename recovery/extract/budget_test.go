package extract

import (
	"strings"
	"testing"
)

// A text of very many segments is parted into as many as are allowed, each byte in one.
func TestSegmentsAreBounded(t *testing.T) {
	for _, unit := range []string{"</think>", "<think>x</think>y", "```\nx\n```\n"} {
		text := []byte(strings.Repeat(unit, maxSegments))
		s := Segments(text, Options{})
		end := 0
		for _, seg := range s {
			if seg.Start != end {
				t.Fatalf("%q: a segment begins at %d, the last ends at %d", unit, seg.Start, end)
			}
			end = seg.End
		}
		if end != len(text) || len(s) > maxSegments+2 {
			t.Errorf("%q: %d segments up to %d of %d", unit, len(s), end, len(text))
		}
	}
}
