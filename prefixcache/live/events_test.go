package live

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/unfray/unfray/prefixcache"
	"github.com/unfray/unfray/vocab"
)

// pack writes values as MessagePack.
func pack(t testing.TB, b []byte, v any) []byte {
	t.Helper()
	switch v := v.(type) {
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, x := range v {
			b = pack(t, b, x)
		}
		return b
	case object:
		b = msgp.AppendMapHeader(b, uint32(len(v)/2))
		for _, x := range v {
			b = pack(t, b, x)
		}
		return b
	}
	b, err := msgp.AppendIntf(b, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// object is a map in an order: names and values by turns.
type object []any

func TestDecode(t *testing.T) {
	h := HashOf
	for _, c := range []struct {
		name string
		in   []any
		want Batch
	}{
		// vLLM 0.32 (map, one more field than known), with adapter, item and salt.
		{"map", []any{1.5, []any{object{
			"type", "BlockStored", "block_hashes", []any{uint64(1<<63 + 1), int64(2)}, "parent_block_hash", nil,
			"token_ids", []any{5, 6, 7, 8}, "block_size", 2, "lora_id", 3, "medium", "GPU", "lora_name", "ad",
			"extra_keys", []any{[]any{"ad", []any{"img", -1}, "salt"}, nil}, "group_idx", 0, "later", object{"x", []any{}},
		}}, 3}, Batch{Time: 1.5, Rank: 3, Events: []Event{{
			Kind: Stored, Hashes: []Hash{h(1<<63 + 1), h(2)}, Tokens: []vocab.ID{5, 6, 7, 8}, BlockTokens: 2, LoRA: "ad", Medium: "GPU",
			Extra: []string{"ad\x00img@-1\x00salt", ""},
		}}}},
		// SGLang and vLLM before: arrays; SGLang's hashes are signed.
		{"array", []any{2.0, []any{
			[]any{"BlockStored", []any{int64(-2)}, int64(-1), []any{9}, 1, nil, "GPU"},
			[]any{"BlockRemoved", []any{int64(-2), []byte("raw")}, "GPU"},
			[]any{"AllBlocksCleared"},
			[]any{"BlockAdmired", 1, object{"a", 2}},
		}}, Batch{Time: 2, Events: []Event{
			{Kind: Stored, Hashes: []Hash{h(1<<64 - 2)}, Parent: h(1<<64 - 1), Tokens: []vocab.ID{9}, BlockTokens: 1, Medium: "GPU"},
			{Kind: Removed, Hashes: []Hash{h(1<<64 - 2), "raw"}, Medium: "GPU"},
			{Kind: Cleared},
		}}},
		// SGLang 0.5.23.
		{"salt", []any{2.0, []any{object{
			"type", "BlockStored", "block_hashes", []any{int64(-2)}, "parent_block_hash", nil, "token_ids", []any{9}, "block_size", 1,
			"lora_id", nil, "medium", "GPU", "cache_salt", "s", "lora_name", "ad",
		}}, 0}, Batch{Time: 2, Events: []Event{
			{Kind: Stored, Hashes: []Hash{h(1<<64 - 2)}, Tokens: []vocab.ID{9}, BlockTokens: 1, Medium: "GPU", LoRA: "ad", Salt: "s"},
		}}},
		{"bigrams", []any{2, []any{[]any{"BlockStored", []any{1}, nil, []any{[]any{4, 5}, []any{5, 6}}, 2}}, nil, "more"}, Batch{Time: 2, Events: []Event{
			{Kind: Stored, Hashes: []Hash{h(1)}, Tokens: []vocab.ID{4, 5}, BlockTokens: 2},
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Decode(pack(t, nil, c.in))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("\n%+v, want\n%+v", *got, c.want)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	stored := func(hashes, tokens, size any) []any {
		return []any{1.0, []any{[]any{"BlockStored", hashes, nil, tokens, size}}}
	}
	for name, in := range map[string][]byte{
		"empty":              {},
		"no array":           pack(t, nil, "x"),
		"short":              pack(t, nil, []any{1.0}),
		"cut":                pack(t, nil, []any{1.0, []any{[]any{"BlockStored"}}})[:10],
		"trailing":           append(at(1), 0),
		"array that lies":    {0xdd, 0xff, 0xff, 0xff, 0xff},
		"events that lie":    {0x92, 0x01, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"map that lies":      {0x92, 0x01, 0x91, 0xdf, 0xff, 0xff, 0xff, 0xff},
		"too few tokens":     pack(t, nil, stored([]any{1, 2}, []any{1, 2, 3}, 2)),
		"a negative token":   pack(t, nil, stored([]any{1}, []any{-1}, 1)),
		"no size":            pack(t, nil, stored([]any{1}, []any{}, 0)),
		"type not first":     pack(t, nil, []any{1.0, []any{object{"medium", "GPU", "type", "BlockRemoved"}}}),
		"keys of other size": pack(t, nil, []any{1.0, []any{object{"type", "BlockStored", "block_hashes", []any{1}, "token_ids", []any{1}, "block_size", 1, "extra_keys", []any{nil, nil}}}}),
	} {
		_, err := Decode(in)
		var d *DecodeError
		if !errors.As(err, &d) || d.Offset < 0 || d.Offset > len(in) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMirrorParts follows chains that break.
func TestMirrorParts(t *testing.T) {
	stored := func(parent Hash, tokens []vocab.ID, hashes ...Hash) Event {
		return Event{Kind: Stored, Parent: parent, Hashes: hashes, Tokens: tokens, BlockTokens: 2}
	}
	apply := func(m *Mirror, events ...Event) { m.Apply(Update{Batch: &Batch{Events: events}}) }
	prompt := []vocab.ID{1, 2, 3, 4, 5, 6, 7}
	keys := prefixcache.Keys{}
	m := NewMirror(4)
	apply(m, stored("", prompt[:4], "a", "b"), stored("b", prompt[4:6], "c"), stored("unknown", prompt[:2], "x"))
	if n := m.Cached(prompt, keys); n != 6 {
		t.Errorf("%d tokens of three blocks", n)
	}
	if n := m.Cached(prompt[:6], keys); n != 4 {
		t.Errorf("%d of six tokens, the last of which is always computed", n)
	}
	apply(m, stored("", prompt[:2], "a")) // told again when it is used again
	apply(m, Event{Kind: Removed, Hashes: []Hash{"b", "nobody"}})
	if n := m.Cached(prompt, keys); n != 2 {
		t.Errorf("%d tokens before the block that went", n)
	}
	apply(m, Event{Kind: Removed, Hashes: []Hash{"a"}, Medium: "CPU"}, Event{Kind: Removed, Hashes: []Hash{"a"}, Group: 1})
	apply(m, stored("a", prompt[2:4], "b"))
	if n := m.Cached(prompt, keys); n != 6 {
		t.Errorf("%d tokens once it is back", n)
	}
	apply(m, stored("", []vocab.ID{8, 8, 9, 9, 7, 7}, "d", "e", "f"))
	want := Counts{Blocks: 4, Stored: 5, Removed: 1, Orphans: 1, Dropped: 2}
	if c := m.Counts(); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	m = NewMirror(0)
	apply(m, Event{Kind: Stored, Hashes: []Hash{"s"}, Tokens: prompt[:2], BlockTokens: 2, Salt: "x", LoRA: "ad"},
		Event{Kind: Stored, Parent: "s", Hashes: []Hash{"t"}, Tokens: prompt[2:4], BlockTokens: 2, Salt: "x", LoRA: "ad"})
	if n := m.Cached(prompt, prefixcache.Keys{Salt: "x", LoRA: "ad"}); n != 4 || m.Cached(prompt, keys) != 0 || m.Cached(prompt, prefixcache.Keys{LoRA: "ad"}) != 0 {
		t.Errorf("%d tokens with the salt and the adapter", n)
	}
	m.Apply(Update{Restarted: true, Missed: 3})
	if c := m.Counts(); c.Blocks != 0 || c.Cleared != 1 || c.Missed != 3 || m.Cached(prompt, keys) != 0 {
		t.Errorf("%+v", c)
	}
}

// FuzzDecode gives the mirror arbitrary payloads.
func FuzzDecode(f *testing.F) {
	for _, fr := range frames(f)[:12] {
		f.Add(fr.Parts[2])
	}
	f.Add(pack(f, nil, []any{2.0, []any{[]any{"BlockStored", []any{int64(-2)}, int64(-1), []any{9}, 1, nil, "GPU"}, []any{"AllBlocksCleared"}}}))
	f.Add([]byte{0x92, 0x01, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := Decode(payload)
		if err != nil {
			var d *DecodeError
			if !errors.As(err, &d) || d.Offset < 0 || d.Offset > len(payload) {
				t.Fatalf("%v", err)
			}
			return
		}
		m := NewMirror(16)
		m.Apply(Update{Batch: b})
		c := m.Counts()
		if c.Blocks > 16 || uint64(c.Blocks) > c.Stored {
			t.Fatalf("%+v", c)
		}
		for _, e := range b.Events {
			if len(e.Tokens) > len(payload) || len(e.Hashes) > len(payload) {
				t.Fatal("more than was sent")
			}
			if n := m.Cached(e.Tokens, prefixcache.Keys{LoRA: e.LoRA}); n > len(e.Tokens) {
				t.Fatal(n)
			}
		}
	})
}

// TestDecodeLimits sends batches that would take far more memory than they have bytes.
func TestDecodeLimits(t *testing.T) {
	head := func(hashes int) []byte {
		b := msgp.AppendArrayHeader(nil, 2)
		b = msgp.AppendFloat64(b, 1)
		b = msgp.AppendArrayHeader(b, 1)
		b = msgp.AppendArrayHeader(b, 2)
		b = msgp.AppendString(b, string(Removed))
		return msgp.AppendArrayHeader(b, uint32(hashes))
	}
	if _, err := Decode(append(head(maxValues), make([]byte, maxValues)...)); err != nil {
		t.Errorf("as many hashes as are allowed: %v", err)
	}
	if _, err := Decode(append(head(maxValues+1), make([]byte, maxValues+1)...)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one hash more than allowed: %v", err)
	}
	// Lists inside of the key of one block.
	b := msgp.AppendMapHeader(nil, 2)
	b = msgp.AppendString(msgp.AppendString(b, "type"), string(Stored))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "extra_keys"), 1)
	b = msgp.AppendArrayHeader(b, maxValues)
	batch := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 2), 1), 1)
	if _, err := Decode(append(append(batch, b...), bytes.Repeat([]byte{0xc0}, maxValues)...)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a key of too many parts: %v", err)
	}
}
