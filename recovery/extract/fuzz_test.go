package extract

import "testing"

func seeds(f *testing.F) {
	for _, c := range segmentCases {
		f.Add([]byte(c.in), uint8(1))
	}
	for _, c := range candidateCases {
		f.Add([]byte(c.in), uint8(2))
	}
	for _, c := range yamlCases {
		f.Add([]byte(c.in), uint8(3))
	}
	for _, c := range xmlCases {
		f.Add([]byte(c.in), uint8(4))
	}
}

// FuzzScanner writes a text in pieces whose sizes follow from seed: they give what
// the whole text gives.
func FuzzScanner(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte, seed uint8) {
		o := scanOptions[int(seed)%len(scanOptions)]
		x := uint32(seed) + 1
		same(t, text, o, func() int { x = x*1103515245 + 12345; return 1 + int(x>>16)%11 })
	})
}

// FuzzAll checks what every function promises of any text.
func FuzzAll(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte, seed uint8) {
		checkAll(t, text, scanOptions[int(seed)%len(scanOptions)])
	})
}
