package delimiter

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes verdicts as a table, in the order given.
func Markdown(w io.Writer, list []Verdict) error {
	var b strings.Builder
	b.WriteString("| separator | tokens | keeps them | bites | has the same ones | shown by | instead |\n|---|---:|---|---:|---|---|---|\n")
	for i := range list {
		v := &list[i]
		name := code(v.Text)
		if v.Kind != Text {
			name += " (" + string(v.Kind) + ")"
		}
		same := v.Before.Statement
		if v.Before.Proof == Searched {
			same += fmt.Sprintf(" (%d tried)", v.Before.Tried)
		}
		var rules []string
		for _, r := range v.Hygiene {
			rules = append(rules, r.Do)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %.1f %% | %s | %s | %s |\n", name, len(v.IDs), cell(v.After.Statement), 100*v.After.Share,
			cell(same), example(&v.After), cell(strings.Join(rules, "; ")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// example shows the first change that was encoded.
func example(s *Side) string {
	for i := range s.Changes {
		if c := &s.Changes[i]; c.Becomes != nil {
			return fmt.Sprintf("before %s: %v", code(c.Next), c.Becomes)
		}
	}
	return ""
}

// code writes text as Go quotes it, in a code span of a table's cell.
func code(s string) string {
	q := fmt.Sprintf("%q", s)
	fence := "`"
	for strings.Contains(q, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		q = " " + q + " "
	}
	return fence + cell(q) + fence
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
