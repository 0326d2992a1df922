package heal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// raceEnabled says that the race detector slows everything down.
var raceEnabled bool

// symbols are the bytes of the small vocabularies.
const symbols = "ab 'r"

// smallToy is a random tokenizer with fewer than 30 tokens.
func smallToy(t testing.TB, r *rand.Rand) *tokenizer.Tokenizer {
	known := strings.Split(symbols, "")
	var missing []byte
	for b := range 256 {
		if !strings.Contains(symbols, string(rune(b))) {
			missing = append(missing, byte(b))
		}
	}
	var merges [][2]string
	for range 200 {
		a, b := known[r.IntN(len(known))], known[r.IntN(len(known))]
		if len(merges) < 20 && len(a+b) <= 5 && !slices.Contains(known, a+b) {
			known = append(known, a+b)
			merges = append(merges, [2]string{a, b})
		}
	}
	return tokenizertest.BPE(t, gguftest.BPE{Controls: []string{"<|end|>"}, Missing: string(missing), Merges: merges},
		gguftest.Pair{Key: "tokenizer.ggml.eos_token_id", Value: uint32(0)})
}

// toyRow is a model whose probabilities depend on all that stands before.
func toyRow(seed uint64, ids []vocab.ID, n int) []float32 {
	h := seed
	for _, id := range ids {
		h = (h ^ uint64(id+1)) * 0x9e3779b97f4a7c15
		h ^= h >> 31
	}
	r := rand.New(rand.NewPCG(h, seed))
	row := make([]float32, n)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 3)
	}
	return row
}

type toyCase struct {
	tok  *tokenizer.Tokenizer
	text []byte
	ids  []vocab.ID
	plan *Plan
	seed uint64
}

func (c *toyCase) row(path []vocab.ID) []float32 {
	return toyRow(c.seed, slices.Concat(c.plan.Prompt, path), c.tok.Vocab().Len())
}

// toyCases makes prompts that have a choice.
func toyCases(t testing.TB, n int) []toyCase {
	r := rand.New(rand.NewPCG(3, 4))
	if raceEnabled {
		n /= 10
	}
	var cases []toyCase
	for len(cases) < n {
		tok := smallToy(t, r)
		for range 8 {
			text := []byte("ab")
			for range 2 + r.IntN(7) {
				text = append(text, symbols[r.IntN(len(symbols))])
			}
			c := toyCase{tok: tok, text: text, ids: tok.Encode(nil, text), seed: r.Uint64()}
			c.plan = New(tok, c.ids, Exact)
			if c.plan.tree == nil || len(c.plan.Notes) > 0 || tok.Loss(text) != nil {
				continue
			}
			// Those with a node beside the trunk are few.
			if len(c.plan.tree.nodes) > len(c.plan.Trunk) || r.IntN(8) == 0 {
				cases = append(cases, c)
			}
		}
	}
	return cases[:n]
}

// truth enumerates the covers from their definition: every token path that
// spells the pending bytes, whose last token reaches their end or passes it, and
// with which the tokenizer begins some text. It returns their probabilities.
func (c *toyCase) truth(temperature float64, allow func([]byte) bool) map[string]float64 {
	v := c.tok.Vocab()
	// All that may follow the text, as far as it can matter here.
	tails := []string{""}
	for from, i := 0, 0; i < 4; i++ {
		to := len(tails)
		for _, s := range tails[from:to] {
			for _, b := range symbols + "e" { // "'re" is a pretoken, also where "e" is no token
				tails = append(tails, s+string(b))
			}
		}
		from = to
	}
	canonical := map[string]bool{}
	for _, s := range tails {
		whole := c.tok.Encode(nil, append(slices.Clone(c.text), s...))
		for k := len(c.plan.Prompt); k <= len(whole); k++ {
			canonical[fmt.Sprint(whole[len(c.plan.Prompt):k])] = true
		}
	}
	out, sum := map[string]float64{}, 0.0
	var walk func(path []vocab.ID, rest []byte, p float64)
	walk = func(path []vocab.ID, rest []byte, p float64) {
		row := c.row(path)
		norm := 0.0
		for _, l := range row {
			norm += math.Exp(float64(l) / temperature)
		}
		for id := range vocab.ID(v.Len()) {
			b := v.Bytes(id)
			if !v.IsText(id) || len(b) == 0 || string(b[:min(len(b), len(rest))]) != string(rest[:min(len(b), len(rest))]) {
				continue
			}
			next := append(slices.Clone(path), id)
			q := p * math.Exp(float64(row[id])/temperature) / norm
			if len(b) < len(rest) {
				walk(next, rest[len(b):], q)
			} else if canonical[fmt.Sprint(next)] && (allow == nil || len(b) == len(rest) || allow(b[len(rest):])) {
				out[fmt.Sprint(next)] = q
				sum += q
			}
		}
	}
	walk(nil, c.plan.Pending, 1)
	for k := range out {
		out[k] /= sum
	}
	return out
}

