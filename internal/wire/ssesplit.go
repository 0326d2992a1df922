package wire

import "bytes"

// RawEvent is an event of a stream as it was written.
type RawEvent struct {
	// Raw is all of it, up to and with the blank line that ends it. What comes
	// between two events, such as comments, is an event without data.
	Raw  []byte
	Data []byte // lines joined by \n
	// HasData tells an event from a comment, and from one of empty data.
	HasData bool
}

// EventSplitter cuts a stream of server-sent events that arrives in pieces. The
// joined Raw of all events and Rest are what was written.
type EventSplitter struct {
	held []byte
	done int // bytes of held that were looked at and hold no end of a line
	line int // where the current line begins
	e    RawEvent
	bom  bool // a byte order mark can no longer come
	cr   bool // the last event ended in CR: a LF next belongs to it
	max  int
}

// NewEventSplitter returns a splitter of events of up to max bytes; 0: [MaxEvent].
func NewEventSplitter(max int) *EventSplitter {
	if max == 0 {
		max = MaxEvent
	}
	return &EventSplitter{max: max}
}

// Write takes the next piece and calls do for the events that it completes. The
// events are the caller's. The error is that of do, or [ErrEventTooLong].
func (s *EventSplitter) Write(p []byte, do func(RawEvent) error) error {
	s.held = append(s.held, p...)
	for {
		e, ok := s.next()
		if !ok {
			break
		}
		if err := do(e); err != nil {
			return err
		}
	}
	if len(s.held) > s.max {
		return ErrEventTooLong
	}
	return nil
}

// Rest returns what was written after the last event, and forgets it.
func (s *EventSplitter) Rest() []byte {
	rest := s.held
	*s = EventSplitter{max: s.max, bom: true}
	return rest
}

// next cuts off the first event.
func (s *EventSplitter) next() (RawEvent, bool) {
	if s.cr && len(s.held) > 0 {
		// The line feed goes out by itself: the event has gone already.
		s.cr = false
		if s.held[0] == '\n' {
			return s.cut(1), true
		}
	}
	for {
		i := bytes.IndexAny(s.held[s.done:], "\r\n")
		if i < 0 {
			s.done = len(s.held)
			return RawEvent{}, false
		}
		end := s.done + i
		line := s.held[s.line:end]
		if !s.bom {
			s.bom = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		next, cr := end+1, s.held[end] == '\r'
		if cr && next < len(s.held) && s.held[next] == '\n' {
			next, cr = next+1, false
		}
		s.done, s.line = next, next
		if len(line) == 0 {
			s.cr = cr
			return s.cut(next), true
		}
		if cr && next == len(s.held) {
			// The line feed of this line may come yet. It would look like a blank line.
			s.done, s.line = end, next-len(line)-1
			return RawEvent{}, false
		}
		s.field(line)
	}
}

func (s *EventSplitter) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return
	}
	if s.e.HasData {
		s.e.Data = append(s.e.Data, '\n')
	}
	s.e.Data = append(s.e.Data, bytes.TrimPrefix(value, []byte(" "))...)
	s.e.HasData = true
}

// cut takes the first n bytes as an event.
func (s *EventSplitter) cut(n int) RawEvent {
	e := s.e
	e.Raw = s.held[:n:n]
	s.held = s.held[n:] // what is written next comes behind it, or into another array
	s.done, s.line, s.e = 0, 0, RawEvent{}
	return e
}

// WithData returns the event as it was written, but for its data. A carriage
// return that ends a line by itself becomes a line feed: it could run together
// with one that comes to stand behind it.
func (e RawEvent) WithData(data []byte) []byte {
	var out []byte
	put := false
	for rest := e.Raw; len(rest) > 0; {
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			end = len(rest)
		}
		next, ending := min(end+1, len(rest)), "\n"
		if bytes.HasPrefix(rest[end:], []byte("\r\n")) {
			next, ending = end+2, "\r\n"
		}
		line := bytes.TrimPrefix(rest[:end], []byte("\xef\xbb\xbf"))
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch {
		case string(name) != "data":
			out = append(append(out, rest[:end]...), ending...)
		case !put:
			put = true
			for part := range bytes.SplitSeq(data, []byte("\n")) {
				out = append(append(append(out, "data: "...), part...), ending...)
			}
		}
		rest = rest[next:]
	}
	return out
}
