package audit

import (
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Report is what an audit finds. Counts of lost tokens are sums over requests.
type Report struct {
	Requests []Request `json:"requests"`
	// FirstDivergence is that of the request that loses most; nil if no request
	// loses anything.
	FirstDivergence *Divergence `json:"first_divergence"`

	PromptTokens int `json:"prompt_tokens"`
	ReusedTokens int `json:"reused_tokens"` // an ideal cache without blocks had them
	// LostTokens are those that the cache held and that are computed again: tokens
	// after a divergence whose content stands in the later prompt too. LostEqualText are those of them
	// whose text is byte for byte the same there.
	LostTokens    int `json:"lost_tokens"`
	LostEqualText int `json:"lost_equal_text"`
	// LostBlocks are those of the first block size, and Blocks has all sizes.
	LostBlocks int         `json:"lost_blocks"`
	Blocks     []BlockLoss `json:"blocks"`
	// Cost is what the lost tokens cost above the price of cached ones; nil without
	// a price.
	Cost     *float64 `json:"cost,omitempty"`
	Currency string   `json:"currency,omitempty"`

	Causes      []CauseSummary `json:"causes"`      // the costliest first
	Suggestions []Suggestion   `json:"suggestions"` // what helps most first
	// Pairs holds what each prompt (row) shares with each (column), in tokens; nil
	// where there are too many prompts.
	Pairs     [][]int         `json:"pairs,omitempty"`
	Separator *SeparatorCheck `json:"separator,omitempty"`
	// Notes are what whoever read the prompts knows of them that the audit cannot
	// see, such as answers of which only a part was logged.
	Notes []string `json:"notes,omitempty"`

	t *tokenizer.Tokenizer // for printing
}

// Request is what became of one prompt.
type Request struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Bytes  int    `json:"bytes"`
	// Against is the index of the request that this one was compared with, -1 for
	// none, and AgainstName its name.
	Against     int    `json:"against"`
	AgainstName string `json:"against_name,omitempty"`
	// ReusedTokens is the longest run of leading tokens that any earlier request
	// had.
	ReusedTokens int `json:"reused_tokens"`
	// FirstDivergence is nil if the tokens go on where those of the other end, or
	// end there.
	FirstDivergence *Divergence `json:"first_divergence,omitempty"`
	LostTokens      int         `json:"lost_tokens"`
	LostEqualText   int         `json:"lost_equal_text"`
	LostBlocks      int         `json:"lost_blocks"`
	Blocks          []BlockLoss `json:"blocks,omitempty"`
	Cost            *float64    `json:"cost,omitempty"`
}

// BlockLoss is what is lost where a cache keeps full blocks only.
type BlockLoss struct {
	Size   int `json:"size"`   // tokens
	Blocks int `json:"blocks"` // lost
	Tokens int `json:"tokens"` // Blocks times Size
}

// Divergence is the first place where a prompt's tokens differ from those that
// the cache held.
type Divergence struct {
	Token int `json:"token"` // index of the first differing token
	// Byte is the offset of the first differing byte of the texts. If they do not
	// differ up to the end of one of them, it is where that ends.
	Byte int `json:"byte"`
	// TokenByte and AgainstByte are the offsets at which the first differing token
	// begins in this prompt and in the other one.
	TokenByte   int `json:"token_byte"`
	AgainstByte int `json:"against_byte"`

	Cause Cause `json:"cause"`
	// Why says it in a sentence, with the bytes.
	Why string `json:"why"`
	// Placeholder is the template's placeholder at Byte, if there is one.
	Placeholder string `json:"placeholder,omitempty"`

	// Before and After are the bytes that differ: those that the cache held and
	// those of this prompt. They are cut where they are long.
	Before string `json:"before"`
	After  string `json:"after"`
	// Kept are the last tokens before the divergence, Old those that the cache held
	// after it and New those of this prompt, a few of each.
	Kept []Token `json:"kept"`
	Old  []Token `json:"old"`
	New  []Token `json:"new"`
}

// Token is a token with its text, which is quoted if it is no UTF-8.
type Token struct {
	ID   vocab.ID `json:"id"`
	Text string   `json:"text"`
}

// CauseSummary counts the divergences of one cause that lose tokens.
type CauseSummary struct {
	Cause         Cause  `json:"cause"`
	Requests      int    `json:"requests"`
	LostTokens    int    `json:"lost_tokens"`
	LostEqualText int    `json:"lost_equal_text"`
	LostBlocks    int    `json:"lost_blocks"` // of the first block size
	Example       int    `json:"example"`     // index of the request that loses most
	Why           string `json:"why"`         // that request's
}

// Suggestion is a change that was tried.
type Suggestion struct {
	Change Change `json:"change"`
	Text   string `json:"text"` // what to do, in a sentence
	// Price is what the change itself costs, in a sentence; empty: nothing.
	Price string `json:"price,omitempty"`
	// Requests is how many prompts were changed, of Tried that were looked at.
	Requests int     `json:"requests"`
	Tried    int     `json:"tried"`
	Before   Figures `json:"before"` // of the prompts that were looked at
	After    Figures `json:"after"`
}

// Figures are what an ideal cache makes of prompts.
type Figures struct {
	PromptTokens   int `json:"prompt_tokens"`
	ComputedTokens int `json:"computed_tokens"` // not found in the cache
	// ComputedInBlocks is the same where only full blocks of the first size are
	// found.
	ComputedInBlocks int      `json:"computed_in_blocks"`
	Cost             *float64 `json:"cost,omitempty"` // of all prompt tokens
}

// SeparatorCheck says whether a chunk cache finds its separator in the tokens.
type SeparatorCheck struct {
	Text     string  `json:"text"`
	IDs      []Token `json:"ids"`       // what the cache looks for
	InText   int     `json:"in_text"`   // places in the prompts' texts
	InTokens int     `json:"in_tokens"` // of them, where the tokens are there
	Why      string  `json:"why,omitempty"`
	// Instead is a separator that is found in all places, tried in the prompts;
	// empty: none of those that were tried.
	Instead string `json:"instead,omitempty"`
}