// choose runs a choice to its end. eager gives all rows at once.
func (c *toyCase) choose(t testing.TB, s Sampling, rng *rand.Rand, eager bool) (ch *Choice, path []vocab.ID, asked int) {
	t.Helper()
	ch = c.plan.NewChoice(s, nil)
	for i := range c.plan.Trunk {
		ch.Row(c.plan.Trunk[:i], c.row(c.plan.Trunk[:i]))
	}
	if eager {
		for _, n := range c.plan.tree.nodes {
			ch.Row(n.path, c.row(n.path))
		}
	}
	for range 1000 {
		path, done, err := ch.Next(rng)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return ch, path, asked
		}
		asked++
		ch.Row(path, c.row(path))
	}
	t.Fatal("the choice does not end")
	return nil, nil, 0
}

// weights computes the distribution that a choice with all its rows has.
func (c *toyCase) weights(temperature float64, allow func([]byte) bool) map[string]float64 {
	ch := c.plan.NewChoice(Sampling{Temperature: temperature}, allow)
	for _, n := range c.plan.tree.nodes {
		ch.Row(n.path, c.row(n.path))
	}
	out, sum := map[string]float64{}, 0.0
	for _, f := range ch.covers {
		for i, id := range f.ids {
			if ch.isCover(f, id) {
				p := math.Exp(f.at(i).temp)
				out[fmt.Sprint(append(slices.Clone(ch.tree.nodes[f.node].path), id))] += p
				sum += p
			}
		}
	}
	for k := range out {
		out[k] /= sum
	}
	return out
}

func difference(a, b map[string]float64) float64 {
	d := 0.0
	for k := range a {
		d = max(d, math.Abs(a[k]-b[k]))
	}
	for k := range b {
		d = max(d, math.Abs(a[k]-b[k]))
	}
	return d
}

// TestExactIsTheTruth computes the distribution among covers and compares it
// with enumeration.
func TestExactIsTheTruth(t *testing.T) {
	beside := 0
	for _, c := range toyCases(t, 400) {
		for _, temperature := range []float64{1, 0.5, 1.7} {
			if d := difference(c.weights(temperature, nil), c.truth(temperature, nil)); d > 1e-9 {
				t.Fatalf("%q, pending %q, temperature %v: differs by %v\n%v\n%v", c.text, c.plan.Pending, temperature, d, c.weights(temperature, nil), c.truth(temperature, nil))
			}
		}
		if len(c.plan.tree.nodes) > len(c.plan.Trunk) {
			beside++
		}
	}
	if beside < 100 && !raceEnabled {
		t.Errorf("only %d of the cases have a node beside the trunk", beside)
	}
}

