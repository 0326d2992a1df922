package chattemplate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// rendering is what transformers made of a conversation.
type rendering struct {
	Bytes   int
	SHA256  string
	Refused string
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// templateSources reads the templates of the vocabulary folder, by their
// SHA-256.
func templateSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	configs, err := filepath.Glob(tokenizertest.Path(t, "*/tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range configs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Template string `json:"chat_template"`
		}
		if err := json.Unmarshal(data, &config); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		sources[sum(config.Template)] = config.Template
	}
	for _, source := range readTemplates(t) {
		sources[sum(source)] = source
	}
	return sources
}

// readTemplates reads the files of templates, by path.
func readTemplates(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(tokenizertest.Path(t, "templates/*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(data)
	}
	return out
}

// lenient lists what transformers refuses and this package renders, by the
// beginning of transformers' reason: the engine takes what is undefined for
// nothing and writes any value where Python wants text.
var lenient = []string{"TypeError: can only concatenate str", "UndefinedError: "}

// TestRenderingsOfTransformers compares with testdata/renderings.json.
func TestRenderingsOfTransformers(t *testing.T) {
	sources := templateSources(t)
	var record struct {
		Now       time.Time
		Templates []struct {
			Name, SHA256, BOS, EOS string
			Renderings             map[string]rendering
		}
	}
	readJSON(t, "testdata/renderings.json", &record)
	var conversations map[string]json.RawMessage
	readJSON(t, "testdata/conversations.json", &conversations)
	rendered := 0
	for _, c := range record.Templates {
		source, ok := sources[c.SHA256]
		if !ok {
			t.Errorf("%s: its template is not in the vocabulary folder: fetch the vocabularies again, or record anew", c.Name)
			continue
		}
		tmpl, err := Compile(source)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for title, want := range c.Renderings {
			conv, err := ParseConversation(conversations[title])
			if err != nil {
				t.Fatalf("%s: %v", title, err)
			}
			conv.Now = record.Now
			got, err := tmpl.Render(t.Context(), conv, Names{BOS: c.BOS, EOS: c.EOS})
			if want.Refused != "" {
				if err == nil && !isLenient(want.Refused) {
					t.Errorf("%s, %s: rendered %.80q, transformers refuse: %s", c.Name, title, got, want.Refused)
				}
				continue
			}
			rendered++
			if err != nil {
				t.Errorf("%s, %s: %v", c.Name, title, err)
			} else if sum(got) != want.SHA256 {
				t.Errorf("%s, %s: %d bytes, transformers render %d others:\n%s", c.Name, title, len(got), want.Bytes, got)
			}
		}
	}
	if rendered < 300 {
		t.Errorf("only %d renderings were compared", rendered)
	}
}

func isLenient(refused string) bool {
	for _, l := range lenient {
		if strings.HasPrefix(refused, l) {
			return true
		}
	}
	return false
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestParseConversation(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":null},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"b\":1,\"a\":2.0}"}}]}],
		"tools":[{"z":1,"a":2}],"chat_template_kwargs":{"enable_thinking":false},"model":"m"}`
	c, err := ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Compile(`{{ messages[0].content }}|{{ messages[1].tool_calls[0].function.arguments | tojson }}|{{ tools | tojson(indent=1) }}|{{ enable_thinking }}|{{ none }}|{{ 1.0 }}|{{ [none, "it's", 'a'] }}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tmpl.Render(t.Context(), c, Names{})
	if want := "|{\"b\": 1, \"a\": 2.0}|[\n {\n  \"z\": 1,\n  \"a\": 2\n }\n]|False|None|1.0|[None, \"it's\", 'a']"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{
		``, `{}`, `3`, `{"messages":[]} x`, `{"messages":[{}]}`, `{"messages":[3]}`, `{"messages":[{"role":"assistant","tool_calls":[{}]}]}`,
		strings.Repeat("[", 300),
	} {
		if _, err := ParseConversation([]byte(bad)); err == nil {
			t.Errorf("%.60s is taken", bad)
		}
	}
}

// A name that a loop sets is gone in the next round, as in Jinja.
func TestLoopScope(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{"{% for i in [1, 2, 3] %}{% if i == 1 %}{% set x = i %}{% endif %}<{{ x }}>{% endfor %}", "<1><><>"},
		{"{% set x = 0 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{{ loop.last }}{% endfor %}{{ x }}", "1False2True0"},
		{"{% set ns = namespace(x=0) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% set y = 1 %}{% for j in [1] %}{{ loop.index }}{% endfor %}{% endfor %}{{ ns.x }}", "113"},
	} {
		tmpl, err := Compile(c.template)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(t.Context(), &Conversation{}, Names{}); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.template, got, err, c.want)
		}
	}
}

func TestStrftime(t *testing.T) {
	at := time.Date(2026, 11, 5, 9, 7, 3, 45678000, time.UTC)
	for format, want := range map[string]string{ // as datetime(2026, 11, 5, 9, 7, 3, 45678).strftime gives them
		"%d %b %Y": "05 Nov 2026", "%Y-%m-%dT%H:%M:%S": "2026-11-05T09:07:03", "%A, %B %-d": "Thursday, November 5",
		"%I:%M %p|%y|%j|%f|%%|%Z|%w|%u|%a": "09:07 AM|26|309|045678|%||4|4|Thu", "%-I%-m%e": "911 5",
	} {
		if got := strftime(at, format); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, source := range []string{"", "{{ a", "{% if a %}", "{% raw %} {{", strings.Repeat("x", maxTemplate+1), "{% for %}{% endfor %}"} {
		if _, err := Compile(source); err == nil {
			t.Errorf("%.40q is compiled", source)
		}
	}
	tmpl, err := Compile("{{ raise_exception('no ' ~ messages[0].role) }}")
	if err != nil {
		t.Fatal(err)
	}
	_, err = tmpl.Render(t.Context(), &Conversation{Messages: []*Object{NewMessage("tool", "x")}}, Names{})
	if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Text, "no tool") {
		t.Errorf("%v", err)
	}
}
