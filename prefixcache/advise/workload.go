// Package advise decides for a workload whether healing pays, and in which
// currency: the quality of what is generated, or the prefix cache.
//
//   - [Measure] takes from real prompts how often their last tokens change once
//     text follows, how many, and what a cache loses by it.
//   - [Advise] computes a decision from measured parameters, and the points at
//     which it turns.
//   - [Patterns] are common ways of serving, to begin with.
package advise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/unfray/unfray/internal/wire"
)

// Divergence is where two prompts that share a beginning have their first
// different token, apart from what is really different in them.
type Divergence string

const (
	// None: what is shared stays shared, or nothing is.
	None Divergence = "none"
	// Tail: a later prompt goes on where an earlier one ended, and the last
	// tokens of that are other ones once text follows.
	Tail Divergence = "tail"
	// AtSeam: what is shared ends inside the prompt, and its last tokens are other
	// ones by what follows. Healing the prompt's end does not reach it.
	AtSeam Divergence = "seam"
	// Middle: something inside what is shared changes, such as a time or a
	// template's treatment of an earlier turn.
	Middle Divergence = "middle"
)

// Quality is what healing does to the continuations, as shares of requests
// whose continuation is the right one.
type Quality struct {
	// Dirty is the gain at ends that are dirty, from 0 to 1.
	Dirty float64 `json:"dirty"`
	// Clean is the gain at ends that are clean; it is a loss below 0.
	Clean float64 `json:"clean"`
	// Source says where the figures come from.
	Source string `json:"source,omitempty"`
}

// A Workload is what Advise knows of how an engine is used. Shares are from 0
// to 1, times in milliseconds.
type Workload struct {
	Name string `json:"name,omitempty"`

	// DirtyShare is the share of requests whose prompt ends inside a token that
	// the continuation needs.
	DirtyShare float64 `json:"dirty_share"`
	// Unstable is r, the mean number of tokens at the end that change once text
	// follows, over requests with dirty ends.
	Unstable float64 `json:"unstable_tokens"`
	// Pending is the mean number of tokens that healing takes off the prompt's
	// end, over all requests: they are not prefilled.
	Pending float64 `json:"pending_tokens"`
	// ForcedStable and ForcedExact are the decode steps that the strategies spend
	// on bytes the prompt has already, mean over all requests: the forward passes
	// beyond those of an unhealed request.
	ForcedStable float64 `json:"forced_steps_stable"`
	ForcedExact  float64 `json:"forced_steps_exact"`

	PromptTokens float64 `json:"prompt_tokens"`
	// SharedTokens are those of the prompt that other requests begin with too.
	SharedTokens float64 `json:"shared_tokens"`
	// Reuse is how many requests have the same shared tokens; the first of
	// them finds nothing cached. At most 1: no reuse.
	Reuse float64 `json:"reuse"`
	// BlockTokens is the engine's cache block or page; 0 is 1.
	BlockTokens int        `json:"block_tokens"`
	Divergence  Divergence `json:"divergence"`
	// SeamUnstable is the mean number of tokens at the end of what is shared that
	// change with what follows, over all requests, for AtSeam.
	SeamUnstable float64 `json:"seam_unstable_tokens,omitempty"`
	// Diverges is how many of the shared tokens stand before the change, for
	// Middle.
	Diverges float64 `json:"diverges_at_token,omitempty"`

	OutputTokens float64 `json:"output_tokens"`
	// OutputReused is how many of the output tokens a later prompt contains, and
	// Drift the share of those turns in which their tokens there are not the
	// model's own.
	OutputReused float64 `json:"output_tokens_reused,omitempty"`
	Drift        float64 `json:"drift,omitempty"`

	Batch float64 `json:"batch"` // requests that decode together; 0 is 1
	// PrefillMS is the time of one prompt token, DecodeMS that of one step.
	PrefillMS float64 `json:"prefill_ms"`
	DecodeMS  float64 `json:"decode_ms"`
	// MaskMS is the time to make the mask of one request for one step, which
	// stable needs and exact does not. Masks of a batch are made one after the
	// other, and each of its requests waits.
	MaskMS float64 `json:"mask_ms"`
	// MaskedSteps is how many steps of a request have a mask: those over the
	// pending bytes, or all, where an engine holds the constraint to the end.
	MaskedSteps float64 `json:"masked_steps"`

	// QualityStable and QualityExact are what the strategies do to continuations.
	QualityStable Quality `json:"quality_stable"`
	QualityExact  Quality `json:"quality_exact"`
	// NoExact says that the engine cannot do exact: it gives no logits.
	NoExact bool `json:"no_exact,omitempty"`

	Weights Weights `json:"weights"`
}

// maxWorkload bounds the JSON of a workload, in bytes.
const maxWorkload = 1 << 20

