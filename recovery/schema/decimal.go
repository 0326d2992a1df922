package schema

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// maxDigits bounds the numbers that are divided. Longer ones are no multiple of
// anything.
const maxDigits = 20000

// A decimal is a number as it is written: 0.digits × 10^exp, without zeros at
// either end of digits. Zero has no digits. Nothing is rounded, and 1e999999999
// takes no more memory than its text.
type decimal struct {
	negative bool
	digits   string
	exp      int64
}

// parseDecimal reads a number of JSON.
func parseDecimal(text string) decimal {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits = whole + fraction
	d.exp = int64(len(whole))
	if exponent != "" {
		e, err := strconv.ParseInt(strings.TrimPrefix(exponent, "+"), 10, 64)
		const limit = 1 << 60
		if err != nil || e > limit || e < -limit {
			e = limit
			if strings.HasPrefix(exponent, "-") {
				e = -limit
			}
		}
		d.exp += e
	}
	trimmed := strings.TrimLeft(d.digits, "0")
	d.exp -= int64(len(d.digits) - len(trimmed))
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// ratDecimal converts a rational that was written as a decimal.
func ratDecimal(r *big.Rat) *decimal {
	if r == nil {
		return nil
	}
	places, _ := r.FloatPrec()
	d := parseDecimal(r.FloatString(places))
	return &d
}

func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + "0." + d.digits + "e" + strconv.FormatInt(d.exp, 10)
}

func (d decimal) isInteger() bool { return int64(len(d.digits)) <= d.exp || d.digits == "" }

func (d decimal) compare(e decimal) int {
	sign := func(d decimal) int {
		switch {
		case d.digits == "":
			return 0
		case d.negative:
			return -1
		}
		return 1
	}
	s := sign(d)
	if t := sign(e); s != t || s == 0 {
		return cmp.Compare(s, t)
	}
	switch {
	case d.exp != e.exp:
		if d.exp < e.exp {
			return -s
		}
		return s
	default:
		return s * strings.Compare(d.digits, e.digits)
	}
}

// multipleOf reports whether d / m is an integer.
func (d decimal) multipleOf(m *big.Rat) bool {
	if d.digits == "" {
		return true
	}
	if len(d.digits) > maxDigits {
		return false
	}
	digits, _ := new(big.Int).SetString(d.digits, 10)
	scale := d.exp - int64(len(d.digits)) // the number is digits × 10^scale
	digits.Mul(digits, m.Denom())
	divisor := new(big.Int).Set(m.Num())
	ten := big.NewInt(10)
	if scale < 0 {
		if -scale > maxDigits {
			return false
		}
		divisor.Mul(divisor, new(big.Int).Exp(ten, big.NewInt(-scale), nil))
	} else {
		digits.Mul(digits, new(big.Int).Exp(ten, big.NewInt(scale), divisor))
	}
	return new(big.Int).Mod(digits, divisor).Sign() == 0
}

// integerText writes an integral number without fraction and exponent. It
// returns "" where that would take more than 40 digits.
func (d decimal) integerText() string {
	if !d.isInteger() || d.exp > 40 {
		return ""
	}
	if d.digits == "" {
		return "0"
	}
	text := d.digits + strings.Repeat("0", int(d.exp)-len(d.digits))
	if d.negative {
		return "-" + text
	}
	return text
}
