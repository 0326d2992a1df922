package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

// fixed answers everything with the same bytes.
func fixed(contentType string, body []byte) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {contentType}},
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: -1, Request: r,
		}, nil
	}
}

func fixedLlama(contentType string, body []byte) *LlamaCpp {
	o := Options{Transport: fixed(contentType, body)}
	if err := o.check(); err != nil {
		panic(err)
	}
	b := &LlamaCpp{server{client: newClient(&o), options: o, vocab: backendtest.Vocabulary(backendtest.VocabularyOptions{})}}
	b.engine = &llamaEngine{s: &b.server, model: quote("toy"), literals: true, letter: letterOf(b.vocab)}
	b.info = backend.Info{ContextLength: 64}
	b.inspection.IDPrompts, b.inspection.IDsBack = true, true
	return b
}

// FuzzEvents: any bytes give events and one of the errors that are told apart,
// and the events hold no more than was read.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: 1\n\ndata: [DONE]\n\n", "data: {\"error\":{\"code\":500}}\n\n", "data: 1\r\ndata: 2\r\n\r\n", ": x\n\n", "data", "\xef\xbb\xbfdata: 1\n\n", "data: [DONE]\n\ndata: 2\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := newClient(&Options{Transport: fixed(eventType, body), Timeout: defaultTimeout})
		data, _, err := readEvents(c, t.Context())
		if k := kind(err); err != io.EOF && k != "protocol" && !strings.HasPrefix(k, "upstream") {
			t.Errorf("%s: %v", k, err)
		}
		if n := len(strings.Join(data, "")); n > len(body) {
			t.Errorf("%d bytes of events of %d", n, len(body))
		}
	})
}

// checkGeneration reads a generation to its end: valid tokens, no more than were
// asked for, and an error that is told apart.
func checkGeneration(t *testing.T, b *LlamaCpp, req *backend.Request) {
	s, err := b.Generate(t.Context(), req)
	if err != nil {
		if k := kind(err); k != "protocol" && !strings.HasPrefix(k, "upstream") {
			t.Errorf("Generate: %s: %v", k, err)
		}
		return
	}
	defer s.Close()
	for n := 0; ; n++ {
		tok, err := s.Next()
		if err != nil {
			if k := kind(err); err != io.EOF && k != "protocol" && !strings.HasPrefix(k, "upstream") {
				t.Errorf("Next: %s: %v", k, err)
			}
			return
		}
		if n >= req.MaxTokens {
			t.Fatalf("more than %d tokens", req.MaxTokens)
		}
		if !b.vocab.Valid(tok.ID) || b.vocab.IsEOG(tok.ID) {
			t.Fatalf("token %d", tok.ID)
		}
		for _, l := range tok.Top {
			if !b.vocab.Valid(l.ID) || l.Logprob > 0 {
				t.Fatalf("alternative %+v", l)
			}
		}
	}
}

// FuzzLlamaStream: any stream ends well or with a clear error.
func FuzzLlamaStream(f *testing.F) {
	for _, s := range []string{
		part(1, "a", 67) + final(1, "limit"), part(3, "🙂", 227) + final(3, "eos"), final(9, "limit"), part(1, "", 2) + final(1, "eos"),
		part(1, "a", -1), part(5, "\ufffd", 3), "data: {}\n\n", "data: {\"stop\":true}\n\n", "data: null\n\n", "data: 1e999\n\n",
		"data: {\"tokens\":[67],\"tokens_predicted\":1,\"completion_probabilities\":[{\"id\":67,\"logprob\":-1,\"top_logprobs\":[{\"id\":68,\"logprob\":-0.5}]}]}\n\n" + final(1, "limit"),
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, logprobs bool) {
		b := fixedLlama(eventType, body)
		req := &backend.Request{Prompt: []vocab.ID{5}, MaxTokens: 8, Logprobs: logprobs, TopLogprobs: 2}
		checkGeneration(t, b, req)
		req.Replay = &backend.Replay{Pending: []byte("ab")}
		checkGeneration(t, b, req)
	})
}

