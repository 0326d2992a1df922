// Package tekken reads tekken.json, the files of Mistral's tokenizers since
// Mistral NeMo: a byte-level vocabulary in the order of ranks. Meanings are
// those of Mistral's library mistral-common.
package tekken

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
	"github.com/unfray/unfray/tokenizer/internal/textindex"
)

// Causes of errors, for errors.Is.
var (
	ErrSyntax      = jsonscan.ErrSyntax      // the file is not JSON
	ErrInvalid     = jsonscan.ErrInvalid     // the file is JSON, but contradicts itself or lacks something
	ErrUnsupported = jsonscan.ErrUnsupported // the file asks for what this package does not know
	ErrLimit       = jsonscan.ErrLimit       // the file is larger than this package reads
)

// File is the content of a tekken.json.
type File struct {
	Pattern string // the regular expression that cuts text into pretokens
	Version string // such as "v3"

	// Special holds the special tokens by ID. The token of rank r has the ID
	// len(Special) + r.
	Special []SpecialToken

	text  []byte
	spans []span // by rank
}

// SpecialToken is a token that no text gives unless it is asked for.
type SpecialToken struct {
	Text    string
	Control bool // is_control: not part of the text when decoding
}

type span struct{ off, len uint32 }

// Len is the number of ranks that are in use. Files hold more: the rest is cut
// off where the vocabulary has default_vocab_size tokens.
func (f *File) Len() int { return len(f.spans) }

// Token gives the bytes of the token of this rank. They must not be modified.
func (f *File) Token(rank int) []byte {
	s := f.spans[rank]
	return f.text[s.off : s.off+s.len : s.off+s.len]
}