// ReadWorkload reads a workload from JSON over base, whose figures stand for those
// that the JSON leaves out. A field that a workload does not have is an error, as
// a misspelled figure would be taken for 0.
func ReadWorkload(r io.Reader, base Workload) (Workload, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxWorkload+1))
	if err != nil {
		return base, fmt.Errorf("advise: read the workload: %w", err)
	}
	if len(b) > maxWorkload {
		return base, fmt.Errorf("advise: the workload is longer than %d bytes", maxWorkload)
	}
	if err := wire.Check(b); err != nil {
		return base, fmt.Errorf("advise: the workload is not JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	w := base
	if err := d.Decode(&w); err != nil {
		var at *json.UnmarshalTypeError
		if errors.As(err, &at) {
			return base, fmt.Errorf("advise: the workload, line %d: %s is a %s: give a %s", 1+bytes.Count(b[:at.Offset], []byte("\n")), at.Field, at.Value, at.Type)
		}
		return base, fmt.Errorf("advise: the workload: %w", err)
	}
	return w, nil
}

// Weights say what things are worth, in milliseconds of a request's time.
type Weights struct {
	// MatchMS is what one more right continuation is worth. 0: the time of the
	// request, which a wrong one has wasted.
	MatchMS float64 `json:"match_ms,omitempty"`
	// LatencyMS is what one millisecond is worth; 0 is 1.
	LatencyMS float64 `json:"latency_ms,omitempty"`
}

// Currency is what a decision pays in.
type Currency string

// The currencies.
const (
	InQuality Currency = "quality"
	InCache   Currency = "cache"
	InNothing Currency = "none"
)

// Strategy is what to do with prompts' ends, by the names of package heal.
type Strategy string

// The strategies.
const (
	Exact  Strategy = "exact"
	Stable Strategy = "stable"
	Off    Strategy = "off"
)

// An Advice is the decision for a workload.
type Advice struct {
	Name     string   `json:"name,omitempty"`
	Heal     Strategy `json:"heal"`
	Currency Currency `json:"currency"`
	Why      string   `json:"why"`
	Figures  Figures  `json:"figures"`
	// Alternatives are other means against the loss, the best first.
	Alternatives []Alternative `json:"alternatives"`
}

// Figures are means over requests.
type Figures struct {
	// TokensLost are the prompt tokens that the cache would have had but for the
	// divergence: without healing, and with the strategy that is judged.
	TokensLost       float64 `json:"tokens_lost"`
	TokensLostHealed float64 `json:"tokens_lost_healed"`
	// WorstTokens is what one request loses at most.
	WorstTokens float64 `json:"worst_tokens"`

	// Judged is the strategy that the figures speak of: the better of those that
	// the engine can do, also where the decision is off.
	Judged Strategy `json:"judged"`
	// RequestMS is the time of an unhealed request. PrefillSavedMS, DecodeMS and
	// MaskMS are what healing saves and costs of it; NetMS is what is left, below
	// 0 if it costs.
	RequestMS      float64 `json:"request_ms"`
	PrefillSavedMS float64 `json:"prefill_saved_ms"`
	DecodeMS       float64 `json:"decode_ms"`
	MaskMS         float64 `json:"mask_ms"`
	NetMS          float64 `json:"net_ms"`

	// Matches is the gain in the share of right continuations, MatchMS what one is
	// worth, and Value what both come to with NetMS, in weighted milliseconds.
	Matches float64 `json:"matches"`
	MatchMS float64 `json:"match_ms"`
	Value   float64 `json:"value"`

	BreakEven BreakEven `json:"break_even"`
}

// BreakEven are the values of one parameter, the others as they are, at which
// healing neither pays nor costs; nil if there is none in the parameter's range.
// The range of r is one block, that of prompts a million tokens from the shared
// ones on, that of batches and of masked steps 100,000, that of a step's time ten
// seconds.
type BreakEven struct {
	// CacheUnstable is r at which the cache alone pays, and CacheDecodeMS the time
	// of a step at which it does.
	CacheUnstable *float64 `json:"cache_unstable_tokens"`
	CacheDecodeMS *float64 `json:"cache_decode_ms"`
	// MatchMS is what one more right continuation must be worth at least, where
	// healing makes more of them and costs time.
	MatchMS *float64 `json:"match_ms"`
	// The others are those at which everything together, quality included, comes
	// to nothing.
	Unstable     *float64 `json:"unstable_tokens"`
	DirtyShare   *float64 `json:"dirty_share"`
	PromptTokens *float64 `json:"prompt_tokens"`
	Batch        *float64 `json:"batch"`
	MaskedSteps  *float64 `json:"masked_steps"`
}

// An Alternative is another means, with what it does for a request at most.
type Alternative struct {
	Do string `json:"do"`
	// TokensSaved are found in the cache that would not be. Of those at a seam
	// some would have merged with what follows, so fewer are computed less.
	TokensSaved float64 `json:"tokens_saved"`
	SavedMS     float64 `json:"saved_ms"`
	Why         string  `json:"why"`
}
