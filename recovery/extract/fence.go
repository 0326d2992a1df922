package extract

import (
	"bytes"
	"strings"
)

const (
	maxFenceLine = 1024 // bytes of an opening line
	maxPrefix    = 128  // bytes of list and quote marks before it
	fenceAhead   = 512  // bytes looked at to see whether a string goes on
)

// A fence is a code fence that is open.
type fence struct {
	char    byte
	n       int // fence characters
	quotes  int // block quotes it stands in
	columns int // of its indentation
	info    string

	start   bool // a line begins
	lines   int  // lines of the body so far
	lazy    bool // the body is not quoted although the opening line is
	nested  int  // fences of the same length that are open inside
	nests   bool // such fences are content
	triple  byte // of a string in triple quotes that is open
	triples bool
	stage   stage
	json    track
}

// A stage says how far the JSON in a fence has come.
type stage uint8

const (
	mayBegin stage = iota
	following
	complete
	notJSON
)

// An opener is an opening fence line.
type opener struct {
	fence
	from   int // where the fence begins
	body   int // where the body does
	closer int // of a fence that ends on the same line, where the closing one begins; else 0
	end    int // and where it ends
}

// jsonLanguages are info strings of what is JSON.
func jsonLanguage(lang string) bool {
	switch lang {
	case "json", "jsonc", "json5", "jsonl", "ndjson", "jsonlines", "geojson", "json-ld", "jsonld", "tool_code", "tool_call":
		return true
	}
	return false
}

// nests reports whether a fence of the language holds text in which fences are.
func nests(lang string) bool {
	switch lang {
	case "markdown", "md", "mdx", "gfm", "yaml", "yml":
		return true
	}
	return false
}

// triples reports whether the language has strings in three quotation marks.
func triples(lang string) bool {
	switch lang {
	case "python", "py", "python3", "java", "kotlin", "kt", "swift", "scala", "julia", "elixir", "csharp", "cs", "c#", "toml", "groovy", "dart":
		return true
	}
	return false
}

func language(info string) string {
	info = strings.TrimLeft(info, " \t{.=")
	end := strings.IndexFunc(info, func(r rune) bool {
		return r < 0x80 && !isName(byte(r)) && r != '+' && r != '#' || r == ':'
	})
	if end >= 0 {
		info = info[:end]
	}
	return strings.ToLower(info)
}

// quotesAt passes up to n marks of block quotes at i, and returns the place behind
// them and their blank, and how many there were.
func (l *look) quotesAt(i, n int) (int, int, bool) {
	for k := 0; k < n; k++ {
		r := i
		for c, ok := l.at(r); ok && (c == ' ' || c == '\t') && r < i+maxPrefix; c, ok = l.at(r) {
			r++
		}
		if !l.has(r, ">") {
			return i, k, false
		}
		i = r + 1
		if l.has(i, " ") {
			i++
		}
	}
	return i, n, true
}

// prefix passes the marks of block quotes and list items at the beginning of a
// line, and what it is indented by.
func (l *look) prefix(i int) (end, quotes, columns int, marked bool) {
	for from := i; i < from+maxPrefix; {
		c, ok := l.at(i)
		if !ok {
			break
		}
		switch {
		case c == ' ':
			i++
			columns++
		case c == '\t':
			i++
			columns += 4 - columns%4
		case c == '>':
			i++
			if l.has(i, " ") {
				i++
			}
			quotes, columns, marked = quotes+1, 0, true
		case c == '-' || c == '*' || c == '+':
			if d, ok := l.at(i + 1); !ok || d != ' ' && d != '\t' {
				return i, quotes, columns, marked
			}
			i, columns, marked = i+1, columns+1, true
		case isDigit(c):
			r := i
			for c, ok = l.at(r); ok && isDigit(c) && r < i+9; c, ok = l.at(r) {
				r++
			}
			if !ok || c != '.' && c != ')' {
				return i, quotes, columns, marked
			}
			if d, ok := l.at(r + 1); !ok || d != ' ' {
				return i, quotes, columns, marked
			}
			columns, i, marked = columns+r+1-i, r+1, true
		default:
			return i, quotes, columns, marked
		}
	}
	return i, quotes, columns, marked
}

