package audit

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// view is a prompt as the cache sees it, with the output that it holds after the
// prompt.
type view struct {
	text []byte     // of prompt and output
	ids  []vocab.ID // of prompt and output
	ends []uint32   // bytes of text at which each token ends
	// keyed is ids, but what stands for media is numbered by its content, below
	// zero.
	keyed []vocab.ID

	size int // bytes of the prompt
	n    int // tokens of the prompt
	// held is how many tokens the cache keeps: all but the last of the output, which
	// was never fed back.
	held int
	// given says that the tokens are the caller's, and apart that prompt and output
	// were tokenized by themselves: only without both the tokens are canonical.
	given, apart bool
	space        int // namespace
}

// start is the byte at which token i begins.
func (v *view) start(i int) int {
	if i == 0 {
		return 0
	}
	return int(v.ends[i-1])
}

// within counts the tokens that the cache holds from index from on that lie between two bytes.
func (v *view) within(from, lo, hi int) int {
	i, _ := slices.BinarySearch(v.ends, uint32(lo)+1)
	for i < len(v.ends) && v.start(i) < lo {
		i++
	}
	i = max(i, from)
	j, _ := slices.BinarySearch(v.ends, uint32(hi)+1)
	return max(0, min(j, v.held)-i)
}

// tokenAt is the index of the token that holds byte at, or len(ids).
func (v *view) tokenAt(at int) int {
	i, _ := slices.BinarySearch(v.ends, uint32(at)+1)
	return i
}

// reader makes views.
type reader struct {
	t         *tokenizer.Tokenizer
	special   bool
	template  bool
	noOutputs bool
	seed      maphash.Seed
}

func newReader(o *Options) *reader {
	return &reader{t: o.Tokenizer, special: o.Special, template: o.Template, noOutputs: o.NoOutputs, seed: maphash.MakeSeed()}
}

// views reads all prompts, on all processors.
func (r *reader) views(prompts []Prompt) ([]view, error) {
	views := make([]view, len(prompts))
	errs := make([]error, len(prompts))
	each(len(prompts), func(i int) { errs[i] = r.view(&views[i], &prompts[i]) })
	spaces := map[[3]string]int{}
	for i := range views {
		if errs[i] != nil {
			return nil, fmt.Errorf("audit: prompt %s: %w", nameOf(prompts, i), errs[i])
		}
		k := &prompts[i].Keys
		key := [3]string{k.Salt, k.LoRA, k.Extra}
		if _, ok := spaces[key]; !ok {
			spaces[key] = len(spaces)
		}
		views[i].space = spaces[key]
	}
	return views, nil
}

// nameOf is what a report calls a prompt.
func nameOf(prompts []Prompt, i int) string {
	if prompts[i].Name != "" {
		return prompts[i].Name
	}
	return fmt.Sprint(i + 1)
}

func (r *reader) view(v *view, p *Prompt) error {
	if len(p.Text)+len(p.Output) > math.MaxUint32/2 {
		return fmt.Errorf("the text has %d bytes, more than 2 GiB: give it in parts", len(p.Text)+len(p.Output))
	}
	*v = view{}
	if p.IDs != nil {
		if err := r.spelled(v, p.IDs, p.Text); err != nil {
			return err
		}
	} else {
		r.tokenized(v, p.Text)
	}
	v.size, v.n = len(v.text), len(v.ids)
	at := 0
	for i, s := range p.Segments {
		if s.Start < at || s.End < s.Start || s.End > v.size {
			return fmt.Errorf("segment %d (%s) is at bytes %d to %d, which is not after the one before it and inside the text of %d bytes", i, s.Name, s.Start, s.End, v.size)
		}
		at = s.End
	}
	if !r.noOutputs {
		if err := r.output(v, p); err != nil {
			return err
		}
	}
	v.held = len(v.ids)
	if v.apart {
		v.held--
	}
	return r.media(v, p)
}

// tokenized makes a view of plain text.
func (r *reader) tokenized(v *view, text []byte) {
	v.text = text
	if r.template {
		before, _ := r.t.Template()
		if sp := r.t.Vocab().Specials(); len(before) == 0 && sp.AddBOS && sp.BOS != vocab.None {
			before = []vocab.ID{sp.BOS}
		}
		v.ids = append(v.ids, before...)
		v.ends = append(v.ends, make([]uint32, len(before))...)
	}
	v.ids, v.ends = r.encode(v.ids, v.ends, text, 0)
}

// offsets are buffers for the ends of tokens.
var offsets = sync.Pool{New: func() any { return new([]int) }}

