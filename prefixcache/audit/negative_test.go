package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// conversation renders a conversation of n turns, each as a client sends it, in the form
// that keeps what the model saw. The last prompt of a turn is the beginning of the
// next.
func conversation(n int, question func(i int) string) []Prompt {
	var prompts []Prompt
	text := chatML("system", strings.TrimSpace(rules))
	for i := range n {
		text += chatML("user", question(i))
		answer := fmt.Sprintf("Answer %d: it depends on the valve.", i)
		prompts = append(prompts, Prompt{Text: []byte(text + open4), Output: []byte(answer + "<|im_end|>"), Conversation: "c", Turn: i + 1})
		text += open4 + answer + "<|im_end|>\n"
	}
	return prompts
}

// Prompts in which nothing is lost: no cause is found, and nothing suggested.
func TestNothingLost(t *testing.T) {
	questions := []string{"Why does the pump leak?", "Who serviced line four?", "Say it in French.", "Thanks!", "Is 12 bar too much?"}
	ask := func(i int) string { return questions[i%len(questions)] }
	one := func(texts ...string) (list []Prompt) {
		for _, s := range texts {
			list = append(list, Prompt{Text: []byte(s)})
		}
		return list
	}
	var asked []Prompt
	for i := range questions {
		asked = append(asked, Prompt{Text: []byte(chatML("system", strings.TrimSpace(rules), "user", ask(i), open4))})
	}
	branches := append(conversation(3, ask), conversation(2, func(i int) string { return ask(i + 2) })...)
	for i := range branches[3:] {
		branches[3+i].Conversation = "d"
	}
	corpus := string(tokenizertest.Corpus(t, "multi"))
	for _, c := range []struct {
		name    string
		prompts []Prompt
	}{
		{"none", nil},
		{"one prompt", one(rules)},
		{"the same twice", one(rules, rules)},
		{"an empty one", one("", rules, "")},
		{"nothing in common", one("Alpha runs.", "Beta walks.", "Gamma sits.")},
		{"one question each", asked},
		{"a conversation", conversation(5, ask)},
		{"two that branch", branches},
		{"files", one(corpus[:9000], corpus[13000:20000], corpus[45000:59000])},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep, err := Audit(c.prompts, Options{Tokenizer: open(t, "qwen3"), Special: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(rep.Causes) > 0 || len(rep.Suggestions) > 0 || rep.LostTokens > 0 || rep.FirstDivergence != nil {
				var b strings.Builder
				_ = rep.Explain(&b)
				t.Errorf("found %v: %s", rep.Causes, &b)
			}
		})
	}
}

// A log with several causes at once: each is found where it is.
func TestMixed(t *testing.T) {
	tok := open(t, "qwen3")
	prompts := conversation(3, func(i int) string { return "Question " + "ABC"[i:i+1] + " about the pump?" })
	drifted := prompts[2]
	drifted.Text = []byte(strings.Replace(string(drifted.Text), "Answer 0: it", "<think>\n\n</think>\n\nAnswer 0: it", 1))
	prompts[2] = drifted
	clocks := []string{"10:00:01", "10:00:05", "10:00:09"}
	for _, c := range clocks {
		prompts = append(prompts, Prompt{Name: c, Text: []byte("It is " + c + " now.\n" + rules + "Hello.")})
	}
	prompts = append(prompts, Prompt{Name: "crlf", Text: []byte("It is 10:00:09 now.\r\n" + rules + "Hello.")})
	rep, err := Audit(prompts, Options{Tokenizer: tok, Special: true, Price: &Price{PerMillion: 2, PerMillionCached: 0.5, Currency: "EUR"}})
	if err != nil {
		t.Fatal(err)
	}
	// The rules stand in prompt 3 too, behind another beginning.
	want := map[int]Cause{2: Thinking, 3: Content, 4: Timestamp, 5: Timestamp, 6: Whitespace}
	for i, q := range rep.Requests {
		cause := Cause("")
		if q.FirstDivergence != nil && q.LostTokens > 0 {
			cause = q.FirstDivergence.Cause
		}
		if cause != want[i] {
			t.Errorf("prompt %d: %q, want %q", i, cause, want[i])
		}
	}
	lost := 0
	for _, c := range rep.Causes {
		lost += c.LostTokens
		if q := rep.Requests[c.Example]; q.FirstDivergence.Cause != c.Cause || q.FirstDivergence.Why != c.Why {
			t.Errorf("the example of %s is another: %+v", c.Cause, q)
		}
	}
	if len(rep.Causes) != 4 || lost != rep.LostTokens {
		t.Errorf("causes %+v for %d lost tokens", rep.Causes, rep.LostTokens)
	}
	if want := float64(rep.LostTokens) * 1.5 / 1e6; rep.Cost == nil || *rep.Cost != want {
		t.Errorf("cost %v, want %v", rep.Cost, want)
	}
	for _, c := range []Change{MoveToEnd, CoarserTime, KeepBytes, KeepHistory} {
		if suggested(rep, c) == nil {
			t.Errorf("%s is not suggested", c)
		}
	}
	if rep.FirstDivergence == nil || rep.Requests[4].FirstDivergence == nil || len(rep.Pairs) != len(prompts) {
		t.Errorf("no divergence, or %d rows of pairs", len(rep.Pairs))
	}
}

func TestOptions(t *testing.T) {
	tok := open(t, "qwen3")
	for _, c := range []struct {
		o    Options
		p    []Prompt
		want string
	}{
		{Options{}, nil, "Tokenizer is nil"},
		{Options{Tokenizer: tok, BlockSizes: []int{16, 0}}, nil, "it is 0"},
		{Options{Tokenizer: tok, Price: &Price{PerMillion: 1, PerMillionCached: 2}}, nil, "1 and 2"},
		{Options{Tokenizer: tok}, []Prompt{{}, {Name: "x", IDs: pieces(t, tok, "a")}, {IDs: append(pieces(t, tok, "a"), 1<<30)}}, "prompt 3: token 1073741824 at index 1"},
		{Options{Tokenizer: tok}, []Prompt{{Name: "x", Text: []byte("ab"), Segments: []Segment{{"{a}", 1, 3}}}}, "prompt x: segment 0 ({a}) is at bytes 1 to 3"},
		{Options{Tokenizer: tok, Separator: []byte("#"), SeparatorIDs: append(pieces(t, tok, "a"), -1)}, nil, "separator: token -1"},
	} {
		if _, err := Audit(c.p, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
