package gateway_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/unfray/unfray/gateway"
)

func hash(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

func TestKeys(t *testing.T) {
	const good, other = "sk-0123456789abcdef", "sk-fedcba9876543210"
	r := newRig(t, rigOptions{cfg: gateway.Config{
		Models: []gateway.Model{{Name: "toy"}},
		Keys:   []gateway.Key{{Name: "a", SHA256: hash(other)}, {Name: "b", SHA256: hash(good)}, {Name: "c", SHA256: hash("third")}},
	}})
	for _, row := range []struct {
		path    string
		headers []string
		status  int
		code    string
	}{
		{path: "/healthz", status: 200},
		{path: "/readyz", status: 200},
		{path: "/healthz/", status: 401},
		{path: "/v1/models", status: 401},
		{path: "/unknown", status: 401},
		{path: "/v1/models", headers: []string{"Authorization", "Bearer " + good}, status: 200},
		{path: "/v1/models", headers: []string{"Authorization", "bearer   " + good}, status: 200},
		{path: "/v1/models", headers: []string{"Authorization", "Bearer " + other}, status: 200},
		{path: "/v1/models", headers: []string{"x-api-key", good}, status: 200},
		{path: "/v1/models", headers: []string{"x-api-key", good, "Authorization", "Basic dTpw"}, status: 200},
		{path: "/v1/models", headers: []string{"x-api-key", good, "Authorization", "Bearer wrong"}, status: 401, code: "invalid_api_key"},
		{path: "/v1/models", headers: []string{"Authorization", "Bearer " + good + " "}, status: 401, code: "invalid_api_key"},
		{path: "/v1/models", headers: []string{"Authorization", "Bearer " + good[:10]}, status: 401, code: "invalid_api_key"},
		{path: "/v1/models", headers: []string{"Authorization", "Bearer " + strings.ToUpper(good)}, status: 401, code: "invalid_api_key"},
		{path: "/v1/models", headers: []string{"Authorization", "Bearer"}, status: 401, code: "invalid_api_key"},
		{path: "/v1/models", headers: []string{"Authorization", good}, status: 401},
		{path: "/v1/models?api_key=" + good, status: 401},
		{path: "/unknown", headers: []string{"x-api-key", good}, status: 404, code: "unknown_url"},
		{path: "/metrics", status: 401},
	} {
		a := r.send("GET", row.path, "", row.headers...)
		if a.status != row.status || row.code != "" && !strings.Contains(string(a.body), fmt.Sprintf(`"code":%q`, row.code)) {
			t.Errorf("%s %q: %d %s", row.path, row.headers, a.status, a.body)
		}
		if row.status == 401 && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: no WWW-Authenticate", row.path)
		}
	}
	for _, method := range []string{"POST", "OPTIONS", "PUT"} {
		if a := r.send(method, "/healthz", ""); a.status != 401 {
			t.Errorf("%s /healthz: %d", method, a.status)
		}
	}
}

