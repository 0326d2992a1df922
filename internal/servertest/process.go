package servertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// logTail is how much of a server's log a failing test shows, in bytes.
const logTail = 8 << 10

// A Server is a running inference server.
type Server struct {
	URL   string // scheme, host and port, for example http://127.0.0.1:40001
	Model string // the model's file (llama.cpp) or the name that requests give (vLLM)

	process *process
}

// Log returns what the server has written so far.
func (s *Server) Log() string { return s.process.logFrom(0) }

// Stop ends the server at once, as a crash would: open connections break. Further calls do nothing.
func (s *Server) Stop() { s.process.stop() }

// Endpoint returns [Server.URL] as packages that take a parsed one want it.
func (s *Server) Endpoint(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	return u
}

// A process is a server's process group. The end of its standard input ends it, which the kernel brings about when this
// process dies.
type process struct {
	name   string
	cmd    *exec.Cmd
	input  io.Closer     // the write end of its standard input
	answer io.ReadCloser // its standard output
	log    *os.File      // its standard error; a file, so that no goroutine copies it
	done   chan struct{} // closed once it has ended
	status error         // of its end, valid once done is closed
	once   sync.Once
}

// start runs a server and waits until it answers GET /health with 200. The address is what find returns, in a time that
// limit bounds.
func start(name string, cmd *exec.Cmd, limit time.Duration, find func(*process, context.Context) (string, error)) (*Server, error) {
	p, err := launch(name, cmd)
	if err != nil {
		return nil, fmt.Errorf("servertest: %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("not ready in %v", limit))
	defer cancel()
	address, err := find(p, ctx)
	if err == nil {
		err = p.awaitHealth(ctx, address)
	}
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("servertest: %s: %w; its log ends:\n%s", name, err, tail(p.logFrom(0)))
	}
	return &Server{URL: address, process: p}, nil
}

// launch starts the process.
func launch(name string, cmd *exec.Cmd) (p *process, err error) {
	p = &process{name: name, cmd: cmd, done: make(chan struct{})}
	if p.log, err = os.CreateTemp("", "servertest-*.log"); err != nil {
		return nil, err
	}
	unlink(p.log)
	cmd.Stderr = p.log
	if p.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.answer, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // it ends with the process
		p.status = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop kills the process group and waits for its leader's end.
func (p *process) stop() {
	p.once.Do(func() {
		if !p.ended() { // a group whose leader was waited for may be somebody else's by now
			killGroup(p.cmd)
		}
		<-p.done
		p.input.Close()
	})
}

// ended reports whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// announced reads the address that the server's script prints once it listens.
func (p *process) announced(ctx context.Context) (string, error) {
	lines := make(chan string, 1)
	go func() { // it ends with the process, which closes the pipe
		line, _ := bufio.NewReader(io.LimitReader(p.answer, 1<<10)).ReadString('\n') // half a line is none
		lines <- line
	}()
	select {
	case line := <-lines:
		if address, ok := strings.CutSuffix(line, "\n"); ok {
			return address, nil
		}
		select {
		case <-p.done:
			return "", p.early()
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	case <-p.done:
		return "", p.early()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// early is the error of a process that ended before it was ready.
func (p *process) early() error { return fmt.Errorf("ended before it was ready (%v)", p.status) }

// awaitHealth asks the server until it is ready.
func (p *process) awaitHealth(ctx context.Context, address string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		err := health(ctx, client, address)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.early()
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func health(ctx context.Context, client *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /health: %s", resp.Status)
	}
	return nil
}

// logFrom returns the log from a byte offset on.
func (p *process) logFrom(offset int64) string {
	text, err := io.ReadAll(io.NewSectionReader(p.log, offset, 1<<40))
	if err != nil {
		return fmt.Sprintf("%s(reading the log: %v)", text, err)
	}
	return string(text)
}

// tail returns the end of a log, from the start of a line.
func tail(log string) string {
	if len(log) <= logTail {
		return log
	}
	log = log[len(log)-logTail:]
	return log[strings.IndexByte(log, '\n')+1:]
}

// ownedBy ends the server with the test.
func ownedBy(t testing.TB, s *Server) *Server {
	t.Cleanup(func() {
		s.Stop()
		s.process.log.Close()
	})
	showLog(t, s)
	return s
}

// showLog shows what the server logs from here on, where the test fails.
func showLog(t testing.TB, s *Server) {
	var from int64
	if info, err := s.process.log.Stat(); err == nil {
		from = info.Size()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s, its end:\n%s", s.process.name, tail(s.process.logFrom(from)))
		}
	})
}

// unavailable skips the test, or fails it where [EnvRequire] says so.
func unavailable(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(EnvRequire) == "1" {
		t.Fatalf("servertest: "+format, args...)
	}
	t.Skipf("servertest: "+format, args...)
}

// checkName fails a test that `make conformance` would not find.
func checkName(t testing.TB) {
	t.Helper()
	if top, _, _ := strings.Cut(t.Name(), "/"); strings.HasPrefix(top, "Test") && !strings.Contains(top, "Conformance") {
		t.Fatalf("servertest: put the word Conformance into the name %s: `make conformance` finds the tests with servers by it", top)
	}
}
