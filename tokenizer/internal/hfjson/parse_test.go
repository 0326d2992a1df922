package hfjson

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// tiny is a file with every section. Tests replace one section of it.
const tiny = `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": true, "normalized": false, "special": true},
    {"id": 4, "content": "<x>", "single_word": true, "lstrip": true, "rstrip": false, "normalized": true, "special": false}
  ],
  "normalizer": null,
  "pre_tokenizer": null,
  "post_processor": null,
  "decoder": null,
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
    "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
    "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]}
}`

// with gives tiny with one section replaced.
func with(section, value string) string {
	lines := strings.Split(tiny, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, `  "`+section+`": null`) {
			lines[i] = `  "` + section + `": ` + value + ","
			return strings.Join(lines, "\n")
		}
	}
	panic("no section " + section)
}

// withModel gives tiny with another model.
func withModel(model string) string {
	i := strings.Index(tiny, `"model":`)
	return tiny[:i] + `"model": ` + model + "}"
}

func mustParse(t *testing.T, data string) *File {
	t.Helper()
	f, err := Parse([]byte(data))
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return f
}

func TestTiny(t *testing.T) {
	f := mustParse(t, tiny)
	if len(f.AddedTokens) != 2 || f.Truncation || f.Padding || f.Normalizer != nil || f.PreTokenizer != nil || f.PostProcessor != nil || f.Decoder != nil {
		t.Errorf("%+v", f)
	}
	want := AddedToken{Place: f.AddedTokens[1].Place, ID: 4, Content: "<x>", SingleWord: true, LStrip: true, Normalized: true}
	if got := f.AddedTokens[1]; got != want || got.Path != "added_tokens[1]" || tiny[got.Offset] != '{' {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !slices.Equal(f.AddedIDs(), []int{0, 4}) {
		t.Errorf("IDs %v", f.AddedIDs())
	}
	m := f.Model
	if m.Type != "BPE" || !m.IgnoreMerges || m.UnkID != -1 || m.Vocab.Len() != 4 || m.Merges.Len() != 1 {
		t.Errorf("%+v", m)
	}
	if left, right := m.Merges.At(0); string(left) != "a" || string(right) != "b" {
		t.Errorf("merge %q %q", left, right)
	}
}

// TestKeyOrder: any order of the top-level keys gives the same file.
func TestKeyOrder(t *testing.T) {
	for _, data := range []string{
		`{"model":{"merges":["a b"],"vocab":{"ab":3,"b":2,"a":1},"type":"BPE"},"added_tokens":[{"special":true,"normalized":false,"rstrip":false,"lstrip":false,"single_word":false,"content":"<s>","id":4}],"pre_tokenizer":{"use_regex":false,"trim_offsets":true,"add_prefix_space":false,"type":"ByteLevel"}}`,
		`{"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false},"added_tokens":[{"id":4,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"model":{"type":"BPE","vocab":{"a":1,"b":2,"ab":3},"merges":["a b"]},"version":"1.0"}`,
	} {
		f := mustParse(t, data)
		want := PreTokenizerStep{Place: f.PreTokenizer[0].Place, Type: "ByteLevel", ByteLevel: ByteLevel{TrimOffsets: true}}
		if f.PreTokenizer[0] != want {
			t.Errorf("%+v", f.PreTokenizer[0])
		}
		if _, ok := f.Model.Vocab.Token(0); ok || f.Model.Vocab.Len() != 4 || f.Model.Vocab.Count() != 3 {
			t.Errorf("vocabulary: %d of %d", f.Model.Vocab.Count(), f.Model.Vocab.Len())
		}
	}
}

func TestNormalizers(t *testing.T) {
	for _, tt := range []struct {
		json string
		want []NormalizerStep
	}{
		{`null`, nil},
		{`{"type":"NFC"}`, []NormalizerStep{{Type: "NFC"}}},
		{`{"type":"NFD"}`, []NormalizerStep{{Type: "NFD"}}},
		{`{"type":"NFKC"}`, []NormalizerStep{{Type: "NFKC"}}},
		{`{"type":"NFKD"}`, []NormalizerStep{{Type: "NFKD"}}},
		{`{"type":"Lowercase"}`, []NormalizerStep{{Type: "Lowercase"}}},
		{`{"type":"StripAccents"}`, []NormalizerStep{{Type: "StripAccents"}}},
		{`{"type":"Nmt"}`, []NormalizerStep{{Type: "Nmt"}}},
		{`{"type":"ByteLevel"}`, []NormalizerStep{{Type: "ByteLevel"}}},
		{`{"type":"Strip","strip_left":true,"strip_right":false}`, []NormalizerStep{{Type: "Strip", Left: true}}},
		{`{"type":"Prepend","prepend":"▁"}`, []NormalizerStep{{Type: "Prepend", Content: "▁"}}},
		{`{"type":"Replace","pattern":{"String":" "},"content":"▁"}`, []NormalizerStep{{Type: "Replace", Pattern: " ", Content: "▁"}}},
		{`{"content":"x","pattern":{"Regex":" {2,}"},"type":"Replace"}`, []NormalizerStep{{Type: "Replace", Pattern: " {2,}", Regex: true, Content: "x"}}},
		{`{"type":"Precompiled","precompiled_charsmap":"AAEC"}`, []NormalizerStep{{Type: "Precompiled", Charsmap: []byte{0, 1, 2}}}},
		{`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":false,"strip_accents":null,"lowercase":true}`,
			[]NormalizerStep{{Type: "BertNormalizer", CleanText: true, StripAccents: true, Lowercase: true}}},
		{`{"type":"BertNormalizer","clean_text":false,"handle_chinese_chars":true,"strip_accents":false,"lowercase":true}`,
			[]NormalizerStep{{Type: "BertNormalizer", ChineseChars: true, Lowercase: true}}},
		{`{"type":"Sequence","normalizers":[{"type":"NFC"},{"normalizers":[{"type":"Lowercase"}],"type":"Sequence"},{"type":"Nmt"}]}`,
			[]NormalizerStep{{Type: "NFC"}, {Type: "Lowercase"}, {Type: "Nmt"}}},
		{`{"type":"Sequence","normalizers":[]}`, nil},
	} {
		got := mustParse(t, with("normalizer", tt.json)).Normalizer
		for i := range got {
			if !strings.HasPrefix(got[i].Path, "normalizer") {
				t.Errorf("%s: path %q", tt.json, got[i].Path)
			}
			got[i].Place = Place{}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.json, got, tt.want)
		}
	}
}

