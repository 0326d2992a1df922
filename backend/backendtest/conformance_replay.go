package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// pendings are the bytes of the suite's replays: parts of words, words, spaces,
// and characters cut at each of their bytes.
var pendings = []string{
	" Par", " the", "f", " ", "\n\n", " capital of", "http://ww", "{\"", "    ", "userNam",
	"\xc3", " \xc3", "\xe6\x97", "caf\xc3\xa9", "日\xe6", " \xf0\x9f", "\xf0\x9f\x99", "🙂\xf0", "\x99\x82", "\xa9x",
}

// waysOver lists the ways over pending bytes by at most two tokens, the last of
// which may be any that fits.
func (c *conformance) waysOver(pending []byte) (ways []backend.Way) {
	last := func(path []vocab.ID, rest []byte) {
		if len(rest) == 0 {
			ways = append(ways, backend.Way{Path: path})
			return
		}
		var ids []vocab.ID
		for _, id := range c.Vocab.Sorted(c.Vocab.PrefixRange(rest)) {
			if c.Vocab.IsText(id) && !c.Vocab.IsEOG(id) {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		if len(ids) > 0 {
			ways = append(ways, backend.Way{Path: path, Rest: rest, Last: ids})
		}
	}
	last(nil, pending)
	for _, id := range c.Vocab.AppendPrefixes(nil, pending) {
		last([]vocab.ID{id}, pending[len(c.Vocab.Bytes(id)):])
	}
	return ways
}

// follows reports whether tokens begin with the replay, or are a beginning of
// one, and how many of them belong to it.
func (c *conformance) follows(r *backend.Replay, ids []vocab.ID) (n int, ok bool) {
	if len(r.Ways) == 0 {
		left := r.Pending
		for i, id := range ids {
			b := c.Vocab.Bytes(id)
			k := min(len(b), len(left))
			if k == 0 || !c.Vocab.IsText(id) || !bytes.Equal(b[:k], left[:k]) {
				return i, false
			}
			if left = left[k:]; len(left) == 0 {
				return i + 1, true
			}
		}
		return len(ids), true
	}
	for _, w := range r.Ways {
		k := min(len(w.Path), len(ids))
		if !slices.Equal(w.Path[:k], ids[:k]) {
			continue
		}
		if len(w.Last) == 0 || len(ids) <= len(w.Path) {
			return k, true
		}
		if slices.Contains(w.Last, ids[len(w.Path)]) {
			return len(w.Path) + 1, true
		}
	}
	return 0, false
}

func (c *conformance) replayObeyed(t *testing.T) {
	seed := uint64(5)
	for i, p := range pendings {
		pending := []byte(p)
		replays := []*backend.Replay{{Pending: pending}}
		if ways := c.waysOver(pending); len(ways) > 0 {
			replays = append(replays, &backend.Replay{Pending: pending, Ways: ways}, &backend.Replay{Pending: pending, Ways: ways[len(ways)-1:]})
		}
		for form, r := range replays {
			name := fmt.Sprintf("%q, %d ways", p, len(r.Ways))
			w := &watcher{}
			req := &backend.Request{Prompt: c.Prompts[i%len(c.Prompts)], Replay: r, Steer: w, MaxTokens: len(pending) + 2}
			if (i+form)%2 == 1 {
				req.Sampling = backend.Sampling{Temperature: 1, Seed: &seed}
			}
			toks, end := c.generate(t, req)
			got := idsOf(toks)
			if n, ok := c.follows(r, got); !ok {
				t.Errorf("%s: token %d of %v (%q) is no part of the replay", name, n, got, c.text(got))
			}
			if !slices.Equal(w.accepted, got) {
				t.Errorf("%s: Accept saw %v, the stream has %v", name, w.accepted, got)
			}
			if text := c.text(got); end.Reason == backend.FinishLength && !bytes.HasPrefix(text, pending) && !bytes.HasPrefix(pending, text) {
				t.Errorf("%s: %q does not begin with what was pending", name, text)
			}
		}
	}
}

func (c *conformance) text(ids []vocab.ID) (text []byte) {
	for _, id := range ids {
		text = append(text, c.Vocab.Bytes(id)...)
	}
	return text
}

// replayWatcher does not count the tokens of a replay.
type replayWatcher struct {
	c        *conformance
	pending  []byte
	accepted []vocab.ID
	replayed int
}

func (w *replayWatcher) Mask() vocab.Mask { return nil }

func (w *replayWatcher) Accept(id vocab.ID) backend.Verdict {
	w.accepted = append(w.accepted, id)
	done := len(w.c.text(w.accepted))-len(w.c.Vocab.Bytes(id)) >= len(w.pending)
	if !done {
		w.replayed++
	}
	return backend.Verdict{Uncounted: !done}
}

// replayUncounted checks that the tokens of a replay leave the limit to the
// others.
func (c *conformance) replayUncounted(t *testing.T) {
	for _, p := range []string{" Par", " the capital of ", "h", "caf\xc3"} {
		for _, limit := range []int{1, 3} {
			w := &replayWatcher{c: c, pending: []byte(p)}
			toks, end := c.generate(t, &backend.Request{Prompt: c.Prompts[0], Replay: &backend.Replay{Pending: w.pending}, Steer: w, MaxTokens: limit})
			if want := w.replayed + limit; end.Reason == backend.FinishLength && len(toks) != want || len(toks) > want {
				t.Errorf("%q, MaxTokens %d: %d tokens, %d of them of the replay, end %+v; want %d", p, limit, len(toks), w.replayed, end, want)
			}
		}
	}
}

// verdictsWithoutMasks is verdicts for backends that ask for no masks.
func (c *conformance) verdictsWithoutMasks(t *testing.T) {
	w := &watcher{uncounted: 3}
	toks, end := c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: 2, Steer: w})
	if len(toks) != 5 && end.Reason != backend.FinishStop || len(toks) == 5 && end.Reason != backend.FinishLength {
		t.Errorf("three uncounted tokens and MaxTokens 2: %d tokens, reason %q; want 5, length", len(toks), end.Reason)
	}
	w = &watcher{stop: 3}
	toks, end = c.generate(t, &backend.Request{Prompt: c.Prompts[0], MaxTokens: c.Steps, Steer: w})
	if len(toks) > 3 || len(toks) == 3 && (end.Reason != backend.FinishStop || end.EndToken != vocab.None) {
		t.Errorf("Stop at the third token: %d tokens, end %+v; want 3, stop, none", len(toks), end)
	}
	if !slices.Equal(w.accepted, idsOf(toks)) {
		t.Errorf("Accept saw %v, the stream has %v", w.accepted, idsOf(toks))
	}
}

