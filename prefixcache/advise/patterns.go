package advise

import (
	"fmt"
	"io"
	"strings"
)

// A Pattern is a common way of serving, with figures to begin with and what a
// table that is often cited advises for it.
type Pattern struct {
	Key      string   `json:"key"` // a short name: "code"
	Workload Workload `json:"workload"`
	// Cited is that table's advice: "enable", "disable" or "measure", and CitedWhy
	// its reason.
	Cited    string `json:"cited"`
	CitedWhy string `json:"cited_why"`
	// Differs says where the model comes to something else, and why; where it
	// comes to the same, whether for the same reason.
	Differs string `json:"differs"`
}

// The parts that patterns share. Times are those of a model of 7 to 8 billion
// parameters on one H100: 10 to 15 ms a step, 0.15 to 0.30 ms a prompt token
// (llm-d-inference-sim, docs/latency-profiles.md); a mask takes 10 to 100 µs (vLLM
// V1 with XGrammar or llguidance).
const (
	prefillMS = 0.2
	decodeMS  = 12.5
	maskMS    = 0.05
)

// Matches of the next 10 characters by docs/quality.md, SmolLM2-135M, against
// prompts as they are.
var (
	codeExact   = Quality{Dirty: 0.416, Clean: -0.018, Source: "docs/quality.md, HumanEval RandomSpan, exact"}
	codeStable  = Quality{Dirty: 0.416, Clean: -0.037, Source: "docs/quality.md, HumanEval RandomSpan, stable"}
	proseExact  = Quality{Dirty: 0.072, Clean: 0, Source: "docs/quality.md, keystrokes-prose, exact"}
	proseStable = Quality{Dirty: 0.072, Clean: 0, Source: "docs/quality.md, keystrokes-prose, stable"}
)

// Patterns are the rows of the cited table. Shares of dirty ends and counts of
// tokens were measured with Llama 3's tokenizer on people's keystrokes (code:
// 75 % dirty, 1.10 tokens; prose: 73 %, 1.13) and on cuts of text in many languages
// (52 %, 1.11); lengths, reuse and drift are assumptions to replace by one's own.
func Patterns() []Pattern {
	common := Workload{BlockTokens: 16, Batch: 8, PrefillMS: prefillMS, DecodeMS: decodeMS, MaskMS: maskMS, MaskedSteps: 1.3}
	chat := common
	chat.PromptTokens, chat.OutputTokens = 2000, 300
	typed := common
	typed.ForcedStable, typed.ForcedExact = 0.30, 0.05
	typed.QualityStable, typed.QualityExact = codeStable, codeExact
	prose := typed
	prose.QualityStable, prose.QualityExact = proseStable, proseExact

	bot := chat
	bot.Name = "chatbot (fixed system prompt)"
	bot.SharedTokens, bot.Reuse, bot.Divergence = 1500, 50, None
	bot.OutputReused, bot.Drift = 300, 0.1

	rag := chat
	rag.Name = "RAG (fixed system prompt, changing chunks)"
	rag.SharedTokens, rag.Reuse, rag.Divergence, rag.SeamUnstable = 800, 50, AtSeam, 1

	code := typed
	code.Name = "code completion (any prefix)"
	code.DirtyShare, code.Unstable, code.Pending = 0.75, 1.10, 1.14
	code.PromptTokens, code.SharedTokens, code.Reuse, code.Divergence = 1000, 1000, 10, Tail
	code.OutputTokens = 30

	mixed := prose
	mixed.Name = "multilingual mixed prompts"
	mixed.DirtyShare, mixed.Unstable, mixed.Pending = 0.52, 1.11, 1.06
	mixed.PromptTokens, mixed.SharedTokens, mixed.Reuse, mixed.Divergence = 1000, 400, 10, None
	mixed.OutputTokens = 200

	dynamic := prose
	dynamic.Name = "fully dynamic prompts"
	dynamic.DirtyShare, dynamic.Unstable, dynamic.Pending = 0.73, 1.13, 1.17
	dynamic.PromptTokens, dynamic.Reuse, dynamic.Divergence = 1500, 1, None
	dynamic.OutputTokens = 200

	batch := code
	batch.Name = "batch of 32 and more, high throughput"
	batch.Batch, batch.NoExact = 64, true

	return []Pattern{
		{"chat", bot, "enable", "improves both the cache's hits and the text",
			"A chat template ends each prompt with a control token, which nothing changes: there is nothing to heal. The cache loses tokens where answers are tokenized again."},
		{"rag", rag, "enable", "stabilizes caching at the system prompt's end",
			"Tokens at that seam cost the cache about one token a request, at most a block, never the prefix. Healing the prompt's end does not reach the seam; a stable separator does."},
		{"code", code, "enable", "the text suffers; little reuse",
			"The same decision, by the text alone. Reuse is high, as each keystroke goes on from the last prompt, and still the cache loses less than one token a request."},
		{"multilingual", mixed, "enable", "strong bias at seams of scripts",
			"The same decision where prompts are typed text. Fewer ends are dirty than in code: many characters of CJK begin no longer token. With a chat template there is nothing to heal."},
		{"dynamic", dynamic, "disable", "no benefit for the cache, so pure overhead",
			"No reuse means no benefit for the cache, and the text is what healing is for: it pays while ends are dirty, and not where they are clean."},
		{"batch", batch, "measure", "no efficient masks for each request of a batch",
			"vLLM V1 fills one bitmask for the batch, 10 to 100 µs a request and step. Masks over the pending bytes only cost a few milliseconds; the size at which that no longer pays is computed."},
	}
}

// FindPattern gives the pattern with a key.
func FindPattern(key string) (Pattern, error) {
	var keys []string
	for _, p := range Patterns() {
		if p.Key == key {
			return p, nil
		}
		keys = append(keys, p.Key)
	}
	return Pattern{}, fmt.Errorf("advise: no pattern %q: choose one of %s", key, strings.Join(keys, ", "))
}

// PatternTable writes the decisions for the patterns beside those that are
// cited, as a table in Markdown.
func PatternTable(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| pattern | cited | heal | currency | tokens lost a request, unhealed / healed (most) | time a request | right continuations | pays up to a batch of | what differs |\n")
	b.WriteString("|---|---|---|---|---:|---:|---:|---:|---|\n")
	for _, p := range Patterns() {
		a, err := Advise(p.Workload)
		if err != nil {
			return err
		}
		f := &a.Figures
		limit := "–"
		if f.BreakEven.Batch != nil {
			limit = fmt.Sprintf("%.0f", *f.BreakEven.Batch)
		}
		fmt.Fprintf(&b, "| %s | %s: %s | %s | %s | %.2f / %.2f (%.0f) | %+.2f ms of %.0f | %+.1f points | %s | %s |\n",
			a.Name, p.Cited, p.CitedWhy, a.Heal, a.Currency, f.TokensLost, f.TokensLostHealed, f.WorstTokens,
			0-f.NetMS, f.RequestMS, 100*f.Matches, limit, p.Differs)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
