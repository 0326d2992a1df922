package trace

import (
	"bytes"
	"math"
	"time"
)

// Fields of the gateway's log of requests, package gateway.
var (
	logFields = []string{"time", "msg", "duration", "id", "model", "prompt_tokens", "completion_tokens",
		"cached_tokens", "predicted_cached_tokens", "prompt_ids", "output_ids", "body", "cache_salt", "path", "status"}
	logMessage = "request"
)

// logPaths are where the gateway takes prompts.
var logPaths = map[string]bool{
	"/v1/completions": true, "/v1/chat/completions": true, "/completion": true, "/completions": true, "/infill": true,
}

// gatewayLog reads a line of the gateway's log. Lines that tell of no prompt are
// none of requests to a model, or of such as failed; of those that a server
// answered as they came the gateway may know no tokens, and then the request has
// what their body tells. A line is written when the request ends; its time is when
// it began. What the program says before it serves is no JSON and passed over.
func (r *Reader) gatewayLog() bool {
	s, q := &r.s, &r.req
	if s.peek() != '{' {
		r.plainLine()
		return false
	}
	var end, took time.Duration
	body, isRequest, generates, answered := -1, false, false, false
	for m := s.object(logFields); m.next(s); {
		switch m.field {
		case 0:
			r.timeAt = m.at
			end = r.stamp(s)
		case 1:
			isRequest = string(s.string()) == logMessage
		case 2:
			took = time.Duration(s.integer("nanoseconds", 0, math.MaxInt64))
		case 3:
			q.ID = s.name()
		case 4:
			q.Model = string(s.string())
		case 5:
			q.PromptTokens = s.tokens()
		case 6:
			q.OutputTokens = s.tokens()
		case 7:
			q.Cached = s.tokens()
		case 8:
			q.Predicted = s.tokens()
		case 9:
			q.IDs = s.ids(q.IDs)
		case 10:
			q.OutputIDs = s.ids(q.OutputIDs)
		case 11:
			body = m.at
			s.string()
		case 12:
			q.Keys.Salt = string(s.string())
		case 13:
			if s.peek() == '"' {
				generates = logPaths[string(s.string())]
			} else {
				s.skip()
			}
		case 14:
			answered = string(s.raw()) == "200"
		}
	}
	s.end()
	told := q.PromptTokens >= 0 || len(q.IDs) > 0
	if s.err != nil || !isRequest || !told && !(generates && answered) {
		return false
	}
	if len(q.IDs) > 0 {
		// The usage counts the user's prompt, whose end a healed one lacks.
		q.PromptTokens = len(q.IDs)
	}
	q.At = max(0, end-took)
	if body < 0 {
		return true
	}
	return r.loggedBody(body)
}

// plainLine reads a line that is no JSON.
func (r *Reader) plainLine() {
	if line := r.s.b; bytes.HasPrefix(line, []byte("time=")) && bytes.Contains(line, []byte(" msg=request ")) {
		r.s.fail(0, Format, "the gateway's log is in text: with log.format json in its configuration it can be read")
	}
}

// startOfLog reports whether a line is what the gateway says before its first
// record.
func startOfLog(line []byte) bool { return bytes.HasPrefix(line, []byte("unfray: ")) }

// loggedBody reads the request that a line holds as a string. What the line tells
// itself is what the gateway made of it, and stays.
func (r *Reader) loggedBody(at int) bool {
	s, q, d := &r.s, &r.req, &r.draft
	s.i = at
	r.inner.reset(s.string())
	line, timeAt := *q, r.timeAt
	q.IDs, q.PromptTokens = nil, max(0, q.PromptTokens)
	d.reset(&r.inner, math.MinInt)
	r.request(0)
	r.inner.end()
	q.At, r.timeAt = line.At, timeAt
	if len(line.IDs) > 0 {
		d.prompts = d.prompts[:min(1, len(d.prompts))]
	}
	ok := r.drafted()
	q.PromptTokens, q.OutputTokens, q.Cached = line.PromptTokens, line.OutputTokens, line.Cached
	if len(line.IDs) > 0 {
		q.IDs = line.IDs
	}
	r.outer(at, "body")
	return ok && s.err == nil
}
