// Package plot draws charts as SVG and joins them with tables to one HTML page.
// What it writes needs no script, no font and no network, and follows the
// reader's choice of a light or a dark ground.
package plot

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
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
	minLabel    = 180 // room for the names of bars
	letter      = 6.2 // a letter of the labels, about
	maxLegend   = 60  // runes of a name
	maxBarLabel = 45  // runes
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

// Sort orders the points by X.
func (s *Series) Sort() {
	order := make([]int, len(s.X))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.X[a], s.X[b]) })
	x, y := slices.Clone(s.X), slices.Clone(s.Y)
	for i, from := range order {
		s.X[i], s.Y[i] = x[from], y[from]
	}
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
		paint := fmt.Sprintf(`x="%d" y="%d" width="11" height="11" fill="%s"`, x, y, colour(i))
		if i >= len(colours) { // again the same colours, with dashes
			paint = fmt.Sprintf(`x="%d" y="%d" width="9" height="9" fill="none" stroke="%s" stroke-width="2"`, x+1, y+1, colour(i))
		}
		fmt.Fprintf(&b, `<rect %s/><text x="%d" y="%d">%s</text>`+"\n", paint, x+16, y+10, escape(name))
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
	ticksY := []float64{0, .25, .5, .75, 1}
	if !l.Share && highY > 0 {
		ticksY = ticks(0, highY)
		if last := ticksY[len(ticksY)-1]; last < highY {
			ticksY = append(ticksY, last+ticksY[1]-ticksY[0])
		}
	}
	highY = ticksY[len(ticksY)-1]
	if lowX > highX {
		lowX, highX = 0, 1
		if l.LogX {
			highX = math.Log(10)
		}
	}
	if lowX == highX {
		lowX, highX = lowX-0.5, highX+0.5
	}
	const plotWide = wide - left - right
	px := func(x float64) float64 { return left + plotWide*(l.x(x)-lowX)/(highX-lowX) }
	py := func(y float64) float64 { return 8 + chart*(1-y/highY) }
	for _, y := range ticksY {
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, wide-right, py(y), py(y), left-6, py(y)+4, l.yTick(y))
	}
	ticksX := ticks(lowX, highX)
	if l.LogX {
		ticksX = logTicks(math.Exp(lowX), math.Exp(highX))
	}
	for _, x := range ticksX {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", px(x), px(x), chart+8, chart+12, px(x), chart+24, Compact(x))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+plotWide/2, chart+40, escape(l.XName))
	level := l.levels(px, py)
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
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", path.String(), colour(i), dash(max(level[i], i/len(colours))))
		if len(s.X) > maxDots {
			continue
		}
		for k := range s.X {
			if finite(s.Y[k]) && finite(l.x(s.X[k])) {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"><title>%s: %s at %s</title></circle>`+"\n", px(s.X[k]), py(s.Y[k]), max(1.5, 4-float64(level[i])), colour(i), escape(s.Name), l.yLabel(s.Y[k]), Compact(s.X[k]))
			}
		}
	}
}

// levels numbers series that lie on one another, in part at least: those of one
// level do not, so each can be seen below those of the next.
func (l *Lines) levels(px, py func(float64) float64) []int {
	const near, most = 2.5, 3000 // units; points that are compared
	levels := make([]int, len(l.Series))
	points := make([][][2]float64, len(l.Series))
	count := 0
	for i, s := range l.Series {
		for k := range s.X {
			points[i] = append(points[i], [2]float64{px(s.X[k]), py(s.Y[k])})
		}
		if count += len(s.X); count > most {
			break
		}
		for j := range i {
			if levels[j] >= levels[i] && touch(points[i], points[j], near) {
				levels[i] = levels[j] + 1
			}
		}
	}
	return levels
}

// touch says whether two lines have two points in turn, or their only ones, near
// each other.
func touch(a, b [][2]float64, near float64) bool {
	beside := func(p, q [2]float64) bool { return math.Abs(p[0]-q[0]) <= near && math.Abs(p[1]-q[1]) <= near }
	if len(a) == 1 || len(b) == 1 {
		return len(a) == 1 && len(b) == 1 && beside(a[0], b[0])
	}
	for i := 1; i < len(a); i++ {
		for k := 1; k < len(b); k++ {
			if beside(a[i-1], b[k-1]) && beside(a[i], b[k]) {
				return true
			}
		}
	}
	return false
}

// dash lets the series of lower levels be seen.
func dash(level int) string {
	if level == 0 {
		return ""
	}
	patterns := []string{"8 4", "4 6", "2 3", "10 3 2 3"}
	return ` stroke-dasharray="` + patterns[(level-1)%len(patterns)] + `"`
}

// maxDots is how many points of a series are marked.
const maxDots = 40

func (l *Lines) x(x float64) float64 {
	if l.LogX {
		return math.Log(x)
	}
	return x
}

func (l *Lines) yTick(y float64) string {
	if l.Share {
		return strconv.FormatFloat(100*y, 'f', 0, 64) + " %"
	}
	return Compact(y)
}

// ticks are the multiples, in a range, of a round step: 1, 2 or 5 times a power
// of ten. There are three to seven.
func ticks(low, high float64) (out []float64) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/3)))
	for _, f := range []float64{5, 2} {
		if (high-low)/(step*f) >= 3 {
			step *= f
			break
		}
	}
	first, last := math.Ceil(low/step-1e-9), math.Floor(high/step+1e-9)
	for n := first; n <= last && len(out) < 20; n++ {
		out = append(out, n*step+0) // never -0
	}
	return out
}

// logTicks are round numbers in a range, about evenly apart on a logarithmic axis.
func logTicks(low, high float64) (out []float64) {
	for _, digits := range [][]float64{{1, 2, 5}, {1}} {
		out = out[:0]
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)) && len(out) < 400; e++ {
			for _, d := range digits {
				if t := d * math.Pow(10, e); t >= low*(1-1e-9) && t <= high*(1+1e-9) {
					out = append(out, t)
				}
			}
		}
		if len(out) <= 10 {
			break
		}
	}
	if len(out) < 3 {
		return ticks(low, high)
	}
	for len(out) > 10 { // every other power of ten
		for i := range (len(out) + 1) / 2 {
			out[i] = out[2*i]
		}
		out = out[:(len(out)+1)/2]
	}
	return out
}

func (l *Lines) yLabel(y float64) string {
	if l.Share {
		return strconv.FormatFloat(100*y, 'f', 1, 64) + " %"
	}
	return Compact(y)
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
	labelWide := minLabel
	for _, label := range c.Labels {
		labelWide = max(labelWide, 12+int(letter*float64(min(utf8.RuneCountInString(label), maxBarLabel))))
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
			width := float64(wide-right-labelWide) * p.Values[i] / full
			if width > 0 {
				fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`+"\n", x, y, width, barHigh, colour(k),
					escape(fmt.Sprintf("%s: %s %s (%.1f %%)", p.Name, Compact(p.Values[i]), c.Unit, 100*p.Values[i]/sums[i])))
			}
			x += width
		}
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Compact writes a number in a few digits: 950, 12.5k, 3.1M.
func Compact(f float64) string {
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 3, 64), 64); err == nil && (math.Abs(f) < 1e3 || math.Abs(f) >= 9999.5) {
		f = rounded
	}
	abs := math.Abs(f)
	for _, u := range []struct {
		least, size float64
		name        string
	}{{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}} {
		if abs >= u.least && abs < 1000*u.size {
			return strconv.FormatFloat(f/u.size, 'g', 3, 64) + u.name
		}
	}
	if abs >= 100 && abs < 1e4 {
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
