package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readEvents(r io.Reader) (events []Event, err error) {
	er := NewEventReader(r)
	for {
		e, err := er.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestEventReader(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string // type=data
		err  error
	}{
		{"", nil, io.EOF},
		{"data: a\n\n", []string{"=a"}, io.EOF},
		{"data:a\r\n\r\ndata: b\r\rdata: c\n\n", []string{"=a", "=b", "=c"}, io.EOF},
		{"\ufeffdata: a\n\n", []string{"=a"}, io.EOF},
		{": hello\n\ndata: a\n\n", []string{"=a"}, io.EOF},
		{"event: x\ndata: a\ndata:\ndata:  b\nid: 7\nretry: 10\nfoo\n\ndata\n\n", []string{"x=a\n\n b", "="}, io.EOF},
		{"event: x\n\ndata: a\n\n", []string{"=a"}, io.EOF}, // no data, no event
		{"data: a", nil, io.ErrUnexpectedEOF},
		{"data: a\n", nil, io.ErrUnexpectedEOF},
		{"data: a\n\ndat", []string{"=a"}, io.ErrUnexpectedEOF},
		{"\n\n\n", nil, io.EOF},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "halves": iotest.HalfReader,
		} {
			events, err := readEvents(wrap(strings.NewReader(c.in)))
			var got []string
			for _, e := range events {
				got = append(got, e.Type+"="+string(e.Data))
			}
			if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
				t.Errorf("%q, %s: %q, %v; want %q, %v", c.in, name, got, err, c.want, c.err)
			}
		}
	}
}

func TestEventReaderIsBounded(t *testing.T) {
	for name, unit := range map[string]string{
		"a line without end":   "x",
		"an event without end": "data: " + strings.Repeat("x", 1000) + "\n",
	} {
		endless := &endlessReader{unit: []byte(unit)}
		r := NewEventReader(endless)
		r.max = 1 << 20
		if _, err := r.Next(); !errors.Is(err, ErrEventTooLong) {
			t.Errorf("%s: %v", name, err)
		}
		if endless.read > 2*r.max {
			t.Errorf("%s: %d bytes read", name, endless.read)
		}
	}
}

type endlessReader struct {
	unit []byte
	read int
}

func (r *endlessReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r.unit[(r.read+i)%len(r.unit)]
	}
	r.read += len(b)
	return len(b), nil
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "event: x\r\ndata: a\r\n\r\n", ":\n\ufeffdata", "\r\n\r", "data: {\"a\":\"b\\n\"}\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := readEvents(bytes.NewReader(b))
		slow, slowErr := readEvents(iotest.OneByteReader(bytes.NewReader(b)))
		if len(events) != len(slow) || !errors.Is(slowErr, err) {
			t.Fatalf("at once %d events and %v, byte by byte %d and %v", len(events), err, len(slow), slowErr)
		}
		// What is written is read again. The format has no way to write a CR.
		line := bytes.ReplaceAll(b, []byte("\r"), nil)
		again, err := readEvents(bytes.NewReader(AppendEvent(nil, line)))
		if err != io.EOF || len(again) != 1 || !bytes.Equal(again[0].Data, line) {
			t.Errorf("%q came back as %q, %v", line, again, err)
		}
	})
}

func TestMarshal(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{"<a&b>\u2028", `"<a&b>\u2028"`},
		{[]Logprob{-0.5, 0, 1e-9, -1e9}, `[-0.5,0,0,-9999]`},
		{UsageField{}, `null`},
		{CompletionChoice{Text: "x", Bytes: []byte{0xff}}, `{"text":"x","index":0,"logprobs":null,"finish_reason":null,"bytes":"/w=="}`},
		{ErrorBody{Error: Error{Message: "m", Type: "t"}}, `{"error":{"message":"m","type":"t","param":null,"code":null}}`},
	} {
		if got, err := Marshal(c.v); err != nil || string(got) != c.want {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
}
