package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"testing"
)

// TestRecordedIsThePlan holds the recorded transcripts to the plan.
func TestRecordedIsThePlan(t *testing.T) {
	all, err := expand(planText)
	if err != nil {
		t.Fatal(err)
	}
	old, err := read("../../recovery/testdata/transcripts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 300 || len(old) != len(all) {
		t.Fatalf("%d planned, %d recorded, want 300", len(all), len(old))
	}
	for i, want := range all {
		got := *old[i]
		got.Model, got.Tokens, got.FinishReason, got.Text = "", 0, "", ""
		if !reflect.DeepEqual(jsonOf(t, got), jsonOf(t, *want)) {
			t.Errorf("%s was asked otherwise; record the transcripts again", want.ID)
		}
	}
}

func jsonOf(t *testing.T, tr transcript) (v any) {
	t.Helper()
	data, err := json.Marshal(tr)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRecordAndCheck records from a server that tells the seed it was given.
func TestRecordAndCheck(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Seed int }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"model":"m","choices":[{"message":{"content":"seed <%d>"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}`, req.Seed/2*2)
	}))
	defer server.Close()
	all, err := expand([]byte(`[{"kind":"k","form":"text","users":["a","b"],"runs":[{"temperature":0,"max_tokens":5},{"temperature":1,"max_tokens":6}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.jsonl")
	if err := record(server.URL, path, all, func(int) {}); err != nil {
		t.Fatal(err)
	}
	old, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(old) != 4 || old[3].ID != "k-04" || old[3].Text != "seed <1002>" || old[3].Tokens != 3 || old[3].MaxTokens != 6 {
		t.Errorf("recorded %d, the last %+v", len(old), old[len(old)-1])
	}
	old[0].Text = "another"
	same, asked, err := compare(server.URL, all, old, func(int) {})
	if same != 3 || asked != 4 || err != nil {
		t.Errorf("%d of %d the same, %v", same, asked, err)
	}
}

func TestRefusesAFaultyAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"choices":[]}`)
	}))
	defer server.Close()
	if err := ask(server.URL, &transcript{}); err == nil {
		t.Error("an answer without a choice was taken")
	}
	server.Config.Handler = http.NotFoundHandler()
	if err := ask(server.URL, &transcript{}); err == nil {
		t.Error("status 404 was taken for an answer")
	}
}
