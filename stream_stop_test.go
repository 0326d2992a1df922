package unfray_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend/backendtest"
)

// TestStreamedTokensAtStops stops a continuation at each of its substrings. The
// tokens that were streamed must be those of the whole answer, and spell it.
func TestStreamedTokensAtStops(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{}, "The capital of France is Paris. Yes")
	const continuation = "ance is Paris."
	for i := range continuation {
		for k := i + 1; k <= len(continuation); k++ {
			stop := continuation[i:k]
			s, err := m.Generate(t.Context(), &unfray.Request{
				Prompt: unfray.Prompt{Text: []byte("The capital of Fr")}, Stop: []string{stop}, MaxTokens: 8, Logprobs: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			var text, spelt []byte
			var tokens []unfray.Token
			for {
				c, err := s.Next()
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				text, tokens = append(text, c.Text...), append(tokens, c.Tokens...)
			}
			for _, token := range tokens {
				spelt = append(spelt, token.Bytes...)
			}
			want, _, _ := strings.Cut(continuation, stop)
			if r := s.Result(); string(text) != want || string(spelt) != want || fmt.Sprint(tokens) != fmt.Sprint(r.Tokens) {
				t.Errorf("stop %q: text %q, tokens %v spell %q, whole %q %v", stop, text, tokens, spelt, r.Text, r.Tokens)
			}
		}
	}
}
