package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/jsonrepair"
)

// What work on JSON Lines holds at once.
const (
	blockLines  = 64        // lines that are worked on by one goroutine in one go
	blockBytes  = 256 << 10 // bytes of lines of the same, unless one line has more
	bytesAtWork = 64 << 20  // bytes of lines read and not yet written, unless one line has more
)

// block is a run of lines, and then of reports.
type block struct {
	first int // number of the first line, from 1
	lines [][]byte
	bytes int   // of input
	err   error // of reading, behind the lines
	done  chan repairedBlock
}

type repairedBlock struct {
	out []byte
	tally
	err error
}

// tally counts what became of documents.
type tally struct {
	outcomes [jsonrepair.Failed + 1]int
	kinds    map[jsonrepair.Kind]int
}

func (t *tally) add(o tally) {
	for i, n := range o.outcomes {
		t.outcomes[i] += n
	}
	for k, n := range o.kinds {
		t.kinds[k] += n
	}
}

// String says how many documents had which outcome and which edits.
func (t *tally) String() string {
	total := 0
	var parts []string
	for i, n := range t.outcomes {
		if total += n; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, jsonrepair.Outcome(i)))
		}
	}
	s := counted(total, "document")
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	if len(t.kinds) > 0 {
		s += "; " + kindCounts(t.kinds)
	}
	return s
}

// bulk is work on the documents of a JSON Lines input.
type bulk struct {
	maxLine int // bytes; 0: no limit
	// line handles one line, whose number it is told, adds to the count and
	// appends a report.
	line func(out *bytes.Buffer, line []byte, number int, t *tally) error
}

// run works on all cores and prints the reports in the order of the input. It reads no
// further ahead than bytesAtWork. It returns what became of the documents.
func (k *bulk) run(ctx context.Context, in io.Reader, size int64, out, errOut io.Writer) (*tally, error) {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	queue := make(chan *block, 4*workers) // in the order of the input
	work := make(chan *block)
	room := newRoom(ctx, bytesAtWork)
	go k.readBlocks(ctx, in, room, queue, work)
	for range workers {
		go func() {
			for b := range work {
				b.done <- k.block(b)
			}
		}()
	}

	if isTerminal(out) {
		size = 0
	}
	advance, done := func(int) {}, func() {}
	if size > 0 {
		advance, done = progressBar(ctx, errOut, size, decor.CountersKibiByte("% .1f of % .1f "))
	}
	w := bufio.NewWriterSize(out, 64<<10)
	total := tally{kinds: map[jsonrepair.Kind]int{}}
	err := writeBlocks(w, queue, &total, func(n int) {
		room.give(n)
		advance(n)
	})
	done()
	if caller.Err() != nil {
		err = caller.Err()
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(errOut, "unfray:", &total)
	return &total, nil
}

// judge returns the error that the outcomes are for the exit status.
func (t *tally) judge(strict bool) error {
	failed := t.outcomes[jsonrepair.Failed]
	what := "failed"
	if strict {
		failed += t.outcomes[jsonrepair.Truncated] + t.outcomes[jsonrepair.Ambiguous]
		what = "failed, broke off or were ambiguous"
	}
	if failed == 0 {
		return nil
	}
	n := 0
	for _, c := range t.outcomes {
		n += c
	}
	return fmt.Errorf("%d of %s %s", failed, counted(n, "document"), what)
}

// writeBlocks writes the blocks' reports as they become ready. Nothing that is
// ready waits for input.
func writeBlocks(w *bufio.Writer, queue <-chan *block, total *tally, written func(n int)) error {
	for {
		var b *block
		var open bool
		select {
		case b, open = <-queue:
		default:
			if err := w.Flush(); err != nil {
				return err
			}
			b, open = <-queue
		}
		if !open {
			return w.Flush()
		}
		var done repairedBlock
		select {
		case done = <-b.done:
		default:
			if err := w.Flush(); err != nil {
				return err
			}
			done = <-b.done
		}
		if _, err := w.Write(done.out); err != nil {
			return err
		}
		total.add(done.tally)
		written(b.bytes)
		if err := errors.Join(done.err, b.err); err != nil {
			return errors.Join(err, w.Flush())
		}
	}
}

// readBlocks reads lines into blocks until the input or ctx ends, and closes both
// channels then.
func (k *bulk) readBlocks(ctx context.Context, in io.Reader, room *room, queue, work chan<- *block) {
	defer close(queue)
	defer close(work)
	lines := lineReader{r: bufio.NewReaderSize(interruptible(ctx, in), blockBytes), most: k.maxLine, line: 1}
	for {
		b := lines.block()
		if b.err == io.EOF {
			b.err = nil
			if len(b.lines) == 0 {
				return
			}
		}
		last := lines.ended
		if !room.take(b.bytes) {
			return
		}
		select {
		case queue <- b:
		case <-ctx.Done():
			return
		}
		// The writer waits for every block of the queue.
		work <- b
		if last {
			return
		}
	}
}

// lineReader cuts an input into blocks of lines.
type lineReader struct {
	r     *bufio.Reader
	most  int // bytes of a line; 0: no limit
	line  int // number of the next one
	ended bool
}

// block reads the next lines: those that are there, but one at least.
func (l *lineReader) block() *block {
	b := &block{first: l.line, done: make(chan repairedBlock, 1)}
	for len(b.lines) < blockLines && b.bytes < blockBytes {
		line, n, err := l.next()
		if n > 0 {
			b.lines = append(b.lines, line)
			b.bytes += n
			l.line++
		}
		if err != nil {
			b.err, l.ended = err, true
			return b
		}
		if ready, _ := l.r.Peek(l.r.Buffered()); bytes.IndexByte(ready, '\n') < 0 {
			return b
		}
	}
	return b
}

// next reads a line of n bytes. Of one that is too long it keeps one byte more than
// is allowed.
func (l *lineReader) next() (line []byte, n int, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		n += len(part)
		if l.most > 0 {
			part = part[:min(len(part), l.most+1-min(len(line), l.most+1))]
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return bytes.TrimRight(line, "\r\n"), n, err
		}
	}
}

