package hfjson

import "github.com/unfray/unfray/tokenizer/internal/jsonscan"

// Causes of errors, for errors.Is.
var (
	ErrSyntax      = jsonscan.ErrSyntax      // the file is not JSON
	ErrInvalid     = jsonscan.ErrInvalid     // the file is JSON, but contradicts itself or lacks something
	ErrUnsupported = jsonscan.ErrUnsupported // the file asks for what this package does not know
	ErrLimit       = jsonscan.ErrLimit       // the file is larger or deeper than this package reads
)

// Error is an error with its place in the file.
type Error = jsonscan.Error

// Place is where in a file something stands. Its methods make errors for what
// the caller cannot honour.
type Place = jsonscan.Place

// Limits of what is read, besides those of package jsonscan. They are far
// above the files in use: Gemma 3, one of the largest, has 262,144 tokens and
// 514,906 merges.
const (
	MaxFileBytes = jsonscan.MaxFileBytes
	MaxTokens    = jsonscan.MaxID + 1 // of the vocabulary, and one more than the highest ID
	MaxMerges    = 8 << 20
	maxNodes     = 1 << 16 // values of one normalizer, pre-tokenizer, post-processor or decoder
	maxSteps     = 256     // steps of one of those
	maxCount     = 1 << 20 // lengths and other small numbers in them
)
