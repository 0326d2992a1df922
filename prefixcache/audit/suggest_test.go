package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// The figures of a suggestion are those of prompts that were changed by hand.
func TestSuggestions(t *testing.T) {
	list := func(texts ...string) (p []Prompt) {
		for i, s := range texts {
			p = append(p, Prompt{Text: []byte(s), Turn: i})
		}
		return p
	}
	body := strings.TrimSpace(rules)
	chat := func(system, user string) string { return chatML("system", system, "user", user, open4) }
	answered := func(prompt, output string) Prompt {
		return Prompt{Text: []byte(prompt), Output: []byte(output), Conversation: "c"}
	}
	first := chatML("user", "2+2?", open4)
	think, four := "<think>\nTwo and two.\n</think>\n\n", "Four."
	for _, c := range []struct {
		name   string
		change Change
		had    []Prompt
		byHand []Prompt
		says   string
	}{
		{"a clock in a chat's system prompt", MoveToEnd,
			list(chat("It is 10:00:01.\n"+body, "Hi"), chat("It is 10:00:07.\n"+body, "Who?"), chat("It is 10:01:02.\n"+body, "Why?")),
			list(chat(body, "Hi\nIt is 10:00:01."), chat(body, "Who?\nIt is 10:00:07."), chat(body, "Why?\nIt is 10:01:02.")), `"It is 10:00:01."`},
		{"a sentence in a line", MoveToEnd,
			list("You are kind. It is 10:00:01. Be brief.\n"+body, "You are kind. It is 10:00:07. Be brief.\n"+body),
			list("You are kind. Be brief.\n"+body+"\nIt is 10:00:01.", "You are kind. Be brief.\n"+body+"\nIt is 10:00:07."), ""},
		{"questions before the documents", MoveToEnd,
			list("Q: Why does it leak?\n"+body+long, "Q: Who serviced it?\n"+body+long, "Q: Is it hot?\n"+body+long),
			list(body+long+"\nQ: Why does it leak?", body+long+"\nQ: Who serviced it?", body+long+"\nQ: Is it hot?"), ""},
		{"two values", MoveToEnd,
			list("It is 10:00:01.\nYou have 3 unread messages.\n"+body, "It is 10:00:07.\nYou have 5 unread messages.\n"+body, "It is 10:00:09.\nYou have 12 unread messages.\n"+body),
			list(body+"\nIt is 10:00:01.\nYou have 3 unread messages.", body+"\nIt is 10:00:07.\nYou have 5 unread messages.", body+"\nIt is 10:00:09.\nYou have 12 unread messages."), ""},
		{"seconds", CoarserTime,
			list("It is 10:00:01.\n"+body, "It is 10:00:07.\n"+body, "It is 10:00:09.\n"+body),
			list("It is 10:00.\n"+body, "It is 10:00.\n"+body, "It is 10:00.\n"+body), `"10:00" for "10:00:01"`},
		{"hours", CoarserTime,
			list("Now 2026-11-30T10:00:01Z\n"+body, "Now 2026-11-30T10:12:07Z\n"+body, "Now 2026-11-30T10:59:07Z\n"+body),
			list("Now 2026-11-30\n"+body, "Now 2026-11-30\n"+body, "Now 2026-11-30\n"+body), ""},
		{"reasoning", KeepHistory,
			[]Prompt{answered(first, think+four+"<|im_end|>"), answered(chatML("user", "2+2?", "assistant", four, "user", "Sure?", open4), think+"Yes.<|im_end|>"),
				answered(chatML("user", "2+2?", "assistant", four, "user", "Sure?", "assistant", "Yes.", "user", "Why?", open4), "")},
			[]Prompt{answered(first, think+four+"<|im_end|>"), answered(chatML("user", "2+2?", "assistant", think+four, "user", "Sure?", open4), think+"Yes.<|im_end|>"),
				answered(chatML("user", "2+2?", "assistant", think+four, "user", "Sure?", "assistant", think+"Yes.", "user", "Why?", open4), "")}, ""},
		{"blanks", KeepBytes, list("A  b.\n"+body, "A b.\n"+body, "A b.\n"+body+" More."), list("A  b.\n"+body, "A  b.\n"+body, "A  b.\n"+body+" More."), ""},
		{"a document dropped", KeepParts,
			list(body+docs[0]+docs[1]+long+"Why?", body+docs[1]+long+"Who?"), list(body+docs[0]+docs[1]+long+"Why?", body+docs[0]+docs[1]+long+"Who?"), ""},
		{"a document put first", KeepParts,
			list(body+"\n"+docs[1]+long+"\nWhy?", body+"\n"+docs[0]+docs[1]+long+"\nWho?"), list(body+"\n"+docs[1]+long+"\nWhy?", body+"\n"+docs[1]+long+"\n"+docs[0]+"Who?"), ""},
		{"newlines at a seam", StripBlank,
			list(body+"\n###\nOil is low.", body+"\n###\n\nThe belt is worn.", body+"\n###\n\n\nNo gauge."),
			list(body+"\n###\nOil is low.", body+"\n###\nThe belt is worn.", body+"\n###\nNo gauge."), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Tokenizer: open(t, "qwen3"), Special: true}
			rep, err := Audit(c.had, o)
			if err != nil {
				t.Fatal(err)
			}
			s := suggested(rep, c.change)
			if s == nil {
				t.Fatalf("not suggested: %+v, causes %+v", rep.Suggestions, rep.Causes)
			}
			fixed, err := Audit(c.byHand, o)
			if err != nil {
				t.Fatal(err)
			}
			if want := fixed.PromptTokens - fixed.ReusedTokens; s.After.ComputedTokens != want || s.After.PromptTokens != fixed.PromptTokens {
				t.Errorf("%d of %d tokens computed after the change, by hand %d of %d: %s", s.After.ComputedTokens, s.After.PromptTokens, want, fixed.PromptTokens, s.Text)
			}
			if !strings.Contains(s.Text, c.says) {
				t.Errorf("%q does not say %q", s.Text, c.says)
			}
		})
	}
}

