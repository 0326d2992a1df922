package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// drifts is testdata/turns/drift.json, which testdata/turns/record.py records.
type drifts struct {
	Models []struct {
		Tokenizer, Template, SHA256, BOS, EOS string
		Form                                  struct {
			TextArguments bool `json:"text_arguments"`
			NullContent   bool `json:"null_content"`
			Reasoning     string
		}
		Probes map[string]recordedTurns
	}
}

type recordedTurns struct {
	Refused string
	System  bool
	Said    bool
	Steps   []struct {
		Prompt, Output recordedText
		PromptTokens   int `json:"prompt_tokens"`
		OutputTokens   int `json:"output_tokens"`
		Drift          *struct {
			Byte, Token int
			LostTokens  int `json:"lost_tokens"`
			LostBlocks  int `json:"lost_blocks"`
		}
	}
}

type recordedText struct {
	Bytes  int
	SHA256 string
}

func (r recordedText) is(s string) bool {
	h := sha256.Sum256([]byte(s))
	return len(s) == r.Bytes && hex.EncodeToString(h[:]) == r.SHA256
}

func recordedDrifts(t *testing.T) *drifts {
	t.Helper()
	data, err := os.ReadFile("testdata/turns/drift.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &drifts{}
	if err := json.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// chatTemplate reads the template of a tokenizer, or a file of templates.
func chatTemplate(t *testing.T, folder, name string) *chattemplate.Template {
	t.Helper()
	var source string
	path := tokenizertest.Path(t, "templates/"+name+".jinja")
	if name == "" {
		path = tokenizertest.Path(t, folder+"/tokenizer_config.json")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: fetch the vocabularies again", err)
	}
	source = string(data)
	if name == "" {
		var config struct {
			Template string `json:"chat_template"`
		}
		if err := json.Unmarshal(data, &config); err != nil {
			t.Fatal(err)
		}
		source = config.Template
	}
	tmpl, err := chattemplate.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

var turnTokenizers = map[string]*tokenizer.Tokenizer{}

func turnTokenizer(t *testing.T, folder string) *tokenizer.Tokenizer {
	t.Helper()
	if turnTokenizers[folder] == nil {
		tok, err := tokenizer.Open(filepath.Clean(tokenizertest.Path(t, folder+"/tokenizer.json")))
		if err != nil {
			t.Fatal(err)
		}
		turnTokenizers[folder] = tok
	}
	return turnTokenizers[folder]
}

// TestTurnsOfTransformers compares prompts, answers, IDs and drift with those
// that transformers' renderings and Hugging Face's tokenizers have.
func TestTurnsOfTransformers(t *testing.T) {
	for _, m := range recordedDrifts(t).Models {
		if testing.Short() && m.Tokenizer != "qwen3" {
			continue
		}
		t.Run(strings.TrimSpace(m.Tokenizer+" "+m.Template), func(t *testing.T) {
			tmpl, tok := chatTemplate(t, m.Tokenizer, m.Template), turnTokenizer(t, m.Tokenizer)
			if got := recordedSum(tmpl.Source()); got != m.SHA256 {
				t.Fatalf("the template is another one than when it was recorded (SHA-256 %s): run testdata/turns/record.py", got)
			}
			names := chattemplate.Names{BOS: m.BOS, EOS: m.EOS}
			if f, _ := tmpl.Form(t.Context(), names); f != chattemplate.Form(m.Form) {
				t.Errorf("tool calls in the form %+v, recorded %+v", f, m.Form)
			}
			for name, want := range m.Probes {
				checkTurns(t, tmpl, tok, names, name, want)
			}
		})
	}
}

func recordedSum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func checkTurns(t *testing.T, tmpl *chattemplate.Template, tok *tokenizer.Tokenizer, names chattemplate.Names, name string, want recordedTurns) {
	t.Helper()
	conv, err := ProbeConversation(name != "plain" && name != "reasoning", strings.Contains(name, "both") || name == "reasoning")
	if err != nil {
		t.Fatal(err)
	}
	opts := TurnsOptions{Names: names, DropReasoning: strings.Contains(name, "not sent back")}
	if strings.Contains(name, "thinking on") {
		opts.Arguments = map[string]any{"enable_thinking": true, "thinking": true}
	}
	got, err := Turns(t.Context(), tmpl, tok, variant{want.System, want.Said}.of(conv), opts)
	if want.Refused != "" {
		if err == nil {
			t.Errorf("%s: rendered, transformers refuse: %s", name, want.Refused)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if len(got.Steps) != len(want.Steps) {
		t.Errorf("%s: %d steps, want %d", name, len(got.Steps), len(want.Steps))
		return
	}
	for i, w := range want.Steps {
		g := got.Steps[i]
		switch {
		case !w.Prompt.is(g.prompt) || w.PromptTokens != g.PromptTokens:
			t.Errorf("%s, step %d: another prompt, %d tokens, want %d:\n%s", name, i, g.PromptTokens, w.PromptTokens, g.prompt)
		case !w.Output.is(g.Output) || w.OutputTokens != g.OutputTokens:
			t.Errorf("%s, step %d: another answer, %d tokens, want %d: %q", name, i, g.OutputTokens, w.OutputTokens, g.Output)
		case (w.Drift == nil) != (g.Drift == nil):
			t.Errorf("%s, step %d: drift %+v, want %+v", name, i, g.Drift, w.Drift)
		case w.Drift == nil:
		case g.Drift.Byte != w.Drift.Byte || g.Drift.Token != w.Drift.Token || g.Drift.LostTokens != w.Drift.LostTokens || g.Drift.LostBlocks != w.Drift.LostBlocks:
			t.Errorf("%s, step %d: drift %+v, want %+v", name, i, g.Drift, w.Drift)
		default:
			t.Logf("%s, step %d: byte %d, %s: %s", name, i, g.Drift.Byte, g.Drift.Cause, g.Drift.Why)
		}
	}
}
