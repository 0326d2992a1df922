package textrepair

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestHostileTwo(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 44))
	ss := seeds()
	end := time.Now().Add(15 * time.Second)
	n := 0
	for time.Now().Before(end) {
		var in []byte
		for range 1 + rng.IntN(5) {
			s := ss[rng.IntN(len(ss))]
			if s == "" {
				continue
			}
			lo := rng.IntN(len(s))
			hi := lo + rng.IntN(min(200, len(s)-lo)+1)
			in = append(in, s[lo:hi]...)
		}
		for range rng.IntN(4) {
			if len(in) > 0 {
				in[rng.IntN(len(in))] = byte(rng.IntN(256))
			}
		}
		at := time.Now()
		o := styles[rng.IntN(len(styles))]
		r := Repair(in, o)
		checkReceipt(t, in, r)
		checkStable(t, in, o, r)
		checkStream(t, in, o, r, func() int { return 1 + rng.IntN(9) })
		if d := time.Since(at); d > 300*time.Millisecond {
			t.Errorf("%v: %q", d, in)
		}
		n++
	}
	t.Log(n)
}
