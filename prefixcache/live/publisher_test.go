package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// A publisher speaks the server's half of ZMTP: it publishes to who subscribes, and replays.
type publisher struct {
	t           *testing.T
	pub, replay net.Listener

	mu      sync.Mutex
	subs    []net.Conn
	batches [][]byte     // by their numbers; nil: forgotten
	quiet   map[int]bool // not published, as if lost on the way
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{t: t, quiet: map[int]bool{}}
	for _, l := range []*net.Listener{&p.pub, &p.replay} {
		var err error
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*l).Close() })
	}
	go p.accept(p.pub, "PUB", p.subscribe)
	go p.accept(p.replay, "ROUTER", p.answer)
	return p
}

func (p *publisher) source() Source {
	return Source{Endpoint: "tcp://" + p.pub.Addr().String(), Replay: "tcp://" + p.replay.Addr().String()}
}

func (p *publisher) accept(l net.Listener, socket string, serve func(*zconn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		z := &zconn{c: c, stop: func() bool { return false }}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		if err := z.greet(socket); err != nil {
			c.Close()
			continue
		}
		go serve(z)
	}
}

func (p *publisher) subscribe(z *zconn) {
	parts, err := z.receive()
	if err != nil || len(parts) != 1 || parts[0][0] != 1 {
		p.t.Errorf("a subscriber sent %q, %v", parts, err)
		return
	}
	p.mu.Lock()
	p.subs = append(p.subs, z.c)
	p.mu.Unlock()
}

// publish sends a batch to all subscribers.
func (p *publisher) publish(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.batches)
	p.batches = append(p.batches, payload)
	if p.quiet[n] {
		return
	}
	for _, c := range p.subs {
		z := &zconn{c: c}
		z.send([]byte("kv"), binary.BigEndian.AppendUint64(nil, uint64(n)), payload)
	}
}

