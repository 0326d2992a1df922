package delimiter_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/boundary/delimiter"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

var triesFlag = flag.Int("tries", 0, "texts put around each separator; 0 takes a sample")

var opened sync.Map

func open(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	if tok, ok := opened.Load(name); ok {
		return tok.(*tokenizer.Tokenizer)
	}
	path := tokenizertest.Path(t, name)
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(name, tok)
	return tok
}

// rank ranks texts and gives the verdicts by text.
func rank(t testing.TB, tok *tokenizer.Tokenizer, o delimiter.Options, texts ...string) map[string]delimiter.Verdict {
	t.Helper()
	list, err := delimiter.Rank(tok, delimiter.Texts(texts...), o)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]delimiter.Verdict{}
	for _, v := range list {
		by[v.Text] = v
	}
	return by
}

func set(chars string) (s boundary.ByteSet) {
	for i := range len(chars) {
		s.Set(chars[i])
	}
	return s
}

// quick is for verdicts of which only what may follow is looked at.
var quick = delimiter.Options{Search: 100}

// TestPublishedVerdicts has separators that are recommended, with the first bytes
// that break them.
func TestPublishedVerdicts(t *testing.T) {
	if tokenizertest.Race {
		t.Skip("slow, and there is nothing to race")
	}
	rules := []string{"\n---\n", "\n\n---\n\n", "\n###\n", "<ctx>\n"}
	for _, tt := range []struct {
		vocabulary, breaks, after, rule string
	}{
		{"mistral/tokenizer.json", "", "before any text", ""},
		{"llama3/tokenizer.json", "\n", `unless the next text begins with a newline ('\n')`, "strip leading newlines of the next part"},
		{"qwen3/tokenizer.json", "\n", `unless the next text begins with a newline ('\n')`, "strip leading newlines of the next part"},
		{"cl100k_base.tiktoken", "\n", `unless the next text begins with a newline ('\n')`, "strip leading newlines of the next part"},
		{"o200k_base.tiktoken", "\n/", `unless the next text begins with a newline ('\n') or a punctuation mark or sign ('/')`, "let the next part begin with a space, a tab, an apostrophe, a letter, a digit or a character beyond ASCII"},
	} {
		t.Run(tt.vocabulary, func(t *testing.T) {
			tok := open(t, tt.vocabulary)
			all := append([]string{"```python\n", "```", "\nAnswer:", "https:", `{"answer": "`, "\nAnswer: "}, rules...)
			by := rank(t, tok, quick, all...)
			for _, d := range rules {
				v := by[d]
				if v.After.Bytes != set(tt.breaks) || v.After.Always != (tt.breaks == "") || v.After.Statement != tt.after {
					t.Errorf("%q: %s (%s), want %s", d, v.After.Statement, v.After.Bytes.String(), tt.after)
				}
				i := slices.IndexFunc(v.Hygiene, func(r delimiter.Rule) bool { return r.Side == "after" })
				if tt.rule == "" && i >= 0 || tt.rule != "" && (i < 0 || v.Hygiene[i].Do != tt.rule) {
					t.Errorf("%q: rules %v, want %q", d, v.Hygiene, tt.rule)
				}
			}
			if v := by["```python\n"]; v.After.Always != (tt.breaks == "") || tt.breaks != "" && !v.After.Bytes.Has('\n') {
				t.Errorf("```python: %s", v.After.Statement)
			}
			for _, d := range []string{"```", "\nAnswer:", "https:", `{"answer": "`} {
				if v := by[d]; v.After.Always || v.After.Share < 0.01 || v.After.Share > 0.6 {
					t.Errorf("%q: %s, share %.3f", d, v.After.Statement, v.After.Share)
				}
			}
			if v := by["\nAnswer: "]; v.After.Share < 0.6 || !v.After.Bytes.Has('a') {
				t.Errorf("trailing blank: %s, share %.3f", v.After.Statement, v.After.Share)
			}
		})
	}
}

// recorded is testdata/breaks.json, which testdata/record.py writes.
type recorded struct {
	References, Context, First string
	Vocabularies               map[string][]struct {
		Text   string
		IDs    []vocab.ID
		Breaks string
	}
}

