package spmodel

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"unicode/utf8"
)

// Limits of what is read. Gemma's model, one of the largest, has 4 MB and
// 256,000 pieces.
const (
	MaxFileBytes  = 256 << 20
	MaxPieces     = 4 << 20
	MaxPieceBytes = 64 << 10
	maxSamples    = 1 << 16
	maxSymbols    = 1 << 20
)

// Open reads the model at path.
func Open(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Read reads a model to its end.
func Read(r io.Reader) (*Model, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// Parse reads a model from memory. The Model keeps data, which must not be
// modified any more.
func Parse(data []byte) (*Model, error) {
	if len(data) > MaxFileBytes {
		return nil, &Error{"model", MaxFileBytes, ErrLimit, fmt.Sprintf("the file has more than the %d bytes that are read", MaxFileBytes)}
	}
	m := &Model{
		Pieces: make([]Piece, 0, len(data)/16), // a piece takes 16 bytes or a few more
		Trainer: Trainer{
			ModelType:  Unigram,
			UnkSurface: " \u2047 ",
			UnkPiece:   "<unk>",
			BOSPiece:   "<s>",
			EOSPiece:   "</s>",
			PadPiece:   "<pad>",
		},
		Normalizer: Normalizer{AddDummyPrefix: true, RemoveExtraWhitespaces: true, EscapeWhitespaces: true},
	}
	in := message{data: data, path: "model"}
	var f field
	for {
		more, err := in.next(&f)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if err := m.field(&f); err != nil {
			return nil, err
		}
	}
	if err := m.check(len(data)); err != nil {
		return nil, err
	}
	return m, nil
}

// field takes one field of ModelProto.
func (m *Model) field(f *field) error {
	switch f.number {
	case 1:
		return m.addPiece(f)
	case 2:
		return m.Trainer.read(f)
	case 3:
		return m.Normalizer.read(f, "normalizer_spec")
	case 4:
		return m.readSelfTest(f)
	case 5:
		return m.Denormalizer.read(f, "denormalizer_spec")
	}
	return nil
}

// addPiece takes a SentencePiece message.
func (m *Model) addPiece(f *field) error {
	if len(m.Pieces) == MaxPieces {
		return &Error{"pieces", f.at, ErrLimit, fmt.Sprintf("more than %d pieces", MaxPieces)}
	}
	p := Piece{Type: Normal}
	if err := p.read(f); err != nil {
		// The path is made only when something failed.
		var e *Error
		if errors.As(err, &e) {
			e.Path = fmt.Sprintf("pieces[%d]%s", len(m.Pieces), e.Path)
		}
		return err
	}
	m.Pieces = append(m.Pieces, p)
	return nil
}

func (p *Piece) read(outer *field) error {
	in, err := outer.inside("")
	if err != nil {
		return err
	}
	var f field
	for {
		more, err := in.next(&f)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		switch f.number {
		case 1:
			if err := f.want(wireBytes, ".piece"); err != nil {
				return err
			}
			p.Text = f.data
			if len(f.data) > MaxPieceBytes {
				return &Error{".piece", f.at, ErrLimit, fmt.Sprintf("%d bytes; at most %d are read", len(f.data), MaxPieceBytes)}
			}
		case 2:
			if err := f.want(wireFixed32, ".score"); err != nil {
				return err
			}
			p.Score = math.Float32frombits(uint32(f.value))
			if p.Score != p.Score {
				return &Error{".score", f.at, ErrInvalid, "not a number"}
			}
		case 3:
			if err := f.want(wireVarint, ".type"); err != nil {
				return err
			}
			if f.value < uint64(Normal) || f.value > uint64(Byte) {
				return &Error{".type", f.at, ErrUnsupported, fmt.Sprintf("the piece type %d", f.value)}
			}
			p.Type = PieceType(f.value)
		}
	}
	if len(p.Text) == 0 {
		return &Error{".piece", outer.at, ErrInvalid, "a piece without text"}
	}
	if !utf8.Valid(p.Text) {
		return &Error{".piece", outer.at, ErrInvalid, fmt.Sprintf("%q is not UTF-8", shorten(p.Text))}
	}
	return nil
}

// read takes a TrainerSpec message.
func (t *Trainer) read(outer *field) error {
	const path = "trainer_spec"
	in, err := outer.inside(path)
	if err != nil {
		return err
	}
	var f field
	for {
		more, err := in.next(&f)
		if err != nil || !more {
			return err
		}
		switch f.number {
		case 3:
			if err = f.want(wireVarint, path+".model_type"); err == nil && (f.value < uint64(Unigram) || f.value > uint64(Char)) {
				err = &Error{path + ".model_type", f.at, ErrUnsupported, fmt.Sprintf("the model type %d", f.value)}
			}
			t.ModelType = ModelType(f.value)
		case 24:
			err = f.flag(&t.WhitespaceAsSuffix, path+".treat_whitespace_as_suffix")
		case 30:
			err = f.addText(&t.Control, path+".control_symbols")
		case 31:
			err = f.addText(&t.UserDefined, path+".user_defined_symbols")
		case 35:
			err = f.flag(&t.ByteFallback, path+".byte_fallback")
		case 44:
			err = f.text(&t.UnkSurface, path+".unk_surface")
		case 45:
			err = f.text(&t.UnkPiece, path+".unk_piece")
		case 46:
			err = f.text(&t.BOSPiece, path+".bos_piece")
		case 47:
			err = f.text(&t.EOSPiece, path+".eos_piece")
		case 48:
			err = f.text(&t.PadPiece, path+".pad_piece")
		}
		if err != nil {
			return err
		}
	}
}

// read takes a NormalizerSpec message.
func (n *Normalizer) read(outer *field, path string) error {
	in, err := outer.inside(path)
	if err != nil {
		return err
	}
	var f field
	for {
		more, err := in.next(&f)
		if err != nil || !more {
			return err
		}
		switch f.number {
		case 1:
			err = f.text(&n.Name, path+".name")
		case 2:
			err = f.want(wireBytes, path+".precompiled_charsmap")
			n.Charsmap = f.data
		case 3:
			err = f.flag(&n.AddDummyPrefix, path+".add_dummy_prefix")
		case 4:
			err = f.flag(&n.RemoveExtraWhitespaces, path+".remove_extra_whitespaces")
		case 5:
			err = f.flag(&n.EscapeWhitespaces, path+".escape_whitespaces")
		case 6:
			err = f.text(&n.RuleTSV, path+".normalization_rule_tsv")
		}
		if err != nil {
			return err
		}
	}
}

// readSelfTest takes a SelfTestData message.
func (m *Model) readSelfTest(outer *field) error {
	const path = "self_test_data"
	in, err := outer.inside(path)
	if err != nil {
		return err
	}
	var f field
	for {
		more, err := in.next(&f)
		if err != nil || !more {
			return err
		}
		if f.number != 1 {
			continue
		}
		if len(m.SelfTest) == maxSamples {
			return &Error{path, f.at, ErrLimit, fmt.Sprintf("more than %d samples", maxSamples)}
		}
		sample, err := f.inside(path + ".samples")
		if err != nil {
			return err
		}
		var s Sample
		var part field
		for {
			more, err := sample.next(&part)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			switch part.number {
			case 1:
				err = part.text(&s.Input, path+".samples.input")
			case 2:
				err = part.text(&s.Expected, path+".samples.expected")
			}
			if err != nil {
				return err
			}
		}
		m.SelfTest = append(m.SelfTest, s)
	}
}

func (f *field) flag(to *bool, path string) error {
	*to = f.value != 0
	return f.want(wireVarint, path)
}

func (f *field) text(to *string, path string) error {
	if err := f.want(wireBytes, path); err != nil {
		return err
	}
	if !utf8.Valid(f.data) {
		return &Error{path, f.dataAt, ErrInvalid, "not UTF-8"}
	}
	*to = string(f.data)
	return nil
}

func (f *field) addText(to *[]string, path string) error {
	if len(*to) == maxSymbols {
		return &Error{path, f.at, ErrLimit, fmt.Sprintf("more than %d symbols", maxSymbols)}
	}
	var text string
	err := f.text(&text, path)
	*to = append(*to, text)
	return err
}

// shorten keeps a text from outside out of a message's way.
func shorten(text []byte) []byte { return text[:min(len(text), 80)] }
