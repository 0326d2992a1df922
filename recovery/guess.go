package recovery

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unfray/unfray/recovery/extract"
)

const (
	// proseAround is how many bytes of prose may be around JSON for an answer of no
	// told form to be taken for JSON, unless the JSON ends and is eight times as long.
	proseAround = 240
	// maxUndecided is how many bytes behind a bracket are looked at to tell by them
	// whether JSON begins.
	maxUndecided = 256
)

// guess decides whether an answer whose form was not told is JSON: where it begins
// with it, or holds one place of it and little else.
func (a *attempt) guess(found []extract.Candidate) Form {
	text := trimBlank(bytes.TrimSpace(a.text))
	if len(text) == 0 {
		return Text
	}
	var places []extract.Candidate
	for _, c := range found {
		if !c.Placeholder && !c.Doubtful && !c.Inside && c.Type != extract.Scalar && c.Where != extract.InCode {
			places = append(places, c)
		}
	}
	if text[0] == '{' || text[0] == '[' {
		if likeJSON(text) != no && !a.goesOnAsSentence(found) {
			return JSON
		}
		return Text
	}
	if a.breaksOffInFence() {
		return JSON
	}
	if len(places) != 1 {
		return Text
	}
	c := places[0]
	if a.o.cut() && c.Closed && len(bytes.Trim(a.text[c.End:], "`~ \t\r\n")) > 0 {
		return Text // it goes on, and breaks off
	}
	for _, s := range extract.Segments(a.text, a.o.answerOnly()) {
		if s.Kind == extract.Fence && (s.End <= c.Start || s.Start >= c.End) {
			return Text // other code beside it
		}
	}
	around := len(text) - (c.End - c.Start)
	most := proseAround
	if c.Closed {
		most = max(most, (c.End-c.Start)/8)
	}
	is := len(a.o.Tools) == 0 && around <= most && a.onItsOwn(c) && !isMark(c.Text) && !a.amongMembers(c)
	if c.Where == extract.InFence {
		is = around <= 3*max(proseAround, c.End-c.Start) && a.fillsFence(c)
	}
	if is {
		return JSON
	}
	return Text
}

// breaksOffInFence reports whether all of an answer is a fence of JSON that never ends.
func (a *attempt) breaksOffInFence() bool {
	s := extract.Segments(a.text, a.o.answerOnly())
	if len(s) != 1 || s[0].Kind != extract.Fence || s[0].Closed || !strings.EqualFold(s[0].Info, "json") {
		return false
	}
	body := trimBlank(a.text[s[0].BodyStart:s[0].BodyEnd])
	return len(body) > 0 && (body[0] == '{' || body[0] == '[') && likeJSON(body) != no
}

// goesOnAsSentence reports whether the JSON that an answer begins with is the
// beginning of a sentence, a citation, or the mark of a line: [1] Smith.
func (a *attempt) goesOnAsSentence(found []extract.Candidate) bool {
	start := bytes.IndexAny(a.text, "{[")
	for _, c := range found {
		if c.Start != start || !c.Closed {
			continue
		}
		rest := bytes.TrimLeft(a.text[c.End:], " \t")
		if len(rest) == 0 {
			return false
		}
		r, _ := utf8.DecodeRune(rest)
		if isMark(c.Text) {
			return r != '\n' && r != '\r' && !bytes.ContainsRune([]byte("`<,:]};."), r) && (r != '{' || a.text[start] == '[')
		}
		return unicode.IsLower(r) && len(rest) < len(a.text)-c.End || r == '(' && a.text[start] == '['
	}
	return false
}

// isMark reports whether JSON is what prose has in brackets too: an empty list or
// object, a list of one number, or of one string in a line.
func isMark(text []byte) bool {
	in := bytes.TrimSpace(text[1:max(1, len(text)-1)])
	switch {
	case len(in) == 0:
		return true
	case text[0] != '[':
		return false
	}
	return !bytes.ContainsAny(in, ",{[\n:")
}

// member is a line of YAML.
var member = regexp.MustCompile(`(?m)^[ \t]*(?:- )?[A-Za-z_][\w.-]*:(?:[ \t]|\r?$)`)

// section is a line that names the file below it.
var section = regexp.MustCompile(`(?m)^-- \S+ --\r?$`)

// amongMembers reports whether JSON stands among the members of a YAML document, or of an
// archive of files: it is a part of it.
func (a *attempt) amongMembers(c extract.Candidate) bool {
	line := bytes.LastIndexByte(a.text[:c.Start], '\n') + 1
	if section.Match(a.text[:line]) {
		return true
	}
	n := len(member.FindAll(a.text[:line], 2)) + len(member.FindAll(a.text[c.End:], 2))
	return n > 1 || n == 1 && member.Match(a.text[line:c.Start])
}

// fillsFence reports whether JSON is all that its fence holds.
func (a *attempt) fillsFence(c extract.Candidate) bool {
	for _, s := range extract.Segments(a.text, a.o.answerOnly()) {
		if s.Kind == extract.Fence && s.Start <= c.Start && c.End <= s.End {
			return len(bytes.TrimSpace(s.Body(a.text))) <= len(c.Text)
		}
	}
	return false
}

// onItsOwn reports whether JSON in prose has its lines for itself, or follows a colon:
// it is not a part of a sentence.
func (a *attempt) onItsOwn(c extract.Candidate) bool {
	before := bytes.TrimRight(a.text[:c.Start], " \t*_")
	behind := bytes.TrimLeft(a.text[c.End:], " \t")
	begins := len(before) == 0 || before[len(before)-1] == '\n' || before[len(before)-1] == ':' || before[len(before)-1] == '>'
	ends := len(behind) == 0 || behind[0] == '\n' || behind[0] == '\r' || behind[0] == '<'
	return begins && ends
}

