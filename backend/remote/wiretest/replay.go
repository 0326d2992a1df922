package wiretest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// leaveTime bounds how long a replay waits for a client to leave.
const leaveTime = 10 * time.Second

// Replayer plays a recorded server.
type Replayer struct {
	tb   testing.TB
	path string

	mu   sync.Mutex
	left []Exchange // not made yet, in the order of the recording
}

// Serve plays a recording to the end of the test and returns the server's
// address.
func Serve(tb testing.TB, path string) string {
	tb.Helper()
	list, err := Read(path)
	if err != nil {
		tb.Fatalf("wiretest: %v", err)
	}
	r := &Replayer{tb: tb, path: path, left: list}
	s := httptest.NewServer(r)
	tb.Cleanup(func() {
		s.Close()
		r.finish()
	})
	return s.URL
}

// finish fails the test for what was not asked for.
func (r *Replayer) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.left); n > 0 && !r.tb.Failed() && !r.tb.Skipped() {
		e := &r.left[0]
		r.tb.Errorf("wiretest: %s: %d recorded requests were not made; the first is %s: %s %s %.300s", r.path, n, e.Name, e.Request.Method, e.Request.Path, e.Request.Body)
	}
}

// ServeHTTP implements [http.Handler].
func (r *Replayer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.tb.Errorf("wiretest: reading a request: %v", err)
		return
	}
	q, err := newRequest(req, body)
	if err != nil {
		r.tb.Errorf("wiretest: %v", err)
		return
	}
	e, ok := r.take(&q)
	if !ok {
		http.Error(w, "this was not recorded", http.StatusInternalServerError)
		return
	}
	if e.Response.Status != 0 {
		chunks, err := e.Response.chunks()
		if err != nil {
			r.tb.Errorf("wiretest: %s: %s: %v", r.path, e.Name, err)
		}
		for name, value := range e.Response.Headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(e.Response.Status)
		flush := http.NewResponseController(w).Flush
		if e.Note == closedByClient {
			flush() // the client may wait for no more than this
		}
		for _, c := range chunks {
			w.Write(c)
			flush()
		}
	}
	if e.Note == closedByClient {
		select {
		case <-req.Context().Done():
		case <-time.After(leaveTime):
			r.tb.Errorf("wiretest: %s: %s: the client did not leave", r.path, e.Name)
		}
	}
}

// take returns the recorded exchange of a request. Without one the test fails.
func (r *Replayer) take(q *Request) (Exchange, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var nearest []string
	name := ""
	for i, e := range r.left {
		d := differences(&e.Request, q)
		if len(d) == 0 {
			r.left = slices.Delete(r.left, i, i+1)
			return e, true
		}
		if e.Request.Path == q.Path && (nearest == nil || len(d) < len(nearest)) {
			nearest, name = d, e.Name
		}
	}
	if nearest == nil {
		r.tb.Errorf("wiretest: %s: %s %s was not recorded, or not so often", r.path, q.Method, q.Path)
	} else {
		r.tb.Errorf("wiretest: %s: a request to %s was not recorded; it differs from %s in\n\t%s", r.path, q.Path, name, strings.Join(nearest, "\n\t"))
	}
	return Exchange{}, false
}

// differences lists the fields in which got is not what was recorded.
func differences(want, got *Request) []string {
	var list []string
	add := func(at string, want, got any) {
		w, _ := json.Marshal(want)
		g, _ := json.Marshal(got)
		list = append(list, fmt.Sprintf("%s: %.400s, recorded is %.400s", at, g, w))
	}
	if want.Method != got.Method {
		add("method", want.Method, got.Method)
	}
	if want.Path != got.Path {
		add("path", want.Path, got.Path)
	}
	if !maps.Equal(want.Headers, got.Headers) && len(want.Headers)+len(got.Headers) > 0 {
		add("headers", want.Headers, got.Headers)
	}
	w, errW := decode(want.Body)
	g, errG := decode(got.Body)
	if errW != nil || errG != nil {
		add("body", string(want.Body), string(got.Body))
		return list
	}
	compare("body", w, g, add)
	return list
}

// compare calls differ for every place where two JSON values differ.
func compare(at string, want, got any, differ func(at string, want, got any)) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			all := maps.Clone(w)
			maps.Copy(all, g)
			for _, k := range slices.Sorted(maps.Keys(all)) {
				_, inW := w[k]
				_, inG := g[k]
				if inW && inG {
					compare(at+"."+k, w[k], g[k], differ)
				} else {
					differ(at+"."+k, w[k], g[k])
				}
			}
			return
		}
	case []any:
		if g, ok := got.([]any); ok && len(w) == len(g) {
			for i := range w {
				compare(fmt.Sprintf("%s[%d]", at, i), w[i], g[i], differ)
			}
			return
		}
	default:
		switch got.(type) {
		case map[string]any, []any:
		default:
			if want == got {
				return
			}
		}
	}
	differ(at, want, got)
}
