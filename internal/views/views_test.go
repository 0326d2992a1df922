package views_test

import (
	"testing"

	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/internal/views"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

// TestTokens has a text with bytes that no token stands for: the places of
// the tokens after them are still those in the text.
func TestTokens(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{Merges: [][2]string{{"a", "b"}}, Missing: "\x04\xff"})
	text := []byte("\x04\xffab\x04c\xff")
	var got []string
	ids, ends := tok.EncodeEnds(nil, nil, text, false)
	for _, v := range views.Tokens(tok, text, ids, ends) {
		if s := string(text[v.Start:v.End]); s != *v.Text {
			t.Errorf("the token %q is said to stand at [%d:%d], where the text has %q", *v.Text, v.Start, v.End, s)
		}
		got = append(got, *v.Text)
	}
	if len(got) != 2 || got[0] != "ab" || got[1] != "c" {
		t.Errorf("tokens %q, want ab and c", got)
	}
}
