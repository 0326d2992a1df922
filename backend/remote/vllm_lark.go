package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// maxGrammar bounds the source of a grammar, in bytes. vLLM compiles a set of
// 32,000 tokens, which has 100 KB, in 50 ms.
const maxGrammar = 4 << 20

// maxReplayBytes bounds the pending bytes of a replay that goes by bytes: it has
// a rule for each.
const maxReplayBytes = 64 << 10

// tokenTree holds the sequences of tokens that a replay may consist of.
type tokenTree struct{ nodes []tokenNode }

// tokenNode says what may come after the tokens that lead to it.
type tokenNode struct {
	next []tokenEdge // by token, each once
	last []vocab.ID  // tokens that end the replay, ascending
}

type tokenEdge struct {
	token vocab.ID
	node  int
}

// newTokenTree says as a tree what is left of a replay.
func newTokenTree(r *replay) (*tokenTree, error) {
	if r.free {
		return bytesTree(r.pending, r.v)
	}
	return waysTree(r.ways, r.v)
}

func waysTree(ways []backend.Way, v *vocab.Vocab) (*tokenTree, error) {
	t := &tokenTree{nodes: make([]tokenNode, 1)}
	for _, w := range ways {
		for _, id := range slices.Concat(w.Path, w.Last) {
			if !v.Valid(id) {
				return nil, &backend.InvalidTokenError{ID: id, Position: -1, VocabSize: v.Len()}
			}
		}
		path, last := w.Path, w.Last
		if len(w.Rest) == 0 {
			if len(path) == 0 {
				continue
			}
			path, last = path[:len(path)-1], path[len(path)-1:]
		}
		if len(last) == 0 {
			continue // it leads nowhere
		}
		n := 0
		for _, id := range path {
			n = t.child(n, id)
		}
		t.nodes[n].last = append(t.nodes[n].last, last...)
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		slices.Sort(n.last)
		n.last = slices.Compact(n.last)
	}
	if len(t.nodes[0].next) == 0 && len(t.nodes[0].last) == 0 {
		return nil, errNoWay
	}
	return t, nil
}

// errNoWay says that no tokens produce the pending bytes.
var errNoWay = &backend.UnsupportedError{Param: "prompt", Text: "no token of the vocabulary can produce the prompt's last bytes again"}

// child returns the node after a token, a new one if there is none.
func (t *tokenTree) child(n int, id vocab.ID) int {
	at, ok := slices.BinarySearchFunc(t.nodes[n].next, id, func(e tokenEdge, id vocab.ID) int { return cmp.Compare(e.token, id) })
	if !ok {
		t.nodes[n].next = slices.Insert(t.nodes[n].next, at, tokenEdge{id, len(t.nodes)})
		t.nodes = append(t.nodes, tokenNode{})
	}
	return t.nodes[n].next[at].node
}

// bytesTree allows all tokens that produce the pending bytes, but no
// end-of-generation tokens. It is a tree with shared branches: node i stands
// before byte i.
func bytesTree(pending []byte, v *vocab.Vocab) (*tokenTree, error) {
	if len(pending) > maxReplayBytes {
		return nil, &backend.UnsupportedError{Param: "prompt", Text: fmt.Sprintf("a replay of more than %d bytes cannot be stated", maxReplayBytes)}
	}
	t := &tokenTree{nodes: make([]tokenNode, len(pending))}
	for i := len(pending) - 1; i >= 0; i-- {
		rest, n := pending[i:], &t.nodes[i]
		for _, id := range v.Sorted(v.PrefixRange(rest)) {
			if !v.IsEOG(id) {
				n.last = append(n.last, id)
			}
		}
		for _, id := range v.AppendPrefixes(nil, rest) {
			if to := i + len(v.Bytes(id)); to < len(pending) && t.nodes[to].alive() && !v.IsEOG(id) {
				n.next = append(n.next, tokenEdge{id, to})
			}
		}
		slices.SortFunc(n.next, func(a, b tokenEdge) int { return cmp.Compare(a.token, b.token) })
		slices.Sort(n.last)
		n.next, n.last = slices.Compact(n.next), slices.Compact(n.last)
	}
	if !t.nodes[0].alive() {
		return nil, errNoWay
	}
	return t, nil
}

func (n *tokenNode) alive() bool { return len(n.next) > 0 || len(n.last) > 0 }

