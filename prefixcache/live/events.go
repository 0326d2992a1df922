package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/unfray/unfray/vocab"
)

// Hash is an engine's name for a block with all that is before it. Engines send
// integers of 64 bits (signed or not) or bytes; integers are kept as their eight
// bytes, big-endian.
type Hash string

// HashOf is the form of an integer.
func HashOf(n uint64) Hash { return Hash(binary.BigEndian.AppendUint64(nil, n)) }

// String gives the hash in hexadecimal digits.
func (h Hash) String() string { return fmt.Sprintf("%x", string(h)) }

// Kind is what an event tells.
type Kind string

// The kinds of events.
const (
	Stored  Kind = "BlockStored"
	Removed Kind = "BlockRemoved"
	Cleared Kind = "AllBlocksCleared"
)

// Event is one change of an engine's cache.
type Event struct {
	Kind Kind
	// Hashes are the blocks stored or removed, in the order of the prefix.
	Hashes []Hash

	// The rest is of Stored.

	Parent      Hash       // the block before the first; "": none
	Tokens      []vocab.ID // of all the blocks
	BlockTokens int
	LoRA        string // name of the adapter
	// Salt is the cache_salt that SGLang tells beside the tokens; vLLM has it in
	// Extra.
	Salt string
	// Extra are for each block the keys beside its tokens, as text: the adapter's
	// name, HASH@OFFSET of an item, the salt. It is nil where no block has any.
	Extra  []string
	Medium string // where the block is, such as "GPU"; "": not told
	Group  int    // of the layers that share block tables; 0 where there is one
}

// Batch is what an engine sends after a step.
type Batch struct {
	Seq    uint64  // counts the batches of a publisher
	Time   float64 // seconds since 1970, by the engine's clock
	Rank   int     // of data parallelism
	Events []Event
}

// Limits on a batch beyond what its bytes do: an event of a few bytes takes some
// hundred of memory, and a hash of one byte some forty.
const (
	maxEvents = 1 << 18
	maxValues = 1 << 20 // hashes, and keys beside tokens
	maxDepth  = 8       // of an extra key
)

