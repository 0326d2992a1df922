package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTemplateNames(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"no braces", nil},
		{"{a} {{b}} ${c} <DATE> %(e)s {a}", []string{"a", "b", "c", "DATE", "e"}},
		{"{user.name!r} {x:>10}", []string{"user.name", "x"}},
		{`\frac{a}{b} \{c}`, nil},
		{`{"json": 1} {} { a } <br> <|im_end|> 100%s`, nil},
	} {
		if got := NewTemplate([]byte(c.text)).Names(); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestFill(t *testing.T) {
	tmpl := NewTemplate([]byte("Now: {date}\n{user.name} asks: {{q}}"))
	values, err := ReadValues(strings.NewReader(`{"date": "1 May", "user": {"name": "Ann"}, "q": [1, 2]}` + "\n\n" + `{"date": "2 May", "user": {"name": "Bob"}, "q": "why?\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Now: 1 May\nAnn asks: [1, 2]", "Now: 2 May\nBob asks: why?\n"}
	for i, v := range values {
		p, err := tmpl.Fill(v)
		if err != nil || string(p.Text) != want[i] {
			t.Fatalf("%q, %v, want %q", p.Text, err, want[i])
		}
		var names []string
		for _, s := range p.Segments {
			names = append(names, fmt.Sprintf("%s=%s", s.Name, p.Text[s.Start:s.End]))
		}
		if i == 0 && strings.Join(names, " ") != "{date}=1 May {user.name}=Ann {{q}}=[1, 2]" {
			t.Errorf("segments %q", names)
		}
	}
	for _, v := range []string{`{"date": "x", "q": ""}`, `{"date": "x", "user": {"name": null}, "q": ""}`, `{"date": "x", "user": 3, "q": ""}`} {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(v), &m); err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Fill(m); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "{user.name} at byte 12") {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestReadValuesRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"a": 1}` + "\n" + `{"a": }`, "line 2, column 7"},
		{"\n[1]", "line 2, column 1"},
		{"null", "line 1, column 1"},
		{`{"a": 1`, "line 1, column 7"},
		{`{"a": 1} {"b": 2}`, "line 1, column 10"},
	} {
		if _, err := ReadValues(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := ReadValues(strings.NewReader(strings.Repeat("a", maxValues+1))); !errors.Is(err, ErrTooLong) {
		t.Errorf("a long line: %v", err)
	}
}

// The cause names the placeholder, and how much constant text stands behind it.
func TestPlaceholder(t *testing.T) {
	tok := open(t, "qwen3")
	text := "You help {customer} today.\n" + rules + "Question: {question}\n"
	tmpl := NewTemplate([]byte(text))
	var prompts []Prompt
	for _, v := range [][2]string{{"Acme Pumps", "Why does it leak?"}, {"Bolt & Sons", "How hot is it?"}, {"Croft Mills", "Who knows?"}} {
		customer, _ := json.Marshal(v[0])
		question, _ := json.Marshal(v[1])
		p, err := tmpl.Fill(map[string]json.RawMessage{"customer": customer, "question": question})
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, p)
	}
	rep, q := second(t, Options{Tokenizer: tok}, prompts...)
	d := q.FirstDivergence
	at := strings.Index(text, "{customer}")
	constant := len(text) - at - len("{customer}{question}")
	want := fmt.Sprintf("{customer} at byte %d comes before %d constant bytes", at, constant)
	if d == nil || d.Placeholder != "{customer}" || !strings.HasSuffix(d.Why, want) || d.Cause != Content {
		t.Fatalf("divergence %+v, want %q", d, want)
	}
	s := suggested(rep, MoveToEnd)
	if s == nil || s.Requests != 3 {
		t.Fatalf("suggestions %+v", rep.Suggestions)
	}
	// By hand: the line of the customer below the rest.
	fixed := NewTemplate([]byte(rules + "Question: {question}\nYou help {customer} today.\n"))
	var views []Prompt
	for _, v := range [][2]string{{`"Acme Pumps"`, `"Why does it leak?"`}, {`"Bolt & Sons"`, `"How hot is it?"`}, {`"Croft Mills"`, `"Who knows?"`}} {
		p, _ := fixed.Fill(map[string]json.RawMessage{"customer": json.RawMessage(v[0]), "question": json.RawMessage(v[1])})
		views = append(views, p)
	}
	byHand, err := Audit(views, Options{Tokenizer: tok})
	if err != nil {
		t.Fatal(err)
	}
	if got := byHand.PromptTokens - byHand.ReusedTokens; s.After.ComputedTokens != got {
		t.Errorf("%d tokens computed after the change, by hand %d", s.After.ComputedTokens, got)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add([]byte("Now: {date}, {{q}} ${x} <NAME> %(y)s"), []byte(`{"date": "a", "q": [1], "x": {"y": null}, "NAME": 1e9, "y": ""}`))
	f.Add([]byte(`\frac{a}{b}{{{c}}}`), []byte("\n{}\n"))
	f.Add([]byte("{a.b.c}"), []byte(`{"a": {"b": {"c": "\ud800"}}}`))
	f.Fuzz(func(t *testing.T, text, lines []byte) {
		tmpl := NewTemplate(text)
		values, err := ReadValues(strings.NewReader(string(lines)))
		if err != nil {
			return
		}
		for _, v := range values {
			p, err := tmpl.Fill(v)
			if err != nil {
				continue
			}
			at := 0
			var constant []byte
			for _, s := range p.Segments {
				if s.Start < at || s.End > len(p.Text) {
					t.Fatalf("segments %+v of %d bytes", p.Segments, len(p.Text))
				}
				constant = append(constant, p.Text[at:s.Start]...)
				at = s.End
			}
			constant = append(constant, p.Text[at:]...)
			if len(tmpl.holes) == 0 && string(constant) != string(text) {
				t.Fatalf("%q became %q", text, constant)
			}
		}
	})
}
