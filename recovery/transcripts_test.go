package recovery_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/unfray/unfray/recovery"
)

var update = flag.Bool("update", false, "write testdata/transcripts.want.jsonl")

// transcript is a line of testdata/transcripts.jsonl; the README there describes it.
type transcript struct {
	ID, Kind string
	demand
	Constrained bool
	Messages    []json.RawMessage
	Seed        int
	Temperature float64
	MaxTokens   int `json:"max_tokens"`
	Model       string
	Tokens      int
	Text        string
}

func (s *transcript) recover(t testing.TB) *recovery.Result {
	t.Helper()
	o, err := s.options()
	if err != nil {
		t.Fatal(err)
	}
	return recovery.Recover(context.Background(), []byte(s.Text), o)
}

// transcriptWant is what recovery comes to.
type transcriptWant struct {
	ID      string         `json:"id"`
	Form    recovery.Form  `json:"form"`
	Outcome string         `json:"outcome"`
	Calls   int            `json:"calls,omitempty"`
	Loop    bool           `json:"loop,omitempty"`
	Edits   map[string]int `json:"edits,omitempty"` // by kind
	SHA256  string         `json:"sha256"`
	// Label is what a reader thinks of it; "": not read.
	Label string `json:"label,omitempty"`
}

// transcriptLabel is a line of testdata/transcripts.labels.jsonl.
type transcriptLabel struct{ ID, SHA256, Label, Why string }

// digest identifies an answer and what was made of it.
func digest(input string, p *recovery.Report) string {
	h := sha256.New()
	text := string(p.Bytes)
	if p.Text != nil {
		text = *p.Text
	}
	fmt.Fprintf(h, "%q %s %q %q", input, p.Outcome, text, p.Reasoning)
	for _, c := range p.Calls {
		fmt.Fprintf(h, " %s %s %v", c.Name, c.Arguments, c.Complete)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func TestTranscripts(t *testing.T) {
	labels := map[string]*transcriptLabel{}
	for _, l := range readLines[transcriptLabel](t, "testdata/transcripts.labels.jsonl") {
		labels[l.ID] = l
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	counts, stale := map[string]int{}, 0
	for _, s := range readLines[transcript](t, "testdata/transcripts.jsonl") {
		r := s.recover(t)
		t.Run(s.ID, func(t *testing.T) { checkReceipt(t, []byte(s.Text), r) })
		p := r.Report()
		w := transcriptWant{ID: s.ID, Form: r.Form, Outcome: p.Outcome, Calls: len(r.Calls), Loop: r.Loop != nil, Edits: map[string]int{}, SHA256: digest(s.Text, p)}
		for _, e := range r.Edits {
			w.Edits[string(e.Kind)]++
		}
		if l := labels[s.ID]; l != nil && l.SHA256 == w.SHA256 {
			w.Label = l.Label
		} else if l != nil {
			stale++
		}
		counts[w.Label]++
		if err := e.Encode(w); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("read: %d right, %d doubtful, %d wrong; %d labels are of results that have changed", counts["right"], counts["doubtful"], counts["wrong"], stale)
	compareGolden(t, "testdata/transcripts.want.jsonl", out.Bytes())
}

// TestTranscriptsStreamTheSameCalls holds that a call is one however it arrives.
func TestTranscriptsStreamTheSameCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 10))
	for _, s := range readLines[transcript](t, "testdata/transcripts.jsonl") {
		o, err := s.options()
		if err != nil {
			t.Fatal(err)
		}
		if o.Tools == nil {
			continue
		}
		o.Extract.Unopened = -1 // in a stream what came before a closing tag is given already
		text := []byte(s.Text)
		whole := recovery.Recover(context.Background(), text, o)
		_, _, _, r := streamed(t, text, o, rng)
		same := slices.EqualFunc(r.Calls, whole.Calls, func(a, b recovery.Call) bool {
			return a.Name == b.Name && a.Complete == b.Complete && string(a.Arguments) == string(b.Arguments)
		})
		if !same {
			t.Errorf("%s: %q: in a stream %d calls, on the whole %d, or others", s.ID, s.Text, len(r.Calls), len(whole.Calls))
		}
	}
}

// compareGolden compares with a file, line by line, or writes it.
func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g) || i >= len(w):
			t.Fatalf("%s: %d lines, want %d; if that is right, run with -update", path, len(g), len(w))
		case !bytes.Equal(g[i], w[i]):
			t.Errorf("%s:%d:\n got %s\nwant %s\nif it is better now, read it, and run with -update", path, i+1, g[i], w[i])
		}
	}
}
