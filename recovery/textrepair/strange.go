package textrepair

import "unicode"

// A class groups characters by what may stand beside them in text that is as it was written.
type class uint8

const (
	spaceClass    class = iota // also line ends and both ends of the text
	plainClass                 // ASCII punctuation, and what goes with anything
	digitClass                 // ASCII digits
	asciiLower                 // letters from here
	asciiUpper                 //
	latinLower                 //
	latinUpper                 //
	greekLetter                //
	cyrillicLower              //
	cyrillicUpper              //
	scriptLetter               // of another script in common use
	hanLetter                  // ideographs, kana, hangul and bopomofo; the last letter
	markClass                  // combining marks
	openClass                  // what stands before a word
	closeClass                 // what stands behind a word
	signClass                  // ® ™ ª º: behind a word, less often
	symbolClass                // what touches no letters: ¤ ¦ ¨ ≠ …
	mathClass                  //
	currencyClass              //
	numberClass                // ¹ ½ ₂
	boxClass                   // box drawing and blocks
	tieClass                   // no-break space
	softClass                  // soft hyphen, zero-width characters
	pictureClass               // emoji, arrows, dingbats
	replacedClass              // U+FFFD
	controlClass               // C1 controls
	rareClass                  // of scripts and blocks hardly in use
)

func (c class) letter() bool { return c >= asciiLower && c <= hanLetter }

func (c class) cyrillic() bool { return c == cyrillicLower || c == cyrillicUpper }

func (c class) latin() bool { return c >= asciiLower && c <= latinUpper }

func (c class) lower() bool { return c == asciiLower || c == latinLower || c == cyrillicLower }

func (c class) upper() bool { return c == asciiUpper || c == latinUpper || c == cyrillicUpper }

var lowClasses = func() (t [0x100]class) {
	for r := range t {
		switch r := rune(r); {
		case r == ' ' || r == '\n' || r == '\t' || r == '\r':
			t[r] = spaceClass
		case r >= '0' && r <= '9':
			t[r] = digitClass
		case r >= 'a' && r <= 'z':
			t[r] = asciiLower
		case r >= 'A' && r <= 'Z':
			t[r] = asciiUpper
		case r < 0x80:
			t[r] = plainClass
		case r < 0xA0:
			t[r] = controlClass
		case r >= 0xC0 && r != 0xD7 && r != 0xF7:
			t[r] = latinUpper
			if r >= 0xDF {
				t[r] = latinLower
			}
		default:
			t[r] = symbolClass
		}
	}
	for c, s := range map[class]string{
		openClass: "«¡¿", closeClass: "»", signClass: "®ªº", currencyClass: "¢£¥", numberClass: "²³¹¼½¾",
		tieClass: "\u00a0", softClass: "\u00ad",
	} {
		for _, r := range s {
			t[r] = c
		}
	}
	return t
}()

// classOf returns the class of a character.
func classOf(r rune) class {
	if uint32(r) < lastPlane {
		return classes[r]
	}
	if r < 0 {
		return spaceClass
	}
	return findClass(r)
}

var classes = func() (t [lastPlane]class) {
	for r := range t {
		t[r] = findClass(rune(r))
	}
	return t
}()

func findClass(r rune) class {
	switch {
	case r < 0x100:
		return lowClasses[r]
	case r < 0x180, r >= 0x1A0 && r <= 0x1A1, r == 0x1AF, r == 0x1B0, r >= 0x1CD && r <= 0x1DC, r >= 0x218 && r <= 0x21B,
		r >= 0x1E00 && r < 0x1F00:
		if unicode.IsUpper(r) {
			return latinUpper
		}
		if r == 0x192 || r == 0x17F {
			return rareClass
		}
		return latinLower
	case r == 0x192: // ƒ
		return symbolClass
	case r < 0x370:
		if r >= 0x300 {
			return markClass
		}
		if r >= 0x2B0 {
			return symbolClass
		}
		return rareClass
	case r < 0x530:
		return europeanClass(r)
	case r >= 0x2000 && r < 0x2C00, r >= 0xFE00 && r < 0xFE10, r >= 0x1F000 && r < 0x1FB00:
		return symbolBlockClass(r)
	case r >= 0x3000 && r < 0x3040, r >= 0xFF00 && r < 0xFF66:
		return plainClass
	}
	return scriptClass(r)
}

func europeanClass(r rune) class {
	switch {
	case r < 0x400:
		if unicode.Is(unicode.Greek, r) && unicode.IsLetter(r) && r < 0x3D0 {
			return greekLetter
		}
		return symbolClass
	case r >= 0x460 && r < 0x490:
		return rareClass // of old texts
	case r >= 0x500:
		return rareClass
	case unicode.IsUpper(r):
		return cyrillicUpper
	}
	return cyrillicLower
}

