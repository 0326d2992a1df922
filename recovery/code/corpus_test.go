package code

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// fewer divides what takes long in tests.
var fewer = 1

// eachFile calls f with the files below the roots whose names end in ext, until it
// returns false.
func eachFile(roots []string, ext string, f func(path string, src []byte) bool) {
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(path, ext) || strings.Contains(path, "/testdata/") {
				return nil
			}
			src, err := os.ReadFile(path)
			if err == nil && len(src) < 1<<20 && !f(path, src) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

func goRoot(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("needs Go's sources")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

// TestGoCorpus: Go's own sources parse, and by the lexical rules too nothing is open or
// out of place in them.
func TestGoCorpus(t *testing.T) {
	files, size, budget := 0, 0, 20<<20
	if testing.Short() {
		budget = 1 << 20
	}
	eachFile([]string{goRoot(t)}, ".go", func(path string, src []byte) bool {
		files, size = files+1, size+len(src)
		if r := Check("go", src, Options{}); r.Status != Parses {
			t.Errorf("%s: %s %+v", path, r.Status, r.Problems)
		}
		var r Report
		scan(languages["go"], src, Options{}).report(&r)
		if r.Status != Parses {
			t.Errorf("%s, by the rules: %s %+v %+v", path, r.Status, r.Problems, r.Open)
		}
		if got := Detect(src, ""); got != "go" && got != "" {
			t.Errorf("%s: detected as %s", path, got)
		}
		return size < budget/fewer
	})
	t.Logf("%d files, %d bytes", files, size)
}

// TestGoCuts: a file that is cut anywhere is cut, and with what is closed it parses
// wherever a statement may end there.
func TestGoCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	cuts, edited, parses, wrong := 0, 0, 0, 0
	limit := 600
	if testing.Short() {
		limit = 60
	}
	eachFile([]string{goRoot(t)}, ".go", func(path string, src []byte) bool {
		if len(src) > 40_000 || rng.IntN(8) > 0 {
			return true
		}
		for range 3 {
			cut := src[:rng.IntN(len(src)+1)]
			cuts++
			edits, r := Close("go", cut)
			if r.Status == Broken {
				wrong++
				t.Logf("%s at %d: %+v", path, len(cut), r.Problems)
			}
			if len(edits) == 0 {
				continue
			}
			edited++
			_, err := parser.ParseFile(token.NewFileSet(), "", jsonrepair.Apply(cut, slices.Values(edits)), parser.SkipObjectResolution)
			if err == nil {
				parses++
			}
			if (err == nil) != r.Closed && bytes.HasPrefix(bytes.TrimSpace(cut), []byte("package")) {
				t.Errorf("%s at %d: closed %v, %v", path, len(cut), r.Closed, err)
			}
		}
		return cuts < limit/fewer
	})
	t.Logf("%d cuts: %d closed, %d of them parse, %d taken for broken", cuts, edited, parses, wrong)
	if wrong*50 > cuts {
		t.Errorf("%d of %d cuts are taken for broken", wrong, cuts)
	}
}

// pythonTruth prints for each text on standard input, a JSON string a line, whether
// Python's parser takes it.
const pythonTruth = `
import ast, json, sys, warnings
warnings.simplefilter("ignore")
for line in sys.stdin:
    try:
        ast.parse(json.loads(line))
        print(1)
    except Exception:
        print(0)
`

// truth asks Python which texts parse.
func truth(t *testing.T, texts []string) []bool {
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, text := range texts {
		if err := enc.Encode(text); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("python3", "-c", pythonTruth)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("needs python3: %v", err)
	}
	var list []bool
	for _, line := range strings.Fields(string(out)) {
		list = append(list, line == "1")
	}
	if len(list) != len(texts) {
		t.Fatalf("%d answers for %d texts", len(list), len(texts))
	}
	return list
}

// TestPythonCorpus: what Python parses is in order by the rules, and what they close
// is what Python parses, but for statements that are incomplete in other ways.
func TestPythonCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("takes time")
	}
	out, err := exec.Command("python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").Output()
	if err != nil {
		t.Skip("needs python3")
	}
	rng := rand.New(rand.NewPCG(11, 1))
	var texts, paths, closed []string
	eachFile([]string{strings.TrimSpace(string(out))}, ".py", func(path string, src []byte) bool {
		if strings.Contains(path, "/site-packages/") || !bytes.Equal(bytes.ToValidUTF8(src, nil), src) || len(src) > 60_000 {
			return true
		}
		texts, paths = append(texts, string(src)), append(paths, path)
		if cut := src[:rng.IntN(len(src)+1)]; bytes.Equal(bytes.ToValidUTF8(cut, nil), cut) {
			edits, r := Close("python", cut)
			if r.Status == Broken || r.Status == Unknown {
				t.Errorf("%s at %d: %s %+v", path, len(cut), r.Status, r.Problems)
			}
			if len(edits) > 0 {
				closed = append(closed, string(jsonrepair.Apply(cut, slices.Values(edits))))
			}
		}
		return len(texts) < 400/fewer
	})
	for i, ok := range truth(t, texts) {
		if r := Check("python", []byte(texts[i]), Options{}); ok && r.Status != Parses {
			t.Errorf("%s: %s %+v", paths[i], r.Status, r.Problems)
		}
	}
	parse := 0
	for _, ok := range truth(t, closed) {
		if ok {
			parse++
		}
	}
	t.Logf("%d files; %d cut ones closed, Python parses %d of them", len(texts), len(closed), parse)
	if 3*parse < len(closed) {
		t.Errorf("Python parses %d of %d", parse, len(closed))
	}
}

// TestScriptCorpus: what Node parses of the packages that it comes with is in order by
// the rules, and so is what they close if it is not incomplete in other ways.
func TestScriptCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("takes time")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node")
	}
	files := 0
	eachFile([]string{"/usr/lib/node_modules", "/usr/local/lib/node_modules"}, ".js", func(path string, src []byte) bool {
		files++
		if r := Check("javascript", src, Options{}); r.Status != Parses {
			if exec.Command("node", "--check", path).Run() == nil {
				t.Errorf("%s: %s %+v", path, r.Status, r.Problems)
			}
		}
		return files < 1500/fewer
	})
	t.Logf("%d files", files)
}
