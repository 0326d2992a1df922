package textrepair

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/jsonrepair"
)

// seeds are damaged and clean texts; the fuzz targets begin with them.
func seeds() []string {
	s := []string{
		"", "plain text\nof two lines\n", strings.Repeat("long line of words ", 500),
		"\xed\xa0\xbd\xed\xb8\x80\xed\xa0\xbd", "caf\xe9 \x93ok\x94 caf\xc3", "\xff\xfe\x80 é", "a\x00b\r\r\n\x1b[31mx\x1b]8;;u\a\x1bM\u009b0m",
		"```\ncode &amp; \u200b\n```\nprose &amp; x", "~~~ go\n&lt;\n~~~\n&lt;", "_\bx y\by", "e\u0301 ﬁ “x” ｆ", "x <b> &amp;", "&am\x00p; <0x\x0041>",
		strings.Repeat("Ã©", 3000), strings.Repeat("word â€™ ", 900), strings.Repeat("&amp;", 2000), "\u202eabc\u2066 \U000e0041", "q\\ud83d\\ude00",
	}
	for _, c := range mended {
		s = append(s, c.in)
	}
	return append(s, untouched...)
}

var styles = []Options{
	{},
	{Kind: Code},
	{Entities: Always, StraightQuotes: true, NarrowWidth: true, SplitLigatures: true, NFC: true, LineFeeds: true},
	{Entities: Never, Leave: []jsonrepair.Kind{Mojibake, Surrogate, SingleByte, CutCharacter, TerminalEscape}},
}

// checkReceipt fails unless the edits are in order, fit the input and make the text.
func checkReceipt(t *testing.T, in []byte, r *Result) {
	t.Helper()
	at := 0
	for _, e := range r.Edits {
		if e.Offset < at || e.Offset+len(e.Before) > len(in) || string(in[e.Offset:e.Offset+len(e.Before)]) != e.Before || e.Before == e.After || e.Kind == "" {
			t.Fatalf("%q: edit %+v behind %d does not fit", in, e, at)
		}
		at = e.Offset + len(e.Before)
	}
	if got := jsonrepair.Apply(in, slices.Values(r.Edits)); !bytes.Equal(got, r.Text) {
		t.Fatalf("%q: the edits make %q, the text is %q", in, got, r.Text)
	}
	for _, f := range r.Findings {
		if f.Offset < 0 || f.Length < 1 || f.Offset+f.Length > len(in) || f.Text == "" {
			t.Fatalf("%q: finding %+v does not fit", in, f)
		}
	}
}

// checkStream fails unless the text in pieces gives what it gives whole. piece returns the length of the next.
func checkStream(t *testing.T, in []byte, o Options, want *Result, piece func() int) {
	t.Helper()
	s := NewStream(o)
	var out []byte
	for rest := in; len(rest) > 0; {
		n := min(max(1, piece()), len(rest))
		out = append(out, s.Write(rest[:n])...)
		rest = rest[n:]
		if !bytes.HasPrefix(want.Text, out) {
			t.Fatalf("%q: committed %q, want the beginning of %q", in, out, want.Text)
		}
		if s.Held() > MaxHold {
			t.Fatalf("%d bytes are held back", s.Held())
		}
	}
	out = append(out, s.Close()...)
	if !bytes.Equal(out, want.Text) {
		t.Fatalf("%q: in pieces %q, whole %q", in, out, want.Text)
	}
	if got := s.Edits(); !slices.Equal(got, want.Edits) {
		t.Fatalf("%q: edits in pieces %+v, whole %+v", in, got, want.Edits)
	}
	if got := s.Findings(); !slices.Equal(got, want.Findings) {
		t.Fatalf("%q: findings in pieces %+v, whole %+v", in, got, want.Findings)
	}
}

// checkStable fails if repairing again changes something, but where that is documented.
func checkStable(t *testing.T, in []byte, o Options, r *Result) {
	t.Helper()
	if bytes.ContainsAny(in, "&<") || len(in) > MaxLine/2 || o.Entities == Always {
		return
	}
	for _, mark := range []string{"\n", "```", "~~~"} {
		if bytes.Count(in, []byte(mark)) != bytes.Count(r.Text, []byte(mark)) {
			return
		}
	}
	if again := Repair(r.Text, o); !bytes.Equal(again.Text, r.Text) {
		t.Fatalf("%q: mended to %q, and again to %q", in, r.Text, again.Text)
	}
}

func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, in := range seeds() {
		for _, o := range styles {
			r := Repair([]byte(in), o)
			checkReceipt(t, []byte(in), r)
			checkStable(t, []byte(in), o, r)
			checkStream(t, []byte(in), o, r, func() int { return 1 })
			checkStream(t, []byte(in), o, r, func() int { return 1 + rng.IntN(12) })
			checkStream(t, []byte(in), o, r, func() int { return 700 })
		}
	}
}

// TestDamageIsUndone damages texts in many ways and wants them back.
func TestDamageIsUndone(t *testing.T) {
	for _, text := range []string{
		"L’été dernier, j’ai mangé des crêpes à Besançon — c’était délicieux…", "Zażółć gęślą jaźń", "Příliš žluťoučký kůň úpěl ďábelské ódy",
		"Привет, как дела?", "Καλημέρα κόσμε", "שלום עולם", "السلام عليكم", "こんにちは世界", "안녕하세요", "Việt Nam đất nước tôi", "Straße über Größe", "“Quoted” 😀 text",
	} {
		for p := range codePages {
			if codePages[p].name == byteAlphabet {
				continue
			}
			damaged, clean := []rune{}, true
			for _, b := range []byte(text) {
				if b < utf8.RuneSelf {
					damaged = append(damaged, rune(b))
					continue
				}
				r := []rune(codePages[p].high)[b-0x80]
				damaged, clean = append(damaged, r), clean && r != utf8.RuneError
			}
			if got := string(Repair([]byte(string(damaged)), Options{}).Text); got != text && clean {
				t.Errorf("%s: %q gave %q, want %q", codePages[p].name, string(damaged), got, text)
			}
		}
	}
}

func FuzzRepair(f *testing.F) {
	for i, s := range seeds() {
		f.Add([]byte(s), uint8(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, in []byte, style uint8, seed uint64) {
		o := styles[int(style)%len(styles)]
		r := Repair(in, o)
		checkReceipt(t, in, r)
		checkStable(t, in, o, r)
		rng := rand.New(rand.NewPCG(seed, 1))
		checkStream(t, in, o, r, func() int { return 1 + rng.IntN(9) })
	})
}

func FuzzRepairJSON(f *testing.F) {
	for i, s := range seeds() {
		f.Add([]byte(`{"k":"`+strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)+`"}`), uint8(i))
	}
	f.Add([]byte(`["\ud83d","\ud83d\ude00","\u00c3\u00a9\n","\\ud83d"]`), uint8(0))
	f.Fuzz(func(t *testing.T, doc []byte, style uint8) {
		o := styles[int(style)%len(styles)]
		o.Keys = style&16 != 0
		r := RepairJSON(doc, o)
		checkReceipt(t, doc, r)
		if valid := jsonrepair.IsValid(doc); valid != (r.Err == nil) {
			t.Fatalf("%q: valid %v, error %v", doc, valid, r.Err)
		}
		if r.Err == nil && !jsonrepair.IsValid(r.Text) {
			t.Fatalf("%q became %q, which is no JSON", doc, r.Text)
		}
	})
}
