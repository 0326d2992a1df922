package hfjson

import (
	"fmt"
	"strings"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

// Fields of an added token, as bits.
const (
	hasID = 1 << iota
	hasContent
	hasSingleWord
	hasLStrip
	hasRStrip
	hasNormalized
	hasSpecial
	hasAll = 1<<iota - 1
)

var addedFields = []string{"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}

// addedTokens takes the list of added tokens.
func (s *scanner) addedTokens() ([]AddedToken, error) {
	var all []AddedToken
	err := s.Array(func(i int) error {
		if len(all) == MaxTokens {
			return jsonscan.Fail(ErrLimit, s.Pos(), "more than %d added tokens", MaxTokens)
		}
		s.Next()
		t := AddedToken{Place: Place{Offset: s.Pos()}}
		have, err := s.addedToken(&t)
		if err != nil {
			return err
		}
		if have != hasAll {
			var missing []string
			for bit, name := range addedFields {
				if have>>bit&1 == 0 {
					missing = append(missing, name)
				}
			}
			return jsonscan.Fail(ErrInvalid, t.Offset, "missing: %s", strings.Join(missing, ", "))
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

// addedToken takes one added token and gives the fields it has.
func (s *scanner) addedToken(t *AddedToken) (have int, err error) {
	err = s.Object(func(name []byte, at int) error {
		if s.Null() {
			return nil
		}
		var flag *bool
		switch string(name) {
		case "id":
			have |= hasID
			t.ID, err = s.ID()
			return err
		case "content":
			have |= hasContent
			text, err := s.Token()
			t.Content = string(text.Of(s.Data()))
			return err
		case "single_word":
			have |= hasSingleWord
			flag = &t.SingleWord
		case "lstrip":
			have |= hasLStrip
			flag = &t.LStrip
		case "rstrip":
			have |= hasRStrip
			flag = &t.RStrip
		case "normalized":
			have |= hasNormalized
			flag = &t.Normalized
		case "special":
			have |= hasSpecial
			flag = &t.Special
		case "__type": // "AddedToken", in tokenizer_config.json
			return s.Skip()
		default:
			return jsonscan.Fail(ErrUnsupported, at, "unknown field")
		}
		*flag, err = s.Flag()
		return err
	})
	return have, err
}

// checkAdded refuses added tokens whose ID another token has. It drops those
// that say the same twice, and empty ones, as the reference does, and fills in
// paths.
func checkAdded(f *File) error {
	byContent := make(map[string]int, len(f.AddedTokens))
	byID := make(map[int]int, len(f.AddedTokens))
	kept := f.AddedTokens[:0]
	for i, t := range f.AddedTokens {
		t.Path = fmt.Sprintf("added_tokens[%d]", i)
		if t.Content == "" {
			continue
		}
		if first, dup := byContent[t.Content]; dup {
			same := kept[first]
			same.Place = t.Place
			if same == t {
				continue
			}
			return t.Invalid("%q is there before as %s, with another ID or other settings", t.Content, kept[first].Path)
		}
		if first, dup := byID[t.ID]; dup {
			return t.Invalid("%q has the ID %d of %q", t.Content, t.ID, kept[first].Content)
		}
		if id, ok := f.Model.Vocab.Lookup([]byte(t.Content)); ok && id != t.ID {
			return t.Invalid("%q has the ID %d here and %d in the vocabulary", t.Content, t.ID, id)
		} else if other, taken := f.Model.Vocab.Token(t.ID); !ok && taken {
			return t.Invalid("%q has the ID %d, which in the vocabulary is %q", t.Content, t.ID, other)
		}
		byContent[t.Content] = len(kept)
		byID[t.ID] = len(kept)
		kept = append(kept, t)
	}
	f.AddedTokens = kept
	return nil
}

// AddedIDs gives the IDs that the reference gives to the added tokens, in
// their order: the vocabulary's for those in it; the others are numbered from
// the size of the vocabulary on, whatever the file says. Only in files where
// numbers are left out do they differ from AddedToken.ID.
func (f *File) AddedIDs() []int {
	ids := make([]int, len(f.AddedTokens))
	next := f.Model.Vocab.Count()
	for i, t := range f.AddedTokens {
		if id, ok := f.Model.Vocab.Lookup([]byte(t.Content)); ok {
			ids[i] = id
			continue
		}
		ids[i] = next
		next++
	}
	return ids
}