// fenceAt reads an opening fence line at i.
func (l *look) fenceAt(i int) (o opener, ok bool) {
	r, quotes, columns, marked := l.prefix(i)
	c, _ := l.at(r)
	if l.starved || c != '`' && c != '~' {
		return o, false
	}
	n := 0
	for d, ok := l.at(r); ok && d == c && n < maxFenceLine; d, ok = l.at(r) {
		r++
		n++
	}
	if n < 3 {
		return o, false
	}
	end := r
	for d, ok := l.at(end); ok && d != '\n'; d, ok = l.at(end) {
		if end++; end-r > maxFenceLine {
			return o, false
		}
	}
	if l.starved {
		return o, false
	}
	o = opener{fence: fence{char: c, n: n, quotes: quotes, columns: columns, start: true}, from: i, body: end}
	if marked {
		o.from = r - n
	}
	if end < len(l.b) {
		o.body++
	}
	line := l.b[r:end]
	if c == '`' && bytes.IndexByte(line, '`') >= 0 {
		return o, o.oneLine(line, r)
	}
	o.info = strings.TrimSpace(string(line))
	o.bodyOnLine(line, r)
	o.language()
	return o, true
}

// underline is from how many tildes on a line below text is taken for its underline.
const underline = 5

// underlines reports whether what looks like a fence is the line below a heading, as in
// reStructuredText and plain text. above is what the line before ends with.
func (o *opener) underlines(above byte) bool {
	return o.char == '~' && o.n >= underline && above != 0 && above != ':' && (o.info == "" || o.info[0] == '<')
}

// language sets what depends on the info string.
func (o *opener) language() {
	lang := language(o.info)
	o.nests, o.triples = nests(lang), triples(lang)
	if !jsonLanguage(lang) && lang != "" {
		o.stage = notJSON
	}
}

// bodyOnLine looks for JSON that begins on the opening line, as models write it:
// ```json {
func (o *opener) bodyOnLine(line []byte, r int) {
	k := bytes.IndexAny(line, "{[")
	if k < 0 {
		return
	}
	lang := strings.TrimSpace(string(line[:k]))
	rest := bytes.TrimSpace(line[k:])
	if lang != "" && !jsonLanguage(strings.ToLower(lang)) || len(rest) > 1 && !bytes.ContainsAny(rest, `"'`) {
		return
	}
	if bytes.IndexByte(rest, '=') >= 0 && bytes.IndexByte(rest, ':') < 0 {
		return // {linenos="true"}
	}
	o.info, o.body, o.start = lang, r+k, false
}

// oneLine reads a fence that ends on its own line: ```json {"a": 1}```
func (o *opener) oneLine(line []byte, r int) bool {
	text := bytes.TrimRight(line, " \t\r")
	body := bytes.TrimRight(text, "`")
	if len(text)-len(body) < o.n || bytes.Contains(body, bytes.Repeat([]byte{'`'}, o.n)) || len(bytes.TrimSpace(body)) == 0 {
		return false
	}
	o.body, o.closer, o.end = r, r+len(body), r+len(text)
	word := 0
	for word < len(body) && (isWord(body[word]) || body[word] == '+' || body[word] == '#') {
		word++
	}
	if w := strings.ToLower(string(body[:word])); word < len(body) && (jsonLanguage(w) || nests(w) || triples(w) || w == "xml" || w == "text" || w == "bash" || w == "sh") {
		o.info, o.body = string(body[:word]), r+word
	}
	return true
}

// lineStart looks for a fence at the beginning of a line of prose, and begins it.
func (e *engine) lineStart(i int) bool {
	p := &e.prose
	o, ok := e.fenceAt(i)
	if !ok || e.starved || o.underlines(p.above) {
		return false
	}
	if p.json.active() && p.json.inString() && !e.retried(o) {
		return false
	}
	e.asProse(o.from)
	r := run{kind: Fence, part: Opening, segment: e.last.segment + 1, end: e.base + o.body, info: o.info, quotes: o.quotes, columns: o.columns, line: fenceLine{o.char, o.n}}
	e.runs, e.last = append(e.runs, r), r
	e.before, e.pos = e.b[o.body-1], o.body
	p.json.reset()
	if o.closer > 0 {
		e.commit(Fence, Body, o.closer)
		e.commit(Fence, Closing, o.end)
		e.behindFence()
		return true
	}
	stack := e.fence.json.stack
	e.fence, e.mode = o.fence, inFence
	e.fence.json.stack = stack[:0]
	return true
}

