package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

const repairDocs = "../../docs/repair.md"

// TestRepairDocsKinds compares the table of edits with what is done.
func TestRepairDocsKinds(t *testing.T) {
	docs, err := os.ReadFile(repairDocs)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| .* \\| (?:U\\+(FEFF), )?(?:`([^`]+)`|```` (.+) ````)( \\(a byte\\))? \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(docs), -1)
	if len(rows) < 30 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		kind, in, want := row[1], row[3]+row[4], row[6]
		if row[2] != "" {
			in = "\ufeff" + in
		}
		in = strings.NewReplacer("⍽", "\u00a0", "↵", "\n", "→", "\t").Replace(in)
		if row[5] != "" {
			in = strings.ReplaceAll(in, `\xff`, "\xff")
		}
		r := jsonrepair.Repair([]byte(in), jsonrepair.Options{})
		if string(r.Text) != want || countKinds(nil, r.Edits())[jsonrepair.Kind(kind)] == 0 {
			t.Errorf("%s: %q gives %s, %s; the page says %s", kind, in, r.Text, summary(r.Outcome, countKinds(nil, r.Edits())), want)
		}
	}
}

// TestRepairDocsConsole and TestRecoveryDocsConsole run the commands of the pages.
func TestRepairDocsConsole(t *testing.T) { runConsoles(t, repairDocs, 14) }

func TestRecoveryDocsConsole(t *testing.T) { runConsoles(t, "../../docs/recovery.md", 4) }

func runConsoles(t *testing.T, page string, least int) {
	docs, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLUMNS", "80")
	folder := t.TempDir()
	ran := 0
	for _, console := range regexp.MustCompile("(?s)(?:````console\n(.+?)\n````|\n( *)```console\n(.+?)\n *```)").FindAllStringSubmatch(string(docs), -1) {
		text := console[1] + strings.ReplaceAll("\n"+console[3], "\n"+console[2], "\n")
		for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			want = strings.TrimRight(want, "\n") + "\n"
			if name, ok := strings.CutPrefix(command, "cat "); ok {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if got, ok := runDocs(t, folder, command); ok {
				ran++
				if got != want {
					t.Errorf("%s\n%s\nthe page says\n%s", command, got, want)
				}
			}
		}
	}
	if ran < least {
		t.Errorf("%d commands were run", ran)
	}
}

// runDocs runs a command of the page, if it is one of unfray alone.
func runDocs(t *testing.T, folder, command string) (string, bool) {
	in := ""
	if m := regexp.MustCompile(`^(printf|echo) '(.*)' \| (.*)$`).FindStringSubmatch(command); m != nil {
		in, command = m[2]+"\n", m[3]
		if m[1] == "printf" {
			in = strings.NewReplacer(`\n`, "\n", `\\`, `\`).Replace(m[2])
		}
	}
	words := strings.Fields(command)
	if words[0] != "unfray" || strings.Contains(command, "|") {
		return "", false
	}
	for i, w := range words {
		if strings.Contains(w, ".") {
			words[i] = filepath.Join(folder, w)
		}
	}
	var stdout, stderr bytes.Buffer
	run(t.Context(), words[1:], strings.NewReader(in), &stdout, &stderr)
	out := stdout.String()
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return out + stderr.String(), true
}
