package unfray_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/heal"
)

func resume(t *testing.T, m *unfray.Model, req *unfray.Request, prior *unfray.Result) *unfray.Result {
	t.Helper()
	s, err := m.Resume(t.Context(), req, prior)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			return s.Result()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func byText(r *unfray.Result) bool {
	return slices.ContainsFunc(r.Healing.Notes, func(n heal.Note) bool { return n.Code == unfray.CodeResumedByText })
}

// TestResume breaks continuations off after every token. What is added makes them
// whole, from the tokens and from the text alone.
func TestResume(t *testing.T) {
	const truth = "The capital of France is Paris, the capital"
	m, rec := toyModel(t, backendtest.VocabularyOptions{}, truth)
	for cut := len("The"); cut < len(truth); cut++ {
		for _, mode := range []heal.Mode{heal.Stable, heal.Exact} {
			req := unfray.Request{Prompt: unfray.Prompt{Text: []byte(truth[:cut])}, Heal: mode}
			for n := 1; n < 12; n++ {
				first := req
				first.MaxTokens = n
				part := complete(t, m, &first)
				if part.FinishReason != backend.FinishLength {
					break
				}
				generated := slices.Clone(rec.generated)
				prompt := slices.Clone(rec.prompt)
				rest := resume(t, m, &req, part)
				if got := truth[:cut] + string(part.Text) + string(rest.Text); got != truth {
					t.Errorf("%q, %s: %q was continued with %q", truth[:cut], mode, part.Text, rest.Text)
				}
				if !byText(rest) && mode == heal.Stable && !slices.Equal(rec.prompt, slices.Concat(prompt, generated)) {
					t.Errorf("%q: resumed after %v, want %v and %v", truth[:cut], rec.prompt, prompt, generated)
				}
				known := unfray.Result{Text: part.Text}
				rest = resume(t, m, &req, &known)
				if got := truth[:cut] + string(part.Text) + string(rest.Text); got != truth || !byText(rest) {
					t.Errorf("%q, %s, by text: %q was continued with %q", truth[:cut], mode, part.Text, rest.Text)
				}
			}
		}
	}
}

// TestResumeByIDs says for which results all tokens are known.
func TestResumeByIDs(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{}, "The capital of France is Paris, the capital")
	req := &unfray.Request{Prompt: unfray.Prompt{Text: []byte("The capital of Fr")}, MaxTokens: 2}
	part := complete(t, m, req)
	for _, tt := range []struct {
		name   string
		change func(*unfray.Result)
		text   bool
	}{
		{"as it was", func(*unfray.Result) {}, false},
		{"other text", func(r *unfray.Result) { r.Text = []byte("ance was") }, true},
		{"a token is missing", func(r *unfray.Result) { r.Tokens = r.Tokens[:1] }, true},
		{"a control token was drawn", func(r *unfray.Result) { r.Usage.CompletionTokens++ }, true},
		{"a stop string took a part", func(r *unfray.Result) { r.StopString = "x" }, true},
		{"another prompt's healing", func(r *unfray.Result) { r.Healing.BytesPending++ }, true},
		{"more was replayed", func(r *unfray.Result) { r.Healing.TokensReplayed++ }, true},
		{"an invalid token", func(r *unfray.Result) { r.Tokens = slices.Clone(r.Tokens); r.Tokens[1].ID = -2 }, true},
	} {
		r := *part
		tt.change(&r)
		if got := byText(resume(t, m, req, &r)); got != tt.text {
			t.Errorf("%s: by text %v, want %v", tt.name, got, tt.text)
		}
	}
}

func TestResumeUnderGrammar(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{})
	req := &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x = us")}, Grammar: regex(t, `userName=[0-9]{6}!`), GrammarBytes: 2, MaxTokens: 2}
	part := complete(t, m, req)
	req.MaxTokens = 0
	rest := resume(t, m, req, part)
	if got := "us" + string(part.Text) + string(rest.Text); !req.Grammar.Match([]byte(got)) {
		t.Errorf("%q and %q are not of the grammar", part.Text, rest.Text)
	}
	_, err := m.Resume(t.Context(), req, &unfray.Result{Text: []byte("erName=x")})
	if re := (*unfray.RequestError)(nil); !errors.As(err, &re) || re.Param != "grammar" {
		t.Errorf("a text against the grammar: %v", err)
	}
}

func TestResumeRefuses(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{})
	_, err := m.Resume(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte("a")}, Fill: &unfray.Fill{Suffix: []byte("b")}}, &unfray.Result{})
	if err == nil || !strings.Contains(err.Error(), "suffix") {
		t.Errorf("a middle was resumed: %v", err)
	}
	if _, err := m.Resume(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte("a")}}, &unfray.Result{Text: []byte(strings.Repeat("word ", 300))}); !errors.As(err, new(*backend.PromptTooLongError)) {
		t.Errorf("a text as long as the context: %v", err)
	}
}