// TestReference compares with what tiktoken and Hugging Face tokenizers do.
// Our set may have more: continuations that were not recorded.
func TestReference(t *testing.T) {
	if tokenizertest.Race {
		t.Skip("slow, and there is nothing to race")
	}
	b, err := os.ReadFile("testdata/breaks.json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recorded
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	for name, rows := range rec.Vocabularies {
		if testing.Short() && name != "llama3/tokenizer.json" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			broken, more := 0, 0
			for _, row := range rows {
				o := quick
				o.Contexts = []string{rec.Context}
				v := rank(t, tok, o, row.Text)[row.Text]
				if got := tok.Encode(nil, []byte(rec.Context+row.Text)); !slices.Equal(got, row.IDs) {
					t.Fatalf("%q: IDs %v, recorded %v", row.Text, got, row.IDs)
				}
				for _, r := range row.Breaks {
					broken++
					if !v.After.Bytes.Has(string(r)[0]) {
						t.Errorf("%q: %q breaks it by %s, not by us: %s", row.Text, r, rec.References, v.After.Statement)
					}
				}
				for _, r := range rec.First {
					if r < utf8.RuneSelf && !strings.ContainsRune(row.Breaks, r) && v.After.Bytes.Has(byte(r)) {
						more++
						t.Logf("%q: %q breaks it by us only", row.Text, r)
					}
				}
			}
			// More characters break a separator in continuations of two
			// characters than are recorded: each has its example, which
			// TestExamples encodes.
			if broken == 0 && name != "mistral/tokenizer.json" || more > broken/4 {
				t.Errorf("%d recorded breaks, %d more by us", broken, more)
			}
		})
	}
}

var vocabularies = []string{
	"mistral/tokenizer.json", "llama3/tokenizer.json", "qwen3/tokenizer.json", "cl100k_base.tiktoken", "o200k_base.tiktoken",
	"gemma3/tokenizer.json", "gpt2/tokenizer.json", "deepseek_v3/tokenizer.json",
}

// sample is a candidate of each family, and some that are hard.
func sample(t testing.TB, tok *tokenizer.Tokenizer) []delimiter.Candidate {
	t.Helper()
	list := delimiter.Texts(" # #", "1", "s", " ", "'", "12", "é", "\u0301", "ab", "\t", "/", "\r")
	for _, f := range delimiter.Families() {
		all, err := delimiter.Family(tok, f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, all[:min(len(all), 5)]...)
	}
	return list
}

// TestNothingContradicts puts real text and tokens around each separator and
// looks for a case that its verdict rules out.
func TestNothingContradicts(t *testing.T) {
	names, tries := vocabularies, 800
	if testing.Short() || tokenizertest.Race {
		names, tries = []string{"gpt2/tokenizer.json"}, 100
	}
	if *triesFlag > 0 {
		tries = *triesFlag
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			candidates, o := sample(t, tok), delimiter.Options{Search: 6000}
			if tokenizertest.Race {
				candidates, o.Search = candidates[:16], 1000
			}
			list, err := delimiter.Rank(tok, candidates, o)
			if err != nil {
				t.Fatal(err)
			}
			corpus := [][]byte{tokenizertest.Corpus(t, "go"), tokenizertest.Corpus(t, "multi")}
			r := rand.New(rand.NewPCG(9, uint64(tries)))
			after, before := 0, 0
			for i := range list {
				a, b := contradict(t, tok, &list[i], corpus, r, tries)
				after, before = after+a, before+b
			}
			t.Logf("%d separators, %d continuations, %d texts before", len(list), after, before)
		})
	}
}

// piece is real text of up to 40 bytes, in whole characters, or a token.
func piece(tok *tokenizer.Tokenizer, corpus [][]byte, r *rand.Rand) []byte {
	v := tok.Vocab()
	if r.IntN(3) == 0 {
		sorted := v.Sorted(v.PrefixRange(nil))
		return v.Bytes(sorted[r.IntN(len(sorted))])
	}
	text := corpus[r.IntN(len(corpus))]
	at := r.IntN(len(text) - 64)
	for !utf8.RuneStart(text[at]) {
		at++
	}
	n := 1 + r.IntN(40)
	for !utf8.RuneStart(text[at+n]) {
		n++
	}
	return text[at : at+n]
}

