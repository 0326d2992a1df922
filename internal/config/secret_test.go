package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// everyForm is what could print a value by accident.
func everyForm(v any) string {
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	text, err := json.Marshal(v)
	fmt.Fprintln(&b, string(text), err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	return b.String() + log.String()
}

func TestSecretsAreHidden(t *testing.T) {
	c, err := testReader().Parse("file.yaml", []byte(upstreams+`
  u: {kind: vllm, urls: [http://h:2], api_key: "${KEY}"}
keys: [{name: a, key: "${OTHER}"}, {name: b, key: literal-0123456789abcdef}]
models: [{name: m, upstream: u}, {name: n, upstream: up}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Upstreams[1].APIKey.Reveal() != testKey || c.Keys[0].SHA256 != HashOf(otherKey) {
		t.Fatal("the keys are others")
	}
	hash := c.Keys[0].SHA256
	hidden := []string{testKey, otherKey, "literal-0", fmt.Sprintf("%x", [32]byte(hash)), fmt.Sprint([32]byte(hash)), fmt.Sprintf("%x", testKey), fmt.Sprintf("%x", otherKey)}
	for name, v := range map[string]any{
		"config": c, "config's value": *c, "keys": c.Keys, "key": c.Keys[0], "hash": hash, "upstreams": c.Upstreams,
		"upstream": *c.Upstreams[1], "secret": c.Upstreams[1].APIKey, "models": c.Models, "string": c.String(),
	} {
		shown := everyForm(v)
		for _, h := range hidden {
			if strings.Contains(strings.ToLower(shown), strings.ToLower(h)) {
				t.Errorf("%s shows %q:\n%s", name, h, shown)
			}
		}
	}
	if !strings.Contains(fmt.Sprintf("%v", *c.Upstreams[1]), "[hidden]") {
		t.Error("a key does not show that it is there")
	}
	var none Secret
	if none.String() != "" || none.Reveal() != "" || !none.IsZero() {
		t.Error("no secret looks like one")
	}
}

// A secret in the wrong place, whatever place, is not in what is reported.
func TestErrorsRepeatNoValue(t *testing.T) {
	const secret = "sk-Zq8w3ErTyU7iOpAsDfGh"
	variants := []string{
		secret, `"` + secret + `"`, "[" + secret + "]", "{" + secret + ": 1}", "${" + secret + "}", `"${` + secret + `}"`,
		"http://user:" + secret + "@h/", "@" + secret, "`" + secret, "*" + secret, "&" + secret, "!" + secret, `"\` + secret + `"`, `"` + secret,
		"|" + secret, ">" + secret, "'" + secret, secret + ": " + secret, "http://h/?" + secret, "/" + secret + "?", "a=" + secret, "%" + secret, "? " + secret,
	}
	count := 0
	try := func(source string) {
		count++
		r := Reader{LookupEnv: testEnv} // files are asked for too
		c, err := r.Parse("file.yaml", []byte(source))
		shown := fmt.Sprint(err)
		if err == nil {
			shown = fmt.Sprint(c.Warnings)
		}
		if strings.Contains(shown, secret[3:]) {
			t.Errorf("in\n%s\nis reported\n%s", source, shown)
		}
	}
	var walk func(f form, before, indent string)
	walk = func(f form, before, indent string) {
		switch {
		case f.item != nil:
			for _, v := range variants {
				try(before + "\n" + indent + "- " + v + "\n")
			}
			walk(*f.item, before+"\n"+indent+"-", indent+"  ")
		case f.named != nil:
			walk(*f.named, before+"\n"+indent+"up:", indent+"  ")
		}
		for _, k := range f.fields {
			at := before + "\n" + indent + k.key + ":"
			for _, v := range variants {
				try(at + " " + v + "\n")
				try(at + "\n" + indent + "  " + v + "\n")
				try(before + "\n" + indent + v + ": 1\n")
				try(before + "\n" + indent + v + "\n")
			}
			// A secret name names something that is reported.
			if k.key != "name" && k.key != "aliases" {
				walk(k.form, at, indent+"  ")
			}
		}
	}
	walk(schema.form, "", "")
	if count < 1000 {
		t.Errorf("%d texts were tried", count)
	}
}