func TestPreTokenizers(t *testing.T) {
	for _, tt := range []struct {
		json string
		want []PreTokenizerStep
	}{
		{`{"type":"Whitespace"}`, []PreTokenizerStep{{Type: "Whitespace"}}},
		{`{"type":"WhitespaceSplit"}`, []PreTokenizerStep{{Type: "WhitespaceSplit"}}},
		{`{"type":"BertPreTokenizer"}`, []PreTokenizerStep{{Type: "BertPreTokenizer"}}},
		{`{"type":"UnicodeScripts"}`, []PreTokenizerStep{{Type: "UnicodeScripts"}}},
		{`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false}`, // use_regex came later
			[]PreTokenizerStep{{Type: "ByteLevel", ByteLevel: ByteLevel{AddPrefixSpace: true, UseRegex: true}}}},
		{`{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}`,
			[]PreTokenizerStep{{Type: "ByteLevel", ByteLevel: ByteLevel{TrimOffsets: true}}}},
		{`{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}`,
			[]PreTokenizerStep{{Type: "Metaspace", Metaspace: Metaspace{'▁', "first", false}}}},
		{`{"type":"Metaspace","replacement":"▁"}`, []PreTokenizerStep{{Type: "Metaspace", Metaspace: Metaspace{'▁', "always", true}}}},
		{`{"type":"Metaspace","str_rep":"▁","replacement":"▁","add_prefix_space":true}`,
			[]PreTokenizerStep{{Type: "Metaspace", Metaspace: Metaspace{'▁', "always", true}}}},
		{`{"type":"Metaspace","replacement":"_","add_prefix_space":false}`,
			[]PreTokenizerStep{{Type: "Metaspace", Metaspace: Metaspace{'_', "never", true}}}},
		{`{"type":"Metaspace","replacement":"▁","add_prefix_space":true,"prepend_scheme":"first"}`,
			[]PreTokenizerStep{{Type: "Metaspace", Metaspace: Metaspace{'▁', "first", true}}}},
		{`{"type":"Split","pattern":{"Regex":"\\p{N}"},"behavior":"Isolated","invert":false}`,
			[]PreTokenizerStep{{Type: "Split", Pattern: `\p{N}`, Regex: true, Behavior: "Isolated"}}},
		{`{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":true}`,
			[]PreTokenizerStep{{Type: "Split", Pattern: " ", Behavior: "MergedWithPrevious", Invert: true}}},
		{`{"type":"Punctuation"}`, []PreTokenizerStep{{Type: "Punctuation", Behavior: "Isolated"}}},
		{`{"type":"Punctuation","behavior":"Contiguous"}`, []PreTokenizerStep{{Type: "Punctuation", Behavior: "Contiguous"}}},
		{`{"type":"Digits","individual_digits":true}`, []PreTokenizerStep{{Type: "Digits", Individual: true}}},
		{`{"type":"CharDelimiterSplit","delimiter":"|"}`, []PreTokenizerStep{{Type: "CharDelimiterSplit", Delimiter: '|'}}},
		{`{"type":"FixedLength"}`, []PreTokenizerStep{{Type: "FixedLength", Length: 5}}},
		{`{"type":"FixedLength","length":3}`, []PreTokenizerStep{{Type: "FixedLength", Length: 3}}},
		{`{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},{"type":"Whitespace"}]}`,
			[]PreTokenizerStep{{Type: "Digits"}, {Type: "Whitespace"}}},
	} {
		got := mustParse(t, with("pre_tokenizer", tt.json)).PreTokenizer
		for i := range got {
			if !strings.HasPrefix(got[i].Path, "pre_tokenizer") {
				t.Errorf("%s: path %q", tt.json, got[i].Path)
			}
			got[i].Place = Place{}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.json, got, tt.want)
		}
	}
}

