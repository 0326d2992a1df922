package jsontest

// style is how a document is set.
type style struct {
	lead, trail, beforeColon, afterColon string
	comma                                string // white space behind a comma
	newline                              string // between members; "": none
	indent                               string // for each level
	random                               bool   // white space of any kind at any place
	maxDepth                             int
	deep                                 bool // most members are containers
}

// blanks are what an empty container holds.
var blanks = []string{"", "", "", " ", "\n", "\t \r\n"}

var whites = []string{"", "", "", " ", " ", "\n", "\t", "\r\n", "  ", " \n\t ", "\n\n\n", "                    "}

var indents = []string{"  ", "  ", "    ", "\t", " ", ""}

func (g *Generator) drawStyle() style {
	s := style{maxDepth: 8}
	switch g.below(8) {
	case 0, 1: // compact
	case 2, 3: // on one line, as Python's json.dumps
		s.afterColon, s.comma = " ", " "
	case 4, 5:
		s.afterColon, s.newline, s.indent = " ", "\n", g.pick(indents)
	case 6:
		s.beforeColon, s.afterColon, s.newline, s.indent = g.pick([]string{"", " "}), " ", "\r\n", g.pick(indents)
	default:
		s.random = true
	}
	if g.one(4) {
		s.lead, s.trail = g.pick(whites), g.pick(whites)
	}
	if g.one(2) {
		s.trail = "\n"
	}
	switch {
	case g.one(200):
		s.maxDepth, s.deep = 2000, true
	case g.one(20):
		s.maxDepth, s.deep = 70, true
	}
	return s
}

// white appends white space that the style has at this place.
func (g *Generator) white(s string) {
	if g.style.random {
		s = g.pick(whites)
	}
	g.put(s)
}

// separate appends what stands before a member.
func (g *Generator) separate(first bool, depth int) {
	if !first {
		if g.style.random {
			g.put(g.pick(whites))
		}
		g.put(",")
		g.put(g.style.comma)
	}
	g.line(depth)
}

// line begins a line, where the style has lines.
func (g *Generator) line(depth int) {
	if g.style.random {
		g.put(g.pick(whites))
		return
	}
	if g.style.newline == "" {
		return
	}
	g.put(g.style.newline)
	for range min(depth, maxIndent) {
		g.put(g.style.indent)
	}
}

// maxIndent keeps deep documents from being mostly white space.
const maxIndent = 16

// lineSize is how many bytes line appends, where they are not drawn.
func (g *Generator) lineSize(depth int) int {
	return len(g.style.newline) + min(depth, maxIndent)*len(g.style.indent)
}
