package advise_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/prefixcache/advise"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// typist sends a request for each character typed to a simulated engine.
type typist struct {
	t     *testing.T
	cache prefixcache.Cache
	block int
	last  int // tokens of the last prompt
}

// send gives the tokens that the engine found, and those in the full blocks of
// the last prompt.
func (y *typist) send(ids []vocab.ID) (cached, last int) {
	y.t.Helper()
	l, err := y.cache.Begin(&prefixcache.Request{Prompt: ids})
	if err != nil {
		y.t.Fatal(err)
	}
	y.cache.End(l, nil)
	last = y.last / y.block * y.block
	y.last = len(ids)
	return l.Cached, last
}

// TestAgainstSimulator lets people's keystrokes run through the simulators of
// vLLM's and SGLang's caches. Of two prompts that follow each other the second
// loses what LostTokens says, and on average what Advise says; healed it loses
// nothing. Over a session an engine loses less, because the prompt before the last
// may have left the tokens that the last one changed.
func TestAgainstSimulator(t *testing.T) {
	tok := open(t, "gpt2/tokenizer.json")
	list := seams(t, "keystrokes-prose.jsonl.gz")
	if testing.Short() || tokenizertest.Race {
		list = list[:10]
	}
	m, err := advise.Measure(tok, slices.Values(list), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []int{1, 16, 64} {
		y := &session{t: t, tok: tok, block: block, r: rand.New(rand.NewPCG(1, uint64(block)))}
		for _, s := range list {
			y.typed(s)
		}
		w := typing()
		w.UseMeasured(&m)
		w.SharedTokens, w.BlockTokens, w.Reuse = w.PromptTokens, block, 1e9
		a, err := advise.Advise(w)
		if err != nil {
			t.Fatal(err)
		}
		got, want := float64(y.lost)/float64(y.requests), a.Figures.TokensLost
		noise := 4 * float64(block) * math.Sqrt(m.Mean/float64(block)/float64(y.requests))
		if math.Abs(got-want) > noise {
			t.Errorf("B = %d: the engine loses %.3f tokens a request, the model says %.3f", block, got, want)
		}
		t.Logf("B = %d: %.3f tokens lost a request over %d, %.3f by the model; %.3f over whole sessions", block, got, y.requests, want, float64(y.lostLate)/float64(y.requests))
	}
}

// A session is people typing into a simulated engine.
type session struct {
	t     *testing.T
	tok   *tokenizer.Tokenizer
	block int
	r     *rand.Rand

	requests, lost, lostLate int
}

func (y *session) typist() *typist {
	y.t.Helper()
	c := &typist{t: y.t, block: y.block}
	var err error
	if y.block == 1 {
		c.cache, err = prefixcache.NewRadix(prefixcache.RadixOptions{})
	} else {
		c.cache, err = prefixcache.NewPaged(prefixcache.PagedOptions{BlockSize: y.block})
	}
	if err != nil {
		y.t.Fatal(err)
	}
	return c
}

// typed types a text behind tokens that stand for a system prompt.
func (y *session) typed(s advise.Seam) {
	y.t.Helper()
	t := y.t
	system := make([]vocab.ID, y.r.IntN(y.block)+1)
	all, healed := y.typist(), y.typist()
	x := y.tok.NewText(false)
	x.Append(s.Prefix)
	var old []vocab.ID
	for i, next := 0, s.Next; ; i++ {
		ids := append(slices.Clone(system), x.IDs()...)
		stable, _ := boundary.Stable(x)
		late, last := all.send(ids)
		if old != nil {
			y.requests++
			y.lostLate += last - late
			pair := y.typist()
			pair.send(old)
			cached, _ := pair.send(ids)
			y.lost += last - cached
			r := len(old) - vocab.CommonPrefix(old, ids)
			if want := advise.LostTokens(len(old), r, y.block); last-cached != want {
				t.Fatalf("%q: %d of %d tokens cached, so %d lost, but r = %d gives %d", x.Bytes(), cached, last, last-cached, r, want)
			}
			if late < cached {
				t.Fatalf("%q: %d tokens cached after a whole session, %d after one prompt", x.Bytes(), late, cached)
			}
		}
		// An engine computes a prompt's last token always.
		most := (len(system) + stable - 1) / y.block * y.block
		if cached, last := healed.send(ids[:len(system)+stable]); i > 0 && cached < min(last, most) {
			t.Fatalf("%q healed: %d of %d tokens cached", x.Bytes(), cached, last)
		}
		if len(next) == 0 {
			return
		}
		old = ids
		_, n := utf8.DecodeRune(next)
		x.Append(next[:n])
		next = next[n:]
	}
}
