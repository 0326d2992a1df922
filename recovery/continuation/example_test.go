package continuation_test

import (
	"context"
	"fmt"

	"github.com/unfray/unfray/recovery/continuation"
)

// A text is cut back to the last whole member. The answer proves the seam by
// producing again what was cut off.
func ExampleJoin() {
	seam, err := continuation.Plan([]byte(`{"name": "Ann", "city": "San Fr`), continuation.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n%s\n", seam.Keep, seam.Require)
	for _, answer := range []string{` "city": "San Francisco"}`, ` Francisco"}`, `{"name": "Ann Lee"}`} {
		joined, err := continuation.Join(seam, []byte(answer))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s (%s)\n", joined.Text, joined.Proof)
	}
	// Output:
	// {"name": "Ann",
	//  "city": "San Fr
	// ancisco"} (reproduced)
	// continuation: byte 0: the answer does not produce again what was cut off, so that nothing shows that it goes on there
	// continuation: byte 0: the answer starts the text again, in other words
}

// Run asks until the text is complete, first as a continued message, then by a turn
// of the user.
func ExampleRun() {
	ask := func(_ context.Context, q continuation.Request) (continuation.Answer, error) {
		if q.Mode == continuation.Prefill {
			return continuation.Answer{}, fmt.Errorf("status 400: prefill is not supported")
		}
		return continuation.Answer{Text: []byte("up two cups of flour.\n3. Bake."), FinishReason: "stop"}, nil
	}
	o := continuation.Options{
		Modes:  []continuation.Mode{continuation.Prefill, continuation.Instruct},
		Answer: continuation.DetectOptions{FinishReason: "length"},
	}
	r := continuation.Run(context.Background(), []byte("1. Wash your hands.\n2. Measure up two cups of fl"), o, ask)
	fmt.Printf("%s\ncomplete: %v\n", r.Text, r.Complete)
	for _, a := range r.Attempts {
		fmt.Printf("%s: %s%s\n", a.Mode, a.Proof, a.Reason)
	}
	// Output:
	// 1. Wash your hands.
	// 2. Measure up two cups of flour.
	// 3. Bake.
	// complete: true
	// prefill: ask_failed
	// instruct: overlap
}

// What has been sent cannot be taken back: a joiner only adds to it.
func ExampleJoiner() {
	seam, err := continuation.Plan([]byte("The mill stood by the river, and the water be"), continuation.Options{})
	if err != nil {
		panic(err)
	}
	j := continuation.NewJoiner(seam)
	for _, piece := range []string{" the wa", "ter began", " to", " sing."} {
		if _, err := j.Write([]byte(piece)); err != nil {
			panic(err)
		}
		fmt.Printf("%q ", j.Take())
	}
	joined, err := j.Close()
	fmt.Println(joined.Proof, err)
	// Output: "" "gan" " to" " sing." reproduced <nil>
}
