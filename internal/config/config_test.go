package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/heal"
)

const (
	testKey   = "Kf3v9QmT2xWz7RbN4cYp8L"
	otherKey  = "pL8Yc4NbR7zWx2TmQ9v3fK"
	upstreams = "upstreams:\n  up: {kind: vllm, urls: [http://h:1]}\n"
)

// testEnv has two keys.
func testEnv(name string) (string, bool) {
	switch name {
	case "KEY":
		return testKey, true
	case "OTHER":
		return otherKey, true
	case "EMPTY":
		return "", true
	case "SPLIT":
		return testKey + "\r\nX-Evil: 1", true
	}
	return "", false
}

func testReader() *Reader { return &Reader{LookupEnv: testEnv, SkipFiles: true} }

// unmark takes the marks ‸ out of a text and returns the places of what stood
// behind them.
func unmark(marked string) (string, []place) {
	var places []place
	var b strings.Builder
	line, column := 1, 0
	for _, r := range marked {
		if r == '‸' {
			places = append(places, place{line, column + 1})
			continue
		}
		b.WriteRune(r)
		column++
		if r == '\n' {
			line, column = line+1, 0
		}
	}
	return b.String(), places
}

// checkErrors compares errors with the marked places and with "path: text".
func checkErrors(t *testing.T, what string, got []*Error, places []place, want []string) {
	t.Helper()
	for i, e := range got {
		if i >= len(want) || i >= len(places) {
			t.Errorf("one more %s: %v", what, e)
			continue
		}
		text := e.Text
		if e.Path != "" {
			text = e.Path + ": " + text
		}
		if (place{e.Line, e.Column}) != places[i] || text != want[i] {
			t.Errorf("%s %d is\n\t%v\nwant\n\tfile.yaml:%d:%d: %s", what, i, e, places[i].line, places[i].column, want[i])
		}
		if e.File != "file.yaml" {
			t.Errorf("%s %d has the file %q", what, i, e.File)
		}
	}
	for i := len(got); i < len(want); i++ {
		t.Errorf("%s %d is missing: %s", what, i, want[i])
	}
}

func listOfErrors(t *testing.T, err error) Errors {
	t.Helper()
	var list Errors
	if err != nil && !errors.As(err, &list) {
		t.Fatalf("%T is not Errors: %v", err, err)
	}
	return list
}

func testCases(t *testing.T, cases []errorCase, before, after string) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			t.Helper()
			source, places := unmark(before + tt.source + after)
			_, err := testReader().Parse("file.yaml", []byte(source))
			checkErrors(t, "error", listOfErrors(t, err), places, tt.want)
			if t.Failed() {
				t.Logf("source:\n%s", source)
			}
		})
	}
}

// An errorCase has a mark ‸ before each place with an error.
type errorCase struct {
	name, source string
	want         []string
}

func one(s string) []string { return []string{s} }

const (
	wantDuration = "give a duration such as 500ms, 30s or 5m"
	sizeWanted   = "give a size such as 512KiB or 8MiB"
)

