package jsonrepair

import "bytes"

// maxFast is the most bytes that are taken at once.
const maxFast = 64 << 10

// stretch is a stretch of strict JSON that is gone through without a look at each
// byte in turn. Of each token it is certain that the other steps of the engine
// would read it in the same way: a string ends where what follows may follow it,
// an opener stands before a member or an element, and so on. What the stretch
// does not show to be so is left to those steps.
type stretch struct {
	e     *engine
	b     []byte // the input, by index
	ops   [32]op
	n     int // ops that have not been done
	depth int // of open containers once they are
	top   frame
}

// op is what a token does to the open containers.
type op struct {
	kind     opKind
	from, to int
}

type opKind uint8

const (
	opKey     opKind = iota // begins a member; its text is from..to
	opElement               // begins an element
	opObject                // opens at from
	opArray
	opClose
)

// fast takes a stretch behind a value or an opener and reports whether it took
// anything.
func (e *engine) fast() bool {
	if e.stack.n < 1 || e.noFast || e.o.layout || len(e.plan) > 0 {
		return false
	}
	s := stretch{e: e, b: e.in, depth: e.stack.n, top: e.stack.at(0)}
	from := e.pos - e.base
	i, behind := from, e.state == objAfter || e.state == arrAfter
	for s.top <= object && i-from < maxFast {
		c, j := skipSpace(s.b, i)
		if c == s.top.closer() {
			if !s.close() {
				break
			}
			i, behind = j+1, true
			continue
		}
		if behind {
			if c != ',' {
				break
			}
			c, j = skipSpace(s.b, j+1)
		}
		next := op{kind: opElement}
		if s.top == object {
			if next, j = s.member(c, j); j < 0 {
				break
			}
			if c, j = skipSpace(s.b, j); j-i > e.window/2 {
				break
			}
		} else if !s.element(c, j) {
			break
		}
		// All before it is as it seems.
		s.commit(i, behind)
		s.add(next)
		if i, behind = s.value(c, j); i < 0 {
			break
		}
	}
	return e.pos > from+e.base
}

func (s *stretch) add(o op) bool {
	if s.n == len(s.ops) {
		return false
	}
	s.ops[s.n] = o
	s.n++
	return true
}

// close takes a closer, which is not that of the document.
func (s *stretch) close() bool {
	if s.depth == 1 || !s.add(op{kind: opClose}) {
		return false
	}
	s.depth--
	// The containers that were open before, less those that closed, or one that
	// was opened since.
	opened := 0
	for k := s.n - 1; k >= 0; k-- {
		switch s.ops[k].kind {
		case opClose:
			opened--
		case opObject, opArray:
			if opened++; opened > 0 {
				s.top = array
				if s.ops[k].kind == opObject {
					s.top = object
				}
				return true
			}
		}
	}
	s.top = s.e.stack.at(-opened)
	return true
}

// member returns a key that stands at j, and the index behind its colon, or -1.
func (s *stretch) member(c byte, j int) (op, int) {
	if c != '"' {
		return op{}, -1
	}
	end := skipString(s.b, j+1)
	if end < 0 || end-j > s.e.window/2 || suspect(s.b[j+1:end-1]) {
		return op{}, -1
	}
	if c, k := skipSpace(s.b, end); c == ':' {
		return op{opKey, j + 1, end - 1}, k + 1
	}
	return op{}, -1
}

// element reports whether an element begins at j.
func (s *stretch) element(c byte, j int) bool {
	switch c {
	case '{', '[':
		return true
	case '"':
		end := skipString(s.b, j+1)
		if end < 0 {
			return false
		}
		c, _ := skipSpace(s.b, end)
		return c == ',' || c == ']'
	}
	end := s.scalar(c, j)
	if end < 0 {
		return false
	}
	c, _ = skipSpace(s.b, end)
	return c == ',' || c == ']'
}

// scalar returns the index behind a number or literal, or -1.
func (s *stretch) scalar(c byte, j int) int {
	switch {
	case c >= '0' && c <= '9' || c == '-':
		return skipNumber(s.b, j)
	case c == 't' || c == 'f' || c == 'n':
		return skipLiteral(s.b, j)
	}
	return -1
}

// value takes a value and returns the index behind it, or behind its opener, or
// -1; behind is for a whole value.
func (s *stretch) value(c byte, j int) (i int, behind bool) {
	switch c {
	case '"':
		end := skipString(s.b, j+1)
		if end < 0 || suspect(s.b[j+1:end-1]) {
			return -1, false
		}
		return end, true
	case '{', '[':
		o := op{kind: opArray, from: j}
		s.top = array
		if c == '{' {
			o.kind, s.top = opObject, object
		}
		if !s.add(o) {
			return -1, false
		}
		s.depth++
		return j + 1, false
	}
	end := s.scalar(c, j)
	if end < 0 {
		return -1, false
	}
	if c, _ := skipSpace(s.b, end); c != ',' && c != '}' && c != ']' {
		return -1, false
	}
	return end, true
}

// suspect reports whether the content of a string holds escapes that are to be
// looked at: those that may be LaTeX or part of a path, and surrogates.
func suspect(content []byte) bool {
	i := bytes.IndexByte(content, '\\')
	if i < 0 {
		return false
	}
	spaces := false // \n, \r or \t has come, and there is no dollar sign
	for ; i+1 < len(content); i++ {
		if content[i] != '\\' {
			continue
		}
		i++
		switch content[i] {
		case 'b', 'f':
			return true
		case 'n', 'r', 't':
			if !spaces && (content[1] == ':' || bytes.IndexByte(content, '$') >= 0) {
				return true
			}
			spaces = true
		case 'u':
			if content[i+1]|0x20 == 'd' && content[i+2] >= '8' {
				return true
			}
		}
	}
	return false
}

// commit does what has been gathered and commits the input before i, which is
// behind a value or an opener.
func (s *stretch) commit(i int, behind bool) {
	e := s.e
	for _, o := range s.ops[:s.n] {
		switch o.kind {
		case opKey:
			if l := e.level(); l != nil {
				l.key = append(l.key[:0], s.b[o.from:o.to]...)
			}
		case opElement:
			if l := e.level(); l != nil {
				l.index++
			}
		case opObject:
			e.push(object, o.from+e.base)
		case opArray:
			e.push(array, o.from+e.base)
		case opClose:
			e.pop()
		}
	}
	s.n = 0
	p := i + e.base
	if p == e.pos {
		return
	}
	e.flush(p)
	e.pos = p
	st := e.after()
	if !behind {
		st = arrStart
		if s.top == object {
			st = objStart
		}
	}
	e.endValue(st, p)
}
