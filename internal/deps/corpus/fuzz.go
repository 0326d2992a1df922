package corpus

import (
	"strings"
	"unicode/utf8"
)

//go:generate go run gen_assigned.go

// fuzzLimit is the length in bytes that the fuzz corpus has at most.
const fuzzLimit = 4 << 20

// A generator is splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): its stream is
// fixed by its definition, whatever the Go release.
type generator uint64

func (g *generator) next() uint64 {
	*g += 0x9e3779b97f4a7c15
	z := uint64(*g)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (g *generator) below(n int) int { return int(g.next() % uint64(n)) }

func pick[T any](g *generator, from []T) T { return from[g.below(len(from))] }

// FuzzText makes the fuzz corpus: first every assigned code point in small contexts, then random strings of pieces that
// pre-tokenizers, normalizers and Unicode tables are known to disagree about.
func FuzzText() []byte {
	text := make([]byte, 0, fuzzLimit)
	text = appendAssigned(text)
	g := generator(15_1)
	for {
		grown := appendFuzzString(text, &g)
		if len(grown) > fuzzLimit {
			return grown[:len(text)]
		}
		text = grown
	}
}

// contexts are what a code point, written as X, stands in.
var contexts = []string{"aX ", " Xb", "XX1", "AXé\n", "'Xs ", "1X2", ".X\n", "  X", "'sX", "\nX ", "-X'T", "Xx"}

func appendAssigned(text []byte) []byte {
	n := 0
	for _, r := range assigned {
		// Of the wide blocks of like characters (Han, Hangul, Tangut) each gets one context; of all others three.
		times := 3
		if r[1]-r[0] >= 2000 {
			times = 1
		}
		for c := r[0]; c <= r[1]; c++ {
			for range times {
				text = append(text, strings.ReplaceAll(contexts[n%len(contexts)], "X", string(c))...)
				n++
			}
			n++ // so that the contexts take turns whatever their number
		}
	}
	return text
}

// maxFuzzPieces is how many pieces a random string has at most.
const maxFuzzPieces = 14

func appendFuzzString(text []byte, g *generator) []byte {
	for range 1 + g.below(maxFuzzPieces) {
		text = appendPiece(text, g)
	}
	return append(text, pick(g, []string{"", "", " ", "\n", "\n\n", " \n"})...)
}

func appendPiece(text []byte, g *generator) []byte {
	switch g.below(16) {
	case 0, 1:
		return append(text, pick(g, spaces)...)
	case 2:
		return append(text, pick(g, apostrophes)+pick(g, contractions)...)
	case 3:
		return append(text, digits(g)...)
	case 4, 5, 6:
		return append(text, pick(g, words)...)
	case 7:
		return append(text, pick(g, letters)+pick(g, marks)...)
	case 8:
		for range 1 + g.below(4) {
			text = append(text, pick(g, marks)...)
		}
		return text
	case 9:
		return append(text, pick(g, emoji)...)
	case 10, 11:
		for range 1 + g.below(6) {
			text = append(text, punctuation[g.below(len(punctuation))])
		}
		return text
	case 12:
		return append(text, pick(g, edges)...)
	case 13:
		return append(text, pick(g, specials)...)
	case 14:
		r := pick(g, assigned)
		return utf8.AppendRune(text, r[0]+rune(g.below(int(r[1]-r[0])+1)))
	default:
		return append(text, run(g)...)
	}
}

// digits returns a number of one to seven digits of one script, or other numerals.
func digits(g *generator) string {
	if g.below(4) == 0 {
		return pick(g, numerals)
	}
	zero := pick(g, zeros)
	var b strings.Builder
	for range 1 + g.below(7) {
		b.WriteRune(zero + rune(g.below(10)))
	}
	return b.String()
}

// run returns a piece many times over.
func run(g *generator) string {
	unit := pick(g, []string{"a", " ", "\n", "0", "=", "-", "\t", "ab", "\r\n", "!", "é", "字", "\u00a0", "　", "x ", "'s", "\u0301", "A", "_", "👍", "ha", ". "})
	return strings.Repeat(unit, 2<<g.below(7)-g.below(2))
}

var (
	spaces = []string{
		" ", " ", "  ", "   ", "    ", "\n", "\n", "\n\n", " \n", "\n ", "\n   \n", "  \n  \n ", "\r\n", "\r", "\r\n\r\n", "\t", "\t\t", " \t ", "\n\t",
		"\v", "\f", "\x1c", "\x1f", "\u0085", "\u00a0", "\u1680", "\u180e", "\u2000", "\u2003", "\u2009", "\u200a", "\u200b", "\u200c", "\u200d",
		"\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff", " \u00a0", "\u3000\n", "\u2028\n", "\n\u0085",
	}
	apostrophes  = []string{"'", "'", "'", "'", "’", "ʼ", "`", "''", " '", "\n'"}
	contractions = []string{
		"s", "t", "m", "d", "re", "ve", "ll", "S", "T", "M", "D", "RE", "VE", "LL", "Re", "Ve", "Ll", "rE", "vE", "lL",
		"\u017f", "\u017fThe", "\u212a", "sx", "tA", "l", "r", "v", "lle", "ves", "s's", "d1", "m ", "K", "İ", "ı", "ß",
	}
	zeros = []rune{
		'0', '0', '0', '0', '٠', '۰', '߀', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '๐', '໐', '༠', '၀', '០', '᠐', '᥆', '᧐', '꘠', '０', '𐒠', '𑁦', '𝟎', '𝟘', '🯰',
	}
	numerals = []string{"Ⅷ", "ⅻ", "〇", "二十", "½", "²", "³₄", "①", "⑳", "𐅀", "㊿", "፩", "௰", "༳", "1½", "x²", "1,000", "3.14e-10", "0x1F", "1_000", "v2.0"}
	words    = []string{
		"the", " The", "THE", " hello", "World", "camelCase", "HTTPServer", "XMLHttpRequest", "iPhone", "McDonald", "aB", "Ab", "ABc", "aBC", " x", "snake_case",
		"Straße", "ÉTÉ", "naïve", " čeština", "Ünïcödé", "привет", " Привет", "МОСКВА", "Ελλάδα", "ΟΔΟΣ", "οδός", "ᾳ", "שלום", " שָׁלוֹם", "مرحبا", " العَرَبِيَّة", "فارسی\u200cها",
		"नमस्ते", " हिन्दी", "বাংলা", "தமிழ்", "ગુજરાતી", "ಕನ್ನಡ", "മലയാളം", "ไทย", " ภาษาไทยไม่มีช่องว่าง", "ລາວ", "မြန်မာ", "ខ្មែរ", "བོད་སྐད", "አማርኛ", "ქართული", "ᲥᲐᲠᲗᲣᲚᲘ", "Հայերեն", "ᏣᎳᎩ",
		"日本語", "こんにちは", "カタカナ", "ﾊﾝｶｸ", "中文", "，你好。", "繁體字", "한국어", " 안녕하세요", "한글", "각", "tiếng Việt", "Ǆǅǆ", "ǅ", "ﬁ", "ﬀ", "ſ", "K", "Å", "Ω", "ʰa", "ªº", "𝐀𝐛𝐜", "𝒽ello", "Ｆｕｌｌ", "𐐀𐐨", "ꙮ",
	}
	letters = []string{"a", "e", "o", "A", "n", " e", "q", "α", "и", "ا", "क", "ก", "か", "한", "א", "𝐱", "ǅ", "ー", "ʰ", "1", " ", ".", "\n", "😀"}
	marks   = []string{
		"\u0300", "\u0301", "\u0308", "\u0323", "\u0327", "\u0344", "\u0345", "\u035c", "\u0489", "\u05b8", "\u05c1", "\u064b", "\u0651", "\u093c", "\u094d", "\u093f", "\u0bcd",
		"\u0e31", "\u0e49", "\u0f71", "\u0f72", "\u1161", "\u11a8", "\u20dd", "\u20e3", "\u302a", "\u3099", "\u309a", "\ufe0f", "\ufe0e", "\u0301\u0327", "\u0327\u0301", "\U0001d165", "\U000e0101", "\u0f73",
	}
	emoji = []string{
		"😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇩", "1️⃣", "#️⃣", "❤️", "❤", "🧑🏿‍🚀", "👩‍❤️‍💋‍👨", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "☎️", "™", "©", "🤦🏼‍♂️", "😀😀", " 😀", "a😀", "🫠", "🩷",
	}
	edges = []string{
		"\x00", "\x01", "\x1b[0m", "\x7f", "\u0080", "\u009f", "\u00ad", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uf8ff", "\ufdd0", "\ufffd", "\ufffe", "\uffff", "\U00010000", "\U0001ffff",
		"\U000e0001", "\U000f0000", "\U0010ffff", "\u0378", "\u2fe0", "\U0003fffd", "\u0600", "\u061c", "\u200e", "\u202e", "\u2066", "\ufdfa", "\ufb1d", "\u3392", "\u1e9b\u0323", "\u2126", "\u0958", "\u0340", "\u2adc", "\U0002f800", "\uac00\u11a8", "\u1100\u1161\u11a8",
	}
	specials = []string{
		"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_", "<|fim_prefix|>", "<|begin_of_text|>", "<|eot_id|>", "<|start|>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<s>", "</s>", "<unk>", "<bos>", "<eos>", "<pad>",
		"<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "[UNK]", "[CLS]", "[SEP]", "<EOT>", "<META>", "<think>", "</think>", "<tool_call>", "<0x0A>", "<0x20>", "▁", "▁▁", "a▁b", " ▁", "Ġ", "Ċ", "##", "##s", "<table>", "</td>", "\n\nHuman:", "http://", "://", "/*", "*/", "//", "\\n", "${", "}}", "();", "\">", "</", "/>", "<!--", "=>", "!=", "...", "…", "——", "«", "»", "“", "”", "¿", "、", "。", "「", "」", "・", "۔", "؟", "।",
	}
)

const punctuation = `!"#$%&'()*+,-./:;<=>?@[\]^_` + "`{|}~" + "/\n' "