func (k *bulk) block(b *block) repairedBlock {
	done := repairedBlock{tally: tally{kinds: map[jsonrepair.Kind]int{}}}
	var out bytes.Buffer
	for i, line := range b.lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if done.err = k.line(&out, line, b.first+i, &done.tally); done.err != nil {
			break
		}
	}
	done.out = out.Bytes()
	return done
}

// bulk repairs the documents of a JSON Lines input.
func (r *repairFlags) bulk(ctx context.Context, in io.Reader, size int64, out, errOut io.Writer) error {
	k := bulk{maxLine: r.o.MaxBytes, line: r.repairOne}
	total, err := k.run(ctx, in, size, out, errOut)
	if err != nil {
		return err
	}
	return total.judge(r.o.Strict)
}

func (r *repairFlags) repairOne(out *bytes.Buffer, line []byte, number int, t *tally) error {
	id, result := r.repairLine(line)
	if result.Outcome == jsonrepair.Failed && id.unread {
		result.Err.Cause = fmt.Sprintf("line %d: %s", number, result.Err.Cause)
	}
	t.outcomes[result.Outcome]++
	countKinds(t.kinds, result.Edits())
	p := report(result)
	p.ID = id.raw
	return writeJSON(out, p)
}

// lineID is the ID of a line.
type lineID struct {
	raw    jsonrepair.Raw
	unread bool // the line is no request
}

// repairLine repairs the document of one line.
func (r *repairFlags) repairLine(line []byte) (lineID, *jsonrepair.Result) {
	if r.o.MaxBytes > 0 && len(line) > r.o.MaxBytes {
		return lineID{unread: true}, &jsonrepair.Result{Outcome: jsonrepair.Failed, Err: &jsonrepair.Error{
			Offset: r.o.MaxBytes, Cause: "the line is longer than allowed", Tried: "raise MaxBytes",
		}}
	}
	q, err := wire.DecodeRepair(line)
	if err != nil {
		return lineID{jsonrepair.Raw(q.ID), true}, &jsonrepair.Result{Outcome: jsonrepair.Failed, Err: &jsonrepair.Error{
			Offset: lineOffset(err), Cause: strings.Replace(err.Error(), "the request body", "it", 1),
			Tried: `a line is an object such as {"id": 1, "text": "…"}`,
		}}
	}
	o := r.o
	o.Ended = o.Ended || q.IsEnded()
	return lineID{raw: jsonrepair.Raw(q.ID)}, jsonrepair.Repair(q.Text, o)
}

func lineOffset(err error) int {
	var e *wire.DecodeError
	if errors.As(err, &e) && e.Offset > 0 {
		return e.Offset
	}
	return 0
}

// room is a number of bytes that may be held.
type room struct {
	mu     sync.Mutex
	freed  sync.Cond
	free   int
	all    int
	closed bool
}

// newRoom returns a room that closes when ctx ends.
func newRoom(ctx context.Context, n int) *room {
	m := &room{free: n, all: n}
	m.freed.L = &m.mu
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.closed = true
		m.freed.Broadcast()
	})
	return m
}

// take waits until n bytes are free, or all if n is more; it is false once the room
// is closed.
func (m *room) take(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.free < min(n, m.all) && !m.closed {
		m.freed.Wait()
	}
	m.free -= n
	return !m.closed
}

func (m *room) give(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
	m.freed.Broadcast()
}
