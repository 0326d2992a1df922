package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Cut is a prompt and what really followed it.
type Cut struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
	Truth  string `json:"truth"`
	// Dirty says that the tokens of the prompt are not the first tokens of
	// prompt and truth together.
	Dirty bool `json:"dirty"`
}

// Options say which cuts are read. The zero value takes all, as they are.
type Options struct {
	Lines       int // read that many lines; 0: all
	TruthRunes  int // leave out cuts whose truth has fewer characters
	PromptBytes int // keep that much of a prompt's end, less half a character; 0: all
}

// maxLine bounds a line of a file of cuts, in bytes.
const maxLine = 16 << 20

// LineError says which line of a file is wrong.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// record is a line of a file of cuts, or of a peer's results.
type record struct {
	ID     json.RawMessage `json:"id"`
	Prompt *string         `json:"prompt"`
	Truth  *string         `json:"truth"`
	Prefix *string         `json:"prefix"`
	Middle *string         `json:"middle"`
	Next   *string         `json:"next"`
	Suffix string          `json:"suffix"`
	Text   *string         `json:"text"`
	Bytes  []byte          `json:"bytes"`
}

// name is the record's id as text; its line where it has none.
func (r *record) name(line int) (string, error) {
	var s string
	switch {
	case len(r.ID) == 0 || string(r.ID) == "null":
		return fmt.Sprintf("line %d", line), nil
	case r.ID[0] == '{' || r.ID[0] == '[':
		return "", errors.New(`"id" is neither a text nor a number`)
	case json.Unmarshal(r.ID, &s) == nil:
		return s, nil
	}
	return string(r.ID), nil
}

// cut joins what the known forms of files call differently. The truth of a span
// taken out of a text goes on with the text behind it.
func (r *record) cut() (prompt, truth string, err error) {
	switch {
	case r.Prompt != nil && r.Truth != nil:
		return *r.Prompt, *r.Truth, nil
	case r.Prefix != nil && r.Middle != nil:
		return *r.Prefix, *r.Middle + r.Suffix, nil
	case r.Prefix != nil && r.Next != nil:
		return *r.Prefix, *r.Next, nil
	}
	return "", "", errors.New(`not a cut: give "prompt" and "truth", "prefix" and "next", or "prefix", "middle" and "suffix"`)
}

// Read takes cuts from JSON Lines, compressed by gzip or not. Cuts with an empty
// prompt or too short a truth are left out; skipped is how many. A line that is
// wrong, an id that comes twice included, is a [*LineError].
func Read(r io.Reader, t *tokenizer.Tokenizer, o Options) (cuts []Cut, skipped int, err error) {
	seen := map[string]bool{}
	err = eachRecord(r, o.Lines, func(line int, in *record) error {
		prompt, truth, err := in.cut()
		if err != nil {
			return err
		}
		id, err := in.name(line)
		if err != nil {
			return err
		}
		if seen[id] {
			return fmt.Errorf("a second cut with the id %q", id)
		}
		seen[id] = true
		if o.PromptBytes > 0 {
			prompt = tail(prompt, o.PromptBytes)
		}
		if prompt == "" || utf8.RuneCountInString(truth) < o.TruthRunes {
			skipped++
			return nil
		}
		cuts = append(cuts, Cut{ID: id, Prompt: prompt, Truth: truth, Dirty: dirty(t, prompt, truth)})
		return nil
	})
	return cuts, skipped, err
}

// Each calls f with the prompt and the truth of each cut, as they are, until f
// gives an error. That, or what is wrong with a line, is in a [*LineError].
func Each(r io.Reader, f func(prompt, truth string) error) error {
	return eachRecord(r, 0, func(_ int, in *record) error {
		prompt, truth, err := in.cut()
		if err != nil {
			return err
		}
		return f(prompt, truth)
	})
}

// ReadTexts takes the continuations that another program wrote, by the id of
// their cut: JSON Lines of "id" and "text", or "bytes" in base64.
func ReadTexts(r io.Reader) (map[string]string, error) {
	texts := map[string]string{}
	err := eachRecord(r, 0, func(line int, in *record) error {
		id, err := in.name(line)
		if err != nil {
			return err
		}
		if _, ok := texts[id]; ok {
			return fmt.Errorf("a second result for %q", id)
		}
		switch {
		case in.Text != nil:
			texts[id] = *in.Text
		case in.Bytes != nil:
			texts[id] = string(in.Bytes)
		default:
			return errors.New(`neither "text" nor "bytes" is there`)
		}
		return nil
	})
	return texts, err
}

func eachRecord(r io.Reader, lines int, f func(line int, in *record) error) error {
	br := bufio.NewReader(r)
	r = br
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			return err
		}
		r = z
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for (lines <= 0 || n < lines) && sc.Scan() {
		n++
		b := bytes.TrimSpace(sc.Bytes())
		if len(b) == 0 {
			continue
		}
		var in record
		err := wire.Check(b)
		if err == nil {
			err = json.Unmarshal(b, &in)
		}
		if err == nil {
			err = f(n, &in)
		}
		if err != nil {
			return &LineError{Line: n, Err: err}
		}
	}
	if err := sc.Err(); err != nil {
		return &LineError{Line: n + 1, Err: err}
	}
	return nil
}

// dirty compares the tokens of the prompt with those of prompt and truth.
func dirty(t *tokenizer.Tokenizer, prompt, truth string) bool {
	return !hasPrefix(t.Encode(nil, []byte(prompt+truth)), t.Encode(nil, []byte(prompt)))
}

func hasPrefix(ids, prefix []vocab.ID) bool {
	return len(ids) >= len(prefix) && slices.Equal(ids[:len(prefix)], prefix)
}

// Head is the first n characters of s, all if it has fewer, and how many they
// are.
func Head(s string, n int) (text string, runes int) {
	text, whole := head(s, n)
	if whole {
		return text, n
	}
	return text, utf8.RuneCountInString(text)
}

// head is the first n characters of s and whether there are so many.
func head(s string, n int) (string, bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, n == 0
}

// tail is the last n bytes of s, less what would be half a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
