package jsonrepair

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair/jsontest"
)

// replay builds documents from events, and checks that these come in order.
type replay struct {
	docs []any
	open []*node
}

// node is an open value.
type node struct {
	path  string
	array bool
	list  []any
	pairs []member
	text  strings.Builder
	parts strings.Builder // JSON text of the parts
	str   bool
}

func (n *node) value() any {
	switch {
	case n.str:
		return n.text.String()
	case n.array:
		return slices.Clone(n.list)
	}
	return slices.Clone(n.pairs)
}

func newNode(k EventKind, path string) *node {
	n := &node{path: path, array: k == ArrayBegin, str: k == StringBegin}
	if n.array {
		n.list = []any{}
	}
	n.pairs = []member{}
	return n
}

// add takes an event. It returns what is wrong with it.
func (r *replay) add(e Event) string {
	path := string(e.Path)
	if e.Document != len(r.docs) {
		return fmt.Sprintf("document %d, want %d", e.Document, len(r.docs))
	}
	if !e.Complete() {
		if len(r.open) > 0 && r.top().str != (e.Kind == StringPart) {
			return "a value inside a string, or a part outside"
		}
		if e.Kind == StringPart {
			n := r.top()
			if !utf8.Valid(e.Raw) || len(e.Raw) == 0 || n.path != path {
				return fmt.Sprintf("part %q at %s", e.Raw, path)
			}
			n.text.WriteString(e.Text())
			n.parts.Write(e.Raw)
			return ""
		}
		if msg := r.place(path); msg != "" {
			return msg
		}
		r.open = append(r.open, newNode(e.Kind, path))
		return ""
	}
	if e.Kind == NumberEnd || e.Kind == LiteralEnd {
		if msg := r.place(path); msg != "" {
			return msg
		}
		var v any = json.Number(e.Raw)
		if e.Kind == LiteralEnd {
			v = map[string]any{"true": true, "false": false, "null": nil}[string(e.Raw)]
		}
		if e.Text() != string(e.Raw) {
			return fmt.Sprintf("text %q of %q", e.Text(), e.Raw)
		}
		r.attach(path, v)
		return ""
	}
	if len(r.open) == 0 || r.top().path != path {
		return fmt.Sprintf("%v at %s, where nothing is open", e.Kind, path)
	}
	n := r.top()
	if want := map[EventKind]bool{StringEnd: n.str, ArrayEnd: n.array, ObjectEnd: !n.str && !n.array}; !want[e.Kind] {
		return fmt.Sprintf("%v ends another value", e.Kind)
	}
	if n.str && (string(e.Raw) != `"`+n.parts.String()+`"` || e.Text() != n.text.String()) {
		return fmt.Sprintf("string %s, but its parts are %s", e.Raw, n.parts.String())
	}
	r.open = r.open[:len(r.open)-1]
	r.attach(path, n.value())
	return ""
}

func (r *replay) top() *node { return r.open[len(r.open)-1] }

// place checks that a new value may be at path.
func (r *replay) place(path string) string {
	if len(r.open) == 0 {
		if path != "" {
			return "a document at " + path
		}
		return ""
	}
	n := r.top()
	rest, ok := strings.CutPrefix(path, n.path+"/")
	if !ok || strings.Contains(rest, "/") || n.array && rest != strconv.Itoa(len(n.list)) {
		return fmt.Sprintf("a value at %s in %s", path, n.path)
	}
	return ""
}

// attach puts a complete value into its container.
func (r *replay) attach(path string, v any) {
	if len(r.open) == 0 {
		r.docs = append(r.docs, v)
		return
	}
	r.top().put(path, v)
}

func (n *node) put(path string, v any) {
	if n.array {
		n.list = append(n.list, v)
		return
	}
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[len(n.path)+1:])
	n.pairs = append(n.pairs, member{key, v})
}

// now returns the documents as they are so far.
func (r *replay) now() []any {
	docs := slices.Clone(r.docs)
	if len(r.open) == 0 {
		return docs
	}
	v := r.top().value()
	for i := len(r.open) - 2; i >= 0; i-- {
		outer := *newNode(0, r.open[i].path)
		outer.array, outer.list, outer.pairs = r.open[i].array, slices.Clone(r.open[i].list), slices.Clone(r.open[i].pairs)
		outer.put(r.open[i+1].path, v)
		v = outer.value()
	}
	return append(docs, v)
}

