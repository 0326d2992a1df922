// Package vocab maps token IDs to their exact bytes and back.
//
//   - The bytes of a token are those it stands for in text, never a display
//     form: "Ġthe" is the four bytes " the", "<0x0A>" is one newline.
//   - Tokens that stand for text are indexed in byte order, so all tokens that
//     begin with given bytes are one contiguous range. That index is made when
//     it is first asked for.
//   - Control, unknown and unused tokens are known but never in that index.
//
// A [Vocab] does not change after it is made and may be shared by goroutines.
package vocab

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// ID is a token's number. Vocabularies number their tokens from zero.
type ID int32

// None stands for a token that a vocabulary does not have.
const None ID = -1

// CommonPrefix is how many tokens a and b begin with in common.
func CommonPrefix(a, b []ID) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Kind says what a token is for. The values are those of GGUF's
// tokenizer.ggml.token_type.
type Kind uint8

// Kinds of tokens.
const (
	Undefined   Kind = 0
	Normal      Kind = 1 // text
	Unknown     Kind = 2 // stands for what cannot be encoded
	Control     Kind = 3 // special: never the result of encoding plain text
	UserDefined Kind = 4 // added token: recognized in plain text before any merge
	Unused      Kind = 5
	Byte        Kind = 6 // byte fallback
)

// Specials names the tokens with a role of their own. A role that the
// vocabulary does not fill is [None].
type Specials struct {
	BOS, EOS, EOT, Unknown, Pad     ID
	FIMPrefix, FIMSuffix, FIMMiddle ID
	// FIMPad ends a middle in some models. FIMRepo stands before a repository's
	// name, FIMFile before a file's.
	FIMPad, FIMRepo, FIMFile ID

	// AddBOS and AddEOS say whether the model was trained on texts that begin
	// with BOS, or end with EOS. Encoders here never add them by themselves.
	AddBOS, AddEOS bool

	EOG []ID // all tokens that end a generation; EOS and EOT are not implied
}

// NoSpecials is a Specials with every role unfilled.
func NoSpecials() Specials {
	return Specials{
		BOS: None, EOS: None, EOT: None, Unknown: None, Pad: None,
		FIMPrefix: None, FIMSuffix: None, FIMMiddle: None,
		FIMPad: None, FIMRepo: None, FIMFile: None,
	}
}

// Vocab is a vocabulary: the bytes and kind of every token, and indexes of
// those that stand for text.
type Vocab struct {
	blob   []byte   // the bytes of all tokens, by ID
	starts []uint32 // Len()+1 offsets in blob
	kinds  []Kind

	specials    Specials
	eog         Mask
	controls    []ID
	userDefined []ID

	maxLen int // bytes of the longest text token
	lookup lazyLookup
	index  lazyIndex
	masks  maskCache
}

// New makes a vocabulary of tokens, whose IDs are their places in the slice.
// The bytes are copied. It is an error if kinds has another length or specials
// name tokens that do not exist.
func New(tokens [][]byte, kinds []Kind, specials Specials) (*Vocab, error) {
	total := 0
	for _, t := range tokens {
		total += len(t)
	}
	if err := checkTotal(total); err != nil {
		return nil, err
	}
	blob, ends := make([]byte, 0, total), make([]uint32, 0, len(tokens))
	for _, t := range tokens {
		blob = append(blob, t...)
		ends = append(ends, uint32(len(blob)))
	}
	return NewFrom(blob, ends, kinds, specials)
}

// NewFrom is New for tokens whose bytes stand one after the other in blob, that
// of token i up to the byte offset ends[i]. It keeps blob, which must not be
// modified any more. It is also an error if ends go back or beyond blob.
func NewFrom(blob []byte, ends []uint32, kinds []Kind, specials Specials) (*Vocab, error) {
	if len(ends) != len(kinds) {
		return nil, fmt.Errorf("vocab: %d tokens but %d kinds", len(ends), len(kinds))
	}
	if len(ends) >= math.MaxInt32 {
		return nil, fmt.Errorf("vocab: %d tokens are more than IDs can number", len(ends))
	}
	if err := checkTotal(len(blob)); err != nil {
		return nil, err
	}
	v := &Vocab{
		blob:     blob,
		starts:   make([]uint32, len(ends)+1),
		kinds:    slices.Clone(kinds),
		specials: specials,
		eog:      NewMask(len(ends)),
	}
	for i, end := range ends {
		if end < v.starts[i] || int64(end) > int64(len(blob)) {
			return nil, fmt.Errorf("vocab: token %d ends at byte %d of %d, but begins at %d", i, end, len(blob), v.starts[i])
		}
		v.starts[i+1] = end
	}
	if err := v.checkSpecials(); err != nil {
		return nil, err
	}
	v.specials.EOG = slices.Clone(specials.EOG)
	v.eog.SetIDs(specials.EOG)
	v.controls = v.longestFirst(Control)
	v.userDefined = v.longestFirst(UserDefined)
	for i := range v.kinds {
		if id := ID(i); v.IsText(id) {
			v.maxLen = max(v.maxLen, len(v.Bytes(id)))
		}
	}
	return v, nil
}

