package lint_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/boundary/lint"
)

// stride says that every stride-th cut is linted.
var stride = 1

// TestHumanEval lints real programs: whole ones, which have nothing wrong, and
// the same cut at random places, of which every one that ends with a blank is
// found.
func TestHumanEval(t *testing.T) {
	l := lint.New(smol(t))
	path := filepath.Join("..", "..", "..", "shared", "data", "humaneval-randomspan.jsonl.gz")
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("the data set is not beside the repository: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	grave := func(text string, kind lint.Kind) (rules []string) {
		for _, f := range l.Lint([]byte(text), kind) {
			if f.Severity != lint.Info {
				rules = append(rules, string(f.Rule))
			}
		}
		return rules
	}
	seen := map[string]bool{}
	cuts, blanks := 0, 0
	for sc := bufio.NewScanner(z); sc.Scan(); {
		var task struct{ ID, Prefix, Middle, Suffix string }
		if err := json.Unmarshal(sc.Bytes(), &task); err != nil {
			t.Fatal(err)
		}
		whole := strings.TrimRight(task.Prefix+task.Middle+task.Suffix, " \n") + "\n"
		if !seen[whole] {
			seen[whole] = true
			for _, kind := range []lint.Kind{lint.Prompt, lint.Template, lint.Markdown} {
				if len(seen)%stride != 0 {
					break
				}
				if rules := grave(whole, kind); len(rules) > 0 {
					t.Errorf("%s as %s: %v", task.ID, kind, rules)
				}
			}
		}
		cuts++
		if cuts%stride == 0 && strings.HasSuffix(task.Prefix, " ") {
			blanks++
			if rules := grave(task.Prefix, lint.Prompt); len(rules) != 1 || rules[0] != string(lint.TrailingWhitespace) {
				t.Errorf("%s, cut after a blank: %v", task.ID, rules)
			}
		}
	}
	if len(seen) == 0 || blanks == 0 {
		t.Errorf("%d programs, %d of %d cuts after a blank: the data set is not what it was", len(seen), blanks, cuts)
	}
}