// yesOrNo says "yes or no" in each language of grammars.
var yesOrNo = map[backend.GrammarKind]string{
	backend.GBNF:       `root ::= answer` + "\n" + `answer ::= "yes" | "no" # root`,
	backend.Regex:      `yes|no`,
	backend.JSONSchema: `{"enum": ["yes", "no"]}`,
	backend.Lark:       `start: "yes" | "no"`,
}

// grammars checks that a generation keeps to a grammar, also where a replay
// comes first. A backend may say that it cannot do both.
func (c *conformance) grammars(t *testing.T) {
	can := c.b.Info().Capabilities
	for _, kind := range can.Grammars {
		g := &backend.Grammar{Kind: kind, Source: yesOrNo[kind]}
		for _, pending := range []string{"", " Par", "Answer: \"", "caf\u00e9\n"} {
			req := &backend.Request{Prompt: c.Prompts[0], Grammar: g, MaxTokens: 40}
			if pending != "" {
				if !can.Replay {
					continue
				}
				req.Replay = &backend.Replay{Pending: []byte(pending)}
			}
			s, err := c.b.Generate(t.Context(), req)
			var refused *backend.UnsupportedError
			if pending != "" && errors.As(err, &refused) {
				continue
			} else if err != nil {
				t.Errorf("%s after %q: %v", kind, pending, err)
				continue
			}
			toks, err := drain(s)
			text, ok := strings.CutPrefix(string(c.text(idsOf(toks))), pending)
			if text = strings.Trim(text, `"`); err != nil || !ok || text != "yes" && text != "no" {
				t.Errorf("%s after %q gave %q, %v", kind, pending, text, err)
			}
		}
	}
	req := &backend.Request{Prompt: c.Prompts[0], Grammar: &backend.Grammar{Kind: "none such", Source: "x"}, MaxTokens: 4}
	var refused *backend.UnsupportedError
	if s, err := c.b.Generate(t.Context(), req); err == nil {
		s.Close()
		if !can.Steer { // those find a grammar in the masks
			t.Error("a grammar of an unknown kind was taken")
		}
	} else if !errors.As(err, &refused) {
		t.Errorf("a grammar of an unknown kind: %v", err)
	}
}
