package jsonrepair

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair/jsontest"
)

// fewer is what the numbers of random documents are divided by.
var fewer = 1

// stream reads a document in pieces, whose lengths next gives, and returns what
// was committed and the result.
func stream(data []byte, next func() int) (string, []Edit, *Result) {
	s := NewStream(Options{})
	var out []byte
	var edits []Edit
	for len(data) > 0 {
		n := min(next(), len(data))
		piece := bytes.Clone(data[:n])
		s.Write(piece)
		clear(piece)
		data = data[n:]
		out = append(out, s.Committed()...)
		edits = append(edits, s.Edits()...)
	}
	r := s.Close()
	out = append(out, s.Committed()...)
	edits = append(edits, s.Edits()...)
	return string(out), edits, r
}

// checkWhole checks what holds for every document.
func checkWhole(t *testing.T, data []byte, o Options) *Result {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%q: %v", data, r)
			panic(r)
		}
	}()
	r := repair(data, o)
	if r.Outcome == Failed {
		if r.Text != nil || r.Err == nil {
			t.Fatalf("%q: failed with text %q, error %v", data, r.Text, r.Err)
		}
		return r
	}
	if err := Check(r.Text, 0); err != nil {
		t.Fatalf("%q: the text is not JSON: %q\n%v\n%+v", data, r.Text, err, slices.Collect(r.Edits()))
	}
	if got := Apply(data, r.Edits()); !bytes.Equal(got, r.Text) {
		t.Fatalf("%q: the edits give\n%s, the text is\n%s\n%+v", data, got, r.Text, slices.Collect(r.Edits()))
	}
	if again := repair(r.Text, Options{}); again.Outcome != Valid || !bytes.Equal(again.Text, r.Text) {
		t.Fatalf("%q: repaired to\n%s\nwhich is then repaired (%v) to\n%s\n%+v", data, r.Text, again.Outcome, again.Text, slices.Collect(again.Edits()))
	}
	if o.hold == 0 && Check(data, 0) == nil && !bytes.Equal(r.Text, data) {
		t.Fatalf("valid %q became %q", data, r.Text)
	}
	return r
}

// checkPieces checks that a document gives the same in pieces.
func checkPieces(t *testing.T, data []byte, rng *rand.Rand) {
	t.Helper()
	all := func() int { return len(data) }
	want, wantEdits, wantResult := stream(data, all)
	for _, next := range []func() int{
		func() int { return 1 },
		func() int { return 1 + rng.IntN(7) },
		func() int { return 1 + rng.IntN(40) },
	} {
		got, edits, r := stream(data, next)
		if got != want || r.Outcome != wantResult.Outcome {
			i := 0
			for i < len(got) && i < len(want) && got[i] == want[i] {
				i++
			}
			t.Fatalf("%q:\nwhole  %v …%q\npieces %v …%q\n%+v\n%+v", data, wantResult.Outcome, want[max(0, i-40):], r.Outcome, got[max(0, i-40):], wantEdits, edits)
		}
		if !slices.Equal(r.Findings, wantResult.Findings) || !slices.Equal(r.Open, wantResult.Open) {
			t.Fatalf("%q:\nwhole  %v %v\npieces %v %v", data, wantResult.Findings, wantResult.Open, r.Findings, r.Open)
		}
		if len(edits) != len(wantEdits) {
			t.Fatalf("%q:\nwhole  %+v\npieces %+v", data, wantEdits, edits)
		}
		for i := range edits {
			if edits[i] != wantEdits[i] {
				t.Fatalf("%q:\nwhole  %+v\npieces %+v", data, wantEdits[i], edits[i])
			}
		}
	}
}

// checkFast checks that the quick way through strict stretches changes nothing.
func checkFast(t *testing.T, data []byte) {
	t.Helper()
	fast, slow := repair(data, Options{}), repair(data, Options{noFast: true})
	if fast.Outcome != slow.Outcome || !bytes.Equal(fast.Text, slow.Text) || !slices.Equal(slices.Collect(fast.Edits()), slices.Collect(slow.Edits())) || !slices.Equal(fast.Findings, slow.Findings) || !slices.Equal(fast.Open, slow.Open) {
		t.Fatalf("%q:\nfast %v %s\n%+v\n%+v\nslow %v %s\n%+v\n%+v", data, fast.Outcome, fast.Text, slices.Collect(fast.Edits()), fast.Open, slow.Outcome, slow.Text, slices.Collect(slow.Edits()), slow.Open)
	}
}

var atoms = strings.Split("{|}|[|]|,|:|\"|\"a\"|\"b c\"|a|1|12|-|true|nul|\\|\\n|\\u12|\\ud83d\\ude00|'| |\n|//|/*|*/|#|...|=|;|“|”|，|{\"k\":|[1,2]|```|<think>|</think>|(|)|x y|`|+|é|\xc3|\x01|&quot;|\\\"|null|\"\"\"|\"k\": \"v\"|, \"n\": 1|say \"hi\"|C:\\U|$\\frac|\u00a0", "|")

func TestRandomDocuments(t *testing.T) {
	n := 60_000
	if testing.Short() {
		n = 20_000
	}
	for seed := range n / fewer {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		var b strings.Builder
		if rng.IntN(2) == 0 {
			b.WriteString(`{"a":`)
		}
		for range rng.IntN(12) {
			b.WriteString(atoms[rng.IntN(len(atoms))])
		}
		data := []byte(b.String())
		checkWhole(t, data, Options{})
		checkWhole(t, data, Options{hold: 1 + rng.IntN(8)})
		checkFast(t, data)
		if seed%10 == 0 {
			checkPieces(t, data, rng)
		}
	}
}

