package code

import (
	"bytes"
	"strings"
)

// Elements of HTML that have no end, or whose end may be left out.
var (
	voidHTML     = wordSet("area base br col embed hr img input link meta param source track wbr")
	optionalHTML = wordSet("p li dt dd tr td th thead tbody tfoot option optgroup colgroup caption html head body rt rp")
	rawHTML      = wordSet("script style textarea title")
)

func markupHTML(s *scanner) { s.markup(true) }

func markupXML(s *scanner) { s.markup(false) }

// markup reads all of a text as HTML or XML.
func (s *scanner) markup(html bool) {
	open := map[string]int{} // elements of a name that are open
	for s.i < len(s.src) && len(s.problems) < maxProblems && !s.overflow {
		next := bytes.IndexByte(s.src[s.i:], '<')
		if next < 0 {
			break
		}
		s.i += next
		switch c := s.peek(1); {
		case s.at("<!--"):
			s.section("<!--", "-->", comment)
		case s.at("<![CDATA["):
			s.section("<![CDATA[", "]]>", text)
		case c == '?':
			s.section("<?", "?>", text)
		case c == '!':
			s.doctype()
		case c == '/':
			s.endTag(html, open)
		case isIdent(c) && (c < '0' || c > '9'):
			s.startTag(html, open)
		case c == 0 && s.i+1 == len(s.src):
			s.push(frame{kind: element, closer: ""}, 1)
			s.unsure = true // what was to come?
		default:
			if !html {
				s.problem(s.i, "this < begins no tag; text has &lt;")
			}
			s.i++
		}
	}
	s.i = len(s.src)
	s.forgive(html)
}

// section reads what has its own mark at the end.
func (s *scanner) section(opener, closer string, k kind) {
	s.push(frame{kind: k, closer: closer, rule: &quote{close: closer, lines: true}}, len(opener))
	end := bytes.Index(s.src[s.i:], []byte(closer))
	if end < 0 {
		s.i = len(s.src)
		return
	}
	s.i += end + len(closer)
	s.pop()
}

// doctype reads <!DOCTYPE …>, which may have a part in brackets.
func (s *scanner) doctype() {
	s.push(frame{kind: text, closer: ">", opener: "<!", rule: &quote{close: ">", lines: true}}, 2)
	for inner := false; s.i < len(s.src); s.i++ {
		switch c := s.src[s.i]; {
		case c == '[':
			inner, s.top.closer = true, "]>"
		case c == ']':
			inner, s.top.closer = false, ">"
		case c == '>' && !inner:
			s.i++
			s.pop()
			return
		}
	}
}

// tagName reads the name at the current byte.
func (s *scanner) tagName(html bool) string {
	start := s.i
	for s.i < len(s.src) && (isIdent(s.src[s.i]) || strings.IndexByte("-:.", s.src[s.i]) >= 0) {
		s.i++
	}
	name := string(s.src[start:s.i])
	if html {
		name = strings.ToLower(name)
	}
	return name
}

// startTag reads a tag with its attributes and opens its element.
func (s *scanner) startTag(html bool, open map[string]int) {
	at := s.i
	s.push(frame{kind: text, closer: ">", opener: "<", rule: &quote{close: ">", lines: true, name: "tag"}}, 1)
	name := s.tagName(html)
	empty, ok := s.attributes()
	if !ok {
		return
	}
	s.pop()
	if empty && (!html || s.top.kind != root) || html && voidHTML[name] || empty {
		return
	}
	end := s.i
	s.i = at
	s.push(frame{kind: element, opener: "<" + name + ">", closer: "</" + name + ">"}, 0)
	s.i = end
	open[name]++
	if html && rawHTML[name] {
		s.rawElement(name, open)
	}
}

// attributes reads up to the end of a tag. It returns whether it ends in />, and false
// if it does not end.
func (s *scanner) attributes() (empty, ok bool) {
	for s.i < len(s.src) {
		switch c := s.src[s.i]; {
		case c == '>':
			empty = s.src[s.i-1] == '/'
			s.i++
			return empty, true
		case (c == '"' || c == '\'') && s.src[s.i-1] == '=' || c == '"' && s.src[s.i-1] == ' ':
			s.push(frame{kind: text, closer: string(c), rule: &quote{close: string(c), lines: true}}, 1)
			end := bytes.IndexByte(s.src[s.i:], c)
			if end < 0 {
				s.i = len(s.src)
				return false, false
			}
			s.i += end + 1
			s.pop()
		case c == '<':
			s.problem(s.i, "this < is inside a tag that has not ended")
			s.pop()
			return false, false
		default:
			s.i++
		}
	}
	return false, false
}

// rawElement reads the text of an element that has no tags in it.
func (s *scanner) rawElement(name string, open map[string]int) {
	for s.i < len(s.src) {
		next := bytes.IndexByte(s.src[s.i:], '<')
		if next < 0 {
			s.i = len(s.src)
			return
		}
		s.i += next
		end := s.i + 2 + len(name)
		if s.peek(1) == '/' && end <= len(s.src) && strings.EqualFold(string(s.src[s.i+2:end]), name) {
			s.endTag(true, open)
			return
		}
		s.i++
	}
}

// endTag reads the end of an element.
func (s *scanner) endTag(html bool, open map[string]int) {
	at := s.i
	s.push(frame{kind: text, closer: ">", opener: "</", rule: &quote{close: ">", lines: true, name: "tag"}}, 2)
	name := s.tagName(html)
	end := bytes.IndexByte(s.src[s.i:], '>')
	if end < 0 {
		s.unsure = true // the rest of the name may be missing
		s.i = len(s.src)
		return
	}
	s.i += end + 1
	s.pop()
	switch {
	case open[name] == 0 && html && (name == "p" || name == "br"):
		return
	case open[name] == 0:
		s.problem(at, "nothing is open that this </"+name+"> could close")
		return
	}
	for closer := "</" + name + ">"; s.top.closer != closer; s.pop() {
		inner := strings.Trim(s.top.closer, "</>")
		open[inner]--
		if !html || !optionalHTML[inner] {
			s.problem(at, "this </"+name+"> is where "+s.top.closer+" is expected")
		}
	}
	open[name]--
	s.pop()
}

// forgive takes elements whose end may be left out for ended at the end of the text.
func (s *scanner) forgive(html bool) {
	for html && s.top.kind == element && optionalHTML[strings.Trim(s.top.closer, "</>")] {
		s.pop()
	}
}
