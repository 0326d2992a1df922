package wire

import "slices"

// ReplaceString returns b with another text as the value of the member name of
// its outermost object, all other bytes as they were. It returns b itself if that
// is no JSON object with such a member.
func ReplaceString(b []byte, name, value string) []byte {
	f, err := body(b)
	if err != nil {
		return b
	}
	quoted, err := Marshal(value)
	if err != nil {
		return b
	}
	out := b
	err = f.members(func(m *field) error {
		if m.name == name {
			// raw is a part of b, and so tells where it stands.
			at := cap(b) - cap(m.raw)
			out = slices.Concat(b[:at], quoted, b[at+len(m.raw):])
		}
		return nil
	})
	if err != nil { // a member is given twice
		return b
	}
	return out
}
