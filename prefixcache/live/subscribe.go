package live

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/zeebo/xxh3"
)

// Source is where an engine publishes its events.
type Source struct {
	// Endpoint is that of --kv-events-config, with the engine's host in place of
	// a wildcard: tcp://127.0.0.1:5557.
	Endpoint string
	// Replay is the replay endpoint; "": what was sent before, or was lost on the
	// way, stays unknown.
	Replay string
	// Topic is the topic; "": every one.
	Topic string
}

// Update is a batch, or what is known of those that did not arrive.
type Update struct {
	*Batch // nil where Restarted or Missed is news by itself
	// Restarted says that the publisher counts anew: the engine was started
	// again, and all that was known of its cache is void.
	Restarted bool
	// Missed is how many batches before this one are lost: what was known of the
	// cache may be wrong.
	Missed uint64
}

// Subscription follows a publisher. Its methods are for one goroutine.
type Subscription struct {
	ctx  context.Context
	src  Source
	conn *zconn
	next uint64 // number of the batch that is expected
	// pending are updates that are known already, of about held bytes.
	pending []Update
	held    int
	begun   bool   // next is known
	last    uint64 // hash of the last batch's payload
	// overlap is the number below which batches were replayed and may come again
	// on the new connection; 0: none.
	overlap uint64
	retry   time.Duration
}

// Times between attempts to connect again.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Limits on a replay. vLLM keeps its last 10,000 batches (buffer_steps).
const (
	replayTime = 30 * time.Second
	maxHeld    = 1 << 30 // bytes of updates, about
)

// Subscribe connects to a publisher. With a replay endpoint the first updates are
// what the publisher still holds of the past. Canceling ctx ends the subscription.
func Subscribe(ctx context.Context, src Source) (*Subscription, error) {
	s := &Subscription{ctx: ctx, src: src, retry: firstRetry}
	if err := s.connect(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the subscription.
func (s *Subscription) Close() error {
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
	return nil
}

func (s *Subscription) connect() error {
	conn, err := dialZMTP(s.ctx, s.src.Endpoint, "SUB")
	if err != nil {
		return err
	}
	if err := conn.send(append([]byte{1}, s.src.Topic...)); err != nil {
		conn.close()
		return fmt.Errorf("live: subscribing at %s: %w", s.src.Endpoint, err)
	}
	s.conn = conn
	if s.src.Replay == "" {
		return nil
	}
	// What was published while nobody listened is asked for once the subscription
	// stands, so that nothing falls between; what comes twice is told by its number.
	if err := s.catchUp(); err != nil {
		s.Close()
		return err
	}
	s.overlap = s.next
	return nil
}

// catchUp replays what was missed. A publisher that no longer has the last batch
// that was seen, or has another with its number, was started again.
func (s *Subscription) catchUp() error {
	if s.begun {
		same := false
		err := s.replay(s.next-1, func(seq uint64, payload []byte) {
			if seq == s.next-1 {
				same = xxh3.Hash(payload) == s.last
			} else if same {
				s.accept(seq, payload)
			}
		})
		if err != nil || same {
			return err
		}
		s.restart()
	}
	return s.replay(0, func(seq uint64, payload []byte) { s.accept(seq, payload) })
}

// restart forgets what was known of the publisher.
func (s *Subscription) restart() {
	s.push(Update{Restarted: true})
	s.next, s.begun = 0, false
}

// Next waits for the next update. A lost connection is made again; the error is
// that of the context, or a [*DecodeError] for a batch that cannot be read, after
// which Next may be called again.
func (s *Subscription) Next() (Update, error) {
	for {
		if err := s.ctx.Err(); err != nil {
			return Update{}, context.Cause(s.ctx)
		}
		if len(s.pending) > 0 {
			u := s.pending[0]
			s.pending[0] = Update{}
			s.pending = s.pending[1:]
			s.held -= u.size()
			return u, nil
		}
		if s.conn == nil {
			if err := s.reconnect(); err != nil {
				return Update{}, err
			}
			continue
		}
		parts, err := s.conn.receive()
		if err != nil {
			s.Close()
			continue
		}
		s.retry = firstRetry
		if err := s.take(parts); err != nil {
			return Update{}, err
		}
	}
}

// reconnect waits and connects. Only the context's end is an error.
func (s *Subscription) reconnect() error {
	select {
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-time.After(s.retry):
	}
	s.retry = min(2*s.retry, lastRetry)
	_ = s.connect() // it is tried again
	return nil
}

// take reads a message of three parts: topic, number, payload.
func (s *Subscription) take(parts [][]byte) error {
	if len(parts) != 3 || len(parts[1]) != 8 {
		return &DecodeError{Err: fmt.Errorf("a message of %d parts is not topic, number and payload", len(parts))}
	}
	seq := binary.BigEndian.Uint64(parts[1])
	switch {
	case seq < s.overlap:
		return nil // it was replayed already
	case s.begun && seq < s.next:
		s.restart()
	case s.begun && seq > s.next && s.src.Replay != "":
		// What it does not bring counts as missed.
		_ = s.replay(s.next, func(n uint64, payload []byte) {
			if n >= s.next && n < seq {
				s.accept(n, payload)
			}
		})
	}
	s.overlap = 0
	return s.accept(seq, parts[2])
}

// accept decodes a batch and notes what is missing before it. One that cannot be
// read counts as missing.
func (s *Subscription) accept(seq uint64, payload []byte) error {
	u := Update{}
	if s.begun && seq > s.next {
		u.Missed = seq - s.next
	}
	s.next, s.begun, s.last = seq+1, true, xxh3.Hash(payload)
	b, err := Decode(payload)
	if err != nil {
		u.Missed++ // the batch itself is lost too
		s.push(u)
		return err
	}
	b.Seq = seq
	u.Batch = b
	s.push(u)
	return nil
}

// push adds an update to the pending ones.
func (s *Subscription) push(u Update) {
	s.held += u.size()
	s.pending = append(s.pending, u)
}

// size is about the memory that the update holds, in bytes.
func (u *Update) size() int {
	n := 200
	if u.Batch == nil {
		return n
	}
	for i := range u.Events {
		e := &u.Events[i]
		n += 200 + 40*len(e.Hashes) + 4*len(e.Tokens)
		for _, x := range e.Extra {
			n += 16 + len(x)
		}
	}
	return n
}

// replay asks for the batches from a number on that the publisher still has.
func (s *Subscription) replay(from uint64, take func(seq uint64, payload []byte)) error {
	ctx, cancel := context.WithTimeout(s.ctx, replayTime)
	defer cancel()
	conn, err := dialZMTP(ctx, s.src.Replay, "DEALER")
	if err != nil {
		return err
	}
	defer conn.close()
	if err := conn.send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		return fmt.Errorf("live: asking %s for events: %w", s.src.Replay, err)
	}
	for {
		parts, err := conn.receive()
		if err != nil {
			return fmt.Errorf("live: reading events of %s: %w", s.src.Replay, err)
		}
		if len(parts) != 4 || len(parts[2]) != 8 {
			return fmt.Errorf("live: %s answers with %d parts, not with an empty one, topic, number and payload", s.src.Replay, len(parts))
		}
		seq := binary.BigEndian.Uint64(parts[2])
		if seq == math.MaxUint64 { // −1: the end
			return nil
		}
		if seq >= from {
			take(seq, parts[3])
		}
		if s.held > maxHeld {
			return fmt.Errorf("live: %s replays more than %d bytes; follow the events without a replay", s.src.Replay, maxHeld)
		}
	}
}