// What helps in tokens and makes more of them where only full blocks are kept is
// not suggested.
func TestWorseInBlocks(t *testing.T) {
	tok := open(t, "qwen3")
	question := chatML("user", "Tell me about parcels.", open4)
	answer := "Hello!  Parcels are sent at night."
	for block, want := range map[int]bool{1: true, 4096: false} {
		rep, err := Audit([]Prompt{{Text: []byte(question), Output: []byte(answer + "<|im_end|>")},
			{Text: []byte(chatML("user", "Tell me about parcels.", "assistant", "Hello! Parcels are sent at night.", "user", "Thanks.", open4))}},
			Options{Tokenizer: tok, Special: true, BlockSizes: []int{block}})
		if err != nil {
			t.Fatal(err)
		}
		if s := suggested(rep, KeepBytes); (s != nil) != want {
			t.Errorf("blocks of %d: %+v", block, s)
		}
	}
}

// All tools in each prompt, in the order in which they first came.
func TestSameTools(t *testing.T) {
	tok := open(t, "qwen3")
	tool := func(name string) string {
		return `{"type": "function", "function": {"name": "` + name + `", "description": "Does it", "parameters": {}}}`
	}
	for _, form := range []struct{ open, between, end string }{{"<tools>\n", "\n", "\n</tools>\n"}, {"Tools: [", ", ", "]\n"}} {
		with := func(names ...string) Prompt {
			var list []string
			for _, n := range names {
				list = append(list, tool(n))
			}
			return Prompt{Text: []byte(form.open + strings.Join(list, form.between) + form.end + rules + "Question " + names[0])}
		}
		rep, err := Audit([]Prompt{with("search"), with("clock", "search"), with("search", "fetch")}, Options{Tokenizer: tok})
		if err != nil {
			t.Fatal(err)
		}
		s := suggested(rep, SameTools)
		if s == nil {
			t.Fatalf("not suggested: %+v", rep.Causes)
		}
		all := with("search", "clock", "fetch")
		var byHand []Prompt
		for _, q := range []string{"search", "clock", "search"} {
			byHand = append(byHand, Prompt{Text: []byte(strings.TrimSuffix(string(all.Text), "search") + q)})
		}
		fixed, err := Audit(byHand, Options{Tokenizer: tok})
		if err != nil {
			t.Fatal(err)
		}
		if want := fixed.PromptTokens - fixed.ReusedTokens; s.After.ComputedTokens != want || strings.Contains(s.Text, "{") {
			t.Errorf("%d tokens computed, by hand %d: %s", s.After.ComputedTokens, want, s.Text)
		}
	}
}