// TestExactWithGrammar is the same where not all may follow the prompt.
func TestExactWithGrammar(t *testing.T) {
	for _, c := range toyCases(t, 200) {
		for _, allow := range []func([]byte) bool{
			func(b []byte) bool { return b[0] != 'a' },
			func(b []byte) bool { return !strings.Contains(string(b), "r") && len(b) < 3 },
			func(b []byte) bool { return false },
		} {
			want := c.truth(1, allow)
			if d := difference(c.weights(1, allow), want); d > 1e-9 {
				t.Fatalf("%q, pending %q: differs by %v", c.text, c.plan.Pending, d)
			}
			ch := c.plan.NewChoice(Sampling{Temperature: 1}, allow)
			for i := range c.plan.Trunk {
				ch.Row(c.plan.Trunk[:i], c.row(c.plan.Trunk[:i]))
			}
			rng := rand.New(rand.NewPCG(c.seed, 1))
			for {
				path, done, err := ch.Next(rng)
				if err != nil {
					t.Fatal(err)
				}
				if !done {
					ch.Row(path, c.row(path))
					continue
				}
				if _, ok := want[fmt.Sprint(path)]; !ok && !slices.Equal(path, c.plan.Trunk) {
					t.Fatalf("%q: drew %v, which is refused", c.text, path)
				}
				break
			}
		}
	}
}

// TestLazyIsEager compares best first with all rows known, and both with the
// definition.
func TestLazyIsEager(t *testing.T) {
	rows, nodes := 0, 0
	for _, c := range toyCases(t, 400) {
		_, lazy, asked := c.choose(t, Sampling{}, nil, false)
		_, eager, _ := c.choose(t, Sampling{}, nil, true)
		best, most := "", 0.0
		for k, p := range c.truth(1, nil) {
			if p > most {
				best, most = k, p
			}
		}
		if !slices.Equal(lazy, eager) || fmt.Sprint(lazy) != best {
			t.Fatalf("%q: lazy %v, eager %v, heaviest %v", c.text, lazy, eager, best)
		}
		rows += asked
		nodes += len(c.plan.tree.nodes) - len(c.plan.Trunk)
	}
	if rows*2 > nodes {
		t.Errorf("%d of %d nodes beside the trunk were evaluated", rows, nodes)
	}
}

// chiSquare is the probability that a χ² variable with k degrees of freedom
// exceeds x, by the approximation of Wilson and Hilferty (1931).
func chiSquare(x float64, k int) float64 {
	n := 2 / (9 * float64(k))
	z := (math.Cbrt(x/float64(k)) - (1 - n)) / math.Sqrt(n)
	return math.Erfc(z/math.Sqrt2) / 2
}

// TestSampling draws many times, with every kind of sampling, and compares
// with the definition. Bounds are drawn and rejected on the way.
func TestSampling(t *testing.T) {
	const draws = 2000
	asked, tests, low := 0, 0, 0
	for i, c := range toyCases(t, 50) {
		for _, s := range []Sampling{{Temperature: 1}, {Temperature: 0.6}, {Temperature: 1.5}, {Temperature: 1.3, TopK: 3}, {Temperature: 1, TopP: 0.8}, {Temperature: 1, MinP: 0.2}, {Temperature: 0.7, TopK: 4, TopP: 0.7, MinP: 0.1}} {
			want := cutTruth(c.truth(1, nil), c.truth(s.Temperature, nil), s)
			rng := rand.New(rand.NewPCG(uint64(i), 9))
			count := map[string]int{}
			for range draws {
				_, path, n := c.choose(t, s, rng, false)
				count[fmt.Sprint(path)]++
				asked += n
			}
			x, k, rest, seen := 0.0, -1, 1.0, draws
			for key, p := range want {
				if p*draws < 5 {
					continue
				}
				d := float64(count[key]) - p*draws
				x += d * d / (p * draws)
				k++
				rest -= p
				seen -= count[key]
			}
			for key := range count {
				if want[key] == 0 {
					t.Fatalf("%q, %+v: drew %s, which the cuts leave out", c.text, s, key)
				}
			}
			if rest*draws >= 5 {
				d := float64(seen) - rest*draws
				x += d * d / (rest * draws)
				k++
			}
			if k < 1 {
				continue
			}
			tests++
			switch p := chiSquare(x, k); {
			case p < 1e-6:
				t.Fatalf("%q, %+v: χ² %.1f with %d degrees of freedom\nwant %v\nhave %v", c.text, s, x, k, want, count)
			case p < 0.01:
				low++
			}
		}
	}
	// Of n tests one in a hundred is expected below 0.01.
	if float64(low) > 0.01*float64(tests)+5*math.Sqrt(0.01*float64(tests)) {
		t.Errorf("%d of %d tests have a probability below 0.01", low, tests)
	}
	if asked == 0 {
		t.Error("no bound was ever drawn")
	}
}

