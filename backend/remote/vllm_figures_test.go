package remote

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/heal"
)

var (
	cutsFile = flag.String("cuts", "", "JSON lines with a field prefix, gzipped: TestConformanceVLLMFigures heals each on the real server")
	cutsMost = flag.Int("cuts-most", 40, "how many of them")
	cutsStep = flag.Int("cuts-step", 20, "take each that many")
)

// TestConformanceVLLMFigures measures, on a real server only.
func TestConformanceVLLMFigures(t *testing.T) {
	if *cutsFile == "" {
		t.Skip("measures with -cuts only")
	}
	f, err := os.Open(*cutsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	o := vllmOptions(t, "none")
	v := openVLLM(t, o)
	m, err := unfray.NewModel(v, o.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	type figures struct {
		n, healed, requests, equal, cached, prompt int
		took                                       time.Duration
	}
	all := map[heal.Mode]*figures{heal.Stable: {}, heal.Exact: {}}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for i := 0; lines.Scan() && all[heal.Stable].n < *cutsMost; i++ {
		var cut struct{ Prefix string }
		if err := json.Unmarshal(lines.Bytes(), &cut); err != nil {
			t.Fatal(err)
		}
		if i%*cutsStep != 0 || len(cut.Prefix) < 4 { // from many problems
			continue
		}
		want, replayed := stepped(t, v, o.Tokenizer, cut.Prefix, 8)
		for mode, fig := range all {
			start := time.Now()
			r, err := m.Complete(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte(cut.Prefix)}, Heal: mode, MaxTokens: 8})
			if err != nil {
				t.Errorf("cut %d, %s: %v", i, mode, err)
				continue
			}
			fig.took += time.Since(start)
			fig.n++
			fig.cached += r.Usage.CachedTokens
			fig.prompt += r.Usage.PromptTokens
			if r.Healing.BytesPending > 0 {
				fig.healed++
				fig.requests += r.Healing.UpstreamRequests
			}
			var text []byte
			for _, id := range want {
				if o.Tokenizer.Vocab().IsText(id) {
					text = append(text, o.Tokenizer.Vocab().Bytes(id)...)
				}
			}
			text = text[r.Healing.BytesPending:]
			n := min(15, len(text), len(r.Text))
			same := string(text[:n]) == string(r.Text[:n])
			if same {
				fig.equal++
			}
			if !same || mode == heal.Exact {
				t.Logf("cut %d %s: removed %d, pending %d, replayed %d (oracle %d), requests %d, cached %d of %d: %q, stepped %q", i, mode, r.Healing.TokensRemoved, r.Healing.BytesPending, r.Healing.TokensReplayed, replayed, r.Healing.UpstreamRequests, r.Usage.CachedTokens, r.Usage.PromptTokens, r.Text[:n], text[:n])
			}
		}
	}
	for mode, f := range all {
		t.Logf("%s: %d cuts, %d healed, %.3f requests each, first 15 bytes equal stepping in %d, %d of %d prompt tokens cached, %v each", mode, f.n, f.healed, float64(f.requests)/float64(max(1, f.healed)), f.equal, f.cached, f.prompt, f.took/time.Duration(max(1, f.n)))
	}
}
