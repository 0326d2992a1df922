package spmodel

import (
	"fmt"
	"strconv"

	"github.com/unfray/unfray/tokenizer/internal/textindex"
)

// check refuses what the C++ library does not load either (InitializePieces in
// model_interface.cc): a model needs pieces, all of them different, exactly one
// Unknown, and either all 256 Byte pieces or none. It also finds the special
// pieces.
func (m *Model) check(size int) error {
	fail := func(format string, args ...any) error {
		return &Error{"pieces", size, ErrInvalid, fmt.Sprintf(format, args...)}
	}
	if len(m.Pieces) == 0 {
		return fail("there are none; the file is not a SentencePiece model")
	}
	m.UnkID = -1
	index := textindex.New(len(m.Pieces), func(id int) []byte { return m.Pieces[id].Text })
	var bytesSeen [256]bool
	found := 0
	for id, p := range m.Pieces {
		if first, dup := index.Add(id); dup {
			return fail("%d and %d are both %q", first, id, shorten(p.Text))
		}
		switch p.Type {
		case Unknown:
			if m.UnkID >= 0 {
				return fail("%d and %d are both of type unknown", m.UnkID, id)
			}
			m.UnkID = id
		case Byte:
			b, ok := ByteOf(p.Text)
			if !ok {
				return fail("%d is of type byte, but %q is not of the form <0x0A>", id, shorten(p.Text))
			}
			if !m.Trainer.ByteFallback {
				return fail("%d is of type byte, but the model has no byte_fallback", id)
			}
			if !bytesSeen[b] {
				bytesSeen[b] = true
				found++
			}
		}
	}
	if m.UnkID < 0 {
		return fail("none is of type unknown")
	}
	if m.Trainer.ByteFallback && found < 256 {
		return fail("byte_fallback needs 256 pieces of type byte; there are %d", found)
	}
	control := func(text string) int {
		if id, ok := index.Lookup([]byte(text)); ok && m.Pieces[id].Type == Control {
			return id
		}
		return -1
	}
	m.BOSID = control(m.Trainer.BOSPiece)
	m.EOSID = control(m.Trainer.EOSPiece)
	m.PadID = control(m.Trainer.PadPiece)
	return nil
}

// ByteOf gives the byte that the piece <0x0A> stands for. Upper case digits
// are the only spelling.
func ByteOf(text []byte) (b byte, ok bool) {
	if len(text) != 6 || string(text[:3]) != "<0x" || text[5] != '>' {
		return 0, false
	}
	for _, c := range text[3:5] {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return 0, false
		}
	}
	v, err := strconv.ParseUint(string(text[3:5]), 16, 8)
	return byte(v), err == nil
}
