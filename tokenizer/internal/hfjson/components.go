package hfjson

import (
	"encoding/base64"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

// steps reads a component that may be a sequence of components, or null. list
// is the name of the field in which a Sequence keeps its parts.
func steps[T any](n *node, path, list string, step func(kind string, f *fields) (T, error)) ([]T, error) {
	if n.kind == 'n' {
		return nil, nil
	}
	f := fieldsOf(n, path)
	kind := f.str("type")
	if f.err != nil {
		return nil, f.err
	}
	if kind != "Sequence" {
		s, err := step(kind, f)
		if err != nil {
			return nil, err
		}
		return []T{s}, nil
	}
	var all []T
	f.list(list, func(n *node, path string) error {
		if n.kind == 'n' {
			return jsonscan.Fail(ErrInvalid, n.at, "null where a component should be")
		}
		part, err := steps(n, path, list, step)
		all = append(all, part...)
		return err
	})
	return all, f.done()
}

// unknownType is the error for a component type that this package does not
// know.
func unknownType(f *fields, component, kind string) error {
	return jsonscan.Under("type", jsonscan.Fail(ErrUnsupported, f.get("type").at, "the %s %q", component, kind))
}

func normalizerStep(kind string, f *fields) (NormalizerStep, error) {
	s := NormalizerStep{Place: f.place(), Type: kind}
	switch kind {
	case "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel":
	case "Strip":
		s.Left = f.flag("strip_left")
		s.Right = f.flag("strip_right")
	case "Prepend":
		s.Content = f.str("prepend")
	case "Replace":
		s.Pattern, s.Regex = f.pattern("pattern")
		s.Content = f.str("content")
	case "Precompiled":
		table, err := base64.StdEncoding.DecodeString(f.str("precompiled_charsmap"))
		if err != nil && f.err == nil {
			f.fail("precompiled_charsmap", jsonscan.Fail(ErrInvalid, f.get("precompiled_charsmap").at, "not base64: %v", err))
		}
		s.Charsmap = table
	case "BertNormalizer":
		s.CleanText = f.flag("clean_text")
		s.ChineseChars = f.flag("handle_chinese_chars")
		s.Lowercase = f.flag("lowercase")
		s.StripAccents = f.flagOr("strip_accents", s.Lowercase)
	default:
		return s, unknownType(f, "normalizer", kind)
	}
	return s, f.done()
}

func preTokenizerStep(kind string, f *fields) (PreTokenizerStep, error) {
	s := PreTokenizerStep{Place: f.place(), Type: kind}
	switch kind {
	case "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts":
	case "ByteLevel":
		s.ByteLevel = byteLevel(f)
	case "Metaspace":
		s.Metaspace = metaspace(f)
	case "Split":
		s.Pattern, s.Regex = f.pattern("pattern")
		s.Behavior = behavior(f)
		s.Invert = f.flag("invert")
	case "Punctuation":
		s.Behavior = "Isolated"
		if f.get("behavior") != nil {
			s.Behavior = behavior(f)
		}
	case "Digits":
		s.Individual = f.flag("individual_digits")
	case "CharDelimiterSplit":
		s.Delimiter = f.char("delimiter")
	case "FixedLength":
		s.Length = 5
		if n := f.get("length"); n != nil {
			s.Length = f.wholeNumber("length", maxCount)
			if f.err == nil && s.Length == 0 {
				f.fail("length", jsonscan.Fail(ErrInvalid, n.at, "pieces of no characters"))
			}
		}
	default:
		return s, unknownType(f, "pre-tokenizer", kind)
	}
	return s, f.done()
}

func behavior(f *fields) string {
	return f.oneOf("behavior", "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
}

func byteLevel(f *fields) ByteLevel {
	return ByteLevel{
		AddPrefixSpace: f.flag("add_prefix_space"),
		TrimOffsets:    f.flag("trim_offsets"),
		UseRegex:       f.flagOr("use_regex", true),
	}
}

// metaspace reads the fields of old files, too: add_prefix_space, which became
// prepend_scheme, and str_rep, which repeated the replacement.
func metaspace(f *fields) Metaspace {
	m := Metaspace{Replacement: f.char("replacement"), PrependScheme: "always", Split: f.flagOr("split", true)}
	scheme := f.get("prepend_scheme") != nil
	if scheme {
		m.PrependScheme = f.oneOf("prepend_scheme", "first", "never", "always")
	}
	if prefix := f.get("add_prefix_space"); prefix != nil && !f.flag("add_prefix_space") {
		if scheme && m.PrependScheme != "never" && f.err == nil {
			f.fail("add_prefix_space", jsonscan.Fail(ErrInvalid, prefix.at, "false, but prepend_scheme is %q", m.PrependScheme))
		}
		m.PrependScheme = "never"
	}
	if n := f.get("str_rep"); n != nil {
		if text := f.str("str_rep"); f.err == nil && text != string(m.Replacement) {
			f.fail("str_rep", jsonscan.Fail(ErrUnsupported, n.at, "%q differs from the replacement %q", text, m.Replacement))
		}
	}
	return m
}

func postProcessorStep(kind string, f *fields) (PostProcessorStep, error) {
	s := PostProcessorStep{Place: f.place(), Type: kind}
	switch kind {
	case "ByteLevel":
		s.ByteLevel = byteLevel(f)
	case "BertProcessing":
		s.CLS, s.SEP = tokenRef(f, "cls"), tokenRef(f, "sep")
		s.Single, s.Pair = clsSEP(s.CLS, s.SEP, 1)
	case "RobertaProcessing":
		s.CLS, s.SEP = tokenRef(f, "cls"), tokenRef(f, "sep")
		s.Single, s.Pair = clsSEP(s.CLS, s.SEP, 2)
		s.ByteLevel.TrimOffsets = f.flag("trim_offsets")
		s.ByteLevel.AddPrefixSpace = f.flag("add_prefix_space")
	case "TemplateProcessing":
		special := specialTokens(f)
		s.Single = template(f, "single", special)
		s.Pair = template(f, "pair", special)
	default:
		return s, unknownType(f, "post-processor", kind)
	}
	return s, f.done()
}

// tokenRef reads ["[SEP]", 102].
func tokenRef(f *fields, name string) TokenRef {
	var ref TokenRef
	n := f.need(name)
	if n == nil {
		return ref
	}
	if n.kind != '[' || len(n.items) != 2 {
		f.fail(name, jsonscan.Fail(ErrInvalid, n.at, "not a pair of a token and its ID"))
		return ref
	}
	var err error
	if ref.Content, err = n.items[0].str(); err == nil {
		ref.ID, err = n.items[1].wholeNumber(MaxTokens - 1)
	}
	f.fail(name, err)
	return ref
}

// clsSEP is the template that BertProcessing and RobertaProcessing amount to;
// between is the number of SEP between the texts of a pair. Bert counts the
// second text and its SEP as type 1, Roberta all as 0.
func clsSEP(cls, sep TokenRef, between int) (single, pair []TemplatePiece) {
	special := func(t TokenRef, typeID int) TemplatePiece {
		return TemplatePiece{Special: t.Content, IDs: []int{t.ID}, TypeID: typeID}
	}
	second := 1
	if between > 1 {
		second = 0
	}
	single = []TemplatePiece{special(cls, 0), {Sequence: "A"}, special(sep, 0)}
	pair = append(pair, single...)
	for range between - 1 {
		pair = append(pair, special(sep, 0))
	}
	return single, append(pair, TemplatePiece{Sequence: "B", TypeID: second}, special(sep, second))
}

// specialTokens reads the IDs that each name in a template stands for.
func specialTokens(f *fields) map[string][]int {
	n := f.need("special_tokens")
	if n == nil || f.err != nil {
		return nil
	}
	if n.kind != '{' {
		f.fail("special_tokens", jsonscan.Fail(ErrInvalid, n.at, "%s where an object should be", n.kindName()))
		return nil
	}
	special := make(map[string][]int, len(n.items))
	for i := range n.items {
		name := string(n.names[i])
		in := fieldsOf(&n.items[i], "")
		if id := in.str("id"); in.err == nil && id != name {
			in.fail("id", jsonscan.Fail(ErrInvalid, in.get("id").at, "%q under the name %q", id, name))
		}
		ids := []int{}
		in.list("ids", func(n *node, _ string) error {
			id, err := n.wholeNumber(MaxTokens - 1)
			ids = append(ids, id)
			return err
		})
		tokens := 0
		in.list("tokens", func(n *node, _ string) error {
			_, err := n.str()
			tokens++
			return err
		})
		if in.err == nil && tokens != len(ids) {
			in.fail("tokens", jsonscan.Fail(ErrInvalid, n.items[i].at, "%d tokens for %d IDs", tokens, len(ids)))
		}
		if err := in.done(); err != nil {
			f.fail("special_tokens", jsonscan.Under(name, err))
			return nil
		}
		special[name] = ids
	}
	return special
}

// template reads [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence":
// {"id": "A", "type_id": 0}}, …].
func template(f *fields, name string, special map[string][]int) []TemplatePiece {
	var pieces []TemplatePiece
	f.list(name, func(n *node, path string) error {
		if n.kind != '{' || len(n.items) != 1 {
			return jsonscan.Fail(ErrInvalid, n.at, `not an object with the one member "Sequence" or "SpecialToken"`)
		}
		kind := string(n.names[0])
		in := fieldsOf(&n.items[0], jsonscan.Join(path, kind))
		var p TemplatePiece
		switch kind {
		case "Sequence":
			p.Sequence = in.oneOf("id", "A", "B")
		case "SpecialToken":
			p.Special = in.str("id")
			ids, ok := special[p.Special]
			if !ok && in.err == nil && f.err == nil {
				in.fail("id", jsonscan.Fail(ErrInvalid, in.get("id").at, "%q is not among special_tokens", p.Special))
			}
			p.IDs = ids
		default:
			return jsonscan.Fail(ErrUnsupported, n.at, "a template piece %q", kind)
		}
		p.TypeID = in.wholeNumber("type_id", maxCount)
		pieces = append(pieces, p)
		if err := in.done(); err != nil {
			return jsonscan.Under(kind, err)
		}
		return nil
	})
	return pieces
}

func decoderStep(kind string, f *fields) (DecoderStep, error) {
	s := DecoderStep{Place: f.place(), Type: kind}
	switch kind {
	case "Fuse", "ByteFallback":
	case "ByteLevel":
		s.ByteLevel = byteLevel(f)
	case "Metaspace":
		s.Metaspace = metaspace(f)
	case "WordPiece":
		s.Prefix = f.str("prefix")
		s.Cleanup = f.flag("cleanup")
	case "Replace":
		s.Pattern, s.Regex = f.pattern("pattern")
		s.Content = f.str("content")
	case "Strip":
		if c := f.char("content"); f.err == nil {
			s.Content = string(c)
		}
		s.Start = f.wholeNumber("start", maxCount)
		s.Stop = f.wholeNumber("stop", maxCount)
	case "BPEDecoder":
		s.Suffix = f.str("suffix")
	case "CTC":
		s.PadToken = f.str("pad_token")
		s.WordDelimiter = f.str("word_delimiter_token")
		s.Cleanup = f.flag("cleanup")
	default:
		return s, unknownType(f, "decoder", kind)
	}
	return s, f.done()
}

// component takes a component from the scanner.
func component[T any](s *scanner, path, list string, step func(string, *fields) (T, error)) ([]T, error) {
	n, err := s.tree()
	if err != nil {
		return nil, err
	}
	all, err := steps(n, path, list, step)
	if err == nil && len(all) > maxSteps {
		err = jsonscan.Fail(ErrLimit, n.at, "%d steps; at most %d are read", len(all), maxSteps)
	}
	return all, err
}
