package textrepair

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// mended are damaged texts and what they were.
var mended = []struct {
	in, want string
	kind     jsonrepair.Kind // of the first edit
}{
	// Windows-1252 and ISO 8859-1.
	{"donâ€™t", "don’t", Mojibake},
	{"cafÃ©", "café", Mojibake},
	{"ðŸ˜€ yes", "😀 yes", Mojibake},
	{"FÃ¼r Ã„rger", "Für Ärger", Mojibake},
	{"ÃœBUNG", "ÜBUNG", Mojibake},
	{"STRAÃŸE", "STRAßE", Mojibake},
	{"wordâ€”word", "word—word", Mojibake},
	{"1â€“2", "1–2", Mojibake},
	{"â€¢ item", "• item", Mojibake},
	{"â†’ next", "→ next", Mojibake},
	{"âœ… Done", "✅ Done", Mojibake},
	{"100 Â°C for Â£5", "100 °C for £5", Mojibake},
	{"Â¡Hola!", "¡Hola!", Mojibake},
	{"naÃ¯ve faÃ§ade Â© 2020", "naïve façade © 2020", Mojibake},
	{"â€œdoâ€\u009d", "“do”", Mojibake},
	{"Å¼Ã³Å‚w", "żółw", Mojibake},
	{"Î±Î²Î³", "αβγ", Mojibake},
	{"Ð¿Ñ€Ð¸Ð²ÐµÑ‚ Ð¼Ð¸Ñ€", "привет мир", Mojibake},
	{"×©×œ×•", "שלו", Mojibake},
	{"à¸ªà¸§à¸±à¸ªà¸”à¸µ", "สวัสดี", Mojibake},
	{"ì•ˆë…•", "안녕", Mojibake},
	{"Ã cÃ´tÃ©", "à côté", Mojibake},
	{"voilÃ le travail", "voilà le travail", Mojibake},
	{"est-ce lÃ\u00a0, voilÃ\u00a0tout", "est-ce là, voilàtout", Mojibake},
	{"Une phrase correcte, déjà accentuée, et un mot abÃ®mÃ©.", "Une phrase correcte, déjà accentuée, et un mot abîmé.", Mojibake},
	{"100Â km", "100\u00a0km", Mojibake},
	{"ÄŒesko", "Česko", Mojibake},
	{"deÄŸil", "değil", Mojibake},
	{"‚Äúhi‚Äù", "“hi”", Mojibake},
	// Twice, and more.
	{"FranÃƒÂ§ois", "François", Mojibake},
	{"donÃ¢â‚¬â„¢t", "don’t", Mojibake},
	{"nÃƒÆ’Ã‚Â©", "né", Mojibake},
	{"cafeÌ\u0081", "cafe\u0301", Mojibake},
	// Other code pages.
	{"caf├⌐", "café", Mojibake},
	{"├®t├®", "été", Mojibake},
	{"don‚Äôt", "don’t", Mojibake},
	{"r√©gime", "régime", Mojibake},
	{"LiĂ¨ge", "Liège", Mojibake},
	{"РџСЂРёРІРµС‚", "Привет", Mojibake},
	{"donвЂ™t", "don’t", Mojibake},
	{"п⌡я─п╦п╡п╣я┌", "Лривет", Mojibake},
	{"╨Я╤А╨╕╨▓╨╡╤В", "Привет", Mojibake},
	{"itâĢĻs", "it’s", Mojibake},
	// A byte is lost: the rest proves what it was part of.
	{"â€œlostâ€\ufffd", "“lost\ufffd", Mojibake},
	// Bytes.
	{"caf\xe9 \x93ok\x94", "café “ok”", SingleByte},
	{"a\xffb é", "a\ufffdb é", InvalidUTF8},
	{"cut ok\xe2\x80", "cut ok", CutCharacter},
	{"caf\xc3", "caf", CutCharacter},
	{"\xed\xa0\xbd\xed\xb8\x80", "😀", Surrogate},
	{"x\xed\xa0\xbdy", "x\ufffdy", Surrogate},
	{"\u0093quoted\u0094 and 5\u0080", "“quoted” and 5€", C1Control},
	// Entities.
	{"AT&amp;T", "AT&T", Entity},
	{"cd /path &amp;&amp; uv add x", "cd /path && uv add x", Entity},
	{"a &amp;lt; b", "a &lt; b", Entity},
	{"if a &lt; b", "if a < b", Entity},
	{"it&#39;s &quot;ok&quot; &#x1F600;", `it's "ok" 😀`, Entity},
	{"caf&eacute;&hellip;", "café…", Entity},
	{"JEDNOCZE&SACUTE;NIE", "JEDNOCZEŚNIE", Entity},
	{"10Î&frac14;s", "10μs", Mojibake},
	// Control characters.
	{"a\x00b\x07c\td\fe", "abc\td\fe", Control},
	{"H\x00e\x00y\x00", "Hey", Control},
	{"x\r\r\ny\r\n", "x\r\ny\r\n", LineEnd},
	{"x\u2028y", "x\ny", LineEnd},
	{"\x1b[1;31mred\x1b[0m", "red", TerminalEscape},
	{"\u009b31mred\u009b0m", "red", TerminalEscape},
	{"\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\", "link", TerminalEscape},
	{"\x1b]0;title\atext\x1b(B", "text", TerminalEscape},
	{"\x1b[2K\x1b[1Gdone \x1b[3", "done ", TerminalEscape},
	{"N\bNA\bA _\bu", "NA u", TerminalEscape},
	{"a\ufeffb", "ab", ByteOrderMark},
	// Invisible characters.
	{"he\u200bllo", "hello", ZeroWidth},
	{"wo\u2060rd", "word", ZeroWidth},
	{"hidden\U000e0041\U000e0042 text", "hidden text", ZeroWidth},
	{"```go\nx\u200b := 1\n```\n", "```go\nx := 1\n```\n", ZeroWidth},
	{"```go\nif a\u202e {\n```\n", "```go\nif a {\n```\n", BidiControl},
	// Vocabularies.
	{"ĠHelloĊWorld", " Hello\nWorld", TokenMark},
	{"TheĠcatĠsat", "The cat sat", TokenMark},
	{"cafÃ©ĠauĠlait", "café au lait", TokenMark},
	{"▁Hello▁world", " Hello world", TokenMark},
	{"▁Hello", " Hello", TokenMark},
	{"Hello<0x0A>World", "Hello\nWorld", ByteToken},
	{"it<0xE2><0x80><0x99>s", "it’s", ByteToken},
}

// untouched are texts that are as they were written, or of which nobody can tell.
var untouched = []string{
	"été à Noël, voilà\u00a0! préféré\u00a0» é…»", "L’ÎLE «NÃO» ATENÇÃO MANHÃ” É» C O N C L U S Ã O", "IRMÃ… IRMÃ” ĐÃ… NHÃ MANHÃ’S", "Mª José, 1º año, 2²",
	"Ä Ö Ü ß… „Wort“ »Wort« ‚so‘ Straße", "Łódź „tak”… Žižkov ďábel", "ÅRSMÖTE Å, ÆØÅ…", "Việt Nam ở ĐÂU… TÂY BẮC «ĐÂY»", "ROMÂNIA ÎN „VIAȚĂ”…",
	"Η ¨ανατροφή¨ δυστυχώς «Αθήνα»", "ВІКІ МІТКА ЦІЛЬ «Їжак» Ёлка… Рік Сім її", "ПоздравЂаво Ђорђе Њујорк љубав", "Գիրք, ქართული, हिन्दी, ไทย",
	"ˈbɛtɜ ˈɪŋɡlɪʃ, ɔː, t͡ʃ", "┌──┐\n│├┤│\n└──┘ ─┤ ═╗ ╩╝ ░▒▓█", "├── src\n│   └── main.go", "▁▂▃▄▅▆▇█ 40%", "3·√2 ≈ π, √π, ∆°, 2012—∞, 5×£3, 4288×…, “×” ≤ ≥ ½",
	"日本語「テスト」、中文：你好，世界！ 한국어", "👩\u200d👩\u200d👧 👍🏽 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f ❤️ 🇩🇪", "می\u200cخواهم कर्\u200dष \u200fשלום\u200f (א) \u202bعربي\u202c",
	"( o¬ô ) `¬´ Ō¬o ¯\\_(ツ)_/¯", "Āø Zoë’s É’s SÓ… VOCÊ… MARQUÉ… NESTLÉ®", "ŉ ǆ ﬁ ｆｕｌｌ “curly” ‘quotes’ e\u0301",
	"x <b> &amp; y", "a < b &amp;&amp; c", "&amp; here & there", `say "&quot;"`, "write `&lt;` for it", "In HTML, &lt; is an entity", "escape it as &amp;", "&notit; &foo; &#0; &#x1b; & &; &#; &amp",
	"```html\nAT&amp;T\n```", "U+02C7 ˇ &#711; caron", "ĄĒĢĪĨĶ§ĻĐŠŦŽ ÝýķŻŁżĢˇ", "[x](http://a.b/?c=1&amp;d=2)", "if (a && b) c &copy", "printf(\"%d\", &x);", `re = "\x1b\[[0-9;]*m" or \u001b[0m`, `\ud83d\ude00`, "U+FFFD: \ufffd",
	"Ġgantija u Ċirkewwa f'Għawdex, ġdid ĊENTRU", "`ĠHello` and \"▁Hello\" are tokens", "the token <0x0A> is one", "std::foo<0x0A>();", "<0xE2> alone",
	"tab\tand\r\nline\f\n", "$1,234.56 – 50 % – 10 € – §5 – 20 °C – ©2020 – ®™", "C:\\new\\table \\frac{1}{2} ^[a-zà-ÿ]+$ [À-ÖØ-öø-ÿ]", "Ð and ð, Þ and þ: Íslenska Ðað", "English text with one Ä",
	"پیش\u200cفرض؟ سلام، دنیا؛ ٪۱۰", "kɔ ƒãa be ŋutɔ Ƒoƒo ɖevi", "kārtība ķēde ņem šķūnis žāvē", "Ñandú ¿Qué? ¡ÑOÑO! «ÑU»", "Crème brûlée…” – ‘naïve’",
	"fn(x){return x&&y||z<w}", "QmFzZTY0IGlzIG5vdCBtb2ppYmFrZQ==", "2024-01-02T03:04:05Z ERROR [a] µs=3 10³ ½ ×2 → ok", "| a | b |\n|---|---|\n| é | “x” |", "€5, £3, ¥7, ¢9 – ‰ † ‡ § ¶ • … ‹x› «y»", "Åland, Ångström 5 Å, Øre, ÄÖÜ, Ÿ, Æ",
	"2\u2062x + f\u2061(x)", "zero\u200b width in ไทย\u200bไทย", "soft\u00adhyphen no\u00a0break", "Ubuntu\u2122 10\u202f%", strings.Repeat("na\u00efve ", 20),
}

func TestRepair(t *testing.T) {
	for _, c := range mended {
		r := Repair([]byte(c.in), Options{})
		checkReceipt(t, []byte(c.in), r)
		switch {
		case string(r.Text) != c.want:
			t.Errorf("%q gave %q, want %q", c.in, r.Text, c.want)
		case r.Edits[0].Kind != c.kind:
			t.Errorf("%q: %s, want %s", c.in, r.Edits[0].Kind, c.kind)
		}
	}
}

func TestNothingToRepair(t *testing.T) {
	for _, text := range untouched {
		in := []byte(text)
		r := Repair(in, Options{})
		if len(r.Edits) > 0 || &r.Text[0] != &in[0] { // no copy either
			t.Errorf("%q became %q: %+v", text, r.Text, r.Edits)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		in, want string
		o        Options
	}{
		{"“x” ‘y’ „z‟", `"x" 'y' "z"`, Options{StraightQuotes: true}},
		{"ｆｕｌｌ，ｗ ｶﾅ", "full,w カナ", Options{NarrowWidth: true}},
		{"ﬁne ﬀ ǆ", "fine ff dž", Options{SplitLigatures: true}},
		{"e\u0301te\u0301 \u1100\u1161", "été 가", Options{NFC: true}},
		{"a\r\nb\rc\u2028", "a\nb\nc\n", Options{LineFeeds: true}},
		{"<b> &amp;amp; &lt;", "<b> &amp; <", Options{Entities: Always}},
		{"AT&amp;T", "AT&amp;T", Options{Entities: Never}},
		{"AT&amp;T", "AT&amp;T", Options{Kind: Code}},
		{"AT&amp;T", "AT&T", Options{Kind: Code, Entities: Always}},
		{"```\nAT&amp;T\n```", "```\nAT&T\n```", Options{Kind: Prose}},
		{"ĠHelloĊWorld", "ĠHelloĊWorld", Options{Kind: Code}},
		{"x\u200b = \u202e1", "x = 1", Options{Kind: Code}},
		{"s = \"\u202eאב\u202c 👩\u200d👧\"", "s = \"\u202eאב\u202c 👩\u200d👧\"", Options{Kind: Code}},
		{"// donâ€™t", "// don’t", Options{Kind: Code}},
		{"donâ€™t \x1b[0m", "donâ€™t ", Options{Leave: []jsonrepair.Kind{Mojibake}}},
		{"donâ€™t \x1b[0m", "don’t \x1b[0m", Options{Leave: []jsonrepair.Kind{TerminalEscape, Control}}},
		{"x\xffy\x00", "x\xffy", Options{Leave: []jsonrepair.Kind{InvalidUTF8}}},
	} {
		r := Repair([]byte(c.in), c.o)
		checkReceipt(t, []byte(c.in), r)
		if string(r.Text) != c.want {
			t.Errorf("%q with %+v gave %q, want %q", c.in, c.o, r.Text, c.want)
		}
	}
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		in     string
		kind   jsonrepair.Kind
		offset int
		length int
	}{
		{"lost \ufffd\ufffd here", ReplacementCharacter, 5, 6},
		{`see \ud83d`, EscapedText, 4, 6},
		{"<i> &amp;", Entity, 4, 5},
		{"f'Ġgantija", TokenMark, 2, 2},
		{"token <0x0A> x", ByteToken, 6, 6},
		{"a\rb", LineEnd, 1, 1},
		{"\u202eabc", BidiControl, 0, 3},
		{"x\u0081y", C1Control, 1, 2},
	} {
		r := Repair([]byte(c.in), Options{})
		if len(r.Edits) > 0 || len(r.Findings) != 1 || r.Findings[0].Kind != c.kind || r.Findings[0].Offset != c.offset || r.Findings[0].Length != c.length {
			t.Errorf("%q: %q, findings %+v, want %s at %d", c.in, r.Text, r.Findings, c.kind, c.offset)
		}
	}
}

// Entities stay from the first raw < on, as in an HTML text.
func TestEntitiesAfterMarkup(t *testing.T) {
	in := "AT&amp;T\n<p>\nAT&amp;T\n</p>"
	if got := string(Repair([]byte(in), Options{}).Text); got != "AT&T\n<p>\nAT&amp;T\n</p>" {
		t.Errorf("got %q", got)
	}
}

func TestRepairJSON(t *testing.T) {
	for _, c := range []struct {
		in, want string
		o        Options
	}{
		{`{"a":"â€œhiâ€` + "\u009d" + `"}`, `{"a":"“hi”"}`, Options{}},
		{`{"a":"â\u0080\u009chi&quot;"}`, `{"a":"“hi\""}`, Options{}},
		{`{"a":"x\ud83d","b":"\ud83d\ude00 \/"}`, `{"a":"x\ufffd","b":"\ud83d\ude00 \/"}`, Options{}},
		{`{"a":"caf\u00c3\u00a9"}`, `{"a":"caf\u00e9"}`, Options{}},
		{`{"command":"cd /path &amp;&amp; uv add x"}`, `{"command":"cd /path && uv add x"}`, Options{}},
		{`{"command":"cd /path &amp;&amp; uv add x"}`, `{"command":"cd /path &amp;&amp; uv add x"}`, Options{Kind: Code}},
		{`["a\u0000\u001b[0mb","<b>&amp;"]`, `["ab","<b>&amp;"]`, Options{}},
		{`{"donâ€™t":1}`, `{"donâ€™t":1}`, Options{}},
		{`{"donâ€™t":1}`, `{"don’t":1}`, Options{Keys: true}},
		{"{\"a\": \"Hello<0x0A>World\" }\n", "{\"a\": \"Hello\\nWorld\" }\n", Options{}},
		{`{"text":"<thinking>some analysis</thinking>rest"}`, `{"text":"<thinking>some analysis</thinking>rest"}`, Options{}},
		{`{"p":"C:\\new\\table","q":"\\ud83d"}`, `{"p":"C:\\new\\table","q":"\\ud83d"}`, Options{}},
		{`{"a":1,}`, `{"a":1,}`, Options{}},
	} {
		r := RepairJSON([]byte(c.in), c.o)
		checkReceipt(t, []byte(c.in), r)
		if string(r.Text) != c.want {
			t.Errorf("%s gave %s, want %s", c.in, r.Text, c.want)
		}
		if valid := jsonrepair.IsValid(r.Text); valid != (r.Err == nil) {
			t.Errorf("%s: valid %v, error %v", c.in, valid, r.Err)
		}
	}
}
