package spmodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestRecorded compares the models in testdata, which the SentencePiece
// trainer made, with what the library's own reader says of them.
func TestRecorded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		trainer Trainer
		norm    Normalizer
	}{
		{"unigram", Trainer{ModelType: Unigram}, Normalizer{Name: "identity", AddDummyPrefix: true, RemoveExtraWhitespaces: true, EscapeWhitespaces: true}},
		{"bpe", Trainer{ModelType: BPE, ByteFallback: true}, Normalizer{Name: "identity", AddDummyPrefix: true, EscapeWhitespaces: true}},
		{"char", Trainer{ModelType: Char}, Normalizer{Name: "identity", AddDummyPrefix: true, RemoveExtraWhitespaces: true, EscapeWhitespaces: true}},
		{"word", Trainer{ModelType: Word, UnkSurface: "[?]"}, Normalizer{Name: "identity", AddDummyPrefix: true, RemoveExtraWhitespaces: true, EscapeWhitespaces: true}},
		{"odd", Trainer{ModelType: Unigram, WhitespaceAsSuffix: true, UnkPiece: "[UNK]", BOSPiece: "[BOS]", EOSPiece: "[EOS]", PadPiece: "[PAD]",
			UserDefined: []string{"<name>", "  "}, Control: []string{"<ctl>"}}, Normalizer{Name: "user_defined", EscapeWhitespaces: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Open(filepath.Join("testdata", tt.name+".model"))
			if err != nil {
				t.Fatal(err)
			}
			compareRecord(t, m, filepath.Join("testdata", tt.name+".tsv"))
			want := Trainer{UnkSurface: " \u2047 ", UnkPiece: "<unk>", BOSPiece: "<s>", EOSPiece: "</s>", PadPiece: "<pad>"}
			over := reflect.ValueOf(tt.trainer)
			for i := range over.NumField() {
				if !over.Field(i).IsZero() {
					reflect.ValueOf(&want).Elem().Field(i).Set(over.Field(i))
				}
			}
			if !reflect.DeepEqual(m.Trainer, want) {
				t.Errorf("trainer %+v, want %+v", m.Trainer, want)
			}
			if (len(m.Normalizer.Charsmap) > 0) != (tt.name == "odd") {
				t.Errorf("a character map of %d bytes", len(m.Normalizer.Charsmap))
			}
			m.Normalizer.Charsmap, m.Normalizer.RuleTSV = nil, ""
			if !reflect.DeepEqual(m.Normalizer, tt.norm) {
				t.Errorf("normalizer %+v, want %+v", m.Normalizer, tt.norm)
			}
		})
	}
}

// kinds are the words of testdata/train.py. The library does not tell
// UserDefined from Normal.
var kinds = map[PieceType]string{Normal: "piece", Unknown: "unknown", Control: "control", UserDefined: "piece", Unused: "unused", Byte: "byte"}

func compareRecord(t *testing.T, m *Model, record string) {
	t.Helper()
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if got := fmt.Sprintf("ids\t%d\t%d\t%d\t%d", m.UnkID, m.BOSID, m.EOSID, m.PadID); got != lines[0] {
		t.Errorf("%q, want %q", got, lines[0])
	}
	if len(m.Pieces) != len(lines)-1 {
		t.Fatalf("%d pieces, want %d", len(m.Pieces), len(lines)-1)
	}
	for id, line := range lines[1:] {
		field := strings.Split(line, "\t")
		var text string
		if err := json.Unmarshal([]byte(field[1]), &text); err != nil {
			t.Fatal(err)
		}
		score, err := strconv.ParseFloat(field[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		p := m.Pieces[id]
		if string(p.Text) != text || float64(p.Score) != score || kinds[p.Type] != field[3] {
			t.Errorf("piece %d: %q %v %d, want %s", id, p.Text, p.Score, p.Type, line)
		}
	}
}

// The messages of the tests below, field by field.

func varintField(number int, v uint64) string {
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), v))
}

func bytesField(number int, parts ...string) string {
	data := strings.Join(parts, "")
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(len(data)))) + data
}

func floatField(number int, v float32) string {
	b := binary.AppendUvarint(nil, uint64(number)<<3|5)
	return string(binary.LittleEndian.AppendUint32(b, math.Float32bits(v)))
}

func piece(text string, score float32, kind PieceType) string {
	return bytesField(1, bytesField(1, text), floatField(2, score), varintField(3, uint64(kind)))
}