func checkTotal(total int) error {
	if uint64(total) > math.MaxUint32 {
		return fmt.Errorf("vocab: tokens of %d bytes together; at most %d are supported", total, uint32(math.MaxUint32))
	}
	return nil
}

func (v *Vocab) checkSpecials() error {
	s := &v.specials
	for _, role := range []struct {
		name string
		id   ID
	}{
		{"BOS", s.BOS}, {"EOS", s.EOS}, {"EOT", s.EOT}, {"unknown", s.Unknown}, {"padding", s.Pad},
		{"FIM prefix", s.FIMPrefix}, {"FIM suffix", s.FIMSuffix}, {"FIM middle", s.FIMMiddle},
		{"FIM padding", s.FIMPad}, {"FIM repository", s.FIMRepo}, {"FIM file", s.FIMFile},
	} {
		if role.id != None && !v.Valid(role.id) {
			return fmt.Errorf("vocab: the %s token is %d, but there are %d tokens", role.name, role.id, v.Len())
		}
	}
	for _, id := range s.EOG {
		if !v.Valid(id) {
			return fmt.Errorf("vocab: an end-of-generation token is %d, but there are %d tokens", id, v.Len())
		}
	}
	return nil
}

// longestFirst lists the non-empty tokens of one kind, the longest first,
// those of equal length by ID.
func (v *Vocab) longestFirst(kind Kind) []ID {
	var ids []ID
	for i, k := range v.kinds {
		if k == kind && len(v.Bytes(ID(i))) > 0 {
			ids = append(ids, ID(i))
		}
	}
	slices.SortStableFunc(ids, func(a, b ID) int {
		return cmp.Compare(len(v.Bytes(b)), len(v.Bytes(a)))
	})
	return ids
}

// Len is the number of tokens. Valid IDs are those from 0 to Len()-1.
func (v *Vocab) Len() int { return len(v.kinds) }

// Valid reports whether id names a token of this vocabulary.
func (v *Vocab) Valid(id ID) bool { return id >= 0 && int(id) < len(v.kinds) }

// Bytes gives the exact bytes that a token stands for, or the text of a token
// that stands for none. They must not be modified. It is nil if id is not
// valid.
func (v *Vocab) Bytes(id ID) []byte {
	if !v.Valid(id) {
		return nil
	}
	lo, hi := v.starts[id], v.starts[id+1]
	return v.blob[lo:hi:hi]
}

// Kind says what a token is for. It is [Undefined] if id is not valid.
func (v *Vocab) Kind(id ID) Kind {
	if !v.Valid(id) {
		return Undefined
	}
	return v.kinds[id]
}

// IsText reports whether a token stands for text: whether it is Normal,
// UserDefined or Byte and has any bytes.
func (v *Vocab) IsText(id ID) bool {
	if !v.Valid(id) || v.starts[id] == v.starts[id+1] {
		return false
	}
	switch v.kinds[id] {
	case Normal, UserDefined, Byte:
		return true
	}
	return false
}

// IsEOG reports whether a token ends a generation.
func (v *Vocab) IsEOG(id ID) bool { return v.eog.Has(id) }

// Specials gives the tokens with a role. Its slice must not be modified.
func (v *Vocab) Specials() Specials { return v.specials }

// Controls lists the control tokens that have a text, the longest text first,
// which is the order to match them in. It must not be modified.
func (v *Vocab) Controls() []ID { return v.controls }

// UserDefined lists the added tokens, the longest text first, which is the
// order to match them in. It must not be modified.
func (v *Vocab) UserDefined() []ID { return v.userDefined }

// LookupSpecial finds a control token by its text: the lowest ID, if several
// have it.
func (v *Vocab) LookupSpecial(text []byte) (ID, bool) {
	if len(text) == 0 {
		return None, false
	}
	i, _ := slices.BinarySearchFunc(v.controls, len(text), func(id ID, n int) int {
		return cmp.Compare(n, len(v.Bytes(id)))
	})
	for ; i < len(v.controls) && len(v.Bytes(v.controls[i])) == len(text); i++ {
		if bytes.Equal(v.Bytes(v.controls[i]), text) {
			return v.controls[i], true
		}
	}
	return None, false
}
