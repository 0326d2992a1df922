package audit

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Texts made to take long: the time grows as the text does.
func TestHostile(t *testing.T) {
	tok := toys(t)[0]
	repeat := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	for _, c := range []struct {
		name string
		pair func(n int) (old, new string)
	}{
		{"one letter", func(n int) (string, string) { return repeat("a ", n), "b" + repeat("a ", n) }},
		{"brackets", func(n int) (string, string) { return repeat("[", n) + "1", repeat("[", n) + "2" }},
		{"closed brackets", func(n int) (string, string) {
			return repeat("[", n/2) + "1" + repeat("]", n/2), repeat("[", n/2) + "2" + repeat("]", n/2)
		}},
		{"objects", func(n int) (string, string) {
			return repeat(`{"a":1}`+"\n", n), repeat(`{"a":1}`+"\n", n/2) + `{"a":2}`
		}},
		{"one object", func(n int) (string, string) {
			return `{"a":[` + repeat(`"x",`, n) + `1]}`, `{"a":[` + repeat(`"x",`, n) + `2]}`
		}},
		{"thoughts", func(n int) (string, string) { return repeat("<think>", n) + "a", repeat("<think>", n) + "<thi" }},
		{"digits", func(n int) (string, string) { return repeat("12:30 1 ", n) + "1", repeat("12:30 1 ", n) + "2" }},
		{"newlines", func(n int) (string, string) { return repeat("\n", n/8) + "a", repeat("\n", n/8) + " a" }},
		{"lines in reverse", func(n int) (string, string) {
			var lines []string
			for i := range n / 16 {
				lines = append(lines, fmt.Sprintf("line number %d", i))
			}
			a := strings.Join(lines, "\n")
			for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
				lines[i], lines[j] = lines[j], lines[i]
			}
			return a, strings.Join(lines, "\n")
		}},
		{"control tokens", func(n int) (string, string) { return repeat("<|im_end|>", n) + "a", repeat("<|im_end|>", n) + "b" }},
		{"every other byte", func(n int) (string, string) {
			return repeat("abcdefghijklmnop-", n), repeat("abcdefghijklmnop+", n)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var took [2]time.Duration
			sizes := []int{1 << 17, 1 << 19}
			if race || testing.Short() {
				sizes = []int{1 << 13, 1 << 15}
			}
			for k, n := range sizes {
				old, new := c.pair(n)
				at := time.Now()
				if _, err := Audit([]Prompt{{Text: []byte(old)}, {Text: []byte(new)}}, Options{Tokenizer: tok, Special: true}); err != nil {
					t.Fatal(err)
				}
				took[k] = time.Since(at)
			}
			t.Logf("%v, %v", took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
			if took[1] > 20*time.Second || took[1] > 5*time.Second && took[1] > 12*took[0] {
				t.Errorf("a text of four times the length took %v instead of %v", took[1], took[0])
			}
		})
	}
	var many []Prompt
	for i := range 5_000 {
		many = append(many, Prompt{Text: bytes.Repeat([]byte("a"), i%50)})
	}
	at := time.Now()
	if _, err := Audit(many, Options{Tokenizer: tok}); err != nil {
		t.Fatal(err)
	}
	t.Logf("many prompts: %v", time.Since(at).Round(time.Millisecond))
}
