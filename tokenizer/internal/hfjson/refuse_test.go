package hfjson

import (
	"errors"
	"strings"
	"testing"
)

// TestRefusals: what cannot be honoured is refused with its cause and path,
// and the offset points at it.
func TestRefusals(t *testing.T) {
	added := func(token string) string {
		return strings.Replace(tiny, `"added_tokens": [`, `"added_tokens": [`+token+",", 1)
	}
	const full = `"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true`
	for _, tt := range []struct {
		name  string
		data  string
		cause error
		path  string
		at    string // what stands at the offset; "" for the end
	}{
		{"trailing garbage", tiny + "x", ErrSyntax, "", "x"},
		{"two values", tiny + tiny, ErrSyntax, "", "{"},
		{"an array", "[]", ErrSyntax, "", "["},
		{"no model", `{"version":"1.0"}`, ErrInvalid, "", ""},
		{"version", strings.Replace(tiny, `"1.0"`, `"2.0"`, 1), ErrUnsupported, "version", `"2.0"`},
		{"unknown section", with("padding", `null, "sampler": {}`), ErrUnsupported, "sampler", `"sampler"`},
		{"section twice", with("padding", `null, "padding": null`), ErrInvalid, "padding", `"padding"`},
		{"truncation", with("truncation", `{"a":[}`), ErrSyntax, "truncation.a[0]", "}"},

		{"normalizer type", with("normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Stemmer"}]}`), ErrUnsupported, "normalizer.normalizers[1].type", `"Stemmer"`},
		{"normalizer field", with("normalizer", `{"type":"NFC","version":16}`), ErrUnsupported, "normalizer.version", "16"},
		{"normalizer without type", with("normalizer", `{"prepend":"x"}`), ErrInvalid, "normalizer", "{"},
		{"normalizer of another kind", with("normalizer", `"NFC"`), ErrInvalid, "normalizer", `"NFC"`},
		{"sequence of null", with("normalizer", `{"type":"Sequence","normalizers":[null]}`), ErrInvalid, "normalizer.normalizers[0]", "null"},
		{"sequence without list", with("normalizer", `{"type":"Sequence"}`), ErrInvalid, "normalizer", "{"},
		{"charsmap", with("normalizer", `{"type":"Precompiled","precompiled_charsmap":"A?"}`), ErrInvalid, "normalizer.precompiled_charsmap", `"A?"`},
		{"missing flag", with("normalizer", `{"type":"Strip","strip_left":true}`), ErrInvalid, "normalizer", "{"},
		{"null flag", with("normalizer", `{"type":"Strip","strip_left":true,"strip_right":null}`), ErrInvalid, "normalizer", "{"},
		{"flag of another kind", with("normalizer", `{"type":"Strip","strip_left":1,"strip_right":true}`), ErrInvalid, "normalizer.strip_left", "1"},
		{"pattern", with("normalizer", `{"type":"Replace","pattern":{"Glob":"*"},"content":""}`), ErrInvalid, "normalizer.pattern", "{"},
		{"two patterns", with("normalizer", `{"type":"Replace","pattern":{"String":"a","Regex":"b"},"content":""}`), ErrUnsupported, "normalizer.pattern.String", `"a"`},
		{"nested deep", with("normalizer", strings.Repeat(`{"type":"Sequence","normalizers":[`, 80)+strings.Repeat("]}", 80)), ErrLimit,
			"normalizer." + strings.TrimSuffix(strings.Repeat("normalizers[0].", 32), "."), "{"},
		{"many steps", with("normalizer", `{"type":"Sequence","normalizers":[`+strings.Repeat(`{"type":"NFC"},`, maxSteps)+`{"type":"NFC"}]}`), ErrLimit, "normalizer", "{"},
		{"many values", with("normalizer", `{"type":[`+strings.Repeat("0,", maxNodes)+`0]}`), ErrLimit, "normalizer.type[65534]", "0"},

		{"pre-tokenizer type", with("pre_tokenizer", `{"type":"Jieba"}`), ErrUnsupported, "pre_tokenizer.type", `"Jieba"`},
		{"behavior", with("pre_tokenizer", `{"type":"Punctuation","behavior":"Doubled"}`), ErrUnsupported, "pre_tokenizer.behavior", `"Doubled"`},
		{"split without invert", with("pre_tokenizer", `{"type":"Split","pattern":{"String":" "},"behavior":"Isolated"}`), ErrInvalid, "pre_tokenizer", "{"},
		{"scheme", with("pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"last"}`), ErrUnsupported, "pre_tokenizer.prepend_scheme", `"last"`},
		{"scheme against prefix", with("pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","add_prefix_space":false}`), ErrInvalid, "pre_tokenizer.add_prefix_space", "false"},
		{"replacement", with("pre_tokenizer", `{"type":"Metaspace","replacement":"__"}`), ErrInvalid, "pre_tokenizer.replacement", `"__"`},
		{"str_rep", with("pre_tokenizer", `{"type":"Metaspace","replacement":"▁","str_rep":"_"}`), ErrUnsupported, "pre_tokenizer.str_rep", `"_"`},
		{"no delimiter", with("pre_tokenizer", `{"type":"CharDelimiterSplit","delimiter":""}`), ErrInvalid, "pre_tokenizer.delimiter", `""`},
		{"length 0", with("pre_tokenizer", `{"type":"FixedLength","length":0}`), ErrInvalid, "pre_tokenizer.length", "0"},
		{"length -1", with("pre_tokenizer", `{"type":"FixedLength","length":-1}`), ErrInvalid, "pre_tokenizer.length", "-1"},

		{"post-processor type", with("post_processor", `{"type":"Chat"}`), ErrUnsupported, "post_processor.type", `"Chat"`},
		{"pair", with("post_processor", `{"type":"BertProcessing","sep":["[SEP]"],"cls":["[CLS]",101]}`), ErrInvalid, "post_processor.sep", "["},
		{"template piece", with("post_processor", `{"type":"TemplateProcessing","single":[{"Image":{}}],"pair":[],"special_tokens":{}}`), ErrUnsupported, "post_processor.single[0]", "{"},
		{"template sequence", with("post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"C","type_id":0}}],"pair":[],"special_tokens":{}}`), ErrUnsupported, "post_processor.single[0].Sequence.id", `"C"`},
		{"template name", with("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}}],"pair":[],"special_tokens":{}}`), ErrInvalid, "post_processor.single[0].SpecialToken.id", `"<s>"`},
		{"template IDs", with("post_processor", `{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[1,2],"tokens":["<s>"]}}}`), ErrInvalid, "post_processor.special_tokens.<s>.tokens", "{"},

		{"decoder type", with("decoder", `{"type":"Speech"}`), ErrUnsupported, "decoder.type", `"Speech"`},
		{"decoder field", with("decoder", `{"type":"Fuse","glue":"-"}`), ErrUnsupported, "decoder.glue", `"-"`},

		{"model type", withModel(`{"type":"Char","vocab":{}}`), ErrUnsupported, "model.type", `"type"`},
		{"model field", withModel(`{"type":"BPE","vocab":{},"merges":[],"alpha":0.1}`), ErrUnsupported, "model.alpha", `"alpha"`},
		{"field of another model", withModel(`{"type":"WordLevel","unk_token":"a","vocab":{},"merges":[]}`), ErrUnsupported, "model.merges", `"merges"`},
		{"no vocab", withModel(`{"type":"BPE","merges":[]}`), ErrInvalid, "model", "{"},
		{"no merges", withModel(`{"type":"BPE","vocab":{}}`), ErrInvalid, "model", "{"},
		{"no type", withModel(`{"vocab":{}}`), ErrInvalid, "model", "{"},
		{"vocab of another model", withModel(`{"type":"Unigram","vocab":{}}`), ErrInvalid, "model.vocab", `"vocab"`},
		{"vocab of another kind", withModel(`{"type":"BPE","vocab":"a"}`), ErrSyntax, "model.vocab", `"a"`},
		{"ID twice", withModel(`{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}`), ErrInvalid, "model.vocab.b", `"b"`},
		{"token twice", withModel(`{"type":"BPE","vocab":{"a":0,"b":1,"\u0061":2},"merges":[]}`), ErrInvalid, "model.vocab.a", `"\u0061"`},
		{"token twice, scored", withModel(`{"type":"Unigram","vocab":[["a",0],["a",0]]}`), ErrInvalid, "model.vocab.a", `"a"`},
		{"high ID", withModel(`{"type":"BPE","vocab":{"a":4294967295},"merges":[]}`), ErrLimit, "model.vocab.a", "4294967295"},
		{"negative ID", withModel(`{"type":"BPE","vocab":{"a":-1},"merges":[]}`), ErrSyntax, "model.vocab.a", "-1"},
		{"fractional ID", withModel(`{"type":"BPE","vocab":{"a":1.5},"merges":[]}`), ErrInvalid, "model.vocab.a", "1.5"},
		{"text for an ID", withModel(`{"type":"BPE","vocab":{"a":"1"},"merges":[]}`), ErrSyntax, "model.vocab.a", `"1"`},
		{"merge of one", withModel(`{"type":"BPE","vocab":{},"merges":["a b","ab"]}`), ErrInvalid, "model.merges[1]", `"ab"`},
		{"merge of three", withModel(`{"type":"BPE","vocab":{},"merges":["a b c"]}`), ErrInvalid, "model.merges[0]", `"a b c"`},
		{"pair of three", withModel(`{"type":"BPE","vocab":{},"merges":[["a","b","c"]]}`), ErrSyntax, "model.merges[0]", `,"c"`},
		{"mixed merges", withModel(`{"type":"BPE","vocab":{},"merges":[["a","b"],"a b"]}`), ErrSyntax, "model.merges[1]", `"a b"`},
		{"dropout", withModel(`{"type":"BPE","vocab":{},"merges":[],"dropout":2}`), ErrInvalid, "model.dropout", `"dropout"`},
		{"unk_id", withModel(`{"type":"Unigram","vocab":[["a",0]],"unk_id":1}`), ErrInvalid, "model.unk_id", `"unk_id"`},
		{"score", withModel(`{"type":"Unigram","vocab":[["a","0"]]}`), ErrSyntax, "model.vocab[0]", `"0"`},
		{"score beyond float64", withModel(`{"type":"Unigram","vocab":[["a",-1e999]]}`), ErrInvalid, "model.vocab[0]", "-1e999"},
		{"lone surrogate", withModel(`{"type":"BPE","vocab":{"a\ud800":1},"merges":[]}`), ErrSyntax, "model.vocab", `\ud800`},
		{"long token", withModel(`{"type":"BPE","vocab":{"` + strings.Repeat("x", 1<<16+1) + `":1},"merges":[]}`), ErrLimit, "model.vocab", `"xxx`},

		{"added token without flags", added(`{"id":9,"content":"<y>"}`), ErrInvalid, "added_tokens[0]", "{"},
		{"added token field", added(`{"id":9,"content":"<y>",` + full + `,"lang":"en"}`), ErrUnsupported, "added_tokens[0].lang", `"lang"`},
		{"added ID twice", added(`{"id":4,"content":"<y>",` + full + `}`), ErrInvalid, "added_tokens[2]", "{"},
		{"added content twice", added(`{"id":9,"content":"<x>",` + full + `}`), ErrInvalid, "added_tokens[2]", "{"},
		{"added ID of another", added(`{"id":1,"content":"<y>",` + full + `}`), ErrInvalid, "added_tokens[0]", "{"},
		{"added against the vocabulary", added(`{"id":9,"content":"ab",` + full + `}`), ErrInvalid, "added_tokens[0]", "{"},
		{"added flag", added(`{"id":9,"content":"<y>","special":"yes"}`), ErrSyntax, "added_tokens[0].special", `"yes"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.data))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Cause != tt.cause || e.Path != tt.path {
				t.Errorf("%v\nwant %v at %q", e, tt.cause, tt.path)
			}
			if rest := tt.data[e.Offset:]; tt.at == "" && rest != "" || !strings.HasPrefix(rest, tt.at) {
				t.Errorf("%v\nat the offset stands %.20q, want %q", e, rest, tt.at)
			}
			if len(e.Error()) > 1000 {
				t.Errorf("a message of %d bytes", len(e.Error()))
			}
		})
	}
}