func TestSeveralKeysInOneRequest(t *testing.T) {
	up := newRawServer(t, nil)
	f := newFront(t, up.addr, gateway.Config{Keys: []gateway.Key{{Name: "a", SHA256: hash("good")}}})
	for _, fields := range []string{
		"Authorization: Bearer good\r\nAuthorization: Bearer bad\r\n", "Authorization: Bearer bad\r\nAuthorization: Bearer good\r\n", "x-api-key: good\r\nX-API-Key: good\r\n",
		// Who strips fields cannot do without a key either.
		"Connection: Authorization\r\n",
	} {
		m := mustExchange(t, f.addr, "GET /x HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
		if got, _ := up.take(); m.status() != 401 || len(got) != 0 {
			t.Errorf("%q: %s", fields, m)
		}
	}
}

func TestUpstreamKey(t *testing.T) {
	for _, row := range []struct {
		key  string
		keys bool
		want []string
		api  []string
	}{
		{want: []string{"Bearer good"}, api: []string{"mine"}},
		{keys: true},
		{key: "up", want: []string{"Bearer up"}},
		{key: "up", keys: true, want: []string{"Bearer up"}},
	} {
		up := newRawServer(t, nil)
		cfg := gateway.Config{Default: &gateway.Upstream{Key: row.key}}
		if row.keys {
			cfg.Keys = []gateway.Key{{SHA256: hash("good")}}
		}
		f := newFront(t, up.addr, cfg)
		m := mustExchange(t, f.addr, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Authorization\r\nX-Api-Key: mine\r\n\r\n")
		up.take()
		if row.keys != (m.status() == 401) {
			t.Errorf("%+v: %s", row, m)
		}
		mustExchange(t, f.addr, "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\nX-Api-Key: mine\r\n\r\n")
		got, _ := up.take()
		if len(got) != 1 || fmt.Sprint(got[0].fields["authorization"], got[0].fields["x-api-key"]) != fmt.Sprint(row.want, row.api) {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

// A key for certain models gets to no other, by no path.
func TestKeyForModels(t *testing.T) {
	up := newRawServer(t, nil)
	r := newRig(t, rigOptions{cfg: gateway.Config{
		Models:  []gateway.Model{{Name: "a"}, {Name: "b"}},
		Default: &gateway.Upstream{Transport: newPool(t, up.addr)},
		Keys:    []gateway.Key{{Name: "some", SHA256: hash("some"), Models: []string{"a"}}, {Name: "none", SHA256: hash("none"), Models: []string{}}, {Name: "all", SHA256: hash("all")}},
	}})
	for _, row := range []struct {
		key, path, body string
		status          int
	}{
		{"some", "/v1/completions", `{"model":"a","prompt":"x"}`, 200},
		{"some", "/v1/completions", `{"model":"b","prompt":"x"}`, 403},
		{"some", "/v1/completions", `{"model":"b","MODEL":"a","prompt":"x"}`, 403},
		{"some", "/v1/completions", `{"MODEL":"a","prompt":"x"}`, 403},
		{"some", "/v1/completions", `{"model":"c","prompt":"x"}`, 403},
		{"some", "/v1/completions", `{"model":"c","prompt":"x"`, 400},
		{"some", "/v1/completions", `{"model":"a","model":"c","prompt":"x"}`, 400},
		{"some", "/v1/chat/completions", `{"model":"b","messages":[{"role":"user","content":"x"}]}`, 403},
		{"some", "/infill", `{"model":"b","input_prefix":"x"}`, 403},
		{"some", "/v1/embeddings", `{"model":"a","input":"x"}`, 403},
		{"some", "/v1//completions", `{"model":"b","prompt":"x"}`, 403},
		{"none", "/v1/completions", `{"model":"a","prompt":"x"}`, 403},
		{"all", "/v1/completions", `{"model":"b","prompt":"x"}`, 200},
		{"all", "/v1/embeddings", `{"model":"b","input":"x"}`, 200},
	} {
		a := r.send("POST", row.path, row.body, "Authorization", "Bearer "+row.key)
		if a.status != row.status {
			t.Errorf("%s %s %s: %d %s, want %d", row.key, row.path, row.body, a.status, a.body, row.status)
		}
	}
}

// Nor does it see their names.
func TestKeyForModelsLists(t *testing.T) {
	r := newRig(t, rigOptions{cfg: gateway.Config{
		Models: []gateway.Model{{Name: "a"}, {Name: "b"}},
		Keys:   []gateway.Key{{SHA256: hash("some"), Models: []string{"a"}}},
	}})
	if a := r.send("GET", "/v1/models", "", "x-api-key", "some"); !strings.Contains(string(a.body), `"id":"a"`) || strings.Contains(string(a.body), `"id":"b"`) {
		t.Errorf("%s", a.body)
	}
	for name, status := range map[string]int{"a": 200, "b": 404, "c": 404} {
		if a := r.send("GET", "/v1/models/"+name, "", "x-api-key", "some"); a.status != status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func TestBadKeys(t *testing.T) {
	for _, keys := range [][]gateway.Key{
		{{Name: "a"}},
		{{Name: "a", SHA256: hash("")}},
		{{Name: "a", SHA256: hash("x")}, {Name: "b", SHA256: hash("x")}},
	} {
		if _, err := gateway.New(gateway.Config{Default: &gateway.Upstream{Transport: newPool(t, "127.0.0.1:1")}, Keys: keys}); err == nil {
			t.Errorf("%v: no error", keys)
		}
	}
	if _, err := gateway.New(gateway.Config{Default: &gateway.Upstream{}}); err == nil {
		t.Error("an upstream without a transport: no error")
	}
}
