// Package split cuts text into pretokens, which merges never cross, exactly as
// the pre-tokenizers of Hugging Face tokenizers, tiktoken and llama.cpp do, and
// says which cuts more text could still move.
//
//   - Known patterns have hand-written scanners: linear time, no allocation, and
//     exact answers about continuations. Other regular expressions are simulated,
//     in linear time too, and say what is fixed, but not all that more text may
//     do (Exact is false).
//   - Everything is bytes. A byte that is not UTF-8 is one character that is
//     neither letter, number, white space nor anything else.
//   - Hugging Face and tiktoken patterns go by Unicode 16.0, llama.cpp's by 15.1.
package split

// Splitter cuts a segment of text into pretokens. They are contiguous: the
// first begins where the segment does, each other where the one before ends.
// How text is cut from the start of a pretoken on does not depend on what
// stands before it.
type Splitter interface {
	// Scan writes the ends (byte offsets in text, ascending) of the pretokens of
	// text[from:] into ends and returns how many it wrote: as many as there are,
	// or len(ends).
	Scan(ends []int, text []byte, from int) int

	// Next gives the end of the pretoken at text[from:], which must not be empty.
	// If fixed, no bytes appended to text change that end. An incomplete UTF-8
	// sequence at the end of text counts as not there yet.
	Next(text []byte, from int) (end int, fixed bool)

	// Probes lists continuations, "" the first, that show everything more text
	// may do to the pretokens of text[from:]: whatever s is appended, some probe
	// q leaves the same ends up to and including len(text), where the ends of
	// text+s and of text+q are meant. A pretoken must start at from, and text
	// must end with a whole character: see Completions. The result must not be
	// changed.
	Probes(text []byte, from int) []string

	// Completions lists ways to go on after part, an incomplete UTF-8 sequence of
	// 1 to 3 bytes: for each class of characters that the splitter tells apart one
	// rest that makes part such a character, and "" for all bytes that make it
	// none, when the bytes of part are characters by themselves.
	Completions(part []byte) []string

	// Keeps reports whether a pretoken goes to the model. Some pre-tokenizers
	// remove white space.
	Keeps(piece []byte) bool

	// Exact reports whether Next and Probes leave nothing out. If not, fixed is
	// still sound, but Probes are only examples.
	Exact() bool

	// String names the pattern for messages.
	String() string
}

// Drops reports whether there are pretokens that s does not keep.
func Drops(s Splitter) bool {
	d, ok := s.(dropper)
	return ok && d.drops()
}

// dropper is a splitter that may not keep all pretokens.
type dropper interface{ drops() bool }
