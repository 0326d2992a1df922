package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Limits of a file. The YAML scanner and parser take time that is quadratic in
// the length of a line, in the keys of one mapping, in blank lines and in <<<,
// and they recurse for each level and each key; these keep both small.
const (
	maxFileBytes   = 1 << 20
	maxLines       = 20_000
	maxLineBytes   = 2048
	maxBlankLines  = 20 // in a row
	maxTokens      = 40_000
	maxDepth       = 24
	maxKeys        = 2000 // of one mapping
	maxKeyBytes    = 128
	maxAnchorBytes = 64
)

const (
	onlyOneDocument = "only one document fits in a file; remove the line --- or ..."
	notClosed       = "there is no comma before this, or a [ or { is not closed"
	oneLine         = "values have one line; | and > are not read"
	indented        = "the next line is indented more than this one, whose value stands here already; the keys of one mapping start in one column"
	goesOn          = "the value goes on in the next line; values have one line"
)

// checkText finds what the scanner is not to see.
func checkText(source string) *syntaxError {
	if len(source) > maxFileBytes {
		return &syntaxError{place{1, 1}, fmt.Sprintf("the file has %d bytes; at most %d are read", len(source), maxFileBytes)}
	}
	number, blank := 0, 0
	for line := range strings.Lines(source) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if blank++; strings.Trim(line, " ") != "" {
			blank = 0
		}
		start := place{number, 1}
		switch {
		case number > maxLines:
			return &syntaxError{start, fmt.Sprintf("the file has more than %d lines", maxLines)}
		case len(line) > maxLineBytes:
			return &syntaxError{start, fmt.Sprintf("the line has %d bytes; at most %d are read", len(line), maxLineBytes)}
		case blank > maxBlankLines:
			return &syntaxError{start, fmt.Sprintf("more than %d blank lines in a row", maxBlankLines)}
		case strings.Contains(line, "<<<"):
			return &syntaxError{start, "three < in a row; was a merge left unfinished?"}
		}
		column := 0
		for i, r := range line {
			column++
			at := place{number, column}
			switch {
			case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
				return &syntaxError{at, "this byte is not UTF-8"}
			case r == '\t':
				return &syntaxError{at, "a tab; use spaces"}
			case unicode.IsControl(r):
				return &syntaxError{at, "a control character"}
			}
		}
	}
	return nil
}

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// scan splits the source into tokens, up to the first mistake.
func scan(source string) (token.Tokens, *syntaxError) {
	var s scanner.Scanner
	s.Init(source)
	var tokens token.Tokens
	for {
		some, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return tokens, nil
		}
		tokens.Add(some...)
		if bad := token.Tokens(some).InvalidToken(); bad != nil {
			return nil, &syntaxError{placeOf(bad), yamlText(bad.Error)}
		}
		if err != nil {
			return nil, &syntaxError{place{1, 1}, "the file is no YAML that can be read"}
		}
	}
}

// relocate puts texts where they stand: with blanks behind one, the scanner
// takes it to begin so much further right.
func relocate(tokens token.Tokens, source string) {
	lines := slices.Collect(strings.Lines(source))
	for _, t := range tokens {
		if !isPlain(t) || t.Position.Line > len(lines) {
			continue
		}
		line := lines[t.Position.Line-1]
		offset := byteOffset(line, t.Position.Column)
		if strings.HasPrefix(line[offset:], t.Value) {
			continue
		}
		if i := strings.LastIndex(line[:min(len(line), offset+len(t.Value))], t.Value); i >= 0 {
			t.Position.Column = utf8.RuneCountInString(line[:i]) + 1
		}
	}
}

// byteOffset is where the character of a column starts, or the line's end.
func byteOffset(line string, column int) int {
	for i := range line {
		if column--; column < 1 {
			return i
		}
	}
	return len(line)
}

// rejoin mends what the scanner splits within braces, where it takes every
// colon for that of a key: http://host:8080 in a list there is one text, as a
// colon with no blank behind it ends no plain text.
func rejoin(tokens token.Tokens) token.Tokens {
	var whole token.Tokens
	depth := 0
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		for depth > 0 && i+2 < len(tokens) && isPlain(t) && tokens[i+1].Type == token.MappingValueType && isPlain(tokens[i+2]) &&
			follows(t, tokens[i+1]) && follows(tokens[i+1], tokens[i+2]) {
			value := tokens[i+2]
			t = token.String(t.Value+":"+value.Value, t.Origin+":"+value.Origin, t.Position)
			i += 2
		}
		whole.Add(t)
	}
	return whole
}

