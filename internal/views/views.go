// Package views has the JSON forms of tokens and of reports about a prompt's end,
// as the command and the WebAssembly module print them.
package views

import (
	"bytes"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Exact is text in a JSON result: "text" if it is valid UTF-8, else "bytes" in
// base64.
type Exact struct {
	Text  *string `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"`
}

// NewExact returns the form of b.
func NewExact(b []byte) Exact {
	if !utf8.Valid(b) {
		return Exact{Bytes: b}
	}
	s := string(b)
	return Exact{Text: &s}
}

// Token is a token in a JSON result; Start and End are bytes of the text.
type Token struct {
	ID vocab.ID `json:"id"`
	Exact
	Start int `json:"start"`
	End   int `json:"end"`
}

// Tokens describes ids, the tokens of text, with the places where they end.
func Tokens(t *tokenizer.Tokenizer, text []byte, ids []vocab.ID, ends []int) []Token {
	views := make([]Token, 0, len(ids))
	before := 0
	for i, id := range ids {
		b := t.Vocab().Bytes(id)
		// Bytes that no token stands for may lie before it. Where the text was
		// rewritten, it stands for all since the token before.
		start := before
		if at := ends[i] - len(b); at > before && bytes.Equal(text[at:ends[i]], b) {
			start = at
		}
		views = append(views, Token{ID: id, Exact: NewExact(b), Start: start, End: ends[i]})
		before = ends[i]
	}
	return views
}

// Boundary is the form of a [boundary.Report].
type Boundary struct {
	Bytes        int     `json:"bytes"`
	Tokens       []Token `json:"tokens"`
	StableTokens int     `json:"stable_tokens"`
	StableBytes  int     `json:"stable_bytes"`
	Pending      Exact   `json:"pending"`
	Covers       []Cover `json:"covers"`
	CoversTotal  int     `json:"covers_total"`
	AtLeast      bool    `json:"covers_at_least,omitempty"` // there may be more than CoversTotal
	Reason       string  `json:"reason"`
}

// Cover is a token path over the pending bytes.
type Cover struct {
	IDs []vocab.ID `json:"ids"`
	Exact
}

// Analyze reports on the end of a prompt: with special, text that spells a control
// token counts as that token. It lists at most covers token paths.
func Analyze(t *tokenizer.Tokenizer, text []byte, special bool, covers int) Boundary {
	analyze := boundary.Analyze
	if special {
		analyze = boundary.AnalyzeSpecial
	}
	r := analyze(t, text)
	ids, ends := t.EncodeEnds(nil, nil, text, special)
	list, _ := r.Covers(covers)
	total, exact := r.Count()
	views := make([]Cover, 0, len(list))
	for _, c := range list {
		views = append(views, Cover{IDs: c.IDs, Exact: NewExact(c.Text)})
	}
	return Boundary{
		Bytes:        len(text),
		Tokens:       Tokens(t, text, ids, ends),
		StableTokens: r.Stable,
		StableBytes:  r.StableBytes,
		Pending:      NewExact(r.Pending),
		Covers:       views,
		CoversTotal:  total,
		AtLeast:      !exact,
		Reason:       r.Reason,
	}
}