func TestPostProcessors(t *testing.T) {
	cls, sep := TokenRef{"[CLS]", 101}, TokenRef{"[SEP]", 102}
	c, s := TemplatePiece{Special: "[CLS]", IDs: []int{101}}, TemplatePiece{Special: "[SEP]", IDs: []int{102}}
	s1 := s
	s1.TypeID = 1
	a, b := TemplatePiece{Sequence: "A"}, TemplatePiece{Sequence: "B"}
	b1 := b
	b1.TypeID = 1
	for _, tt := range []struct {
		json string
		want []PostProcessorStep
	}{
		{`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true}`,
			[]PostProcessorStep{{Type: "ByteLevel", ByteLevel: ByteLevel{AddPrefixSpace: true, UseRegex: true}}}},
		{`{"type":"BertProcessing","sep":["[SEP]",102],"cls":["[CLS]",101]}`,
			[]PostProcessorStep{{Type: "BertProcessing", CLS: cls, SEP: sep, Single: []TemplatePiece{c, a, s}, Pair: []TemplatePiece{c, a, s, b1, s1}}}},
		{`{"type":"RobertaProcessing","sep":["[SEP]",102],"cls":["[CLS]",101],"trim_offsets":true,"add_prefix_space":false}`,
			[]PostProcessorStep{{Type: "RobertaProcessing", CLS: cls, SEP: sep, ByteLevel: ByteLevel{TrimOffsets: true},
				Single: []TemplatePiece{c, a, s}, Pair: []TemplatePiece{c, a, s, s, b, s}}}},
		{`{"type":"Sequence","processors":[{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false},
		   {"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
		    "pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],
		    "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[101,7],"tokens":["[CLS]","x"]}}}]}`,
			[]PostProcessorStep{{Type: "ByteLevel", ByteLevel: ByteLevel{UseRegex: true}},
				{Type: "TemplateProcessing", Single: []TemplatePiece{{Special: "[CLS]", IDs: []int{101, 7}}, a}, Pair: []TemplatePiece{a, b1}}}},
	} {
		got := mustParse(t, with("post_processor", tt.json)).PostProcessor
		for i := range got {
			got[i].Place = Place{}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.json, got, tt.want)
		}
	}
}

