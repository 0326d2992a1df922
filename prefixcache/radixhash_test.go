package prefixcache

import (
	"encoding/hex"
	"testing"

	"github.com/unfray/unfray/vocab"
)

func TestPageHashesAsSGLang(t *testing.T) {
	type line struct {
		Page, N     int
		Bigrams     bool
		Salt, Extra string
		LoRAID      string `json:"lora_id"`
		Digest      string
		Event       int64
	}
	lines := recordedLines[line](t, "testdata/sglang/hashes.jsonl.gz")
	if len(lines) != 1000 {
		t.Fatalf("%d sequences, want 1000", len(lines))
	}
	for i, l := range lines {
		ids := recordedTokens([][3]int{{i, 0, l.N}})
		h := PageHasher{Bigrams: l.Bigrams, LoRAIDs: map[string]string{"adapter": l.LoRAID}}
		k := Keys{Salt: l.Salt, Extra: l.Extra}
		if l.LoRAID != "" {
			k.LoRA = "adapter"
		}
		all, err := h.AppendHashes(nil, ids, l.Page, k)
		if err != nil {
			t.Fatal(err)
		}
		last := all[len(all)-32:]
		if got := hex.EncodeToString(last); got != l.Digest {
			t.Errorf("line %d: digest %s, want %s", i, got, l.Digest)
		}
		if got, err := h.EventHash(last, k); err != nil || got != l.Event {
			t.Errorf("line %d: event hash %d, %v, want %d", i, got, err, l.Event)
		}
	}
}

func TestPageHashErrors(t *testing.T) {
	var h PageHasher
	ids := make([]vocab.ID, 8)
	if _, err := h.AppendHashes(nil, ids, 0, Keys{}); err == nil {
		t.Error("pages of no tokens were hashed")
	}
	if _, err := h.AppendHashes(nil, ids, 4, Keys{Media: []Media{{Hash: "a"}}}); err == nil {
		t.Error("a prompt with an image was hashed")
	}
	hash, err := h.AppendHashes(nil, ids, 8, Keys{LoRA: "a"})
	if err != nil || len(hash) != 32 {
		t.Fatalf("%d bytes, %v", len(hash), err)
	}
	if _, err := h.EventHash(hash, Keys{LoRA: "a"}); err == nil {
		t.Error("an adapter without an id got an event hash")
	}
	if got, err := h.AppendHashes(nil, ids[:7], 8, Keys{}); err != nil || len(got) != 0 {
		t.Errorf("part of a page: %d bytes, %v", len(got), err)
	}
}
