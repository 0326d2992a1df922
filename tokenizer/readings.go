package tokenizer

import (
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// Reading is one way in which a text may be split into pretokens once more
// text follows it.
type Reading struct {
	// Start is the byte offset up to which all readings of the text are the
	// same. It is the end of a pretoken of the text, or 0. The tokens up to it
	// are the first of the text's: text[:Start] alone may be split differently.
	Start int
	// Closed holds the ends of the pretokens between Start and Open, ascending,
	// as byte offsets in the text. The last one is Open.
	Closed []int
	// Open is where the last pretoken starts; Start if Closed is empty. The
	// bytes from there on, possibly none, belong to a pretoken that may end
	// with the text or go on. If there are none, the next one starts here.
	Open int
	// Added, if not vocab.None, is a user-defined token of which the bytes from
	// Open on, at least one, are a proper prefix: what follows may complete it.
	// Of several such tokens it is the first in byte order.
	Added vocab.ID
}

// lookahead bounds how many bytes beyond a pretoken decide where it ends: two
// characters, the white space it leaves behind and what follows that.
const lookahead = 2 * utf8.UTFMax

// Readings gives the ways in which the end of plain text may be split once
// more text follows. For every continuation, which may begin inside a
// character, the pretokens of the whole, cut off at the end of text, are those
// of one of the readings; nothing following at all counts too, and is the
// first reading. There may be readings that no continuation leads to.
func (t *Tokenizer) Readings(text []byte) []Reading {
	cuts := t.cuts(text)
	common, start := t.stableStart(text, cuts)

	var all []boundaries
	for i, c := range cuts {
		var b boundaries
		b.added = c.added
		at := start
		for _, m := range c.matches[common:] {
			b.ends = append(t.pre.ends(b.ends, text[:m.start], at), m.end)
			at = m.end
		}
		if i > 0 {
			b.ends = t.pre.ends(b.ends, text[:c.end], at)
			all = append(all, b)
			continue
		}
		all = t.pre.openEnds(all, b, text, at)
	}

	same := len(all[0].ends)
	for _, b := range all[1:] {
		k := 0
		for k < min(same, len(b.ends)) && b.ends[k] == all[0].ends[k] {
			k++
		}
		same = k
	}
	if same > 0 {
		start = all[0].ends[same-1]
	}
	readings := make([]Reading, len(all))
	for i, b := range all {
		r := Reading{Start: start, Closed: b.ends[same:], Open: start, Added: b.added}
		if n := len(r.Closed); n > 0 {
			r.Open = r.Closed[n-1]
		}
		readings[i] = r
	}
	return readings
}

// boundaries are the ends of pretokens of one reading.
type boundaries struct {
	ends  []int
	added vocab.ID
}

// cut is a way in which user-defined tokens may divide a text that goes on:
// those in it, up to end, where one begins that is not complete yet.
type cut struct {
	matches []match
	end     int
	added   vocab.ID // None if end is the end of the text
}

// cuts gives the cut at the end of text first, then those at each place from
// which the text is a proper prefix of a user-defined token. If that token is
// completed and wins, no other token that wins reaches across its start, so
// that those before it are what they would be if the text ended there.
func (t *Tokenizer) cuts(text []byte) []cut {
	m := t.added
	if len(m.tokens) == 0 {
		return []cut{{end: len(text), added: vocab.None}}
	}
	all := m.occurrences(nil, text)
	cuts := []cut{{m.choose(slices.Clone(all), text), len(text), vocab.None}}
	for p := m.nextStart(text, max(0, len(text)-m.maxLen+1)); p < len(text); p = m.nextStart(text, p+1) {
		longer := m.walk(text[p:], nil)
		if len(longer) == 0 {
			continue
		}
		cuts = append(cuts, cut{m.choose(m.occurrencesBefore(all, text, p), text), p, longer[0].id})
	}
	return cuts
}

// stableStart gives how many matches all cuts have in common, and the end of
// the last pretoken that is the same in all of them whatever follows.
func (t *Tokenizer) stableStart(text []byte, cuts []cut) (common, start int) {
	first := cuts[0].matches
	common = len(first)
	for _, c := range cuts[1:] {
		k := 0
		for k < min(common, len(c.matches)) && c.matches[k] == first[k] {
			k++
		}
		common = k
	}
	if common > 0 {
		start = first[common-1].end
	}
	limit := len(text) - len(incomplete(text))
	for _, c := range cuts {
		limit = min(limit, c.end)
		if common < len(c.matches) {
			limit = min(limit, c.matches[common].start)
		}
	}
	for start < limit {
		n := t.pre.next(text[start:limit])
		if start+n+lookahead > limit {
			break
		}
		start += n
	}
	return common, start
}

// Where the pretokens of a segment end depends on what follows only through
// the class of the next character, after those that complete an incomplete
// one, and through letters that make a contraction of what ends in 'r, 'v or 'l.
var (
	nextChars        = []string{"", "x", "0", "!", " "}
	contractionChars = []string{"e", "l"}
)

// openEnds appends to all what b may become by the pretokens of the segment
// text[at:], which goes on in ways unknown.
func (p *pretokenizer) openEnds(all []boundaries, b boundaries, text []byte, at int) []boundaries {
	if at == len(text) {
		return append(all, b)
	}
	follow := slices.Concat(nextChars, contractionChars)
	if part := incomplete(text[at:]); len(part) > 0 {
		for _, rest := range p.classes.completions(part) {
			for _, next := range nextChars {
				follow = append(follow, rest+next)
			}
		}
	}
	seg := slices.Grow(slices.Clone(text[at:]), lookahead)
	first := len(all)
	var closing []bool // of all[first:]: everything that follows ends a pretoken here
	var ends []int
	for _, f := range follow {
		ends = p.ends(ends[:0], append(seg, f...), 0)
		inner, found := slices.BinarySearch(ends, len(seg))
		ends = ends[:inner]
		i := slices.IndexFunc(all[first:], func(o boundaries) bool { return sameAfter(o.ends[len(b.ends):], ends, at) })
		if i < 0 {
			o := boundaries{slices.Clone(b.ends), b.added}
			for _, e := range ends {
				o.ends = append(o.ends, at+e)
			}
			all = append(all, o)
			closing = append(closing, found)
			continue
		}
		closing[i] = closing[i] && found
	}
	for i, c := range closing {
		if c {
			all[first+i].ends = append(all[first+i].ends, len(text))
		}
	}
	return all
}

// sameAfter reports whether a, counted from the text, is b, counted from at.
func sameAfter(a, b []int, at int) bool {
	return slices.EqualFunc(a, b, func(x, y int) bool { return x == at+y })
}

// incomplete gives the bytes at the end of text that begin a character without
// ending it.
func incomplete(text []byte) []byte {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return nil
			}
			return last
		}
	}
	return nil
}

// completions gives, for each class that a character beginning with part may
// have, the rest of one that has it.
func (t *classTable) completions(part []byte) []string {
	var size int
	var lo rune // the code point with all bits zero that are missing
	switch b := part[0]; {
	case b < 0xe0:
		size, lo = 2, rune(b&0x1f)
	case b < 0xf0:
		size, lo = 3, rune(b&0x0f)
	default:
		size, lo = 4, rune(b&0x07)
	}
	for _, b := range part[1:] {
		lo = lo<<6 | rune(b&0x3f)
	}
	missing := 6 * (size - len(part))
	lo <<= missing
	var rests []string
	var seen [end]bool
	for r := lo; r < lo+1<<missing && len(rests) < int(end); r++ {
		// The range holds surrogates, overlong forms and more that have none.
		if utf8.RuneLen(r) != size {
			continue
		}
		if c := t.at(r); !seen[c] {
			seen[c] = true
			rests = append(rests, string(r)[len(part):])
		}
	}
	return rests
}