// Mistakes beside a model that is right.
func TestErrors(t *testing.T) {
	testCases(t, []errorCase{
		{"unknown key", "‸listner: 1\n", one(`there is no key "listner"; did you mean listeners?`)},
		{"unknown key without a near one", "‸zzz: 1\n", one("there is no such key; the keys here are listeners, keys, upstreams, models, default_upstream, recovery, limits, log, metrics")},
		{"unknown keys below", "log: {‸levle: info, ‸promts: true}\n", []string{`log: there is no key "levle"; did you mean level?`, `log: there is no key "promts"; did you mean prompts?`}},
		{"hyphen for underscore", "limits: {body: 1MiB}\n‸default-upstream: up\n", one(`there is no key "default-upstream"; did you mean default_upstream?`)},
		{"twice", "log: {level: info}\n‸log: {}\n", one("the key stands twice; the first is on line 5")},
		{"twice in a mapping", "log:\n  level: info\n  format: text\n  ‸level: warn\n", one("log: the key stands twice; the first is on line 6")},
		{"extension key only at the top", "log:\n  ‸x-a: 1\n", one("log: there is no such key; the keys here are prompts, format, level")},

		{"list for mapping", "log: ‸[]\n", one("log: give a mapping with the keys prompts, format, level, not a list")},
		{"text for mapping", "limits: ‸much\n", one("limits: give a mapping with the keys body, choices, request, read, write, drain, not text")},
		{"nothing for mapping", "log:‸\nmetrics: on\n", one("log: give a mapping with the keys prompts, format, level, not nothing")},
		{"mapping for list", "listeners: ‸{address: a}\n", one("listeners: give a list, not a mapping")},
		{"text in a list of mappings", "listeners:\n  - ‸127.0.0.1:1\n", one("listeners[0]: give a mapping with the keys address, tls_cert, tls_key, not text")},
		{"empty list", "listeners: ‸[]\n", one("listeners: the list is empty; leave the key out, or give it a value")},

		{"no address", "listeners:\n  - ‸{}\n", one("listeners[0].address: address is missing; it has to be there")},
		{"no port", "listeners: [{address: ‸localhost}]\n", one("listeners[0].address: give host:port, such as 127.0.0.1:8080 or [::1]:8080")},
		{"port", "listeners: [{address: ‸\":http\"}]\n", one("listeners[0].address: the port is a number from 0 to 65535")},
		{"empty address", "listeners: [{address: ‸\"\"}]\n", one("listeners[0].address: the text is empty")},
		{"address twice", "listeners:\n  - address: 127.0.0.1:1\n  - address: ‸127.0.0.1:1\n", one("listeners[1].address: listeners[0] has this address already")},
		{"certificate without key", "listeners:\n  - address: 127.0.0.1:1\n    tls_cert: ‸c.pem\n", one("listeners[0].tls_cert: tls_key is missing; TLS needs both")},
		{"key without certificate", "listeners:\n  - address: 127.0.0.1:1\n    tls_key: ‸c.pem\n", one("listeners[0].tls_key: tls_cert is missing; TLS needs both")},
		{"home folder", "listeners:\n  - address: 127.0.0.1:1\n    tls_key: ‸~/c.key\n    tls_cert: ‸3\n", []string{
			"listeners[0].tls_key: ~ is not replaced; write the path out", "listeners[0].tls_cert: give text, not a number; put it in quotes"}},

		{"size without a unit we know", "limits: {body: ‸8M}\n", one("limits.body: " + sizeWanted + ", or a number of bytes")},
		{"size out of range", "limits: {body: ‸2GiB}\n", one("limits.body: give a size from 1KiB to 1GiB")},
		{"size beyond int64", "limits: {body: ‸99999999999999999999GiB}\n", one("limits.body: give a size from 1KiB to 1GiB")},
		{"size of another kind", "limits: {body: ‸true}\n", one("limits.body: " + sizeWanted + ", not true or false")},
		{"negative size", "limits: {body: ‸-1}\n", one("limits.body: " + sizeWanted + ", or a number of bytes")},
		{"duration without unit", "limits: {read: ‸30}\n", one("limits.read: the unit is missing; " + wantDuration)},
		{"duration with another unit", "limits: {request: ‸10d}\n", one("limits.request: " + wantDuration + ", or none")},
		{"none where it does not go", "limits: {read: ‸none}\n", one("limits.read: " + wantDuration)},
		{"negative duration", "limits: {read: ‸-3s}\n", one("limits.read: give a duration from 1ms to 720h")},
		{"duration of another kind", "limits: {drain: ‸[1s]}\n", one("limits.drain: " + wantDuration + ", or none, not a list")},
		{"number out of range", "limits: {choices: ‸0}\n", one("limits.choices: give a whole number from 1 to 10000")},
		{"fraction", "limits: {choices: ‸1.5}\n", one("limits.choices: give a whole number from 1 to 10000")},
		{"octal", "limits: {choices: ‸010}\n", one("limits.choices: give a whole number from 1 to 10000")},
		{"number in quotes", "limits: {choices: ‸\"3\"}\n", one("limits.choices: give a number from 1 to 10000, not text")},
		{"word", "log: {level: ‸warning, format: ‸yaml, prompts: ‸1}\nmetrics: ‸yes\n", []string{
			"log.level: give one of debug, info, warn, error", "log.format: give one of text, json", "log.prompts: give true or false", "metrics: give on or off"}},

		{"reference elsewhere", "log: {format: ‸\"${KEY}\"}\n", one("log.format: ${NAME} is replaced in key and api_key only")},
		{"after non-ASCII", "\"x-é\": {ü: 1, é: 2}\nlog: {level: 'info', format: ‸'é'}\n", one("log.format: give one of text, json")},
		{"default upstream", "default_upstream: ‸zz\n", one("default_upstream: there is no such upstream; there are up")},
		{"blanks behind values", "metrics: ‸onn     \nlog:\n  level: ‸onn  \n  format: ‸é.é \nlimits: {}\n", []string{"metrics: give on or off", "log.level: give one of debug, info, warn, error", "log.format: give one of text, json"}},
		{"comments with CR LF", "# a\r\nmetrics: on # b\r\n# c\r\n\r\nlog: {level: ‸é}\r\n", one("log.level: give one of debug, info, warn, error")},
		{"blanks at the end", "metrics:  ‸maybé  \n", one("metrics: give on or off")},
		{"blanks and lines at the end", "metrics:  ‸maybé  \n\n \n", one("metrics: give on or off")},
		{"comment at the end", "metrics:  ‸maybé  # a\n\n \n", one("metrics: give on or off")},
	}, upstreams+"models:\n- {name: m, upstream: up}\n", "")
}