// encode appends the tokens of text, which begins at byte base.
func (r *reader) encode(ids []vocab.ID, ends []uint32, text []byte, base int) ([]vocab.ID, []uint32) {
	buf := offsets.Get().(*[]int)
	defer offsets.Put(buf)
	ids, *buf = r.t.EncodeEnds(slices.Grow(ids, len(text)/4+1), (*buf)[:0], text, r.special)
	ends = slices.Grow(ends, len(*buf))
	for _, e := range *buf {
		ends = append(ends, uint32(base+e))
	}
	return ids, ends
}

// spelled makes a view of tokens. Of text it takes over whether the control
// tokens at the start are spelled there.
func (r *reader) spelled(v *view, ids []vocab.ID, text []byte) error {
	if err := r.check(ids); err != nil {
		return err
	}
	v.given, v.ids = true, slices.Clip(ids)
	v.ends = make([]uint32, len(ids))
	d := r.t.NewDecoder()
	var spelt []byte
	head, open := 0, true // bytes of control tokens at the start
	for i, id := range ids {
		spelt = d.Append(spelt, id)
		if open = open && r.t.Vocab().Kind(id) == vocab.Control; open {
			head = len(spelt)
		}
		v.ends[i] = uint32(len(spelt))
	}
	v.text = spelt
	if text != nil && head > 0 && !bytes.Equal(spelt, text) && bytes.Equal(spelt[head:], text) {
		v.text = text
		for i := range v.ends {
			v.ends[i] = max(v.ends[i], uint32(head)) - uint32(head)
		}
	}
	return nil
}

// check refuses tokens that the vocabulary does not have.
func (r *reader) check(ids []vocab.ID) error {
	for i, id := range ids {
		if !r.t.Vocab().Valid(id) {
			return fmt.Errorf("token %d at index %d is not in the vocabulary of %d tokens: are the tokens those of another model?", id, i, r.t.Vocab().Len())
		}
	}
	return nil
}

// output appends what the model wrote.
func (r *reader) output(v *view, p *Prompt) error {
	switch {
	case len(p.OutputIDs) > 0:
		if err := r.check(p.OutputIDs); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		v.text, v.ids, v.ends = slices.Clip(v.text), slices.Clip(v.ids), slices.Clip(v.ends)
		d := r.t.NewDecoder()
		if i := slices.IndexFunc(v.ids, r.t.Vocab().IsText); i >= 0 {
			d.Append(nil, v.ids[i]) // no dummy space from here on
			d.Append(nil, v.ids[len(v.ids)-1])
		}
		for _, id := range p.OutputIDs {
			v.text = d.Append(v.text, id)
			v.ids = append(v.ids, id)
			v.ends = append(v.ends, uint32(len(v.text)))
		}
	case len(p.Output) > 0:
		v.text, v.ids, v.ends = slices.Clip(v.text), slices.Clip(v.ids), slices.Clip(v.ends)
		base := len(v.text)
		v.text = append(v.text, p.Output...)
		if r.special || base == 0 {
			v.ids, v.ends = r.encode(v.ids, v.ends, p.Output, base)
		} else {
			r.inside(v, p.Output, base)
		}
	default:
		return nil
	}
	v.apart = true
	return nil
}

// inside appends the tokens of plain text that stands after other text.
func (r *reader) inside(v *view, text []byte, base int) {
	from := len(v.ids)
	v.ids = r.t.EncodeInside(v.ids, text)
	_, ends := r.encode(nil, nil, text, base)
	if len(ends) == len(v.ids)-from {
		v.ends = append(v.ends, ends...)
		return
	}
	// A dummy space makes other tokens: count bytes instead.
	at := base
	for _, id := range v.ids[from:] {
		at = min(at+len(r.t.Vocab().Bytes(id)), base+len(text))
		v.ends = append(v.ends, uint32(at))
	}
	v.ends[len(v.ends)-1] = uint32(base + len(text))
}

// media numbers what stands for images by their content.
func (r *reader) media(v *view, p *Prompt) error {
	v.keyed = v.ids
	if len(p.Keys.Media) == 0 {
		return nil
	}
	v.keyed = slices.Clone(v.ids)
	for i, m := range p.Keys.Media {
		if m.Offset < 0 || m.Length < 0 || m.Offset > v.n || m.Length > v.n-m.Offset {
			return fmt.Errorf("item %d of the media takes the tokens from %d on, %d of them, of a prompt of %d: give the places in the prompt's tokens", i, m.Offset, m.Length, v.n)
		}
		id := vocab.ID(maphash.String(r.seed, m.Hash)>>33) | math.MinInt32
		for k := range m.Length {
			v.keyed[m.Offset+k] = id
		}
	}
	return nil
}