// FuzzLlamaAnswer: any whole answer gives a token of the mask, rows, an
// inspection, tokens of a conversation, or a clear error.
func FuzzLlamaAnswer(f *testing.F) {
	for _, s := range []string{
		`{"tokens":[67],"id_slot":1,"completion_probabilities":[{"id":67,"logprob":-1,"top_logprobs":[{"id":67,"logprob":-1}]}]}`,
		`{"tokens":[]}`, `{"tokens":[99999]}`, `[]`, `null`, `{"data":[{"id":"m"}],"tokens":[4,5],"prompt":"x"}`, `{"error":"x"}`, `{"completion_probabilities":[{}]}`,
		`{"data":[{"id":"m","meta":{"n_vocab":-1}}],"total_slots":1,"default_generation_settings":{"n_ctx":5,"params":{"temperature":0.8}},"tokens":[4,5]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := fixedLlama(jsonType, body)
		checkGeneration(t, b, &backend.Request{Prompt: []vocab.ID{5}, MaxTokens: 4, Replay: &backend.Replay{Pending: []byte("\x99")}})
		prompt := []vocab.ID{5, 6, 7}
		checkGeneration(t, b, &backend.Request{Prompt: prompt, Keep: 1, MaxTokens: 4, Choose: &fixedChooser{prompt[1:]}, Logprobs: true})
		if ids, err := b.TokenizeChat(t.Context(), []byte(`{}`)); err == nil {
			for _, id := range ids {
				if !b.vocab.Valid(id) {
					t.Fatalf("token %d", id)
				}
			}
		}
		if b, err := OpenLlamaCpp(t.Context(), b.options); err == nil {
			if _, err := json.Marshal(b.Inspection()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzGBNF: the words of a grammar are the grammar, and putting text before it
// renames its root and nothing else.
func FuzzGBNF(f *testing.F) {
	for _, s := range []string{
		`root ::= "x"`, "root ::= a\na ::= [\"\\]] root? # root\n", `root ::= <root> !<[5]> "root\" root" [root] (root){1,2}`, `"`, `[\`, "root", "# root ::= x", "a-root ::= root-a root_ r00t",
	} {
		f.Add(s, []byte("ab\"\\\n\u00e9"))
	}
	f.Fuzz(func(t *testing.T, source string, pending []byte) {
		var joined, renamed strings.Builder
		names := 0
		for _, w := range gbnfWords(source) {
			joined.WriteString(w.text)
			if w.name && w.text == "root" {
				names++
				w.text = ""
			}
			renamed.WriteString(w.text)
		}
		if joined.String() != source {
			t.Fatalf("%q became %q", source, joined.String())
		}
		out, err := gbnfAfter(pending, source)
		if err != nil {
			var unsupported *backend.UnsupportedError
			if !errors.As(err, &unsupported) || utf8.Valid(pending) && names > 0 && bytes.IndexByte(pending, 0) < 0 {
				t.Fatalf("%q after %q: %v", source, pending, err)
			}
			return
		}
		first, rest, _ := strings.Cut(out, "\n")
		name := first[strings.LastIndexByte(first, ' ')+1:]
		if strings.ReplaceAll(source, "root", "") == renamed.String() && strings.ReplaceAll(rest, name, "root") != source {
			t.Errorf("%q became %q", source, rest)
		}
		if strings.Contains(source, name) {
			t.Errorf("the name %s stands in the grammar already", name)
		}
	})
}

// What a literal of a grammar stands for, read back.
func FuzzGBNFLiteral(f *testing.F) {
	for _, s := range []string{"ab", "\"\\", "\u00e9\xc3", "\xf0\x9f", "\x99", "a\x00", "\U0010ffff\xf4", "\xe0", "\xed", " ["} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lit, ok := gbnfLiteral(text)
		if !ok {
			return
		}
		quoted, class, open := strings.Cut(strings.TrimPrefix(lit, "\""), "\" [")
		if !open {
			quoted = strings.TrimSuffix(quoted, "\"")
		}
		var back []byte
		for s := quoted; s != ""; {
			if strings.HasPrefix(s, "\\U") {
				var r rune
				for _, c := range s[2:10] {
					r = r<<4 | rune(strings.IndexRune("0123456789ABCDEF", c))
				}
				back, s = utf8.AppendRune(back, r), s[10:]
				continue
			}
			back, s = append(back, s[0]), s[1:]
		}
		if !open {
			if !bytes.Equal(back, text) {
				t.Fatalf("%q stands for %q", lit, back)
			}
			return
		}
		begun := text[len(back):]
		if !bytes.Equal(back, text[:len(back)]) || utf8.FullRune(begun) || len(class) != 22 {
			t.Fatalf("%q stands for %q and more of %q", lit, back, text)
		}
		lo, hi := runesFrom(begun)
		for _, r := range []rune{lo, hi} {
			if b := utf8.AppendRune(nil, r); r < 0xd800 || r > 0xdfff {
				if !bytes.HasPrefix(b, begun) {
					t.Errorf("%U does not begin with %q", r, begun)
				}
			}
		}
		for _, r := range []rune{lo - 1, hi + 1} {
			if utf8.ValidRune(r) && bytes.HasPrefix(utf8.AppendRune(nil, r), begun) {
				t.Errorf("%U begins with %q too", r, begun)
			}
		}
	})
}
