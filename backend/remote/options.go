package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/unfray/unfray/tokenizer"
)

// Options say where a server is and what is known of its model.
type Options struct {
	// Transport sends the requests; nil: [http.DefaultTransport]. With one that
	// chooses among several servers Base is nil: the URLs have a path and a query
	// only.
	Transport http.RoundTripper
	Base      *url.URL // scheme, host and the path before all others

	// OneServer says that Transport has one server to send to, so that what one
	// answer says of it, such as a slot, holds for the next request.
	OneServer bool

	// Key is sent as a bearer token. It is in no error.
	Key string
	// Model names one of the server's models; "": its only one.
	Model string
	// Tokenizer is that of the model. Without one nothing is generated: there is
	// only what the server says of itself.
	Tokenizer *tokenizer.Tokenizer

	// MaxMask is how many IDs a list of allowed tokens may have where a server
	// takes such lists; 0: 1024.
	MaxMask int
	// Timeout is how long requests may take that generate at most one token;
	// 0: a minute.
	Timeout time.Duration
}

const (
	defaultMaxMask = 1024 // vLLM's V2 runner takes no more
	defaultTimeout = time.Minute
)

// check refuses options that nothing can be done with, and fills in defaults.
func (o *Options) check() error {
	switch {
	case o.Base == nil && o.Transport == nil:
		return errors.New("remote: there is neither an address nor a transport; give the server's URL")
	case o.Base != nil && (o.Base.Scheme != "http" && o.Base.Scheme != "https" || o.Base.Host == ""):
		return fmt.Errorf("remote: %q is no address of a server; give http:// or https:// and a host", o.Base.Redacted())
	case o.Base != nil && o.Base.User != nil:
		return errors.New("remote: the address holds a user name; give a key instead")
	case strings.ContainsAny(o.Key, "\r\n\x00"):
		return errors.New("remote: the key holds a line break or a zero byte")
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.MaxMask <= 0 {
		o.MaxMask = defaultMaxMask
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return nil
}
