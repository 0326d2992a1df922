package textrepair

import (
	"bytes"
	"strings"
	"testing"
)

func BenchmarkRepair(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"ASCII", "The quick brown fox jumps over the lazy dog, and nothing in this line is damaged.\n"},
		{"Go", "\tif err := f(x, &y); err != nil { // a < b\n\t\treturn fmt.Errorf(\"x: %w\", err)\n\t}\n"},
		{"French", "L’été dernier, j’ai mangé des crêpes à Besançon — c’était délicieux et très apprécié.\n"},
		{"Russian", "Привет, как дела? Сегодня хорошая погода, и мы идём гулять в парк с друзьями.\n"},
		{"Ukrainian", "Їжак і рік, її сім’я: сьогодні гарна погода, і ми йдемо гуляти в парк із друзями.\n"},
		{"Chinese", "敏捷的棕色狐狸跳过了懒狗，这一行没有任何损坏。今天天气很好，我们去公园散步。\n"},
		{"mojibake", "Itâ€™s a cafÃ© with naÃ¯ve dÃ©cor, â€œquotedâ€\u009d text and more of the same.\n"},
	} {
		text := []byte(strings.Repeat(c.text, 1+(1<<20)/len(c.text)))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Repair(text, Options{})
			}
		})
	}
}

func BenchmarkRepairJSON(b *testing.B) {
	doc := []byte("[" + strings.Repeat(`{"id":12345,"name":"a plain string","text":"two\\nlines, “quoted” — clean"},`, 10000) + "0]")
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if r := RepairJSON(doc, Options{}); r.Err != nil || len(r.Edits) > 0 {
			b.Fatal(r.Err, r.Edits)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	text := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog — it’s not damaged.\n"), 1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewStream(Options{})
		for at := 0; at < len(text); at += 5 {
			s.Write(text[at:min(at+5, len(text))])
		}
		s.Close()
	}
}
