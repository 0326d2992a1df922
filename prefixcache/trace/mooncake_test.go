package trace

import (
	"bufio"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// The handed traces are read as encoding/json reads them.
func TestMooncakeFiles(t *testing.T) {
	for file, requests := range map[string]int{"mooncake-conversation.jsonl.gz": 12031, "mooncake-synthetic.jsonl.gz": 3993} {
		t.Run(file, func(t *testing.T) {
			z, err := gzip.NewReader(data(t, file))
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(z)
			lines.Buffer(nil, 1<<20)
			r, err := NewReader(data(t, file), file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for q, err := range r.All() {
				if err != nil {
					t.Fatal(err)
				}
				if !lines.Scan() {
					t.Fatalf("line %d is not there", q.Line)
				}
				checkMooncake(t, lines.Bytes(), q)
				if q.BlockTokens != 512 || len(q.Blocks) != (q.PromptTokens+511)/512 {
					t.Fatal(show(q))
				}
			}
			if s := r.Stats(); lines.Scan() || s.Requests != requests || s.Records != requests || s.Format != "mooncake" {
				t.Errorf("stats %+v, want %d requests", s, requests)
			}
		})
	}
}

func TestKeystrokeFiles(t *testing.T) {
	for file, requests := range map[string]int{"keystrokes-prose.jsonl.gz": 300, "keystrokes-rust.jsonl.gz": 600, "humaneval-randomspan.jsonl.gz": 820} {
		t.Run(file, func(t *testing.T) {
			all, stats, err := readAll(t, data(t, file), Options{})
			if err != nil || len(all) != requests || stats.Format != "keystrokes" {
				t.Fatalf("%d requests of %s, %v", len(all), stats.Format, err)
			}
			for _, q := range all {
				if len(q.Text) == 0 && len(q.Output) == 0 {
					t.Errorf("line %d is empty", q.Line)
				}
			}
		})
	}
}

// Reading hash traces takes no memory for a line but the room for its blocks.
func TestMooncakeAllocates(t *testing.T) {
	text := strings.Repeat(goodLine+"\n", 1000)
	var r *Reader
	allocs := testing.AllocsPerRun(10, func() {
		var err error
		if r, err = NewReader(strings.NewReader(text), "t", Options{}); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := r.Next(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
	if r.Stats().Requests != 1000 || allocs > 60 {
		t.Errorf("%v allocations for %d requests", allocs, r.Stats().Requests)
	}
}

// Records of many small parts take memory in proportion to their size.
func TestHostileMemory(t *testing.T) {
	const n = 1 << 18
	for name, tt := range map[string]struct {
		in   string
		want int // requests
	}{
		"prompts":        {`{"prompt":[` + strings.Repeat("[1],", n) + `[1]]}`, n + 1},
		"texts":          {`{"prompt":[` + strings.Repeat(`"",`, n) + `""]}`, n + 1},
		"escapes":        {`{"prompt":"` + strings.Repeat(`\n`, n) + `"}`, 1},
		"tokens":         {`{"prompt":[` + strings.Repeat("1,", n) + `1]}`, 1},
		"turns":          {`[{"conversations":[` + strings.Repeat(`{"from":"user","value":""},`, n) + `{"from":"gpt","value":""}]}]`, n},
		"choices":        {`{"prompt":"","response":{"choices":[` + strings.Repeat(`{"text":""},`, n) + `{}]}}`, 1},
		"hashes":         {`{"input_length":1,"hash_ids":[` + strings.Repeat("1,", n) + `1]}`, 0},
		"names":          {`{` + strings.Repeat(`"":0,`, n) + `"prompt":""}`, 1},
		"spans":          {`{"spans":[` + strings.Repeat(`{"start_time":1,"attributes":{"gen_ai.input.messages":"[{\"role\":\"\"}]"}},`, n/16) + `{}]}`, n / 16},
		"clock":          {"{\n" + `"spans":[{"start_time":1700000000,"attributes":{"gen_ai.input.messages":"[{\"role\":\"\"}]"}},` + "\n" + strings.Repeat(`{"start_time":1,"attributes":{"gen_ai.input.messages":"[{\"role\":\"\"}]"}},`+"\n", n/16) + `{}]}`, 1},
		"small records":  {strings.Repeat("{}\n", n), 0},
		"small elements": {"[" + strings.Repeat("0,", n) + "0]", 0},
		"empty lines":    {strings.Repeat("\n", n) + goodLine, 1},
	} {
		t.Run(name, func(t *testing.T) {
			opt := Options{SkipBad: true, Reorder: 1}
			if name == "small records" || name == "small elements" {
				opt.Format = "openai"
			}
			var r *Reader
			bytes := allocated(func() {
				var err error
				if r, err = NewReader(strings.NewReader(tt.in), "t", opt); err != nil {
					t.Fatal(err)
				}
				for _, err := range r.All() {
					if err != nil {
						t.Fatal(err)
					}
				}
			})
			if got := r.Stats().Requests; got != tt.want {
				t.Errorf("%d requests, want %d: %+v", got, tt.want, r.Stats())
			}
			if limit := int64(len(tt.in))*150 + 1<<20; bytes > limit {
				t.Errorf("allocated %d bytes for %d, want at most %d", bytes, len(tt.in), limit)
			}
		})
	}
}