// DecodeError says where in a payload something is wrong.
type DecodeError struct {
	Offset int // bytes from the payload's start
	Err    error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("live: byte %d of an event batch: %v", e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// reader walks over MessagePack. The first error stays.
type reader struct {
	b      []byte
	all    int
	values int // of the batch so far; see maxValues
	err    error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = &DecodeError{Offset: r.all - len(r.b), Err: err}
	}
}

// take runs a read function of msgp.
func take[T any](r *reader, read func([]byte) (T, []byte, error)) (v T) {
	if r.err != nil {
		return v
	}
	v, rest, err := read(r.b)
	if err != nil {
		r.fail(err)
		return v
	}
	r.b = rest
	return v
}

func (r *reader) next() msgp.Type {
	if r.err != nil || len(r.b) == 0 {
		return msgp.InvalidType
	}
	return msgp.NextType(r.b)
}

func (r *reader) skip() {
	if r.err != nil {
		return
	}
	rest, err := msgp.Skip(r.b)
	if err != nil {
		r.fail(err)
		return
	}
	r.b = rest
}

// null passes over a nil and reports whether there was one.
func (r *reader) null() bool {
	if r.next() != msgp.NilType {
		return false
	}
	r.skip()
	return true
}

// array reads the head of an array. Each element takes a byte at least, so more
// than are left is a lie.
func (r *reader) array() int {
	n := take(r, msgp.ReadArrayHeaderBytes)
	if int64(n) > int64(len(r.b)) {
		r.fail(fmt.Errorf("an array of %d elements in %d bytes", n, len(r.b)))
		return 0
	}
	return int(n)
}

// list reads the head of an array of hashes or keys.
func (r *reader) list() int {
	n := r.array()
	if r.values += n; r.values > maxValues {
		r.fail(fmt.Errorf("%d hashes and keys are more than the %d allowed", r.values, maxValues))
		return 0
	}
	return n
}

func (r *reader) text() string {
	if r.null() {
		return ""
	}
	if r.next() == msgp.BinType {
		return string(take(r, msgp.ReadBytesZC))
	}
	return string(take(r, msgp.ReadStringZC))
}

// Decode reads a payload as vLLM and SGLang send it: an array of the time, the
// events and, where it is told, the rank. An event is a map, or an array of the
// same values in the order of the fields, as versions of before the autumn of 2026
// send it.
// Fields that this package does not know are passed over. The error is a
// [*DecodeError].
func Decode(payload []byte) (*Batch, error) {
	r := &reader{b: payload, all: len(payload)}
	n := r.array()
	if r.err == nil && n < 2 {
		r.fail(fmt.Errorf("an array of %d elements is no batch: it has the time and the events", n))
	}
	b := &Batch{Time: r.number()}
	events := r.array()
	if events > maxEvents {
		r.fail(fmt.Errorf("%d events are more than the %d allowed", events, maxEvents))
	}
	for range events {
		if r.err != nil {
			break
		}
		if e, ok := r.event(); ok {
			b.Events = append(b.Events, e)
		}
	}
	if n > 2 && !r.null() {
		b.Rank = r.count("the rank")
	}
	for range n - 3 {
		r.skip()
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail(errors.New("something follows the batch"))
	}
	if r.err != nil {
		return nil, r.err
	}
	return b, nil
}

func (r *reader) number() float64 {
	switch r.next() {
	case msgp.Float64Type:
		return take(r, msgp.ReadFloat64Bytes)
	case msgp.Float32Type:
		return float64(take(r, msgp.ReadFloat32Bytes))
	}
	return float64(take(r, msgp.ReadInt64Bytes))
}

// count reads a number that must not be negative.
func (r *reader) count(what string) int {
	n := take(r, msgp.ReadInt64Bytes)
	if r.err == nil && (n < 0 || n > math.MaxInt32) {
		r.fail(fmt.Errorf("%s cannot be %d", what, n))
	}
	return int(n)
}

// fields are those of events in the order in which arrays hold them.
var fields = map[Kind][]string{
	Stored:  {"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx"},
	Removed: {"block_hashes", "medium", "group_idx"},
	Cleared: {},
}

// event reads an event. It reports false for one of an unknown kind, which it
// passes over.
func (r *reader) event() (e Event, known bool) {
	if r.next() == msgp.MapType {
		return r.eventMap()
	}
	n := r.array()
	if r.err == nil && n == 0 {
		r.fail(errors.New("an event without a kind"))
	}
	e.Kind = Kind(r.text())
	names, known := fields[e.Kind]
	for i := range n - 1 {
		if i < len(names) {
			r.field(&e, names[i])
		} else {
			r.skip()
		}
	}
	return e, known && r.check(&e)
}

// eventMap reads an event that is a map. Its kind, "type", comes first: msgspec
// writes it so.
func (r *reader) eventMap() (e Event, known bool) {
	n := take(r, msgp.ReadMapHeaderBytes)
	if int64(n) > int64(len(r.b)) {
		r.fail(fmt.Errorf("a map of %d members in %d bytes", n, len(r.b)))
	}
	for i := range n {
		if r.err != nil {
			return e, false
		}
		name := r.text()
		if i == 0 {
			if name != "type" {
				r.fail(fmt.Errorf("the first member of an event is %.40q, not its type", name))
			}
			e.Kind = Kind(r.text())
			_, known = fields[e.Kind]
			continue
		}
		if known {
			r.field(&e, name)
		} else {
			r.skip()
		}
	}
	return e, known && r.check(&e)
}

// field reads the value of a field.
func (r *reader) field(e *Event, name string) {
	if r.null() {
		return
	}
	switch name {
	case "block_hashes":
		n := r.list()
		for range n {
			if r.err != nil {
				return
			}
			e.Hashes = append(e.Hashes, r.hash())
		}
	case "parent_block_hash":
		e.Parent = r.hash()
	case "token_ids":
		r.tokens(e)
	case "block_size":
		e.BlockTokens = r.count("a block's size")
	case "lora_name":
		e.LoRA = r.text()
	case "cache_salt":
		e.Salt = r.text()
	case "medium":
		e.Medium = r.text()
	case "group_idx":
		e.Group = r.count("a group")
	case "extra_keys":
		n := r.list()
		for range n {
			if r.err != nil {
				return
			}
			e.Extra = append(e.Extra, r.extra(0))
		}
	default:
		r.skip()
	}
}

// tokens reads token IDs. SGLang sends pairs where it looks at two at a time;
// the first of a pair counts.
func (r *reader) tokens(e *Event) {
	n := r.array()
	e.Tokens = make([]vocab.ID, 0, n)
	for range n {
		if r.err != nil {
			return
		}
		more := 0
		if r.next() == msgp.ArrayType {
			more = r.array() - 1
		}
		e.Tokens = append(e.Tokens, vocab.ID(r.count("a token")))
		for range more {
			r.skip()
		}
	}
}

func (r *reader) hash() Hash {
	switch r.next() {
	case msgp.BinType, msgp.StrType:
		return Hash(r.text())
	case msgp.UintType:
		return HashOf(take(r, msgp.ReadUint64Bytes))
	}
	return HashOf(uint64(take(r, msgp.ReadInt64Bytes)))
}

// extra reads a key beside a block's tokens as text: items of lists are joined.
func (r *reader) extra(depth int) string {
	if depth > maxDepth {
		r.fail(errors.New("a key is nested too deeply"))
	}
	switch {
	case r.err != nil || r.null():
		return ""
	case r.next() == msgp.ArrayType:
		var parts []string
		for range r.list() {
			if r.err != nil {
				return ""
			}
			parts = append(parts, r.extra(depth+1))
		}
		if depth == 1 { // an item and its place
			return strings.Join(parts, "@")
		}
		return joinExtra(parts)
	case r.next() == msgp.IntType:
		return strconv.FormatInt(take(r, msgp.ReadInt64Bytes), 10)
	case r.next() == msgp.UintType:
		return strconv.FormatUint(take(r, msgp.ReadUint64Bytes), 10)
	}
	return r.text()
}

// joinExtra joins the keys of one block.
func joinExtra(parts []string) string { return strings.Join(parts, "\x00") }

// check refuses events that contradict themselves.
func (r *reader) check(e *Event) bool {
	switch {
	case r.err != nil:
		return false
	case e.Kind != Stored:
		return true
	case e.BlockTokens == 0 || len(e.Hashes) == 0:
		r.fail(errors.New("blocks are stored without a size or a hash"))
	case int64(len(e.Tokens)) != int64(len(e.Hashes))*int64(e.BlockTokens):
		r.fail(fmt.Errorf("%d tokens are not %d blocks of %d", len(e.Tokens), len(e.Hashes), e.BlockTokens))
	case e.Extra != nil && len(e.Extra) != len(e.Hashes):
		r.fail(fmt.Errorf("keys for %d blocks of %d", len(e.Extra), len(e.Hashes)))
	}
	return r.err == nil
}
