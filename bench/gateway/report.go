//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// A row is what the tables show of one peer under one workload: medians over the rounds.
type row struct {
	p50, p99, first       time.Duration
	addedP50, addedP99    time.Duration // over the direct figures of the same round
	addedFirst            time.Duration
	perSecond, share      float64 // share: of the direct figure of the same round
	cpu                   time.Duration
	lowestP50, highestP50 time.Duration // added, over the rounds
}

// rowOf makes a row of a peer's figures and those of the mock without a gateway.
func rowOf(own, direct []figure) row {
	r := row{
		p50:       median(own, func(f figure) time.Duration { return f.p50 }),
		p99:       median(own, func(f figure) time.Duration { return f.p99 }),
		first:     median(own, func(f figure) time.Duration { return f.first }),
		perSecond: median(own, func(f figure) float64 { return f.perSecond }),
	}
	var added []figure
	requests := 0
	for i, f := range own {
		d := direct[i]
		delta := figure{p50: f.p50 - d.p50, p99: f.p99 - d.p99, first: f.first - d.first, perSecond: f.perSecond / max(d.perSecond, 1e-9)}
		added = append(added, delta)
		r.cpu += f.cpu
		requests += f.requests
		if i == 0 || delta.p50 < r.lowestP50 {
			r.lowestP50 = delta.p50
		}
		if i == 0 || delta.p50 > r.highestP50 {
			r.highestP50 = delta.p50
		}
	}
	r.addedP50 = median(added, func(f figure) time.Duration { return f.p50 })
	r.addedP99 = median(added, func(f figure) time.Duration { return f.p99 })
	r.addedFirst = median(added, func(f figure) time.Duration { return f.first })
	r.share = median(added, func(f figure) float64 { return f.perSecond })
	r.cpu /= time.Duration(max(1, requests))
	return r
}

// print writes the tables. Wrong answers are an error.
func (b *bench) print(w io.Writer) error {
	envoy, litellm := b.find("Envoy"), b.find("LiteLLM")
	for k, load := range workloads {
		fmt.Fprintf(w, "| %s | p50, ms | added p50 (rounds) | of Envoy's | p99, ms | added p99 |", load.name)
		if load.stream {
			fmt.Fprint(w, " first event, added |")
		}
		fmt.Fprint(w, " requests/s | of direct | of LiteLLM's | CPU, µs a request |\n|---|---:|---:|---:|---:|---:|")
		if load.stream {
			fmt.Fprint(w, "---:|")
		}
		fmt.Fprint(w, "---:|---:|---:|---:|\n")
		for i, p := range b.peers {
			r := rowOf(b.figures[k][i], b.figures[k][0])
			if p.command == nil {
				fmt.Fprintf(w, "| %s | %s | | | %s | |", p.title(), ms(r.p50), ms(r.p99))
				if load.stream {
					fmt.Fprint(w, " |")
				}
				fmt.Fprintf(w, " %.0f | | %s | |\n", r.perSecond, b.ratio(litellm, k, func(o row) float64 { return r.perSecond / o.perSecond }))
				continue
			}
			fmt.Fprintf(w, "| %s | %s | %s (%s–%s) | %s | %s | %s |", p.title(), ms(r.p50), ms(r.addedP50), ms(r.lowestP50), ms(r.highestP50),
				b.ratio(envoy, k, func(o row) float64 { return float64(r.addedP50) / float64(max(0, o.addedP50)) }), ms(r.p99), ms(r.addedP99))
			if load.stream {
				fmt.Fprintf(w, " %s |", ms(r.addedFirst))
			}
			fmt.Fprintf(w, " %.0f | %.2f | %s | %d |\n", r.perSecond, r.share,
				b.ratio(litellm, k, func(o row) float64 { return r.perSecond / o.perSecond }), r.cpu.Microseconds())
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| memory, MB | processes | RSS, started | RSS, loaded | PSS, loaded |\n|---|---:|---:|---:|---:|\n")
	for _, p := range b.peers {
		if p.process != nil {
			fmt.Fprintf(w, "| %s | %d | %s | %s | %s |\n", p.title(), p.loaded.processes, mb(p.idle.rss), mb(p.loaded.rss), mb(p.loaded.pss))
		}
	}
	return b.wrong(w)
}

// wrong reports wrong answers and errors, and says how many answers were right.
func (b *bench) wrong(w io.Writer) (err error) {
	total := 0
	for k := range b.figures {
		for i, figures := range b.figures[k] {
			for _, f := range figures {
				total += f.requests - f.wrong
				if f.wrong > 0 {
					err = errors.Join(err, fmt.Errorf("%s, %s: %d wrong answers: %w", workloads[k].name, b.peers[i].name, f.wrong, f.why))
				}
			}
		}
	}
	for _, p := range b.peers {
		if p.first != nil {
			err = errors.Join(err, fmt.Errorf("%s, before the first round: %w", p.name, p.first))
		}
	}
	fmt.Fprintf(w, "\n%d answers were as they should be.\n", total)
	return err
}

func (b *bench) find(name string) int {
	for i, p := range b.peers {
		if p.name == name {
			return i
		}
	}
	return -1
}

// ratio returns what f gives for a peer's row, or nothing where the peer was not measured.
func (b *bench) ratio(peer, workload int, f func(row) float64) string {
	if peer < 0 {
		return ""
	}
	return short(f(rowOf(b.figures[workload][peer], b.figures[workload][0])))
}

// title returns the peer's name with the version of its program.
func (p *peer) title() string {
	if p.version == "" {
		return p.name
	}
	program, mode, ok := strings.Cut(p.name, ",")
	if ok {
		mode = "," + mode
	}
	return program + " " + p.version + mode
}

// short formats a number with about three digits. What is no finite number is a dash: one of two figures drowned in noise.
func short(x float64) string {
	switch size := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "–"
	case size >= 100:
		return fmt.Sprintf("%.0f", x)
	case size >= 10:
		return fmt.Sprintf("%.1f", x)
	case size >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func ms(d time.Duration) string { return short(float64(d) / float64(time.Millisecond)) }

func mb(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/1e6) }