// TestFields: fields in any order, unknown ones between, and the self test of
// older trainers.
func TestFields(t *testing.T) {
	m, err := Parse([]byte(
		varintField(99, 7) +
			bytesField(4, bytesField(1, bytesField(1, "a b"), bytesField(2, "▁a ▁b"), varintField(9, 1)), floatField(7, 0)) +
			bytesField(5, bytesField(1, "denorm"), bytesField(2, "\x00\xff")) +
			bytesField(3, varintField(3, 0), bytesField(6, "41\t61"), varintField(4, 1)) +
			piece("<unk>", 0, Unknown) +
			bytesField(1, varintField(3, uint64(Normal)), string([]byte{12<<3 | 1})+"12345678", bytesField(1, "▁a"), floatField(2, -1.5)) +
			bytesField(1, bytesField(1, "b")) + // type and score have defaults
			bytesField(2, varintField(3, 2), varintField(4, 1000)) +
			bytesField(2, varintField(24, 1))))
	if err != nil {
		t.Fatal(err)
	}
	want := []Piece{{[]byte("<unk>"), 0, Unknown}, {[]byte("▁a"), -1.5, Normal}, {[]byte("b"), 0, Normal}}
	if !reflect.DeepEqual(m.Pieces, want) {
		t.Errorf("%+v", m.Pieces)
	}
	if m.Trainer.ModelType != BPE || !m.Trainer.WhitespaceAsSuffix {
		t.Errorf("%+v", m.Trainer)
	}
	if n := m.Normalizer; n.AddDummyPrefix || !n.RemoveExtraWhitespaces || !n.EscapeWhitespaces || n.RuleTSV != "41\t61" {
		t.Errorf("%+v", n)
	}
	if m.Denormalizer.Name != "denorm" || string(m.Denormalizer.Charsmap) != "\x00\xff" {
		t.Errorf("%+v", m.Denormalizer)
	}
	if !reflect.DeepEqual(m.SelfTest, []Sample{{"a b", "▁a ▁b"}}) {
		t.Errorf("%+v", m.SelfTest)
	}
	if m.UnkID != 0 || m.BOSID != -1 || m.EOSID != -1 || m.PadID != -1 {
		t.Errorf("IDs %d %d %d %d", m.UnkID, m.BOSID, m.EOSID, m.PadID)
	}
}

