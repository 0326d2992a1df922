package wire

// InfillRequest is the body of POST /infill, llama.cpp's own way to fill in the
// middle.
type InfillRequest struct {
	Sampling // N is n_cmpl, MaxTokens n_predict; see Endless
	Model    string
	// Prefix and Suffix are nil if the field was missing or null.
	Prefix, Suffix *string
	// Prompt goes on with Prefix: the text of the cursor's line, where a client
	// sends it apart.
	Prompt  string
	Extra   []InfillFile
	Endless bool // n_predict is negative: as many tokens as the context holds

	// Ignored lists the paths of fields that this package does not know.
	Ignored []string
}

// InfillFile is a part of another file, of input_extra.
type InfillFile struct {
	Filename string
	Text     string
}

// DecodeInfill reads the body of an infill request. Errors are [*DecodeError].
func DecodeInfill(b []byte) (*InfillRequest, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	req := &InfillRequest{}
	r := req.Sampling.reader(&req.Ignored)
	r["model"] = into(&req.Model, (*field).string)
	r["input_prefix"] = given(&req.Prefix, (*field).string)
	r["input_suffix"] = given(&req.Suffix, (*field).string)
	r["prompt"] = into(&req.Prompt, (*field).string)
	r["input_extra"] = func(f *field) error {
		return f.each(func(e *field) error {
			var file InfillFile
			err := reader{
				"filename": into(&file.Filename, (*field).string),
				"text":     into(&file.Text, (*field).string),
			}.read(e, &req.Ignored)
			req.Extra = append(req.Extra, file)
			return err
		})
	}
	req.Sampling.native(r, &req.Endless)
	if err := r.read(f, &req.Ignored); err != nil {
		return nil, err
	}
	return req, nil
}

// Infill is the answer of /infill and /completion, whole or, in a stream, a
// part.
type Infill struct {
	Index           int     `json:"index"`
	Content         string  `json:"content"`
	Tokens          []int32 `json:"tokens"` // empty without return_tokens
	Stop            bool    `json:"stop"`   // false in the parts of a stream but the last
	TokensPredicted int     `json:"tokens_predicted"`
	TokensEvaluated int     `json:"tokens_evaluated"`
	*InfillEnd              // nil in the parts of a stream but the last

	// Probs describes the tokens where n_probs asks for it.
	Probs []NativeToken `json:"completion_probabilities,omitempty"`
	// Bytes holds the exact bytes of a content that is not valid UTF-8.
	Bytes  []byte  `json:"bytes,omitempty"`
	Unfray *Unfray `json:"unfray,omitempty"`
}

// InfillEnd is what the end of an answer tells.
type InfillEnd struct {
	Model        string        `json:"model"`
	HasNewLine   bool          `json:"has_new_line"`
	Truncated    bool          `json:"truncated"` // of the prompt: never
	StopType     string        `json:"stop_type"` // eos, limit or word
	StoppingWord string        `json:"stopping_word"`
	TokensCached int           `json:"tokens_cached"`
	Timings      InfillTimings `json:"timings"`
}

// InfillTimings counts the tokens that were worked on. Times are not known for
// single requests of a batch.
type InfillTimings struct {
	CacheN     int `json:"cache_n"`
	PromptN    int `json:"prompt_n"` // without the cached ones
	PredictedN int `json:"predicted_n"`
}
