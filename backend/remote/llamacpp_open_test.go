package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

// llamaSite is a llama.cpp server as far as it is asked when it is opened.
type llamaSite struct {
	tok      *tokenizer.Tokenizer
	models   string // of /v1/models
	props    string // of /props; "": 501
	bias     bool   // heeds logit_bias
	literals bool   // grammars name tokens
	ids      bool   // answers hold token IDs
	infill   bool
	status   int // of everything, if not 0
	asked    []string
}

func (s *llamaSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Content  string          `json:"content"`
		Special  bool            `json:"parse_special"`
		BOS      bool            `json:"add_special"`
		Bias     [][2]int        `json:"logit_bias"`
		Grammar  string          `json:"grammar"`
		Messages json.RawMessage `json:"messages"`
		Model    string          `json:"model"`
		Prompt   []vocab.ID      `json:"prompt"`
	}
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &in)
	s.asked = append(s.asked, r.URL.String()+" "+in.Model)
	reply := func(v any) { m, _ := json.Marshal(v); answer(200, jsonType, string(m))(w, r) }
	if s.status != 0 {
		answer(s.status, jsonType, `{"error":{}}`)(w, r)
		return
	}
	switch r.URL.Path {
	case "/v1/models":
		answer(200, jsonType, s.models)(w, r)
	case "/props":
		if s.props == "" {
			answer(501, jsonType, `{"error":{"code":501}}`)(w, r)
			return
		}
		answer(200, jsonType, s.props)(w, r)
	case "/tokenize":
		ids := []vocab.ID{}
		if in.BOS && s.tok.Vocab().Specials().AddBOS {
			ids = append(ids, s.tok.Vocab().Specials().BOS)
		}
		if in.Special {
			ids = s.tok.EncodeSpecial(ids, []byte(in.Content))
		} else {
			ids = s.tok.Encode(ids, []byte(in.Content))
		}
		reply(map[string]any{"tokens": ids})
	case "/apply-template":
		reply(map[string]any{"prompt": "<|im_start|>user" + string(in.Messages)})
	case "/infill":
		if !s.infill {
			answer(501, jsonType, `{"error":{"code":501}}`)(w, r)
			return
		}
		reply(map[string]any{"content": ""})
	case "/completion":
		id := vocab.ID(50)
		if s.bias && len(in.Bias) == 1 {
			id = vocab.ID(in.Bias[0][0])
		}
		if in.Grammar != "" {
			if !s.literals {
				answer(400, jsonType, `{"error":{"code":400}}`)(w, r)
				return
			}
			fmt.Sscanf(in.Grammar, "root ::= <[%d]>", &id)
		}
		out := map[string]any{"timings": map[string]int{"cache_n": 0}, "completion_probabilities": []any{map[string]any{"id": id, "top_logprobs": []any{map[string]any{"id": 1}, map[string]any{"id": 2}}}}}
		if s.ids {
			out["tokens"] = []vocab.ID{id}
		}
		reply(out)
	default:
		http.NotFound(w, r)
	}
}

func toyTokenizer(t *testing.T, o backendtest.VocabularyOptions) *tokenizer.Tokenizer {
	t.Helper()
	return tokenizertest.Open(t, backendtest.GGUF(o))
}

