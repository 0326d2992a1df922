package jsonrepair

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestKindsAreNumbered: an edit of a kind without a number would come back as one
// of another kind.
func TestKindsAreNumbered(t *testing.T) {
	source, err := os.ReadFile("kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^\t\w+ +Kind = "(\w+)" *// (finding:)?`).FindAllStringSubmatch(string(source), -1)
	if len(lines) < 40 {
		t.Fatalf("only %d kinds found", len(lines))
	}
	for _, m := range lines {
		kind, finding := Kind(m[1]), m[2] != ""
		if !finding && !slices.Contains(kinds[:], kind) {
			t.Errorf("%s has no number", kind)
		}
	}
	for i, k := range kinds {
		if slices.Index(kinds[:], k) != i {
			t.Errorf("%s has two numbers", k)
		}
	}
}