func TestDecoders(t *testing.T) {
	for _, tt := range []struct {
		json string
		want []DecoderStep
	}{
		{`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`,
			[]DecoderStep{{Type: "ByteLevel", ByteLevel: ByteLevel{true, true, true}}}},
		{`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`,
			[]DecoderStep{{Type: "Metaspace", Metaspace: Metaspace{'▁', "always", true}}}},
		{`{"type":"WordPiece","prefix":"##","cleanup":true}`, []DecoderStep{{Type: "WordPiece", Prefix: "##", Cleanup: true}}},
		{`{"type":"BPEDecoder","suffix":"</w>"}`, []DecoderStep{{Type: "BPEDecoder", Suffix: "</w>"}}},
		{`{"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":false}`,
			[]DecoderStep{{Type: "CTC", PadToken: "<pad>", WordDelimiter: "|"}}},
		{`{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`,
			[]DecoderStep{{Type: "Replace", Pattern: "▁", Content: " "}, {Type: "ByteFallback"}, {Type: "Fuse"}, {Type: "Strip", Content: " ", Start: 1}}},
	} {
		got := mustParse(t, with("decoder", tt.json)).Decoder
		for i := range got {
			got[i].Place = Place{}
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.json, got, tt.want)
		}
	}
}

func TestModels(t *testing.T) {
	for _, tt := range []struct {
		json  string
		check func(m Model) bool
	}{
		{`{"type":"BPE","unk_token":"<s>","fuse_unk":true,"byte_fallback":true,"continuing_subword_prefix":"##","end_of_word_suffix":"</w>","dropout":0.1,"vocab":{"<s>":0},"merges":[]}`,
			func(m Model) bool {
				return m.UnkToken == "<s>" && m.UnkID == 0 && m.FuseUnk && m.ByteFallback && m.ContinuingSubwordPrefix == "##" && m.EndOfWordSuffix == "</w>" && m.Dropout == 0.1
			}},
		{`{"type":"BPE","unk_token":"<unk>","vocab":{"<s>":0},"merges":[]}`, // not in the vocabulary
			func(m Model) bool { return m.UnkToken == "<unk>" && m.UnkID == -1 }},
		{`{"vocab":{"<s>":0,"a":1,"b c":2},"merges":[["a","b c"],["\u0061","\n"]]}`, // as tokenizers before 0.9 wrote it
			func(m Model) bool {
				l0, r0 := m.Merges.At(0)
				l1, r1 := m.Merges.At(1)
				return m.Type == "BPE" && m.Merges.Len() == 2 && string(l0)+"|"+string(r0)+"|"+string(l1)+"|"+string(r1) == "a|b c|a|\n"
			}},
		{`{"type":"BPE","vocab":{"<s>":0},"merges":["#version: 0.2","a b"," b","a "]}`,
			func(m Model) bool {
				l1, r1 := m.Merges.At(1)
				return m.Merges.Len() == 3 && len(l1) == 0 && string(r1) == "b"
			}},
		{`{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"<s>":0,"[UNK]":1}}`,
			func(m Model) bool {
				return m.UnkID == 1 && m.ContinuingSubwordPrefix == "##" && m.MaxInputCharsPerWord == 100
			}},
		{`{"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"<s>":0,"[UNK]":1}}`,
			func(m Model) bool { return m.Type == "WordPiece" }},
		{`{"type":"WordLevel","unk_token":"[UNK]","vocab":{"<s>":0,"[UNK]":1}}`, func(m Model) bool { return m.UnkID == 1 }},
		{`{"unk_token":"[UNK]","vocab":{"<s>":0}}`, func(m Model) bool { return m.Type == "WordLevel" && m.UnkID == -1 }},
		{`{"type":"Unigram","unk_id":1,"byte_fallback":true,"vocab":[["<s>",0],["<unk>",0.0],["a",-1.5e0]]}`,
			func(m Model) bool {
				return m.UnkID == 1 && m.UnkToken == "<unk>" && m.ByteFallback && slices.Equal(m.Scores, []float64{0, 0, -1.5})
			}},
		{`{"unk_id":null,"vocab":[["<s>",0]]}`, func(m Model) bool { return m.Type == "Unigram" && m.UnkID == -1 }},
		{`{"type":"BPE","vocab":{},"merges":[]}`, func(m Model) bool { return m.Vocab.Len() == 0 }},
	} {
		if m := mustParse(t, withModel(tt.json)).Model; !tt.check(m) {
			t.Errorf("%s: %+v", tt.json, m)
		}
	}
}

