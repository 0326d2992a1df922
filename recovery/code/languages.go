package code

import (
	"maps"
	"slices"
	"strings"
)

// A language is a set of lexical rules.
type language struct {
	name          string
	lineComments  []string
	blockComments []block
	quotes        []quote // what begins with the same bytes: the longest first
	brackets      string
	operators     map[string]bool // words that a value follows
	variant       string          // other rules that a text may follow as well

	regex             bool // regular expressions between slashes
	jsx               bool // markup may stand where a value does
	wordComments      bool // a comment begins at the beginning of a word only
	continuedComments bool // a backslash continues a comment on the next line
	primes            bool // names may have a '
	digitMarks        bool // numbers may have a '
	longCharacters    bool // character literals may have several characters
	ticks             bool // a ' may be something else than a character
	escapes           bool // a backslash takes away the meaning of what follows in code
	longEnds          bool // """a"""" ends in a quote
	shell             bool // $( and ` begin code in strings
	plainCode         bool // ${ in strings is an expansion of a shell

	begin      func(*scanner)                                         // at the beginning
	end        func(*scanner)                                         // at the end
	hook       func(*scanner) bool                                    // in code, before the rules; true: it has read something
	line       func(s *scanner, continued bool)                       // at the end of a line in code
	prefix     func(s *scanner, word string) (*quote, int)            // of a string behind a word; with its length from the word on
	words      func(s *scanner, word string, start int, command bool) // behind a word
	stray      func(s *scanner, c byte) bool                          // at a closing bracket that closes nothing; true: it has read it
	notComment func(*scanner) bool                                    // at a mark of a comment: it is none
}

// block is a rule for comments that have an end.
type block struct {
	open, close string
	nested      bool
}

var (
	slashes   = []string{"//"}
	hashes    = []string{"#"}
	stars     = []block{{"/*", "*/", false}}
	nestStars = []block{{"/*", "*/", true}}

	doubled   = quote{open: `"`, close: `"`, escape: '\\'}
	single    = quote{open: "'", close: "'", escape: '\\'}
	character = quote{open: "'", close: "'", escape: '\\', character: true, name: "character"}
	tripled   = quote{open: `"""`, close: `"""`, escape: '\\', lines: true}
)

const brackets = "()[]{}"

var jsOperators = wordSet("return typeof case in of delete void throw new do else instanceof yield await default extends")

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// coded is a string with code in it.
func coded(q quote, code, end string) quote {
	q.code, q.codeEnd = code, end
	return q
}

func overLines(q quote) quote {
	q.lines = true
	return q
}

func verbatim(mark string) quote { return quote{open: mark, close: mark} }

// twice is a string in which the mark is written twice.
func twice(mark string) quote { return quote{open: mark, close: mark, double: true, lines: true} }

var languages map[string]*language

func init() {
	languages = map[string]*language{}
	for _, group := range [][]*language{cFamily(), scripts(), data()} {
		for _, l := range group {
			languages[l.name] = l
		}
	}
}

// Languages returns the names of the languages that are known, sorted.
func Languages() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(languages)), func(name string) bool { return strings.Contains(name, "/") })
}

func cFamily() []*language {
	template := overLines(coded(quote{open: "`", close: "`", escape: '\\'}, "${", "}"))
	script := language{
		lineComments: slashes, blockComments: stars, brackets: brackets, regex: true, jsx: true, operators: jsOperators,
		quotes: []quote{doubled, single, template},
	}
	js, ts := script, script
	js.name, ts.name = "javascript", "typescript"
	c := language{
		name: "c", lineComments: slashes, blockComments: stars, brackets: brackets, quotes: []quote{doubled, character},
		longCharacters: true, digitMarks: true, continuedComments: true, hook: directive, end: endDirectives, prefix: rawCPP,
	}
	cpp := c
	cpp.name = "cpp"
	return []*language{
		&js, &ts, &c, &cpp,
		{name: "go", lineComments: slashes, blockComments: stars, brackets: brackets, quotes: []quote{doubled, overLines(verbatim("`")), character}},
		{name: "java", lineComments: slashes, blockComments: stars, brackets: brackets, quotes: []quote{tripled, doubled, character}},
		{name: "csharp", lineComments: slashes, blockComments: stars, brackets: brackets, hook: cSharp, end: endDirectives, quotes: []quote{doubled, character}},
		{name: "rust", lineComments: slashes, blockComments: nestStars, brackets: brackets, ticks: true, prefix: rawRust, quotes: []quote{overLines(doubled), character}},
		{name: "kotlin", lineComments: slashes, blockComments: nestStars, brackets: brackets, longEnds: true,
			quotes: []quote{coded(overLines(verbatim(`"""`)), "${", "}"), coded(doubled, "${", "}"), character}},
		{name: "swift", lineComments: slashes, blockComments: nestStars, brackets: brackets, hook: rawSwift,
			quotes: []quote{coded(tripled, `\(`, ")"), coded(doubled, `\(`, ")")}},
		{name: "dart", lineComments: slashes, blockComments: nestStars, brackets: brackets, prefix: rawDart, quotes: dartQuotes(false)},
		{name: "scala", lineComments: slashes, blockComments: nestStars, brackets: brackets, ticks: true, longEnds: true, prefix: codedScala,
			quotes: []quote{overLines(verbatim(`"""`)), doubled, character}},
		{name: "css", blockComments: stars, brackets: brackets, hook: cssURL, quotes: []quote{doubled, single}},
		{name: "scss", lineComments: slashes, blockComments: stars, brackets: brackets, hook: cssURL, quotes: []quote{doubled, single}},
	}
}

