package code

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// aliases are the words behind a fence that stand for a language, besides its name.
var aliases = map[string]string{
	"golang": "go", "py": "python", "python3": "python", "py3": "python", "pyi": "python",
	"js": "javascript", "mjs": "javascript", "cjs": "javascript", "node": "javascript", "nodejs": "javascript", "jsx": "javascript", "ecmascript": "javascript",
	"ts": "typescript", "tsx": "typescript", "mts": "typescript", "cts": "typescript",
	"h": "c", "c++": "cpp", "cc": "cpp", "cxx": "cpp", "hpp": "cpp", "hxx": "cpp", "cplusplus": "cpp", "arduino": "cpp", "ino": "cpp",
	"cs": "csharp", "c#": "csharp", "dotnet": "csharp", "rs": "rust", "rb": "ruby", "php7": "php", "php8": "php",
	"sh": "shell", "bash": "shell", "zsh": "shell", "ksh": "shell", "shellscript": "shell",
	"postgres": "sql", "postgresql": "sql", "pgsql": "sql", "plpgsql": "sql", "mysql": "sql/mysql", "mariadb": "sql/mysql", "sqlite": "sql", "tsql": "sql",
	"htm": "html", "xhtml": "xml", "svg": "xml", "xsd": "xml", "xsl": "xml", "xslt": "xml", "rss": "xml", "plist": "xml",
	"less": "scss", "sass": "", "kt": "kotlin", "kts": "kotlin", "pl": "perl", "pm": "perl", "rlang": "r", "hs": "haskell",
	"docker": "dockerfile", "containerfile": "dockerfile", "make": "makefile", "mk": "makefile",
	"yml": "yaml", "json5": "jsonc", "jsonl": "", "ndjson": "", "geojson": "json", "webmanifest": "json",
}

// canonical returns the name of the language that a word stands for, empty if none is
// known.
func canonical(word string) string {
	word = strings.ToLower(strings.Trim(strings.TrimSpace(word), "{}."))
	if name, ok := aliases[word]; ok {
		return name
	}
	if languages[word] != nil {
		return word
	}
	return ""
}

// evidence are signs that a text is in a language and in no other. They are looked
// for in the first lines.
var evidence = []struct {
	language string
	sign     *regexp.Regexp
}{
	{"php", regexp.MustCompile(`^\s*<\?php\b`)},
	{"xml", regexp.MustCompile(`^\s*<\?xml\b`)},
	{"html", regexp.MustCompile(`(?i)^\s*<!doctype html|^\s*<html\b`)},
	{"xml", regexp.MustCompile(`^\s*<svg\b[^>]*xmlns=`)},
	{"go", regexp.MustCompile(`(?m)^package [a-zA-Z_]\w*\s*(//.*)?$(?s:.*)^(import (\(|"|\w+ ")|func |type \w+ |var |const |// )`)},
	{"go", regexp.MustCompile(`(?m)^func (\([^)\n]*\) )?\w+(\[[^\]\n]*\])?\([^\n]*\) ?[^\n;=:>]*\{$`)},
	{"rust", regexp.MustCompile(`(?m)^\s*(pub(\([a-z]+\))? )?(async |unsafe |const )*fn \w+(<[^\n]*>)?\([^\n]*\)( -> [^\n{]+)? ?(\{|where)|^use (std|crate|super)::|^#!?\[(derive|allow|cfg)\(`)},
	{"cpp", regexp.MustCompile(`(?m)^#include <(iostream|vector|string|map|memory|algorithm|unordered_map|set|functional|optional|utility)>|^using namespace std;|^\s*template ?<(typename|class) `)},
	{"c", regexp.MustCompile(`(?m)^#include [<"][\w/]+\.h[>"]`)},
	{"csharp", regexp.MustCompile(`(?m)^using System(\.[\w.]+)?;|^namespace [\w.]+;?\s*$(?s:.*)\b(public|internal) (static |sealed |abstract |partial )*(class|record|interface|struct) `)},
	{"java", regexp.MustCompile(`(?m)^import (static )?java[x]?\.[\w.*]+;|\bpublic static void main\(String`)},
	{"kotlin", regexp.MustCompile(`(?m)^(\w+ )*fun (<[^>\n]+> )?[\w.]+\([^\n]*\)(: [\w<>?, ]+)? (\{|=)|^\s*data class \w+\(`)},
	{"swift", regexp.MustCompile(`(?m)^import (Foundation|SwiftUI|UIKit|Combine)$|^\s*(\w+ )*func \w+\([^\n]*\)( (async )?(throws )?-> [^\n{]+)? \{$(?s:.*)\b(let|guard|var) `)},
	{"python", regexp.MustCompile(`(?m)^\s*(async )?def \w+\([^\n]*\)( ?-> ?[^\n:]+)?:\s*(#.*)?$|^from [\w.]+ import (\(|\*|\w)|^if __name__ == ['"]__main__['"]:|^class \w+(\([\w., =]*\))?:\s*$`)},
	{"typescript", regexp.MustCompile(`(?m)^(export )?interface \w+(<[^\n]*>)? (extends [^\n]+ )?\{$|^(export )?type \w+(<[^\n]*>)? = |^import type |\b(const|let) \w+: (string|number|boolean|\w+\[\])\b`)},
	{"javascript", regexp.MustCompile(`(?m)^import [^\n;]+ from ['"][^'"\n]+['"];?$|^(export )?(default )?(async )?function\*? ?\w*\([^\n]*\) \{|\b(const|let|var) (\w+|\{[^}\n]*\}|\[[^\]\n]*\]) = (require\(|await |async |\(|function\b|new )|\bconsole\.log\(|^export (default|const|class) `)},
	{"ruby", regexp.MustCompile(`(?m)^require(_relative)? ['"][\w/.-]+['"]$|^\s*attr_(reader|accessor|writer) :`)},
	{"sql", regexp.MustCompile(`(?im)^\s*(select\s[^;{}]*\sfrom\s+\S|insert into \S+|create (or replace )?(temp |temporary |unique )?(table|view|index|function|database|schema)\b|update \S+ set |delete from \S|alter table |with \w+ as \()`)},
	{"dockerfile", regexp.MustCompile(`(?m)^FROM [\w./:@${}-]+( AS \w+)?$(?s:.*)^(RUN|CMD|COPY|WORKDIR|ENTRYPOINT|ENV|EXPOSE|ADD) `)},
}