// isPlain reports whether a token is a scalar without quotes.
func isPlain(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.BoolType, token.NullType, token.InfinityType, token.NanType,
		token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType:
		return true
	}
	return false
}

// follows reports whether b stands right behind a.
func follows(a, b *token.Token) bool {
	return a.Position.Line == b.Position.Line && a.Position.Column+utf8.RuneCountInString(a.Value) == b.Position.Column
}

// nesting follows how deep the parser would recurse.
type nesting struct {
	flow    int
	pair    bool  // within braces or brackets a key came since the last comma
	columns []int // of the open block mappings and lists
	keys    []int // of each of them
}

// block enters a key or a list entry in a column.
func (n *nesting) block(column int, key bool) {
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] > column {
		n.columns, n.keys = n.columns[:len(n.columns)-1], n.keys[:len(n.keys)-1]
	}
	if len(n.columns) == 0 || n.columns[len(n.columns)-1] < column {
		n.columns, n.keys = append(n.columns, column), append(n.keys, 0)
	}
	if key {
		n.keys[len(n.keys)-1]++
	}
}

func (n *nesting) fault() string {
	switch {
	case n.flow+len(n.columns) > maxDepth:
		return fmt.Sprintf("nested more than %d levels deep", maxDepth)
	case len(n.keys) > 0 && n.keys[len(n.keys)-1] > maxKeys:
		return fmt.Sprintf("more than %d keys in one mapping", maxKeys)
	}
	return ""
}

// checkTokens finds what the parser is not to see: what is too much of it, and
// the parts of YAML that a configuration has no use for.
func checkTokens(tokens token.Tokens) *syntaxError {
	var depth nesting
	content := false // a token that is no comment came
	for i, t := range tokens {
		fault := ""
		isKey := i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType
		switch {
		case i >= maxTokens:
			fault = fmt.Sprintf("the file has too many parts; at most %d words and signs are read", maxTokens)
		case t.Type == token.MappingStartType, t.Type == token.SequenceStartType:
			depth.flow++
			depth.pair = false
		case t.Type == token.MappingEndType, t.Type == token.SequenceEndType:
			depth.flow--
			depth.pair = false
		case t.Type == token.CollectEntryType:
			depth.pair = false
		case t.Type == token.SequenceEntryType && depth.flow > 0:
			fault = "a list within [ ] or { } has commas, no dashes"
		case t.Type == token.SequenceEntryType:
			depth.block(t.Position.Column, false)
		case spansLines(t):
			fault = goesOn
			if isKey {
				fault = indented
			}
			if i > 0 && isPlain(t) {
				t = tokens[i-1] // the scanner's place of t may be its end
			}
		case isKey:
			if len(t.Value) > maxKeyBytes {
				fault = fmt.Sprintf("the key has more than %d bytes", maxKeyBytes)
			}
			if depth.flow <= 0 {
				depth.block(t.Position.Column, true)
			} else if depth.pair && fault == "" {
				fault = notClosed
			}
			depth.pair = true
		default:
			fault = unread(tokens, i, content)
		}
		if fault == "" {
			fault = depth.fault()
		}
		if fault != "" {
			return &syntaxError{placeOf(t), fault}
		}
		content = content || t.Type != token.CommentType
	}
	return nil
}

// spansLines reports whether a scalar has several lines.
func spansLines(t *token.Token) bool {
	return (isPlain(t) || t.Indicator == token.QuotedScalarIndicator) && strings.Contains(strings.Trim(t.Origin, " \n"), "\n")
}

// unread says why a token is not read, "" if it is.
func unread(tokens token.Tokens, i int, content bool) string {
	switch t := tokens[i]; t.Type {
	case token.TagType:
		return "tags (!) are not read; put text that begins with ! in quotes"
	case token.LiteralType, token.FoldedType:
		return oneLine
	case token.DirectiveType:
		return "directives (%) are not read"
	case token.MappingKeyType:
		return "keys with ? are not read; write key: value"
	case token.DocumentEndType:
		return onlyOneDocument
	case token.DocumentHeaderType:
		if content {
			return onlyOneDocument
		}
	case token.AnchorType, token.AliasType:
		if i+1 == len(tokens) || tokens[i+1].Type != token.StringType || len(tokens[i+1].Value) > maxAnchorBytes {
			return fmt.Sprintf("the name of an anchor or alias is a word of at most %d letters", maxAnchorBytes)
		}
		if t.Type == token.AnchorType && i+2 < len(tokens) && tokens[i+2].Type == token.AnchorType {
			return "two anchors for one value"
		}
	}
	return ""
}
