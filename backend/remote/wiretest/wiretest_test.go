package wiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeTB notes failures.
type fakeTB struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Failed() bool      { return len(f.failures) > 0 }
func (f *fakeTB) Skipped() bool     { return false }
func (f *fakeTB) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

// end runs the cleanups and returns all failures.
func (f *fakeTB) end() string {
	for _, fn := range slices.Backward(f.cleanups) {
		fn()
	}
	return strings.Join(f.failures, "\n")
}

// server answers with an event stream, plain JSON or a refusal.
func server(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream", "/endless":
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, "data: {\"a\": 1}\n\n: comment\n\ndata: <é>\n\ndata: half")
		if r.URL.Path == "/endless" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	case "/json":
		w.Header().Set("Content-Type", "application/json")
		text, _ := io.ReadAll(r.Body)
		w.Write(text)
	case "/silent":
		<-r.Context().Done()
	default:
		http.Error(w, "no such thing", http.StatusNotFound)
	}
}

// ask makes one request and returns the status and what was read. read is how
// much to read before leaving; negative: all.
func ask(t *testing.T, transport http.RoundTripper, url, body string, read int64) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	method, r := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, r = http.MethodPost, strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	in := io.Reader(res.Body)
	if read >= 0 {
		in = io.LimitReader(res.Body, read)
	}
	text, err := io.ReadAll(in)
	return fmt.Sprint(res.StatusCode, " ", res.Header.Get("Content-Type"), " ", string(text)), err
}

func record(t *testing.T, f func(transport http.RoundTripper, base string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(server))
	defer s.Close()
	r := &Recorder{Transport: s.Client().Transport}
	f(r, s.URL)
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayIsTheRecording(t *testing.T) {
	long := `{"s":"` + strings.Repeat("x", maxLiteral+1) + `","l":[` + strings.Repeat("7,", maxList) + `7]}`
	asked := []struct {
		path, body string
		read       int64
	}{
		{"/stream", `{"b":1,"a":1.50}`, -1}, {"/json?q=1", `{"a":[1,2]}`, -1}, {"/json", long, -1}, {"/other", "", -1}, {"/endless", "", 15}, {"/endless?headers", "", 0}, {"/stream", "no json", -1},
	}
	var want []string
	path := record(t, func(transport http.RoundTripper, base string) {
		for _, a := range asked {
			got, err := ask(t, transport, base+a.path, a.body, a.read)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, got)
		}
	})
	if text, _ := os.ReadFile(path); strings.Count(string(text), strings.Repeat("x", maxLiteral+1)) != 1 || strings.Count(string(text), strings.Repeat("7,", maxList)) != 1 {
		t.Error("what is long in a request stands in the recording, or is not in the answer")
	}
	base := Serve(t, path)
	for i := range asked {
		i = len(asked) - 1 - i // the order does not matter
		a := asked[i]
		got, err := ask(t, http.DefaultTransport, base+a.path, a.body, a.read)
		if err != nil || got != want[i] {
			t.Errorf("%s %s: %q, %v; recorded was %q", a.path, a.body, got, err, want[i])
		}
	}
}

func TestEqualRequestsGetTheirAnswersInOrder(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprint(w, n)
	}))
	defer s.Close()
	r := &Recorder{Transport: s.Client().Transport}
	path := filepath.Join(t.TempDir(), "r.jsonl")
	for range 3 {
		ask(t, r, s.URL+"/", "", -1)
	}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	base := Serve(t, path)
	for i := range 3 {
		if got, _ := ask(t, http.DefaultTransport, base+"/", "", -1); !strings.HasSuffix(got, fmt.Sprint(" ", i+1)) {
			t.Errorf("request %d: %s", i, got)
		}
	}
}

func TestReplayFails(t *testing.T) {
	path := record(t, func(transport http.RoundTripper, base string) {
		ask(t, transport, base+"/json", `{"a":{"b":[1,2]},"c":3}`, -1)
	})
	for _, tt := range []struct {
		name, path string
		bodies     []string
		want       string
	}{
		{"as recorded", "/json", []string{`{"c":3,"a":{"b":[1,2]}}`}, ""},
		{"another value", "/json", []string{`{"a":{"b":[1,3]},"c":3}`}, "body.a.b[1]: 3, recorded is 2"},
		{"another number of the same value", "/json", []string{`{"a":{"b":[1,2.0]},"c":3}`}, "body.a.b[1]: 2.0, recorded is 2"},
		{"a field more", "/json", []string{`{"a":{"b":[1,2]},"c":3,"d":null}`}, "body.d"},
		{"a field less", "/json", []string{`{"a":{"b":[1,2]}}`}, "body.c"},
		{"another path", "/json?x", []string{`{"a":{"b":[1,2]},"c":3}`}, "was not recorded"},
		{"another type", "/json", []string{`[]`}, "body: []"},
		{"once too often", "/json", []string{`{"a":{"b":[1,2]},"c":3}`, `{"a":{"b":[1,2]},"c":3}`}, "or not so often"},
		{"not at all", "/json", nil, "1 recorded requests were not made"},
	} {
		f := &fakeTB{TB: t}
		base := Serve(f, path)
		for _, body := range tt.bodies {
			ask(t, http.DefaultTransport, base+tt.path, body, -1)
		}
		if got := f.end(); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: failed with %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestRecorderRefuses(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte{0xff}) }))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	r := &Recorder{Transport: s.Client().Transport}
	ask(t, r, s.URL+"/", "", -1)
	if err := r.Write(path); err == nil {
		t.Error("an answer that is no UTF-8 was written")
	}
	r = &Recorder{Transport: s.Client().Transport}
	req, _ := http.NewRequest(http.MethodGet, s.URL, nil)
	res, err := r.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(path); err == nil {
		t.Error("an answer that is still open was written")
	}
	res.Body.Close()
	if err := os.WriteFile(path, []byte("{}\n{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), ":2:") {
		t.Errorf("a broken line: %v", err)
	}
}

// A client that leaves before anything came does so in the replay too.
func TestReplayOfSilence(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(server))
	defer s.Close()
	r := &Recorder{Transport: s.Client().Transport}
	leave := func(transport http.RoundTripper, base string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50e6)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, base+"/silent", nil)
		_, err := transport.RoundTrip(req)
		return err
	}
	if err := leave(r, s.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := leave(http.DefaultTransport, Serve(t, path)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
