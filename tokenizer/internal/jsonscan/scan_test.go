package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// skipAll reads data as one value.
func skipAll(data string) error {
	s, err := New([]byte(data))
	if err != nil {
		return err
	}
	if err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for _, tt := range []struct {
		in     string
		cause  error
		path   string
		offset int
	}{
		{"", ErrSyntax, "", 0},
		{"  ", ErrSyntax, "", 2},
		{"[1,2", ErrSyntax, "[2]", 4},
		{"[1 2]", ErrSyntax, "[1]", 3},
		{"[1,]", ErrSyntax, "[1]", 3},
		{`{"a":1,}`, ErrSyntax, "", 7},
		{`{"a" 1}`, ErrSyntax, "", 5},
		{`{a:1}`, ErrSyntax, "", 1},
		{`{"a":{"b":[0,nul]}}`, ErrSyntax, "a.b[1]", 13},
		{`{"a":1,"b":2,"a":3}`, ErrInvalid, "a", 13},
		{`"abc`, ErrSyntax, "", 4},
		{`"abcdefghijkl`, ErrSyntax, "", 13},
		{"\"a\nb\"", ErrSyntax, "", 2},
		{"\"0123456789\x01\"", ErrSyntax, "", 11},
		{`"\x"`, ErrSyntax, "", 1},
		{`"\`, ErrSyntax, "", 2},
		{`"\u12"`, ErrSyntax, "", 1},
		{`"\u12g4"`, ErrSyntax, "", 1},
		{`"ab\ud800"`, ErrSyntax, "", 3},
		{`"\ud800\u0041"`, ErrSyntax, "", 1},
		{`"\udc00\ud800"`, ErrSyntax, "", 1},
		{"\"\xff\"", ErrSyntax, "", 1},
		{"\"\xed\xa0\x80\"", ErrSyntax, "", 1}, // a surrogate in UTF-8
		{"01", ErrSyntax, "", 0},
		{"-", ErrSyntax, "", 0},
		{"1.", ErrSyntax, "", 0},
		{"1e", ErrSyntax, "", 0},
		{"+1", ErrSyntax, "", 0},
		{"1 1", ErrSyntax, "", 2},
		{"{} x", ErrSyntax, "", 3},
		{"\xff\xfe{\x00", ErrSyntax, "", 0},
		{deep, ErrLimit, strings.Repeat("[0]", MaxDepth), MaxDepth},
	} {
		err := skipAll(tt.in)
		var e *Error
		if !errors.As(err, &e) || e.Cause != tt.cause || e.Path != tt.path || e.Offset != tt.offset {
			t.Errorf("%.40q: %v; want %v at %q, byte %d", tt.in, err, tt.cause, tt.path, tt.offset)
		}
	}
}

func TestSkip(t *testing.T) {
	for _, in := range []string{
		`null`, ` true `, `false`, `0`, `-0`, `-0.5e+10`, `1E5`, `""`, `[]`, `{}`, `[ ]`, "{\r\n\t}",
		`[[],{},[{}]]`, `{"a":[1,2,{"b":null}],"c":"d"}`, "\xef\xbb\xbf{}",
		`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14,"o":15,"p":16,"q":17,"r":18}`,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
		"[1,\n                             2]",
	} {
		if err := skipAll(in); err != nil {
			t.Errorf("%.40q: %v", in, err)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, in := range []string{
		`""`, `"a"`, `"1234567"`, `"12345678"`, `"123456789"`, `"Ġthe"`, `"\"\\\/\b\f\n\r\t"`, `"\u0000"`, `"\u0120the"`,
		`"\ud83d\ude00x"`, `"\uD83D\uDE00"`, `"\uffff"`, `"a\\"`, `"long plain text \u00e9 and on, and on"`, `"😀"`, `"\u007f"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatal(err)
		}
		s, err := New([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Text()
		if err != nil || string(got.Of(s.Data())) != want || s.End() != nil {
			t.Errorf("%s: %q, %v; want %q", in, got.Of(s.Data()), err, want)
		}
	}
}

func TestID(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
		err  error
	}{
		{"0", 0, nil},
		{" 151643,", 151643, nil},
		{"4194303", MaxID, nil},
		{"4194304", 0, ErrLimit},
		{"99999999999999999999999999", 0, ErrLimit},
		{"-1", 0, ErrSyntax},
		{"007", 0, ErrSyntax},
		{"1.5", 0, ErrInvalid},
		{"1e3", 0, ErrInvalid},
		{`"1"`, 0, ErrSyntax},
		{"", 0, ErrSyntax},
	} {
		s, err := New([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.ID()
		if !errors.Is(err, tt.err) || err == nil && got != tt.want {
			t.Errorf("%q: %d, %v; want %d, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

func TestLimits(t *testing.T) {
	long := `"` + strings.Repeat("x", MaxTokenBytes) + `"`
	s, _ := New([]byte(long))
	if _, err := s.Token(); err != nil {
		t.Error(err)
	}
	s, _ = New([]byte(`"x` + long[1:]))
	if _, err := s.Token(); !errors.Is(err, ErrLimit) {
		t.Errorf("a token of %d bytes: %v", MaxTokenBytes+1, err)
	}
}

func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range MaxNames + 1 {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	if err := skipAll("{" + b.String()[1:] + "}"); !errors.Is(err, ErrLimit) {
		t.Errorf("%d names: %v", MaxNames+1, err)
	}
}

// TestPathIsShort: a name from outside may have any length, a message not.
func TestPathIsShort(t *testing.T) {
	err := skipAll(`{"` + strings.Repeat("é", 1000) + `":x}`)
	if err == nil || len(err.Error()) > 300 || !utf8.ValidString(err.Error()) {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
}

// FuzzSkip compares with encoding/json: what is accepted is valid there, and
// what is refused is not, but for what this package refuses on purpose.
func FuzzSkip(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e10,"x\u0120\ud83d\ude00",true,false,null,{}],"b":{"c":[]}}`, `[[[]]]`, `"\udc00"`, `{"a":1,"a":2}`, "[1,\n        2]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := skipAll(string(data))
		valid := json.Valid(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
		if err == nil && !valid {
			t.Fatalf("%q is accepted", data)
		}
		if errors.Is(err, ErrSyntax) && valid && utf8.Valid(data) && !strings.Contains(err.Error(), "surrogate") {
			t.Fatalf("%q: %v", data, err)
		}
	})
}

// FuzzText compares decoded strings with those of encoding/json.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`"abc"`, `"\u0120\ud83d\ude00\n"`, `"0123456789\"x"`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := New(bytes.Clone(data))
		if err != nil {
			return
		}
		got, err := s.Text()
		if err != nil || s.End() != nil {
			return
		}
		var want string
		if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &want); err != nil || want != string(got.Of(s.Data())) {
			t.Fatalf("%q is read as %q; want %q, %v", data, got.Of(s.Data()), want, err)
		}
	})
}