func (p *publisher) answer(z *zconn) {
	defer z.c.Close()
	parts, err := z.receive()
	if err != nil || len(parts) != 2 || len(parts[0]) != 0 || len(parts[1]) != 8 {
		p.t.Errorf("a replay was asked for with %q, %v", parts, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, b := range p.batches {
		if uint64(n) >= binary.BigEndian.Uint64(parts[1]) && b != nil {
			z.send(nil, []byte("kv"), binary.BigEndian.AppendUint64(nil, uint64(n)), b)
		}
	}
	z.send(nil, nil, binary.BigEndian.AppendUint64(nil, math.MaxUint64), nil)
}

// restart drops everything and everybody.
func (p *publisher) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.subs {
		c.Close()
	}
	p.subs, p.batches = nil, nil
}

func (p *publisher) await(subscribers int) {
	p.t.Helper()
	for range 1000 {
		p.mu.Lock()
		n := len(p.subs)
		p.mu.Unlock()
		if n == subscribers {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatal("nobody subscribes")
}

// at is a batch with nothing but a time.
func at(seconds float64) []byte {
	b := msgp.AppendArrayHeader(nil, 2)
	return msgp.AppendArrayHeader(msgp.AppendFloat64(b, seconds), 0)
}

func next(t *testing.T, s *Subscription) Update {
	t.Helper()
	u, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSubscription(t *testing.T) {
	p := newPublisher(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p.publish(at(100)) // before anybody listens
	p.publish(at(101))
	s, err := Subscribe(ctx, p.source())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.await(1)
	p.quiet[3] = true
	p.publish(at(102))
	p.publish(at(103)) // gets lost
	p.publish(at(104))
	for i := range 5 {
		if u := next(t, s); u.Missed != 0 || u.Restarted || u.Seq != uint64(i) || u.Time != float64(100+i) {
			t.Fatalf("update %d is %+v with %+v", i, u, u.Batch)
		}
	}

	// One that is lost and no longer held.
	p.mu.Lock()
	p.quiet[5], p.quiet[6] = true, true
	p.mu.Unlock()
	p.publish(at(105))
	p.publish(at(106))
	p.mu.Lock()
	p.batches[5] = nil
	p.mu.Unlock()
	p.publish(at(107))
	if u := next(t, s); u.Seq != 6 || u.Missed != 1 {
		t.Fatalf("%+v with %+v", u, u.Batch)
	}
	if u := next(t, s); u.Seq != 7 || u.Missed != 0 {
		t.Fatalf("%+v with %+v", u, u.Batch)
	}

	// The engine is started again: its numbers begin anew.
	p.restart()
	for i := range 9 {
		p.publish(at(float64(200 + i)))
	}
	if u := next(t, s); !u.Restarted || u.Batch != nil {
		t.Fatalf("%+v", u)
	}
	for i := range 9 {
		if u := next(t, s); u.Seq != uint64(i) || u.Time != float64(200+i) || u.Missed != 0 {
			t.Fatalf("%+v with %+v", u, u.Batch)
		}
	}
}

// TestReconnect breaks the connection alone: nothing is void, and what was published meanwhile is replayed.
func TestReconnect(t *testing.T) {
	p := newPublisher(t)
	s, err := Subscribe(t.Context(), p.source())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.await(1)
	p.publish(at(1))
	next(t, s)
	p.mu.Lock()
	p.subs[0].Close()
	p.subs = nil
	p.mu.Unlock()
	p.publish(at(2))
	for _, want := range []float64{2, 3} {
		if want == 3 {
			p.publish(at(3))
		}
		if u := next(t, s); u.Batch == nil || u.Time != want || u.Restarted || u.Missed != 0 {
			t.Fatalf("%+v, want time %v", u, want)
		}
	}
}

func TestWithoutReplay(t *testing.T) {
	p := newPublisher(t)
	src := p.source()
	src.Replay = ""
	s, err := Subscribe(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.await(1)
	p.quiet[1] = true
	p.publish(at(1))
	p.publish(at(2))
	p.publish([]byte{0xc1}) // no MessagePack
	p.publish(at(4))
	next(t, s)
	if _, err := s.Next(); err == nil {
		t.Fatal("a broken batch is taken")
	}
	if u := next(t, s); u.Batch != nil || u.Missed != 2 {
		t.Fatalf("%+v", u)
	}
	if u := next(t, s); u.Batch == nil || u.Time != 4 || u.Missed != 0 {
		t.Fatalf("%+v", u)
	}
}

func TestSubscriptionEnds(t *testing.T) {
	p := newPublisher(t)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Subscribe(ctx, p.source())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.Next(); err != context.Canceled {
		t.Fatal(err)
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, wrong := range map[string]bool{
		"tcp://127.0.0.1:5557": false, "tcp://[::1]:5557": false, "ipc:///run/kv": false,
		"tcp://*:5557": true, "127.0.0.1:5557": true, "inproc://x": true, "tcp://host": true, "": true,
	} {
		if _, _, err := splitEndpoint(endpoint); (err != nil) != wrong {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

// FuzzZMTP gives a subscriber arbitrary bytes of a server.
func FuzzZMTP(f *testing.F) {
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	ready := append([]byte{4, 6}, "\x05READY"...)
	f.Add(append(append(greeting, ready...), 0, 1, 'a'))
	f.Add(append(append(greeting, ready...), 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	f.Add(append(append(greeting, ready...), 2, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff))
	f.Add(append(append(append(greeting, ready...), 4, 7), "\x04PINGab"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		z := &zconn{c: &bytesConn{r: bytes.NewReader(data)}}
		if z.greet("SUB") != nil {
			return
		}
		for {
			parts, err := z.receive()
			if err != nil {
				return
			}
			total := 0
			for _, p := range parts {
				total += len(p)
			}
			if total > len(data) {
				t.Fatalf("%d bytes out of %d", total, len(data))
			}
		}
	})
}

// bytesConn is a connection whose peer has sent all it will.
type bytesConn struct {
	net.Conn
	r io.Reader
}

func (c *bytesConn) Read(b []byte) (int, error)  { return c.r.Read(b) }
func (c *bytesConn) Write(b []byte) (int, error) { return len(b), nil }

// TestReplayFails loses batches while nobody answers replays: they count as missed, and the events go on.
func TestReplayFails(t *testing.T) {
	p := newPublisher(t)
	s, err := Subscribe(t.Context(), p.source())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.await(1)
	p.publish(at(0))
	if u := next(t, s); u.Batch == nil || u.Seq != 0 {
		t.Fatalf("%+v", u)
	}
	p.replay.Close()
	p.mu.Lock()
	p.quiet[1], p.quiet[2] = true, true
	p.mu.Unlock()
	for i := 1; i < 5; i++ {
		p.publish(at(float64(i)))
	}
	if u := next(t, s); u.Batch == nil || u.Seq != 3 || u.Missed != 2 {
		t.Errorf("after two lost batches: %+v", u)
	}
	if u := next(t, s); u.Batch == nil || u.Seq != 4 || u.Missed != 0 {
		t.Errorf("after those: %+v", u)
	}
}

// TestEndlessReplay is given up before it takes all memory.
func TestEndlessReplay(t *testing.T) {
	p := newPublisher(t)
	s := &Subscription{ctx: t.Context(), src: p.source(), held: maxHeld - 100_000}
	p.mu.Lock()
	for i := range 2000 {
		p.batches = append(p.batches, at(float64(i)))
	}
	p.mu.Unlock()
	if err := s.connect(); err == nil || !strings.Contains(err.Error(), "without a replay") {
		t.Errorf("%v", err)
	}
	for s.held = s.held - maxHeld + 100_000; len(s.pending) > 0; {
		next(t, s)
	}
	if s.held != 0 {
		t.Errorf("%d bytes are held of no updates", s.held)
	}
}
