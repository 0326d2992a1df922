//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/unfray/unfray/vocab"
)

// A question is what the mock needs to know of a request. Prompts are long and the mock must cost little, so bodies are
// scanned, not decoded.
type question struct {
	n            serial
	said         int // bytes of promptEnd and the answer that the prompt ends with
	promptTokens int
	promptIDs    []byte // JSON of the prompt's IDs, or nil where the prompt is text
	stream       bool
	includeUsage bool
	maxTokens    int
	returnIDs    bool       // vLLM: return_token_ids; llama.cpp: return_tokens
	idsAsText    bool       // vLLM: return_tokens_as_token_ids
	top          int        // alternatives asked for at every token, below 0 if none
	topIDs       []vocab.ID // vLLM: logprob_token_ids
	forced       constraint
}

var errNoObject = errors.New("the body is no JSON object")

// eachField calls f with the name and the JSON of every member of the object that body holds. It checks no more than it
// needs to find where they end. Names with escapes are passed as they stand.
func eachField(body []byte, f func(name string, raw []byte)) error {
	i := skipSpace(body, 0)
	if i >= len(body) || body[i] != '{' {
		return errNoObject
	}
	for i = skipSpace(body, i+1); i < len(body) && body[i] == '"'; {
		end := valueEnd(body, i)
		colon := skipSpace(body, max(end, 0))
		if end < 0 || colon >= len(body) || body[colon] != ':' {
			return errNoObject
		}
		from := skipSpace(body, colon+1)
		to := valueEnd(body, from)
		if to < 0 {
			return errNoObject
		}
		f(string(body[i+1:end-1]), body[from:to])
		i = skipSpace(body, to)
		if i < len(body) && body[i] == ',' {
			i = skipSpace(body, i+1)
		}
	}
	if i >= len(body) || body[i] != '}' {
		return errNoObject
	}
	return nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// valueEnd returns where the value at i ends, or -1 if it does not.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	}
	for end := i; end < len(b); end++ {
		switch b[end] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			if end == i {
				return -1
			}
			return end
		}
	}
	return -1
}

func stringEnd(b []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(b[min(at, len(b)):], '"')
		if n < 0 {
			return -1
		}
		at += n + 1
		slashes := 0
		for k := at - 2; k > i && b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
	}
}

func nestedEnd(b []byte, i int) int {
	depth := 0
	for at := i; at < len(b); at++ {
		switch b[at] {
		case '"':
			end := stringEnd(b, at)
			if end < 0 {
				return -1
			}
			at = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return -1
}

// readQuestion scans a request for a completion, of any of the dialects.
func (s *script) readQuestion(body []byte) (*question, error) {
	q := &question{top: -1}
	var prompt []byte
	var wrong error
	number := func(raw []byte) int {
		n, err := strconv.Atoi(string(raw))
		if err != nil && string(raw) != "null" {
			wrong = err
		}
		return n
	}
	err := eachField(body, func(name string, raw []byte) {
		switch name {
		case "prompt", "messages":
			prompt = raw
		case "stream":
			q.stream = string(raw) == "true"
		case "stream_options":
			q.includeUsage = bytes.Contains(raw, []byte("true"))
		case "max_tokens", "n_predict", "max_completion_tokens":
			q.maxTokens = max(0, number(raw))
		case "return_token_ids", "return_tokens":
			q.returnIDs = string(raw) == "true"
		case "return_tokens_as_token_ids":
			q.idsAsText = string(raw) == "true"
		case "n_probs":
			if n := number(raw); n > 0 {
				q.top = n
			}
		case "logprobs":
			if string(raw) != "null" && string(raw) != "false" {
				q.top, _ = strconv.Atoi(string(raw)) // true asks for none beside the token's own
			}
		case "logprob_token_ids":
			wrong = errors.Join(wrong, json.Unmarshal(raw, &q.topIDs))
		case "grammar", "structured_outputs", "logit_bias", "allowed_token_ids":
			wrong = errors.Join(wrong, q.forced.read(name, raw))
		}
	})
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	for _, id := range slices.Concat(q.forced.path, q.forced.set) {
		if s.tok != nil && !s.tok.Vocab().Valid(id) {
			return nil, errNoToken(int(id))
		}
	}
	return q, s.readPrompt(q, prompt)
}

func errNoToken(id int) error {
	return fmt.Errorf("token ID %d is not in the vocabulary", id)
}

// readPrompt finds out where in the script a prompt is. Of a list it takes the first.
func (s *script) readPrompt(q *question, raw []byte) error {
	for len(raw) > 1 && raw[0] == '[' && (raw[skipSpace(raw, 1)] == '[' || raw[skipSpace(raw, 1)] == '"') {
		from := skipSpace(raw, 1)
		to := valueEnd(raw, from)
		if to < 0 {
			return errNoObject
		}
		raw = raw[from:to]
	}
	if len(raw) > 1 && raw[0] == '[' && raw[skipSpace(raw, 1)] != '{' {
		return s.readIDs(q, raw)
	}
	q.promptTokens = len(raw) / 4
	// Chat: the text of the messages begins somewhere in their JSON.
	text := raw[max(0, bytes.Index(raw, []byte(serialOpen))):]
	q.n, q.said = findSerial(text), len(promptEnd)
	return nil
}

// edgeTokens is how many tokens are decoded at each end of a prompt. The last must reach back to promptEnd, also where
// most of the answer follows it.
const edgeTokens = 128

func (s *script) readIDs(q *question, raw []byte) error {
	if s.tok == nil {
		return errors.New("a prompt of token IDs, but the mock was started without a tokenizer: give it one")
	}
	q.promptIDs, q.promptTokens = raw, bytes.Count(raw, []byte(","))+1
	inner := raw[1 : len(raw)-1]
	front, back := inner, inner
	if q.promptTokens > 2*edgeTokens {
		front, back = inner[:nthComma(inner, edgeTokens)], inner[lastComma(inner, edgeTokens)+1:]
	}
	start, err := s.decodeList(front)
	if err != nil {
		return err
	}
	end, err := s.decodeList(back)
	if err != nil {
		return err
	}
	q.n = findSerial(start)
	q.said = s.said(end, q.n)
	return nil
}

func nthComma(b []byte, n int) int {
	at := -1
	for range n {
		at += 1 + bytes.IndexByte(b[at+1:], ',')
	}
	return at
}

func lastComma(b []byte, n int) int {
	at := len(b)
	for range n {
		at = bytes.LastIndexByte(b[:at], ',')
	}
	return at
}

// decodeList returns the bytes of tokens whose IDs stand with commas between them.
func (s *script) decodeList(list []byte) (text []byte, err error) {
	for part := range bytes.SplitSeq(list, []byte(",")) {
		id, err := strconv.Atoi(string(bytes.TrimSpace(part)))
		if err != nil {
			return nil, err
		}
		if !s.tok.Vocab().Valid(vocab.ID(id)) {
			return nil, errNoToken(id)
		}
		text = append(text, s.tok.Vocab().Bytes(vocab.ID(id))...)
	}
	return text, nil
}
