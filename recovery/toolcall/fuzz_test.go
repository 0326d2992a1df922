package toolcall

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// pieces cuts a text at random.
func pieces(text []byte, rng *rand.Rand) [][]byte {
	var list [][]byte
	longest := 1 + rng.IntN(20)
	for len(text) > 0 {
		n := min(len(text), 1+rng.IntN(longest))
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

// optionsFor gives the options of the n-th kind.
func optionsFor(n uint8) Options {
	o := Options{MaxHold: 200}
	if n&1 != 0 {
		o.Tools = tools
	}
	if n&2 != 0 {
		o.Formats = Formats()
	}
	if n&4 != 0 {
		o.Formats = []Format{formats[int(n>>3)%len(formats)], Hermes}
	}
	return o
}

func FuzzFind(f *testing.F) {
	for i, c := range formatCases {
		f.Add([]byte(c.text), uint8(i))
	}
	for i, c := range malformedCases {
		f.Add([]byte(c.text), uint8(i)|1)
	}
	for _, s := range textCases {
		f.Add([]byte(s), uint8(3))
	}
	// What was wrong once.
	for _, s := range []string{
		"{\"name\" g, \"args0:}00\n{\"name\"f , \"arguments\"00{000:00000000000000000000",
		"00000000000\n{\"name\"0!\n{\"name\"f\"",
		"<tool_call>{00000000{,name \"0\"}",
		"<tool_call>{0000000000000000000000000{,",
		"<tool_call> {\"name\"\",\"\":0",
	} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, kind uint8) {
		if len(text) > 4096 {
			return
		}
		o := optionsFor(kind)
		checkResult(t, text, Find(text, o))
		rng := rand.New(rand.NewPCG(uint64(len(text)), uint64(kind)))
		checkStream(t, text, pieces(text, rng), o)
		checkStream(t, text, oneByOne(text), o)
	})
}

func FuzzArguments(f *testing.F) {
	for _, c := range argumentsCases {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		checkArguments(t, text, Arguments("vid", text, Options{Tools: tools}))
	})
}

// TestMutated takes the cases apart and puts parts of them together, so that calls
// are broken where they hurt.
func TestMutated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := 1500
	if testing.Short() {
		n = 300
	}
	for i := range n {
		text := []byte(formatCases[rng.IntN(len(formatCases))].text)
		for range 1 + rng.IntN(4) {
			a, b := rng.IntN(len(text)+1), rng.IntN(len(text)+1)
			a, b = min(a, b), max(a, b)
			switch rng.IntN(5) {
			case 0:
				text = append(text[:a:a], text[min(b, a+5):]...)
			case 1:
				other := []byte(formatCases[rng.IntN(len(formatCases))].text)
				text = append(append(text[:a:a], other[rng.IntN(len(other)):]...), text[a:]...)
			case 2:
				text = append(append(text[:a:a], "\"'{}[]<>\\`\n,;"[rng.IntN(13)]), text[a:]...)
			case 3:
				text = text[:b]
			case 4:
				text = append(append(append(text[:a:a], text[a:b]...), text[a:b]...), text[b:]...)
			}
		}
		if len(text) > 3000 {
			text = text[:3000]
		}
		text = bytes.Clone(text)
		o := optionsFor(uint8(i))
		checkResult(t, text, Find(text, o))
		checkStream(t, text, pieces(text, rng), o)
	}
}
