package extract

// Options says what counts as reasoning and how much work may be done. The zero
// value is right for most.
type Options struct {
	// Tags are the marks of reasoning. nil: [DefaultTags]. With a list that is
	// empty but not nil nothing is reasoning, and nothing a marker.
	Tags []Tag
	// Opened says that the text begins inside reasoning, because the prompt ended
	// with the opening tag.
	Opened bool
	// Unopened is for texts of which that is not known: a closing tag that nothing
	// has opened makes all before it reasoning if it comes within so many bytes,
	// which a Scanner holds back meanwhile. 0: anywhere in the text for Segments,
	// not at all for a Scanner; -1: not at all. Beyond it the tag alone is reasoning.
	Unopened int

	// InReasoning makes Candidates look into closed reasoning too, where drafts are.
	// It always looks into reasoning that never ends.
	InReasoning bool

	// MaxCandidates is how many candidates are returned; 0: 10,000.
	MaxCandidates int
	// MaxStarts is how many openers that are never closed may be followed to the
	// end of the text; 0: 32.
	MaxStarts int
	// MaxBytes limits the text that YAML and XML read; 0: 1 MiB.
	MaxBytes int
	// MaxDepth limits how deep values may be nested: of candidates that are called
	// complete (0: 10,000), of YAML and XML (0: 64).
	MaxDepth int

	unwrapped bool // <answer> behind reasoning is no marker
}

// maxTracked is how many open brackets are followed. A text that is deeper is no
// longer protected as JSON.
const maxTracked = 10_000

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
