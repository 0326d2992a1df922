package schema

import (
	"strings"
	"sync"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

func fitOne(s *Schema, text string, o FitOptions) *Fit {
	return s.Fit([]Reading{{Text: []byte(text)}}, o)
}

// What is not changed keeps its bytes.
func TestFitKeepsBytes(t *testing.T) {
	for _, tt := range []struct{ schema, in, want string }{
		{`{"type":"object","properties":{"n":{"type":"integer"},"x":{}},"additionalProperties":false}`,
			"{\n  \"x\" : 1.10 ,\n  \"n\":\"5\"  }\n", "{\n  \"x\" : 1.10 ,\n  \"n\":5  }\n"},
		{`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, ` [ {"n" : 7 , "y":"\u00e9"} ] `, ` {"n" : 7 , "y":"\u00e9"} `},
		{`{"type":"array","items":{"type":"object","required":["a"]}}`, ` {"a" : 1e400}`, ` [{"a" : 1e400}]`},
		// Members that go take one comma with them.
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"x":1, "a":2, "y":3, "z":4}`, `{"a":2}`},
		{`{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}`, "{\n  \"a\": 2,\n  \"y\": 3,\n  \"b\": 4\n}", "{\n  \"a\": 2,\n  \"b\": 4\n}"},
		// Members that come are written like those that are there.
		{`{"type":"object","required":["a","b"],"properties":{"a":{},"b":{"type":["null","string"]}}}`, `{"a":1,"c":2}`, `{"a":1,"c":2,"b":null}`},
		{`{"type":"object","required":["a","b"],"properties":{"a":{},"b":{"type":["null","string"]}}}`, "{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"b\": null\n}"},
		{`{"type":"object","required":["b"],"properties":{"b":{"type":"null"}}}`, `{ }`, `{"b": null }`},
		{`{"type":"object","required":["b"],"properties":{"b":{"type":"null"}},"additionalProperties":false}`, `{"B":null,"c":1}`, `{"b":null}`},
		{`{"type":"object","required":["a","b"],"properties":{"a":{"type":["integer","null"]},"b":{"type":"integer"}},"additionalProperties":false}`, `{"z":{}, "b":"1", "y":[]}`, `{"b":1, "a":null}`},
		{`{"type":"object","required":["b"],"properties":{"a":{"type":"integer"},"b":{"type":["integer","null"]}}}`, `{"a":null}`, `{"b":null}`},
		// Members that are given twice both stay.
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":"1","a":2}`, `{"a":1,"a":2}`},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`, `"7"`, `{"a": [7]}`},
		{`{"type":"object","properties":{"a":{"type":"object","required":["b"]}},"required":["a"]}`, `{"a":"{\"b\" : 1.0, \"c\":\"\\u00e9\"}"}`, `{"a":{"b" : 1.0, "c":"\u00e9"}}`},
		{`{"enum":["a b",{"x":1}]}`, ` "A-B" `, ` "a b" `},
	} {
		s := mustParse(t, tt.schema)
		fit := fitOne(s, tt.in, FitOptions{})
		checkFit(t, s, []Reading{{Text: []byte(tt.in)}}, fit)
		if string(fit.Value) != tt.want {
			t.Errorf("%s: %q became %q, want %q; %v %v", tt.schema, tt.in, fit.Value, tt.want, fit.Outcome, fit.Violations)
		}
	}
}

func TestFitOptions(t *testing.T) {
	s := mustParse(t, `{"type":"object","properties":{"n":{"type":"integer","default":5},"m":{"type":"integer","default":"x"}},"required":["n"]}`)
	if f := fitOne(s, `{}`, FitOptions{}); f.Outcome != jsonrepair.Failed {
		t.Errorf("a default without being asked for: %s", f.Value)
	}
	if f := fitOne(s, `{}`, FitOptions{Defaults: true}); string(f.Value) != `{"n": 5}` || f.Coercions[0].Kind != AddDefault {
		t.Errorf("%+v", f)
	}
	s = mustParse(t, `{"type":"object","properties":{"m":{"type":"integer","default":"x"}},"required":["m"]}`)
	if f := fitOne(s, `{}`, FitOptions{Defaults: true}); f.Outcome != jsonrepair.Failed {
		t.Errorf("a default that is not valid: %s", f.Value)
	}
	s = mustParse(t, `{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`)
	if f := fitOne(s, `"1"`, FitOptions{}); string(f.Value) != `1` {
		t.Errorf("%+v", f)
	}
	if f := fitOne(s, `"1"`, FitOptions{Margin: 3}); f.Outcome != jsonrepair.Ambiguous || len(f.Readings) != 2 || f.Readings[0].Score > f.Readings[1].Score {
		t.Errorf("%+v", f)
	}
}

func TestFitReadings(t *testing.T) {
	s := mustParse(t, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	read := func(costs []int, texts ...string) []Reading {
		var list []Reading
		for i, text := range texts {
			list = append(list, Reading{[]byte(text), costs[i]})
		}
		return list
	}
	for _, tt := range []struct {
		readings []Reading
		outcome  jsonrepair.Outcome
		index    int
	}{
		{read([]int{1, 1}, `{"n":1}`, `{"n":2}`), jsonrepair.Ambiguous, -1},
		{read([]int{1, 1}, `{"n":1}`, `{ "n": 1.0}`), jsonrepair.Valid, 0},
		{read([]int{2, 1}, `{"n":1}`, `{"n":2}`), jsonrepair.Ambiguous, -1}, // an edit more or less says little
		{read([]int{3, 1}, `{"n":1}`, `{"n":2}`), jsonrepair.Valid, 1},
		{read([]int{9, 1}, `{"n":1}`, `{"n":"2"}`), jsonrepair.Valid, 0},
		{read([]int{1, 1}, `{"n":"1"}`, `{"n":"2"}`), jsonrepair.Ambiguous, -1},
		{read([]int{1, 3}, `{"n":"1"}`, `{"n":"2"}`), jsonrepair.Repaired, 0},
		{read([]int{5, 1}, `{"n":"1"}`, `{"n":" 2"}`), jsonrepair.Ambiguous, -1}, // worse by one, and cheaper to get
		{read([]int{5, 1}, `{"n":"1"}`, `[{"n":"2"}]`), jsonrepair.Repaired, 0},
		{read([]int{0, 0}, `{"n":`, `{"n":2}`), jsonrepair.Valid, 1},
		{read([]int{0, 0}, `{"x":1}`, `{"n":"x"}`), jsonrepair.Failed, -1},
		{nil, jsonrepair.Failed, -1},
	} {
		fit := s.Fit(tt.readings, FitOptions{})
		checkFit(t, s, tt.readings, fit)
		if fit.Outcome != tt.outcome || fit.Index != tt.index {
			t.Errorf("%+v: %v %d, want %v %d", tt.readings, fit.Outcome, fit.Index, tt.outcome, tt.index)
		}
	}
	// The violations are those of the best attempt, in its own terms.
	fit := s.Fit(read([]int{0, 0}, `[1, 2]`, `{"N":"x"}`), FitOptions{})
	if len(fit.Violations) != 1 || fit.Violations[0].Path != "/n" || fit.Violations[0].Keyword != "type" {
		t.Errorf("%v", fit.Violations)
	}
}

// A schema is for several goroutines.
func TestConcurrent(t *testing.T) {
	s := mustParse(t, `{"type":"array","items":{"anyOf":[{"type":"object","properties":{"user_id":{"type":"string","pattern":"^[0-9]+$"}},"required":["user_id"]},{"enum":["in_progress"]}]}}`)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				if f := fitOne(s, `[{"userId": 5}, "In progress"]`, FitOptions{}); string(f.Value) != `[{"user_id": "5"}, "in_progress"]` {
					t.Errorf("%s %v", f.Value, f.Violations)
				}
				if _, err := Parse([]byte(`{"properties":{"a":{"type":5}}}`), Options{}); err == nil {
					t.Error("no error")
				}
				s.Score([]byte(`[{"x":1}]`))
				s.IncompleteFields([]byte(`[{}]`), nil)
			}
		})
	}
	group.Wait()
}