func symbolBlockClass(r rune) class {
	switch {
	case r == 0x2018, r == 0x201A, r == 0x201C, r == 0x201E, r == 0x2039:
		return openClass
	case r == 0x2019, r == 0x201D, r == 0x203A, r >= 0x2010 && r <= 0x2015, r == 0x2026, r == 0x2032, r == 0x2033:
		return closeClass
	case r == 0x200B, r == 0x200C, r == 0x200D, r == 0x200E, r == 0x200F, r == 0x2060:
		return softClass
	case r == 0x202F, r == 0x2002, r == 0x2003, r == 0x2009, r == 0x200A:
		return tieClass
	case r < 0x2070:
		if r == 0x2022 {
			return plainClass
		}
		return symbolClass
	case r < 0x20A0:
		return numberClass
	case r < 0x20D0:
		return currencyClass
	case r < 0x2100:
		return markClass
	case r == 0x2122:
		return signClass
	case r < 0x2150:
		return symbolClass
	case r < 0x2190:
		return numberClass
	case r == '◊':
		return mathClass
	case r < 0x2200, r >= 0x25A0:
		return pictureClass
	case r < 0x2400:
		return mathClass
	case r >= 0x2500:
		return boxClass
	}
	return pictureClass
}

// scripts in common use beyond Latin, Greek and Cyrillic.
var scripts = []*unicode.RangeTable{
	unicode.Armenian, unicode.Hebrew, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Thai,
	unicode.Lao, unicode.Tibetan, unicode.Myanmar, unicode.Georgian, unicode.Ethiopic, unicode.Khmer,
}

func scriptClass(r rune) class {
	switch {
	case r >= 0x3040 && r < 0x3100, r >= 0x3105 && r < 0x3130, r >= 0x4E00 && r < 0xA000, r >= 0xAC00 && r < 0xD7A4, r >= 0x3400 && r < 0x4DC0:
		return hanLetter
	case r == 0xFFFD:
		return replacedClass
	case r >= 0xFB00 && r < 0xFB07: // ligatures
		return latinLower
	case r == 0xFEFF, r >= 0xE0020 && r < 0xE0080:
		return softClass
	case r >= 0xFE10 && r < 0xFFF0, r == 0x5EF: // presentation forms, specials, a sign for two letters
		return rareClass
	case unicode.In(r, scripts...):
		if unicode.IsMark(r) {
			return markClass
		}
		return scriptLetter
	case unicode.IsPunct(r) || unicode.IsDigit(r):
		return plainClass
	}
	return rareClass
}

// scriptOf tells scripts apart within scriptLetter: the range table's number.
func scriptOf(r rune) int {
	for i, t := range scripts {
		if unicode.Is(t, r) {
			return i
		}
	}
	return -1
}

// strangeness says how unlikely it is that characters lo to hi of a text, beside the two around them, are what was
// written. It has no unit: 1 is something seldom seen, 3 something hardly ever seen.
func strangeness(text []cell, lo, hi int) int {
	at := func(i int) (rune, class) {
		if i < 0 || i >= len(text) {
			return -1, spaceClass
		}
		return text[i].r, classOf(text[i].r)
	}
	sum := 0
	ra, a := at(lo - 1)
	for i := lo; i <= hi; i++ {
		rb, b := at(i)
		rc, c := at(i + 1)
		sum += pair(ra, rb, a, b, c)
		if i < hi {
			sum += alone(ra, rb, rc, a, b, c)
		}
		if (ra == 'Ä' || ra == 'Å') && (rb == 'Œ' || rb == 'œ' || rb == 'Ÿ') { // of no orthography
			sum += 3
		}
		if ra == 'Ã' || ra == 'Â' {
			_, first := at(i - 3)
			_, second := at(i - 2)
			sum += behindMojibakeLead(rb, first.upper() && second.upper(), b, c)
		}
		ra, a = rb, b
	}
	return sum
}

// behindMojibakeLead adds to pair for the two letters that English and French mojibake is full of.
func behindMojibakeLead(r rune, capitals bool, b, next class) int {
	switch {
	case b == tieClass && !next.upper() && !capitals: // à
		return 2
	case r == 'Š' || r == 'Œ' || r == 'Ž' || r == 'š' || r == 'œ' || r == 'ž' || r == 'Ÿ': // of no orthography
		return 2
	}
	return 0
}

