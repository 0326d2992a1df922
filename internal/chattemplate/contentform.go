package chattemplate

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// takesParts reports whether a template, cut into pieces, goes over the parts of a
// message's content. If not, it wants the content as a string.
//
// It asks what vLLM asks of the template's syntax tree (vLLM 0.32.0,
// renderers/hf.py: _detect_content_format): is there a loop over the content of a
// message, where messages are the variables of loops over "messages" or a name that
// was set to it; or over "content"; or in a macro over a parameter that is given the
// content of a message.
func takesParts(list []piece) bool {
	d := readForm(list)
	d.messageNames()
	return !d.odd && d.contentLoop()
}

// form is what takesParts looks at.
type form struct {
	sets, loops []assignment
	macros      map[string][]*macro
	calls       []words // by tag
	messages    []string
	// odd says that vLLM's search ends in an error, such as at a loop over messages
	// with two variables. Content is a string then.
	odd bool
}

// An assignment is a loop or a tag "set": what a name is given.
type assignment struct {
	target, value words
	within        *macro // nil: none
}

type macro struct {
	outer  *macro
	params []string
	given  map[string]bool // parameters that are the content of a message somewhere
}

func readForm(list []piece) *form {
	f := &form{macros: map[string][]*macro{}}
	var within *macro
	for _, p := range list {
		if p.tag.source == "" || p.tag.source[1] == '#' {
			continue
		}
		w := wordsOf(p.tag.inside())
		name := p.tag.name()
		if name != "" && len(w) > 0 {
			w = w[1:]
		}
		switch name {
		case "macro":
			within = &macro{outer: within, given: map[string]bool{}}
			if len(w) > 1 {
				within.takes(w.arguments(1))
				f.macros[w[0]] = append(f.macros[w[0]], within)
				w = w[1:]
			}
		case "endmacro":
			if within != nil {
				within = within.outer
			}
		case "for":
			if in := w.index("in"); in > 0 {
				value := w[in+1:]
				for _, end := range []string{"if", "recursive"} {
					if i := value.index(end); i >= 0 {
						value = value[:i]
					}
				}
				f.loops = append(f.loops, assignment{w[:in], value, within})
			}
		case "set":
			if is := w.index("="); is > 0 {
				f.sets = append(f.sets, assignment{w[:is], w[is+1:], within})
			}
		}
		f.calls = append(f.calls, w)
	}
	return f
}

func (m *macro) takes(params []words) {
	for _, p := range params {
		if len(p) > 0 {
			m.params = append(m.params, p[0])
		}
	}
}

// messageNames finds the variables that are a message.
func (f *form) messageNames() {
	lists := []string{"messages"}
	for i := 0; i < len(lists); i++ {
		for _, s := range f.sets {
			if !s.value.isAccess(lists[i], "") {
				continue
			}
			if len(s.target) != 1 {
				f.odd = true
			} else if !slices.Contains(lists, s.target[0]) {
				lists = append(lists, s.target[0])
			}
		}
	}
	for _, l := range f.loops {
		if !slices.ContainsFunc(lists, func(name string) bool { return l.value.isAccess(name, "") }) {
			continue
		}
		if len(l.target) != 1 {
			f.odd = true
		} else if !slices.Contains(f.messages, l.target[0]) {
			f.messages = append(f.messages, l.target[0])
		}
	}
}

// isContent reports whether an expression is the content of a message.
func (f *form) isContent(w words) bool {
	return slices.ContainsFunc(f.messages, func(name string) bool { return w.isAccess(name, "content") })
}

// contentLoop reports whether the first loop over content has one variable.
func (f *form) contentLoop() bool {
	for _, w := range f.calls {
		f.calledIn(w)
	}
	for _, l := range f.loops {
		if f.overContent(&l) {
			return len(l.target) == 1
		}
	}
	return false
}

// calledIn finds the calls of macros in a tag, and which parameters they give the
// content of a message.
func (f *form) calledIn(w words) {
	depth := 0
	for i := 0; i+1 < len(w); i++ {
		depth += nesting(w[i])
		if w[i+1] != "(" || depth > maxNesting || i > 0 && (w[i-1] == "." || w[i-1] == "|" || w[i-1] == "is") {
			continue
		}
		macros := f.macros[w[i]]
		if len(macros) == 0 {
			continue
		}
		for n, arg := range w.arguments(i + 1) {
			name := ""
			if len(arg) > 1 && arg[1] == "=" {
				name, arg = arg[0], arg[2:]
			}
			if f.isContent(arg) {
				give(macros, n, name)
			}
		}
	}
}

