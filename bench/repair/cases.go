package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A repairCase is a line of the files of cases; jsonrepair/testdata/README.md describes them.
type repairCase struct {
	Name, In, Outcome, Policy string
	B64                       []byte
	Want                      json.RawMessage
}

func (c *repairCase) input() []byte {
	if c.B64 != nil {
		return c.B64
	}
	return []byte(c.In)
}

// A verdict is what an answer is worth.
type verdict int

const (
	right   verdict = iota
	wrong           // valid JSON with another value
	refused         // an error, or no valid JSON
)

var verdictNames = [...]string{"right", "wrong", "refused"}

// judge compares an answer with the value that is wanted, or with none wanted.
func judge(output []byte, err error, want any, none bool) verdict {
	if err == nil && len(bytes.TrimSpace(output)) == 0 {
		err = errors.New("nothing")
	}
	var got any
	if err == nil {
		got, err = decode(output)
	}
	switch {
	case err != nil && none:
		return right
	case err != nil:
		return refused
	case !none && equal(got, want):
		return right
	}
	return wrong
}

func readCases(path string) ([]repairCase, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []repairCase
	for line := range bytes.Lines(text) {
		var c repairCase
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// A score is what one contestant makes of one file of cases.
type score struct {
	verdicts [3]int
	late     int
	names    [3][]string
}

func (s *score) row() string {
	return fmt.Sprintf("%d | %d | %d | %d", s.verdicts[right], s.verdicts[wrong], s.verdicts[refused], s.late)
}

func printCases(w io.Writer, all []*contestant) error {
	files, err := filepath.Glob(filepath.Join(*casesDir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no cases in %s: run it as go -C bench run ./repair cases", *casesDir))
	}
	fmt.Fprint(w, "| cases | contestant | right | wrong but valid | refused | of these late |\n|---|---|---:|---:|---:|---:|\n")
	var beaten, ours []string
	for _, file := range files {
		cases, err := readCases(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		scores, worse, err := playCases(cases, all)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, s := range scores {
			fmt.Fprintf(w, "| %s | %s | %s |\n", name, all[i].name, s.row())
		}
		for _, line := range worse {
			beaten = append(beaten, name+"/"+line)
		}
		for _, v := range []verdict{wrong, refused} {
			for _, c := range scores[0].names[v] {
				ours = append(ours, fmt.Sprintf("%s/%s (%s)", name, c, verdictNames[v]))
			}
		}
	}
	fmt.Fprint(w, "\nCases that depend on policy only are left out. Numbers are compared by value. Strict refuses what is ambiguous.\n")
	fmt.Fprintf(w, "\n%s is valid but wrong where another is right: %d\n", all[0].name, len(beaten))
	printList(w, beaten)
	if *verbose {
		fmt.Fprintf(w, "\n%s is not right: %d\n", all[0].name, len(ours))
		printList(w, ours)
	}
	return nil
}

func printList(w io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(w, "-", l)
	}
}

// playCases gives all cases but those of policy to all contestants. worse names those that the first gets wrong and
// another right.
func playCases(cases []repairCase, all []*contestant) (scores []score, worse []string, err error) {
	scores = make([]score, len(all))
	for _, c := range cases {
		none := c.Outcome == "failed"
		if c.Policy != "" || c.Want == nil && !none {
			continue
		}
		var want any
		if !none {
			if want, err = decode(c.Want); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		var better []string
		var first verdict
		for i, who := range all {
			output, _, err := who.repair(c.input())
			v := judge(output, err, want, none)
			scores[i].verdicts[v]++
			scores[i].names[v] = append(scores[i].names[v], c.Name)
			if errors.Is(err, errLate) {
				scores[i].late++
			}
			if i == 0 {
				first = v
			} else if v == right && !who.variant {
				better = append(better, who.name)
			}
		}
		if first == wrong && better != nil {
			worse = append(worse, fmt.Sprintf("%s: %s", c.Name, strings.Join(better, ", ")))
		}
	}
	return scores, worse, nil
}
