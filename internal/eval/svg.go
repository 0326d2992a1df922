package eval

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Measures of the plot, in SVG user units.
const (
	plotLeft   = 44  // room for the axis' numbers
	plotTop    = 56  // room for the legend
	panelWide  = 350 // a panel with its margin
	panelHigh  = 190
	chartWide  = 300
	chartHigh  = 130
	groupShare = 0.8 // of a group's width that bars take
)

// plotStyle colours by the reader's scheme. The bars' colours (Okabe and Ito's,
// told apart also by colour-blind readers) stand on either ground.
const plotStyle = `
text { font: 11px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; }
.ground { fill: #ffffff; }
.grid { stroke: #1f2328; stroke-opacity: .15; }
.bound { stroke: #1f2328; stroke-opacity: .75; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .ground { fill: #0d1117; }
  .grid, .bound { stroke: #e6edf3; }
}
`

var plotColours = []string{"#8c8c8c", "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#0072b2", "#b8a800"}

// SVG draws the shares of exact matches: a row of panels for each set, a panel
// for each number of characters, bars by stratum and mode with their intervals.
func (r *Report) SVG(w io.Writer) error {
	var b strings.Builder
	wide := plotLeft + max(panelWide*len(r.Chars), legendWidth(r.Modes))
	high := plotTop + panelHigh*len(r.Sets)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", wide, high, wide, high)
	fmt.Fprintf(&b, "<title>Exact matches of the next characters by healing mode, %s</title>\n<style>%s</style>\n", escape(r.Model), plotStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", wide, high)
	x := plotLeft
	for i, mode := range r.Modes {
		fmt.Fprintf(&b, `<rect x="%d" y="12" width="11" height="11" fill="%s"/><text x="%d" y="22">%s</text>`+"\n", x, colour(i), x+16, escape(mode))
		x += entryWidth(mode)
	}
	for row, s := range r.Sets {
		for col, chars := range r.Chars {
			fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", plotLeft+panelWide*col, plotTop+panelHigh*row)
			fmt.Fprintf(&b, `<text class="title" x="0" y="-8">%s: next %d characters, %%</text>`+"\n", escape(s.Name), chars)
			panel(&b, s.Strata, col)
			b.WriteString("</g>\n")
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// panel draws one chart. Its axis ends at the next ten above the highest bound.
func panel(b *strings.Builder, strata []Stratum, col int) {
	top := 0.1
	for _, st := range strata {
		for _, f := range st.Modes {
			for top < 1 && col < len(f.Match) && f.Match[col].High > top+1e-9 {
				top += 0.1
			}
		}
	}
	y := func(share float64) float64 { return chartHigh * (1 - share/top) }
	for _, share := range []float64{0, top / 2, top} {
		fmt.Fprintf(b, `<line class="grid" x1="0" x2="%d" y1="%.1f" y2="%.1f"/><text x="-6" y="%.1f" text-anchor="end">%.0f</text>`+"\n", chartWide, y(share), y(share), y(share)+4, 100*share)
	}
	group := float64(chartWide) / float64(len(strata))
	for g, st := range strata {
		bar := group * groupShare / float64(max(1, len(st.Modes)))
		left := group*float64(g) + group*(1-groupShare)/2
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s (%d)</text>`+"\n", group*(float64(g)+0.5), chartHigh+16, st.Name, st.N)
		for i, f := range st.Modes {
			if col >= len(f.Match) || f.Match[col].N == 0 {
				continue
			}
			m, x := f.Match[col], left+bar*float64(i)
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s: %.1f %%</title></rect>`, x, y(m.Mean), bar*0.9, chartHigh-y(m.Mean), colour(i), escape(f.Mode), 100*m.Mean)
			fmt.Fprintf(b, `<line class="bound" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x+bar*0.45, x+bar*0.45, y(m.Low), y(m.High))
		}
	}
}

// entryWidth is the room for a mode in the legend; its text is at most 7 units a
// character.
func entryWidth(mode string) int { return 34 + 7*utf8.RuneCountInString(mode) }

func legendWidth(modes []string) (n int) {
	for _, m := range modes {
		n += entryWidth(m)
	}
	return n
}

func colour(i int) string { return plotColours[i%len(plotColours)] }

func escape(s string) string {
	var b bytes.Buffer
	// A bytes.Buffer takes every write.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