func TestErrors(t *testing.T) {
	unk := piece("<unk>", 0, Unknown)
	for _, tt := range []struct {
		name   string
		data   string
		cause  error
		path   string
		offset int // -1: any
	}{
		{"empty", "", ErrInvalid, "pieces", 0},
		{"text", "hello, this is no model", ErrFormat, "model", -1},
		{"cut in a key", unk + "\x80", ErrFormat, "model", len(unk) + 1},
		{"cut in a length", unk + "\x0a\xff", ErrFormat, "model", len(unk) + 2},
		{"cut in data", unk + "\x0a\x05abc", ErrFormat, "model", len(unk)},
		{"cut in a word", unk + "\x15\x00\x00", ErrFormat, "model", len(unk)},
		{"huge length", unk + "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", ErrFormat, "model", len(unk)},
		{"long number", unk + "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ErrFormat, "model", len(unk) + 1},
		{"field 0", "\x00\x00", ErrFormat, "model", 0},
		{"high field", "\x80\x80\x80\x80\x80\x01\x00", ErrFormat, "model", 0},
		{"group", "\x0b\x0c", ErrFormat, "model", 0},
		{"piece of another wire type", unk + varintField(1, 5), ErrFormat, "pieces[1]", len(unk)},
		{"text of another wire type", unk + bytesField(1, varintField(1, 5)), ErrFormat, "pieces[1].piece", len(unk) + 2},
		{"score of another wire type", unk + bytesField(1, bytesField(1, "a"), varintField(2, 5)), ErrFormat, "pieces[1].score", len(unk) + 5},
		{"score not a number", unk + piece("a", float32(math.NaN()), Normal), ErrInvalid, "pieces[1].score", len(unk) + 5},
		{"type 9", unk + piece("a", 0, 9), ErrUnsupported, "pieces[1].type", len(unk) + 10},
		{"type 0", unk + piece("a", 0, 0), ErrUnsupported, "pieces[1].type", -1},
		{"no text", unk + piece("", 0, Normal), ErrInvalid, "pieces[1].piece", len(unk)},
		{"not UTF-8", unk + piece("\xff", 0, Normal), ErrInvalid, "pieces[1].piece", len(unk)},
		{"long piece", unk + piece(strings.Repeat("x", MaxPieceBytes+1), 0, Normal), ErrLimit, "pieces[1].piece", -1},
		{"two the same", unk + piece("a", 0, Normal) + piece("a", 0, Normal), ErrInvalid, "pieces", -1},
		{"two unknown", unk + piece("a", 0, Unknown), ErrInvalid, "pieces", -1},
		{"no unknown", piece("a", 0, Normal), ErrInvalid, "pieces", -1},
		{"no byte", unk + bytesField(2, varintField(35, 1)) + piece("<0x+1>", 0, Byte), ErrInvalid, "pieces", -1},
		{"lower case byte", unk + bytesField(2, varintField(35, 1)) + piece("<0x0a>", 0, Byte), ErrInvalid, "pieces", -1},
		{"bytes without fallback", unk + piece("<0x0A>", 0, Byte), ErrInvalid, "pieces", -1},
		{"fallback without bytes", unk + bytesField(2, varintField(35, 1)) + piece("<0x0A>", 0, Byte), ErrInvalid, "pieces", -1},
		{"model type", unk + bytesField(2, varintField(3, 5)), ErrUnsupported, "trainer_spec.model_type", -1},
		{"trainer of another wire type", unk + varintField(2, 5), ErrFormat, "trainer_spec", -1},
		{"flag of another wire type", unk + bytesField(2, bytesField(24, "x")), ErrFormat, "trainer_spec.treat_whitespace_as_suffix", -1},
		{"symbol not UTF-8", unk + bytesField(2, bytesField(31, "\xff")), ErrInvalid, "trainer_spec.user_defined_symbols", -1},
		{"name of another wire type", unk + bytesField(3, varintField(1, 1)), ErrFormat, "normalizer_spec.name", -1},
		{"cut inside the normalizer", unk + bytesField(3, "\x12\x7f"), ErrFormat, "normalizer_spec", len(unk) + 2},
		{"sample not UTF-8", unk + bytesField(4, bytesField(1, bytesField(1, "\xff"))), ErrInvalid, "self_test_data.samples.input", -1},
	} {
		_, err := Parse([]byte(tt.data))
		var e *Error
		if !errors.As(err, &e) || e.Cause != tt.cause || e.Path != tt.path || tt.offset >= 0 && e.Offset != tt.offset {
			t.Errorf("%s: %v; want %v at %s, byte %d", tt.name, err, tt.cause, tt.path, tt.offset)
		}
		if e != nil && len(e.Error()) > 1000 {
			t.Errorf("%s: a message of %d bytes", tt.name, len(e.Error()))
		}
	}
}

// TestCut: no proper prefix of a model crashes the reader, and those that end
// inside a field are errors.
func TestCut(t *testing.T) {
	data, err := os.ReadFile("testdata/char.model")
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := Parse(data[:n]); err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset > n {
				t.Fatalf("cut at %d: %v", n, err)
			}
		}
	}
}

// TestVendorModel compares Gemma 2's model with what the library says of it,
// of which testdata/gemma2.sha256 is the hash (testdata/train.py).
func TestVendorModel(t *testing.T) {
	m, err := Open(vendorModel(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/gemma2.sha256")
	if err != nil {
		t.Fatal(err)
	}
	sha := sha256.New()
	for id, p := range m.Pieces {
		fmt.Fprintf(sha, "%d\t%08x\t%s\t%s\n", id, math.Float32bits(p.Score), kinds[p.Type], p.Text)
	}
	if got := fmt.Sprintf("%x\n", sha.Sum(nil)); got != string(want) {
		t.Errorf("%d pieces have the hash %s, want %s", len(m.Pieces), got, want)
	}
	if m.UnkID != 3 || m.BOSID != 2 || m.EOSID != 1 || m.PadID != 0 || m.Normalizer.AddDummyPrefix || m.Trainer.ModelType != BPE {
		t.Errorf("IDs %d %d %d %d, %+v, %+v", m.UnkID, m.BOSID, m.EOSID, m.PadID, m.Normalizer, m.Trainer)
	}
}

func vendorModel(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("UNFRAY_TEST_VOCABS")
	if dir == "" {
		tb.Skip("UNFRAY_TEST_VOCABS is not set: make test fetches the vocabularies")
	}
	return filepath.Join(dir, "gemma2", "tokenizer.model")
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"char", "odd"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".model"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(piece("<unk>", 0, Unknown) + piece("a", -1, Normal) + bytesField(4, bytesField(1, bytesField(1, "x")))))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(bytes.Clone(data))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) {
				t.Fatalf("%v", err)
			}
			return
		}
		if m.Pieces[m.UnkID].Type != Unknown {
			t.Fatalf("piece %d is not of type unknown", m.UnkID)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(vendorModel(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
