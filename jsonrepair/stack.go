package jsonrepair

// frame is what opened a container.
type frame uint8

const (
	array  frame = iota // [
	object              // {
	tuple               // ( for [
	set                 // { for [
)

func (f frame) isObject() bool { return f == object }

// closer is the closer that JSON has for the frame.
func (f frame) closer() byte { return "]}]]"[f] }

// stack holds the open containers at two bits each.
type stack struct {
	words []uint64
	n     int
}

func (s *stack) push(f frame) {
	if s.n%32 == 0 {
		s.words = append(s.words, 0)
	}
	w, shift := &s.words[s.n/32], s.n%32*2
	*w = *w&^(3<<shift) | uint64(f)<<shift
	s.n++
}

func (s *stack) pop() {
	s.n--
	s.words = s.words[:(s.n+31)/32]
}

// at returns the i-th frame from the top.
func (s *stack) at(i int) frame {
	k := s.n - 1 - i
	return frame(s.words[k/32] >> (k % 32 * 2) & 3)
}
