package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A spelledNumber is what a text may mean as a number.
type spelledNumber struct {
	text string // JSON
	cost int
}

const maxNumberText = 100 // bytes; a longer text is a number only as JSON writes it

var (
	jsonNumber    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	looseNumber   = regexp.MustCompile(`^(?:[0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	spaceGroups   = regexp.MustCompile(`^[0-9]{1,3}(?:( [0-9]{3})+|('[0-9]{3})+|(_[0-9]{3})+)([.,][0-9]+)?$`)
	commaGroups   = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+$`)
	commaThenDot  = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+\.[0-9]+$`)
	dotThenComma  = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{3})+,[0-9]+$`)
	dotGroups     = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{3}){2,}$`)
	indianGroups  = regexp.MustCompile(`^[0-9]{1,2}(,[0-9]{2})+,[0-9]{3}(\.[0-9]+)?$`)
	dotGroup      = regexp.MustCompile(`^-?[1-9][0-9]{0,2}\.[0-9]{3}$`)
	decimalComma  = regexp.MustCompile(`^[0-9]+,[0-9]+$`)
	trailingPoint = regexp.MustCompile(`^[0-9]+[.,]$`)
	currencySign  = regexp.MustCompile(`^(?:[$€£¥₹₩₽₺₫฿]|USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD|KRW|BRL|MXN|SEK|NOK|DKK|PLN)$`)
)

// spelledNumbers lists what s may mean as a number: none, one, or several, as of 1,234
// and of a percentage. Integers, if these are wanted, are written without a fraction.
func spelledNumbers(s string, integer bool) []spelledNumber {
	found := numberReadings(s, integer)
	found = slices.DeleteFunc(found, func(n spelledNumber) bool { return !jsonNumber.MatchString(n.text) })
	if !integer {
		return found
	}
	if strings.Contains(s, ",") && !strings.Contains(s, ".") {
		// Nobody writes 1,000 for one where whole numbers are asked for.
		found = slices.DeleteFunc(found, func(n spelledNumber) bool { return dotGroup.MatchString(n.text) })
	}
	for i, n := range found {
		// 3.0 is an integer, but many readers take it for none.
		whole := parseDecimal(n.text).integerText()
		if whole == "" {
			continue
		}
		found[i].text = whole
		if dotGroup.MatchString(n.text) {
			// 12.000 is twelve, or twelve thousand where points are between thousands.
			found = append(found, spelledNumber{strings.Replace(n.text, ".", "", 1), n.cost})
		}
	}
	return found
}

func numberReadings(s string, integer bool) []spelledNumber {
	if jsonNumber.MatchString(s) {
		return []spelledNumber{{s, costNumberPlain}}
	}
	if len(s) > maxNumberText {
		return nil
	}
	core := strings.TrimSpace(strings.Map(plainDigit, s))
	if jsonNumber.MatchString(core) {
		return []spelledNumber{{core, costNumberStyle}}
	}
	core, percent := strings.CutSuffix(core, "%")
	core, sign := cutSign(strings.TrimSpace(core))
	core, currency := cutCurrency(core)
	if sign == "" {
		core, sign = cutSign(core)
	}
	if percent && currency {
		return nil
	}
	var found []spelledNumber
	for _, n := range unsigned(core) {
		n.text = strings.TrimPrefix(sign, "+") + n.text
		if currency {
			n.cost = max(n.cost, costCurrency)
		}
		if percent {
			n.cost = costPercent
		}
		found = append(found, n)
		if percent && !integer {
			found = append(found, spelledNumber{hundredth(n.text), costPercent})
		}
	}
	return found
}

// plainDigit turns full-width digits, special spaces, the minus sign and the
// typographic apostrophe into those of ASCII.
func plainDigit(r rune) rune {
	switch {
	case r >= '０' && r <= '９':
		return r - '０' + '0'
	case r == '−':
		return '-'
	case r == '’':
		return '\''
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

func cutSign(s string) (rest, sign string) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return strings.TrimSpace(s[1:]), s[:1]
	}
	return s, ""
}

// cutCurrency takes a currency's sign or code from either end.
func cutCurrency(s string) (string, bool) {
	number := func(r rune) bool { return r >= '0' && r <= '9' || strings.ContainsRune("+-.,", r) }
	first, last := strings.IndexFunc(s, number), strings.LastIndexFunc(s, number)
	if first < 0 {
		return s, false
	}
	before, after := strings.TrimSpace(s[:first]), strings.TrimSpace(s[last+1:])
	switch {
	case before != "" && after == "" && currencySign.MatchString(before):
		return s[first:], true
	case before == "" && after != "" && currencySign.MatchString(after):
		return s[:last+1], true
	}
	return s, false
}

// unsigned lists what digits with separators may mean.
func unsigned(s string) []spelledNumber {
	drop := func(marks string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(marks, r) {
				return -1
			}
			return r
		}, s)
	}
	point := func(s string) string { return strings.Replace(s, ",", ".", 1) }
	one := func(text string, cost int) []spelledNumber {
		return []spelledNumber{{tidy(text), cost}}
	}
	switch {
	case s == "" || strings.IndexFunc(s, unicode.IsDigit) < 0:
		return nil
	case looseNumber.MatchString(s):
		return one(s, costNumberStyle)
	case trailingPoint.MatchString(s):
		return one(s[:len(s)-1], costNumberStyle)
	case spaceGroups.MatchString(s):
		return one(point(drop(" '_")), costNumberGroups)
	case commaThenDot.MatchString(s), indianGroups.MatchString(s):
		return one(drop(","), costNumberGroups)
	case dotThenComma.MatchString(s):
		return one(point(drop(".")), costNumberGroups)
	case dotGroups.MatchString(s):
		return one(drop("."), costNumberGroups)
	case commaGroups.MatchString(s):
		if strings.Count(s, ",") > 1 {
			return one(drop(","), costNumberGroups)
		}
		if strings.HasPrefix(s, "0") {
			return one(point(s), costNumberGroups)
		}
		// 1,234 is a thousand and more to some, little more than one to others.
		return append(one(drop(","), costNumberGroups), one(point(s), costNumberGroups)...)
	case decimalComma.MatchString(s):
		return one(point(s), costNumberGroups)
	}
	return nil
}

// tidy gives digits the form that JSON demands.
func tidy(s string) string {
	s = strings.TrimLeft(s, "0")
	if s == "" || s[0] < '0' || s[0] > '9' {
		s = "0" + s
	}
	return s
}

// hundredth divides by 100, exactly.
func hundredth(s string) string {
	s, sign := cutSign(s)
	if strings.ContainsAny(s, "eE") {
		return sign + s + "e-2" // not a number, so that nobody takes it
	}
	whole, fraction, _ := strings.Cut(s, ".")
	for len(whole) < 3 {
		whole = "0" + whole
	}
	digits := strings.TrimRight(whole[len(whole)-2:]+fraction, "0")
	text := tidy(whole[:len(whole)-2])
	if digits != "" {
		text += "." + digits
	}
	return sign + text
}

// boolean returns what s means as a boolean, "" if nothing, and its cost.
func boolean(s string) (text string, cost int) {
	switch word := strings.ToLower(trimMarks(s)); {
	case word == "true" || word == "false":
		return word, costTrueFalse
	case slices.Contains([]string{"yes", "y", "on", "1"}, word):
		return "true", costYesNo
	case slices.Contains([]string{"no", "n", "off", "0"}, word):
		return "false", costYesNo
	}
	return "", 0
}
