package delimiter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// ends are characters of the kinds that pre-tokenizers tell apart: all texts of
// up to three of them are put before a separator.
var ends = []string{
	"a", "B", "é", "漢", "\u0301", "1", " ", "\u00a0", "\t", "\n", "\r", "!", "'", "/", "-", "<", ">", "🙂", "\x00", "\xe6",
}

// leftTexts are the texts that are tried before a separator: at most limit.
// Those of ends come first, the others are tokens.
func leftTexts(v *vocab.Vocab, limit int) []string {
	list := slices.Clone(ends)
	for from := 0; from < len(list) && len(list) < limit*4/5; from++ {
		if utf8.RuneCountInString(list[from]) >= 3 {
			break
		}
		for _, e := range ends {
			list = append(list, list[from]+e)
		}
	}
	list = list[:min(len(list), limit)]
	for _, id := range spread(v, v.Sorted(v.PrefixRange(nil)), limit-len(list)) {
		list = append(list, string(v.Bytes(id)))
	}
	return list
}

// spread takes at most n of the tokens: first one for each character that is no
// letter and ends some of them, then the others at even distances.
func spread(v *vocab.Vocab, ids []vocab.ID, n int) (list []vocab.ID) {
	if len(ids) <= n {
		return ids
	}
	seen := map[rune]bool{}
	for _, id := range ids {
		r, _ := utf8.DecodeLastRune(v.Bytes(id))
		if len(list) < n && !seen[r] && !unicode.IsLetter(r) {
			seen[r] = true
			list = append(list, id)
		}
	}
	if n -= len(list); n > 0 {
		step := (len(ids) + n - 1) / n
		for i := 0; i < len(ids); i += step {
			list = append(list, ids[i])
		}
	}
	return list
}

// before says after which texts the separator has other tokens than ids.
func (j *judge) before(c Candidate, ids []vocab.ID) Side {
	s := Side{Proof: Searched}
	changed := func(before string) ([]vocab.ID, bool) {
		all := j.encode(c.Special, before, c.Text)
		if n := len(all) - len(ids); n >= 0 && slices.Equal(all[n:], ids) {
			return nil, false
		}
		return all, true
	}
	if _, s.Start = changed(""); s.Start {
		s.Changes = append(s.Changes, Change{Kind: atStart, Becomes: slices.Clone(j.encode(c.Special, "", c.Text))})
	}
	joined, known := j.joined(ids)
	for x := range j.leftOf(joined) {
		s.Tried++
		if all, other := changed(x); other {
			var last boundary.ByteSet
			last.Set(x[len(x)-1])
			s.add(Change{Kind: kindOfEnd(x), Context: show([]byte(x)), Becomes: j.reaching(c, x, c.Text, all), bytes: last})
		}
	}
	w := lastBytes()
	s.finish(&w)
	if !known {
		j.explainBefore(&s, c, ids, -1)
	} else {
		j.explainBefore(&s, c, ids, len(joined))
	}
	s.Statement = beforeStatement(&s)
	return s
}

// maxJoined bounds the tokens that join the first one of a separator and are
// tried before it.
const maxJoined = 2048

// leftOf are the texts that are tried before a separator: the common ones, and
// tokens that join its first one.
func (j *judge) leftOf(joined []vocab.ID) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, x := range j.search {
			if !yield(x) {
				return
			}
		}
		for _, id := range spread(j.v, joined, maxJoined) {
			if b := j.v.Bytes(id); !yield("a"+string(b)) || !yield(". "+string(b)) {
				return
			}
		}
	}
}

