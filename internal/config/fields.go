package config

import (
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/unfray/unfray/heal"
)

const (
	maxCount   = 1_000_000
	maxContext = 1 << 28 // tokens; the engine's limit
	maxBody    = 1 << 30
)

// schema is the file, key by key. docs/configuration.md says the same.
var schema = object(
	key("listeners", listOf(listener, 1), func(c *Config) *[]Listener { return &c.Listeners },
		"Addresses to serve on. Default: 127.0.0.1:8080."),
	key("keys", listOf(clientKey, 1), func(c *Config) *[]Key { return &c.Keys },
		"API keys of clients. Default: clients need none."),
	key("upstreams", named(upstream, func(u *Upstream) *string { return &u.Name }), func(c *Config) *[]*Upstream { return &c.Upstreams },
		"Model servers, by a name of your choice."),
	key("models", listOf(model, 1), func(c *Config) *[]Model { return &c.Models },
		"Models to serve. Needed, unless there is a default_upstream."),
	key("default_upstream", str("name", nil, checkName), func(c *Config) *string { return &c.defaultUpstream },
		"Upstream for requests that no model serves. Default: they are refused."),
	key("recovery", recovering, func(c *Config) *Recovery { return &c.Recovery },
		"What is done to answers, for all models that do not say it themselves, and for default_upstream."),
	key("limits", limits, func(c *Config) *Limits { return &c.Limits },
		"What one request may take."),
	key("log", logging, func(c *Config) *Log { return &c.Log },
		"What is logged, and how."),
	key("metrics", toggle(), func(c *Config) *Toggle { return &c.Metrics },
		"Whether metrics are served. Default: on."),
)

var listener = object(
	key("address", str("host:port", nil, checkAddress), func(l *Listener) *string { return &l.Address },
		"Host and port. Without a host, all addresses of the machine.").must(),
	key("tls_cert", file(regular), func(l *Listener) *string { return &l.TLSCert },
		"Certificate chain in PEM; makes the listener HTTPS."),
	key("tls_key", file(regular), func(l *Listener) *string { return &l.TLSKey },
		"Private key of the certificate, in PEM."),
)

var clientKey = object(
	key("name", str("name", nil, checkName), func(k *Key) *string { return &k.Name },
		"What logs call the client.").must(),
	key("key", secret(), discard[Key],
		"The key, as ${NAME} from the environment."),
	key("key_file", secretFile(), discard[Key],
		"File with the key."),
	key("sha256", digest(), func(k *Key) *Hash { return &k.SHA256 },
		"SHA-256 of the key in hexadecimal, so that the key is nowhere on this machine."),
	key("models", listOf(str("name", nil, checkName), 1), func(k *Key) *[]string { return &k.Models },
		"Models that the key opens. Default: all."),
).also(oneOfKeys("key", "key_file", "sha256"))

var upstream = object(
	key("kind", oneOf("kind", Kinds()...), func(u *Upstream) *Kind { return &u.Kind },
		"What server it is. proxy is any other; its requests pass through unchanged.").must(),
	key("urls", listOf(endpoint(), 1), func(u *Upstream) *[]*url.URL { return &u.URLs },
		"Base URLs of servers with the same model, without /v1.").must(),
	key("api_key", secret(), discard[Upstream],
		"Key to send to the server, as ${NAME} from the environment."),
	key("api_key_file", secretFile(), discard[Upstream],
		"File with the key to send to the server."),
	key("timeouts", timeouts, func(u *Upstream) *Timeouts { return &u.Timeouts },
		"How long one request may take."),
	key("health", health, func(u *Upstream) *Health { return &u.Health },
		"How endpoints are watched."),
	key("retries", integer("number", 0, 10, true), func(u *Upstream) *int { return &u.Retries },
		"How often a request is sent again while nothing of an answer has come. Default: 2."),
	key("max_connections", integer("number", 1, maxCount, false), func(u *Upstream) *int { return &u.MaxConnections },
		"Connections to one endpoint; more requests wait. Default: no limit."),
)

var timeouts = object(
	key("connect", duration(false), func(t *Timeouts) *time.Duration { return &t.Connect },
		"Until there is a connection. Default: 5s."),
	key("first_token", duration(true), func(t *Timeouts) *time.Duration { return &t.FirstToken },
		"From the end of the request to the answer's headers, which servers send with the first token of a stream and the end of any other answer. Default: 10m."),
	key("idle", duration(true), func(t *Timeouts) *time.Duration { return &t.Idle },
		"Between two parts of the answer. Default: 5m."),
	key("total", duration(true), func(t *Timeouts) *time.Duration { return &t.Total },
		"For the whole request. Default: none, and limits.request counts."),
)