// depth is how many tokens the longest sequence has.
func (t *tokenTree) depth() int {
	// Edges lead to nodes of higher numbers only, in both kinds of trees.
	depth := make([]int, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		depth[i] = 1
		for _, e := range t.nodes[i].next {
			depth[i] = max(depth[i], 1+depth[e.node])
		}
	}
	return depth[0]
}

// widest is how many tokens the largest choice has.
func (t *tokenTree) widest() int {
	n := 0
	for i := range t.nodes {
		n = max(n, len(t.nodes[i].next)+len(t.nodes[i].last))
	}
	return n
}

// lark writes the tree as a grammar of llguidance. The tail lets every token
// pass, specials and halves of characters too, and leaves the log-probabilities
// alone; a text pattern would do neither.
func (t *tokenTree) lark() (string, error) {
	var b strings.Builder
	b.WriteString("start: n0 <[*]>*\n")
	for i := range t.nodes {
		n := &t.nodes[i]
		if !n.alive() {
			continue
		}
		fmt.Fprintf(&b, "n%d: ", i)
		sep := ""
		// Edges to one node share an alternative.
		byNode := slices.Clone(n.next)
		slices.SortStableFunc(byNode, func(x, y tokenEdge) int { return cmp.Compare(x.node, y.node) })
		for len(byNode) > 0 {
			to := byNode[0].node
			var ids []vocab.ID
			for len(byNode) > 0 && byNode[0].node == to {
				ids = append(ids, byNode[0].token)
				byNode = byNode[1:]
			}
			b.WriteString(sep)
			writeTokenSet(&b, ids)
			fmt.Fprintf(&b, " n%d", to)
			sep = " | "
		}
		if len(n.last) > 0 {
			b.WriteString(sep)
			writeTokenSet(&b, n.last)
		}
		b.WriteByte('\n')
		if b.Len() > maxGrammar {
			return "", &backend.UnsupportedError{Param: "prompt", Text: fmt.Sprintf("the tokens that may produce the prompt's last bytes again make a grammar of more than %d bytes", maxGrammar)}
		}
	}
	return b.String(), nil
}

// writeTokenSet writes a set of tokens, ascending, as llguidance reads it.
func writeTokenSet(b *strings.Builder, ids []vocab.ID) {
	var buf [20]byte
	b.WriteString("<[")
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(strconv.AppendInt(buf[:0], int64(ids[i]), 10))
		if j > i {
			b.WriteByte('-')
			b.Write(strconv.AppendInt(buf[:0], int64(ids[j]), 10))
		}
		i = j + 1
	}
	b.WriteString("]>")
}

// composed returns structured_outputs for a grammar that the bytes of literal
// come before. Tokens may produce them in any division: of a grammar of texts
// the engine cannot be told more.
func composed(g *backend.Grammar, literal []byte) (map[string]any, error) {
	if len(literal) == 0 {
		return plainGrammar(g)
	}
	if !utf8.Valid(literal) {
		return nil, unsupportedGrammar("the prompt's last bytes, which come before it, are not whole characters")
	}
	switch g.Kind {
	case backend.Regex:
		if bytes.IndexByte(literal, 0) >= 0 {
			return nil, unsupportedGrammar("the prompt's last bytes, which come before it, hold a zero byte")
		}
		inner, ok := unanchored(g.Source)
		if !ok {
			return nil, unsupportedGrammar("its anchors leave no place for the prompt's last bytes, which come before it")
		}
		return map[string]any{"regex": regexLiteral(literal) + "(?:" + inner + ")"}, nil
	case backend.JSONSchema:
		if !json.Valid([]byte(g.Source)) {
			return nil, unsupportedGrammar("it is no JSON")
		}
		var schema bytes.Buffer
		if err := json.Compact(&schema, []byte(g.Source)); err != nil {
			return nil, unsupportedGrammar("it is no JSON")
		}
		return map[string]any{"grammar": "start: /" + larkLiteral(literal) + "/ %json " + schema.String() + "\n"}, nil
	case backend.Lark:
		renamed, name, err := renameStart(g.Source)
		if err != nil {
			return nil, err
		}
		return map[string]any{"grammar": renamed + "\nstart: /" + larkLiteral(literal) + "/ " + name + "\n"}, nil
	}
	return nil, unsupportedGrammar(fmt.Sprintf("the kind %s is none that vLLM reads", g.Kind))
}

