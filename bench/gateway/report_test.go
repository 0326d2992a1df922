//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRowOf(t *testing.T) {
	ms := time.Millisecond
	direct := []figure{{p50: 1 * ms, p99: 2 * ms, perSecond: 1000}, {p50: 10 * ms, p99: 20 * ms, perSecond: 100}, {p50: 2 * ms, p99: 3 * ms, perSecond: 500}}
	own := []figure{
		{p50: 3 * ms, p99: 5 * ms, perSecond: 500, cpu: 30 * ms, requests: 100},
		{p50: 11 * ms, p99: 20 * ms, perSecond: 90, cpu: 10 * ms, requests: 50},
		{p50: 5 * ms, p99: 7 * ms, perSecond: 200, cpu: 20 * ms, requests: 150},
	}
	r := rowOf(own, direct)
	// The slow second round is slow for both: differences and shares are taken within a round.
	if r.p50 != 5*ms || r.addedP50 != 2*ms || r.addedP99 != 3*ms || r.share != 0.5 || r.perSecond != 200 {
		t.Errorf("%+v", r)
	}
	if r.lowestP50 != 1*ms || r.highestP50 != 3*ms || r.cpu != 200*time.Microsecond {
		t.Errorf("%+v", r)
	}
}

func TestMedian(t *testing.T) {
	of := func(all ...float64) float64 {
		var f []figure
		for _, x := range all {
			f = append(f, figure{perSecond: x})
		}
		return median(f, func(f figure) float64 { return f.perSecond })
	}
	if of() != 0 || of(3) != 3 || of(3, 1) != 2 || of(9, 1, 3) != 3 {
		t.Error(of(), of(3), of(3, 1), of(9, 1, 3))
	}
}

// Every line of a table has as many cells as its head.
func TestTables(t *testing.T) {
	names := []string{"direct", "nginx", "Envoy", "LiteLLM"}
	b := &bench{}
	for i, name := range names {
		p := &peer{name: name, version: "1"}
		if i > 0 {
			p.command = []string{"x"}
			p.process = &process{}
		}
		b.peers = append(b.peers, p)
	}
	for k := range workloads {
		b.figures = append(b.figures, nil)
		for i := range names {
			b.figures[k] = append(b.figures[k], []figure{{p50: time.Duration(i+1) * time.Millisecond, p99: time.Second, perSecond: 1000 / float64(i+1), requests: 10}})
		}
	}
	var out strings.Builder
	if err := b.print(&out); err != nil {
		t.Fatal(err)
	}
	cells := 0
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		if n := strings.Count(line, "|"); cells != 0 && n != cells {
			t.Errorf("%d cells, want %d: %s", n, cells, line)
		} else {
			cells = n
		}
	}
	if !strings.Contains(out.String(), "| nginx 1 | 2.00 | 1.00 (1.00–1.00) | 0.500 | 1000 | 0.000 | 500 | 0.50 | 2.00 | 0 |") {
		t.Error(out.String())
	}
	b.figures[0][1][0].wrong, b.figures[0][1][0].why = 2, errors.New("some reason")
	if err := b.print(&out); err == nil || !strings.Contains(err.Error(), "some reason") {
		t.Errorf("wrong answers are no error: %v", err)
	}
}
