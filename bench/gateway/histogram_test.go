//go:build unix

package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramBuckets(t *testing.T) {
	values := []time.Duration{0, 1, 255, 256, 257, 511, 512, 1 << 20, 1<<20 + 1<<13 - 1, 1<<40 + 12345, math.MaxInt64}
	for shift := range 62 {
		values = append(values, 1<<shift-1, 1<<shift, 1<<shift+1)
	}
	slices.Sort(values)
	last := 0
	for _, v := range values {
		i := bucket(v)
		if i < last {
			t.Fatalf("bucket(%d) = %d, below %d of a smaller value", v, i, last)
		}
		last = i
		if m := middle(i); bucket(m) != i {
			t.Errorf("middle(%d) = %d is in bucket %d", i, m, bucket(m))
		} else if off := math.Abs(float64(m - v)); v < 256 && off != 0 || off > 0.004*float64(v) {
			t.Errorf("%d ns counts as %d", v, m)
		}
	}
}

// quantile is compared with the one of all values, sorted.
func TestHistogramQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 3000; n = n*2 + 1 {
		var whole, left, right histogram
		var all []time.Duration
		for i := range n {
			d := time.Duration(math.Exp(rng.Float64() * 22))
			all = append(all, d)
			whole.add(d)
			[]*histogram{&left, &right}[i%2].add(d)
		}
		left.merge(&right)
		if left != whole {
			t.Fatalf("%d values: two halves merged are not the whole", n)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[max(1, int(math.Ceil(q*float64(n))))-1]
			if got := whole.quantile(q); bucket(got) != bucket(want) {
				t.Errorf("%d values: quantile %v is %v, want %v", n, q, got, want)
			}
		}
		if whole.quantile(1) > whole.max {
			t.Errorf("quantile 1 is above the largest value")
		}
	}
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}