// decodeAll decodes the documents of a text.
func decodeAll(t *testing.T, text []byte) (docs []any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for d.More() {
		v, err := decodeValue(d)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		docs = append(docs, v)
	}
	return docs
}

func same(a, b []any) bool { return below(a, b) && below(b, a) }

// watch streams a document in pieces and checks at each what the views tell.
type watch struct {
	t    *testing.T
	data []byte
	s    *Stream
	text []byte // committed so far

	view View
	seen replay
	last []any // the value so far
	late bool  // also leave loops early
}

// checkEvents streams a document and checks the value order, and that events and
// partial texts tell the same.
func checkEvents(t *testing.T, data []byte, next func() int, leaveEarly bool) {
	t.Helper()
	w := &watch{t: t, data: data, s: NewStream(Options{}), late: leaveEarly}
	for rest := data; len(rest) > 0; {
		n := min(next(), len(rest))
		w.s.Write(rest[:n])
		rest = rest[n:]
		w.look()
	}
	r := w.s.Close()
	w.look()
	w.view.Close()
	w.drain(&w.view, &w.seen)
	if r.Outcome == Failed {
		return
	}
	if err := w.view.Err(); err != nil {
		t.Fatalf("%q: %v\nof %q", data, err, w.text)
	}
	final := decodeAll(t, w.text)
	if !same(w.seen.docs, final) || len(w.seen.open) > 0 {
		t.Fatalf("%q: the events give\n%v, the text is\n%v", data, w.seen.docs, final)
	}
	if !below(w.last, final) {
		t.Fatalf("%q: %v does not grow to the final\n%v", data, w.last, final)
	}
}

// drain takes what events there are.
func (w *watch) drain(v *View, r *replay) {
	for more := true; more; {
		more = false
		for e := range v.Events() {
			if msg := r.add(e); msg != "" {
				w.t.Fatalf("%q: %v %s: %s\nof %q", w.data, e.Kind, e.Path, msg, w.text)
			}
			if w.late {
				more = true
				break
			}
		}
	}
}

// look checks what has been committed and told so far.
func (w *watch) look() {
	w.t.Helper()
	piece := bytes.Clone(w.s.Committed())
	w.text = append(w.text, piece...)
	w.view.Write(piece)
	w.drain(&w.view, &w.seen)
	part := Partial(w.text)
	keep, closers := w.view.Ending()
	if ending := append(bytes.Clone(w.text[:keep]), closers...); !bytes.Equal(ending, part) {
		w.t.Fatalf("%q: of %q the view makes\n%q, Partial\n%q", w.data, w.text, ending, part)
	}
	value := decodeAll(w.t, part)
	if now := w.seen.now(); !same(now, value) {
		w.t.Fatalf("%q: of %q the events give\n%v, the partial text\n%v", w.data, w.text, now, value)
	}
	if !below(w.last, value) {
		w.t.Fatalf("%q: %v does not grow to\n%v\nof %q", w.data, w.last, value, w.text)
	}
	w.last = value
}

// checkBound does the same for a view of the stream.
func checkBound(t *testing.T, data []byte, next func() int) {
	t.Helper()
	want, _, result := stream(data, next)
	if result.Outcome == Failed {
		return
	}
	s := NewStream(Options{})
	v := s.View()
	var r replay
	var last []any
	take := func() {
		for e := range v.Events() {
			if msg := r.add(e); msg != "" {
				t.Fatalf("%q: %v %s: %s", data, e.Kind, e.Path, msg)
			}
		}
		now := r.now()
		if !below(last, now) {
			t.Fatalf("%q: %v does not grow to\n%v", data, last, now)
		}
		last = now
	}
	for rest := data; len(rest) > 0; {
		n := min(next(), len(rest))
		s.Write(rest[:n])
		rest = rest[n:]
		take()
	}
	s.Close()
	take()
	if final := decodeAll(t, []byte(want)); !same(r.docs, final) || len(r.open) > 0 || v.Err() != nil {
		t.Fatalf("%q: the events give\n%v (%v), the text is\n%v", data, r.docs, v.Err(), final)
	}
}

