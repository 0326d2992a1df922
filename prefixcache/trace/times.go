package trace

import (
	"math"
	"strings"
	"time"
)

// stamp reads the time of a request: a number, or a string that holds a date or a
// number. Numbers are units of [Options.TimeUnit]; without one, seconds below
// 10^11, and further milliseconds below 10^14, microseconds below 10^17, and
// nanoseconds: times since 1970 tell their unit by their size from 1973 to 5138.
func (r *Reader) stamp(s *scanner) time.Duration {
	c := s.peek()
	at := s.i
	var t []byte
	switch {
	case c == '"':
		t = s.string()
		if s.err != nil {
			return 0
		}
		if d, ok := date(string(t)); ok {
			if d < 0 {
				s.fail(at, Range, "want a date from 1970 to 2262, got "+short(t))
			}
			return d
		}
		if !isNumber(t) {
			s.fail(at, Type, "want a time as a number or as in 2006-01-02T15:04:05Z, got "+quoteShort(t))
			return 0
		}
	default:
		if t = s.number("a time as a number or a date"); s.err != nil {
			return 0
		}
	}
	d, ok := decimal(t, r.timeUnit(t))
	if !ok {
		s.fail(at, Range, "want a time that is not negative and below 292 years, got "+short(t))
	}
	return d
}

// timeUnit is the unit of a number that stands for a time.
func (r *Reader) timeUnit(t []byte) time.Duration {
	if r.opt.TimeUnit > 0 {
		return r.opt.TimeUnit
	}
	digits := 0
	for _, c := range t {
		if c < '0' || c > '9' {
			break
		}
		digits++
	}
	switch {
	case digits <= 11:
		return time.Second
	case digits <= 14:
		return time.Millisecond
	case digits <= 17:
		return time.Microsecond
	}
	return time.Nanosecond
}

// isNumber says whether t is a number as JSON writes it.
func isNumber(t []byte) bool {
	s := scanner{b: t}
	s.number("")
	return s.err == nil && s.i == len(t) && len(t) > 0 && t[0] > ' '
}

// date reads a date and a time of day, in UTC where no zone is told. Before 1970
// and after 2262 it is negative.
func date(t string) (time.Duration, bool) {
	t = strings.TrimSpace(t)
	for _, layout := range [...]string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		at, err := time.Parse(layout, t)
		if err != nil {
			continue
		}
		if s := at.Unix(); s < 0 || s > math.MaxInt64/int64(time.Second)-1 {
			return -1, true
		}
		return time.Duration(at.UnixNano()), true
	}
	return 0, false
}