func contradict(t *testing.T, tok *tokenizer.Tokenizer, v *delimiter.Verdict, corpus [][]byte, r *rand.Rand, tries int) (after, before int) {
	t.Helper()
	x := tok.NewText(v.Special)
	encode := func(parts ...[]byte) []vocab.ID {
		x.Reset()
		for _, p := range parts {
			x.Append(p)
		}
		return slices.Clone(x.IDs())
	}
	failed := 0
	for range tries {
		left, next := piece(tok, corpus, r), piece(tok, corpus, r)
		if r.IntN(4) == 0 {
			left = append(slices.Clone(left), "\n \t'1a.-"[r.IntN(8)])
		}
		if r.IntN(4) == 0 {
			next = append([]byte{"\n\r \t'1a.-/"[r.IntN(10)]}, next...)
		}
		ids := encode(left, []byte(v.Text))
		kind := delimiter.KindOfEnd(string(left))
		changes := slices.ContainsFunc(v.Before.Changes, func(c delimiter.Change) bool { return c.Kind == kind })
		if !changes {
			before++
			if n := len(ids) - len(v.IDs); n < 0 || !slices.Equal(ids[n:], v.IDs) {
				t.Errorf("%q has the same tokens %s, but not after %q: %v, want %v at the end", v.Text, v.Before.Statement, left, ids, v.IDs)
				failed++
			}
		}
		left, next, changes = obey(v, left, next, changes)
		if len(next) == 0 {
			continue
		}
		ids = encode(left, []byte(v.Text))
		// Behind a text that changes the separator's own tokens, what may follow
		// is another matter: it was proved behind the contexts only.
		if !changes && !v.After.Bytes.Has(next[0]) && utf8.Valid(next) {
			after++
			if all := encode(left, []byte(v.Text), next); vocab.CommonPrefix(ids, all) < len(ids) {
				t.Errorf("%q keeps its tokens %s, but not after %q before %q: %v, then %v", v.Text, v.After.Statement, left, next, ids, all)
				failed++
			}
		}
		if failed > 3 {
			return after, before
		}
	}
	return after, before
}

// obey strips the parts as the rules of a verdict ask. changes is false where
// that makes sure that the separator has its own tokens.
func obey(v *delimiter.Verdict, left, next []byte, changes bool) ([]byte, []byte, bool) {
	chars := map[string]string{"newlines": "\r\n", "blanks": " \t", "white space": " \t\r\n\v\f"}
	for _, rule := range v.Hygiene {
		for what, cut := range chars {
			switch rule.Do {
			case "strip leading " + what + " of the next part":
				next = bytes.TrimLeft(next, cut)
			case "strip trailing " + what + " of the part before":
				left = bytes.TrimRight(left, cut)
				changes = len(left) == 0
			}
		}
	}
	return left, next, changes
}

// TestExamples encodes every example.
func TestExamples(t *testing.T) {
	for _, name := range []string{"gpt2/tokenizer.json", "o200k_base.tiktoken", "mistral/tokenizer.json"} {
		if (testing.Short() || tokenizertest.Race) && name != "gpt2/tokenizer.json" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tok := open(t, name)
			o := delimiter.Options{Search: 1000, Contexts: []string{"a word", "the end."}}
			candidates := sample(t, tok)
			if tokenizertest.Race {
				candidates = candidates[:16]
			}
			list, err := delimiter.Rank(tok, candidates, o)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range list {
				v := &list[i]
				encode := tok.Encode
				if v.Special {
					encode = tok.EncodeSpecial
				}
				for _, c := range v.After.Changes {
					if c.Becomes == nil {
						continue
					}
					n++
					ids, all := encode(nil, []byte(c.Context+v.Text)), encode(nil, []byte(c.Context+v.Text+c.Next))
					if vocab.CommonPrefix(ids, all) == len(ids) || !strings.Contains(fmt.Sprint(all), strings.Trim(fmt.Sprint(c.Becomes), "[]")) {
						t.Errorf("%q behind %q before %q: %v, then %v; the example has %v", v.Text, c.Context, c.Next, ids, all, c.Becomes)
					}
				}
				for _, c := range v.Before.Changes {
					n++
					all := encode(nil, []byte(c.Context+v.Text))
					if k := len(all) - len(v.IDs); k >= 0 && slices.Equal(all[k:], v.IDs) {
						t.Errorf("%q after %q still ends in %v", v.Text, c.Context, v.IDs)
					}
				}
			}
			t.Logf("%d examples", n)
		})
	}
}

