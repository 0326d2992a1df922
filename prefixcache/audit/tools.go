package audit

import (
	"bytes"
	"encoding/json"
	"slices"
)

// sameTools puts all tools that prompts have at a place into each of them, in the
// order in which they first came.
func (s *sample) sameTools() ([]Prompt, int, error) {
	all := sites(s.views, s.pairs[:len(s.prompts)], s.findings[:len(s.prompts)], ToolsChange)
	union := map[int][][]byte{} // by the place's index among all
	seen := map[int]map[uint64]bool{}
	place := func(i int) (span, int) {
		at, found := find(all, &s.views[i], &s.prompts[i])
		for k := range all {
			if found == &all[k] {
				return at, k
			}
		}
		return span{}, -1
	}
	for i := range s.prompts {
		at, k := place(i)
		if k < 0 {
			continue
		}
		if seen[k] == nil {
			seen[k] = map[uint64]bool{}
		}
		for _, tool := range toolTexts(s.views[i].text[at.lo:at.hi]) {
			if h := maphashOf(tool); !seen[k][h] {
				seen[k][h] = true
				union[k] = append(union[k], tool)
			}
		}
	}
	prompts := slices.Clone(s.prompts)
	n := 0
	for i := range prompts {
		at, k := place(i)
		if k < 0 || len(prompts[i].Keys.Media) > 0 {
			continue
		}
		v := &s.views[i]
		had := v.text[at.lo:at.hi]
		list := joinTools(union[k], had)
		if bytes.Equal(list, had) {
			continue
		}
		prompts[i] = s.with(&s.prompts[i], v, slices.Concat(v.text[:at.lo], list, v.text[at.hi:v.size]))
		n++
	}
	return prompts, n, nil
}

// toolTexts are the spellings of the tools in a list, a JSON array or lines of JSON.
func toolTexts(list []byte) [][]byte {
	var texts [][]byte
	if len(list) > 0 && list[0] == '[' {
		var raw []json.RawMessage
		if json.Unmarshal(list, &raw) != nil {
			return nil
		}
		for _, r := range raw {
			texts = append(texts, r)
		}
		return texts
	}
	for line := range bytes.SplitSeq(list, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			texts = append(texts, line)
		}
	}
	return texts
}

// joinTools writes tools in the form of a list.
func joinTools(tools [][]byte, like []byte) []byte {
	if len(like) > 0 && like[0] == '[' {
		return slices.Concat([]byte("["), bytes.Join(tools, []byte(", ")), []byte("]"))
	}
	list := bytes.Join(tools, []byte("\n"))
	if bytes.HasSuffix(like, []byte("\n")) {
		list = append(list, '\n')
	}
	return list
}
