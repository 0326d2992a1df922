package chattemplate

import (
	"fmt"
	"strings"
	"time"
)

// layouts are the codes of strftime in the C locale as layouts of package time.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002",
	'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'f': "000000",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'D': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
}

// strftime writes a time that has no zone, as datetime.now() has none. Codes
// that it does not know stay as they are.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		noPad := format[i] == '-' && i+1 < len(format)
		if noPad {
			i++
		}
		s := ""
		switch c := format[i]; c {
		case '%':
			s = "%"
		case 'n':
			s = "\n"
		case 't':
			s = "\t"
		case 'Z', 'z':
		case 'f':
			s = t.Format(".000000")[1:]
		case 'w':
			s = fmt.Sprint(int(t.Weekday()))
		case 'u':
			s = fmt.Sprint((int(t.Weekday())+6)%7 + 1)
		default:
			layout, ok := layouts[c]
			if !ok {
				b.WriteByte('%')
				if noPad {
					b.WriteByte('-')
				}
				b.WriteByte(c)
				continue
			}
			s = t.Format(layout)
		}
		if noPad {
			if s = strings.TrimLeft(s, "0 "); s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
	}
	return b.String()
}
