package textrepair

import "unicode/utf8"

// A codePage is a single-byte encoding as which UTF-8 is read by mistake.
type codePage struct {
	name string
	// need is how much stranger the damaged text must be than the mended one for a single place to count as proof.
	need int
	// high are the characters of the bytes 0x80 to 0xFF. Bytes that the encoding leaves undefined stand for the control
	// character of the same number, as browsers have it (WHATWG Encoding Standard).
	high string
}

// codePages are those that turn up in practice, the likeliest first. Their tables are those of the Unicode Consortium's
// MAPPINGS/VENDORS; the last one, the alphabet in which byte-level BPE vocabularies spell bytes, is computed.
var codePages = [...]codePage{
	{"Windows-1252", 2, "" +
		"€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß" +
		"àáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ"},
	{"Windows-1254", 3, "" +
		"€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008d\u008e\u008f\u0090‘’“”•–—˜™š›œ\u009d\u009eŸ" +
		"\u00a0¡¢£¤¥¦§¨©ª«¬\u00ad®¯°±²³´µ¶·¸¹º»¼½¾¿" +
		"ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞß" +
		"àáâãäåæçèéêëìíîïğñòóôõö÷øùúûüışÿ"},
	{"Windows-1250", 3, "" +
		"€\u0081‚\u0083„…†‡\u0088‰Š‹ŚŤŽŹ\u0090‘’“”•–—\u0098™š›śťžź" +
		"\u00a0ˇ˘Ł¤Ą¦§¨©Ş«¬\u00ad®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľż" +
		"ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢß" +
		"ŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙"},
	{"ISO-8859-2", 3, "" +
		"\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f" +
		"\u00a0Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u00adŽŻ°ą˛ł´ľśˇ¸šşťź˝žż" +
		"ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢß" +
		"ŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙"},
	{"Windows-1257", 3, "" +
		"€\u0081‚\u0083„…†‡\u0088‰\u008a‹\u008c¨ˇ¸\u0090‘’“”•–—\u0098™\u009a›\u009c¯˛\u009f" +
		"\u00a0¡¢£¤¥¦§Ø©Ŗ«¬\u00ad®Æ°±²³´µ¶·ø¹ŗ»¼½¾æ" +
		"ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽß" +
		"ąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙"},
	{"Windows-1251", 3, "" +
		"ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\u0098™љ›њќћџ" +
		"\u00a0ЎўЈ¤Ґ¦§Ё©Є«¬\u00ad®Ї°±Ііґµ¶·ё№є»јЅѕї" +
		"АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ" +
		"абвгдежзийклмнопрстуфхцчшщъыьэюя"},
	{"Windows-1253", 5, "" +
		"€\u0081‚ƒ„…†‡\u0088‰\u008a‹\u008c\u008d\u008e\u008f\u0090‘’“”•–—\u0098™\u009a›\u009c\u009d\u009e\u009f" +
		"\u00a0΅Ά£¤¥¦§¨©ª«¬\u00ad®―°±²³΄µ¶·ΈΉΊ»Ό½ΎΏ" +
		"ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡÒΣΤΥΦΧΨΩΪΫάέήί" +
		"ΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώÿ"},
	{"Windows-1255", 5, "" +
		"€\u0081‚ƒ„…†‡ˆ‰\u008a‹\u008c\u008d\u008e\u008f\u0090‘’“”•–—˜™\u009a›\u009c\u009d\u009e\u009f" +
		"\u00a0¡¢£₪¥¦§¨©×«¬\u00ad®¯°±²³´µ¶·¸¹÷»¼½¾¿" +
		"\u05b0\u05b1\u05b2\u05b3\u05b4\u05b5\u05b6\u05b7\u05b8\u05b9Ê\u05bb\u05bc\u05bd\u05be\u05bf\u05c0\u05c1\u05c2\u05c3\u05f0\u05f1\u05f2\u05f3\u05f4ÙÚÛÜÝÞß" +
		"\u05d0\u05d1\u05d2\u05d3\u05d4\u05d5\u05d6\u05d7\u05d8\u05d9\u05da\u05db\u05dc\u05dd\u05de\u05df\u05e0\u05e1\u05e2\u05e3\u05e4\u05e5\u05e6\u05e7\u05e8\u05e9\u05eaûü\u200e\u200fÿ"},
	{"Windows-1256", 5, "" +
		"€\u067e‚ƒ„…†‡ˆ‰\u0679‹Œ\u0686\u0698\u0688\u06af‘’“”•–—\u06a9™\u0691›œ\u200c\u200d\u06ba" +
		"\u00a0\u060c¢£¤¥¦§¨©\u06be«¬\u00ad®¯°±²³´µ¶·¸¹\u061b»¼½¾\u061f" +
		"\u06c1\u0621\u0622\u0623\u0624\u0625\u0626\u0627\u0628\u0629\u062a\u062b\u062c\u062d\u062e\u062f\u0630\u0631\u0632\u0633\u0634\u0635\u0636×\u0637\u0638\u0639\u063a\u0640\u0641\u0642\u0643" +
		"à\u0644â\u0645\u0646\u0647\u0648çèéêë\u0649\u064aîï\u064b\u064c\u064d\u064eô\u064f\u0650÷\u0651ù\u0652ûü\u200e\u200f\u06d2"},
	{"MacRoman", 4, "" +
		"ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü" +
		"†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø" +
		"¿¡¬√ƒ≈∆«»…\u00a0ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ" +
		"‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\uf8ffÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ"},
	{"CP437", 4, "" +
		"ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ" +
		"áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐" +
		"└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
		"αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"},
	{"CP850", 4, "" +
		"ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ" +
		"áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐" +
		"└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀" +
		"ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0"},
	{"CP866", 5, "" +
		"АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ" +
		"абвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐" +
		"└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
		"рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√№¤■\u00a0"},
	{"KOI8-R", 5, "" +
		"─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■∙√≈≤≥\u00a0⌡°²·÷" +
		"═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©" +
		"юабцдефгхийклмнопярстужвьызшэщчъ" +
		"ЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ"},
	{byteAlphabet, 3, ""},
}

