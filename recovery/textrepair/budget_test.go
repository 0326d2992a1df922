package textrepair

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// Behind so many edits the rest is left, by a stream as by a whole text.
func TestMaxEdits(t *testing.T) {
	line := "a\u200bb donâ€™t \x01\n"
	text := []byte(strings.Repeat(line, 500))
	for _, most := range []int{1, 7, 100, 1499, 5000} {
		o := Options{MaxEdits: most}
		r := Repair(text, o)
		if n := len(r.Edits); r.Full != (n >= most) || n > most+len(line) {
			t.Errorf("%d edits of %d, full %v", n, most, r.Full)
		}
		s := NewStream(o)
		var out []byte
		for rest := text; len(rest) > 0; rest = rest[min(7, len(rest)):] {
			out = append(out, s.Write(rest[:min(7, len(rest))])...)
			s.Edits()
		}
		if out = append(out, s.Close()...); !bytes.Equal(out, r.Text) {
			t.Errorf("limit %d: a stream makes %.80q, the whole %.80q", most, out, r.Text)
		}
		doc := []byte(`["` + strings.Repeat("donâ€™t ", 2000) + `", "â€™", "` + strings.Repeat("Ã© ", 4000) + `"]`)
		if r := RepairJSON(doc, o); jsonrepair.Check(r.Text, 0) != nil || r.Full != (len(r.Edits) >= most) {
			t.Errorf("limit %d: %d edits, full %v, %.80q", most, len(r.Edits), r.Full, r.Text)
		}
	}
}
