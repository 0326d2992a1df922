package fim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Order is how the sections of a prompt follow one another.
type Order uint8

// Orders of sections.
const (
	// PSM is prefix, suffix, middle.
	PSM Order = iota
	// SPM is suffix, prefix, middle. The suffix stays in the prefix cache while
	// the user types.
	SPM
)

func (o Order) String() string {
	if o == SPM {
		return "SPM"
	}
	return "PSM"
}

// Layout is how one model was trained to see the sections. It may be shared by
// goroutines.
type Layout struct {
	Name  string // of the family whose markers these are: "Qwen2.5-Coder"
	Order Order
	// Prefix, Suffix and Middle are the markers. Middle is [vocab.None] where the
	// middle simply follows the prefix.
	Prefix, Suffix, Middle vocab.ID
	// Repo and File stand before the name of a repository and of a file;
	// [vocab.None] in models that have no such tokens.
	Repo, File vocab.ID
	// Ends lists tokens that end a middle beside the vocabulary's own
	// end-of-generation tokens, in ascending order: the markers too.
	Ends []vocab.ID

	tok    *tokenizer.Tokenizer
	family *family
}

// spmForm is how a family writes SPM.
type spmForm uint8

const (
	noSPM spmForm = iota
	// spmMarked is <prefix> <suffix> SUFFIX <middle> PREFIX: the form that
	// "Efficient Training of Language Models to Fill in the Middle" (Bavarian et
	// al. 2022) calls variant 2, in which StarCoder and CodeLlama were trained.
	spmMarked
	// spmBare is <suffix> SUFFIX <prefix> PREFIX, as in mistral-common.
	spmBare
)

// family is a set of markers and what its models were trained on.
type family struct {
	name                   string
	prefix, suffix, middle string
	spm                    spmForm
	noPSM                  bool
	// repo and file are pairs of texts, by preference. repoEnd follows the name of
	// a repository.
	context [][2]string
	repoEnd string
}

var (
	contextStarCoder = [][2]string{{"<repo_name>", "<file_sep>"}, {"<reponame>", "<filename>"}}

	// families are looked at in this order. Sources: the model cards of
	// Qwen2.5-Coder, StarCoder 2, DeepSeek-Coder and Granite; CodeLlama's
	// tokenizer (encode_infilling); mistral-common (encode_fim).
	families = []family{
		{
			name:   "Qwen2.5-Coder",
			prefix: "<|fim_prefix|>", suffix: "<|fim_suffix|>", middle: "<|fim_middle|>",
			context: [][2]string{{"<|repo_name|>", "<|file_sep|>"}}, repoEnd: "\n",
		},
		{
			name:   "StarCoder",
			prefix: "<fim_prefix>", suffix: "<fim_suffix>", middle: "<fim_middle>",
			spm: spmMarked, context: contextStarCoder,
		},
		{
			name:   "SantaCoder",
			prefix: "<fim-prefix>", suffix: "<fim-suffix>", middle: "<fim-middle>",
			spm: spmMarked,
		},
		{
			name:   "CodeLlama",
			prefix: "▁<PRE>", suffix: "▁<SUF>", middle: "▁<MID>",
			spm: spmMarked,
		},
		{
			name:   "DeepSeek-Coder",
			prefix: "<｜fim▁begin｜>", suffix: "<｜fim▁hole｜>", middle: "<｜fim▁end｜>",
		},
		{
			name:   "Codestral",
			prefix: "[PREFIX]", suffix: "[SUFFIX]",
			spm: spmBare, noPSM: true,
		},
	}

	// generic is for markers that only a GGUF file's metadata or llama.cpp's lists
	// of texts tell apart. llama-server takes all for PSM.
	generic = family{name: "as the vocabulary names them"}

	// endTexts are tokens after which no middle goes on, in the models that have
	// them.
	endTexts = []string{
		"<EOT>", "▁<EOT>", "<|endoftext|>", "<|file_separator|>", "<file_sep>", "<filename>", "<fim_pad>",
	}
)

// NoFIMError says that a vocabulary has no complete set of markers.
type NoFIMError struct {
	// Missing names the markers that were not found: prefix, suffix, middle.
	Missing []string
}