func TestIgnored(t *testing.T) {
	f := mustParse(t, with("truncation", `{"direction":"Right","max_length":512,"strategy":"LongestFirst","stride":0}`))
	if !f.Truncation || f.Padding {
		t.Error("truncation is not noted")
	}
	f = mustParse(t, with("padding", `{"strategy":"BatchLongest"}`))
	if f.Truncation || !f.Padding {
		t.Error("padding is not noted")
	}
}

// TestAddedTwice: what the reference drops is dropped.
func TestAddedTwice(t *testing.T) {
	const token = `{"id":9,"content":"<y>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`
	list := strings.Replace(tiny, `"added_tokens": [`, `"added_tokens": [`+token+","+token+","+strings.Replace(token, "<y>", "", 1)+",", 1)
	f := mustParse(t, list)
	if len(f.AddedTokens) != 3 || f.AddedTokens[0].Content != "<y>" || f.AddedTokens[1].Content != "<s>" {
		t.Errorf("%+v", f.AddedTokens)
	}
	// Neither <y> nor <x> is in the vocabulary of 4: the reference numbers
	// them in their order.
	if got := f.AddedIDs(); !slices.Equal(got, []int{4, 0, 5}) {
		t.Errorf("IDs %v", got)
	}
}

// TestRead: a reader that gives little at a time, and one that fails.
func TestRead(t *testing.T) {
	f, err := Read(iotest.OneByteReader(strings.NewReader(tiny)))
	if err != nil || f.Model.Vocab.Count() != 4 {
		t.Error(err)
	}
	cause := errors.New("cable pulled")
	if _, err := Read(iotest.ErrReader(cause)); !errors.Is(err, cause) {
		t.Error(err)
	}
	if _, err := Open("testdata/no-such-file"); err == nil {
		t.Error("no error for a file that is not there")
	}
}

// TestCut: every proper prefix is an error that says so.
func TestCut(t *testing.T) {
	for n := range len(tiny) {
		_, err := Parse([]byte(tiny[:n]))
		var e *Error
		if !errors.As(err, &e) || e.Cause != ErrSyntax || e.Offset != n && tiny[n-1] > ' ' && e.Offset < n-20 {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// FuzzParse looks for panics, for memory beyond the file's size, and for
// results that contradict themselves.
func FuzzParse(f *testing.F) {
	f.Add([]byte(tiny))
	f.Add([]byte(withModel(`{"type":"Unigram","unk_id":1,"vocab":[["<s>",0],["<unk>",0.0],["a",-1.5e0]]}`)))
	f.Add([]byte(with("normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`)))
	f.Add([]byte(with("pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}`)))
	f.Add([]byte(with("post_processor", `{"type":"BertProcessing","sep":["[SEP]",102],"cls":["[CLS]",101]}`)))
	f.Add([]byte(with("decoder", `{"type":"Strip","content":" ","start":1,"stop":0}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(bytes.Clone(data))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
				t.Fatalf("%v", err)
			}
			return
		}
		v := &file.Model.Vocab
		found := 0
		for id := range v.Len() {
			if token, ok := v.Token(id); ok {
				found++
				if back, ok := v.Lookup(token); !ok || back != id {
					t.Fatalf("token %d, %q, is found as %d, %v", id, token, back, ok)
				}
			}
		}
		if found != v.Count() {
			t.Fatalf("%d tokens, Count says %d", found, v.Count())
		}
	})
}