// joined lists the tokens of the vocabulary that BPE does not leave apart from
// the separator's first one where both stand in one pretoken. known is false if
// the model does not decide by pairs. Tokens that their own bytes do not give are
// left out: they end no text.
func (j *judge) joined(ids []vocab.ID) (list []vocab.ID, known bool) {
	if !j.t.Pairwise() || len(ids) == 0 || !j.v.IsText(ids[0]) {
		return nil, false
	}
	if list, known = j.apart[ids[0]]; known {
		return list, true
	}
	var own []vocab.ID
	for _, id := range j.v.Sorted(j.v.PrefixRange(nil)) {
		if j.t.Apart(id, ids[0]) {
			continue
		}
		own = j.t.EncodePiece(own[:0], j.v.Bytes(id))
		if len(own) == 1 && own[0] == id {
			list = append(list, id)
		}
	}
	j.apart[ids[0]] = list
	return list, true
}

// reaching are the tokens of before and text, which are all, from the first that
// reaches into text on.
func (j *judge) reaching(c Candidate, before, text string, all []vocab.ID) []vocab.ID {
	_, ends := j.t.EncodeEnds(nil, nil, []byte(before+text), c.Special)
	n := 0
	for n < len(all) && n < len(ends) && ends[n] <= len(before) {
		n++
	}
	return slices.Clone(all[n:])
}

// explainBefore says what the claim rests on, and whether it is proved.
func (j *judge) explainBefore(s *Side, c Candidate, ids []vocab.ID, joined int) {
	overlap := j.overlap(c)
	tried := fmt.Sprintf("%d texts were tried before it", s.Tried)
	if len(ids) > 0 && j.firstIsAdded(c, ids) && overlap == "" && s.Always {
		s.Proof = Proved
		s.Why = "an added token is cut out of the text before all else, and no other one ends as it begins; " + tried
		return
	}
	if joined == 0 && overlap == "" && s.Always && c.Text[0] < utf8.RuneSelf && j.undivided() {
		s.Proof = Proved
		s.Why = fmt.Sprintf("there is no pre-tokenizer, and no token of the vocabulary joins its first token %q; %s", j.v.Bytes(ids[0]), tried)
		return
	}
	s.Why = tried
	switch {
	case joined == 0:
		s.Why += fmt.Sprintf("; no token of the vocabulary joins its first token %q, but how the pre-tokenizer divides text is tried, not proved", j.v.Bytes(ids[0]))
	case joined > 0:
		s.Why += fmt.Sprintf("; %d tokens of the vocabulary join its first token %q where the pre-tokenizer lets them", joined, j.v.Bytes(ids[0]))
	}
}

// undivided reports whether no pre-tokenizer divides text, but for cuts between
// bytes that no token has side by side, which change nothing.
func (j *judge) undivided() bool {
	s := j.t.String()
	return !strings.Contains(s, "pre-tokenizer") || strings.Contains(s, "pre-tokenizer between bytes that no token joins")
}

// firstIsAdded reports whether the separator begins with an added token.
func (j *judge) firstIsAdded(c Candidate, ids []vocab.ID) bool {
	kind := j.v.Kind(ids[0])
	return (kind == vocab.UserDefined || kind == vocab.Control) && strings.HasPrefix(c.Text, string(j.v.Bytes(ids[0])))
}

// overlap gives an added token that may begin before the separator and end
// inside or after it; "" if there is none.
func (j *judge) overlap(c Candidate) string {
	lists := [][]vocab.ID{j.v.UserDefined()}
	if c.Special {
		lists = append(lists, j.v.Controls())
	}
	for _, list := range lists {
		for _, id := range list {
			a := string(j.v.Bytes(id))
			for k := 1; k < len(a); k++ {
				if strings.HasPrefix(c.Text, a[k:]) || strings.HasPrefix(a[k:], c.Text) {
					return a
				}
			}
		}
	}
	return ""
}

// lastBytes weighs the bytes that a text before a separator may end with: those
// of printed ASCII, white space, and the last bytes of other characters, alike.
func lastBytes() (w [256]float64) {
	n := 0.0
	for b := range 256 {
		if b == '\t' || b == '\n' || b == '\r' || ' ' <= b && b < 0x7f || 0x80 <= b && b < 0xc0 {
			w[b] = 1
			n++
		}
	}
	for b := range w {
		w[b] /= n
	}
	return w
}
