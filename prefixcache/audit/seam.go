package audit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unfray/unfray/boundary"
)

// separators are ends of a shared part that are tried. Control tokens are none:
// templates and engines divide turns and end answers by them.
var separators = []string{"\n\n", "\n---\n", "\n\n---\n\n", "\n###\n", "\n```\n", "\n</part>\n", "</part>", "\n===\n", ":\n"}

// proofTail is how much text before a separator its proof takes in, in bytes.
const proofTail = 64

// seamTrials are changes to the end of shared parts: other separators, those with
// the stronger proof first, and none of the white space at the seam.
func (s *sample) seamTrials() []trial {
	list := sites(s.views, s.pairs[:len(s.prompts)], s.findings[:len(s.prompts)], PartBoundary, Separator)
	if len(list) == 0 {
		return nil
	}
	heads := map[int][]uint64{} // ends of shared parts, and hashes of what stands before
	var tail []byte
	for i, f := range s.findings[:len(s.prompts)] {
		if f == nil || f.seam == 0 {
			continue
		}
		p := s.pairs[i]
		heads[p.l] = append(heads[p.l], maphashOf(p.newText()[:p.l]))
		if tail == nil {
			tail = bytes.TrimRight(p.newText()[max(0, p.l-proofTail):p.l], " \n\t")
		}
	}
	if len(heads) == 0 || len(heads) > maxSites {
		return nil
	}
	trials := []trial{{change: StripBlank, text: "begin what follows the shared part without newlines and blanks",
		apply: s.atSeams(heads, func(head, rest []byte) []byte { return append(slices.Clone(head), rest[blank(rest):]...) })}}
	for _, sep := range separators {
		text := append(slices.Clone(tail), sep...)
		proof := boundary.Prove
		if s.opts.Special {
			proof = boundary.ProveSpecial
		}
		verdict := proof(s.t, text).String()
		trials = append(trials, trial{change: StableSeparator,
			text: fmt.Sprintf("end the shared part with %q, which is %s", sep, verdict),
			apply: s.atSeams(heads, func(head, rest []byte) []byte {
				return slices.Concat(bytes.TrimRight(head, " \n\t"), []byte(sep), rest)
			})})
	}
	slices.SortStableFunc(trials, func(a, b trial) int { return rank(a.text) - rank(b.text) })
	return trials
}

// rank orders separators by their proof.
func rank(text string) int {
	if strings.HasSuffix(text, "before any continuation") {
		return 0
	}
	return 1
}

// atSeams changes the prompts that have a shared part's end at one of the places.
func (s *sample) atSeams(heads map[int][]uint64, join func(head, rest []byte) []byte) func(*sample) ([]Prompt, int, error) {
	places := slices.Sorted(maps.Keys(heads))
	return func(*sample) ([]Prompt, int, error) {
		prompts := slices.Clone(s.prompts)
		n := 0
		for i := range prompts {
			v := &s.views[i]
			for _, at := range places {
				if at > v.size || len(prompts[i].Keys.Media) > 0 || !slices.Contains(heads[at], maphashOf(v.text[:at])) {
					continue
				}
				prompts[i] = s.with(&s.prompts[i], v, join(v.text[:at], v.text[at:v.size]))
				n++
				break
			}
		}
		return prompts, n, nil
	}
}