func one() int { return 1 }

func TestEventsOfValidDocuments(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 60
	}
	for seed := range n / fewer {
		data := jsontest.Document(uint64(seed), 300)
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		checkEvents(t, data, one, seed%4 == 0)
		checkEvents(t, data, func() int { return 1 + rng.IntN(30) }, seed%4 == 1)
		checkBound(t, data, one)
	}
}

// TestEventsOfCases does the same for every broken document of testdata.
func TestEventsOfCases(t *testing.T) {
	for _, file := range []string{"cases", "peers-jsonrepair", "peers-json_repair"} {
		text, err := os.ReadFile("testdata/" + file + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var c struct {
				Name, In string
				B64      []byte
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			data := append(c.B64, c.In...)
			if len(data) > 1000 {
				continue
			}
			t.Run(file+"/"+c.Name, func(t *testing.T) {
				checkEvents(t, data, one, false)
				checkBound(t, data, one)
				rng := rand.New(rand.NewPCG(uint64(len(data)), 4))
				checkBound(t, data, func() int { return 1 + rng.IntN(9) })
			})
		}
	}
}

func TestEventsOfRandomDocuments(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 2_000
	}
	for seed := range n / fewer {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		var b strings.Builder
		b.WriteString([]string{`{"a":`, `[`, ``}[rng.IntN(3)])
		for range rng.IntN(12) {
			b.WriteString(atoms[rng.IntN(len(atoms))])
		}
		checkEvents(t, []byte(b.String()), one, false)
		checkBound(t, []byte(b.String()), one)
	}
}

func TestEvents(t *testing.T) {
	v := View{MaxRaw: 6}
	var got []string
	for _, piece := range []string{`{"items":[{"na`, `me":"Mün`, "ch\xc3", "\xa4\\ud8", `3d\ude00"`, `,"n":1`, `2},`, `true,"a/b"]`, `,"x~/":{}`, "}\n7", `5`} {
		v.Write([]byte(piece))
		for e := range v.Events() {
			got = append(got, strings.TrimRight(fmt.Sprintf("%d %s %s %q", e.Offset, e.Kind, e.Path, e.Text()), ` "`))
		}
	}
	v.Close()
	for e := range v.Events() {
		got = append(got, fmt.Sprintf("%d %s %s %q document %d", e.Offset, e.Kind, e.Path, e.Text(), e.Document))
	}
	want := []string{
		"0 object_begin", "9 array_begin /items", "10 object_begin /items/0",
		"18 string_begin /items/0/name", `19 string_part /items/0/name "Mün`, `23 string_part /items/0/name "ch`,
		`25 string_part /items/0/name "ä`, `27 string_part /items/0/name "😀`, "18 string_end /items/0/name",
		`45 number_end /items/0/n "12`, "47 object_end /items/0", `49 literal_end /items/1 "true`,
		`54 string_begin /items/2`, `55 string_part /items/2 "a/b`, `54 string_end /items/2 "a/b`, "59 array_end /items",
		"67 object_begin /x~0~1", "68 object_end /x~0~1", "69 object_end", `71 number_end  "75" document 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPartial(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, ``}, {` `, ``}, {`12`, ``}, {`12 `, `12`}, {`tru`, ``}, {`true`, `true`},
		{`"a`, `"a"`}, {`"a\`, `"a"`}, {`"a\u00e`, `"a"`}, {"\"a\xf0\x9f\x98", `"a"`}, {`"\ud83d`, `""`}, {`"\ud83d\ude0`, `""`},
		{`"\ud83dx`, `"\ud83dx"`}, {`"\ud83d\n`, `"\ud83d\n"`}, {`{`, `{}`}, {`{"a`, `{}`}, {`{"a"`, `{}`}, {`{"a": `, `{}`},
		{`{"a": 1`, `{}`}, {`{"a": 1 `, `{"a": 1}`}, {`{"a": 1, "b": [`, `{"a": 1, "b": []}`}, {`[1, 2`, `[1]`}, {`[1, `, `[1]`},
		{`[[], {"a": fals`, `[[], {}]`}, {"{}\n[1,", "{}\n[1]"}, {"{}\n", "{}"}, {`{"a":"x"} `, `{"a":"x"}`},
		{`[1}`, `[1]`}, {`{"a":"b` + "\x01", `{"a":"b"}`}, {`[01`, `[0]`}, {`[nul!`, `[]`}, {`["\q`, `[""]`},
	} {
		text := []byte(tt.text + "behind")[:len(tt.text)]
		if got := Partial(text); string(got) != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
		if tail := text[:len(text)+6][len(text):]; string(tail) != "behind" {
			t.Errorf("%q: what lies behind the text became %q", tt.text, tail)
		}
	}
}

