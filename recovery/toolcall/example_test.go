package toolcall_test

import (
	"encoding/json"
	"fmt"

	"github.com/unfray/unfray/recovery/toolcall"
)

var weather = toolcall.Tool{
	Name:       "get_weather",
	Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`),
}

func ExampleFind() {
	text := "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {'city': \"Oslo\", \"days\": 3}}\n</tool_call>"
	r := toolcall.Find([]byte(text), toolcall.Options{Tools: []toolcall.Tool{weather}})
	for _, c := range r.Calls {
		fmt.Println(c.Format, c.Name, string(c.Arguments), c.Outcome())
		for e := range c.Repair.Edits() {
			fmt.Printf("byte %d: %s: %q became %q\n", c.RepairAt+e.Offset, e.Kind, e.Before, e.After)
		}
	}
	fmt.Printf("%q\n", r.Rest)
	// Output:
	// hermes get_weather {"city": "Oslo", "days": 3} repaired
	// byte 63: quote: "'" became "\""
	// byte 68: quote: "'" became "\""
	// "Let me look.\n"
}

func ExampleStream() {
	s := toolcall.NewStream(toolcall.Options{Tools: []toolcall.Tool{weather}})
	show := func(text []byte, calls []toolcall.Delta) {
		if len(text) > 0 {
			fmt.Printf("text %q\n", text)
		}
		for _, d := range calls {
			fmt.Printf("call %d %s %q\n", d.Index, d.Name, d.Arguments)
			if d.End != nil {
				fmt.Println("it is", d.End.Outcome())
			}
		}
	}
	for _, piece := range []string{"Look: <", "function=get_weather>\n<parameter=ci", "ty>\nOs", "lo\n</parameter>\n<param"} {
		text, calls, err := s.Write([]byte(piece))
		if err != nil {
			fmt.Println(err)
			return
		}
		show(text, calls)
	}
	text, calls, _ := s.Close()
	show(text, calls)
	// Output:
	// text "Look: "
	// call 0 get_weather ""
	// call 0  "{\"city\": \"Os"
	// call 0  "lo\""
	// call 0  "}"
	// it is truncated
}

func ExampleArguments() {
	for _, raw := range []string{`{"city": "Os`, `{"city": Oslo"}`, `{}{"city":"Oslo"}`, ``} {
		a := toolcall.Arguments("get_weather", []byte(raw), toolcall.Options{})
		fmt.Println(a.Outcome, a.Malformed, string(a.Arguments))
	}
	// Output:
	// truncated false {"city": "Os"}
	// repaired true {"city": "Oslo"}
	// repaired false {"city":"Oslo"}
	// repaired false {}
}
