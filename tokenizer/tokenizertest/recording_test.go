package tokenizertest

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/deps/corpus"
)

// Every recording is whole and of the corpora that the fetch command makes.
func TestRecordings(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(Reference(t), "ids", "*.ids.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".ids.gz")
		r := Record(t, name)
		if r.Vocab != name || r.Reference == "" || len(r.SHA256) != 64 {
			t.Errorf("%s: head says %q by %q", name, r.Vocab, r.Reference)
		}
		var names []string
		for _, c := range r.Corpora {
			names = append(names, c.Name)
			if pin, ok := corpus.Find(c.Name); !ok || pin.SHA256 != c.SHA256 {
				t.Errorf("%s: recorded on another corpus %s", name, c.Name)
			}
		}
		if !slices.Equal(names, []string{"go", "multi", "fuzz"}) {
			t.Errorf("%s: recorded on %v", name, names)
		}
	}
}

func TestParseRecordingRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no head", "", "unexpected end of JSON"},
		{"cut off", `{"corpora":[{"name":"go","chunks":2}]}` + "\n1234", "unexpected EOF"},
		{"too long", `{"corpora":[]}` + "\nx", "1 bytes follow"},
		{"other count", `{"corpora":[{"name":"go","chunks":1,"ids":2}]}` + "\n1234\x01\x00", "have 1 ids, the head says 2"},
		{"fewer than none", `{"corpora":[{"name":"go","chunks":-1}]}` + "\n", "unexpected EOF"},
	}
	for _, tt := range tests {
		var packed bytes.Buffer
		zw := gzip.NewWriter(&packed)
		zw.Write([]byte(tt.text))
		zw.Close()
		if _, err := parseRecording(packed.Bytes()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	if _, err := parseRecording([]byte("text")); err == nil {
		t.Error("text that is not compressed passes")
	}
}
