package tokenizer

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/unfray/unfray/tokenizer/internal/bpe"
	"github.com/unfray/unfray/tokenizer/internal/normalize"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/tokenizer/internal/spmodel"
	"github.com/unfray/unfray/tokenizer/internal/unigram"
	"github.com/unfray/unfray/vocab"
)

// fromPieces makes the tokenizer of a SentencePiece model.
func fromPieces(f *spmodel.Model) (*Tokenizer, error) {
	if f.Trainer.WhitespaceAsSuffix {
		return nil, fmt.Errorf("tokenizer: SentencePiece models with treat_whitespace_as_suffix are not supported")
	}
	if !f.Normalizer.EscapeWhitespaces {
		return nil, fmt.Errorf("tokenizer: SentencePiece models without escape_whitespaces are not supported")
	}
	n := len(f.Pieces)
	tokens := make([][]byte, n)
	kinds := make([]vocab.Kind, n)
	scores := make([]float64, n)
	singles := make([]float32, n)
	var user, literal, special []addedToken
	sp := vocab.NoSpecials()
	for id, p := range f.Pieces {
		kinds[id] = vocab.Kind(p.Type)
		singles[id], scores[id] = p.Score, float64(p.Score)
		switch p.Type {
		case spmodel.Byte:
			b, ok := byteToken(p.Text)
			if !ok {
				return nil, fmt.Errorf("tokenizer: piece %d, %q, is of type byte, but not of the form <0x0A>", id, p.Text)
			}
			tokens[id] = []byte{b}
		case spmodel.Control, spmodel.Unknown:
			tokens[id] = p.Text
			if p.Type == spmodel.Control {
				special = append(special, addedToken{text: p.Text, id: vocab.ID(id)})
			}
		default:
			tokens[id], _ = appendMeta(nil, p.Text)
			// Normalized text has no space, only ▁: a piece that is spelt with
			// one is never found, a symbol is in the text itself.
			spaced := bytes.IndexByte(p.Text, ' ') >= 0
			switch {
			case p.Type == spmodel.UserDefined:
				literal = append(literal, addedToken{text: p.Text, id: vocab.ID(id)})
				if !spaced {
					user = append(user, addedToken{text: tokens[id], id: vocab.ID(id)})
				}
			case spaced:
				kinds[id] = vocab.Unused
			}
		}
	}
	role := func(id int) vocab.ID {
		if id < 0 || id >= n {
			return vocab.None
		}
		return vocab.ID(id)
	}
	sp.BOS, sp.EOS, sp.Unknown, sp.Pad = role(f.BOSID), role(f.EOSID), role(f.UnkID), role(f.PadID)
	if sp.EOS != vocab.None {
		sp.EOG = []vocab.ID{sp.EOS}
	}
	v, err := vocab.New(tokens, kinds, sp)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{vocab: v}
	collapse := f.Normalizer.RemoveExtraWhitespaces
	t.norm, err = normalize.New([]normalize.Step{{
		Type: "SentencePiece", Charsmap: f.Normalizer.Charsmap, CollapseSpaces: collapse,
	}})
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if f.Normalizer.AddDummyPrefix {
		t.prefix = prefixRule{when: prefixText, early: true, bare: !collapse}
		t.decoding = decoding{strip: true}
	}
	// User-defined symbols are found in normalized text: with Unigram they are
	// pieces that score best. The normalizer leaves them alone where they stand
	// in the text itself.
	literal = slices.DeleteFunc(literal, func(a addedToken) bool {
		spelt, _ := appendMeta(nil, a.text)
		return !(collapse && bytes.IndexByte(a.text, ' ') >= 0) && t.norm.Same(spelt)
	})
	for _, a := range literal {
		if collapse || bytes.IndexByte(a.text, ' ') >= 0 {
			return nil, fmt.Errorf("tokenizer: SentencePiece models with a user-defined symbol %q, which the normalizer would rewrite, and remove_extra_whitespaces or a space in it are not supported", a.text)
		}
	}
	if f.Trainer.ModelType == spmodel.Unigram {
		user = nil
	}
	symbols := newAddedMatcher(user, leftmostLongest)
	symbols.marksSpace = true
	t.plain = addedTokens{newAddedMatcher(literal, leftmostLongest), symbols}
	t.all = addedTokens{newAddedMatcher(append(special, literal...), leftmostLongest), symbols}
	switch f.Trainer.ModelType {
	case spmodel.BPE:
		m, err := newBPE(bpe.Config{
			Vocab: v, Scores: singles, Chars: true, ByteFallback: f.Trainer.ByteFallback, Unknown: sp.Unknown,
			FuseUnknown: true, Unused: true,
		})
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		t.model, t.split, t.kind = m, m.Breaks(), kindPieces
	case spmodel.Unigram:
		m, err := unigram.New(unigram.Config{
			Vocab: v, Scores: scores, Single: true, Unknown: sp.Unknown, ByteFallback: f.Trainer.ByteFallback, FuseUnknown: true,
		})
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		t.model, t.kind = &unigramModel{m, sp.Unknown}, kindUnigram
		if t.split, err = split.New(nil); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("tokenizer: SentencePiece models of type %s are not supported; supported are BPE and Unigram", f.Trainer.ModelType)
	}
	return t, nil
}
