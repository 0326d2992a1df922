package extract

// An evidence is how sure it is that JSON begins at a bracket.
type evidence uint8

const (
	none  evidence = iota
	empty          // {} or []
	weak           // an array of numbers, or what only stands at the beginning of a line
	sure           // a key and a colon, or an element and what follows one
)

// maxEvidence is how far behind a bracket is looked, in bytes.
const maxEvidence = 256

// begins says whether JSON begins at the bracket at i. The first key with its
// colon or the first element with what follows is looked at. loose lets more pass:
// it is for places where prose has no brackets.
func (l *look) begins(i int, loose bool) evidence {
	end := i + maxEvidence
	for depth := 0; ; depth++ {
		s, n := l.structAt(i)
		i = l.comments(i+n, end)
		c, ok := l.at(i)
		if !ok || i >= end {
			return cut(loose)
		}
		next, m := l.structAt(i)
		switch {
		case m > 0 && next == s+2 && depth == 0:
			return empty
		case m > 0 && next == s+2:
			return weak // [[]] or [{}
		case s == '{':
			return l.key(i, end, loose)
		case next == '[' && depth < 8, next == '{':
			continue
		}
		return l.element(i, end, c, loose)
	}
}

// cut is the evidence of what ends before there is any.
func cut(loose bool) evidence {
	if loose {
		return weak
	}
	return none
}

// comments returns the first place from i on that holds neither white space nor a
// comment. A comma that leads a container is passed too.
func (l *look) comments(i, end int) int {
	for {
		i = l.space(i, end-i)
		switch {
		case i >= end:
			return i
		case l.has(i, "//"):
			for c, ok := l.at(i); ok && c != '\n' && i < end; c, ok = l.at(i) {
				i++
			}
		case l.has(i, "/*"):
			from := i
			for c, ok := l.at(i); c != '*' || !l.has(i+1, "/") || i < from+2; c, ok = l.at(i) {
				if i++; !ok || i >= end {
					return i
				}
			}
			i += 2
		case l.has(i, ","):
			i++
		default:
			return i
		}
	}
}

// key says whether the key of an object stands at i.
func (l *look) key(i, end int, loose bool) evidence {
	f, n := l.quoteAt(i)
	if n > 0 {
		r, ok := l.quoted(i, end)
		if !ok {
			if _, more := l.at(r); !more || r >= end {
				return cut(loose || f == straight)
			}
			return none
		}
		r = l.space(r, maxGap)
		c, ok := l.at(r)
		s, _ := l.structAt(r)
		switch {
		case !ok:
			return cut(loose || f == straight)
		case s == ':', c == '=':
			return sure
		case loose && (s == ',' || s == '}' || s == '{' || s == '[' || c == '"' || isDigit(c)):
			return weak
		}
		return none
	}
	from := i
	for c, ok := l.at(i); i < end && ok && (isWord(c) || c == '-' && i > from); c, ok = l.at(i) {
		i++
	}
	if i == from || isDigit(l.b[from]) {
		return none
	}
	i = l.space(i, maxGap)
	if s, n := l.structAt(i); s != ':' {
		_, ok := l.at(i)
		return cut(loose && !ok)
	} else {
		i += n
	}
	if l.has(i, ":") || l.has(i, "//") {
		return none
	}
	if loose {
		return sure
	}
	return l.value(l.space(i, maxGap))
}

// value says whether a JSON value stands at i, behind a key without quotes.
func (l *look) value(i int) evidence {
	c, ok := l.at(i)
	_, q := l.quoteAt(i)
	if s, n := l.structAt(i); !ok || q > 0 || n > 0 && (s == '{' || s == '[') || isDigit(c) || c == '-' {
		return sure
	}
	for _, w := range []string{"true", "false", "null", "none", "undefined"} {
		if l.hasFold(i, w) {
			return sure
		}
	}
	return none
}

// quoted returns the place behind the string that begins at i, or where it was
// given up and false.
func (l *look) quoted(i, end int) (int, bool) {
	q, n := l.quoteAt(i)
	for i += n; i < end; i++ {
		c, ok := l.at(i)
		if !ok || c == '\n' {
			return i, false
		}
		if f, n := l.quoteAt(i); n > 0 && q.closedBy(f) {
			return i + n, true
		}
		if c == '\\' {
			i++
		}
	}
	return i, false
}

// element says whether the first element of an array stands at i.
func (l *look) element(i, end int, c byte, loose bool) evidence {
	if _, n := l.quoteAt(i); n > 0 {
		r, ok := l.quoted(i, end)
		if !ok {
			if _, more := l.at(r); !more || r >= end {
				return cut(loose)
			}
			return none
		}
		r = l.space(r, maxGap)
		s, _ := l.structAt(r)
		c, ok := l.at(r)
		switch {
		case s == ',' || s == ']':
			return sure
		case !ok, loose && (c == '"' || isWord(c)):
			return cut(loose)
		}
		return none
	}
	if !isWord(c) && c != '-' && c != '+' && c != '.' {
		return none
	}
	from := i
	for c, ok := l.at(i); i < end && ok && (isWord(c) || c == '-' || c == '+' || c == '.'); c, ok = l.at(i) {
		i++
	}
	if l.starved || !isNumber(l.b[from:i]) && !isLiteral(l.b[from:i]) {
		return none
	}
	i = l.space(i, maxGap)
	switch s, _ := l.structAt(i); {
	case s == ',':
		return weak
	case s == ']':
		return cut(loose)
	}
	_, ok := l.at(i)
	return cut(loose && !ok)
}

// isNumber reports whether b looks like a number, which need not be valid JSON.
func isNumber(b []byte) bool {
	digits := 0
	for i, c := range b {
		switch {
		case isDigit(c):
			digits++
		case c == '.', (c == '-' || c == '+') && i == 0, digits > 0 && (c == 'e' || c == 'E' || c == '-' || c == '+' || c == '_'):
		default:
			return false
		}
	}
	return digits > 0
}

// isLiteral reports whether b is a literal of JSON, Python or JavaScript.
func isLiteral(b []byte) bool {
	switch string(b) {
	case "true", "false", "null", "True", "False", "None", "undefined", "NaN", "Infinity":
		return true
	}
	return false
}
