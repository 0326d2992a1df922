package main

import (
	"io"
	"os"
	"strconv"

	"github.com/vbauerster/cupwriter"
)

// defaultColumns is the width of output that goes to no terminal.
const defaultColumns = 80

// display says how pictures are drawn on a writer.
type display struct {
	columns int
	colour  bool
}

// newDisplay takes the width from COLUMNS, else from the terminal. Colours are
// for terminals alone, and not where NO_COLOR or TERM=dumb asks for none.
func newDisplay(w io.Writer) display {
	d := display{columns: defaultColumns}
	if out := cupwriter.New(w, false); out.IsTerminal() {
		d.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if columns, _, err := out.GetTermSize(); err == nil && columns > 0 {
			d.columns = columns
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		d.columns = columns
	}
	return d
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool { return cupwriter.New(w, false).IsTerminal() }

// paint puts a text into a colour, an SGR parameter.
func (d display) paint(sgr, text string) string {
	if !d.colour || sgr == "" || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}
