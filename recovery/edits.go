package recovery

import (
	"slices"

	"github.com/unfray/unfray/jsonrepair"
)

// Apply returns input with edits applied, which must be in order and must fit it.
func Apply(input []byte, edits []Edit) []byte {
	return jsonrepair.Apply(input, func(yield func(jsonrepair.Edit) bool) {
		for _, e := range edits {
			if !yield(e.Edit) {
				return
			}
		}
	})
}

// compose returns the edits that do at once what first and then second do. text is
// what first makes; second's offsets are in it. Where both touch the same bytes
// their edits become one, of the second's kind.
func compose(first []Edit, text []byte, second []Edit) []Edit {
	if len(first) == 0 {
		return second
	}
	if len(second) == 0 {
		return first
	}
	c := composer{first: first, second: second, text: text}
	out := make([]Edit, 0, len(first)+len(second))
	for c.i < len(first) || c.k < len(second) {
		if e := c.next(); e.Before != e.After { // else they have cancelled each other
			out = append(out, e)
		}
	}
	return out
}

// composer walks two lists of edits, by offsets in the text between them.
type composer struct {
	first, second []Edit
	text          []byte
	i, k          int // edits of first and second that are done
	shift         int // input offset minus text offset behind first[:i]
}

// span is where an edit of first stands in the text.
func (c *composer) span() (from, to int) {
	e := c.first[c.i]
	from = e.Offset - c.shift
	return from, from + len(e.After)
}

// next returns the next edit, joined of all those that overlap.
func (c *composer) next() Edit {
	if c.k == len(c.second) {
		return c.takeFirst()
	}
	s := c.second[c.k]
	if c.i == len(c.first) {
		c.k++
		s.Offset += c.shift
		return s
	}
	from, to := c.span()
	begin, end := s.Offset, s.Offset+len(s.Before)
	switch {
	case end <= from && (begin < from || end == from && begin == end):
		c.k++
		s.Offset += c.shift
		return s
	case to <= begin:
		return c.takeFirst()
	}
	return c.join()
}

func (c *composer) takeFirst() Edit {
	e := c.first[c.i]
	c.i++
	c.shift += len(e.Before) - len(e.After)
	return e
}

// join makes one edit of those that overlap from here on.
func (c *composer) join() Edit {
	from, to := c.span()
	start := min(from, c.second[c.k].Offset)
	out := c.second[c.k]
	out.Offset = start + c.shift
	var before, after []byte
	at := start   // text that is in before
	done := start // text that is in after
	end := max(to, c.second[c.k].Offset+len(c.second[c.k].Before))
	for {
		if c.i < len(c.first) {
			if f, t := c.span(); f < end || f == end && t == f && f == start {
				before = append(before, c.text[at:f]...)
				before = append(before, c.takeFirst().Before...)
				at = t
				end = max(end, t)
				continue
			}
		}
		if c.k < len(c.second) && c.second[c.k].Offset < end {
			s := c.second[c.k]
			c.k++
			after = append(after, c.text[done:s.Offset]...)
			after = append(after, s.After...)
			done = s.Offset + len(s.Before)
			end = max(end, done)
			continue
		}
		break
	}
	before = append(before, c.text[at:end]...)
	after = append(after, c.text[done:end]...)
	out.Before, out.After = string(before), string(after)
	return out
}

// tagged returns edits as those of a strategy.
func tagged(strategy string, edits []jsonrepair.Edit) []Edit {
	out := make([]Edit, len(edits))
	for i, e := range edits {
		out[i] = Edit{e, strategy}
	}
	return out
}

// cutTo returns the edits that leave text[from:to], with kinds for what goes.
func cutTo(strategy string, text []byte, from, to int, kind jsonrepair.Kind) []Edit {
	var out []Edit
	if from > 0 {
		out = append(out, Edit{jsonrepair.Edit{Kind: kind, Offset: 0, Before: string(text[:from])}, strategy})
	}
	if to < len(text) {
		out = append(out, Edit{jsonrepair.Edit{Kind: kind, Offset: to, Before: string(text[to:])}, strategy})
	}
	return out
}

// mapper turns offsets in the text that edits made into offsets of their input.
type mapper struct {
	edits []Edit
	from  []int // where each edit's After stands in the text
}

func newMapper(edits []Edit) mapper {
	m := mapper{edits: edits, from: make([]int, len(edits))}
	shift := 0
	for i, e := range edits {
		m.from[i] = e.Offset - shift
		shift += len(e.Before) - len(e.After)
	}
	return m
}

// input returns the offset in the input of a byte of the text: for a byte that an
// edit inserted, where that edit stands.
func (m mapper) input(offset int) int {
	i, _ := slices.BinarySearch(m.from, offset+1)
	if i--; i < 0 {
		return offset
	}
	e := m.edits[i]
	if in := offset - m.from[i]; in >= len(e.After) {
		return e.Offset + len(e.Before) + in - len(e.After)
	}
	return e.Offset
}

// span returns where a stretch of the text comes from: with all that an edit
// replaced, where one stands at either end.
func (m mapper) span(offset, length int) (at, n int) {
	at = m.input(offset)
	if length <= 0 {
		return at, 0
	}
	end := m.input(offset+length-1) + 1
	if i, _ := slices.BinarySearch(m.from, offset+length); i > 0 {
		if e := m.edits[i-1]; offset+length-m.from[i-1] <= len(e.After) {
			end = e.Offset + len(e.Before)
		}
	}
	return at, max(0, end-at)
}
