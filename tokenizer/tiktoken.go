package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unfray/unfray/tokenizer/internal/bpe"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/tokenizer/internal/tekken"
	"github.com/unfray/unfray/tokenizer/internal/tiktoken"
	"github.com/unfray/unfray/vocab"
)

// fromRanks makes the tokenizer of a rank file: of the encoding of that name,
// or, if it is empty, of the published encoding whose file it is.
func fromRanks(ranks *tiktoken.Ranks, name string) (*Tokenizer, error) {
	e, ok := tiktoken.Known(name)
	own, published := tiktoken.ByHash(ranks.Hash())
	switch {
	case !ok:
		e, ok = own, published
	case published && own.Hash != e.Hash:
		return nil, fmt.Errorf("tokenizer: this is the rank file of %s, not of %s: open it as %s=FILE", own.Name, e.Name, own.Name)
	}
	if !ok {
		return nil, fmt.Errorf("tokenizer: a rank file does not say how text is cut before merging, and this is none of those that OpenAI published: name its encoding, as in o200k_base=FILE; known are %s", strings.Join(tiktoken.Names(), ", "))
	}
	n := ranks.Len()
	for _, s := range e.Special {
		n = max(n, s.ID+1)
	}
	tokens := make([][]byte, n)
	kinds := make([]vocab.Kind, n)
	for id := range kinds {
		kinds[id] = vocab.Unused
		if id < ranks.Len() && ranks.Token(id) != nil {
			tokens[id], kinds[id] = ranks.Token(id), vocab.Normal
		}
	}
	sp := vocab.NoSpecials()
	var special []addedToken
	for _, s := range e.Special {
		id := vocab.ID(s.ID)
		if kinds[id] == vocab.Normal {
			return nil, fmt.Errorf("tokenizer: the rank file has a token of rank %d, which in %s is the special token %s; it is a file of another encoding", id, e.Name, s.Text)
		}
		special = append(special, addedToken{text: []byte(s.Text), id: id})
		if kinds[id] == vocab.Control {
			continue // a second text for the same token
		}
		tokens[id], kinds[id] = []byte(s.Text), vocab.Control
		switch s.Text {
		case "<|endoftext|>":
			sp.EOS = id
			sp.EOG = append(sp.EOG, id)
		case "<|return|>", "<|call|>":
			sp.EOG = append(sp.EOG, id)
		case "<|fim_prefix|>":
			sp.FIMPrefix = id
		case "<|fim_middle|>":
			sp.FIMMiddle = id
		case "<|fim_suffix|>":
			sp.FIMSuffix = id
		}
	}
	return byRank(tokens, kinds, sp, e.Pattern, special)
}

// fromTekken makes the tokenizer of a tekken.json.
func fromTekken(f *tekken.File) (*Tokenizer, error) {
	n := len(f.Special) + f.Len()
	tokens := make([][]byte, n)
	kinds := make([]vocab.Kind, n)
	sp := vocab.NoSpecials()
	special := make([]addedToken, len(f.Special))
	for i, s := range f.Special {
		id := vocab.ID(i)
		tokens[i], kinds[i] = []byte(s.Text), vocab.Control
		special[i] = addedToken{text: tokens[i], id: id}
		switch s.Text {
		case "<s>":
			sp.BOS, sp.AddBOS = id, true
		case "</s>":
			sp.EOS, sp.EOG = id, []vocab.ID{id}
		case "<unk>":
			sp.Unknown = id
		case "<pad>":
			sp.Pad = id
		case "[PREFIX]":
			sp.FIMPrefix = id
		case "[SUFFIX]":
			sp.FIMSuffix = id
		case "[MIDDLE]":
			sp.FIMMiddle = id
		}
	}
	for rank := range f.Len() {
		i := len(f.Special) + rank
		tokens[i], kinds[i] = f.Token(rank), vocab.Normal
	}
	t, err := byRank(tokens, kinds, sp, f.Pattern, special)
	if err == nil && sp.AddBOS {
		t.before = []vocab.ID{sp.BOS}
	}
	return t, err
}

// byRank makes a tokenizer that merges in the order of IDs.
func byRank(tokens [][]byte, kinds []vocab.Kind, sp vocab.Specials, pattern string, special []addedToken) (*Tokenizer, error) {
	v, err := vocab.New(tokens, kinds, sp)
	if err != nil {
		return nil, err
	}
	splitter, err := split.Pattern(pattern)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	m, err := newBPE(bpe.Config{Vocab: v, ByID: true, Whole: true, Unknown: vocab.None})
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if !m.complete {
		return nil, errors.New("tokenizer: the rank file lacks tokens for some single bytes, so it is damaged or none of tiktoken's")
	}
	t := &Tokenizer{vocab: v, split: splitter, model: m, kind: kindByteLevel}
	t.plain = addedTokens{newAddedMatcher(nil, leftmostLongest), newAddedMatcher(nil, leftmostLongest)}
	t.all = addedTokens{newAddedMatcher(special, leftmostLongest), newAddedMatcher(nil, leftmostLongest)}
	if !splitter.Exact() {
		t.notes = append(t.notes, fallbackNote(splitter))
	}
	return t, nil
}

func fallbackNote(s split.Splitter) Note {
	return Note{CodePatternFallback, fmt.Sprintf("there is no scanner for the pre-tokenizer %s: it goes through a general regular expression engine, slower, and where tokens may move is told with caution", s)}
}