func plainGrammar(g *backend.Grammar) (map[string]any, error) {
	switch g.Kind {
	case backend.Regex:
		return map[string]any{"regex": g.Source}, nil
	case backend.Lark:
		return map[string]any{"grammar": g.Source}, nil
	case backend.JSONSchema:
		if !json.Valid([]byte(g.Source)) {
			return nil, unsupportedGrammar("it is no JSON")
		}
		return map[string]any{"json": json.RawMessage(g.Source)}, nil
	}
	return nil, unsupportedGrammar(fmt.Sprintf("the kind %s is none that vLLM reads", g.Kind))
}

func unsupportedGrammar(text string) error {
	return &backend.UnsupportedError{Param: "grammar", Text: text}
}

// regexLiteral writes text so that every engine of vLLM reads it as itself. It
// holds no zero byte.
func regexLiteral(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x80 && strings.ContainsRune(`\^$.|?*+()[]{}-/`, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// larkLiteral writes text for a pattern between slashes of llguidance, whose
// string literals cannot hold a zero byte.
func larkLiteral(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\x{%x}`, r)
		}
	}
	return b.String()
}

// unanchored takes the anchors off a regular expression, which mean nothing in
// one for the whole text. It reports false where an anchor stands elsewhere.
func unanchored(source string) (string, bool) {
	type anchor struct{ at, depth int }
	var anchors []anchor
	alternatives := false
	depth, class := 0, false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			i++
		case class:
			// A bracket right after the opening stands for itself.
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(source[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(source[i+1:], "]") {
				i++
			}
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|':
			alternatives = alternatives || depth == 0
		case c == '^' || c == '$':
			anchors = append(anchors, anchor{i, depth})
		}
	}
	for _, a := range anchors {
		first, last := a.at == 0 && source[0] == '^', a.at == len(source)-1 && source[a.at] == '$'
		if alternatives || !first && !last {
			return "", false
		}
	}
	if len(anchors) > 0 && anchors[0].at == 0 {
		source = source[1:]
	}
	if n := len(anchors); n > 0 && source != "" && (anchors[n-1].at != 0 || n > 1) {
		source = source[:len(source)-1]
	}
	return source, true
}

// renameStart renames the start rule of a grammar in llguidance's Lark and
// returns its new name.
func renameStart(source string) (renamed, name string, err error) {
	name = "unfray_start"
	for strings.Contains(source, name) {
		name += "_"
	}
	var b strings.Builder
	defined := false
	for i := 0; i < len(source); {
		n := larkToken(source[i:])
		token := source[i : i+n]
		switch {
		case token == "start":
			token = name
			defined = defined || definesRule(source[i+n:])
		case token == "%ignore":
			return "", "", unsupportedGrammar("it ignores text, which would also be ignored before the prompt's last bytes")
		case token == "%lark":
			return "", "", unsupportedGrammar("it holds a grammar of its own, before which the prompt's last bytes cannot be put")
		}
		b.WriteString(token)
		i += n
	}
	if !defined {
		return "", "", unsupportedGrammar("it has no rule start")
	}
	return b.String(), name, nil
}

// definesRule reports whether what comes after a rule's name defines it.
func definesRule(after string) bool {
	after = strings.TrimLeft(after, " \t")
	if strings.HasPrefix(after, "[") { // attributes
		if i := strings.IndexByte(after, ']'); i >= 0 {
			after = strings.TrimLeft(after[i+1:], " \t")
		}
	}
	return strings.HasPrefix(after, ":")
}

// larkToken returns the length of the token that source, not empty, begins with:
// a name, a directive, a string, a pattern, a comment, or one byte.
func larkToken(source string) int {
	word := func(from int) int {
		for from < len(source) && (source[from] == '_' || source[from]-'0' < 10 || source[from]|0x20-'a' < 26 || source[from] == '-') {
			from++
		}
		return from
	}
	closing := func(q byte) int {
		for i := 1; i < len(source); i++ {
			switch source[i] {
			case '\\':
				i++
			case q:
				return i + 1
			case '\n':
				return i
			}
		}
		return len(source)
	}
	switch c := source[0]; {
	case c == '"':
		return closing('"')
	case strings.HasPrefix(source, "//") || c == '#':
		if i := strings.IndexByte(source, '\n'); i >= 0 {
			return i
		}
		return len(source)
	case c == '/':
		return closing('/')
	case c == '%' || c == '@':
		return max(1, word(1))
	}
	return max(1, word(0))
}
