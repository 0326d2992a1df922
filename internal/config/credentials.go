package config

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"regexp"
	"strings"
)

const maxSecretBytes = 4096

var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}$`)

// secret is a key as text or ${NAME}. It is kept by its path.
func secret() value[string] {
	v := value[string]{form: form{name: "key", schema: map[string]any{"type": "string", "minLength": 1}}}
	v.decode = func(d *decoder, n *node, path string, _ *string) {
		switch {
		case n.kind == nullKind:
			d.fail(n.place, path, "there is no value; give ${NAME}, a variable of the environment")
			return
		case n.kind == numberKind || n.kind == boolKind:
			d.fail(n.place, path, "give text, not %s; put it in quotes", n.kind)
			return
		case n.kind != textKind:
			d.fail(n.place, path, "give text, not %s", n.kind)
			return
		}
		s := n.text
		if strings.Contains(s, "${") {
			m := reference.FindStringSubmatch(s)
			if m == nil {
				d.fail(n.place, path, "a reference is the whole value: ${NAME}, of letters, digits and _")
				return
			}
			if d.reader.SkipEnv {
				return
			}
			var ok bool
			if s, ok = d.reader.lookup(m[1]); !ok {
				d.fail(n.place, path, "the environment variable %s is not set", m[1])
				return
			}
			if s == "" {
				d.fail(n.place, path, "the environment variable %s is empty", m[1])
				return
			}
		}
		if why := checkSecret(s); why != "" {
			d.fail(n.place, path, "%s", why)
			return
		}
		d.secrets[path] = s
	}
	return v
}

// checkSecret says what is wrong with a key. It is sent in a header.
func checkSecret(s string) string {
	switch {
	case s == "":
		return "the key is empty"
	case len(s) > maxSecretBytes:
		return "the key has more than 4096 bytes"
	case strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return "the key has blanks, line ends or characters that are not ASCII"
	}
	return ""
}

// secretFile is the name of a file with a key, which is kept by its path.
func secretFile() value[string] {
	v := value[string]{form: form{name: "path", schema: map[string]any{"type": "string", "minLength": 1}}}
	v.decode = func(d *decoder, n *node, path string, _ *string) { d.fileName(n, path, secretContent) }
	return v
}

// digest is a SHA-256 in hexadecimal.
func digest() value[Hash] {
	v := value[Hash]{form: form{name: "SHA-256", schema: map[string]any{"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}}}
	v.decode = func(d *decoder, n *node, path string, to *Hash) {
		if !d.isText(n, path) {
			return
		}
		sum, err := hex.DecodeString(n.text)
		if err != nil || len(sum) != sha256.Size {
			d.fail(n.place, path, "give the 64 hexadecimal digits of the key's SHA-256")
			return
		}
		if h := Hash(sum); h == (Hash{}) || h == HashOf("") {
			d.fail(n.place, path, "this is the SHA-256 of no key, or of an empty one")
			return
		}
		*to = Hash(sum)
		d.hashes[path] = true
	}
	return v
}

// logFormat is text or json.
func logFormat() value[bool] {
	word := oneOf("format", "text", "json")
	return value[bool]{form: word.form, decode: func(d *decoder, n *node, path string, to *bool) {
		var s string
		word.decode(d, n, path, &s)
		*to = s == "json"
	}}
}

// logLevel is a level of log/slog.
func logLevel() value[slog.Level] {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	word := oneOf("level", "debug", "info", "warn", "error")
	return value[slog.Level]{form: word.form, decode: func(d *decoder, n *node, path string, to *slog.Level) {
		var s string
		word.decode(d, n, path, &s)
		*to = levels[s]
	}}
}
