package config

import (
	"fmt"
	"log/slog"
)

const hidden = "[hidden]"

// Secret is a text that nothing prints by accident: not fmt, whatever the verb,
// not log/slog, not encoding/json.
type Secret struct {
	// A pointer, so that a struct printed by reflection shows an address.
	text *string
}

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.text == nil || *s.text == "" }

// String is a placeholder, "" where there is no text.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// Format prints the placeholder, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText gives the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue gives the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
