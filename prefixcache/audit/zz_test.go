package audit

import "testing"
import "github.com/unfray/unfray/vocab"

func TestZZ(t *testing.T) {
	tok := open(t, "qwen3")
	chars := []string{"\n", " ", ".", ",", "-", "=", "#", "*", "(", ")", "{", "}", "[", "]", "\"", "'", "/", "\\", ":", ";", "<", ">", "|", "`", "_", "\t"}
	var ends []string
	for _, a := range chars { for _, b := range chars { for _, c := range chars { ends = append(ends, a+b+c) } } }
	n := 0
	for _, e := range ends {
		x := tok.Encode(nil, []byte("pump"+e))
		for _, c := range chars {
			y := tok.Encode(nil, []byte("pump"+e+c+"a"))
			if r := len(x) - vocab.CommonPrefix(x, y); r >= 2 { n++; if n < 40 { t.Logf("%q %q %d", e, c, r) } }
		}
	}
	t.Log(n)
}
