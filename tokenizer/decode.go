package tokenizer

import (
	"bytes"

	"github.com/unfray/unfray/vocab"
)

// decoding says how the text of tokens differs from their bytes put together.
type decoding struct {
	// strip drops one space at the start of a text, which is the dummy prefix;
	// stripAfter also after an added token.
	strip, stripAfter bool

	// WordPiece: words are joined by spaces, except tokens with the prefix.
	words        bool
	continuation string // "##"
	cleanup      bool   // no space before punctuation and contractions
}

// Decoder turns tokens into text as they come. What it gives is bytes: a
// character may be divided over several tokens.
type Decoder struct {
	t     *Tokenizer
	strip bool // a space that comes now is the dummy prefix
	begun bool // some token has come
}

// NewDecoder makes a decoder for the tokens of a text from its start.
func (t *Tokenizer) NewDecoder() *Decoder {
	return &Decoder{t: t, strip: t.decoding.strip}
}

// Append appends the text of the next token to dst. The text of control tokens
// is theirs in the vocabulary; an ID outside the vocabulary has none.
func (d *Decoder) Append(dst []byte, id vocab.ID) []byte {
	t := d.t
	b := t.vocab.Bytes(id)
	if len(b) == 0 {
		return dst
	}
	if t.decoding.words {
		dst = t.appendWord(dst, b, d.begun)
		d.begun = true
		return dst
	}
	switch kind := t.vocab.Kind(id); {
	case id == t.vocab.Specials().Unknown:
		// It stands for text more often than it is spelt.
	case kind == vocab.UserDefined && d.strip && t.prefix.when == prefixText:
		// SentencePiece's symbols may take the dummy prefix in.
	case kind == vocab.Control || kind == vocab.UserDefined:
		d.strip = t.decoding.stripAfter || d.strip && t.startsText(id)
		return append(dst, b...)
	}
	if d.strip && b[0] == ' ' {
		b = b[1:]
	}
	d.strip = false
	return append(dst, b...)
}

// startsText reports whether a token is one that stands before a text.
func (t *Tokenizer) startsText(id vocab.ID) bool {
	if id == t.vocab.Specials().BOS {
		return true
	}
	for _, b := range t.before {
		if b == id {
			return true
		}
	}
	return false
}

// positionAfter is where a text stands that follows the tokens.
func (t *Tokenizer) positionAfter(before []vocab.ID) position {
	for _, id := range before {
		if !t.startsText(id) {
			return afterToken
		}
	}
	return atStart
}

// Decode appends the text of the tokens of a whole text. It is what was encoded,
// to the byte, unless [Tokenizer.Loss] says otherwise. A space at the start, or
// after an added token, may differ, as with the reference: one of the text's own
// may be taken for the dummy prefix, and GPT-2's decoder leaves the prefix there.
func (t *Tokenizer) Decode(dst []byte, ids []vocab.ID) []byte {
	return t.DecodeAfter(dst, nil, ids)
}

// DecodeAfter is Decode for tokens that follow others.
func (t *Tokenizer) DecodeAfter(dst []byte, before, ids []vocab.ID) []byte {
	d := Decoder{t: t, begun: len(before) > 0}
	switch t.positionAfter(before) {
	case atStart:
		d.strip = t.decoding.strip
	case afterToken:
		d.strip = t.decoding.stripAfter
	}
	for _, id := range ids {
		dst = d.Append(dst, id)
	}
	return dst
}

// spelt gives the bytes of normalized text that a token stands for.
func (t *Tokenizer) spelt(id vocab.ID) []byte {
	b := t.vocab.Bytes(id)
	if t.decoding.words {
		b = bytes.TrimPrefix(b, []byte(t.decoding.continuation))
	}
	return b
}

// cleanups are what WordPiece's decoder leaves out spaces from: the field
// "cleanup" of a tokenizer.json.
var cleanups = []struct{ from, to string }{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

// appendWord appends a token of WordPiece.
func (t *Tokenizer) appendWord(dst, b []byte, begun bool) []byte {
	var word []byte
	switch rest, ok := bytes.CutPrefix(b, []byte(t.decoding.continuation)); {
	case !begun:
		word = bytes.Clone(b)
	case ok && t.decoding.continuation != "":
		word = bytes.Clone(rest)
	default:
		word = append([]byte{' '}, b...)
	}
	if t.decoding.cleanup {
		for _, c := range cleanups {
			word = bytes.ReplaceAll(word, []byte(c.from), []byte(c.to))
		}
	}
	return append(dst, word...)
}
