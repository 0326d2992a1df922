package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// writeDocument returns records, one to a line, as an array that has about size bytes where nothing is left out; member
// writes a name and a value.
func writeDocument(size int, comma string, member func(name, value string) string) string {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range size / 200 {
		if i > 0 {
			b.WriteString(comma + "\n")
		}
		b.WriteString("  {")
		for j, m := range [][2]string{
			{"id", fmt.Sprint(i)}, {"name", fmt.Sprintf(`"Item %d of the list"`, i)}, {"price", fmt.Sprintf("%d.%02d", i%97, i%100)},
			{"tags", fmt.Sprintf(`["new"%s "tag%d"%s "a b c"]`, comma, i%13, comma)}, {"sold", []string{"true", "false", "null"}[i%3]},
			{"note", `"It was the best of times, it was the worst of times: see page 12."`},
		} {
			if j > 0 {
				b.WriteString(comma + " ")
			}
			b.WriteString(member(m[0], m[1]))
		}
		b.WriteString("}")
	}
	b.WriteString("\n]\n")
	return b.String()
}

func quoted(name, value string) string { return `"` + name + `": ` + value }

// breaks make a broken document of about size bytes. One that loses nothing has the value of the whole document.
var breaks = []struct {
	name  string
	loses bool
	make  func(size int) string
}{
	{"valid", false, func(size int) string { return writeDocument(size, ",", quoted) }},
	{"one comma missing in the middle", false, func(size int) string {
		text := writeDocument(size, ",", quoted)
		at := len(text)/2 + strings.Index(text[len(text)/2:], "},\n") + 1
		return text[:at] + text[at+1:]
	}},
	{"comma behind the last item", false, func(size int) string {
		return strings.TrimSuffix(writeDocument(size, ",", quoted), "\n]\n") + ",\n]\n"
	}},
	{"every comma missing", false, func(size int) string { return writeDocument(size, "", quoted) }},
	{"cut inside a string", true, func(size int) string {
		text := writeDocument(size, ",", quoted)
		return text[:strings.LastIndex(text, "worst")]
	}},
	{"closers missing at the end", true, func(size int) string {
		return strings.TrimSuffix(writeDocument(size, ",", quoted), "}\n]\n")
	}},
	{"single quotes", false, func(size int) string {
		return strings.ReplaceAll(writeDocument(size, ",", quoted), `"`, `'`)
	}},
	{"keys without quotes", false, func(size int) string {
		return writeDocument(size, ",", func(name, value string) string { return name + ": " + value })
	}},
	{"Python literals", false, func(size int) string {
		return writeDocument(size, ",", func(name, value string) string {
			return quoted(name, strings.NewReplacer("true", "True", "false", "False", "null", "None").Replace(value))
		})
	}},
	{"quotes inside strings", true, func(size int) string {
		return strings.ReplaceAll(writeDocument(size, ",", quoted), "best of", `"best" of`)
	}},
	{"a comment on each line", false, func(size int) string {
		return strings.ReplaceAll(writeDocument(size, ",", quoted), "\n  {", " // next one\n  {")
	}},
	{"values one to a line", false, func(size int) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(writeDocument(size, ",", quoted), "},\n", "}\n"), "[\n"), "]\n")
	}},
	{"fence and prose", false, func(size int) string {
		return "Here it is:\n\n```json\n" + writeDocument(size, ",", quoted) + "```\nHope this helps.\n"
	}},
}