// TestValidThroughEngine leaves the strict check out: the automaton itself must
// give valid documents back byte for byte, as a stream does.
func TestValidThroughEngine(t *testing.T) {
	n := 30_000
	if testing.Short() {
		n = 3_000
	}
	for seed := range n / fewer {
		data := jsontest.Document(uint64(seed), 0)
		r := repair(data, Options{})
		if r.Outcome != Valid || !bytes.Equal(r.Text, data) {
			at := slices.Collect(r.Edits())[0].Offset
			t.Fatalf("seed %d: %v: %q became %q\n%+v", seed, r.Outcome, data[max(0, at-80):min(at+80, len(data))], r.Text[max(0, at-80):min(at+80, len(r.Text))], slices.Collect(r.Edits()))
		}
		if seed%20 == 0 {
			checkPieces(t, data, rand.New(rand.NewPCG(uint64(seed), 2)))
		}
	}
}

// TestPrefixes cuts valid documents everywhere.
func TestPrefixes(t *testing.T) {
	for seed := range 300 / fewer {
		data := jsontest.Document(uint64(seed), 400)
		var whole any
		decode(t, data, &whole)
		for cut := 1; cut < len(data); cut++ {
			r := Repair(data[:cut], Options{})
			if r.Outcome == Failed && len(bytes.TrimSpace(data[:cut])) < 5 {
				continue // a scalar that has hardly begun
			}
			if r.Outcome != Truncated && r.Outcome != Valid {
				t.Fatalf("seed %d: %q is %v: %q\n%+v", seed, data[max(0, cut-100):cut], r.Outcome, r.Text[max(0, len(r.Text)-100):], slices.Collect(r.Edits()))
			}
			var part any
			decode(t, r.Text, &part)
			if r.Outcome == Truncated && !below(part, whole) {
				t.Fatalf("seed %d: %q gives %q\n%+v", seed, data[max(0, cut-100):cut], r.Text[max(0, len(r.Text)-100):], slices.Collect(r.Edits()))
			}
		}
	}
}

// member is a member of an object, whose order and doubled keys are kept.
type member struct {
	key   string
	value any
}

func decode(t *testing.T, data []byte, v *any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var err error
	if *v, err = decodeValue(d); err != nil {
		t.Fatalf("%.300q: %v", data, err)
	}
}

func decodeValue(d *json.Decoder) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		list := []member{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, member{key.(string), v})
		}
		_, err := d.Token()
		return list, err
	}
	return tok, nil
}

// below reports whether a value may grow to another one: strings, arrays and
// objects by what comes behind, others not.
func below(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && strings.HasPrefix(b, a)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) > len(b) {
			return false
		}
		for i := range a {
			if !below(a[i], b[i]) {
				return false
			}
		}
		return true
	case []member:
		b, ok := b.([]member)
		if !ok || len(a) > len(b) {
			return false
		}
		for i := range a {
			if a[i].key != b[i].key || !below(a[i].value, b[i].value) {
				return false
			}
		}
		return true
	}
	return a == b
}

// TestDamage changes valid documents in one place or two.
func TestDamage(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 2_000
	}
	structure := []byte("{}[],:\"\\' \n")
	for seed := range n / fewer {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		data := jsontest.Document(uint64(seed), 50+rng.IntN(600))
		for range 1 + rng.IntN(2) {
			i := rng.IntN(len(data))
			switch rng.IntN(4) {
			case 0:
				data = slices.Delete(data, i, i+1)
			case 1:
				data = slices.Insert(data, i, structure[rng.IntN(len(structure))])
			case 2:
				data[i] = structure[rng.IntN(len(structure))]
			case 3:
				data = data[:i+1]
			}
			if len(data) == 0 {
				break
			}
		}
		checkWhole(t, data, Options{})
		checkFast(t, data)
		if seed%10 == 0 {
			checkPieces(t, data, rng)
		}
	}
}

// TestStreamIsWhole: where nothing is in doubt a stream commits the text that the
// whole document gives, and several documents one after another.
func TestStreamIsWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	same, ambiguous := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var c struct {
				In  string
				B64 []byte
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			in := append([]byte(c.In), c.B64...)
			checkPieces(t, in, rand.New(rand.NewPCG(uint64(len(in)), 6)))
			whole := Repair(in, Options{})
			text, _, r := stream(in, func() int { return 3 })
			switch {
			case whole.Outcome == Ambiguous:
				ambiguous++
				continue
			case r.Outcome != whole.Outcome && r.Outcome != Ambiguous: // it cannot tell that both readings are the same
				t.Errorf("%q: whole %v, stream %v", in, whole.Outcome, r.Outcome)
			case whole.values != nil:
				for v := range whole.Values() {
					if !strings.Contains(text, string(v)) {
						t.Errorf("%q: the stream's %q lacks %q", in, text, v)
					}
				}
			case strings.Contains(text, "\n") && !strings.Contains(string(whole.Text), "\n"): // beside placeholders
			case text != string(whole.Text):
				t.Errorf("%q: whole %q, stream %q", in, whole.Text, text)
			}
			same++
		}
	}
	t.Logf("%d the same, %d ambiguous", same, ambiguous)
}
