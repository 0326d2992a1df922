package split

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// scanAll gives all ends of text[from:].
func scanAll(s Splitter, text []byte, from int) []int {
	var out []int
	ends := make([]int, 7) // long texts take several calls
	for from < len(text) {
		n := s.Scan(ends, text, from)
		out = append(out, ends[:n]...)
		from = ends[n-1]
	}
	return out
}

// shown gives the ends of text+s that are not beyond text, as bits.
func shown(s Splitter, text, more string) uint64 {
	var bits uint64
	var ends [8]int
	all := []byte(text + more)
	for from := 0; from < len(all); {
		n := s.Scan(ends[:], all, from)
		for _, e := range ends[:n] {
			if e > len(text) {
				return bits
			}
			bits |= 1 << e
		}
		from = ends[n-1]
	}
	return bits
}

// strings of one to most parts.
func concatenations(parts []string, most int) []string {
	var out []string
	level := []string{""}
	for range most {
		var next []string
		for _, s := range level {
			for _, p := range parts {
				next = append(next, s+p)
			}
		}
		out = append(out, next...)
		level = next
	}
	return out
}

// probed are splitters that promise exact answers, each with characters that it
// tells apart.
func probed(t testing.TB) map[string][]string {
	t.Helper()
	m := map[string][]string{}
	for _, k := range knownForTests {
		parts := strings.Split("a e l r ' 1 ! \n 中 \u0301", " ")
		switch k.name {
		case "o200k", "tekken":
			parts = append(parts, "A", "/")
		case "kimi-k2":
			parts = append(parts, "A", "あ", "⺀", "〇")
		case "deepseek-v3":
			parts = append(parts, "\x00", "・", "é", "\u3040")
		default:
			parts = append(parts, "s", "\t")
		}
		m[k.name] = append(parts, " ")
	}
	return m
}

var knownForTests = []known{likeGPT2, likeStarCoder, likeCL100K, likeQwen2, likeQwen35, likeSeedCoder, likeMiniCPM5,
	likePossessive, likePossessiveHub, likeO200K, likeTekken, likeKimi, likeDeepSeek}

// checkContinuations tries continuations of a text: what is fixed must not move,
// what they do some probe must show.
func checkContinuations(t *testing.T, s Splitter, text string, more []string) {
	t.Helper()
	b := []byte(text)
	probes := s.Probes(b, 0)
	shows := map[uint64]bool{}
	for _, q := range probes {
		shows[shown(s, text, q)] = true
	}
	end, fixed := s.Next(b, 0)
	if bits := shown(s, text, ""); bits&(1<<end-1) != 0 || bits>>end&1 == 0 {
		t.Fatalf("%s: first pretoken of %q ends at %d to Next, not to Scan (%b)", s, text, end, bits)
	}
	moves := false
	for _, c := range more {
		if e, _ := s.Next([]byte(text+c), 0); e != end {
			moves = true
			if fixed {
				t.Fatalf("%s: %q + %q: first pretoken ends at %d, was fixed at %d", s, text, c, e, end)
			}
		}
		if bits := shown(s, text, c); s.Exact() && !shows[bits] {
			t.Fatalf("%s: %q + %q has ends %b, no probe of %q has", s, text, c, bits, probes)
		}
	}
	if _, plain := s.(*exact); plain && !moves && !fixed && len(more) > 1000 {
		t.Errorf("%s: end %d of the first pretoken of %q is not fixed, but nothing moves it", s, end, text)
	}
}

var raceEnabled bool

// exhaust tries all short texts and continuations, and random longer ones.
func exhaust(t *testing.T, s Splitter, parts []string) {
	short, long := concatenations(parts, 2), concatenations(parts, 3)
	rounds := 500
	if _, ok := s.(*sequence); ok { // has many probes
		long, rounds = short, 100
	}
	if raceEnabled {
		short, long, rounds = concatenations(parts, 1), short[:min(len(short), 200)], 10
	}
	for _, text := range long {
		checkContinuations(t, s, text, short)
	}
	for _, text := range short {
		checkContinuations(t, s, text, long)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		return b.String()
	}
	for range rounds {
		var more []string
		for range 40 {
			more = append(more, pick(1+rng.IntN(7)))
		}
		checkContinuations(t, s, pick(4+rng.IntN(9)), more)
	}
}

func TestContinuations(t *testing.T) {
	for _, k := range knownForTests {
		s := k.in(family{unicode160(), foldFull})
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			exhaust(t, s, probed(t)[k.name])
		})
	}
}

func TestContinuationsOfSteps(t *testing.T) {
	few := strings.Split("a 1 ' ! - \u0301 \n", " ")
	few = append(few, " ")
	split := func(pattern, behavior string, invert bool) Step {
		return Step{Type: "Split", Pattern: pattern, Behavior: behavior, Invert: invert}
	}
	regex := func(pattern, behavior string) Step {
		return Step{Type: "Split", Pattern: pattern, Regex: true, Behavior: behavior}
	}
	gpt2, digits := Step{Type: "ByteLevel", UseRegex: true}, Step{Type: "Digits"}
	for name, steps := range map[string][]Step{
		"none":             {},
		"digits gpt-2":     {digits, gpt2},
		"falcon":           {{Type: "Punctuation", Behavior: "Contiguous"}, gpt2, regex("[0-9][0-9][0-9]", "Isolated")},
		"whitespace":       {{Type: "Whitespace"}, {Type: "Digits", Individual: true}},
		"bert":             {{Type: "BertPreTokenizer"}},
		"metaspace":        {{Type: "Metaspace", Split: true}},
		"metaspace digits": {{Type: "Metaspace", Split: true}, digits},
		"newline qwen2":    {split("\n", "Contiguous", false), regex(endingsText+`|`+prefixText+`\p{L}+|\p{N}`+linesText, "Isolated")},
		"fixed length":     {{Type: "FixedLength", Length: 2}},
		"delimiter":        {{Type: "CharDelimiterSplit", Delimiter: '-'}},
		"next":             {split("-", "MergedWithNext", false)},
		"previous":         {split("-", "MergedWithPrevious", true)},
		"a-a":              {split("a-a", "Isolated", false)},
		"a-a next":         {split("a-a", "MergedWithNext", false)},
		"aa-":              {split("aa-", "Contiguous", false)},
		"--a previous":     {split("--a", "MergedWithPrevious", true)},
		"numbers":          {regex(`\p{N}{1,3}`, "MergedWithPrevious")},
		"three":            {regex(`[0-9][0-9][0-9]`, "Isolated")},
		"regexp":           {regex(`a+1|a(?!\s)|-+(?=1)| ?!`, "Isolated")},
		"bloom":            {regex(` ?[^(\s|[.,!?])]+`, "Contiguous")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := New(steps)
			if err != nil {
				t.Fatal(err)
			}
			exhaust(t, s, few)
		})
	}
}
