package unfray_test

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/dependencies.txt instead of comparing with it")

const modulePath = "github.com/unfray/unfray"

// levels is the direction of imports: a package imports only packages of the rows above its own. Packages are named
// relative to the module; "." is the root. docs/architecture.md says what each is for.
var levels = [][]string{
	{"vocab", "jsonrepair", "internal/wire", "internal/gguf", "internal/deps", "internal/upstream", "internal/plot"},
	{"tokenizer", "prefixcache", "backend", "recovery", "grammar", "internal/gguf/gguftest", "internal/servertest", "jsonrepair/jsontest"},
	{"boundary", "fim", "internal/chattemplate", "engine", "backend/remote", "backend/backendtest", "backend/remote/wiretest", "tokenizer/tokenizertest"},
	{"heal", "internal/views", "prefixcache/replay", "prefixcache/audit", "prefixcache/advise"},
	{".", "internal/eval", "internal/config"},
	{"gateway", "playground"},
	{"cmd", "internal/deps/fetch", "wasm"},
}

// barred lists imports that the levels alone would allow. A name stands for its subpackages too, except where a row of
// levels names them.
var barred = []struct{ from, to, why string }{
	{"heal", "backend", "heal knows no backend"},
	{"heal", "engine", "heal knows no backend"},
	{"heal", "backend/remote", "heal knows no backend"},
	{"recovery", "vocab", "recovery knows no tokens"},
	{".", "engine", "only cmd names concrete backends"},
	{".", "backend/remote", "only cmd names concrete backends"},
	{"gateway", "engine", "only cmd names concrete backends"},
	{"gateway", "backend/remote", "only cmd names concrete backends"},
	{"playground", "engine", "only cmd names concrete backends"},
	{"playground", "backend/remote", "only cmd names concrete backends"},
	{"backend", "internal/wire", "the interface speaks no protocol"},
}

// testOnly lists packages that only test files import.
var testOnly = []string{"backend/backendtest", "backend/remote/wiretest", "internal/gguf/gguftest", "internal/servertest", "jsonrepair/jsontest", "tokenizer/tokenizertest"}

// A goPackage is what `go list -json` says of one package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