// Open reads the tekken.json at path.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	file, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Read reads a tekken.json to its end.
func Read(r io.Reader) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(r, jsonscan.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// config is the section of the same name.
type config struct {
	pattern, version   string
	vocabSize, special int
}

// Parse reads a tekken.json from memory. Strings are decoded in data, which
// must not be used any more; the File keeps no part of it.
func Parse(data []byte) (*File, error) {
	s, err := jsonscan.New(data)
	if err != nil {
		return nil, err
	}
	f := &File{}
	c := config{vocabSize: -1, special: -1}
	listed := false
	err = s.Object(func(name []byte, _ int) error {
		switch string(name) {
		case "config":
			return c.read(s)
		case "vocab":
			return f.readVocab(s)
		case "special_tokens":
			if s.Null() {
				return nil
			}
			listed = true
			return f.readSpecial(s)
		}
		// type, image, audio, model settings: nothing about text.
		return s.Skip()
	})
	if err == nil {
		err = s.End()
	}
	if err == nil {
		err = f.finish(&c, listed, len(data))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (c *config) read(s *jsonscan.Scanner) error {
	return s.Object(func(name []byte, _ int) error {
		var err error
		var text jsonscan.Span
		switch string(name) {
		case "pattern":
			text, err = s.Text()
			c.pattern = string(text.Of(s.Data()))
		case "version":
			text, err = s.Text()
			c.version = string(text.Of(s.Data()))
		case "default_vocab_size":
			c.vocabSize, err = s.ID()
		case "default_num_special_tokens":
			c.special, err = s.ID()
		case "num_vocab_tokens": // how many the file holds
			_, err = s.ID()
		default:
			if s.Null() {
				return nil
			}
			return jsonscan.Fail(ErrUnsupported, s.Pos(), "unknown field")
		}
		return err
	})
}

// readVocab takes [{"rank": 0, "token_bytes": "AA==", "token_str": "\u0000"},
// …], in the order of ranks.
func (f *File) readVocab(s *jsonscan.Scanner) error {
	return s.Array(func(i int) error {
		if i > jsonscan.MaxID {
			return jsonscan.Fail(ErrLimit, s.Pos(), "more than %d tokens", jsonscan.MaxID+1)
		}
		s.Next()
		at, rank, start := s.Pos(), -1, len(f.text)
		err := s.Object(func(name []byte, _ int) (err error) {
			switch string(name) {
			case "rank":
				rank, err = s.ID()
			case "token_bytes":
				var digits jsonscan.Span
				if digits, err = s.Token(); err != nil {
					return err
				}
				f.text, err = base64.StdEncoding.AppendDecode(f.text, digits.Of(s.Data()))
				if err != nil {
					return jsonscan.Fail(ErrInvalid, int(digits.Off)-1, "not base64: %v", err)
				}
			case "token_str":
				err = s.Skip()
			default:
				err = jsonscan.Fail(ErrUnsupported, s.Pos(), "unknown field")
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case rank != i:
			return jsonscan.Fail(ErrInvalid, at, "the rank is %d where %d should follow", rank, i)
		case len(f.text) == start:
			return jsonscan.Fail(ErrInvalid, at, "a token without bytes")
		case i < 256 && (len(f.text) != start+1 || f.text[start] != byte(i)):
			return jsonscan.Fail(ErrInvalid, at, "the token of rank %d is not the byte 0x%02x", i, i)
		}
		f.spans = append(f.spans, span{uint32(start), uint32(len(f.text) - start)})
		return nil
	})
}

// readSpecial takes [{"rank": 0, "token_str": "<unk>", "is_control": true}, …].
func (f *File) readSpecial(s *jsonscan.Scanner) error {
	return s.Array(func(i int) error {
		if i > jsonscan.MaxID {
			return jsonscan.Fail(ErrLimit, s.Pos(), "more than %d tokens", jsonscan.MaxID+1)
		}
		s.Next()
		at, rank := s.Pos(), -1
		t := SpecialToken{Control: true}
		err := s.Object(func(name []byte, _ int) (err error) {
			switch string(name) {
			case "rank":
				rank, err = s.ID()
			case "token_str":
				var text jsonscan.Span
				text, err = s.Token()
				t.Text = string(text.Of(s.Data()))
			case "is_control":
				t.Control, err = s.Flag()
			default:
				err = jsonscan.Fail(ErrUnsupported, s.Pos(), "unknown field")
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case rank != i:
			return jsonscan.Fail(ErrInvalid, at, "the rank is %d where %d should follow", rank, i)
		case t.Text == "":
			return jsonscan.Fail(ErrInvalid, at, "a special token without text")
		}
		f.Special = append(f.Special, t)
		return nil
	})
}

// early are the special tokens of files up to version 7 that list none.
var early = []string{
	"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[TOOL_fileS]", "[/TOOL_fileS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]",
	"[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
}

// finish fills the special tokens up with <SPECIAL_n> and cuts the vocabulary
// to the size that the config states.
func (f *File) finish(c *config, listed bool, size int) error {
	fail := func(path, format string, args ...any) error {
		return jsonscan.Under(path, jsonscan.Fail(ErrInvalid, size, format, args...))
	}
	f.Pattern, f.Version = c.pattern, c.version
	switch {
	case f.Pattern == "":
		return fail("config.pattern", "missing; the file is not a tekken.json")
	case c.vocabSize < 0:
		return fail("config.default_vocab_size", "missing")
	case c.special < 0:
		return fail("config.default_num_special_tokens", "missing")
	case !listed && c.version != "v1" && c.version != "v2" && c.version != "v3" && c.version != "v7":
		return fail("special_tokens", "missing; files of version %q must list them", c.version)
	}
	if !listed {
		for _, text := range early {
			f.Special = append(f.Special, SpecialToken{Text: text, Control: true})
		}
	}
	used := c.vocabSize - c.special
	switch {
	case len(f.Special) > c.special:
		return fail("special_tokens", "%d tokens, but default_num_special_tokens is %d", len(f.Special), c.special)
	case used < 256 || used > len(f.spans):
		return fail("config.default_vocab_size", "%d, of which %d special, for a vocabulary of %d", c.vocabSize, c.special, len(f.spans))
	}
	for id := len(f.Special); id < c.special; id++ {
		f.Special = append(f.Special, SpecialToken{Text: fmt.Sprintf("<SPECIAL_%d>", id), Control: true})
	}
	f.spans = f.spans[:used:used]
	return f.unique(fail)
}

// unique refuses a text that two tokens have.
func (f *File) unique(fail func(path, format string, args ...any) error) error {
	special := make(map[string]int, len(f.Special))
	for id, t := range f.Special {
		if first, dup := special[t.Text]; dup {
			return fail("special_tokens", "%d and %d are both %q", first, id, t.Text)
		}
		special[t.Text] = id
	}
	index := textindex.New(len(f.spans), f.Token)
	for rank := range f.spans {
		if first, dup := index.Add(rank); dup {
			return fail("vocab", "the ranks %d and %d are both %q", first, rank, f.Token(rank)[:min(80, len(f.Token(rank)))])
		}
	}
	return nil
}