// behindFence returns to prose.
func (e *engine) behindFence() {
	e.mode = inProse
	e.prose.behind()
	e.prose.start, e.prose.indent, e.prose.fresh = false, -1, false
}

// retried reports whether a fence line inside a string of JSON begins another
// answer: JSON follows whose marks are not escaped, so the string never ended.
func (e *engine) retried(o opener) bool {
	if !jsonLanguage(language(o.info)) {
		return false
	}
	i := e.space(o.body, maxGap)
	if s, _ := e.structAt(i); s != '{' && s != '[' || e.begins(i, true) != sure {
		return false
	}
	f, _ := e.quoteAt(e.space(i+1, maxGap))
	return f != escaped && !e.starved
}

// stepFence reads the body of a fence.
func (e *engine) stepFence() {
	f := &e.fence
	i := e.pos
	for i < len(e.b) {
		if f.start {
			next, over := e.readFenceLine(i)
			if over {
				return
			}
			if e.starved {
				break
			}
			i, f.start = next, false
			f.lines++
			continue
		}
		if f.stage == notJSON && !f.triples {
			k := bytes.IndexByte(e.b[i:], '\n')
			if k < 0 {
				i = len(e.b)
				break
			}
			i, f.start = i+k+1, true
			continue
		}
		n, over := e.fenceByte(i)
		if over {
			return
		}
		if n == 0 {
			break
		}
		f.start = e.b[i+n-1] == '\n'
		i += n
	}
	e.commit(Fence, Body, i)
}

// fenceByte follows the strings in a fence. It returns how many bytes it took.
func (e *engine) fenceByte(i int) (n int, over bool) {
	f := &e.fence
	c := e.b[i]
	if f.triples {
		if (c == '"' || c == '\'') && (f.triple == 0 || f.triple == c) && e.has(i, strings.Repeat(string(c), 3)) {
			f.triple ^= c
			return 3, false
		}
		if e.starved {
			return 0, false
		}
		return 1, false
	}
	switch {
	case f.stage == following:
		n = f.json.step(&e.look, i)
		if f.json.done {
			f.stage = complete
		} else if f.json.lost {
			f.stage = notJSON
		}
		return n, false
	case isSpace(c):
		return 1, false
	}
	if s, n := e.structAt(i); s == '{' || s == '[' {
		if v := none; !jsonLanguage(language(f.info)) {
			if v = e.begins(i, true); !e.starved && v != sure {
				f.stage = notJSON
			}
		}
		if e.starved {
			return 0, false
		}
		f.json.reset()
		if f.stage != notJSON {
			f.stage = following
			f.json.structure(s)
		}
		return n, false
	}
	if e.starved {
		return 0, false
	}
	if f.stage == complete && c == f.char {
		r := i
		for d, ok := e.at(r); ok && d == c && r-i < f.n; d, ok = e.at(r) {
			r++
		}
		if e.starved {
			return 0, false
		}
		if r-i == f.n {
			e.closeFence(i, r)
			return 0, true
		}
	}
	f.stage = notJSON
	return 1, false
}

// closeFence ends the fence: its closing line goes from i to end.
func (e *engine) closeFence(i, end int) {
	e.commit(Fence, Body, i)
	e.commit(Fence, Closing, end)
	e.behindFence()
}

// breakFence ends the fence before a line that begins at i, without a closing one.
func (e *engine) breakFence(i int) {
	e.commit(Fence, Body, i)
	e.behindFence()
	e.prose.start = true
}

