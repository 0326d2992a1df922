package config

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/unfray/unfray/heal"
)

// Config is a configuration file that is free of errors. Lists are in the
// file's order. Paths are absolute or relative to the working folder, not to
// the file any more.
type Config struct {
	// File is the name of the file, as errors show it.
	File string

	Listeners []Listener // none: the default address
	Keys      []Key      // none: clients need no key
	Upstreams []*Upstream
	Models    []Model
	// Default takes the requests that no model serves; nil: they are refused,
	// and there is a model.
	Default         *Upstream
	defaultUpstream string // its name

	// Recovery is that of answers of Default. The models' own holds what it says
	// where they do not.
	Recovery Recovery
	Limits   Limits
	Log      Log
	Metrics  Toggle

	// Warnings are what is legal and probably not meant, in the file's order.
	Warnings []*Error
}

// Listener is an address to serve on.
type Listener struct {
	Address string // host:port; no host: all addresses of the machine
	// TLSCert and TLSKey are PEM files; both or none.
	TLSCert, TLSKey string
}

// Key is a client's API key. The key itself is not kept.
type Key struct {
	Name string
	// SHA256 is the key's hash, to be compared in constant time.
	SHA256 Hash
	// Models are the names of the models that the key opens, aliases replaced
	// by names; nil: all.
	Models []string
}

// Hash is the SHA-256 of a client's key. Nothing prints it.
type Hash [sha256.Size]byte

// HashOf is the hash of a key that a client sent.
func HashOf(key string) Hash { return sha256.Sum256([]byte(key)) }

// Format prints a placeholder, whatever the verb.
func (Hash) Format(s fmt.State, _ rune) { fmt.Fprint(s, hidden) }

// MarshalText gives a placeholder.
func (Hash) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue gives a placeholder.
func (Hash) LogValue() slog.Value { return slog.StringValue(hidden) }

// Kind is what a server is.
type Kind string

// The kinds of upstreams.
const (
	LlamaCPP Kind = "llamacpp" // llama.cpp's server
	VLLM     Kind = "vllm"
	Proxy    Kind = "proxy" // anything else; requests pass through untouched
)

// Kinds lists every kind.
func Kinds() []Kind { return []Kind{LlamaCPP, VLLM, Proxy} }

// Upstream is one model server, at one or several addresses.
type Upstream struct {
	Name string
	Kind Kind
	// URLs are http or https, with an optional base path that does not end in
	// a slash. There is at least one.
	URLs []*url.URL
	// APIKey is sent to the server instead of the client's key; empty: none.
	APIKey   Secret
	Timeouts Timeouts
	Health   Health
	// Retries is how often a request is sent again, to another endpoint where
	// there is one; 0: default, negative: never.
	Retries        int
	MaxConnections int // to each endpoint; 0: default
}

// Timeouts are the limits of one request to an upstream. 0: default, negative:
// no limit.
type Timeouts struct {
	Connect    time.Duration // until there is a connection; never negative
	FirstToken time.Duration // from the request's end to the answer's headers
	Idle       time.Duration // between two parts of the answer
	Total      time.Duration // for all of it
}

// Health is how endpoints are watched. 0: default.
type Health struct {
	Path      string        // what is asked for; "": the kind's own
	Interval  time.Duration // between two checks; negative: no checks
	Timeout   time.Duration // of one check
	Failures  int           // in a row, until an endpoint is left out
	Successes int           // in a row, until it is used again
}

