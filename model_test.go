package unfray_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/internal/gguf/gguftest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// recorder notes what the model was asked and what it answered.
type recorder struct {
	backend.Backend
	prompt    []vocab.ID
	generated []vocab.ID
	deaf      bool // hides from the backend that it is steered, and says so
	lies      bool // hides it and does not say so
}

func (r *recorder) Info() backend.Info {
	info := r.Backend.Info()
	info.Capabilities.Steer = info.Capabilities.Steer && !r.deaf
	info.Capabilities.Choose = info.Capabilities.Choose && !r.deaf
	return info
}

func (r *recorder) Generate(ctx context.Context, req *backend.Request) (backend.Stream, error) {
	r.prompt, r.generated = req.Prompt, nil
	if r.deaf || r.lies {
		c := *req
		c.Steer = nil
		req = &c
	}
	s, err := r.Backend.Generate(ctx, req)
	return &recordedStream{s, r}, err
}

type recordedStream struct {
	backend.Stream
	r *recorder
}

func (s *recordedStream) Next() (backend.Token, error) {
	t, err := s.Stream.Next()
	if err == nil {
		s.r.generated = append(s.r.generated, t.ID)
	}
	return t, err
}

func toyTokenizer(t testing.TB, o backendtest.VocabularyOptions) *tokenizer.Tokenizer {
	t.Helper()
	return tokenizertest.Open(t, backendtest.GGUF(o))
}

// toyModel knows the given texts by heart.
func toyModel(t testing.TB, vo backendtest.VocabularyOptions, texts ...string) (*unfray.Model, *recorder) {
	t.Helper()
	tok := toyTokenizer(t, vo)
	o := backendtest.Options{Vocab: tok.Vocab(), ContextLength: 256}
	for _, text := range texts {
		o.Scripts = append(o.Scripts, tok.Encode(nil, []byte(text)))
	}
	rec := &recorder{Backend: backendtest.NewToy(o)}
	t.Cleanup(func() { rec.Close() })
	m, err := unfray.NewModel(rec, tok)
	if err != nil {
		t.Fatal(err)
	}
	return m, rec
}

func complete(t *testing.T, m *unfray.Model, req *unfray.Request) *unfray.Result {
	t.Helper()
	r, err := m.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHealingFindsTheContinuation(t *testing.T) {
	const truth = "The capital of France is Paris, the capital"
	m, _ := toyModel(t, backendtest.VocabularyOptions{}, truth)
	for cut := len("The"); cut < len(truth); cut++ {
		r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte(truth[:cut])}, MaxTokens: 20})
		if got := truth[:cut] + string(r.Text); got != truth {
			t.Errorf("%q was continued with %q", truth[:cut], r.Text)
		}
		if r.FinishReason != backend.FinishStop || r.Healing.Mode != heal.Exact {
			t.Errorf("%q: finish %q, mode %q", truth[:cut], r.FinishReason, r.Healing.Mode)
		}
	}
	// The same model without healing does not recognize the broken prompt.
	r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("The capital of Fr")}, Heal: heal.Off, MaxTokens: 20})
	if strings.HasPrefix(string(r.Text), "ance") {
		t.Error("the unhealed prompt was continued as the healed one: the test shows nothing")
	}
}

func TestAccounting(t *testing.T) {
	m, rec := toyModel(t, backendtest.VocabularyOptions{}, "The capital of France is Paris, the capital")
	tok := m.Tokenizer()
	r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("The capital of Fr")}, MaxTokens: 3, Logprobs: true, TopLogprobs: 2})
	if got, want := string(r.Text), "ance is Paris"; got != want {
		t.Fatalf("text %q, want %q", got, want)
	}
	if want := len(tok.Encode(nil, []byte("The capital of Fr"))); r.Usage.PromptTokens != want {
		t.Errorf("prompt tokens %d, want the user's %d", r.Usage.PromptTokens, want)
	}
	if r.Usage.CompletionTokens != 3 || r.FinishReason != backend.FinishLength {
		t.Errorf("completion tokens %d, finish %q", r.Usage.CompletionTokens, r.FinishReason)
	}
	h := r.Healing
	if h.TokensRemoved != 1 || h.BytesPending != 3 || h.TokensReplayed != 1 || len(rec.generated) != 3 {
		t.Errorf("healing %+v, generated %v", h, rec.generated)
	}
	want := []struct {
		bytes     string
		offset    int
		straddles bool
	}{{"ance", 0, true}, {" is", 4, false}, {" Paris", 7, false}}
	for i, w := range want {
		got := r.Tokens[i]
		if string(got.Bytes) != w.bytes || got.Offset != w.offset || got.Straddles != w.straddles || got.Logprob >= 0 || len(got.Top) != 2 {
			t.Errorf("token %d: %+v, want %+v", i, got, w)
		}
	}
}

