package continuation

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	city    = `{"name": "Ann Miller", "city": "San Fr`
	story   = "The old mill stood by the river. Every morning the miller opened the gates, and the water be"
	code    = "Here is the function:\n\n```go\nfunc add(a, b int) int {\n\treturn a +"
	closing = "\n\nLet me know if you have any questions!"
	steps   = "1. Wash the rice in cold water.\n2. Boil two cups of water.\n3. Add the ri"
)

var paragraph = "A first paragraph " + strings.Repeat("that goes on for quite a while, ", 6) + "until it ends."

// joins are answers that go on with a text, and such that do not.
var joins = []struct {
	name   string
	text   string
	mode   Mode
	answer string
	want   string // what is added
	proof  Proof
	reason Reason // why nothing is
}{
	// What was cut off is produced again.
	{"JSON", city, Prefill, ` "city": "San Francisco"}`, `ancisco"}`, Reproduced, ""},
	{"JSON, other white space", city, Prefill, "\n  \"city\":\"San Francisco\"\n}", "ancisco\"\n}", Structural, ""},
	{"JSON, cut behind a comma", `{"a": "x", "b": "y",`, Prefill, ` "b": "y", "c": 1}`, ` "c": 1}`, Reproduced, ""},
	{"JSON, cut inside a number", `{"a": [10, 2`, Prefill, `"a": [10, 25, 30]}`, `5, 30]}`, Reproduced, ""},
	{"JSON, cut inside an escape", `{"a": "x", "b": "caf\u00`, Prefill, ` "b": "caf\u00e9"}`, `e9"}`, Reproduced, ""},
	{"JSON, cut inside a name", `{"a": "x", "na`, Prefill, `"a": "x", "name": null}`, `me": null}`, Reproduced, ""},
	{"JSON, nothing but an opener", `{`, Prefill, `{"a": 1}`, `"a": 1}`, Reproduced, ""},
	{"JSON, nothing but openers", `{"items": [{"`, Prefill, `"items": [{"id": 1}]}`, `id": 1}]}`, Reproduced, ""},
	{"JSON in a fence", "```json\n{\"a\": 1, \"b\": [1, 2", Prefill, " \"b\": [1, 2, 3]}\n```", ", 3]}\n```", Reproduced, ""},
	{"JSON, white space in the text", "{\"name\": \"Ann Miller\",\n  ", Prefill, "\n\"name\":\n\"Ann Miller\",\n\n\"x\": 1}", "\"x\": 1}", Structural, ""},
	{"prose", story, Prefill, " the water began to sing.", "gan to sing.", Reproduced, ""},
	{"a list", steps, Prefill, " Add the rice and stir.\n4. Serve.", "ce and stir.\n4. Serve.", Reproduced, ""},
	{"code", code, Prefill, "\n\treturn a + b\n}\n```\n", " b\n}\n```\n", Reproduced, ""},
	{"a short text from its beginning", "The ca", Prefill, "The capital is Rome.", "pital is Rome.", Reproduced, ""},

	// The answer repeats more, or less, than was cut off.
	{"a longer tail of JSON", city, Instruct, `"Ann Miller", "city": "San Francisco"}`, `ancisco"}`, Overlap, ""},
	{"the whole JSON again", city, Prefill, `{"name": "Ann Miller", "city": "San Francisco"}`, `ancisco"}`, Overlap, ""},
	{"as asked", city, Instruct, ` "city": "San Francisco"}`, `ancisco"}`, Reproduced, ""},
	{"without the white space", city, Prefill, `"city": "San Francisco"}`, `ancisco"}`, Structural, ""},
	{"behind a fence", city, Instruct, "```json\n \"city\": \"San Francisco\"}\n```\nThat is all.", `ancisco"}`, Overlap, ""},
	{"a long message sent back", strings.Repeat(story+"gan. ", 60) + "And so", Prefill, strings.Repeat(story+"gan. ", 60) + "And so on.", " on.", Overlap, ""},
	{"a longer tail of prose", story, Instruct, "Every morning the miller opened the gates, and the water began to sing.", "gan to sing.", Overlap, ""},
	{"a shorter tail of prose", story, Instruct, "the water began to sing.", "gan to sing.", Overlap, ""},
	{"behind an introduction", story, Instruct, "Sure, continuing:\n\nopened the gates, and the water began.", "gan.", Overlap, ""},
	{"behind dots", story, Instruct, "...and the water began.", "gan.", Overlap, ""},
	{"behind reasoning", story, Instruct, "<think>It ends with \"the water be\".</think>\n\nand the water began.", "gan.", Overlap, ""},
	{"code that repeats itself", "```py\n" + paragraph + "\nx = so", Prefill, " ends.\nx = some\n\n" + paragraph, "me\n\n" + paragraph, Reproduced, ""},
	{"a fence inside a fence", code, Instruct, "```go\nfunc add(a, b int) int {\n\treturn a + b\n}\n```\n", " b\n}\n```\n", Overlap, ""},

	// Exact answers need no proof.
	{"exact", city, Exact, `ancisco"}`, `ancisco"}`, ByTokens, ""},
	{"exact, inside a character", "caf\xc3", Exact, "\xa9 au lait", "\xa9 au lait", ByTokens, ""},

	// What must not be joined.
	{"a member that may not be the next", `{"a": 1, "b": 2,`, Instruct, `"c": 3}`, "", "", NoOverlap},
	{"a value that may not be this member's", `{"a": 1, "b":`, Instruct, `2}`, "", "", NoOverlap},
	{"a closer that may be there", `{"a": [{"b": "c"}`, Instruct, `]}`, "", "", NoOverlap},
	{"no overlap inside a string", city, Prefill, `ancisco"}`, "", "", Mismatch},
	{"a part of a word", city, Instruct, `ancisco"}`, "", "", NoOverlap},
	{"the next word", city, Instruct, ` Francisco"}`, "", "", NoOverlap},
	{"the value alone", city, Instruct, `"San Francisco"}`, "", "", NoOverlap},
	{"a restart behind an opener", `{"title": "A list", "items": [{"`, Prefill, `{"title": "Another list"}`, "", "", Restart},
	{"the same opener", `{"items": [{"`, Prefill, `{"total": 1}`, "", "", Mismatch},
	{"an element like the last", `[{"id": 2, "v": "a"},`, Instruct, `{"id": 2, "v": "a"}, {"id": 3}]`, "", "", Ambiguous},
	{"a line that comes twice", "Row, row your boat,\nRow, row your boat,\n", Instruct, "Row, row your boat,\ngently", "", "", Ambiguous},
	{"a restart with other words", city, Prefill, `{"name": "Ann M.", "city": "San Francisco"}`, "", "", Restart},
	{"a restart, other white space", city, Prefill, "{\n  \"name\": \"Bob\"}", "", "", Restart},
	{"a restart in a fence", city, Instruct, "```json\n{\"name\": \"Ann Lee\"}\n```", "", "", Restart},
	{"another member", city, Prefill, `, "country": "US"}`, "", "", Mismatch},
	{"prose in JSON", city, Instruct, "I am sorry, I cannot go on.", "", "", NoOverlap},
	{"a fence alone", city, Instruct, "```json\n", "", "", NoOverlap},
	{"a member that is there", `{"a": 1, "b": 2,`, Instruct, `"a": 3}`, "", "", NoOverlap},
	{"an element that may be there", `[1, 2, 3,`, Instruct, `1, 2, 3, 4]`, "", "", NoOverlap},
	{"a closer of the wrong kind", `{"a": [{"b": "c"}`, Prefill, `"b": "c"}}}`, "", "", Structure},
	{"broken behind the seam", city, Prefill, ` "city": "San Francisco", }`, "", "", Structure},
	{"broken far behind the seam", city, Prefill, ` "city": "San Francisco", "note": "` + strings.Repeat("x", 80) + `",}`, `ancisco", "note": "` + strings.Repeat("x", 80) + `",}`, Reproduced, ""},
	{"a surplus closer", city, Prefill, ` "city": "San Francisco"}}`, "", "", Structure},
	{"a prose opener", story, Instruct, "In summary, the mill was old.", "", "", NoOverlap},
	{"a short overlap", story, Instruct, "be careful with that", "", "", NoOverlap},
	{"a restarted story", story, Instruct, "The old mill stood by the river. It was a quiet place.", "", "", Restart},
	{"other words", story, Prefill, " the water flowed.", "", "", Mismatch},
	{"a list again from 1", steps, Instruct, "1. Wash the rice in cold water.\n2. Boil water.", "", "", Restart},
	{"a fence that is not in the text", story, Instruct, "```\nand the water began\n```", "", "", NoOverlap},
	{"repeated periods", "It goes 01010101010101010101", Instruct, "01010101010101010101 and so on", "", "", Ambiguous},
	{"empty", story, Prefill, "", "", "", NothingNew},
	{"white space", story, Prefill, " \n\n ", "", "", NothingNew},
	{"reasoning alone", story, Instruct, "<think>It ends with", "", "", NothingNew},
	{"what was cut off and no more", story, Prefill, " the water be", "", "", NothingNew},
	{"what was cut off, other white space", city, Prefill, "\n\"city\":\n\"San Fr", "", "", NothingNew},
	{"the same text", story, Instruct, story, "", "", NothingNew},
	{"exact, nothing", story, Exact, "", "", "", NothingNew},
	{"closing lines again", "The plan: we meet at nine." + closing, Prefill, closing + closing, "", "", Repetition},
	{"the end again and again", story, Instruct, "the water be\n\nthe water be\n\nthe", "", "", Repetition},
	{"an earlier paragraph", paragraph + "\n\nThen the second one stops in the mid", Prefill, " the second one stops in the middle.\n\n" + paragraph, "", "", Repetition},
}

