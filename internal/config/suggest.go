package config

import "strings"

// nearest returns the word that a misspelt one probably means: the one with the
// fewest edits, if a third of its letters stays wrong at most. "" if there is
// none.
func nearest(misspelt string, words []string) string {
	misspelt = strings.ToLower(strings.ReplaceAll(misspelt, "-", "_"))
	best, least := "", 0
	for _, w := range words {
		most := max(1, len(w)/3)
		if len(misspelt) > len(w)+most || len(w) > len(misspelt)+most {
			continue
		}
		if d := edits(misspelt, w); d <= most && (best == "" || d < least) {
			best, least = w, d
		}
	}
	return best
}

// edits is the number of bytes to insert, delete, change or swap with their
// neighbour that makes b of a (optimal string alignment).
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
