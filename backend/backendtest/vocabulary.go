package backendtest

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// IDs of the control tokens in the toy vocabulary. The 256 single bytes follow
// them in the order of GPT-2's vocabulary, then the merged tokens.
const (
	EndOfText vocab.ID = 0 // <|endoftext|>
	IMStart   vocab.ID = 1 // <|im_start|>, also BOS
	IMEnd     vocab.ID = 2 // <|im_end|>, also EOS
)

var controlTexts = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// Words are the longest tokens of the toy vocabulary. Every prefix of two or
// more bytes of a word is a token too, made by merging one byte at a time, so
// a prompt may end inside a word at any byte and even inside a character.
var Words = []string{
	"userName", "http", "https", "://", "www.", "example", ".com", "function", "return",
	" Paris", " the", " capital", " of", " France", " is", " quick", " fox", " a", "The", "Hello", ", ", "world",
	"system", "user", "assistant", "\n\n", "    ", "{\"", "\":", "é", "日本", "🙂",
}

// byteOrder lists the bytes as GPT-2's vocabulary does: first those whose
// Latin-1 character prints, then the rest.
func byteOrder() (order [256]byte, display [256]rune) {
	n := 0
	add := func(b byte, r rune) {
		order[n], display[b] = b, r
		n++
	}
	prints := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	for b := range 256 {
		if prints(b) {
			add(byte(b), rune(b))
		}
	}
	hidden := rune(256)
	for b := range 256 {
		if !prints(b) {
			add(byte(b), hidden)
			hidden++
		}
	}
	return order, display
}

// merge is one rule of the byte-pair encoding: left and right become one token.
type merge struct{ left, right []byte }

// table lists the tokens in ID order, controls excepted, and the merges by rank.
func table() (tokens [][]byte, merges []merge) {
	order, _ := byteOrder()
	for _, b := range order {
		tokens = append(tokens, []byte{b})
	}
	seen := map[string]bool{}
	for _, w := range Words {
		for n := 2; n <= len(w); n++ {
			if t := w[:n]; !seen[t] {
				seen[t] = true
				tokens = append(tokens, []byte(t))
				merges = append(merges, merge{[]byte(w[:n-1]), []byte(w[n-1 : n])})
			}
		}
	}
	return tokens, merges
}

// VocabularyOptions vary the toy vocabulary.
type VocabularyOptions struct {
	// AddBOS makes the vocabulary ask for a BOS token before every prompt.
	AddBOS bool
	// ChatTemplate is written into the GGUF file.
	ChatTemplate string
	// Pre names the pre-tokenizer; "" is "gpt-2".
	Pre string
}

// Vocabulary returns the toy vocabulary: three control tokens, all single
// bytes, and the prefixes of [Words].
func Vocabulary(o VocabularyOptions) *vocab.Vocab {
	var tokens [][]byte
	var kinds []vocab.Kind
	for _, c := range controlTexts {
		tokens, kinds = append(tokens, []byte(c)), append(kinds, vocab.Control)
	}
	text, _ := table()
	for _, t := range text {
		tokens, kinds = append(tokens, t), append(kinds, vocab.Normal)
	}
	v, err := vocab.New(tokens, kinds, vocab.Specials{
		BOS: IMStart, EOS: IMEnd, EOT: vocab.None, Unknown: vocab.None, Pad: vocab.None,
		FIMPrefix: vocab.None, FIMSuffix: vocab.None, FIMMiddle: vocab.None,
		FIMPad: vocab.None, FIMRepo: vocab.None, FIMFile: vocab.None,
		AddBOS: o.AddBOS,
		EOG:    []vocab.ID{EndOfText, IMEnd},
	})
	if err != nil {
		panic("backendtest: the toy vocabulary is invalid: " + err.Error())
	}
	return v
}

// GGUF returns a GGUF file (version 3, metadata only) that describes the same
// vocabulary and its byte-level BPE merges, so that a tokenizer can be opened
// from it.
func GGUF(o VocabularyOptions) []byte {
	_, display := byteOrder()
	show := func(b []byte) string {
		var s []byte
		for _, c := range b {
			s = utf8.AppendRune(s, display[c])
		}
		return string(s)
	}
	text, rules := table()
	tokens, types := append([]string(nil), controlTexts...), []int32{3, 3, 3}
	for _, t := range text {
		tokens, types = append(tokens, show(t)), append(types, int32(vocab.Normal))
	}
	merges := make([]string, len(rules))
	for i, m := range rules {
		merges[i] = show(m.left) + " " + show(m.right)
	}
	pre := o.Pre
	if pre == "" {
		pre = "gpt-2"
	}

	w := &ggufWriter{}
	w.str("general.architecture", "llama")
	w.str("general.name", "toy")
	w.str("tokenizer.ggml.model", "gpt2")
	w.str("tokenizer.ggml.pre", pre)
	w.strs("tokenizer.ggml.tokens", tokens)
	w.ints("tokenizer.ggml.token_type", types)
	w.strs("tokenizer.ggml.merges", merges)
	w.uint("tokenizer.ggml.bos_token_id", uint32(IMStart))
	w.uint("tokenizer.ggml.eos_token_id", uint32(IMEnd))
	w.bool("tokenizer.ggml.add_bos_token", o.AddBOS)
	if o.ChatTemplate != "" {
		w.str("tokenizer.chat_template", o.ChatTemplate)
	}
	return w.file()
}

// ggufWriter collects key-value pairs in GGUF's layout: little-endian, strings
// and arrays preceded by their 64-bit length.
type ggufWriter struct {
	body  []byte
	count uint64
}

// GGUF's numbers for the types of metadata values.
const (
	ggufUint32 = 4
	ggufInt32  = 5
	ggufBool   = 7
	ggufString = 8
	ggufArray  = 9
)

func (w *ggufWriter) u32(v uint32) { w.body = binary.LittleEndian.AppendUint32(w.body, v) }
func (w *ggufWriter) u64(v uint64) { w.body = binary.LittleEndian.AppendUint64(w.body, v) }

func (w *ggufWriter) text(s string) {
	w.u64(uint64(len(s)))
	w.body = append(w.body, s...)
}

func (w *ggufWriter) key(k string, kind uint32) {
	w.count++
	w.text(k)
	w.u32(kind)
}

func (w *ggufWriter) str(k, v string) {
	w.key(k, ggufString)
	w.text(v)
}

func (w *ggufWriter) uint(k string, v uint32) {
	w.key(k, ggufUint32)
	w.u32(v)
}

func (w *ggufWriter) bool(k string, v bool) {
	w.key(k, ggufBool)
	b := byte(0)
	if v {
		b = 1
	}
	w.body = append(w.body, b)
}

func (w *ggufWriter) strs(k string, vs []string) {
	w.key(k, ggufArray)
	w.u32(ggufString)
	w.u64(uint64(len(vs)))
	for _, v := range vs {
		w.text(v)
	}
}

func (w *ggufWriter) ints(k string, vs []int32) {
	w.key(k, ggufArray)
	w.u32(ggufInt32)
	w.u64(uint64(len(vs)))
	for _, v := range vs {
		w.u32(uint32(v))
	}
}

func (w *ggufWriter) file() []byte {
	out := append([]byte("GGUF"), 3, 0, 0, 0) // version 3
	out = binary.LittleEndian.AppendUint64(out, 0)
	out = binary.LittleEndian.AppendUint64(out, w.count)
	return append(out, w.body...)
}
