package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// checkReader reads data in a format and checks what holds for any input.
func checkReader(t *testing.T, format string, data []byte) {
	for kind := range 3 {
		skip, lax := kind > 0, kind > 1
		opt := Options{Format: format, SkipBad: skip, MaxLine: 1 << 12, MaxUnpacked: 1 << 16, LaxClock: lax}
		r, err := NewReader(bytes.NewReader(data), "f", opt)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		last := &Request{}
		for q, err := range r.All() {
			if err != nil {
				checkPlace(t, data, err)
				break
			}
			if n++; q.At < last.At || q.Line < 1 || q.PromptTokens < -1 || q.OutputTokens < -1 || q.Cached < -1 || q.Predicted < -1 {
				t.Fatalf("%s after %s", show(q), show(last))
			}
			if q.Messages != nil && !json.Valid(q.Messages) || q.Tools != nil && !json.Valid(q.Tools) {
				t.Fatalf("messages or tools are no JSON: %s", show(q))
			}
			if !utf8.Valid(q.Text) || !utf8.Valid(q.Output) {
				t.Fatalf("text that is no UTF-8: %s", show(q))
			}
			last = q.Clone()
		}
		s := r.Stats()
		if s.Skipped[Clock] > 0 && lax || s.Redated > 0 && !lax {
			t.Fatalf("stats %+v, lax clock %v", s, lax)
		}
		if s.Requests != n || len(s.Errors) != min(s.Bad(), MaxKept) || !skip && s.Bad() > 0 {
			t.Fatalf("%d requests, stats %+v", n, s)
		}
		for _, e := range s.Errors {
			checkPlace(t, data, e)
		}
	}
}

// checkPlace checks that an error names a byte of the trace, or its end.
func checkPlace(t *testing.T, data []byte, err error) {
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("no *Error: %v", err)
	}
	if e.Kind == "" || e.Text == "" || e.File != "f" || e.Line < 1 || e.Column < 1 || e.Offset < 0 {
		t.Fatalf("error %+v", e)
	}
	if len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b {
		return // the place is in the unpacked text
	}
	if e.Offset > int64(len(data)) {
		t.Fatalf("error %+v behind the end, %d", e, len(data))
	}
	if e.Kind == Format {
		return // of the whole trace
	}
	before := data[:e.Offset]
	if line := 1 + bytes.Count(before, []byte{'\n'}); e.Line != line || e.Column != len(before)-bytes.LastIndexByte(before, '\n') {
		t.Fatalf("error %+v, want line %d and column %d", e, line, len(before)-bytes.LastIndexByte(before, '\n'))
	}
}

// seed adds what the tables of tests have for a format; "" for all.
func seed(f *testing.F, format string) {
	for _, tt := range formatTests {
		if format == "" || tt.format == format {
			f.Add([]byte(tt.in))
		}
	}
	for _, tt := range faultTests {
		if format == "" || tt.format == format {
			f.Add([]byte(strings.Replace(tt.in, "‸", "", 1)))
		}
	}
}

func fuzzFormat(f *testing.F, format string) {
	seed(f, format)
	f.Fuzz(func(t *testing.T, data []byte) { checkReader(t, format, data) })
}

func FuzzDetect(f *testing.F) {
	f.Add(zipped(f, goodLine))
	f.Add(zipped(f, strings.Repeat(goodLine, 2))[:40])
	fuzzFormat(f, "")
}
func FuzzShareGPT(f *testing.F)   { fuzzFormat(f, "sharegpt") }
func FuzzOpenAI(f *testing.F)     { fuzzFormat(f, "openai") }
func FuzzGatewayLog(f *testing.F) { fuzzFormat(f, "unfray") }
func FuzzAgent(f *testing.F)      { fuzzFormat(f, "agent") }
func FuzzOTel(f *testing.F)       { fuzzFormat(f, "otel") }
func FuzzCSV(f *testing.F)        { fuzzFormat(f, "csv") }
func FuzzKeystrokes(f *testing.F) { fuzzFormat(f, "keystrokes") }
func FuzzBench(f *testing.F)      { fuzzFormat(f, "vllm-bench") }

