package code_test

import (
	"fmt"
	"slices"

	"github.com/unfray/unfray/jsonrepair"
	"github.com/unfray/unfray/recovery/code"
)

func ExampleClose() {
	src := []byte("function greet(name) {\n  return `Hello ${name")
	edits, report := code.Close("js", src)
	fmt.Println(report.Language, report.Status, report.Closed)
	fmt.Printf("%s\n", jsonrepair.Apply(src, slices.Values(edits)))
	// Output:
	// javascript cut true
	// function greet(name) {
	//   return `Hello ${name}`
	// }
}

func ExampleCheck() {
	r := code.Check("python", []byte("def f(x):\n    return x[0)\n"), code.Options{})
	fmt.Println(r.Status, r.Problems[0].Line, r.Problems[0].Message)
	// Output: broken 2 this ) is where ] is expected
}

func ExampleCloseFence() {
	text := []byte("Here it is:\n\n```sh\nls -l")
	edits, open := code.CloseFence(text)
	fmt.Printf("%v %q\n", open, jsonrepair.Apply(text, slices.Values(edits)))
	// Output: true "Here it is:\n\n```sh\nls -l\n```"
}
