// Package plot draws charts as SVG and joins them with tables to one HTML page.
// What it writes needs no script, no font and no network, and follows the
// reader's choice of a light or a dark ground.
package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Measures of a chart, in SVG user units.
const (
	wide        = 680
	left        = 60 // room for the numbers of the vertical axis
	right       = 16
	top         = 30 // room for the title
	chart       = 240
	below       = 44 // room for the numbers and the name of the horizontal axis
	legendLine  = 20
	barHigh     = 20
	barGap      = 8
	labelWide   = 180 // room for the names of bars
	letter      = 6.2 // a letter of the labels, about
	maxLegend   = 60  // runes of a name
	maxBarLabel = 27  // runes
)

// style colours by the reader's scheme. The colours of series are Okabe and
// Ito's, which colour-blind readers tell apart, and stand on either ground.
const style = `
text { font: 11px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 13px; }
.ground { fill: #ffffff; }
.grid { stroke: #1f2328; stroke-opacity: .15; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .ground { fill: #0d1117; }
  .grid { stroke: #e6edf3; }
}
`

var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#b8a800"}

func colour(i int) string { return colours[i%len(colours)] }

// dash tells series of one colour apart.
func dash(i int) string {
	if n := i / len(colours); n > 0 {
		return fmt.Sprintf(` stroke-dasharray="%d 3"`, 2+3*n)
	}
	return ""
}

// A Figure is something that draws itself.
type Figure interface {
	// SVG writes the figure as a document of its own, or to stand in HTML.
	SVG(w io.Writer) error
}

// Series is a line of points, in ascending order of X. Points with a Y that is
// not finite are left out, and the line has a gap there.
type Series struct {
	Name string
	X, Y []float64
}

// Lines is a chart of series.
type Lines struct {
	Title  string
	XName  string
	LogX   bool // X must be positive
	Share  bool // Y are shares, shown as percent of an axis from 0 to 100
	Series []Series
}

// Part is a part of every bar.
type Part struct {
	Name   string
	Values []float64 // one for each bar, not negative
}

// Bars is a chart of horizontal bars, each of parts one after another.
type Bars struct {
	Title  string
	Labels []string
	Parts  []Part
	// Whole draws all bars equally long: the parts are shares of the bar.
	Whole bool
	Unit  string // of the values, such as "tokens"
}

