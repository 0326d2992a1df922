package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const goodLine = `{"timestamp":1,"input_length":5,"output_length":1,"hash_ids":[1]}`

// In a faulty trace, ‸ stands before the byte that the error must point at, and
// is not part of it.
var faultTests = []struct {
	name   string
	format string
	in     string
	kind   Kind
	text   string // that the error contains
}{
	{"empty", "", "‸", Format, "the trace is empty"},
	{"blank", "", "‸\n \n\t\n", Format, "the trace is empty"},
	{"no format", "", "‸" + `{"a":1}`, Format, "no format has such a record"},
	{"no JSON and no CSV", "", "‸hello\n", Syntax, "want an object"},
	{"HTML", "", "‸<html>\n", Syntax, "want an object"},

	{"cut line", "mooncake", goodLine + "\n" + `{"timestamp":1,"input_le‸`, Cut, "the record ends inside a string"},
	{"cut in a number", "mooncake", `{"timestamp":1,"input_length":5,"hash_ids":[1‸`, Cut, "the record ends"},
	{"cut behind a comma", "mooncake", `{"timestamp":1,‸` + "\n" + goodLine, Cut, "the record ends"},
	{"cut in true", "openai", `{"stream":tr‸`, Cut, "inside true"},
	{"cut in an escape", "openai", `{"prompt":"a\u00‸`, Cut, "inside a string"},
	{"wrong type", "mooncake", goodLine + "\n" + `{"timestamp":1,"input_length":‸"5","hash_ids":[1]}`, Type, "input_length: want a whole number of tokens, got a string"},
	{"fraction", "mooncake", `{"input_length":‸5.5,"hash_ids":[1]}`, Type, "input_length: want a whole number of tokens, got 5.5"},
	{"negative", "mooncake", `{"input_length":‸-5,"hash_ids":[1]}`, Range, "input_length"},
	{"overflow", "mooncake", `{"input_length":‸99999999999999999999,"hash_ids":[1]}`, Range, "input_length"},
	{"overflow by exponent", "mooncake", `{"input_length":‸1e400,"hash_ids":[1]}`, Range, "input_length"},
	{"NaN", "mooncake", `{"timestamp": ‸NaN,"input_length":5,"hash_ids":[1]}`, Range, "timestamp"},
	{"infinity", "mooncake", `{"timestamp": ‸-Infinity,"input_length":5,"hash_ids":[1]}`, Range, "timestamp"},
	{"negative time", "mooncake", `{"timestamp":‸-1,"input_length":5,"hash_ids":[1]}`, Range, "timestamp"},
	{"far time", "mooncake", `{"timestamp":‸9999999999999999,"input_length":5,"hash_ids":[1]}`, Range, "292 years"},
	{"leading zero", "mooncake", `{"input_length":‸05,"hash_ids":[1]}`, Syntax, "input_length"},
	{"hash with a fraction", "mooncake", `{"input_length":5,"hash_ids":[‸1.5]}`, Type, "hash_ids[0]"},
	{"hash beyond 64 bits", "mooncake", `{"input_length":1025,"hash_ids":[1, 2, ‸18446744073709551616]}`, Range, "hash_ids[2]"},
	{"hash null", "mooncake", `{"input_length":5,"hash_ids":[‸null]}`, Type, "hash_ids[0]: want a block hash, a whole number or a string, got null"},
	{"hashes are no array", "mooncake", `{"input_length":5,"hash_ids":‸{}}`, Type, "got an object"},
	{"trailing comma", "mooncake", `{"input_length":5,"hash_ids":[1,‸]}`, Syntax, "want a value"},
	{"trailing comma of an object", "mooncake", `{"input_length":5,"hash_ids":[1],‸}`, Syntax, "want a name"},
	{"no colon", "mooncake", `{"input_length" ‸5}`, Syntax, "want a colon"},
	{"two values on a line", "mooncake", goodLine + ` ‸{}`, Syntax, "something follows"},
	{"missing", "mooncake", `‸{"input_length":5}`, Missing, "no hash_ids"},
	{"too few hashes", "mooncake", `{"input_length":2000,"hash_ids":‸[1]}`, Content, "1 block hashes for 2000 tokens in blocks of 512: want 4"},
	{"block size changes", "mooncake", `{"block_size":4,"input_length":4,"hash_ids":[1]}` + "\n" + `{"block_size":‸8,"input_length":4,"hash_ids":[1]}`, Content, "want one size"},
	{"block size 0", "mooncake", `{"block_size":‸0,"input_length":4,"hash_ids":[1]}`, Range, "block_size"},
	{"twice", "mooncake", `{"input_length":5,"hash_ids":[1],‸"input_length":5}`, Duplicate, "input_length: given twice"},
	{"twice, once null", "mooncake", `{"input_length":null,"hash_ids":[1],‸"input_length":5}`, Duplicate, "input_length"},
	{"no object", "mooncake", `[‸1]`, Type, "want an object, got a number"},
	{"a number", "mooncake", goodLine + "\n" + `‸17`, Type, "want an object, got a number"},
	{"clock", "mooncake", strings.Replace(goodLine, ":1,", ":900,", 1) + "\n" + `{"timestamp":‸100,"input_length":5,"hash_ids":[1]}`, Clock, "the clock runs back by 800ms"},
	{"no time", "mooncake", goodLine + "\n" + `‸{"input_length":5,"hash_ids":[1]}`, Missing, "without a time"},
	{"suddenly a time", "mooncake", `{"input_length":5,"hash_ids":[1]}` + "\n" + `{"timestamp":‸0,"input_length":5,"hash_ids":[1]}`, Content, "with a time"},
	{"no UTF-8", "openai", "{\"prompt\":\"a‸\xffb\"}", Encoding, "prompt: the byte 0xff is no UTF-8"},
	{"no UTF-8 behind an escape", "openai", "{\"prompt\":\"a\\nb‸\xc3\"}", Encoding, "0xc3"},
	{"no UTF-8 in a field that nobody reads", "openai", "{\"x\":\"‸\xff\",\"prompt\":\"\"}", Encoding, ""},
	{"half a pair", "openai", `{"prompt":"a‸\ud83dx"}`, Encoding, "half of a surrogate pair"},
	{"low half", "openai", `{"prompt":"‸\ude00"}`, Encoding, "half of a surrogate pair"},
	{"control character", "openai", "{\"prompt\":\"a‸\x01\"}", Syntax, "0x01"},
	{"unknown escape", "openai", `{"prompt":"a‸\x"}`, Syntax, "no escape"},
	{"bad hex", "openai", `{"prompt":"a‸\u00g0"}`, Syntax, "hexadecimal"},
	{"bad literal", "openai", `{"x":‸nul1,"prompt":""}`, Syntax, "want a value"},
	{"minus", "openai", `{"x":‸-,"prompt":""}`, Syntax, "want a number"},
	{"a dot without digits", "openai", `{"x":‸1.,"prompt":""}`, Syntax, "want a number"},

	{"prompt of a wrong type", "openai", `{"prompt":‸5}`, Type, "prompt: want a prompt as a string or an array of tokens, got a number"},
	{"token of a wrong type", "openai", `{"prompt":[1,2,‸-3]}`, Range, "prompt[2]: want a token ID"},
	{"token too large", "openai", `{"prompt":[1,‸2147483648]}`, Range, "prompt[1]"},
	{"tokens and texts", "openai", `{"prompt":[1,‸"a"]}`, Content, "prompt[1]: text among tokens"},
	{"texts and tokens", "openai", `{"prompt":["a",‸1]}`, Type, "prompt[1]"},
	{"empty prompt", "openai", `{"prompt":‸[]}`, Content, "the prompt is empty"},
	{"a bad one of several prompts", "openai", `{"prompt":[[1],[‸"a"]]}`, Type, "want a token ID"},
	{"body as a string", "openai", `{"body":‸"{\"prompt\":7}","response":{}}`, Type, "body: inside the string, at byte 10: prompt: want a prompt"},
	{"no prompt", "openai", `‸{"model":"m"}`, Missing, "no prompt"},
	{"two prompts", "openai", `{"prompt":"a","messages":‸[]}`, Content, "both messages and a prompt"},
	{"messages without roles", "openai", `{"messages":[{"role":"user"},‸{"content":"x"}]}`, Missing, "messages[1]: no role"},
	{"no messages", "openai", `{"messages":‸[]}`, Content, "at least one message"},
	{"no date", "openai", `{"prompt":"","timestamp":‸"yesterday"}`, Type, "timestamp: want a time"},
	{"old date", "openai", `{"prompt":"","timestamp":‸"1950-01-01T00:00:00Z"}`, Range, "1970"},
	{"tokens cached of a wrong type", "openai", `{"body":{"prompt":"a"},"response":{"usage":{"prompt_tokens_details":{"cached_tokens":‸"1"}}}}`, Type, "response.usage.prompt_tokens_details.cached_tokens: want"},
	{"a choice's text", "openai", `{"prompt":"a","response":{"choices":[{"text":‸1}]}}`, Type, "response.choices[0].text: want a string"},

	{"array that is not closed", "sharegpt", `[{"id":"a","conversations":[]}` + "\n" + `‸`, Cut, "inside its array"},
	{"array without a comma", "sharegpt", `[{"id":"a","conversations":[]}` + "\n" + `‸{}]`, Syntax, "want a comma"},
	{"array with a comma at the end", "sharegpt", `[{"id":"a","conversations":[]},‸]`, Syntax, ""},
	{"something behind the array", "sharegpt", `[{"id":"a","conversations":[]}]` + "\n" + ` ‸{}`, Syntax, "follows the array"},
	{"unknown speaker", "sharegpt", `[{"id":"a","conversations":[{"from":‸"narrator","value":""}]}]`, Content, "want human, gpt, system or tool"},
	{"value of a wrong type", "sharegpt", "[\n{\"id\":\"a\",\n\"conversations\":[{\"from\":\"human\",\n  \"value\":‸7}]}]", Type, "conversations[0].value: want a string"},
	{"turn without a value", "sharegpt", "[{\"conversations\":[‸{\"from\":\"human\"}]}]", Missing, "no value"},
	{"history of a wrong type", "agent", "{\n\"history\":‸{}}", Type, "history: want an array"},
	{"log's tokens", "unfray", `{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"request","prompt_tokens":‸-1}`, Range, "prompt_tokens"},
	{"log in text", "unfray", `‸time=2026-01-01T00:00:00.000Z level=INFO msg=request id=A method=POST path=/v1/completions`, Format, "log.format json"},
	{"log in text behind the start", "unfray", "unfray: listening on http://127.0.0.1:1\n" + `‸time=2026-01-01T00:00:00.000Z level=INFO msg=request id=A`, Format, "log.format json"},
	{"logged body of a request that was passed on", "unfray", `{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"request","path":"/v1/completions","status":200,"body":‸"{\"prompt\":7}"}`, Type, "body"},
	{"logged body", "unfray", `{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"request","prompt_tokens":1,"body":‸"{\"prompt\":7}"}`, Type, "body"},
	{"span's messages", "otel", `{"spans":[{"start_time":1,"attributes":{"gen_ai.input.messages":‸"[{]"}}]}`, Syntax, "inside the string"},
	{"span without a time", "otel", `{"spans":[‸{"attributes":{"gen_ai.input.messages":[{"role":"user"}]}}]}`, Missing, "no start_time"},
	{"prefix", "keystrokes", `‸{"prefix":null,"next":"x"}`, Missing, "no prefix"},

	{"csv without a header", "csv", "‸1,2,3\n", Format, "want a header"},
	{"csv number", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,‸x,3\n", Type, "want a whole number of tokens"},
	{"csv negative", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,‸-3\n", Range, "want a whole number of tokens"},
	{"csv time", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n‸noon,2,3\n", Type, "want a time"},
	{"csv cut", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2‸\n", Cut, "fewer fields"},
	{"csv too long", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3,‸4\n", Content, "more fields"},
	{"csv quotes", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n\"1\"‸2,2,3\n", Syntax, "want a comma"},
	{"csv open quotes", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,\"3‸\n", Cut, "inside quotes"},
	{"csv clock", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n5,2,3\n‸4,2,3\n", Clock, "runs back by 1s"},
	{"csv bytes", "csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n5,‸\xff,3\n", Encoding, ""},
}

// marked cuts the mark out of a trace and says where it was.
func marked(t *testing.T, in string) (text string, line, column, offset int) {
	t.Helper()
	before, after, ok := strings.Cut(in, "‸")
	if !ok {
		t.Fatal("no mark")
	}
	line = 1 + strings.Count(before, "\n")
	return before + after, line, len(before) - strings.LastIndexByte(before, '\n'), len(before)
}

func TestFaults(t *testing.T) {
	for _, tt := range faultTests {
		t.Run(tt.name, func(t *testing.T) {
			in, line, column, offset := marked(t, tt.in)
			_, _, err := readAll(t, strings.NewReader(in), Options{Format: tt.format})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if e.Line != line || e.Column != column || e.Offset != int64(offset) || e.Kind != tt.kind || !strings.Contains(e.Text, tt.text) {
				t.Errorf("error %v (%s, offset %d), want %d:%d (%s, offset %d) %q", e, e.Kind, e.Offset, line, column, tt.kind, offset, tt.text)
			}
			if want := fmt.Sprintf("t:%d:%d: ", line, column); !strings.HasPrefix(e.Error(), want) {
				t.Errorf("error %q, want %q first", e, want)
			}
		})
	}
}

// A bad record leaves the others as they are, and is counted by its kind.
func TestSkipBad(t *testing.T) {
	for _, tt := range faultTests {
		if tt.format != "mooncake" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			in, _, _, _ := marked(t, tt.in)
			if in[0] == '[' {
				t.Skip("an array has no lines")
			}
			stamp := `{"timestamp":950,"input_length":5,"output_length":1,"hash_ids":[1]}`
			if tt.name == "suddenly a time" || tt.name == "block size changes" {
				stamp = `{"block_size":4,"input_length":4,"hash_ids":[1]}`
			}
			all, stats, err := readAll(t, strings.NewReader(in+"\n"+stamp+"\n"), Options{Format: tt.format, SkipBad: true})
			if err != nil {
				t.Fatal(err)
			}
			if stats.Skipped[tt.kind] != 1 || stats.Bad() != 1 || len(stats.Errors) != 1 || stats.Records != len(all)+1 {
				t.Errorf("%d requests, stats %+v, want one of kind %s skipped", len(all), stats, tt.kind)
			}
			if last := all[len(all)-1]; last.PromptTokens > 5 || len(last.Blocks) != 1 {
				t.Errorf("the last request is %s", show(last))
			}
		})
	}
}

func TestErrorsKept(t *testing.T) {
	in := goodLine + "\n" + strings.Repeat("{\n", 25) + goodLine
	all, stats, err := readAll(t, strings.NewReader(in), Options{SkipBad: true})
	if err != nil || len(all) != 2 || stats.Skipped[Cut] != 25 || len(stats.Errors) != MaxKept {
		t.Errorf("%d requests, %+v, %v", len(all), stats, err)
	}
	for i, e := range stats.Errors {
		if e.Line != i+2 {
			t.Errorf("error %d is %v", i, e)
		}
	}
}

// After an error the reader stays at it.
func TestErrorStays(t *testing.T) {
	r, err := NewReader(strings.NewReader("{\n"+goodLine), "t", Options{Format: "mooncake"})
	if err != nil {
		t.Fatal(err)
	}
	_, first := r.Next()
	if _, err := r.Next(); err == nil || err != first {
		t.Errorf("second call: %v, want %v", err, first)
	}
}

func TestNoFormat(t *testing.T) {
	for _, n := range []int{3, 5000} {
		_, stats, err := readAll(t, strings.NewReader(strings.Repeat("junk\n", n)), Options{SkipBad: true})
		var e *Error
		if !errors.As(err, &e) || e.Kind != Format || stats.Records > 1000 {
			t.Errorf("%d lines: %v after %d", n, err, stats.Records)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, opt := range []Options{{Format: "xml"}, {BlockTokens: -1}, {MaxLine: -1}, {MaxLine: math.MaxInt}, {Reorder: -1}, {TimeUnit: -1}} {
		if _, err := NewReader(strings.NewReader(""), "t", opt); err == nil {
			t.Errorf("%+v: no error", opt)
		}
	}
}

// Reorder gives requests in the order of their times, and finds those that come
// later than it allows.
func TestReorder(t *testing.T) {
	line := func(ms ...int) string {
		var b strings.Builder
		for _, m := range ms {
			fmt.Fprintf(&b, `{"timestamp":%d,"input_length":1,"output_length":%d,"hash_ids":[1]}`+"\n", m, m)
		}
		return b.String()
	}
	for _, tt := range []struct {
		in      []int
		reorder time.Duration
		want    []int
		fault   int // line; 0: none
	}{
		{[]int{5, 3, 4, 9, 9, 8}, 2 * time.Millisecond, []int{3, 4, 5, 8, 9, 9}, 0},
		{[]int{5, 3, 8, 4}, 2 * time.Millisecond, []int{3}, 4},
		{[]int{9, 1}, 2 * time.Millisecond, nil, 2},
		{[]int{9, 1, 5}, time.Hour, []int{1, 5, 9}, 0},
		{[]int{1, 2, 1}, 0, []int{1, 2}, 3},
		{[]int{2, 2, 2}, 0, []int{2, 2, 2}, 0},
	} {
		all, _, err := readAll(t, strings.NewReader(line(tt.in...)), Options{Reorder: tt.reorder})
		var got []int
		for _, q := range all {
			got = append(got, q.OutputTokens)
			if q.At != time.Duration(q.OutputTokens-all[0].OutputTokens)*time.Millisecond {
				t.Errorf("%v: %s at %s", tt.in, show(q), q.At)
			}
		}
		var e *Error
		if fault := 0; errors.As(err, &e) {
			if fault = e.Line; fault != tt.fault || e.Kind != Clock {
				t.Errorf("%v: %v, want a fault in line %d", tt.in, err, tt.fault)
			}
		} else if err != nil || tt.fault != 0 {
			t.Errorf("%v: error %v, want line %d", tt.in, err, tt.fault)
		}
		if tt.fault == 0 && !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.in, got, tt.want)
		}
	}
}

// TestReorderRoom holds no more requests back than there is room for, in order as
// far as they are held.
func TestReorderRoom(t *testing.T) {
	line := func(at int) string {
		return fmt.Sprintf(`{"timestamp":%d,"input_length":1,"output_length":%d,"hash_ids":[1]}`+"\n", at, at)
	}
	var text strings.Builder
	for at := range 1000 {
		text.WriteString(line(at ^ 1))
	}
	text.WriteString(line(5))
	r, err := NewReader(strings.NewReader(text.String()), "t", Options{Reorder: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r.queue.room = 10_000
	n, held := 0, 0
	for ; ; n++ {
		q, err := r.Next()
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Kind != Clock || e.Line != 1001 || !strings.Contains(e.Text, "held back") {
				t.Errorf("%v", err)
			}
			break
		}
		if held = max(held, len(r.queue.held)); q.OutputTokens != n {
			t.Fatalf("request %d is number %d", q.OutputTokens, n)
		}
	}
	if n < 900 || held < 10 || held > 20 {
		t.Errorf("%d requests were given, %d held", n, held)
	}
}

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGzip(t *testing.T) {
	text := strings.Repeat(goodLine+"\n", 2000)
	whole := zipped(t, text)
	flip := bytes.Clone(whole)
	flip[len(flip)-6] ^= 1 // in the checksum
	middle := bytes.Clone(whole)
	middle[len(middle)/2] ^= 0xff
	for _, tt := range []struct {
		name string
		in   []byte
		opt  Options
		want int // requests; -1: do not look
		text string
	}{
		{"whole", whole, Options{}, 2000, ""},
		{"two members", append(bytes.Clone(whole), whole...), Options{}, 4000, ""},
		{"garbage behind", append(bytes.Clone(whole), "garbage garbage garbage"...), Options{}, 2000, "no gzip data follows"},
		{"cut", whole[:len(whole)-8], Options{}, -1, "cut"},
		{"cut early", whole[:15], Options{}, 0, "cut"},
		{"cut header", whole[:5], Options{}, 0, "cut"},
		{"checksum", flip, Options{}, -1, "checksum"},
		{"damage", middle, Options{}, -1, ""},
		{"bad block", append(bytes.Clone(whole[:10]), 7), Options{}, 0, "damaged"},
		{"bad header", []byte("\x1f\x8b\x07......."), Options{}, 0, "begins as gzip data but is none"},
		{"zstd", []byte("\x28\xb5\x2f\xfd...."), Options{}, 0, "zstd data"},
		{"bomb", zipped(t, strings.Repeat(" ", 1<<20)), Options{MaxUnpacked: 1000}, 0, "unpacks to more than 1000 bytes"},
		{"at the limit", whole, Options{MaxUnpacked: int64(len(text))}, 2000, ""},
		{"above the limit", whole, Options{MaxUnpacked: int64(len(text) - 1)}, 1999, "unpacks to more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, _, err := readAll(t, bytes.NewReader(tt.in), tt.opt)
			if tt.want >= 0 && len(all) != tt.want {
				t.Errorf("%d requests, want %d", len(all), tt.want)
			}
			faulty := tt.text != "" || tt.name == "damage"
			if !faulty {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Text, tt.text) {
				t.Fatalf("error %v, want %q", err, tt.text)
			}
			// Skipping keeps what came before, and counts the damage.
			opt := tt.opt
			opt.SkipBad, opt.Format = true, "mooncake"
			kept, stats, err := readAll(t, bytes.NewReader(tt.in), opt)
			if e.Kind == Compression && tt.want != 0 && (err != nil || len(kept) < len(all) || stats.Skipped[Compression] != 1) {
				t.Errorf("skipping: %d requests, %+v, %v", len(kept), stats, err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	path := t.TempDir() + "/trace.anything"
	if err := os.WriteFile(path, zipped(t, goodLine+"\n"+goodLine[:9]), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Error(err)
	}
	if _, err := r.Next(); err == nil || !strings.HasPrefix(err.Error(), path+":2:10: ") {
		t.Errorf("error %v, want one at %s:2:10", err, path)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A file that cannot be read is no fault of the trace: nothing skips it.
func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, skip := range []bool{false, true} {
		in := io.MultiReader(strings.NewReader(goodLine+"\n"+goodLine[:10]), iotest.ErrReader(broken))
		all, _, err := readAll(t, in, Options{SkipBad: skip})
		if len(all) != 1 || !errors.Is(err, broken) {
			t.Errorf("skip %t: %d requests, error %v", skip, len(all), err)
		}
	}
	if _, err := Open("testdata/no-such-file", Options{}); err == nil {
		t.Error("no error for a file that is not there")
	}
}

// What is read does not depend on how the bytes come.
func TestOneByte(t *testing.T) {
	for _, tt := range formatTests {
		whole, _, _ := readAll(t, strings.NewReader(tt.in), tt.opt)
		got, _, err := readAll(t, iotest.OneByteReader(strings.NewReader(tt.in)), tt.opt)
		if err != nil || !slices.EqualFunc(whole, got, func(a, b *Request) bool { return show(a) == show(b) }) {
			t.Errorf("%s: %d requests, want %d; %v", tt.name, len(got), len(whole), err)
		}
	}
	for _, tt := range faultTests {
		in, _, _, _ := marked(t, tt.in)
		_, _, want := readAll(t, strings.NewReader(in), Options{Format: tt.format})
		_, _, got := readAll(t, iotest.OneByteReader(strings.NewReader(in)), Options{Format: tt.format})
		if got == nil || got.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

// forever repeats a byte n times, between a beginning and an end.
func forever(head string, c byte, n int64, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), io.LimitReader(repeated(c), n), strings.NewReader(tail))
}

type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for n := range p {
		if n == 4096 {
			break
		}
		p[n] = byte(r)
	}
	for n := 4096; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}

// allocated is how many bytes do allocates.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A line of a gigabyte is an error, or skipped, in little memory.
func TestLongLines(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 1 << 26
	}
	for _, tt := range []struct {
		name string
		in   func() io.Reader
		line int
	}{
		{"line", func() io.Reader { return forever(goodLine+"\n{\"timestamp\":1,\"x\":\"", 'a', size, "\"}\n"+goodLine) }, 2},
		{"element", func() io.Reader { return forever("["+goodLine+",\n{\"x\":\"", 'a', size, "\"},"+goodLine+"]") }, 2},
		{"brackets", func() io.Reader { return forever("["+goodLine+",\n", '[', 1<<22, "") }, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opt := Options{MaxLine: 1 << 20}
			var all []*Request
			var err error
			used := allocated(func() { all, _, err = readAll(t, tt.in(), opt) })
			var e *Error
			if !errors.As(err, &e) || e.Kind != TooLong || e.Line != tt.line || e.Column != 1 || len(all) != 1 {
				t.Errorf("%d requests, error %v, want one in line %d", len(all), err, tt.line)
			}
			if used > 8<<20 {
				t.Errorf("allocated %d bytes", used)
			}
			if tt.name == "brackets" {
				return
			}
			opt.SkipBad = true
			all, stats, err := readAll(t, tt.in(), opt)
			if err != nil || len(all) != 2 || stats.Skipped[TooLong] != 1 {
				t.Errorf("skipping: %d requests, %+v, %v", len(all), stats, err)
			}
		})
	}
}

// Limits count bytes of the line, without its end.
func TestLineLimit(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", ""} {
		for _, limit := range []int{len(goodLine) - 1, len(goodLine)} {
			_, _, err := readAll(t, strings.NewReader(goodLine+end), Options{MaxLine: limit})
			if (err == nil) != (limit == len(goodLine)) {
				t.Errorf("end %q, limit %d of %d: %v", end, limit, len(goodLine), err)
			}
		}
	}
}

// Deep nesting is an error, not a stack overflow.
func TestDepth(t *testing.T) {
	for _, open := range []string{"[", `{"a":`, `{"request":`} {
		in := `{"prompt":"","x":` + strings.Repeat(open, 100000)
		_, _, err := readAll(t, strings.NewReader(in), Options{Format: "openai"})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Text, "levels deep") {
			t.Errorf("%s: %.200v", open, err)
		}
	}
}

// TestLaxClock gives requests as they stand where times run back or are missing, and dates them by the one before.
func TestLaxClock(t *testing.T) {
	line := func(at string) string { return `{` + at + `"input_length":5,"hash_ids":[1]}` + "\n" }
	for _, tt := range []struct {
		name    string
		lines   []string
		reorder time.Duration
		want    []time.Duration // ms
		redated int
	}{
		{"back", []string{`"timestamp":900,`, `"timestamp":100,`, `"timestamp":1000,`, `"timestamp":950,`}, 0, []time.Duration{0, 0, 100, 100}, 2},
		{"sorted as far as allowed", []string{`"timestamp":900,`, `"timestamp":100,`, `"timestamp":1000,`, `"timestamp":950,`}, 60 * time.Millisecond, []time.Duration{0, 60, 110, 160}, 1},
		{"missing", []string{`"timestamp":900,`, "", `"timestamp":1000,`}, 0, []time.Duration{0, 0, 100}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var text string
			for _, l := range tt.lines {
				text += line(l)
			}
			r, err := NewReader(strings.NewReader(text), "x", Options{Format: "mooncake", LaxClock: true, Reorder: tt.reorder})
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Duration
			for q, err := range r.All() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, q.At/time.Millisecond)
			}
			if !slices.Equal(got, tt.want) || r.Stats().Redated != tt.redated {
				t.Errorf("%v, %d dated anew", got, r.Stats().Redated)
			}
		})
	}
}

// TestLaxClockRandom: every request is given, in order of the times it gets; a trace without fault is given as it is
// without LaxClock.
func TestLaxClockRandom(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		lines := 1 + rng.IntN(12)
		var text strings.Builder
		at := 1000
		for range lines {
			at = max(0, at+rng.IntN(40)-rng.IntN(1+int(seed%40)))
			if rng.IntN(20) == 0 && seed%3 == 0 {
				text.WriteString(`{"input_length":5,"hash_ids":[1]}` + "\n")
			} else {
				fmt.Fprintf(&text, `{"timestamp":%d,"input_length":5,"hash_ids":[1]}`+"\n", at)
			}
		}
		read := func(lax bool) (times []time.Duration, redated int, err error) {
			opt := Options{Format: "mooncake", LaxClock: lax, Reorder: time.Duration(seed%4) * 10 * time.Millisecond}
			r, err := NewReader(strings.NewReader(text.String()), "x", opt)
			if err != nil {
				t.Fatal(err)
			}
			for q, err := range r.All() {
				if err != nil {
					return nil, 0, err
				}
				times = append(times, q.At)
			}
			return times, r.Stats().Redated, nil
		}
		got, redated, err := read(true)
		if err != nil || len(got) != lines || !slices.IsSorted(got) {
			t.Fatalf("seed %d: %v, %v of\n%s", seed, got, err, text.String())
		}
		want, _, err := read(false)
		if (err == nil) != (redated == 0) || err == nil && !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, %d dated anew; strictly %v, %v of\n%s", seed, got, redated, want, err, text.String())
		}
	}
}
