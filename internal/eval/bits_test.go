package eval_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/eval"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

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

// toyModel's probabilities depend on all that stands before.
type toyModel struct {
	seed uint64
	n    int

	known map[string][][]vocab.ID // the oracle's tokenizations
}

func (m toyModel) row(ids []vocab.ID) []float32 {
	h := m.seed
	for _, id := range ids {
		h = (h ^ uint64(id+1)) * 0x9e3779b97f4a7c15
		h ^= h >> 31
	}
	r := rand.New(rand.NewPCG(h, m.seed))
	row := make([]float32, m.n)
	for i := range row {
		row[i] = float32(r.NormFloat64())
	}
	return row
}

func (m toyModel) Logits(_ context.Context, ids []vocab.ID, from int) ([][]float32, error) {
	var rows [][]float32
	for i := from; i < len(ids); i++ {
		rows = append(rows, m.row(ids[:i+1]))
	}
	return rows, nil
}

// continuations are all that may follow a text, as far as it can matter here.
func continuations() []string {
	tails := []string{""}
	for from, i := 0, 0; i < 4; i++ {
		to := len(tails)
		for _, s := range tails[from:to] {
			for _, b := range symbols + "e" { // "'re" is a pretoken
				tails = append(tails, s+string(b))
			}
		}
		from = to
	}
	return tails
}

// oracle enumerates token paths after base that spell text, whose last token
// reaches its end or passes it, and with which the tokenizer, given before and
// some continuation, goes on after base. It returns the sum of their probabilities
// under the plan's masks.
func (m toyModel) oracle(tok *tokenizer.Tokenizer, base []vocab.ID, skip int, before, text string, plan *heal.Plan) float64 {
	if m.known[before+text] == nil {
		var all [][]vocab.ID
		for _, s := range continuations() {
			all = append(all, tok.Encode(nil, []byte(before+text+s)))
		}
		m.known[before+text] = all
	}
	canonical := map[string]bool{}
	for _, whole := range m.known[before+text] {
		for k := skip; k <= len(whole); k++ {
			canonical[fmt.Sprint(whole[skip:k])] = true
		}
	}
	sum := 0.0
	var walk func(path []vocab.ID, rest string, p float64)
	walk = func(path []vocab.ID, rest string, p float64) {
		if !canonical[fmt.Sprint(path)] {
			return
		}
		if rest == "" {
			sum += p
			return
		}
		row := m.row(slices.Concat(base, path))
		session := plan.NewSession()
		for _, id := range path {
			if _, err := session.Accept(id); err != nil {
				return
			}
		}
		mask := session.Mask()
		norm := 0.0
		for id, l := range row {
			if mask == nil || mask.Has(vocab.ID(id)) {
				norm += math.Exp(float64(l))
			}
		}
		for id, l := range row {
			b := string(tok.Vocab().Bytes(vocab.ID(id)))
			n := min(len(b), len(rest))
			if !tok.Vocab().IsText(vocab.ID(id)) || n == 0 || b[:n] != rest[:n] || mask != nil && !mask.Has(vocab.ID(id)) {
				continue
			}
			walk(append(slices.Clone(path), vocab.ID(id)), rest[n:], p*math.Exp(float64(l))/norm)
		}
	}
	walk([]vocab.ID{}, text, 1)
	return sum
}

// Bits are those of an enumeration by definition, in every mode.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = symbols[r.IntN(len(symbols))]
		}
		return string(b)
	}
	counted := map[string]int{}
	for range 40 {
		tok := smallToy(t, r)
		m := toyModel{r.Uint64(), tok.Vocab().Len(), map[string][][]vocab.ID{}}
		prompt, truth := "ab"+random(2+r.IntN(6)), random(1+r.IntN(4))
		ids := tok.Encode(nil, []byte(prompt))
		whole := tok.Encode(nil, []byte(prompt+truth))
		w := eval.NewWeigher(tok, m, []byte(prompt))
		for _, mode := range []heal.Mode{heal.Off, heal.Last, heal.Stable, heal.Exact} {
			got, ok, err := w.Bits(t.Context(), mode, []byte(truth))
			if err != nil {
				t.Fatal(err)
			}
			plan := heal.New(tok, ids, mode)
			if !ok || len(plan.Notes) > 0 {
				continue
			}
			base, free := plan.Prompt, heal.New(tok, ids, heal.Off)
			var want float64
			kind := string(plan.Mode)
			switch {
			case plan.Mode == heal.Exact:
				var spelled string
				for _, id := range base {
					spelled += string(tok.Vocab().Bytes(id))
				}
				rest := prompt[len(spelled):]
				want = m.oracle(tok, base, len(base), spelled, rest+truth, free) / m.oracle(tok, base, len(base), spelled, rest, free)
			case len(base) <= len(whole) && slices.Equal(whole[:len(base)], base):
				spelled := prompt[:len(prompt)-len(plan.Pending)]
				want = m.oracle(tok, base, len(base), spelled, string(plan.Pending)+truth, plan)
			default:
				kind += " alone"
				want = m.oracle(tok, base, 0, "", string(plan.Pending)+truth, plan)
			}
			counted[kind]++
			if diff := math.Abs(math.Exp2(-got) - want); diff > 1e-5*want {
				t.Errorf("%q, %q, %s: %.9f bits, want %.9f", prompt, truth, kind, got, -math.Log2(want))
			}
		}
	}
	for _, kind := range []string{"off", "off alone", "last", "last alone", "stable", "exact"} {
		if counted[kind] == 0 {
			t.Errorf("no case of %s", kind)
		}
	}
}