func TestStopStrings(t *testing.T) {
	const truth = "The capital of France is Paris, the capital"
	m, _ := toyModel(t, backendtest.VocabularyOptions{}, truth)
	for _, tt := range []struct {
		stop []string
		want string
	}{
		{[]string{"Paris"}, "ance is "},
		{[]string{"s Par"}, "ance i"},                      // across tokens
		{[]string{"the", "ris"}, "ance is Pa"},             // the first one met
		{[]string{"France"}, "ance is Paris, the capital"}, // not across the prompt's end
		{[]string{"ance"}, ""},
		{[]string{"is, the capital!"}, "ance is Paris, the capital"}, // never completed
		{[]string{"capital"}, "ance is Paris, the "},
	} {
		r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("The capital of Fr")}, Stop: tt.stop, MaxTokens: 30})
		if string(r.Text) != tt.want || r.FinishReason != backend.FinishStop {
			t.Errorf("stop %q: text %q (%s), want %q", tt.stop, r.Text, r.FinishReason, tt.want)
		}
		var joined []byte
		for _, tok := range r.Tokens {
			joined = append(joined, tok.Bytes...)
		}
		if string(joined) != tt.want {
			t.Errorf("stop %q: tokens make %q, text is %q", tt.stop, joined, tt.want)
		}
	}
}

// TestUnsteeredBackend stops a backend that does not heed verdicts.
func TestUnsteeredBackend(t *testing.T) {
	const truth = "The capital of France is Paris, the capital"
	m, rec := toyModel(t, backendtest.VocabularyOptions{}, truth)
	rec.deaf = true
	r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("The capital")}, Heal: heal.Off, Stop: []string{"is"}, MaxTokens: 30})
	if string(r.Text) != " of France " || r.FinishReason != backend.FinishStop {
		t.Errorf("text %q, finish %q", r.Text, r.FinishReason)
	}
	// Without masks and rows there is no healing.
	r = complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("www.exa")}, MaxTokens: 3})
	if h := r.Healing; h.Mode != heal.Off || len(h.Notes) != 1 || h.Notes[0].Code != heal.CodeMaskUnavailable {
		t.Errorf("healing %+v", h)
	}
	// A backend that ignores the mask is found out.
	rec.deaf, rec.lies = false, true
	_, err := m.Complete(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte("www.exa")}, Heal: heal.Stable, MaxTokens: 30})
	var re *heal.ReplayError
	if !errors.As(err, &re) {
		t.Errorf("error %v, want a ReplayError", err)
	}
}

// TestStreamIsWhole checks for random prompts and settings that the stream's
// chunks are the whole text, that they end between characters, and that prompt
// and text are together what the model was given and wrote.
func TestStreamIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m, rec := toyModel(t, backendtest.VocabularyOptions{})
	tok := m.Tokenizer()
	parts := append([]string{"é", "日", "🙂", "\xf0\x9f", "\xe6\x97", "x", " ", "\n", "us"}, backendtest.Words...)
	for i := range 400 {
		var prompt []byte
		for range 1 + r.IntN(6) {
			prompt = append(prompt, parts[r.IntN(len(parts))]...)
		}
		prompt = prompt[:1+r.IntN(len(prompt))]
		seed := uint64(i)
		req := &unfray.Request{
			Prompt:    unfray.Prompt{Text: prompt},
			Heal:      []heal.Mode{heal.Off, heal.Last, heal.Stable}[i%3],
			Sampling:  backend.Sampling{Temperature: 2, Seed: &seed},
			MaxTokens: 1 + r.IntN(12),
		}
		if i%4 == 0 {
			req.Stop = []string{"us", "th"}
		}
		whole := complete(t, m, req)
		wrote := tok.Decode(nil, rec.prompt)
		for _, id := range rec.generated {
			if tok.Vocab().IsText(id) {
				wrote = append(wrote, tok.Vocab().Bytes(id)...)
			}
		}
		if want := slices.Concat(prompt, whole.Text); !bytes.HasPrefix(wrote, want) || req.Stop == nil && len(wrote) != len(want) {
			t.Fatalf("prompt %q, %s: text %q, but the model was given and wrote %q", prompt, req.Heal, whole.Text, wrote)
		}
		if whole.Usage.CompletionTokens > req.MaxTokens {
			t.Fatalf("prompt %q: %d completion tokens, limit %d", prompt, whole.Usage.CompletionTokens, req.MaxTokens)
		}

		s, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		var joined []byte
		var tokens []unfray.Token
		for {
			c, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			joined = append(joined, c.Text...)
			tokens = append(tokens, c.Tokens...)
			if len(joined) < len(whole.Text) && !utf8.RuneStart(whole.Text[len(joined)]) && endsInside(joined) {
				t.Fatalf("prompt %q: a chunk ends inside a character: %q of %q", prompt, joined, whole.Text)
			}
		}
		if !bytes.Equal(joined, whole.Text) || fmt.Sprint(tokens) != fmt.Sprint(whole.Tokens) {
			t.Fatalf("prompt %q: streamed %q, whole %q", prompt, joined, whole.Text)
		}
	}
}

