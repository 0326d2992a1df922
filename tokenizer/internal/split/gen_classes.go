//go:build ignore

// This program writes zclasses.go: what pre-tokenizers want to know of every
// code point, for two versions of Unicode. Package unicode has 15.0; the lists
// below are what UnicodeData.txt of 15.1 and 16.0 adds to it.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"unicode"
)

type change struct {
	lo, hi   rune
	category string
}

// unicode151 lists the code points that Unicode 15.1 assigns.
var unicode151 = []change{{0x2ffc, 0x2fff, "So"}, {0x31ef, 0x31ef, "So"}, {0x2ebf0, 0x2ee5d, "Lo"}}

// unicode160 lists the code points that Unicode 16.0 assigns, and U+1171E,
// whose category it changes.
var unicode160 = []change{
	{0x897, 0x897, "Mn"}, {0x1b4e, 0x1b4f, "Po"}, {0x1b7f, 0x1b7f, "Po"}, {0x1c89, 0x1c89, "Lu"},
	{0x1c8a, 0x1c8a, "Ll"}, {0x2427, 0x2429, "So"}, {0x31e4, 0x31e5, "So"}, {0xa7cb, 0xa7cc, "Lu"},
	{0xa7cd, 0xa7cd, "Ll"}, {0xa7da, 0xa7da, "Lu"}, {0xa7db, 0xa7db, "Ll"}, {0xa7dc, 0xa7dc, "Lu"},
	{0x105c0, 0x105f3, "Lo"}, {0x10d40, 0x10d49, "Nd"}, {0x10d4a, 0x10d4d, "Lo"}, {0x10d4e, 0x10d4e, "Lm"},
	{0x10d4f, 0x10d4f, "Lo"}, {0x10d50, 0x10d65, "Lu"}, {0x10d69, 0x10d6d, "Mn"}, {0x10d6e, 0x10d6e, "Pd"},
	{0x10d6f, 0x10d6f, "Lm"}, {0x10d70, 0x10d85, "Ll"}, {0x10d8e, 0x10d8f, "Sm"}, {0x10ec2, 0x10ec4, "Lo"},
	{0x10efc, 0x10efc, "Mn"}, {0x11380, 0x11389, "Lo"}, {0x1138b, 0x1138b, "Lo"}, {0x1138e, 0x1138e, "Lo"},
	{0x11390, 0x113b5, "Lo"}, {0x113b7, 0x113b7, "Lo"}, {0x113b8, 0x113ba, "Mc"}, {0x113bb, 0x113c0, "Mn"},
	{0x113c2, 0x113c2, "Mc"}, {0x113c5, 0x113c5, "Mc"}, {0x113c7, 0x113ca, "Mc"}, {0x113cc, 0x113cd, "Mc"},
	{0x113ce, 0x113ce, "Mn"}, {0x113cf, 0x113cf, "Mc"}, {0x113d0, 0x113d0, "Mn"}, {0x113d1, 0x113d1, "Lo"},
	{0x113d2, 0x113d2, "Mn"}, {0x113d3, 0x113d3, "Lo"}, {0x113d4, 0x113d5, "Po"}, {0x113d7, 0x113d8, "Po"},
	{0x113e1, 0x113e2, "Mn"}, {0x116d0, 0x116e3, "Nd"}, {0x1171e, 0x1171e, "Mc"}, {0x11bc0, 0x11be0, "Lo"},
	{0x11be1, 0x11be1, "Po"}, {0x11bf0, 0x11bf9, "Nd"}, {0x11f5a, 0x11f5a, "Mn"}, {0x13460, 0x143fa, "Lo"},
	{0x16100, 0x1611d, "Lo"}, {0x1611e, 0x16129, "Mn"}, {0x1612a, 0x1612c, "Mc"}, {0x1612d, 0x1612f, "Mn"},
	{0x16130, 0x16139, "Nd"}, {0x16d40, 0x16d42, "Lm"}, {0x16d43, 0x16d6a, "Lo"}, {0x16d6b, 0x16d6c, "Lm"},
	{0x16d6d, 0x16d6f, "Po"}, {0x16d70, 0x16d79, "Nd"}, {0x18cff, 0x18cff, "Lo"}, {0x1cc00, 0x1ccef, "So"},
	{0x1ccf0, 0x1ccf9, "Nd"}, {0x1cd00, 0x1ceb3, "So"}, {0x1e5d0, 0x1e5ed, "Lo"}, {0x1e5ee, 0x1e5ef, "Mn"},
	{0x1e5f0, 0x1e5f0, "Lo"}, {0x1e5f1, 0x1e5fa, "Nd"}, {0x1e5ff, 0x1e5ff, "Po"}, {0x1f8b2, 0x1f8bb, "So"},
	{0x1f8c0, 0x1f8c1, "So"}, {0x1fa89, 0x1fa89, "So"}, {0x1fa8f, 0x1fa8f, "So"}, {0x1fabe, 0x1fabe, "So"},
	{0x1fac6, 0x1fac6, "So"}, {0x1fadc, 0x1fadc, "So"}, {0x1fadf, 0x1fadf, "So"}, {0x1fae9, 0x1fae9, "So"},
	{0x1fbcb, 0x1fbef, "So"},
}

