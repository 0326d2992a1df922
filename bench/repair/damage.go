package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A document is a real JSON file.
type document struct {
	path  string
	text  []byte
	value any
	spots []spot
}

// A spot is a structural byte.
type spot struct {
	at    int // byte offset
	class string
}

// damages are what is done to one structural byte. They return nil where it cannot be done.
var damages = []struct {
	name string
	do   func(text []byte, at int) []byte
}{
	{"removed", func(t []byte, at int) []byte { return slices.Concat(t[:at], t[at+1:]) }},
	{"doubled", func(t []byte, at int) []byte { return slices.Concat(t[:at+1], t[at:]) }},
	{"moved", func(t []byte, at int) []byte { // it changes places with a neighbour that is not white space
		if at+1 == len(t) || strings.IndexByte(" \t\r\n", t[at+1]) >= 0 {
			at--
		}
		if at < 0 || t[at] == t[at+1] {
			return nil
		}
		return slices.Concat(t[:at], []byte{t[at+1], t[at]}, t[at+2:])
	}},
	{"exchanged", func(t []byte, at int) []byte {
		other, found := map[byte]byte{'{': '[', '[': '{', '}': ']', ']': '}', ':': ',', ',': ':', '"': '\''}[t[at]]
		if !found {
			return nil
		}
		return slices.Concat(t[:at], []byte{other}, t[at+1:])
	}},
}

var classes = []string{"quote", "comma", "colon", "opener", "closer"}

// spots returns the structural bytes of a valid text.
func spots(text []byte) []spot {
	var found []spot
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			found, inString = append(found, spot{i, "quote"}), !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == ',':
			found = append(found, spot{i, "comma"})
		case c == ':':
			found = append(found, spot{i, "colon"})
		case c == '{' || c == '[':
			found = append(found, spot{i, "opener"})
		case c == '}' || c == ']':
			found = append(found, spot{i, "closer"})
		}
	}
	return found
}

