package hfjson

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestParseConfig(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		name string
		json string
		want Config
	}{
		{"tokenizer_config.json", `{
			"add_bos_token": true, "add_eos_token": false, "clean_up_tokenization_spaces": false, "legacy": true,
			"add_prefix_space": null, "split_special_tokens": false,
			"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>", "lstrip": false},
			"unk_token": null, "pad_token": "<pad>", "sep_token": "[SEP]", "cls_token": "[CLS]", "mask_token": "[MASK]",
			"additional_special_tokens": ["<a>", {"content": "<b>"}],
			"tokenizer_class": "LlamaTokenizer", "chat_template": "{{ bos_token }}", "model_max_length": 1e30,
			"added_tokens_decoder": {
				"3": {"content": "<x>", "lstrip": true, "normalized": true, "rstrip": false, "single_word": false, "special": true},
				"1": {"content": "<y>"}}}`,
			Config{
				AddBOS: &yes, AddEOS: &no, CleanUpSpaces: &no, Legacy: &yes, SplitSpecialTokens: &no,
				BOS: "<s>", EOS: "</s>", Pad: "<pad>", SEP: "[SEP]", CLS: "[CLS]", Mask: "[MASK]",
				Additional: []string{"<a>", "<b>"}, TokenizerClass: "LlamaTokenizer",
				ChatTemplates: []ChatTemplate{{Template: "{{ bos_token }}"}},
				AddedTokens: []AddedToken{
					{Place: Place{Path: "added_tokens_decoder.3"}, ID: 3, Content: "<x>", LStrip: true, Normalized: true, Special: true},
					{Place: Place{Path: "added_tokens_decoder.1"}, ID: 1, Content: "<y>", Normalized: true},
				},
			}},
		{"special_tokens_map.json", `{"bos_token":{"content":"<bos>","single_word":false},"eos_token":"<eos>"}`, Config{BOS: "<bos>", EOS: "<eos>"}},
		{"config.json", `{"architectures":["X"],"bos_token_id":1,"eos_token_id":[2,3],"pad_token_id":null,"vocab_size":9}`,
			Config{BOSIDs: []int{1}, EOSIDs: []int{2, 3}}},
		{"config.json of several parts", `{"eos_token_id":7,"text_config":{"eos_token_id":2,"pad_token_id":0,"bos_token":"no"}}`,
			Config{EOSIDs: []int{7}, PadIDs: []int{0}}},
		{"templates with names", `{"chat_template":[{"name":"default","template":"a"},{"name":"tools","template":"b"}]}`,
			Config{ChatTemplates: []ChatTemplate{{"default", "a"}, {"tools", "b"}}}},
		{"other kinds", `{"bos_token":1,"eos_token_id":"x","add_bos_token":"yes","legacy":[],"text_config":3}`, Config{}},
		{"nothing", `{}`, Config{}},
	} {
		got, err := ParseConfig([]byte(tt.json))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for i := range got.AddedTokens {
			got.AddedTokens[i].Offset = 0
		}
		if !reflect.DeepEqual(*got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, *got, tt.want)
		}
	}
}

func TestParseConfigErrors(t *testing.T) {
	for _, tt := range []struct {
		json  string
		cause error
		path  string
	}{
		{`[]`, ErrSyntax, ""},
		{`{"a":1}{`, ErrSyntax, ""},
		{`{"added_tokens_decoder":{"x":{}}}`, ErrInvalid, "added_tokens_decoder.x"},
		{`{"added_tokens_decoder":{"1":{"content":"a","color":"red"}}}`, ErrUnsupported, "added_tokens_decoder.1.color"},
		{`{"eos_token_id":[1,"2"]}`, ErrSyntax, "eos_token_id[1]"},
		{`{"chat_template":[{"name":"x"}]}`, ErrInvalid, "chat_template[0]"},
		{`{"text_config":{"bos_token_id":1e9}}`, ErrInvalid, "text_config.bos_token_id"},
	} {
		_, err := ParseConfig([]byte(tt.json))
		var e *Error
		if !errors.As(err, &e) || e.Cause != tt.cause || e.Path != tt.path {
			t.Errorf("%s: %v; want %v at %q", tt.json, err, tt.cause, tt.path)
		}
	}
}

// TestVendorConfigs: the configs beside the vendors' vocabularies name tokens
// that these have, with the same IDs.
func TestVendorConfigs(t *testing.T) {
	for _, path := range vendorFiles(t) {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
		if err != nil {
			continue
		}
		c, err := ParseConfig(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		added := map[string]int{}
		for _, a := range f.AddedTokens {
			added[a.Content] = a.ID
		}
		for _, a := range c.AddedTokens {
			if id, ok := added[a.Content]; ok && id != a.ID {
				t.Errorf("%s: %q is %d in the config and %d in the vocabulary", path, a.Content, a.ID, id)
			}
		}
		if _, ok := added[c.EOS]; !ok {
			t.Errorf("%s: the end of sequence %q is not among the added tokens", path, c.EOS)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"bos_token":{"content":"<bos>"},"eos_token_id":[1,2],"add_bos_token":true,"chat_template":[{"name":"a","template":"b"}]}`))
	f.Add([]byte(`{"added_tokens_decoder":{"1":{"content":"a","special":true}},"text_config":{"eos_token_id":3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := ParseConfig(bytes.Clone(data))
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data)) {
			t.Fatalf("%v", err)
		}
	})
}
