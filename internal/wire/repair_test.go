package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestDecodeRepair(t *testing.T) {
	q, err := DecodeRepair([]byte(`{"id":{"n":1.10},"text":"{'a'\ud83d\ude42","strict":true,"latex":true,"paths":true,"ended":null,"finish_reason":"stop","model":"m","a":{"b":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(q.ID) != `{"n":1.10}` || string(q.Text) != "{'a'🙂" || !q.Strict || !q.LaTeX || !q.Paths || q.Ended || !q.IsEnded() ||
		strings.Join(q.Ignored, " ") != "model a" {
		t.Errorf("%+v", q)
	}
	q, err = DecodeRepair([]byte(`{"bytes":"e/8=","finish_reason":"length"}`))
	if err != nil || string(q.Text) != "{\xff" || q.ID != nil || q.IsEnded() {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err = DecodeRepair([]byte(`{"text":""}`)); err != nil || len(q.Text) != 0 {
		t.Errorf("%+v, %v", q, err)
	}
}

func TestDecodeRepairRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                          "the request body is empty: send a JSON object",
		`[1]`:                       "the request body must be a JSON object, not an array",
		`{"id":7}`:                  `text is missing: give the text to repair, or "bytes" in base64`,
		`{"id":7,"text":null}`:      `text is missing: give the text to repair, or "bytes" in base64`,
		`{"text":1}`:                "text must be a string, not a number",
		`{"text":"","bytes":""}`:    `bytes is given beside "text": give one of them`,
		`{"bytes":"?"}`:             "bytes must be base64",
		`{"bytes":[1]}`:             "bytes must be a string, not an array",
		`{"text":"","strict":"no"}`: "strict must be a boolean, not a string",
		`{"text":"","text":""}`:     "text is given twice",
		`{"text":"\ud83d"}`:         `invalid JSON at byte 9: half of a surrogate pair; send a text that is not UTF-8 as "bytes", in base64`,
		"{\"text\":\"\xff\"}":       `invalid JSON at byte 9: not UTF-8; send a text that is not UTF-8 as "bytes", in base64`,
		`{"text":"a`:                "invalid JSON at byte 9: unexpected end of JSON input",
	} {
		q, err := DecodeRepair([]byte(in))
		if err == nil || err.Error() != want || !errors.As(err, new(*DecodeError)) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
		if strings.Contains(in, `"id":7`) && string(q.ID) != "7" {
			t.Errorf("%s: ID %s", in, q.ID)
		}
	}
}

func FuzzDecodeRepair(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"text":"{","strict":true,"finish_reason":"stop"}`, `{"bytes":"e/8="}`, `{"text":"\ud83d"}`, `{`, `{"text":{}}`, "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := DecodeRepair(b)
		if q == nil {
			t.Fatal("no request")
		}
		if err != nil && !errors.As(err, new(*DecodeError)) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