// documentDirs returns where package managers keep what they have installed on this machine.
func documentDirs() []string {
	if *docsDirs != "" {
		return strings.Split(*docsDirs, ",")
	}
	dirs := []string{os.Getenv("UNFRAY_TEST_CLIENTS")}
	for _, command := range [][]string{
		{"npm", "root", "-g"},
		{"go", "env", "GOMODCACHE"},
		{"python3", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"},
	} {
		out, _ := exec.Command(command[0], command[1:]...).Output() // a tool that is missing has installed nothing
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	return slices.DeleteFunc(dirs, func(d string) bool { return d == "" })
}

// collect returns -n documents of 256 bytes to 16 KiB, of as many kinds as can be: those of one file name, or else of
// one folder, are a kind. It returns the same on every run.
func collect() ([]document, error) {
	found, err := findDocuments()
	if err != nil {
		return nil, err
	}
	folders := map[string]map[string]bool{} // by file name
	for _, d := range found {
		name := filepath.Base(d.path)
		if folders[name] == nil {
			folders[name] = map[string]bool{}
		}
		folders[name][filepath.Dir(d.path)] = true
	}
	kinds := map[string][]document{}
	for _, d := range found {
		kind := filepath.Base(d.path)
		if len(folders[kind]) == 1 {
			kind = filepath.Base(filepath.Dir(d.path)) + string(filepath.Separator)
		}
		kinds[kind] = append(kinds[kind], d)
	}
	order := func(text []byte) string { sum := sha256.Sum256(text); return string(sum[:]) }
	for _, docs := range kinds {
		slices.SortFunc(docs, func(a, b document) int { return cmp.Compare(order(a.text), order(b.text)) })
	}
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Compare(order([]byte(a)), order([]byte(b))) })
	var chosen []document
	for round, more := 0, true; more && len(chosen) < *docCount; round++ {
		more = false
		for _, name := range names {
			if docs := kinds[name]; round < len(docs) && len(chosen) < *docCount {
				more = true
				d := docs[round]
				d.value, _ = decode(d.text) // it is valid
				chosen = append(chosen, d)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no JSON files were found: name folders by -docs")
	}
	return chosen, nil
}

// findDocuments returns all valid JSON files of the right size, each text once.
func findDocuments() ([]document, error) {
	var found []document
	seen := map[[32]byte]bool{}
	for _, dir := range documentDirs() {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".json") {
				return nil // what cannot be read is passed over
			}
			if info, err := entry.Info(); err != nil || info.Size() < 256 || info.Size() > 16<<10 {
				return nil
			}
			text, err := os.ReadFile(path)
			if sum := sha256.Sum256(text); err == nil && !seen[sum] && json.Valid(text) {
				if s := spots(text); len(s) >= 12 {
					seen[sum] = true
					found = append(found, document{path: path, text: text, spots: s})
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// sample returns at most n of the spots of a class, evenly spread; 0 is all.
func sample(all []spot, class string, n int) []spot {
	var some []spot
	for _, s := range all {
		if s.class == class {
			some = append(some, s)
		}
	}
	if n == 0 || len(some) <= n {
		return some
	}
	for i := range n {
		some[i] = some[i*len(some)/n]
	}
	return some[:n]
}

func printDamage(w io.Writer, all []*contestant) error {
	docs, err := collect()
	if err != nil {
		return err
	}
	digest, size := sha256.New(), 0
	for _, d := range docs {
		digest.Write(d.text)
		size += len(d.text)
	}
	fmt.Fprintf(w, "%d documents, %d bytes, SHA-256 %.6x…; at most %d damages of a kind to each. What is still valid JSON is left out.\n\n", len(docs), size, digest.Sum(nil), *perDoc)
	fmt.Fprint(w, "Each cell: restored to the original value / valid but another value, in %.\n\n| damage | inputs |")
	for _, c := range all {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprint(w, "\n|---|---:|"+strings.Repeat("---:|", len(all))+"\n")
	totals := make([]score, len(all))
	var shown []string
	for _, damage := range damages {
		for _, class := range classes {
			scores := make([]score, len(all))
			inputs := 0
			for _, d := range docs {
				for _, s := range sample(d.spots, class, *perDoc) {
					input := damage.do(d.text, s.at)
					if input == nil || json.Valid(input) {
						continue
					}
					inputs++
					if bad := play(input, d.value, all, scores); bad && scores[0].verdicts[wrong] <= 10 {
						shown = append(shown, fmt.Sprintf("%s %s: %s: %s", class, damage.name, d.path, around(input, s.at)))
					}
				}
			}
			if inputs == 0 {
				continue
			}
			printShares(w, class+" "+damage.name, inputs, scores)
			for i, s := range scores {
				for v, n := range s.verdicts {
					totals[i].verdicts[v] += n
				}
			}
		}
	}
	printShares(w, "**all**", totals[0].verdicts[right]+totals[0].verdicts[wrong]+totals[0].verdicts[refused], totals)
	if *verbose {
		fmt.Fprintf(w, "\n%s is wrong, for example:\n", all[0].name)
		printList(w, shown)
	}
	return nil
}

// play gives an input to all contestants and says whether the first one's answer is valid but wrong.
func play(input []byte, want any, all []*contestant, scores []score) (bad bool) {
	for i, c := range all {
		output, _, err := c.repair(input)
		v := judge(output, err, want, false)
		scores[i].verdicts[v]++
		bad = bad || i == 0 && v == wrong
	}
	return bad
}

func printShares(w io.Writer, name string, inputs int, scores []score) {
	fmt.Fprintf(w, "| %s | %d |", name, inputs)
	for _, s := range scores {
		share := func(v verdict) float64 { return 100 * float64(s.verdicts[v]) / float64(inputs) }
		fmt.Fprintf(w, " %.1f / %.1f |", share(right), share(wrong))
	}
	fmt.Fprintln(w)
}

// around returns what stands about an offset, on one line.
func around(text []byte, at int) string {
	part := text[max(0, at-40):min(len(text), at+40)]
	return fmt.Sprintf("%q", bytes.ToValidUTF8(part, nil))
}