func TestErrorsInUpstreams(t *testing.T) {
	const url = "urls: [http://h:1]"
	testCases(t, []errorCase{
		{"kind and URLs are missing", "    ‸‸retries: 1\n", []string{"upstreams.u.kind: kind is missing; it has to be there", "upstreams.u.urls: urls is missing; it has to be there"}},
		{"kind", "    kind: ‸vlm\n    " + url, one("upstreams.u.kind: give one of llamacpp, vllm, proxy; did you mean vllm?")},
		{"no URL", "    kind: vllm\n    urls: ‸[]", one("upstreams.u.urls: the list is empty; leave the key out, or give it a value")},
		{"URLs", `    kind: vllm
    urls:
    - ‸h:1
    - ‸ftp://h
    - ‸http://
    - ‸http://:80
    - ‸http://user:pw@h/
    - ‸http://h?q
    - ‸http://h?
    - ‸http://h/a#b
    - ‸"http://h#"
    - ‸http://h:0
    - ‸http://h:99999
    - ‸"http://h:"
    - ‸"http://h\n"
    - ‸http://h/a b
    - ‸http://[::1
    - ‸http://h/a/%2e%2e/b
    - ‸5
    - http://h/base/
    - ‸http://H/base`, []string{
			"upstreams.u.urls[0]: the URL begins with http:// or https://",
			"upstreams.u.urls[1]: the URL begins with http:// or https://",
			"upstreams.u.urls[2]: the URL has no host",
			"upstreams.u.urls[3]: the URL has no host",
			"upstreams.u.urls[4]: the URL has a user or password; use api_key, or api_key_file",
			"upstreams.u.urls[5]: the URL has a query or fragment; give scheme, host, port and path",
			"upstreams.u.urls[6]: the URL has a query or fragment; give scheme, host, port and path",
			"upstreams.u.urls[7]: the URL has a query or fragment; give scheme, host, port and path",
			"upstreams.u.urls[8]: the URL has a query or fragment; give scheme, host, port and path",
			"upstreams.u.urls[9]: the port is a number from 1 to 65535",
			"upstreams.u.urls[10]: the port is a number from 1 to 65535",
			"upstreams.u.urls[11]: the port is a number from 1 to 65535",
			"upstreams.u.urls[12]: this is no URL; give one such as http://127.0.0.1:8080",
			"upstreams.u.urls[13]: this is no URL; give one such as http://127.0.0.1:8080",
			"upstreams.u.urls[14]: this is no URL; give one such as http://127.0.0.1:8080",
			"upstreams.u.urls[15]: the URL's path has a part that is . or ..",
			"upstreams.u.urls[16]: give text, not a number; put it in quotes",
			"upstreams.u.urls[18]: urls[17] is this one already",
		}},
		{"variable is not set", "    kind: vllm\n    " + url + "\n    api_key: ‸${NOT_SET}", one("upstreams.u.api_key: the environment variable NOT_SET is not set")},
		{"variable is empty", "    kind: vllm\n    " + url + "\n    api_key: ‸${EMPTY}", one("upstreams.u.api_key: the environment variable EMPTY is empty")},
		{"variable in text", "    kind: vllm\n    " + url + "\n    api_key: ‸a${KEY}", one("upstreams.u.api_key: a reference is the whole value: ${NAME}, of letters, digits and _")},
		{"variable's name", "    kind: vllm\n    " + url + "\n    api_key: ‸${A-B}", one("upstreams.u.api_key: a reference is the whole value: ${NAME}, of letters, digits and _")},
		{"key with a line end", "    kind: vllm\n    " + url + "\n    api_key: ‸${SPLIT}", one("upstreams.u.api_key: the key has blanks, line ends or characters that are not ASCII")},
		{"key without a value", "    kind: vllm\n    " + url + "\n    api_key:‸\n    retries: 1", one("upstreams.u.api_key: there is no value; give ${NAME}, a variable of the environment")},
		{"key is a number", "    kind: vllm\n    " + url + "\n    api_key: ‸12345", one("upstreams.u.api_key: give text, not a number; put it in quotes")},
		{"key is a list", "    kind: vllm\n    " + url + "\n    api_key: ‸[a]", one("upstreams.u.api_key: give text, not a list")},
		{"two keys", "    kind: vllm\n    " + url + "\n    api_key: ${KEY}\n    api_key_file: ‸f", one("upstreams.u.api_key_file: api_key is there already; give one of them")},
		{"timeouts", "    kind: vllm\n    " + url + "\n    timeouts: {connect: ‸none, idle: none, ‸conect: 3s}", []string{
			"upstreams.u.timeouts.connect: " + wantDuration, `upstreams.u.timeouts: there is no key "conect"; did you mean connect?`}},
		{"health", "    kind: vllm\n    " + url + "\n    health: {path: ‸health, failures: ‸0, timeout: ‸none}", []string{
			"upstreams.u.health.path: give a path that begins with one /, without ? and #", "upstreams.u.health.failures: give a whole number from 1 to 1000", "upstreams.u.health.timeout: " + wantDuration}},
		{"health path", "    kind: vllm\n    " + url + "\n    health: {path: ‸/a%zz}", one("upstreams.u.health.path: give a path that begins with one /, without . and .. and escaped where a URL needs it")},
		{"numbers", "    kind: vllm\n    " + url + "\n    retries: ‸11\n    max_connections: ‸0", []string{
			"upstreams.u.retries: give a whole number from 0 to 10", "upstreams.u.max_connections: give a whole number from 1 to 1000000"}},
		{"name", "    kind: vllm\n    " + url + "\n  ‸\"a b\": {kind: vllm, urls: [http://h]}", one("upstreams: a name has no blanks, quotes, brackets, commas or backslashes")},
		{"empty name", "    kind: vllm\n    " + url + "\n  ‸\"\": {kind: vllm, urls: [http://h]}", one("upstreams: the name is empty")},
		{"item without value", "    kind: vllm\n    urls:\n    - http://h\n    ‸-\n    ‸-\n", []string{"upstreams.u.urls[1]: there is no value; give one, or leave the key out", "upstreams.u.urls[2]: there is no value; give one, or leave the key out"}},
		{"name of nothing", "    kind: vllm\n    " + url + "\n  v: ‸x\n  w:‸\n", []string{"upstreams: give a mapping behind each name, not text", "upstreams: give a mapping behind each name, not nothing"}},
		{"name with a point", "    kind: vllm\n    " + url + "\n  a.b: {kind: ‸x, urls: [http://h]}", one(`upstreams["a.b"].kind: give one of llamacpp, vllm, proxy`)},
	}, "models:\n- {name: m, upstream: u}\nupstreams:\n  u:\n", "\n")
}

