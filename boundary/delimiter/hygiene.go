package delimiter

import "github.com/unfray/unfray/boundary"

// strips are rules that take characters away from a part, the mildest first.
var strips = []struct {
	what  string
	bytes string
}{
	{"newlines", "\r\n"},
	{"blanks", " \t"},
	{"white space", " \t\r\n\v\f"},
}

// within reports whether all bytes of a set are in chars.
func within(set *boundary.ByteSet, chars string) bool {
	left := *set
	for i := range len(chars) {
		left[chars[i]>>6] &^= 1 << (chars[i] & 63)
	}
	return left == boundary.ByteSet{}
}

// rules lists what makes the separator unconditional: a strip that takes away
// every byte of the condition, else the kinds of characters that are safe.
func rules(v *Verdict) (list []Rule) {
	if !v.After.Always {
		if what := stripping(&v.After.Bytes); what != "" {
			list = append(list, Rule{Do: "strip leading " + what + " of the next part", Side: "after"})
		} else {
			w := firstBytes(nil)
			if _, out := kindsIn(&v.After.Bytes, &w); len(out) > 0 {
				list = append(list, Rule{Do: "let the next part begin with " + or(out), Side: "after"})
			}
		}
	}
	if v.Before.Bytes != (boundary.ByteSet{}) {
		if what := stripping(&v.Before.Bytes); what != "" {
			list = append(list, Rule{Do: "strip trailing " + what + " of the part before", Side: "before"})
		} else if _, out := endsIn(&v.Before); len(out) > 0 {
			list = append(list, Rule{Do: "let the part before end with " + or(out), Side: "before"})
		}
	}
	return list
}

// stripping is the mildest strip that leaves none of the bytes; "" if there is
// none.
func stripping(set *boundary.ByteSet) string {
	for _, s := range strips {
		if within(set, s.bytes) {
			return s.what
		}
	}
	return ""
}
