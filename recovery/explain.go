package recovery

import (
	"fmt"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/schema"
)

// Explain tells of a result as a person would, a line for each thing.
func (r *Result) Explain() string {
	var s strings.Builder
	fmt.Fprintf(&s, "The answer was taken for %s. %s\n", formNames[r.Form], r.verdict())
	n := 0
	for _, step := range r.Trace {
		n++
		fmt.Fprintf(&s, "%2d. %-9s  %-11s %s", n, step.Strategy, step.Verdict, step.Why)
		if step.Edits > 0 {
			fmt.Fprintf(&s, " (%s)", counted(step.Edits, "edit"))
		}
		s.WriteByte('\n')
	}
	if len(r.Reasoning) > 0 {
		fmt.Fprintf(&s, "Kept apart: %s of reasoning.\n", counted(len(r.Reasoning), "byte"))
	}
	for _, c := range r.Calls {
		fmt.Fprintf(&s, "Calls %s", c.Name)
		if !c.Complete {
			s.WriteString(", but the call breaks off: do not execute it")
		} else if c.Repaired {
			s.WriteString(", with arguments that were repaired")
		}
		s.WriteString(".\n")
		coerced(&s, c.Coercions)
	}
	coerced(&s, r.Coercions)
	for _, o := range r.Open {
		fmt.Fprintf(&s, "Not ended: %s, from byte %d.\n", strings.TrimSpace(strings.ReplaceAll(o.Kind, "_", " ")+" "+o.Path), o.Offset)
	}
	for i, w := range r.Readings {
		if i == shownReadings {
			fmt.Fprintf(&s, "And in %d ways more.\n", len(r.Readings)-i)
			break
		}
		fmt.Fprintf(&s, "Can be read as %s: %s.\n", short(strings.TrimSpace(string(w.Text))), w.Why)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&s, "Does not fit: %s: %s.\n", pathOr(v.Path), v.Message)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&s, "Seen and left alone at byte %d: %s.\n", f.Offset, f.Text)
	}
	if r.Err != nil {
		fmt.Fprintf(&s, "Byte %d: %s.\n", r.Err.Offset, r.Err)
	}
	return s.String()
}

// shownReadings is how many readings are told.
const shownReadings = 8

func coerced(s *strings.Builder, cs []schema.Coercion) {
	for _, c := range cs {
		fmt.Fprintf(s, "At %s: %s, %s became %s.\n", pathOr(c.Path), strings.ReplaceAll(string(c.Kind), "_", " "), short(c.Before), short(c.After))
	}
}

var formNames = map[Form]string{Text: "text", JSON: "JSON", Code: "code"}

// verdict says the outcome in a sentence.
func (r *Result) verdict() string {
	n := counted(len(r.Edits), "edit")
	switch r.Outcome {
	case jsonrepair.Valid:
		return "It was good as it was: not a byte was changed."
	case jsonrepair.Repaired:
		return "It is whole now, after " + n + "."
	case jsonrepair.Truncated:
		return "It breaks off: something is missing at its end. It has " + n + "."
	case jsonrepair.Ambiguous:
		ways := fmt.Sprintf("It can be read in %d ways", max(2, len(r.Readings)))
		if r.Text == nil {
			return ways + ", of which none was taken."
		}
		return ways + "."
	}
	return "It could not be recovered."
}

// short shows a value in a line.
func short(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.ReplaceAll(s, "\n", "⏎")
}

func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
