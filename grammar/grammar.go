package grammar

// A Grammar is a set of texts, as bytes. It does not change and may be shared
// by goroutines, which then share what has been computed of it.
type Grammar struct {
	machine *machine
	prefix  string
}

func newGrammar(p *program) *Grammar { return &Grammar{machine: newMachine(p)} }

// WithPrefix gives the grammar of the same texts with literal put before each.
// The literal is any bytes, a part of a character included. It costs nothing:
// both share all that is computed.
func (g *Grammar) WithPrefix(literal []byte) *Grammar {
	return &Grammar{g.machine, string(literal) + g.prefix}
}

// Start gives the state before the first byte.
func (g *Grammar) Start() State { return State{g.machine, g.machine.first(), g.prefix} }

// Match reports whether text, whole, is in the grammar. It is false also where
// the text has too many readings ([State.Err]).
func (g *Grammar) Match(text []byte) bool {
	s, ok := g.Start().AdvanceBytes(text)
	return ok && s.Accepting()
}

// A State is a place in a text of a [Grammar]: all that is to be known of the
// bytes before it. It is a value, cheap to copy and to keep, and never changes.
// A zero State is dead.
type State struct {
	machine *machine
	at      *state
	prefix  string // bytes still to come before at
}

// Advance gives the state after one more byte. It reports false, with a dead
// state, if no text of the grammar goes on with it, or if [State.Err] of the
// result says why that is not known.
func (s State) Advance(b byte) (State, bool) {
	if s.Dead() {
		return s, false
	}
	if s.prefix != "" {
		if s.prefix[0] != b {
			return State{s.machine, s.machine.dead, ""}, false
		}
		s.prefix = s.prefix[1:]
		return s, true
	}
	s.at, _ = s.machine.step(s.at, s.machine.classOf[b])
	return s, !s.Dead()
}

// AdvanceBytes is Advance for each byte of text. It stops at the first that
// does not go.
func (s State) AdvanceBytes(text []byte) (State, bool) {
	ok := !s.Dead()
	for i := 0; i < len(text) && ok; i++ {
		s, ok = s.Advance(text[i])
	}
	return s, ok
}

// Accepting reports whether the bytes so far are a whole text of the grammar.
func (s State) Accepting() bool { return s.at != nil && s.prefix == "" && s.at.accepting }

// Dead reports whether no text of the grammar begins with the bytes so far.
// Where it is false, some text does.
func (s State) Dead() bool { return s.at == nil || s.at.next == nil }

// Ended reports whether the bytes so far are a whole text that no byte can be
// added to.
func (s State) Ended() bool { return s.Accepting() && len(s.at.places) == 0 }

// Err is [ErrTooComplex] if the state is dead because the bytes have more
// readings than are kept, and nil otherwise.
func (s State) Err() error {
	if s.machine != nil && s.at == s.machine.over {
		return ErrTooComplex
	}
	return nil
}
