package delimiter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// maxText bounds a separator, in bytes.
const maxText = 4096

// defaultContexts are what stands before a separator where the caller does not say.
var defaultContexts = []string{"a word", "in 2024", "the end.", "a blank ", "a line\n"}

// Rank judges separators and sorts them: first those that keep their tokens
// whatever stands around them, then those that do so whatever follows, then by
// how rarely the condition bites, then by the number of tokens. It is an error if
// a candidate is empty or longer than 4,096 bytes.
func Rank(t *tokenizer.Tokenizer, candidates []Candidate, o Options) ([]Verdict, error) {
	for i, c := range candidates {
		if c.Text == "" {
			return nil, fmt.Errorf("delimiter: candidate %d is empty: give a text", i+1)
		}
		if len(c.Text) > maxText {
			return nil, fmt.Errorf("delimiter: candidate %d has %d bytes: a separator has at most %d", i+1, len(c.Text), maxText)
		}
	}
	for _, s := range o.Contexts {
		if len(s) > maxText {
			return nil, errors.New("delimiter: a context is longer than 4096 bytes: its end is enough")
		}
	}
	j := newJudge(t, o)
	list := make([]Verdict, 0, len(candidates))
	for _, c := range candidates {
		list = append(list, j.verdict(c))
	}
	slices.SortStableFunc(list, compare)
	for i := range list {
		list[i].Rank = i + 1
	}
	return list, nil
}

func compare(a, b Verdict) int {
	conditional := func(v *Verdict) int {
		switch {
		case v.After.Always && v.Before.Always:
			return 0
		case v.After.Always:
			return 1
		}
		return 2
	}
	return cmp.Or(
		cmp.Compare(conditional(&a), conditional(&b)),
		cmp.Compare(a.After.Share, b.After.Share),
		cmp.Compare(len(a.IDs), len(b.IDs)),
		cmp.Compare(a.Before.Share, b.Before.Share),
		cmp.Compare(len(a.Text), len(b.Text)),
		cmp.Compare(a.Text, b.Text),
	)
}

// A judge judges separators for one tokenizer.
type judge struct {
	t        *tokenizer.Tokenizer
	v        *vocab.Vocab
	contexts []string
	weights  [256]float64       // of first bytes of what follows; their sum is 1
	search   []string           // texts to put before a separator
	afters   map[Candidate]Side // what was proved, by text; without a family
	scratch  [2]*tokenizer.Text
	joined   map[vocab.ID]bool // by a first token: whether one joins it
}

func newJudge(t *tokenizer.Tokenizer, o Options) *judge {
	j := &judge{t: t, v: t.Vocab(), contexts: o.Contexts, joined: map[vocab.ID]bool{}, afters: map[Candidate]Side{}}
	if len(j.contexts) == 0 {
		j.contexts = defaultContexts
	}
	j.scratch = [2]*tokenizer.Text{t.NewText(false), t.NewText(true)}
	j.weights = firstBytes(o.Parts)
	limit := o.Search
	if limit <= 0 {
		limit = 12000
	}
	j.search = leftTexts(j.v, limit)
	return j
}

// firstBytes weighs the first bytes of parts; without any, those that a
// character which is printed may begin with, and white space, weigh alike.
func firstBytes(parts [][]byte) (w [256]float64) {
	sum := 0.0
	for _, p := range parts {
		if len(p) > 0 {
			w[p[0]]++
			sum++
		}
	}
	if sum == 0 {
		for b := range 256 {
			if b == '\t' || b == '\n' || b == '\r' || ' ' <= b && b < 0x7f || 0xc2 <= b && b <= 0xf4 {
				w[b]++
				sum++
			}
		}
	}
	for b := range w {
		w[b] /= sum
	}
	return w
}

func share(set *boundary.ByteSet, w *[256]float64) (sum float64) {
	for b := range 256 {
		if set.Has(byte(b)) {
			sum += w[b]
		}
	}
	return min(sum, 1)
}

func (j *judge) text(special bool) *tokenizer.Text {
	if special {
		return j.scratch[1]
	}
	return j.scratch[0]
}

// encode gives the tokens of before+s, valid until the next call.
func (j *judge) encode(special bool, before, s string) []vocab.ID {
	x := j.text(special)
	x.Reset()
	x.Append([]byte(before))
	x.Append([]byte(s))
	return x.IDs()
}

// idsInside are the tokens of s where text stands before it and does not join.
func (j *judge) idsInside(c Candidate) []vocab.ID {
	if !c.Special {
		return j.t.EncodeInside(nil, []byte(c.Text))
	}
	for _, before := range []string{"a", "1", "a.", "a\n", "a "} {
		head := slices.Clone(j.encode(true, before, ""))
		all := j.encode(true, before, c.Text)
		if vocab.CommonPrefix(head, all) == len(head) {
			return slices.Clone(all[len(head):])
		}
	}
	return j.t.EncodeSpecial(nil, []byte(c.Text))
}

func (j *judge) verdict(c Candidate) Verdict {
	v := Verdict{Candidate: c, IDs: j.idsInside(c), Kind: Text}
	if len(v.IDs) == 1 {
		switch kind := j.v.Kind(v.IDs[0]); {
		case kind == vocab.Control:
			v.Kind = Control
		case kind == vocab.UserDefined:
			v.Kind = Added
		}
	}
	v.After = j.after(c)
	v.Before = j.before(c, v.IDs)
	if left := strings.TrimRight(c.Text, " \t\r\n\v\f"); left != c.Text {
		v.Trim = &Trim{Text: left}
		if left != "" {
			after := j.after(Candidate{Text: left, Special: c.Special})
			v.Trim.After = &after
		}
	}
	v.Hygiene = rules(&v)
	v.Summary = summary(&v)
	if _, ok := j.v.LookupSpecial([]byte(c.Text)); ok && !c.Special {
		v.Summary += "; it is a control token where those are recognized, and text here"
	}
	return v
}
