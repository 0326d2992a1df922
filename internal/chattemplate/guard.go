package chattemplate

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/unfray/unfray/vocab"
)

// A Scanner finds the longest control token a text begins with. Looking at one
// position costs the bytes that agree with some token, times a binary search.
type Scanner struct {
	texts []string // sorted
	ids   []vocab.ID
	first [256]bool
}

// NewScanner returns a scanner for the control tokens of a vocabulary.
func NewScanner(v *vocab.Vocab) *Scanner {
	s := &Scanner{}
	ids := slices.Clone(v.Controls())
	slices.SortStableFunc(ids, func(a, b vocab.ID) int { return strings.Compare(string(v.Bytes(a)), string(v.Bytes(b))) })
	for _, id := range ids {
		text := string(v.Bytes(id))
		if len(text) < 2 {
			continue // nothing fits inside, so it could not be guarded; no model has one
		}
		s.texts, s.ids = append(s.texts, text), append(s.ids, id)
		s.first[text[0]] = true
	}
	return s
}

// Match returns the longest control token that b begins with, and its length
// in bytes; 0 if there is none.
func (s *Scanner) Match(b []byte) (id vocab.ID, n int) {
	id = vocab.None
	if len(b) == 0 || !s.first[b[0]] {
		return id, 0
	}
	lo, hi := 0, len(s.texts) // those that begin with b[:depth]
	for depth := 0; ; depth++ {
		if len(s.texts[lo]) == depth {
			id, n = s.ids[lo], depth
			for lo < hi && len(s.texts[lo]) == depth {
				lo++
			}
		}
		if depth == len(b) || lo == hi {
			return id, n
		}
		c := b[depth]
		from := lo + sort.Search(hi-lo, func(i int) bool { return s.texts[lo+i][depth] >= c })
		to := lo + sort.Search(hi-lo, func(i int) bool { return s.texts[lo+i][depth] > c })
		if lo, hi = from, to; lo == hi {
			return id, n
		}
	}
}

// guard keeps control tokens that users spell from becoming control tokens.
// It puts a mark, a character that occurs nowhere else in the conversation,
// inside each of them; templates copy it along, and [Chat.encode] reads it.
type guard struct {
	mark     rune
	controls *Scanner
}

// text returns s with its control tokens marked.
func (g guard) text(s string) string {
	b := []byte(s)
	var out strings.Builder
	done := 0
	for i := range b {
		// A token may begin inside another: every position is looked at.
		if _, n := g.controls.Match(b[i:]); n > 0 {
			out.Write(b[done : i+1])
			out.WriteRune(g.mark)
			done = i + 1
		}
	}
	if done == 0 {
		return s
	}
	out.Write(b[done:])
	return out.String()
}

// value returns v with the control tokens of its strings marked.
func (g guard) value(v any) any {
	switch v := v.(type) {
	case string:
		return g.text(v)
	case []any:
		items := make([]any, len(v))
		for i, e := range v {
			items[i] = g.value(e)
		}
		return items
	case map[string]any:
		out := &Object{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out.Set(g.text(k), g.value(v[k]))
		}
		return out
	case *Object:
		out := &Object{}
		for _, k := range v.keys {
			out.Set(g.text(k), g.value(v.values[k]))
		}
		return out
	}
	return v
}

// conversation returns c with all that it spells marked. Roles that are a word
// stay: templates know them by name, and write them where roles belong.
func (g guard) conversation(c *Conversation) *Conversation {
	out := *c
	out.Messages = make([]*Object, len(c.Messages))
	for i, m := range c.Messages {
		out.Messages[i] = g.value(m).(*Object)
		if role := m.Text("role"); isWord(role) {
			out.Messages[i].Set("role", role)
		}
	}
	if c.Tools != nil {
		out.Tools = g.value(c.Tools).([]any)
	}
	out.Arguments = make(map[string]any, len(c.Arguments))
	for name, v := range c.Arguments {
		out.Arguments[name] = g.value(v)
	}
	return &out
}

// isWord says whether s is of ASCII letters, _ and -.
func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == ""
}

// Unicode sets 32 noncharacters apart for use inside a program, as marks are.
const firstMark, lastMark = '\ufdd0', '\ufdef'

// freeMark returns a mark that occurs nowhere in the conversation.
func freeMark(c *Conversation) (rune, error) {
	var used [lastMark - firstMark + 1]bool
	see := func(s string) {
		for _, r := range s {
			if r >= firstMark && r <= lastMark {
				used[r-firstMark] = true
			}
		}
	}
	for _, m := range c.Messages {
		seeStrings(m, see)
	}
	seeStrings(c.Tools, see)
	seeStrings(c.Arguments, see)
	for i, u := range used {
		if !u {
			return firstMark + rune(i), nil
		}
	}
	return 0, &RefusedError{"the messages use all of the noncharacters U+FDD0 to U+FDEF; leave one of them out"}
}

// seeStrings calls see for every string in v.
func seeStrings(v any, see func(string)) {
	switch v := v.(type) {
	case string:
		see(v)
	case []any:
		for _, e := range v {
			seeStrings(e, see)
		}
	case map[string]any:
		for k, e := range v {
			see(k)
			seeStrings(e, see)
		}
	case *Object:
		for k, e := range v.values {
			see(k)
			seeStrings(e, see)
		}
	}
}