// document writes what every figure begins and ends with.
func document(w io.Writer, title string, high int, names []string, body func(b *strings.Builder)) error {
	var b strings.Builder
	rows := legend(names, nil)
	high += rows * legendLine
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", wide, high, wide, high)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(title), style)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d"/>`+"\n", wide, high)
	fmt.Fprintf(&b, `<text class="title" x="12" y="19">%s</text>`+"\n", escape(title))
	legend(names, func(i, x, row int, name string) {
		y := top + row*legendLine
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="11" height="11" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y, colour(i), x+16, y+10, escape(name))
	})
	fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", top+rows*legendLine)
	body(&b)
	b.WriteString("</g>\n</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// legend places names in rows and returns how many rows there are.
func legend(names []string, at func(i, x, row int, name string)) int {
	if len(names) == 0 {
		return 0
	}
	x, row := 12, 0
	for i, name := range names {
		name = short(name, maxLegend)
		need := 16 + int(letter*float64(utf8.RuneCountInString(name))) + 18
		if x+need > wide && x > 12 {
			x, row = 12, row+1
		}
		if at != nil {
			at(i, x, row, name)
		}
		x += need
	}
	return row + 1
}

// SVG implements [Figure].
func (l *Lines) SVG(w io.Writer) error {
	var names []string
	for _, s := range l.Series {
		names = append(names, s.Name)
	}
	return document(w, l.Title, top+chart+below, names, l.draw)
}

func (l *Lines) draw(b *strings.Builder) {
	lowX, highX := math.Inf(1), math.Inf(-1)
	highY := 0.0
	for _, s := range l.Series {
		for i := range s.X {
			if finite(s.Y[i]) && finite(l.x(s.X[i])) {
				lowX, highX = min(lowX, l.x(s.X[i])), max(highX, l.x(s.X[i]))
				highY = max(highY, s.Y[i])
			}
		}
	}
	if l.Share || highY == 0 {
		highY = 1
	}
	if lowX > highX {
		lowX, highX = 0, 1
	}
	if lowX == highX {
		lowX, highX = lowX-0.5, highX+0.5
	}
	const plotWide = wide - left - right
	px := func(x float64) float64 { return left + plotWide*(l.x(x)-lowX)/(highX-lowX) }
	py := func(y float64) float64 { return 8 + chart*(1-y/highY) }
	for i := range 5 {
		y := highY * float64(i) / 4
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, wide-right, py(y), py(y), left-6, py(y)+4, l.yLabel(y))
	}
	for i := range 5 {
		x := lowX + (highX-lowX)*float64(i)/4
		if l.LogX {
			x = math.Exp(x)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", px(x), chart+24, compact(x))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+plotWide/2, chart+40, escape(l.XName))
	for i, s := range l.Series {
		var path strings.Builder
		move := byte('M')
		for k := range s.X {
			if !finite(s.Y[k]) || !finite(l.x(s.X[k])) {
				move = 'M'
				continue
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", move, px(s.X[k]), py(s.Y[k]))
			move = 'L'
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", path.String(), colour(i), dash(i))
		if len(s.X) > maxDots {
			continue
		}
		for k := range s.X {
			if finite(s.Y[k]) && finite(l.x(s.X[k])) {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s at %s</title></circle>`+"\n", px(s.X[k]), py(s.Y[k]), colour(i), escape(s.Name), l.yLabel(s.Y[k]), compact(s.X[k]))
			}
		}
	}
}

// maxDots is how many points of a series are marked.
const maxDots = 40

func (l *Lines) x(x float64) float64 {
	if l.LogX {
		return math.Log(x)
	}
	return x
}

func (l *Lines) yLabel(y float64) string {
	if l.Share {
		return strconv.FormatFloat(100*y, 'f', 1, 64) + " %"
	}
	return compact(y)
}

// SVG implements [Figure].
func (c *Bars) SVG(w io.Writer) error {
	var names []string
	for _, p := range c.Parts {
		names = append(names, p.Name)
	}
	return document(w, c.Title, top+12+len(c.Labels)*(barHigh+barGap), names, c.draw)
}

func (c *Bars) draw(b *strings.Builder) {
	longest := 0.0
	sums := make([]float64, len(c.Labels))
	for i := range c.Labels {
		for _, p := range c.Parts {
			sums[i] += p.Values[i]
		}
		longest = max(longest, sums[i])
	}
	for i, label := range c.Labels {
		y := 8 + i*(barHigh+barGap)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWide-6, y+14, escape(short(label, maxBarLabel)))
		full := longest
		if c.Whole {
			full = sums[i]
		}
		if full == 0 {
			continue
		}
		x := float64(labelWide)
		for k, p := range c.Parts {
			width := (wide - right - labelWide) * p.Values[i] / full
			if width > 0 {
				fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`+"\n", x, y, width, barHigh, colour(k),
					escape(fmt.Sprintf("%s: %s %s (%.1f %%)", p.Name, compact(p.Values[i]), c.Unit, 100*p.Values[i]/sums[i])))
			}
			x += width
		}
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// compact writes a number in a few digits: 950, 12.5k, 3.1M.
func compact(f float64) string {
	abs := math.Abs(f)
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if abs >= u.size {
			if u.name == "k" {
				u.size = 1e3
			}
			return strconv.FormatFloat(f/u.size, 'g', 3, 64) + u.name
		}
	}
	if abs >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// short cuts s to at most n runes.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// escape makes text safe in XML; what no escape can write there is replaced.
func escape(s string) string {
	var b strings.Builder
	// A strings.Builder takes every write.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
