package trace

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A column is what a field of a CSV line means.
type column byte

const (
	otherColumn column = iota
	timeColumn
	inputColumn
	outputColumn
	modelColumn
	sessionColumn
	idColumn
)

// columnNames are those of BurstGPT, of Azure's traces of inference, and the
// usual ones, in lower case.
var columnNames = map[string]column{
	"timestamp": timeColumn, "time": timeColumn, "ts": timeColumn, "arrived_at": timeColumn, "arrival_time": timeColumn,
	"contexttokens": inputColumn, "request tokens": inputColumn, "input_tokens": inputColumn, "prompt_tokens": inputColumn,
	"input_length": inputColumn, "num_prefill_tokens": inputColumn,
	"generatedtokens": outputColumn, "response tokens": outputColumn, "output_tokens": outputColumn,
	"completion_tokens": outputColumn, "output_length": outputColumn, "num_decode_tokens": outputColumn,
	"model": modelColumn, "session id": sessionColumn, "session_id": sessionColumn, "id": idColumn, "request_id": idColumn,
}

// readHeader reads the names of the columns. It is false if there are none of
// lengths.
func (r *Reader) readHeader(line []byte) bool {
	var cols []column
	s := scanner{b: line}
	for f := (fields{s: &s}); f.next(); {
		c := columnNames[strings.ToLower(string(bytes.TrimSpace(f.value)))]
		if c != otherColumn && slices.Contains(cols, c) {
			return false
		}
		cols = append(cols, c)
	}
	if s.err != nil || !slices.Contains(cols, inputColumn) {
		return false
	}
	r.cols, r.headerAt = cols, r.stats.Records
	return true
}

// csvLine reads a line of lengths. The first line has the columns' names.
func (r *Reader) csvLine() bool {
	s, q := &r.s, &r.req
	if r.cols == nil || r.stats.Records == r.headerAt {
		if r.cols == nil && !r.readHeader(s.b) {
			s.fail(0, Format, "want a header that names a column of prompt lengths, as in TIMESTAMP,ContextTokens,GeneratedTokens")
		}
		return false
	}
	n := 0
	for f := (fields{s: s}); f.next(); n++ {
		if n >= len(r.cols) {
			s.fail(f.at, Content, "more fields than the header has")
			return false
		}
		v := bytes.TrimSpace(f.value)
		switch r.cols[n] {
		case timeColumn:
			r.timeAt = f.at
			q.At = r.csvTime(f.at, v)
		case inputColumn:
			q.PromptTokens = csvTokens(s, f.at, v)
		case outputColumn:
			q.OutputTokens = csvTokens(s, f.at, v)
		case modelColumn:
			q.Model = string(v)
		case sessionColumn:
			q.Conversation = string(v)
		case idColumn:
			q.ID = string(v)
		}
	}
	if n < len(r.cols) {
		s.fail(len(s.b), Cut, "fewer fields than the header has")
	}
	return s.err == nil
}

func csvTokens(s *scanner, at int, v []byte) int {
	if !isNumber(v) {
		s.fail(at, Type, "want a whole number of tokens, got "+quoteShort(v))
		return 0
	}
	n, ok := whole(v)
	switch {
	case !ok:
		s.fail(at, Type, "want a whole number of tokens, got "+short(v))
	case n < 0 || n > math.MaxInt32:
		s.fail(at, Range, "want a whole number of tokens from 0 to 2147483647, got "+short(v))
	}
	return int(n)
}

// csvTime reads a time as stamp does.
func (r *Reader) csvTime(at int, v []byte) time.Duration {
	if d, ok := date(string(v)); ok && d >= 0 {
		return d
	}
	if !isNumber(v) {
		r.s.fail(at, Type, "want a time as a number or as in 2006-01-02 15:04:05, got "+quoteShort(v))
		return 0
	}
	d, ok := decimal(v, r.timeUnit(v))
	if !ok {
		r.s.fail(at, Range, "want a time that is not negative and below 292 years, got "+short(v))
	}
	return d
}

// fields cuts a CSV line at its commas (RFC 4180, without ends of lines in
// quotes).
type fields struct {
	s     *scanner
	i     int // of the next byte
	value []byte
	at    int // byte where value begins
	ended bool
}

func (f *fields) next() bool {
	b := f.s.b
	if f.ended || f.s.err != nil {
		return false
	}
	f.at = f.i
	if f.i < len(b) && b[f.i] == '"' {
		return f.quoted()
	}
	n := bytes.IndexByte(b[f.i:], ',')
	if n < 0 {
		n, f.ended = len(b)-f.i, true
	}
	f.value = b[f.i : f.i+n]
	f.i += n + 1
	return f.valid()
}

func (f *fields) quoted() bool {
	b := f.s.b
	f.value = nil
	for i := f.i + 1; i < len(b); i++ {
		if b[i] != '"' {
			f.value = append(f.value, b[i])
			continue
		}
		if i+1 < len(b) && b[i+1] == '"' {
			f.value = append(f.value, '"')
			i++
			continue
		}
		f.ended = i+1 == len(b)
		if !f.ended && b[i+1] != ',' {
			f.s.fail(i+1, Syntax, "want a comma behind the quotes")
			return false
		}
		f.i = i + 2
		return f.valid()
	}
	f.s.fail(len(b), Cut, "the line ends inside quotes")
	return false
}

func (f *fields) valid() bool {
	if !utf8.Valid(f.value) {
		f.s.fail(f.at, Encoding, "a field that is no UTF-8")
		return false
	}
	return true
}