// unpunctuated are the punctuation characters of Unicode 16.0 that Hugging
// Face's Punctuation and BertPreTokenizer do not know: they go by the tables of
// the Rust crate unicode_categories, of Unicode 8.0.
var unpunctuated = [][2]rune{
	{0x61d, 0x61d}, {0x9fd, 0x9fd}, {0xa76, 0xa76}, {0xc77, 0xc77}, {0xc84, 0xc84}, {0x1b4e, 0x1b4f},
	{0x1b7d, 0x1b7f}, {0x2e43, 0x2e4f}, {0x2e52, 0x2e5d}, {0x10d6e, 0x10d6e}, {0x10ead, 0x10ead}, {0x10f55, 0x10f59},
	{0x10f86, 0x10f89}, {0x113d4, 0x113d5}, {0x113d7, 0x113d8}, {0x1144b, 0x1144f}, {0x1145a, 0x1145b}, {0x1145d, 0x1145d},
	{0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1183b, 0x1183b}, {0x11944, 0x11946}, {0x119e2, 0x119e2}, {0x11a3f, 0x11a46},
	{0x11a9a, 0x11a9c}, {0x11a9e, 0x11aa2}, {0x11b00, 0x11b09}, {0x11be1, 0x11be1}, {0x11c41, 0x11c45}, {0x11c70, 0x11c71},
	{0x11ef7, 0x11ef8}, {0x11f43, 0x11f4f}, {0x11fff, 0x11fff}, {0x12ff1, 0x12ff2}, {0x16d6d, 0x16d6f}, {0x16e97, 0x16e9a},
	{0x16fe2, 0x16fe2}, {0x1e5ff, 0x1e5ff}, {0x1e95e, 0x1e95f},
}

// version is one version of Unicode: package unicode's and changes.
type version map[rune]string

func newVersion(changes ...[]change) version {
	v := version{}
	for _, list := range changes {
		for _, c := range list {
			for r := c.lo; r <= c.hi; r++ {
				v[r] = c.category
			}
		}
	}
	return v
}

var categories = []string{
	"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No",
	"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So",
}

func (v version) category(r rune) string {
	if c, ok := v[r]; ok {
		return c
	}
	for _, c := range categories {
		if unicode.Is(unicode.Categories[c], r) {
			return c
		}
	}
	return "C" // or Z
}

func (v version) kind(r rune, category string) string {
	switch {
	case r == '\r' || r == '\n':
		return "newline"
	case unicode.Is(unicode.White_Space, r):
		return "space"
	}
	switch category {
	case "Lu", "Lt":
		return "upper"
	case "Ll":
		return "lower"
	case "Lm", "Lo":
		return "uncased"
	}
	return map[byte]string{'M': "mark", 'N': "number", 'P': "punct", 'S': "symbol"}[category[0]]
}

// class spells the constants of class.go.
func (v version) class(r rune) string {
	category := v.category(r)
	class := v.kind(r, category)
	add := func(flag string, when bool) {
		if when && class != "" {
			class += "|" + flag
		} else if when {
			class = flag
		}
	}
	add("han", unicode.Is(unicode.Han, r) || r >= 0x2ebf0 && r <= 0x2ee5d)
	add("kana", r >= 0x4e00 && r <= 0x9fa5 || r >= 0x3040 && r <= 0x30ff)
	add("word", category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" || category == "Pc" ||
		unicode.In(r, unicode.Other_Alphabetic, unicode.Join_Control))
	add("bert", bertPunctuation(r, category))
	return class
}

func bertPunctuation(r rune, category string) bool {
	for _, u := range unpunctuated {
		if u[0] <= r && r <= u[1] {
			return false
		}
	}
	if r == 0x111c9 || r == 0x166d { // punctuation then, no longer
		return true
	}
	return category[0] == 'P' || r < 0x80 && category[0] == 'S'
}

func (v version) write(b *bytes.Buffer) {
	lo, class := rune(0), v.class(0)
	for r := rune(1); r <= unicode.MaxRune+1; r++ {
		next := ""
		if r <= unicode.MaxRune {
			next = v.class(r)
		}
		if next == class {
			continue
		}
		if class != "" {
			fmt.Fprintf(b, "{%#x, %#x, %s},\n", lo, r-1, class)
		}
		lo, class = r, next
	}
	b.WriteString("}\n")
}

func main() {
	if unicode.Version != "15.0.0" {
		log.Fatalf("package unicode is version %s; run this with a Go release whose is 15.0.0 (1.21 to 1.26)", unicode.Version)
	}
	var b bytes.Buffer
	b.WriteString("// Code generated by gen_classes.go; DO NOT EDIT.\n\npackage split\n\n" +
		"// ranges160 lists the code points of Unicode 16.0 that are more than other.\n" +
		"var ranges160 = []classRange{\n")
	newVersion(unicode151, unicode160).write(&b)
	b.WriteString("\n// unassigned151 lists what Unicode 15.1 had otherwise.\nvar unassigned151 = []classRange{\n")
	old := newVersion(unicode151)
	for _, c := range unicode160 {
		class := old.class(c.lo)
		if class == "" {
			class = "other"
		}
		fmt.Fprintf(&b, "{%#x, %#x, %s},\n", c.lo, c.hi, class)
	}
	b.WriteString("}\n\n// assigned160 lists what Unicode 16.0 has beyond 15.0, by category.\nvar assigned160 = []assignment{\n")
	for _, list := range [][]change{unicode151, unicode160} {
		for _, c := range list {
			fmt.Fprintf(&b, "{%#x, %#x, %q},\n", c.lo, c.hi, c.category)
		}
	}
	b.WriteString("}\n")
	src, err := format.Source(b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("zclasses.go", src, 0o644); err != nil {
		log.Fatal(err)
	}
}
