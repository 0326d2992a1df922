package delimiter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// families are separators that prompts have, by family.
var families = []struct {
	name  string
	texts []string
}{
	{"rule", []string{"\n---\n", "\n\n---\n\n", "---\n", "\n---\n\n", "\n***\n", "\n\n***\n\n", "\n___\n", "\n===\n", "\n-----\n"}},
	{"tag", []string{"<ctx>\n", "</ctx>\n", "<ctx>", "</ctx>", "\n</ctx>\n", "<context>\n", "</context>\n", "\n</context>\n\n", "<document>\n", "</document>\n"}},
	{"fence", []string{"```", "```\n", "\n```\n", "```python\n", "\n~~~\n"}},
	{"heading", []string{"###", "\n###\n", "\n### ", "\n\n### ", "\n#\n", " # # "}},
	{"quote", []string{`"""`, "\"\"\"\n", "\n\"\"\"\n", "'''\n"}},
	{"newline", []string{"\n", "\n\n", "\n\n\n", "\r\n"}},
	{"marker", []string{"<|sep|>", "<|sep|>\n", "\n<|sep|>\n", "[SEP]", "<sep>"}},
	{"label", []string{"Context:\n", "Context:", "\nAnswer:", "\nAnswer: ", "Question: ", `{"answer": "`, "https:"}},
}

// addedFamily is the family of the tokenizer's own added tokens.
const addedFamily = "added"

// Families names the families that [Family] knows.
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return append(names, addedFamily)
}

// Family gives the separators of a family: "rule", "tag", "fence", "heading",
// "quote", "newline", "marker", "label", and "added", the tokenizer's own added
// tokens; or of all with "". It is an error if there is no such family.
func Family(t *tokenizer.Tokenizer, name string) ([]Candidate, error) {
	var list []Candidate
	known := name == ""
	for _, f := range families {
		if name != "" && name != f.name {
			continue
		}
		known = true
		for _, s := range f.texts {
			list = append(list, Candidate{Text: s, Family: f.name})
		}
	}
	if name == "" || name == addedFamily {
		return append(list, addedTokens(t.Vocab())...), nil
	}
	if !known {
		return nil, fmt.Errorf("delimiter: no family %q; choose one of %s", name, strings.Join(Families(), ", "))
	}
	return list, nil
}

// addedTokens makes candidates of added tokens: of control tokens those without
// a role at the ends of a text, and of tokens that differ in numbers or in the
// length of a run, such as those kept in reserve, the first.
func addedTokens(v *vocab.Vocab) (list []Candidate) {
	s := v.Specials()
	roles := append([]vocab.ID{s.BOS, s.EOS, s.EOT, s.Unknown, s.Pad, s.FIMPrefix, s.FIMSuffix, s.FIMMiddle, s.FIMPad, s.FIMRepo, s.FIMFile}, s.EOG...)
	seen := map[string]bool{}
	for _, special := range []bool{true, false} {
		ids := slices.Clone(v.UserDefined())
		if special {
			ids = slices.Clone(v.Controls())
		}
		slices.Sort(ids)
		for _, id := range ids {
			text := string(v.Bytes(id))
			if pattern := shape(text); !slices.Contains(roles, id) && !seen[pattern] {
				seen[pattern] = true
				list = append(list, Candidate{Text: text, Family: addedFamily, Special: special})
			}
		}
	}
	return list
}

// shape is a text with each number, and each run of one character, put as one
// character.
func shape(s string) string {
	var b strings.Builder
	last := rune(-1)
	for _, r := range s {
		if '0' <= r && r <= '9' {
			r = '0'
		}
		if r != last {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}