var health = object(
	key("path", str("URL path", nil, checkURLPath), func(h *Health) *string { return &h.Path },
		"What is asked for with GET, below the base URL; 2xx is well. Default: /health, where any status below 500 is well."),
	key("interval", duration(true), func(h *Health) *time.Duration { return &h.Interval },
		"Time between two checks; none: no checks. Default: 5s."),
	key("timeout", duration(false), func(h *Health) *time.Duration { return &h.Timeout },
		"Time that one check may take. Default: 2s."),
	key("failures", integer("number", 1, 1000, false), func(h *Health) *int { return &h.Failures },
		"Failed checks in a row until an endpoint is left out. Default: 2."),
	key("successes", integer("number", 1, 1000, false), func(h *Health) *int { return &h.Successes },
		"Good checks in a row until it is used again. Default: 2."),
)

var model = object(
	key("name", str("name", nil, checkName), func(m *Model) *string { return &m.Name },
		"What clients call the model.").must(),
	key("aliases", listOf(str("name", nil, checkName), 0), func(m *Model) *[]string { return &m.Aliases },
		"Other names for it."),
	key("file", file(regular), func(m *Model) *string { return &m.File },
		"GGUF file, run by the embedded engine."),
	key("context", integer("tokens", 1, maxContext, false), func(m *Model) *int { return &m.Context },
		"Tokens of one request, prompt and continuation. Only with file. Default: the model's, at most 4096."),
	key("parallel", integer("number", 1, 256, false), func(m *Model) *int { return &m.Parallel },
		"Requests that are generated at once. Only with file. Default: 8."),
	key("threads", integer("number", 1, 512, false), func(m *Model) *int { return &m.Threads },
		"CPU threads. Only with file. Default: the machine's cores."),
	key("queue", integer("number", 0, maxCount, true), func(m *Model) *int { return &m.Queue },
		"Requests that may wait for a place. Only with file. Default: 64."),
	key("device", str("text", nil, anyText), func(m *Model) *string { return &m.Device },
		"What computes: cpu, or a GPU backend such as cuda, vulkan or metal. Only with file. Default: the best there is."),
	key("upstream", str("name", nil, checkName), func(m *Model) *string { return &m.upstream },
		"Name of the upstream that runs the model."),
	key("upstream_model", str("name", nil, checkUpstreamModel), func(m *Model) *string { return &m.UpstreamModel },
		"What the upstream calls the model. Only with upstream. Default: name."),
	key("tokenizer", file(tokenizerFile), func(m *Model) *string { return &m.Tokenizer },
		"File or folder with the model's tokenizer, or NAME=FILE for a .tiktoken file. Only with upstream. Default: it is looked for."),
	key("heal", oneOf("mode", heal.Modes()...), func(m *Model) *heal.Mode { return &m.Heal },
		"Healing of requests that do not ask for one. Default: auto."),
	key("allow_heal", listOf(oneOf("mode", heal.Modes()...), 1), func(m *Model) *[]heal.Mode { return &m.AllowHeal },
		"Healing that requests may ask for. Default: any."),
	key("max_tokens", integer("tokens", 1, maxContext, false), func(m *Model) *int { return &m.MaxTokens },
		"Most tokens of one continuation. Default: no limit."),
	key("cache_prediction", toggle(), func(m *Model) *Toggle { return &m.CachePrediction },
		"Whether the log tells how many tokens of a prompt are expected in the engine's cache. On also asks the server for the tokens of conversations that are passed on, with a request beside each. Default: all but those, unless heal is off: then requests need not be read."),
	key("recovery", recovering, func(m *Model) *Recovery { return &m.Recovery },
		"What is done to the model's answers. A key that is left out is that of the file's recovery."),
).also(oneOfKeys("file", "upstream"))

var limits = object(
	key("body", size(1<<10, maxBody), func(l *Limits) *int64 { return &l.MaxBodyBytes },
		"Size of a request's body. Default: 8MiB."),
	key("choices", integer("number", 1, 10_000, false), func(l *Limits) *int { return &l.MaxChoices },
		"Continuations that one request may ask for, prompts times n. Default: 128."),
	key("request", duration(true), func(l *Limits) *time.Duration { return &l.Request },
		"Time for a request, waiting included. Default: 10m."),
	key("read", duration(false), func(l *Limits) *time.Duration { return &l.Read },
		"Time to read a request, header and body. Default: 30s."),
	key("write", duration(false), func(l *Limits) *time.Duration { return &l.Write },
		"Time to write one event or answer to a client. Default: 30s."),
	key("drain", duration(true), func(l *Limits) *time.Duration { return &l.Drain },
		"Time that running requests have when the server stops; none: they end at once. Default: 30s."),
)

