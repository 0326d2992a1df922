package eval

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Run is what one mode did at one cut.
type Run struct {
	Text string `json:"text"`
	// Bits is what the first TruthRunes characters of the truth cost; nil if
	// that is not known.
	Bits *float64 `json:"bits,omitempty"`
	// Passes is how many forward passes there were beyond one for each token of
	// the continuation.
	Passes *int `json:"extra_passes,omitempty"`
	// FirstByte is the time to the first byte of the continuation, in seconds.
	FirstByte *float64 `json:"first_byte_s,omitempty"`
	// Notes are the codes of what was done in another way than asked.
	Notes []string `json:"notes,omitempty"`
}

// Row is a cut with what each mode did there; nil for one that has no result.
type Row struct {
	Cut
	// TruthRunes is how many characters Bits speaks of.
	TruthRunes int    `json:"truth_chars"`
	Runs       []*Run `json:"runs"`
}

// Interval is a mean with the 95 % interval of its bootstrap.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Match says how often the first characters were those of the truth, over the
// cuts whose truth has so many.
type Match struct {
	Chars int `json:"chars"`
	N     int `json:"n"`
	Interval
	Wins   int `json:"wins"`   // right where the first mode is wrong
	Losses int `json:"losses"` // wrong where the first mode is right
}

// Figures are those of one mode in one stratum. What is not known, or speaks of
// a comparison with the first mode in the first mode itself, is nil.
type Figures struct {
	Mode    string  `json:"mode"`
	Match   []Match `json:"match"`
	Missing int     `json:"missing,omitempty"` // cuts without a result; they count as wrong
	// Unchanged is the share of cuts whose first characters, the most that are
	// compared, are those of the first mode.
	Unchanged *float64 `json:"unchanged,omitempty"`
	// Bits per character of the truth, over the BitsN cuts where every mode that
	// has bits at all has them.
	Bits  *Interval `json:"bits_per_char,omitempty"`
	BitsN int       `json:"bits_n,omitempty"`
	// Passes is the mean number of forward passes beyond those of the first mode.
	Passes *float64 `json:"extra_passes,omitempty"`
	// FirstByte is the median over cuts of the time to the first new byte,
	// divided by that of the first mode.
	FirstByte *float64 `json:"first_byte_ratio,omitempty"`
}

// Stratum is a part of a set's cuts.
type Stratum struct {
	Name  string    `json:"stratum"` // dirty, clean, all
	N     int       `json:"n"`
	Modes []Figures `json:"modes"`
}

// Set is a file of cuts.
type Set struct {
	Name   string    `json:"set"`
	Strata []Stratum `json:"strata"`
	Rows   []Row     `json:"rows"`
}

// Summarize makes the figures of a set from its rows. modes names the runs of
// each row; the first is what the others are compared with. chars are the numbers
// of characters to compare, in ascending order.
func Summarize(name string, modes []string, chars []int, rows []Row) Set {
	s := Set{Name: name, Rows: rows}
	for _, part := range []struct {
		name string
		in   func(*Row) bool
	}{
		{"dirty", func(r *Row) bool { return r.Dirty }},
		{"clean", func(r *Row) bool { return !r.Dirty }},
		{"all", func(*Row) bool { return true }},
	} {
		var in []*Row
		for i := range rows {
			if part.in(&rows[i]) {
				in = append(in, &rows[i])
			}
		}
		st := Stratum{Name: part.name, N: len(in)}
		bits := bitRows(in, len(modes))
		for i, mode := range modes {
			st.Modes = append(st.Modes, figures(mode, i, chars, in, bits))
		}
		s.Strata = append(s.Strata, st)
	}
	return s
}

func figures(mode string, i int, chars []int, rows, bits []*Row) Figures {
	f := Figures{Mode: mode}
	for _, r := range rows {
		if r.Runs[i] == nil {
			f.Missing++
		}
	}
	if f.Missing == len(rows) {
		return f
	}
	for _, n := range chars {
		f.Match = append(f.Match, match(i, n, rows))
	}
	if hasBits(i, bits) {
		var sums, lengths []float64
		for _, r := range bits {
			sums = append(sums, *r.Runs[i].Bits)
			lengths = append(lengths, float64(r.TruthRunes))
		}
		b := bootstrap(sums, lengths)
		f.Bits, f.BitsN = &b, len(bits)
	}
	if i > 0 {
		f.compare(i, chars[len(chars)-1], rows)
	}
	return f
}

// compare fills in what is relative to the first mode, over the cuts where both
// have it.
func (f *Figures) compare(i, chars int, rows []*Row) {
	var same, passes, ratios []float64
	for _, r := range rows {
		a, b := r.Runs[0], r.Runs[i]
		if a == nil || b == nil {
			continue
		}
		was, _ := head(a.Text, chars)
		is, _ := head(b.Text, chars)
		same = append(same, indicator(was == is))
		if a.Passes != nil && b.Passes != nil {
			passes = append(passes, float64(*b.Passes-*a.Passes))
		}
		if a.FirstByte != nil && b.FirstByte != nil && *a.FirstByte > 0 {
			ratios = append(ratios, *b.FirstByte / *a.FirstByte)
		}
	}
	f.Unchanged, f.Passes, f.FirstByte = mean(same), mean(passes), median(ratios)
}

func match(i, chars int, rows []*Row) Match {
	m := Match{Chars: chars}
	var hits []float64
	for _, r := range rows {
		truth, long := head(r.Truth, chars)
		if !long {
			continue
		}
		hit := func(run *Run) bool {
			if run == nil {
				return false
			}
			text, long := head(run.Text, chars)
			return long && text == truth
		}
		was, is := hit(r.Runs[0]), hit(r.Runs[i])
		hits = append(hits, indicator(is))
		if is && !was {
			m.Wins++
		} else if was && !is {
			m.Losses++
		}
	}
	m.N, m.Interval = len(hits), bootstrap(hits, nil)
	return m
}

// bitRows are the rows at which every mode that has bits anywhere has them.
func bitRows(rows []*Row, modes int) []*Row {
	var list []*Row
	for _, r := range rows {
		ok := false
		for i := range modes {
			if r.Runs[i] != nil && r.Runs[i].Bits != nil {
				ok = true
			} else if hasBits(i, rows) {
				ok = false
				break
			}
		}
		if ok {
			list = append(list, r)
		}
	}
	return list
}

func hasBits(i int, rows []*Row) bool {
	return slices.ContainsFunc(rows, func(r *Row) bool { return r.Runs[i] != nil && r.Runs[i].Bits != nil })
}

// resamples is how often the bootstrap draws the cuts anew.
const resamples = 2000

// bootstrap is the mean of values, or their sum over that of the weights, with
// its percentile interval. The seed is fixed: the same values give the same
// interval.
func bootstrap(values, weights []float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	at := func(k int) (float64, float64) {
		if weights == nil {
			return values[k], 1
		}
		return values[k], weights[k]
	}
	ratio := func(pick func(k int) int) float64 {
		sum, weight := 0.0, 0.0
		for k := range n {
			v, w := at(pick(k))
			sum, weight = sum+v, weight+w
		}
		return sum / weight
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	draws := make([]float64, resamples)
	for i := range draws {
		draws[i] = ratio(func(int) int { return rng.IntN(n) })
	}
	slices.Sort(draws)
	return Interval{
		Mean: ratio(func(k int) int { return k }),
		Low:  draws[resamples*25/1000],
		High: draws[resamples*975/1000-1],
	}
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func mean(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	sum /= float64(len(values))
	return &sum
}

func median(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare[float64])
	m := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	if math.IsNaN(m) {
		return nil
	}
	return &m
}
