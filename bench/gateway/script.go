//go:build unix

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// Every prompt begins with a serial number in brackets, "[[00001234]]", and ends with promptEnd, inside a word. The
// mock goes on with "me", the serial number and words up to 64 events, so that an answer shows whose it is. None of it
// needs escaping in JSON.
const (
	promptEnd    = "\n\nconst userNa"
	serialOpen   = "[["
	serialClose  = "]]"
	serialDigits = len(serialZeros)
	serialZeros  = "00000000"
	eventCount   = 64
)

// words are the answer after its first two events, in turning order. All are tokens of common vocabularies.
var words = strings.Fields("the model reads this text and then goes on with words that mean little but have the usual length because answers " +
	"consist of several sentences about something other people wanted")

// A serial is the number of a request as it stands in its prompt and in its answer.
type serial [serialDigits]byte

func newSerial(n uint64) (s serial) {
	for i := len(s) - 1; i >= 0; i-- {
		s[i] = '0' + byte(n%10)
		n /= 10
	}
	return s
}

// findSerial returns the number at the start of a prompt's text, zeros if it has none there.
func findSerial(text []byte) serial {
	at := bytes.Index(text[:min(len(text), 64)], []byte(serialOpen))
	end := at + len(serialOpen) + serialDigits
	if at < 0 || !bytes.HasPrefix(text[min(end, len(text)):], []byte(serialClose)) {
		return newSerial(0)
	}
	s := serial(text[at+len(serialOpen) : end])
	for _, digit := range s {
		if digit < '0' || digit > '9' {
			return newSerial(0)
		}
	}
	return s
}

// A piece is what one event of a stream holds.
type piece struct {
	text []byte
	ids  []vocab.ID // none without a tokenizer
	// likely holds the tokens that would have been said where a request forced ids; nil where they are the same.
	likely []vocab.ID
}

// likeliest returns the token that the model gives all probability where it says token i.
func (p *piece) likeliest(i int) vocab.ID {
	if p.likely != nil {
		return p.likely[i]
	}
	return p.ids[i]
}

// A script is what the mock says: it takes any prompt for one that ends somewhere in promptEnd, or in the answer
// itself, and says what follows there. Healing that gives the last bytes of a prompt back for generation finds them
// said again.
type script struct {
	tok    *tokenizer.Tokenizer // nil: answers have no token IDs
	heads  [len(head)]piece     // the first event by where in head it begins
	space  []vocab.ID
	digits [10]vocab.ID
	tail   []piece // the answer after its serial number
}

// head is what comes before the serial number, counted from the start of promptEnd.
const head = promptEnd + "me"

func newScript(tok *tokenizer.Tokenizer) (*script, error) {
	s := &script{tok: tok}
	for i := range eventCount - 2 {
		s.tail = append(s.tail, s.piece([]byte(" "+words[i%len(words)])))
	}
	for i := range s.heads {
		s.heads[i] = s.piece([]byte(head[i:]))
	}
	if tok == nil {
		return s, nil
	}
	s.space = tok.EncodeInside(nil, []byte(" "))
	for i := range s.digits {
		id, ok := tok.Vocab().Lookup([]byte{'0' + byte(i)})
		if !ok {
			return nil, fmt.Errorf("the tokenizer has no token for the digit %d alone: choose another", i)
		}
		s.digits[i] = id
	}
	return s, nil
}

func (s *script) piece(text []byte) piece {
	p := piece{text: text}
	if s.tok != nil {
		p.ids = s.tok.EncodeInside(nil, text)
	}
	return p
}

// number returns the event with a serial number: a space and a token for each digit, as most vocabularies have it.
func (s *script) number(n serial) piece {
	p := piece{text: append([]byte(" "), n[:]...)}
	if s.tok != nil {
		p.ids = append(p.ids, s.space...)
		for _, digit := range n {
			p.ids = append(p.ids, s.digits[digit-'0'])
		}
	}
	return p
}

// answer returns what follows a prompt that ends said bytes after the start of promptEnd. What promptEnd still lacks
// comes with the first event, as its tokens may reach over its end.
func (s *script) answer(n serial, said int) []piece {
	whole := make([]piece, 0, eventCount)
	if said < len(head) {
		whole = append(whole, s.heads[said])
	}
	whole = append(append(whole, s.number(n)), s.tail...)
	said = max(0, said-len(head))
	for len(whole) > 0 && said >= len(whole[0].text) {
		whole, said = whole[1:], said-len(whole[0].text)
	}
	if len(whole) > 0 && said > 0 {
		whole[0] = s.piece(whole[0].text[said:])
	}
	return whole
}

// generate returns what the mock says to a question, and whether that is all of it: a request may want fewer tokens.
func (s *script) generate(q *question) (pieces []piece, whole bool) {
	pieces = s.answer(q.n, q.said)
	if s.tok == nil {
		return pieces, true
	}
	path := q.forced.path
	if set := q.forced.set; path == nil && len(set) > 0 && (len(pieces) == 0 || len(pieces[0].ids) == 0 || !slices.Contains(set, pieces[0].ids[0])) {
		path = set[:1]
	}
	if path != nil {
		first, said := s.decoded(path), q.said
		for _, id := range path {
			likely := id
			if rest := s.answer(q.n, said); len(rest) > 0 && len(rest[0].ids) > 0 {
				likely = rest[0].ids[0]
				if text := s.tok.Vocab().Bytes(id); bytes.HasPrefix(join(rest), text) {
					said += len(text)
				}
			}
			first.likely = append(first.likely, likely)
		}
		pieces = append([]piece{first}, s.answer(q.n, said)...)
	}
	return s.limit(pieces, q.maxTokens)
}

// text returns the answer to a prompt that ends with promptEnd.
func (s *script) text(n serial) []byte {
	return join(s.answer(n, len(promptEnd)))
}

// said returns how many bytes of promptEnd and the answer a prompt ends with: the most that fit. A prompt of another
// kind counts as ending with promptEnd.
func (s *script) said(prompt []byte, n serial) int {
	all := append([]byte(promptEnd), s.text(n)...)
	for k := min(len(all), len(prompt)); k > 0; k-- {
		if bytes.HasSuffix(prompt, all[:k]) {
			return k
		}
	}
	return len(promptEnd)
}

// limit cuts pieces after a number of tokens; it returns them all where that is 0 or pieces have no tokens.
func (s *script) limit(pieces []piece, tokens int) (cut []piece, whole bool) {
	if tokens <= 0 || s.tok == nil {
		return pieces, true
	}
	for i, p := range pieces {
		if tokens < len(p.ids) {
			cut = append(cut, pieces[:i]...)
			if tokens > 0 {
				part := s.decoded(p.ids[:tokens])
				if p.likely != nil {
					part.likely = p.likely[:tokens]
				}
				cut = append(cut, part)
			}
			return cut, false
		}
		tokens -= len(p.ids)
	}
	return pieces, true
}

// decoded returns the piece of some tokens.
func (s *script) decoded(ids []vocab.ID) piece {
	p := piece{ids: ids}
	for _, id := range ids {
		p.text = append(p.text, s.tok.Vocab().Bytes(id)...)
	}
	return p
}

func join(pieces []piece) (text []byte) {
	for _, p := range pieces {
		text = append(text, p.text...)
	}
	return text
}

func countTokens(pieces []piece) (n int) {
	for _, p := range pieces {
		n += max(1, len(p.ids))
	}
	return n
}
