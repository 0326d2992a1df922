package jsontest

// names are keys.
var names = []string{
	"", "a", "b", "id", "name", "text", "content", "role", "items", "tool_calls", "arguments", "function", "type", "value",
	"created_at", "score", "is-open", "$ref", "@id", "x.y", "0", "true", "null", "message", "description", "path", "query",
	"properties", "required", "名前", "clé", "🔑", "with space", "finish_reason", "metadata", "code", "data", "language",
}

var literals = []string{"true", "false", "null"}

var oddNumbers = []string{
	"0", "-0", "0.0", "-0.0", "1.10", "1.0", "100", "1E400", "-1e-400", "1e5", "1E+5", "0e0", "0E-0", "1.5e+300",
	"9007199254740993", "-9223372036854775808", "18446744073709551616", "1234567890123456789012345678901234567890",
	"0.1000000000000000055511151231257827", "3.14159", "-1", "1.7976931348623157e308", "5e-324", "20240131", "0.30",
}

// words are what stands between frays.
var words = []string{
	"the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "on", "be", "at", "by", "this", "have",
	"from", "or", "had", "not", "but", "what", "all", "were", "when", "we", "there", "can", "an", "your", "which", "their",
	"said", "if", "do", "will", "each", "about", "how", "up", "out", "them", "then", "she", "many", "some", "so", "these",
	"would", "other", "into", "has", "more", "two", "like", "him", "see", "time", "could", "no", "make", "than", "first",
	"been", "its", "who", "now", "people", "my", "made", "over", "did", "down", "only", "way", "find", "use", "may", "water",
	"long", "little", "very", "after", "called", "just", "where", "most", "know", "function", "return", "Hello", "error",
	"naïve", "café", "Straße", "año", "мир", "данные", "数据", "日本語", "テスト", "한국어", "नमस्ते", "ข้อความ", "שלום", "مرحبا",
	"don't", "e.g.", "U.S.", "42", "3.5", "100%", "$5", "C++", "2024-01-31", "12:30",
}

