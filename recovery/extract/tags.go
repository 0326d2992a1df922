package extract

import (
	"slices"
	"strings"
	"sync"
)

// A Place says where a tag opens reasoning. Nowhere does one inside code, code
// fences or strings of JSON.
type Place uint8

const (
	// AtStart is before anything of the answer: behind white space and other
	// reasoning at most.
	AtStart Place = iota
	// AtLine is also at the beginning of a line, and behind the end of a sentence.
	AtLine
	// Anywhere is for tokens that nobody writes: <|START_THINKING|>.
	Anywhere
)

// A Tag is how a family of models marks its reasoning.
//
// Where Open is <name>, Close and Also of the form </name>, letters count in
// either case, and the opening tag may have attributes.
type Tag struct {
	Open  string // "": never written by the model, because the prompt ends with it
	Close string
	Also  []string // what else closes it
	// Until is what ends it without being part of it. Of models that forget to close
	// their reasoning before they call a tool it may be <tool_call>; by default it is
	// not, because others draft calls there.
	Until []string
	Place Place
	// Unopened says that Close alone tells that all before it was reasoning. See
	// [Options.Unopened].
	Unopened bool
}

// DefaultTags returns the marks that are known. They are those of the chat
// templates and of the parsers of vLLM, SGLang and llama.cpp.
func DefaultTags() []Tag {
	think := []string{"</think>", "</thinking>"}
	var tags []Tag
	// Qwen, DeepSeek, GLM, Nemotron, Phi and most others; MiniMax M3; Seed-OSS;
	// Hunyuan 3.
	for _, name := range []string{"think", "thinking", "mm:think", "seed:think", "think:opensource", "antthinking"} {
		tags = append(tags, Tag{Open: "<" + name + ">", Close: "</" + name + ">", Also: think, Place: AtLine, Unopened: true})
	}
	// Names that prompts ask for, and that may be part of an answer elsewhere.
	for _, name := range []string{"reasoning", "reason", "thought", "thoughts", "scratchpad", "reflection", "inner_monologue"} {
		tags = append(tags, Tag{Open: "<" + name + ">", Close: "</" + name + ">"})
	}
	return append(tags,
		Tag{Open: "[THINK]", Close: "[/THINK]", Place: AtLine, Unopened: true}, // Magistral, Ministral
		Tag{Open: "◁think▷", Close: "◁/think▷", Place: Anywhere, Unopened: true},
		Tag{Open: "<|open|>think<|sep|>", Close: "<|close|>think<|sep|>", Place: Anywhere, Unopened: true}, // Kimi K3
		Tag{Open: "<|START_THINKING|>", Close: "<|END_THINKING|>", Place: Anywhere, Unopened: true},        // Cohere
		Tag{Open: "<|inner_prefix|>", Close: "<|inner_suffix|>", Place: Anywhere, Unopened: true},          // Apertus
		Tag{Open: "<|begin_of_thought|>", Close: "<|end_of_thought|>", Place: Anywhere, Unopened: true},    // Sky-T1, OpenThinker
		Tag{Open: "<|channel>thought", Close: "<channel|>", Until: []string{"<|tool_call>"}, Place: Anywhere},
		Tag{Open: "[unused16]", Close: "[unused17]", Place: AtLine, Unopened: true}, // openPangu
		Tag{Close: "[BEGIN FINAL RESPONSE]", Unopened: true},                        // Apriel
		Tag{Open: "Here is my thought process:", Close: "Here is my response:", Also: []string{"Here's my response:"}},
		Tag{Open: "Here's my thought process:", Close: "Here is my response:", Also: []string{"Here's my response:"}}, // Granite 3
		Tag{Open: "Thinking...\n", Close: "...done thinking."},                                                        // the terminal of Ollama
		Tag{Open: harmony, Close: "<|end|>", Until: []string{"<|start|>", "<|channel|>", "<|return|>", "<|call|>"}, Place: Anywhere},
		// The same with its special tokens dropped.
		Tag{Open: bare, Close: "assistantfinal", Until: []string{"assistantcommentary", "<|start|>", "<|channel|>final"}},
	)
}

// harmony is the head of a message of gpt-oss; what may stand between its parts is
// read by [engine.head].
const harmony = "<|channel|>analysis<|message|>"

// bare is what is left of it where a server drops special tokens: the next word
// follows without a space.
const bare = "analysis"

// frames are what stands around the answer itself, by family.
var frames = []string{
	"<|START_RESPONSE|>", "<|END_RESPONSE|>",
	"<|begin_of_solution|>", "<|end_of_solution|>",
	"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>",
	"[END FINAL RESPONSE]",
}

// wrappers are tags around the answer that count only behind reasoning.
var wrappers = []string{"answer", "response"} // Hunyuan A13B and R1-Zero; ERNIE 4.5

// A mark is a text that the automaton looks for.
type mark struct {
	text string // in lower case where name
	tag  int    // index in marks.tags; -1: a frame
	name bool   // text is the name of an XML tag
	open bool
}