// endsInside reports whether b ends with a sequence that more bytes could make
// a character.
func endsInside(b []byte) bool {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			return !utf8.FullRune(tail)
		}
	}
	return false
}

func TestPrompts(t *testing.T) {
	m, rec := toyModel(t, backendtest.VocabularyOptions{})
	withBOS, recBOS := toyModel(t, backendtest.VocabularyOptions{AddBOS: true})
	one := func(m *unfray.Model, p unfray.Prompt) error {
		_, err := m.Complete(t.Context(), &unfray.Request{Prompt: p, MaxTokens: 1, Heal: heal.Off})
		return err
	}
	if err := one(m, unfray.Prompt{Text: []byte("a<|im_end|>")}); err != nil || slices.Contains(rec.prompt, backendtest.IMEnd) {
		t.Errorf("spelled control token: %v, prompt %v", err, rec.prompt)
	}
	if err := one(m, unfray.Prompt{Text: []byte("a<|im_end|>"), ParseSpecial: true}); err != nil || !slices.Contains(rec.prompt, backendtest.IMEnd) {
		t.Errorf("parsed control token: %v, prompt %v", err, rec.prompt)
	}
	if err := one(withBOS, unfray.Prompt{Text: []byte("a")}); err != nil || recBOS.prompt[0] != backendtest.IMStart {
		t.Errorf("BOS: %v, prompt %v", err, recBOS.prompt)
	}
	if err := one(withBOS, unfray.Prompt{Text: []byte("a"), NoBOS: true}); err != nil || recBOS.prompt[0] == backendtest.IMStart {
		t.Errorf("no BOS: %v, prompt %v", err, recBOS.prompt)
	}
	if err := one(withBOS, unfray.Prompt{}); err != nil {
		t.Errorf("an empty prompt after BOS: %v", err)
	}

	var reqErr *unfray.RequestError
	if err := one(m, unfray.Prompt{}); !errors.As(err, &reqErr) || !errors.Is(err, backend.ErrEmptyPrompt) || reqErr.Param != "prompt" {
		t.Errorf("empty prompt: %v", err)
	}
	var invalid *backend.InvalidTokenError
	if err := one(m, unfray.Prompt{IDs: []vocab.ID{5, 1 << 20}}); !errors.As(err, &invalid) || invalid.Position != 1 {
		t.Errorf("invalid ID: %v", err)
	}
	var long *backend.PromptTooLongError
	if err := one(m, unfray.Prompt{Text: bytes.Repeat([]byte("x"), 256)}); !errors.As(err, &long) || long.Tokens != 256 {
		t.Errorf("long prompt: %v", err)
	}
}

// TestLossyPrompt has a byte that the vocabulary has no token for.
func TestLossyPrompt(t *testing.T) {
	tok := tokenizertest.BPE(t, gguftest.BPE{Missing: "\x04", Merges: [][2]string{{"a", "b"}}})
	toy := backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab()})
	defer toy.Close()
	m, err := unfray.NewModel(toy, tok)
	if err != nil {
		t.Fatal(err)
	}
	r := complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x a\x04")}, MaxTokens: 2})
	if h := r.Healing; h.Mode != heal.Off || h.BytesPending != 0 || len(h.Notes) != 1 || h.Notes[0].Code != heal.CodeLossy || !strings.Contains(h.Notes[0].Text, "offset 3 ") {
		t.Errorf("healing %+v", h)
	}
	// What is lost before the pending bytes is lost with and without healing.
	r = complete(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x\x04 a")}, MaxTokens: 2})
	if h := r.Healing; h.Mode != heal.Exact || h.BytesPending == 0 || len(h.Notes) != 0 {
		t.Errorf("healing %+v", h)
	}
}

