package main

import (
	"fmt"
	"io"
	"strings"
)

// notJSON are texts that RFC 8259 does not allow, by what is wrong.
var notJSON = []struct {
	what  string
	texts []string
}{
	{"a control character in a string", []string{"[\"a\nb\"]", "[\"\t\"]", "[\"0123456789abcdef\x01\"]"}},
	{"an escape that does not exist", []string{`["\x41"]`, `["\'"]`, `["\U0041"]`}},
	{"\\u without four digits", []string{`["\u12"]`, `["\u00G0"]`, `["\uD800\u"]`}},
	{"a string that is not UTF-8", []string{"[\"\xff\"]", "[\"\xc0\xaf\"]", "[\"\xed\xa0\x80\"]", "[\"\xe2\x82\"]"}},
	{"a number", []string{`[01]`, `[1.]`, `[.5]`, `[-]`, `[1e]`, `[+1]`, `[0x1]`, `[1.e5]`}},
	{"a comma too many or missing", []string{`[1,]`, `{"a":1,}`, `[1 2]`, `{"a":1 "b":2}`}},
	{"something behind the value", []string{`{}x`, `[]]`, `1 2`, `{},`}},
	{"a byte order mark", []string{"\ufeff{}"}},
	{"white space that JSON has not", []string{"[\f1]", "[\u00a01]", "[\v]"}},
	{"a cut text", []string{`[`, `{"a"`, `{"a":`, `["a`, `tru`, ``}},
}

// accepted names what a contestant lets pass. What only UTF-8 decides is left
// out: encoding/json lets it pass too.
func accepted(c contestant) (names []string) {
	for _, kind := range notJSON {
		if kind.what != notUTF8 && passes(c, kind.texts) > 0 {
			names = append(names, kind.what)
		}
	}
	return names
}

const notUTF8 = "a string that is not UTF-8"

// passes counts the texts that a contestant takes for JSON.
func passes(c contestant, texts []string) (n int) {
	for _, text := range texts {
		// Padded with white space, so that readers of many bytes at once see the text whole.
		if c.valid([]byte(text)) || c.valid([]byte(strings.Repeat(" ", 64)+text+strings.Repeat(" ", 64))) {
			n++
		}
	}
	return n
}

func printStrictness(w io.Writer, contestants []contestant) {
	head, line := []string{"lets pass"}, []string{"---"}
	for _, c := range contestants {
		head, line = append(head, c.name), append(line, "---")
	}
	row(w, head)
	row(w, line)
	for _, kind := range notJSON {
		cells := []string{kind.what}
		for _, c := range contestants {
			cell := "–"
			if n := passes(c, kind.texts); n > 0 {
				cell = fmt.Sprintf("%d of %d", n, len(kind.texts))
			}
			cells = append(cells, cell)
		}
		row(w, cells)
	}
}
