package advise_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/unfray/unfray/prefixcache/advise"
)

// typing is code completion at a keystroke.
func typing() advise.Workload {
	return advise.Workload{
		DirtyShare: 0.75, Unstable: 1.1, Pending: 1.14, ForcedStable: 0.3, ForcedExact: 0.05,
		PromptTokens: 1000, SharedTokens: 1000, Reuse: 10, BlockTokens: 16, Divergence: advise.Tail,
		OutputTokens: 30, Batch: 1, PrefillMS: 0.2, DecodeMS: 12.5, MaskMS: 0.05, MaskedSteps: 1.3,
		QualityStable: advise.Quality{Dirty: 0.4, Clean: -0.04}, QualityExact: advise.Quality{Dirty: 0.4, Clean: -0.02},
	}
}

func with(change func(w *advise.Workload)) advise.Workload {
	w := typing()
	change(&w)
	return w
}

func TestAdvise(t *testing.T) {
	for _, tt := range []struct {
		name     string
		w        advise.Workload
		heal     advise.Strategy
		currency advise.Currency
		why      string
	}{
		{"typing", typing(), advise.Exact, advise.InQuality, "0.74 tokens a request at the tail (at most 16)"},
		{"no logits", with(func(w *advise.Workload) { w.NoExact = true }), advise.Stable, advise.InQuality, "points more"},
		{"chat", with(func(w *advise.Workload) {
			w.DirtyShare, w.Unstable, w.Pending, w.ForcedStable, w.ForcedExact = 0, 0, 0, 0, 0
			w.QualityExact.Clean, w.QualityStable.Clean, w.MaskedSteps = 0, 0, 0
		}), advise.Off, advise.InNothing, "there is nothing to heal"},
		{"clean ends", with(func(w *advise.Workload) { w.DirtyShare = 0 }), advise.Off, advise.InNothing, "makes no more continuations right"},
		{"no quality, slow steps", with(func(w *advise.Workload) {
			w.QualityExact, w.QualityStable = advise.Quality{}, advise.Quality{}
		}), advise.Off, advise.InNothing, "costs 0.45 ms a request"},
		{"gain too small", with(func(w *advise.Workload) {
			w.QualityExact, w.NoExact = advise.Quality{}, true
			w.QualityStable = advise.Quality{Dirty: 0.001}
			w.Batch = 512
		}), advise.Off, advise.InNothing, "Masks for a batch of 512 cost 33 ms a request"},
		{"free steps, no quality", with(func(w *advise.Workload) {
			w.QualityExact, w.QualityStable = advise.Quality{}, advise.Quality{}
			w.ForcedExact = 0
		}), advise.Exact, advise.InCache, "Healing saves 0.17 ms a request"},
		{"middle", with(func(w *advise.Workload) { w.Divergence, w.Diverges = advise.Middle, 100 }), advise.Exact, advise.InQuality, "move what changes behind what is shared (810.0 tokens, 162 ms a request)"},
		{"nothing shared", with(func(w *advise.Workload) { w.SharedTokens, w.Reuse, w.Divergence = 0, 1, advise.None }), advise.Exact, advise.InQuality, "Nothing is shared"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := advise.Advise(tt.w)
			if err != nil {
				t.Fatal(err)
			}
			if a.Heal != tt.heal || a.Currency != tt.currency || !strings.Contains(a.Why, tt.why) {
				t.Errorf("%s in %s: %s", a.Heal, a.Currency, a.Why)
			}
		})
	}
}

// TestTailLoss has the result that corrects the usual cost model: what the cache
// loses at a tail depends neither on the length of the prefix nor on the block.
func TestTailLoss(t *testing.T) {
	for _, block := range []int{1, 16, 528, 8320} {
		for _, n := range []float64{100, 10000, 100000} {
			a, err := advise.Advise(with(func(w *advise.Workload) { w.PromptTokens, w.SharedTokens, w.BlockTokens, w.Reuse = n, n, block, 1e9 }))
			if err != nil {
				t.Fatal(err)
			}
			if f := a.Figures; math.Abs(f.TokensLost-0.825) > 1e-6 || f.WorstTokens != math.Ceil(1.1/float64(block))*float64(block) || f.TokensLostHealed != 0 {
				t.Errorf("B = %d, n = %g: %+v", block, n, f)
			}
		}
	}
}