// TestOrder looks at the order that Rank promises.
func TestOrder(t *testing.T) {
	tok := open(t, "llama3/tokenizer.json")
	all, err := delimiter.Family(tok, "")
	if err != nil {
		t.Fatal(err)
	}
	if tokenizertest.Race {
		all = all[len(all)-6:]
	}
	list, err := delimiter.Rank(tok, all, delimiter.Options{Search: 500})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(all) {
		t.Fatalf("%d verdicts for %d candidates", len(list), len(all))
	}
	if v := list[0]; v.Kind != delimiter.Control || !v.After.Always || v.Before.Proof != delimiter.Proved || !v.Before.Always {
		t.Errorf("the first is %q: %s", v.Text, v.Summary)
	}
	for i := range list[1:] {
		a, b := &list[i], &list[i+1]
		if b.After.Always && !a.After.Always || a.After.Always == b.After.Always && !a.After.Always && a.After.Share > b.After.Share+1e-12 {
			t.Errorf("%q (%s) before %q (%s)", a.Text, a.After.Statement, b.Text, b.After.Statement)
		}
	}
	for _, c := range all {
		if c.Text == "<|begin_of_text|>" || c.Text == "<|eot_id|>" {
			t.Errorf("%q ends or begins texts", c.Text)
		}
	}
}

func TestParts(t *testing.T) {
	tok := open(t, "llama3/tokenizer.json")
	v := rank(t, tok, delimiter.Options{Search: 100, Parts: [][]byte{[]byte("\nx"), []byte("a"), []byte("b"), []byte("c")}}, "\n---\n")["\n---\n"]
	if v.After.Share != 0.25 {
		t.Errorf("one of four parts begins with a newline, but the share is %v", v.After.Share)
	}
}

func TestTrim(t *testing.T) {
	tok := open(t, "llama3/tokenizer.json")
	by := rank(t, tok, quick, "\n---\n", "\n\n", "###")
	if v := by["\n---\n"]; v.Trim == nil || v.Trim.Text != "\n---" || v.Trim.After == nil || v.Trim.After.Always {
		t.Errorf("trimmed rule: %+v", v.Trim)
	}
	if v := by["\n\n"]; v.Trim == nil || v.Trim.Text != "" || v.Trim.After != nil {
		t.Errorf("trimmed newlines: %+v", v.Trim)
	}
	if v := by["###"]; v.Trim != nil {
		t.Errorf("nothing is to trim: %+v", v.Trim)
	}
}

func TestMarkdown(t *testing.T) {
	list, err := delimiter.Rank(toys(t)["added"], []delimiter.Candidate{{Text: "-|-"}, {Text: "``"}, {Text: "<s>", Special: true}, {Text: "<s>"}}, delimiter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := delimiter.Markdown(&b, list); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 8 {
			t.Errorf("%d cells in %s", n-1, line)
		}
	}
	plain := list[slices.IndexFunc(list, func(v delimiter.Verdict) bool { return v.Text == "<s>" && !v.Special })]
	if !strings.Contains(plain.Summary, "it is a control token where those are recognized") {
		t.Errorf("of a control token in plain text: %s", plain.Summary)
	}
}

