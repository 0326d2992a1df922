package upstream

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewRefusesBadConfigurations(t *testing.T) {
	good := parse(t, "http://a:1")
	tests := []struct {
		cfg  Config
		want string
	}{
		{Config{}, "no endpoint"},
		{Config{Endpoints: []*url.URL{nil}}, "endpoint 1: no URL"},
		{Config{Endpoints: []*url.URL{good, parse(t, "ftp://a")}}, `endpoint 2: scheme "ftp"`},
		{Config{Endpoints: []*url.URL{parse(t, "a:8000")}}, `scheme "a"`},
		{Config{Endpoints: []*url.URL{parse(t, "http://:80")}}, "no host"},
		{Config{Endpoints: []*url.URL{parse(t, "http://me:secret@a/v")}}, "http://a/v: holds a user name"},
		{Config{Endpoints: []*url.URL{parse(t, "http://a/?key=secret")}}, "query"},
		{Config{Endpoints: []*url.URL{parse(t, "http://a/b/../c")}}, "holds . or .."},
		{Config{Endpoints: []*url.URL{good, parse(t, "http://a:1/")}}, "given twice"},
		{Config{Endpoints: []*url.URL{good}, Health: Health{Path: "health"}}, "must start with /"},
		{Config{Endpoints: []*url.URL{good}, ConnectTimeout: -1}, "connect timeout"},
	}
	for _, tt := range tests {
		p, err := New(tt.cfg)
		if err == nil {
			p.Close()
			t.Errorf("%+v: no error, want %q", tt.cfg, tt.want)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	tests := []struct{ base, request, want string }{
		{"http://h", "/v1/x?q=1", "http://h/v1/x?q=1"},
		{"http://h/", "/v1/x", "http://h/v1/x"},
		{"http://h/b", "/v1/x", "http://h/b/v1/x"},
		{"http://h/b/", "/v1/x", "http://h/b/v1/x"},
		{"http://h/b", "//x", "http://h/b//x"},
		{"http://h/b", "/x/", "http://h/b/x/"},
		{"https://h/b", "http://user:pw@other/x", "https://h/b/x"},
		{"http://h/b", "/x%2Fy", "http://h/b/x%2Fy"},
		{"http://h/b%2Fc", "/x%20y", "http://h/b%2Fc/x%20y"},
		{"http://h", "/../x", "http://h/../x"},
		{"http://h/b", "/...", "http://h/b/..."},
		{"http://h/b", "/..", ""},
		{"http://h/b", "/./x", ""},
		{"http://h/b", "/x/../../y", ""},
		{"http://h/b", "/%2e%2e/y", ""},
		{"http://h/b", "/x%2f..%2f..%2fy", ""},
		{"http://h/b", `/x\..\..\y`, ""},
		{"http://h/b", "/.%2E", ""},
	}
	for _, tt := range tests {
		e, err := newEndpoint(parse(t, tt.base))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.ParseRequestURI(tt.request) // as a server reads it
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.resolve(u)
		if (err == nil) != (tt.want != "") || err == nil && got.String() != tt.want {
			t.Errorf("%s + %s = %v, %v; want %q", tt.base, tt.request, got, err, tt.want)
		}
	}
}

// Ejections grow, are over by themselves, and leave one endpoint.
func TestEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, quiet(manyURLs(2)...))
		a, b := p.endpoints[0], p.endpoints[1]
		ejected := func(e *endpoint) bool { return !p.Status()[e.index].EjectedUntil.IsZero() }

		for range p.eject.after - 1 {
			p.failure(a, "boom")
		}
		p.success(a)
		for range p.eject.after - 1 {
			p.failure(a, "boom")
		}
		if ejected(a) {
			t.Fatal("ejected although a success came between")
		}
		last := time.Duration(0)
		for n := range 8 {
			p.failure(a, "boom") // after a return one is enough
			if !ejected(a) {
				t.Fatalf("ejection %d: not ejected", n)
			}
			for range 20 { // those that were still running
				p.failure(a, "boom")
			}
			d := time.Until(p.Status()[0].EjectedUntil)
			nominal := min(p.eject.base<<n, p.eject.most)
			if d < nominal || d > nominal+nominal/4 || d < last && nominal < p.eject.most {
				t.Fatalf("ejection %d: %v, want from %v to %v", n, d, nominal, nominal+nominal/4)
			}
			last = d

			// The other is left, however bad it is.
			for range 3 * p.eject.after {
				p.failure(b, "boom")
			}
			if ejected(b) {
				t.Fatal("no endpoint is left")
			}
			for range 10 {
				if e, _ := p.acquire(nil, nil, reachUsable); e != b {
					t.Fatal("the ejected endpoint was chosen")
				}
				p.release(b)
			}
			p.success(b)
			time.Sleep(d)
			if ejected(a) {
				t.Fatalf("ejection %d: not over after %v", n, d)
			}
		}
		// Having stayed in for long enough, it begins anew.
		p.success(a)
		time.Sleep(p.eject.most + time.Second)
		for range p.eject.after {
			p.failure(a, "boom")
		}
		if d := time.Until(p.Status()[0].EjectedUntil); d > p.eject.base+p.eject.base/4 {
			t.Errorf("ejected for %v after a long time without", d)
		}
	})
}

