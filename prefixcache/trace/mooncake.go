package trace

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Fields of a trace of block hashes: Mooncake (FAST25-release), Qwen-Bailian
// (usage traces), and block_size of kvcache-simulator (0.1.3, trace.py).
var mooncakeFields = []string{"timestamp", "input_length", "output_length", "hash_ids",
	"chat_id", "parent_chat_id", "turn", "type", "block_size", "block_tokens", "model", "session_id"}

const (
	mcTimestamp = iota
	mcInput
	mcOutput
	mcHashes
	mcChat
	mcParent
	mcTurn
	mcType
	mcBlockSize
	mcBlockTokens
	mcModel
	mcSession
)

// mooncake reads a line of block hashes. The time is in milliseconds; in lines
// that name chats, as Qwen-Bailian's do, in seconds.
func (r *Reader) mooncake() bool {
	s, q := &r.s, &r.req
	var inputAt, hashesAt, sizeAt, stampAt int
	var stamp []byte
	var chat, parent int64 = -1, -1
	size := 0
	m := s.object(mooncakeFields)
	for m.next(s) {
		switch m.field {
		case mcTimestamp:
			stampAt = m.at
			stamp = s.number("a time as a number")
		case mcInput:
			inputAt = m.at
			q.PromptTokens = s.tokens()
		case mcOutput:
			q.OutputTokens = s.tokens()
		case mcHashes:
			hashesAt = m.at
			q.Blocks = s.hashes(q.Blocks)
		case mcChat:
			chat = s.integer("a chat's number", math.MinInt64, math.MaxInt64)
		case mcParent:
			parent = s.integer("a chat's number", math.MinInt64, math.MaxInt64)
		case mcBlockSize:
			sizeAt = m.at
			size = int(s.integer("a block's size in tokens", 1, math.MaxInt32))
		case mcBlockTokens:
			s.fail(m.at, Content, "blocks of different sizes cannot be read: leave the field out if all have the block size")
		case mcModel:
			q.Model = string(s.string())
		case mcSession:
			q.Conversation = s.name()
		default:
			s.skip()
		}
	}
	s.end()
	if s.err != nil {
		return false
	}
	s.need(&m, mcInput, mcHashes)
	if stamp != nil {
		unit := r.opt.TimeUnit
		switch {
		case unit > 0:
		case m.has(mcChat):
			unit = time.Second
		default:
			unit = time.Millisecond
		}
		r.timeAt = stampAt
		var ok bool
		if q.At, ok = decimal(stamp, unit); !ok {
			s.fail(stampAt, Range, "timestamp: want a time that is not negative and below 292 years, got "+short(stamp))
		}
	}
	if m.has(mcChat) {
		q.Conversation = strconv.FormatInt(r.rootChat(chat, parent), 10)
		chain(q.Blocks)
	}
	q.BlockTokens = r.blockTokens(size, sizeAt, m.has(mcChat))
	if s.err != nil {
		return false
	}
	if want := (q.PromptTokens + q.BlockTokens - 1) / q.BlockTokens; len(q.Blocks) != want && len(q.Blocks) != q.PromptTokens/q.BlockTokens {
		s.fail(max(inputAt, hashesAt), Content, fmt.Sprintf(
			"%d block hashes for %d tokens in blocks of %d: want %d; is the block size another?", len(q.Blocks), q.PromptTokens, q.BlockTokens, want))
	}
	return s.err == nil
}

// blockTokens is the block size of a line. All lines of a trace have the same.
func (r *Reader) blockTokens(size, sizeAt int, chats bool) int {
	switch {
	case size == 0 && r.opt.BlockTokens > 0:
		return r.opt.BlockTokens
	case size == 0 && chats:
		return 16
	case size == 0:
		return 512
	}
	if r.size == 0 {
		r.size = size
	}
	if size != r.size {
		r.s.fail(sizeAt, Content, fmt.Sprintf("block_size: %d, but %d in lines before: want one size in a trace", size, r.size))
	}
	return size
}

// chain makes identities of blocks ones of prefixes. Qwen-Bailian's hashes are of
// the blocks alone.
func chain(ids []uint64) {
	h := uint64(0)
	for i, id := range ids {
		h = mix(h ^ mix(id+0x9e3779b97f4a7c15))
		ids[i] = h
	}
}

// rootChat is the first chat of the conversation that a chat belongs to.
func (r *Reader) rootChat(chat, parent int64) int64 {
	root := chat
	if parent >= 0 {
		root = parent
		if up, ok := r.chats[parent]; ok {
			root = up
		}
	}
	if r.chats == nil {
		r.chats = map[int64]int64{}
	}
	r.chats[chat] = root
	return root
}

// hashes reads block identities: whole numbers of 64 bits, signed or not, or
// strings, of which the hash is taken.
func (s *scanner) hashes(ids []uint64) []uint64 {
	e := s.array("an array of block hashes")
	for s.err == nil {
		ids = s.plainHashes(ids, &e)
		if !e.next(s) {
			break
		}
		s.peek()
		at := s.i
		switch c := s.peek(); {
		case c == '"':
			ids = append(ids, hash64(s.string()))
		default:
			t := s.number("a block hash, a whole number or a string")
			if s.err != nil {
				break
			}
			var id uint64
			var err error
			if t[0] == '-' {
				var v int64
				v, err = strconv.ParseInt(string(t), 10, 64)
				id = uint64(v)
			} else {
				id, err = strconv.ParseUint(string(t), 10, 64)
			}
			if err != nil {
				kind := Type
				if _, isWhole := whole(t); isWhole {
					kind = Range
				}
				s.fail(at, kind, "want a block hash, a whole number of 64 bits or a string, got "+short(t))
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// plainHashes reads the elements that are numbers of at most 19 digits without a
// sign, as long as they come as "1, 2" or "1,2". It stands between two elements
// before and after.
func (s *scanner) plainHashes(ids []uint64, e *elements) []uint64 {
	b, i := s.b, s.i
	for i < len(b) {
		j := i
		if e.n > 0 {
			if b[j] != ',' {
				break
			}
			j++
			if j < len(b) && b[j] == ' ' {
				j++
			}
		}
		start, v := j, uint64(0)
		for j < len(b) {
			d := uint64(b[j] - '0')
			if d > 9 {
				break
			}
			v = v*10 + d
			j++
		}
		// Whatever else follows the digits, the scanner reads the element.
		if n := j - start; n == 0 || n > 19 || n > 1 && b[start] == '0' || j == len(b) || b[j] != ',' && b[j] != ']' {
			break
		}
		ids = append(ids, v)
		e.n++
		i = j
	}
	s.i = i
	return ids
}

// name reads a string or a whole number that names something.
func (s *scanner) name() string {
	if c := s.peek(); c == '-' || c >= '0' && c <= '9' {
		return string(s.number("a name"))
	}
	return string(s.string())
}

// hash64 is FNV-1a of 64 bits with the finalizer of MurmurHash3. Among n strings
// two share a hash with odds of n²/2^65: 1 in 370,000 for ten million.
func hash64(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(h)
}

// mix is the finalizer of MurmurHash3, which maps no two numbers to one.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
