package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/recovery"
	"github.com/unfray/unfray/recovery/extract"
	"github.com/unfray/unfray/recovery/toolcall"
)

// TestRecoveryDocsTables compares the tables of the page with what there is.
func TestRecoveryDocsTables(t *testing.T) {
	b, err := os.ReadFile("../../docs/recovery.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	section := func(title string) string {
		_, s, ok := strings.Cut(page, "\n## "+title+"\n")
		if !ok {
			t.Fatalf("there is no section %q", title)
		}
		s, _, _ = strings.Cut(s, "\n## ")
		_, s, _ = strings.Cut(s, "\n|---")
		return s
	}
	rows := func(s string) (names []string) {
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(s, -1) {
			names = append(names, m[1])
		}
		return names
	}
	if got := rows(section("Strategies")); !slices.Equal(got, recovery.Strategies()) {
		t.Errorf("strategies: the page has %q", got)
	}
	var formats []string
	for _, f := range toolcall.Formats() {
		formats = append(formats, string(f))
	}
	if got := rows(section("Tool calls")); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(formats))) {
		t.Errorf("tool calls: the page has %q, there are %q", got, formats)
	}
	fields := section("What comes out")
	for f := range fieldNames(reflect.TypeFor[recovery.Report]()) {
		if f != "id" && !strings.Contains(fields, "`"+f+"`") {
			t.Errorf("the page does not tell of the field %s", f)
		}
	}
	for f := range fieldNames(reflect.TypeFor[recovery.ReportCall]()) {
		if !regexp.MustCompile(`\b` + f + `\b`).MatchString(fields) {
			t.Errorf("the page does not tell of the field %s of a call", f)
		}
	}
	reasoning := strings.ReplaceAll(section("Reasoning"), `\|`, "|")
	for _, tag := range extract.DefaultTags() {
		if open := strings.TrimSpace(tag.Open); strings.HasPrefix(open, "<") && !strings.Contains(reasoning, "`"+open) {
			t.Errorf("the page does not tell of reasoning in %s", open)
		}
	}
}

// fieldNames are the names of a struct's members as JSON.
func fieldNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}
