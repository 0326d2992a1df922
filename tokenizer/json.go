package tokenizer

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unfray/unfray/tokenizer/internal/bpe"
	"github.com/unfray/unfray/tokenizer/internal/hfjson"
	"github.com/unfray/unfray/tokenizer/internal/normalize"
	"github.com/unfray/unfray/tokenizer/internal/split"
	"github.com/unfray/unfray/tokenizer/internal/unigram"
	"github.com/unfray/unfray/tokenizer/internal/wordpiece"
	"github.com/unfray/unfray/vocab"
)

// jsonReader makes a tokenizer of a tokenizer.json.
type jsonReader struct {
	file   *hfjson.File
	config *hfjson.Config // what stands in the files beside it; may be nil
	t      *Tokenizer

	steps      []normalize.Step
	llama      bool           // llama.cpp is the reference
	whole      bool           // there is no pre-tokenizer
	byteLevel  bool           // tokens are spelt in GPT-2's alphabet
	meta       bool           // spaces are written ▁ when the model sees the text
	marksSpace bool           // the normalizer leaves no space that is none of those
	spelt      split.Splitter // of what ByteLevel has spelt; may be nil
}

// fromJSON makes the tokenizer that a tokenizer.json declares.
func fromJSON(f *hfjson.File, config *hfjson.Config, ref Reference) (*Tokenizer, error) {
	r := &jsonReader{file: f, config: config, llama: ref == LlamaCpp, t: &Tokenizer{}}
	if f.Truncation {
		r.note(CodeIgnored, "the file asks for truncation; texts are encoded whole")
	}
	if f.Padding {
		r.note(CodeIgnored, "the file asks for padding; none is added")
	}
	for _, step := range []func() error{r.readNormalizer, r.readSplitter, r.readDecoder, r.readVocab, r.readModel, r.readAdded, r.readTemplate} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.t, nil
}

func (r *jsonReader) note(code, text string) {
	r.t.notes = append(r.t.notes, Note{code, text})
}

func (r *jsonReader) readNormalizer() error {
	var steps []normalize.Step
	for _, s := range r.file.Normalizer {
		if r.byteLevel {
			return s.Refuse("the normalizer %s after ByteLevel, where it would see bytes spelt as letters", s.Type)
		}
		if s.Type == "ByteLevel" {
			// It spells bytes in GPT-2's alphabet, which tokens here are not in.
			r.byteLevel = true
			continue
		}
		if r.llama && slices.Contains([]string{"NFC", "NFD", "NFKC", "NFKD"}, s.Type) {
			r.note(CodeIgnored, "the normalizer "+s.Type+" is left out, as llama.cpp leaves it out")
			continue
		}
		steps = append(steps, normalize.Step{
			Type: s.Type, Pattern: s.Pattern, Content: s.Content, Regex: s.Regex, Left: s.Left, Right: s.Right,
			Charsmap: s.Charsmap, CleanText: s.CleanText, ChineseChars: s.ChineseChars,
			StripAccents: s.StripAccents, Lowercase: s.Lowercase,
		})
	}
	r.steps = steps
	return r.makeNormalizer()
}

func (r *jsonReader) makeNormalizer() error {
	if len(r.steps) == 0 {
		return nil
	}
	n, err := normalize.New(r.steps)
	if err != nil {
		return fmt.Errorf("tokenizer: normalizer: %w", err)
	}
	r.meta = n.Meta()
	switch n.Prefix() {
	case "":
	case dummyPrefix:
		r.t.prefix = prefixRule{when: prefixSegments, early: true}
	default:
		return r.file.Normalizer[0].Refuse("a normalizer that puts %q before a text; supported is ▁", n.Prefix())
	}
	r.t.norm = n
	return nil
}

