package unfray_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/fim"
	"github.com/unfray/unfray/heal"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
	"github.com/unfray/unfray/vocab"
)

func fillTokenizer(t testing.TB, controls ...string) *tokenizer.Tokenizer {
	t.Helper()
	y := tokenizertest.Toy{Merges: [][2]string{
		{"u", "s"}, {"e", "r"}, {"us", "er"}, {" ", "user"}, {"N", "a"}, {"m", "e"}, {"Na", "me"},
		{"p", "r"}, {"i", "n"}, {"pr", "in"}, {"prin", "t"},
	}}
	for _, c := range controls {
		y.Added = append(y.Added, tokenizertest.ToyAdded{Content: c, Special: true})
	}
	return y.Open(t)
}

var starCoder = []string{"<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<repo_name>", "<file_sep>"}

const (
	fillPrefix = "x = userNa"
	fillMiddle = "me + 1"
	fillSuffix = "\nprint(userName)\nprint(x, \"as computed above\")\n"
)

// fillModel is a model that has learned to write text, and then the tokens in
// after, between prefix and suffix where all that stands before is tokenized as
// in training: the whole text's own tokens.
func fillModel(t testing.TB, tok *tokenizer.Tokenizer, order fim.Order, head []vocab.ID, text string, after ...vocab.ID) *unfray.Model {
	t.Helper()
	l, err := fim.Find(tok)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = l.In(order); err != nil {
		t.Fatal(err)
	}
	whole := tok.Encode(nil, []byte(fillPrefix+text))
	stable := 0 // the tokens of the prefix that every text keeps
	for n := 0; n < len(fillPrefix)-len("Na"); stable++ {
		n += len(tok.Vocab().Bytes(whole[stable]))
	}
	script, _ := l.Arrange(nil, head, whole[:stable], l.EncodeSuffix(nil, []byte(fillSuffix)))
	script = append(append(script, whole[stable:]...), after...)
	if end, ok := tok.Vocab().LookupSpecial([]byte("<|endoftext|>")); ok {
		script = append(script, end)
	}
	m, err := unfray.NewModel(backendtest.NewToy(backendtest.Options{Vocab: tok.Vocab(), Scripts: [][]vocab.ID{script}}), tok)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFill(t *testing.T) {
	tok := fillTokenizer(t, starCoder...)
	sep, _ := tok.Vocab().LookupSpecial([]byte("<file_sep>"))
	spm := fim.SPM
	for _, tc := range []struct {
		name  string
		order *fim.Order
		text  string
		after []vocab.ID
	}{
		{"end of generation", nil, fillMiddle, nil},
		{"an end of the family's", nil, fillMiddle, []vocab.ID{sep, 'x', 'y'}},
		{"the suffix again", nil, fillMiddle + fillSuffix + "print(1)", nil},
		{"the suffix's first line", nil, fillMiddle + "\nprint(userName)", nil},
		{"SPM", &spm, fillMiddle + fillSuffix, nil},
	} {
		for _, mode := range []heal.Mode{heal.Auto, heal.Exact, heal.Stable, heal.Last} {
			t.Run(tc.name+"/"+string(mode), func(t *testing.T) {
				order := fim.PSM
				if tc.order != nil {
					order = *tc.order
				}
				m := fillModel(t, tok, order, nil, tc.text, tc.after...)
				req := &unfray.Request{
					Prompt: unfray.Prompt{Text: []byte(fillPrefix), ParseSpecial: true}, Heal: mode, MaxTokens: 100,
					Fill: &unfray.Fill{Suffix: []byte(fillSuffix), Order: tc.order},
				}
				r := checkFillStream(t, m, req)
				if string(r.Text) != fillMiddle || r.FinishReason != backend.FinishStop {
					t.Errorf("%q, %s", r.Text, r.FinishReason)
				}
				want := len(tok.Encode(nil, []byte(fillPrefix))) + len(tok.Encode(nil, []byte(fillSuffix))) + 3
				if r.Usage.PromptTokens != want || r.Healing.BytesPending != len("Na") {
					t.Errorf("%d prompt tokens, want %d; %+v", r.Usage.PromptTokens, want, r.Healing)
				}
			})
		}
	}
}

// checkFillStream reads a stream and compares its parts with the result.
func checkFillStream(t *testing.T, m *unfray.Model, req *unfray.Request) *unfray.Result {
	t.Helper()
	s, err := m.Generate(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text, spelled []byte
	for {
		c, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		text = append(text, c.Text...)
		for _, tok := range c.Tokens {
			spelled = append(spelled, tok.Bytes...)
		}
	}
	r := s.Result()
	if !bytes.Equal(text, r.Text) || !bytes.Equal(spelled, r.Text) {
		t.Errorf("streamed %q in tokens %q, the result is %q", text, spelled, r.Text)
	}
	return r
}

// A client that writes the markers itself has the end of its prefix healed. It
// did not say that the suffix is one, so nothing is cut.
func TestMarkedPrompt(t *testing.T) {
	tok := fillTokenizer(t, starCoder...)
	text := fillMiddle + fillSuffix
	m := fillModel(t, tok, fim.PSM, nil, text)
	marked := []byte("<fim_prefix>" + fillPrefix + "<fim_suffix>" + fillSuffix + "<fim_middle>")
	ids := tok.EncodeSpecial(nil, marked)
	for _, mode := range []heal.Mode{heal.Auto, heal.Exact, heal.Stable, heal.Last} {
		for _, p := range []unfray.Prompt{{Text: marked, ParseSpecial: true}, {IDs: ids}} {
			r := checkFillStream(t, m, &unfray.Request{Prompt: p, Heal: mode, MaxTokens: 200})
			if string(r.Text) != text || r.Usage.PromptTokens != len(ids) || r.Healing.BytesPending != len("Na") {
				t.Errorf("%s: %q, %+v", mode, r.Text, r.Healing)
			}
		}
	}
	r := checkFillStream(t, m, &unfray.Request{Prompt: unfray.Prompt{IDs: ids}, Heal: heal.Off, MaxTokens: 5})
	if r.Healing.TokensRemoved != 0 || string(r.Text) == text[:len(r.Text)] {
		t.Errorf("off: %q, %+v", r.Text, r.Healing)
	}
	plain := checkFillStream(t, m, &unfray.Request{Prompt: unfray.Prompt{Text: marked}, MaxTokens: 5})
	if plain.Usage.PromptTokens <= len(ids) {
		t.Errorf("markers in plain text are tokens: %+v", plain.Usage)
	}
}

// The middle may hold lines of the suffix: only where it goes on as the suffix
// does is it cut.
func TestFillKeepsWhatIsNoRepetition(t *testing.T) {
	tok := fillTokenizer(t, starCoder...)
	text := fillMiddle + "\nprint(userName)\nprint(y)\n#"
	m := fillModel(t, tok, fim.PSM, nil, text)
	r := checkFillStream(t, m, &unfray.Request{
		Prompt: unfray.Prompt{Text: []byte(fillPrefix)}, MaxTokens: 200, Fill: &unfray.Fill{Suffix: []byte(fillSuffix)},
	})
	if string(r.Text) != text {
		t.Errorf("%q, want %q", r.Text, text)
	}
}

func TestFillFiles(t *testing.T) {
	tok := fillTokenizer(t, starCoder...)
	l, err := fim.Find(tok)
	if err != nil {
		t.Fatal(err)
	}
	small, big := fim.File{Name: "a.py", Text: []byte("userName = 2\n")}, fim.File{Name: "b.py", Text: bytes.Repeat([]byte("xyz "), 5000)}
	head, _ := l.Context(nil, "repo", []fim.File{small}, "c.py", 0)
	m := fillModel(t, tok, fim.PSM, head, fillMiddle)
	for _, tc := range []struct {
		files []fim.File
		note  string
	}{
		{[]fim.File{small}, ""},
		{[]fim.File{big, small}, "first 1 of 2 files"},
	} {
		r := checkFillStream(t, m, &unfray.Request{
			Prompt: unfray.Prompt{Text: []byte(fillPrefix)}, MaxTokens: 20,
			Fill: &unfray.Fill{Suffix: []byte(fillSuffix), Files: tc.files, Repo: "repo", Name: "c.py"},
		})
		if string(r.Text) != fillMiddle {
			t.Errorf("%q", r.Text)
		}
		has := slices.ContainsFunc(r.Healing.Notes, func(n heal.Note) bool {
			return n.Code == unfray.CodeFilesDropped && strings.Contains(n.Text, tc.note)
		})
		if has != (tc.note != "") {
			t.Errorf("notes %+v, want %q", r.Healing.Notes, tc.note)
		}
	}
}

func TestFillRefuses(t *testing.T) {
	tok := fillTokenizer(t, starCoder...)
	m := fillModel(t, tok, fim.PSM, nil, fillMiddle)
	bare, err := unfray.NewModel(backendtest.NewToy(backendtest.Options{}), toyTokenizer(t, backendtest.VocabularyOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	none := fillTokenizer(t, "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
	spm := fim.SPM
	for _, tc := range []struct {
		name string
		m    *unfray.Model
		req  unfray.Request
		want string
	}{
		{"no tokens", bare, unfray.Request{Prompt: unfray.Prompt{Text: []byte("The")}, Fill: &unfray.Fill{}}, "cannot fill in the middle"},
		{"IDs", m, unfray.Request{Prompt: unfray.Prompt{IDs: []vocab.ID{1}}, Fill: &unfray.Fill{}}, "give the prompt as text"},
		{"order", fillModel(t, none, fim.PSM, nil, fillMiddle), unfray.Request{Prompt: unfray.Prompt{Text: []byte("a")}, Fill: &unfray.Fill{Order: &spm}}, "PSM only"},
	} {
		_, err := tc.m.Prepare(&tc.req)
		var bad *unfray.RequestError
		if !errors.As(err, &bad) || bad.Param != "suffix" || !strings.Contains(err.Error(), tc.want) || unfray.IsNoFIM(err) != (tc.name == "no tokens") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	long := unfray.Request{Prompt: unfray.Prompt{Text: []byte("a")}, Fill: &unfray.Fill{Suffix: bytes.Repeat([]byte("ab"), 2000)}}
	if _, err := m.Prepare(&long); !errors.As(err, new(*backend.PromptTooLongError)) {
		t.Errorf("too long: %v", err)
	}
	// Nothing on either side of the cursor is a prompt all the same.
	if _, err := m.Complete(context.Background(), &unfray.Request{MaxTokens: 3, Fill: &unfray.Fill{}}); err != nil {
		t.Errorf("empty sections: %v", err)
	}
}
