package textrepair

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestHostileTry(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var all []rune
	for r := rune(0x80); r < lastPlane; r++ {
		if heads[r].id != 0 {
			all = append(all, r)
		}
	}
	var leads, mix []rune
	for range 4000 {
		leads = append(leads, []rune("ÃÂâ€ðŸÐÑ ©®")[rng.IntN(11)])
		mix = append(mix, all[rng.IntN(len(all))])
	}
	nest := "é"
	for range 9 {
		var d []rune
		for _, b := range []byte(nest) {
			d = append(d, rune(b))
		}
		nest = string(d)
	}
	for n, s := range map[string]string{"leads": string(leads), "mix": string(mix), "Ã": strings.Repeat("Ã", 4000), "Ã©": strings.Repeat("Ã©", 4000), "ÃƒÂ©": strings.Repeat("ÃƒÂ©", 2000), "nest": nest, "marks": strings.Repeat("Ġ", 4000), "lt": strings.Repeat("<0x41>", 800), "amp": strings.Repeat("&amp;`", 800),
		"mac": strings.Repeat("‚Äö√†√∂¬¨¬©", 400), "1251": strings.Repeat("Р В Р’В Р’ ", 300), "uk": strings.Repeat("Рі Сі вЂ ", 500)} {
		at := time.Now()
		r := Repair([]byte(s), Options{})
		t.Logf("%s %d bytes %v %d edits", n, len(s), time.Since(at), len(r.Edits))
	}
}
