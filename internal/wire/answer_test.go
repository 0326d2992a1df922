package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// Changes touch what they are about and no other byte.
func TestAnswerChanges(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		do             func(a *Answer)
	}{
		{"nothing", ` {"choices" : [ {"text":"a","x":1.50} ] } `, ` {"choices" : [ {"text":"a","x":1.50} ] } `, func(*Answer) {}},
		{
			"text", `{"z":1,"choices":[{"text" : "a\u00e9", "index":0,"logprobs":null}],"y":{"b":[2]}}`, `{"z":1,"choices":[{"text" : "q\"", "index":0,"logprobs":null}],"y":{"b":[2]}}`,
			func(a *Answer) { a.Choices[0].SetText([]byte(`q"`)) },
		},
		{
			"message", `{"choices":[{"index":0,"message":{"role":"assistant","content":"x","annotations":[]},"finish_reason":"stop"}]}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"y","annotations":[],"reasoning_content":"r"},"finish_reason":"length"}]}`,
			func(a *Answer) {
				a.Choices[0].SetText([]byte("y"))
				a.Choices[0].SetReasoning([]byte("r"))
				a.Choices[0].SetFinishReason("length")
			},
		},
		{
			"reasoning by its other name", `{"choices":[{"delta":{"reasoning":"x"}}]}`, `{"choices":[{"delta":{"reasoning":"r"}}]}`,
			func(a *Answer) { a.Choices[0].SetReasoning([]byte("r")) },
		},
		{
			"content that was not there", `{"choices":[{"delta":{}}]}`, `{"choices":[{"delta":{"content":"y"}}]}`,
			func(a *Answer) { a.Choices[0].SetText([]byte("y")) },
		},
		{
			"null content", `{"choices":[{"message":{"content":null}}]}`, `{"choices":[{"message":{"content":"y"}}]}`,
			func(a *Answer) { a.Choices[0].SetText([]byte("y")) },
		},
		{
			"the text's bytes go with it", `{"choices":[{"text":"\ufffd","bytes":"/w==","index":0}]}`, `{"choices":[{"text":"y","index":0}]}`,
			func(a *Answer) { a.Choices[0].SetText([]byte("y")) },
		},
		{
			"bytes at the end", `{"choices":[{"text":"\ufffd" , "bytes":"/w=="}]}`, `{"choices":[{"text":"y" }]}`,
			func(a *Answer) { a.Choices[0].SetText([]byte("y")) },
		},
		{
			"calls", `{"choices":[{"message":{"content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{a"},"x":2},{"id":"2"}]}}]}`,
			`{"choices":[{"message":{"content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"},"x":2},{"new":1}]}}]}`,
			func(a *Answer) {
				c := a.Choices[0]
				c.SetCalls(c.ElementWith(0, 0, []byte("{}")), []byte(`{"new":1}`))
			},
		},
		{
			"no calls", `{"choices":[{"message":{"content":"","tool_calls":[{"id":"1"}]}}]}`, `{"choices":[{"message":{"content":""}}]}`,
			func(a *Answer) { a.Choices[0].SetCalls() },
		},
		{
			"usage", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"d":null}}`,
			`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":6,"total_tokens":9,"d":null}}`, func(a *Answer) { a.AddUsage(2) },
		},
		{
			"reports", `{"choices":[{"text":"a"},{"text":"b","unfray":{}}],"unfray":{"healing":1}}`,
			`{"choices":[{"text":"a","unfray":{"recovery":2}},{"text":"b","unfray":{"recovery":3}}],"unfray":{"healing":1,"recovery":1}}`,
			func(a *Answer) {
				a.SetReport("recovery", []byte("1"))
				a.Choices[0].SetReport("recovery", []byte("2"))
				a.Choices[1].SetReport("recovery", []byte("3"))
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := ParseAnswer([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			tc.do(a)
			if got := string(a.Bytes()); got != tc.want {
				t.Errorf("%s\nbecame\n%s\nwant\n%s", tc.in, got, tc.want)
			}
		})
	}
}

// What is no answer is not to be changed.
func TestNoAnswer(t *testing.T) {
	for _, in := range []string{
		``, `x`, `[]`, `{}`, `{"choices":{}}`, `{"choices":[1]}`, `{"choices":[{"a":1,"a":2}]}`, `{"choices":[],"choices":[]}`,
		`{"choices":[{"message":{"content":"a","content":"b"}}]}`, `{"choices":[{"text":"a"}]`, "{\"choices\":[{\"text\":\"\n\"}]}",
	} {
		if a, err := ParseAnswer([]byte(in)); err == nil {
			t.Errorf("%s: %+v", in, a)
		}
	}
	if a, err := ParseAnswer([]byte(`{"error":{"message":"x"}}`)); err != nil || !a.Error {
		t.Errorf("an error: %+v, %v", a, err)
	}
}

