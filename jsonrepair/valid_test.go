package jsonrepair

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair/jsontest"
)

// checkAsStandard compares Check with encoding/json: the verdict, except for
// bytes that are not UTF-8, and the place.
func checkAsStandard(t *testing.T, data []byte) {
	t.Helper()
	err := Check(data, 0)
	if (err == nil) != IsValid(data) {
		t.Fatalf("Check(%q) = %v, IsValid = %t", data, err, IsValid(data))
	}
	want := json.Valid(data) && utf8.Valid(data)
	if (err == nil) != want {
		t.Fatalf("Check(%q) = %v, want valid: %t", data, err, want)
	}
	if err == nil {
		return
	}
	if err.Cause == "" || err.Tried == "" || err.Offset < 0 || err.Offset > len(data) {
		t.Fatalf("Check(%q) = %+v", data, err)
	}
	if utf8.Valid(data) {
		var standard *json.SyntaxError
		errors.As(json.Unmarshal(data, new(json.RawMessage)), &standard)
		offset := int(standard.Offset) - 1 // it counts the byte, and reads the end as a space
		if strings.Contains(standard.Error(), "unexpected end") ||
			strings.Contains(standard.Error(), "invalid character ' '") && offset == len(data)-1 && data[offset] != ' ' {
			offset = len(data)
		}
		if err.Offset != offset {
			t.Fatalf("Check(%q) = %v, want it at byte %d as %v", data, err, offset, standard)
		}
	}
}