// shapes are hostile: repairers have been quadratic or worse on them, or have overflowed their stack.
var shapes = []struct{ name, head, body string }{
	{"opening brackets", "", "["},
	{"opening braces with keys", "", `{"a":`},
	{"surplus closers", `{"a":1`, "}"},
	{"openers with wrong closers", "", "[}"},
	{"quotes only", "", `"`},
	{"quotes in a string", `{"a":"`, `say "hi" now `},
	{"quotes and parentheses in a string", `{"a":"`, `(5") `},
	{"open string with commas", `{"a":"`, "x, y, "},
	{"every comma missing", "[", "1 "},
	{"end quotes missing", `{"k":"v`, `, "k":"v`},
	{"backslashes in an open string", `{"a":"`, `\`},
	{"braces in prose", "see ", "x {y "},
	{"apostrophes in single quotes", "{'a':'", "it's "},
	{"openers of comments", "[1,", "/* x "},
	{"fences", "", "```json\n"},
	{"colons", "{", `"a"::`},
}

// median measures -rounds calls after one that warms up, fewer where they are slow.
func (c *contestant) median(input []byte) (output []byte, took time.Duration, err error) {
	if output, took, err = c.repair(input); err != nil || took > *limit/20 {
		return output, took, err
	}
	var times []time.Duration
	for range max(1, *rounds) {
		if output, took, err = c.repair(input); err != nil {
			return nil, took, err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	return output, times[len(times)/2], nil
}

func printSpeed(w io.Writer, all []*contestant) error {
	all = slices.DeleteFunc(slices.Clone(all), func(c *contestant) bool { return c.variant })
	if err := printBroken(w, all); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printShapes(w, all)
}

func printBroken(w io.Writer, all []*contestant) error {
	fmt.Fprintf(w, "Milliseconds and MB (10^6 bytes) a second of %s; of the others, how many times longer they take. ≠: another value; ✗: refused.\n\n| document | KB | %s |", all[0].name, all[0].name)
	for _, c := range all[1:] {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprint(w, "\n|---|---:|"+strings.Repeat("---:|", len(all))+"\n")
	for _, b := range breaks {
		for _, size := range []int{64 << 10, 1 << 20} {
			input := []byte(b.make(size))
			var want any
			if !b.loses {
				var err error
				if want, err = decode([]byte(writeDocument(size, ",", quoted))); err != nil {
					return err
				}
			}
			fmt.Fprintf(w, "| %s | %d |", b.name, len(input)/1000)
			var ours time.Duration
			for i, c := range all {
				output, took, err := c.median(input)
				if i == 0 {
					ours = max(took, time.Microsecond)
					fmt.Fprintf(w, " %.2f, %.0f MB/s%s |", took.Seconds()*1e3, float64(len(input))/1e6/ours.Seconds(), mark(output, err, want))
					continue
				}
				if errors.Is(err, errLate) {
					fmt.Fprintf(w, " > %.0f |", limit.Seconds()/ours.Seconds())
					continue
				}
				fmt.Fprintf(w, " %.1f%s |", took.Seconds()/ours.Seconds(), mark(output, err, want))
			}
			fmt.Fprintln(w)
		}
	}
	return nil
}

// mark says what is amiss with an answer.
func mark(output []byte, err error, want any) string {
	if err != nil {
		return " ✗"
	}
	if want == nil {
		return ""
	}
	return [...]string{right: "", wrong: " ≠", refused: " ✗"}[judge(output, nil, want, false)]
}

const small, large = 64 << 10, 16 << 20

func printShapes(w io.Writer, all []*contestant) error {
	fmt.Fprintf(w, "Nanoseconds per byte at %d KiB and at %d MiB, and how many times more the latter are; ✗: refused, late: more than %v.\n\n| shape |", small>>10, large>>20, *limit)
	for _, c := range all {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprint(w, "\n|---|"+strings.Repeat("---:|", len(all))+"\n")
	for _, s := range shapes {
		fmt.Fprintf(w, "| %s |", s.name)
		for _, c := range all {
			fmt.Fprintf(w, " %s |", growth(c, s.head, s.body))
		}
		fmt.Fprintln(w)
	}
	return nil
}

// growth measures a contestant on one shape at both sizes. A peer that would be late even if it were linear is not run
// at the large one.
func growth(c *contestant, head, body string) string {
	cell, perByte := "", [2]float64{}
	for i, size := range []int{small, large} {
		if i == 1 && perByte[0]*large > float64(*limit) {
			return cell + " → late"
		}
		input := append([]byte(head), bytes.Repeat([]byte(body), size/len(body))...)
		_, took, err := c.median(input)
		perByte[i] = float64(took) / float64(len(input))
		if i == 1 {
			cell += " → "
		}
		switch {
		case errors.Is(err, errLate):
			return cell + "late"
		case err != nil && took == 0:
			return cell + "✗ (it ended)"
		case err != nil:
			cell += fmt.Sprintf("%.1f ✗", perByte[i])
		default:
			cell += fmt.Sprintf("%.1f", perByte[i])
		}
	}
	return fmt.Sprintf("%s (%.2f×)", cell, perByte[1]/perByte[0])
}