func TestRefuses(t *testing.T) {
	tok := tokenizertest.Toy{}.Open(t)
	for _, c := range []struct{ text, want string }{
		{"", "delimiter: candidate 1 is empty: give a text"},
		{strings.Repeat("x", 5000), "delimiter: candidate 1 has 5000 bytes: a separator has at most 4096"},
	} {
		if _, err := delimiter.Rank(tok, delimiter.Texts(c.text), delimiter.Options{}); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	if _, err := delimiter.Family(tok, "rules"); err == nil || !strings.Contains(err.Error(), `no family "rules"; choose one of rule, tag`) {
		t.Errorf("error %v", err)
	}
}

// toys are small vocabularies of different kinds, for exhaustive comparison.
func toys(t testing.TB) map[string]*tokenizer.Tokenizer {
	t.Helper()
	merges := [][2]string{{"a", "b"}, {"-", "-"}, {"--", "\n"}, {"\n", "\n"}, {" ", "a"}, {"b", "-"}, {"ab", "-"}, {"\n\n", "a"}}
	return map[string]*tokenizer.Tokenizer{
		"whole": tokenizertest.Toy{Merges: merges, PreTokenizer: strings.Replace(tokenizertest.ByteLevel, "true}", "false}", 1)}.Open(t),
		"split": tokenizertest.Toy{Merges: merges, PreTokenizer: tokenizertest.ByteLevel}.Open(t),
		"added": tokenizertest.Toy{
			Merges: merges, PreTokenizer: tokenizertest.ByteLevel,
			Added: []tokenizertest.ToyAdded{{Content: "-a-", ID: 300}, {Content: "<s>", ID: 301, Special: true}},
		}.Open(t),
	}
}

// TestExhaustive puts every text of up to three characters of an alphabet before
// and after every separator of up to two.
func TestExhaustive(t *testing.T) {
	alphabet := []string{"a", "b", "-", "\n", " ", "<s>"}
	if testing.Short() || tokenizertest.Race {
		alphabet = []string{"a", "-", "\n"}
	}
	texts := []string{""}
	for from := 0; from < len(texts); from++ {
		if strings.Count(texts[from], "|") == 3 {
			break
		}
		for _, c := range alphabet {
			texts = append(texts, texts[from]+c+"|")
		}
	}
	var seps []delimiter.Candidate
	for i, s := range texts {
		n := strings.Count(s, "|")
		texts[i] = strings.ReplaceAll(s, "|", "")
		if n == 1 || n == 2 {
			seps = append(seps, delimiter.Candidate{Text: texts[i]}, delimiter.Candidate{Text: texts[i], Special: true})
		}
	}
	for name, tok := range toys(t) {
		t.Run(name, func(t *testing.T) {
			list, err := delimiter.Rank(tok, seps, delimiter.Options{Contexts: []string{"a", "b", "-", " ", "\n"}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				checkAll(t, tok, &list[i], texts)
			}
		})
	}
}

func checkAll(t *testing.T, tok *tokenizer.Tokenizer, v *delimiter.Verdict, texts []string) {
	t.Helper()
	encode := tok.Encode
	if v.Special {
		encode = tok.EncodeSpecial
	}
	for _, x := range texts {
		ids := encode(nil, []byte(x+v.Text))
		n := len(ids) - len(v.IDs)
		same := n >= 0 && slices.Equal(ids[n:], v.IDs)
		allowed := v.Before.Always
		if x != "" {
			kind := delimiter.KindOfEnd(x)
			allowed = !slices.ContainsFunc(v.Before.Changes, func(c delimiter.Change) bool { return c.Kind == kind })
		}
		if allowed && !same {
			t.Fatalf("%q (%+v) %s, but after %q it has %v", v.Text, v.IDs, v.Before.Statement, x, ids)
		}
		if !same || strings.HasSuffix(x, "<s>") {
			continue
		}
		for _, y := range texts {
			if y == "" || v.After.Bytes.Has(y[0]) {
				continue
			}
			if all := encode(nil, []byte(x+v.Text+y)); vocab.CommonPrefix(all, ids) < len(ids) {
				t.Fatalf("%q keeps its tokens %s, but not after %q before %q: %v, %v", v.Text, v.After.Statement, x, y, ids, all)
			}
		}
	}
}

// FuzzRank has arbitrary separators and contexts.
func FuzzRank(f *testing.F) {
	for _, s := range []string{"\n---\n", "<s>", "-a-", "\xff", "\x00", "a\u0301", "'s", " "} {
		f.Add(s, "a", false)
		f.Add(s, "-a", true)
	}
	list := toys(f)
	f.Fuzz(func(t *testing.T, text, context string, special bool) {
		if text == "" || len(text) > 16 || len(context) > 8 {
			t.Skip()
		}
		for _, tok := range list {
			got, err := delimiter.Rank(tok, []delimiter.Candidate{{Text: text, Special: special}}, delimiter.Options{Contexts: []string{context}, Search: 300})
			if err != nil {
				t.Fatal(err)
			}
			v := got[0]
			if v.After.Share < 0 || v.After.Share > 1 || v.After.Always && v.After.Share > 0 || v.Summary == "" {
				t.Fatalf("%q: %+v", text, v.After)
			}
			x := tok.NewText(special)
			x.Append([]byte(context + text))
			ids := slices.Clone(x.IDs())
			for b := range 256 {
				if v.After.Bytes.Has(byte(b)) {
					continue
				}
				x.Truncate(len(context + text))
				x.Append([]byte{byte(b), 'a'})
				if v.After.Proof == delimiter.Proved && vocab.CommonPrefix(x.IDs(), ids) < len(ids) {
					t.Fatalf("%q behind %q keeps its tokens %s, but not before %q", text, context, v.After.Statement, []byte{byte(b), 'a'})
				}
			}
			if _, err := json.Marshal(got); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSmolLM2 ranks all families with the vocabulary of a model's file.
func TestSmolLM2(t *testing.T) {
	path := os.Getenv("UNFRAY_TEST_MODEL")
	if path == "" || testing.Short() || tokenizertest.Race {
		t.Skip("needs UNFRAY_TEST_MODEL, and time")
	}
	tok, err := tokenizer.OpenGGUF(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	all, err := delimiter.Family(tok, "")
	if err != nil {
		t.Fatal(err)
	}
	list, err := delimiter.Rank(tok, all, quick)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if v := &list[i]; v.Kind == delimiter.Control || v.Rank != i+1 {
			t.Errorf("place %d: %q, rank %d: %s", i+1, v.Text, v.Rank, v.Summary)
		}
	}
}

// TestNoMarks: tokens by which templates and engines divide turns, name roles or
// end answers are not offered, whether a vocabulary calls them control tokens or
// not. Those it keeps in reserve are.
func TestNoMarks(t *testing.T) {
	added := func(tok *tokenizer.Tokenizer) string {
		list, err := delimiter.Family(tok, "added")
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, c := range list {
			texts = append(texts, c.Text)
		}
		return strings.Join(texts, " ")
	}
	var toy tokenizertest.Toy
	for _, s := range []string{"<|im_start|>", "<｜User｜>", "<start_of_turn>", "[INST]", "</s>", "<|eot_id|>", "<|channel|>", "<|tool_call|>", "<|reserved_special_token_7|>", "<unused3>", "<extra_id_0>"} {
		toy.Added = append(toy.Added, tokenizertest.ToyAdded{Content: s, Special: true})
	}
	for _, s := range []string{"<｜Assistant｜>", "<think>", "</tool_call>", "<|fim_hole|>", "[TOOL_CALLS]", "<end_of_turn>", "<|anything|>", "<table>", "<h1>", "[unused2]"} {
		toy.Added = append(toy.Added, tokenizertest.ToyAdded{Content: s})
	}
	if got, want := added(toy.Open(t)), "<|reserved_special_token_7|> <unused3> <extra_id_0> <table> <h1> [unused2]"; got != want {
		t.Errorf("offered are %s, want %s", got, want)
	}
	if testing.Short() {
		return
	}
	for name, want := range map[string]string{
		"qwen3": "", "deepseek_v3": "<｜place▁holder▁no▁0｜>", "llama3": "<|reserved_special_token_0|>", "gptoss": "<|reserved_200000|>", "mistral_nemo": "<SPECIAL_14>", "gpt2": "",
	} {
		tok, err := tokenizer.Open(tokenizertest.Path(t, name+"/tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := added(tok); got != want {
			t.Errorf("%s: offered are %s, want %s", name, got, want)
		}
	}
}

// TestMarkSaid: who asks for such a token is told.
func TestMarkSaid(t *testing.T) {
	tok := tokenizertest.Toy{Added: []tokenizertest.ToyAdded{{Content: "<|im_end|>", Special: true}, {Content: "<unused0>", Special: true}}}.Open(t)
	list, err := delimiter.Rank(tok, []delimiter.Candidate{{Text: "<|im_end|>", Special: true}, {Text: "<unused0>", Special: true}}, quick)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if said := strings.Contains(v.Summary, "divide turns"); said != (v.Text == "<|im_end|>") {
			t.Errorf("%s: %s", v.Text, v.Summary)
		}
	}
}

// TestExampleJSON: what is no UTF-8 is escaped once, and not put in quotation marks.
func TestExampleJSON(t *testing.T) {
	for text, want := range map[string]string{"\x80": `"\\x80"`, "a\"": `"a\""`, "é": `"é"`} {
		b, err := json.Marshal(delimiter.Change{Next: text})
		if err != nil || !strings.Contains(string(b), `"next":`+want) {
			t.Errorf("%q: %s, %v", text, b, err)
		}
	}
}