func TestScore(t *testing.T) {
	s := mustParse(t, `{"type":"object","properties":{"n":{"type":"integer"},"m":{"enum":["a"]}},"required":["n","m"]}`)
	last := -1
	for _, value := range []string{`{"n":1,"m":"a"}`, `{"n":1,"m":"A"}`, `{"n":"1","m":"A"}`, `{"n":1,"m":"b"}`, `{"n":"x","m":"a"}`, `{"m":"a"}`, `{}`, `{"type":"object","properties":{"n":{"type":"integer"}}}`, `{`} {
		score := s.Score([]byte(value))
		if score <= last {
			t.Errorf("%s: %d, not more than %d", value, score, last)
		}
		last = score
	}
}

func TestIncompleteFields(t *testing.T) {
	const user = `{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"object","required":["t"]}},"note":{"type":"string"},"at":{"type":"object","required":["x","y"]}},"required":["name","tags","at"]}`
	const union = `{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{}},"required":["kind","x"]},{"type":"object","properties":{"kind":{"const":"b"},"y":{},"z":{}},"required":["kind","y","z"]}]}`
	for _, tt := range []struct {
		schema, value, open, want string
	}{
		{user, `{}`, "", "/name /tags /at"},
		{user, `{"name":"An"}`, "/name", "/name /tags /at"},
		{user, `{"name":"Ann","note":"x"}`, "/note", "/tags /at"},
		{user, `{"name":"Ann","tags":[{"t":1},{}]}`, "/tags/1", "/tags /tags/1/t /at"},
		{user, `{"name":"Ann","tags":[],"at":{"x":1}}`, "/at", "/at /at/y"},
		{user, `{"name":"Ann","tags":[],"at":{"x":1,"y":2}}`, "", ""},
		{union, `{"kind":"b","y":1}`, "", "/z"},
		{union, `{"kind":"a"}`, "", "/x"},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["v"],"properties":{"kid":{"$ref":"#/$defs/n"}}}}}`, `{"v":1,"kid":{"kid":{}}}`, "/kid/kid", "/kid/kid/v /kid/v"},
		{`{"type":"integer"}`, `{`, "", ""},
	} {
		var open []string
		if tt.open != "" {
			open = strings.Fields(tt.open)
		}
		got := strings.Join(mustParse(t, tt.schema).IncompleteFields([]byte(tt.value), open), " ")
		if got != tt.want {
			t.Errorf("%s: %s open: %q, want %q", tt.value, tt.open, got, tt.want)
		}
	}
}

// What repairing a cut answer says of open places is what IncompleteFields takes.
func TestIncompleteAfterRepair(t *testing.T) {
	s := mustParse(t, `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}`)
	r := jsonrepair.Repair([]byte(`{"city": "San Fr`), jsonrepair.Options{})
	var open []string
	for _, o := range r.Open {
		open = append(open, o.Path)
	}
	if got := strings.Join(s.IncompleteFields(r.Text, open), " "); got != "/city /days" {
		t.Errorf("%s: %q", r.Text, got)
	}
}
