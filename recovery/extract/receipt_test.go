package extract

import (
	"fmt"
	"reflect"
	"testing"
)

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		in, want string
		edits    []string
	}{
		{"a", "a", nil},
		{"<think>x</think>\n\na\n", "a\n", []string{`0 reasoning "<think>x</think>\n\n"`}},
		{"a\n<think>x</think>\nb", "a\nb", []string{`2 reasoning "<think>x</think>\n"`}},
		{"x</think><answer>a</answer>", "a", []string{`0 reasoning "x</think>"`, `9 marker "<answer>"`, `18 marker "</answer>"`}},
		{"<think>x</think>```\na\n```", "```\na\n```", []string{`0 reasoning "<think>x</think>"`}},
		{"<think>x", "", []string{`0 reasoning "<think>x"`}},
		{`{"a":"<think>x</think>"}`, `{"a":"<think>x</think>"}`, nil},
	} {
		got, edits := Answer([]byte(c.in), Options{})
		var list []string
		for _, e := range edits {
			list = append(list, fmt.Sprintf("%d %s %q", e.Offset, e.Kind, e.Before))
		}
		if string(got) != c.want || !reflect.DeepEqual(list, c.edits) {
			t.Errorf("%q: got %q by %q, want %q by %q", c.in, got, list, c.want, c.edits)
		}
	}
}

func TestOnly(t *testing.T) {
	const in = "<think>x</think>So:\n```json\n{\"a\":1}\n```\nOK."
	found, err := Candidates([]byte(in), Options{})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var list []string
	for _, e := range Only([]byte(in), found[0], Options{}) {
		list = append(list, fmt.Sprintf("%d %s %q", e.Offset, e.Kind, e.Before))
	}
	want := []string{`0 reasoning "<think>x</think>"`, `16 prose "So:\n"`, "20 fence \"```json\\n\"", "35 fence \"\\n```\"", `39 prose "\nOK."`}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}
