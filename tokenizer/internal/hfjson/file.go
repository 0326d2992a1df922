package hfjson

import (
	"iter"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
	"github.com/unfray/unfray/tokenizer/internal/textindex"
)

// File is the content of a tokenizer.json. Texts are as the file spells them:
// byte-level vocabularies in the alphabet of GPT-2 ("Ġthe"), SentencePiece
// ones with U+2581 for a space.
type File struct {
	// Truncation and Padding tell that the file asks for them. They concern
	// batches for training and are not represented further.
	Truncation, Padding bool

	AddedTokens []AddedToken // in the file's order, each content once

	// Sequences are flattened: these are the steps in the order they apply.
	// None is no step.
	Normalizer    []NormalizerStep
	PreTokenizer  []PreTokenizerStep
	PostProcessor []PostProcessorStep
	Decoder       []DecoderStep

	Model Model
}

// AddedToken is a token that is cut out of the text before the model sees it.
type AddedToken struct {
	Place
	ID         int    // as the file says; see File.AddedIDs
	Content    string // never empty
	SingleWord bool   // matches only where no word character adjoins
	LStrip     bool   // takes the white space to its left along
	RStrip     bool   // takes the white space to its right along
	Normalized bool   // is looked for in the normalized text
	Special    bool   // may be left out when decoding
}

// NormalizerStep is one normalizer. Which fields mean something depends on
// Type.
type NormalizerStep struct {
	Place
	// Type is NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend,
	// Replace, Precompiled, BertNormalizer, Nmt or ByteLevel.
	Type string

	Pattern string // Replace
	Regex   bool   // Replace: Pattern is a regular expression
	Content string // Replace: what comes in its place; Prepend: what is put in front

	Left, Right bool   // Strip
	Charsmap    []byte // Precompiled: the table, decoded from base64

	// BertNormalizer. StripAccents is already what applies: where the file
	// says null, accents are stripped iff Lowercase.
	CleanText, ChineseChars, StripAccents, Lowercase bool
}

// PreTokenizerStep is one pre-tokenizer. Which fields mean something depends
// on Type.
type PreTokenizerStep struct {
	Place
	// Type is ByteLevel, Split, Digits, Metaspace, Whitespace,
	// WhitespaceSplit, Punctuation, BertPreTokenizer, UnicodeScripts,
	// CharDelimiterSplit or FixedLength.
	Type string

	Pattern  string // Split
	Regex    bool   // Split: Pattern is a regular expression
	Behavior string // Split, Punctuation: Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous
	Invert   bool   // Split

	ByteLevel ByteLevel // ByteLevel
	Metaspace Metaspace // Metaspace

	Individual bool // Digits: each one alone
	Delimiter  rune // CharDelimiterSplit
	Length     int  // FixedLength: code points, at least 1
}

// ByteLevel holds the settings that the pre-tokenizer, the post-processor and
// the decoder of this name share. The post-processor only trims offsets, the
// decoder looks at none of them.
type ByteLevel struct {
	AddPrefixSpace bool // a space is put before a segment that does not begin with one
	TrimOffsets    bool
	UseRegex       bool // the text is split by GPT-2's pattern
}

// Metaspace holds the settings that the pre-tokenizer and the decoder of this
// name share.
type Metaspace struct {
	Replacement   rune   // stands for a space, mostly U+2581
	PrependScheme string // "first", "never" or "always"; the field add_prefix_space of old files is resolved into it
	Split         bool   // pieces begin at each Replacement
}

// PostProcessorStep is one post-processor. Which fields mean something depends
// on Type.
type PostProcessorStep struct {
	Place
	Type string // TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel

	// TemplateProcessing, and what the other two amount to: BertProcessing is
	// CLS A SEP and CLS A SEP B SEP, RobertaProcessing has SEP twice between
	// the two.
	Single, Pair []TemplatePiece

	CLS, SEP  TokenRef  // BertProcessing, RobertaProcessing
	ByteLevel ByteLevel // ByteLevel, RobertaProcessing (without UseRegex)
}