// TestViewErrors gives the view what no stream commits.
func TestViewErrors(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{`[1}`, 2}, {`{1`, 1}, {`{"a" 1`, 5}, {`{"a":}`, 5}, {`[1,]`, 3}, {`{"a":1,}`, 7}, {`[01`, 2}, {`[1.]`, 3}, {`[-]`, 2},
		{`[1e+]`, 4}, {`[nul!`, 4}, {`["\q"`, 2}, {"[\"\x01", 2}, {"[\"a\xff", 3}, {`{}{}`, 2}, {`]`, 0}, {"[\"\\u00g", 2},
		{`{"a\q":1}`, 3}, {`["\ud83d\q`, 8}, {``, 0}, {`[`, 1}, {`"a`, 2}, {`1.`, 2}, {`tru`, 3}, {`{"a`, 3}, {`{"a":`, 5},
	} {
		for _, size := range []int{1, 100} {
			var v View
			for piece := range slices.Chunk([]byte(tt.text), size) {
				v.Write(piece)
				for range v.Events() {
				}
			}
			v.Close()
			for range v.Events() {
			}
			err, _ := v.Err().(*Error)
			if err == nil || err.Offset != tt.at {
				t.Errorf("%q in pieces of %d: %v, want an error at %d", tt.text, size, v.Err(), tt.at)
			}
			if _, werr := v.Write([]byte("x")); werr == nil {
				t.Errorf("%q: Write after the error succeeds", tt.text)
			}
		}
	}
}

// FuzzEvents holds what events tell of any bytes against the strict check.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\ud83d\ude00",{}]}`, "[1.5e3,-0,true]\n\"x\"", `{"a~/b":{"":null}}`, "{\"\\ud83d\":\"\xf0\x9f\x98\x80\"}", `[01]`, `[1}`, `["\ud80A"udC00"]`} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		if len(data) > 4096 {
			return // comparing values takes time by the square of their depth
		}
		var v View
		var r replay
		for piece := range slices.Chunk(data, int(size)+1) {
			v.Write(piece)
			for e := range v.Events() {
				if msg := r.add(e); msg != "" {
					t.Fatalf("%q: %v %s: %s", data, e.Kind, e.Path, msg)
				}
			}
		}
		part := Partial(data)
		now := r.now()
		if value := decodeAll(t, part); !same(now, value) {
			t.Fatalf("%q: the events give\n%v, the partial text %q\n%v", data, now, part, value)
		}
		v.Close()
		for e := range v.Events() {
			if msg := r.add(e); msg != "" {
				t.Fatalf("%q: %v %s: %s", data, e.Kind, e.Path, msg)
			}
		}
		if valid := IsValid(data); valid && (v.Err() != nil || len(r.docs) != 1) || v.Err() == nil && len(r.docs) == 1 && !valid {
			t.Fatalf("%q: valid %v, but the view says %v, and %d documents", data, valid, v.Err(), len(r.docs))
		}
		if v.Err() == nil && !same(decodeAll(t, data), r.docs) {
			t.Fatalf("%q: the events give %v", data, r.docs)
		}
	})
}

// FuzzGrowth holds the value order for any bytes.
func FuzzGrowth(f *testing.F) {
	for _, s := range ioDocuments {
		f.Add([]byte(s[:min(len(s), 300)]), uint8(0))
	}
	f.Add([]byte(`{"a":1,234,"b":tru,'c':"say "hi", you"]`), uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		if len(data) > 300 {
			return // each byte is looked at again for each one that follows
		}
		next := func() int { return int(size)%16 + 1 }
		checkEvents(t, data, next, false)
		checkBound(t, data, next)
	})
}

