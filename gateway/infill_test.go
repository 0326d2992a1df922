package gateway_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/fim"
	"github.com/unfray/unfray/gateway"
	"github.com/unfray/unfray/internal/wire"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// fillRig is a gateway over a model that fills in: it knows " world(1, 2)" to be
// what stands between "x = hello" and the suffix, which it goes on with.
func fillRig(t *testing.T, files ...fim.File) *rig {
	t.Helper()
	y := tokenizertest.Toy{Merges: [][2]string{{"l", "o"}, {"h", "e"}, {"he", "l"}, {"hel", "lo"}, {" ", "hello"}}}
	for _, c := range []string{"<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"} {
		y.Added = append(y.Added, tokenizertest.ToyAdded{Content: c, Special: true})
	}
	r := &rig{tok: y.Open(t), log: &bytes.Buffer{}}
	l, err := fim.Find(r.tok)
	if err != nil {
		t.Fatal(err)
	}
	head, _ := l.Context(nil, "myproject", files, "filename", 0)
	whole := r.tok.Encode(nil, []byte("x = hello world(1, 2)"+fillSuffix+"and more"))
	script, _ := l.Arrange(nil, head, whole[:3], l.EncodeSuffix(nil, []byte(fillSuffix)))
	script = append(script, whole[3:]...)
	r.toy = backendtest.NewToy(backendtest.Options{Vocab: r.tok.Vocab(), Scripts: [][]vocab.ID{script}})
	t.Cleanup(func() { r.toy.Close() })
	m, err := unfray.NewModel(r.toy, r.tok)
	if err != nil {
		t.Fatal(err)
	}
	if r.gateway, err = gateway.New(gateway.Config{Models: []gateway.Model{{Model: m}}, Log: newLog(r.log)}); err != nil {
		t.Fatal(err)
	}
	return r
}

const fillSuffix = "\nprint(x) # what was greeted\nend of the file\n"

// quoted is a JSON string.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestCompletionWithSuffix(t *testing.T) {
	r := fillRig(t)
	// The prompt ends inside a token: "hel" of " hello".
	a := r.complete(`{"prompt":"x = hel","suffix":` + quoted(fillSuffix) + `,"temperature":0,"max_tokens":100}`).decode(t)
	if a.Choices[0].Text != "lo world(1, 2)" || text(a.Choices[0].FinishReason) != "stop" {
		t.Errorf("%+v", a.Choices[0])
	}
	a = r.complete(`{"prompt":[88],"suffix":"a"}`).mayDecode()
	if a != nil {
		t.Error("token IDs with a suffix are answered")
	}
}

func (a *answer) mayDecode() *completion {
	if a.status != 200 {
		return nil
	}
	var c completion
	json.Unmarshal(a.body, &c)
	return &c
}

func TestInfill(t *testing.T) {
	body := func(more string) string {
		return `{"input_prefix":"x = ","prompt":"hel","input_suffix":` + quoted(fillSuffix) + `,"temperature":0` + more + `}`
	}
	file := fim.File{Name: "a.py", Text: []byte("hello = 1\n")}
	for _, tc := range []struct {
		name, body         string
		files              []fim.File
		content, stop, end string
	}{
		{"the suffix again", body(`,"n_predict":200,"id_slot":0`), nil, "lo world(1, 2)", "eos", ""},
		{"a limit", body(`,"n_predict":3`), nil, "lo w", "limit", ""},
		{"a stop string", body(`,"stop":["(1,"]`), nil, "lo world", "word", "(1,"},
		{"another file", body(`,"n_predict":-1,"input_extra":[{"filename":"a.py","text":"hello = 1\n"}]`), []fim.File{file}, "lo world(1, 2)", "eos", ""},
		{"to fill the cache", body(`,"n_predict":0`), nil, "", "limit", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := fillRig(t, tc.files...)
			a := r.send("POST", "/infill", tc.body)
			var got wire.Infill
			if err := json.Unmarshal(a.body, &got); err != nil || a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if got.Content != tc.content || !got.Stop || got.StopType != tc.stop || got.StoppingWord != tc.end || got.TokensEvaluated == 0 {
				t.Errorf("%s", a.body)
			}
			checkInfillStream(t, r, tc.body, &got)
		})
	}
}

// checkInfillStream compares the streamed answer with the whole one.
func checkInfillStream(t *testing.T, r *rig, body string, want *wire.Infill) {
	t.Helper()
	a := r.send("POST", "/infill", strings.TrimSuffix(body, "}")+`,"stream":true}`)
	if a.status != 200 || bytes.Contains(a.body, []byte("[DONE]")) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	content := ""
	events := strings.Split(strings.TrimSpace(string(a.body)), "\n\n")
	for i, e := range events {
		var part wire.Infill
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &part); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		content += part.Content
		if last := i == len(events)-1; part.Stop != last || last && (part.StopType != want.StopType || part.TokensPredicted != want.TokensPredicted) {
			t.Errorf("event %d of %d: %s", i, len(events), e)
		}
	}
	if content != want.Content {
		t.Errorf("streamed %q, whole %q", content, want.Content)
	}
}

func TestInfillChoices(t *testing.T) {
	a := fillRig(t).send("POST", "/infill", `{"input_prefix":"x = hel","input_suffix":`+quoted(fillSuffix)+`,"temperature":0,"n_cmpl":2}`)
	var got []wire.Infill
	if err := json.Unmarshal(a.body, &got); err != nil || len(got) != 2 || got[1].Index != 1 || got[1].Content != "lo world(1, 2)" {
		t.Errorf("%s", a.body)
	}
}

func TestInfillRefuses(t *testing.T) {
	fills, none := fillRig(t), newRig(t, rigOptions{})
	for _, tc := range []struct {
		r      *rig
		body   string
		status int
		param  string
	}{
		{fills, `{"input_suffix":"a"}`, 400, "input_prefix"},
		{fills, `{"input_prefix":"a"}`, 400, "input_suffix"},
		{fills, `{"input_prefix":"a","input_suffix":"b","n_cmpl":0}`, 400, "n"},
		{fills, `{"input_prefix":"a","input_suffix":"b","top_p":2}`, 400, "top_p"},
		{fills, `{"input_prefix":"a","input_suffix":"b","unfray":{"heal":"x"}}`, 400, "unfray.heal"},
		{fills, `{"input_prefix":"` + strings.Repeat("ab", 3000) + `","input_suffix":"b"}`, 400, "input_prefix"},
		{fills, `{"input_prefix":[1],"input_suffix":"b"}`, 400, "input_prefix"},
		{none, `{"input_prefix":"a","input_suffix":"b"}`, 501, "null"},
	} {
		a := tc.r.send("POST", "/infill", tc.body)
		if e := a.apiError(t); a.status != tc.status || text(e.Param) != tc.param {
			t.Errorf("%.60s: %d %s", tc.body, a.status, a.body)
		}
	}
}
