package audit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/vocab"
)

// separator looks for the tokens of a chunk cache's separator, as LMCache's
// SegmentTokenDatabase does (lmcache/v1/token_database.py), and if they are not
// always there for a separator whose tokens are.
func (a *audit) separator() (*SeparatorCheck, error) {
	ids := a.opts.SeparatorIDs
	if ids == nil {
		ids = a.t.Encode(nil, a.opts.Separator)
	}
	if err := a.r.check(ids); err != nil {
		return nil, fmt.Errorf("audit: separator: %w", err)
	}
	text := a.opts.Separator
	if len(text) == 0 {
		text = a.t.Decode(nil, ids)
	}
	show := (&pair{t: a.t}).show
	c := &SeparatorCheck{Text: string(text), IDs: (&pair{t: a.t}).tokens(ids)}
	if len(text) == 0 {
		return c, nil
	}
	for i := range a.views {
		v := &a.views[i]
		n, found, miss := v.separators(text, ids)
		c.InText += n
		c.InTokens += found
		if miss.hi > 0 && c.Why == "" {
			last := v.tokenAt(miss.hi - 1)
			c.Why = fmt.Sprintf("in prompt %s at byte %d it is %s", nameOf(a.prompts, i), miss.lo, show(v.ids[v.tokenAt(miss.lo):last+1], 6))
		}
	}
	if c.Why == "" {
		return c, nil
	}
	c.Why = fmt.Sprintf("%d of %s are found by the tokens %s: %s", c.InTokens, count(c.InText, "separator"), show(ids, 6), c.Why)
	if i := slices.IndexFunc(ids, func(id vocab.ID) bool { return a.t.Vocab().Kind(id) == vocab.Control }); i >= 0 && !bytes.Contains(text, a.t.Vocab().Bytes(ids[i])) {
		c.Why += fmt.Sprintf("; the tokens looked for hold the control token %s, which the text of the separator has not: it was encoded with special tokens", a.t.Vocab().Bytes(ids[i]))
	}
	var err error
	c.Instead, err = a.instead(text)
	return c, err
}

// separators counts the places of a text in the prompt, and those at which it has
// the tokens ids. miss is the first place with other ones.
func (v *view) separators(text []byte, ids []vocab.ID) (n, found int, miss span) {
	for at := 0; ; {
		k := bytes.Index(v.text[at:v.size], text)
		if k < 0 {
			return n, found, miss
		}
		n++
		lo := at + k
		at = lo + len(text)
		first := v.tokenAt(lo)
		switch {
		case v.start(first) == lo && slices.Equal(v.ids[first:min(v.n, first+len(ids))], ids):
			found++
		case miss.hi == 0:
			miss = span{lo, at}
		}
	}
}

// instead is the first of the separators that is found by its own tokens wherever
// it stands in the place of text, and stands nowhere else.
func (a *audit) instead(text []byte) (string, error) {
	s := a.sampled()
	for _, sep := range separators {
		if len(strings.TrimSpace(sep)) < 2 || s.contain(sep) {
			continue
		}
		encode := a.t.Encode
		if a.opts.Special {
			encode = a.t.EncodeSpecial
		}
		ids := encode(nil, []byte(sep))
		prompts := make([]Prompt, len(s.prompts))
		for i := range prompts {
			v := &a.views[i]
			prompts[i] = s.with(&s.prompts[i], v, bytes.ReplaceAll(v.text[:v.size], text, []byte(sep)))
		}
		views, err := a.r.views(prompts)
		if err != nil {
			return "", err
		}
		all := true
		for i := range views {
			n, found, _ := views[i].separators([]byte(sep), ids)
			all = all && n == found
		}
		if all {
			return sep, nil
		}
	}
	return "", nil
}

// contain reports whether a text stands in one of the prompts.
func (s *sample) contain(text string) bool {
	return slices.ContainsFunc(s.views[:len(s.prompts)], func(v view) bool { return bytes.Contains(v.text[:v.size], []byte(text)) })
}
