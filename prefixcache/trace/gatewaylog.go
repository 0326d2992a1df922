package trace

import (
	"math"
	"time"
)

// Fields of the gateway's log of requests, package gateway.
var (
	logFields = []string{"time", "msg", "duration", "id", "model", "prompt_tokens", "completion_tokens",
		"cached_tokens", "predicted_cached_tokens", "prompt_ids", "output_ids", "body", "cache_salt"}
	logMessage = "request"
)

// gatewayLog reads a line of the gateway's log. Lines that tell of no prompt are
// none of requests to a model, or of such as failed. A line is written when the
// request ends; its time is when it began.
func (r *Reader) gatewayLog() bool {
	s, q := &r.s, &r.req
	var end, took time.Duration
	body, isRequest := -1, false
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
		}
	}
	s.end()
	if s.err != nil || !isRequest || q.PromptTokens < 0 && len(q.IDs) == 0 {
		return false
	}
	q.At = max(0, end-took)
	if body < 0 {
		return true
	}
	return r.loggedBody(body)
}

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