// A separator takes up a token, so that it pays only where several tokens of the
// shared part are divided anew: here "abcd" is ab·cd, and "abcdz" is a·bc·dz.
func TestStableSeparator(t *testing.T) {
	tok := tokenizertest.Toy{Merges: [][2]string{{"\n", "\n"}, {"d", "z"}, {"c", "d"}, {"b", "c"}, {"a", "b"}}}.Open(t)
	with := func(sep string) []Prompt {
		return []Prompt{{Text: []byte("The part: abcd" + sep + ".")}, {Text: []byte("The part: abcd" + sep + "z.")}}
	}
	rep, err := Audit(with(""), Options{Tokenizer: tok, BlockSizes: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if s := suggested(rep, StableSeparator); s != nil {
		t.Errorf("inside a word: %+v", s)
	}
	with = func(sep string) []Prompt {
		return []Prompt{{Text: []byte("The part: (-)." + sep + "x")}, {Text: []byte("The part: (-)." + sep + "!x")}}
	}
	tok = tokenizertest.Toy{Merges: [][2]string{{"\n", "\n"}, {".", "!"}, {")", "."}, {"-", ")"}, {"(", "-"}},
		PreTokenizer: strings.Replace(tokenizertest.ByteLevel, `"use_regex":true`, `"use_regex":false`, 1)}.Open(t)
	rep, err = Audit(with(""), Options{Tokenizer: tok, BlockSizes: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	s := suggested(rep, StableSeparator)
	if s == nil || len(rep.Causes) != 1 || rep.Causes[0].Cause != PartBoundary {
		t.Fatalf("suggestions %+v, causes %+v", rep.Suggestions, rep.Causes)
	}
	fixed, err := Audit(with("\n\n"), Options{Tokenizer: tok, BlockSizes: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if want := fixed.PromptTokens - fixed.ReusedTokens; s.After.ComputedTokens != want || !strings.HasPrefix(s.Text, `end the shared part with "\n\n", which is stable`) {
		t.Errorf("%d tokens computed after the change, by hand %d: %s", s.After.ComputedTokens, want, s.Text)
	}
}

// Blocks of a hybrid model's size lose nearly all of prompts that share less than
// one.
func TestSmallerBlock(t *testing.T) {
	tok := open(t, "qwen3")
	var prompts []Prompt
	for i := range 6 {
		prompts = append(prompts, Prompt{Text: []byte(rules + long + fmt.Sprintf("Question %c", 'A'+i))})
	}
	rep, err := Audit(prompts, Options{Tokenizer: tok, BlockSizes: []int{528, 16}})
	if err != nil {
		t.Fatal(err)
	}
	s := suggested(rep, SmallerBlock)
	if s == nil || s.After.ComputedInBlocks >= s.Before.ComputedInBlocks || !strings.Contains(s.Text, "16 tokens instead of 528") {
		t.Errorf("suggestions %+v", rep.Suggestions)
	}
}