// readSplitter translates the pre-tokenizers.
func (r *jsonReader) readSplitter() error {
	if err := r.checkSpaces(); err != nil {
		return err
	}
	steps, spelt := []split.Step(nil), []split.Step(nil)
	all := r.file.PreTokenizer
	for i, s := range all {
		step := split.Step{
			Type: s.Type, Pattern: s.Pattern, Regex: s.Regex, Behavior: s.Behavior, Invert: s.Invert,
			UseRegex: s.ByteLevel.UseRegex, Individual: s.Individual, Split: s.Metaspace.Split,
			Delimiter: s.Delimiter, Length: s.Length,
		}
		if r.byteLevel {
			// It sees bytes spelt in GPT-2's alphabet.
			if s.Type == "ByteLevel" || s.Type == "Metaspace" {
				return s.Refuse("%s after ByteLevel", s.Type)
			}
			spelt = append(spelt, step)
			continue
		}
		var err error
		switch s.Type {
		case "ByteLevel":
			r.byteLevel = true
			if s.ByteLevel.AddPrefixSpace {
				err = r.addPrefix(s, prefixSegments, steps)
			}
		case "Metaspace":
			steps, err = r.readMetaspace(s, steps)
		case "Split":
			if !r.meta {
				break
			}
			switch {
			case !s.Regex && s.Pattern == " " && !s.Invert:
				continue // it finds none
			case !s.Regex && s.Pattern == metaSpace:
				step.Pattern = " "
			default:
				return s.Refuse("Split by %q after spaces have become ▁", s.Pattern)
			}
		case "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit":
			words := s.Type == "WhitespaceSplit" && i+1 < len(all) && all[i+1].Type == "Metaspace"
			if r.meta && !words {
				return s.Refuse("%s after spaces have become ▁", s.Type)
			}
		}
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	r.whole = len(steps) == 0
	sp, err := split.New(steps)
	if err != nil {
		return fmt.Errorf("tokenizer: pre_tokenizer: %w", err)
	}
	if !sp.Exact() {
		r.t.notes = append(r.t.notes, fallbackNote(sp))
	}
	r.t.split = sp
	if spelt = slices.DeleteFunc(spelt, func(s split.Step) bool { return !s.Cuts() }); len(spelt) > 0 {
		if r.spelt, err = split.New(spelt); err != nil {
			return fmt.Errorf("tokenizer: pre_tokenizer: %w", err)
		}
		if split.Drops(r.spelt) {
			return all[len(all)-1].Refuse("a pre-tokenizer after ByteLevel that drops parts of the text")
		}
	}
	return nil
}

// checkSpaces finds out whether the normalizer writes ▁ and leaves spaces beside
// them, and refuses that: both are spaces here. A Metaspace would make them the
// same.
func (r *jsonReader) checkSpaces() error {
	spaces := true
	for _, s := range r.steps {
		switch s.Type {
		case "NFKC", "NFKD", "Nmt", "Precompiled", "BertNormalizer":
			spaces = true
		case "Prepend", "Replace":
			if s.Pattern == " " && !s.Regex {
				spaces = false
			}
			spaces = spaces || strings.Contains(s.Content, " ")
		}
	}
	if r.marksSpace = r.meta && !spaces; r.marksSpace || !r.meta {
		return nil
	}
	if !slices.ContainsFunc(r.file.PreTokenizer, func(s hfjson.PreTokenizerStep) bool { return s.Type == "Metaspace" }) {
		return r.file.Normalizer[0].Refuse("a normalizer that writes ▁ but leaves spaces in the text")
	}
	for _, a := range r.file.AddedTokens {
		if a.Normalized && (a.LStrip || a.RStrip || strings.ContainsAny(a.Content, " "+metaSpace)) {
			return a.Refuse("the added token %q, with spaces, lstrip or rstrip, where the normalizer writes ▁ for some spaces", a.Content)
		}
	}
	return nil
}

// addPrefix has a pre-tokenizer put a space before the text. It would put it
// before each of the pretokens that the steps before it make.
func (r *jsonReader) addPrefix(s hfjson.PreTokenizerStep, when prefixWhen, before []split.Step) error {
	switch {
	case r.t.prefix.when != prefixNever:
		return s.Refuse("a second component that puts a space before the text")
	case slices.ContainsFunc(before, split.Step.Cuts):
		return s.Refuse("%s that puts a space before each of the pretokens of another pre-tokenizer", s.Type)
	}
	r.t.prefix = prefixRule{when: when, unlessSpace: true}
	return nil
}

// readMetaspace gives the steps that are left to do before a Metaspace.
func (r *jsonReader) readMetaspace(s hfjson.PreTokenizerStep, before []split.Step) ([]split.Step, error) {
	if s.Metaspace.Replacement != '▁' {
		return nil, s.Refuse("Metaspace with %q; supported is ▁", s.Metaspace.Replacement)
	}
	scheme := s.Metaspace.PrependScheme
	words := len(before) == 1 && before[0].Type == "WhitespaceSplit" && scheme == "always" && s.Metaspace.Split
	if words {
		// Each word begins with a ▁, which white space is as good for. A ▁ in
		// the text begins one, too.
		before = nil
		r.steps = append(r.steps,
			normalize.Step{Type: "Replace", Regex: true, Pattern: `\s+`, Content: " "},
			normalize.Step{Type: "Strip", Left: true, Right: true},
			normalize.Step{Type: "Replace", Pattern: " " + metaSpace, Content: metaSpace})
		for _, a := range r.file.AddedTokens {
			if a.Normalized {
				return nil, a.Refuse("the added token %q, which is looked for in normalized text, and WhitespaceSplit before Metaspace", a.Content)
			}
		}
	}
	for _, step := range before {
		if step.Cuts() && !slices.Contains([]string{"Digits", "Punctuation", "FixedLength", "Metaspace"}, step.Type) {
			return nil, s.Refuse("Metaspace after %s, which tells a space from the ▁ that it becomes", step.Type)
		}
	}
	if !r.meta || words {
		// It takes a ▁ in the text for a space that it wrote itself.
		r.steps = append(r.steps, normalize.Step{Type: "Replace", Pattern: metaSpace, Content: " "})
		if err := r.makeNormalizer(); err != nil {
			return nil, err
		}
	}
	r.meta = true
	switch scheme {
	case "always":
		return before, r.addPrefix(s, prefixSegments, before)
	case "first":
		for _, step := range r.file.Normalizer {
			if mayDropFirst(step) {
				return nil, s.Refuse(`Metaspace with prepend_scheme "first" after the normalizer %s, which may drop the first character`, step.Type)
			}
		}
		return before, r.addPrefix(s, prefixFirst, before)
	}
	return before, nil
}

// mayDropFirst reports whether a normalizer may leave out the first character
// of a text so that the reference takes the next one for one that stands
// further on.
func mayDropFirst(s hfjson.NormalizerStep) bool {
	switch s.Type {
	case "Strip":
		return s.Left
	case "StripAccents", "Nmt":
		return true
	case "BertNormalizer":
		return s.CleanText || s.StripAccents
	case "Replace":
		spaced := strings.HasPrefix(s.Content, metaSpace) || strings.HasPrefix(s.Content, " ")
		return !spaced && (s.Content == "" || s.Regex || utf8.RuneCountInString(s.Pattern) > 1)
	}
	return false
}

// readDecoder finds what decoding does beyond putting bytes together.
func (r *jsonReader) readDecoder() error {
	d := &r.t.decoding
	for _, s := range r.file.Decoder {
		switch s.Type {
		case "ByteLevel":
			if !r.byteLevel {
				return s.Refuse("the decoder ByteLevel, where neither normalizer nor pre-tokenizer is ByteLevel")
			}
		case "Fuse", "ByteFallback":
		case "Replace":
			if s.Regex || s.Pattern != metaSpace || s.Content != " " {
				return s.Refuse("a decoder that replaces %q by %q; supported is ▁ by a space", s.Pattern, s.Content)
			}
		case "Strip":
			if s.Content != " " || s.Start > 1 || s.Stop > 0 {
				return s.Refuse("a decoder that strips %d and %d of %q; supported is one space at the start", s.Start, s.Stop, s.Content)
			}
			d.strip = s.Start == 1
		case "Metaspace":
			d.strip = s.Metaspace.PrependScheme != "never"
		case "WordPiece":
			d.words, d.continuation, d.cleanup = true, s.Prefix, s.Cleanup
		default:
			return s.Refuse("the decoder %s; supported are ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace and WordPiece", s.Type)
		}
	}
	d.stripAfter = d.strip && r.t.prefix.when == prefixSegments
	return nil
}

// readVocab collects the model's tokens and the added ones.
func (r *jsonReader) readVocab() error {
	m := &r.file.Model
	if r.byteLevel && r.meta {
		return m.Refuse("a vocabulary in GPT-2's alphabet and spaces written ▁ at once")
	}
	ids := r.file.AddedIDs()
	n := m.Vocab.Len()
	for _, id := range ids {
		n = max(n, id+1)
	}
	kinds := make([]vocab.Kind, n)
	added := make([]int32, n) // place in ids + 1
	for i, id := range ids {
		added[id] = int32(i + 1)
	}
	var blob []byte
	ends := make([]uint32, n)
	for id := range n {
		text, ok := m.Vocab.Token(id)
		kinds[id] = vocab.Unused
		i, isAdded := added[id]-1, added[id] > 0
		if _, isByte := byteToken(text); isByte && m.ByteFallback {
			isAdded = false // what stands for a byte does so all the same
		}
		if isAdded {
			kinds[id] = vocab.UserDefined
			if r.file.AddedTokens[i].Special {
				kinds[id] = vocab.Control
			}
			// One that the model has too is made by merges of normalized text.
			content := []byte(r.file.AddedTokens[i].Content)
			if other, spells := appendSpelled(nil, text); ok && r.byteLevel && spells && !bytes.Equal(other, content) {
				return r.file.AddedTokens[i].Refuse("the added token %q, which in the vocabulary spells %q", content, other)
			}
			if ok && r.meta {
				blob, _ = appendMeta(blob, content)
			} else {
				blob = append(blob, content...)
			}
		} else if ok {
			blob, kinds[id] = r.appendToken(blob, text, id)
		}
		ends[id] = uint32(len(blob))
	}
	sp := r.specials(kinds)
	v, err := vocab.NewFrom(blob, ends, kinds, sp)
	if err != nil {
		return err
	}
	r.t.vocab = v
	return nil
}

// appendToken appends the bytes that a token of the model stands for.
func (r *jsonReader) appendToken(dst, text []byte, id int) ([]byte, vocab.Kind) {
	m := &r.file.Model
	if id == m.UnkID {
		return append(dst, text...), vocab.Unknown
	}
	if m.ByteFallback {
		if b, ok := byteToken(text); ok {
			return append(dst, b), vocab.Byte
		}
	}
	switch {
	case r.byteLevel:
		if dst, ok := appendSpelled(dst, text); ok {
			return dst, vocab.Normal
		}
		return append(dst, text...), vocab.Unused
	case r.meta:
		kind := vocab.Normal
		if bytes.IndexByte(text, ' ') >= 0 {
			kind = vocab.Unused // the text has no space any more
		}
		dst, _ = appendMeta(dst, text)
		return dst, kind
	}
	return append(dst, text...), vocab.Normal
}

func (r *jsonReader) readModel() error {
	m := &r.file.Model
	v := r.t.vocab
	unknown := vocab.None
	if m.UnkID >= 0 {
		unknown = vocab.ID(m.UnkID)
	}
	var err error
	switch m.Type {
	case "BPE":
		err = r.readBPE(unknown)
	case "Unigram":
		if r.byteLevel {
			return m.Refuse("a Unigram model of a vocabulary in GPT-2's alphabet")
		}
		var u *unigram.Model
		if u, err = unigram.New(unigram.Config{Vocab: v, Scores: m.Scores, Unknown: unknown, ByteFallback: m.ByteFallback, FuseUnknown: true, Absent: r.isSpaced}); err == nil {
			r.t.model, r.t.kind = &unigramModel{u, unknown}, kindUnigram
		}
	case "WordPiece":
		if r.byteLevel {
			return m.Refuse("a WordPiece model of a vocabulary in GPT-2's alphabet")
		}
		var w *wordpiece.Model
		if w, err = wordpiece.New(wordpiece.Config{Vocab: v, Prefix: m.ContinuingSubwordPrefix, MaxChars: m.MaxInputCharsPerWord, Unknown: unknown, Added: r.isAdded}); err == nil {
			r.t.model, r.t.kind = &wordpieceModel{w}, kindWordPiece
		}
	default:
		return m.Refuse("the model %s; supported are BPE, Unigram and WordPiece", m.Type)
	}
	if err != nil {
		return fmt.Errorf("tokenizer: model: %w", err)
	}
	if split.Drops(r.t.split) {
		r.t.model = &droppingModel{r.t.model, r.t.split.Keeps}
	}
	return nil
}

func (r *jsonReader) readBPE(unknown vocab.ID) error {
	m := &r.file.Model
	switch {
	case m.ContinuingSubwordPrefix != "":
		return m.Refuse("BPE with continuing_subword_prefix %q", m.ContinuingSubwordPrefix)
	case m.EndOfWordSuffix != "":
		return m.Refuse("BPE with end_of_word_suffix %q", m.EndOfWordSuffix)
	case m.Dropout > 0:
		return m.Refuse("dropout %g, which makes the tokens of a text a matter of chance", m.Dropout)
	}
	b, err := newBPE(bpe.Config{
		Vocab: r.t.vocab, Merges: r.merges(), LastOfEqual: true, Chars: !r.byteLevel, Whole: m.IgnoreMerges,
		ByteFallback: m.ByteFallback, Unknown: unknown, FuseUnknown: m.FuseUnk, DropFirst: true, Added: r.isAdded,
	})
	if err != nil {
		return err
	}
	if r.byteLevel && m.ByteFallback && !r.spellsAll() {
		return m.Refuse("byte_fallback in a vocabulary in GPT-2's alphabet that lacks letters of it")
	}
	r.t.model, r.t.kind = b, kindByteLevel
	if r.spelt != nil {
		r.t.model = &speltModel{b, r.spelt}
	}
	if !r.byteLevel {
		r.t.kind = "BPE"
		if r.meta {
			r.t.kind = kindPieces
		}
		if r.whole {
			r.t.split = b.Breaks()
		}
	}
	return nil
}

// isSpaced reports whether a token has a space where texts have ▁ instead.
func (r *jsonReader) isSpaced(id vocab.ID) bool {
	token, ok := r.file.Model.Vocab.Token(int(id))
	return ok && r.meta && bytes.IndexByte(token, ' ') >= 0
}

// isAdded reports whether a token is not one of the model's.
func (r *jsonReader) isAdded(id vocab.ID) bool {
	_, ok := r.file.Model.Vocab.Token(int(id))
	return !ok
}

// spellsAll reports whether the model has all of GPT-2's alphabet.
func (r *jsonReader) spellsAll() bool {
	for _, char := range charOfByte {
		if _, ok := r.file.Model.Vocab.Lookup([]byte(string(char))); !ok {
			return false
		}
	}
	return true
}

// merges spells out the model's merges.
func (r *jsonReader) merges() iter.Seq2[[]byte, []byte] {
	spell := func(dst, text []byte) ([]byte, bool) { return append(dst, text...), true }
	switch {
	case r.byteLevel:
		spell = appendSpelled
	case r.meta:
		spell = func(dst, text []byte) ([]byte, bool) {
			dst, _ = appendMeta(dst, text)
			return dst, bytes.IndexByte(text, ' ') < 0
		}
	}
	return func(yield func(left, right []byte) bool) {
		var both []byte
		for left, right := range r.file.Model.Merges.All() {
			var okLeft, okRight bool
			both, okLeft = spell(both[:0], left)
			n := len(both)
			both, okRight = spell(both, right)
			if okLeft && okRight && !yield(both[:n], both[n:]) {
				return
			}
		}
	}
}

// readAdded sorts the added tokens into those looked for in raw text and those
// looked for in normalized text.
func (r *jsonReader) readAdded() error {
	var sets [2]struct{ raw, normalized []addedToken }
	ids := r.file.AddedIDs()
	for i, a := range r.file.AddedTokens {
		t := addedToken{text: []byte(a.Content), id: vocab.ID(ids[i]), singleWord: a.SingleWord, lstrip: a.LStrip, rstrip: a.RStrip}
		if a.Normalized {
			if r.t.norm != nil {
				t.text = r.t.norm.Append(nil, t.text)
			}
			if err := r.checkNormalized(a, t.text); err != nil {
				return err
			}
			if r.t.prefix.early {
				t.text = append([]byte(dummyPrefix), t.text...)
			}
		}
		for k := range sets {
			switch {
			case k == 0 && a.Special:
			case a.Normalized:
				sets[k].normalized = append(sets[k].normalized, t)
			default:
				sets[k].raw = append(sets[k].raw, t)
			}
		}
	}
	order := leftmostLongest
	if r.llama {
		order = longestFirst
	}
	for k, set := range []*addedTokens{&r.t.plain, &r.t.all} {
		if r.t.norm == nil && !compete(sets[k].raw, sets[k].normalized) {
			sets[k].raw, sets[k].normalized = append(sets[k].raw, sets[k].normalized...), nil
		}
		set.raw = newAddedMatcher(sets[k].raw, order)
		set.normalized = newAddedMatcher(sets[k].normalized, order)
		set.normalized.marksSpace = r.marksSpace
	}
	return nil
}

// checkNormalized refuses added tokens that cannot be looked for in normalized
// text as they are here.
func (r *jsonReader) checkNormalized(a hfjson.AddedToken, text []byte) error {
	switch {
	case len(text) == 0:
		return a.Refuse("the added token %q, of which the normalizer leaves nothing", a.Content)
	case r.meta && !r.marksSpace && strings.Contains(a.Content, metaSpace):
		return a.Refuse("the added token %q, which is looked for in normalized text before Metaspace writes ▁ for spaces", a.Content)
	case (a.SingleWord || a.LStrip || a.RStrip) && slices.ContainsFunc(r.file.Normalizer, func(s hfjson.NormalizerStep) bool { return s.Type == "ByteLevel" }):
		return a.Refuse("the added token %q with single_word, lstrip or rstrip in text whose bytes the normalizer ByteLevel spells", a.Content)
	}
	return nil
}

// compete reports whether it may matter that first are looked for before then:
// if two of them overlap or any looks at its surroundings.
func compete(first, then []addedToken) bool {
	if len(first) == 0 || len(then) == 0 {
		return false
	}
	a, b := newAddedMatcher(first, leftmostLongest), newAddedMatcher(then, leftmostLongest)
	return a.flagged || b.flagged || a.overlaps(b) || b.overlaps(a)
}

// readTemplate finds the control tokens that stand around a single text.
func (r *jsonReader) readTemplate() error {
	for _, s := range r.file.PostProcessor {
		ids := &r.t.before
		for _, p := range s.Single {
			switch {
			case p.Sequence == "A":
				ids = &r.t.after
			case p.Sequence != "":
				return s.Refuse("a template for one text that has a second in it")
			}
			for _, id := range p.IDs {
				if !r.t.vocab.Valid(vocab.ID(id)) {
					return s.Invalid("the template names the token %d, but there are %d tokens", id, r.t.vocab.Len())
				}
				*ids = append(*ids, vocab.ID(id))
			}
		}
	}
	return nil
}

// specials finds the tokens with a role: by the files beside tokenizer.json,
// by its template, and else, as llama.cpp does, by their text.
func (r *jsonReader) specials(kinds []vocab.Kind) vocab.Specials {
	sp := vocab.NoSpecials()
	ids := r.file.AddedIDs()
	byText := make(map[string]vocab.ID, len(ids))
	for i, a := range r.file.AddedTokens {
		byText[a.Content] = vocab.ID(ids[i])
	}
	first := func(texts ...string) vocab.ID {
		for _, text := range texts {
			if id, ok := byText[text]; ok {
				return id
			}
		}
		return vocab.None
	}
	var eog []vocab.ID
	if c := r.config; c != nil {
		sp.BOS, sp.EOS, sp.Pad = first(c.BOS), first(c.EOS), first(c.Pad)
		for _, id := range c.EOSIDs {
			if id >= 0 && id < len(kinds) {
				eog = append(eog, vocab.ID(id))
			}
		}
		if sp.EOS == vocab.None && len(eog) > 0 {
			sp.EOS = eog[0]
		}
	}
	if m := &r.file.Model; m.UnkID >= 0 && m.UnkID < len(kinds) {
		sp.Unknown = vocab.ID(m.UnkID)
	}
	before, after := r.templateIDs()
	if len(before) == 1 && before[0] >= 0 && before[0] < len(kinds) && (sp.BOS == vocab.None || sp.BOS == vocab.ID(before[0])) {
		sp.BOS, sp.AddBOS = vocab.ID(before[0]), true
	}
	if sp.EOS != vocab.None && len(after) == 1 && after[0] == int(sp.EOS) {
		sp.AddEOS = true
	}
	sp.EOT = first(eotTexts...)
	sp.FIMPrefix, sp.FIMSuffix, sp.FIMMiddle = first(fimPrefixTexts...), first(fimSuffixTexts...), first(fimMiddleTexts...)
	sp.FIMPad, sp.FIMRepo, sp.FIMFile = first(fimPadTexts...), first(fimRepoTexts...), first(fimFileTexts...)
	eog = append(eog, sp.EOS, sp.EOT)
	for _, text := range eogTexts {
		if id, ok := byText[text]; ok && kinds[id] == vocab.Control {
			eog = append(eog, id)
		}
	}
	slices.Sort(eog)
	eog = slices.Compact(eog)
	sp.EOG = slices.DeleteFunc(eog, func(id vocab.ID) bool { return id == vocab.None })
	return sp
}

// templateIDs gives the IDs that the template has before and after a text.
func (r *jsonReader) templateIDs() (before, after []int) {
	ids := &before
	for _, s := range r.file.PostProcessor {
		for _, p := range s.Single {
			if p.Sequence != "" {
				ids = &after
			}
			*ids = append(*ids, p.IDs...)
		}
	}
	return before, after
}
