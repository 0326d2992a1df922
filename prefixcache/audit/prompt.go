package audit

import (
	"fmt"
	"time"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A Prompt is what an engine was given, as text, as tokens, or as both.
type Prompt struct {
	// Name is shown in reports; empty: the place in the list, from 1.
	Name string
	// Text is the prompt as text. It is tokenized unless IDs are given.
	Text []byte
	// IDs are the tokens that the engine had. If both are given and the tokens do
	// not spell Text, the audit speaks of the text that they spell.
	IDs []vocab.ID

	// At is the time of the request. A prompt is compared with those of earlier
	// requests; one without a time counts as earlier than those with one.
	At time.Time
	// Conversation names the prompts that are turns of one conversation, and Turn
	// is its number in it. With equal numbers the order of the list counts.
	Conversation string
	Turn         int

	// Output is what the model answered, and OutputIDs the tokens that it wrote.
	// A cache keeps them after the prompt's, but for the last one, which was never
	// fed back to the model. Without OutputIDs, Output is tokenized by itself.
	Output    []byte
	OutputIDs []vocab.ID

	// Keys separate prompts that must not share: salts, adapters, media.
	Keys prefixcache.Keys

	// Segments name parts of Text, such as the values of a template, in the order
	// of their bytes, without overlap.
	Segments []Segment
}

// A Segment is a named part of a prompt's text.
type Segment struct {
	Name       string // of the placeholder, as written: {date}
	Start, End int    // bytes
}

// Options say how prompts are read and counted. Only Tokenizer is needed.
type Options struct {
	Tokenizer *tokenizer.Tokenizer
	// Special reads control tokens spelled in texts as those tokens, as engines do
	// with what a chat template wrote.
	Special bool
	// Template puts the tokens before texts that the tokenizer's file puts before a
	// text (BOS), as engines do with completions.
	Template bool
	// BlockSizes are the sizes for which lost blocks are counted, in tokens. The
	// first is that of the report's LostBlocks. Nil: 16.
	BlockSizes []int
	// NoOutputs says that the cache keeps prompts only, as TGI's does.
	NoOutputs bool
	// Price is nil if costs do not matter.
	Price *Price
	// MaxPairs is the number of prompts up to which the report has the matrix of
	// all pairs; 0: 32. Negative: never.
	MaxPairs int
	// Separator, if there is one, is what a chunk cache looks for in the tokens
	// (LMCache's blend_special_str). SeparatorIDs are the tokens that it looks for;
	// nil: those of the separator alone.
	Separator    []byte
	SeparatorIDs []vocab.ID
	// NoSuggestions leaves out the search for what would help, which runs the audit
	// several times.
	NoSuggestions bool
	// MaxVerify bounds the bytes of prompts that each suggestion is tried on;
	// 0: 8 MiB. The first prompts are taken.
	MaxVerify int
}

// Price is what a provider asks for input tokens, in any currency.
type Price struct {
	PerMillion       float64 `json:"per_million"`        // input tokens
	PerMillionCached float64 `json:"per_million_cached"` // input tokens read from the cache
	Currency         string  `json:"currency,omitempty"`
}

func (p *Price) check() error {
	if p != nil && !(p.PerMillion >= p.PerMillionCached && p.PerMillionCached >= 0) {
		return fmt.Errorf("%w: they are %v and %v", ErrPrice, p.PerMillion, p.PerMillionCached)
	}
	return nil
}

// above is what tokens cost above the price of cached ones; nil without a price.
func (p *Price) above(tokens int) *float64 {
	if p == nil {
		return nil
	}
	c := float64(tokens) * (p.PerMillion - p.PerMillionCached) / 1e6
	return &c
}
