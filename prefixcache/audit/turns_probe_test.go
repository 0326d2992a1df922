package audit

import (
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/chattemplate"
)

// TestProbeVerdicts: drift is found where a template drifts, and none where it
// does not. That the figures are right is the matter of
// TestTurnsOfTransformers; the verdicts follow from what it compares.
func TestProbeVerdicts(t *testing.T) {
	const p, d, h, r = Preserving, Drifts, Hidden, Refused
	want := map[string][4]Verdict{ // plain, tools, reasoning, both
		"qwen3":             {d, d, d, d},
		"qwen3 Qwen3.5-4B":  {d, d, d, d},
		"qwen3 Qwen3-Coder": {p, p, h, h},
		"qwen2_5":           {p, p, h, h},
		"llama3":            {p, h, h, h},
		"llama3 meta-llama-Llama-3.1-8B-Instruct": {p, p, h, h},
		"gemma3":      {p, r, h, r},
		"deepseek_v3": {p, d, h, d},
		"deepseek_v3 deepseek-ai-DeepSeek-R1-Distill-Llama-8B": {d, d, d, d},
		"mistral_nemo":               {d, d, d, d},
		"gptoss openai-gpt-oss-120b": {p, d, d, d},
	}
	seen := 0
	for _, m := range recordedDrifts(t).Models {
		name := strings.TrimSpace(m.Tokenizer + " " + m.Template)
		verdicts, ok := want[name]
		if !ok || testing.Short() && m.Tokenizer != "qwen3" {
			continue
		}
		seen++
		tmpl, tok := chatTemplate(t, m.Tokenizer, m.Template), turnTokenizer(t, m.Tokenizer)
		got, err := Probe(t.Context(), tmpl, tok, TurnsOptions{Names: chattemplate.Names{BOS: m.BOS, EOS: m.EOS}})
		if err != nil {
			t.Fatal(err)
		}
		for i, res := range []ProbeResult{got.Plain, got.Tools, got.Reasoning, got.Both} {
			if res.Verdict != verdicts[i] {
				t.Errorf("%s, %s: %s, want %s: %s", name, []string{"plain", "tools", "reasoning", "both"}[i], res.Verdict, verdicts[i], res.Why)
			}
			if (res.Why == "") != (res.Verdict == p || res.Verdict == h) {
				t.Errorf("%s: %s because %q", name, res.Verdict, res.Why)
			}
		}
	}
	if seen != len(want) && !testing.Short() {
		t.Errorf("%d of %d models were recorded", seen, len(want))
	}
}