func TestOpenLlamaCpp(t *testing.T) {
	tok := toyTokenizer(t, backendtest.VocabularyOptions{})
	n := tok.Vocab().Len()
	one := fmt.Sprintf(`{"data":[{"id":"toy","aliases":["t"],"created":5,"meta":{"n_vocab":%d,"n_ctx_train":4096}}]}`, n)
	two := `{"data":[{"id":"a"},{"id":"b"}]}`
	props := `{"total_slots":3,"build_info":"b1","chat_template":"x","default_generation_settings":{"n_ctx":512,"params":{"temperature":0.800000011920929,"top_k":40,"n_predict":-1,"repeat_penalty":1.0}}}`
	full := llamaSite{tok: tok, models: one, props: props, bias: true, literals: true, ids: true, infill: true}
	for _, tt := range []struct {
		name   string
		change func(*llamaSite, *Options)
		fails  string
		check  func(*LlamaCpp) bool
	}{
		{"all", func(*llamaSite, *Options) {}, "", func(b *LlamaCpp) bool {
			in, can, info := b.Inspection(), b.Info().Capabilities, b.Info()
			return in.Tokenizer == "verified" && in.Model == "toy" && in.Slots == 3 && in.ContextLength == 512 && in.FIM && in.Mask != "" && in.Logprobs == -1 &&
				in.Server == "llama.cpp b1" && can.Replay && can.Choose && can.ChoosePlain && can.Cached && can.Logprobs && !can.Steer && info.ContextLength == 512 &&
				info.VocabSize == n && info.Defaults.Sampling.Temperature == 0.8 && info.Defaults.MaxTokens == 0 && info.ChatTemplate == "x"
		}},
		{"no tokenizer", func(_ *llamaSite, o *Options) { o.Tokenizer = nil }, "", func(b *LlamaCpp) bool {
			return b.Inspection().Tokenizer == "not given" && !b.Info().Capabilities.Replay && b.TokenizerError() == nil && b.usable() != nil
		}},
		{"another tokenizer", func(s *llamaSite, _ *Options) {
			s.tok = toyTokenizer(t, backendtest.VocabularyOptions{Pre: "llama-bpe"})
		}, "", func(b *LlamaCpp) bool {
			var m *MismatchError
			can := b.Info().Capabilities
			return errors.As(b.TokenizerError(), &m) && m.Text != "" && !can.Replay && !can.Choose && strings.HasPrefix(b.Inspection().Tokenizer, "differs: ")
		}},
		{"another start", func(s *llamaSite, _ *Options) { s.tok = toyTokenizer(t, backendtest.VocabularyOptions{AddBOS: true}) }, "", func(b *LlamaCpp) bool {
			var m *MismatchError
			return errors.As(b.TokenizerError(), &m) && len(m.Want) == len(m.Got)+1
		}},
		{"another size", func(s *llamaSite, _ *Options) { s.models = strings.Replace(one, fmt.Sprint(n), "77", 1) }, "", func(b *LlamaCpp) bool {
			var m *MismatchError
			return errors.As(b.TokenizerError(), &m) && m.Tokens == 77 && m.Size == n
		}},
		{"no props", func(s *llamaSite, _ *Options) { s.props = "" }, "", func(b *LlamaCpp) bool {
			return b.Info().ContextLength == 4096 && b.Info().Defaults == nil && len(b.Inspection().Notes) == 1
		}},
		{"no bias", func(s *llamaSite, _ *Options) { s.bias = false }, "", func(b *LlamaCpp) bool {
			return !b.Info().Capabilities.Replay && b.Info().Capabilities.Choose && len(b.Inspection().Notes) == 1
		}},
		{"no token literals", func(s *llamaSite, _ *Options) { s.literals = false }, "", func(b *LlamaCpp) bool {
			return b.Info().Capabilities.Replay && !b.engine.(*llamaEngine).literals && len(b.Inspection().Notes) == 1
		}},
		{"no IDs", func(s *llamaSite, _ *Options) { s.ids = false }, "", func(b *LlamaCpp) bool { return b.usable() != nil && !b.Info().Capabilities.Replay }},
		{"no infill", func(s *llamaSite, _ *Options) { s.infill = false }, "", func(b *LlamaCpp) bool { return !b.Inspection().FIM }},
		{"by an alias", func(_ *llamaSite, o *Options) { o.Model = "t" }, "", func(b *LlamaCpp) bool { return b.Inspection().Model == "toy" && len(b.Inspection().Notes) == 0 }},
		{"by another name", func(_ *llamaSite, o *Options) { o.Model = "x" }, "", func(b *LlamaCpp) bool { return b.Inspection().Model == "toy" && len(b.Inspection().Notes) == 1 }},
		{"one of two", func(s *llamaSite, o *Options) { s.models, o.Model = two, "b" }, "", func(b *LlamaCpp) bool { return b.Inspection().Model == "b" && b.TokenizerError() == nil }},
		{"none of two", func(s *llamaSite, o *Options) { s.models = two }, "name one of them", nil},
		{"no models", func(s *llamaSite, o *Options) { s.models = "{}" }, "list of models is empty", nil},
		{"unauthorized", func(s *llamaSite, o *Options) { s.status = 401 }, "status 401", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site := full
			c := testClient(t, site.ServeHTTP)
			o := Options{Base: c.base, Transport: c.transport, Tokenizer: tok, Key: secret}
			tt.change(&site, &o)
			b, err := OpenLlamaCpp(t.Context(), o)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), secret) {
					t.Fatalf("%v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !tt.check(b) {
				t.Errorf("%+v\n%+v\n%v", b.Inspection(), b.Info(), b.TokenizerError())
			}
			if b.Inspection().Model == "b" && (!slices.Contains(site.asked, "/props?model=b ") || !slices.Contains(site.asked, "/completion b")) {
				t.Errorf("the model is not named: %q", site.asked)
			}
		})
	}
}

func TestLlamaTokenizeChat(t *testing.T) {
	tok := toyTokenizer(t, backendtest.VocabularyOptions{AddBOS: true})
	site := &llamaSite{tok: tok, models: `{"data":[{"id":"toy"}]}`, bias: true, literals: true, ids: true}
	c := testClient(t, site.ServeHTTP)
	b, err := OpenLlamaCpp(t.Context(), Options{Base: c.base, Transport: c.transport, Tokenizer: tok})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := b.TokenizeChat(t.Context(), []byte(`{"model":"mine","messages":["hi"]}`))
	want := tok.EncodeSpecial([]vocab.ID{backendtest.IMStart}, []byte(`<|im_start|>user["hi"]`))
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, %v; want %v", ids, err, want)
	}
	if last := site.asked[len(site.asked)-2]; last != "/apply-template toy" {
		t.Errorf("asked %q", last)
	}
	if _, err := b.TokenizeChat(t.Context(), []byte(`[`)); err == nil {
		t.Error("half an array was taken for a conversation")
	}
	site.status = 400
	var refused *backend.UpstreamError
	if _, err := b.TokenizeChat(t.Context(), []byte(`{}`)); !errors.As(err, &refused) || refused.Status != 400 {
		t.Errorf("a refusal became %v", err)
	}
}
