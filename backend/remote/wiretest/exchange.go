package wiretest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"
)

// Exchange is one request with its answer.
type Exchange struct {
	Name     string   `json:"name"`
	Request  Request  `json:"request"`
	Response Response `json:"response"`
	Note     string   `json:"note,omitempty"`
}

// Request is what the client sent. Strings of its body longer than 2 KiB and
// lists of more than 256 values are replaced by their length and SHA-256.
type Request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with its query
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body"` // null: none; {"__raw__": …} if it is no JSON
}

// Response is what the server answered.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	// Body is a JSON value without the white space between its parts, {"__raw__": …}
	// for other text, or the events of a stream as strings, the line breaks at the
	// end of each included.
	Body json.RawMessage `json:"body"`
}

// closedByClient is the note of an answer that the client did not read to its
// end.
const closedByClient = "closed by the client"

// maxLiteral is how long a string of a request may be and stand in a recording
// as it is, in bytes, and maxList how many values a list may have.
const (
	maxLiteral = 2 << 10
	maxList    = 256
)

// varying are headers, of requests and answers, that say nothing of what is
// asked or answered.
var varying = map[string]bool{
	"accept-encoding": true, "connection": true, "content-length": true, "date": true, "host": true,
	"transfer-encoding": true, "user-agent": true, "authorization": true, "keep-alive": true, "server": true,
}

func keptHeaders(h http.Header) map[string]string {
	kept := map[string]string{}
	for name, values := range h {
		// A name without a value speaks to the transport and is not sent.
		if name = strings.ToLower(name); !varying[name] && len(values) > 0 {
			kept[name] = strings.Join(values, ", ")
		}
	}
	return kept
}

// newRequest describes a request whose body has been read.
func newRequest(r *http.Request, body []byte) (Request, error) {
	q := Request{Method: r.Method, Path: r.URL.RequestURI(), Headers: keptHeaders(r.Header), Body: json.RawMessage("null")}
	if len(body) == 0 {
		return q, nil
	}
	v, err := decode(body)
	if err != nil {
		v = map[string]any{"__raw__": string(body)}
	}
	q.Body, err = marshal(abridge(v))
	return q, err
}

// decode reads one JSON value and keeps its numbers as they are written.
func decode(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && d.More() {
		err = errors.New("more than one value")
	}
	return v, err
}

// abridge replaces long strings and lists.
func abridge(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > maxLiteral {
			return fmt.Sprintf("__%d bytes, sha256 %x__", len(v), sha256.Sum256([]byte(v)))
		}
	case []any:
		if len(v) > maxList {
			text, _ := json.Marshal(v) // it was read from JSON
			return fmt.Sprintf("__%d values, sha256 %x__", len(v), sha256.Sum256(text))
		}
		for i := range v {
			v[i] = abridge(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = abridge(v[k])
		}
	}
	return v
}

// newBody describes the body of an answer.
func newBody(contentType string, data []byte) (json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the answer is not UTF-8")
	}
	if strings.HasPrefix(contentType, "text/event-stream") {
		return marshal(events(data))
	}
	// A list would read as a stream.
	if json.Valid(data) && bytes.TrimSpace(data)[0] != '[' {
		return marshal(json.RawMessage(data))
	}
	return marshal(map[string]string{"__raw__": string(data)})
}

// events cuts a stream after the blank lines. What is left at its end is the
// last.
func events(data []byte) []string {
	list := []string{}
	for len(data) > 0 {
		n := len(data)
		if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
			n = i + 2
		}
		list = append(list, string(data[:n]))
		data = data[n:]
	}
	return list
}

// marshal is json.Marshal without escapes for HTML, so that a recording can be
// read.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// chunks returns what to write of an answer, in the pieces in which to write it.
func (r *Response) chunks() ([][]byte, error) {
	var raw struct {
		Raw *string `json:"__raw__"`
	}
	var list []string
	switch {
	case json.Unmarshal(r.Body, &list) == nil && list != nil:
		var out [][]byte
		for _, s := range list {
			out = append(out, []byte(s))
		}
		return out, nil
	case json.Unmarshal(r.Body, &raw) == nil && raw.Raw != nil:
		return [][]byte{[]byte(*raw.Raw)}, nil
	case len(r.Body) == 0:
		return nil, errors.New("it has no body")
	}
	return [][]byte{r.Body}, nil
}

// Read reads a recording.
func Read(path string) ([]Exchange, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []Exchange
	r := bufio.NewReader(f)
	for line := 1; ; line++ {
		text, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var e Exchange
			if err := json.Unmarshal(text, &e); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, line, err)
			}
			list = append(list, e)
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
	}
}