func (e *NoFIMError) Error() string {
	var texts []string
	for i := range families {
		texts = append(texts, families[i].prefix)
	}
	return fmt.Sprintf("fim: this model cannot fill in the middle: its vocabulary has no token that marks the %s. "+
		"Looked for the GGUF keys tokenizer.ggml.fim_{pre,suf,mid}_token_id and for tokens such as %s. "+
		"Use a model that was trained to fill in, or send the prefix without a suffix",
		strings.Join(e.Missing, ", the "), strings.Join(texts, " "))
}

// Find returns the layout of a tokenizer's model in its family's usual order:
// PSM, but for Codestral. The error is a [*NoFIMError].
func Find(t *tokenizer.Tokenizer) (*Layout, error) {
	v := t.Vocab()
	sp := v.Specials()
	l := &Layout{
		Prefix: sp.FIMPrefix, Suffix: sp.FIMSuffix, Middle: sp.FIMMiddle,
		Repo: sp.FIMRepo, File: sp.FIMFile, tok: t,
	}
	if !l.known(v) {
		if l.Middle == vocab.None && l.Prefix == vocab.None {
			l.Suffix = vocab.None // some other token that looks like one
		}
		return nil, l.lacking()
	}
	l.Name = l.family.name
	if l.family.noPSM {
		l.Order, l.Middle = SPM, vocab.None
	}
	l.findContext(v)
	l.findEnds(v)
	return l, nil
}

// known finds the family, and the markers where the vocabulary names none.
func (l *Layout) known(v *vocab.Vocab) bool {
	if l.Prefix != vocab.None && l.Suffix != vocab.None {
		text := spelled(v, l.Prefix)
		for i := range families {
			if f := &families[i]; f.prefix == text && (f.noPSM || l.Middle != vocab.None) {
				l.family = f
				return true
			}
		}
		l.family = &generic
		return l.Middle != vocab.None
	}
	for i := range families {
		f := &families[i]
		prefix, suffix, middle := lookup(v, f.prefix), lookup(v, f.suffix), lookup(v, f.middle)
		if prefix != vocab.None && suffix != vocab.None && (f.noPSM || middle != vocab.None) {
			l.Prefix, l.Suffix, l.Middle, l.family = prefix, suffix, middle, f
			return true
		}
	}
	return false
}

// spelled is the text of a token as the lists here have it.
func spelled(v *vocab.Vocab, id vocab.ID) string {
	text := string(v.Bytes(id))
	if v.IsText(id) && strings.HasPrefix(text, " <") {
		text = "▁" + text[1:]
	}
	return text
}

// lookup finds a marker by its text. SentencePiece models may have CodeLlama's
// as ordinary pieces, which begin with a space.
func lookup(v *vocab.Vocab, text string) vocab.ID {
	if id, ok := v.LookupSpecial([]byte(text)); ok {
		return id
	}
	if rest, ok := strings.CutPrefix(text, "▁<"); ok {
		if id, ok := v.Lookup([]byte(" <" + rest)); ok {
			return id
		}
	}
	return vocab.None
}

func (l *Layout) lacking() *NoFIMError {
	e := &NoFIMError{}
	for _, m := range []struct {
		name string
		id   vocab.ID
	}{{"prefix", l.Prefix}, {"suffix", l.Suffix}, {"middle", l.Middle}} {
		if m.id == vocab.None {
			e.Missing = append(e.Missing, m.name)
		}
	}
	return e
}

// findContext looks for the family's own tokens of repositories and files. It
// leaves those that the vocabulary names only if the family has no others.
func (l *Layout) findContext(v *vocab.Vocab) {
	for _, pair := range l.family.context {
		repo, file := lookup(v, pair[0]), lookup(v, pair[1])
		if repo != vocab.None && file != vocab.None {
			l.Repo, l.File = repo, file
			return
		}
	}
	if l.family != &generic && len(l.family.context) == 0 {
		l.Repo, l.File = vocab.None, vocab.None
	}
}

