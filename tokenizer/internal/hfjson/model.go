package hfjson

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
	"github.com/unfray/unfray/tokenizer/internal/textindex"
)

// modelFields are the fields of each model type, besides type and vocab.
var modelFields = map[string][]string{
	"BPE":       {"merges", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"},
	"Unigram":   {"unk_id", "byte_fallback"},
	"WordPiece": {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word"},
	"WordLevel": {"unk_token"},
}

// model takes the model. The type may stand anywhere, so fields are read by
// what they look like and checked at the end.
func (s *scanner) model() (Model, error) {
	s.Next()
	m := Model{Place: Place{Path: "model", Offset: s.Pos()}, UnkID: -1}
	fields := map[string]int{} // offsets of those that are not null
	err := s.Object(func(name []byte, at int) (err error) {
		if s.Null() {
			return nil
		}
		fields[string(name)] = at
		switch string(name) {
		case "type":
			m.Type, err = s.shortText()
		case "vocab":
			switch s.Next() {
			case '{':
				m.Vocab, err = s.vocab()
			case '[':
				m.Vocab, m.Scores, err = s.scoredVocab()
			default:
				err = s.Unexpected("the vocabulary, an object or an array,")
			}
		case "merges":
			m.Merges, err = s.merges()
		case "dropout":
			m.Dropout, err = s.float()
		case "unk_token":
			m.UnkToken, err = s.shortText()
		case "unk_id":
			m.UnkID, err = s.ID()
		case "continuing_subword_prefix":
			m.ContinuingSubwordPrefix, err = s.shortText()
		case "end_of_word_suffix":
			m.EndOfWordSuffix, err = s.shortText()
		case "max_input_chars_per_word":
			m.MaxInputCharsPerWord, err = s.ID()
		case "fuse_unk":
			m.FuseUnk, err = s.Flag()
		case "byte_fallback":
			m.ByteFallback, err = s.Flag()
		case "ignore_merges":
			m.IgnoreMerges, err = s.Flag()
		default:
			err = jsonscan.Fail(ErrUnsupported, at, "unknown field")
		}
		return err
	})
	if err == nil {
		err = m.check(fields)
	}
	return m, err
}

func (s *scanner) shortText() (string, error) {
	text, err := s.Token()
	return string(text.Of(s.Data())), err
}

// check finds the type of a model whose file does not say, and that it has
// its fields and no other's.
func (m *Model) check(fields map[string]int) error {
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := fields[n]; !ok {
				return false
			}
		}
		return true
	}
	if !has("vocab") {
		return jsonscan.Fail(ErrInvalid, m.Offset, `the field "vocab" is missing`)
	}
	if !has("type") {
		// The order in which the reference tries them.
		switch {
		case m.Scores != nil:
			m.Type = "Unigram"
		case has("merges"):
			m.Type = "BPE"
		case has(modelFields["WordPiece"]...):
			m.Type = "WordPiece"
		case has("unk_token"):
			m.Type = "WordLevel"
		default:
			return jsonscan.Fail(ErrInvalid, m.Offset, "the type is missing and does not follow from the other fields")
		}
	}
	known, ok := modelFields[m.Type]
	if !ok {
		return jsonscan.Under("type", jsonscan.Fail(ErrUnsupported, fields["type"], "the model %q", m.Type))
	}
	for name, at := range fields {
		if name != "type" && name != "vocab" && !slices.Contains(known, name) {
			return jsonscan.Under(name, jsonscan.Fail(ErrUnsupported, at, "a field of other models than %s", m.Type))
		}
	}
	if (m.Type == "Unigram") != (m.Scores != nil) {
		return jsonscan.Under("vocab", jsonscan.Fail(ErrInvalid, fields["vocab"], "not the vocabulary of a %s model", m.Type))
	}
	return m.checkFields(fields, has)
}

func (m *Model) checkFields(fields map[string]int, has func(...string) bool) error {
	switch m.Type {
	case "BPE":
		if !has("merges") {
			return jsonscan.Fail(ErrInvalid, m.Offset, `the field "merges" is missing`)
		}
		if m.Dropout < 0 || m.Dropout > 1 {
			return jsonscan.Under("dropout", jsonscan.Fail(ErrInvalid, fields["dropout"], "%v is not a probability", m.Dropout))
		}
	case "WordPiece", "WordLevel":
		for _, name := range modelFields[m.Type] {
			if !has(name) {
				return jsonscan.Fail(ErrInvalid, m.Offset, "the field %q is missing", name)
			}
		}
	case "Unigram":
		if m.UnkID >= m.Vocab.Len() {
			return jsonscan.Under("unk_id", jsonscan.Fail(ErrInvalid, fields["unk_id"], "%d; the vocabulary has %d tokens", m.UnkID, m.Vocab.Len()))
		}
		if token, ok := m.Vocab.Token(m.UnkID); ok {
			m.UnkToken = string(token)
		}
		return nil
	}
	if has("unk_token") {
		if id, ok := m.Vocab.Lookup([]byte(m.UnkToken)); ok {
			m.UnkID = id
		}
	}
	return nil
}

// vocab takes the vocabulary of all models but Unigram: {"token": ID, …}.
func (s *scanner) vocab() (Vocab, error) {
	s.Take() // the brace
	from := s.Pos()
	v := Vocab{text: s.Data()}
	if s.Next() == '}' {
		s.Take()
		return v, nil
	}
	for {
		token, err := s.Token()
		if err != nil {
			return v, err
		}
		if err := s.Expect(':', "a colon"); err != nil {
			return v, jsonscan.Under(string(token.Of(s.Data())), err)
		}
		id, err := s.ID()
		if err == nil {
			v.spans = s.room(v.spans, from)
			err = v.put(id, token)
		}
		if err != nil {
			return v, jsonscan.Under(string(token.Of(s.Data())), err)
		}
		switch s.Next() {
		case ',':
			s.Take()
		case '}':
			s.Take()
			return v, v.buildIndex()
		default:
			return v, s.Unexpected("a comma or }")
		}
	}
}