// answer is yes, no, or undecided until more has come.
type answer int

const (
	undecided answer = iota
	yes
	no
)

func answered(is bool) answer {
	if is {
		return yes
	}
	return no
}

// likeJSON says whether a text that begins with a bracket goes on as JSON does, and not
// as Markdown, a template, a table of TOML, a citation or the time in a log.
func likeJSON(text []byte) answer {
	if len(text) < maxUndecided {
		return likeValue(text)
	}
	text = text[:maxUndecided]
	if like := likeValue(text); like != undecided {
		return like
	}
	return answered(len(bytes.Trim(text, "{[ \t\r\n")) == 0)
}

func likeValue(text []byte) answer {
	rest := trimBlank(text[1:])
	switch {
	case !utf8.FullRune(rest), escapes(rest): // the first: none, too
		return undecided
	case text[0] == '{':
		return likeMembers(rest)
	}
	switch c := rest[0]; {
	case c == '{' || c == '[':
		return likeValue(rest)
	case c == ']':
		return nothingBehind(rest[1:])
	case isQuote(rest):
		return yes
	case opensLate(rest):
		return yes
	case c == '-' || c >= '0' && c <= '9':
		return likeItem(rest, "-+.eE0123456789_")
	}
	for _, word := range []string{"true", "false", "null", "True", "False", "None", "NaN", "undefined"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			return likeItem(rest[len(word)-1:], word[len(word)-1:])
		}
		if bytes.HasPrefix([]byte(word), rest) {
			return undecided
		}
	}
	return no
}

// escapes reports whether all of a text may be the beginning of an escaped quotation mark.
func escapes(text []byte) bool {
	if bytes.HasPrefix([]byte("&quot;"), text) {
		return len(text) < len("&quot;")
	}
	return len(text) < maxUndecided && len(bytes.Trim(text, `\nrt `)) == 0 && text[0] == '\\' && !isQuote(text)
}

// likeMembers says whether what follows a brace is the key of a member, or a comment.
func likeMembers(rest []byte) answer {
	switch c := rest[0]; {
	case isQuote(rest):
		return yes
	case c == '}':
		return nothingBehind(rest[1:])
	case c == '{':
		inner := bytes.TrimLeft(rest[1:], " \t\r\n")
		if len(inner) == 0 {
			return undecided
		}
		return answered(isQuote(inner)) // {{"a": 1}}, braces as for a template
	case c == '/':
		if len(rest) == 1 {
			return undecided
		}
		return answered(rest[1] == '/' || rest[1] == '*')
	}
	key := bytes.TrimLeftFunc(rest, func(r rune) bool {
		return r == '_' || r == '$' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
	})
	if len(key) > 0 && len(key) < len(rest) && isQuote(key) {
		key = bytes.TrimLeft(key, `\"'`) // the mark that opens it was forgotten
	}
	behind := bytes.TrimLeft(key, " \t\r\n")
	switch {
	case len(behind) == 0:
		return undecided
	case len(key) == len(rest) || behind[0] != ':':
		return no
	case len(behind) == 1:
		return undecided
	}
	return answered(behind[1] != '=' && behind[1] != ':')
}

// likeItem says whether a number or a word in a list is followed by what may follow an
// item of JSON. Behind a list of one nothing may stand in its line: that is a mark.
func likeItem(rest []byte, of string) answer {
	item := bytes.TrimLeft(rest, of)
	behind := bytes.TrimLeft(item, " \t\r\n")
	switch {
	case len(behind) == 0:
		return undecided
	case behind[0] == ']':
		return nothingBehind(behind[1:])
	case behind[0] == ',':
		return yes
	}
	// A comma may have been forgotten at the end of a line.
	return answered(bytes.IndexByte(item[:len(item)-len(behind)], '\n') >= 0)
}

// nothingBehind says whether behind a list or an object a line ends, or a fence, or JSON
// goes on.
func nothingBehind(rest []byte) answer {
	rest = bytes.TrimLeft(rest, " \t")
	if len(rest) == 0 {
		return undecided
	}
	return answered(bytes.IndexByte([]byte("\n\r`<,]};.{"), rest[0]) >= 0)
}

// opensLate reports whether a word is followed by the mark that closes a string, since the
// one that opens it was forgotten: red", "blue"
func opensLate(rest []byte) bool {
	behind := bytes.TrimLeftFunc(rest, func(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) })
	if len(behind) < 2 || len(behind) == len(rest) || behind[0] != '"' {
		return false
	}
	behind = bytes.TrimLeft(behind[1:], " ")
	return len(behind) > 0 && (behind[0] == ',' || behind[0] == ']')
}

// trimBlank cuts white space of all kinds off the beginning, and a byte order mark.
func trimBlank(text []byte) []byte {
	return bytes.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' })
}

// isQuote reports whether a text begins with a quotation mark, or with one that was
// escaped once too often.
func isQuote(text []byte) bool {
	for len(text) > 1 && text[0] == '\\' && bytes.IndexByte([]byte("nrt"), text[1]) >= 0 {
		text = bytes.TrimLeft(text[2:], " ")
	}
	text = bytes.TrimPrefix(text, []byte("\\"))
	if bytes.HasPrefix(text, []byte("&quot;")) {
		return true
	}
	r, _ := utf8.DecodeRune(text)
	switch r {
	case '"', '\'', '“', '”', '„', '‘', '’', '«', '＂':
		return true
	}
	return false
}
