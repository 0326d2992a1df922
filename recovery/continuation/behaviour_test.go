package continuation

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

var whole = []string{
	`{"name": "Ann Miller", "city": "San Francisco", "tags": ["red", "green", "red"], "n": [1, 22, 333], "nested": {"deep": {"er": null, "ok": true}}, "note": "She said \"hi\" in caf\u00e9 \ud83d\ude00, twice."}`,
	"{\n  \"title\": \"A list of things\",\n  \"items\": [\n    {\n      \"id\": 1,\n      \"text\": \"the first one\"\n    },\n    {\n      \"id\": 2,\n      \"text\": \"the second one\"\n    }\n  ],\n  \"total\": 2\n}",
	`[{"id":1,"v":"a"},{"id":2,"v":"a"},{"id":2,"v":"a"},{"id":3,"v":"b"}]`,
	"Here is the JSON:\n\n```json\n{\"a\": 1, \"b\": {\"c\": [true, false, null]}, \"d\": \"x\"}\n```\n\nThat is all there is.",
	"The old mill stood by the river. Every morning the miller opened the gates, and the water began to sing. Nobody knew why.\n\nOne day a stranger came. \"Who are you?\" asked the miller. The stranger only smiled, and the water sang on.",
	"1. Wash the rice in cold water.\n2. Boil two cups of water.\n3. Add the rice, and stir once.\n4. Wait for ten minutes.\n5. Serve with sauce.",
	"```go\n// add adds.\nfunc add(a, b int) int {\n\treturn a + b\n}\n\nfunc main() {\n\tfmt.Println(add(1, 2))\n}\n```\n",
	"| name | price |\n|------|-------|\n| tea | 2 |\n| coffee | 3 |\n| cake | 4 |\n",
	"北京是中华人民共和国的首都，位于华北平原的北部。城市的历史可以追溯到三千多年前，如今是政治和文化中心。",
	"Le café est prêt 👩‍👩‍👧. Héloïse préfère le thé — «très chaud», dit-elle…",
}

// other answers to the same questions.
var others = map[string]string{
	whole[0]: `{"name": "Ann Lee", "city": "San Jose", "tags": []}`,
	whole[1]: "{\n  \"title\": \"Some other things\",\n  \"items\": []\n}",
	whole[2]: `[{"id":1,"v":"z"},{"id":9,"v":"y"}]`,
	whole[3]: "Here is the JSON:\n\n```json\n{\"a\": 2, \"z\": 0}\n```",
	whole[4]: "The old mill stood on a hill. It was made of wood, and its sails turned in the wind.",
	whole[5]: "1. Wash the beans.\n2. Soak them over night.\n3. Cook them.",
	whole[6]: "```go\nfunc sum(a, b int) int { return a + b }\n```\n",
	whole[7]: "| name | cost |\n|---|---|\n| milk | 1 |\n",
	whole[8]: "上海是中国最大的城市。",
	whole[9]: "Bonjour ! Voici une autre histoire.",
}

// behaviours are what models do that are asked to go on with doc behind its first
// cut bytes. right says that it must be joined.
var behaviours = []struct {
	name   string
	answer func(doc string, s *Seam, r *rand.Rand) string
	right  bool
}{
	{"goes on", func(doc string, s *Seam, _ *rand.Rand) string { return doc[len(s.Keep):] }, true},
	{"goes on behind the text", func(doc string, s *Seam, _ *rand.Rand) string { return doc[len(s.text):] }, false},
	{"repeats a tail", func(doc string, s *Seam, r *rand.Rand) string { return doc[r.IntN(len(s.text)+1):] }, false},
	{"skips a bit", func(doc string, s *Seam, r *rand.Rand) string {
		return doc[len(s.text)+r.IntN(len(doc)-len(s.text)+1):]
	}, false},
	{"starts again", func(doc string, _ *Seam, _ *rand.Rand) string { return doc }, false},
	{"loses white space", func(doc string, s *Seam, _ *rand.Rand) string {
		return string(bytes.TrimSpace([]byte(doc[len(s.Keep):])))
	}, false},
	{"introduces a tail", func(doc string, s *Seam, r *rand.Rand) string {
		return "Sure, continuing:\n\n" + doc[r.IntN(len(s.text)+1):]
	}, false},
	{"thinks first", func(doc string, s *Seam, _ *rand.Rand) string {
		return "<think>It ends with " + string(s.text) + ".</think>\n\n" + doc[len(s.Keep):]
	}, false},
	{"fences a tail", func(doc string, s *Seam, r *rand.Rand) string {
		return "```json\n" + doc[r.IntN(len(s.text)+1):]
	}, false},
	{"says something else", func(doc string, _ *Seam, _ *rand.Rand) string { return others[doc] }, false},
	{"excuses itself", func(string, *Seam, *rand.Rand) string { return "I'm sorry, but I cannot continue this text." }, false},
	{"sums up", func(string, *Seam, *rand.Rand) string { return "In summary, this was about several things." }, false},
}

// sameText reports whether a text is doc, apart from white space where that between
// the tokens of JSON was passed over.
func sameText(text []byte, doc string, p Proof) bool {
	if p != Structural {
		return strings.TrimRight(string(text), "\n") == strings.TrimRight(doc, "\n")
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), "") }
	return words(string(text)) == words(doc)
}

// TestNoWrongJoin has documents cut at every byte and continued in all ways that
// models do it. Whatever is joined makes the document; all else is an error.
func TestNoWrongJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	joined, refused := map[string]int{}, map[string]int{}
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, doc := range whole {
		for cut := 1; cut < len(doc); cut += step {
			for _, mode := range []Mode{Prefill, Instruct} {
				s, err := Plan([]byte(doc[:cut]), Options{Mode: mode})
				if err != nil {
					t.Fatalf("%q: %v", doc[:cut], err)
				}
				for _, b := range behaviours {
					if s.shape.whole() && b.name != "goes on" {
						continue // nothing is to be added
					}
					answer := []byte(b.answer(doc, s, r))
					j, err := Join(s, answer)
					if r.IntN(4) == 0 {
						compareWithPieces(t, s, answer, r)
					}
					if err != nil {
						var e *SeamError
						if !errors.As(err, &e) {
							t.Fatalf("%v is no SeamError", err)
						}
						rest := bytes.TrimSpace([]byte(doc[cut:]))
						if b.right && mode == Prefill && len(rest) > 0 {
							t.Errorf("%s, %s: %q | %q: %v", b.name, mode, s.Keep, s.Require, err)
						}
						refused[b.name]++
						continue
					}
					joined[b.name]++
					text := append(bytes.Clone(s.text), j.Text...)
					// Who leaves something out, or is in a text that repeats itself, and begins
					// with what was asked for, cannot be told from one who goes on.
					asked := bytes.Contains(answer, bytes.TrimSpace(s.Require))
					if asked && (b.name == "skips a bit" || doc == whole[2] && !b.right) {
						continue
					}
					if b.name == "repeats a tail" && mode == Prefill && !s.once(len(s.Keep)) {
						continue // nobody can tell; and the model was not given more than Keep
					}
					// The text may be too short to tell one document from another.
					if !sameText(text, doc, j.Proof) && !sameText(text, others[doc], j.Proof) && weight(s.text) >= 4 {
						t.Errorf("%s, %s: %q | %q and %q: joined %q (%s)", b.name, mode, s.Keep, s.Require, answer, j.Text, j.Proof)
					}
				}
			}
		}
	}
	for _, b := range behaviours {
		t.Logf("%s: joined %d, refused %d", b.name, joined[b.name], refused[b.name])
	}
}