// frays are what is taken for syntax by those who do not know that they are
// inside a string.
var frays = []string{
	// Brackets, quotes and separators, alone and in wrong order.
	"{", "}", "[", "]", "(", ")", "{}", "[]", "}{", "][", "]}", "}]", "x{", "see [", "[\"", "\"]", "{\"", "\"}", "\"", "\"\"", "\"\"\"",
	"'", "''", "'''", "`", ",", ":", ";", "=", "=>", "->", "\",", "\":", "\", \"", "\": \"", "\"},{\"", "\",\n", ",\n\"", ", ]", ", }", ",,",
	"say \"hi\", ok", "\"quoted\"", "a \"b\": c", "\"x\", \"y\": 1", "'single', 'more'", "function f() {", "if (x) { return y[0]; }",
	"...", "…", "[...]", "{…}", "...]", "+", "\" + \"", "-", "--",
	// JSON, whole, broken, and twice encoded.
	`{"a": 1}`, `[1, 2, 3]`, `{"a": [1, 2`, `{"key": "value", "n": null}`, `"key": "value",`, `{'a': 'b'}`, `{a: 1}`, `{"a": "b\"c"}`,
	`{\"a\": \"b\"}`, `{\\\"a\\\": 1}`, `{"name": "f", "arguments": "{\"x\": 1}"}`, `[{"a":1},{"a":2}]`, `{"a":1}{"b":2}`, "{\"a\":1}\n{\"b\":2}",
	`,"k":`, `":{"`, `null}`, `true,`, `0]`, `1e`, `-`, `1.`, `.5`, `+1`, `0x1F`, `tru`, `nul`,
	// Literals of other languages.
	"None", "True", "False", "undefined", "NaN", "Infinity", "-Infinity", "nil", "null", "true", "false", "TRUE", "NULL",
	`ObjectId("65a1")`, `ISODate("2024-01-31T00:00:00Z")`, `NumberLong(1)`, "callback({", "});", "callback([1]);", "/re\\d+/g",
	// Comments.
	"//", "// comment", "/*", "*/", "/* x */", "#", "# heading", "## x\n", "--", "<!--", "-->", "<!-- x -->", "https://example.com/a//b?x=1&y=[2]#z",
	`see "//x" , y`, "a // b\nc", "/**\n * doc\n */", "http://", "file:///C:/x",
	// Fences, tags and streams.
	"```", "```json", "```json\n{\"a\": 1}\n```", "```js", "```\n", "\n```", "~~~", "```go\nx := `y`\n```", "- item```js\n:\n", "`code`", "`{`",
	"<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", "<br>", "<a href=\"x\">y</a>", "</script>", "data: {\"x\":1}\n\n", "data: [DONE]", "[DONE]",
	"Here is the JSON:", "**bold**", "| a | b |\n|---|---|", "- one\n- two", "1. x\n2. y", "---\nkey: value\n---", "%{x}", "{{x}}", "${x}", "{%- if x %}", "<%= x %>", "[INST]",
	// Backslashes.
	`\`, `\\`, `\\\`, `\"`, `\\"`, `\n`, `\\n`, `\t`, `\u0041`, `\uD83D`, `\x41`, `\'`, `\frac{1}{2}`, `$\beta \times \theta$`, `\begin{array}`, `C:\new\table\users`,
	`C:\Users\name\`, `\\server\share`, `\d+\.\w*`, `^[^"\\]*$`, `"\`, `\}`, `\]`, `\,`, `\:`, `a\b`, "\\\n",
	// Entities, look-alikes and broken encodings.
	"&quot;", "&amp;", "&lt;b&gt;", "&#34;", "&#x22;", "&amp;quot;", "&nbsp;", "AT&T", "%22", "%7B%22a%22%3A1%7D", "“”", "“quoted”", "‘’", "„", "«»", "‹›", "′", "″", "＂", "＇", "「」", "『』",
	"：", "，", "；", "｛", "｝", "［", "］", "（", "）", "、", "。", "＝", "：1，", "｛＂a＂：1｝", "Ã©", "â€œ", "â€™", "ï»¿", "\ufffd", "\ufeff", "\u200b", "\u200e", "\u2028", "\u2029", "\u00a0", "\u3000", "\u0085", "\u00ad",
	"∶", "‚", "،", "٫", "−", "⁄", "１２", "①", "𝟙", "ﬁ",
	// Pictures, marks that join, control characters, white space.
	"😀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "👍🏽", "❤️", "e\u0301", "a\u0308\u0323", "\U0010ffff", "\uffff", "\x00", "\x01", "\x1b[31m", "\x7f", "\b", "\f", "\v", "\n", "\r\n", "\r", "\t", "\n\n", " ", "  ", "\t\t", "    ",
	"line one\nline two", "tab\there", "a\x00b", "\n\t\"x\": 1,\n", "\n}", "\n]", "}\n", "]\n", "\n{", "\n,",
	// Long runs.
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", `""""""""""""""""`, `\\\\\\\\\\\\\\\\`, "{{{{{{{{{{{{{{{{", "[[[[[[[[[[[[[[[[", "}}}}}}}}}}}}}}}}", "]]]]]]]]]]]]]]]]", "``````````", ",,,,,,,,,,,,,,,,", "----------------",
	"eyJhIjogMSwgImIiOiBbMSwgMl19", "deadbeefdeadbeefdeadbeefdeadbeef", "=====", "==", "????",
}

// escapes are pieces as they stand in a document: escapes that nobody has to
// write.
var escapes = []string{
	`\u0022`, `\u005C`, `\u005c\u0022`, `\u0041`, `\u002F`, `\/`, `\u0000`, `\u001f`, `\u007F`, `\u00e9`, `\u00E9`, `\uFEFF`, `\u2028`,
	`\uD83D\uDE00`, `\ud83d\ude00`, `\uDBFF\uDFFF`, `\uD800`, `\uDC00`, `\ud83dx`, `\uD83D\n`, `\uD83D\u0041`, `\uDE00\uD83D`, `\uD83D\\uDE00`,
	`\b`, `\f`, `\n`, `\r`, `\t`, `\"`, `\\`, `\\\"`, `\\\\\"`, `\\n`, `\"\"\"`, `\u007b`, `\u005B\u005d`, `\u002c`, `\u003A`, `\uFF1A`, `\uffff`,
}