func (l *Layout) findEnds(v *vocab.Vocab) {
	sp := v.Specials()
	ends := []vocab.ID{l.Prefix, l.Suffix, l.Middle, l.Repo, l.File, sp.FIMMiddle, sp.FIMPad, sp.EOT}
	for _, text := range endTexts {
		ends = append(ends, lookup(v, text))
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	l.Ends = slices.DeleteFunc(ends, func(id vocab.ID) bool { return id == vocab.None })
}

// In returns the layout in another order. It is an error if the family's models
// were not trained on it.
func (l *Layout) In(o Order) (*Layout, error) {
	if o == l.Order {
		return l, nil
	}
	if o == SPM && l.family.spm == noSPM || o == PSM && l.family.noPSM {
		return nil, fmt.Errorf("fim: models with the tokens of %s are trained on the order %s only, not %s", l.Name, l.Order, o)
	}
	other := *l
	other.Order = o
	return &other, nil
}

// Before is the marker that stands before the prefix section. Where a vocabulary
// puts a dummy space before text, it depends on it: see
// [tokenizer.Tokenizer.NewTextAfter].
func (l *Layout) Before() vocab.ID {
	if l.Order == SPM && l.family.spm == spmMarked {
		return l.Middle
	}
	return l.Prefix
}

// EncodeSuffix appends the tokens of the suffix section. It never begins with a
// dummy space: the suffix follows other text.
func (l *Layout) EncodeSuffix(dst []vocab.ID, suffix []byte) []vocab.ID {
	return l.tok.EncodeInside(dst, suffix)
}

// Arrange appends a prompt: head (BOS and what [Layout.Context] gives; may be
// empty), then the sections with their markers. prefix may hold only the stable
// tokens of the prefix section; generation from the prompt's end must then first
// produce the rest of it. The prefix section ends before ids[at].
func (l *Layout) Arrange(dst, head, prefix, suffix []vocab.ID) (ids []vocab.ID, at int) {
	ids = append(dst, head...)
	switch {
	case l.Order == PSM:
		ids = append(append(ids, l.Prefix), prefix...)
		at = len(ids)
		ids = append(append(ids, l.Suffix), suffix...)
		return append(ids, l.Middle), at
	case l.family.spm == spmMarked:
		ids = append(append(ids, l.Prefix, l.Suffix), suffix...)
		ids = append(append(ids, l.Middle), prefix...)
	default:
		ids = append(append(ids, l.Suffix), suffix...)
		ids = append(append(ids, l.Prefix), prefix...)
	}
	return ids, len(ids)
}

// Split takes a prompt apart that [Layout.Arrange] may have made: one that a
// client put together itself. ok is false if the IDs do not end in this layout's
// sections. The slices are parts of ids.
func (l *Layout) Split(ids []vocab.ID) (head, prefix, suffix []vocab.ID, ok bool) {
	// Each marker in the order in which they stand, the last of each.
	last := func(id vocab.ID) int {
		for i := len(ids) - 1; i >= 0; i-- {
			if ids[i] == id {
				return i
			}
		}
		return -1
	}
	pre, suf := last(l.Prefix), last(l.Suffix)
	if pre < 0 || suf < 0 {
		return nil, nil, nil, false
	}
	switch {
	case l.Order == PSM:
		end := len(ids) - 1
		if ids[end] != l.Middle || pre > suf {
			return nil, nil, nil, false
		}
		head, prefix, suffix = ids[:pre], ids[pre+1:suf], ids[suf+1:end]
	case l.family.spm == spmMarked:
		mid := last(l.Middle)
		if suf != pre+1 || mid < suf {
			return nil, nil, nil, false
		}
		head, suffix, prefix = ids[:pre], ids[suf+1:mid], ids[mid+1:]
	default:
		if suf > pre {
			return nil, nil, nil, false
		}
		head, suffix, prefix = ids[:suf], ids[suf+1:pre], ids[pre+1:]
	}
	marker := func(id vocab.ID) bool {
		return id == l.Prefix || id == l.Suffix || id == l.Middle && id != vocab.None
	}
	if slices.ContainsFunc(prefix, marker) || slices.ContainsFunc(suffix, marker) {
		return nil, nil, nil, false
	}
	return head, prefix, suffix, true
}
