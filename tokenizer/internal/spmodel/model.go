// Package spmodel reads SentencePiece models (tokenizer.model), which are one
// protocol buffer message: ModelProto of sentencepiece_model.proto.
//
//   - Only what decides about encoding and decoding is kept; other fields are
//     skipped, as protocol buffers ask for.
//   - A model that the C++ library would not load is not read either.
//   - Damaged or hostile files give an error with the byte offset. Memory is
//     at most a few times the file.
package spmodel

// ModelType is the algorithm of a model.
type ModelType int

// The model types, with the numbers of the file format.
const (
	Unigram ModelType = 1
	BPE     ModelType = 2
	Word    ModelType = 3
	Char    ModelType = 4
)

func (t ModelType) String() string {
	switch t {
	case Unigram:
		return "unigram"
	case BPE:
		return "bpe"
	case Word:
		return "word"
	case Char:
		return "char"
	}
	return "unknown"
}

// PieceType is what a piece is there for.
type PieceType int8

// The piece types, with the numbers of the file format.
const (
	Normal      PieceType = 1
	Unknown     PieceType = 2
	Control     PieceType = 3
	UserDefined PieceType = 4
	Unused      PieceType = 5
	Byte        PieceType = 6 // spelled <0x00> to <0xFF>
)

// Model is the content of a model file. Byte slices are part of the file's
// bytes and must not be modified.
type Model struct {
	Pieces       []Piece // by ID
	Trainer      Trainer
	Normalizer   Normalizer
	Denormalizer Normalizer // its flags mean nothing
	SelfTest     []Sample   // what the trainer recorded, mostly nothing

	// IDs of the pieces that the trainer's names stand for. UnkID is that of
	// the one Unknown piece; the others are -1 unless the piece is a Control.
	UnkID, BOSID, EOSID, PadID int
}

// Piece is one token.
type Piece struct {
	Text  []byte // UTF-8, never empty; the trainer writes U+2581 for spaces, but not in UserDefined pieces
	Score float32
	Type  PieceType
}

// Trainer holds the trainer's settings that matter to encoding and decoding.
type Trainer struct {
	ModelType          ModelType
	ByteFallback       bool
	WhitespaceAsSuffix bool     // treat_whitespace_as_suffix: a space belongs to the end of a piece, and the dummy prefix becomes a suffix
	UserDefined        []string // user_defined_symbols
	Control            []string // control_symbols
	UnkSurface         string   // what decoding writes for the Unknown piece

	UnkPiece, BOSPiece, EOSPiece, PadPiece string
}

// Normalizer is how text is changed before encoding or, as a denormalizer,
// after decoding.
type Normalizer struct {
	Name                   string // such as "nmt_nfkc" or "identity"
	Charsmap               []byte // precompiled_charsmap: a Darts trie and its replacements; empty for none
	AddDummyPrefix         bool   // a space is put before the text
	RemoveExtraWhitespaces bool   // spaces at both ends go, runs become one
	EscapeWhitespaces      bool   // spaces become U+2581
	RuleTSV                string // the rules that Charsmap was made of, if they are there
}

// Sample is an input and the pieces expected for it, joined by spaces.
type Sample struct{ Input, Expected string }
