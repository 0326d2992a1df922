package loop_test

import (
	"fmt"
	"strings"

	"github.com/unfray/unfray/recovery/loop"
)

func ExampleDetector() {
	d := loop.New(loop.Options{})
	text := "The plan has two parts. "
	d.Write([]byte(text))
	for range 100 { // pieces of a stream
		piece := "First we look at the costs, and then we look at the benefits. "
		text += piece
		if l := d.Write([]byte(piece)); l != nil && l.Stop {
			fmt.Println(l.Kind, l.Copies, "times", l.Period, "bytes")
			fmt.Println(strings.TrimSpace(text[:l.Cut]))
			break
		}
	}
	// Output:
	// exact 5 times 62 bytes
	// The plan has two parts. First we look at the costs, and then we look at the benefits.
}
