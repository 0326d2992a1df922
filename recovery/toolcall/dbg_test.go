package toolcall
import ("testing";"fmt")
func TestDbg(t *testing.T){
 for _,s:=range []string{
 `<tool_call>{"name": "f", "arguments": {"x": 1}} trailing</tool_call> after`,
 "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n<tool_call>\n",
 "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 2}}\n<tool_call>",
 `<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>, <tool_call>{"name": "f", "arguments": {"x": 2}}</tool_call>`,
 `<tool_call>{"function": "f", "arguments": {"x": 1}}</tool_call>`,
 `<tool_call>{"name": "f", "x": 1}</tool_call>`,
 `<tool_call>{"f": {"x": 1}}</tool_call>`,
 `<tool_call>f{"x": 1}</tool_call>`,
 "<tool_call>f\n{\"x\": 1}\n</tool_call>",
 `<tool_call>name: f, arguments: {"x": 1}</tool_call>`,
 `[TOOL_CALLS]f{"x": 1}g{"y":"a"}`,
 `[TOOL_CALLS]f[ARGS]{"x": 1}, g[ARGS]{"y":"a"}`,
 `<function=f>{"x": 1}`,
 "```json\n[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}}]\n```",
 `Sure! {"name": "f", "parameters": {"x": 1}}`,
 "Sure!\n\n{\"name\": \"f\", \"parameters\": {\"x\": 1}}\n\nLet me know.",
 "{\"name\": \"f\", \"parameters\": {\"x\": 1}}\n\nLet me know.",
 `{"name": "f", "parameters": {"x": 1}}{"name": "g", "parameters": {"y": "1"}}`,
 `{"name": "f", "parameters": {"x": 1}}, {"name": "g", "parameters": {"y": "1"}}`,
 `f(x=1)`,
 `[f(x=1)]; [g(y="a")]`,
 `[f(x=1), g(y="a")] done`,
 `<|python_tag|>f(x=1)`,
 `<|python_tag|>print(1)`,
 `{"type": "function", "function": {"name": "f", "parameters": {"x": "1"}}}`,
 `{"name": "f", "parameters": "{\"x\": 1}"}`,
 `{"name": "f", "parameters": {"x": 1}`,
 `{name: "f", parameters: {x: 1}}`,
 `<tool_call>{"name": "f", "arguments": {"x": 1}</tool_call><tool_call>{"name": "g", "arguments": {"y": "q"}}</tool_call>`,
 `<tool_call>{"name": "g", "arguments": {"y": "abc}}</tool_call>`+"\n<tool_call>"+`{"name": "f", "arguments": {"x": 1}}</tool_call>`,
 `<tool_call>{"name": "g", "arguments": {"y": "abc}}</tool_call> and text`,
 "<tool_call>\n<function=g>\n<parameter=y>a</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=f>\n<parameter=x>3</parameter>\n</function>\n</tool_call>",
 `<tool_call>&lt;</tool_call>`,
 "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\":1}<|call|>",
 "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": 1}\n<｜tool▁call▁end｜>",
 `<tool_call>{"name": "f", "arguments": {"x": 1}}{"name": "f", "arguments": {"x": 1}}</tool_call>`,
 `{"tool_calls":[{"name":"f","arguments":{"x":1}}]}`,
 `{"query": "x", "tool_calls":[{"name":"f","arguments":{"x":1}}]}`,
 } {
 r:=Find([]byte(s),Options{Tools:tools})
 fmt.Printf("%s\n",s)
 for _,c:=range r.Calls { fmt.Printf("    %s %s %s complete=%v problem=%q repair=%v [%d,%d]\n",c.Format,c.Name,c.Arguments,c.Complete,c.Problem,repairOutcome(c),c.Start,c.End) }
 fmt.Printf("    rest %q\n",r.Rest)
 for _,f:=range r.Findings { fmt.Printf("    %v\n",f)}
 }
}
