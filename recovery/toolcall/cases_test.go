package toolcall

import (
	"encoding/json"
	"strings"
)

// wantCall is a call as it should be found: its arguments are compared as JSON values.
type wantCall struct {
	name, args, id string
}

// formatCase is a text in one of the formats.
type formatCase struct {
	name   string
	format Format
	text   string
	want   []wantCall
	rest   string
}

func tool(name string, properties ...string) Tool {
	var b strings.Builder
	for i, p := range properties {
		if i > 0 {
			b.WriteByte(',')
		}
		key, typ, _ := strings.Cut(p, ":")
		b.WriteString(`"` + key + `":{"type":"` + typ + `"}`)
	}
	return Tool{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{` + b.String() + `}}`)}
}

// tools are those of all tests.
var tools = []Tool{
	tool("get_weather", "city:string", "metric:string", "days:integer"),
	tool("f", "x:integer"),
	tool("g", "y:string", "on:boolean", "list:array", "o:object"),
	tool("write_file", "path:string", "content:string"),
	tool("get_time"),
	tool("vid", "video_id:string", "x:object"),
}

const (
	paris  = `{"city":"Paris"}`
	berlin = `{"city":"Berlin","days":3}`
)

// formatCases are whole and well-formed texts.
var formatCases = []formatCase{
	{"hermes", Hermes, "Let me see.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", []wantCall{{"get_weather", paris, ""}}, "Let me see.\n"},
	{"hermes several", Hermes, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1.10}}\n</tool_call>", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1.10}`, ""}}, ""},
	{"hermes several in a tag", Hermes, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"hermes no end", Hermes, `<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"hermes no end, more", Hermes, "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"hermes parameters", Hermes, `<tool_call>{"name": "get_weather", "parameters": {"city": "Paris"}}</tool_call>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"hermes arguments first", Hermes, `<tool_call>{"arguments": {"city": "Paris"}, "name": "get_weather"}</tool_call>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"hermes double", Hermes, `<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}</tool_call>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"hermes marker in a string", Hermes, `<tool_call>{"name": "g", "arguments": {"y": "a </tool_call> b <tool_call> c"}}</tool_call> done`, []wantCall{{"g", `{"y":"a </tool_call> b <tool_call> c"}`, ""}}, " done"},
	{"hermes python in a tag", Pythonic, `<tool_call>get_weather(city="Paris")</tool_call>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"hermes fence in a tag", Hermes, "<tool_call>\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n</tool_call>", []wantCall{{"get_weather", paris, ""}}, ""},
	{"hermes no arguments", Hermes, `<tool_call>{"name": "get_time"}</tool_call>`, []wantCall{{"get_time", `{}`, ""}}, ""},
	{"nemotron", Hermes, `<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</TOOLCALL>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"end tag alone", Llama3JSON, "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", []wantCall{{"get_weather", paris, ""}}, ""},
	{"qwen3 coder", Qwen3Coder, "<tool_call>\n<function=get_weather>\n<parameter=city>\nBerlin\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", []wantCall{{"get_weather", berlin, ""}}, ""},
	{"qwen3 coder code", Qwen3Coder, "I write it.\n<tool_call>\n<function=write_file>\n<parameter=path>\na.html\n</parameter>\n<parameter=content>\n<p>\n  \"x\" < é\n</p>\n\n</parameter>\n</function>\n</tool_call>", []wantCall{{"write_file", `{"path":"a.html","content":"<p>\n  \"x\" < é\n</p>\n"}`, ""}}, "I write it.\n"},
	{"qwen3 coder bare", Qwen3Coder, "<function=g>\n<parameter=on>\nTrue\n</parameter>\n<parameter=list>\n[1, 2]\n</parameter>\n<parameter=y>\n5\n</parameter>\n</function>", []wantCall{{"g", `{"on":true,"list":[1,2],"y":"5"}`, ""}}, ""},
	{"qwen3 coder none", Qwen3Coder, "<tool_call>\n<function=get_time>\n</function>\n</tool_call>", []wantCall{{"get_time", `{}`, ""}}, ""},
	{"seed", Qwen3Coder, "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>", []wantCall{{"get_weather", paris, ""}}, ""},
	{"llama tag", Llama3JSON, `<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}<|eom_id|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"llama bare", Llama3JSON, `{"name": "get_weather", "parameters": {"city": "Paris"}}`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"llama typed", Llama3JSON, `{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"llama several", Llama3JSON, `{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "f", "parameters": {"x": 1}}`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"llama several behind a tag", Llama3JSON, `<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}};{"name": "f", "parameters": {"x": 1}}`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"llama lines", Llama3JSON, "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\n{\"name\": \"f\", \"parameters\": {\"x\": 1}}\n", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, "\n"},
	{"llama behind prose", Llama3JSON, "I'll look it up.\n\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}", []wantCall{{"get_weather", paris, ""}}, "I'll look it up.\n\n"},
	{"llama array", Llama3JSON, `[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "f", "arguments": {"x": 1}}]`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"llama builtin", Llama3JSON, `<|python_tag|>get_weather.call(city="Paris")<|eom_id|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"pythonic", Pythonic, `[get_weather(city="Berlin", days=3), f(x=1)]`, []wantCall{{"get_weather", berlin, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"pythonic values", Pythonic, `[g(y='it\'s', on=False, list=[1, -2.5, None, ("a",)], o={'k': "v", 2: 'é\n'})]`, []wantCall{{"g", `{"y":"it's","on":false,"list":[1,-2.5,null,["a"]],"o":{"k":"v","2":"é\n"}}`, ""}}, ""},
	{"pythonic strings", Pythonic, `[write_file(path=r"C:\new", content="""a "b", (c)
d""" 'e')]`, []wantCall{{"write_file", `{"path":"C:\\new","content":"a \"b\", (c)\nde"}`, ""}}, ""},
	{"pythonic none", Pythonic, `[get_time()]`, []wantCall{{"get_time", `{}`, ""}}, ""},
	{"pythonic without brackets", Pythonic, `get_weather(city="Paris")`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"lfm2", Pythonic, `<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>It is`, []wantCall{{"get_weather", paris, ""}}, "It is"},
	{"llama4", Pythonic, `<|python_start|>[get_weather(city="Paris")]<|python_end|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"mistral", Mistral, `[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "VvvODy9mT"}]`, []wantCall{{"get_weather", paris, "VvvODy9mT"}}, ""},
	{"mistral several", Mistral, `[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "f", "arguments": {"x": 1}}]</s>`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"mistral args", Mistral, `[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"mistral args several", Mistral, `Hm.[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"x": 1}`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, "abcdefghi"}}, "Hm."},
	{"mistral brace", Mistral, `[TOOL_CALLS]get_weather{"city": "Paris"}`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"deepseek v3", DeepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"deepseek v3.1", DeepSeek, "Look:<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, "Look:"},
	{"deepseek r1 variants", DeepSeek, "<｜tool_calls_begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []wantCall{{"get_weather", paris, ""}}, ""},
	{"kimi", Kimi, `Fine.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_call_begin|>functions.f:1<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|><|tool_calls_section_end|>`, []wantCall{{"get_weather", paris, "functions.get_weather:0"}, {"f", `{"x":1}`, "functions.f:1"}}, "Fine."},
	{"granite 3.0", Granite, `<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"granite 3.1", Granite, `<tool_call>[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "f", "arguments": {"x": 1}}]`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"granite 20b", Granite, `<function_call> {"name": "get_weather", "arguments": {"city": "Paris"}} <function_call> {"name": "f", "arguments": {"x": 1}}`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"functionary 3.2", Functionary, ">>>get_weather\n{\"city\": \"Paris\"}>>>f\n{\"x\": 1}", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"functionary text", Functionary, ">>>all\nLet me see.\n>>>get_weather\n{\"city\": \"Paris\"}", []wantCall{{"get_weather", paris, ""}}, "Let me see.\n"},
	{"functionary without marker", Functionary, "get_weather\n{\"city\": \"Paris\"}\n>>>f\n{\"x\": 1}", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"functionary 3.1", Functionary, `<function=get_weather>{"city": "Paris"}</function><function=f>{"x": 1}</function>`, []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"command r7b", CommandR, "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\n]<|END_ACTION|>", []wantCall{{"get_weather", paris, "0"}}, ""},
	{"command r", CommandR, "Action: ```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\": \"Paris\"}\n    }\n]\n```", []wantCall{{"get_weather", paris, ""}}, ""},
	{"glm", GLM, "On it.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Berlin</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", []wantCall{{"get_weather", berlin, ""}}, "On it.\n"},
	{"glm compact", GLM, "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call><tool_call>get_time</tool_call>", []wantCall{{"get_weather", paris, ""}, {"get_time", `{}`, ""}}, ""},
	{"harmony", Harmony, `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"harmony without namespace", Harmony, `<|channel|>commentary to=get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"harmony recipient first", Harmony, `<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"harmony started", Harmony, `<|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>{"city": "Paris"}<|call|>`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"invoke", Invoke, "<function_calls>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Berlin</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</function_calls>", []wantCall{{"get_weather", berlin, ""}}, ""},
	{"invoke prefixed", Invoke, "<" + antml + "function_calls><" + antml + "invoke name=\"get_weather\"><" + antml + "parameter name=\"city\">Paris</" + antml + "parameter></" + antml + "invoke></" + antml + "function_calls>", []wantCall{{"get_weather", paris, ""}}, ""},
	{"minimax", Invoke, "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n<invoke name=\"f\">\n<parameter name=\"x\">1</parameter>\n</invoke>\n</minimax:tool_call>", []wantCall{{"get_weather", paris, ""}, {"f", `{"x":1}`, ""}}, ""},
	{"deepseek v3.2", Invoke, "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", []wantCall{{"get_weather", paris, ""}}, ""},
	{"openai", OpenAI, `{"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]}`, []wantCall{{"get_weather", paris, "call_1"}}, ""},
	{"openai function_call", OpenAI, `{"function_call": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}`, []wantCall{{"get_weather", paris, ""}}, ""},
	{"openai message", OpenAI, `{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}, {"id": "call_2", "type": "function", "function": {"name": "get_time", "arguments": ""}}]}`, []wantCall{{"f", `{"x":1}`, "call_1"}, {"get_time", `{}`, "call_2"}}, ""},
}
