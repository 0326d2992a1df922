package tokenizertest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/unfray/unfray/internal/deps/corpus"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Race reports whether the race detector is on. Then only every 16th chunk is compared.
var Race bool

// stride says that every stride-th chunk is compared.
var stride = 1

// A Recording is what a reference made of the corpora, as testdata/reference/record.py wrote it.
type Recording struct {
	Vocab     string // its name
	Reference string // the reference and its version
	SHA256    string // of the vocabulary's file
	Corpora   []RecordedCorpus

	special bool // the reference takes a control token's text for the token
}

// A RecordedCorpus is one corpus in a Recording.
type RecordedCorpus struct {
	Name   string
	SHA256 string
	Chunks int
	IDs    int // of all chunks

	sums   []uint32 // CRC-32 of each chunk's ids
	counts []uint16 // of ids
}

// Record returns the recording of that name.
func Record(t testing.TB, name string) *Recording {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Reference(t), "ids", name+".ids.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseRecording(text)
	if err != nil {
		t.Fatalf("recording %s: %v", name, err)
	}
	return r
}

// Reference returns the folder testdata/reference of the repository.
func Reference(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "testdata", "reference")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no testdata/reference above the working folder")
		}
	}
}

func parseRecording(packed []byte) (*Recording, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		return nil, err
	}
	head, body, _ := bytes.Cut(text, []byte("\n"))
	r := &Recording{}
	if err := json.Unmarshal(head, r); err != nil {
		return nil, err
	}
	r.special = !strings.HasPrefix(r.Reference, "sentencepiece")
	for i := range r.Corpora {
		c := &r.Corpora[i]
		if c.Chunks < 0 || len(body) < 6*c.Chunks {
			return nil, io.ErrUnexpectedEOF
		}
		ids := 0
		for k := range c.Chunks {
			c.sums = append(c.sums, binary.LittleEndian.Uint32(body[4*k:]))
			c.counts = append(c.counts, binary.LittleEndian.Uint16(body[4*c.Chunks+2*k:]))
			ids += int(c.counts[k])
		}
		if ids != c.IDs {
			return nil, fmt.Errorf("the chunks of %s have %d ids, the head says %d", c.Name, ids, c.IDs)
		}
		body = body[6*c.Chunks:]
	}
	if len(body) > 0 {
		return nil, fmt.Errorf("%d bytes follow the last corpus", len(body))
	}
	return r, nil
}

// Compare encodes the corpora and fails the test where ids differ from those that the reference has for the vocabulary
// of that name. Of the first difference it tells corpus, offset in bytes and both readings.
func Compare(t *testing.T, tok *tokenizer.Tokenizer, name string) {
	t.Helper()
	r := Record(t, name)
	for i := range r.Corpora {
		c := &r.Corpora[i]
		text := Corpus(t, c.Name)
		if pin, _ := corpus.Find(c.Name); pin.SHA256 != c.SHA256 {
			t.Fatalf("%s was recorded on another corpus %s: run testdata/reference/record.py", r.Vocab, c.Name)
		}
		chunks := slices.Collect(chunksOf(text))
		if len(chunks) != c.Chunks {
			t.Fatalf("corpus %s has %d chunks, %d were recorded", c.Name, len(chunks), c.Chunks)
		}
		if wrong := r.differing(tok, c, chunks); len(wrong) > 0 {
			first := chunks[wrong[0]]
			t.Errorf("%s, corpus %s: %d of %d chunks differ from %s, the first at byte %d\n%s", r.Vocab, c.Name, len(wrong),
				(len(chunks)+stride-1)/stride, r.Reference, first.at, r.explain(t, tok, first, int(c.counts[wrong[0]])))
		}
	}
}

// A chunk is a piece of a corpus, at an offset in bytes.
type chunk struct {
	at   int
	text []byte
}

func chunksOf(text []byte) func(func(chunk) bool) {
	return func(yield func(chunk) bool) {
		for at, c := range corpus.Chunks(text) {
			if !yield(chunk{at, c}) {
				return
			}
		}
	}
}

// threads is how many goroutines encode.
const threads = 2

// differing returns the numbers of the chunks whose ids are not the recorded ones, in order.
func (r *Recording) differing(tok *tokenizer.Tokenizer, c *RecordedCorpus, chunks []chunk) []int {
	var next atomic.Int64
	var mu sync.Mutex
	var wrong []int
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			var ids []vocab.ID
			var bytes []byte
			for {
				i := (int(next.Add(1)) - 1) * stride
				if i >= len(chunks) {
					return
				}
				ids = r.encode(tok, ids[:0], chunks[i].text)
				bytes = bytes[:0]
				for _, id := range ids {
					bytes = binary.LittleEndian.AppendUint32(bytes, uint32(id))
				}
				if len(ids) != int(c.counts[i]) || crc32.ChecksumIEEE(bytes) != c.sums[i] {
					mu.Lock()
					wrong = append(wrong, i)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(wrong)
	return wrong
}

func (r *Recording) encode(tok *tokenizer.Tokenizer, dst []vocab.ID, text []byte) []vocab.ID {
	if r.special {
		return tok.EncodeSpecial(dst, text)
	}
	return tok.Encode(dst, text)
}

// explain tells where in a chunk the readings part, if the reference is at hand.
func (r *Recording) explain(t *testing.T, tok *tokenizer.Tokenizer, c chunk, recorded int) string {
	ids := r.encode(tok, nil, c.text)
	theirs, err := r.show(t, c.text)
	if err != nil {
		return fmt.Sprintf("ours has %d ids, the reference %d. For its reading: %v", len(ids), recorded, err)
	}
	at := 0
	for at < len(ids) && at < len(theirs) && ids[at] == theirs[at] {
		at++
	}
	before := tok.Decode(nil, ids[:at])
	return fmt.Sprintf("they part at byte %d (counted in decoded text), after %q\nours: %s\n%s: %s", c.at+len(before), tail(before, 60),
		reading(tok.Vocab(), ids, at), r.Reference, reading(tok.Vocab(), theirs, at))
}

func tail(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// reading writes the tokens from ids[at:] on.
func reading(v *vocab.Vocab, ids []vocab.ID, at int) string {
	var b strings.Builder
	for _, id := range ids[at:min(at+8, len(ids))] {
		fmt.Fprintf(&b, " %d %q", id, v.Bytes(id))
	}
	return cmp.Or(strings.TrimSpace(b.String()), "(end)")
}

// show asks the reference for the ids of a text.
func (r *Recording) show(t *testing.T, text []byte) ([]vocab.ID, error) {
	packages := os.Getenv("UNFRAY_TEST_REFERENCES")
	if packages == "" {
		return nil, errors.New("set UNFRAY_TEST_REFERENCES; `go run ./internal/deps/fetch -no-engine -references testdata/reference -env` installs the references and prints it")
	}
	cmd := exec.Command("python3", filepath.Join(Reference(t), "record.py"), "--show", r.Vocab)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = bytes.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("record.py --show %s: %w\n%s", r.Vocab, err, stderr.Bytes())
	}
	var ids []vocab.ID
	return ids, json.Unmarshal(out, &ids)
}