// marks are the tags of an Options, made ready to look for.
type marks struct {
	tags    []Tag
	first   [256]bool    // bytes that begin a mark
	stop    [256]bool    // bytes that mean something in prose
	openers [256][]mark  // of reasoning, by their first byte
	closers [256][]mark  // that may stand alone, and frames
	ends    [][]mark     // of each tag: Close and Also
	until   [][]string   // of each tag
	stops   []*[256]bool // of each tag: bytes that begin one of its ends
	harmony int          // index of that tag, -1
	all     int          // index in ends and stops of every closer, for Options.Opened
}

// xmlName returns the name in <name> or </name>.
func xmlName(s string) (string, bool) {
	name, ok := strings.CutSuffix(s, ">")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "<"), "/")
	if !ok || s[0] != '<' || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || !isName(byte(r)) }) {
		return "", false
	}
	return strings.ToLower(name), true
}

func isName(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == ':' || c == '.'
}

var defaultMarks = sync.OnceValue(func() *marks { return newMarks(DefaultTags()) })

// marks returns those of o. They are only read.
func (o Options) marks() *marks {
	if o.Tags == nil {
		return defaultMarks()
	}
	return newMarks(o.Tags)
}

func newMarks(tags []Tag) *marks {
	m := &marks{tags: tags, harmony: -1}
	var all []mark
	for i, t := range m.tags {
		if t.Open == harmony {
			m.harmony = i
		} else if t.Open != "" {
			m.add(&m.openers, t.Open, i, true)
		}
		var ends []mark
		for _, s := range append([]string{t.Close}, t.Also...) {
			if s == "" {
				continue
			}
			k := newMark(s, i, false)
			ends = append(ends, k)
			if t.Unopened && s == t.Close {
				m.add(&m.closers, s, i, false)
				all = append(all, k)
			}
		}
		m.ends = append(m.ends, ends)
		m.until = append(m.until, slices.DeleteFunc(slices.Clone(t.Until), func(s string) bool { return s == "" }))
	}
	m.all = len(m.ends)
	m.ends, m.until = append(m.ends, all), append(m.until, nil)
	if m.harmony >= 0 {
		m.first['<'] = true
	}
	if len(m.tags) > 0 {
		for _, s := range frames {
			m.add(&m.closers, s, -1, false)
		}
	}
	m.stop = m.first
	for _, c := range "\n`\"{[" {
		m.stop[c] = true
	}
	m.stop[0xef] = true
	for i, ends := range m.ends {
		stop := new([256]bool)
		for _, k := range ends {
			stop[k.byte()] = true
			stop[strings.ToLower(string(k.byte()))[0]] = true
		}
		for _, s := range m.until[i] {
			stop[s[0]] = true
		}
		m.stops = append(m.stops, stop)
	}
	return m
}

func newMark(s string, tag int, open bool) mark {
	if name, ok := xmlName(s); ok {
		return mark{text: name, tag: tag, name: true, open: open}
	}
	return mark{text: s, tag: tag, open: open}
}

// byte is the first one of the mark in a text.
func (k mark) byte() byte {
	if k.name {
		return '<'
	}
	return k.text[0]
}

func (m *marks) add(to *[256][]mark, s string, tag int, open bool) {
	k := newMark(s, tag, open)
	c := k.byte()
	to[c] = append(to[c], k)
	// Only what begins with a letter or digit is left to the start of an answer.
	if !isLetter(c) {
		m.first[c] = true
	}
	// The longest is taken.
	slices.SortStableFunc(to[c], func(a, b mark) int { return len(b.text) - len(a.text) })
}

// maxTag is how long an XML tag may be with its attributes.
const maxTag = 128

// markAt returns the length of k at i, 0 if it does not stand there.
func (l *look) markAt(k mark, i int) int {
	if !k.name {
		if l.has(i, k.text) {
			return len(k.text)
		}
		return 0
	}
	from := i
	if !l.has(i, "<") {
		return 0
	}
	i++
	if !k.open {
		if !l.has(i, "/") {
			return 0
		}
		i++
	}
	if !l.hasFold(i, k.text) {
		return 0
	}
	i += len(k.text)
	c, ok := l.at(i)
	if !ok || c != '>' && !isSpace(c) {
		return 0
	}
	for ; ok && i < from+maxTag; i++ {
		switch c, ok = l.at(i); {
		case c == '>':
			if l.b[i-1] == '/' {
				return 0 // <think/> opens nothing
			}
			return i + 1 - from
		case c == '<', c == '\n':
			return 0
		}
	}
	return 0
}

// may reports whether the byte behind the one at i can be the mark's: most marks
// begin alike.
func (k mark) may(b []byte, i int) bool {
	switch {
	case i+1 >= len(b):
		return true
	case k.name && k.open:
		return lower(b[i+1]) == k.text[0]
	case k.name:
		return b[i+1] == '/'
	}
	return len(k.text) < 2 || b[i+1] == k.text[1]
}

// find returns the first of ks that stands at i.
func (l *look) find(ks []mark, i int) (mark, int) {
	for _, k := range ks {
		if !k.may(l.b, i) {
			continue
		}
		if n := l.markAt(k, i); n > 0 {
			return k, n
		}
	}
	return mark{}, 0
}