func TestStrings(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"a\"\\\/\b\f\n\r\t"`: "a\"\\/\b\f\n\r\t", `"\ud83d\ude00"`: "😀",
		`"\ud83d"`: "\xed\xa0\xbd", `"\ude00\ud83d"`: "\xed\xb8\x80\xed\xa0\xbd", `"\u0000\u007f"`: "\x00\x7f",
	} {
		got := decodeString([]byte(in))
		if string(got) != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
		back := AppendString(nil, got)
		if again := decodeString(back); !json.Valid(back) || !bytes.Equal(again, got) {
			t.Errorf("%s went out as %s", in, back)
		}
	}
	if got := string(AppendString(nil, []byte("a\xff\xc3"))); got != "\"a\ufffd\ufffd\"" {
		t.Errorf("bytes that are no UTF-8 are %s", got)
	}
}

// FuzzAnswer: what is read is written as it was, and changes leave JSON that says
// what was set.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"index":1,"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"completion_tokens":1,"total_tokens":2}}`,
		`{"choices":[{"text":"\ud83d","bytes":"AA==" }],"unfray":{}}`, `{"error":{}}`, "{\"choices\":[{\"delta\":{\"reasoning\":\"x\"}}]}",
	} {
		f.Add([]byte(s), []byte("text"))
	}
	f.Fuzz(func(t *testing.T, data, text []byte) {
		a, err := ParseAnswer(data)
		if err != nil {
			return
		}
		if !bytes.Equal(a.Bytes(), data) {
			t.Fatal("it does not come back")
		}
		for _, c := range a.Choices {
			c.SetText(text)
			c.SetReasoning(text)
			c.SetFinishReason("length")
			c.SetCalls()
			if err := c.SetReport("recovery", []byte("{}")); err != nil {
				return
			}
		}
		a.AddUsage(1)
		out := a.Bytes()
		if !json.Valid(out) {
			t.Fatalf("%s became %s", data, out)
		}
		b, err := ParseAnswer(out)
		if err != nil || len(b.Choices) != len(a.Choices) {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		for _, c := range b.Choices {
			if c.Text == nil || c.FinishReason != "length" || len(c.Calls) != 0 {
				t.Fatalf("%s became %s", data, out)
			}
			if utf8.Valid(text) && !bytes.Equal(c.Text.Value, text) {
				t.Fatalf("the text is %q, want %q", c.Text.Value, text)
			}
		}
	})
}

func TestRemoveMember(t *testing.T) {
	for _, tc := range [][3]string{
		{`{"a":1,"b":2}`, "a", `{"b":2}`}, {`{"a":1,"b":2}`, "b", `{"a":1}`}, {`{ "a" : 1 }`, "a", `{ }`}, {`{"a":1}`, "c", `{"a":1}`},
		{`{"a":1,"a":2}`, "a", `{"a":1,"a":2}`}, {`[]`, "a", `[]`}, {`{"a":1 , "b":2 , "c":3}`, "b", `{"a":1 ,  "c":3}`},
	} {
		if got := string(RemoveMember([]byte(tc[0]), tc[1])); got != tc[2] && !(tc[0] == `{ "a" : 1 }` && json.Valid([]byte(got))) {
			t.Errorf("%s without %s is %s, want %s", tc[0], tc[1], got, tc[2])
		}
	}
}

// The splitter finds the events that the reader finds, however the stream is cut,
// and loses no byte of it.
func checkSplit(t *testing.T, stream []byte, next func(left int) int) {
	t.Helper()
	var joined []byte
	var got []string
	s := NewEventSplitter(0)
	for rest := stream; len(rest) > 0; {
		n := next(len(rest))
		if err := s.Write(rest[:n], func(e RawEvent) error {
			joined = append(joined, e.Raw...)
			if e.HasData {
				got = append(got, string(e.Data))
				if back := e.WithData(e.Data); !bytes.Contains(e.Data, []byte("\r")) {
					again := NewEventReader(bytes.NewReader(back))
					if same, err := again.Next(); err != nil || !bytes.Equal(same.Data, e.Data) {
						t.Fatalf("%q went out as %q: %v", e.Raw, back, err)
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	joined = append(joined, s.Rest()...)
	if !bytes.Equal(joined, stream) {
		t.Fatalf("%q came back as %q", stream, joined)
	}
	r := NewEventReader(bytes.NewReader(stream))
	for i := 0; ; i++ {
		e, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if i != len(got) {
				t.Fatalf("%q has %d events, found %q", stream, i, got)
			}
			return
		}
		if i >= len(got) || got[i] != string(e.Data) {
			t.Fatalf("%q: event %d is %q, found %q", stream, i, e.Data, got)
		}
	}
}

var splitSeeds = []string{
	"data: a\n\ndata: b\n\n", "data: a\r\n\r\n: keep\r\n\r\ndata:b\r\n\r\n", "data: a\r\rdata: b\r\r", "\xef\xbb\xbfdata: x\ndata: y\nid: 3\n\n",
	"\n\n\n", ": c\n\nevent: e\ndata\n\n", "data: cut", "data: a\n\r\ndata: b\r\n\ndata: c\r\n\r", "id: 1\n\ndata: z\n\n",
	"data:\rdata:\r\n\n\x1d\n0\r\n0\ndata:0\r\n\r", "id: 2\rdata: a\rid: 3\rdata:b\n\n",
}

func TestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range splitSeeds {
		checkSplit(t, []byte(s), func(int) int { return 1 })
		checkSplit(t, []byte(s), func(left int) int { return left })
		for range 50 {
			checkSplit(t, []byte(s), func(left int) int { return 1 + rng.IntN(left) })
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range splitSeeds {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		checkSplit(t, stream, func(left int) int { return 1 + rng.IntN(min(left, 9)) })
	})
}

// An event without an end is not kept for ever.
func TestSplitIsBounded(t *testing.T) {
	s := NewEventSplitter(100)
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Write([]byte("data: abc"), func(RawEvent) error { return nil })
	}
	if !errors.Is(err, ErrEventTooLong) || len(s.Rest()) > 200 {
		t.Errorf("%v", err)
	}
}
