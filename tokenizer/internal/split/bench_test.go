package split

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goSource gives about so many bytes of the Go tree's source.
func goSource(b testing.TB, size int) []byte {
	b.Helper()
	var text []byte
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("no Go source tree here: ", err)
	}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		if text = append(text, data...); len(text) >= size {
			return filepath.SkipAll
		}
		return err
	})
	if err != nil || len(text) < size {
		b.Skip("no Go source tree here: ", err)
	}
	return text[:size]
}

const languages = `Alle Menschen sind frei und gleich an Würde und Rechten geboren. Tous les êtres humains naissent libres et égaux.
Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.
人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।
يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.
`

func benchmarkScan(b *testing.B, s Splitter, text []byte) {
	ends := make([]int, 512)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for from := 0; from < len(text); {
			from = ends[s.Scan(ends, text, from)-1]
		}
	}
}

func BenchmarkScan(b *testing.B) {
	source := goSource(b, 4<<20)
	mixed := []byte(strings.Repeat(languages, 1000))
	for _, k := range knownForTests {
		s := k.in(family{unicode160(), foldFull})
		b.Run(k.name+"/go", func(b *testing.B) { benchmarkScan(b, s, source) })
		b.Run(k.name+"/languages", func(b *testing.B) { benchmarkScan(b, s, mixed) })
	}
}
