package config

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	textKind
	listKind
	mappingKind
)

// String names what a node is, for errors.
func (k kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "text", "a list", "a mapping"}[k]
}

// node is a value of a YAML document. An alias is the node that it names, so
// the whole is a graph without cycles, no larger than the text.
type node struct {
	kind   kind
	place  place
	text   string // of a scalar
	items  []*node
	fields []pair
}

// pair is a key of a mapping with its value.
type pair struct {
	key   string
	place place
	merge bool // the key is <<
	value *node
}

// syntaxError ends the reading of a file.
type syntaxError struct {
	place place
	text  string
}

func (e *syntaxError) Error() string { return e.text }

// parse reads a document. A nil node is an empty document.
func parse(source string) (root *node, fault *syntaxError) {
	// What the gate lets through is not known to upset the parser. It is other
	// people's code and meets outside bytes, so a panic is an error too.
	defer func() {
		if recover() != nil {
			root, fault = nil, &syntaxError{place{1, 1}, "the file is no YAML that can be read"}
		}
	}()
	// The scanner counts the line of a comment twice that ends in CR LF.
	source = strings.ReplaceAll(strings.TrimPrefix(source, "\ufeff"), "\r\n", "\n")
	if err := checkText(source); err != nil {
		return nil, err
	}
	tokens, err := scan(source)
	if err == nil {
		relocate(tokens, source)
		tokens = rejoin(tokens)
		err = checkTokens(tokens)
	}
	if err != nil {
		return nil, hint(source, err)
	}
	file, perr := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if perr != nil {
		return nil, hint(source, parserError(perr))
	}
	b := builder{anchors: map[string]*node{}}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if root != nil {
			return nil, &syntaxError{placeOf(doc.Body.GetToken()), onlyOneDocument}
		}
		if root, fault = b.node(doc.Body); fault != nil {
			return nil, fault
		}
	}
	return root, nil
}

// parserError gives the place and the text of an error of the parser. Some of
// its texts quote the file.
func parserError(err error) *syntaxError {
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &placed) || placed.GetToken() == nil {
		return &syntaxError{place{1, 1}, "the file is no YAML that can be read"}
	}
	return &syntaxError{placeOf(placed.GetToken()), yamlText(placed.GetMessage())}
}

// yamlTexts say what the scanner and the parser mean by messages with a part,
// in words for people who write configuration files. The first counts.
var yamlTexts = []struct{ part, text string }{
	{"could not find end character of", "this quote is not closed"},
	{"reserved character", "text cannot begin with @ or `; put it in quotes"},
	{"escape", `unknown escape in a text in double quotes; write \\ for a backslash`},
	{"mapping value is not allowed in this context", "two keys in one line; put text with \": \" in quotes"},
	{"value is not allowed in this context", "this fits neither the line above nor its indentation; the keys of one mapping start in one column"},
	{"non-map value is specified", "this line has no key; write key: value"},
	{"could not find flow mapping end token", "this { is not closed"},
	{"sequence end token", "this [ is not closed"},
	{"must be specified", notClosed},
	{"block sequence entries are not allowed", "a list starts on the line below its key"},
	{"sequence entries are not allowed after anchor", "a list starts on the line below its anchor"},
	{"found an invalid key for this map", "a colon without a key before it"},
	{"unexpected key name", "this is no key; a key is one word with a colon behind it"},
	{"could not find '[' character corresponding", "this ] closes nothing"},
	{"could not find '{' character corresponding", "this } closes nothing"},
	{"could not find flow map content", "this is neither a key with its value nor a }"},
	{"map key definition includes an implicit line break", "a key and its colon stand on one line"},
	{"unexpected document separator", "this quote is not closed"},
}

// yamlText is the text for a message of the scanner or the parser: ours, else
// theirs if it quotes nothing of the file.
func yamlText(message string) string {
	for _, t := range yamlTexts {
		if strings.Contains(message, t.part) {
			return t.text
		}
	}
	if strings.ContainsAny(message, "\"`'") || !isPrintable(message) {
		return "this is not YAML"
	}
	return "not YAML: " + message
}

// hint adds the commonest reason to an error in a line with a reference.
func hint(source string, err *syntaxError) *syntaxError {
	if line := lineOf(source, err.place.line); strings.Contains(line, "${") && (strings.Contains(line, "[") || strings.Count(line, "{") > 1) {
		err.text += `; within [ ] and { } put "${NAME}" in quotes`
	}
	return err
}

func lineOf(source string, number int) string {
	for line := range strings.Lines(source) {
		if number--; number == 0 {
			return line
		}
	}
	return ""
}

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// isMissing reports whether the parser made the value up. Its place then is
// not where one would stand.
func isMissing(n ast.Node) bool {
	null, ok := n.(*ast.NullNode)
	return ok && null.Token.Type == token.ImplicitNullType
}

// builder makes nodes of the parser's tree.
type builder struct {
	anchors map[string]*node // nil: the anchor's value is being read
}

func (b *builder) node(n ast.Node) (*node, *syntaxError) {
	at := place{1, 1}
	if n != nil {
		at = placeOf(n.GetToken())
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{kind: nullKind, place: at}, nil
	case *ast.BoolNode:
		return &node{kind: boolKind, place: at, text: n.Token.Value}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: numberKind, place: at, text: n.GetToken().Value}, nil
	case *ast.StringNode:
		return &node{kind: textKind, place: at, text: n.Value}, nil
	case *ast.SequenceNode:
		return b.list(n, at)
	case *ast.MappingNode:
		return b.mapping(n, at)
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		b.anchors[name] = nil
		value, err := b.node(n.Value)
		if err == nil {
			b.anchors[name] = value
		}
		return value, err
	case *ast.AliasNode:
		value, ok := b.anchors[n.Value.GetToken().Value]
		switch {
		case !ok:
			return nil, &syntaxError{at, "no anchor with this name stands before the alias"}
		case value == nil:
			return nil, &syntaxError{at, "the alias stands within its own anchor"}
		}
		return value, nil
	}
	return nil, &syntaxError{at, "this is not YAML"}
}

func (b *builder) list(n *ast.SequenceNode, at place) (*node, *syntaxError) {
	l := &node{kind: listKind, place: at}
	for i, v := range n.Values {
		item, err := b.node(v)
		if err != nil {
			return nil, err
		}
		if isMissing(v) && i < len(n.Entries) {
			item.place = placeOf(n.Entries[i].Start)
		}
		l.items = append(l.items, item)
	}
	return l, nil
}

func (b *builder) mapping(n *ast.MappingNode, at place) (*node, *syntaxError) {
	m := &node{kind: mappingKind, place: at}
	for i, v := range n.Values {
		key := v.Key.GetToken()
		p := pair{key: key.Value, place: placeOf(key)}
		if i == 0 && !n.IsFlowStyle {
			// The parser's place is the first colon.
			m.place = p.place
		}
		switch v.Key.(type) {
		case *ast.MergeKeyNode:
			p.merge = true
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		default:
			return nil, &syntaxError{p.place, "a key is a plain word"}
		}
		var err *syntaxError
		if p.value, err = b.node(v.Value); err != nil {
			return nil, err
		}
		if isMissing(v.Value) {
			p.value.place = placeOf(v.Start)
			p.value.place.column++
		}
		m.fields = append(m.fields, p)
	}
	return m, nil
}