// give says that a parameter, by its name or if that is "" by its place, is the
// content of a message.
func give(macros []*macro, place int, name string) {
	for _, m := range macros {
		switch {
		case name == "" && place < len(m.params):
			m.given[m.params[place]] = true
		case name != "" && slices.Contains(m.params, name):
			m.given[name] = true
		}
	}
}

func (f *form) overContent(l *assignment) bool {
	if f.isContent(l.value) {
		return true
	}
	over := l.value.unwrapped()
	if len(over) != 1 {
		return false
	}
	if l.within == nil {
		return over[0] == "content"
	}
	for m := l.within; m != nil; m = m.outer {
		if len(m.given) > 0 {
			return m.given[over[0]]
		}
	}
	return false
}

// words are the names, literals and signs of an expression.
type words []string

func wordsOf(s string) (w words) {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case unicode.IsSpace(r):
			s = s[n:]
			continue
		case r == '\'' || r == '"':
			n = stringLen(s)
		case isNameRune(r):
			if n = strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) }); n < 0 {
				n = len(s)
			}
		case len(s) > 1 && (s[1] == '=' && strings.IndexByte("=!<>", s[0]) >= 0 || s[:2] == "**" || s[:2] == "//"):
			n = 2
		}
		w = append(w, s[:n])
		s = s[n:]
	}
	return w
}

func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func isName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isNameRune(r) && !unicode.IsDigit(r)
}

// index finds a word outside all brackets, -1 if there is none.
func (w words) index(word string) int {
	depth := 0
	for i, s := range w {
		if depth == 0 && s == word {
			return i
		}
		depth += nesting(s)
	}
	return -1
}

func nesting(s string) int {
	switch s {
	case "(", "[", "{":
		return 1
	case ")", "]", "}":
		return -1
	}
	return 0
}

// closing returns the number of the word that closes the bracket w[open]; the
// number of words if none does.
func (w words) closing(open int) int {
	depth := 0
	for i := open; i < len(w); i++ {
		if depth += nesting(w[i]); depth == 0 {
			return i
		}
	}
	return len(w)
}

// arguments cuts what stands in the brackets that w[open] opens at its commas.
func (w words) arguments(open int) (args []words) {
	if nesting(w[open]) <= 0 {
		return nil
	}
	rest := w[open+1 : w.closing(open)]
	for len(rest) > 0 {
		i := rest.index(",")
		if i < 0 {
			return append(args, rest)
		}
		args, rest = append(args, rest[:i]), rest[i+1:]
	}
	return args
}

// maxNesting is how many brackets deep expressions are looked at, so that the time
// stays linear in their length.
const maxNesting = 20

// unwrapped returns w without brackets around all of it.
func (w words) unwrapped() words {
	for depth := 0; depth < maxNesting && len(w) > 1 && w[0] == "(" && w.closing(0) == len(w)-1; depth++ {
		w = w[1 : len(w)-1]
	}
	return w
}

// isAccess reports whether an expression is the variable, or its member key if
// key is not "", or a slice of it, or has a filter or a test behind it.
func (w words) isAccess(variable, key string) bool { return w.isAccessAt(variable, key, 0) }

func (w words) isAccessAt(variable, key string, depth int) bool {
	w = w.unwrapped()
	rest := words(nil)
	switch {
	case len(w) == 0 || depth > maxNesting:
		return false
	case w[0] == "(":
		end := w.closing(0)
		if end == len(w) || !w[:end+1].isAccessAt(variable, key, depth+1) {
			return false
		}
		rest = w[end+1:]
	case w[0] != variable:
		return false
	case key == "":
		rest = w[1:]
	case len(w) > 2 && w[1] == "." && w[2] == key:
		rest = w[3:]
	case len(w) > 3 && w[1] == "[" && (w[2] == "'"+key+"'" || w[2] == `"`+key+`"`) && w[3] == "]":
		rest = w[4:]
	default:
		return false
	}
	for len(rest) > 0 {
		n := rest.suffix()
		if n == 0 {
			return false
		}
		rest = rest[n:]
	}
	return true
}

// suffix returns of how many words a slice, filter or test is that w begins with.
func (w words) suffix() int {
	switch {
	case w[0] == "[":
		end := w.closing(0)
		if end < len(w) && w[1:end].index(":") >= 0 {
			return end + 1
		}
	case len(w) > 1 && w[0] == "|" && isName(w[1]), len(w) > 1 && w[0] == "is" && isName(w[1]) && w[1] != "not":
		if len(w) > 2 && w[2] == "(" {
			if end := w.closing(2); end < len(w) {
				return end + 1
			}
			return 0
		}
		return 2
	}
	return 0
}