func TestErrorsInModelsAndKeys(t *testing.T) {
	testCases(t, []errorCase{
		{"no models", "‸x-a: 1\n", one("models: models is missing; give the models to serve, or a default_upstream")},
		{"nothing", "‸# nothing\n", one("the file is empty; it needs models at least")},
		{"text", "‸models\n", one("give a mapping with the keys listeners, keys, upstreams, models, default_upstream, recovery, limits, log, metrics, not text")},
		{"empty", "models: ‸[]\n", one("models: the list is empty; leave the key out, or give it a value")},
		{"no mapping", "models: [‸m]\n", one("models[0]: give a mapping with the keys name, aliases, file, context, parallel, threads, queue, device, upstream, upstream_model, tokenizer, heal, allow_heal, max_tokens, cache_prediction, recovery, not text")},
		{"neither file nor upstream", "models:\n- ‸name: a\n", one("models[0]: the model has neither file nor upstream; give one of them")},
		{"no name", "models:\n- ‸file: a\n", one("models[0].name: name is missing; it has to be there")},
		{"both", "models:\n- {name: a, file: a, upstream: ‸up}\n" + upstreams, one("models[0].upstream: file is there already; a model has one of them")},
		{"names", "models:\n- {name: a, file: a}\n- {name: ‸a, file: b}\n", one("models[1].name: models[0].name has this name already; clients could not tell them apart")},
		{"aliases", "models:\n- {name: a, file: a, aliases: [b, ‸b, ‸c, ‸a]}\n- {name: c, file: b, aliases: [‸b]}\n", []string{
			"models[0].aliases[1]: models[0].aliases[0] has this name already; clients could not tell them apart",
			"models[0].aliases[2]: models[1].name has this name already; clients could not tell them apart",
			"models[0].aliases[3]: models[0].name has this name already; clients could not tell them apart",
			"models[1].aliases[0]: models[0].aliases[0] has this name already; clients could not tell them apart"}},
		{"upstream", "models:\n- {name: a, upstream: ‸ap}\n- {name: b, upstream: ‸zzz}\n- {name: c, upstream: up}\n" + upstreams, []string{
			"models[0].upstream: there is no such upstream; did you mean up?", "models[1].upstream: there is no such upstream; there are up"}},
		{"no upstreams", "models:\n- {name: a, upstream: ‸up}\n", one("models[0].upstream: there is no such upstream; the file has none")},
		{"engine's keys", "models:\n- {name: a, upstream: up, context: ‸1, threads: ‸1, device: ‸cpu, queue: ‸0, parallel: ‸3}\n" + upstreams, []string{
			"models[0].context: this does not go with upstream; remove it", "models[0].threads: this does not go with upstream; remove it",
			"models[0].device: this does not go with upstream; remove it", "models[0].queue: this does not go with upstream; remove it",
			"models[0].parallel: this does not go with upstream; remove it"}},
		{"upstream's keys", "models:\n- {name: a, file: a, tokenizer: ‸t, upstream_model: ‸b}\n", []string{
			"models[0].tokenizer: this does not go with file; remove it", "models[0].upstream_model: this does not go with file; remove it"}},
		{"modes", "models:\n- {name: a, file: a, heal: ‸stabel, allow_heal: [off, ‸of, ‸off, ‸true]}\n", []string{
			"models[0].heal: give one of auto, exact, stable, last, off; did you mean stable?",
			"models[0].allow_heal[1]: give one of auto, exact, stable, last, off; did you mean off?",
			"models[0].allow_heal[2]: the mode stands twice",
			"models[0].allow_heal[3]: give text, not true or false; put it in quotes"}},
		{"no modes", "models:\n- {name: a, file: a, allow_heal: ‸[]}\n", one("models[0].allow_heal: the list is empty; leave the key out, or give it a value")},
		{"proxy", "models:\n- {name: a, upstream: p, heal: ‸exact, tokenizer: ‸t, allow_heal: ‸[off]}\nupstreams: {p: {kind: proxy, urls: [http://h]}}\n", []string{
			"models[0].heal: an upstream of kind proxy heals nothing; only off goes",
			"models[0].tokenizer: an upstream of kind proxy heals nothing; remove it",
			"models[0].allow_heal: an upstream of kind proxy heals nothing; remove it"}},
		{"numbers", "models:\n- {name: a, file: a, context: ‸0, parallel: ‸257, threads: ‸many, max_tokens: ‸-1}\n", []string{
			"models[0].context: give a whole number from 1 to 268435456", "models[0].parallel: give a whole number from 1 to 256",
			"models[0].threads: give a number from 1 to 512, not text", "models[0].max_tokens: give a whole number from 1 to 268435456"}},
		{"name is a number", "models:\n- {name: ‸7, file: a}\n", one("models[0].name: give text, not a number; put it in quotes")},

		{"no key", "keys: [‸{name: a}]\nmodels: [{name: a, file: a}]\n", one("keys[0]: the key itself is missing; give one of key, key_file and sha256")},
		{"several keys", "keys: [{name: a, key: \"${KEY}\", key_file: ‸f, sha256: " + strings.Repeat("ab", 32) + "}]\nmodels: [{name: a, file: a}]\n",
			one("keys[0].key_file: key is there already; give one of key, key_file and sha256")},
		{"key's name", "keys:\n- ‸{key: \"${KEY}\", ‸nam: a}\n- {name: a, key: \"${OTHER}\"}\n- {name: ‸a, sha256: " + strings.Repeat("ab", 32) + "}\nmodels: [{name: a, file: a}]\n", []string{
			"keys[0].name: name is missing; it has to be there", `keys[0]: there is no key "nam"; did you mean name?`, "keys[2].name: keys[1] has this name already"}},
		{"same key", "keys:\n- {name: a, key: \"${KEY}\"}\n- ‸{name: b, key: " + testKey + "}\nmodels: [{name: a, file: a}]\n", one("keys[1]: this is the key of keys[0]")},
		{"hash", "keys:\n- {name: a, sha256: ‸abc}\n- {name: b, sha256: ‸" + strings.Repeat("0", 62) + "zz}\nmodels: [{name: a, file: a}]\n", []string{
			"keys[0].sha256: give the 64 hexadecimal digits of the key's SHA-256", "keys[1].sha256: give the 64 hexadecimal digits of the key's SHA-256"}},
		{"hash of nothing", "keys:\n- {name: a, sha256: ‸e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}\nmodels: [{name: a, file: a}]\n", one("keys[0].sha256: this is the SHA-256 of no key, or of an empty one")},
		{"key's models", "keys:\n- {name: a, key: \"${KEY}\", models: [b, ‸bb, ‸zzz]}\n- {name: b, key: \"${OTHER}\", models: ‸[]}\nmodels: [{name: model, file: a, aliases: [b]}]\n", []string{
			"keys[0].models[1]: there is no such model; there are model", "keys[0].models[2]: there is no such model; there are model",
			"keys[1].models: the list is empty; leave the key out, or give it a value"}},
	}, "", "")
}

