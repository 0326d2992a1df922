// Package jsontest makes valid JSON documents for tests: random ones whose
// strings hold what the text of language models holds, so that whoever takes a
// string's content for syntax is found out.
//
// Every document is valid by RFC 8259 and is valid UTF-8. It has one style of
// white space, from none to random, and may have duplicate keys, empty
// containers, deep nesting, a scalar at the root, numbers that no float64 holds
// (1E400, -0, 1.10, integers of 40 digits) and escapes of every kind, lone
// surrogates among them. The same seed gives the same document everywhere.
package jsontest

import "math/bits"

// A Generator makes documents. It is not for several goroutines at once.
type Generator struct {
	state uint64 // of splitmix64
	dst   []byte
	style style
}

// New returns a generator. Its documents depend on seed alone.
func New(seed uint64) *Generator {
	g := new(Generator)
	g.Reset(seed)
	return g
}

// Reset puts the generator where New(seed) is, and keeps its memory. A test
// that resets to the number of each document can name a failing one.
func (g *Generator) Reset(seed uint64) {
	// Mixed, or the numbers of neighboring seeds would be one sequence.
	g.state = seed
	g.state = g.next()
}

// Document makes the first document that New(seed) would make.
func Document(seed uint64, size int) []byte { return New(seed).Append(nil, size) }

// Append appends a document of about size bytes to dst and returns the whole.
// With size 0 the size is drawn: most are below 1,000 bytes, one in twenty goes up
// to 16 KB.
func (g *Generator) Append(dst []byte, size int) []byte {
	start := len(dst)
	g.dst = dst
	g.style = g.drawStyle()
	if size <= 0 {
		size = g.drawSize()
	}
	g.white(g.style.lead)
	if g.one(12) {
		g.scalar(size)
	} else {
		g.value(size, 0, true)
	}
	g.white(g.style.trail)
	dst, g.dst = g.dst, nil
	if len(dst) == start { // not reached: a value has a byte
		panic("jsontest: empty document")
	}
	return dst
}

func (g *Generator) drawSize() int {
	if g.style.deep || g.one(100) {
		return g.log(16 << 10)
	}
	return g.log(1_000)
}

// next is splitmix64.
func (g *Generator) next() uint64 {
	g.state += 0x9e3779b97f4a7c15
	z := g.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (g *Generator) below(n int) int {
	hi, _ := bits.Mul64(g.next(), uint64(n))
	return int(hi)
}

// one is true once in n times.
func (g *Generator) one(n int) bool { return g.below(n) == 0 }

// log returns a number from 1 to n, small ones as often as large ones.
func (g *Generator) log(n int) int {
	if n <= 1 {
		return 1
	}
	top := 1 << g.below(bits.Len(uint(n)))
	return min(n, top+g.below(top))
}

func (g *Generator) pick(from []string) string { return from[g.below(len(from))] }

func (g *Generator) put(s string) { g.dst = append(g.dst, s...) }

// value appends a value of about size bytes. A large one is a container, unless
// any will do.
func (g *Generator) value(size, depth int, container bool) {
	if depth >= g.style.maxDepth || size < 2 || !container && g.below(10) < 4 {
		g.scalar(size)
		return
	}
	if g.one(2) {
		g.object(size, depth)
	} else {
		g.array(size, depth)
	}
}

// share returns how much of what is left the next member takes, and whether it
// must be a container.
func (g *Generator) share(left int) (size int, container bool) {
	if g.style.deep && !g.one(4) {
		return left, true
	}
	size = g.log(left)
	return size, size > 400
}

func (g *Generator) object(size, depth int) {
	start := len(g.dst)
	g.put("{")
	if size < 8 || size < 200 && g.one(12) {
		g.put(g.pick(blanks))
		g.put("}")
		return
	}
	first, key := true, [2]int{} // where an earlier key is
	size -= g.lineSize(depth)
	for left := size - 2; first || left > 4; left = size - (len(g.dst) - start) - 2 {
		g.separate(first, depth+1)
		first = false
		from := len(g.dst)
		if key[1] > 0 && g.one(20) {
			g.dst = append(g.dst, g.dst[key[0]:key[1]]...)
		} else {
			g.key()
		}
		if g.one(2) {
			key = [2]int{from, len(g.dst)}
		}
		g.white(g.style.beforeColon)
		g.put(":")
		g.white(g.style.afterColon)
		share, container := g.share(max(1, left-(len(g.dst)-from)))
		g.value(share, depth+1, container)
	}
	g.line(depth)
	g.put("}")
}

func (g *Generator) array(size, depth int) {
	start := len(g.dst)
	g.put("[")
	if size < 3 || size < 200 && g.one(12) {
		g.put(g.pick(blanks))
		g.put("]")
		return
	}
	first := true
	size -= g.lineSize(depth)
	for left := size - 2; first || left > 2; left = size - (len(g.dst) - start) - 2 {
		g.separate(first, depth+1)
		first = false
		share, container := g.share(max(1, left))
		g.value(share, depth+1, container)
	}
	g.line(depth)
	g.put("]")
}

// scalar appends a scalar; only a string can be large.
func (g *Generator) scalar(size int) {
	switch n := g.below(20); {
	case size > 40 || n < 11:
		g.text(size)
	case n < 16:
		g.number()
	default:
		g.put(g.pick(literals))
	}
}

func (g *Generator) number() {
	switch g.below(4) {
	case 0:
		g.put(g.pick(oddNumbers))
	case 1:
		g.integer(3)
	case 2:
		g.integer(18)
	default:
		if g.one(2) {
			g.put("-")
		}
		g.integer(6)
		g.put(".")
		for range 1 + g.below(9) {
			g.dst = append(g.dst, byte('0'+g.below(10)))
		}
	}
}

// integer appends one of at most the given number of digits.
func (g *Generator) integer(digits int) {
	g.dst = append(g.dst, byte('1'+g.below(9)))
	for range g.below(digits) {
		g.dst = append(g.dst, byte('0'+g.below(10)))
	}
}
