package jsonrepair

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		o        Options
		want     string
	}{
		{"valid", "[1.10,\n \"\u2028<\"]", Options{}, `{"outcome":"valid","text":"[1.10,\n \"` + "\\u2028" + `<\"]","value":[1.10,"` + "\u2028" + `<"],"edits":[]}`},
		{"repaired", `{'a':1}`, Options{},
			`{"outcome":"repaired","text":"{\"a\":1}","value":{"a":1},"edits":[{"kind":"quote","offset":1,"before":"'","after":"\""},{"kind":"quote","offset":3,"before":"'","after":"\""}]}`},
		{"bytes", "[\"\xff\"]", Options{},
			`{"outcome":"repaired","text":"[\"` + "\ufffd" + `\"]","value":["` + "\ufffd" + `"],"edits":[{"kind":"invalid_utf8","offset":2,"before":"` + `\ufffd` + `","after":"` + "\ufffd" + `","before_bytes":"/w=="}],"findings":[{"kind":"invalid_utf8","offset":2,"length":1,"text":"this byte is not part of any UTF-8 sequence"}]}`},
		{"failed", "no", Options{},
			`{"outcome":"failed","edits":[],"error":{"offset":0,"cause":"no JSON was found","tried":"neither an object nor an array begins anywhere in the text, and it is no other JSON value"}}`},
		{"strict", `{"n":1,234}`, Options{Strict: true}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if err := e.Encode(Repair([]byte(tc.in), tc.o).Report()); err != nil {
				t.Fatal(err)
			}
			got := strings.TrimSuffix(b.String(), "\n")
			if tc.want != "" && got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if tc.name == "strict" && (strings.Contains(got, `"value"`) || !strings.HasPrefix(got, `{"outcome":"ambiguous","edits":[],"readings":[{"text":`)) {
				t.Errorf("%s", got)
			}
		})
	}
}

// A report of any document can be encoded and read again.
func TestReportDeep(t *testing.T) {
	for _, n := range []int{maxValueDepth, maxValueDepth + 1, 100_000} {
		in := strings.Repeat("[", n) + `"]]\"[["` + strings.Repeat("]", n)
		b, err := json.Marshal(Repair([]byte(in), Options{}).Report())
		if err != nil {
			t.Fatal(n, err)
		}
		var back Report
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(n, err)
		}
		if *back.Text != in || (back.Value != nil) != (n <= maxValueDepth) {
			t.Errorf("%d levels: text of %d bytes, value of %d", n, len(*back.Text), len(back.Value))
		}
	}
}