const byteAlphabet = "byte-level alphabet"

// A pageSet is a set of code pages, by their index.
type pageSet uint16

const allPages = pageSet(1<<len(codePages) - 1)

// lastPlane bounds the characters that the tables know. The Apple sign of MacRoman lies outside and is looked for apart.
const lastPlane = 0x2600

const appleSign = 0xF8FF

// A letterhead says what a character can be in UTF-8 that was read as a code page.
type letterhead struct {
	lead pageSet // the first byte of a sequence
	cont pageSet // another byte of a sequence
	// space: the first byte of a sequence of which another byte may have been a no-break space and become a space.
	space pageSet
	id    uint16 // its row in pageBytes; 0: none
}

var (
	heads     [lastPlane]letterhead
	pageBytes [][len(codePages)]byte // 0: not in the page
	appleHead letterhead
)

func init() {
	pageBytes = make([][len(codePages)]byte, 1, 512)
	for p := range codePages {
		if codePages[p].name == byteAlphabet {
			for b := 0x80; b <= 0xFF; b++ {
				learn(p, byteLetter(byte(b)), byte(b))
			}
			continue
		}
		b := 0x80
		for _, r := range codePages[p].high {
			learn(p, r, byte(b))
			// The same byte is also read as ISO 8859-1, whose 0x80 to 0x9F are controls: they mix with the page's own.
			if b < 0xA0 && p <= 1 {
				learn(p, rune(b), byte(b))
			}
			b++
		}
	}
}

func learn(p int, r rune, b byte) {
	h := &appleHead
	switch {
	case r < lastPlane:
		h = &heads[r]
	case r != appleSign: // the ligatures of MacRoman begin no character that is in use
		return
	}
	if h.id == 0 {
		h.id = uint16(len(pageBytes))
		pageBytes = append(pageBytes, [len(codePages)]byte{})
	}
	if pageBytes[h.id][p] != 0 {
		return
	}
	pageBytes[h.id][p] = b
	switch {
	case b < 0xC0:
		h.cont |= 1 << p
	case b >= 0xC2 && b <= 0xF4:
		h.lead |= 1 << p
		switch b {
		case 0xC3, 0xC5, 0xD0, 0xD7, 0xE0, 0xE1, 0xE2, 0xE3:
			h.space |= 1 << p
		case 0xC2:
			if r == 'Â' {
				h.space |= 1 << p
			}
		}
	}
}

// byteLetter returns the letter that spells a byte in byte-level BPE vocabularies: printable Latin-1 characters stand
// for themselves, the other bytes, counted up, for U+0100 and on.
func byteLetter(b byte) rune {
	switch {
	case b <= 0x20:
		return 0x100 + rune(b)
	case b >= 0x7F && b <= 0xA0:
		return 0x121 + rune(b-0x7F)
	case b == 0xAD:
		return 0x143
	}
	return rune(b)
}

// letterByte is the inverse of byteLetter.
func letterByte(r rune) (byte, bool) {
	switch {
	case r >= 0x100 && r <= 0x120:
		return byte(r - 0x100), true
	case r >= 0x121 && r <= 0x142:
		return byte(r-0x121) + 0x7F, true
	case r == 0x143:
		return 0xAD, true
	case r > 0x20 && r < 0x7F, r > 0xA0 && r <= 0xFF && r != 0xAD:
		return byte(r), true
	}
	return 0, false
}

func head(r rune) letterhead {
	if uint32(r) < lastPlane {
		return heads[r]
	}
	if r == appleSign {
		return appleHead
	}
	return letterhead{}
}

// byteIn returns the byte of a character in a code page.
func byteIn(p int, r rune) (byte, bool) {
	b := pageBytes[head(r).id][p]
	return b, b != 0
}

// windows1252 returns what a C1 control character was, if its number was a byte of Windows-1252.
func windows1252(r rune) (rune, bool) {
	if r < 0x80 || r > 0x9F {
		return r, false
	}
	s := codePages[0].high
	for i := rune(0x80); ; i++ {
		c, n := utf8.DecodeRuneInString(s)
		if i == r {
			return c, c != r
		}
		s = s[n:]
	}
}