// cutTruth applies the cuts, as Sampling defines them, to enumerated covers.
func cutTruth(one, temp map[string]float64, s Sampling) map[string]float64 {
	var keys []string
	for k := range one {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if one[a] > one[b] {
			return -1
		}
		return 1
	})
	if s.TopK > 0 {
		keys = keys[:min(s.TopK, len(keys))]
	}
	if s.TopP > 0 {
		all, mass, n := 0.0, 0.0, 0
		for _, k := range keys {
			all += one[k]
		}
		for ; n < len(keys) && mass < s.TopP*all; n++ {
			mass += one[keys[n]]
		}
		keys = keys[:n]
	}
	out, sum := map[string]float64{}, 0.0
	for _, k := range keys {
		if one[k] >= s.MinP*one[keys[0]] {
			out[k] = temp[k]
			sum += temp[k]
		}
	}
	for k := range out {
		out[k] /= sum
	}
	return out
}

// TestHowFarOthersAre computes the distribution that step-by-step masks have
// over covers' texts and how far it is from the truth.
func TestHowFarOthersAre(t *testing.T) {
	var tv [2]float64
	cases := toyCases(t, 200)
	for _, c := range cases {
		want := c.texts(c.truth(1, nil))
		for i, mode := range []Mode{Stable, Last} {
			p := New(c.tok, c.ids, mode)
			have := map[string]float64{}
			c.masked(p, nil, 1, have)
			d := 0.0
			for k := range want {
				d += max(0, want[k]-have[k])
			}
			tv[i] += d
		}
	}
	n := float64(len(cases))
	t.Logf("mean total variation distance from the true conditional: stable %.3f, last %.3f, exact 0", tv[0]/n, tv[1]/n)
	if tv[0] == 0 || tv[1] < tv[0] {
		t.Errorf("total variation: stable %v, last %v", tv[0]/n, tv[1]/n)
	}
}

// texts sums the probabilities of covers with the same text beyond the prompt.
func (c *toyCase) texts(covers map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for key, p := range covers {
		var ids []vocab.ID
		for _, f := range strings.Fields(strings.Trim(key, "[]")) {
			var id vocab.ID
			fmt.Sscan(f, &id)
			ids = append(ids, id)
		}
		out[string(c.tok.Decode(nil, ids)[len(c.plan.Pending):])] += p
	}
	return out
}

// masked walks all ways through a plan's masks.
func (c *toyCase) masked(p *Plan, path []vocab.ID, prob float64, out map[string]float64) {
	s := p.NewSession()
	for _, id := range path {
		if _, err := s.Accept(id); err != nil {
			panic(err)
		}
	}
	v := c.tok.Vocab()
	if s.Done() {
		out[string(c.tok.Decode(nil, path)[len(p.Pending):])] += prob
		return
	}
	row := toyRow(c.seed, slices.Concat(p.Prompt, path), v.Len())
	allowed, norm := slices.Collect(s.Mask().All()), 0.0
	for _, id := range allowed {
		norm += math.Exp(float64(row[id]))
	}
	for _, id := range allowed {
		c.masked(p, append(slices.Clone(path), id), prob*math.Exp(float64(row[id]))/norm, out)
	}
}
