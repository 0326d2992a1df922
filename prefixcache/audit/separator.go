package audit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// separator looks for the tokens of a chunk cache's separator, as LMCache's
// SegmentTokenDatabase does (lmcache/v1/token_database.py).
func (a *audit) separator() (*SeparatorCheck, error) {
	ids := a.opts.SeparatorIDs
	if ids == nil {
		ids = a.t.Encode(nil, a.opts.Separator)
	}
	if err := a.r.check(ids); err != nil {
		return nil, fmt.Errorf("audit: separator: %w", err)
	}
	text := a.opts.Separator
	if text == nil {
		text = a.t.Decode(nil, ids)
	}
	c := &SeparatorCheck{Text: string(text), IDs: (&pair{t: a.t}).tokens(ids)}
	if len(text) == 0 {
		return c, nil
	}
	example := ""
	for i := range a.views {
		v := &a.views[i]
		for at := 0; ; {
			k := bytes.Index(v.text[at:v.size], text)
			if k < 0 {
				break
			}
			c.InText++
			lo, hi := at+k, at+k+len(text)
			first := v.tokenAt(lo)
			if v.start(first) == lo && slices.Equal(v.ids[first:min(v.n, first+len(ids))], ids) {
				c.InTokens++
			} else if example == "" {
				last := v.tokenAt(hi - 1)
				example = fmt.Sprintf("in prompt %s at byte %d it is %s", nameOf(a.prompts, i), lo, (&pair{t: a.t}).show(v.ids[first:last+1], 6))
			}
			at = hi
		}
	}
	if c.InTokens == c.InText {
		return c, nil
	}
	c.Why = fmt.Sprintf("%d of %s are found by the tokens %s: %s", c.InTokens, count(c.InText, "separator"), (&pair{t: a.t}).show(ids, 6), example)
	if i := slices.IndexFunc(ids, func(id vocab.ID) bool { return a.t.Vocab().Kind(id) == vocab.Control }); i >= 0 && !bytes.Contains(text, a.t.Vocab().Bytes(ids[i])) {
		c.Why += fmt.Sprintf("; the tokens looked for hold the control token %s, which the text of the separator has not: it was encoded with special tokens", a.t.Vocab().Bytes(ids[i]))
	}
	return c, nil
}