func scripts() []*language {
	ruby := coded(overLines(doubled), "#{", "}")
	tick := ruby
	tick.open, tick.close = "`", "`"
	shellText := overLines(coded(doubled, "${", "}"))
	return []*language{
		{name: "python", lineComments: hashes, brackets: brackets, prefix: prefixPython, line: linePython, begin: beginPython, end: endPython, quotes: pythonQuotes(false), words: headPython, hook: sigPython},
		{name: "ruby", lineComments: hashes, brackets: brackets, regex: true, hook: hookRuby, words: wordsRuby, escapes: true,
			operators: wordSet("return if unless while until and or not when in then do else elsif puts p print raise yield"),
			quotes:    []quote{ruby, overLines(single), tick}},
		{name: "php", lineComments: []string{"//", "#"}, blockComments: stars, brackets: brackets, begin: beginPHP, hook: hookPHP, notComment: notPHPComment,
			quotes: []quote{coded(overLines(doubled), "{$", "}"), overLines(single), {open: "`", close: "`", escape: '\\', lines: true}}},
		{name: "shell", lineComments: hashes, wordComments: true, brackets: "(){}", escapes: true, shell: true, plainCode: true, hook: hookShell, words: wordsShell, stray: strayShell,
			quotes: []quote{{open: "$'", close: "'", escape: '\\', lines: true}, shellText, overLines(verbatim("'"))}},
		{name: "perl", lineComments: hashes, brackets: brackets, regex: true, hook: hookPerl, begin: beginPerl, escapes: true,
			operators: wordSet("return if unless while until and or not split grep map join x lt gt le ge eq ne cmp push unshift print"),
			quotes:    []quote{overLines(doubled), overLines(single), {open: "`", close: "`", escape: '\\', lines: true}}},
		{name: "lua", brackets: brackets, lineComments: []string{"--"}, hook: longLua, words: wordsLua, quotes: []quote{doubled, single}},
		{name: "r", lineComments: hashes, brackets: brackets, prefix: rawR, quotes: []quote{overLines(doubled), overLines(single), verbatim("`")}},
		{name: "haskell", lineComments: []string{"--"}, blockComments: []block{{"{-", "-}", true}}, brackets: brackets, ticks: true, primes: true,
			notComment: operatorHaskell, quotes: []quote{doubled, character}},
		{name: "sql", lineComments: []string{"--"}, blockComments: stars, brackets: "()[]", hook: dollarSQL, variant: "sql/mysql", quotes: []quote{twice("'"), twice(`"`), twice("`")}},
		{name: "sql/mysql", lineComments: []string{"--", "#"}, blockComments: stars, brackets: "()",
			quotes: []quote{{open: "'", close: "'", escape: '\\', double: true, lines: true}, {open: `"`, close: `"`, escape: '\\', double: true, lines: true}, twice("`")}},
		{name: "dockerfile", hook: hookDocker},
		{name: "makefile", hook: hookMake, stray: strayMake, brackets: "(){}"},
	}
}

func data() []*language {
	return []*language{
		{name: "json", brackets: "[]{}", quotes: []quote{doubled}},
		{name: "jsonc", brackets: "[]{}", lineComments: slashes, blockComments: stars, quotes: []quote{doubled, single}},
		{name: "toml", brackets: "[]{}", lineComments: hashes, longEnds: true,
			quotes: []quote{tripled, overLines(verbatim("'''")), doubled, verbatim("'")}},
		{name: "yaml", brackets: "[]{}", lineComments: hashes, wordComments: true, hook: hookYAML, quotes: []quote{overLines(doubled), twice("'")}},
		{name: "html", begin: markupHTML},
		{name: "xml", begin: markupXML},
	}
}
