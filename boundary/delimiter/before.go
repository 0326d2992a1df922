package delimiter

import (
	"bytes"
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
	spans := j.spans(c.Text)
	for x := range j.leftOf(spans) {
		s.Tried++
		if all, other := changed(x); other {
			var last boundary.ByteSet
			last.Set(x[len(x)-1])
			s.add(Change{Kind: kindOfEnd(x), Context: x, Becomes: j.reaching(c, x, c.Text, all), bytes: last})
		}
	}
	w := lastBytes()
	s.finish(&w)
	j.explainBefore(&s, c, ids, len(spans))
	s.Statement = beforeStatement(&s)
	return s
}

// maxSpans bounds, for each kind of end, the beginnings of tokens that are tried
// before a separator.
const maxSpans = 400

// leftOf are the texts that are tried before a separator: the common ones, and
// the spans behind texts of some kinds.
func (j *judge) leftOf(spans []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, x := range j.search {
			if !yield(x) {
				return
			}
		}
		kinds := map[string]int{}
		for _, x := range spans {
			kind := kindOfEnd(x)
			if kinds[kind]++; kinds[kind] > maxSpans {
				continue
			}
			for _, before := range []string{"", "a", ". ", "\n"} {
				if !yield(before + x) {
					return
				}
			}
		}
	}
}

// spans are the beginnings of tokens that go on with the first bytes of text, or
// with all of it, each once. What joins text to what stands before it is such a
// token.
func (j *judge) spans(text string) (list []string) {
	seen := map[string]bool{}
	for _, id := range j.v.Sorted(j.v.PrefixRange(nil)) {
		token := j.v.Bytes(id)
		for at := 1; at < len(token); at++ {
			n := bytes.IndexByte(token[at:], text[0])
			if n < 0 {
				break
			}
			at += n
			rest := string(token[at:])
			if x := string(token[:at]); (strings.HasPrefix(text, rest) || strings.HasPrefix(rest, text)) && !seen[x] {
				seen[x] = true
				list = append(list, x)
			}
		}
	}
	return list
}

// joins reports whether BPE may join a token of the vocabulary with the first one
// of a separator where both stand in one pretoken, or does not decide by pairs.
// Tokens that their own bytes do not give are left out: they end no text.
func (j *judge) joins(first vocab.ID) bool {
	if !j.t.Pairwise() || !j.v.IsText(first) {
		return true
	}
	if known, ok := j.joined[first]; ok {
		return known
	}
	var own []vocab.ID
	for _, id := range j.v.Sorted(j.v.PrefixRange(nil)) {
		if j.t.Apart(id, first) {
			continue
		}
		own = j.t.EncodePiece(own[:0], j.v.Bytes(id))
		if len(own) == 1 && own[0] == id {
			j.joined[first] = true
			return true
		}
	}
	j.joined[first] = false
	return false
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
func (j *judge) explainBefore(s *Side, c Candidate, ids []vocab.ID, spans int) {
	tried := fmt.Sprintf("%d texts were tried before it", s.Tried)
	s.Why = tried
	if !s.Always || len(ids) == 0 {
		return
	}
	switch overlap := j.overlap(c); {
	case overlap == "" && j.firstIsAdded(c, ids):
		s.Proof = Proved
		s.Why = "an added token is cut out of the text before all else, and no other one ends as it begins; " + tried
	case overlap == "" && c.Text[0] < utf8.RuneSelf && j.undivided() && j.t.Pairwise() && (spans == 0 || !j.joins(ids[0])):
		s.Proof = Proved
		s.Why = fmt.Sprintf("there is no pre-tokenizer, and no token of the vocabulary joins its first token %q; %s", j.v.Bytes(ids[0]), tried)
	case spans == 0:
		s.Why += "; no token of the vocabulary reaches into it from before, but how the pre-tokenizer divides text is tried, not proved"
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