func TestSyntaxErrors(t *testing.T) {
	const braces = `; within [ ] and { } put "${NAME}" in quotes`
	testCases(t, []errorCase{
		{"indentation", "a:\n  b: 1\n ‸c: 2\n", one("this fits neither the line above nor its indentation; the keys of one mapping start in one column")},
		{"open brace", "a: ‸{b: 1\n", one("this { is not closed")},
		{"open bracket", "a: ‸[1, 2\n", one("this [ is not closed")},
		{"open bracket before a key", "a: [1, 2\n‸b: 3\n", one(notClosed)},
		{"two keys without a comma", "a: {b: 1\n  ‸c: 2}\n", one(notClosed)},
		{"dashes in brackets", "a: [\n  ‸- b\n]\n", one("a list within [ ] or { } has commas, no dashes")},
		{"closing bracket", "a: ‸]\n", one("this ] closes nothing")},
		{"two keys in a line", "a: ‸b: c\n", one(`two keys in one line; put text with ": " in quotes`)},
		{"quote", "a: ‸\"x\nb: 1\n", one("this quote is not closed")},
		{"single quote", "é: ‸'x\nb: 1\n", one("this quote is not closed")},
		{"escape", "a: \"x\\‸q\"\n", one(`unknown escape in a text in double quotes; write \\ for a backslash`)},
		{"at sign", "a: ‸@x\n", one("text cannot begin with @ or `; put it in quotes")},
		{"tab", "a:\n‸\tb: 2\n", one("a tab; use spaces")},
		{"control character", "a: b‸\x00\n", one("a control character")},
		{"list on the key's line", "k: ‸- a\n", one("a list starts on the line below its key")},
		{"no key", "a: 1\n‸b\n", one("this line has no key; write key: value")},
		{"no key before the colon", "‸: a\n", one("this is no key; a key is one word with a colon behind it")},
		{"list as key", "[a]‸: 1\n", one("a colon without a key before it")},
		{"alias as key", "b: &b a\n‸*b : c\n", one("a key is a plain word")},
		{"unknown alias", "a: ‸*b\n", one("no anchor with this name stands before the alias")},
		{"alias in its anchor", "a: &b [‸*b]\n", one("the alias stands within its own anchor")},
		{"two anchors", "a: ‸&b &c d\n", one("two anchors for one value")},
		{"anchor without name", "a: ‸&\n", one("the name of an anchor or alias is a word of at most 64 letters")},
		{"tag", "a: ‸!!str b\n", one("tags (!) are not read; put text that begins with ! in quotes")},
		{"block", "a: ‸|\n  b\n", one("values have one line; | and > are not read")},
		{"folded block", "a: ‸>-\n  b\n", one("values have one line; | and > are not read")},
		{"indented more", "a‸: b\n  c: d\n", one("the next line is indented more than this one, whose value stands here already; the keys of one mapping start in one column")},
		{"text of two lines in brackets", "a: [b‸,\n  c\n  d]\n", one("the value goes on in the next line; values have one line")},
		{"text of two lines", "a‸: b\n  c\n", one("the value goes on in the next line; values have one line")},
		{"text with a dash", "a‸: b\n  - c\n", one("the value goes on in the next line; values have one line")},
		{"quoted text of two lines", "a: ‸\"b\n  c\"\n", one("the value goes on in the next line; values have one line")},
		{"documents", "a: 1\n‸---\nb: 1\n", one("only one document fits in a file; remove the line --- or ...")},
		{"document end", "a: 1\n‸...\n", one("only one document fits in a file; remove the line --- or ...")},
		{"directive", "‸%YAML 1.2\n---\na: b\n", one("directives (%) are not read")},
		{"question mark", "‸? a\n: b\n", one("keys with ? are not read; write key: value")},
		{"reference in braces", "a: {k: $‸{K}}\n", one(notClosed + braces)},
		{"reference in brackets", "a: [$‸{K}]\n", one(notClosed + braces)},
		{"merge conflict", "a: b\n‸<<<<<<< HEAD\n", one("three < in a row; was a merge left unfinished?")},
		{"merge of a number", "models:\n- name: a\n  file: b\n  <<: ‸3\n", one("models[0]: << takes an alias of a mapping, not a number")},
		{"CRLF", "a:\r\n  b: 1\r\n ‸c: 2\r\n", one("this fits neither the line above nor its indentation; the keys of one mapping start in one column")},
	}, "", "")
}

