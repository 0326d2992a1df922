package prefixcache

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// A splitMix is the generator of testdata/vllm/*.py.
type splitMix uint64

func (r *splitMix) below(n uint64) int { return int(r.next() % n) }

func (r *splitMix) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (r *splitMix) media(length int) []Media {
	var media []Media
	step, size, count := 0, 0, 0
	if r.below(20) == 0 {
		step, size, count = 2, 1, 60
	} else if r.below(3) == 0 {
		step, size = 40, 60
		count = r.below(5)
	}
	for at := 0; count > 0; count-- {
		at += r.below(uint64(step))
		n := 1 + r.below(uint64(size))
		if at+n > length {
			break
		}
		media = append(media, Media{Hash: fmt.Sprintf("%x", r.next()%(1<<40)), Offset: at, Length: n})
		at += n
	}
	return media
}

type hashCase struct {
	algorithm, seed string
	block           int
	ids             []vocab.ID
	keys            Keys
}

func newHashCase(number int) hashCase {
	r := splitMix(number)
	var c hashCase
	c.algorithm = []string{"sha256_cbor", "xxhash_cbor"}[r.below(2)]
	c.seed = []string{DefaultHashSeed, "0", "4711", "größer als 23 Byte, länger"}[r.below(4)]
	c.block = []int{1, 2, 3, 4, 8, 16, 32, 64, 128}[r.below(9)]
	length := r.below(700)
	bound := []uint64{20, 200, 50_000, 200_000, 1 << 31}[r.below(5)]
	for range length {
		c.ids = append(c.ids, vocab.ID(r.below(bound)))
	}
	salts := []string{"", "", fmt.Sprintf("salt-%d", r.below(50)), "Salz für alle Suppen, reichlich"}
	c.keys.Salt = salts[r.below(4)]
	c.keys.LoRA = []string{"", "", "adapter", strings.Repeat("a", 30)}[r.below(4)]
	c.keys.Media = r.media(length)
	return c
}

func TestBlockHashesAreVLLMs(t *testing.T) {
	recorded, err := os.ReadFile("testdata/vllm/hashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(recorded)), "\n")[1:]
	if len(lines) != 1000 {
		t.Fatalf("%d sequences recorded", len(lines))
	}
	keyed := 0
	for i, want := range lines {
		c := newHashCase(i)
		if c.keys.LoRA != "" || c.keys.Salt != "" || len(c.keys.Media) > 0 {
			keyed++
		}
		h, err := NewBlockHasher(c.algorithm, c.seed)
		if err != nil {
			t.Fatal(err)
		}
		h.LoRAPaths = map[string]string{c.keys.LoRA: "/models/" + c.keys.LoRA}
		hashes, err := h.AppendHashes(nil, c.ids, c.block, c.keys)
		if err != nil {
			t.Fatal(err)
		}
		events, err := h.BlockKeys(c.ids, c.block, c.keys)
		if err != nil {
			t.Fatal(err)
		}
		last, all := "-", uint64(0)
		if len(hashes) > 0 {
			last = hex.EncodeToString(hashes[len(hashes)-h.Size():])
		}
		for _, e := range events {
			all ^= e
		}
		if got := fmt.Sprintf("%d %s %x", len(events), last, all); got != want {
			t.Fatalf("sequence %d (%s, seed %q, blocks of %d, %d tokens): got %s, vLLM has %s",
				i, c.algorithm, c.seed, c.block, len(c.ids), got, want)
		}
	}
	if keyed < 300 {
		t.Errorf("only %d sequences have keys", keyed)
	}
}

func TestBlockHasherErrors(t *testing.T) {
	for algorithm, want := range map[string]string{
		"sha256": "--prefix-caching-hash-algo sha256_cbor",
		"xxhash": "--prefix-caching-hash-algo xxhash_cbor",
		"md5":    `"md5"`,
	} {
		if _, err := NewBlockHasher(algorithm, "0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", algorithm, err, want)
		}
	}
	h, err := NewBlockHasher("sha256_cbor", "0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.BlockKeys(nil, 16, Keys{LoRA: "x"}); err == nil || !strings.Contains(err.Error(), "LoRAPaths") {
		t.Errorf("adapter without a path: got error %v", err)
	}
	if _, err := h.BlockKeys(nil, 0, Keys{}); err == nil {
		t.Error("no error for blocks of 0 tokens")
	}
}

func BenchmarkBlockHashes(b *testing.B) {
	ids := make([]vocab.ID, 1_000_000)
	for i := range ids {
		ids[i] = vocab.ID(i * 7919 % 150_000)
	}
	for _, algorithm := range []string{"sha256_cbor", "xxhash_cbor"} {
		b.Run(algorithm, func(b *testing.B) {
			h, err := NewBlockHasher(algorithm, "0")
			if err != nil {
				b.Fatal(err)
			}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = h.AppendHashes(dst[:0], ids, 16, Keys{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/token")
		})
	}
}
