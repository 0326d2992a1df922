package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Done is the data of the event that ends OpenAI's streams.
const Done = "[DONE]"

// MaxEvent is how long a line of an event stream, and the data of one event,
// may be, in bytes.
const MaxEvent = 16 << 20

// ErrEventTooLong is returned for lines and events longer than [MaxEvent].
var ErrEventTooLong = errors.New("wire: an event of the stream is too long")

// AppendEvent appends an event of the default type to dst. Carriage returns
// in data are dropped: the format cannot carry them.
func AppendEvent(dst, data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("\r"), nil)
	// A line break inside the data would end the field: each line is its own.
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		dst = append(dst, "data: "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// Event is one event of a stream.
type Event struct {
	Type string // "" for the default, message
	Data []byte // lines joined by \n
}

// EventReader reads a stream of server-sent events as the HTML standard
// defines it: lines end in LF, CR or CRLF, comments and unknown fields are
// skipped, and an event that no blank line ends is dropped.
type EventReader struct {
	r     *bufio.Reader
	max   int // MaxEvent, but in tests
	line  []byte
	begun bool // a byte order mark can no longer come
	skip  bool // the last line ended in CR: a LF next belongs to it
}

// NewEventReader returns a reader of the events in r.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{r: bufio.NewReader(r), max: MaxEvent}
}

// Next returns the next event that has data. It returns [io.EOF] at the end of
// the stream, io.ErrUnexpectedEOF if that is inside an event.
func (r *EventReader) Next() (Event, error) {
	var e Event
	hasData, inside := false, false
	for {
		line, err := r.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && (inside || len(line) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if hasData {
				return e, nil
			}
			e, inside = Event{}, false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if len(e.Data)+len(value) > r.max {
				return Event{}, ErrEventTooLong
			}
			if hasData {
				e.Data = append(e.Data, '\n')
			}
			e.Data, hasData, inside = append(e.Data, value...), true, true
		case "event":
			e.Type, inside = string(value), true
		}
	}
}

// readLine returns the next line without its end. The line is valid until the
// next call. At the end of the stream it returns what is left, with io.EOF.
func (r *EventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		c, err := r.r.ReadByte()
		if err != nil {
			return r.line, err
		}
		if r.skip {
			r.skip = false
			if c == '\n' {
				continue
			}
		}
		if c == '\n' || c == '\r' {
			r.skip = c == '\r'
			if !r.begun {
				r.begun = true
				r.line = bytes.TrimPrefix(r.line, []byte("\xef\xbb\xbf"))
			}
			return r.line, nil
		}
		if len(r.line) >= r.max {
			return nil, ErrEventTooLong
		}
		r.line = append(r.line, c)
	}
}
