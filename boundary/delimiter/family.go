package delimiter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

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
// tokens but for those by which templates and engines divide turns, name roles or
// end generation; or of all with "", of the added tokens only control tokens then. It is an error if there is no such family.
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
		for _, c := range addedTokens(t.Vocab()) {
			// Those that plain text spells, such as Gemma's HTML tags, are asked for
			// by name: they would push everything else down.
			if c.Special || name == addedFamily {
				list = append(list, c)
			}
		}
		return list, nil
	}
	if !known {
		return nil, fmt.Errorf("delimiter: no family %q; choose one of %s", name, strings.Join(Families(), ", "))
	}
	return list, nil
}

// addedTokens makes candidates of added tokens: of control tokens those kept in
// reserve, of the others those that are text, and of tokens that differ in numbers
// or in the length of a run the first.
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
			if slices.Contains(roles, id) || special && !reserved(text) || !special && protocol(text) {
				continue
			}
			if pattern := shape(text); !seen[pattern] {
				seen[pattern] = true
				list = append(list, Candidate{Text: text, Family: addedFamily, Special: special})
			}
		}
	}
	return list
}

// name is what an added token is called inside its brackets, in words.
func name(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) || r == '｜' || r == '▁'
	})
}

// reserved reports whether an added token is one of those that vocabularies keep
// for their users: no template and no engine gives it a meaning.
func reserved(text string) bool {
	words := name(text)
	if len(words) == 0 {
		return false
	}
	switch strings.TrimRight(words[0], "0123456789") {
	case "reserved", "unused", "unk_reserved", "extra", "sep", "special", "dummy":
	case "place":
		return len(words) > 1 && words[1] == "holder"
	default:
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return parts[w] })
}

// parts are words in the names of tokens by which templates, tool parsers and
// engines divide turns, name roles, end generation, or mark what is no text.
var parts = wordSet("system developer user human assistant model bot ai tool tools toolcall ipython environment function functions " +
	"call calls response result results output outputs role turn message header channel constrain inst sys start end begin eos bos eot eom eog " +
	"im eoh endoftext endofprompt startoftext think thinking thought thoughts reasoning analysis final answer multimodal " +
	"fim prefix suffix middle pad mask cls unk s repo reponame filename file image img vision video audio speech object ref box quad " +
	"available return document documents search query plan")

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// protocol reports whether an added token is a mark of a template or an engine: in
// brackets with bars or capitals and not reserved, or in brackets with one of
// their words.
func protocol(text string) bool {
	switch {
	case reserved(text):
		return false
	case bracketed(text, "<|", "|>"), bracketed(text, "<｜", "｜>"), bracketed(text, "◁", "▷"),
		bracketed(text, "[", "]") && len(name(text)) > 0 && text == strings.ToUpper(text):
		return true
	case bracketed(text, "<", ">"), bracketed(text, "[", "]"):
		return slices.ContainsFunc(name(text), func(w string) bool { return parts[w] })
	}
	return false
}

func bracketed(text, open, end string) bool {
	return len(text) > len(open)+len(end) && strings.HasPrefix(text, open) && strings.HasSuffix(text, end)
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
