package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/unfray/unfray/prefixcache"
)

// Options say how a trace is read. The zero value finds the format and stops at
// the first fault.
type Options struct {
	// Format is one of [Formats]; "" finds it by the first record.
	Format string
	// BlockTokens is the size of the blocks of a trace of block hashes, in tokens,
	// where its lines do not tell it; 0: 16 where they name chats as Qwen-Bailian's
	// do, else Mooncake's 512.
	BlockTokens int
	// SkipBad goes on behind records that are bad, and counts them.
	SkipBad bool
	// MaxLine is how many bytes a record may have; 0: 64 MiB. One that is longer
	// is bad, and is passed without being held.
	MaxLine int
	// MaxUnpacked is to how many bytes gzip data may unpack; 0: 64 GiB.
	MaxUnpacked int64
	// TimeUnit is what a number that stands for a time counts; 0: what the format
	// says. vLLM's timed traces have no fixed unit.
	TimeUnit time.Duration
	// Reorder is how much earlier a request may have begun than one that stands
	// before it. The reader holds requests back that long, in the trace's time, and
	// gives them in the order of their times; of more than a gigabyte of them the
	// first are given early. 0: ten minutes for the gateway's log and for spans,
	// which are ordered by the ends of requests, and nothing elsewhere.
	Reorder time.Duration
	// LaxClock is for those who do not use times. Where a time runs back, or only
	// some requests have one, the request is given as it stands in the trace, dated
	// as the latest before it, and [Stats.Redated] counts it.
	LaxClock bool
}

// MaxKept is how many errors [Stats] keeps.
const MaxKept = 10

// Stats count what a reader has read so far.
type Stats struct {
	Format   string
	Records  int // lines that are not blank, or elements
	Requests int // handed out
	// Ignored are records that are well formed and hold no request: other lines of
	// the gateway's log, the header of a CSV file, conversations without a turn.
	Ignored int
	Redated int          // requests that got another time, with [Options.LaxClock]
	Skipped map[Kind]int // bad records, with [Options.SkipBad]
	Errors  []*Error     // the first of them, at most [MaxKept]
	// Note says what the format leaves out that a reader should know; "" for
	// nothing.
	Note string
}

// Bad is the number of records that were skipped.
func (s *Stats) Bad() (n int) {
	for _, k := range s.Skipped {
		n += k
	}
	return n
}

// A Reader reads a trace. It holds one record at a time; of traces with chats it
// also keeps the numbers of these, and those that [Options.Reorder] holds back. It
// is not safe for use by several goroutines.
type Reader struct {
	name  string
	opt   Options
	rec   *records
	file  io.Closer
	s     scanner
	f     *format
	stats Stats
	err   error // for all calls to come

	req      Request
	timeAt   int   // byte of the record where the time of req is; -1: it has none
	parts    parts // of a record with several requests
	draft    draft
	inner    scanner // of JSON in a string of the record
	queue    queue
	begun    bool // the layout is known
	lines    lines
	chats    map[int64]int64 // of mooncake's, each with the first of its conversation
	size     int             // of mooncake's blocks, as lines tell it; 0: none did
	cols     []column        // of CSV
	headerAt int             // number of the record with the names of the columns
}