var logging = object(
	key("prompts", boolean(), func(l *Log) *bool { return &l.Prompts },
		"Whether requests are logged with their prompts. Default: false."),
	key("format", logFormat(), func(l *Log) *bool { return &l.JSON },
		"Form of a record. Default: text."),
	key("level", logLevel(), func(l *Log) *slog.Level { return &l.Level },
		"Least level of the records. Default: info."),
)

// discard is the part of values that the decoder keeps by their path.
func discard[T any](*T) *string { return new(string) }

// checkAddress says what is wrong with a host:port.
func checkAddress(s string) string {
	host, port, err := net.SplitHostPort(s)
	switch n, perr := strconv.Atoi(port); {
	case err != nil:
		return "give host:port, such as 127.0.0.1:8080 or [::1]:8080"
	case perr != nil || n < 0 || n > 65535 || port != strconv.Itoa(n):
		return "the port is a number from 0 to 65535"
	case strings.ContainsAny(host, " /@?#") || !isPrintable(host):
		return "the host is a name or an IP address"
	}
	return ""
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkURLPath says what is wrong with the path of a URL.
func checkURLPath(s string) string {
	if s[0] != '/' || strings.HasPrefix(s, "//") || strings.ContainsAny(s, "?#\\ ") || !isPrintable(s) {
		return "give a path that begins with one /, without ? and #"
	}
	if u, err := url.ParseRequestURI(s); err != nil || climbs(u.Path) {
		return "give a path that begins with one /, without . and .. and escaped where a URL needs it"
	}
	return ""
}

func checkUpstreamModel(s string) string {
	if len(s) > 4*maxNameBytes || !isPrintable(s) {
		return "give a name of at most 512 printable characters"
	}
	return ""
}

// endpoint is the base URL of a server.
func endpoint() value[*url.URL] {
	v := value[*url.URL]{form: form{name: "URL", schema: map[string]any{"type": "string", "pattern": "^https?://"}}}
	v.decode = func(d *decoder, n *node, path string, to **url.URL) {
		if !d.isText(n, path) {
			return
		}
		u, why := parseEndpoint(n.text)
		if why != "" {
			d.fail(n.place, path, "%s", why)
			return
		}
		if strings.HasSuffix(u.Path, "/v1") {
			d.warnAt(path, "the URL ends in /v1, which clients' paths begin with already; leave it out")
		}
		*to = u
	}
	return v
}

// parseEndpoint reads a base URL, or says what is wrong with it.
func parseEndpoint(s string) (*url.URL, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || !isPrintable(s) || strings.Contains(s, " "):
		return nil, "this is no URL; give one such as http://127.0.0.1:8080"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "the URL begins with http:// or https://"
	case u.Hostname() == "" || u.Opaque != "":
		return nil, "the URL has no host"
	case u.User != nil:
		return nil, "the URL has a user or password; use api_key, or api_key_file"
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		return nil, "the URL has a query or fragment; give scheme, host, port and path"
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, "the port is a number from 1 to 65535"
		}
	}
	if climbs(u.Path) {
		return nil, "the URL's path has a part that is . or .."
	}
	// The path as it is escaped, without slashes at its end.
	u, err = url.Parse(u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/"))
	if err != nil {
		return nil, "this is no URL; give one such as http://127.0.0.1:8080"
	}
	return u, ""
}

// climbs reports whether a decoded path leads upwards, also for servers that
// take a backslash for a slash.
func climbs(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// file is the name of a file.
func file(what fileKind) value[string] {
	v := value[string]{form: form{name: "path", schema: map[string]any{"type": "string", "minLength": 1}}}
	v.decode = func(d *decoder, n *node, path string, to *string) {
		if name, ok := d.fileName(n, path, what); ok {
			*to = name
		}
	}
	return v
}

// fileName resolves the name of a file and notes that it has to be there.
func (d *decoder) fileName(n *node, path string, what fileKind) (string, bool) {
	switch {
	case !d.isText(n, path):
		return "", false
	case !isPrintable(n.text):
		d.fail(n.place, path, "the path has characters that cannot be printed")
		return "", false
	case strings.HasPrefix(n.text, "~"):
		d.fail(n.place, path, "~ is not replaced; write the path out")
		return "", false
	}
	prefix, name := "", n.text
	if what == tokenizerFile {
		if encoding, rest, ok := strings.Cut(name, "="); ok && !strings.ContainsAny(encoding, `/\.`) {
			prefix, name = encoding+"=", rest
		}
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.dir, name)
	}
	d.files = append(d.files, fileCheck{at: n.place, path: path, name: name, kind: what})
	return prefix + name, true
}