// room makes room in a list that is about to grow, for as many elements as
// would come if the rest of the file went on like this list since the offset
// from. At most eight times its length, so that a list which ends early wastes
// little.
func (s *scanner) room(list []jsonscan.Span, from int) []jsonscan.Span {
	const first = 1024
	n := len(list)
	switch {
	case n+2 <= cap(list):
		return list
	case n < first/2:
		return slices.Grow(list, first)
	}
	perElement := max(1, (s.Pos()-from)/n)
	return slices.Grow(list, min((len(s.Data())-s.Pos())/perElement+first, 7*n))
}

// put gives an ID its token. IDs mostly come in their order.
func (v *Vocab) put(id int, token jsonscan.Span) error {
	if id >= len(v.spans) {
		for id > len(v.spans) {
			v.spans = append(v.spans, jsonscan.Span{Off: noToken})
		}
		v.spans = append(v.spans, token)
	} else {
		if v.spans[id].Off != noToken {
			return jsonscan.Fail(ErrInvalid, int(token.Off)-1, "the ID %d is that of %q", id, v.spans[id].Of(v.text))
		}
		v.spans[id] = token
	}
	v.count++
	return nil
}

// buildIndex makes Lookup work. A token that has two IDs is an error.
func (v *Vocab) buildIndex() error {
	text, spans := v.text, v.spans
	v.index = textindex.New(v.count, func(id int) []byte { return spans[id].Of(text) })
	for id, s := range spans {
		if s.Off == noToken {
			continue
		}
		if first, dup := v.index.Add(id); dup {
			return jsonscan.Under(string(s.Of(text)), jsonscan.Fail(ErrInvalid, int(s.Off)-1, "the token has the IDs %d and %d", first, id))
		}
	}
	return nil
}

// scoredVocab takes the vocabulary of a Unigram model: [["token", score], …].
func (s *scanner) scoredVocab() (Vocab, []float64, error) {
	v := Vocab{text: s.Data()}
	scores := []float64{}
	err := s.Array(func(id int) error {
		if id == MaxTokens {
			return jsonscan.Fail(ErrLimit, s.Pos(), "more than %d tokens", MaxTokens)
		}
		if err := s.Expect('[', "a pair of a token and its score"); err != nil {
			return err
		}
		token, err := s.Token()
		if err != nil {
			return err
		}
		if err := s.Expect(',', "a comma"); err != nil {
			return err
		}
		score, err := s.float()
		if err != nil {
			return err
		}
		scores = append(scores, score)
		if err := v.put(id, token); err != nil {
			return err
		}
		return s.Expect(']', "the end of the pair")
	})
	if err == nil {
		err = v.buildIndex()
	}
	return v, scores, err
}

// merges takes the merges, spelled "left right" or ["left", "right"]. Lines
// that begin with #version are left out, as the reference does.
func (s *scanner) merges() (Merges, error) {
	m := Merges{text: s.Data()}
	if err := s.Expect('[', "an array"); err != nil {
		return m, err
	}
	if s.Next() == ']' {
		s.Take()
		return m, nil
	}
	from := s.Pos()
	pairs := s.Next() == '['
	for i := 0; ; i++ {
		if i == MaxMerges {
			return m, jsonscan.UnderItem(i, jsonscan.Fail(ErrLimit, s.Pos(), "more than %d merges", MaxMerges))
		}
		m.spans = s.room(m.spans, from)
		var err error
		if pairs {
			err = s.mergePair(&m)
		} else {
			err = s.mergeLine(&m)
		}
		if err != nil {
			return m, jsonscan.UnderItem(i, err)
		}
		switch s.Next() {
		case ',':
			s.Take()
		case ']':
			s.Take()
			return m, nil
		default:
			return m, jsonscan.UnderItem(i+1, s.Unexpected("a comma or ]"))
		}
	}
}

func (s *scanner) mergePair(m *Merges) error {
	if err := s.Expect('[', "a merge, which is a pair of tokens,"); err != nil {
		return err
	}
	left, err := s.Token()
	if err != nil {
		return err
	}
	if err := s.Expect(',', "a comma"); err != nil {
		return err
	}
	right, err := s.Token()
	if err != nil {
		return err
	}
	m.spans = append(m.spans, left, right)
	return s.Expect(']', "the end of the pair")
}

func (s *scanner) mergeLine(m *Merges) error {
	line, err := s.Token()
	if err != nil {
		return err
	}
	text := line.Of(s.Data())
	if bytes.HasPrefix(text, []byte("#version")) {
		return nil
	}
	cut := bytes.IndexByte(text, ' ')
	if cut < 0 || bytes.IndexByte(text[cut+1:], ' ') >= 0 {
		return jsonscan.Fail(ErrInvalid, int(line.Off)-1, "%q is not two tokens with one space between", shorten(text))
	}
	m.spans = append(m.spans,
		jsonscan.Span{Off: line.Off, Len: uint32(cut)},
		jsonscan.Span{Off: line.Off + uint32(cut) + 1, Len: line.Len - uint32(cut) - 1})
	return nil
}

// shorten keeps a text from outside out of a message's way.
func shorten(text []byte) string {
	const most = 80
	if len(text) <= most {
		return string(text)
	}
	return fmt.Sprintf("%s…", bytes.ToValidUTF8(text[:most], nil))
}
