package delimiter

import (
	"fmt"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/vocab"
)

// after proves what may follow the separator, behind each of the contexts.
func (j *judge) after(c Candidate) Side {
	c.Family = ""
	if s, ok := j.afters[c]; ok {
		return s
	}
	s := Side{Proof: Proved}
	prove := boundary.Prove
	if c.Special {
		prove = boundary.ProveSpecial
	}
	unproved := ""
	for i, before := range j.contexts {
		p := prove(j.t, []byte(before+c.Text))
		for k := range p.Breaks {
			b := &p.Breaks[k]
			change := Change{Kind: b.Kind, Context: before, Next: string(b.Example), Becomes: j.becomes(c, before, b), bytes: b.Next}
			if b.Example == nil && b.Kind == beyond {
				// What a first byte alone does not tell: a normalizer may compose
				// characters.
				change.bytes = boundary.ByteSet{}
				s.Proof = Searched
				if i > 0 {
					continue // it is the separator that they may compose with
				}
				s.Tried += j.tryCharacters(c, before, p.IDs, b, &change)
			} else if b.Example == nil {
				unproved = b.Kind
			}
			if change.bytes != (boundary.ByteSet{}) {
				s.add(change)
			}
		}
	}
	s.finish(&j.weights)
	s.Why = "no continuation changes a token, "
	if !s.Always {
		s.Why = "before other bytes no continuation changes a token, "
	}
	s.Why += behind(j.contexts)
	if s.Proof == Searched {
		s.Why += fmt.Sprintf("; of some characters beyond ASCII it is not proved: %d were tried", s.Tried)
	}
	if unproved != "" {
		s.Why += "; that " + unproved + " is harmless is not proved, but nothing was found to show the contrary"
	}
	s.Statement = afterStatement(&s, &j.weights)
	j.afters[c] = s
	return s
}

// tryCharacters puts text behind the separator that begins with the bytes of a
// break without an example, and tells change of what changes ids, the tokens of
// before and the separator. It returns how many it tried.
func (j *judge) tryCharacters(c Candidate, before string, ids []vocab.ID, b *boundary.Break, change *Change) (tried int) {
	try := func(next string) {
		if !b.Next.Has(next[0]) || change.bytes.Has(next[0]) {
			return
		}
		tried++
		all := j.encode(c.Special, before, c.Text+next)
		if vocab.CommonPrefix(all, ids) == len(ids) {
			return
		}
		change.bytes.Set(next[0])
		if change.Becomes == nil {
			change.Next = next
			change.Becomes = j.reaching(c, before, c.Text+next, slices.Clone(all))
		}
	}
	for _, next := range j.joining(before+c.Text, &b.Next) {
		try(next)
	}
	for _, r := range characters() {
		try(string(r))
	}
	return tried
}

// maxJoining bounds the tokens that are tried as the way on from a text.
const maxJoining = 1 << 14

// joining lists what follows text in tokens that begin with its last bytes and
// go on with one of the next bytes, made whole characters.
func (j *judge) joining(text string, next *boundary.ByteSet) (list []string) {
	for k := 1; k <= min(len(text), j.v.MaxLen()-1); k++ {
		for b := range 256 {
			if !next.Has(byte(b)) {
				continue
			}
			prefix := append([]byte(text[len(text)-k:]), byte(b))
			for _, id := range j.v.Sorted(j.v.PrefixRange(prefix)) {
				more := slices.Clone(j.v.Bytes(id)[k:])
				for range utf8.UTFMax {
					if r, n := utf8.DecodeLastRune(more); r != utf8.RuneError || n > 1 {
						break
					}
					more = append(more, 0x80)
				}
				if list = append(list, string(more)); len(list) == maxJoining {
					return list
				}
			}
		}
	}
	return list
}

// characters are all marks, and one character of each category for each first
// byte, beyond ASCII. Beyond the second plane every 4,096th character is looked at.
var characters = sync.OnceValue(func() (list []rune) {
	type key struct {
		lead     byte
		category string
	}
	seen := map[key]bool{}
	for r := rune(0x80); r <= unicode.MaxRune; {
		k := key{lead: string(r)[0]}
		for _, name := range []string{"L", "N", "P", "S", "Z", "C"} {
			if unicode.Is(unicode.Categories[name], r) {
				k.category = name
				break
			}
		}
		if utf8.ValidRune(r) && !unicode.Is(unicode.M, r) && !seen[k] {
			seen[k] = true
			list = append(list, r)
		}
		if r++; r > 0x20000 {
			r += 0xfff
		}
	}
	for _, t := range unicode.M.R16 {
		for r := rune(t.Lo); r <= rune(t.Hi); r += rune(t.Stride) {
			list = append(list, r)
		}
	}
	for _, t := range unicode.M.R32 {
		for r := rune(t.Lo); r <= rune(t.Hi); r += rune(t.Stride) {
			list = append(list, r)
		}
	}
	return list
})

// becomes are the tokens of a break's example from the first that reaches into
// the separator on; nil without an example.
func (j *judge) becomes(c Candidate, before string, b *boundary.Break) []vocab.ID {
	if b.Example == nil {
		return nil
	}
	_, ends := j.t.EncodeEnds(nil, nil, []byte(before+c.Text+string(b.Example)), c.Special)
	n := 0
	for n < len(b.Becomes) && n < len(ends) && ends[n] <= len(before) {
		n++
	}
	return slices.Clone(b.Becomes[n:])
}

// add adds a change to those of its kind. An example that was found stands for
// one that was not.
func (s *Side) add(c Change) {
	for b := range 256 {
		if c.bytes.Has(byte(b)) {
			s.Bytes.Set(byte(b))
		}
	}
	for i := range s.Changes {
		o := &s.Changes[i]
		if o.Kind != c.Kind {
			continue
		}
		set := o.bytes
		for b := range 256 {
			if c.bytes.Has(byte(b)) {
				set.Set(byte(b))
			}
		}
		if o.Becomes == nil && c.Becomes != nil {
			*o = c
		}
		o.bytes = set
		return
	}
	s.Changes = append(s.Changes, c)
}

func (s *Side) finish(w *[256]float64) {
	for i := range s.Changes {
		s.Changes[i].Set = s.Changes[i].bytes.String()
	}
	s.Share = share(&s.Bytes, w)
	s.Always = len(s.Changes) == 0 && !s.Start
}
