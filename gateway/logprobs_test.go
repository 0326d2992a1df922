package gateway

import (
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/vocab"
)

// TestTopLogprobsOfEqualBytes has two tokens with the same bytes: the likelier
// one stands in the answer, also if it is certain and its logarithm is zero.
func TestTopLogprobsOfEqualBytes(t *testing.T) {
	v, err := vocab.New([][]byte{[]byte("a"), []byte("a")}, []vocab.Kind{vocab.Normal, vocab.Byte}, vocab.NoSpecials())
	if err != nil {
		t.Fatal(err)
	}
	tokens := []unfray.Token{{Bytes: []byte("a"), Top: []backend.Logprob{{ID: 0, Logprob: 0}, {ID: 1, Logprob: -30}}}}
	l := completionLogprobs(v, tokens, 2, func(unfray.Token) int { return 0 })
	if got := l.TopLogprobs[0]; len(got) != 1 || got["a"] != 0 {
		t.Errorf("top log-probabilities %v, want a at 0", got)
	}
}