// readFenceLine reads the beginning of a line in a fence. It returns where its content
// begins, or true if the fence is over.
func (e *engine) readFenceLine(i int) (next int, over bool) {
	f := &e.fence
	next = i
	if f.quotes > 0 && !f.lazy {
		r, k, _ := e.quotesAt(i, f.quotes)
		switch {
		case e.starved:
			return i, false
		case k == f.quotes:
			next = r
		case f.lines == 0:
			f.lazy = true
		default:
			e.breakFence(i)
			return i, true
		}
	}
	r, columns := next, 0
	for c, ok := e.at(r); ok && (c == ' ' || c == '\t') && columns <= f.columns+3; c, ok = e.at(r) {
		r++
		columns++
	}
	from := r
	for c, ok := e.at(r); ok && c == f.char && r-from < maxFenceLine; c, ok = e.at(r) {
		r++
	}
	if e.starved || columns > f.columns+3 || r-from < f.n {
		return next, false
	}
	s := r
	for c, ok := e.at(s); ok && isBlank(c) && s < r+maxGap; c, ok = e.at(s) {
		s++
	}
	c, ok := e.at(s)
	if e.starved {
		return next, false
	}
	if !ok || c == '\n' {
		switch {
		case f.nested > 0:
			f.nested--
			return next, false
		case e.fenceInString() && e.goesOn(s) || e.starved:
			return next, false
		}
		if s > r && e.b[s-1] == '\r' {
			s--
		}
		e.closeFence(i, s)
		return i, true
	}
	return next, e.infoLine(i, r)
}

// infoLine deals with a fence line that has an info string inside a fence: its
// fence ends at r. It returns true if the outer one is over.
func (e *engine) infoLine(i, r int) bool {
	f := &e.fence
	switch {
	case f.stage == complete:
		// The closing fence was forgotten, or something follows it.
		end := r
		for c, ok := e.at(end); ok && (isName(c) || c == '+' || c == '#') && end < r+maxGap; c, ok = e.at(end) {
			end++
		}
		c, ok := e.at(end)
		switch {
		case e.starved:
			return false
		case end > r && (!ok || c == '\n' || c == '\r'):
			e.breakFence(i)
		default:
			e.closeFence(i, r)
		}
		return true
	case e.fenceInString(), f.nests, f.lines == 0 && f.info == "":
		if !e.codeSpan(r) && !e.starved {
			f.nested++
		}
	case e.sentence(r):
		e.closeFence(i, r)
		return true
	}
	return false
}

// sentence reports whether three words follow the fence line whose fence ends at r,
// behind a space: it closes the fence, and text goes on in its line.
func (e *engine) sentence(r int) bool {
	words := 0
	for end := r + maxEvidence; r < end && words < 3; r++ {
		c, ok := e.at(r)
		if !ok || c == '\n' || words == 0 && c != ' ' {
			return false
		}
		if d, _ := e.at(r + 1); c == ' ' && isLetter(d) {
			words++
		} else if c == '=' || c == '{' || c == '`' {
			return false
		}
	}
	return words == 3 && !e.starved
}

// codeSpan reports whether the fence line whose fence ends at r is inline code: a
// backtick follows in the line.
func (e *engine) codeSpan(r int) bool {
	for end := r + maxEvidence; e.fence.char == '`' && r < end; r++ {
		switch c, ok := e.at(r); {
		case !ok || c == '\n':
			return false
		case c == '`':
			return true
		}
	}
	return false
}

// fenceInString reports whether the line begins inside a string.
func (e *engine) fenceInString() bool {
	f := &e.fence
	return f.triple != 0 || f.stage == following && f.json.inString()
}

// goesOn reports whether the string that is open ends properly within what is
// looked at behind i.
func (e *engine) goesOn(i int) bool {
	f := &e.fence
	for end := i + fenceAhead; i < end; i++ {
		c, ok := e.at(i)
		if !ok {
			return false
		}
		if f.triple != 0 {
			if c == f.triple && e.has(i, strings.Repeat(string(c), 3)) {
				return true
			}
			continue
		}
		if c == '\\' && f.json.quote != escaped {
			i++
			continue
		}
		if q, n := e.quoteAt(i); n > 0 && f.json.quote.closedBy(q) {
			r := e.space(i+n, maxGap)
			s, _ := e.structAt(r)
			return s == ',' || s == ':' || s == '}' || s == ']'
		}
	}
	return false
}