// alone is how strange a character is by itself, where its neighbours do not explain it.
func alone(before, r, after rune, b, c, a class) int {
	switch c {
	case controlClass:
		return 8
	case rareClass:
		return 6
	case replacedClass:
		return 2
	case symbolClass, currencyClass, numberClass, softClass, mathClass:
		return 1
	case latinUpper:
		if r == 'Ã' || r == 'Â' {
			return 1
		}
	case greekLetter:
		if b != greekLetter && a != greekLetter && b != markClass && a != markClass {
			return 1
		}
	case cyrillicLower, cyrillicUpper:
		if !b.cyrillic() && !a.cyrillic() {
			return 3
		}
	case hanLetter:
		if b != hanLetter && a != hanLetter {
			return 6
		}
	case scriptLetter:
		s := scriptOf(r)
		same := (b == scriptLetter || b == markClass) && scriptOf(before) == s || (a == scriptLetter || a == markClass) && scriptOf(after) == s
		if !same {
			return 6
		}
	case markClass:
		switch {
		case b == spaceClass, b.letter() && r >= 0x300 && r < 0x370 && !accent(r):
			return 3
		case r >= 0x590 && r < 0x2000 && (b != scriptLetter && b != markClass || scriptOf(before) != scriptOf(r)):
			return 4
		}
	}
	return 0
}

// accent reports whether a combining mark is in use for accents, as text in NFD or with stacked ones has them.
func accent(r rune) bool {
	return r <= 0x30C || r == 0x31B || r >= 0x323 && r <= 0x328 || r >= 0x32D && r <= 0x338
}

// pair is how strange it is that b follows a, where next comes behind b.
func pair(ra, rb rune, a, b, next class) int {
	switch {
	case ra == 'ß' && b == asciiUpper:
		return 0
	case a.letter() && b.letter():
		return letterPair(a, b)
	case a.letter():
		return behindLetter(ra, rb, a, b, next)
	case b.letter():
		return beforeLetter(ra, rb, a, b)
	case b == boxClass && a != boxClass && a > digitClass, a == boxClass && b != boxClass && b > digitClass:
		return 3
	case b == markClass:
		if a == symbolClass || a == currencyClass {
			return 3
		}
	case a == symbolClass:
		switch b {
		case symbolClass, currencyClass, openClass, mathClass:
			return 2
		case closeClass, signClass, numberClass:
			return 1
		}
	case a == currencyClass:
		switch b {
		case openClass, numberClass:
			return 3
		case closeClass, signClass, symbolClass, currencyClass:
			return 2
		}
	case b == symbolClass || b == mathClass:
		switch a {
		case openClass, closeClass, numberClass, signClass:
			return 2
		}
	case b == currencyClass:
		switch a {
		case closeClass, numberClass, signClass:
			return 2
		case openClass:
			return 1
		}
	case a == signClass && b == openClass:
		return 2
	case a == openClass && b == closeClass, a == closeClass && b == openClass, a == closeClass && b == digitClass && ra != 0x2019, a == closeClass && b == numberClass:
		return 1
	}
	return 0
}

func letterPair(a, b class) int {
	switch {
	case a.latin() && b.latin():
		switch {
		case a.lower() && b == latinUpper:
			return 3
		case a == latinLower && b == asciiUpper:
			return 3
		case a == asciiUpper && b == latinLower:
			return 0
		}
		return 0
	case a.cyrillic() && b.cyrillic():
		if a.lower() && b.upper() {
			return 3
		}
		return 0
	case a == b:
		return 0
	case a == greekLetter && b.latin(), a.latin() && b == greekLetter:
		return 1
	}
	return 4
}

func behindLetter(ra, rb rune, a, b, next class) int {
	known := a == asciiLower || a == asciiUpper
	switch b {
	case symbolClass:
		if rb == '´' || rb == '·' || rb == '¨' && a == greekLetter {
			return 1
		}
		if a == latinUpper && (rb == 'ƒ' || rb == 'ˆ' || rb == '˜') {
			return 4
		}
		return 3
	case mathClass, boxClass:
		return 3
	case currencyClass:
		return 3
	case openClass:
		if next.letter() || rb == '¿' || rb == '¡' {
			return 3
		}
		return 1
	case numberClass:
		if known {
			return 1
		}
		return 2
	case signClass:
		return 1
	case digitClass:
		if !known && a != greekLetter && a != hanLetter && a != scriptLetter {
			return 1
		}
	case pictureClass:
		return 1
	case replacedClass:
		return 0
	}
	return 0
}

func beforeLetter(ra, rb rune, a, b class) int {
	switch a {
	case symbolClass:
		if ra == '´' || ra == '·' || ra == 'ƒ' || ra == '¨' && b == greekLetter || ra == '°' && b == asciiUpper {
			return 1
		}
		return 3
	case mathClass, numberClass, boxClass:
		return 3
	case currencyClass:
		if b == asciiUpper || b == asciiLower {
			return 2
		}
		return 3
	case closeClass:
		switch ra {
		case 0x2019: // also an apostrophe
			return 0
		case 0x2013, 0x2014, 0x2010, 0x2011, 0x2026:
			return 1
		}
		return 2
	case signClass:
		return 2
	case digitClass:
		if b == latinUpper || b == latinLower || b.cyrillic() {
			return 1
		}
	}
	return 0
}