// TestViewIsLinear times hostile shapes at two lengths, in pieces of 7 bytes.
func TestViewIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	shapes := map[string]func(n int) string{
		"arrays":        func(n int) string { return strings.Repeat("[", n) },
		"objects":       func(n int) string { return strings.Repeat(`{"a":`, n/5) },
		"closed":        func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
		"long key":      func(n int) string { return `{"` + strings.Repeat("k/", n/2) },
		"long keys":     func(n int) string { return strings.Repeat(`{"`+strings.Repeat("k", 1000)+`":`, n/1000) },
		"string":        func(n int) string { return `"` + strings.Repeat("x", n) },
		"escapes":       func(n int) string { return `"` + strings.Repeat(`\ud83d`, n/6) },
		"number":        func(n int) string { return strings.Repeat("1", n) },
		"elements":      func(n int) string { return "[" + strings.Repeat("1,", n/2) },
		"members":       func(n int) string { return "{" + strings.Repeat(`"k":"v",`, n/8) },
		"half a letter": func(n int) string { return `"` + strings.Repeat("é", n/2) },
		"documents":     func(n int) string { return strings.Repeat("1 ", n/2) },
	}
	for name, shape := range shapes {
		perByte := func(n int) float64 {
			data := []byte(shape(n))
			best := time.Duration(math.MaxInt64)
			for range 3 {
				begin := time.Now()
				var v View
				for piece := range slices.Chunk(data, 7) {
					v.Write(piece)
					for range v.Events() {
					}
				}
				best = min(best, time.Since(begin))
				if v.Err() != nil {
					t.Fatal(name, v.Err())
				}
			}
			return float64(best.Nanoseconds()) / float64(len(data))
		}
		small, large := perByte(32<<10), perByte(1<<20)
		t.Logf("%-14s %5.1f ns a byte at 32 KB, %5.1f at 1 MB", name, small, large)
		if large > 8*small { // quadratic: 32
			t.Errorf("%s: %.1f ns a byte at 32 KB, %.1f at 1 MB", name, small, large)
		}
	}
}

// TestValuesComeEarly looks how soon a view of a stream tells of a value.
func TestValuesComeEarly(t *testing.T) {
	for _, tt := range []struct {
		pieces []string
		want   string // events of each piece by their paths; | between pieces
	}{
		{[]string{`{"a":tru`, `e,`}, ` | /a`},
		{[]string{`[12`, `,`}, ` | /0`},
		{[]string{`[12`, `]`}, ` | /0`},
		{[]string{`{"a":12`, `}`}, ` | /a`},
		{[]string{`{"a":12 `, `,`}, ` | /a`},
		{[]string{`{"a":12,`, `"b":`}, ` | /a`},
		{[]string{`{"a":12,`, `345}`, `}`}, ` | /a |`}, // 12,345 may be one number
	} {
		s := NewStream(Options{})
		v := s.View()
		var got strings.Builder
		for i, piece := range tt.pieces {
			if i > 0 {
				got.WriteString(" |")
			}
			s.Write([]byte(piece))
			for e := range v.Events() {
				if len(e.Path) > 0 && e.Kind != StringBegin {
					got.WriteString(" " + string(e.Path))
				}
			}
		}
		if strings.TrimSpace(got.String()) != strings.TrimSpace(tt.want) {
			t.Errorf("%q: events %s, want %s", tt.pieces, got.String(), tt.want)
		}
	}
}

// BenchmarkView reads 24 KB in pieces of 8 bytes, repaired on the way or not.
func BenchmarkView(b *testing.B) {
	data := jsontest.Document(7, 24<<10)
	b.Run("stream", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			s := NewStream(Options{})
			for piece := range slices.Chunk(data, 8) {
				s.Write(piece)
				s.Committed()
			}
			s.Close()
		}
	})
	b.Run("stream+events", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			s := NewStream(Options{})
			v := s.View()
			for piece := range slices.Chunk(data, 8) {
				s.Write(piece)
				for range v.Events() {
				}
			}
			s.Close()
		}
	})
	b.Run("events", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			var v View
			for piece := range slices.Chunk(data, 8) {
				v.Write(piece)
				for range v.Events() {
				}
			}
		}
	})
}
