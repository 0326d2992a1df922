// Package tiktoken reads the rank files of OpenAI's tiktoken and knows the
// encodings that OpenAI published: pattern, special tokens and the hash of the
// rank file.
package tiktoken

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/unfray/unfray/tokenizer/internal/textindex"
)

// Limits of what is read. o200k_base, one of the largest, has 3.6 MB and
// 199,998 tokens.
const (
	MaxFileBytes  = 128 << 20
	MaxTokens     = 4 << 20 // one more than the highest rank
	MaxTokenBytes = 64 << 10
)

// Causes of errors, for errors.Is.
var (
	// ErrFormat: a line is not a token in base64, a space and its rank.
	ErrFormat = errors.New("not a line of a rank file")
	// ErrInvalid: tokens contradict each other or are missing.
	ErrInvalid = errors.New("not a valid rank file")
	// ErrLimit: the file is larger than this package reads.
	ErrLimit = errors.New("too large")
)

// Error is an error with its place in the file.
type Error struct {
	Line   int // from 1
	Offset int // of the line, bytes from the start of the file
	Cause  error
	Detail string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d (byte %d): %s: %s", e.Line, e.Offset, e.Cause, e.Detail)
}

func (e *Error) Unwrap() error { return e.Cause }

// Ranks are the tokens of a rank file.
type Ranks struct {
	text  []byte
	spans []span // by rank; of length 0 where there is no token
	count int
	hash  [sha256.Size]byte
}

type span struct{ off, len uint32 }

// Len is one more than the highest rank.
func (r *Ranks) Len() int { return len(r.spans) }

// Count is the number of tokens. It is less than Len if ranks are left out, as
// p50k_base leaves out that of <|endoftext|>.
func (r *Ranks) Count() int { return r.count }

// Token gives the bytes of the token of this rank, which is its ID, or nil for
// a rank that is left out. They must not be modified.
func (r *Ranks) Token(rank int) []byte {
	s := r.spans[rank]
	if s.len == 0 {
		return nil
	}
	return r.text[s.off : s.off+s.len : s.off+s.len]
}

// Hash is the SHA-256 of the file.
func (r *Ranks) Hash() [sha256.Size]byte { return r.hash }

// Open reads the rank file at path.
func Open(path string) (*Ranks, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ranks, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ranks, nil
}

// Read reads a rank file to its end.
func Read(r io.Reader) (*Ranks, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// Parse reads a rank file from memory. The Ranks keep no part of data.
func Parse(data []byte) (*Ranks, error) {
	if len(data) > MaxFileBytes {
		return nil, &Error{0, MaxFileBytes, ErrLimit, fmt.Sprintf("the file has more than the %d bytes that are read", MaxFileBytes)}
	}
	r := &Ranks{hash: sha256.Sum256(data), text: make([]byte, 0, len(data)/4*3)}
	line := 0
	for at := 0; at < len(data); {
		line++
		start, end := at, at
		for end < len(data) && data[end] != '\n' {
			end++
		}
		at = end + 1
		if end > start && data[end-1] == '\r' {
			end--
		}
		if start == end { // tiktoken skips empty lines
			continue
		}
		if err := r.addLine(data[start:end]); err != nil {
			err.Line, err.Offset = line, start
			return nil, err
		}
	}
	if err := r.check(line, len(data)); err != nil {
		return nil, err
	}
	return r, nil
}

// addLine takes a line: a token in base64, a space, its rank. The error lacks
// its place.
func (r *Ranks) addLine(line []byte) *Error {
	fail := func(cause error, format string, args ...any) *Error {
		return &Error{Cause: cause, Detail: fmt.Sprintf(format, args...)}
	}
	space := len(line) - 1
	rank, scale := 0, 1
	for ; space >= 0 && line[space] != ' '; space-- {
		d := line[space] - '0'
		if d > 9 {
			return fail(ErrFormat, "the rank is not a whole number")
		}
		if rank += int(d) * scale; rank >= MaxTokens || scale > MaxTokens {
			return fail(ErrLimit, "a rank above %d", MaxTokens-1)
		}
		scale *= 10
	}
	if space < 0 || space == len(line)-1 {
		return fail(ErrFormat, "there is no space before the rank")
	}
	digits := line[:space]
	if len(digits) > MaxTokenBytes/3*4 {
		return fail(ErrLimit, "a token of more than %d bytes", MaxTokenBytes)
	}
	start := len(r.text)
	text, err := base64.StdEncoding.Strict().AppendDecode(r.text, digits)
	if err != nil {
		return fail(ErrFormat, "the token is not base64: %v", err)
	}
	if len(text) == start {
		return fail(ErrInvalid, "a token without bytes")
	}
	r.text = text
	for rank >= len(r.spans) {
		r.spans = append(r.spans, span{})
	}
	if r.spans[rank].len != 0 {
		return fail(ErrInvalid, "the rank %d was there before", rank)
	}
	r.spans[rank] = span{uint32(start), uint32(len(text) - start)}
	r.count++
	return nil
}

// check refuses files in which a token has two ranks or a byte has none:
// tiktoken finds no tokens for a text with that byte.
func (r *Ranks) check(line, size int) error {
	index := textindex.New(r.count, r.Token)
	var single [256]bool
	for rank, s := range r.spans {
		if s.len == 0 {
			continue
		}
		if first, dup := index.Add(rank); dup {
			token := r.Token(rank)
			return &Error{line, size, ErrInvalid, fmt.Sprintf("the ranks %d and %d are both %q", first, rank, token[:min(len(token), 80)])}
		}
		if s.len == 1 {
			single[r.text[s.off]] = true
		}
	}
	for b, ok := range single {
		if !ok {
			return &Error{line, size, ErrInvalid, fmt.Sprintf("no token stands for the byte 0x%02x; the file is cut short or not tiktoken's", b)}
		}
	}
	return nil
}
