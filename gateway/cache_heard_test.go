package gateway

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/unfray/unfray/vocab"
)

// TestHeardChoices reads what answers that were passed on tell of their tokens, in
// the forms in which servers answer.
func TestHeardChoices(t *testing.T) {
	length := &spoken{text: []byte("ab"), ended: true}
	stopped := &spoken{text: []byte("ab"), ended: true, stopped: true}
	for name, tc := range map[string]struct {
		answer string
		want   map[int]*spoken
	}{
		"whole":         {`{"choices":[{"index":0,"text":"ab","finish_reason":"length"}],"usage":{}}`, map[int]*spoken{0: length}},
		"stopped":       {` {"choices":[{"index":0,"text":"ab","finish_reason":"stop"}]}` + "\n", map[int]*spoken{0: stopped}},
		"two":           {`{"choices":[{"index":1,"text":"ab","finish_reason":"stop"},{"index":0,"text":"ab","finish_reason":"length"}]}`, map[int]*spoken{0: length, 1: stopped}},
		"vLLM's tokens": {`{"choices":[{"index":0,"text":"ab","token_ids":[5,6],"finish_reason":"length"}]}`, map[int]*spoken{0: {text: []byte("ab"), ids: []vocab.ID{5, 6}, ended: true}}},
		"no tokens":     {`{"choices":[{"index":0,"text":"ab","token_ids":null,"finish_reason":"length"}]}`, map[int]*spoken{0: length}},
		"stream": {"data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"index\":0,\"text\":\"b\",\"finish_reason\":\"stop\"}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{}}\r\n\r\ndata: [DONE]\n\n", map[int]*spoken{0: stopped}},
		"native":         {`{"index":0,"content":"ab","tokens":[],"stop":true,"stop_type":"limit","timings":{}}`, map[int]*spoken{0: length}},
		"native, eos":    {`{"index":0,"content":"ab","tokens":[],"stop":true,"stop_type":"eos"}`, map[int]*spoken{0: stopped}},
		"native, two":    {`[{"index":0,"content":"ab","stop_type":"limit"},{"index":1,"content":"ab","stop_type":"word"}]`, map[int]*spoken{0: length, 1: stopped}},
		"native, stream": {"data: {\"index\":0,\"content\":\"ab\",\"tokens\":[7],\"stop\":false}\n\ndata: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":\"limit\"}\n\n", map[int]*spoken{0: {text: []byte("ab"), ids: []vocab.ID{7}, ended: true}}},
		"cut":            {`{"choices":[{"index":0,"text":"ab"`, nil},
		"other types":    {`{"choices":[{"index":0,"text":["ab"]}]}`, nil},
		"compressed":     {"\x1f\x8b\x08\x00", map[int]*spoken{}},
		"empty":          {"", map[int]*spoken{}},
		"broken event":   {"data: {\n\n", nil},
	} {
		for _, size := range []int{1, 3, len(tc.answer) + 1} {
			h := &heard{}
			for b := []byte(tc.answer); len(b) > 0; b = b[min(size, len(b)):] {
				h.write(b[:min(size, len(b))])
			}
			if got := h.choices(); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s, %d bytes at a time: %v, want %v", name, size, got, tc.want)
			}
		}
	}
}

// TestHeardIsBounded keeps only the end of a long answer.
func TestHeardIsBounded(t *testing.T) {
	h := &heard{}
	piece := []byte(`{"choices":[{"index":0,"text":"` + strings.Repeat("x", 1000) + `"}]}`)
	for range 10 << 10 {
		h.write(piece)
		if cap(h.whole)+cap(h.tail) > 2*maxHeard {
			t.Fatalf("%d and %d bytes are kept", cap(h.whole), cap(h.tail))
		}
	}
	h.write([]byte(`"usage":{"prompt_tokens_details":{"cached_tokens":41}}}`))
	if n, ok := h.cached(); n != 41 || !ok || len(h.whole) > 0 || len(h.tail) > maxTail || len(h.choices()) != 0 {
		t.Errorf("%d %v of %d and %d bytes", n, ok, len(h.whole), len(h.tail))
	}
}

// FuzzHeard reads any answer, in any pieces, alike.
func FuzzHeard(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"index":0,"text":"ab","token_ids":[5],"finish_reason":"stop"}],"usage":{"prompt_tokens_details":{"cached_tokens":3}}}`,
		"data: {\"content\":\"a\",\"tokens\":[1]}\n\ndata: {\"stop_type\":\"eos\",\"timings\":{\"cache_n\":12}}\n\n", `[{"index":-1}]`, "data:", "[", "{", `"cached_tokens":99999999999999999999`,
	} {
		f.Add([]byte(s), 7)
	}
	f.Fuzz(func(t *testing.T, answer []byte, size int) {
		once, parts := &heard{}, &heard{}
		once.write(answer)
		size = max(1, size%100)
		for b := answer; len(b) > 0; b = b[min(size, len(b)):] {
			parts.write(b[:min(size, len(b))])
		}
		n, ok := once.cached()
		m, also := parts.cached()
		if n != m || ok != also || ok && n < 0 || !bytes.Equal(once.whole, parts.whole) {
			t.Errorf("%d %v at once, %d %v in parts", n, ok, m, also)
		}
		if a, b := fmt.Sprint(len(once.choices())), fmt.Sprint(len(parts.choices())); a != b {
			t.Errorf("%s choices at once, %s in parts", a, b)
		}
	})
}
