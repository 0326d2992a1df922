package remote

import "encoding/json"

// Kinds of servers.
const (
	KindLlamaCpp = "llamacpp"
	KindVLLM     = "vllm"
)

// Inspection is what a server was found to be and to be able to do.
type Inspection struct {
	Kind   string   `json:"kind"`
	Server string   `json:"server"` // version, as it says itself
	Model  string   `json:"model"`  // the one that requests name
	Models []string `json:"models"`
	// ModelPath is the file or folder that the server says its model is of: on
	// the server's machine, if anywhere.
	ModelPath string `json:"model_path,omitempty"`

	ContextLength int `json:"context_length"` // tokens a request; 0: not told
	VocabSize     int `json:"vocab_size"`     // 0: not told
	Slots         int `json:"slots"`          // requests at once; 0: not told

	IDPrompts bool   `json:"id_prompts"` // prompts as token IDs
	IDsBack   bool   `json:"ids_back"`   // answers as token IDs
	Mask      string `json:"mask"`       // how a generation is held to a set of tokens; "": not at all
	MaskCap   int    `json:"mask_cap"`   // tokens of a set; 0: all
	Logprobs  int    `json:"logprobs"`   // most alternatives at a position; -1: all

	Grammars     []string        `json:"grammars"`
	CacheReport  bool            `json:"cache_report"` // says how much of a prompt was cached
	ChatTemplate bool            `json:"chat_template"`
	FIM          bool            `json:"fim"`
	Tokenizer    string          `json:"tokenizer"` // verified, not given, or what differs
	Defaults     json.RawMessage `json:"defaults,omitempty"`
	// Notes say what was not found, and what to do about it.
	Notes []string `json:"notes"`
}

func (in *Inspection) note(text string) { in.Notes = append(in.Notes, text) }
