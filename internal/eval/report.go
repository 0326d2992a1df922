package eval

import (
	"fmt"
	"io"
	"strings"
)

// Report is everything that one run of an evaluation found.
type Report struct {
	Version     string   `json:"version"` // of unfray
	Model       string   `json:"model"`
	Temperature float64  `json:"temperature"`
	MaxTokens   int      `json:"max_tokens"`
	Modes       []string `json:"modes"` // healing modes, then peers
	Chars       []int    `json:"chars"`
	Sets        []Set    `json:"sets"`
}

// Markdown writes a table for each stratum of each set.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Model %s, temperature %g, %d tokens. In square brackets: 95 %% interval (bootstrap over cuts);\n", r.Model, r.Temperature, r.MaxTokens)
	fmt.Fprintf(&b, "+ and −: cuts won and lost against `%s`; unchanged, passes and first byte are relative to it.\n", r.Modes[0])
	for _, s := range r.Sets {
		for _, st := range s.Strata {
			r.table(&b, s.Name, st)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) table(b *strings.Builder, set string, st Stratum) {
	fmt.Fprintf(b, "\n**%s, %s** (%d cuts)\n\n| mode |", cell(set), st.Name, st.N)
	for _, n := range r.Chars {
		fmt.Fprintf(b, " next %d characters, %% |", n)
	}
	b.WriteString(" unchanged | bits/char | extra passes | first byte × |\n|---|")
	b.WriteString(strings.Repeat("---:|", len(r.Chars)+4) + "\n")
	for i, f := range st.Modes {
		fmt.Fprintf(b, "| %s |", cell(f.Mode))
		if len(f.Match) == 0 {
			b.WriteString(strings.Repeat(" – |", len(r.Chars)+4) + "\n")
			continue
		}
		for _, m := range f.Match {
			b.WriteString(" " + matchCell(m, i > 0) + " |")
		}
		fmt.Fprintf(b, " %s | %s | %s | %s |\n",
			number(f.Unchanged, 100, "%.1f %%"), bitsCell(f.Bits), number(f.Passes, 1, "%.2f"), number(f.FirstByte, 1, "%.2f"))
	}
	for _, f := range st.Modes {
		if f.Missing > 0 && len(f.Match) > 0 {
			fmt.Fprintf(b, "\n%s has no result for %d of the cuts; they count as wrong.\n", cell(f.Mode), f.Missing)
		}
	}
}

func matchCell(m Match, compared bool) string {
	if m.N == 0 {
		return "–"
	}
	s := fmt.Sprintf("%.1f [%.1f–%.1f]", 100*m.Mean, 100*m.Low, 100*m.High)
	if compared {
		s += fmt.Sprintf(" +%d −%d", m.Wins, m.Losses)
	}
	return s
}

func bitsCell(b *Interval) string {
	if b == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f [%.3f–%.3f]", b.Mean, b.Low, b.High)
}

func number(v *float64, scale float64, format string) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v*scale)
}

// cell makes a name safe for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ").Replace(s)
}
