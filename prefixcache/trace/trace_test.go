package trace

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/vocab"
)

// data opens a file of the handed data, which is not in the repository.
func data(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open("../../../shared/data/" + name)
	if err != nil {
		t.Skipf("the handed data is not there: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// readAll reads a trace to its end or its first error.
func readAll(t testing.TB, src io.Reader, opt Options) ([]*Request, Stats, error) {
	t.Helper()
	r, err := NewReader(src, "t", opt)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Request
	for q, err := range r.All() {
		if err != nil {
			return all, r.Stats(), err
		}
		all = append(all, q.Clone())
	}
	return all, r.Stats(), nil
}

// show writes what a request tells, without what it does not.
func show(q *Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", q.Line)
	add := func(name string, v any, has bool) {
		if has {
			fmt.Fprintf(&b, " %s=%v", name, v)
		}
	}
	add("at", q.At, q.At != 0)
	add("id", q.ID, q.ID != "")
	add("conv", q.Conversation, q.Conversation != "")
	add("model", q.Model, q.Model != "")
	add("worker", q.Worker, q.Worker != "")
	add("blocks", q.Blocks, len(q.Blocks) > 0)
	add("size", q.BlockTokens, q.BlockTokens > 0)
	add("ids", q.IDs, len(q.IDs) > 0)
	add("text", fmt.Sprintf("%q", q.Text), q.Text != nil)
	add("messages", string(q.Messages), q.Messages != nil)
	add("tools", string(q.Tools), q.Tools != nil)
	add("in", q.PromptTokens, q.PromptTokens >= 0)
	add("out", q.OutputTokens, q.OutputTokens >= 0)
	add("output", fmt.Sprintf("%q", q.Output), q.Output != nil)
	add("output_ids", q.OutputIDs, len(q.OutputIDs) > 0)
	add("salt", q.Keys.Salt, q.Keys.Salt != "")
	add("lora", q.Keys.LoRA, q.Keys.LoRA != "")
	add("extra", q.Keys.Extra, q.Keys.Extra != "")
	add("cached", q.Cached, q.Cached >= 0)
	add("predicted", q.Predicted, q.Predicted >= 0)
	return b.String()
}

var formatTests = []struct {
	name   string
	format string // that is found
	opt    Options
	in     string
	want   []string
}{
	{"mooncake", "mooncake", Options{},
		`{"timestamp": 1000, "input_length": 1025, "output_length": 5, "hash_ids": [0, 1, 2]}` + "\n" +
			`{"timestamp": 2500, "input_length": 1024, "output_length": 6, "hash_ids": [0,1]}` + "\n",
		[]string{"1 blocks=[0 1 2] size=512 in=1025 out=5", "2 at=1.5s blocks=[0 1] size=512 in=1024 out=6"}},
	{"full blocks only", "mooncake", Options{BlockTokens: 4},
		`{"timestamp":0.5,"input_length":7,"output_length":0,"hash_ids":[9]}` + "\r\n\r\n" +
			`{"output_length":1,"hash_ids":[],"input_length":3,"timestamp":1.25}`,
		[]string{"1 blocks=[9] size=4 in=7 out=0", "3 at=750µs size=4 in=3 out=1"}},
	{"hashes of 64 bits and strings", "mooncake", Options{},
		`{"timestamp":0,"input_length":2048,"hash_ids":[18446744073709551615,-1,"a","\u0061"],"block_size":512}`,
		[]string{fmt.Sprintf("1 blocks=[18446744073709551615 18446744073709551615 %d %[1]d] size=512 in=2048", hash64([]byte("a")))}},
	{"block size of the line", "mooncake", Options{BlockTokens: 99},
		`{"block_size":64,"input_length":65,"output_length":1,"hash_ids":[10, 11]}`,
		[]string{"1 blocks=[10 11] size=64 in=65 out=1"}},
	{"qwen-bailian", "mooncake", Options{},
		`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 17, "output_length": 1, "type": "text", "turn": 1, "hash_ids": [5, 6]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 62.114, "input_length": 33, "output_length": 1, "type": "text", "turn": 2, "hash_ids": [5, 6, 5]}
{"chat_id": 3, "parent_chat_id": 2, "timestamp": 63.0, "input_length": 1, "output_length": 1, "type": "text", "turn": 3, "hash_ids": [5]}`,
		[]string{fmt.Sprintf("1 conv=1 blocks=%v size=16 in=17 out=1", chained(5, 6)),
			fmt.Sprintf("2 at=1s conv=1 blocks=%v size=16 in=33 out=1", chained(5, 6, 5)),
			fmt.Sprintf("3 at=1.886s conv=1 blocks=%v size=16 in=1 out=1", chained(5))}},
	{"timed trace of vLLM in seconds", "mooncake", Options{TimeUnit: time.Second, BlockTokens: 16},
		"{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1]}\n{\"timestamp\":3,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1]}",
		[]string{"1 blocks=[1] size=16 in=1 out=1", "2 at=2s blocks=[1] size=16 in=1 out=1"}},
	{"array of lines", "mooncake", Options{},
		"\xef\xbb\xbf[\n  {\"timestamp\": 0, \"input_length\": 1, \"hash_ids\": [1]},\n  {\"timestamp\": 1, \"input_length\": 1, \"hash_ids\": [2]}\n]\n",
		[]string{"2 blocks=[1] size=512 in=1", "3 at=1ms blocks=[2] size=512 in=1"}},

	{"vllm-bench", "vllm-bench", Options{},
		"{\"prompt\": \"What \\u00e9\\n\", \"output_tokens\": 10}\n{\"prompt\":\"\"}",
		[]string{`1 text="What é\n" out=10`, `2 text=""`}},

	{"sharegpt", "sharegpt", Options{},
		`[{"id":"a","conversations":[{"from":"system","value":"s"},{"from":"human","value":"one"},{"from":"gpt","value":"t\nwo"},
  {"from":"human","value":"three"}]},
 {"id":"b","conversations":[{"from":"gpt","value":"hi"}, {"value":"x","from":"user"},{"from":"user","value":"y"},{"from":"assistant","value":"z"}]},
 {"id":"c","conversations":[]}]`,
		[]string{
			`1 conv=a messages=[{"role":"system","content":"s"},{"role":"user","content":"one"}] output="t\nwo"`,
			`1 conv=a messages=[{"role":"system","content":"s"},{"role":"user","content":"one"},{"role":"assistant","content":"t\nwo"},{"role":"user","content":"three"}]`,
			`3 conv=b messages=[{"role":"assistant","content":"hi"},{"role":"user","content":"x"}]`,
			`3 conv=b messages=[{"role":"assistant","content":"hi"},{"role":"user","content":"x"},{"role":"user","content":"y"}] output="z"`,
		}},
	{"sharegpt lines", "sharegpt", Options{},
		`{"id":7,"conversations":[{"from":"human","value":"a"},{"from":"function_call","value":"f"},{"from":"observation","value":"o"},{"from":"gpt","value":"b"}]}`,
		[]string{
			`1 conv=7 messages=[{"role":"user","content":"a"}] output="f"`,
			`1 conv=7 messages=[{"role":"user","content":"a"},{"role":"assistant","content":"f"},{"role":"tool","content":"o"}] output="b"`,
		}},

	{"completions", "openai", Options{},
		`{"model":"m","prompt":"Once","timestamp":1700000000.5,"cache_salt":"s"}
{"model":"m","prompt":[1, 2,3],"timestamp":1700000001500}
{"model":"m","prompt":["a","b"],"timestamp":"2023-11-14T22:13:22.5Z","id":"q"}
{"model":"m","prompt":[[1,2],[3]],"ts":"2023-11-14T22:13:24+00:00","response":{"usage":{"prompt_tokens":3},"choices":[{"index":0,"text":"x"},{"index":1,"text":"y"},{"index":2,"text":"z","token_ids":[4]},{"index":3,"text":"w"}]}}`,
		[]string{
			`1 model=m text="Once" salt=s`,
			`2 at=1s model=m ids=[1 2 3]`,
			`3 at=2s id=q model=m text="a"`, `3 at=2s id=q model=m text="b"`,
			`4 at=3.5s model=m ids=[1 2] output="x"`, `4 at=3.5s model=m ids=[3] output="z"`,
		}},
	{"units of time", "openai", Options{},
		`{"prompt":"","created":1700000000}
{"prompt":"","time":1700000000250,"created":1}
{"prompt":"","ts":"1700000000500000"}
{"prompt":"","timestamp":1700000000750000000,"time":3}
{"prompt":"","created_at":"2023-11-14 22:13:21"}
{"prompt":"","timestamp":1.7000000015e9}`,
		[]string{`1 text=""`, `2 at=250ms text=""`, `3 at=500ms text=""`, `4 at=750ms text=""`, `5 at=1s text=""`, `6 at=1.5s text=""`}},
	{"a time unit", "openai", Options{TimeUnit: time.Millisecond}, `{"prompt":"","timestamp":5}` + "\n" + `{"prompt":"","timestamp":"7.5"}`,
		[]string{`1 text=""`, `2 at=2.5ms text=""`}},
	{"names and counts", "openai", Options{},
		`{"request_id":9,"session_id":"s","worker":"w","model":"m","prompt_token_ids":[1,2],"prompt_tokens":2,"completion_tokens":1,"cached_tokens":1,"output":"o","output_ids":[3]}
{"conversation_id":4,"prompt":"p","usage":{"input_tokens":7,"output_tokens":8,"input_tokens_details":{"cached_tokens":6}}}`,
		[]string{`1 id=9 conv=s model=m worker=w ids=[1 2] in=2 out=1 output="o" output_ids=[3] cached=1`,
			`2 conv=4 text="p" in=7 out=8 cached=6`}},
	{"parts of answers", "openai", Options{},
		`{"prompt":"p","timestamp":null,"response":{"created":5,"model":"r","choices":[{"prompt_token_ids":[4,5],"message":{"content":null}}],"text":null,"output_ids":7,"content":[1]}}
{"body":{"prompt":"p"},"created":6,"response":{"status_code":200,"body":{"choices":[{"text":"o"}],"usage":{"completion_tokens":1}}}}`,
		[]string{`1 model=r ids=[4 5] text="p"`, `2 at=1s text="p" out=1 output="o"`}},
	{"chat with its answer", "openai", Options{},
		`{"request":{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}],"cache_salt":"x"},
 "response":{"id":"c1","created":1700000000,"choices":[{"index":0,"message":{"role":"assistant","content":"ho"},"token_ids":[7,8]}],"prompt_token_ids":[5,6],
 "usage":{"prompt_tokens":2,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}}`,
		[]string{`1 model=m ids=[5 6] messages=[{"role":"user","content":"hi"}] tools=[{"type":"function"}] in=2 out=2 output="ho" output_ids=[7 8] salt=x cached=1`}},
	{"bodies as strings", "openai", Options{},
		`{"request":"POST /v1/completions","body":"{\"prompt\":[\"a\\n\",\"b\"],\"response\":7}","response":{"choices":[{"text":"\t"},{"text":"y"}]}}
{"body":"{\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9\"}]}","response":"x\n"}`,
		[]string{`1 text="a\n" output="\t"`, `1 text="b" output="y"`,
			`2 messages=[{"role":"user","content":"\u00e9"}] output="x\n"`}},
	{"batch api", "openai", Options{},
		`{"custom_id":"r1","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":["only"],"lora_path":"l","extra_key":"e"}}`,
		[]string{`1 id=r1 model=m text="only" lora=l extra=e`}},
	{"native bodies", "openai", Options{},
		`{"text":"sg","sampling_params":{}}
{"input_ids":[1],"response":{"text":"t","output_ids":[9],"meta_info":{"prompt_tokens":1,"completion_tokens":1,"cached_tokens":0}}}
{"inputs":"tgi","parameters":{"max_new_tokens":3},"response":"plain"}
{"prompt":"llama","n_predict":4,"response":{"content":"c","tokens":[3]}}`,
		[]string{`1 text="sg"`, `2 ids=[1] in=1 out=1 output="t" output_ids=[9] cached=0`, `3 text="tgi" output="plain"`, `4 text="llama" output="c" output_ids=[3]`}},

	{"the gateway's log", "unfray", Options{},
		`{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"listening","addr":":8080"}
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"A","method":"POST","path":"/v1/completions","model":"m","prompt_tokens":5,"completion_tokens":2,"cached_tokens":0,"predicted_cached_tokens":3,"boundary_loss_tokens":1,"prompt_ids":[1,2,3,4,5],"output_ids":[6,7],"status":200,"duration":1000000000}
{"time":"2026-01-01T00:00:11Z","level":"INFO","msg":"request","id":"B","model":"m","prompt_tokens":9,"completion_tokens":2,"cached_tokens":4,"status":200,"duration":8000000000}
{"time":"2026-01-01T00:00:12Z","level":"INFO","msg":"request","id":"C","path":"/health","status":200,"duration":1}
{"time":"2026-01-01T00:00:13Z","level":"INFO","msg":"request","id":"D","body":"{\"model\":\"m\",\"prompt\":[\"x\",\"\\u00e9\"]}","prompt_tokens":9,"completion_tokens":2,"cached_tokens":4,"status":200,"duration":0}
{"time":"2026-01-01T00:00:13Z","level":"INFO","msg":"request","id":"E","body":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","prompt_tokens":9,"completion_tokens":2,"cached_tokens":4,"status":200,"duration":0}
{"time":"2026-01-01T00:00:14Z","level":"INFO","msg":"request","id":"F","body":"{\"prompt\":[\"one\"]}","prompt_tokens":2,"prompt_ids":[8,9],"cache_salt":"z","duration":0}
{"time":"2026-01-01T00:00:14Z","level":"INFO","msg":"request","id":"G","body":"{\"prompt\":[[8]]}","prompt_tokens":2,"prompt_ids":[8,9],"duration":0}
{"time":"2026-01-01T00:00:14Z","level":"INFO","msg":"request","id":"H","body":"{\"input_prefix\":\"\"}","prompt_tokens":2,"duration":0}`,
		[]string{
			`3 id=B model=m in=9 out=2 cached=4`,
			`2 at=6s id=A model=m ids=[1 2 3 4 5] in=5 out=2 output_ids=[6 7] cached=0 predicted=3`,
			`5 at=10s id=D model=m text="x"`, `5 at=10s id=D model=m text="é"`,
			`6 at=10s id=E model=m messages=[{"role":"user","content":"q"}] in=9 out=2 cached=4`,
			`7 at=11s id=F ids=[8 9] text="one" in=2 salt=z`, `8 at=11s id=G ids=[8 9] in=2`, `9 at=11s id=H in=2`,
		}},

	{"the gateway's log from its start", "unfray", Options{},
		`unfray: m: /models/m.gguf, byte-level BPE, run by vllm at http://127.0.0.1:8000; its tokenizer was verified
unfray: listening on http://127.0.0.1:8080
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"A","method":"POST","path":"/v1/chat/completions","body":"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","status":200,"duration":1}
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"B","method":"POST","path":"/v1/completions","body":"{\"prompt\":\"const na\"}","prompt_tokens":3,"prompt_ids":[1,2],"status":200,"duration":1}
2026/01/01 00:00:10 http: TLS handshake error from 127.0.0.1:5: EOF
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"C","method":"POST","path":"/v1/chat/completions","status":200,"duration":1}
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"D","method":"POST","path":"/v1/completions","body":"{\"prompt\":[\"x\",\"y\"]}","status":200,"duration":1}
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"E","method":"POST","path":"/infill","body":"{\"input_prefix\":\"x\"}","status":200,"duration":1}
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"F","method":"POST","path":"/v1/completions","body":"{\"prompt\":\"x\"}","error":"no","status":503,"duration":1}
{"time":"2026-01-01T00:00:10Z","level":"INFO","msg":"request","id":"G","method":"GET","path":"/v1/models","status":200,"duration":1}`,
		[]string{
			`3 id=A model=m messages=[{"role":"user","content":"q"}]`,
			`4 id=B ids=[1 2] text="const na" in=2`,
			`6 id=C`, `7 id=D text="x"`, `7 id=D text="y"`, `8 id=E`,
		}},

	{"keystrokes", "keystrokes", Options{},
		`{"id": "rustcode/33", "prefix": "fn ma", "next": "in() {", "suffix": ""}` + "\n" + `{"id": "x/1", "prefix": "a", "suffix": "b", "middle": "c"}`,
		[]string{`1 id=rustcode/33 conv=rustcode text="fn ma" output="in() {"`, `2 id=x/1 text="a" output="c"`}},

	{"swe-agent", "agent", Options{},
		`{
  "environment": "swe_main",
  "trajectory": [{"action": "ls"}],
  "history": [
    {"role": "system", "content": "S", "agent": "primary"},
    {"role": "user", "content": [{"type": "text", "text": "U"}]},
    {"role": "assistant", "content": "A", "tool_calls": [{"id": "t1"}], "thought": "x"},
    {"role": "tool", "content": "R", "tool_call_ids": ["t1"]}
  ],
  "info": {"exit_status": null}
}`,
		[]string{
			`1 conv=record 1 messages=[{"role":"system","content":"S"},{"role":"user","content":[{"type": "text", "text": "U"}]}] output="A"`,
			`1 conv=record 1 messages=[{"role":"system","content":"S"},{"role":"user","content":[{"type": "text", "text": "U"}]},{"role":"assistant","content":"A","tool_calls":[{"id": "t1"}]},{"role":"tool","content":"R","tool_call_id":"t1"}]`,
		}},

	{"mini-swe-agent", "agent", Options{},
		`{"trajectory_format":"mini-swe-agent-1","instance_id":"i-7","model":"m","messages":[{"role":"user","content":"U"},{"role":"assistant","content":null,"name":"n","tool_calls":[]},{"role":"tool","content":"R","tool_call_id":"t"},{"role":"assistant","content":"B"}],"info":{}}`,
		[]string{
			`1 conv=i-7 model=m messages=[{"role":"user","content":"U"}]`,
			`1 conv=i-7 model=m messages=[{"role":"user","content":"U"},{"role":"assistant","name":"n","tool_calls":[]},{"role":"tool","content":"R","tool_call_id":"t"}] output="B"`,
		}},

	{"spans", "otel", Options{},
		`{"trace_id":"t","spans":[
 {"trace_id":"t","span_id":"2","start_time":"2026-02-25T12:00:01.500000","attributes":{"gen_ai.request.model":"m","gen_ai.input.messages":"[{\"role\": \"user\", \"content\": \"b\\n\"}]","gen_ai.output.messages":"[{\"role\":\"assistant\",\"content\":\"B\"}]","gen_ai.usage.prompt_tokens":5,"gen_ai.usage.completion_tokens":2}},
 {"trace_id":"t","span_id":"1","start_time":"2026-02-25T12:00:00.000000","attributes":{"exgentic.session.id":"s","gen_ai.input.messages":[{"role":"user","content":"a"}],"gen_ai.output.text":"A"}},
 {"trace_id":"t","span_id":"3","start_time":"2026-02-25T12:00:02","attributes":{"other":1}}]}`,
		[]string{
			`1 id=1 conv=s messages=[{"role":"user","content":"a"}] output="A"`,
			`1 at=1.5s id=2 conv=t model=m messages=[{"role": "user", "content": "b\n"}] in=5 out=2 output="B"`,
		}},

	{"azure", "csv", Options{},
		"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n",
		[]string{"2 in=374 out=44", "3 at=4.314579s in=396 out=109"}},
	{"burstgpt", "csv", Options{},
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,1,2.5,ChatGPT,472,18,490,Conversation log\n45.5,,1,\"GPT\"\"4, x\",417,0,417,API log\n",
		[]string{"2 conv=1 model=ChatGPT in=472 out=18", `3 at=40.5s model=GPT"4, x in=417 out=0`}},
}

func chained(ids ...uint64) []uint64 {
	chain(ids)
	return ids
}

func TestFormats(t *testing.T) {
	for _, tt := range formatTests {
		t.Run(tt.name, func(t *testing.T) {
			all, stats, err := readAll(t, strings.NewReader(tt.in), tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, q := range all {
				got = append(got, show(q))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if stats.Format != tt.format || stats.Requests != len(all) || stats.Bad() != 0 {
				t.Errorf("stats %+v, want format %s and %d requests", stats, tt.format, len(all))
			}
			// Told the format, the reader reads the same.
			opt := tt.opt
			opt.Format = tt.format
			told, _, err := readAll(t, strings.NewReader(tt.in), opt)
			if err != nil || !slices.EqualFunc(all, told, func(a, b *Request) bool { return show(a) == show(b) }) {
				t.Errorf("told the format: %d requests, %v", len(told), err)
			}
		})
	}
}

// A conversation's requests share memory that the next call changes: what Clone
// returns must not.
func TestCloneKeeps(t *testing.T) {
	r, err := NewReader(strings.NewReader(`{"prompt":[[1,2],[3,4]],"model":"m"}`), "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	kept := first.Clone()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(kept.IDs, []vocab.ID{1, 2}) {
		t.Errorf("kept %v", kept.IDs)
	}
}