// Model is a model to serve. It has either File or Upstream.
type Model struct {
	Name    string
	Aliases []string // other names for it

	// File is a GGUF file for the embedded engine. The fields below it are the
	// engine's; 0: default.
	File     string
	Context  int    // tokens of one request
	Parallel int    // requests that are generated at once
	Threads  int    // native threads
	Queue    int    // requests that may wait; negative: none
	Device   string // what computes; "": the best there is

	Upstream      *Upstream
	upstream      string // its name
	UpstreamModel string // the model's name at the upstream; "": Name
	// Tokenizer is what the upstream's model tokenizes with, as package
	// tokenizer opens it; "": it is looked for.
	Tokenizer string

	Heal      heal.Mode   // where a request does not say; "": heal.Auto
	AllowHeal []heal.Mode // what a request may ask for; nil: every mode
	MaxTokens int         // the most that one continuation may have; 0: no limit
	Recovery  Recovery

	// CachePrediction says whether it is predicted what the engine has cached.
	// Unset: it is, unless Heal is heal.Off.
	CachePrediction Toggle
}

// Limits bound what clients can ask for. 0: default.
type Limits struct {
	MaxBodyBytes int64
	MaxChoices   int           // continuations of one request
	Request      time.Duration // negative: no limit
	Read         time.Duration
	Write        time.Duration
	Drain        time.Duration // negative: running requests end at once
}

// Log is what is logged, and how.
type Log struct {
	Prompts bool
	JSON    bool
	Level   slog.Level
}

// Toggle is a switch that the file may leave alone.
type Toggle uint8

// The states of a toggle.
const (
	Unset Toggle = iota
	On
	Off
)

// Or says whether the toggle is on, with what an unset one means.
func (t Toggle) Or(unset bool) bool {
	if t == Unset {
		return unset
	}
	return t == On
}

// Model returns the model that a client means by a name or an alias, or nil.
func (c *Config) Model(name string) *Model {
	for i := range c.Models {
		m := &c.Models[i]
		if m.Name == name {
			return m
		}
		for _, a := range m.Aliases {
			if a == name {
				return m
			}
		}
	}
	return nil
}

// String describes what the file sets up, a line for each listener, upstream
// and model. It has no secrets.
func (c *Config) String() string {
	var b strings.Builder
	for _, l := range c.Listeners {
		fmt.Fprintf(&b, "listener  %s", l.Address)
		if l.TLSCert != "" {
			b.WriteString(", TLS")
		}
		b.WriteByte('\n')
	}
	for _, k := range c.Keys {
		fmt.Fprintf(&b, "key       %s: ", k.Name)
		if k.Models == nil {
			b.WriteString("all models\n")
			continue
		}
		b.WriteString(strings.Join(k.Models, ", ") + "\n")
	}
	for _, u := range c.Upstreams {
		fmt.Fprintf(&b, "upstream  %s: %s at ", u.Name, u.Kind)
		for i, endpoint := range u.URLs {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(endpoint.String())
		}
		if !u.APIKey.IsZero() {
			b.WriteString(", with a key")
		}
		b.WriteByte('\n')
	}
	for _, m := range c.Models {
		fmt.Fprintf(&b, "model     %s", m.Name)
		if len(m.Aliases) > 0 {
			fmt.Fprintf(&b, " (also %s)", strings.Join(m.Aliases, ", "))
		}
		if m.Upstream != nil {
			fmt.Fprintf(&b, ": upstream %s", m.Upstream.Name)
		} else {
			fmt.Fprintf(&b, ": file %s", m.File)
		}
		if m.Heal != "" {
			fmt.Fprintf(&b, ", heal %s", m.Heal)
		}
		if m.Recovery.Mode != "" {
			fmt.Fprintf(&b, ", recover %s", m.Recovery.Mode)
		}
		b.WriteByte('\n')
	}
	if c.Default != nil {
		fmt.Fprintf(&b, "the rest  upstream %s\n", c.Default.Name)
	}
	return b.String()
}

// LogValue is the number of what the file sets up.
func (c *Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("file", c.File),
		slog.Int("listeners", len(c.Listeners)),
		slog.Int("keys", len(c.Keys)),
		slog.Int("upstreams", len(c.Upstreams)),
		slog.Int("models", len(c.Models)),
		slog.Int("warnings", len(c.Warnings)),
	)
}
