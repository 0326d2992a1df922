package tokenizer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/vocab"
)

// llama.cpp knows the role of some tokens by their text, where the file does
// not say it: the lists below are its, each in its order. Where several tokens
// of a vocabulary fit, llama.cpp takes any of them, we the first of the list.
var (
	eotTexts = []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
		"<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
	}
	eomTexts       = []string{"<|eom_id|>"}
	fimPrefixTexts = []string{
		"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
		"<|code_prefix|>", "<|prefix|>",
	}
	fimSuffixTexts = []string{
		"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
		"<|code_suffix|>", "<|suffix|>",
	}
	fimMiddleTexts = []string{
		"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
		"<|code_middle|>", "<|middle|>",
	}
	fimPadTexts  = []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}
	fimRepoTexts = []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}
	fimFileTexts = []string{"<|file_sep|>"}

	eogTexts = []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
		"<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
		"<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
		"<｜end▁of▁sentence｜>", "[e~[",
	}
	// userDefinedTexts are control tokens in their files that are to be shown.
	userDefinedTexts = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}
)

// defaultGPT2 is the token that BOS and EOS are in a vocabulary of GPT-2's
// kind whose file names none.
const defaultGPT2 = 11

// roleDefaults are the roles that llama.cpp gives where the file says nothing.
type roleDefaults struct {
	bos, eos, unknown vocab.ID
	addBOS            bool
}

// roles finds the tokens with a role, and corrects kinds as llama.cpp does.
type roles struct {
	file   *gguf.File
	def    roleDefaults
	byText map[string]vocab.ID
	kinds  []vocab.Kind
	eog    map[vocab.ID]bool
}

// key gives the token that a metadata key names, or def if it names none that
// exists.
func (r *roles) key(key string, def vocab.ID) vocab.ID {
	if int(def) >= len(r.kinds) {
		def = vocab.None
	}
	if n, err := r.file.Uint("tokenizer.ggml." + key); err == nil && n < uint64(len(r.kinds)) {
		return vocab.ID(n)
	}
	return def
}

// keyOrText is key where a file that does not name the token leaves it to be
// known by its text.
func (r *roles) keyOrText(keys []string, texts []string) vocab.ID {
	id := vocab.None
	for _, key := range keys {
		id = r.key(key, id)
	}
	if id != vocab.None {
		return id
	}
	for _, text := range texts {
		if id, ok := r.byText[text]; ok {
			r.kinds[id] = vocab.Control
			return id
		}
	}
	return vocab.None
}

// specials reads and guesses all roles.
func (r *roles) specials() (vocab.Specials, error) {
	sp := vocab.NoSpecials()
	sp.BOS = r.key("bos_token_id", r.def.bos)
	sp.EOS = r.key("eos_token_id", r.def.eos)
	sp.Unknown = r.key("unknown_token_id", r.def.unknown)
	sp.Pad = r.key("padding_token_id", vocab.None)
	sp.EOT = r.keyOrText([]string{"eot_token_id"}, eotTexts)
	eom := r.keyOrText([]string{"eom_token_id"}, eomTexts)
	sp.FIMPrefix = r.keyOrText([]string{"fim_pre_token_id", "prefix_token_id"}, fimPrefixTexts)
	sp.FIMSuffix = r.keyOrText([]string{"fim_suf_token_id", "suffix_token_id"}, fimSuffixTexts)
	sp.FIMMiddle = r.keyOrText([]string{"fim_mid_token_id", "middle_token_id"}, fimMiddleTexts)
	sp.FIMPad = r.keyOrText([]string{"fim_pad_token_id"}, fimPadTexts)
	sp.FIMRepo = r.keyOrText([]string{"fim_rep_token_id"}, fimRepoTexts)
	sp.FIMFile = r.keyOrText([]string{"fim_sep_token_id"}, fimFileTexts)
	for _, id := range []vocab.ID{sp.FIMPad, sp.FIMRepo, sp.FIMFile} {
		r.eog[id] = true
	}
	for _, text := range eogTexts {
		if id, ok := r.byText[text]; ok {
			r.eog[id] = true
			r.kinds[id] = vocab.Control
		}
	}
	for _, text := range userDefinedTexts {
		if id, ok := r.byText[text]; ok {
			r.kinds[id] = vocab.UserDefined
		}
	}
	for _, id := range []vocab.ID{sp.EOS, sp.EOT, eom} {
		r.eog[id] = true
	}
	r.exceptions()
	delete(r.eog, vocab.None)
	for id := range r.eog {
		sp.EOG = append(sp.EOG, id)
	}
	slices.Sort(sp.EOG)
	return sp, r.flags(&sp)
}

// exceptions takes out of the end-of-generation tokens those that mean
// something else in vocabularies that also have certain others.
func (r *roles) exceptions() {
	has := func(text string) bool {
		id, ok := r.byText[text]
		return ok && r.eog[id]
	}
	calls := has("<|call|>") || has("<|calls|>")
	if calls && has("<|end|>") && (has("<|return|>") || has("<|flush|>")) {
		id := r.byText["<|end|>"]
		delete(r.eog, id)
		r.kinds[id] = vocab.UserDefined
	}
	if has("<|tool_response>") && has("</s>") {
		id := r.byText["</s>"]
		delete(r.eog, id)
		r.kinds[id] = vocab.Normal
	}
}

// flags reads whether BOS and EOS are to be added.
func (r *roles) flags(sp *vocab.Specials) error {
	for _, f := range []struct {
		key string
		set *bool
		id  vocab.ID
		def bool
	}{
		{"tokenizer.ggml.add_bos_token", &sp.AddBOS, sp.BOS, r.def.addBOS},
		{"tokenizer.ggml.add_eos_token", &sp.AddEOS, sp.EOS, false},
	} {
		on, err := r.file.Bool(f.key)
		if errors.Is(err, gguf.ErrNoKey) {
			on, err = f.def && f.id != vocab.None, nil
		}
		if err != nil {
			return err
		}
		if on && f.id == vocab.None {
			return fmt.Errorf("tokenizer: %s is true, but there is no such token", f.key)
		}
		*f.set = on
	}
	return nil
}