// FuzzMooncake compares lines with what encoding/json reads.
func FuzzMooncake(f *testing.F) {
	seed(f, "mooncake")
	f.Add([]byte(`{"input_length":0,"output_lengtH":0,"hash_ids":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkReader(t, "mooncake", data)
		all, _, err := readAll(t, bytes.NewReader(data), Options{Format: "mooncake", SkipBad: true})
		if err != nil || strings.IndexByte("[\x1f", firstByte(data)) >= 0 {
			return
		}
		lines := bytes.Split(data, []byte{'\n'})
		for _, q := range all {
			checkMooncake(t, bytes.TrimPrefix(lines[q.Line-1], []byte("\xef\xbb\xbf")), q)
		}
	})
}

func firstByte(data []byte) byte {
	data = bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(data) == 0 {
		return 0
	}
	return data[0]
}

// checkMooncake compares a request with what encoding/json reads in its line.
func checkMooncake(t testing.TB, line []byte, q *Request) {
	var want struct {
		Input  json.Number       `json:"input_length"`
		Output json.Number       `json:"output_length"`
		Hashes []json.RawMessage `json:"hash_ids"`
	}
	// Names that differ in case only are one to encoding/json.
	lower := bytes.ToLower(line)
	for _, name := range []string{"input_length", "output_length", "hash_ids"} {
		if n := bytes.Count(lower, []byte(name)); n > 1 || n != bytes.Count(line, []byte(name)) {
			return
		}
	}
	if bytes.IndexByte(line, '\\') >= 0 {
		return
	}
	if err := json.Unmarshal(line, &want); err != nil {
		if !json.Valid(line) && bytes.Count(line, []byte("{")) == 1 {
			t.Fatalf("line %q: read as %s, but %v", line, show(q), err)
		}
		return
	}
	same := func(n json.Number, got int) bool {
		if n == "" {
			return got == -1
		}
		v, err := n.Float64()
		return err == nil && v == float64(got)
	}
	if !same(want.Input, q.PromptTokens) || !same(want.Output, q.OutputTokens) || len(want.Hashes) != len(q.Blocks) {
		t.Fatalf("line %q: %s", line, show(q))
	}
	if q.Conversation != "" {
		return // its identities are chained
	}
	for i, h := range want.Hashes {
		if h[0] == '"' {
			continue
		}
		u, err := strconv.ParseUint(string(h), 10, 64)
		if err != nil {
			v, err := strconv.ParseInt(string(h), 10, 64)
			if err != nil {
				t.Fatalf("line %q: hash %s was read as %d", line, h, q.Blocks[i])
			}
			u = uint64(v)
		}
		if u != q.Blocks[i] {
			t.Fatalf("line %q: hash %s was read as %d", line, h, q.Blocks[i])
		}
	}
}

// FuzzScanner compares what the scanner takes with what encoding/json takes.
func FuzzScanner(f *testing.F) {
	for _, in := range []string{`{"a":[1,2.5e-3,true,null,"x\u00e9\ud83d\ude00\n"],"b":{}}`, `"\ud800"`, `[1,]`, `-`, `01`, `1.`, `1e`, "\"\x00\"", `{"a"}`, `nul`, `[[[[`, "\"\xff\"", ` 1 `, `"\/"`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := scanner{b: data}
		s.skip()
		s.end()
		// encoding/json lets pass what is no UTF-8, and half pairs.
		valid := json.Valid(data)
		if s.err == nil && !valid {
			t.Fatalf("%q is no JSON", data)
		}
		if s.err != nil && valid && s.err.Kind != Encoding && !strings.Contains(s.err.Text, "levels deep") {
			t.Fatalf("%q is JSON, but %v", data, s.err)
		}
		if s.err != nil && (s.err.Offset < 0 || s.err.Offset > int64(len(data))) {
			t.Fatalf("%q: %+v", data, s.err)
		}
		if s.err != nil {
			return
		}
		s.reset(data)
		switch c := s.peek(); {
		case c == '"':
			var want string
			if err := json.Unmarshal(data, &want); err != nil || string(s.string()) != want {
				t.Fatalf("%q: %q, %v", data, s.text, err)
			}
		case c == '[':
			var want []vocab.ID
			got := s.ids(nil)
			if err := json.Unmarshal(data, &want); err == nil && s.err == nil && !bytes.Contains(data, []byte("null")) && !slices.Equal(got, want) {
				t.Fatalf("%q: %v, want %v", data, got, want)
			}
		case c == '-' || c >= '0' && c <= '9':
			checkNumber(t, bytes.TrimSpace(data))
		}
	})
}

func checkNumber(t *testing.T, text []byte) {
	want, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return
	}
	if v, ok := whole(text); ok != (want == math.Trunc(want)) || ok && math.Abs(want) < 1<<62 && float64(v) != want {
		// Beyond 2^53 a fraction may be lost in want.
		if math.Abs(want) < 1<<52 {
			t.Fatalf("%s: whole number %d %t, want %v", text, v, ok, want)
		}
	}
	if d, ok := decimal(text, 1000000000); ok && math.Abs(d.Seconds()-want) > 1e-9+want*1e-12 || !ok && want >= 0 && want < 9e9 {
		t.Fatalf("%s seconds: %d %t", text, d, ok)
	}
}

// FuzzArray compares how records are cut with encoding/json's decoder.
func FuzzArray(f *testing.F) {
	for _, in := range []string{`[1,"a]\"",{"b":[1,2]} , []]`, `[]`, ` [ ] `, `[[1],[2]`, `["\\",{}]`, "[1,\n2]"} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || firstByte(data) != '[' || data[0] == 0xef {
			return
		}
		var want []json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		l := newRecords(oneByte{bytes.NewReader(data)}, 1<<20)
		l.findLayout()
		for i := 0; ; i++ {
			rec, _, err := l.next()
			if err == io.EOF && i == len(want) {
				return
			}
			if err != nil || i >= len(want) || !bytes.Equal(rec, want[i]) {
				t.Fatalf("%q: element %d is %q, %v", data, i, rec, err)
			}
			if at := int(l.rec.offset); !bytes.HasPrefix(data[at:], rec) {
				t.Fatalf("%q: element %d is not at %d", data, i, at)
			}
		}
	})
}

type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }
