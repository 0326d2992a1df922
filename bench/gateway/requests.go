//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// promptSizes are the bytes of the prompts: 1,000 to 4,000 tokens of English and Go source.
var promptSizes = []int{3000, 6000, 9000, 12000}

// promptCount is how many prompts there are, a quarter of each size.
const promptCount = 16

// readPrompts cuts prompts of every size out of texts, at different places. Each begins with a serial number, so that
// whole prompts never come twice and no cache of prefixes has a part in the figures.
func readPrompts(paths []string) ([]string, error) {
	var texts []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.ToValidUTF8(string(text), ""))
	}
	var prompts []string
	for i := range promptCount {
		size, text := promptSizes[i%len(promptSizes)], texts[i/len(promptSizes)%len(texts)]
		for len(text) < 2*size {
			text += text
		}
		at := i * 577 % (len(text) - size)
		part := strings.ToValidUTF8(text[at:at+size-len(promptEnd)], "")
		prompts = append(prompts, serialOpen+serialZeros+serialClose+" "+part+promptEnd)
	}
	return prompts, nil
}

// A workload is one way to ask for all prompts.
type workload struct {
	name   string
	stream bool
	conns  int
}

// workloads are measured in this order.
var workloads = []workload{
	{"JSON, 1 connection", false, 1},
	{"JSON, 32 connections", false, 32},
	{"stream, 1 connection", true, 1},
	{"stream, 32 connections", true, 32},
}

// A form is a text in which a serial number stands at some places.
type form struct {
	text   []byte
	places []int
}

// newForm makes a form of a text whose serial numbers are all zeros.
func newForm(text []byte) form {
	t := form{text: text}
	zeros := newSerial(0)
	for at := 0; ; {
		n := bytes.Index(text[at:], zeros[:])
		if n < 0 {
			return t
		}
		t.places = append(t.places, at+n)
		at += n + len(zeros)
	}
}

// fill writes the text with a number to dst, which it grows if it must.
func (t *form) fill(dst []byte, n serial) []byte {
	dst = append(dst[:0], t.text...)
	for _, at := range t.places {
		copy(dst[at:], n[:])
	}
	return dst
}

// An exercise is a request with what is to come back.
type exercise struct {
	body  form
	bytes form // the mock's own answer
	text  form // the text in it
}

// newExercises makes the requests of one workload.
func newExercises(s *script, prompts []string, route string, stream bool) ([]exercise, error) {
	m := &mock{script: s}
	var all []exercise
	for _, prompt := range prompts {
		body, err := requestBody(prompt, route, stream)
		if err != nil {
			return nil, err
		}
		q, err := s.readQuestion(body)
		if err != nil {
			return nil, err
		}
		answer := m.completion
		if route == chatRoute {
			answer = m.chat
		}
		e := exercise{body: newForm(body), text: newForm(s.text(newSerial(0)))}
		a := answer(q)
		if stream {
			a.events(func(event []byte) { a.whole = append(a.whole, event...) })
		}
		e.bytes = newForm(a.whole)
		if len(e.body.places) != 1 || len(e.text.places) != 1 {
			return nil, fmt.Errorf("a prompt holds %s more than once: give other texts", newSerial(0))
		}
		all = append(all, e)
	}
	return all, nil
}

const (
	completionRoute = "/v1/completions"
	chatRoute       = "/v1/chat/completions"
)

func requestBody(prompt, route string, stream bool) ([]byte, error) {
	fields := struct {
		Model       string  `json:"model"`
		Prompt      string  `json:"prompt,omitempty"`
		Messages    []any   `json:"messages,omitempty"`
		MaxTokens   int     `json:"max_tokens"`
		Temperature float64 `json:"temperature"`
		Stream      bool    `json:"stream"`
	}{Model: modelName, MaxTokens: 512, Stream: stream}
	if route == chatRoute {
		fields.Messages = []any{map[string]string{"role": "user", "content": prompt}}
	} else {
		fields.Prompt = prompt
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(fields)
	return bytes.TrimSpace(b.Bytes()), err
}

// answerText finds the text in an answer: all strings that are values of "text" or "content", one after the other. The
// mock's text needs no escapes; an answer with some is returned with them and so is found wrong.
func answerText(dst, answer []byte, route string) []byte {
	dst = dst[:0]
	key := []byte(`"text":`)
	if route == chatRoute {
		key = []byte(`"content":`)
	}
	for {
		n := bytes.Index(answer, key)
		if n < 0 {
			return dst
		}
		answer = answer[n+len(key):]
		answer = answer[skipSpace(answer, 0):]
		if len(answer) == 0 || answer[0] != '"' {
			continue
		}
		end := bytes.IndexByte(answer[1:], '"')
		if end < 0 {
			return dst
		}
		dst = append(dst, answer[1:1+end]...)
		answer = answer[1+end:]
	}
}
