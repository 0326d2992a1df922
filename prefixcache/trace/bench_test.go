package trace

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func BenchmarkMooncake(b *testing.B) {
	z, err := gzip.NewReader(data(b, "mooncake-conversation.jsonl.gz"))
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, text)
}

func BenchmarkGatewayLog(b *testing.B) {
	line := `{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"A","model":"m","prompt_tokens":1000,"completion_tokens":2,"cached_tokens":0,"prompt_ids":[1` +
		strings.Repeat(",12345", 999) + `],"output_ids":[6,7],"status":200,"duration":0}` + "\n"
	benchmark(b, []byte(strings.Repeat(line, 500)))
}

func BenchmarkShareGPT(b *testing.B) {
	turn := `{"from":"human","value":"` + strings.Repeat("What is the capital? ", 20) + `"},{"from":"gpt","value":"` + strings.Repeat(`It is \"Paris\".\n`, 20) + `"}`
	element := `{"id":"a","conversations":[` + turn + strings.Repeat(","+turn, 9) + "]}"
	benchmark(b, []byte("["+element+strings.Repeat(",\n"+element, 299)+"]"))
}

func benchmark(b *testing.B, text []byte) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(text), "bench", Options{})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}
