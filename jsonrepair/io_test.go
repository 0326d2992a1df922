package jsonrepair

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

var ioDocuments = []string{
	`{"a": 1}`,
	"```json\n{'a': [1, 2,], b: \"say \"hi\" to them\"}\n```",
	`{"a": [1, {"b": "c`,
	"{\"a\": 1}\n{\"a\": 2}",
	`[1, 2, /* three */ "` + strings.Repeat("long ", 10_000) + `",]`,
	`nothing`,
	``,
}

// viaReader returns the text, the edits and what became of it.
func viaReader(src io.Reader) (string, []Edit, *Result, error) {
	r := NewReader(src, Options{})
	var edits []Edit
	r.OnEdit = func(e Edit) { edits = append(edits, e) }
	text, err := io.ReadAll(r)
	return string(text), edits, r.Result(), err
}

func viaWriter(src io.Reader) (string, []Edit, *Result, error) {
	var text bytes.Buffer
	w := NewWriter(&text, Options{})
	var edits []Edit
	w.OnEdit = func(e Edit) { edits = append(edits, e) }
	_, err := io.Copy(struct{ io.Writer }{w}, src)
	err = errors.Join(err, w.Close())
	return text.String(), edits, w.Result(), err
}

func viaCopy(src io.Reader) (string, []Edit, *Result, error) {
	var text bytes.Buffer
	r, err := Copy(&text, src, Options{})
	return text.String(), nil, r, err
}

func TestReadersAndWriters(t *testing.T) {
	sources := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r },
		"byte":  iotest.OneByteReader,
		"half":  iotest.HalfReader,
		"eof":   iotest.DataErrReader,
	}
	forms := map[string]func(io.Reader) (string, []Edit, *Result, error){"Reader": viaReader, "Writer": viaWriter, "Copy": viaCopy}
	for _, in := range ioDocuments {
		want, wantEdits, wantResult := stream([]byte(in), func() int { return len(in) })
		for source, wrap := range sources {
			for form, do := range forms {
				got, edits, r, err := do(wrap(strings.NewReader(in)))
				if r == nil {
					t.Fatalf("%.40q by %s from %s: no result, error %v", in, form, source, err)
				}
				if got != want || r.Outcome != wantResult.Outcome || form != "Copy" && !slices.Equal(edits, wantEdits) {
					t.Errorf("%.40q by %s from %s: %v %.80q %+v, want %v %.80q %+v", in, form, source, r.Outcome, got, edits, wantResult.Outcome, want, wantEdits)
				}
				var failure *Error
				if errors.As(err, &failure) != (r.Outcome == Failed) || err != nil && failure == nil {
					t.Errorf("%.40q by %s from %s: %v, but error %v", in, form, source, r.Outcome, err)
				}
			}
		}
	}
}

func TestReaderByIOTest(t *testing.T) {
	for _, in := range ioDocuments[:5] {
		want, _, _ := stream([]byte(in), func() int { return len(in) })
		if err := iotest.TestReader(NewReader(strings.NewReader(in), Options{}), []byte(want)); err != nil {
			t.Errorf("%.40q: %v", in, err)
		}
	}
}

