package audit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/internal/chattemplate"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

func toyTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	return tokenizertest.Open(t, backendtest.GGUF(backendtest.VocabularyOptions{}))
}

const (
	turnsQuestion = `{"role":"user","content":"Hello, what is the capital of France?"}`
	turnsNext     = `{"role":"user","content":"And the quick fox?"}`
	turnsHeader   = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	turnsPlain    = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" + turnsHeader
)

// TestTurnsCauses shows one template of each fault. The mark ¦ in want stands
// where the prompt after the answer first differs; the text before it must be
// what the two have in common, from the last "assistant" on.
func TestTurnsCauses(t *testing.T) {
	const assistant = `{"role":"assistant","content":"The capital is Paris."}`
	tok := toyTokenizer(t)
	for _, c := range []struct {
		name, template, messages string
		tools                    string
		opts                     TurnsOptions
		cause                    Cause // "" for none
		common                   string
		lost                     bool
	}{
		{name: "none", template: turnsPlain, messages: turnsQuestion + "," + assistant + "," + turnsNext},
		{
			name:     "another header in the history",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:\n{% endif %}",
			messages: turnsQuestion + "," + assistant + "," + turnsNext, cause: GenerationPrompt, common: "assistant", lost: true,
		},
		{
			name:     "no end of the turn",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.role != 'assistant' %}<|im_end|>{% endif %}\n{% endfor %}" + turnsHeader,
			messages: turnsQuestion + "," + assistant + "," + turnsNext, cause: EndOfTurn, common: "assistant\nThe capital is Paris.<|im_",
		},
		{
			name:     "a newline before the end of the turn",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\n<|im_end|>\n{% endfor %}" + turnsHeader,
			messages: turnsQuestion + "," + assistant + "," + turnsNext,
			opts:     TurnsOptions{Outputs: []Output{{Text: "The capital is Paris.<|im_end|>"}}},
			cause:    EndOfTurn, common: "assistant\nThe capital is Paris.",
		},
		{
			name:     "blanks trimmed",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}" + turnsHeader,
			messages: turnsQuestion + "," + assistant + "," + turnsNext,
			opts:     TurnsOptions{Outputs: []Output{{Text: "  The capital is Paris.<|im_end|>"}}},
			cause:    Whitespace, common: "assistant\n", lost: true,
		},
		{
			name:     "reasoning dropped",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}" + turnsHeader,
			messages: turnsQuestion + `,{"role":"assistant","content":"Paris","reasoning_content":"Of France"},` + turnsNext,
			cause:    Thinking, common: "assistant\n", lost: true,
		},
		{
			name:     "reasoning in the prompt only",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
			messages: turnsQuestion + `,{"role":"assistant","content":"Paris","reasoning_content":"Of France"},` + turnsNext,
			cause:    Thinking, common: "assistant\n", lost: true,
		},
		{
			name:     "an empty reasoning inserted",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not loop.last %}<think>\n\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}" + turnsHeader,
			messages: turnsQuestion + "," + assistant + "," + turnsNext, cause: Thinking, common: "assistant\n", lost: true,
		},
		{
			name:     "a tool call in other spelling",
			template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{{ m.content }}<|im_end|>\n{% endfor %}" + turnsHeader,
			messages: turnsQuestion + `,{"role":"assistant","tool_calls":[{"function":{"name":"find","arguments":"{\"city\":\"Paris\",\"days\":2}"}}]},{"role":"tool","content":"ok"}`,
			opts:     TurnsOptions{Outputs: []Output{{Text: `find{"days": 2, "city": "Paris"}<|im_end|>`}}},
			cause:    JSONRewrite, common: `assistant` + "\n" + `find{"`, lost: true,
		},
		{
			name:     "the date in the system message",
			template: "<|im_start|>system\nToday is {{ strftime_now('%d %B %Y') }}.<|im_end|>\n" + turnsPlain,
			messages: turnsQuestion + "," + assistant + "," + turnsNext,
			opts:     TurnsOptions{Times: []time.Time{time.Date(2026, 11, 4, 23, 59, 0, 0, time.UTC), time.Date(2026, 11, 5, 0, 1, 0, 0, time.UTC)}},
			cause:    Timestamp, common: "Today is 0", lost: true,
		},
		{
			name: "the system message in the last question",
			template: "{% for m in messages %}{% if m.role != 'system' %}<|im_start|>{{ m.role }}\n{% if loop.last and m.role == 'user' %}{{ messages[0].content }}\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}" +
				turnsHeader,
			messages: `{"role":"system","content":"You are a quick fox."},` + turnsQuestion + "," + assistant + "," + turnsNext,
			cause:    SystemMoved, common: "user\n", lost: true,
		},
		{
			name: "the tools before the last question",
			template: "{% for m in messages %}{% if loop.last and tools and m.role == 'user' %}<|im_start|>tools\n{{ tools | tojson }}<|im_end|>\n{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
				turnsHeader,
			messages: turnsQuestion + "," + assistant + "," + turnsNext,
			tools:    `[{"type":"function","function":{"name":"find","description":"Finds a fox."}}]`,
			cause:    ToolsMoved, common: "<|im_start|>", lost: true,
		},
		{
			name: "the model's own tokens", template: turnsPlain, messages: turnsQuestion + "," + assistant + "," + turnsNext,
			opts:  TurnsOptions{Outputs: []Output{{IDs: ownTokens(tok)}}},
			cause: OwnIDs, common: "The capital is Paris.<|im_end|>", lost: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"messages":[` + c.messages + `]`
			if c.tools != "" {
				body += `,"tools":` + c.tools
			}
			conv, err := chattemplate.ParseConversation([]byte(body + "}"))
			if err != nil {
				t.Fatal(err)
			}
			tmpl, err := chattemplate.Compile(c.template)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Turns(t.Context(), tmpl, tok, conv, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			checkCause(t, r, c.cause, c.common, c.lost)
		})
	}
}

// ownTokens are an answer with a word in two tokens where the vocabulary has
// one.
func ownTokens(tok *tokenizer.Tokenizer) []vocab.ID {
	var ids []vocab.ID
	for _, s := range []string{"The", " cap", "ital", " is", " Paris", "."} {
		ids = tok.EncodeInside(ids, []byte(s))
	}
	return append(ids, backendtest.IMEnd)
}

func checkCause(t *testing.T, r *TurnsReport, cause Cause, common string, lost bool) {
	t.Helper()
	s := r.Steps[0]
	d := s.Drift
	if cause == "" {
		if d != nil || !r.Preserving || r.LostTokens != 0 {
			t.Errorf("drift %+v", d)
		}
		return
	}
	if d == nil {
		t.Fatalf("no drift from %q to %q", s.prompt+s.Output, r.Steps[1].prompt)
	}
	old := s.prompt + s.Output
	if d.Cause != cause || !strings.HasSuffix(old[:d.Byte], common) || (d.LostTokens > 0) != lost || r.Preserving == lost {
		t.Errorf("%s at %q…%q, %d tokens lost: %s\nfrom %q\nto   %q", d.Cause, old[:d.Byte], old[d.Byte:], d.LostTokens, d.Why, old, r.Steps[1].prompt)
	}
	if !strings.HasPrefix(r.Steps[1].prompt, old[:d.Byte]) || d.InAnswer != (d.Byte >= len(s.prompt)) || d.Why == "" {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(r.String(), string(cause)) {
		t.Errorf("the report does not say it: %s", r)
	}
}

func TestDoubleBOS(t *testing.T) {
	tok := tokenizertest.Open(t, backendtest.GGUF(backendtest.VocabularyOptions{AddBOS: true}))
	tmpl, err := chattemplate.Compile(turnsPlain)
	if err != nil {
		t.Fatal(err)
	}
	conv, err := chattemplate.ParseConversation([]byte(`[` + turnsQuestion + `,{"role":"assistant","content":"Paris"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, both := range []bool{false, true} {
		r, err := Turns(t.Context(), tmpl, tok, conv, TurnsOptions{Template: both})
		if err != nil || r.DoubleBOS != both || !r.Preserving {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestTurnsErrors(t *testing.T) {
	tok := toyTokenizer(t)
	tmpl, err := chattemplate.Compile(turnsPlain)
	if err != nil {
		t.Fatal(err)
	}
	refusing, err := chattemplate.Compile("{{ raise_exception('no') }}")
	if err != nil {
		t.Fatal(err)
	}
	conv := &chattemplate.Conversation{Messages: []*chattemplate.Object{chattemplate.NewMessage("user", "a"), chattemplate.NewMessage("assistant", "b")}}
	question := &chattemplate.Conversation{Messages: conv.Messages[:1]}
	for _, c := range []struct {
		tmpl *chattemplate.Template
		tok  *tokenizer.Tokenizer
		conv *chattemplate.Conversation
		opts TurnsOptions
		want error
	}{
		{tmpl, nil, conv, TurnsOptions{}, ErrNoTokenizer},
		{nil, tok, conv, TurnsOptions{}, ErrNoTemplate},
		{tmpl, tok, conv, TurnsOptions{BlockSize: -1}, ErrBlockLength},
		{tmpl, tok, question, TurnsOptions{}, ErrNoAnswer},
		{tmpl, tok, conv, TurnsOptions{Outputs: make([]Output, 2)}, ErrFewOutputs},
		{tmpl, tok, conv, TurnsOptions{Times: make([]time.Time, 2)}, ErrFewMoments},
	} {
		if _, err := Turns(t.Context(), c.tmpl, c.tok, c.conv, c.opts); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	refused := (*chattemplate.RefusedError)(nil)
	if _, err := Turns(t.Context(), refusing, tok, conv, TurnsOptions{}); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if _, err := Turns(t.Context(), tmpl, tok, conv, TurnsOptions{Outputs: []Output{{IDs: []vocab.ID{1 << 30}}}}); err == nil {
		t.Error("a token is taken that the vocabulary does not have")
	}
	r, err := Probe(t.Context(), refusing, tok, TurnsOptions{})
	if err != nil || r.Plain.Verdict != Refused || r.Both.Verdict != Refused {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzTurns compares the figures with what a slow comparison of texts and
// tokens gives.
func FuzzTurns(f *testing.F) {
	for _, s := range []string{"", "Paris", " \n", "<|im_end|>", "<think>\nx</think>", "{\"a\": 1}", "é\xff", "\n\n\n"} {
		f.Add(s, s, uint8(0))
		f.Add("The capital", s, uint8(3))
	}
	tok := toyTokenizer(f)
	var templates []*chattemplate.Template
	for _, source := range []string{
		turnsPlain,
		"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
		"{% for m in messages %}{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}",
		"{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>assistant\n",
	} {
		tmpl, err := chattemplate.Compile(source)
		if err != nil {
			f.Fatal(err)
		}
		templates = append(templates, tmpl)
	}
	f.Fuzz(func(t *testing.T, answer, output string, which uint8) {
		if len(answer)+len(output) > 1000 {
			return
		}
		conv := &chattemplate.Conversation{Messages: []*chattemplate.Object{
			chattemplate.NewMessage("user", "Hello"), chattemplate.NewMessage("assistant", answer), chattemplate.NewMessage("user", output),
		}}
		opts := TurnsOptions{BlockSize: 1 + int(which>>2)%5, Outputs: []Output{{Text: output}}}
		r, err := Turns(t.Context(), templates[which%4], tok, conv, opts)
		if err != nil {
			t.Fatal(err)
		}
		s, next := r.Steps[0], r.Steps[1]
		held := slices.Concat(tok.EncodeSpecial(nil, []byte(s.prompt)), tok.EncodeSpecial(nil, []byte(s.Output)))
		if s.OutputTokens > 0 {
			held = held[:len(held)-1]
		}
		kept := 0
		for ids := tok.EncodeSpecial(nil, []byte(next.prompt)); kept < len(ids) && kept < len(held) && ids[kept] == held[kept]; {
			kept++
		}
		goesOn := strings.HasPrefix(next.prompt, s.prompt+s.Output) && kept == len(held)
		if goesOn != (s.Drift == nil) {
			t.Fatalf("drift %+v from %q to %q", s.Drift, s.prompt+s.Output, next.prompt)
		}
		if d := s.Drift; d != nil {
			if d.Token != kept || d.LostTokens != len(held)-kept || d.LostBlocks != len(held)/r.BlockSize-kept/r.BlockSize || d.Cause == "" || d.Why == "" {
				t.Errorf("%+v, want token %d of %d", d, kept, len(held))
			}
			if old := s.prompt + s.Output; !strings.HasPrefix(next.prompt, old[:d.Byte]) || d.Byte < len(old) && d.Byte < len(next.prompt) && old[d.Byte] == next.prompt[d.Byte] {
				t.Errorf("byte %d of %q and %q", d.Byte, old, next.prompt)
			}
		}
	})
}