// TestNeverByLatency: with steps that cost more than a block of prefill, the
// cache alone never pays, whatever r within a block.
func TestNeverByLatency(t *testing.T) {
	w := with(func(w *advise.Workload) { w.ForcedExact, w.ForcedStable = 1, 1; w.Pending = 0 })
	a, err := advise.Advise(w)
	if err != nil {
		t.Fatal(err)
	}
	if a.Figures.BreakEven.CacheUnstable != nil || a.Figures.NetMS >= 0 {
		t.Errorf("the cache pays: %+v", a.Figures)
	}
}

// TestMeasuredLoss compares the model's loss with that of a cache of blocks that
// is counted request by request.
func TestMeasuredLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, block := range []int{1, 16, 64} {
		sum, dirty, unstable, n := 0, 0, 0, 200000
		for range n {
			k := max(0, r.IntN(6)-2)
			if k > 0 {
				dirty++
			}
			unstable += k
			sum += advise.LostTokens(1000+r.IntN(10*block*16), k, block)
		}
		a, err := advise.Advise(with(func(w *advise.Workload) {
			w.BlockTokens, w.Reuse = block, 1e9
			w.DirtyShare, w.Unstable = float64(dirty)/float64(n), float64(unstable)/float64(dirty)
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := a.Figures.TokensLost, float64(sum)/float64(n); math.Abs(got-want) > 0.05*want {
			t.Errorf("B = %d: %v tokens by the model, %v counted", block, got, want)
		}
	}
}

// random is any workload that Advise takes.
func random(r *rand.Rand) advise.Workload {
	quality := func() advise.Quality {
		return advise.Quality{Dirty: r.Float64() * 0.5, Clean: -r.Float64() * 0.1}
	}
	n := 1 + r.Float64()*5000
	shared := r.Float64() * n
	out := 1 + r.Float64()*300
	return advise.Workload{
		DirtyShare: r.Float64(), Unstable: r.Float64() * 3, Pending: r.Float64() * 4,
		ForcedStable: r.Float64(), ForcedExact: r.Float64() * 0.5,
		PromptTokens: n, SharedTokens: shared, Reuse: r.Float64() * 20, BlockTokens: 1 + r.IntN(100),
		Divergence:   []advise.Divergence{advise.None, advise.Tail, advise.AtSeam, advise.Middle}[r.IntN(4)],
		SeamUnstable: min(shared, r.Float64()), Diverges: r.Float64() * shared,
		OutputTokens: out, OutputReused: r.Float64() * out, Drift: r.Float64(),
		Batch: 1 + r.Float64()*200, PrefillMS: r.Float64(), DecodeMS: r.Float64() * 20, MaskMS: r.Float64() * 0.2, MaskedSteps: r.Float64() * 50,
		QualityStable: quality(), QualityExact: quality(), NoExact: r.IntN(2) == 0,
		Weights: advise.Weights{MatchMS: float64(r.IntN(2)) * r.Float64() * 1000, LatencyMS: r.Float64() * 3},
	}
}

// TestBreakEven puts each break-even point back into the model: what is to be 0
// is, and has different signs on both sides.
func TestBreakEven(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	found := map[string]int{}
	for range 3000 {
		w := random(r)
		a, err := advise.Advise(w)
		if err != nil {
			t.Fatal(err)
		}
		// Only the strategy that was judged may be judged again.
		if a.Figures.Judged == advise.Stable {
			w.NoExact = true
		} else {
			w.QualityStable, w.ForcedStable, w.MaskMS = advise.Quality{Dirty: -1, Clean: -1}, 1e6, 1e6
		}
		b := &a.Figures.BreakEven
		for _, p := range []struct {
			name  string
			at    *float64
			cache bool
			set   func(w *advise.Workload, x float64)
		}{
			{"cache r", b.CacheUnstable, true, func(w *advise.Workload, x float64) { w.Unstable = x }},
			{"cache step", b.CacheDecodeMS, true, func(w *advise.Workload, x float64) { w.DecodeMS = x }},
			{"r", b.Unstable, false, func(w *advise.Workload, x float64) { w.Unstable = x }},
			{"dirty", b.DirtyShare, false, func(w *advise.Workload, x float64) { w.DirtyShare = x }},
			{"prompt", b.PromptTokens, false, func(w *advise.Workload, x float64) { w.PromptTokens = x }},
			{"batch", b.Batch, false, func(w *advise.Workload, x float64) { w.Batch = x }},
			{"masked steps", b.MaskedSteps, false, func(w *advise.Workload, x float64) { w.MaskedSteps = x }},
			{"match", b.MatchMS, false, func(w *advise.Workload, x float64) { w.Weights.MatchMS = x }},
		} {
			if p.at == nil {
				continue
			}
			found[p.name]++
			at := func(x float64) float64 {
				again := w
				p.set(&again, x)
				f, err := advise.Advise(again)
				if err != nil {
					t.Fatalf("%s = %v: %v", p.name, x, err)
				}
				if p.cache {
					return f.Figures.NetMS
				}
				return f.Figures.Value
			}
			x, low, high := *p.at, 0.0, math.Inf(1)
			switch p.name {
			case "dirty":
				high = 1
			case "prompt":
				low = w.SharedTokens
			}
			below, above := at(max(x*0.999, low)), at(min(x*1.001, high))
			if v := at(x); math.Abs(v) > 1e-6*max(1, math.Abs(at(max(x/2, low)))) || below*above > 0 {
				t.Fatalf("%s breaks even at %v, but the model gives %v there, %v below and %v above: %+v", p.name, x, v, below, above, w)
			}
		}
	}
	for _, name := range []string{"cache r", "cache step", "r", "dirty", "prompt", "batch", "masked steps", "match"} {
		if found[name] < 10 {
			t.Errorf("only %d break-even points of %s", found[name], name)
		}
	}
	t.Log(found)
}

// TestDecision: heal exactly if the value is above 0, in the currency that pays.
func TestDecision(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	seen := map[string]int{}
	for range 5000 {
		w := random(r)
		a, err := advise.Advise(w)
		if err != nil {
			t.Fatal(err)
		}
		f := a.Figures
		seen[string(a.Heal)+" "+string(a.Currency)]++
		if (a.Heal == advise.Off) != (f.Value <= 0) || (a.Currency == advise.InNothing) != (a.Heal == advise.Off) ||
			a.Heal == advise.Exact && w.NoExact || a.Currency == advise.InCache && f.NetMS <= 0 {
			t.Fatalf("%s in %s with %+v", a.Heal, a.Currency, f)
		}
		if f.TokensLost < 0 || f.TokensLostHealed > f.TokensLost || f.TokensLost > f.WorstTokens+1e-9 {
			t.Fatalf("tokens lost: %+v", f)
		}
		for i := 1; i < len(a.Alternatives); i++ {
			if a.Alternatives[i-1].SavedMS < a.Alternatives[i].SavedMS {
				t.Fatalf("alternatives out of order: %+v", a.Alternatives)
			}
		}
	}
	for _, want := range []string{"exact quality", "stable quality", "off none", "exact cache"} {
		if seen[want] == 0 {
			t.Errorf("no decision %s: %v", want, seen)
		}
	}
}

func TestRefusesFigures(t *testing.T) {
	for _, tt := range []struct {
		w    advise.Workload
		want string
	}{
		{with(func(w *advise.Workload) { w.DirtyShare = 70 }), "advise: dirty_share is 70: give a number from 0 to 1"},
		{with(func(w *advise.Workload) { w.DecodeMS = math.NaN() }), "advise: decode_ms is NaN: give a number from 0 to 1e+12"},
		{with(func(w *advise.Workload) { w.SharedTokens = 2000 }), "advise: shared_tokens is 2000: give a number from 0 to 1000"},
		{with(func(w *advise.Workload) { w.Divergence = "end" }), `advise: divergence is "end": choose none, tail, seam or middle`},
		{with(func(w *advise.Workload) { w.Batch = -1 }), "advise: batch is -1: give a number from 0 to 1e+12"},
	} {
		if _, err := advise.Advise(tt.w); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// TestContract has the JSON that users read.
func TestContract(t *testing.T) {
	a, err := advise.Advise(typing())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	figures, _ := got["figures"].(map[string]any)
	if got["heal"] != "exact" || got["currency"] != "quality" || got["why"] == "" || figures["tokens_lost"] == nil || figures["break_even"] == nil {
		t.Errorf("%s", b)
	}
}

// TestPatterns has the decision for each row of the cited table.
func TestPatterns(t *testing.T) {
	want := []struct {
		name     string
		heal     advise.Strategy
		currency advise.Currency
	}{
		{"chatbot", advise.Off, advise.InNothing},
		{"RAG", advise.Off, advise.InNothing},
		{"code", advise.Exact, advise.InQuality},
		{"multilingual", advise.Exact, advise.InQuality},
		{"fully dynamic", advise.Exact, advise.InQuality},
		{"batch", advise.Stable, advise.InQuality},
	}
	list := advise.Patterns()
	if len(list) != len(want) {
		t.Fatalf("%d patterns", len(list))
	}
	for i, p := range list {
		a, err := advise.Advise(p.Workload)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(a.Name, want[i].name) || a.Heal != want[i].heal || a.Currency != want[i].currency {
			t.Errorf("%s: %s in %s: %s", a.Name, a.Heal, a.Currency, a.Why)
		}
		t.Logf("%s (cited: %s): %s, %s: %s", a.Name, p.Cited, a.Heal, a.Currency, a.Why)
		agrees := (a.Heal != advise.Off) == (p.Cited == "enable")
		if p.Cited != "measure" && agrees != strings.HasPrefix(p.Differs, "The same decision") {
			t.Errorf("%s: cited %s, %s by us, but: %s", a.Name, p.Cited, a.Heal, p.Differs)
		}
	}
	var b bytes.Buffer
	if err := advise.PatternTable(&b); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	if n := strings.Count(b.String(), "\n"); n != len(list)+2 {
		t.Errorf("the table has %d lines", n)
	}
}

const evaluation = `{"model":"m","modes":["off","stable","exact"],"chars":[5,10],"sets":[
 {"set":"a","strata":[
  {"stratum":"dirty","n":30,"modes":[{"mode":"off","match":[{"chars":10,"n":30,"mean":0}]},{"mode":"stable","match":[{"chars":10,"n":30,"mean":0.4}]},{"mode":"exact","match":[{"chars":10,"n":30,"mean":0.5}]}]},
  {"stratum":"clean","n":10,"modes":[{"mode":"off","match":[{"chars":10,"n":10,"mean":0.6}]},{"mode":"stable","match":[{"chars":10,"n":10,"mean":0.5}]},{"mode":"exact","match":[{"chars":10,"n":10,"mean":0.6}]}]},
  {"stratum":"all","n":40,"modes":[{"mode":"off","match":[]},{"mode":"stable","match":[],"extra_passes":0.4},{"mode":"exact","match":[],"extra_passes":0.1}]}]},
 {"set":"b","strata":[
  {"stratum":"dirty","n":10,"modes":[{"mode":"off","match":[{"chars":10,"n":10,"mean":0}]},{"mode":"stable","match":[{"chars":10,"n":10,"mean":0}]},{"mode":"exact","match":[{"chars":10,"n":10,"mean":0.1}]}]},
  {"stratum":"all","n":10,"modes":[{"mode":"off","match":[]},{"mode":"stable","match":[],"extra_passes":0.9},{"mode":"exact","match":[],"extra_passes":0.1}]}]}]}`

func TestReadEval(t *testing.T) {
	e, err := advise.ReadEval(strings.NewReader(evaluation), 10)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("dirty share", e.DirtyShare, 0.8)
	near("stable dirty", e.Stable.Dirty, 0.3)
	near("exact dirty", e.Exact.Dirty, 0.4)
	near("stable clean", e.Stable.Clean, -0.1)
	near("exact clean", e.Exact.Clean, 0)
	near("stable passes", e.ForcedStable, 0.5)
	near("exact passes", e.ForcedExact, 0.1)
	w := typing()
	w.UseEval(e)
	if a, err := advise.Advise(w); err != nil || a.Heal != advise.Exact {
		t.Errorf("%+v, %v", a, err)
	}
	for in, want := range map[string]string{
		`{"sets":[]}`: "no matches of 10 characters",
		`{`:           "not the JSON of",
		strings.NewReplacer(`"stable"`, `"last"`, `"exact"`, `"peer"`).Replace(evaluation): "neither mode stable nor exact",
	} {
		if _, err := advise.ReadEval(strings.NewReader(in), 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestReadRealEval reads what `unfray eval -n 8 --chars 10 --no-bits --modes
// off,stable,exact --prompt-bytes 400 --json` wrote of keystrokes-rust and
// humaneval-randomspan, the cuts' own rows left out.
func TestReadRealEval(t *testing.T) {
	f, err := os.Open("testdata/eval.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := advise.ReadEval(f, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		what      string
		got, want float64
	}{
		{"dirty share", e.DirtyShare, 12.0 / 16}, {"exact dirty", e.Exact.Dirty, 4.0 / 12}, {"stable dirty", e.Stable.Dirty, 4.0 / 12},
		{"exact clean", e.Exact.Clean, 0}, {"exact passes", e.ForcedExact, 1.0 / 16}, {"stable passes", e.ForcedStable, 5.0 / 16},
	} {
		if math.Abs(v.got-v.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", v.what, v.got, v.want)
		}
	}
	if !strings.Contains(e.Exact.Source, "SmolLM2-135M-Instruct.Q4_1") {
		t.Errorf("source %q", e.Exact.Source)
	}
}

func TestMarkdown(t *testing.T) {
	a, err := advise.Advise(typing())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := a.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	for _, want := range []string{"**Heal: exact**", "| tokens lost a request", "| a match is worth at least", "| – |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// FuzzWorkload reads workloads that users write.
func FuzzWorkload(f *testing.F) {
	for _, p := range advise.Patterns() {
		b, err := json.Marshal(p.Workload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"dirty_share":1e308,"batch":-0}`))
	f.Add([]byte(`{"prompt_tokens":1e12,"shared_tokens":1e12,"reuse":1e-300,"divergence":"tail","block_tokens":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w advise.Workload
		if json.Unmarshal(b, &w) != nil {
			t.Skip()
		}
		a, err := advise.Advise(w)
		if err != nil {
			return
		}
		if math.IsNaN(a.Figures.Value) || math.IsInf(a.Figures.Value, 0) {
			t.Fatalf("value %v", a.Figures.Value)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzReadEval reads evaluations.
func FuzzReadEval(f *testing.F) {
	f.Add([]byte(evaluation))
	f.Add([]byte(`{"sets":[{"strata":[{"stratum":"dirty","n":-1,"modes":[{"mode":"off","match":[{"chars":10,"n":-5,"mean":1e308}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := advise.ReadEval(bytes.NewReader(b), 10)
		if err == nil {
			w := typing()
			w.UseEval(e)
			if _, err := advise.Advise(w); err == nil && (math.IsNaN(w.DirtyShare) || w.DirtyShare > 1) {
				t.Fatal("took a share out of range")
			}
		}
	})
}

func TestReadWorkload(t *testing.T) {
	got, err := advise.ReadWorkload(strings.NewReader(`{"batch": 4, "quality_exact": {"dirty": 0.1}}`), typing())
	want := with(func(w *advise.Workload) { w.Batch, w.QualityExact.Dirty = 4, 0.1 })
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for in, want := range map[string]string{
		`{"batches": 4}`:             `unknown field "batches"`,
		"{\n\"batch\": \"four\"\n}":  "line 2: batch is a string: give a float64",
		`{"batch": 4`:                "the workload is not JSON",
		`{"batch": 1} {"batch": 2}`:  "the workload is not JSON",
		strings.Repeat(" ", 2<<20):   "longer than 1048576 bytes",
		`{"dirty_share": 1e999}`:     "dirty_share",
		`{"weights": {"match": 1.}}`: "not JSON",
	} {
		if _, err := advise.ReadWorkload(strings.NewReader(in), advise.Workload{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", in, err, want)
		}
	}
	if p, err := advise.FindPattern("code"); err != nil || p.Workload.OutputTokens != 30 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := advise.FindPattern("coding"); err == nil || !strings.Contains(err.Error(), "choose one of chat, rag, code, multilingual, dynamic, batch") {
		t.Errorf("error %v", err)
	}
}

func ExampleAdvise() {
	code, err := advise.FindPattern("code")
	if err != nil {
		panic(err)
	}
	a, err := advise.Advise(code.Workload)
	if err != nil {
		panic(err)
	}
	fmt.Printf("heal %s, for %s\n", a.Heal, a.Currency)
	fmt.Printf("%.2f tokens lost a request, at most %.0f\n", a.Figures.TokensLost, a.Figures.WorstTokens)
	fmt.Printf("pays from %.1f %% dirty ends on\n", 100**a.Figures.BreakEven.DirtyShare)
	// Output:
	// heal exact, for quality
	// 0.74 tokens lost a request, at most 16
	// pays from 4.5 % dirty ends on
}
