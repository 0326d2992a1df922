package tokenizer

import (
	"bufio"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/vocab"
)

// referenceFile holds IDs that llama.cpp gave for SmolLM2-135M-Instruct. Each
// line is a mode, a quoted text and its IDs. To record it anew:
//
//	go test -tags llama ./tokenizer -run TestOracle -record
const referenceFile = "testdata/smollm2.txt"

// realModel opens the vocabulary of the real model, or skips the test.
func realModel(t testing.TB) *Tokenizer {
	t.Helper()
	path := os.Getenv("UNFRAY_TEST_MODEL")
	if path == "" {
		t.Skip("UNFRAY_TEST_MODEL does not name a GGUF file of SmolLM2-135M-Instruct")
	}
	tok, err := OpenGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestReference(t *testing.T) {
	tok := realModel(t)
	f, err := os.Open(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	recorded := map[string]bool{}
	for lines.Scan() {
		mode, rest, _ := strings.Cut(lines.Text(), " ")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
		text, _ := strconv.Unquote(quoted)
		recorded[text] = true
		encode := tok.Encode
		if mode == "special" {
			encode = tok.EncodeSpecial
		}
		if got, want := formatIDs(encode(nil, []byte(text))), rest[len(quoted):]; got != want {
			t.Errorf("%s %q:\n got%s\nwant%s", mode, text, got, want)
		}
		n++
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	for _, text := range referenceTexts() {
		if !recorded[text] {
			t.Errorf("%q is not recorded", text)
		}
	}
}

func formatIDs(ids []vocab.ID) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, " %d", id)
	}
	return b.String()
}

// referenceTexts are the texts of the reference file.
func referenceTexts() []string {
	texts := []string{
		"Hello, world!", "The capital of France is Par", "func main() {\n\tfmt.Println(\"hi\")\n}\n", "https://example.com/a?b=c&d=%20e",
		"a  ", "a  x", "a  \n", "a \n b", "  5", "12345 6,789.01", "x2y33z", "it's we'll they're I've I'm he'd 'S 'RE 'r 'l",
		"\t\t\tif x != nil {\n\t\t\t\treturn err\n\t\t\t}\n", strings.Repeat(" ", 100) + "x", strings.Repeat("=", 100), strings.Repeat("ab", 200),
		"Größenwahn naïve façade", "Съешь же ещё этих мягких французских булок", "我能吞下玻璃而不伤身体。", "ガラスを食べられます。", "나는 유리를 먹을 수 있어요.",
		"أنا قادر على أكل الزجاج", "मैं काँच खा सकता हूँ", "ฉันกินกระจกได้", "😀👨‍👩‍👧🏳️‍🌈", "\x01\x02\x03\x04\x1c\x7f",
		"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|", "<|endoftext|>", "<|im_start|><|im_start|>", " <|im_end|> x", "<repo_name>a<file_sep>b",
		"<jupyter_start><jupyter_text>x<empty_output>", "{\"key\": [1, 2.5e-3, null, \"\\u00e9\"]}", "SELECT * FROM t WHERE a >= 10;\r\n",
	}
	rng := rand.New(rand.NewPCG(15, 16))
	for _, h := range hard {
		for _, around := range []string{"%s", "a%sb", " %s ", "  %s\n", "5%s'", "%[1]s%[1]s"} {
			texts = append(texts, fmt.Sprintf(around, h))
		}
	}
	for range 200 {
		texts = append(texts, randomText(rng, hard, 15))
	}
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" || !comparable(s) })
}

// comparable reports whether llama.cpp can be asked for the IDs of a text: it
// replaces what is not UTF-8, and the binding cannot pass on a zero byte.
func comparable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// realText reads Go source and prose from the Go installation: bytes of each,
// or what there is.
func realText(t testing.TB, bytes int) (code, prose string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no Go installation to take text from: %v", err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	var c, p strings.Builder
	add := func(b *strings.Builder, path string) {
		text, err := os.ReadFile(path)
		if err == nil && b.Len() < bytes && comparable(string(text)) {
			b.Write(text)
		}
	}
	for _, path := range []string{
		filepath.Join(src, "testdata/Isaac.Newton-Opticks.txt"), filepath.Join(src, "testdata/Mark.Twain-Tom.Sawyer.txt"),
		filepath.Join(src, "compress/testdata/gettysburg.txt"), filepath.Join(src, "../doc/go_spec.html"), filepath.Join(src, "../doc/go_mem.html"),
	} {
		add(&p, path)
	}
	filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || c.Len() >= bytes && p.Len() >= bytes:
			return fs.SkipAll
		case strings.HasSuffix(path, ".go"):
			add(&c, path)
		case strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".txt"):
			add(&p, path)
		}
		return nil
	})
	if c.Len() == 0 {
		t.Skip("the Go installation has no source")
	}
	return c.String(), p.String()
}

func BenchmarkEncode(b *testing.B) {
	tok := realModel(b)
	code, prose := realText(b, 1<<20)
	for _, bc := range []struct{ name, text string }{{"code", code}, {"prose", prose}, {"one letter", strings.Repeat("a", 200_000)}} {
		b.Run(bc.name, func(b *testing.B) {
			text := []byte(bc.text)
			ids := tok.Encode(nil, text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				ids = tok.Encode(ids[:0], text)
			}
		})
	}
}

func BenchmarkTail(b *testing.B) {
	tok := realModel(b)
	code, _ := realText(b, 1<<16)
	for _, n := range []int{100, 2000, 60_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := tok.NewText(false)
			x.Append([]byte(code[:min(n, len(code))]))
			var tail Tail
			b.ReportAllocs()
			for b.Loop() {
				x.Tail(&tail)
			}
		})
	}
}
