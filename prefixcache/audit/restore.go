package audit

import (
	"bytes"
	"slices"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// Bounds of what is restored: places of one prompt, and bytes that are tokenized
// anew, as a multiple of [Options].MaxVerify.
const (
	maxRestored  = 64
	restoredWork = 8
)

// with makes a prompt of other text. Its tokens are made anew.
func (s *sample) with(p *Prompt, v *view, text []byte) Prompt {
	q := *p
	q.Segments, q.Keys.Media = nil, nil
	q.Text, q.IDs = text, nil
	if v.given && !s.opts.Special {
		// The text of tokens that were given spells control tokens.
		q.IDs = s.t.EncodeSpecial([]vocab.ID{}, text)
	}
	return q
}

// restoring puts the bytes of the earlier prompt in the place of those that
// differ for one of the causes, from the first prompt to the last, so that what
// comes later is compared with what was changed before.
func restoring(causes ...Cause) func(s *sample) ([]Prompt, int, error) {
	return func(s *sample) ([]Prompt, int, error) {
		return s.sequential(func(p *pair, f *finding) (Prompt, bool) {
			if !f.restorable || !slices.Contains(causes, f.cause) {
				return Prompt{}, false
			}
			oldEnd, newEnd := max(f.old.hi, f.reach.old), max(f.new.hi, f.reach.new)
			text := slices.Concat(p.newText()[:f.new.lo], p.oldText()[f.old.lo:oldEnd], p.newText()[newEnd:])
			return s.with(p.newP, p.new, text), true
		})
	}
}

// keepParts puts parts that were dropped back where they were, and parts that were
// inserted behind the text that went on there.
func (s *sample) keepParts() ([]Prompt, int, error) {
	return s.sequential(func(p *pair, f *finding) (Prompt, bool) {
		if f.cause != PartsChange {
			return Prompt{}, false
		}
		text := p.newText()
		if f.restorable {
			return s.with(p.newP, p.new, slices.Concat(text[:f.new.lo], p.oldText()[f.old.lo:f.old.hi], text[f.new.hi:])), true
		}
		// What was inserted begins where its line does: its end is the same as what
		// stands before it.
		lo, hi := f.new.lo, f.new.hi
		if at := bytes.LastIndexByte(text[:lo], '\n') + 1; lo-at <= min(p.lo, commonTail(text[:lo], text[lo:hi])) {
			lo, hi = at, hi-(lo-at)
		}
		end := min(hi+commonBytes(text[hi:], p.oldText()[lo-p.l+p.lo:]), p.opening(p.new))
		if i := bytes.LastIndexByte(text[hi:max(hi, end)], '\n'); i >= 0 {
			end = hi + i + 1
		}
		if end <= hi {
			return Prompt{}, false
		}
		return s.with(p.newP, p.new, slices.Concat(text[:lo], text[hi:end], text[lo:hi], text[end:])), true
	})
}

// sequential changes prompts as long as a change is found for where they diverge.
func (s *sample) sequential(change func(p *pair, f *finding) (Prompt, bool)) ([]Prompt, int, error) {
	prompts, views := slices.Clone(s.prompts), slices.Clone(s.views[:len(s.prompts)])
	n, work := 0, restoredWork*s.opts.MaxVerify
	for i := range prompts {
		j := s.against[i]
		if j < 0 {
			continue
		}
		changed := false
		for range maxRestored {
			if work -= views[i].size; work < 0 {
				break
			}
			p, ok := newPair(s.r, views, prompts, j, i, s.opts.Separator)
			if !ok || !p.sameSpace() {
				break
			}
			q, ok := change(p, p.classify())
			if !ok {
				break
			}
			space, d := views[i].space, p.d
			if err := s.r.view(&views[i], &q); err != nil {
				return nil, 0, err
			}
			views[i].space, prompts[i], changed = space, q, true
			if vocab.CommonPrefix(views[j].keyed, views[i].keyed[:views[i].n]) <= d {
				break // it did not help
			}
		}
		if changed {
			n++
		}
	}
	return prompts, n, nil
}

// replayIDs puts the tokens that the cache holds in the place of those of the
// same text.
func (s *sample) replayIDs() ([]Prompt, int, error) {
	return s.sequential(func(p *pair, f *finding) (Prompt, bool) {
		if f.cause != OwnIDs {
			return Prompt{}, false
		}
		k := p.d
		for k < len(p.old.ids) && int(p.old.ends[k]) <= p.lo {
			k++
		}
		rest := p.newText()[p.newAt+p.old.start(k)-p.oldAt:]
		var ids []vocab.ID
		if p.special || p.new.given {
			ids = s.t.EncodeSpecial(slices.Clone(p.old.ids[:k]), rest)
		} else {
			ids = s.t.EncodeInside(slices.Clone(p.old.ids[:k]), rest)
		}
		q := *p.newP
		q.IDs, q.Text, q.Segments, q.Keys.Media = ids, nil, nil, nil
		return q, true
	})
}

// tokenizeWhole gives all prompts the tokens of their texts.
func (s *sample) tokenizeWhole() ([]Prompt, int, error) {
	prompts := slices.Clone(s.prompts)
	n := 0
	for i := range prompts {
		v := &s.views[i]
		if !v.given || len(prompts[i].Keys.Media) > 0 {
			continue
		}
		ids := s.t.EncodeSpecial([]vocab.ID{}, v.text[:v.size])
		if before, _ := s.t.Template(); len(before) > 0 && v.n > 0 && v.ids[0] == before[0] && (len(ids) == 0 || ids[0] != before[0]) {
			ids = slices.Concat(before, ids)
		}
		if !slices.Equal(ids, v.ids[:v.n]) {
			prompts[i].IDs, prompts[i].Text, prompts[i].Segments = ids, nil, nil
			n++
		}
	}
	return prompts, n, nil
}

// oneBOS gives each prompt one BOS at the start.
func (s *sample) oneBOS() ([]Prompt, int, error) {
	prompts := slices.Clone(s.prompts)
	bos, n := s.t.Vocab().Specials().BOS, 0
	for i := range prompts {
		v := &s.views[i]
		k := 0
		for k < v.n && v.ids[k] == bos {
			k++
		}
		if k == 1 || len(prompts[i].Keys.Media) > 0 {
			continue
		}
		prompts[i].IDs = append([]vocab.ID{bos}, v.ids[k:v.n]...)
		prompts[i].Text, prompts[i].Segments = nil, nil
		n++
	}
	return prompts, n, nil
}

// oneNamespace gives all prompts the keys of the first.
func (s *sample) oneNamespace() ([]Prompt, int, error) {
	prompts := slices.Clone(s.prompts)
	first, n := prompts[0].Keys, 0
	for i := range prompts {
		k := &prompts[i].Keys
		if k.Salt != first.Salt || k.LoRA != first.LoRA || k.Extra != first.Extra {
			*k = prefixcache.Keys{Salt: first.Salt, LoRA: first.LoRA, Extra: first.Extra, Media: k.Media}
			n++
		}
	}
	return prompts, n, nil
}

// ends lists the prompts that go on in a later one with other tokens at the end.
func (s *sample) ends() []int {
	var list []int
	for i, f := range s.findings[:len(s.prompts)] {
		if f == nil || f.cause != TailRetokenised {
			continue
		}
		if j := s.against[i]; len(s.pairs[i].oldRest()) == 0 && !s.views[j].apart && len(s.prompts[j].Keys.Media) == 0 {
			list = append(list, j)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// healEnds cuts prompts that go on to what no continuation changes.
func (s *sample) healEnds() ([]Prompt, int, error) {
	prompts := slices.Clone(s.prompts)
	n := 0
	for _, i := range s.ends() {
		v := &s.views[i]
		x := s.t.NewText(s.opts.Special || v.given)
		x.Append(v.text[:v.size])
		ids := x.IDs()
		k, _ := boundary.Stable(x)
		lead := v.n - len(ids) // of the tokenizer's template
		if lead < 0 || k == len(ids) || !slices.Equal(v.ids[lead:v.n], ids) {
			continue
		}
		prompts[i].IDs, prompts[i].Text, prompts[i].Segments = slices.Clone(v.ids[:lead+k]), nil, nil
		n++
	}
	return prompts, n, nil
}

// stripEnds cuts white space at the end of prompts that go on.
func (s *sample) stripEnds() ([]Prompt, int, error) {
	prompts := slices.Clone(s.prompts)
	n := 0
	for _, i := range s.ends() {
		text := s.views[i].text[:s.views[i].size]
		if k := blankBefore(text, len(text)); k > 0 {
			prompts[i] = s.with(&s.prompts[i], &s.views[i], text[:len(text)-k])
			n++
		}
	}
	return prompts, n, nil
}
