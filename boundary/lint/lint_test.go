package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary/lint"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// smol is the tokenizer of the test model.
func smol(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	path := os.Getenv("UNFRAY_TEST_MODEL")
	if path == "" {
		t.Skip("UNFRAY_TEST_MODEL is not set: make test sets it")
	}
	tok, err := tokenizer.OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// brief is a finding as the tables write it.
func brief(f lint.Finding) string {
	s := fmt.Sprintf("%d+%d %s", f.Offset, f.Length, f.Rule)
	if f.Severity != lint.Warning {
		s += " " + string(f.Severity)
	}
	if f.Replacement != nil {
		s += fmt.Sprintf(" -> %q", *f.Replacement)
	}
	return s
}

func briefs(fs []lint.Finding) []string {
	list := []string{}
	for _, f := range fs {
		list = append(list, brief(f))
	}
	return list
}

type row struct {
	name string
	kind lint.Kind
	text string
	want []string
}

func (r row) test(t *testing.T, l *lint.Linter) {
	t.Helper()
	if got := briefs(l.Lint([]byte(r.text), r.kind)); !slices.Equal(got, r.want) {
		t.Errorf("%s: %q:\n got %q\nwant %q", r.name, r.text, got, r.want)
	}
}

// TestRules has a row or more for each rule, and next to it texts that it leaves
// alone. SmolLM2 is byte-level BPE with control tokens of ChatML and no BOS in
// front.
func TestRules(t *testing.T) {
	l := lint.New(smol(t))
	p, tm, md, j := lint.Prompt, lint.Template, lint.Markdown, lint.Jinja
	rows := []row{
		{"empty", p, "", nil},
		{"clean", p, "Translate to French.\nEnglish: cheese.\nFrench: fromage.<|im_end|>", []string{"54+10 special-as-text info"}},

		{"blank at the end", p, "Q: 6*7?\nA: ", []string{`10+1 trailing-whitespace -> ""`}},
		{"blanks and newlines", p, "x =\n    ", []string{`3+5 trailing-whitespace -> ""`}},
		{"newline at the end", p, "Answer:\n", []string{"7+1 trailing-whitespace info"}},
		{"blank before a control token", p, "<|im_start|>user\nHi <|im_end|>", []string{"0+12 special-as-text info", "20+10 special-as-text info"}},

		{"cut word", p, "const userNa", []string{"6+6 weak-boundary"}},
		{"whole word", p, "I read a book about", []string{"14+5 weak-boundary info"}},
		{"cut URL", p, "see https:", []string{"9+1 weak-boundary"}},
		{"colon", p, "Answer:", []string{"6+1 weak-boundary info"}},
		{"cut character", p, "hi \xf0\x9f\x98", []string{"3+3 weak-boundary error"}},

		{"turn of the assistant", p, "<|im_start|>assistant\n", []string{"0+12 special-as-text info"}},
		{"prefill with a blank", p, "<|im_start|>assistant\nThe answer is ", []string{"0+12 special-as-text info", `35+1 prefill -> ""`}},
		{"prefill with a cut word", p, "<|im_start|>assistant\nconst userNa", []string{"0+12 special-as-text info", "28+6 prefill"}},
		{"turn of the user", p, "<|im_start|>user\nThe answer is ", []string{"0+12 special-as-text info", `30+1 trailing-whitespace -> ""`}},

		{"tabs and spaces", p, "if x:\n \ty(;", []string{"6+2 mixed-indentation", "9+2 weak-boundary info"}},
		{"tabs after spaces", p, "a:\n  b\n\tc;", []string{"7+1 mixed-indentation", "9+1 weak-boundary info"}},
		{"spaces alone", p, "a:\n  b\n    c;", []string{"12+1 weak-boundary info"}},

		{"gap in a control token", tm, "<|im_end |><|im_end|>", []string{`0+11 broken-special -> "<|im_end|>"`}},
		{"typo in a control token", tm, "<|im_strat|><|im_end|>", []string{`0+12 broken-special -> "<|im_start|>"`}},
		{"invisible in a control token", tm, "<|im_\u200bend|><|im_end|>", []string{`0+13 broken-special -> "<|im_end|>"`, `5+3 invisible-character -> ""`}},
		{"control token in capitals", tm, "<|IM_END|><|im_end|>", []string{`0+10 broken-special -> "<|im_end|>"`}},
		{"control token cut off", p, "hello <|im_", []string{"6+5 broken-special", "8+3 weak-boundary info"}},
		{"control token of others", tm, "<|eot_id|><|im_end|>", []string{"0+10 unknown-special"}},
		{"markup and operators", tm, "a <b>c</b> x |> f <| g <file name> [x] [1, 2]<|im_end|>", nil},

		{"zero width space", tm, "pass\u200bword<|im_end|>", []string{`4+3 invisible-character -> ""`}},
		{"bidirectional override", tm, "a \u202eb\u202c<|im_end|>", []string{`2+3 invisible-character -> ""`, `6+3 invisible-character -> ""`}},
		{"escape", tm, "\x1b[31mred<|im_end|>", []string{`0+1 invisible-character -> ""`}},
		{"joiners that belong", tm, "👩\u200d🚀 می\u200cخواهم क\u094d\u200dष 🏴\U000e0067\U000e007f<|im_end|>", nil},
		{"no-break space", tm, "a\u00a0b<|im_end|>", []string{`1+2 odd-space -> " "`}},
		{"typography", tm, "10\u00a0km, oui\u202f!<|im_end|>", []string{`2+2 odd-space info -> " "`, `11+3 odd-space info -> " "`}},
		{"ideographic space", tm, "你好\u3000世界<|im_end|>", nil},
		{"byte order mark", tm, "\ufeffHi<|im_end|>", []string{`0+3 byte-order-mark -> ""`}},
		{"not UTF-8", tm, "caf\xe9 \xff\xfe<|im_end|>", []string{"3+1 invalid-utf8 error", "5+2 invalid-utf8 error"}},
		{"CRLF", tm, "a\r\nb\r\nc<|im_end|>", []string{`1+2 line-endings -> "\n"`}},
		{"mixed", tm, "a\nb\rc\r\nd<|im_end|>", []string{`3+1 line-endings -> "\n"`}},
		{"NFD", tm, "cafe\u0301 is<|im_end|>", []string{"3+3 decomposed -> \"é\""}},
		{"NFC", tm, "café, x\u0323 is<|im_end|>", nil},
		{"no SentencePiece", tm, "a\u2581b<|im_end|>", nil},

		{"last placeholder after a blank", tm, "Q: {q}\nAnswer: {answer}\n", []string{"2+1 placeholder-seam info", `14+1 placeholder-seam -> ""`}},
		{"printf", tm, "Answer: %s", []string{`7+1 placeholder-seam -> ""`}},
		{"mustache", tm, "Answer: {{ answer }}", []string{`7+1 placeholder-seam -> ""`}},
		{"by hand", tm, "Answer: <ANSWER>", []string{`7+1 placeholder-seam -> ""`}},
		{"no blank", tm, "Answer:{answer}", nil},
		{"newline before the value", tm, "Answer:\n{answer}", nil},
		{"in a sentence", tm, "Hello {name}, you are 50% done<|im_end|>", []string{"5+1 placeholder-seam info"}},
		{"after a control token", tm, "<|im_start|>{role}", nil},
		{"not in a prompt", p, "Hello {name}<|im_end|>", []string{"12+10 special-as-text info"}},
		{"code in Markdown", md, "Use `x: {y}`:\n```go\na := {b}\n```\nDone<|im_end|>", nil},
		{"LaTeX", tm, `$\frac{a}{b}$` + "<|im_end|>", nil},

		{"chat template", j, `{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`, nil},
		{"seam in an expression", j, `{{ '<|im_start|>user Q: ' + m['content'] + '<|im_end|>' }}`, []string{"28+12 placeholder-seam info"}},
		{"blank at a template's end", j, "{{ x }}{% if y %}{{ 'Answer: ' }}{% endif %}", []string{"20+10 trailing-whitespace"}},
		{"blank before the last value", j, "A: {{ x }}\n", []string{"6+1 placeholder-seam"}},
		{"trimmed blanks", j, "A: {{- x -}} \n", nil},
		{"open tag", j, "A {{ 'x }}' ", []string{"2+2 template error"}},
		{"typo in a template", j, "{{ '<|im_strat|>' }}", []string{`4+12 broken-special -> "<|im_start|>"`}},
	}
	for _, r := range rows {
		r.test(t, l)
	}
}

// TestVerdict has texts that one vocabulary objects to and another does not.
func TestVerdict(t *testing.T) {
	merging := lint.New(tokenizertest.BPE(t, gguftest.BPE{Merges: [][2]string{{" ", "a"}, {"\n", "\n"}, {"e", "x"}}}))
	bytewise := lint.New(tokenizertest.BPE(t, gguftest.BPE{}))
	for _, r := range []row{
		{"blank", lint.Prompt, "A: ", []string{`2+1 trailing-whitespace -> ""`}},
		{"seam", lint.Template, "A: {x}", []string{`2+1 placeholder-seam -> ""`}},
		{"letter", lint.Prompt, "the", []string{"0+3 weak-boundary"}},
	} {
		r.test(t, merging)
		if r.name != "letter" {
			// Without merges only the pre-tokenizer could move anything.
			if got := bytewise.Lint([]byte(r.text), r.kind); len(got) > 0 {
				t.Errorf("%s: a vocabulary of single bytes: %q", r.name, briefs(got))
			}
		}
	}
}

func TestDoubledBOS(t *testing.T) {
	vocabulary := gguftest.BPE{Controls: []string{"<s>", "</s>"}}
	adds := lint.New(tokenizertest.BPE(t, vocabulary, gguftest.Pair{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)}, gguftest.Pair{Key: "tokenizer.ggml.add_bos_token", Value: true}))
	leaves := lint.New(tokenizertest.BPE(t, vocabulary, gguftest.Pair{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)}, gguftest.Pair{Key: "tokenizer.ggml.add_bos_token", Value: false}))
	doubled := func(fs []lint.Finding) []string {
		return briefs(slices.DeleteFunc(fs, func(f lint.Finding) bool { return f.Rule != lint.DoubledBOS }))
	}
	for _, tt := range []struct {
		kind         lint.Kind
		text         string
		adds, leaves []string
	}{
		{lint.Prompt, "<s>hi", []string{`0+3 doubled-bos -> ""`}, nil},
		{lint.Prompt, "<s><s>hi", []string{`0+3 doubled-bos -> ""`}, []string{`0+3 doubled-bos -> ""`}},
		{lint.Prompt, "hi<s>", nil, nil},
		{lint.Jinja, "{{ bos_token }}{{ x }}", []string{"3+9 doubled-bos"}, nil},
		{lint.Jinja, "{%- if a -%}\n{{- bos_token }}{% endif %}", []string{"17+9 doubled-bos"}, nil},
		{lint.Jinja, "{% set c = bos_token + x %}{{ c }}", []string{"0+27 doubled-bos"}, nil},
		{lint.Jinja, "<s>[INST] {{ x }}", []string{"0+10 doubled-bos"}, nil},
		{lint.Jinja, "user: {{ x }}{{ bos_token }}", nil, nil},
	} {
		if got := doubled(adds.Lint([]byte(tt.text), tt.kind)); !slices.Equal(got, tt.adds) {
			t.Errorf("%q, BOS is added: got %q, want %q", tt.text, got, tt.adds)
		}
		if got := doubled(leaves.Lint([]byte(tt.text), tt.kind)); !slices.Equal(got, tt.leaves) {
			t.Errorf("%q, BOS is not added: got %q, want %q", tt.text, got, tt.leaves)
		}
	}
}

