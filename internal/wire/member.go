package wire

import (
	"encoding/json"
	"slices"
)

// ReplaceString returns b with another text as the value of the member name of
// its outermost object, all other bytes as they were. It returns b itself if that
// is no JSON object with such a member.
func ReplaceString(b []byte, name, value string) []byte {
	members, err := Members(b)
	if err != nil || members[name] == nil {
		return b
	}
	quoted, err := Marshal(value)
	if err != nil {
		return b
	}
	return SetMember(b, name, quoted)
}

// Members returns the values of the members of a body's outermost object as they
// are written. They are parts of b. A member given twice is an error.
func Members(b []byte) (map[string]json.RawMessage, error) {
	f, err := body(b)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	err = f.members(func(m *field) error {
		out[m.name] = slices.Clip(m.raw)
		return nil
	})
	return out, err
}

// SetMember returns b with value as the member name of its outermost object, in
// the place of the one that is there, else before all others. All other bytes are
// as they were. It returns b itself if that is no JSON object, or holds a member
// twice.
func SetMember(b []byte, name string, value json.RawMessage) []byte {
	f, err := body(b)
	if err != nil {
		return b
	}
	var old []byte
	empty := true
	if f.members(func(m *field) error {
		empty = false
		if m.name == name {
			old = m.raw
		}
		return nil
	}) != nil {
		return b
	}
	// A part of b tells by its capacity where it stands.
	if old != nil {
		at := cap(b) - cap(old)
		return slices.Concat(b[:at], value, b[at+len(old):])
	}
	quoted, err := Marshal(name)
	if err != nil {
		return b
	}
	at, comma := cap(b)-cap(f.raw)+1, ","
	if empty {
		comma = ""
	}
	return slices.Concat(b[:at], quoted, []byte(":"), value, []byte(comma), b[at:])
}

// RemoveMember returns b without the member name of its outermost object. All
// other bytes but a comma are as they were. It returns b itself if that is no
// JSON object with such a member, or holds one twice.
func RemoveMember(b []byte, name string) []byte {
	if Check(b) != nil {
		return b
	}
	a := &Answer{data: slices.Clip(b)}
	start := space(a.data)
	o, err := a.open(&field{raw: start[:valueLen(start)]})
	if err != nil {
		return b
	}
	a.remove(o, name)
	return a.Bytes()
}
