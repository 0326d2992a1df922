//go:build !goexperiment.simd || !amd64

package split

// classify sets m to the maps of a window.
func (m *byteMaps) classify(b *[windowSize]byte) { m.classifyBytes(b) }
