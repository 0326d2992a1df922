//go:build goexperiment.simd && amd64

package split

import "simd/archsimd"

var useSIMD = archsimd.X86.AVX512()

// classify sets m to the maps of a window.
func (m *byteMaps) classify(b *[windowSize]byte) {
	if !useSIMD {
		m.classifyBytes(b)
		return
	}
	x := archsimd.LoadUint8x64(b)
	m.upper = x.Sub(archsimd.BroadcastUint8x64('A')).Less(archsimd.BroadcastUint8x64(26)).ToBits()
	m.lower = x.Sub(archsimd.BroadcastUint8x64('a')).Less(archsimd.BroadcastUint8x64(26)).ToBits()
	m.digit = x.Sub(archsimd.BroadcastUint8x64('0')).Less(archsimd.BroadcastUint8x64(10)).ToBits()
	m.space = x.Equal(archsimd.BroadcastUint8x64(' ')).ToBits()
	m.line = x.Equal(archsimd.BroadcastUint8x64('\n')).ToBits() | x.Equal(archsimd.BroadcastUint8x64('\r')).ToBits()
	blank := x.Sub(archsimd.BroadcastUint8x64('\t')).Less(archsimd.BroadcastUint8x64(5)).ToBits()
	m.tab = blank &^ m.line
	m.control = (x.Less(archsimd.BroadcastUint8x64(' ')).ToBits() | x.Equal(archsimd.BroadcastUint8x64(0x7f)).ToBits()) &^ blank
	m.quote = x.Equal(archsimd.BroadcastUint8x64('\'')).ToBits()
	m.slash = x.Equal(archsimd.BroadcastUint8x64('/')).ToBits()
	m.wide = x.GreaterEqual(archsimd.BroadcastUint8x64(0x80)).ToBits()
}