// TokenRef names a token by content and ID.
type TokenRef struct {
	Content string
	ID      int
}

// TemplatePiece is one part of a template: a text that was encoded, or special
// tokens.
type TemplatePiece struct {
	Sequence string // "A" or "B", or "" for special tokens
	Special  string // name of the special tokens
	IDs      []int  // their IDs
	TypeID   int
}

// DecoderStep is one decoder. Which fields mean something depends on Type.
type DecoderStep struct {
	Place
	// Type is ByteLevel, Metaspace, WordPiece, Replace, Strip, Fuse,
	// ByteFallback, BPEDecoder or CTC.
	Type string

	Pattern string // Replace
	Regex   bool   // Replace: Pattern is a regular expression
	Content string // Replace: what comes in its place; Strip: the one character

	Start, Stop int // Strip: how many code points at most

	Prefix  string // WordPiece
	Suffix  string // BPEDecoder
	Cleanup bool   // WordPiece, CTC

	PadToken, WordDelimiter string // CTC

	ByteLevel ByteLevel // ByteLevel
	Metaspace Metaspace // Metaspace
}

// Model is the model of a tokenizer.json with its vocabulary.
type Model struct {
	Place
	Type string // BPE, Unigram, WordPiece or WordLevel; inferred for files that do not say

	Vocab  Vocab
	Merges Merges    // BPE
	Scores []float64 // Unigram: by ID, as serde_json reads them

	// UnkToken is empty if there is none. UnkID is its ID or that of the
	// field unk_id; it is -1 if there is none or the vocabulary lacks the
	// token.
	UnkToken string
	UnkID    int

	ByteFallback bool // BPE, Unigram
	FuseUnk      bool // BPE; Unigram models always do
	IgnoreMerges bool // BPE

	ContinuingSubwordPrefix string  // BPE, WordPiece
	EndOfWordSuffix         string  // BPE
	MaxInputCharsPerWord    int     // WordPiece: code points
	Dropout                 float64 // BPE: probability that a merge is left out
}

// Vocab is a vocabulary by ID. It may have holes. The zero value is empty.
type Vocab struct {
	text  []byte
	spans []jsonscan.Span // by ID; off is noToken for a hole
	count int
	index textindex.Index
}

// Len is one more than the highest ID.
func (v *Vocab) Len() int { return len(v.spans) }

// Count is the number of tokens.
func (v *Vocab) Count() int { return v.count }

// Token gives the text of a token, or nil and false for an ID that has none.
// The text must not be modified.
func (v *Vocab) Token(id int) ([]byte, bool) {
	if id < 0 || id >= len(v.spans) || v.spans[id].Off == noToken {
		return nil, false
	}
	return v.spans[id].Of(v.text), true
}

// Lookup finds the ID of a token by its text.
func (v *Vocab) Lookup(token []byte) (id int, ok bool) { return v.index.Lookup(token) }

// Merges is a list of merges, the best rank first. The zero value is empty.
type Merges struct {
	text  []byte
	spans []jsonscan.Span // left and right in turn
}

// Len is the number of merges.
func (m *Merges) Len() int { return len(m.spans) / 2 }

// At gives the two tokens of the merge of this rank. They must not be
// modified. Nothing says that the vocabulary has them or what they make.
func (m *Merges) At(rank int) (left, right []byte) {
	return m.spans[2*rank].Of(m.text), m.spans[2*rank+1].Of(m.text)
}

// All yields the two tokens of each merge in the order of ranks. A pair may
// come twice; the reference then goes by the later rank.
func (m *Merges) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(left, right []byte) bool) {
		for i := 0; i+1 < len(m.spans); i += 2 {
			if !yield(m.spans[i].Of(m.text), m.spans[i+1].Of(m.text)) {
				return
			}
		}
	}
}

// noToken marks the jsonscan.Span of an ID without a token. No offset reaches it:
// MaxFileBytes is less.
const noToken = 1<<32 - 1