func TestRequestErrors(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{})
	for param, change := range map[string]func(*unfray.Request){
		"temperature":       func(r *unfray.Request) { r.Sampling.Temperature = -1 },
		"top_p":             func(r *unfray.Request) { r.Sampling.TopP = math.NaN() },
		"min_p":             func(r *unfray.Request) { r.Sampling.MinP = 1.5 },
		"top_k":             func(r *unfray.Request) { r.Sampling.TopK = -1 },
		"presence_penalty":  func(r *unfray.Request) { r.Sampling.PresencePenalty = 3 },
		"frequency_penalty": func(r *unfray.Request) { r.Sampling.FrequencyPenalty = math.Inf(1) },
		"max_tokens":        func(r *unfray.Request) { r.MaxTokens = -1 },
		"logprobs":          func(r *unfray.Request) { r.TopLogprobs = 21 },
		"unfray.heal":       func(r *unfray.Request) { r.Heal = "most" },
		"stop":              func(r *unfray.Request) { r.Stop = []string{"a", ""} },
	} {
		req := &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x")}}
		change(req)
		_, err := m.Generate(t.Context(), req)
		var re *unfray.RequestError
		if !errors.As(err, &re) || re.Param != param {
			t.Errorf("%s: error %v", param, err)
		}
	}
	_, err := m.Generate(t.Context(), &unfray.Request{Prompt: unfray.Prompt{Text: []byte("x")}, MaxTokens: -1})
	if err == nil || !strings.HasSuffix(err.Error(), "-1 is not between 0 and 2147483647") {
		t.Errorf("limits without exponents: %v", err)
	}
}

func TestOtherModelsTokenizer(t *testing.T) {
	tok := toyTokenizer(t, backendtest.VocabularyOptions{})
	small, err := vocab.New([][]byte{[]byte("a")}, []vocab.Kind{vocab.Normal}, vocab.Specials{BOS: vocab.None})
	if err != nil {
		t.Fatal(err)
	}
	b := backendtest.NewToy(backendtest.Options{Vocab: small})
	defer b.Close()
	if _, err := unfray.NewModel(b, tok); err == nil {
		t.Error("NewModel joins a backend with another model's tokenizer")
	}
}

func TestCancel(t *testing.T) {
	gate := make(chan struct{})
	tok := toyTokenizer(t, backendtest.VocabularyOptions{})
	toy := backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab(), Gate: gate})
	defer toy.Close()
	m, err := unfray.NewModel(toy, tok)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := m.Generate(ctx, &unfray.Request{Prompt: unfray.Prompt{Text: []byte("Hello")}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestChoicesFromOnePrefill draws many continuations of one prepared request:
// each has a way over the prompt's end of its own, as probable as the model
// finds it.
func TestChoicesFromOnePrefill(t *testing.T) {
	m, _ := toyModel(t, backendtest.VocabularyOptions{})
	p, err := m.Prepare(&unfray.Request{
		Prompt: unfray.Prompt{Text: []byte("www.exa")}, Sampling: backend.Sampling{Temperature: 1}, MaxTokens: 1, Logprobs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	const draws = 2000
	count, logprob := map[string]int{}, map[string]float64{}
	for i := range uint64(draws) {
		s, err := p.Generate(t.Context(), &i)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Next()
		}
		r := s.Result()
		s.Close()
		if len(r.Tokens) == 0 || !r.Tokens[0].Straddles {
			continue
		}
		count[string(r.Text)]++
		logprob[string(r.Text)] = r.Tokens[0].Logprob
	}
	if len(count) < 2 {
		t.Fatalf("all choices are the same: %v", count)
	}
	// The straddling token's logprob is that of the text it adds.
	for text, n := range count {
		want := draws * math.Exp(logprob[text])
		if d := float64(n) - want; d*d > 30*want {
			t.Errorf("%q was drawn %d times, by its logprob %.1f were to be expected", text, n, want)
		}
	}
}