// open writes a tokenizer.json and opens it.
func open(t *testing.T, contents string) *tokenizer.Tokenizer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestLoss has tokenizers that do not give every text back. What may move at the
// texts' ends does not matter here.
func TestLoss(t *testing.T) {
	check := func(l *lint.Linter, text string, want ...string) {
		t.Helper()
		fs := slices.DeleteFunc(l.Lint([]byte(text), lint.Prompt), func(f lint.Finding) bool { return f.Rule == lint.WeakBoundary })
		if got := briefs(fs); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
	nfc := lint.New(open(t, `{"added_tokens":[],"normalizer":{"type":"NFC"},"pre_tokenizer":null,"post_processor":null,"decoder":null,
		"model":{"type":"BPE","unk_token":null,"vocab":{"a":0,"e":1,"é":2,"c":3,"f":4},"merges":[]}}`))
	check(nfc, "cafe\u0301", "3+1 rewritten info")
	check(nfc, "caf?", "3+1 no-token error")

	meta := lint.New(open(t, `{"added_tokens":[],"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"pre_tokenizer":null,"post_processor":null,
		"decoder":{"type":"Replace","pattern":{"String":"▁"},"content":" "},
		"model":{"type":"BPE","unk_token":"<unk>","vocab":{"<unk>":0,"▁":1,"x":2,"y":3,"▁x":4},"merges":[["▁","x"]]}}`))
	check(meta, "x\u2581y ", `1+3 meta-space -> " "`, "1+3 rewritten info", `5+1 trailing-whitespace -> ""`)
	check(meta, "x?y", "1+1 no-token error")
}

func TestLimit(t *testing.T) {
	l := lint.New(tokenizertest.BPE(t, gguftest.BPE{}))
	found := l.Lint([]byte(strings.Repeat("a\u200bb ", 100)+"."), lint.Prompt)
	if len(found) != lint.MaxPerRule {
		t.Fatalf("%d findings, want %d", len(found), lint.MaxPerRule)
	}
	if last := found[len(found)-1].Message; !strings.HasSuffix(last, "further such places are not listed") {
		t.Errorf("the last message is %q", last)
	}
}

func FuzzLint(f *testing.F) {
	for _, s := range []string{
		"A: {x}", "<|im_end |>\u200b", "{% if x %}{{- 'a' + b ~ \"c\\\"\" }}{# #}{% endif %}", "\ufeffa\r\nb\r", "e\u0301\u00a0\xff\xf0\x9f",
		"<s><s>x", "<|im_start|>assistant\n x ", "```\n{x}\n", "{{", "{%", "{#'#}", "<", "[", "<｜a｜>",
	} {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(3))
	}
	kinds := []lint.Kind{lint.Prompt, lint.Template, lint.Markdown, lint.Jinja}
	l := lint.New(tokenizertest.BPE(f, gguftest.BPE{
		Controls: []string{"<s>", "<|im_start|>", "<|im_end|>"}, Added: []string{"<｜tool｜>"}, Merges: [][2]string{{" ", "a"}, {"a", "b"}}, Missing: "\x00",
	}, gguftest.Pair{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)}, gguftest.Pair{Key: "tokenizer.ggml.add_bos_token", Value: true}))
	f.Fuzz(func(t *testing.T, text []byte, kind uint8) {
		before := 0
		for _, f := range l.Lint(text, kinds[int(kind)%len(kinds)]) {
			if f.Offset < before || f.Length < 0 || f.Offset+f.Length > len(text) {
				t.Fatalf("%q: a finding at %d+%d, the one before at %d: %s", text, f.Offset, f.Length, before, f.Message)
			}
			if f.Message == "" || f.Fix == "" || !utf8.ValidString(f.Message) {
				t.Fatalf("%q: the finding %+v", text, f)
			}
			before = f.Offset
		}
	})
}
