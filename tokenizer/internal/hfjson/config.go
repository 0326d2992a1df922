package hfjson

import (
	"strconv"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

// Config is what the files beside tokenizer.json say about the use of special
// tokens. These files serve many programs, so that fields which concern no
// tokenizer are left out in silence. What a file does not have is nil or empty.
type Config struct {
	// AddBOS and AddEOS are add_bos_token and add_eos_token, settings of the
	// Python classes. A tokenizer.json has its post-processor instead.
	AddBOS, AddEOS *bool

	BOS, EOS, Unk, Pad, SEP, CLS, Mask string   // contents of special tokens
	Additional                         []string // additional_special_tokens

	// BOSIDs, EOSIDs and PadIDs are those of config.json or
	// generation_config.json.
	BOSIDs, EOSIDs, PadIDs []int

	AddedTokens []AddedToken // added_tokens_decoder, in the file's order

	TokenizerClass string
	ChatTemplates  []ChatTemplate

	CleanUpSpaces      *bool // clean_up_tokenization_spaces: Python's decode removes spaces before punctuation
	AddPrefixSpace     *bool
	Legacy             *bool
	SplitSpecialTokens *bool // special tokens in a text are encoded as text
}

// ChatTemplate is a template in Jinja's language.
type ChatTemplate struct {
	Name     string // empty if the file has but one, without a name
	Template string
}

// ParseConfig reads any of tokenizer_config.json, special_tokens_map.json,
// config.json and generation_config.json. Of config.json, the IDs in
// text_config count where the top level has none. Strings are decoded in data,
// which must not be used any more.
func ParseConfig(data []byte) (*Config, error) {
	text, err := jsonscan.New(data)
	if err != nil {
		return nil, err
	}
	s := &scanner{*text}
	c := &Config{}
	var inner Config
	err = s.Object(func(name []byte, _ int) error {
		if s.Null() {
			return nil
		}
		if string(name) == "text_config" && s.Next() == '{' {
			return s.Object(func(name []byte, _ int) error { return s.configField(&inner, string(name)) })
		}
		return s.configField(c, string(name))
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return nil, err
	}
	for _, ids := range [][2]*[]int{{&c.BOSIDs, &inner.BOSIDs}, {&c.EOSIDs, &inner.EOSIDs}, {&c.PadIDs, &inner.PadIDs}} {
		if *ids[0] == nil {
			*ids[0] = *ids[1]
		}
	}
	return c, nil
}

// configField takes the value of a field. Values of another kind than
// expected are left out: the same name means other things in other programs.
func (s *scanner) configField(c *Config, name string) (err error) {
	texts := map[string]*string{
		"bos_token": &c.BOS, "eos_token": &c.EOS, "unk_token": &c.Unk, "pad_token": &c.Pad,
		"sep_token": &c.SEP, "cls_token": &c.CLS, "mask_token": &c.Mask,
		"tokenizer_class": &c.TokenizerClass,
	}
	flags := map[string]**bool{
		"add_bos_token": &c.AddBOS, "add_eos_token": &c.AddEOS,
		"clean_up_tokenization_spaces": &c.CleanUpSpaces, "add_prefix_space": &c.AddPrefixSpace,
		"legacy": &c.Legacy, "split_special_tokens": &c.SplitSpecialTokens,
	}
	ids := map[string]*[]int{"bos_token_id": &c.BOSIDs, "eos_token_id": &c.EOSIDs, "pad_token_id": &c.PadIDs}
	switch first := s.Next(); {
	case texts[name] != nil && (first == '"' || first == '{'):
		*texts[name], err = s.contentOf()
	case flags[name] != nil && (first == 't' || first == 'f'):
		var flag bool
		flag, err = s.Flag()
		*flags[name] = &flag
	case ids[name] != nil && first >= '0' && first <= '9':
		var id int
		id, err = s.ID()
		*ids[name] = []int{id}
	case ids[name] != nil && first == '[':
		*ids[name] = []int{}
		err = s.Array(func(int) error {
			id, err := s.ID()
			*ids[name] = append(*ids[name], id)
			return err
		})
	case name == "additional_special_tokens" && first == '[':
		err = s.Array(func(int) error {
			text, err := s.contentOf()
			c.Additional = append(c.Additional, text)
			return err
		})
	case name == "added_tokens_decoder" && first == '{':
		err = s.addedByID(c)
	case name == "chat_template" && (first == '"' || first == '['):
		err = s.chatTemplates(c)
	default:
		err = s.Skip()
	}
	return err
}

// contentOf takes a special token, which is a string or an object with its
// content.
func (s *scanner) contentOf() (string, error) {
	if s.Next() == '"' {
		return s.shortText()
	}
	var content string
	err := s.Object(func(name []byte, _ int) (err error) {
		if string(name) == "content" && s.Next() == '"' {
			content, err = s.shortText()
			return err
		}
		return s.Skip()
	})
	return content, err
}

// addedByID takes {"151643": {"content": …}, …}. Missing flags are those of
// Python's AddedToken.
func (s *scanner) addedByID(c *Config) error {
	return s.Object(func(name []byte, at int) error {
		id, err := strconv.Atoi(string(name))
		if err != nil || id < 0 || id >= MaxTokens {
			return jsonscan.Fail(ErrInvalid, at, "the name is not a token ID")
		}
		t := AddedToken{Place: Place{Path: "added_tokens_decoder." + string(name), Offset: at}}
		have, err := s.addedToken(&t)
		t.ID = id
		if have&hasNormalized == 0 {
			t.Normalized = !t.Special
		}
		c.AddedTokens = append(c.AddedTokens, t)
		return err
	})
}

// chatTemplates takes a template or a list of templates with names.
func (s *scanner) chatTemplates(c *Config) error {
	if s.Next() == '"' {
		text, err := s.Text()
		c.ChatTemplates = []ChatTemplate{{Template: string(text.Of(s.Data()))}}
		return err
	}
	return s.Array(func(int) error {
		n, err := s.tree()
		if err != nil {
			return err
		}
		f := fieldsOf(n, "")
		c.ChatTemplates = append(c.ChatTemplates, ChatTemplate{Name: f.str("name"), Template: f.str("template")})
		return f.err
	})
}
