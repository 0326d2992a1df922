package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unfray/unfray/heal"
)

// Whatever a file has: no panic, bounded time, no key in what is shown, places
// within the file, and a Config only if it keeps its promises.
func FuzzParse(f *testing.F) {
	if text, err := os.ReadFile(docs); err == nil {
		for _, e := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			f.Add(e[1])
		}
	}
	for _, s := range []string{
		"", "a", "a: b", "- a\n- b: c\n  d: e\n", "a: &b {c: *b}\n", "a: [1, 2.5, .inf, 0x1, ~, true, 'x', \"\\u0041\"]\n", "<<: {a: 1}\n", "? a\n: b\n", "a: |\n b\n\n c\n", "%TAG ! x\n---\na\n...\n",
		"models: [{name: a, file: f, heal: off}]\nkeys: [{name: k, key: \"${KEY}\"}]\n", "upstreams: {u: {kind: vllm, urls: [http://[::1]:1/a%2fb], api_key: ${KEY}}}\n", "x: {a:1, b:c:d}\n", "a: !!str b\n", "\ufeffa: 'b\n  c'\n", "a: \"\\\n b\"\n", "a: # c\n  b # d\n", "{a: b, c}\n", "[a: b]\n", "a: {b: c\n", "- - - a\n",
		"< \n", "#\r\n0", "s: [h\n  u:0: t]", "a: b  \nc: d # e\r\n",
		"limits: {body: 8MiB, read: 1h}\nlog: {level: debug}\nmetrics: on\ndefault_upstream: u\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		start := time.Now()
		c, err := testReader().Parse("file.yaml", text)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%d bytes take %v", len(text), took)
		}
		source := string(text)
		if root, fault := parse(source); fault == nil && root != nil {
			checkPlaces(t, root, source)
		}
		if err != nil {
			checkFuzzErrors(t, source, listOfErrors(t, err))
			return
		}
		shown := everyForm(c) + everyForm(*c)
		for _, k := range []string{testKey, otherKey} {
			if strings.Contains(shown, k) && !strings.Contains(source, k) {
				t.Errorf("a key is shown:\n%s", shown)
			}
		}
		checkPromises(t, c)
	})
}

// checkPlaces checks that every key and scalar of a document stands where its
// node says.
func checkPlaces(t *testing.T, root *node, source string) {
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(source, "\ufeff"), "\r\n", "\n"), "\n")
	check := func(at place, text string) {
		if at.line > len(lines) || at.column > utf8.RuneCountInString(lines[at.line-1]) {
			t.Errorf("%q is said to be at %v, behind the end of %q", text, at, source)
			return
		}
		rest := string([]rune(lines[at.line-1])[at.column-1:])
		if rest[0] != '"' && rest[0] != '\'' && (text == "" || !strings.HasPrefix(rest, text)) {
			t.Errorf("%q is said to be at %v of %q, where %q is", text, at, source, rest)
		}
	}
	seen := map[*node]bool{} // aliases share their nodes
	var walk func(n *node)
	walk = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.kind == textKind || n.kind == numberKind || n.kind == boolKind {
			check(n.place, n.text)
		}
		for _, item := range n.items {
			walk(item)
		}
		for _, p := range n.fields {
			check(p.place, p.key)
			walk(p.value)
		}
	}
	walk(root)
}

func checkFuzzErrors(t *testing.T, source string, list Errors) {
	lines := strings.Count(source, "\n") + strings.Count(source, "\r") + 1
	if len(list) == 0 || len(list) > maxErrors {
		t.Errorf("%d errors", len(list))
	}
	for i, e := range list {
		if e.Text == "" || strings.ContainsAny(e.Error(), "\n\r") {
			t.Errorf("no text of one line: %q", e.Error())
		}
		if last := i == maxErrors-1; e.Line < 1 && !last || e.Line > lines || e.Line > 0 && e.Column < 1 {
			t.Errorf("%v is not within %d lines", e, lines)
		}
		for _, k := range []string{testKey, otherKey} {
			if strings.Contains(e.Error(), k) && !strings.Contains(source, k) {
				t.Errorf("a key is in %v", e)
			}
		}
	}
}

// checkPromises checks what the comments of Config say.
func checkPromises(t *testing.T, c *Config) {
	if len(c.Models) == 0 && c.Default == nil {
		t.Error("nothing is served")
	}
	names := map[string]bool{}
	for _, m := range c.Models {
		for _, n := range append([]string{m.Name}, m.Aliases...) {
			if n == "" || names[n] {
				t.Errorf("the name %q is empty or taken", n)
			}
			names[n] = true
		}
		if (m.File == "") == (m.Upstream == nil) {
			t.Errorf("model %+v has file and upstream, or none", m)
		}
		for _, mode := range append([]heal.Mode{m.Heal}, m.AllowHeal...) {
			if _, err := heal.ParseMode(string(mode)); err != nil {
				t.Error(err)
			}
		}
		if to := m.Recovery.Fallback; to != "" && (to == m.Name || c.Model(to) == nil || c.Model(to).Name != to) {
			t.Errorf("model %s falls back to %q", m.Name, to)
		}
		for _, mode := range append([]RecoverMode{m.Recovery.Mode}, m.Recovery.Allow...) {
			if mode != "" && !slices.Contains(RecoverModes(), mode) {
				t.Errorf("model %s has the mode %q", m.Name, mode)
			}
		}
	}
	for _, u := range c.Upstreams {
		if u.Name == "" || u.Kind == "" || len(u.URLs) == 0 || u.Timeouts.Connect < 0 {
			t.Errorf("upstream %+v", u)
		}
		for _, e := range u.URLs {
			if e.Host == "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" || strings.HasSuffix(e.EscapedPath(), "/") || climbs(e.Path) || e.Scheme != "http" && e.Scheme != "https" {
				t.Errorf("URL %s", e)
			}
		}
		if strings.ContainsAny(u.APIKey.Reveal(), "\r\n ") {
			t.Error("a key with blanks")
		}
	}
	for _, k := range c.Keys {
		// Keys in files are not read here, so a hash may be empty.
		if k.Name == "" || k.Models != nil && len(k.Models) == 0 {
			t.Errorf("key %+v", k)
		}
		for _, m := range k.Models {
			if c.Model(m) == nil || c.Model(m).Name != m {
				t.Errorf("key %s opens %q", k.Name, m)
			}
		}
	}
}