func TestOneEndpointIsNeverEjected(t *testing.T) {
	p := open(t, quiet(manyURLs(1)...))
	for range 100 {
		p.failure(p.endpoints[0], "boom")
	}
	if s := p.Status()[0]; !s.Usable() || s.Failures != 100 || s.LastError != "boom" {
		t.Errorf("%+v", s)
	}
}

// Checks need their number in a row to change the state; flapping does not.
func TestHealthHysteresis(t *testing.T) {
	bad := errors.New("bad")
	tests := []struct {
		name   string
		checks string // + and -
		want   string // the state after each
	}{
		{"first decides", "-", "-"},
		{"first good", "+", "+"},
		{"two to fall", "+-+--", "++++-"},
		{"three to rise", "-++-+++", "------+"},
		{"flapping", "+-+-+-+-+-", "++++++++++"},
		{"flapping while bad", "-+-+-+", "------"},
	}
	for _, tt := range tests {
		cfg := quiet(manyURLs(1)...)
		cfg.Health.Failures, cfg.Health.Successes = 2, 3
		p := open(t, cfg)
		var got strings.Builder
		for _, c := range tt.checks {
			if c == '+' {
				p.noteCheck(p.endpoints[0], nil)
			} else {
				p.noteCheck(p.endpoints[0], bad)
			}
			got.WriteByte(map[bool]byte{true: '+', false: '-'}[p.Status()[0].Healthy])
		}
		if got.String() != tt.want {
			t.Errorf("%s: checks %s give %s, want %s", tt.name, tt.checks, got.String(), tt.want)
		}
	}
}

// The least loaded endpoint is chosen, ties take turns, and the preferred one
// wins as long as it is usable and not overloaded.
func TestChoose(t *testing.T) {
	const ejected, sick = -1, -2
	tests := []struct {
		name      string
		loads     []int // or why it is not usable
		preferred int
		tried     []int
		allowed   reach
		want      []int // any of
	}{
		{"ties", []int{0, 0, 0}, -1, nil, reachAny, []int{0, 1, 2}},
		{"least", []int{2, 1, 3}, -1, nil, reachAny, []int{1}},
		{"preferred", []int{2, 1, 3}, 0, nil, reachAny, []int{0}},
		{"preferred is overloaded", []int{9, 1, 3}, 0, nil, reachAny, []int{1}},
		{"preferred is ejected", []int{ejected, 1, 3}, 0, nil, reachAny, []int{1}},
		{"preferred is sick", []int{sick, 1, 3}, 0, nil, reachAny, []int{1}},
		{"preferred was tried", []int{0, 1, 3}, 0, []int{0}, reachAny, []int{1}},
		{"tried", []int{0, 1, 3}, -1, []int{0, 1}, reachUsable, []int{2}},
		{"all tried", []int{0, 1}, -1, []int{0, 1}, reachAny, nil},
		{"none usable", []int{ejected, sick}, -1, nil, reachAny, []int{0, 1}},
		{"none usable, one tried", []int{ejected, sick}, -1, []int{0}, reachAny, []int{1}},
		{"none usable, but must be", []int{ejected, sick}, -1, nil, reachUsable, nil},
		{"usable before untried", []int{sick, 7}, -1, nil, reachAny, []int{1}},
	}
	for _, tt := range tests {
		p := open(t, quiet(manyURLs(len(tt.loads))...))
		for i, load := range tt.loads {
			e := p.endpoints[i]
			e.inFlight = max(0, load)
			e.healthy = load != sick
			if load == ejected {
				e.ejectedUntil = time.Now().Add(time.Hour)
			}
		}
		var tried []*endpoint
		for _, i := range tt.tried {
			tried = append(tried, p.endpoints[i])
		}
		seen := map[int]bool{}
		for range 3 * len(tt.loads) {
			e := p.choose(tt.preferred, tried, tt.allowed)
			if e == nil {
				break
			}
			seen[e.index] = true
			p.next = (e.index + 1) % len(p.endpoints)
		}
		want := map[int]bool{}
		for _, i := range tt.want {
			want[i] = true
		}
		if len(seen) != len(want) {
			t.Errorf("%s: chose %v, want each of %v", tt.name, seen, tt.want)
		}
		for i := range seen {
			if !want[i] {
				t.Errorf("%s: chose %d, want one of %v", tt.name, i, tt.want)
			}
		}
	}
}