// TestReadError breaks a source off: the text until there is completed.
func TestReadError(t *testing.T) {
	broken := errors.New("connection lost")
	for form, do := range map[string]func(io.Reader) (string, []Edit, *Result, error){"Reader": viaReader, "Copy": viaCopy} {
		for _, src := range []io.Reader{
			io.MultiReader(strings.NewReader(`{"a": [1, "b`), iotest.ErrReader(broken)),
			iotest.OneByteReader(io.MultiReader(strings.NewReader(`{"a": [1, "b`), iotest.ErrReader(broken))),
		} {
			text, _, r, err := do(src)
			var failure *IOError
			if !errors.As(err, &failure) || failure.Op != "read" || failure.Offset != 12 || !errors.Is(err, broken) {
				t.Errorf("%s: error %#v", form, err)
			}
			if text != `{"a": [1, "b"]}` || r.Outcome != Truncated || len(r.Open) != 3 {
				t.Errorf("%s: %q, %+v", form, text, r)
			}
		}
	}
	// A number at a place where nothing was meant to end may go on.
	var text bytes.Buffer
	if r, _ := Copy(&text, io.MultiReader(strings.NewReader(`[1, 2`), iotest.ErrReader(broken)), Options{Ended: true}); r.Outcome != Truncated || text.String() != `[1]` {
		t.Errorf("%v %q", r.Outcome, text.String())
	}
	if _, _, _, err := viaReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(`[1]`)))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v, want a timeout", err)
	}
	for form, do := range map[string]func(io.Reader) (string, []Edit, *Result, error){"Reader": viaReader, "Copy": viaCopy} {
		if _, _, _, err := do(idle{}); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("%s: error %v of a reader that gives nothing", form, err)
		}
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// limited fails behind some bytes.
type limited struct {
	left int
	err  error // nil: none, only too short a count
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(l.left, len(p))
	l.left -= n
	if n < len(p) {
		return n, l.err
	}
	return n, nil
}

func TestWriteError(t *testing.T) {
	full := os.ErrDeadlineExceeded
	for _, cause := range []error{full, nil} {
		r, err := Copy(&limited{5, cause}, iotest.OneByteReader(strings.NewReader(`{"a": "bcdefg"}`)), Options{})
		var failure *IOError
		if !errors.As(err, &failure) || failure.Op != "write" || failure.Offset != 5 || r == nil {
			t.Fatalf("error %#v", err)
		}
		if cause != nil && !errors.Is(err, cause) || cause == nil && !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("error %v", err)
		}
	}
	w := NewWriter(&limited{3, full}, Options{})
	if _, err := w.Write([]byte(`["abc", `)); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if n, err := w.Write([]byte(`1]`)); n != 0 || !errors.Is(err, full) {
		t.Errorf("%d bytes and error %v behind an error", n, err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("Close: error %v", err)
	}
}

func TestLimitsOfCopy(t *testing.T) {
	for _, o := range []Options{{MaxBytes: 8}, {MaxDepth: 1}, {MaxEdits: 1}} {
		in := `{"a": [1, 2,], 'b': 3}`
		var failure *Error
		if r, err := Copy(io.Discard, strings.NewReader(in), o); !errors.As(err, &failure) || r.Outcome != Failed {
			t.Errorf("%+v: %v, error %v", o, r, err)
		}
		if _, err := io.ReadAll(NewReader(strings.NewReader(in), o)); !errors.As(err, &failure) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}

// repeated gives head and then body again and again.
type repeated struct {
	head, body string
	left, at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, r.head)
	r.head = r.head[n:]
	for n < len(p) {
		m := copy(p[n:], r.body[r.at:])
		n += m
		r.at = (r.at + m) % len(r.body)
	}
	r.left -= n
	return n, nil
}

// gauge watches the memory in use.
type gauge struct {
	written, next int
	most          uint64
}

func (g *gauge) Write(p []byte) (int, error) {
	if g.written += len(p); g.written >= g.next {
		g.next += 1 << 20
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		g.most = max(g.most, m.HeapAlloc)
	}
	return len(p), nil
}

func TestCopyHoldsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("copies megabytes")
	}
	for name, src := range map[string]*repeated{
		"valid":       {head: "[", body: `{"a": [1, "two", null]}, `},
		"edits":       {head: "[", body: `{'a': [1 2,], b: True} `},
		"long string": {head: `{"a": "`, body: `so "it" goes, `},
	} {
		src.left = 6 << 20
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		var g gauge
		if _, err := Copy(&g, src, Options{}); err != nil {
			t.Error(err)
		}
		grown := int64(g.most) - int64(before.HeapAlloc)
		t.Logf("%s: %d MB written, %d KB held at most", name, g.written>>20, grown>>10)
		if grown > 1<<20 {
			t.Errorf("%s: %d KB are held", name, grown>>10)
		}
	}
}