func TestJoin(t *testing.T) {
	for _, tt := range joins {
		s, err := Plan([]byte(tt.text), Options{Mode: tt.mode})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := string(s.Keep) + string(s.Require); got != tt.text {
			t.Errorf("%s: the seam's text is %q", tt.name, got)
		}
		j, err := Join(s, []byte(tt.answer))
		reason := Reason("")
		if e := (*SeamError)(nil); errors.As(err, &e) {
			reason = e.Reason
		}
		if string(j.Text) != tt.want || j.Proof != tt.proof || reason != tt.reason {
			t.Errorf("%s: %q | %q was joined with %q: %q (%s), %v\nwant %q (%s), %s", tt.name, s.Keep, s.Require, tt.answer, j.Text, j.Proof, err, tt.want, tt.proof, tt.reason)
		}
	}
}

// byPieces joins an answer that arrives in random pieces.
func byPieces(s *Seam, answer []byte, r *rand.Rand) (text []byte, joined Joined, err error) {
	j := NewJoiner(s)
	for len(answer) > 0 && err == nil {
		n := 1 + r.IntN(min(len(answer), 40))
		_, err = j.Write(answer[:n])
		answer = answer[n:]
		text = append(text, j.Take()...)
	}
	joined, err = j.Close()
	return append(text, j.Take()...), joined, err
}

// compareWithPieces fails unless a joiner comes to what Join does.
func compareWithPieces(t testing.TB, s *Seam, answer []byte, r *rand.Rand) {
	t.Helper()
	whole, wantErr := Join(s, answer)
	text, joined, err := byPieces(s, answer, r)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q | %q and %q: %v in pieces, %v whole", s.Keep, s.Require, answer, err, wantErr)
	}
	if wantErr != nil {
		return
	}
	joined.Text = whole.Text
	if !bytes.Equal(text, whole.Text) || fmt.Sprint(joined) != fmt.Sprint(whole) {
		t.Fatalf("%q | %q and %q: %q %+v in pieces, %q %+v whole", s.Keep, s.Require, answer, text, joined, whole.Text, whole)
	}
}

func TestJoinerIsJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range joins {
		s, err := Plan([]byte(tt.text), Options{Mode: tt.mode})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			compareWithPieces(t, s, []byte(tt.answer), r)
		}
	}
}