func TestCheckMessages(t *testing.T) {
	tests := []struct {
		in, want string
	}{
		{``, `byte 0: the text is empty; expected a value`},
		{" \n", `byte 2: the text is empty; expected a value`},
		{`{"a": 1 "b": 2}`, `byte 8: a comma must come before the next member; expected "," or "}", found a double quote`},
		{`[1 2]`, `byte 3: a comma must come before the next element; expected "," or "]", found "2"`},
		{`["a" x]`, `byte 5: a comma must come before the next element; expected "," or "]", found "x"`},
		{`[1,]`, `byte 3: a comma must not come before a closing bracket; expected a value, found "]"`},
		{`{"a":1,}`, `byte 7: a comma must not come before a closing bracket; expected a name in double quotes, found "}"`},
		{`[,1]`, `byte 1: a value must come first; expected a value or "]", found ","`},
		{`{,}`, `byte 1: a member must begin with its name in double quotes; expected a name in double quotes or "}", found ","`},
		{`{a:1}`, `byte 1: a member must begin with its name in double quotes; expected a name in double quotes or "}", found "a"`},
		{`{'a':1}`, `byte 1: a member's name must be in double quotes; expected a name in double quotes or "}", found "'"`},
		{`{"a" 1}`, `byte 5: a colon must come between a member's name and its value; expected ":", found "1"`},
		{`{"a":}`, `byte 5: a member must have a value; expected a value, found "}"`},
		{`{"a":'b'}`, `byte 5: a string must be in double quotes; expected a value, found "'"`},
		{`{"a":1]`, `byte 6: an object must be closed by a brace; expected "," or "}", found "]"`},
		{`{"a":1;`, `byte 6: a member must end here; expected "," or "}", found ";"`},
		{`[1}`, `byte 2: an array must be closed by a square bracket; expected "," or "]", found "}"`},
		{`[1:`, `byte 2: an element must end here; expected "," or "]", found ":"`},
		{`1 2`, `byte 2: nothing must come after the value; expected the end, found "2"`},
		{`[]]`, `byte 2: nothing must come after the value; expected the end, found "]"`},
		{`01`, `byte 1: a number must not begin with zero; expected the end, found "1"`},
		{`[-012]`, `byte 3: a number must not begin with zero; expected "," or "]", found "1"`},
		{`.5`, `byte 0: a number must begin with a digit or a minus sign; expected a value, found "."`},
		{`+1`, `byte 0: a number must begin with a digit or a minus sign; expected a value, found "+"`},
		{`-`, `byte 1: the text ends inside a number; expected a digit, found the end`},
		{`[-x]`, `byte 2: a digit must come after the minus sign; expected a digit, found "x"`},
		{`[-0.]`, `byte 4: a digit must come after the decimal point; expected a digit, found "]"`},
		{`[12.5e]`, `byte 6: a digit must come after the e of the exponent; expected a digit, found "]"`},
		{`[1E+]`, `byte 4: a digit must come after the exponent's sign; expected a digit, found "]"`},
		{`nul`, `byte 3: the text ends inside a word; expected "null", found the end`},
		{`[trUe]`, `byte 3: a word that is not true, false or null must be in double quotes; expected "true", found "U"`},
		{`None`, `byte 0: a word that is not true, false or null must be in double quotes; expected a value, found "N"`},
		{`[*]`, `byte 1: no value begins like this; expected a value or "]", found "*"`},
		{`[1, // x`, `byte 4: JSON has no comments; expected a value, found "/"`},
		{"\ufeff{}", "byte 0: a byte order mark must not come here; expected a value, found \"\\ufeff\""},
		{"[\x00]", `byte 1: a control character must not come outside a string; expected a value or "]", found "\x00"`},
		{`[`, `byte 1: the text ends inside an array; expected a value or "]"`},
		{`[1,`, `byte 3: the text ends inside an array; expected a value`},
		{`[1`, `byte 2: the text ends inside an array; expected "," or "]"`},
		{`{`, `byte 1: the text ends inside an object; expected a name in double quotes or "}"`},
		{`{"a"`, `byte 4: the text ends inside an object; expected ":"`},
		{`{"a":`, `byte 5: the text ends before a member's value; expected a value`},
		{`{"a":1`, `byte 6: the text ends inside an object; expected "," or "}"`},
		{`["abc`, `byte 5: the text ends inside the string that begins at byte 1; expected a closing quote`},
		{`["abc\`, `byte 6: the text ends inside the string that begins at byte 1; expected a closing quote`},
		{`["abc\u00`, `byte 9: the text ends inside the string that begins at byte 1; expected a closing quote`},
		{"[\"abc\xe2\x82", `byte 7: the text ends inside the string that begins at byte 1; expected a closing quote`},
		{`"a\qb"`, `byte 3: a backslash must begin an escape; expected one of "\/bfnrtu, found "q"`},
		{`"\u00G0"`, `byte 5: \u must have four hexadecimal digits; expected a hexadecimal digit, found "G"`},
		{"\"a\nb\"", `byte 2: a string must not have a line break; expected \n in its place, or a closing quote before it`},
		{"\"a\tb\"", `byte 2: a control character must be escaped in a string; expected \u0009 in its place`},
		{"\"a\xffb\"", `byte 2: a string must be UTF-8; expected a character, found the byte 0xff`},
		{"\"\xed\xa0\x80\"", `byte 1: a string must be UTF-8; expected a character, found the byte 0xed`},
		{`[“a”]`, `byte 1: a word that is not true, false or null must be in double quotes; expected a value or "]", found "“"`},
	}
	for _, tt := range tests {
		if tt.in != "\"\xed\xa0\x80\"" {
			checkAsStandard(t, []byte(tt.in))
		}
		if err := Check([]byte(tt.in), 0); err == nil || err.Error() != "jsonrepair: "+tt.want {
			t.Errorf("Check(%q)\n got %v\nwant jsonrepair: %s", tt.in, err, tt.want)
		}
	}
}

// Every byte at every place of strings of every length: what is read many bytes
// at a time ends where it must.
func TestCheckEveryByteInStrings(t *testing.T) {
	for length := range 40 {
		for at := range length + 1 {
			data := []byte(`["` + strings.Repeat("x", length) + `"]`)
			for c := range 256 {
				data[2+at] = byte(c)
				checkAsStandard(t, data)
			}
		}
	}
}

// Every pair of bytes that are not ASCII, alone and followed by those next to a
// bound, near the end of the text and far from it.
func TestCheckUTF8(t *testing.T) {
	check := func(seq ...byte) {
		for _, tail := range []string{`"`, `0123456789abcdef"`} {
			data := append(append([]byte{'"'}, seq...), tail...)
			if got, want := IsValid(data), utf8.Valid(seq) && json.Valid(data); got != want {
				t.Fatalf("IsValid(%q) = %t, want %t", data, got, want)
			}
		}
	}
	edges := []byte{0x00, 0x22, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff}
	for a := 0x80; a < 0x100; a++ {
		for b := range 0x100 {
			check(byte(a), byte(b))
			for _, c := range edges {
				check(byte(a), byte(b), c)
				check(byte(a), 'x', byte(b), c)
				check(0xd0, 0xb0, byte(a), byte(b), 0xd0, 0xb0, c)
				if a >= 0xec {
					check(byte(a), byte(b), c, 0xbf)
					check(byte(a), byte(b), c, 0xc0)
				}
			}
		}
	}
}

// Every change of one byte of a document, and every cut.
func TestCheckMutations(t *testing.T) {
	documents := [][]byte{
		[]byte(`{"a":[1,-2.50e+3,0,true,false,null,"x\"y\\\/\b\f\n\r\t\u00e9é€😀"],"":{}, "b" : [ ] }`),
		[]byte("\n[\r\n  {\"k\": -0},\n\t{\"long key with spaces\": \"0123456789abcdef0123456789abcdef\"}\n]\n"),
		[]byte(`123456789012345678901234567890.0123456789E-12`),
	}
	for seed := range uint64(12) {
		documents = append(documents, jsontest.Document(seed, 120))
	}
	if testing.Short() {
		documents = documents[:5]
	}
	for _, doc := range documents {
		checkAsStandard(t, doc)
		changed := bytes.Clone(doc)
		for i, original := range doc {
			checkAsStandard(t, doc[:i])
			for c := range 256 {
				changed[i] = byte(c)
				checkAsStandard(t, changed)
			}
			changed[i] = original
		}
	}
}

// Documents of the generator are valid; with a few bytes changed, doubled or
// lost they are what encoding/json says.
func TestCheckRandomDocuments(t *testing.T) {
	n := uint64(20_000)
	if testing.Short() {
		n = 2_000
	}
	g := jsontest.New(0)
	rng := rand.New(rand.NewPCG(1, 2))
	var doc []byte
	for seed := range n / uint64(fewer) {
		g.Reset(seed)
		doc = g.Append(doc[:0], 0)
		if err := Check(doc, 0); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 1 + rng.IntN(3) {
			i := rng.IntN(len(doc))
			switch rng.IntN(3) {
			case 0:
				doc[i] = doc[rng.IntN(len(doc))]
			case 1:
				doc = append(doc[:i], doc[min(len(doc), i+1):]...)
			default:
				doc = append(doc[:i+1], doc[i:]...)
			}
			if len(doc) == 0 {
				break
			}
		}
		checkAsStandard(t, doc)
	}
}

// Containers of both kinds, as deep as levels are kept in one word, in an array
// and in a slice.
func TestCheckDepth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, depth := range []int{1, 2, 63, 64, 65, 127, 128, 129, 1_023, 1_024, 1_025, 1_088, 1_089, 5_000} {
		var head, tail []byte
		for range depth {
			if rng.IntN(2) == 0 {
				head, tail = append(head, '['), append(tail, ']')
			} else {
				head, tail = append(head, `{"k":`...), append(tail, '}')
			}
		}
		reversed := bytes.Clone(tail)
		for i, c := range tail {
			reversed[depth-1-i] = c
		}
		doc := append(append(bytes.Clone(head), '1'), reversed...)
		if err := Check(doc, 0); err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
		if err := Check(doc, depth); err != nil {
			t.Errorf("depth %d with that limit: %v", depth, err)
		}
		if err := Check(doc, depth-1); (err == nil) != (depth == 1) { // 0 is no limit
			t.Errorf("depth %d with a limit of one less: %v", depth, err)
		} else if err != nil && (doc[err.Offset] != '[' && doc[err.Offset] != '{' || !strings.Contains(err.Error(), "deeper")) {
			t.Errorf("depth %d: %v", depth, err)
		}
		for i := range reversed { // each closer, of the other kind
			bad := bytes.Clone(doc)
			at := len(head) + 1 + i
			bad[at] = '[' + ']' + '{' + '}' - '[' - '{' - bad[at]
			if err := Check(bad, 0); err == nil || err.Offset != at {
				t.Fatalf("depth %d with closer %d changed: %v, want it at byte %d", depth, i, err, at)
			}
		}
	}
}

func TestCheckAllocations(t *testing.T) {
	docs := [][]byte{[]byte(strings.Repeat("[", 1_000) + strings.Repeat("]", 1_000))}
	for seed := range uint64(20) {
		docs = append(docs, jsontest.Document(seed, 1_000))
	}
	for _, doc := range docs {
		if bytes.Count(doc, []byte("["))+bytes.Count(doc, []byte("{")) > 1_000 {
			continue
		}
		if n := testing.AllocsPerRun(10, func() {
			if Check(doc, 0) != nil || !IsValid(doc) {
				t.Error("not valid")
			}
		}); n != 0 {
			t.Errorf("%g allocations for %.60q", n, doc)
		}
	}
}

// 100 million open brackets take a bit each, and what growing a slice needs.
func TestCheckBrackets(t *testing.T) {
	n := 100_000_000
	if testing.Short() {
		n = 10_000_000
	}
	doc := bytes.Repeat([]byte("["), n)
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := Check(doc, 0); err == nil || err.Offset != n {
				b.Errorf("%v, want it at byte %d", err, n)
			}
		}
	})
	perLevel := 8 * float64(got.AllocedBytesPerOp()) / float64(n)
	t.Logf("%d brackets: %.1f bits allocated for each, %.2f ns", n, perLevel, float64(got.NsPerOp())/float64(n))
	if perLevel > 8 { // a slice that grows by a quarter has had five times its size
		t.Errorf("%.1f bits for each level", perLevel)
	}
}

func FuzzCheck(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(jsontest.Document(seed, 100))
	}
	for _, s := range []string{
		``, ` `, `{"a": 1 "b": 2}`, `[1,]`, `{a:1}`, `01`, `-`, `1.`, `1e+`, `"\u12`, `"\x"`, "\"\x01\"", "\"\xff\"", "\"\xf0\x9f\x98\"", `nulx`, "\ufeff1", `[[[{"`, `]`,
		"\"0123456789abcde\xe2\x82\xac\"", "[\"0123456789abcdef\\\"\",\n                1]", `12345678.12345678e12345678`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkAsStandard(t, data) })
}

func BenchmarkCheck(b *testing.B) {
	doc := jsontest.Document(1, 1_000_000)
	for _, check := range []struct {
		name  string
		valid func([]byte) bool
	}{
		{"Check", func(data []byte) bool { return Check(data, 0) == nil }},
		{"encoding/json", json.Valid},
	} {
		b.Run(fmt.Sprintf("%s/%dKB", check.name, len(doc)/1_000), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if !check.valid(doc) {
					b.Fatal("not valid")
				}
			}
		})
	}
}
