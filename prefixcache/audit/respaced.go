package audit

// respaced reads two texts as long as they differ in white space only. It gives
// the stretches that are equal, their bytes in all, and where the last one ends in
// both.
func respaced(a, b []byte) (list []match, n, oldEnd, newEnd int) {
	i, j := 0, 0
	for {
		if k := commonBytes(a[i:], b[j:]); k > 0 {
			list = append(list, match{i, j, k})
			i, j, n = i+k, j+k, n+k
		}
		x, y := blank(a[i:]), blank(b[j:])
		switch {
		case x == 0 && y == 0, i+x == len(a), j+y == len(b), a[i+x] != b[j+y],
			x == 0 && insideWord(a, i), y == 0 && insideWord(b, j):
			return list, n, i, j
		}
		i, j = i+x, j+y
	}
}
