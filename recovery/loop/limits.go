package loop

// A limit is what a run must reach to be a loop.
type limit struct {
	bytes  int
	halves int // copies, in halves of one
}

// What is needed, by the kind of unit. The figures lie above what clean text has:
// Go's sources, manual pages in 30 languages, package documentation.
//
// A unit of 54 bytes of prose and more is a loop in the middle of its fifth copy,
// so within two periods of the third. Shorter ones must cover as many bytes: a line
// of a song or a "no, no, no" comes more often than that. Code, JSON and tables have
// rows that are the same for good reasons, and a matrix of 100×100 zeros is 30 kB.
var (
	prose     = limit{minBytes, 9}
	longProse = limit{minBytes, 7} // units of longUnit bytes and more
	syllables = limit{1 << 10, 32} // units shorter than 8 bytes without a space: blahblah
	listItems = limit{320, 9}
	letterRun = limit{1 << 10, 256} // one letter, 128 of them at least
	tags      = limit{320, 16}      // </think></think>…
	code      = limit{8 << 10, 16}
	longCode  = limit{2 << 10, 9} // units of longLines bytes and more
	objects   = limit{2 << 10, 9}
	templates = limit{4 << 10, 32} // few letters or no word of three: Name: ______, ha ha
	ruler     = limit{4 << 10, 64} // no letters or digits at all
	marks     = limit{2 << 10, 64} // the same in lines: "# " over and over
	rows      = limit{8 << 10, 16}
	digits    = limit{8 << 10, 64} // without anything between
	encoded   = limit{16 << 10, 64}
	numbers   = limit{40_000, 32}
	listing   = limit{2 * window, 32} // never: unrolled loops and tables of jumps are like that
)

const (
	minBytes  = 240 // no loop is shorter
	longUnit  = 1000
	longLines = 240
)

func (l limit) passed(period, length int) bool {
	return length >= l.bytes && 2*length >= l.halves*period
}

// asked is the limit where the user asked for repetition.
func (l limit) asked() limit { return limit{max(l.bytes, numbers.bytes), max(l.halves, 64)} }

// or returns the higher of two limits.
func (l limit) or(m limit) limit { return limit{max(l.bytes, m.bytes), max(l.halves, m.halves)} }
