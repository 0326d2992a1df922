package corpus

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// A Package holds files of one published package by their paths in its archive.
type Package map[string][]byte

// GoText makes the Go corpus: the Go files that no generator wrote, in the order of their paths, cut to [Limit].
func GoText(p Package) []byte {
	var text []byte
	for _, path := range slices.Sorted(maps.Keys(p)) {
		if strings.HasSuffix(path, ".go") && !bytes.Contains(p[path], []byte("// Code generated ")) {
			text = append(text, p[path]...)
		}
		if len(text) > Limit {
			break
		}
	}
	return text[:whole(text, Limit)]
}

const (
	blockBytes = 8192
	// leftOut says that the multilingual corpus lacks every fifth block, so that a bit of each language is left out and
	// not the last languages.
	leftOut = 5
)

// MultiText makes the multilingual corpus: the files of each package in the order of their paths, in blocks of 8 KiB of
// which every fifth is left out, cut to [Limit]. Of a gettext catalogue (.po) it takes the translations only.
func MultiText(packages ...Package) []byte {
	var all, text []byte
	for _, p := range packages {
		for _, path := range slices.Sorted(maps.Keys(p)) {
			if strings.HasSuffix(path, ".po") {
				all = appendTranslations(all, p[path])
			} else {
				all = append(all, p[path]...)
			}
		}
	}
	for n := 1; len(all) > 0; n++ {
		end := whole(all, blockBytes)
		if n%leftOut != 0 {
			text = append(text, all[:end]...)
		}
		all = all[end:]
	}
	return text[:whole(text, Limit)]
}

// appendTranslations appends a catalogue without its comments and the English texts (msgctxt, msgid, msgid_plural).
func appendTranslations(dst, catalogue []byte) []byte {
	english := false
	for line := range bytes.Lines(catalogue) {
		switch {
		case bytes.HasPrefix(line, []byte("#")):
			continue
		case bytes.HasPrefix(line, []byte("msgid")), bytes.HasPrefix(line, []byte("msgctxt")):
			english = true
		case !bytes.HasPrefix(line, []byte(`"`)):
			english = false
		}
		if !english {
			dst = append(dst, line...)
		}
	}
	return dst
}
