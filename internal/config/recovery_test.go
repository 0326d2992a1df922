package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const recoverySource = `
models:
  - {name: a, aliases: [first], file: f, recovery: {mode: full, attempts: 0}}
  - {name: b, file: f}
  - {name: c, file: f, recovery: {mode: "off", fallback: first, allow: [report]}}
recovery:
  mode: repair
  time: 1s
  fallback: b
`

// A model's recovery has what the file says where the model does not.
func TestRecoveryIsInherited(t *testing.T) {
	c, err := testReader().Parse("file.yaml", []byte(recoverySource))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Recovery{
		{Mode: RecoverFull, Attempts: -1, Time: time.Second, Fallback: "b"},
		{Mode: RecoverRepair, Time: time.Second},
		{Mode: RecoverOff, Time: time.Second, Fallback: "a", Allow: []RecoverMode{RecoverReport}},
	} {
		if got := c.Models[i].Recovery; !reflect.DeepEqual(got, want) {
			t.Errorf("model %s: %+v, want %+v", c.Models[i].Name, got, want)
		}
	}
	if want := (Recovery{Mode: RecoverRepair, Time: time.Second, Fallback: "b"}); !reflect.DeepEqual(c.Recovery, want) {
		t.Errorf("the file: %+v", c.Recovery)
	}
}

func TestRecoveryMistakes(t *testing.T) {
	for source, want := range map[string]string{
		`mode: always`:                "mode",
		`allow: []`:                   "allow",
		`allow: [full, full]`:         "allow[1]",
		`strategies: [magic]`:         "strategies[0]",
		`strategies: [loop, loop]`:    "strategies[1]",
		`attempts: 11`:                "attempts",
		`max_tokens: 0`:               "max_tokens",
		`reserve_percent: 91`:         "reserve_percent",
		`time: none`:                  "time",
		`bytes: 12`:                   "bytes",
		`tool_calls: execute`:         "tool_calls",
		`on_failure: panic`:           "on_failure",
		`fallback: nobody`:            "fallback",
		`fallback: a`:                 "fallback",
		`continue: later`:             "continue",
		`extra: 1`:                    "",
		`{mode: repair, mode: "off"}`: "",
	} {
		_, err := testReader().Parse("file.yaml", []byte("models:\n- name: a\n  file: f\n  recovery:\n    "+source+"\n"))
		list := listOfErrors(t, err)
		if len(list) != 1 || list[0].Path != strings.TrimSuffix("models[0].recovery."+want, ".") {
			t.Errorf("%s: %v", source, list)
		}
	}
}