// Open reads a file, which may be compressed by gzip whatever its name; "-" is
// the standard input. The caller closes the reader.
func Open(path string, opt Options) (*Reader, error) {
	if path == "-" {
		return NewReader(os.Stdin, "stdin", opt)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, path, opt)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads a trace from src, which may be compressed by gzip. Errors call
// it by name. An error means that the options are wrong.
func NewReader(src io.Reader, name string, opt Options) (*Reader, error) {
	r := &Reader{name: name, opt: opt, queue: queue{room: maxHeld}}
	if opt.Format != "" {
		if formatNamed(opt.Format) == nil {
			return nil, fmt.Errorf("trace: unknown format %q: there are %s", opt.Format, formatList())
		}
		r.choose(opt.Format)
	}
	switch {
	case opt.BlockTokens < 0 || opt.TimeUnit < 0 || opt.MaxLine < 0 || opt.MaxUnpacked < 0 || opt.Reorder < 0:
		return nil, errors.New("trace: options must not be negative")
	case opt.MaxLine > maxRecord:
		return nil, fmt.Errorf("trace: lines of more than %d bytes cannot be read", maxRecord)
	}
	if r.opt.MaxLine == 0 {
		r.opt.MaxLine = 64 << 20
	}
	if r.opt.MaxUnpacked == 0 {
		r.opt.MaxUnpacked = 64 << 30
	}
	r.rec = newRecords(unpack(src, r.opt.MaxUnpacked), r.opt.MaxLine)
	return r, nil
}

// maxRecord keeps positions in a record in 31 bits.
const maxRecord = 1<<31 - 4096

// Close closes the file that [Open] opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Stats returns the counts so far. It is whole after io.EOF.
func (r *Reader) Stats() Stats { return r.stats }

// All goes over the requests. After an error it ends.
func (r *Reader) All() iter.Seq2[*Request, error] {
	return func(yield func(*Request, error) bool) {
		for {
			q, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(q, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next request. It is valid until the next call: [Request.Clone]
// keeps one. At the end the error is io.EOF, at a fault of the trace an [*Error];
// calls after an error return it again. A trace that is empty, or in which no
// format is found, is a fault.
//
// A request whose time is before the latest one so far is bad, unless
// [Options.Reorder] allows it: a single time that is far too late makes all that
// follow bad.
func (r *Reader) Next() (*Request, error) {
	if r.err != nil {
		return nil, r.err
	}
	q, err := r.ordered()
	if err != nil {
		r.err = err
		return nil, err
	}
	r.stats.Requests++
	return q, nil
}

// inOrder returns the next request in the order of the trace, with its time as
// the trace tells it.
func (r *Reader) inOrder() (*Request, error) {
	for {
		if r.parts.left() {
			if r.part(); r.s.err == nil {
				return &r.req, nil
			}
		} else {
			if !r.begun {
				r.begun = true
				r.rec.findLayout()
			}
			rec, fatal, err := r.rec.next()
			if err == io.EOF {
				return nil, r.atEnd()
			}
			if err != nil {
				if err := r.readFault(err, fatal); err != nil {
					return nil, err
				}
				continue
			}
			r.stats.Records++
			r.s.reset(rec)
			r.lines = lines{}
			ok := r.record()
			if r.s.err == nil {
				switch {
				case ok:
					return &r.req, nil
				case !r.parts.left():
					r.stats.Ignored++
				}
				continue
			}
		}
		if err := r.bad(r.placed(r.s.err)); err != nil {
			return nil, err
		}
		if r.f == nil && r.stats.Records >= maxTried {
			return nil, r.unknown()
		}
	}
}

// readFault counts a fault of the cutting into records. A fatal one ends the
// trace.
func (r *Reader) readFault(err error, fatal bool) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.File = r.name
	if e.Kind == "" {
		return e // the file cannot be read: no fault of the trace
	}
	r.stats.Records++
	if err := r.bad(e); err != nil {
		return err
	}
	if fatal {
		return io.EOF
	}
	return nil
}

// atEnd is what Next returns at the end.
func (r *Reader) atEnd() error {
	switch {
	case r.stats.Records == 0:
		return &Error{File: r.name, Line: 1, Column: 1, Kind: Format, Text: "the trace is empty"}
	case r.f == nil:
		return r.unknown()
	}
	return io.EOF
}

// maxTried is how many bad records are skipped in search for a format.
const maxTried = 1000

func (r *Reader) unknown() error {
	return &Error{File: r.name, Line: 1, Column: 1, Kind: Format,
		Text: fmt.Sprintf("none of %d records tells the format: name it, one of %s", r.stats.Records, formatList())}
}

// record reads the scanner's record into req, or into parts. It is false where
// there is no request in req.
func (r *Reader) record() bool {
	r.parts = parts{marks: r.parts.marks[:0], buf: r.parts.buf[:0]}
	r.begin()
	if r.f == nil && !r.detect() {
		return false
	}
	return r.f.read(r)
}

// begin empties req for a request of the current record.
func (r *Reader) begin() {
	q := &r.req
	r.timeAt = -1
	*q = Request{Line: r.rec.rec.line, Blocks: q.Blocks[:0], IDs: q.IDs[:0], OutputIDs: q.OutputIDs[:0],
		PromptTokens: -1, OutputTokens: -1, Cached: -1, Predicted: -1, Keys: prefixcache.Keys{Media: q.Keys.Media[:0]}}
}

// lines says where lines of the current record end, as far as errors have asked.
// Errors of one record come in the order of their bytes, so each byte is looked at
// once.
type lines struct {
	upto  int // bytes that were looked at
	count int // ends of lines among them
	start int // byte after the last of these
}

// placed gives an error of the scanner its place in the trace.
func (r *Reader) placed(e *Error) *Error {
	at, n, l := r.rec.rec, int(e.Offset), &r.lines
	if n < l.upto {
		*l = lines{}
	}
	seen := r.s.b[l.upto:n]
	if k := bytes.LastIndexByte(seen, '\n'); k >= 0 {
		l.count += bytes.Count(seen, []byte{'\n'})
		l.start = l.upto + k + 1
	}
	l.upto = n
	e.File, e.Line, e.Column, e.Offset = r.name, at.line, at.column+n, at.offset+int64(n)
	if l.count > 0 {
		e.Line += l.count
		e.Column = n - l.start + 1
	}
	return e
}

// bad counts a bad record, or returns its error where none may be skipped.
func (r *Reader) bad(e *Error) error {
	r.s.err = nil
	if !r.opt.SkipBad {
		return e
	}
	if r.stats.Skipped == nil {
		r.stats.Skipped = map[Kind]int{}
	}
	r.stats.Skipped[e.Kind]++
	if len(r.stats.Errors) < MaxKept {
		r.stats.Errors = append(r.stats.Errors, e)
	}
	return nil
}

// Clone returns a copy of q that stays valid.
func (q *Request) Clone() *Request {
	c := *q
	c.Blocks, c.IDs, c.OutputIDs = slices.Clone(q.Blocks), slices.Clone(q.IDs), slices.Clone(q.OutputIDs)
	c.Text, c.Output = bytes.Clone(q.Text), bytes.Clone(q.Output)
	c.Messages, c.Tools = bytes.Clone(q.Messages), bytes.Clone(q.Tools)
	c.Keys.Media = slices.Clone(q.Keys.Media)
	return &c
}
