package upstream

import (
	"io"
	"net/http"
	"sync"
)

// An upload gives the caller's body to the tries of a request: the body itself
// to the first, copies to the others. A body that cannot be copied goes to the
// next try as long as nobody has read from it; until then it is not closed.
type upload struct {
	get func() (io.ReadCloser, error) // nil: there are no copies

	mu      sync.Mutex
	src     io.ReadCloser // the caller's; nil: given away, where there are copies
	lent    bool          // a try has src and has not closed it; without copies
	held    bool          // a try may follow
	read    bool          // a try has read
	done    bool          // src is closed
	readErr error
}

func newUpload(req *http.Request) *upload {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	return &upload{get: req.GetBody, src: req.Body, held: true}
}

// replayable reports whether there can be another try.
func (u *upload) replayable() bool {
	if u == nil || u.get != nil {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.read && !u.lent
}

// failure returns the first error that reading the body gave.
func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.readErr
}

// open returns a body for the try's request. Bodies that can be copied are
// handed over bare: net/http knows those in memory by their types and sends
// them together with the headers.
func (u *upload) open(t *try) (io.ReadCloser, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.get != nil && u.src == nil:
		return u.get()
	case u.get != nil:
		src := u.src
		u.src = nil
		return src, nil
	case u.read || u.lent:
		return nil, errNoReplay
	}
	u.lent = true
	return &sending{u: u, t: t}, nil
}

// settle says that no try follows. The body is closed now, unless a try has
// it and closes it later.
func (u *upload) settle() {
	if u == nil {
		return
	}
	u.mu.Lock()
	u.held = false
	leave := u.src == nil || u.lent || u.done
	u.done = u.done || !leave
	u.mu.Unlock()
	if !leave {
		u.src.Close()
	}
}

// sending is a body without copies in the hands of the transport. While its
// source is read the try does not wait for the endpoint but for the caller.
type sending struct {
	u      *upload
	t      *try
	closed bool // guarded by u.mu
}

func (s *sending) Read(p []byte) (int, error) {
	s.u.mu.Lock()
	closed := s.closed
	s.u.read = s.u.read || !closed
	s.u.mu.Unlock()
	if closed {
		return 0, http.ErrBodyReadAfterClose
	}
	s.t.watch.rest(PhaseHeaders)
	n, err := s.u.src.Read(p)
	s.t.watch.wait(PhaseHeaders)
	if err != nil && err != io.EOF {
		s.note(err)
	}
	return n, err
}

// note keeps a read's error, unless it comes of the transport having given up
// on the body.
func (s *sending) note(err error) {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	if !s.closed && s.u.readErr == nil {
		s.u.readErr = err
	}
}

func (s *sending) Close() error {
	u := s.u
	u.mu.Lock()
	leave := s.closed || u.done || u.held && !u.read
	s.closed = true
	u.lent = false
	u.done = u.done || !leave
	u.mu.Unlock()
	if leave {
		return nil
	}
	return u.src.Close()
}
