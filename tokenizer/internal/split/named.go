package split

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// llamaCpp makes the pre-tokenizers of llama.cpp by the values of
// tokenizer.ggml.pre. Left out are names of embedding models for which it also
// strips text around a mask token or adds a separator, and those whose
// vocabularies are not spelled in bytes.
var llamaCpp = func() map[string]func() (stage, error) {
	m := map[string]func() (stage, error){}
	f := func() family { return family{unicode151(), foldASCII} }
	add := func(k known, names ...string) {
		for _, name := range names {
			m[name] = func() (stage, error) { return newExact(name, k.make(f())), nil }
		}
	}
	cased := func(digits int, t func() *table, change func(*o200k)) known {
		return known{make: func(f family) matcher {
			m := f.o200k(digits, change)
			m.(*o200k).t = t()
			return m
		}}
	}
	add(likeGPT2, "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "a.x-4.0", "mellum", "mpt", "olmo",
		"jais", "trillion", "granite-docling", "exaone4")
	add(likeStarCoder, "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2")
	add(likeCL100K, "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
		"jina-v5-nano", "dbrx", "smaug-bpe", "glm4", "glm5", "chatglm-bpe")
	add(likeQwen2, "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open",
		"grok-2", "bailingmoe", "bailingmoe2", "llada-moe")
	add(likeQwen35, "qwen35")
	add(likeSeedCoder, "seed-coder")
	add(known{make: func(f family) matcher { return f.cl100k(1, func(m *cl100k) { m.fold = foldNever }) }}, "ufakzeka")
	add(likeMiniCPM5, "minicpm5")
	add(cased(3, asciiCase, nil), "gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2")
	add(cased(3, asciiCaseAndMarks, nil), "granite-embed-multi-97m")
	add(cased(1, asciiCase, func(m *o200k) { m.fold = foldNever }), "tekken")
	add(cased(3, llamaHan, kimi), "kimi-k2")
	add(likeDeepSeek, "deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4")

	m["falcon"] = func() (stage, error) {
		marks := newCuts("Punctuation", kindSet(punct).has, -1, contiguous, false)
		marks.t = asciiPunctuation()
		three := repeats[`[0-9][0-9][0-9]`]
		return newSequence(marks, newSequence(likeGPT2.in(f()), &delimited{finder: &three, name: "[0-9][0-9][0-9]"})), nil
	}
	m["laguna"] = func() (stage, error) {
		return newSequence(newCuts(`[^\n]+|[\n]+`, nil, '\n', contiguous, false), likeQwen2.in(f())), nil
	}
	for name, re := range map[string]string{
		"bloom":        bloomText,
		"poro-chat":    bloomText,
		"gpt3-finnish": bloomText,
		"jais-2":       jais2Text,
		"exaone-moe":   exaoneMoEText,
	} {
		m[name] = func() (stage, error) { return newRegexp(re, isolated, false, standard) }
	}
	return m
}()

// Patterns that have no scanner of their own, as llama.cpp spells them but for
// the syntax of character classes.
const (
	asciiEndings  = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|`
	bloomText     = ` ?[^(\s|\[.,!?…。，、।۔،)]+`
	jais2Text     = asciiEndings + prefixText + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	exaoneMoEText = asciiEndings + prefixText + `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
)

// Named gives the splitter that llama.cpp uses for a value of tokenizer.ggml.pre
// in a GGUF file.
func Named(llamaCppName string) (Splitter, error) {
	open, ok := llamaCpp[llamaCppName]
	if !ok {
		return nil, fmt.Errorf("pre-tokenizer %q is not supported; supported are %s",
			llamaCppName, strings.Join(slices.Sorted(maps.Keys(llamaCpp)), ", "))
	}
	s, err := open()
	if err != nil {
		return nil, fmt.Errorf("pre-tokenizer %s: %w", llamaCppName, err)
	}
	return s, nil
}

// Names lists the values of tokenizer.ggml.pre that [Named] knows, in
// alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(llamaCpp)) }
