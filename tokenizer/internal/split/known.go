package split

import (
	"fmt"
)

// Parts of the texts of known patterns. What an engine makes of (?i:'s) differs:
// Oniguruma and Rust let it match 'ſ.
const (
	gpt2Text     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	endingsText  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	endings2Text = `'(?i:[sdmt]|ll|ve|re)`
	prefixText   = `[^\r\n\p{L}\p{N}]?`
	linesText    = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	slashText    = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	numbersText  = `\p{N}{1,3}`
	cl100kText   = endingsText + `|` + prefixText + `\p{L}+|` + numbersText + linesText
	upperText    = `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
	lowerText    = `\p{Ll}\p{Lm}\p{Lo}\p{M}`
	notHanText   = `&&[^\p{Han}]`
	kanaText     = `[一-龥぀-ゟ゠-ヿ]+`
	deepseekText = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// casedText is P?U*L+C?|P?U+L*C?.
func casedText(but, endings string) string {
	u, l := `[`+upperText+but+`]`, `[`+lowerText+but+`]`
	return prefixText + u + `*` + l + `+` + endings + `|` + prefixText + u + `+` + l + `*` + endings
}

// family makes the matchers of known patterns for one engine.
type family struct {
	t    *table
	fold fold
}

func (f family) gpt2() matcher      { return &gpt2{t: f.t} }
func (f family) starCoder() matcher { return &gpt2{t: f.t, digits: true} }

// cl100k has groups of up to so many numbers; change, if not nil, edits it.
func (f family) cl100k(digits int, change func(*cl100k)) matcher {
	m := &cl100k{t: f.t, fold: f.fold, digits: digits, word: letters, symbol: symbols, tail: lineEnds, blank: blank{lines: true}}
	if change != nil {
		change(m)
	}
	return m
}

func (f family) o200k(digits int, change func(*o200k)) matcher {
	m := &o200k{
		t: f.t, fold: f.fold, digits: digits,
		upper: kindSet(upper, uncased, mark), lower: kindSet(lower, uncased, mark),
		tail: linesSlash, blank: blank{lines: true},
	}
	if change != nil {
		change(m)
	}
	return m
}

func kimi(m *o200k) {
	m.upper, m.lower, m.hanRuns, m.tail = m.upper.notHan(), m.lower.notHan(), true, lineEnds
}

func marksInWords(m *cl100k) { m.word, m.symbol = wordsAndMarks, symbols&^kindSet(mark) }
func wholeTail(m *cl100k)    { m.blank.whole = true }

// known is a pattern with a scanner of its own.
type known struct {
	name string
	make func(family) matcher
}

// knownPatterns are the patterns that mean the same to Oniguruma and to Rust's
// fancy-regex, by their text.
var knownPatterns = map[string]known{
	gpt2Text: likeGPT2,
	`'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:  likeGPT2,
	`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:         likeGPT2,
	`'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`: likeGPT2,

	cl100kText: likeCL100K,
	endings2Text + `|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: likeCL100K,

	endingsText + `|` + prefixText + `\p{L}+|\p{N}` + linesText:                                          likeQwen2,
	endings2Text + `|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: likeQwen2,

	endingsText + `|` + prefixText + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: likeQwen35,

	endingsText + `|` + prefixText + "\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+": likeSeedCoder,

	casedText("", endingsText+`?`) + `|` + numbersText + slashText: likeO200K,
	casedText("", ``) + `|\p{N}` + slashText:                       likeTekken,

	`[\p{Han}]+|` + casedText(notHanText, endingsText+`?`) + `|` + numbersText + linesText: likeKimi,
}

var (
	likeGPT2          = known{"gpt-2", family.gpt2}
	likeStarCoder     = known{"starcoder", family.starCoder}
	likeCL100K        = known{"cl100k", func(f family) matcher { return f.cl100k(3, nil) }}
	likePossessive    = known{"cl100k", func(f family) matcher { return f.cl100k(3, wholeTail) }}
	likePossessiveHub = known{"cl100k", func(f family) matcher { return f.cl100k(0, wholeTail) }}
	likeQwen2         = known{"qwen2", func(f family) matcher { return f.cl100k(1, nil) }}
	likeQwen35        = known{"qwen3.5", func(f family) matcher { return f.cl100k(1, marksInWords) }}
	likeSeedCoder     = known{"seed-coder", func(f family) matcher { return f.cl100k(1, func(m *cl100k) { m.tail = noBytes }) }}
	likeMiniCPM5      = known{"minicpm5", func(f family) matcher { return f.cl100k(3, func(m *cl100k) { m.blank.numbersEnd = true }) }}
	likeO200K         = known{"o200k", func(f family) matcher { return f.o200k(3, nil) }}
	likeTekken        = known{"tekken", func(f family) matcher { return f.o200k(1, func(m *o200k) { m.fold = foldNever }) }}
	likeKimi          = known{"kimi-k2", func(f family) matcher { return f.o200k(3, kimi) }}
	likeDeepSeek      = known{"deepseek-v3", func(f family) matcher { return &deepseek{t: f.t, symbol: kindSet(punct, symbol)} }}
)

// possessiveCl100k is cl100k_base as tiktoken has it since 0.8. At the end of a
// text all white space is one pretoken: "\n " is not cut behind the newline.
const possessiveCl100k = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`

// Pattern gives the splitter of a pattern of tiktoken (pat_str).
func Pattern(re string) (Splitter, error) {
	f := family{unicode160(), foldFull}
	if re == possessiveCl100k {
		return likePossessive.in(f), nil
	}
	if k, ok := knownPatterns[re]; ok {
		return k.in(f), nil
	}
	s, err := newRegexp(re, isolated, false, fancy)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	return s, nil
}

// hubPattern gives the exact splitter of a regular expression of a
// tokenizer.json, nil if it is not known.
func hubPattern(re string) stage {
	f := family{unicode160(), foldFull}
	if re == possessiveCl100k { // to Oniguruma {1,3}+ repeats the group
		return likePossessiveHub.in(f)
	}
	if k, ok := knownPatterns[re]; ok {
		return k.in(f)
	}
	return nil
}

// in gives the splitter for an engine.
func (k known) in(f family) *exact { return newExact(k.name, k.make(f)) }

func newExact(name string, m matcher) *exact {
	e := &exact{matcher: m, name: name, look: m.style()}
	if e.look.fold == foldFull {
		e.odd = []rune{longS}
	}
	return e
}