func TestParse(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	_, source, _ := strings.Cut(string(text), "```yaml\n")
	source, _, _ = strings.Cut(source, "```")
	env := func(name string) (string, bool) { return testKey + name, true }
	got, err := (&Reader{LookupEnv: env, SkipFiles: true}).Parse("etc/unfray.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	gpu := &Upstream{
		Name: "gpu", Kind: VLLM, URLs: []*url.URL{at("http://10.0.0.11:8000"), at("http://10.0.0.12:8000")},
		APIKey:   NewSecret(testKey + "VLLM_API_KEY"),
		Timeouts: Timeouts{Connect: 2 * time.Second, FirstToken: time.Minute, Idle: 30 * time.Second, Total: -1},
		Health:   Health{Path: "/health", Interval: 5 * time.Second, Timeout: 2 * time.Second, Failures: 3, Successes: 1},
		Retries:  2, MaxConnections: 256,
	}
	cpu := &Upstream{Name: "cpu", Kind: LlamaCPP, URLs: []*url.URL{at("http://127.0.0.1:8081")}}
	hosted := &Upstream{Name: "hosted", Kind: Proxy, URLs: []*url.URL{at("https://llm.example.com/openai")}}
	want := &Config{
		File: "etc/unfray.yaml",
		Listeners: []Listener{{Address: "127.0.0.1:8080"},
			{Address: ":8443", TLSCert: filepath.FromSlash("etc/tls/gateway.pem"), TLSKey: filepath.FromSlash("etc/tls/gateway.key")}},
		Keys: []Key{
			{Name: "editors", SHA256: HashOf(testKey + "UNFRAY_EDITORS_KEY")},
			{Name: "ci", Models: []string{"coder", "tiny"}},
			{Name: "partner", SHA256: got.Keys[2].SHA256, Models: []string{"tiny"}},
		},
		Upstreams: []*Upstream{gpu, cpu, hosted},
		Models: []Model{
			{Name: "coder", Aliases: []string{"code", "gpt-3.5-turbo-instruct"}, Upstream: gpu, upstream: "gpu", UpstreamModel: "Qwen/Qwen2.5-Coder-7B",
				Tokenizer: filepath.FromSlash("etc/tokenizers/qwen2.5-coder"), Heal: heal.Exact,
				AllowHeal: []heal.Mode{heal.Auto, heal.Exact, heal.Stable, heal.Off}, MaxTokens: 4096, CachePrediction: On,
				Recovery: Recovery{Mode: RecoverRepair, Allow: RecoverModes(), Attempts: 2, MaxTokens: 512, ReservePercent: 30, Time: 2 * time.Second, Bytes: 4 << 20,
					Strategies: []string{"strict", "reasoning", "calls", "locate", "repair", "schema", "text", "loop", "continue"},
					ToolCalls:  DropCalls, OnFailure: Partial, Fallback: "big", Continue: ContinueFields}},
			{Name: "small", Upstream: cpu, upstream: "cpu"},
			{Name: "big", Upstream: hosted, upstream: "hosted"},
			{Name: "tiny", File: filepath.FromSlash("etc/models/tiny.gguf"), Context: 4096, Parallel: 4, Threads: 8, Queue: 16, Device: "cpu", Heal: heal.Stable},
		},
		Default: hosted, defaultUpstream: "hosted",
		Limits:  Limits{MaxBodyBytes: 8 << 20, MaxChoices: 64, Request: 10 * time.Minute, Read: 30 * time.Second, Write: 30 * time.Second, Drain: time.Minute},
		Log:     Log{JSON: true, Level: slog.LevelInfo},
		Metrics: On,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if m := got.Model("code"); m == nil || m.Name != "coder" || got.Model("none") != nil {
		t.Errorf("an alias gives %v", m)
	}
	if got.Models[0].Upstream.APIKey.Reveal() != testKey+"VLLM_API_KEY" {
		t.Error("the upstream's key is another one")
	}
}

func TestByteOrderMark(t *testing.T) {
	if _, err := testReader().Parse("file.yaml", []byte("\ufeffmodels: [{name: a, file: f}]\r\n")); err != nil {
		t.Error(err)
	}
}

func TestBytesThatAreNoText(t *testing.T) {
	_, err := Parse("file.yaml", []byte("a: é\xff\xfe\n"))
	checkErrors(t, "error", listOfErrors(t, err), []place{{1, 5}}, one("this byte is not UTF-8"))
	if _, err := Parse("file.yaml", []byte("models: [{name: a, file: \"\ufffd\"}]")); err != nil {
		t.Errorf("the replacement character itself: %v", err)
	}
}

// Colons without a blank end no text, within braces neither.
func TestColons(t *testing.T) {
	c, err := testReader().Parse("file.yaml", []byte(`
listeners: [{address: localhost:1}, {address: "[::1]:1"}, {"address":"h:1"}]
upstreams: {u: {kind: proxy, urls: [http://h:8000/a:1:b, "https://[::1]:80"]}}
models: [{name: a:b:c, aliases: [d:1, 5:6], upstream: u}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Listeners[0].Address, c.Listeners[2].Address, c.Upstreams[0].URLs, c.Models[0].Name, c.Models[0].Aliases); got != "localhost:1h:1[http://h:8000/a:1:b https://[::1]:80]a:b:c[d:1 5:6]" {
		t.Errorf("got %s", got)
	}
}

func TestZeroAndNone(t *testing.T) {
	c, err := testReader().Parse("file.yaml", []byte(`
upstreams:
  u: {kind: vllm, urls: ["http://H:80/a//"], retries: 0, timeouts: {first_token: none, idle: none}, health: {interval: none}}
models:
- {name: a, upstream: u, heal: off, aliases: [], cache_prediction: on}
- {name: b, file: /m.gguf, queue: 0, cache_prediction: off}
- {name: c, upstream: u, tokenizer: o200k_base=enc/o200k_base.tiktoken}
limits: {request: none, drain: none, body: 1500KB}
log: {level: error, prompts: True}
metrics: off
`))
	if err != nil {
		t.Fatal(err)
	}
	u := c.Upstreams[0]
	if u.Retries != -1 || u.Timeouts != (Timeouts{FirstToken: -1, Idle: -1}) || u.Health != (Health{Interval: -1}) || u.URLs[0].String() != "http://h:80/a" {
		t.Errorf("upstream %+v", u)
	}
	if c.Models[0].Heal != heal.Off || c.Models[1].Queue != -1 || c.Models[1].File != "/m.gguf" || c.Models[2].Tokenizer != "o200k_base="+filepath.FromSlash("enc/o200k_base.tiktoken") {
		t.Errorf("models %+v", c.Models)
	}
	for i, want := range []Toggle{On, Off, Unset} {
		if c.Models[i].CachePrediction != want {
			t.Errorf("models[%d]: cache_prediction %v, want %v", i, c.Models[i].CachePrediction, want)
		}
	}
	if c.Limits != (Limits{MaxBodyBytes: 1_500_000, Request: -1, Drain: -1}) {
		t.Errorf("limits %+v", c.Limits)
	}
	if !c.Log.Prompts || c.Log.JSON || c.Log.Level != slog.LevelError || c.Metrics != Off || c.Metrics.Or(true) || !Unset.Or(true) || !On.Or(false) {
		t.Errorf("log %+v, metrics %v", c.Log, c.Metrics)
	}
	if c.Default != nil || c.Listeners != nil || c.Keys != nil {
		t.Errorf("what the file does not have: %+v", c)
	}
}

func TestMerge(t *testing.T) {
	c, err := testReader().Parse("file.yaml", []byte(`
x-one: &one
  heal: stable
  max_tokens: 10
x-two: &two {max_tokens: 20, aliases: [a2], <<: *one}
upstreams: {u: &u {kind: vllm, urls: [http://h]}, v: *u}
models:
- {name: a, upstream: u, <<: *one}
- {name: b, upstream: v, <<: *two, heal: off}
- {name: c, upstream: v, <<: [*one, {heal: last, upstream_model: x}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range c.Models {
		got = append(got, fmt.Sprint(m.Name, m.Heal, m.MaxTokens, m.Aliases, m.UpstreamModel))
	}
	want := []string{"a stable 10 [] ", "b off 20 [a2] ", "c stable 10 [] x"}
	for i := range want {
		if strings.Join(strings.Fields(got[i]), "") != strings.ReplaceAll(want[i], " ", "") {
			t.Errorf("model %q, want %q", got[i], want[i])
		}
	}
}

func TestWarnings(t *testing.T) {
	source, places := unmark(`listeners:
- address: 127.0.0.1:1
- address: "[::1]:1"
- address: localhost:1
- address: ‸":1"
- address: ‸0.0.0.0:1
upstreams:
  used:
    kind: vllm
    urls: [‸http://h/v1]
    timeouts: {first_token: ‸10s, total: 5s}
  idle: ‸
    kind: vllm
    urls: [http://h]
models: [{name: m, upstream: used}]
`)
	// The place of a mapping is its first key.
	places[4] = place{13, 5}
	c, err := testReader().Parse("file.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	open := ".address: other machines can reach this address, and clients need no key; add keys, or listen on 127.0.0.1"
	checkErrors(t, "warning", c.Warnings, places, []string{
		"listeners[3]" + open, "listeners[4]" + open,
		"upstreams.used.urls[0]: the URL ends in /v1, which clients' paths begin with already; leave it out",
		"upstreams.used.timeouts.first_token: this is longer than total, which ends the request before",
		"upstreams.idle: nothing uses this upstream",
	})

	source, places = unmark("keys: [{name: a, key: ‸short}]\nlisteners: [{address: \":1\"}]\nmodels: [{name: m, file: f}]\n")
	if c, err = testReader().Parse("file.yaml", []byte(source)); err != nil {
		t.Fatal(err)
	}
	checkErrors(t, "warning", c.Warnings, places, one("keys[0].key: the key is short; use 22 random letters and digits or more, which nobody can guess from its hash"))
}

func TestManyErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("models:\n")
	for range 1500 {
		b.WriteString("- nothing\n")
	}
	_, err := Parse("file.yaml", []byte(b.String()))
	list := listOfErrors(t, err)
	if len(list) != maxErrors {
		t.Fatalf("%d errors, want %d", len(list), maxErrors)
	}
	if last := list[maxErrors-1]; last.Text != "1451 more are not shown" || last.Line != 0 {
		t.Errorf("the last error is %v", last)
	}
	var first *Error
	if !errors.As(err, &first) || first.Line != 2 || first.Path != "models[0]" {
		t.Errorf("errors.As gives %v", first)
	}
	// An alias repeats a mistake, its report does not.
	_, err = Parse("file.yaml", []byte("models:\n- &m {name: a, file: f, heal: x}\n- *m\n"))
	if list = listOfErrors(t, err); len(list) != 2 {
		t.Errorf("errors of an alias:\n%v", err)
	}
}
