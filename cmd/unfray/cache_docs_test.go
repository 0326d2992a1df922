package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/unfray/unfray/prefixcache/advise"
)

// TestCacheDocs holds the table of decisions in docs/cache.md to what the model computes.
func TestCacheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/cache.md")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := advise.PatternTable(&table); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(docs, table.Bytes()) {
		t.Errorf("docs/cache.md does not have the table that `unfray cache advise --table` prints:\n%s", table.Bytes())
	}
}
