package unfray

// stopMatcher looks for one stop string in a text that comes byte by byte, in
// constant time a byte on average (Knuth, Morris and Pratt 1977).
type stopMatcher struct {
	stop string
	// border[i] is the length of the longest proper prefix of stop[:i+1] that
	// is also its suffix.
	border []int
	// matched is how many bytes at the text's end begin stop.
	matched int
}

func newStopMatcher(stop string) stopMatcher {
	m := stopMatcher{stop: stop, border: make([]int, len(stop))}
	for i := 1; i < len(stop); i++ {
		k := m.border[i-1]
		for k > 0 && stop[i] != stop[k] {
			k = m.border[k-1]
		}
		if stop[i] == stop[k] {
			k++
		}
		m.border[i] = k
	}
	return m
}

// next takes the next byte of the text and reports whether it completes stop.
// After that it must not be called again.
func (m *stopMatcher) next(b byte) bool {
	for m.matched > 0 && m.stop[m.matched] != b {
		m.matched = m.border[m.matched-1]
	}
	if m.stop[m.matched] == b {
		m.matched++
	}
	return m.matched == len(m.stop)
}
