package recovery_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery"
)

// document is valid JSON of some length, with what strings of answers hold.
func document(n int) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"id": %d, "name": "Größe %d", "text": "He said \"go\", then left: it was [late].\n", "tags": ["a", "b"], "ok": true}`, i, i)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// What recovery costs where there is nothing to recover.
func BenchmarkValid(b *testing.B) {
	for _, n := range []int{1 << 10, 64 << 10} {
		doc := document(n)
		b.Run(fmt.Sprintf("check/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if jsonrepair.Check(doc, 0) != nil {
					b.Fatal("not valid")
				}
			}
		})
		for name, o := range map[string]recovery.Options{"json": {Form: recovery.JSON}, "auto": {}} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				for b.Loop() {
					if recovery.Recover(context.Background(), doc, o).Outcome != recovery.Valid {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}

// What recovery costs for text that is sound.
func BenchmarkText(b *testing.B) {
	text := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog; it isn’t tired. Then:\n\n- one\n- two\n\n"), 1)
	var all []byte
	for i := 0; len(all) < 64<<10; i++ {
		all = append(all, text...)
		all = fmt.Appendf(all, "Section %d is about %x.\n", i, i*i*7919)
	}
	b.SetBytes(int64(len(all)))
	for b.Loop() {
		recovery.Recover(context.Background(), all, recovery.Options{Form: recovery.Text})
	}
}
