package hfjson

import (
	"math"
	"strconv"
	"sync"

	"github.com/unfray/unfray/tokenizer/internal/jsonscan"
)

// float takes a number as serde_json 1.0 reads it without its feature
// float_roundtrip, which is how the reference is built: up to about 19 digits
// are gathered into an integer, which is then scaled by one multiplication or
// division. The result may be the neighbour of the nearest float64. Sums of
// Unigram scores depend on it.
func (s *scanner) float() (float64, error) {
	text, err := s.Number()
	if err != nil {
		return 0, err
	}
	digits := text.Of(s.Data())
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	significand, exponent, rest := gather(digits)
	if len(rest) > 0 { // e or E
		exponent += writtenExponent(rest[1:])
	}
	f, ok := scale(float64(significand), exponent)
	if !ok {
		return 0, jsonscan.Fail(ErrInvalid, int(text.Off), "a number beyond all float64")
	}
	if negative {
		f = -f
	}
	return f, nil
}

// gather reads the digits before and after the point. Once the significand
// would overflow, further digits only count as places.
func gather(digits []byte) (significand uint64, exponent int, rest []byte) {
	point, full := false, false
	for i, c := range digits {
		switch {
		case c == '.':
			// Digits after the point are tried anew: a smaller one may fit.
			point, full = true, false
			continue
		case c == 'e' || c == 'E':
			return significand, exponent, digits[i:]
		}
		d := uint64(c - '0')
		if full || significand > (math.MaxUint64-d)/10 {
			full = true
			if !point {
				exponent++
			}
			continue
		}
		significand = significand*10 + d
		if point {
			exponent--
		}
	}
	return significand, exponent, nil
}

// writtenExponent reads what follows the e. Anything above a million is one:
// the file has fewer digits to make up for it.
func writtenExponent(text []byte) int {
	negative := text[0] == '-'
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	n := 0
	for _, c := range text {
		n = min(n*10+int(c-'0'), 1<<30)
	}
	if negative {
		return -n
	}
	return n
}

// scale is f × 10^exponent. It reports false for a result that is infinite.
func scale(f float64, exponent int) (float64, bool) {
	if f == 0 {
		return 0, true
	}
	for exponent < -308 && f != 0 {
		f /= 1e308
		exponent += 308
	}
	switch {
	case f == 0:
		return 0, true
	case exponent > 308:
		return 0, false
	case exponent >= 0:
		f *= powersOfTen()[exponent]
	default:
		f /= powersOfTen()[-exponent]
	}
	return f, !math.IsInf(f, 0)
}

// powersOfTen holds 10^0 to 10^308, each the nearest float64, which
// [math.Pow10] does not promise.
var powersOfTen = sync.OnceValue(func() *[309]float64 {
	var table [309]float64
	for i := range table {
		table[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return &table
})