// shebangs are the interpreters of scripts.
var shebangs = map[string]string{
	"sh": "shell", "bash": "shell", "zsh": "shell", "ksh": "shell", "dash": "shell", "ash": "shell", "python": "python", "python3": "python", "python2": "python",
	"node": "javascript", "deno": "typescript", "ruby": "ruby", "perl": "perl", "php": "php", "lua": "lua", "Rscript": "r", "runhaskell": "haskell", "make": "makefile",
}

// looked is how much of a text evidence is looked for in, in bytes.
const looked = 4 << 10

// Detect names the language of code: by info, the text behind the opening of its
// fence, or by clear evidence in the code itself. It returns the empty string if info
// names something else, or there is no such evidence.
func Detect(src []byte, info string) string {
	if fields := strings.FieldsFunc(info, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == ':' }); len(fields) > 0 {
		return canonical(fields[0])
	}
	head := src[:min(len(src), looked)]
	if bytes.HasPrefix(head, []byte("#!")) {
		line, _, _ := bytes.Cut(head, []byte("\n"))
		for _, word := range strings.FieldsFunc(string(line[2:]), func(r rune) bool { return r == ' ' || r == '/' || r == '\r' }) {
			if name := shebangs[strings.TrimRight(word, ".0123456789")]; name != "" {
				return name
			}
			if name := shebangs[word]; name != "" {
				return name
			}
		}
		return ""
	}
	if c := bytes.TrimLeft(src, " \t\r\n"); len(c) > 0 && (c[0] == '{' || c[0] == '[') && jsonrepair.Check(src, 10_000) == nil {
		return "json"
	}
	head = behindComments(src)
	head = head[:min(len(head), looked)]
	for _, e := range evidence {
		if e.sign.Match(head) {
			return e.language
		}
	}
	return ""
}

// behindComments returns src without the comments that it begins with.
func behindComments(src []byte) []byte {
	for {
		src = bytes.TrimLeft(src, " \t\r\n")
		end := -1
		switch {
		case bytes.HasPrefix(src, []byte("//")):
			end = bytes.IndexByte(src, '\n')
		case bytes.HasPrefix(src, []byte("/*")):
			if end = bytes.Index(src, []byte("*/")); end >= 0 {
				end++
			}
		}
		if end < 0 {
			return src
		}
		src = src[end+1:]
	}
}
