package textrepair_test

import (
	"fmt"

	"github.com/unfray/unfray/recovery/textrepair"
)

func ExampleRepair() {
	r := textrepair.Repair([]byte("cd src &amp;&amp; make  # itâ€™s quick"), textrepair.Options{})
	fmt.Printf("%s\n", r.Text)
	for _, e := range r.Edits {
		fmt.Printf("%d %s: %q was %q\n", e.Offset, e.Kind, e.After, e.Before)
	}
	// Output:
	// cd src && make  # it’s quick
	// 7 entity: "&&" was "&amp;&amp;"
	// 28 mojibake: "’" was "â€™"
}

// Quotation marks that come to light inside a string do not end it.
func ExampleRepairJSON() {
	r := textrepair.RepairJSON([]byte(`{"said": "&quot;cafÃ©&quot;", "n": 1.0}`), textrepair.Options{})
	fmt.Printf("%s\n", r.Text)
	// Output:
	// {"said": "\"café\"", "n": 1.0}
}

func ExampleStream() {
	s := textrepair.NewStream(textrepair.Options{})
	for _, piece := range []string{"Plain text comes at once, ", "donâ", "€™t waits", " for the end of its line.\n"} {
		fmt.Printf("%q\n", s.Write([]byte(piece)))
	}
	fmt.Printf("%q\n", s.Close())
	// Output:
	// "Plain text comes at once, "
	// "don"
	// ""
	// "’t waits for the end of its line.\n"
	// ""
}