// goList lists packages as a build for linux/amd64 with the given tags sees them, so that its answer is the same on
// every machine.
func goList(t *testing.T, tags string, args ...string) []goPackage {
	t.Helper()
	args = append([]string{"list", "-tags=" + tags, "-json=ImportPath,Standard,Imports,Module"}, args...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	var pkgs []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// relative names a package of this module by its path in the tree. It reports false for packages of other modules.
func relative(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// owner returns the entry of levels that a package belongs to, the package itself or the nearest folder above it, and
// its level, -1 if there is none.
func owner(pkg string) (name string, level int) {
	for name = pkg; ; name = filepath.ToSlash(filepath.Dir(name)) {
		for i, row := range levels {
			// The root is above every folder, but owns only itself.
			if slices.Contains(row, name) && (name != "." || pkg == ".") {
				return name, i
			}
		}
		if name == "." {
			return pkg, -1
		}
	}
}

// checkImport returns what is wrong with one import, or "".
func checkImport(from, to string) string {
	fromOwner, fromLevel := owner(from)
	toOwner, toLevel := owner(to)
	if fromLevel < 0 || toLevel < 0 || fromOwner == toOwner {
		return "" // unlisted packages are reported once, not for each edge
	}
	for _, b := range barred {
		if fromOwner == b.from && toOwner == b.to {
			return b.why
		}
	}
	if slices.Contains(testOnly, toOwner) && !slices.Contains(testOnly, fromOwner) {
		return "only test files may import it"
	}
	if toLevel >= fromLevel {
		return fmt.Sprintf("level %d may import only lower levels, not level %d", fromLevel, toLevel)
	}
	return ""
}

// TestImportDirection prints the import table (with -v) and fails on every import against the direction. Test files
// are exempt.
func TestImportDirection(t *testing.T) {
	imports := map[string][]string{}
	for _, tags := range []string{"", "llama"} {
		for _, p := range goList(t, tags, "./...") {
			from, _ := relative(p.ImportPath)
			to := imports[from]
			for _, path := range p.Imports {
				if pkg, ok := relative(path); ok {
					to = append(to, pkg)
				}
			}
			imports[from] = to
		}
	}
	rows := make([][]string, len(levels))
	for from, to := range imports {
		slices.Sort(to)
		to = slices.Compact(to)
		_, level := owner(from)
		if level < 0 {
			t.Errorf("package %s has no level: give it one in layout_test.go and a line in docs/architecture.md", from)
			continue
		}
		rows[level] = append(rows[level], fmt.Sprintf("%-22s %s", from, strings.Join(to, " ")))
		for _, to := range to {
			if why := checkImport(from, to); why != "" {
				t.Errorf("%s imports %s: %s", from, to, why)
			}
		}
	}
	var table strings.Builder
	for level, lines := range rows {
		slices.Sort(lines)
		for _, line := range lines {
			fmt.Fprintf(&table, "%d  %s\n", level, line)
		}
	}
	t.Logf("level, package, imports\n%s", table.String())
}

// The rules themselves: edges whose verdict the design states.
func TestCheckImport(t *testing.T) {
	tests := []struct {
		from, to string
		ok       bool
	}{
		{"tokenizer", "vocab", true},
		{"boundary", "tokenizer", true},
		{"engine", "backend", true},
		{"heal", "boundary", true},
		{".", "heal", true},
		{".", "backend", true},
		{"gateway", ".", true},
		{"cmd/unfray", "engine", true},
		{"cmd/unfray", "backend/remote", true},
		{"backend/backendtest", "backend", true},
		{"backend/backendtest", "tokenizer", true},
		{"tokenizer/internal/bpe", "tokenizer", true},
		{"vocab", "tokenizer", false},
		{"heal", "backend", false},
		{"backend", "heal", false},
		{"backend", "tokenizer", false},
		{"backend", "boundary", false},
		{"recovery", "vocab", false},
		{"recovery", "tokenizer", false},
		{"gateway", "engine", false},
		{"gateway", "backend/remote", false},
		{".", "engine", false},
		{".", "gateway", false},
		{"heal", ".", false},
		{"engine", "backend/backendtest", false},
		{"engine", "boundary", false},
		{"cmd/unfray", "backend/backendtest", false},
		{"tokenizer", "internal/gguf/gguftest", false},
	}
	for _, tt := range tests {
		if why := checkImport(tt.from, tt.to); (why == "") != tt.ok {
			t.Errorf("%s imports %s: %q, want allowed = %t", tt.from, tt.to, why, tt.ok)
		}
	}
	if _, level := owner("stray/package"); level != -1 {
		t.Errorf("a package that no row names has level %d", level)
	}
}

// native are the modules that reach native code. They belong to builds with the tag llama alone: one of them stops the
// process at its start where libffi is missing.
var native = []string{"github.com/hybridgroup/yzma", "github.com/ebitengine/purego", "github.com/jupiterrider/ffi"}

func TestDefaultBuildLinksNoNativeCode(t *testing.T) {
	for _, p := range goList(t, "", "-deps", "./...") {
		if p.Module != nil && slices.Contains(native, p.Module.Path) {
			t.Errorf("the default build links %s", p.ImportPath)
		}
		if _, ours := relative(p.ImportPath); ours && slices.Contains(p.Imports, "C") {
			t.Errorf("%s imports C", p.ImportPath)
		}
	}
}

// TestDefaultBinaryIsStatic builds the command as `go build` without tags does and looks for a dynamic linker.
func TestDefaultBinaryIsStatic(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a binary")
	}
	path := filepath.Join(t.TempDir(), "unfray")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/unfray")
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the default binary has a %v segment", p.Type)
		}
	}
}

// TestDependencies compares what the binary links with the list that reviewers see in every diff.
func TestDependencies(t *testing.T) {
	const path = "docs/dependencies.txt"
	marks := map[string]string{}
	modules := map[string]string{}
	for _, build := range []struct{ mark, tags string }{{"D", ""}, {"L", "llama"}} {
		for _, p := range goList(t, build.tags, "-deps", "./cmd/unfray") {
			if _, ours := relative(p.ImportPath); ours || p.Standard {
				continue
			}
			marks[p.ImportPath] += build.mark
			modules[p.ImportPath] = p.Module.Path
		}
	}
	var got bytes.Buffer
	fmt.Fprint(&got, `Packages of other modules that cmd/unfray links (linux/amd64), by module.
D: the default build, L: the build with the tag llama.
Written by: go test -run TestDependencies -update .
`)
	last := ""
	for _, pkg := range slices.SortedFunc(maps.Keys(marks), func(a, b string) int {
		return strings.Compare(modules[a]+" "+a, modules[b]+" "+b)
	}) {
		if modules[pkg] != last {
			last = modules[pkg]
			fmt.Fprintf(&got, "\n%s\n", last)
		}
		fmt.Fprintf(&got, "  %-2s %s\n", marks[pkg], pkg)
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it by `go test -run TestDependencies -update .`", err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Errorf("the binary links other packages than %s says; if that is meant, give new modules a reason in docs/rationale.md and run `go test -run TestDependencies -update .`\ngot:\n%s", path, got.Bytes())
	}
}
